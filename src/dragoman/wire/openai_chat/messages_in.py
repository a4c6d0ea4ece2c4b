"""The messages of a received chat body as ours: the other way round from `messages_out`.

Strategy. One message becomes one of ours; tool messages that follow each other become one user turn. The first system message is the
request's system text if nothing but its text would be lost; any other stays a message, with its role and name in `extra`. A key of
an assistant message is read into a block only where the dialect writes it back, else it stays in the message's `extra`. An assistant
turn that holds what only this dialect can read gets an `origin` of it, so that a gateway's encoder of another one leaves that out.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import Problem
from dragoman.fragments import parse_input
from dragoman.message import (
    Audio,
    Block,
    Citation,
    Extra,
    FileId,
    InvalidToolUse,
    Message,
    RedactedThinking,
    Refusal,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.wire.client_turns import client_origin
from dragoman.wire.json_values import as_object, as_objects, as_string, is_list, is_object
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.names import ERROR_PREFIX, INVALID_JSON, MEDIA_STAYS, WIRE
from dragoman.wire.openai_chat.parts_in import read_cache, read_content
from dragoman.wire.openai_chat.reasoning import DETAIL_CONTENT

__all__ = ["read_messages"]

_FIELDS = ("reasoning", "reasoning_content")
_FUNCTION_ID = "call_function_call_"
"""Begins the id that stands for a call of the form before tools, which has none."""


def read_messages(given: Any, dialect: Dialect, model: str, problems: list[Problem]) -> tuple[list[Message], str | list[Text]]:
    """The messages, and the system text before them; what is not the dialect is added to `problems`."""
    if not is_list(given):
        problems.append(Problem("messages", "required", "there is no list of messages", "send `messages`"))
        return [], ""
    return _Reader(dialect, model, problems).messages(given)


class _Reader:
    """Reads the messages of one body."""

    def __init__(self, dialect: Dialect, model: str, problems: list[Problem]) -> None:
        self.dialect = dialect
        self.model = model
        self.problems = problems
        self.functions = 0  # calls of the form before tools

    def messages(self, given: list[Any]) -> tuple[list[Message], str | list[Text]]:
        messages: list[Message] = []
        system: str | list[Text] = ""
        for index, item in enumerate(given):
            message = self._message(as_object(item), f"messages[{index}]")
            if message is None:
                continue
            texts = [block for block in message.content if isinstance(block, Text)]
            if index == 0 and message.role == "system" and not message.extra and len(texts) == len(message.content):
                system = texts[0].text if isinstance(item.get("content"), str) else texts
            elif message.role == "user" and messages and _only_results(message) and _only_results(messages[-1]):
                messages[-1] = Message("user", [*messages[-1].content, *message.content])
            else:
                messages.append(message)
        return messages, system

    def _message(self, data: dict[str, Any], path: str) -> Message | None:
        role = data.get("role")
        if role in ("tool", "function"):
            return self._result(data, path)
        rest = {key: value for key, value in data.items() if key not in ("role", "content") and value is not None}
        content = self._content(data, path)
        if role == "assistant":
            return self._assistant(content, rest, path)
        if role in ("system", "developer"):
            own = rest if role == self.dialect.role_of_system(self.model) else {**rest, "role": role}
            return Message("system", content, extra=_extra(own))
        if role == "user":
            return Message("user", content, extra=_extra(rest))
        self._problem(f"{path}.role", "role", "this is no role of chat completions", "use system, developer, user, assistant or tool")
        return None

    def _content(self, data: dict[str, Any], path: str) -> list[Block]:
        content = read_content(data.get("content"), self.dialect)
        if content is None:
            self._problem(f"{path}.content", "content", "this is neither text nor a list of parts", "send a string or a list of objects")
        return content or []

    def _result(self, data: dict[str, Any], path: str) -> Message:
        read = ("role", "content", "name") if data["role"] == "function" else ("role", "content", "tool_call_id")
        content = self._content(data, path)
        is_error = False
        if content and isinstance(content[0], Text) and content[0].text.startswith(ERROR_PREFIX):
            first = content[0]
            if isinstance(data.get("content"), str):
                content, is_error = [Text(first.text.removeprefix(ERROR_PREFIX))], True
            elif first == Text(ERROR_PREFIX):
                content, is_error = content[1:], True
        id = data.get("tool_call_id") or (f"{_FUNCTION_ID}{self.functions}" if data["role"] == "function" else "")
        if not isinstance(id, str) or not id:
            self._problem(f"{path}.tool_call_id", "required", "a tool message names no call", "send tool_call_id")
            id = ""
        cache, rest = read_cache({key: value for key, value in data.items() if key not in read}, self.dialect)
        if self.dialect.tool_media == "refused" and not all(isinstance(block, Text) for block in content):
            rest[MEDIA_STAYS] = True
        return Message("user", [ToolResult(id, content, is_error=is_error, cache=cache, extra=_extra(rest))])

    def _assistant(self, content: list[Block], rest: dict[str, Any], path: str) -> Message:
        blocks: list[Block] = []
        kept: dict[str, Any] = {}
        for key, value in rest.items():
            read = self._assistant_key(key, value, path)
            if read is None:
                kept[key] = value
            elif key in ("reasoning", "reasoning_content", "reasoning_details"):
                content = [*read, *content]
            elif key == "annotations":
                content = _with_citations(content, as_objects(value))
            else:
                blocks += read
        said = [*content, *blocks]
        return Message("assistant", said, origin=client_origin(said, WIRE), extra=_extra(kept))

    def _assistant_key(self, key: str, value: Any, path: str) -> list[Block] | None:
        """The blocks that a key of an assistant message means, or None if it is to be kept as it is."""
        dialect = self.dialect
        match key:
            case "reasoning" | "reasoning_content" if isinstance(value, str) and dialect.thinking_field in (
                "reasoning",
                "reasoning_content",
            ):
                return [Thinking(value, extra={WIRE: {"field": key}})] if value else None
            case "reasoning_details" if dialect.thinking_details and is_list(value):
                details = [_detail(as_object(detail)) for detail in value]
                return None if None in details else [detail for detail in details if detail is not None]
            case "annotations" if value == [] or (dialect.annotations and all(_annotation(a) for a in as_objects(value))):
                return []
            case "refusal" if dialect.refusal and isinstance(value, str):
                return [Refusal(value)] if value else []
            case "audio" if is_object(value) and value.keys() == {"id"}:
                id = as_string(value["id"])
                return [Audio(FileId(id), extra={WIRE: {"id": id}})]
            case "function_call" if is_object(value):
                self.functions += 1
                return [self._call(f"{_FUNCTION_ID}{self.functions}", value, {"kind": "function_call"})]
            case "tool_calls" if is_list(value):
                return [self._tool_call(as_object(call), f"{path}.tool_calls[{index}]") for index, call in enumerate(value)]
            case _:
                return None

    def _tool_call(self, call: dict[str, Any], path: str) -> Block:
        kind = call.get("type", "function")
        rest = {key: value for key, value in call.items() if key not in ("id", "type", "function", "custom", "index")}
        inner = as_object(call.get("custom" if kind == "custom" else "function"))
        id = call.get("id")
        if not isinstance(id, str) or not isinstance(inner.get("name"), str):
            self._problem(path, "tool_calls", "a call has no id or names no tool", "send `id` and `function.name`")
            return ToolUse("", "", {})
        if kind == "custom":
            return ToolUse(id, inner["name"], {"input": inner.get("input") or ""}, extra={WIRE: {**rest, "kind": "custom"}})
        return self._call(id, inner, rest)

    def _call(self, id: str, function: dict[str, Any], own: dict[str, Any]) -> Block:
        given = function.get("arguments") or ""
        raw = given if isinstance(given, str) else ""
        value = given if is_object(given) else parse_input(raw)
        name = as_string(function.get("name"))
        if is_object(value):
            if value.keys() != {INVALID_JSON} or not isinstance(value[INVALID_JSON], str):
                return ToolUse(id, name, value, extra=_extra(own))
            raw = value[INVALID_JSON]
            value = parse_input(raw)
        reason = value if isinstance(value, str) else "invalid_json"
        return InvalidToolUse(id, name, raw, reason=reason, extra=_extra(own))

    def _problem(self, path: str, rule: str, message: str, fix: str) -> None:
        self.problems.append(Problem(path, rule, message, fix))


def _detail(detail: dict[str, Any]) -> Thinking | RedactedThinking | None:
    """A `reasoning_details` entry as a block; None for a shape that would not be written back the same."""
    own = {key: value for key, value in detail.items() if key not in DETAIL_CONTENT}
    if any(not isinstance(detail.get(key, ""), str) for key in DETAIL_CONTENT):
        return None
    extra: Extra = {WIRE: {"detail": own}}
    if detail.get("data"):
        return RedactedThinking(detail["data"], extra=extra) if "signature" not in detail else None
    key = "summary" if detail.get("type") == "reasoning.summary" else "text"
    return Thinking(detail.get(key) or "", signature=detail.get("signature") or "", extra=extra)


def _annotation(annotation: dict[str, Any]) -> bool:
    kind = annotation.get("type")
    return kind in ("url_citation", "file") and annotation.keys() == {"type", kind} and is_object(annotation[kind])


def _with_citations(content: list[Block], annotations: list[dict[str, Any]]) -> list[Block]:
    """The first text with these citations; without a text, an empty one that has them."""
    citations = [Citation(annotation["type"], annotation[annotation["type"]]) for annotation in annotations]
    if not citations:
        return content
    place = next((place for place, block in enumerate(content) if isinstance(block, Text)), None)
    if place is None:
        return [*content, Text("", citations=citations)]
    text = content[place]
    assert isinstance(text, Text)
    return [*content[:place], Text(text.text, citations=citations, cache=text.cache, extra=text.extra), *content[place + 1 :]]


def _only_results(message: Message) -> bool:
    return message.role == "user" and bool(message.content) and all(isinstance(block, ToolResult) for block in message.content)


def _extra(own: dict[str, Any]) -> Extra:
    return {WIRE: own} if own else {}
