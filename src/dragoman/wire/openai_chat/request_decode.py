"""A recorded or received chat body as a `Request`: the other way round from `encode`, for gateways and tests.

Strategy. A value is read into a field only if `encode` for the same dialect writes it back the same; every other parameter goes
to `extra_body` as it is, every other key of a message, call or tool to its `extra`, every other content part is an Opaque. So whatever a
client sends, encoding the request gives the same JSON meaning; only the closed list of the design may differ.

What is not the dialect at all (no messages, an unknown role, a call without a function) is refused, all of it at once, with paths.
"""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

from dragoman.errors import InvalidInputError, Problem
from dragoman.message import (
    Extra,
)
from dragoman.request import Effort, OutputFormat, ProviderTool, Request, ThinkingConfig, Tool, ToolNamed
from dragoman.wire.decoder import load_json
from dragoman.wire.json_values import as_object, as_string, is_list, is_object
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.encode import NO_PARAMETERS
from dragoman.wire.openai_chat.messages_in import read_messages
from dragoman.wire.openai_chat.names import WIRE
from dragoman.wire.openai_chat.parts_in import read_cache

__all__ = ["decode_request"]

Fields: TypeAlias = dict[str, Any]
"""Fields of a `Request`."""

_SWITCHES = {
    "switch": {"{'type': 'enabled'}": True, "{'type': 'disabled'}": False},
    "template": {"{'enable_thinking': True}": True, "{'enable_thinking': False}": False},
}
"""The values of `thinking` and `chat_template_kwargs` that only turn thinking on or off."""

_NO_PARAMETERS = frozenset({"messages", "tools", "stream"})
_FUNCTION_ID = "call_function_call_"
"""Begins the id that stands for a call of the form before tools, which has none."""


def decode_request(body: bytes, dialect: Dialect) -> Request:
    """The request that a client sent. Raises InvalidInputError for what is not the dialect."""
    try:
        value = load_json(body)
    except ValueError as error:
        raise InvalidInputError([Problem("body", "not_json", f"the body is not JSON: {error}", "send a JSON object")]) from None
    if not is_object(value):
        raise InvalidInputError([Problem("body", "not_an_object", "the body is not a JSON object", "send a JSON object")])
    reader = _Reader(dialect, value)
    request = reader.request()
    if reader.problems:
        raise InvalidInputError(reader.problems)
    return request


