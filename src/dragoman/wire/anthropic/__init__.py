"""The wire of Anthropic's Messages API: requests out and in, answers in."""

from __future__ import annotations

from dragoman.wire.anthropic.wire import AnthropicWire

__all__ = ["AnthropicWire"]
