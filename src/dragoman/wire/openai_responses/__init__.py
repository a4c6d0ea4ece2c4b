"""The OpenAI Responses API: requests out, answers in, and requests in for gateways."""

from __future__ import annotations

from dragoman.wire.openai_responses.wire import OpenAIResponsesWire

__all__ = ["OpenAIResponsesWire"]
