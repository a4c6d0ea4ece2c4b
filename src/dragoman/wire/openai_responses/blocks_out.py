"""Our messages as the wire's input items.

Strategy. One `ItemWriter` per request goes through the messages in order and appends items; consecutive texts of one message become one
item, calls and results are items of their own, an item that was kept whole goes back as it came. What a block carries in
`extra["openai-responses"]` is written again; what is another dialect's, or another provider's, is left out with a Notice.

Two rules of the API shape this (400 otherwise; recordings and the vendors' issue lists): a reasoning must be followed by the item it led
to, so one at the end of a turn is left out; and an item whose id is known must come with its reasoning, so where a reasoning is left
out, the ids of its turn are, too.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import Problem
from dragoman.event import Notice
from dragoman.fragments import parse_input, scrub
from dragoman.message import (
    Audio,
    Block,
    Extra,
    Image,
    InvalidToolUse,
    Message,
    Opaque,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.request import Request
from dragoman.wire.json_values import is_finite, is_list, is_object
from dragoman.wire.openai_responses.blocks_in import compact_json
from dragoman.wire.openai_responses.call_ids import CallIds
from dragoman.wire.openai_responses.kinds import BARE, CALLS, WIRE, is_user_side
from dragoman.wire.openai_responses.parts_out import PartWriter
from dragoman.wire.openai_responses.reasoning_out import write_reasoning
from dragoman.wire.openai_responses.results_out import write_result

__all__ = ["ItemWriter", "hoisted"]

INVALID_JSON = "INVALID_JSON"
"""The key under which the text of an invalid input is sent."""

NEEDS_FOLLOWER = frozenset({"openai", "azure"})
"""Providers that refuse a reasoning with nothing after it (recording: pydantic-ai …thinking_with_modified_history.1)."""

NO_STATELESS_IDS = frozenset({"azure"})
"""Providers that refuse item ids while `store` is false (vercel/ai issue 12687)."""

_ITEM = dict[str, Any]


def hoisted(request: Request) -> list[int]:
    """The positions of the system messages that go to `instructions`: plain ones before anything else, or all plain ones."""
    found: list[int] = []
    for position, message in enumerate(request.messages):
        if message.role == "system" and _is_plain(message):
            found.append(position)
        elif request.hoist_system == "leading":
            break
    return found


def _is_plain(message: Message) -> bool:
    if message.extra.get(WIRE) or not message.content:
        return False
    return all(isinstance(block, Text) and not block.citations and not block.extra for block in message.content)


class ItemWriter:
    """Writes the items of one request. `notices` and `problems` say what was changed and what cannot be written; `bare`, whether a
    message came as a bare string.
    """

    def __init__(self, *, provider: str, stateless: bool, thinking_as_text: bool) -> None:
        self.items: list[_ITEM] = []
        self.problems: list[Problem] = []
        self.bare = False
        self._notes: dict[tuple[str, str], tuple[str, int]] = {}
        self._provider = provider
        self._drop_ids = stateless and provider in NO_STATELESS_IDS
        self._thinking_as_text = thinking_as_text
        self._ids = CallIds()
        self._kinds: dict[str, str] = {}  # our call id → the kind of call it was
        self._parts = PartWriter(self._problem, self._note)
        self._path = ""
        self._own = True
        self._anonymous = False
        self._shared: dict[str, Any] | None = None

    # ---- messages

    def message(self, message: Message, index: int) -> None:
        """Append the items of one message."""
        self._path = f"messages[{index}]"
        origin = message.origin
        self._own = origin is None or (origin.wire == WIRE and origin.provider in ("", self._provider))
        self._anonymous = self._drop_ids or not self._own
        first = len(self.items)
        self._report_extra(message.extra, f"{self._path}.extra")
        if message.role == "assistant":
            self._assistant(message)
        else:
            self._turn(message)
        if self._anonymous:
            for position in range(first, len(self.items)):
                self.items[position] = _without_id(self.items[position])

    def finish(self) -> None:
        """Leave out each reasoning that nothing follows."""
        if self._provider not in NEEDS_FOLLOWER:
            return
        kept: list[_ITEM] = []
        follower = False
        for item in reversed(self.items):
            if item.get("type") == "reasoning":
                if not follower and "format" not in item:  # OpenRouter signs a text after it, and says the form
                    self._note("thinking_left_out", "a reasoning that nothing follows is left out: the API refuses it", path="")
                    continue
            else:
                follower = _is_models(item)
            kept.append(item)
        self.items = kept[::-1]

    def _turn(self, message: Message) -> None:
        """A user or system message: texts and media together, results and kept items each for themselves."""
        own = message.extra.get(WIRE, {})
        shell: _ITEM = {"role": message.role, **{key: value for key, value in own.items() if key not in ("content", "type", BARE)}}
        self.bare = self.bare or BARE in own
        parts: list[_ITEM] = []
        for position, block in enumerate(message.content):
            path = f"{self._path}.content[{position}]"
            self._report_extra(getattr(block, "extra", None), path)
            if isinstance(block, ToolResult):
                self._flush(shell, parts)
                self.items.append(self._result(block, path))
            elif isinstance(block, Opaque) and not self._is_part(block):
                self._flush(shell, parts)
                self._opaque(block, path)
            else:
                parts += self._parts.input_parts(block, path)
        self._flush(shell, parts)

    def _is_part(self, block: Opaque) -> bool:
        kind = block.data.get("type")
        return block.wire == WIRE and isinstance(kind, str) and kind.startswith(("input_", "output_"))

    def _flush(self, shell: _ITEM, parts: list[_ITEM]) -> None:
        if parts:
            plain = len(parts) == 1 and len(parts[0]) == 2 and parts[0]["type"] == "input_text"
            self.items.append({**shell, "content": parts[0]["text"] if plain else list(parts)})
            parts.clear()

    def _assistant(self, message: Message) -> None:
        self._shared = None
        first = len(self.items)
        open_item: _ITEM | None = None
        for position, block in enumerate(message.content):
            path = f"{self._path}.content[{position}]"
            self._report_extra(getattr(block, "extra", None), path)
            part = self._output_part(block, path)
            if part is not None:
                open_item = self._append_part(open_item, block, part)
                continue
            written = self._assistant_item(block, path)
            if written is not None:
                open_item = None
                self.items.append(written)
        for position in range(first, len(self.items)):
            self.items[position] = _simplest(self.items[position])

    def _output_part(self, block: Block, path: str) -> _ITEM | None:
        """The content part that a block is in an assistant message, or None if it is an item of its own."""
        match block:
            case Text():
                if block.citations and not (self._own and WIRE in block.extra):
                    self._note("citations_left_out", "citations in the form of another provider are left out", path=path)
                return self._parts.output_text(block, own=self._own)
            case Refusal():
                return self._parts.refusal(block, own=self._own)
            case Audio(transcript=transcript) if transcript:
                self._note("audio_as_text", "sound in an assistant turn is sent as its words", path=path)
                return self._parts.output_text(Text(transcript), own=True)
            case Opaque() if self._is_part(block):
                return block.data
            case Thinking(text) if self._thinking_as_text and not self._replayable(block) and text.strip():
                self._anonymous = True
                self._note("thinking_as_text", "thinking that cannot be sent back as thinking is sent as text", path=path)
                return self._parts.output_text(Text(text), own=True)
            case _:
                return None

    def _append_part(self, open_item: _ITEM | None, block: Block, part: _ITEM) -> _ITEM:
        """Add a part to the message item it belongs to: blocks with the same `item` in `extra` came from one."""
        extra: dict[str, Any] = getattr(block, "extra", {}).get(WIRE, {})
        shared: dict[str, Any] | None = extra.get("item") if self._own or "item" not in extra else _shared_abroad(extra["item"])
        if isinstance(block, Opaque):
            shared = self._shared
        if open_item is not None and shared == self._shared:
            open_item["content"].append(part)
            return open_item
        self._shared = shared
        item: _ITEM = {"type": "message", "role": "assistant", **(shared or {}), "content": [part]}
        self.items.append(item)
        return item

    # ---- items of their own

    def _assistant_item(self, block: Block, path: str) -> _ITEM | None:
        match block:
            case ToolUse() | InvalidToolUse():
                return self._call(block, path)
            case Thinking():
                return self._thinking(block, path)
            case ServerToolUse():
                return self._server_use(block, path)
            case ServerToolResult():
                return self._server_result(block, path)
            case Image():
                return self._image(block, path)
            case Opaque():
                self._opaque(block, path)
                return None
            case RedactedThinking():
                self._anonymous = True
                self._note("thinking_left_out", "thinking of another dialect is left out", path=path)
                return None
            case ToolResult():
                return self._result(block, path)
            case _:
                self._note("block_left_out", f"an assistant turn cannot hold {block.type} here; it is left out", path=path)
                return None

    def _replayable(self, block: Thinking) -> bool:
        return self._own and bool(block.signature or block.extra.get(WIRE))

    def _thinking(self, block: Thinking, path: str) -> _ITEM | None:
        if not self._replayable(block):
            self._anonymous = True
            self._note("thinking_left_out", "thinking that is unfinished or was written by another provider is left out", path=path)
            return None
        if block.signature and scrub(block.text) != block.text:
            self._problem(path, "surrogate", "signed thinking contains a lone surrogate", "leave the block out")
        return write_reasoning(block)

    def _call(self, block: ToolUse | InvalidToolUse, path: str) -> _ITEM | None:
        if "dragoman" in block.extra:
            self._note("block_left_out", "an unfinished call of a tool at the provider is left out", path=path)
            return None
        own = block.extra.get(WIRE, {})
        kind = str(own.get("kind", "function_call"))
        if kind not in CALLS or (isinstance(block, InvalidToolUse) and kind != "custom_tool_call"):
            kind = "function_call"
        call = CALLS[kind]
        self._kinds[block.id] = kind
        item: _ITEM = {"type": kind, "call_id": self._ids.call(block.id)}
        if not call.name or kind == "function_call":
            item["name"] = block.name
        known = {*item, "kind", call.field, "synthetic_id"}
        if isinstance(block, InvalidToolUse):
            invalid = {INVALID_JSON: scrub(block.raw)}
            item[call.field] = compact_json(invalid) if call.form == "json" else scrub(block.raw)
        elif call.form == "json":
            item[call.field] = arguments = _spelled(block.input, own.get(call.field))
            if "null" in arguments and not is_finite(block.input):  # msgspec writes NaN and infinity as null
                self._problem(f"{path}.input", "not_json", "the input holds a number that JSON has no form for", "use plain JSON values")
        elif call.form == "text":
            text = block.input.get(call.field)
            item[call.field] = text if isinstance(text, str) else compact_json(block.input)
        elif set(block.input) == {"actions"}:
            item["actions"] = block.input["actions"]
        else:
            item[call.field] = block.input
        return item | {key: value for key, value in own.items() if key not in known}

    def _result(self, block: ToolResult, path: str) -> _ITEM:
        own = block.extra.get(WIRE, {})
        kind = str(own.get("kind") or self._kinds.get(block.tool_use_id, "function_call"))
        return write_result(block, kind if kind in CALLS else "function_call", self._ids.result(block.tool_use_id), self._parts, path)

    def _server_use(self, block: ServerToolUse, path: str) -> _ITEM | None:
        own = block.extra.get(WIRE, {})
        if not self._own:
            self._note("block_left_out", "a call that ran at another provider is left out", path=path)
        if not self._own or "kind" not in own:  # half of a pair: the result holds the whole item
            return None
        rest = {key: value for key, value in own.items() if key != "kind"}
        return {"type": own["kind"], "call_id": block.id, "action": block.input, **rest}

    def _server_result(self, block: ServerToolResult, path: str) -> _ITEM | None:
        content: Any = block.content
        if self._own and is_object(content) and content.get("type") == block.kind:
            return content
        self._note("block_left_out", "a result that came from another provider's tool is left out", path=path)
        return None

    def _image(self, block: Image, path: str) -> _ITEM | None:
        own = block.extra.get(WIRE)
        data = getattr(block.source, "data", None)
        if own is None or not self._own or data is None:
            self._note("block_left_out", "a picture in an assistant turn that this API did not make is left out", path=path)
            return None
        return {"type": "image_generation_call", **own, "result": data}

    def _opaque(self, block: Opaque, path: str) -> None:
        if block.wire != WIRE or not self._own:
            self._note("block_left_out", f"a block of {block.wire if block.wire != WIRE else 'another provider'} is left out", path=path)
        else:
            self.items.append(block.data)

    # ---- reports

    def _report_extra(self, extra: Extra | None, path: str) -> None:
        for name in extra or ():
            if name not in (WIRE, "dragoman"):
                self._note("extra_left_out", f"what a block or message carries for the {name} dialect is left out", path=path)

    @property
    def notices(self) -> list[Notice]:
        """What was changed. The same at many places is one notice, with the first place and the count."""
        return [
            Notice(code, text if count == 1 else f"{text} ({count} times)", path=path or None)
            for (code, text), (path, count) in self._notes.items()
        ]

    def _note(self, code: str, text: str, *, path: str) -> None:
        first, count = self._notes.get((code, text), (path, 0))
        self._notes[code, text] = (first, count + 1)

    def _problem(self, path: str, rule: str, text: str, fix: str) -> None:
        self.problems.append(Problem(path, rule, text, fix))


# ---- pure pieces


def _spelled(value: dict[str, Any], raw: Any) -> str:
    """The input as the model spelled it, unless it was changed since: the same bytes hit the prompt cache."""
    if isinstance(raw, str) and parse_input(raw) == value:
        return raw
    return compact_json(value)


def _shared_abroad(item: dict[str, Any]) -> dict[str, Any]:
    """What of a message item means something to another provider of this dialect."""
    return {key: value for key, value in item.items() if key == "phase"}


def _without_id(item: _ITEM) -> _ITEM:
    if "id" not in item or item.get("type") not in ("message", "reasoning", *CALLS):
        return item
    return {key: value for key, value in item.items() if key != "id"}


def _simplest(item: _ITEM) -> _ITEM:
    """An assistant message with nothing but one plain text, with that text as its content. llama.cpp insists on the type."""
    content: Any = item.get("content")
    if set(item) != {"type", "role", "content"} or not is_list(content) or len(content) != 1 or not is_object(content[0]):
        return item
    part = content[0]
    plain = part.get("type") == "output_text" and set(part) == {"type", "text", "annotations"} and not part["annotations"]
    return {**item, "content": part["text"]} if plain else item


def _is_models(item: _ITEM) -> bool:
    """Whether an item is the model's, so that a reasoning may lead to it."""
    return item.get("role", "assistant") == "assistant" and not is_user_side(str(item.get("type", "")))
