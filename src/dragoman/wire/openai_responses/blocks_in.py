"""Finished items of the wire as our blocks.

Strategy. One function per role (`kinds.role_of`), each pure: the whole item in, finished blocks out. The stream decoder, the body decoder
and `decode_request` all end here, so they cannot differ. What no field of a block holds stays in `extra["openai-responses"]`:

* a text or refusal: `item` (id, status, phase … of its message item; blocks of one item share it) and what else its part carries;
* a reasoning: id and status, and `summary` / `content`, the lengths of the parts whose texts were joined by a blank line;
* a call: `kind` (unless it is a function call), id and status, and `arguments` where their spelling is not ours.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.fragments import parse_input, scrub, scrub_tree
from dragoman.message import (
    Base64,
    Block,
    Citation,
    Extra,
    Image,
    InvalidReason,
    InvalidToolUse,
    Opaque,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
)
from dragoman.wire.framing import escape_json
from dragoman.wire.json_values import as_object, as_objects, as_string, is_list, is_object
from dragoman.wire.openai_responses.kinds import CALLS, PAIRS, WIRE

__all__ = [
    "PARAGRAPH",
    "annotations_of",
    "blocks_of",
    "call_block",
    "call_json",
    "compact_json",
    "image_block",
    "image_shell",
    "message_extra",
    "pair_blocks",
    "pair_shell",
    "part_block",
    "reasoning_block",
    "result_block",
    "use_block",
]

PARAGRAPH = "\n\n"
"""What stands between the parts of one reasoning."""


def _rest(value: dict[str, Any], *known: str) -> dict[str, Any]:
    return {key: v for key, v in value.items() if key not in known and v is not None}


def _own(values: dict[str, Any]) -> Extra:
    return {WIRE: values} if values else {}


def compact_json(value: Any) -> str:
    """A JSON value as text, in the spelling that the encoder uses."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # lone surrogates
        return msgspec.json.encode(scrub_tree(value)).decode()


# ---- messages


def message_extra(item: dict[str, Any]) -> dict[str, Any]:
    """What the blocks of one message item share: its id, status, phase …"""
    rest = _rest(item, "type", "content")
    if rest.get("role") == "assistant":
        del rest["role"]
    return rest


def part_block(part: dict[str, Any], item: dict[str, Any]) -> Block:
    """One content part of an answer's message; `item` is its `message_extra`."""
    kind = part.get("type")
    if kind == "output_text" or kind == "text" or kind == "input_text":
        rest = _rest(part, "type", "text", "annotations")
        if not rest.get("logprobs"):
            rest.pop("logprobs", None)
        return Text(scrub(as_string(part.get("text"))), citations=annotations_of(part), extra=_part_extra(item, rest))
    if kind == "refusal":
        return Refusal(scrub(as_string(part.get("refusal"))), extra=_part_extra(item, _rest(part, "type", "refusal")))
    return Opaque(part, wire=WIRE)


def _part_extra(item: dict[str, Any], rest: dict[str, Any]) -> Extra:
    return _own({"item": item, **rest} if item else rest)


def annotations_of(part: dict[str, Any]) -> list[Citation]:
    """The annotations of a text part as citations, verbatim."""
    return [Citation(as_string(annotation.get("type")), annotation) for annotation in as_objects(part.get("annotations"))]


# ---- reasoning


def reasoning_block(item: dict[str, Any]) -> Thinking:
    """A reasoning item: its own words (`content`), then their summary, parts joined by a blank line; signed by `encrypted_content`."""
    extra = _rest(item, "type", "content", "summary", "encrypted_content")
    texts: list[str] = []
    for field, kind in (("content", "reasoning_text"), ("summary", "summary_text")):
        parts: Any = item.get(field)
        if not is_list(parts) or not parts:
            continue
        plain = _plain_texts(parts, kind)
        if plain is None:
            extra[field] = parts
            texts += [as_string(part.get("text")) for part in as_objects(parts)]
            continue
        if field == "content" or len(plain) > 1 or texts or not plain[0]:
            extra[field] = [len(text) for text in plain]
        texts += plain
    return Thinking(PARAGRAPH.join(texts), signature=as_string(item.get("encrypted_content")), extra=_own(extra))


def _plain_texts(parts: list[Any], kind: str) -> list[str] | None:
    """The texts of parts that are nothing but text; None if any carries more, which then has to be kept whole."""
    texts: list[str] = []
    for part in parts:
        if not is_object(part) or len(part) != 2 or part.get("type") != kind or not isinstance(part.get("text"), str):
            return None
        texts.append(part["text"])
    return texts


# ---- calls


