"""A `Request` as a chat completions call (OpenAI's API reference, "create chat completion"; each host's differences from `dialects.py`).

Strategy. Messages, tools and thinking are written by their own functions; here they become one body with a fixed order of keys and
bytes. A field at its default writes nothing. What the host has no key for is a problem if it would change the answer (top_k), and a
Notice if it is advice (a thinking budget, metadata). The same request gives the same bytes in every process.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from dragoman.errors import InvalidInputError, Problem
from dragoman.fragments import scrub_tree
from dragoman.message import Thinking
from dragoman.request import OutputFormat, ProviderTool, Request, ThinkingConfig, Tool, ToolNamed
from dragoman.wire.base import HTTPRequest
from dragoman.wire.json_values import as_object, as_string, is_finite
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.marks import add_marks
from dragoman.wire.openai_chat.messages_out import write_messages
from dragoman.wire.openai_chat.names import WIRE
from dragoman.wire.openai_chat.writer import WireObject, Writer
from dragoman.wire.openai_effort import effort_of
from dragoman.wire.settled import settled

__all__ = ["PATH", "encode"]

PATH: Final = "/chat/completions"

NO_PARAMETERS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""The schema of a tool without parameters."""

_MERGED: Final = frozenset({"metadata", "reasoning", "chat_template_kwargs"})
"""Keys that `extra_body` may complete key by key; of any other the standard field wins whole."""


def encode(request: Request, dialect: Dialect, *, stream: bool) -> HTTPRequest:
    """The call that asks for an answer. Raises InvalidInputError for what cannot be written."""
    _refuse_missing(request, dialect.label)
    w = Writer(dialect, model=request.model, keep_marks=request.cache != "off", thinking_as_text=request.foreign_thinking == "text")
    body: WireObject = {"model": request.model, "messages": write_messages(w, request)}
    if not body["messages"] and not w.problems:
        _refuse_missing(request.replace(messages=[]), dialect.label)
    _write_tools(w, request, body)
    if request.cache == "auto" and dialect.cache_marks:
        add_marks(body)
    _write_parameters(w, request, body)
    _write_thinking(w, request.thinking, request.effort, body)
    if request.output is not None:
        body["response_format"] = _write_output(request.output)
    _write_metadata(w, request, body)
    body["stream"] = stream
    if stream and dialect.stream_usage and "stream_options" not in request.extra_body:
        body["stream_options"] = {"include_usage": True}
    _add_extra_body(w, request.extra_body, body)
    if not stream:
        del body["stream"]
    if request.betas:
        w.note("betas_left_out", "beta names mean nothing to this protocol and are left out", "betas")
    headers = {"content-type": "application/json", "accept": "text/event-stream" if stream else "application/json"}
    headers |= {name.lower(): value for name, value in request.extra_headers.items()}
    data = _bytes(w, request, body)
    if w.problems:
        raise InvalidInputError(w.problems)
    sent = settled(request, body, max_tokens=dialect.max_tokens, effort=_sent_effort(body), stop="stop")
    return HTTPRequest(path=PATH, headers=headers, body=data, notices=w.notices(), settled=sent)


def _sent_effort(body: WireObject) -> str | None:
    """The effort that a body asks for, in whichever key the host has it; None also where thinking is off."""
    effort = as_string(body.get("reasoning_effort")) or as_string(as_object(body.get("reasoning")).get("effort"))
    return effort if effort and effort != "none" else None


def _refuse_missing(request: Request, label: str) -> None:
    """Raise for no model, or no message but system ones."""
    if request.model and any(message.role != "system" for message in request.messages):
        return
    from dragoman.history import required

    missing = required(request, label)
    raise InvalidInputError(missing, missing[0].message)


# ---- tools


def _write_tools(w: Writer, request: Request, body: WireObject) -> None:
    if not request.tools:
        return
    tools: list[WireObject] = []
    for index, tool in enumerate(request.tools):
        w.path = f"tools[{index}]"
        tools.append(_write_tool(w, tool))
    body["tools"] = tools
    choice = request.tool_choice
    if choice == "required_if_allowed":
        choice = "required"
    if isinstance(choice, ToolNamed):
        custom = any(isinstance(t, Tool) and t.name == choice.name and _is_custom(t) for t in request.tools)
        kind = "custom" if custom else "function"
        body["tool_choice"] = {"type": kind, kind: {"name": choice.name}}
    elif choice is not None:
        body["tool_choice"] = w.dialect.required if choice == "required" else choice
    if not request.parallel_tools and choice != "none":
        body["parallel_tool_calls"] = False


def _write_tool(w: Writer, tool: Tool | ProviderTool) -> WireObject:
    if isinstance(tool, ProviderTool):
        return w.finish({"type": tool.type, **tool.options}, tool.extra, tool.cache)
    own = tool.extra.get(WIRE, {})
    inner: WireObject = {"name": tool.name}
    if tool.description:
        inner["description"] = tool.description
    if _is_custom(tool):
        return w.finish({"type": "custom", "custom": {**inner, **as_object(own.get("custom"))}}, _without(tool, "custom"), tool.cache)
    inner["parameters"] = tool.input_schema or NO_PARAMETERS
    if tool.strict:
        inner["strict"] = True
    inner.update({key: value for key, value in as_object(own.get("function")).items() if key not in inner})
    return w.finish({"type": "function", "function": inner}, _without(tool, "function"), tool.cache)


