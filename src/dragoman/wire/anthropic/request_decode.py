"""A recorded or received Messages API body as a `Request`: the other way round from `encode`, for gateways and tests.

Strategy. One table: each parameter that has a field, and the function that reads it. A value that its field cannot hold whole, and every
parameter without a field, goes to `extra_body` as it is; the same for blocks, tools and messages and their `extra`. So whatever a client
sends, encoding the request gives the same JSON meaning; only the closed list of the design may differ. An assistant turn that
holds what only this dialect can read gets an `origin` of it, so that a gateway's encoder of another one leaves that out.

What is not the dialect at all (no messages, an unknown role, a stream delta for a block) is refused, all of it at once, with paths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, get_args

from dragoman.catalog import rules
from dragoman.errors import InvalidInputError, Problem
from dragoman.message import Block, Message, Text
from dragoman.request import Effort, OutputFormat, ProviderTool, Request, ThinkingConfig, Tool, ToolNamed
from dragoman.wire.anthropic.blocks import WIRE, block_of, cache_of
from dragoman.wire.anthropic.writer import DEBRIS
from dragoman.wire.base import Headers, lower_headers
from dragoman.wire.client_turns import client_origin
from dragoman.wire.decoder import load_json
from dragoman.wire.json_values import as_object, is_list, is_object

__all__ = ["decode_request"]

KEPT_HEADERS = ("anthropic-user-profile-id", "anthropic-workspace-id")
"""Headers that are part of the request (anthropic.md §3); all others belong to the connection, keys among them."""

Fields: TypeAlias = dict[str, Any]
"""Fields of a `Request`."""

Read: TypeAlias = tuple[Fields, Any]
Reader: TypeAlias = Callable[[Any], Read]


class _Misfit(Exception):
    """The field cannot hold this value whole."""


def decode_request(body: bytes, headers: Headers = (), *, api_version: str) -> Request:
    """The request that a client sent. Raises InvalidInputError for what is not the dialect.

    A version in the headers other than `api_version` is kept in `extra_headers`.
    """
    try:
        value = load_json(body)
    except ValueError as error:
        raise InvalidInputError([Problem("body", "not_json", f"the body is not JSON: {error}", "send a JSON object")]) from None
    if not is_object(value):
        raise InvalidInputError([Problem("body", "not_an_object", "the body is not a JSON object", "send a JSON object")])
    problems: list[Problem] = []
    messages = _messages(value.get("messages"), problems)
    fields: Fields = {"extra_body": {}}
    for name, given in value.items():
        if name not in _NO_PARAMETERS:
            _read(name, given, fields)
    _tools(value.get("tools"), fields, problems)
    _undo_for_model(value, fields)
    if problems:
        raise InvalidInputError(problems)
    return Request(messages, **fields, **_from_headers(headers, api_version))


def _read(name: str, value: Any, fields: Fields) -> None:
    """Read a parameter into the fields; null says nothing."""
    reader = _PARAMETERS.get(name)
    if value is None and reader is not None:
        return
    try:
        read, rest = ({}, value) if reader is None else reader(value)
    except _Misfit:
        read, rest = {}, value
    fields.update(read)
    if reader is None or rest is not None:
        fields["extra_body"][name] = rest


def _undo_for_model(body: dict[str, Any], fields: Fields) -> None:
    """What the encoder would write in another way for this model stays as the client wrote it."""
    row = rules(fields.get("model", ""))
    off = {"between_tools": "between_tools"}.get(row.thinking_off, "disabled")
    thinking = as_object(body.get("thinking"))
    if fields.get("thinking") == ThinkingConfig.off() and thinking.get("type") != off:
        fields["extra_body"]["thinking"] = {"type": thinking.get("type")}
        del fields["thinking"]
    if "cache" in fields and not row.caching:
        fields["extra_body"]["cache_control"] = body["cache_control"]
        del fields["cache"]


def _from_headers(headers: Headers, api_version: str) -> Fields:
    given = lower_headers(headers)
    kept = {name: given[name] for name in KEPT_HEADERS if name in given}
    version = given.get("anthropic-version")
    if version and version != api_version:
        kept["anthropic-version"] = version
    betas = [beta for part in given.get("anthropic-beta", "").split(",") if (beta := part.strip())]
    return {"betas": betas, "extra_headers": kept}


# ---- messages


def _messages(value: Any, problems: list[Problem]) -> list[Message]:
    if not is_list(value):
        problems.append(Problem("messages", "required", "there is no list of messages", "send `messages`"))
        return []
    messages: list[Message] = []
    for index, item in enumerate(value):
        path = f"messages[{index}]"
        data = as_object(item)
        role = data.get("role")
        if role not in ("user", "assistant", "system"):
            problems.append(Problem(f"{path}.role", "role", "this is no role of the Messages API", "use user, assistant or system"))
            continue
        rest = {key: entry for key, entry in data.items() if key not in ("role", "content")}
        content = _content(data.get("content"), f"{path}.content", problems)
        origin = None if role != "assistant" or isinstance(content, str) else client_origin(content, WIRE)
        messages.append(Message(role, content, origin=origin, extra={WIRE: rest} if rest else {}))
    return messages


def _content(value: Any, path: str, problems: list[Problem]) -> str | list[Block]:
    if isinstance(value, str):
        return value
    if not is_list(value):
        problems.append(Problem(path, "content", "the content is neither a string nor a list", "send text or a list of blocks"))
        return []
    return [_block(item, f"{path}[{index}]", problems) for index, item in enumerate(value)]


def _block(value: Any, path: str, problems: list[Problem]) -> Block:
    data = as_object(value)
    kind = data.get("type")
    if not isinstance(kind, str) or kind.endswith("_delta") or any(key in DEBRIS for key in data):
        problems.append(
            Problem(path, "not_a_block", "this is not a finished content block", "send finished blocks only, as they were decoded")
        )
    if kind == "tool_use" and data.get("input") == "":
        data = {**data, "input": dict[str, Any]()}  # how some clients store a call without arguments (case 89)
    return block_of(data)


# ---- tools


def _tools(value: Any, fields: Fields, problems: list[Problem]) -> None:
    """The tools; a value that is no list is kept as it is."""
    if not is_list(value):
        if value is not None:
            fields["extra_body"]["tools"] = value
        return
    tools: list[Tool | ProviderTool] = []
    for index, item in enumerate(value):
        data = as_object(item)
        kind = data.get("type")
        if not isinstance(kind, str | None) or not isinstance(data.get("name", ""), str) or not data:
            problems.append(Problem(f"tools[{index}]", "tool", "this is no tool", "send an object with a name, and a type or a schema"))
        else:
            tools.append(_tool(data) if kind is None or kind == "custom" else _provider_tool(data, kind))
    fields["tools"] = tools


_TOOL_FIELDS: dict[str, type] = {"description": str, "input_schema": dict, "strict": bool, "eager_input_streaming": bool}


def _tool(data: dict[str, Any]) -> Tool:
    fields: Fields = {}
    extra: dict[str, Any] = {}
    for key, value in data.items():
        if value is None or key in ("name", "type"):
            continue
        if key in _TOOL_FIELDS and isinstance(value, _TOOL_FIELDS[key]):
            fields[key] = value
        elif key == "cache_control" and (cache := cache_of(data)) is not None:
            fields["cache"] = cache
        else:
            extra[key] = value
    return Tool(data.get("name", ""), **fields, extra={WIRE: extra} if extra else {})


def _provider_tool(data: dict[str, Any], kind: str) -> ProviderTool:
    cache = cache_of(data)
    known = ("type", "name") if cache is None else ("type", "name", "cache_control")
    options = {key: value for key, value in data.items() if key not in known}
    if options.get("cache_control", "") is None:
        del options["cache_control"]
    return ProviderTool(kind, data.get("name", ""), options, cache=cache)


# ---- parameters: each reader gives fields, and what of the value they do not hold (None: nothing)


def _system(value: Any) -> Read:
    if isinstance(value, str):
        return {"system": value}, None
    if not is_list(value):
        raise _Misfit
    blocks = [block_of(as_object(item)) for item in value]
    if not all(isinstance(block, Text) for block in blocks):
        raise _Misfit
    return {"system": blocks}, None


def _tool_choice(value: Any) -> Read:
    match value:
        case {"type": "tool", "name": str(name), **rest}:
            return {"tool_choice": ToolNamed(name), **_parallel(rest)}, None
        case {"type": "auto" | "none" | "any" as kind, **rest}:
            return {"tool_choice": "required" if kind == "any" else kind, **_parallel(rest)}, None
        case _:
            raise _Misfit


def _parallel(rest: dict[Any, Any]) -> Fields:
    match rest:
        case {"disable_parallel_tool_use": bool() | None as disabled, **more} if not more:
            return {"parallel_tools": not disabled}
        case _ if not rest:
            return {}
        case _:
            raise _Misfit


def _thinking(value: Any) -> Read:
    match value:
        case {"type": "enabled", "budget_tokens": int(budget), **rest} if not isinstance(budget, bool):
            return {"thinking": ThinkingConfig("budget", budget_tokens=budget, display=_display(rest))}, None
        case {"type": "adaptive", **rest}:
            return {"thinking": ThinkingConfig.adaptive(display=_display(rest))}, None
        case {"type": "disabled", "budget_tokens": int() | None, **rest} if not rest:  # a budget of nothing (case 52)
            return {"thinking": ThinkingConfig.off()}, None
        case {"type": "disabled" | "between_tools", **rest} if not rest:
            return {"thinking": ThinkingConfig.off()}, None
        case _:
            raise _Misfit


def _display(rest: dict[Any, Any]) -> str | None:
    match rest:
        case {"display": str() | None as display, **more} if not more:
            return display
        case _ if not rest:
            return None
        case _:
            raise _Misfit


def _output_config(value: Any) -> Read:
    if not is_object(value):
        raise _Misfit
    rest = dict(value)
    fields: Fields = {}
    if isinstance(rest.get("effort"), str) and rest["effort"] in _EFFORTS:
        fields["effort"] = rest.pop("effort")
    given = as_object(rest.get("format"))
    if given.keys() == {"type", "schema"} and given["type"] == "json_schema" and is_object(given["schema"]):
        fields["output"] = OutputFormat(given["schema"])
        del rest["format"]
    return fields, rest or None


def _metadata(value: Any) -> Read:
    if not is_object(value):
        raise _Misfit
    rest = dict(value)
    metadata = {"user_id": rest.pop("user_id")} if isinstance(rest.get("user_id"), str) else {}
    return {"metadata": metadata}, rest or None


def _cache_control(value: Any) -> Read:
    if value not in ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "5m"}):
        raise _Misfit
    return {"cache": "provider"}, None


def _stop_sequences(value: Any) -> Read:
    if not is_list(value) or not all(isinstance(item, str) for item in value):
        raise _Misfit
    return {"stop_sequences": value}, None


def _scalar(field: str, *types: type) -> Reader:
    """The reader of a field that holds one plain value. `True` is no number."""

    def read(value: Any) -> Read:
        if type(value) not in types:
            raise _Misfit
        return {field: value}, None

    return read


_EFFORTS = frozenset(get_args(Effort)) - {"minimal"}  # the encoder has another word for it

_PARAMETERS: dict[str, Reader] = {
    "model": _scalar("model", str),
    "max_tokens": _scalar("max_tokens", int),
    "system": _system,
    "tool_choice": _tool_choice,
    "thinking": _thinking,
    "output_config": _output_config,
    "temperature": _scalar("temperature", float, int),
    "top_p": _scalar("top_p", float, int),
    "top_k": _scalar("top_k", int),
    "stop_sequences": _stop_sequences,
    "metadata": _metadata,
    "cache_control": _cache_control,
}
"""Parameter → what reads it; `_Misfit` where no field can hold the value whole."""

_NO_PARAMETERS = frozenset({"messages", "tools", "stream"})
"""Read elsewhere, or told by the caller of `encode`."""
