"""The conversation as chat messages (OpenAI's API reference, "messages"; design §2 system, §3 closed list).

Strategy. One pass. A user turn becomes a tool message for each result, then a user message of what else it holds. An assistant turn becomes
one message: texts are its content, calls its `tool_calls`, and reasoning goes back under the key it came in, but only to the host
that wrote it and only where the row says that the host takes it. A turn that is left with nothing is not sent.

Tool results have no error flag in this protocol: an error's text begins with `Error: ` (`decode_request` reads it back). OpenAI takes only
text in them and refuses the rest ("Image URLs are only allowed for messages with role 'user'"): that waits for the next user message, after
all results, since no other message may stand between those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dragoman.message import (
    Audio,
    Block,
    Citation,
    FileId,
    InvalidToolUse,
    Message,
    Opaque,
    RedactedThinking,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.request import Request
from dragoman.wire.framing import SYNTHETIC_ID
from dragoman.wire.openai_chat.names import ERROR_PREFIX, INVALID_JSON, MEDIA_STAYS, MOVED, WIRE
from dragoman.wire.openai_chat.parts_out import is_plain, write_content, write_part
from dragoman.wire.openai_chat.writer import OWN_KEYS, WireObject, Writer

__all__ = ["write_messages"]

_ANSWER_KEYS: Final = ("thought_signature", "extra_content")
"""Keys of an answer's message that its host wants back (Google); of a message that the caller wrote, all go."""

_ANNOTATIONS: Final = frozenset({"url_citation", "file"})
"""Kinds of citations that are this protocol's own."""

_FIELDS: Final = ("reasoning_content", "reasoning")

THINKING_LEFT_OUT: Final = "thinking that was written by another provider, or that this host does not take back, is left out"


def write_messages(w: Writer, request: Request) -> list[WireObject]:
    """The `messages` of a request, system messages first."""
    hoisted = _hoisted(request)
    messages = _system(w, request, hoisted)
    for index, message in enumerate(request.messages):
        if index in hoisted:
            continue
        w.path = f"messages[{index}]"
        origin = message.origin
        w.origin_known = origin is not None and origin.provider != ""
        w.native = origin is None or (origin.wire == WIRE and origin.provider in ("", w.dialect.provider))
        if message.role != "user":
            _write_moved(w, messages)
        _WRITERS[message.role](w, message, messages)
    _write_moved(w, messages)
    w.path = "messages"
    return messages


# ---- system


def _hoisted(request: Request) -> list[int]:
    """Positions of the system messages that join the system text: the leading ones, or all. One that carries keys of its own (a name,
    a role that is not this model's) stays a message.
    """
    positions: list[int] = []
    leading = True
    for position, message in enumerate(request.messages):
        if message.role != "system":
            leading = False
            if request.hoist_system == "leading":
                break
        elif (leading or request.hoist_system == "all") and not message.extra and all(isinstance(b, Text) for b in message.content):
            positions.append(position)
    return positions


def _system(w: Writer, request: Request, hoisted: Sequence[int]) -> list[WireObject]:
    given = request.system
    parts: list[tuple[str, Sequence[Block]]] = [("system", [Text(given)] if isinstance(given, str) else given)]
    parts += [(f"messages[{position}]", request.messages[position].content) for position in hoisted]
    parts = [(path, part) for path, part in parts if any(isinstance(b, Text) and b.text for b in part)]
    if not parts:
        return []
    role = w.dialect.role_of_system(w.model)
    if all(len(part) == 1 and is_plain(part[0]) for _, part in parts):
        return [{"role": role, "content": "\n\n".join([part[0].text for _, part in parts if isinstance(part[0], Text)])}]
    content: list[WireObject] = []
    for path, part in parts:
        for index, block in enumerate(part):
            w.path = f"{path}[{index}]" if path == "system" else f"{path}.content[{index}]"
            wire = write_part(w, block)
            if wire is not None:
                content.append(wire)
    return [{"role": role, "content": content}]


def _write_system(w: Writer, message: Message, out: list[WireObject]) -> None:
    content = write_content(w, message.content)
    role = w.own(message.extra).get("role") or w.dialect.role_of_system(w.model)
    if content:
        out.append(w.finish({"role": role, "content": content}, message.extra))


# ---- user and tool messages


def _write_user(w: Writer, message: Message, out: list[WireObject]) -> None:
    rest: list[Block] = []
    path = w.path
    results = 0
    for index, block in enumerate(message.content):
        w.path = f"{path}.content[{index}]"
        if isinstance(block, ToolResult):
            out.append(_tool_message(w, block))
            results += 1
        else:
            rest.append(block)
    w.path = path
    content = write_content(w, rest)
    if rest and (content or isinstance(content, str)):
        if w.moved:
            content = [*w.moved, *([{"type": "text", "text": content}] if isinstance(content, str) else content)]
            w.moved = []
        out.append(w.finish({"role": "user", "content": content}, message.extra))
    elif not results and not w.problems:
        w.problem("empty", "nothing of this user turn can be sent", "give it a text or a tool result")


