"""A `Request` as a Messages API call (spec: anthropic.md §1 to §5; design §3 for the closed list of what may change on the way).

Strategy. The parts are written by their own files (turns, tools, thinking, cache marks); here they become one body with a fixed order of
keys, one set of headers, and bytes. Content is never copied: wire dicts point at the caller's strings and objects, and msgspec writes
them in one go. What that encoder cannot write (lone surrogates) is looked for only when it says so.

The same request gives the same bytes in every process: only lists and dicts are walked, in their own order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from dragoman.catalog import ModelRules, rules
from dragoman.errors import InvalidInputError, Problem
from dragoman.fragments import scrub_tree
from dragoman.message import RedactedThinking
from dragoman.request import Request
from dragoman.validation.blocks import check_json
from dragoman.validation.headers import HEADER_FIX, is_header
from dragoman.validation.keys import check_keys
from dragoman.validation.media import DEPTH_LIMIT
from dragoman.wire.anthropic.betas import beta_header, body_features
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.blocks_out import check_inputs
from dragoman.wire.anthropic.cache import MARKS, add_marks, settle_marks
from dragoman.wire.anthropic.plain import Turn, WireBlock, unfold
from dragoman.wire.anthropic.thinking import Settings, settle
from dragoman.wire.anthropic.tools import write_tool_choice, write_tools
from dragoman.wire.anthropic.turns import collapse, finished, hoisted, trim_end, write_system, write_turns
from dragoman.wire.anthropic.writer import JSON_LEAVES, Writer, is_json
from dragoman.wire.base import HTTPRequest
from dragoman.wire.json_values import as_object, is_object
from dragoman.wire.settled import settled

__all__ = ["COUNT_PATH", "MESSAGES_PATH", "encode", "encode_count"]

MESSAGES_PATH = "/v1/messages"
COUNT_PATH = "/v1/messages/count_tokens"

COUNTED = frozenset(
    {
        "model",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
        "speed",
        "messages",
        "billing_policy",
        "compaction",
        "context_management",
        "mcp_servers",
    }
)
"""The parameters that count_tokens takes (anthropic.md §3)."""

_MERGED = frozenset({"output_config", "metadata"})
"""Parameters that `extra_body` may complete key by key; of any other the standard field wins whole."""

_UNEXPECTED = (AttributeError, KeyError, TypeError, RecursionError)
"""What a value of a wrong type, or one that nests too deeply, makes of the code below where nobody has validated."""


def encode(
    request: Request, *, stream: bool, label: str, api_version: str, betas: Sequence[str] = (), max_tokens: int | None = None
) -> HTTPRequest:
    """The call that asks for an answer. Raises InvalidInputError for what cannot be written."""
    try:
        w, body = _body(request, label, max_tokens)
        if stream:
            body["stream"] = True
        _add_extra_body(w, request, body, request.extra_body)
        headers = _headers(w, request, body, api_version, betas, "text/event-stream" if stream else "application/json")
        data = _bytes(w, request, body)
        effort = as_object(body.get("output_config")).get("effort")
        sent = settled(request, body, max_tokens="max_tokens", effort=effort, stop="stop_sequences")
        return HTTPRequest(path=MESSAGES_PATH, headers=headers, body=data, notices=w.notices(), settled=sent)
    except _UNEXPECTED as error:
        _explain(request, error)
        raise


def encode_count(
    request: Request, *, label: str, api_version: str, betas: Sequence[str] = (), max_tokens: int | None = None
) -> HTTPRequest:
    """The call that counts the input tokens of the same request."""
    try:
        w, body = _body(request, label, max_tokens)
        _add_extra_body(w, request, body, {key: value for key, value in request.extra_body.items() if key in COUNTED})
        body = {key: value for key, value in body.items() if key in COUNTED}
        headers = _headers(w, request, body, api_version, betas, "application/json")
        return HTTPRequest(path=COUNT_PATH, headers=headers, body=_bytes(w, request, body), notices=w.notices())
    except _UNEXPECTED as error:
        _explain(request, error)
        raise


def _explain(request: Request, error: Exception) -> None:
    """Raises InvalidInputError if `error` came of a value of a wrong type, where nobody has validated, or of one that nests too deeply."""
    if isinstance(error, RecursionError):  # what may nest 500 levels deep needs as much of the caller's stack
        text = "a value nests deeper than the stack that is left can hold"
        raise InvalidInputError([Problem("request", "not_json", text, "call from a shallower stack, or nest less")]) from error
    from dragoman.validation.types import wrong_types

    found = wrong_types(request)
    if found:
        raise InvalidInputError(found) from error


# ---- the body


def _body(request: Request, label: str, default_max_tokens: int | None) -> tuple[Writer, WireBlock]:
    """The body without `stream` and `extra_body`, `messages` last."""
    model = request.model
    if not model:
        _refuse_missing(request, label)
    row = rules(model)
    if request.max_tokens is None and isinstance(given := request.extra_body.get("max_tokens"), int):
        request = request.replace(max_tokens=given)
    w = Writer(keep_marks=request.cache != "off", thinking_as_text=request.foreign_thinking == "text")
    settings = settle(w, request, row, default_max_tokens)
    tools = write_tools(w, request)
    positions = hoisted(request)
    system = write_system(w, request, positions)
    turns = write_turns(w, request, row, system, positions)
    if not (turns or w.problems) or not _speaks(request):
        _refuse_missing(request, label)
    automatic = _mark(w, request, row, tools, system, turns)
    trim_end(turns)
    collapse(turns if w.moved else w.lone)
    body: WireBlock = {"model": model, "max_tokens": settings.max_tokens}
    if system:
        body["system"] = system[0]["text"] if len(system) == 1 and len(system[0]) == 2 else system
    if tools:
        body["tools"] = tools
    body.update(_parameters(w, request, settings, tools, row))
    if automatic:
        body["cache_control"] = MARKS["5m"]
    body["messages"] = finished(w, turns)
    return w, body


def _speaks(request: Request) -> bool:
    """Whether there is a message that is no system message."""
    for message in request.messages:  # noqa: SIM110  # a generator that is left early costs as much as fifty turns of this
        if message.role != "system":
            return True
    return False


def _refuse_missing(request: Request, label: str) -> NoReturn:
    """No model, or no message but system ones, or none of which anything is left."""
    from dragoman.history import required

    missing = required(request, label) or required(request.replace(messages=[]), label)
    raise InvalidInputError(missing, missing[0].message)


def _mark(w: Writer, request: Request, row: ModelRules, tools: list[WireBlock], system: list[WireBlock], turns: list[Turn]) -> bool:
    """Settle the caller's marks and add ours; whether the top-level one is wanted."""
    if w.moved:
        lost = settle_marks(tools, system, turns)
        if lost:
            w.note("cache_mark_left_out", "a cache mark stands on nothing that can be cached, and nothing before it can", "messages")
    if not row.caching:
        return False
    if request.cache == "auto":
        add_marks(tools, system, turns, as_object(request.extra_body.get("cache_control")) or None)
    return request.cache == "provider"


