"""What a span says, as pure functions from our values to attributes: no OpenTelemetry, no clock, no content.

Usage in our model is disjoint; the conventions want `input_tokens` with everything in it and the cache counts as parts, Langfuse wants
the disjoint numbers under the keys that it has prices for. Both are made here from the same `Usage`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from dragoman.event import Retrying
from dragoman.fragments import scrub
from dragoman.hooks import CallInfo, Unfinished
from dragoman.response import FINISH, Finish, Response, Timing, Usage
from dragoman.telemetry import names
from dragoman.value import Value

__all__ = [
    "Attributes",
    "Outcome",
    "end_attributes",
    "metric_attributes",
    "retry_attributes",
    "span_name",
    "start_attributes",
    "usage_details",
]

Attribute: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = dict[str, Attribute]


class Outcome(Value, frozen=True, kw_only=True):
    """How a call ended, in one form for all ways. Holds no content.

    `finish_reason` is the wire's own word, or the stop reason where a script gave no word, or `error` if none came. `error_type` is
    `""` after success; `status` is the HTTP status of a failure.
    """

    timing: Timing
    usage: Usage
    id: str = ""
    model: str = ""
    finish_reason: str = "error"
    finish: Finish | None = None
    error_type: str = ""
    status: int | None = None

    @classmethod
    def of_response(cls, response: Response, timing: Timing) -> Outcome:
        """A call that succeeded."""
        return cls(
            timing=timing,
            usage=response.usage,
            id=response.id,
            model=response.model,
            finish_reason=response.raw_stop or response.stop,
            finish=FINISH[response.stop],
        )

    @classmethod
    def of_unfinished(cls, call: Unfinished, error_type: str, status: int | None = None) -> Outcome:
        """A call that failed or was left early."""
        return cls(
            timing=call.timing,
            usage=call.usage,
            id=call.id,
            model=call.model,
            finish_reason=call.raw_stop or "error",
            error_type=error_type,
            status=status,
        )

    @property
    def cancelled(self) -> bool:
        """Whether the caller left; that is no failure of anybody."""
        return self.error_type == names.CANCELLED

    @property
    def failed(self) -> bool:
        """Whether the call failed."""
        return bool(self.error_type) and not self.cancelled

    @property
    def usage_known(self) -> bool:
        """Whether any count came. A call that failed at once has none, and a zero would be a claim."""
        return self.usage.total > 0


def span_name(call: CallInfo) -> str:
    """`chat {model}`."""
    return scrub(f"{names.CHAT} {call.model}")


def provider_name(call: CallInfo) -> str:
    """The provider as the conventions call it."""
    return names.PROVIDER_NAMES.get(call.provider, call.provider)


def start_attributes(call: CallInfo) -> Attributes:
    """What is known when a call begins (so that samplers see it)."""
    request, trace = call.request, call.request.trace
    tenant = None if trace is None else trace.tenant
    provider = provider_name(call)
    name = span_name(call) if trace is None or not trace.trace_name else str(trace.trace_name)
    values: dict[str, Attribute | None] = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: provider,
        names.SYSTEM: provider,
        names.REQUEST_MODEL: call.model,
        names.SERVER_ADDRESS: call.server_address or None,
        names.SERVER_PORT: call.server_port,
        names.REQUEST_MAX_TOKENS: _whole(request.max_tokens),
        names.REQUEST_TEMPERATURE: _double(request.temperature),
        names.REQUEST_TOP_P: _double(request.top_p),
        names.REQUEST_TOP_K: _whole(request.top_k),
        names.REQUEST_STOP_SEQUENCES: request.stop_sequences or None,
        names.REQUEST_STREAM: call.streaming or None,
        names.REQUEST_REASONING_LEVEL: request.effort,
        names.LANGFUSE_TYPE: "generation",
        names.LANGFUSE_TRACE_NAME: name,
    }
    if trace is not None:
        values |= {
            names.CONVERSATION_ID: _text(trace.conversation_id),
            names.LANGFUSE_USER_ID: _text(trace.user_id),
            names.LANGFUSE_SESSION_ID: _text(trace.session_id),
            names.LANGFUSE_TRACE_TAGS: trace.tags or None,
        }
    if tenant is not None:
        values |= {
            names.TENANT_ID: str(tenant.id),
            names.TENANT_CONTENT: tenant.trace_llm_content is True,  # anything else is no, here as in the collector
            names.TENANT_LANGFUSE: tenant.langfuse_enabled is True,
        }
    return _present(values)


def end_attributes(call: CallInfo, outcome: Outcome, *, legacy_cache_creation: bool = False) -> Attributes:
    """What is known when it has ended."""
    timing = outcome.timing
    first = timing.first_content if call.streaming else None
    values: dict[str, Attribute | None] = {
        names.RESPONSE_ID: outcome.id or None,
        names.RESPONSE_MODEL: outcome.model or None,
        names.RESPONSE_FINISH_REASONS: [outcome.finish_reason],
        names.RESPONSE_TIME_TO_FIRST_CHUNK: first,
        names.ERROR_TYPE: outcome.error_type or None,
        names.HTTP_STATUS: outcome.status,
        names.LANGFUSE_MODEL: outcome.model or call.model,
        names.LANGFUSE_COMPLETION_START: None if first is None else iso_time(timing.started + first),
        names.LANGFUSE_FINISH_REASON: outcome.finish_reason,
        names.LANGFUSE_RETRY_COUNT: timing.attempts - 1,
    }
    if outcome.usage_known:
        values |= _usage_attributes(outcome.usage, legacy_cache_creation=legacy_cache_creation)
    if outcome.failed:
        values |= {names.LANGFUSE_LEVEL: "ERROR", names.LANGFUSE_STATUS_MESSAGE: outcome.error_type}
    return _present(values)


def _usage_attributes(usage: Usage, *, legacy_cache_creation: bool) -> dict[str, Attribute | None]:
    return {
        names.USAGE_INPUT: usage.total_input,
        names.USAGE_OUTPUT: usage.output,
        names.USAGE_CACHE_READ: usage.cache_read or None,
        names.USAGE_CACHE_WRITE: usage.cache_write or None,
        names.USAGE_CACHE_CREATION: (usage.cache_write or None) if legacy_cache_creation else None,
        names.USAGE_REASONING: usage.reasoning or None,
        names.LANGFUSE_USAGE: msgspec.json.encode(usage_details(usage)).decode(),
    }


def usage_details(usage: Usage) -> dict[str, int]:
    """The disjoint counts under the keys that Langfuse has prices for, and no others: an unknown key would cost nothing, and a total
    beside its parts would be charged twice. Parts that are 0 are left out.
    """
    details = {"input": usage.input, "output": usage.output, "cache_read_input_tokens": usage.cache_read}
    if usage.cache_write_5m or usage.cache_write_1h:
        details["input_cache_creation_5m"] = usage.cache_write_5m + usage.cache_write_other
        details["input_cache_creation_1h"] = usage.cache_write_1h
    else:
        details["input_cache_creation"] = usage.cache_write_other
    return {key: count for key, count in details.items() if count or key in ("input", "output")}


def retry_attributes(event: Retrying) -> Attributes:
    """One `provider.retry` event: `delay_ms` is the wait before the next attempt, `retry_after_s` what the server asked for."""
    return _present(
        {
            names.RETRY_ATTEMPT: event.attempt,
            names.RETRY_DELAY_MS: round(event.delay * 1000),
            names.ERROR_TYPE: names.error_type(event.error),
            names.HTTP_STATUS: event.error.status,
            names.RETRY_AFTER_S: event.error.retry_after,
        }
    )


def metric_attributes(call: CallInfo, outcome: Outcome) -> Attributes:
    """What all metrics are split by: never a tenant, a user or a prompt."""
    return _present(
        {
            names.OPERATION: names.CHAT,
            names.PROVIDER: provider_name(call),
            names.REQUEST_MODEL: call.model,
            names.RESPONSE_MODEL: outcome.model or None,
        }
    )


def iso_time(seconds: float) -> str:
    """A Unix time as ISO 8601, in UTC, to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _double(value: object) -> float | None:
    """A double even where the caller wrote `1`: an attribute has one type. What is no number (`validate="off"`) is no attribute."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: object) -> str | None:
    """An id of the caller's, which may be a number; an empty one is none."""
    return str(value) if value else None


def _present(values: dict[str, Attribute | None]) -> Attributes:
    """Those that are there, each as an exporter can write it: OTLP is UTF-8, which has no lone surrogates."""
    return {key: _clean(value) for key, value in values.items() if value is not None}


def _clean(value: Attribute) -> Attribute:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, int | float):
        return value
    return [scrub(str(text)) for text in value]  # ids and tags of a caller may be numbers