def _tool_message(w: Writer, result: ToolResult) -> WireObject:
    kind, name = w.calls.get(result.tool_use_id, ("", ""))
    wire: WireObject
    if kind == "function_call":
        wire = {"role": "function", "name": name}
    elif kind == SYNTHETIC_ID:  # the host matches them by place and name, as it gave no ids
        wire = {"role": "tool", "name": name}
    else:
        wire = {"role": "tool", "tool_call_id": w.ids.result(result.tool_use_id)}
    content = write_content(w, result.content) if result.content else ""
    if not isinstance(content, str):
        stays = MEDIA_STAYS in result.extra.get(WIRE, {})
        content = _without_media(w, content, wire.get("tool_call_id", name), stays=stays)
    if result.is_error:
        content = ERROR_PREFIX + content if isinstance(content, str) else [{"type": "text", "text": ERROR_PREFIX}, *content]
    return w.finish({**wire, "content": content}, result.extra, result.cache)


def _without_media(w: Writer, content: list[WireObject], whose: str, *, stays: bool) -> str | list[WireObject]:
    """The content of a result as the host takes it. What has to move waits in `w.moved`, behind a text that says whose result it is of."""
    media = [part for part in content if part.get("type") != "text"]
    if not media or w.dialect.tool_media == "taken":
        return content
    if w.dialect.tool_media == "unseen" or stays:
        w.note("tool_media", f"a tool message holds more than text, which {w.dialect.label} was not seen to take")
        return content
    w.note("tool_media_moved", f"{w.dialect.label} takes text only in a tool message: the rest is sent in the next user message")
    w.moved += [{"type": "text", "text": f"From the result of {whose}:"}, *media]
    return [part for part in content if part.get("type") == "text"] or MOVED


def _write_moved(w: Writer, out: list[WireObject]) -> None:
    if w.moved:
        out.append({"role": "user", "content": w.moved})
        w.moved = []


# ---- assistant messages


class _Turn:
    """An assistant message in the making."""

    def __init__(self) -> None:
        self.parts: list[WireObject] = []
        self.plain = True  # the parts are texts that a string says wholly
        self.thinking: list[str] = []
        self.field = ""
        self.details: list[WireObject] = []
        self.refusals: list[str] = []
        self.calls: list[WireObject] = []
        self.function: WireObject | None = None
        self.audio: WireObject | None = None
        self.citations: list[Citation] = []


def _write_assistant(w: Writer, message: Message, out: list[WireObject]) -> None:
    turn = _Turn()
    w.ids.next_turn()
    path = w.path
    for index, block in enumerate(message.content):
        w.path = f"{path}.content[{index}]"
        _BLOCKS.get(type(block), _left_out)(w, block, turn)
    w.path = path
    wire: WireObject = {"role": "assistant"}
    calls = bool(turn.calls or turn.function)
    if turn.parts:
        lone = len(turn.parts) == 1 and turn.plain
        wire["content"] = turn.parts[0]["text"] if lone else turn.parts
    elif w.dialect.empty_content != "absent" or not calls:
        wire["content"] = "" if w.dialect.empty_content == "empty" and calls else None
    if turn.thinking:
        wire[turn.field] = "".join(turn.thinking)
    if turn.details:
        wire["reasoning_details"] = turn.details
    if turn.refusals:
        wire["refusal"] = "".join(turn.refusals)
    if turn.audio is not None:
        wire["audio"] = turn.audio
    if w.dialect.annotations and turn.citations:
        wire["annotations"] = [{"type": citation.kind, citation.kind: citation.data} for citation in turn.citations]
    if turn.calls:
        wire["tool_calls"] = turn.calls
    if turn.function is not None:
        wire["function_call"] = turn.function
    if set(wire) == {"role", "content"} and wire["content"] is None:
        return
    out.append(_with_message_extra(w, wire, message))


def _with_message_extra(w: Writer, wire: WireObject, message: Message) -> WireObject:
    if not w.native:
        return wire
    for key, value in w.own(message.extra).items():
        if key not in wire and key not in OWN_KEYS and (key in _ANSWER_KEYS or not w.origin_known):
            wire[key] = value
    return wire


def _text(w: Writer, block: Text, turn: _Turn) -> None:
    if w.origin_known and block.extra:
        w.own(block.extra)  # what an answer's text carries (logprobs) is nothing to send back
    part = w.finish({"type": "text", "text": block.text}, {} if w.origin_known else block.extra, block.cache)
    turn.plain = turn.plain and len(part) == 2
    turn.parts.append(part)
    if block.citations and w.native:
        turn.citations += [citation for citation in block.citations if citation.kind in _ANNOTATIONS]
    elif block.citations:
        w.note("citations_left_out", "citations in the form of another provider are left out")


def _refusal(w: Writer, block: Refusal, turn: _Turn) -> None:
    if w.dialect.refusal:
        turn.refusals.append(block.text)
    elif block.text:
        turn.parts.append({"type": "text", "text": block.text})


