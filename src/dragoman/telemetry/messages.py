"""Our messages in the structured form of the conventions: roles and typed parts (`gen-ai-input-messages.json` and its siblings).

Strategy. One table from block to part. What proves or hides something stays out, whatever gates are open: signatures, redacted and
encrypted thinking, the encrypted passages of server tools, whole blocks of a kind we do not know. They are no content anybody can
read, and a trace is no place from which they could be replayed. Parts that the schemas do not know have a `type` of their own, which
they allow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dragoman.message import (
    Audio,
    Base64,
    Block,
    Document,
    FileId,
    Image,
    InvalidToolUse,
    Message,
    Opaque,
    Parts,
    PlainText,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Source,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
    Video,
)
from dragoman.request import ProviderTool, Request, Tool
from dragoman.response import Finish
from dragoman.wire.json_values import is_list, is_object

__all__ = ["Part", "RoleParts", "finish_reason", "input_messages", "output_message", "system_parts", "tool_definitions"]

Part: TypeAlias = dict[str, Any]
RoleParts: TypeAlias = tuple[str, list[Part]]
"""A message: its role and its parts."""

_FINISH: dict[Finish | None, str] = {
    "stop": "stop",
    "length": "length",
    "tool_use": "tool_call",
    "refusal": "content_filter",
    "other": "stop",
    None: "error",
}
"""Why a message ended, in the words of `gen-ai-output-messages.json`. None: it did not."""


def finish_reason(finish: Finish | None) -> str:
    """The schema's word for how an answer ended; None: it was cut off."""
    return _FINISH[finish]


def system_parts(request: Request) -> list[Part]:
    """The system prompt of the request."""
    system = request.system
    texts = [system] if isinstance(system, str) else [part.text for part in system]
    return [_text(text) for text in texts if text]


def input_messages(request: Request) -> list[RoleParts]:
    """The conversation. Tool results have a role of their own, so a user turn with both becomes two messages, results first."""
    result: list[RoleParts] = []
    for message in request.messages:
        results = [block for block in message.content if isinstance(block, ToolResult)]
        others = [block for block in message.content if not isinstance(block, ToolResult)]
        if results:
            result.append(("tool", [_part(block) for block in results]))
        if others or not results:
            result.append((message.role, [_part(block) for block in others]))
    return result


def output_message(message: Message) -> RoleParts:
    """The answer, as far as it came."""
    return "assistant", [_part(block) for block in message.content]


def tool_definitions(tools: Sequence[Tool | ProviderTool]) -> list[Part]:
    """The tools that the model could call."""
    return [_tool(tool) for tool in tools]


def _tool(tool: Tool | ProviderTool) -> Part:
    if isinstance(tool, ProviderTool):
        return {"type": tool.type, "name": tool.name}
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.input_schema}


# ---- blocks


def _text(text: str) -> Part:
    return {"type": "text", "content": text}


def _media(modality: str, source: Source) -> Part:
    match source:
        case Base64(media_type, data):
            return {"type": "blob", "modality": modality, "mime_type": media_type, "content": data}
        case Url(url):
            return {"type": "uri", "modality": modality, "uri": url}
        case FileId(id):
            return {"type": "file", "modality": modality, "file_id": id}
        case PlainText(text):
            return _text(text)
        case Parts(content):
            return {"type": modality, "parts": [_part(block) for block in content]}


def _document(block: Document) -> Part:
    part = _media("document", block.source)
    return {**part, "title": block.title} if block.title else part


def _audio(block: Audio) -> Part:
    part = _media("audio", block.source)
    return {**part, "transcript": block.transcript} if block.transcript else part


def _invalid_use(block: InvalidToolUse) -> Part:
    return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.raw, "invalid": block.reason}


def _result(block: ToolResult) -> Part:
    plain = all(isinstance(part, Text) for part in block.content)
    response: object = block.text if plain else [_part(part) for part in block.content]
    part: Part = {"type": "tool_call_response", "id": block.tool_use_id, "response": response}
    return {**part, "is_error": True} if block.is_error else part


def _server_use(block: ServerToolUse) -> Part:
    call = {"type": block.name, "arguments": block.input}
    return {"type": "server_tool_call", "id": block.id, "name": block.name, "server_tool_call": call}


def _server_result(block: ServerToolResult) -> Part:
    response = {"type": block.kind, "content": _readable(block.content)}
    return {"type": "server_tool_call_response", "id": block.tool_use_id, "server_tool_call_response": response}


_PARTS: dict[type[Block], Callable[[Any], Part]] = {
    Text: lambda block: _text(block.text),
    Refusal: lambda block: {"type": "refusal", "content": block.text},
    Image: lambda block: _media("image", block.source),
    Audio: _audio,
    Video: lambda block: _media("video", block.source),
    Document: _document,
    Thinking: lambda block: {"type": "reasoning", "content": block.text},
    RedactedThinking: lambda _: {"type": "redacted_reasoning"},
    ToolUse: lambda block: {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.input},
    InvalidToolUse: _invalid_use,
    ToolResult: _result,
    ServerToolUse: _server_use,
    ServerToolResult: _server_result,
    Opaque: lambda block: {"type": f"{block.wire}.{block.data.get('type', 'unknown')}"},
}


def _part(block: Block) -> Part:
    return _PARTS[type(block)](block)


def _readable(value: Any) -> Any:
    """A provider's own value without what only the provider can read."""
    if is_object(value):
        return {key: _readable(item) for key, item in value.items() if not _is_sealed(key)}
    if is_list(value):
        return [_readable(item) for item in value]
    return value


def _is_sealed(key: str) -> bool:
    return key.startswith(("encrypted", "redacted")) or "signature" in key.lower()
