"""OpenAI Chat Completions: the protocol that most hosts of models speak, each in its own dialect (`dialects.py`)."""

from __future__ import annotations

from dragoman.wire.openai_chat.dialects import CONNECT, DIALECTS, Dialect, Endpoint
from dragoman.wire.openai_chat.wire import OpenAIChatWire

__all__ = ["CONNECT", "DIALECTS", "Dialect", "Endpoint", "OpenAIChatWire"]