def _is_custom(tool: Tool) -> bool:
    """Whether a tool takes free text instead of JSON: `extra["openai-chat"]["custom"]` says so (and may hold its `format`)."""
    return "custom" in tool.extra.get(WIRE, {})


def _without(tool: Tool, key: str) -> dict[str, dict[str, Any]]:
    return {wire: {k: v for k, v in values.items() if not (wire == WIRE and k == key)} for wire, values in tool.extra.items()}


# ---- parameters


def _write_parameters(w: Writer, request: Request, body: WireObject) -> None:
    if request.max_tokens is not None:
        body[w.dialect.max_tokens] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.top_k is not None:
        if w.dialect.top_k:
            body["top_k"] = request.top_k
        else:
            w.problem("top_k", f"{w.dialect.label} has no top_k", "leave it out, or use top_p", "top_k")
    if request.stop_sequences:
        body["stop"] = list(request.stop_sequences)


def _write_output(output: OutputFormat) -> WireObject:
    schema: WireObject = {"name": output.name, "schema": output.schema}
    if output.strict:
        schema["strict"] = True
    return {"type": "json_schema", "json_schema": schema}


def _write_metadata(w: Writer, request: Request, body: WireObject) -> None:
    rest = dict(request.metadata)
    if "user_id" in rest and w.dialect.user:
        body["user"] = rest.pop("user_id")
    if rest and w.dialect.metadata:
        body["metadata"] = rest
    elif rest:
        w.note("metadata_left_out", f"{w.dialect.label} takes no metadata {', '.join(rest)}", "metadata")


def _add_extra_body(w: Writer, extra: dict[str, Any], body: WireObject) -> None:
    for key, value in extra.items():
        if key not in body:
            body[key] = value
            continue
        clashes = value != body[key]
        if key in _MERGED and isinstance(value, dict) and isinstance(body[key], dict):
            ours: dict[str, Any] = body[key]
            body[key] = {**value, **ours}
            clashes = any(name in ours and ours[name] != entry for name, entry in cast("dict[str, Any]", value).items())
        if clashes:
            w.note("extra_body_ignored", f"a field of the request wins over `{key}` in extra_body", f"extra_body.{key}")


# ---- thinking


def _write_thinking(w: Writer, thinking: ThinkingConfig | None, effort: str | None, body: WireObject) -> None:
    w.path = "thinking"
    dialect = w.dialect
    if effort is not None:
        effort = dialect.efforts.get(effort, effort)
    if thinking is None:
        if effort is not None:
            body["reasoning_effort"] = effort
        return
    if thinking.display is not None and dialect.thinking != "object":
        w.note("thinking_display_left_out", f"{dialect.label} cannot be told how much of its thinking to show")
    if dialect.thinking == "object":
        body["reasoning"] = _reasoning_object(w, thinking, effort)
    elif dialect.thinking == "effort":
        written = "none" if thinking.mode == "off" else effort or _effort_of_budget(w, thinking.budget_tokens)
        if written is not None:
            body["reasoning_effort"] = written
    else:
        on = thinking.mode != "off"
        if dialect.thinking == "switch":
            body["thinking"] = {"type": "enabled" if on else "disabled"}
        else:
            body["chat_template_kwargs"] = {"enable_thinking": on}
        if thinking.budget_tokens is not None:
            w.note("thinking_budget_left_out", f"{dialect.label} can turn thinking on or off, but takes no budget")
        if effort is not None and on:
            body["reasoning_effort"] = effort


def _reasoning_object(w: Writer, thinking: ThinkingConfig, effort: str | None) -> WireObject:
    """OpenRouter's `reasoning`: enabled, an effort or a budget, never two of them."""
    wire: WireObject
    if thinking.mode == "off":
        wire = {"enabled": False}
    elif thinking.budget_tokens is not None:
        wire = {"max_tokens": thinking.budget_tokens}
        if effort is not None:
            w.note("effort_left_out", f"{w.dialect.label} takes a thinking budget or an effort, not both: the effort is left out", "effort")
    else:
        wire = {"enabled": True} if effort is None else {"effort": effort}
    if thinking.display == "omitted":
        wire["exclude"] = True
    return wire


def _effort_of_budget(w: Writer, budget: int | None) -> str | None:
    if budget is None:
        return None
    effort = effort_of(budget)
    w.note("thinking_budget_as_effort", f"{w.dialect.label} takes no thinking budget: reasoning_effort {effort} is sent")
    return effort


# ---- bytes


def _bytes(w: Writer, request: Request, body: WireObject) -> bytes:
    try:
        data = msgspec.json.encode(body)
    except UnicodeEncodeError:
        _refuse_broken_thinking(w, request)
        data = msgspec.json.encode(scrub_tree(body))
    except TypeError as error:
        w.problem("not_json", f"the request holds a value that JSON has no form for: {error}", "use plain JSON values", "request")
        return b""
    if b"null" in data and not is_finite(body):  # msgspec writes NaN as null
        w.problem("not_json", "the request holds NaN or an infinity, which JSON has no form for", "use finite numbers", "request")
    return data


def _refuse_broken_thinking(w: Writer, request: Request) -> None:
    """Lone surrogates become U+FFFD, but not in signed thinking, which may not be changed."""
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            if isinstance(block, Thinking) and block.signature and w.dialect.thinking_details:
                try:
                    block.text.encode()
                except UnicodeEncodeError:
                    path = f"messages[{index}].content[{place}]"
                    w.problems.append(Problem(path, "surrogate", "signed thinking holds half a character", "leave this turn out"))
