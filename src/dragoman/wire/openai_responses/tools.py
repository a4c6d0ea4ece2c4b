"""Tools and tool choices, both ways.

Strategy. A `Tool` is a function; everything else the API offers is a `ProviderTool` whose `type` is the wire's and whose `options` are the
wire's other keys, so each comes back as it went. `strict` is always said, because the API's default is to make schemas strict where it
can; a tool that came without it is remembered as such.
"""

from __future__ import annotations

from typing import Any, cast

from dragoman.errors import Problem
from dragoman.request import ProviderTool, Request, Tool, ToolChoice, ToolNamed
from dragoman.wire.json_values import as_object, as_string, is_list, is_object
from dragoman.wire.openai_responses.kinds import WIRE

__all__ = ["NO_PARAMETERS", "read_tool", "read_tool_choice", "tools_of", "write_tool", "write_tool_choice"]

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}

_NAMED = frozenset({"custom", "namespace"})
"""Types of provider tools that carry their name on the wire."""


def write_tool(tool: Tool | ProviderTool) -> dict[str, Any]:
    """A tool as the wire's object."""
    own = tool.extra.get(WIRE, {})
    if isinstance(tool, ProviderTool):
        name = {"name": tool.name} if tool.type in _NAMED else {}
        return {"type": tool.type, **name, **own, **tool.options}
    wire: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    wire["parameters"] = tool.input_schema or NO_PARAMETERS
    wire["strict"] = tool.strict
    wire |= {key: value for key, value in own.items() if key not in wire}
    if own.get("strict", tool) is None and not tool.strict:
        del wire["strict"]
    return wire


def read_tool(wire: dict[str, Any]) -> Tool | ProviderTool:
    """A tool from the wire's object."""
    kind, name = as_string(wire.get("type")), as_string(wire.get("name"))
    if kind != "function" or not name or "function" in wire:  # nested as in Chat Completions: some clients send it so
        options = {key: value for key, value in wire.items() if key != "type" and not (key == "name" and kind in _NAMED)}
        return ProviderTool(kind, name or as_string(wire.get("server_label")) or kind, options)
    parameters = as_object(wire.get("parameters"))
    extra = {key: v for key, v in wire.items() if key not in ("type", "name", "description", "parameters", "strict") and v is not None}
    if wire.get("strict") is None:
        extra["strict"] = None
    return Tool(
        name,
        as_string(wire.get("description")),
        parameters if parameters != NO_PARAMETERS else {},
        strict=wire.get("strict") is True,
        extra={WIRE: extra} if extra else {},
    )


def write_tool_choice(request: Request) -> Any:
    """The wire's tool choice, or None if none is sent. A forced choice without tools is local validation's to report."""
    choice = request.tool_choice
    if choice is None or not request.tools:
        return None
    if isinstance(choice, ToolNamed):
        return _named(choice.name, request)
    return "required" if choice == "required_if_allowed" else choice


def _named(name: str, request: Request) -> dict[str, Any]:
    tool = next((tool for tool in request.tools if tool.name == name), None)
    if not isinstance(tool, ProviderTool):
        return {"type": "function", "name": name}
    match tool.type:
        case "custom" | "function":
            return {"type": tool.type, "name": name}
        case "mcp":
            return {"type": "mcp", "server_label": tool.options.get("server_label", name)}
        case kind:
            return {"type": kind}


def read_tool_choice(choice: Any, tools: list[Tool | ProviderTool]) -> ToolChoice | None:
    """Our tool choice; None for what only the wire can say (a list of allowed tools), which is kept as it is."""
    if choice in ("auto", "none", "required"):
        return cast("ToolChoice", choice)
    wire = as_object(choice)
    name = as_string(wire.get("name"))
    if wire.get("type") in ("function", "custom") and name and len(wire) == 2:
        return ToolNamed(name)
    if len(wire) == 1:
        named = [tool for tool in tools if isinstance(tool, ProviderTool) and tool.type == wire.get("type")]
        return ToolNamed(named[0].name) if named and named[0].name == named[0].type else None
    return None


def tools_of(value: Any, path: str, problems: list[Problem]) -> list[Tool | ProviderTool]:
    """The request's tools; what is no object is a problem."""
    tools: list[Tool | ProviderTool] = []
    if value is not None and not is_list(value):
        problems.append(Problem(path, "type", "must be a list of tools"))
        return tools
    for position, wire in enumerate(value or []):
        if is_object(wire) and isinstance(wire.get("type"), str):
            tools.append(read_tool(wire))
        else:
            problems.append(Problem(f"{path}[{position}]", "type", "must be an object with a type"))
    return tools
