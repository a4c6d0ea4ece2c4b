"""What a dialect demands of a request, as data: one row per wire name.

Strategy. Whatever every provider refuses is checked for all of them; the rest is a switch here, so that a new dialect is a new row. A
name without a row gets only what all have in common.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

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

__all__ = ["TOOL_NAME", "Dialect", "Holder", "dialect_of"]

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
"""What a tool may be called in the Messages API (anthropic.md §7), and in all dialects at once."""

_ANY_TOOL_NAME = re.compile(r"[^\s\x00-\x1f]{1,256}")
"""What no dialect takes as a name is outside of this; some take dots and colons."""

Holder: TypeAlias = Literal["user", "assistant", "system", "tool result"]
"""What a block can be part of."""

_EVERYWHERE = frozenset({Image, Audio, Video, Document, Opaque})
_SHARED: dict[Holder, frozenset[type]] = {
    "user": _EVERYWHERE | {Text, Refusal, ToolResult, ServerToolResult},
    "assistant": _EVERYWHERE | {Text, Refusal, Thinking, RedactedThinking, ToolUse, InvalidToolUse, ServerToolUse, ServerToolResult},
    "system": frozenset({Text, Opaque}),
    "tool result": _EVERYWHERE | {Text},
}


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """The demands of one dialect."""

    label: str
    """How the provider is called in texts."""
    claude: bool = False
    """The rules of the Messages API and of the catalogue's models apply."""
    tool_name: re.Pattern[str] = _ANY_TOOL_NAME
    """What a tool may be called."""
    blocks: dict[Holder, frozenset[type]]
    """Which blocks a message of each role and a tool result may hold."""


_DIALECTS = {
    "anthropic": Dialect(
        label="Anthropic",
        claude=True,
        tool_name=TOOL_NAME,
        blocks={holder: blocks - {Audio, Video} for holder, blocks in _SHARED.items()},
    ),
    "openai-chat": Dialect(label="OpenAI", blocks=_SHARED),
    "openai-responses": Dialect(label="OpenAI", blocks=_SHARED),
    "gemini": Dialect(label="Gemini", blocks=_SHARED),
    "bedrock": Dialect(label="Bedrock", blocks=_SHARED),
}


def dialect_of(name: str) -> Dialect:
    """The row of a wire by its name (`anthropic` …); an unknown name gets the demands that all share."""
    return _DIALECTS.get(name) or Dialect(label=name.capitalize() or "The", blocks=_SHARED)
