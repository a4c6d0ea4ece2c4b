"""How providers say that a conversation is too long. There is no common code, so the wordings are a table, with what they must not match.

Seen: Anthropic and Bedrock ("prompt is too long", "Input is too long for requested model"), OpenAI, OpenRouter and sglang ("maximum
context length"), xAI ("maximum prompt length"), Gemini ("input token count … exceeds the maximum number of tokens allowed"), llama.cpp
("exceeds the available context size"). A complaint about `max_tokens` alone is a wrong parameter, not a long conversation.
"""

from __future__ import annotations

import re

__all__ = ["is_overflow"]

_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "context_window_exceeded"})
_PATTERNS = re.compile(
    r"prompt is too (?:long|large)|prompt too long"
    r"|input is too long"
    r"|input length and `?max_tokens`? exceed context limit"
    r"|max(?:imum)? context length|maximum prompt length"
    r"|exceed(?:s|ed|ing)? (?:the |this |your )?(?:model(?:'?s)? )?(?:max(?:imum)? )?context (?:length|window|size|limit)"
    r"|context (?:length|window|size|limit) (?:is |was |has been )?exceeded"
    r"|exceeds? the available context size"
    r"|input token count \(?\d*\)? ?exceeds the maximum number of tokens"
    r"|(?:conversation|messages?|request|input|prompt) (?:is|are) too (?:long|large) for (?:the|this) (?:model'?s )?context",
    re.IGNORECASE,
)


def is_overflow(message: str, *codes: str) -> bool:
    """Whether an error's message or any of its machine codes says that the input does not fit the context window."""
    return any(code in _CODES for code in codes) or _PATTERNS.search(message) is not None
