"""What finish reasons mean (OpenAI's five, and the words of other hosts, each with who says it)."""

from __future__ import annotations

from typing import Final

from dragoman.errors import OverloadedError, ProviderError, ServerError
from dragoman.response import StopReason

__all__ = ["FAILURES", "STOP_REASONS"]

STOP_REASONS: Final[dict[str, StopReason]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",  # the form before tools
    "content_filter": "refusal",
    "eos": "end_turn",  # Together
    "end_turn": "end_turn",  # gateways that pass Anthropic's words on
    "tool_call": "tool_use",  # DeepSeek models on Azure
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",  # `finish_details` of the first vision models
    "model_length": "context_exceeded",  # Mistral
    "model_context_window_exceeded": "context_exceeded",  # Z.ai
    "sensitive": "refusal",  # Z.ai
}
"""Any other word is `unknown`, with the word in `raw_stop`."""

FAILURES: Final[dict[str, type[ProviderError]]] = {
    "error": ServerError,  # OpenRouter, Mistral
    "network_error": ServerError,  # Z.ai
    "insufficient_system_resource": OverloadedError,  # DeepSeek
    "abort": ServerError,  # vLLM
}
"""Finish reasons that say the answer broke off on the host's side."""
