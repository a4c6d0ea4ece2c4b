"""The tools of a request and the choice among them: names, schemas, and that what is chosen exists."""

from __future__ import annotations

from typing import Any, cast

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.request import Request, Tool, ToolNamed
from dragoman.validation.blocks import check_json
from dragoman.validation.dialect import Dialect

__all__ = ["NAME_FIX", "check_tools", "has_tools_elsewhere"]

NAME_FIX = "use 1 to 128 letters, digits, `_` and `-`"
_SCHEMA_UNIONS = ("oneOf", "anyOf", "allOf")


def check_tools(request: Request, rules: ModelRules, dialect: Dialect, out: list[Problem], *, json: bool) -> None:
    """Append what is wrong with the tools and the tool choice. `json`: whether the schemas are JSON is looked at, too."""
    claude = dialect.claude
    first: dict[str, int] = {}
    for i, tool in enumerate(request.tools):
        path = f"tools[{i}]"
        ours = isinstance(tool, Tool)  # a provider's own tool may be called by its type alone
        if ours and not dialect.tool_name.fullmatch(tool.name):
            out.append(Problem(f"{path}.name", "tool_name", "is no legal tool name", NAME_FIX))
        elif tool.name and tool.name in first and (ours or claude):
            text = f"`{tool.name}` is also the name of tools[{first[tool.name]}]"
            out.append(Problem(f"{path}.name", "tool_name_repeated", text, "give each tool its own name"))
        if tool.name:  # a toolset has none
            first.setdefault(tool.name, i)
        if isinstance(tool, Tool):
            if tool.strict and not rules.strict_tools:
                out.append(Problem(f"{path}.strict", "strict_tools", f"{rules.id} has no strict tools", "set strict=False"))
            if json:
                check_json(tool.input_schema, f"{path}.input_schema", out)
            if claude:
                _check_schema(tool.input_schema, f"{path}.input_schema", out)
        else:
            check_json(tool.options, f"{path}.options", out)
    _check_choice(request, first, out)


def _check_schema(schema: dict[str, Any], path: str, out: list[Problem]) -> None:
    if not schema:
        return
    if schema.get("type") != "object":
        out.append(Problem(path, "tool_schema", 'must have "type": "object"', "describe the arguments as an object's properties"))
    out.extend(
        Problem(f"{path}.{keyword}", "tool_schema", "is not allowed at the top of a schema", "put it into a property")
        for keyword in _SCHEMA_UNIONS
        if keyword in schema
    )


def _check_choice(request: Request, names: dict[str, int], out: list[Problem]) -> None:
    choice = request.tool_choice
    if choice != "required" and not isinstance(choice, ToolNamed):
        return
    elsewhere = has_tools_elsewhere(request)
    if not request.tools and not elsewhere:
        out.append(Problem("tool_choice", "tool_choice_without_tools", "there are no tools to choose from", "add tools, or leave it out"))
    elif isinstance(choice, ToolNamed) and choice.name not in names and not elsewhere and not _has_toolset(request):
        text = f"there is no tool called `{choice.name}`"
        fix = f"use one of {', '.join(names)}" if names else 'add it to the tools, or use "required"'
        out.append(Problem("tool_choice", "tool_choice_unknown", text, fix))


def has_tools_elsewhere(request: Request) -> bool:
    """Whether the model is given tools that `Request.tools` does not show: those of MCP servers, or given in the wire's own words."""
    return bool(request.extra_body.get("tools") or request.extra_body.get("mcp_servers"))


def _has_toolset(request: Request) -> bool:
    """Whether a tool stands for others, whose names the request does not show."""
    return any("toolset" in cast("str", getattr(tool, "type", "")) for tool in request.tools)
