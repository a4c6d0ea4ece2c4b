"""Short ways to see what a request becomes on Anthropic's wire."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import Block, Message, Request
from dragoman.wire.anthropic import AnthropicWire

__all__ = ["MODEL", "WIRE", "body_of", "content_of", "encode", "headers_of", "notices_of", "turns_of"]

WIRE = AnthropicWire()
MODEL = "claude-test-1"
"""No real model: no rules."""


def encode(*messages: Message | str, wire: AnthropicWire = WIRE, stream: bool = False, **fields: Any) -> Any:
    return wire.encode(Request(messages, **{"model": MODEL, "max_tokens": 100, **fields}), stream=stream)


def body_of(*messages: Message | str, **fields: Any) -> dict[str, Any]:
    """The body, without the three keys that every request has."""
    body: dict[str, Any] = msgspec.json.decode(encode(*(messages or ("q",)), **fields).body)
    return {key: value for key, value in body.items() if key not in ("model", "max_tokens", "messages")}


def turns_of(*messages: Message | str, **fields: Any) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = msgspec.json.decode(encode(*messages, **fields).body)["messages"]
    return turns


def content_of(*blocks: Block | str, **fields: Any) -> Any:
    """What these blocks become in an assistant turn that is not the last."""
    return turns_of("q", Message("assistant", blocks, origin=fields.pop("origin", None)), "go on", **fields)[1]["content"]


def headers_of(**fields: Any) -> dict[str, str]:
    headers: dict[str, str] = encode("q", **fields).headers
    return headers


def notices_of(*messages: Message | str, **fields: Any) -> list[tuple[str, str | None]]:
    """Code and path of each notice."""
    return [(notice.code, notice.path) for notice in encode(*(messages or ("q",)), **fields).notices]
