"""Tools and the tool choice on the wire (spec: anthropic.md §3, §7). The caller's order of tools and of schema keys is kept."""

from __future__ import annotations

from typing import Any

from dragoman.catalog import ModelRules
from dragoman.request import ProviderTool, Request, Tool, ToolNamed
from dragoman.validation.tools import has_tools_elsewhere
from dragoman.wire.anthropic.cache import MARKS
from dragoman.wire.anthropic.plain import WireBlock
from dragoman.wire.anthropic.writer import Writer, with_extra
from dragoman.wire.json_values import as_object

__all__ = ["write_tool_choice", "write_tools"]

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
"""The schema of a tool without parameters."""

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def write_tools(w: Writer, request: Request) -> list[WireBlock]:
    """The tools, in the caller's order."""
    tools: list[WireBlock] = []
    w.base = "tools"
    w.content = request.tools
    for tool in request.tools:
        wire = _tool(tool) if isinstance(tool, Tool) else _provider_tool(tool)
        if tool.extra:
            with_extra(w, wire, tool, tool.extra)
        if not w.keep_marks:
            wire.pop("cache_control", None)
        if tool.cache is not None and w.keep_marks:
            wire["cache_control"] = MARKS[tool.cache.ttl]
        tools.append(wire)
    w.base = ""
    return tools


def _tool(tool: Tool) -> WireBlock:
    wire: WireBlock = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.input_schema or "input_schema" not in as_object(tool.extra.get("anthropic")):
        wire["input_schema"] = tool.input_schema or NO_PARAMETERS
    if tool.strict:
        wire["strict"] = True
    if tool.eager_input_streaming:
        wire["eager_input_streaming"] = True
    return wire


def _provider_tool(tool: ProviderTool) -> WireBlock:
    wire: WireBlock = {"type": tool.type}
    if tool.name:  # a toolset has none
        wire["name"] = tool.name
    return {**wire, **{key: value for key, value in tool.options.items() if key not in wire}}


def write_tool_choice(request: Request, tools: list[WireBlock], rules: ModelRules, *, thinks: bool) -> WireBlock | None:
    """The tool choice, or None if none is sent. `thinks`: whether the model will think."""
    if not tools and not has_tools_elsewhere(request):
        return None
    choice = request.tool_choice
    if choice == "required_if_allowed":
        choice = None if thinks or not rules.forced_tool_choice else "required"
    wire: WireBlock
    if isinstance(choice, ToolNamed):
        wire = {"type": "tool", "name": choice.name}
    elif choice is not None:
        wire = {"type": _CHOICES[choice]}
    elif request.parallel_tools:
        return None
    else:
        wire = {"type": "auto"}
    if not request.parallel_tools and wire["type"] != "none":
        wire["disable_parallel_tool_use"] = True
    return wire
