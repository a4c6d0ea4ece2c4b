"""Every name that telemetry writes, as strings of our own.

The names are those of the OpenTelemetry semantic conventions for generative AI (core v1.41.1, and the newer repository
`semantic-conventions-genai` for `cache_write`), and of Langfuse's OTLP endpoint. The Python package `opentelemetry.semconv._incubating`
marks all of the first as deprecated and lacks the newest, so nothing is imported from it. A convention that renames something is
followed by changing one line here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dragoman.errors import KINDS, ProviderError

# ---- the span

CHAT: Final = "chat"
"""The operation of every call; the span is called `chat {model}`. It alone makes a span a generation for Langfuse."""

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
SYSTEM: Final = "gen_ai.system"
"""The older name of PROVIDER; both are written."""
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_REASONING_LEVEL: Final = "gen_ai.request.reasoning.level"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"
USAGE_CACHE_CREATION: Final = "gen_ai.usage.cache_creation.input_tokens"
"""The older name of USAGE_CACHE_WRITE, written only if asked for."""
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"
HTTP_STATUS: Final = "http.response.status_code"

# ---- content: written by `content.record_content` alone

INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
LANGFUSE_INPUT: Final = "langfuse.observation.input"
LANGFUSE_OUTPUT: Final = "langfuse.observation.output"

# ---- Langfuse

LANGFUSE_TYPE: Final = "langfuse.observation.type"
LANGFUSE_MODEL: Final = "langfuse.observation.model.name"
LANGFUSE_COMPLETION_START: Final = "langfuse.observation.completion_start_time"
LANGFUSE_USAGE: Final = "langfuse.observation.usage_details"
LANGFUSE_LEVEL: Final = "langfuse.observation.level"
LANGFUSE_STATUS_MESSAGE: Final = "langfuse.observation.status_message"
LANGFUSE_FINISH_REASON: Final = "langfuse.observation.metadata.finish_reason"
LANGFUSE_RETRY_COUNT: Final = "langfuse.observation.metadata.retry_count"
LANGFUSE_TRACE_NAME: Final = "langfuse.trace.name"
LANGFUSE_TRACE_TAGS: Final = "langfuse.trace.tags"
LANGFUSE_USER_ID: Final = "langfuse.user.id"
LANGFUSE_SESSION_ID: Final = "langfuse.session.id"

# ---- for the collector: whose call it is, and what may be kept of it

TENANT_ID: Final = "dragoman.tenant.id"
TENANT_CONTENT: Final = "dragoman.tenant.trace_llm_content"
TENANT_LANGFUSE: Final = "dragoman.tenant.langfuse_enabled"

# ---- events

RETRY_EVENT: Final = "provider.retry"
RETRY_ATTEMPT: Final = "attempt"
RETRY_DELAY_MS: Final = "delay_ms"
RETRY_AFTER_S: Final = "retry_after_s"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"

# ---- metrics

TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  # tokens of text

TOKEN_BUCKETS: Final = tuple(4**n for n in range(14))
"""1, 4, 16 … 67,108,864 tokens."""
SECOND_BUCKETS: Final = tuple(round(0.01 * 2**n, 2) for n in range(14))
"""0.01, 0.02, 0.04 … 81.92 seconds."""


class Metric(NamedTuple):
    """One metric. `buckets` are a histogram's advised boundaries; without any it is a counter."""

    name: str
    unit: str
    description: str
    buckets: tuple[float, ...] = ()


TOKEN_USAGE: Final = Metric(
    "gen_ai.client.token.usage",
    "{token}",
    "Tokens of each call by type; cache_read and cache_write are part of input, so never add the types up.",
    TOKEN_BUCKETS,
)
DURATION: Final = Metric("gen_ai.client.operation.duration", "s", "How long each call took, with all its attempts.", SECOND_BUCKETS)
TIME_TO_FIRST_CHUNK: Final = Metric(
    "gen_ai.client.operation.time_to_first_chunk",
    "s",
    "From the start of each streamed call to its first content.",
    SECOND_BUCKETS,
)
TIME_PER_OUTPUT_CHUNK: Final = Metric(
    "gen_ai.client.operation.time_per_output_chunk",
    "s",
    "From each piece of streamed content to the next.",
    SECOND_BUCKETS,
)
PROVIDER_ERRORS: Final = Metric("dragoman.provider.errors", "{error}", "Calls that failed for good, by error.type.")

METRICS: Final = (TOKEN_USAGE, DURATION, TIME_TO_FIRST_CHUNK, TIME_PER_OUTPUT_CHUNK, PROVIDER_ERRORS)
"""All that is emitted: the one table for dashboards and documentation. The unreleased conventions rename them; nothing else needs to."""

# ---- values

CANCELLED: Final = "cancelled"
"""The error.type of a call that its caller left early."""

ERROR_TYPES: Final = frozenset({*KINDS, CANCELLED})
"""All values of error.type."""

PROVIDER_NAMES: Final[dict[str, str]] = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",  # the same models through OpenAI's protocol
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""Providers whose well-known name in the conventions is not ours; all others are written as they are called here."""


def error_type(error: ProviderError) -> str:
    """The error.type of an error: its kind, or that of the nearest base whose kind is in the closed list."""
    for cls in type(error).__mro__:
        kind = cls.__dict__.get("kind")
        if kind in ERROR_TYPES:
            return str(kind)
    return ProviderError.kind
