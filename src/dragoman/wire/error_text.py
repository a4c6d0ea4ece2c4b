"""The words of a provider's error: fixed beginnings that can be searched for, the server's message cut short, no key in any of it."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["MESSAGE_LIMIT", "error_text", "redact"]

MESSAGE_LIMIT = 300
"""Characters of the server's own message that an error's text quotes. The whole is in `error.body`."""

_KEY = re.compile(
    r"(?i)\b(?:sk|pk|rk|gsk|xai|csk|pplx|r8|hf)[-_][a-z0-9][a-z0-9_\-]{7,}[a-z0-9*]"  # vendors' key prefixes
    r"|\bAIza[0-9A-Za-z_\-]{8,}"
    r"|(?<=bearer )[a-z0-9._~+/\-]{8,}=*"
    r"|(?<=x-api-key: )\S+"
    r"|(?<=[?&]key=)[^&\s\"']+"
)
REDACTED = "[key removed]"


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the given secrets, whole or cut off where the text was, and without anything that looks like a key or token."""
    for secret in secrets:
        if len(secret) >= 4:  # anything shorter is no secret and would mangle ordinary words
            text = _without_beginning(text.replace(secret, REDACTED), secret)
    return _KEY.sub(REDACTED, text)


def _without_beginning(text: str, secret: str) -> str:
    """`text` without the beginning of `secret` at its end, or where a longer text was cut: before `…`."""
    for end in (len(text), text.rfind("…")):
        for length in range(min(len(secret), end) - 1, 5, -1):
            if text.startswith(secret[:length], end - length):
                text = text[: end - length] + REDACTED + text[end:]
                break
    return text


def error_text(label: str, status: int | None, type: str, message: str, request_id: str) -> str:
    """`Anthropic request failed with HTTP 429 (rate_limit_error): slow down [req_01]`; what is missing is left out."""
    text = f"{label} request failed"
    if status is not None:
        text += f" with HTTP {status}"
    if type:
        text += f" ({redact(type)[:100]})"
    message = " ".join(redact(message).split())
    if message:
        text += f": {message[: MESSAGE_LIMIT - 1] + '…' if len(message) > MESSAGE_LIMIT else message}"
    return text + (f" [{request_id}]" if request_id else "")