def _thinking(w: Writer, block: Thinking, turn: _Turn) -> None:
    if not w.native:
        if w.thinking_as_text and block.text.strip():
            w.note("thinking_as_text", "thinking that cannot be sent back as thinking is sent as text")
            turn.parts.append({"type": "text", "text": block.text})
        else:
            w.note("thinking_left_out", THINKING_LEFT_OUT)
        return
    own = w.own(block.extra)
    detail = own.get("detail")
    if w.dialect.thinking_details and isinstance(detail, dict):
        turn.details.append(_detail(detail, block))  # pyright: ignore[reportUnknownArgumentType]
        return
    field = w.dialect.thinking_field
    if field == "content":
        turn.plain = False
        turn.parts.append({"type": "thinking", "thinking": [{"type": "text", "text": block.text}]})
    elif field and block.text:
        turn.field = turn.field or (own["field"] if own.get("field") in _FIELDS else field)
        turn.thinking.append(block.text)
    elif block.text:
        w.note("thinking_left_out", THINKING_LEFT_OUT)


def _redacted(w: Writer, block: RedactedThinking, turn: _Turn) -> None:
    detail = w.own(block.extra).get("detail")
    if w.native and w.dialect.thinking_details and isinstance(detail, dict):
        turn.details.append({**detail, "data": block.data})
    else:
        w.note("thinking_left_out", THINKING_LEFT_OUT)


def _detail(detail: dict[str, Any], block: Thinking) -> WireObject:
    """A `reasoning_details` entry as it came."""
    wire: WireObject = dict(detail)
    if block.text:
        wire["summary" if detail.get("type") == "reasoning.summary" else "text"] = block.text
    if block.signature:
        wire["signature"] = block.signature
    return wire


def _tool_use(w: Writer, block: ToolUse, turn: _Turn) -> None:
    own = _own_call(w, block)
    kind = own.get("kind")
    if kind == "custom" and list(block.input) == ["input"] and isinstance(block.input["input"], str):
        _call(w, block, own, {"type": "custom", "custom": {"name": block.name, "input": block.input["input"]}}, turn)
    else:
        _function(w, block, own, w.arguments(block.input), turn)


def _invalid_tool_use(w: Writer, block: InvalidToolUse, turn: _Turn) -> None:
    if block.extra.get("dragoman", {}).get("server_tool"):
        w.left_out("a call of a server's tool")
        return
    _function(w, block, _own_call(w, block), w.arguments({INVALID_JSON: block.raw}), turn)


def _own_call(w: Writer, block: ToolUse | InvalidToolUse) -> dict[str, Any]:
    """What a call carries for this host; that of another host of the dialect means nothing here."""
    own = w.own(block.extra) if block.extra else {}
    return own if w.native else {}


def _function(w: Writer, block: ToolUse | InvalidToolUse, own: dict[str, Any], arguments: str, turn: _Turn) -> None:
    function: WireObject = {"name": block.name, "arguments": arguments}
    if own.get("kind") == "function_call" and turn.function is None:
        w.calls[block.id] = ("function_call", block.name)
        turn.function = function
    else:
        _call(w, block, own, {"type": "function", "function": function}, turn)


def _call(w: Writer, block: ToolUse | InvalidToolUse, own: dict[str, Any], wire: WireObject, turn: _Turn) -> None:
    if own.get(SYNTHETIC_ID) and not w.dialect.takes_made_ids:
        w.calls[block.id] = (SYNTHETIC_ID, block.name)
    else:
        w.calls.pop(block.id, None)
        wire = {"id": w.ids.call(block.id), **wire}
    turn.calls.append({**wire, **{key: value for key, value in own.items() if key not in wire and key not in OWN_KEYS}})


def _audio(w: Writer, block: Audio, turn: _Turn) -> None:
    id = w.own(block.extra).get("id") or (block.source.id if isinstance(block.source, FileId) else "")
    if w.native and id:
        turn.audio = {"id": id}
    elif block.transcript:
        w.note("audio_as_text", "sound of another host is sent as its transcript")
        turn.parts.append({"type": "text", "text": block.transcript})
    else:
        w.left_out("sound without a transcript")


def _opaque(w: Writer, block: Opaque, turn: _Turn) -> None:
    part = write_part(w, block)
    if part is not None:
        turn.plain = False
        turn.parts.append(part)


def _left_out(w: Writer, block: Block, _: _Turn) -> None:
    w.left_out(f"a block of type {block.type} in an assistant turn")


_BLOCKS: dict[type[Block], Callable[[Writer, Any, _Turn], None]] = {
    Text: _text,
    Refusal: _refusal,
    Thinking: _thinking,
    RedactedThinking: _redacted,
    ToolUse: _tool_use,
    InvalidToolUse: _invalid_tool_use,
    Audio: _audio,
    Opaque: _opaque,
}

_WRITERS = {"system": _write_system, "user": _write_user, "assistant": _write_assistant}
