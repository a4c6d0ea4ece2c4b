"""The events of a stream: one grammar for every provider.

    Retrying*  ( Failed  |  MessageStart  ( BlockStart | delta | BlockStop | UsageUpdate | OpaqueEvent | Notice )*
                            ( MessageStop | Failed ) )

Indexes run 0, 1, 2 … in start order; blocks may interleave, so everything is keyed by index. Kinds may be added: a consumer's
`match` keeps a `case _`. Deltas are the hot path: small frozen structs outside the garbage collector (`gc=False` is sound only
for fields that cannot form a cycle: strings and ints).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from dragoman.errors import ProviderError
from dragoman.message import Block, Citation, Extra
from dragoman.response import Notice, StopDetails, StopReason, Usage
from dragoman.value import Value, own_dict, snake_case

__all__ = [
    "BlockStart",
    "BlockStop",
    "CitationDelta",
    "Event",
    "Failed",
    "MessageStart",
    "MessageStop",
    "Notice",
    "OpaqueEvent",
    "Retrying",
    "SignatureDelta",
    "TextDelta",
    "ThinkingDelta",
    "ToolInputDelta",
    "UsageUpdate",
]


class _MessageStartOptions(Value, frozen=True, kw_only=True):
    provider: str
    wire: str
    request_id: str = ""
    usage: Usage | None = None
    extra: Extra = {}


class MessageStart(_MessageStartOptions, frozen=True, tag=snake_case, tag_field="type"):
    """The answer has begun: its id and the model that writes it."""

    id: str
    model: str
    type: ClassVar[Literal["message_start"]] = "message_start"

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class BlockStart(Value, frozen=True, tag=snake_case, tag_field="type"):
    """A block has begun. Text, Refusal, Thinking, ToolUse, ServerToolUse and Audio start empty; other kinds come whole or as far
    as known.
    """

    index: int
    block: Block
    type: ClassVar[Literal["block_start"]] = "block_start"


class TextDelta(Value, frozen=True, gc=False, tag=snake_case, tag_field="type"):
    """More text of a Text, Refusal or Audio (its transcript)."""

    index: int
    text: str
    type: ClassVar[Literal["text_delta"]] = "text_delta"


class ThinkingDelta(Value, frozen=True, gc=False, tag=snake_case, tag_field="type"):
    """More reasoning of a Thinking."""

    index: int
    text: str
    type: ClassVar[Literal["thinking_delta"]] = "thinking_delta"


class SignatureDelta(Value, frozen=True, gc=False, tag=snake_case, tag_field="type"):
    """The signature of a Thinking, or more of it."""

    index: int
    signature: str
    type: ClassVar[Literal["signature_delta"]] = "signature_delta"


class ToolInputDelta(Value, frozen=True, gc=False, tag=snake_case, tag_field="type"):
    """More of a call's input, as the JSON text received. A fragment means nothing alone: never parse one."""

    index: int
    json: str
    type: ClassVar[Literal["tool_input_delta"]] = "tool_input_delta"


class CitationDelta(Value, frozen=True, tag=snake_case, tag_field="type"):
    """One more citation of a Text."""

    index: int
    citation: Citation
    type: ClassVar[Literal["citation_delta"]] = "citation_delta"


class BlockStop(Value, frozen=True, tag=snake_case, tag_field="type"):
    """A block has ended. `block` is the finished block and is authoritative; None (in hand-written scripts): finish it from the deltas."""

    index: int
    block: Block | None = None
    type: ClassVar[Literal["block_stop"]] = "block_stop"


class UsageUpdate(Value, frozen=True, tag=snake_case, tag_field="type"):
    """The complete usage so far: replaces what was known, never adds."""

    usage: Usage
    type: ClassVar[Literal["usage_update"]] = "usage_update"


class _OpaqueEventOptions(Value, frozen=True, kw_only=True):
    wire: str
    kind: str
    index: int | None = None


class OpaqueEvent(_OpaqueEventOptions, frozen=True, tag=snake_case, tag_field="type"):
    """An event or delta we have no type for, whole. `kind` is the wire's own type name."""

    data: dict[str, Any]
    type: ClassVar[Literal["opaque_event"]] = "opaque_event"

    def __post_init__(self) -> None:
        own_dict(self, "data")


class _MessageStopOptions(Value, frozen=True, kw_only=True):
    raw_stop: str = ""
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None
    usage: Usage | None = None
    extra: Extra = {}
    message_extra: Extra = {}


class MessageStop(_MessageStopOptions, frozen=True, tag=snake_case, tag_field="type"):
    """The answer is complete. Every block has been stopped."""

    stop: StopReason
    type: ClassVar[Literal["message_stop"]] = "message_stop"

    def __post_init__(self) -> None:
        own_dict(self, "extra", "message_extra")


class _FailedOptions(Value, frozen=True, kw_only=True):
    stop: StopReason | None = None
    raw_stop: str = ""
    usage: Usage | None = None


class Failed(_FailedOptions, frozen=True, tag=snake_case, tag_field="type"):
    """The answer ended in an error. What had arrived stays; open blocks stay open."""

    error: ProviderError
    type: ClassVar[Literal["failed"]] = "failed"


class Retrying(Value, frozen=True, tag=snake_case, tag_field="type"):
    """Attempt number `attempt` (from 1) failed with `error`; the next begins after `delay` seconds."""

    attempt: int
    delay: float
    error: ProviderError
    type: ClassVar[Literal["retrying"]] = "retrying"


Event: TypeAlias = (
    MessageStart
    | BlockStart
    | TextDelta
    | ThinkingDelta
    | SignatureDelta
    | ToolInputDelta
    | CitationDelta
    | BlockStop
    | UsageUpdate
    | OpaqueEvent
    | Notice
    | MessageStop
    | Failed
    | Retrying
)
