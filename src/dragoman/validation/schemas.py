"""Strict schemas: what the Messages API's compiler refuses of them, counted over the whole request.

Strategy. The limits are the API's own, from its error texts in recorded answers. They concern strict tools and the output format only,
so a request without either costs nothing here. What a schema may say beyond that is left to the provider: it learns new keywords.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from dragoman.errors import Problem
from dragoman.request import Request, Tool

__all__ = ["MAX_OPTIONAL", "MAX_STRICT_TOOLS", "MAX_UNIONS", "check_strict"]

MAX_STRICT_TOOLS = 20
"""Strict tools in one request."""

MAX_OPTIONAL = 24
"""Properties that are not required, in all strict schemas together."""

MAX_UNIONS = 16
"""Properties of several types (`anyOf`, or a list of types), in all strict schemas together."""

_OUTPUT = "output.schema"
"""The one schema that is strict whatever is said: the API has no other."""

_NODE_LIMIT = 10_000
"""Parts of one schema that are looked at."""


def check_strict(request: Request, out: list[Problem]) -> None:
    """Append what is wrong with the strict schemas."""
    tools = [(f"tools[{i}]", tool) for i, tool in enumerate(request.tools) if isinstance(tool, Tool) and tool.strict]
    schemas = [(f"{path}.input_schema", tool.input_schema) for path, tool in tools]
    if request.output is not None:
        schemas.append((_OUTPUT, request.output.schema))
    if not schemas:
        return
    if len(tools) > MAX_STRICT_TOOLS:
        text = f"{len(tools)} strict tools are more than {MAX_STRICT_TOOLS}"
        out.append(Problem(tools[MAX_STRICT_TOOLS][0], "strict_tools", text, "set strict=False on some"))
    optional = unions = 0
    for path, schema in schemas:
        if _is_recursive(schema):
            text = "refers to itself, which a strict schema cannot"
            instead = "ask for the JSON in words" if path == _OUTPUT else "set strict=False"
            out.append(Problem(path, "strict_schema", text, f"write the levels out, or {instead}"))
        for node in _nodes(schema):
            properties = node.get("properties")
            if not isinstance(properties, dict):
                continue
            required = _list(node.get("required"))
            for name, part in cast("dict[str, Any]", properties).items():
                optional += name not in required
                unions += isinstance(part, dict) and ("anyOf" in part or isinstance(cast("dict[str, Any]", part).get("type"), list))
    where = ", ".join(path for path, _ in schemas)
    instead = ", or set strict=False on some tools" if tools else ""
    if optional > MAX_OPTIONAL:
        text = f"{optional} optional properties in strict schemas are more than {MAX_OPTIONAL}: {where}"
        out.append(Problem(schemas[-1][0], "strict_schema", text, f"make some required{instead}"))
    if unions > MAX_UNIONS:
        text = f"{unions} properties of several types in strict schemas are more than {MAX_UNIONS}: {where}"
        out.append(Problem(schemas[-1][0], "strict_schema", text, f"give some one type{instead}"))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object of a schema, itself first."""
    stack: list[Any] = [schema]
    for _ in range(_NODE_LIMIT):
        if not stack:
            return
        node = stack.pop()
        if isinstance(node, dict):
            yield cast("dict[str, Any]", node)
            stack.extend(cast("dict[str, Any]", node).values())
        elif isinstance(node, list):
            stack.extend(node)  # pyright: ignore[reportUnknownArgumentType]


def _is_recursive(schema: dict[str, Any]) -> bool:
    """Whether a definition reaches itself by `$ref`."""
    definitions = {**_dict(schema.get("definitions")), **_dict(schema.get("$defs"))}
    uses = {name: _referred(part) for name, part in definitions.items()}
    if "#" in _referred(schema):
        return True
    done: set[str] = set()
    for start, first in uses.items():
        way: dict[str, Iterator[str]] = {} if start in done else {start: iter(first)}
        while way:  # depth first; what is on the way to itself is a circle
            name, further = next(reversed(way.items()))
            used = next(further, None)
            if used is None:
                done.add(name)
                way.popitem()
            elif used in way:
                return True
            elif used not in done:
                way[used] = iter(uses.get(used, ()))
    return False


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _referred(schema: Any) -> set[str]:
    """The names of the definitions that a schema refers to; `#` for the whole."""
    refs = (node.get("$ref") for node in _nodes(schema))
    return {ref.rpartition("/")[2] or "#" for ref in refs if isinstance(ref, str) and ref.startswith("#")}