def _parameters(w: Writer, request: Request, settings: Settings, tools: list[WireBlock], row: ModelRules) -> WireBlock:
    """Everything that is neither text nor tool, in a fixed order; what is not set is not there."""
    values: WireBlock = {
        "tool_choice": write_tool_choice(request, tools, row, thinks=settings.thinks),
        "thinking": settings.thinking,
        "output_config": _output_config(request, settings.effort),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "stop_sequences": request.stop_sequences or None,
        "metadata": _metadata(w, request) if request.metadata else None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _output_config(request: Request, effort: str | None) -> WireBlock | None:
    config: WireBlock = {}
    if effort is not None:
        config["effort"] = effort
    if request.output is not None:
        config["format"] = {"type": "json_schema", "schema": request.output.schema}
    return config or None


def _metadata(w: Writer, request: Request) -> WireBlock | None:
    for key in request.metadata:
        if key != "user_id":
            w.note("metadata_left_out", f"the Messages API knows no metadata but `user_id`; `{key}` is left out", f"metadata.{key}")
    user_id = request.metadata.get("user_id")
    return None if user_id is None else {"user_id": user_id}


def _add_extra_body(w: Writer, request: Request, body: WireBlock, extra: Mapping[str, Any]) -> None:
    """What no field holds. Standard fields win, whether to stream among them; `messages` stays last."""
    if not extra:
        body["messages"] = body.pop("messages")
        return
    ours: WireBlock = {"stream": False, **body}
    if request.max_tokens is None and "max_tokens" in extra:
        del ours["max_tokens"]  # only our own default
    messages = body.pop("messages")
    if "messages" in extra:
        ours["messages"] = unfold(messages)
    for key, value in extra.items():
        if key == "cache_control" and not w.keep_marks:
            continue
        standard = ours.get(key)
        if standard is None:
            body[key] = value
            continue
        clashes = standard != value
        if key in _MERGED and is_object(value):
            body[key] = {**value, **standard}
            clashes = any(name in standard and standard[name] != entry for name, entry in value.items())
        if clashes:
            w.note("extra_body_ignored", f"a field of the request wins over `{key}` in extra_body", f"extra_body.{key}")
    body["messages"] = messages


# ---- headers


def _headers(w: Writer, request: Request, body: WireBlock, api_version: str, betas: Sequence[str], accept: str) -> dict[str, str]:
    """The protocol's headers and the caller's, who wins; all betas go into one."""
    headers = {"accept": accept, "content-type": "application/json", "anthropic-version": api_version}
    given = [*betas, *request.betas]
    for name, value in request.extra_headers.items():
        if name.lower() == "anthropic-beta":
            given.append(value)
        else:
            headers[name.lower()] = value
    header = beta_header(given, [*body_features(body), *w.features])
    if header:
        headers["anthropic-beta"] = header
    for name, value in headers.items():
        if not is_header(name, value):
            w.problem(f"extra_headers.{name!r}", "header", "has a name or value that HTTP cannot carry", HEADER_FIX)
    return headers


# ---- bytes


def _as_plain(value: object) -> str | int | float:
    """For msgspec, which of the subclasses of these takes only enums (`Markup`, `numpy.float64`)."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = msgspec.json.Encoder(enc_hook=_as_plain).encode


def _bytes(w: Writer, request: Request, body: WireBlock) -> bytes:
    """The body, if nothing is wrong with anything. Raises InvalidInputError."""
    _check_json(w, request, body)
    check_inputs(w, request.messages)
    if not w.problems:
        try:
            return _written(body)
        except UnicodeEncodeError:
            _refuse_broken_thinking(w, request)
            check_keys(request, WIRE, w.problems)
    if w.problems:
        raise InvalidInputError(w.problems)
    return _written(scrub_tree({**body, "messages": unfold(body["messages"])}))


def _written(body: WireBlock) -> bytes:
    try:
        return _encode(body)
    except TypeError as error:
        _refuse(f"a value of the request is not JSON: {error}")


def _refuse(message: str) -> NoReturn:
    raise InvalidInputError([Problem("request", "not_json", message, "use plain strings, numbers, lists and dicts")])


def _check_json(w: Writer, request: Request, body: WireBlock) -> None:
    """All that a caller may fill freely, blocks excepted, which are checked as they are written."""
    given = request.extra_body
    for index, tool in enumerate(body["tools"] if request.tools else ()):
        if not is_json(tool, DEPTH_LIMIT + 1):
            check_json(tool, f"tools[{index}]", w.problems, DEPTH_LIMIT + 1)
    for key, value in body.items():
        if type(value) in JSON_LEAVES:
            continue
        is_given = value is given.get(key)
        if (is_given or key not in ("tools", "system", "messages")) and not is_json(value):
            check_json(value, f"extra_body.{key}" if is_given else key, w.problems)


def _refuse_broken_thinking(w: Writer, request: Request) -> None:
    """What is signed is sent as it came or not at all (case 96)."""
    for index, block in w.signed:
        texts = (block.data,) if isinstance(block, RedactedThinking) else (block.text, block.signature)
        if any(_is_broken(text) for text in texts):
            place = next(j for j, other in enumerate(request.messages[index].content) if other is block)
            text = "signed thinking holds half a character (a lone surrogate), and signed text cannot be changed"
            fix = "leave the turn's thinking out, or store it without loss"
            w.problem(f"messages[{index}].content[{place}]", "broken_unicode", text, fix)


def _is_broken(text: str) -> bool:
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return True
    return False
