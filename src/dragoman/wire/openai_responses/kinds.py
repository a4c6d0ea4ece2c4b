"""The kinds of items that the Responses API speaks of, as tables: what each becomes here, and what answers it.

An item is the API's unit: a message, a reasoning, a call, a result. Strategy: a call that the caller runs is a `ToolUse` and remembers
its kind in `extra`; an item that is a call *and* its result, run by the provider, becomes the pair `ServerToolUse` / `ServerToolResult`
with the whole item as the result's content, so it goes back as it came; a generated picture is an `Image`; everything else is `Opaque`.

Sources: the item types of openai-python 3.57, and the recordings named beside a row.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from dragoman.wire.json_values import as_object, as_string, is_list

__all__ = [
    "BARE",
    "CALLS",
    "ENCRYPTED",
    "OUTPUTS",
    "PAIRS",
    "USER_SIDE",
    "WIRE",
    "Call",
    "Role",
    "is_user_side",
    "role_of",
]

WIRE = "openai-responses"
"""This wire's name, its key in `extra`."""

BARE = "bare"
"""Key in a message's `extra`: the whole input was this message's text as a bare string."""

Role = Literal["message", "reasoning", "call", "pair", "use", "result", "image", "opaque"]
"""What an item becomes: `use` and `result` are the two items of a shell that runs in the provider's container."""


class Call(NamedTuple):
    """A kind of call that the caller runs. `form` says what stands in the input field: JSON text, free text, or an object."""

    field: str
    form: Literal["json", "text", "object"]
    answer: str
    """The type of the item that answers it."""
    name: str = ""
    """The name it gets here; `""`: the item's own."""
    streamed: str = ""
    """The key of the input that arrives in deltas."""


CALLS: dict[str, Call] = {
    "function_call": Call("arguments", "json", "function_call_output"),
    "custom_tool_call": Call("input", "text", "custom_tool_call_output", streamed="input"),
    "local_shell_call": Call("action", "object", "local_shell_call_output", "local_shell"),
    "shell_call": Call("action", "object", "shell_call_output", "shell", streamed="commands"),
    "apply_patch_call": Call("operation", "object", "apply_patch_call_output", "apply_patch", streamed="diff"),
    "computer_call": Call("action", "object", "computer_call_output", "computer"),
    "tool_search_call": Call("arguments", "object", "tool_search_output", "tool_search"),
}

OUTPUTS: dict[str, str] = {call.answer: kind for kind, call in CALLS.items()}
"""The type of an answering item → the kind of call it answers."""

PAIRS: dict[str, str] = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "mcp_call": "mcp",
    "x_search_call": "x_search",  # xAI
}
"""Items that are a call and its result → the tool's name where the item has none."""

HIDDEN_SERVER_TOOLS = frozenset(
    {"x_keyword_search", "x_semantic_search", "x_user_search", "x_thread_fetch", "view_image", "view_x_video"}  # xAI, behind x_search
)
"""Tools that xAI runs itself but reports as `custom_tool_call` (recording: req_llm xai_grok_4_fast_reasoning_x_search_streaming)."""

ENCRYPTED = frozenset({"reasoning", "compaction", "program"})
"""Items whose encrypted part is written anew in `response.completed` (29 recorded streams): that last form is the one to keep."""

USER_SIDE = frozenset({"mcp_approval_response", "additional_tools", "configuration_update", "compaction_trigger"})
"""Input items of the caller's side, beside messages and results."""


def role_of(item: dict[str, Any], own_tools: frozenset[str] = frozenset()) -> Role:
    """What an output item becomes. `own_tools` are the names of the caller's tools, which no table of the provider's names overrules."""
    kind = as_string(item.get("type"))
    if kind == "message":
        return "message" if item.get("content") is None or is_list(item["content"]) else "opaque"
    if kind == "reasoning":
        return "reasoning"
    if kind in PAIRS:
        return "pair"
    if kind == "image_generation_call":
        return "image"
    if kind == "custom_tool_call" and as_string(item.get("name")) in HIDDEN_SERVER_TOOLS - own_tools:
        return "pair"
    if kind == "shell_call" and _in_container(item):
        return "use"
    if kind == "shell_call_output":
        return "result"
    if kind == "tool_search_call" and item.get("execution") != "client":
        return "opaque"
    return "call" if kind in CALLS else "opaque"


def _in_container(item: dict[str, Any]) -> bool:
    return as_object(item.get("environment")).get("type") not in (None, "local")


def is_user_side(kind: str) -> bool:
    """Whether an input item that becomes Opaque belongs to the caller's side of the conversation."""
    return kind in USER_SIDE or (kind.endswith(("_output", "_response")) and kind not in ("program_output", "tool_search_output"))
