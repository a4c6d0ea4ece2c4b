"""The normalized conversation: messages, their content blocks, and where bytes come from.

Strategy. One type per kind of content that agents act on; everything else is kept whole in `Opaque`, in its place, and goes back to
the dialect it came from. What a known block carries beyond our fields lives in `extra[<wire name>]`, so a round trip loses nothing.
Blocks and sources are tagged unions: the stored form has a `type`, and each class carries the same string as a class variable, so
`block.type == "text"` and `isinstance(block, Text)` both narrow.

Fields before a `_…Options` base's are positional, the rest keyword-only (msgspec's `kw_only` covers only the class it stands on).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeGuard, cast

import msgspec
from msgspec.structs import force_setattr

from dragoman.value import Value, own_dict, own_list, snake_case

__all__ = [
    "Audio",
    "Base64",
    "Block",
    "CacheControl",
    "Citation",
    "Document",
    "Extra",
    "FileId",
    "Image",
    "InvalidReason",
    "InvalidToolUse",
    "Message",
    "Opaque",
    "Origin",
    "Parts",
    "PlainText",
    "RedactedThinking",
    "Refusal",
    "Role",
    "ServerToolResult",
    "ServerToolUse",
    "Source",
    "Text",
    "Thinking",
    "ToolResult",
    "ToolUse",
    "Url",
    "Video",
    "assistant",
    "sniff_image",
    "system",
    "tool_result",
    "user",
]

Role = Literal["user", "assistant", "system"]
InvalidReason = Literal["incomplete", "invalid_json", "not_an_object"]
Extra: TypeAlias = dict[str, dict[str, Any]]
"""What one dialect needs to get back, keyed by wire name: `{"anthropic": {"caller": {"type": "direct"}}}`."""


class CacheControl(Value, frozen=True):
    """A prompt-cache mark: the prefix up to and including this block may be cached for `ttl`."""

    ttl: Literal["5m", "1h"] = "5m"


class Origin(Value, frozen=True):
    """Who wrote an assistant turn: vendor, model id, dialect. Decides what of it may be replayed to whom."""

    provider: str
    model: str
    wire: str


class Citation(Value, frozen=True):
    """A source that a text rests on. `kind` is the wire's own type name; `data` is the wire's object, verbatim."""

    kind: str
    data: dict[str, Any]

    def __post_init__(self) -> None:
        own_dict(self, "data")

    def _string(self, *keys: str) -> str:
        for key in keys:
            value = self.data.get(key)
            if isinstance(value, str):
                return value
        return ""

    @property
    def url(self) -> str:
        """Where the source is, or `""`."""
        return self._string("url")

    @property
    def title(self) -> str:
        """What the source is called, or `""`."""
        return self._string("title", "document_title")

    @property
    def cited_text(self) -> str:
        """The passage that is quoted, or `""`."""
        return self._string("cited_text")


# ---- sources: where the bytes of an image, document, sound or film come from


class Base64(Value, frozen=True, tag=snake_case, tag_field="type"):
    """Bytes in the message itself, as base64 text."""

    media_type: str
    data: str
    type: ClassVar[Literal["base64"]] = "base64"


class Url(Value, frozen=True, tag=snake_case, tag_field="type"):
    """Bytes that the provider fetches itself."""

    url: str
    type: ClassVar[Literal["url"]] = "url"


class FileId(Value, frozen=True, tag=snake_case, tag_field="type"):
    """A file that was uploaded to the provider before."""

    id: str
    type: ClassVar[Literal["file_id"]] = "file_id"


class PlainText(Value, frozen=True, tag=snake_case, tag_field="type"):
    """A document that is plain text."""

    text: str
    type: ClassVar[Literal["plain_text"]] = "plain_text"


class Parts(Value, frozen=True, tag=snake_case, tag_field="type"):
    """A document made of blocks (text and images)."""

    if TYPE_CHECKING:
        content: Sequence[Block]

        def __init__(self, content: str | Iterable[str | Block]) -> None: ...
    else:
        content: str | Sequence[str | Block]
    type: ClassVar[Literal["parts"]] = "parts"

    def __post_init__(self) -> None:
        _own_blocks(self)


# ---- content blocks


class _ExtraOption(Value, frozen=True, kw_only=True):
    extra: Extra = {}


class _CacheOptions(Value, frozen=True, kw_only=True):
    cache: CacheControl | None = None
    extra: Extra = {}


class _TextOptions(Value, frozen=True, kw_only=True):
    citations: Sequence[Citation] = []
    cache: CacheControl | None = None
    extra: Extra = {}


class Text(_TextOptions, frozen=True, tag=snake_case, tag_field="type"):
    """Words for the reader. A provider may cut a sentence into several, each with its own citations."""

    text: str
    type: ClassVar[Literal["text"]] = "text"

    def __post_init__(self) -> None:
        own_list(self, "citations")
        own_dict(self, "extra")


class Refusal(_ExtraOption, frozen=True, tag=snake_case, tag_field="type"):
    """The model's words for why it will not answer. Not part of `.text`."""

    text: str
    type: ClassVar[Literal["refusal"]] = "refusal"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class Image(_CacheOptions, frozen=True, tag=snake_case, tag_field="type"):
    """A picture."""

    source: Source
    type: ClassVar[Literal["image"]] = "image"

    def __post_init__(self) -> None:
        own_dict(self, "extra")

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str = "", *, cache: CacheControl | None = None) -> Image:
        """An image from its bytes; the media type is read off them unless given.

        Raises ValueError when it is neither given nor one of PNG, JPEG, GIF, WebP.
        """
        kind = media_type or sniff_image(data)
        if not kind:
            raise ValueError("not a PNG, JPEG, GIF or WebP image; pass media_type= to say what it is")
        return cls(Base64(kind, base64.b64encode(data).decode("ascii")), cache=cache)

    @classmethod
    def from_file(cls, path: str | PathLike[str], media_type: str = "", *, cache: CacheControl | None = None) -> Image:
        """An image from a file. Raises OSError if it cannot be read, ValueError as `from_bytes` does."""
        with open(path, "rb") as file:  # noqa: PTH123  # pathlib costs every program milliseconds
            return cls.from_bytes(file.read(), media_type, cache=cache)


