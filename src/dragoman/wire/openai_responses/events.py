"""The events of a stream and the words an answer ends in, as tables.

Sources: `ResponseStreamEvent` of openai-python 3.57, and the types seen in the recordings. The events that begin and carry content
are in `ResponsesDecoder._EVENTS`, beside what they do.
"""

from __future__ import annotations

from dragoman.response import StopReason

__all__ = ["ARGUMENTS", "DONE", "FREE_TEXT", "PROGRESS", "SILENT", "STATUS_OF_EVENT", "STOP_OF_REASON", "WHOLE"]

STATUS_OF_EVENT = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The events that end an answer, and the status each implies where the response states none."""

STOP_OF_REASON: dict[str, StopReason] = {
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
}
"""Why a response is incomplete; any other reason is `unknown`, with the reason as `raw_stop`."""

DONE = ("completed", "complete")
"""Statuses of an answer that is whole; `complete` is what a recorded compatible server says."""

SILENT = frozenset(
    {
        "response.in_progress",
        "response.queued",
        "keepalive",
        "response.content_part.done",
        "response.shell_call_output_content.delta",
        "response.shell_call_output_content.done",
        "response.reasoning_part.done",
        "response.reasoning_summary_part.done",
    }
)
"""Events that say nothing which the event before them or the finished item does not say too."""

WHOLE = {
    "response.output_text.done": ("message", "text"),
    "response.refusal.done": ("message", "refusal"),
    "response.reasoning_text.done": ("reasoning", "text"),
    "response.reasoning_summary_text.done": ("reasoning", "text"),
    "response.function_call_arguments.done": ("function_call", "arguments"),
    "response.mcp_call_arguments.done": ("mcp_call", "arguments"),
    "response.custom_tool_call_input.done": ("custom_tool_call", "input"),
    "response.code_interpreter_call_code.done": ("code_interpreter_call", "code"),
    "response.apply_patch_call_operation_diff.done": ("apply_patch_call", "diff"),
    "response.shell_call_command.done": ("shell_call", "command"),
}
"""The events that bring once more, whole, what deltas brought, or bring it instead of them: the item each fits, and the key of the text."""

PROGRESS = ("in_progress", "searching", "interpreting", "generating", "partial_image", "completed", "failed", "compacting", "calling")
"""Last words of the events by which a tool at the provider tells how far it is: handed on as OpaqueEvent, for a display."""


ARGUMENTS = {"response.mcp_call_arguments.delta": "mcp_call"}
FREE_TEXT = {
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.code_interpreter_call_code.delta": "code_interpreter_call",
    "response.apply_patch_call_operation_diff.delta": "apply_patch_call",
    "response.shell_call_command.added": "shell_call",
    "response.shell_call_command.delta": "shell_call",
}
"""The item that each delta of an input fits."""
