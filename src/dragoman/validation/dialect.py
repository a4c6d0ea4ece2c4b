"""What a dialect demands of a request, as data: one row per wire name.

Strategy. Whatever every provider refuses is checked for all of them; the rest is a switch here, so that a new dialect is a new row. A
name without a row gets only what all have in common.
"""

from __future__ import annotations

import msgspec

from dragoman.message import (
    Audio,
    Document,
    Image,
    InvalidToolUse,
    Opaque,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Video,
)

__all__ = ["Dialect", "dialect_of"]

_USER = frozenset({Text, Image, Audio, Video, Document, ToolResult, Opaque, Refusal, ServerToolResult})
_ASSISTANT = frozenset(
    {
        Text,
        Refusal,
        Thinking,
        RedactedThinking,
        ToolUse,
        InvalidToolUse,
        ServerToolUse,
        ServerToolResult,
        Opaque,
        Image,
        Audio,
        Video,
        Document,
    }
)


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The demands of one dialect."""

    label: str
    """How the provider is called in texts."""
    claude: bool = False
    """The rules of the Messages API and of the catalogue's models apply."""
    user: frozenset[type] = _USER
    """Blocks that a user turn may hold."""
    assistant: frozenset[type] = _ASSISTANT
    result: frozenset[type] = frozenset({Text, Image, Audio, Video, Document, Opaque})
    """Blocks that a tool result may hold."""


_DIALECTS = {
    "anthropic": Dialect(
        label="Anthropic",
        claude=True,
        user=_USER - {Audio, Video},
        assistant=_ASSISTANT - {Audio, Video},
        result=frozenset({Text, Image, Document, Opaque}),
    ),
    "openai-chat": Dialect(label="OpenAI"),
    "openai-responses": Dialect(label="OpenAI"),
    "gemini": Dialect(label="Gemini"),
    "bedrock": Dialect(label="Bedrock"),
}


def dialect_of(name: str) -> Dialect:
    """The row of a wire by its name (`anthropic` …); an unknown name gets the demands that all share."""
    return _DIALECTS.get(name) or Dialect(label=name.capitalize() or "The")