class _AudioOptions(Value, frozen=True, kw_only=True):
    transcript: str = ""
    cache: CacheControl | None = None
    extra: Extra = {}


class Audio(_AudioOptions, frozen=True, tag=snake_case, tag_field="type"):
    """Sound, with its words if the provider gave them."""

    source: Source
    type: ClassVar[Literal["audio"]] = "audio"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class Video(_CacheOptions, frozen=True, tag=snake_case, tag_field="type"):
    """A film."""

    source: Source
    type: ClassVar[Literal["video"]] = "video"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class _DocumentOptions(Value, frozen=True, kw_only=True):
    title: str | None = None
    context: str | None = None
    cite: bool = False
    cache: CacheControl | None = None
    extra: Extra = {}


class Document(_DocumentOptions, frozen=True, tag=snake_case, tag_field="type"):
    """A document to read. `cite=True` asks for citations into it; `context` is told to the model but never cited."""

    source: Source
    type: ClassVar[Literal["document"]] = "document"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class _ThinkingOptions(Value, frozen=True, kw_only=True):
    signature: str = ""
    extra: Extra = {}


class Thinking(_ThinkingOptions, frozen=True, tag=snake_case, tag_field="type"):
    """The model's reasoning, exactly as it came: never trimmed, normalised or merged. Empty text with a signature is still a block."""

    text: str
    type: ClassVar[Literal["thinking"]] = "thinking"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class RedactedThinking(_ExtraOption, frozen=True, tag=snake_case, tag_field="type"):
    """Reasoning that the provider encrypted. Opaque; sent back unchanged, in its place."""

    data: str
    type: ClassVar[Literal["redacted_thinking"]] = "redacted_thinking"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class ToolUse(_CacheOptions, frozen=True, tag=snake_case, tag_field="type"):
    """A call the caller should make. `input` was complete, valid JSON: safe to execute."""

    id: str
    name: str
    input: dict[str, Any]
    type: ClassVar[Literal["tool_use"]] = "tool_use"

    def __post_init__(self) -> None:
        own_dict(self, "input", "extra")


