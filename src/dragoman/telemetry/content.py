"""Content on a span: the one place that writes prompts and answers, behind two gates, within a cap.

Strategy. `record_content` asks both gates itself, so no caller can forget: the environment (`DRAGOMAN_TRACE_LLM_CONTENT=true`) and the
tenant of the call (`Tenant(trace_llm_content=True)`). Both are closed unless opened, and a value that is neither true nor false keeps
the first one closed. CONTENT_KEYS lists every attribute that it may write; the collector's strip pattern is made from the same tuple.

Each attribute holds at most the cap's bytes of JSON, cut at whole parts (`capped`).
"""

from __future__ import annotations

import os
import traceback
from typing import Final, Protocol

from dragoman.errors import ProviderError
from dragoman.fragments import scrub
from dragoman.hooks import CallInfo
from dragoman.message import Message
from dragoman.response import Finish
from dragoman.telemetry import messages, names
from dragoman.telemetry.attributes import Attributes
from dragoman.telemetry.capped import capped_messages, capped_parts

__all__ = ["CONTENT_CAP_BYTES", "CONTENT_KEYS", "GATE_VARIABLE", "exception_attributes", "gates_open", "record_content"]

GATE_VARIABLE: Final = "DRAGOMAN_TRACE_LLM_CONTENT"
"""The environment's gate."""

CONTENT_KEYS: Final = (
    names.LANGFUSE_INPUT,
    names.LANGFUSE_OUTPUT,
    names.INPUT_MESSAGES,
    names.OUTPUT_MESSAGES,
    names.SYSTEM_INSTRUCTIONS,
    names.TOOL_DEFINITIONS,
)
"""Every attribute that may hold a prompt or an answer."""

CONTENT_CAP_BYTES: Final = 128 * 1024
"""Bytes of JSON in one such attribute, unless set otherwise."""

_OPEN = frozenset({"1", "true", "yes", "on"})


class AttributeSink(Protocol):
    """A span, as far as content is concerned."""

    def attributes(self, values: Attributes) -> None: ...


def gates_open(call: CallInfo) -> bool:
    """Whether this call's content may be recorded: both gates, or no."""
    trace = call.request.trace
    tenant = None if trace is None else trace.tenant
    if tenant is None or tenant.trace_llm_content is not True:
        return False
    return os.environ.get(GATE_VARIABLE, "").strip().lower() in _OPEN


def record_content(
    span: AttributeSink, call: CallInfo, answer: Message, finish: Finish | None, *, genai: bool, cap_bytes: int = CONTENT_CAP_BYTES
) -> None:
    """Put the prompt and the answer on the span, if both gates are open.

    `genai`: under the names of the conventions, instead of Langfuse's (never both: the payload would double). `finish` is None for an
    answer that was cut off.
    """
    if not gates_open(call):
        return
    request = call.request
    system = messages.system_parts(request)
    conversation = messages.input_messages(request)
    output = capped_messages([messages.output_message(answer)], cap_bytes, finish_reason=messages.finish_reason(finish))
    if not genai:
        prompt = [("system", system), *conversation] if system else conversation
        span.attributes({names.LANGFUSE_INPUT: capped_messages(prompt, cap_bytes), names.LANGFUSE_OUTPUT: output})
        return
    values: Attributes = {names.INPUT_MESSAGES: capped_messages(conversation, cap_bytes), names.OUTPUT_MESSAGES: output}
    if system:
        values[names.SYSTEM_INSTRUCTIONS] = capped_parts(system, cap_bytes)
    if request.tools:
        values[names.TOOL_DEFINITIONS] = capped_parts(messages.tool_definitions(request.tools), cap_bytes)
    span.attributes(values)


def exception_attributes(call: CallInfo, error: ProviderError) -> Attributes:
    """An `exception` event: the type; the message and the stack trace, which may quote the prompt, only with both gates open."""
    cls = type(error)
    values: Attributes = {names.EXCEPTION_TYPE: f"{cls.__module__}.{cls.__qualname__}"}
    if gates_open(call):
        values[names.EXCEPTION_MESSAGE] = scrub(error.message)
        values[names.EXCEPTION_STACKTRACE] = scrub("".join(traceback.format_exception(error)))
    return values
