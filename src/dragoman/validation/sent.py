"""What of a conversation reaches the provider: which blocks the encoders leave out, and whether the provider keeps the rest itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from dragoman.message import (
    Audio,
    Block,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
)
from dragoman.request import Request

__all__ = ["are_sent", "has_content", "is_foreign", "is_hoistable", "server_holds_history"]

_SERVER_STATE = ("previous_message_id", "previous_response_id", "conversation")
_DIALECTS_OWN = (RedactedThinking, ServerToolUse, ServerToolResult)


def has_content(blocks: Iterable[Block]) -> bool:
    """Whether any block is sent: empty and white-space-only text is not, nor is thinking that nobody signed."""
    for block in blocks:
        if isinstance(block, Text | Refusal):
            if block.text and not block.text.isspace():
                return True
        elif not isinstance(block, Thinking) or block.signature:
            return True
    return False


def is_foreign(origin: Origin | None, wire: str) -> bool:
    """Whether a message was written in another dialect than `wire`."""
    return origin is not None and origin.wire != wire


def are_sent(blocks: Iterable[Block], origin: Origin | None, *, wire: str, thinking_as_text: bool) -> bool:
    """Whether any of these blocks of a message is sent; what is empty, unsigned or another dialect's own is dropped."""
    foreign = is_foreign(origin, wire)
    for block in blocks:
        if type(block) is Text or type(block) is Refusal:
            if block.text and not block.text.isspace():
                return True
        elif type(block) is ToolUse:
            return True
        elif isinstance(block, Thinking):
            if (block.signature and not foreign) or (thinking_as_text and block.text and not block.text.isspace()):
                return True
        elif isinstance(block, Opaque):
            if block.wire == wire:
                return True
        elif isinstance(block, Audio) and foreign:
            if block.transcript and not block.transcript.isspace():
                return True
        elif not (foreign and isinstance(block, _DIALECTS_OWN)):
            return True
    return False


def is_hoistable(message: Message, wire: str) -> bool:
    """Whether a system message can become part of the system text: one that changes the tools or has an `extra` of its own cannot."""
    return not message.extra.get(wire) and all(type(block) is Text for block in message.content)


def server_holds_history(request: Request) -> bool:
    """Whether the request continues a conversation that the provider keeps, so its history need not be complete."""
    body = request.extra_body
    if not body:
        return False
    thread = body.get("thread")
    continued = isinstance(thread, dict) and bool(cast("dict[str, Any]", thread).get("previous_message_id"))
    return continued or any(body.get(key) for key in _SERVER_STATE)
