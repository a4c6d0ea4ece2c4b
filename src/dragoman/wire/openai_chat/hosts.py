"""Whose server a base URL is, so that `base_url="https://api.groq.com/openai/v1"` alone means what it says.

Only the vendors' own hosts count, and hosts below them (`eu.api.openai.com`): a key of the environment is sent to nobody else.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from dragoman.wire.openai_chat.dialects import CONNECT

__all__ = ["host_of"]

DOMAINS: Final = {
    "openai.azure.com": "azure",
    "services.ai.azure.com": "azure",
    "cognitiveservices.azure.com": "azure",
    "generativelanguage.googleapis.com": "google",
    "snowflakecomputing.com": "snowflake",
}
"""Domains whose dialect no default address tells: in most of them every customer has a host of their own."""


def host_of(base_url: str) -> str:
    """The name of the dialect that this vendor's host speaks, or `""` if it is no vendor's that is known."""
    host = urlsplit(base_url).hostname or ""
    vendors = {urlsplit(row.base_url).hostname or "": name for name, row in CONNECT.items() if row.base_url and row.key_required}
    for domain, name in {**vendors, **DOMAINS}.items():
        if host == domain or host.endswith(f".{domain}"):
            return name
    return ""