class _InvalidOptions(Value, frozen=True, kw_only=True):
    reason: InvalidReason
    extra: Extra = {}


class InvalidToolUse(_InvalidOptions, frozen=True, tag=snake_case, tag_field="type"):
    """A call whose input was cut off or is not a JSON object. Never executable; answer it with an `is_error` result."""

    id: str
    name: str
    raw: str
    type: ClassVar[Literal["invalid_tool_use"]] = "invalid_tool_use"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class _ToolResultOptions(Value, frozen=True, kw_only=True):
    is_error: bool = False
    cache: CacheControl | None = None
    extra: Extra = {}


class ToolResult(_ToolResultOptions, frozen=True, tag=snake_case, tag_field="type"):
    """The answer to one `ToolUse`, by its id. A string is made a list of one Text."""

    tool_use_id: str
    if TYPE_CHECKING:
        content: Sequence[Block]

        def __init__(
            self,
            tool_use_id: str,
            content: str | Iterable[str | Block],
            *,
            is_error: bool = False,
            cache: CacheControl | None = None,
            extra: Extra = {},  # noqa: B006  # the class never changes it
        ) -> None: ...
    else:
        content: str | Sequence[str | Block]
    type: ClassVar[Literal["tool_result"]] = "tool_result"

    def __post_init__(self) -> None:
        _own_blocks(self)
        own_dict(self, "extra")

    @property
    def text(self) -> str:
        """The Text blocks joined with nothing between."""
        return "".join([block.text for block in self.content if isinstance(block, Text)])


class ServerToolUse(_ExtraOption, frozen=True, tag=snake_case, tag_field="type"):
    """A call that ran on the provider's side. Not for the caller to run."""

    id: str
    name: str
    input: dict[str, Any]
    type: ClassVar[Literal["server_tool_use"]] = "server_tool_use"

    def __post_init__(self) -> None:
        own_dict(self, "input", "extra")


class _ServerResultOptions(Value, frozen=True, kw_only=True):
    kind: str
    extra: Extra = {}


class ServerToolResult(_ServerResultOptions, frozen=True, tag=snake_case, tag_field="type"):
    """What a provider's own tool gave. `kind` is the wire's type name, `content` the wire's value, verbatim."""

    tool_use_id: str
    content: Any
    type: ClassVar[Literal["server_tool_result"]] = "server_tool_result"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class _OpaqueOptions(Value, frozen=True, kw_only=True):
    wire: str


class Opaque(_OpaqueOptions, frozen=True, tag=snake_case, tag_field="type"):
    """A block we have no type for: whole, in its place, sent back as it came, and only to the wire it came from."""

    data: dict[str, Any]
    type: ClassVar[Literal["opaque"]] = "opaque"

    def __post_init__(self) -> None:
        own_dict(self, "data")


Source: TypeAlias = Base64 | Url | FileId | PlainText | Parts
Block: TypeAlias = (
    Text
    | Refusal
    | Image
    | Audio
    | Video
    | Document
    | Thinking
    | RedactedThinking
    | ToolUse
    | InvalidToolUse
    | ToolResult
    | ServerToolUse
    | ServerToolResult
    | Opaque
)


# ---- the message


class _MessageOptions(Value, frozen=True, kw_only=True):
    origin: Origin | None = None
    extra: Extra = {}