def call_json(item: dict[str, Any]) -> str:
    """The input of a call as JSON text, as its deltas spell it."""
    call = CALLS[item["type"]]
    if call.form == "text":
        return f'{{"{call.field}":"{escape_json(as_string(item.get(call.field)))}"}}'
    value = item.get(call.field)
    if isinstance(value, str):
        return scrub(value)
    if value is None and is_list(item.get("actions")):  # computer: several actions at once
        value = {"actions": item["actions"]}
    return "" if value is None else compact_json(value)


def call_block(
    item: dict[str, Any], call_id: str, *, raw: str | None = None, extra: dict[str, Any] | None = None
) -> ToolUse | InvalidToolUse:
    """A call for the caller to run. One that the provider marks `incomplete` is never executable, even if its input happens to parse.

    `raw` is the input's JSON text if it is known already; `extra` is added to what the item carries.
    """
    kind = as_string(item.get("type"))
    call = CALLS[kind]
    raw = call_json(item) if raw is None else raw
    name = as_string(item.get("name")) or call.name
    value: dict[str, Any] | InvalidReason = parse_input(raw)
    if item.get("status") == "incomplete" and isinstance(value, dict):
        value = "incomplete"
    own: dict[str, Any] = {} if kind == "function_call" else {"kind": kind}
    own |= _rest(item, "type", "call_id", call.field, *(() if call.name else ("name",)))
    if "actions" in own and item.get(call.field) is None:
        del own["actions"]
    if call.form == "json" and raw and isinstance(value, dict) and compact_json(value) != raw:
        own[call.field] = raw
    own |= extra or {}
    if isinstance(value, dict):
        return ToolUse(call_id, name, value, extra=_own(own))
    return InvalidToolUse(call_id, name, raw, reason=value, extra=_own(own))


# ---- what ran at the provider


def pair_shell(item: dict[str, Any]) -> ServerToolUse:
    """The call of an item that is call and result, as it starts."""
    label = item.get("server_label")
    kind = as_string(item.get("type"))
    name = as_string(item.get("name")) or PAIRS.get(kind, kind)
    return ServerToolUse(
        as_string(item.get("id")) or as_string(item.get("call_id")), name, {}, extra=_own({"server_label": label} if label else {})
    )


def pair_blocks(item: dict[str, Any]) -> tuple[ServerToolUse, ServerToolResult]:
    """An item that is call and result as the pair; the result holds the whole item."""
    shell = pair_shell(item)
    use = msgspec.structs.replace(shell, input=_pair_input(item))
    return use, ServerToolResult(use.id, item, kind=as_string(item.get("type")))


def _pair_input(item: dict[str, Any]) -> dict[str, Any]:
    """What was asked, from wherever this kind of item has it."""
    action = item.get("action")
    if is_object(action):
        return action
    for field in ("code", "input"):
        if isinstance(item.get(field), str):
            return {field: scrub(item[field])}
    if is_list(item.get("queries")):
        return {"queries": item["queries"]}
    return as_object(parse_input(scrub(as_string(item.get("arguments")))))


def use_block(item: dict[str, Any]) -> ServerToolUse:
    """A shell call that runs in the provider's container: an item of its own, whose result is another."""
    own = {"kind": item["type"], **_rest(item, "type", "call_id", "action")}
    return ServerToolUse(as_string(item.get("call_id")), "shell", as_object(item.get("action")), extra=_own(own))


def result_block(item: dict[str, Any]) -> ServerToolResult:
    """What a shell in the provider's container gave."""
    return ServerToolResult(as_string(item.get("call_id")), item, kind=as_string(item.get("type")))


def image_shell(item: dict[str, Any]) -> Image:
    """A picture whose bytes are still to come."""
    return Image(Base64(_media_type(item), ""))


def image_block(item: dict[str, Any]) -> Image | Opaque:
    """A generated picture; an item without one (it failed, or is a mere reference) stays whole."""
    result = item.get("result")
    if not isinstance(result, str) or not result:
        return Opaque(item, wire=WIRE)
    return Image(Base64(_media_type(item), result), extra=_own(_rest(item, "type", "result")))


def _media_type(item: dict[str, Any]) -> str:
    kind = as_string(item.get("output_format")) or "png"
    return "image/svg+xml" if kind == "svg" else f"image/{kind}"


def blocks_of(item: dict[str, Any], role: str) -> list[Block]:
    """The finished blocks of a whole item."""
    match role:
        case "message":
            shared = message_extra(item)
            return [part_block(part, shared) for part in as_objects(item.get("content"))] or [Opaque(item, wire=WIRE)]
        case "reasoning":
            return [reasoning_block(item)]
        case "call":
            return [call_block(item, as_string(item.get("call_id")))]
        case "pair":
            return list(pair_blocks(item))
        case "use":
            return [use_block(item)]
        case "result":
            return [result_block(item)]
        case "image":
            return [image_block(item)]
        case _:
            return [Opaque(item, wire=WIRE)]
