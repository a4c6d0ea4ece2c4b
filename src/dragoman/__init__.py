"""dragoman: one typed language between an agent and its LLM providers.

Importing this loads msgspec and our types, nothing else. Everything that does I/O or needs a table (`connect`, `Anthropic`, `cost`,
`problems` …) is loaded at first use.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from dragoman.accumulator import Accumulator
from dragoman.errors import (
    AuthError,
    ConfigError,
    ConflictError,
    ConnectionFailedError,
    ContextOverflowError,
    DragomanError,
    IncompleteStreamError,
    InvalidInputError,
    InvalidRequestError,
    ModelNotFoundError,
    OutputParseError,
    OverloadedError,
    PermissionDeniedError,
    Problem,
    ProtocolError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServerError,
    StorageError,
    UnsupportedStopError,
    is_retryable,
)
from dragoman.event import (
    BlockStart,
    BlockStop,
    CitationDelta,
    Event,
    Failed,
    MessageStart,
    MessageStop,
    Notice,
    OpaqueEvent,
    Retrying,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    UsageUpdate,
)
from dragoman.message import (
    Audio,
    Base64,
    Block,
    CacheControl,
    Citation,
    Document,
    FileId,
    Image,
    InvalidToolUse,
    Message,
    Opaque,
    Origin,
    Parts,
    PlainText,
    RedactedThinking,
    Refusal,
    Role,
    ServerToolResult,
    ServerToolUse,
    Source,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
    Video,
    assistant,
    system,
    tool_result,
    user,
)
from dragoman.request import (
    OutputFormat,
    ProviderTool,
    Request,
    Tenant,
    ThinkingConfig,
    Tool,
    ToolNamed,
    TraceInfo,
)
from dragoman.response import (
    Iteration,
    Limit,
    RateLimits,
    Response,
    StopDetails,
    StopReason,
    Timing,
    Usage,
)
from dragoman.storage import from_json, to_json

if TYPE_CHECKING:
    from dragoman.catalog import ModelInfo
    from dragoman.catalog.cost import Cost, Price, context_used, cost
    from dragoman.connect import connect
    from dragoman.fallback import FallbackProvider
    from dragoman.history import Repaired, problems, repair, replayable
    from dragoman.provider import HTTPProvider
    from dragoman.provider_base import Provider, ProviderBase
    from dragoman.retry import RetryPolicy
    from dragoman.stream import AsyncStream, Stream
    from dragoman.tenants import Tenants
    from dragoman.transport import Timeouts
    from dragoman.vendors import Anthropic, OpenAIChat, OpenAIResponses

__all__ = [
    "Accumulator",
    "Anthropic",
    "AsyncStream",
    "Audio",
    "AuthError",
    "Base64",
    "Block",
    "BlockStart",
    "BlockStop",
    "CacheControl",
    "Citation",
    "CitationDelta",
    "ConfigError",
    "ConflictError",
    "ConnectionFailedError",
    "ContextOverflowError",
    "Cost",
    "Document",
    "DragomanError",
    "Event",
    "Failed",
    "FallbackProvider",
    "FileId",
    "HTTPProvider",
    "Image",
    "IncompleteStreamError",
    "InvalidInputError",
    "InvalidRequestError",
    "InvalidToolUse",
    "Iteration",
    "Limit",
    "Message",
    "MessageStart",
    "MessageStop",
    "ModelInfo",
    "ModelNotFoundError",
    "Notice",
    "Opaque",
    "OpaqueEvent",
    "OpenAIChat",
    "OpenAIResponses",
    "Origin",
    "OutputFormat",
    "OutputParseError",
    "OverloadedError",
    "Parts",
    "PermissionDeniedError",
    "PlainText",
    "Price",
    "Problem",
    "ProtocolError",
    "Provider",
    "ProviderBase",
    "ProviderError",
    "ProviderTool",
    "QuotaExceededError",
    "RateLimitedError",
    "RateLimits",
    "RedactedThinking",
    "Refusal",
    "Repaired",
    "Request",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "Response",
    "RetryPolicy",
    "Retrying",
    "Role",
    "ServerError",
    "ServerToolResult",
    "ServerToolUse",
    "SignatureDelta",
    "Source",
    "StopDetails",
    "StopReason",
    "StorageError",
    "Stream",
    "Tenant",
    "Tenants",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingConfig",
    "ThinkingDelta",
    "Timeouts",
    "Timing",
    "Tool",
    "ToolInputDelta",
    "ToolNamed",
    "ToolResult",
    "ToolUse",
    "TraceInfo",
    "UnsupportedStopError",
    "Url",
    "Usage",
    "UsageUpdate",
    "Video",
    "__version__",
    "assistant",
    "connect",
    "context_used",
    "cost",
    "from_json",
    "is_retryable",
    "problems",
    "repair",
    "replayable",
    "system",
    "to_json",
    "tool_result",
    "user",
]

_LAZY = {
    "Anthropic": "dragoman.vendors",
    "OpenAIChat": "dragoman.vendors",
    "OpenAIResponses": "dragoman.vendors",
    "connect": "dragoman.connect",
    "FallbackProvider": "dragoman.fallback",
    "Cost": "dragoman.catalog.cost",
    "Price": "dragoman.catalog.cost",
    "context_used": "dragoman.catalog.cost",
    "cost": "dragoman.catalog.cost",
    "ModelInfo": "dragoman.catalog",
    "Repaired": "dragoman.history",
    "problems": "dragoman.history",
    "repair": "dragoman.history",
    "replayable": "dragoman.history",
    "HTTPProvider": "dragoman.provider",
    "Provider": "dragoman.provider_base",
    "ProviderBase": "dragoman.provider_base",
    "RetryPolicy": "dragoman.retry",
    "AsyncStream": "dragoman.stream",
    "Stream": "dragoman.stream",
    "Tenants": "dragoman.tenants",
    "Timeouts": "dragoman.transport",
}
"""Public names that are loaded at first use, and the module each lives in."""


class _Package(ModuleType):
    """Importing the file `connect.py` would put a module where the public function `connect` belongs: that is not let through."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _LAZY and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__version__ = "0.1.0"