class Message(_MessageOptions, frozen=True):
    """One turn. `content` may be given as a string or as any mix of strings and blocks; it is always a list of blocks."""

    role: Role
    if TYPE_CHECKING:
        content: Sequence[Block]

        def __init__(
            self,
            role: Role,
            content: str | Iterable[str | Block],
            *,
            origin: Origin | None = None,
            extra: Extra = {},  # noqa: B006  # the class never changes it
        ) -> None: ...
    else:
        content: str | Sequence[str | Block]

    def __post_init__(self) -> None:
        _own_blocks(self)
        own_dict(self, "extra")

    @property
    def text(self) -> str:
        """The Text blocks joined with nothing between (citations cut sentences into blocks); `""` if there is none."""
        return "".join([block.text for block in self.content if isinstance(block, Text)])

    def join_text(self, separator: str) -> str:
        """The Text blocks with `separator` before each after the first."""
        return separator.join([block.text for block in self.content if isinstance(block, Text)])

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The calls the caller should make, in order."""
        return [block for block in self.content if isinstance(block, ToolUse)]

    @property
    def invalid_tool_uses(self) -> list[InvalidToolUse]:
        """The calls that must not be made, in order."""
        return [block for block in self.content if isinstance(block, InvalidToolUse)]


def _own_blocks(value: Message | ToolResult | Parts) -> None:
    """Make `content` a list of blocks: a string is one Text, and so is each string within."""
    given = cast("str | Iterable[str | Block]", value.content)
    blocks = [Text(given)] if isinstance(given, str) else [Text(b) if isinstance(b, str) else b for b in given]
    force_setattr(value, "content", blocks)


# ---- helpers


def user(*parts: str | Block) -> Message:
    """A user turn of these parts."""
    return Message("user", parts)


def assistant(*parts: str | Block) -> Message:
    """An assistant turn of these parts."""
    return Message("assistant", parts)


def system(text: str) -> Message:
    """A system message."""
    return Message("system", text)


def tool_result(call: ToolUse | InvalidToolUse | str, value: object, *, is_error: bool = False) -> ToolResult:
    """The result of a call, for `user(…)`: text, blocks and lists with a block in them as they are, anything else as JSON.

    `call` is the call or its id. A pydantic model is its own JSON. Raises TypeError for a value that JSON cannot carry, ValueError for
    NaN and infinity.
    """
    call_id = call if isinstance(call, str) else call.id
    if isinstance(value, str):
        return ToolResult(call_id, value, is_error=is_error)
    if _is_block(value):
        return ToolResult(call_id, [value], is_error=is_error)
    items = _items(value)
    parts = [item for item in items if isinstance(item, str) or _is_block(item)]
    if len(parts) == len(items) and any(_is_block(item) for item in parts):
        return ToolResult(call_id, parts, is_error=is_error)
    return ToolResult(call_id, _json_text(value), is_error=is_error)


def _items(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def _json_text(value: object) -> str:
    dump = getattr(value, "model_dump_json", None)
    if callable(dump):
        return str(dump())
    try:
        text = msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        text = "null"  # lone surrogates: the standard library takes them, and the wire makes them U+FFFD
    if "null" in text:  # may be a NaN, which msgspec writes so and the standard library refuses
        import json

        text = json.dumps(msgspec.to_builtins(value, str_keys=True), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text


_BLOCK_TYPES = (
    Text,
    Refusal,
    Image,
    Audio,
    Video,
    Document,
    Thinking,
    RedactedThinking,
    ToolUse,
    InvalidToolUse,
    ToolResult,
    ServerToolUse,
    ServerToolResult,
    Opaque,
)


def _is_block(value: object) -> TypeGuard[Block]:
    return isinstance(value, _BLOCK_TYPES)


_IMAGE_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"))


def sniff_image(data: bytes) -> str:
    """The media type that the first bytes of an image show (PNG, JPEG, GIF, WebP), or `""`. Twelve bytes are enough."""
    for magic, media_type in _IMAGE_MAGIC:
        if data.startswith(magic):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""