class _Reader:
    """Reads one body."""

    def __init__(self, dialect: Dialect, body: dict[str, Any]) -> None:
        self.dialect = dialect
        self.body = body
        self.model = body["model"] if isinstance(body.get("model"), str) else ""
        self.problems: list[Problem] = []

    def request(self) -> Request:
        messages, system = read_messages(self.body.get("messages"), self.dialect, self.model, self.problems)
        fields: Fields = {"model": self.model, "system": system, "extra_body": {}}
        for name, value in self.body.items():
            if name not in _NO_PARAMETERS and name != "model" and value is not None:
                self._parameter(name, value, fields)
        self._tools(fields)
        return Request(messages, **fields)

    # ---- parameters

    def _parameter(self, name: str, value: Any, fields: Fields) -> None:
        read = self._read(name, value)
        if read is None:
            fields["extra_body"][name] = value
            return
        for key, item in read.items():
            fields[key] = {**fields.get(key, {}), **item} if key == "metadata" else item

    def _read(self, name: str, value: Any) -> Fields | None:
        """The fields that say this parameter wholly, or None if none do."""
        dialect, number = self.dialect, isinstance(value, int | float) and not isinstance(value, bool)
        whole = number and isinstance(value, int)
        match name:
            case "max_tokens" | "max_completion_tokens" if name == dialect.max_tokens and whole:
                return {"max_tokens": value}
            case "temperature" | "top_p" if number:
                return {name: value}
            case "top_k" if dialect.top_k and whole:
                return {"top_k": value}
            case "stop" if isinstance(value, str) or (is_list(value) and all(isinstance(item, str) for item in value)):
                return {"stop_sequences": [value] if isinstance(value, str) else value}
            case "user" if dialect.user and isinstance(value, str):
                return {"metadata": {"user_id": value}}
            case "metadata" if dialect.metadata and is_object(value) and "user_id" not in value:
                return {"metadata": value}
            case "stream_options" if dialect.stream_usage and value == {"include_usage": True}:
                return {}
            case "response_format":
                return self._output(as_object(value))
            case "reasoning_effort" if dialect.thinking == "effort" and value == "none":
                return {"thinking": ThinkingConfig.off()}
            case "reasoning_effort" if isinstance(value, str) and value in get_args(Effort) and value not in dialect.efforts:
                return {"effort": value}
            case "reasoning" if dialect.thinking == "object":
                return self._reasoning(value)
            case "thinking" if dialect.thinking == "switch" and value in ({"type": "enabled"}, {"type": "disabled"}):
                return {"thinking": ThinkingConfig.off() if value["type"] == "disabled" else ThinkingConfig.adaptive()}
            case "chat_template_kwargs" if dialect.thinking == "template" and value in (
                {"enable_thinking": True},
                {"enable_thinking": False},
            ):
                return {"thinking": ThinkingConfig.adaptive() if value["enable_thinking"] else ThinkingConfig.off()}
            case _:
                return None

    def _reasoning(self, value: Any) -> Fields | None:
        if "reasoning_effort" in self.body:  # two of them: as they stand
            return None
        if value == {"enabled": False}:
            return {"thinking": ThinkingConfig.off()}
        if value == {"enabled": True}:
            return {"thinking": ThinkingConfig.adaptive()}
        budget = as_object(value).get("max_tokens")
        if is_object(value) and value.keys() == {"max_tokens"} and isinstance(budget, int) and budget > 0:
            return {"thinking": ThinkingConfig.budget(budget)}
        return None

    def _output(self, value: dict[str, Any]) -> Fields | None:
        schema = as_object(value.get("json_schema"))
        fits = value.keys() == {"type", "json_schema"} and value["type"] == "json_schema" and schema.keys() <= {"name", "schema", "strict"}
        if not fits or not isinstance(schema.get("name"), str) or not is_object(schema.get("schema")):
            return None
        return {"output": OutputFormat(schema["schema"], name=schema["name"], strict=schema.get("strict") is True)}

    # ---- tools

    def _tools(self, fields: Fields) -> None:
        given = self.body.get("tools")
        if given is None or given == []:
            return
        if not is_list(given):
            self._problem("tools", "tools", "this is no list of tools", "send a list")
            return
        fields["tools"] = tools = [self._tool(as_object(tool), f"tools[{index}]") for index, tool in enumerate(given)]
        extra = fields["extra_body"]
        choice = self._choice(extra.get("tool_choice"), {tool.name for tool in tools if isinstance(tool, Tool)})
        if choice is not None:
            fields["tool_choice"] = choice
            del extra["tool_choice"]
        if extra.get("parallel_tool_calls") is False and choice != "none":
            fields["parallel_tools"] = False
            del extra["parallel_tool_calls"]

    def _choice(self, value: Any, names: set[str]) -> str | ToolNamed | None:
        if value in ("auto", "none"):
            return str(value)
        if value == self.dialect.required:
            return "required"
        kind = as_object(value).get("type")
        if kind not in ("function", "custom"):
            return None
        inner = as_object(as_object(value).get(kind))
        name = as_string(inner.get("name"))
        plain = len(value) == 2 and inner.keys() == {"name"} and bool(name)
        return ToolNamed(name) if plain and (kind == "function" or name in names) else None

    def _tool(self, tool: dict[str, Any], path: str) -> Tool | ProviderTool:
        kind = tool.get("type")
        if not isinstance(kind, str):
            self._problem(path, "tools", "a tool has no type", 'use `{"type": "function", "function": {…}}`')
            return ProviderTool("", "")
        cache, rest = read_cache({key: value for key, value in tool.items() if key not in ("type", kind)}, self.dialect)
        inner = tool.get(kind)
        if kind == "custom" and is_object(inner) and isinstance(inner.get("name"), str):
            own = {key: value for key, value in inner.items() if key != "name" and (key != "description" or not isinstance(value, str))}
            return Tool(inner["name"], as_string(inner.get("description")), cache=cache, extra={WIRE: {**rest, "custom": own}})
        if kind != "function" or not is_object(inner) or not isinstance(inner.get("name"), str):
            return ProviderTool(kind, str(tool.get("name") or kind), {key: value for key, value in tool.items() if key != "type"})
        types: dict[str, type] = {"name": str, "description": str, "parameters": dict, "strict": bool}
        function = {key: value for key, value in inner.items() if value is not None and not isinstance(value, types.get(key, ()))}
        schema = as_object(inner.get("parameters"))
        return Tool(
            inner["name"],
            as_string(inner.get("description")),
            {} if schema == NO_PARAMETERS else schema,
            strict=inner.get("strict") is True,
            cache=cache,
            extra=_extra({**rest, "function": function} if function else rest),
        )

    def _problem(self, path: str, rule: str, message: str, fix: str) -> None:
        self.problems.append(Problem(path, rule, message, fix))


def _extra(own: dict[str, Any]) -> Extra:
    return {WIRE: own} if own else {}
