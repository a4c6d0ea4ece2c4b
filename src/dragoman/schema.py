"""JSON schemas from Python types: for typed answers (`OutputFormat.of`, `Response.parse`) and for tools (`Tool.of`).

Strategy. msgspec describes the types it reads (Structs, dataclasses, TypedDicts, enums, containers); a pydantic model describes itself
and is asked by its own methods, so pydantic is imported only by those who use it. A *strict* schema is then rewritten to what
providers can enforce while the model writes: closed objects, every property required, and only the keywords in `_KEPT`; each keyword
that must go is written into the description, where the model still reads it, and is checked when the answer is parsed.

What strict schemas may contain: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (JSON schema limitations).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import count
from types import UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from dragoman.errors import OutputParseError, StorageError
from dragoman.request import Tool
from dragoman.storage import to_builtins

if TYPE_CHECKING:
    from dragoman.response import Response

__all__ = ["output_schema", "parse_output", "tool_of"]

T = TypeVar("T")
Schema = dict[str, Any]

_REFS = "#/$defs/{name}"
_MORE = "\n\nFor further information"
"""How pydantic's errors end: an address."""
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_KEPT = frozenset({"type", "title", "description", "enum", "const"})
_NOTED = (
    *("format", "pattern", "minLength", "maxLength", "contentEncoding"),
    *("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    *("minItems", "maxItems", "uniqueItems", "items in order"),
    *("default", "examples"),
)
"""The order in which a description tells what is not kept; what is not named here follows, by name."""
_NOTED_NOWHERE = frozenset({"discriminator", "$schema"})
"""Say nothing that the rest of the schema does not say."""

_CUT_OFF = {
    "max_tokens": "the answer was cut off at max_tokens: raise it",
    "context_exceeded": "the answer was cut off at the end of the context window: shorten the conversation",
    "refusal": "the model refused",
}


# ---- typed answers


def output_schema(type: Any) -> Schema:
    """The strict schema of a type: closed objects, every property required, unsupported keywords moved into the description.

    Raises TypeError, with the place, for a type that has no JSON schema or that strict schemas cannot say (`Any`, a free-form `dict`).
    """
    name = _name(type)
    if get_origin(type) in (Union, UnionType):
        raise TypeError(
            f"{name} is a choice of types, not one: use a class with a field of it, since OpenAI takes no choice at the top of a schema"
        )
    return _strict_root(_describe(type, name), name)


def parse_output(response: Response, type: type[T]) -> T:
    """The response's text as a value of `type`. Raises OutputParseError (text, partial message, usage) if it does not fit."""
    text = response.text
    try:
        if _is_pydantic(type):
            return cast("T", _adapter(type).validate_json(text))
        return msgspec.json.decode(text, type=type)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # msgspec's and pydantic's are both; so is a lone surrogate's
        reason = _reason(error) if text else "it has no text"
    origin = response.message.origin
    stop = _CUT_OFF.get(response.stop)
    raise OutputParseError(
        f"Answer does not parse as {_name(type)}: {reason}" + (f" ({stop})" if stop else ""),
        text=text,
        partial=response.message,
        usage=response.usage,
        provider=origin.provider if origin is not None else "",
        model=response.model or (origin.model if origin is not None else ""),
        request_id=response.request_id,
        attempts=response.attempts,
    )


def _reason(error: ValueError) -> str:
    """What did not fit and where, without the values that the readers quote."""
    if isinstance(error, msgspec.MsgspecError):
        return re.sub(r"'.*'", "…", str(error), flags=re.DOTALL)
    problems: Any = getattr(error, "errors", None)
    if problems is None:
        return "it is not Unicode text"
    first: dict[str, Any] = problems(include_url=False, include_context=False, include_input=False)[0]
    return f"{first['type']} - at `${''.join(f'[{step}]' if isinstance(step, int) else f'.{step}' for step in first['loc'])}`"


# ---- tools


def tool_of(function: Callable[..., object], *, strict: bool = False) -> Tool:
    """A tool that calls `function(**input)`.

    The description is the docstring's first paragraph; parameters are described by a Google, numpy or Sphinx section of it, by
    `msgspec.Meta(description=…)` or by a string in `Annotated`. A parameter with a default is optional, except in a strict schema,
    where it is required and its default is told in its description. Of a `functools.partial` it is the wrapped function, without the
    arguments that are bound. Two types of one name are two definitions, the second with a number. Raises TypeError naming the parameter
    that cannot be called by name, has no annotation, or has one that JSON cannot carry, and for what has no name or no signature.
    """
    given = function
    bound: frozenset[str] = frozenset()
    if isinstance(given, partial):
        bound = frozenset(given.keywords)
        function = given.func
        given = partial(function, *given.args, **given.keywords)  # without the marks of functools.wraps, which hide what is bound
    name: str = getattr(function, "__name__", "")
    if not name.isidentifier():
        fix = "give it a name with def, or pass Tool(name, description, input_schema)"
        raise TypeError(f"a tool needs a named function, not {_described(function)}: {fix}")
    hints = _hints(function, name)
    try:
        parameters = list(inspect.signature(given).parameters.values())
    except (TypeError, ValueError) as error:  # its text may quote what a partial binds
        fix = "wrap it in a function with annotated parameters, or pass Tool(name, description, input_schema)"
        raise TypeError(f"{name}() has no signature that can be read, or a partial binds what it does not take: {fix}") from error
    doc = inspect.getdoc(function) or ""
    texts = _parameter_docs(doc)
    properties: Schema = {}
    required: list[str] = []
    definitions: Schema = {}
    for parameter in parameters:
        if parameter.name in bound:
            continue
        described = _parameter_schema(name, parameter, hints, definitions)
        text = texts.get(parameter.name, "")
        if text and "description" not in described:
            described["description"] = text
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        else:
            described.update(_default(parameter.default))
        properties[parameter.name] = described
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if definitions:
        schema["$defs"] = definitions
    if strict:
        schema = _strict_root(schema, f"{name}()")
    return Tool(name, _paragraph(doc), schema, strict=strict)


def _described(function: object) -> str:
    return "a lambda" if getattr(function, "__name__", "") == "<lambda>" else f"an object of type {type(function).__name__}"


def _hints(function: Callable[..., object], name: str) -> dict[str, Any]:
    """The annotations as types."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        cause: str = getattr(error, "name", None) or getattr(error, "text", None) or ""
        annotations: dict[str, Any] = getattr(function, "__annotations__", {})
        unresolved = [key for key, annotation in annotations.items() if cause and cause in str(annotation) and key != "return"]
        which = ", ".join(unresolved) or ("the result" if cause else "a parameter")
        raise TypeError(f"{name}(): the annotation of {which} cannot be resolved: {error}") from error


def _parameter_schema(function: str, parameter: inspect.Parameter, hints: dict[str, Any], definitions: Schema) -> Schema:
    """One parameter's schema; the types it refers to are added to `definitions`."""
    where = f"{function}(): parameter `{parameter.name}`"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise TypeError(f"{where} takes any number of values: a tool's parameters must be named, one by one")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TypeError(f"{where} is positional-only: a tool is called by name")
    if parameter.name not in hints:
        raise TypeError(f"{where} has no annotation: say what it takes, as in `{parameter.name}: str`")
    hint = hints[parameter.name]
    schema = _apart(_describe(hint, where), definitions)
    definitions.update(schema.pop("$defs", {}))
    texts = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)]
    return {**schema, "description": texts[0]} if texts else schema


def _default(value: object) -> Schema:
    """A default as a schema keyword; nothing for one that JSON cannot hold (a sentinel, infinity)."""
    try:
        return {"default": to_builtins(value)}
    except StorageError:
        return {}


# ---- docstrings

_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters):[ \t]*\n((?:(?:[ \t]+.*)?\n)*)", re.MULTILINE)
_GOOGLE_ITEM = re.compile(r"^\*{0,2}(\w+)[ \t]*(?:\([^\n]*?\))?:[ \t]*(.*)", re.DOTALL)
_NUMPY = re.compile(r"^Parameters[ \t]*\n-{3,}[ \t]*\n(.*?)(?=^\S[^\n]*\n-{3,}[ \t]*\n|\Z)", re.MULTILINE | re.DOTALL)
_NUMPY_ITEM = re.compile(r"^(\w+)[ \t]*(?::[^\n]*)?\n(.*)", re.DOTALL)
_SPHINX = re.compile(r"^:param[ \t]+(?:[^:\n]*[ \t])?(\w+):[ \t]*(.*(?:\n[ \t]+\S.*)*)", re.MULTILINE)

_END_OF_PARAGRAPH = re.compile(
    r"\n[ \t]*\n|^:(?:param|returns?|raises?)\b|^(?:Args|Arguments|Parameters|Returns|Raises):?[ \t]*$", re.MULTILINE
)


def _paragraph(doc: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(_END_OF_PARAGRAPH.split(doc, maxsplit=1)[0].split())


def _parameter_docs(doc: str) -> dict[str, str]:
    """What the docstring says of each parameter, in whichever of the three styles."""
    doc = f"{doc}\n"
    found = [match.groups() for match in _SPHINX.finditer(doc)]
    for section, item in ((_GOOGLE, _GOOGLE_ITEM), (_NUMPY, _NUMPY_ITEM)):
        for block in section.finditer(doc):
            found += [match.groups() for part in _items(inspect.cleandoc(f"\n{block[1]}")) if (match := item.match(part))]
    return {name: " ".join(text.split()) for name, text in found}


def _items(section: str) -> list[str]:
    """A section cut before each line that is not indented."""
    return [part for part in re.split(r"\n(?=\S)", section) if part.strip()]


# ---- schemas


def _name(type: Any) -> str:
    return getattr(type, "__name__", None) or str(type)


def _is_pydantic(type: Any) -> bool:
    """Whether the type is, or holds, a pydantic model or dataclass."""
    return hasattr(type, "__pydantic_validator__") or any(_is_pydantic(arg) for arg in get_args(type))


def _adapter(type: Any) -> Any:
    """pydantic's reader and describer of a type that needs it."""
    return import_module("pydantic").TypeAdapter(type)


def _describe(type: Any, where: str) -> Schema:
    """The plain schema of a type, definitions under `$defs`. Raises TypeError, naming `where`, if it has none."""
    try:
        if _is_pydantic(type):
            return cast("Schema", _adapter(type).json_schema())
        (schema,), definitions = msgspec.json.schema_components((type,), ref_template=_REFS)
    except (TypeError, ValueError, NameError, AttributeError, RuntimeError) as error:  # pydantic's own is a RuntimeError
        raise TypeError(f"{where}: JSON cannot carry {_name(type)}: {str(error).partition(_MORE)[0].strip()}") from error
    return {**schema, "$defs": definitions} if definitions else dict(schema)


def _apart(schema: Schema, taken: Schema) -> Schema:
    """The schema, with another name for each definition whose name is taken by another."""
    while True:
        own: Schema = schema.get("$defs", {})
        name = next((name for name, definition in own.items() if taken.get(name, definition) != definition), None)
        if name is None:
            return schema
        for number in count(2):
            new = f"{name}_{number}"
            renamed = _renamed(schema, {_REFS.format(name=name): _REFS.format(name=new)})
            definition = renamed["$defs"].pop(name)
            if new not in own and taken.get(new, definition) == definition:
                renamed["$defs"][new] = definition
                schema = renamed
                break


def _renamed(part: Any, names: dict[str, str]) -> Any:
    """A part of a schema with its references renamed, also those of a discriminator."""
    if isinstance(part, dict):
        return {key: _renamed(value, names) for key, value in cast("Schema", part).items()}
    if isinstance(part, list):
        return [_renamed(value, names) for value in part]  # pyright: ignore[reportUnknownVariableType]
    return names.get(part, part) if isinstance(part, str) else part


def _strict_root(schema: Schema, name: str) -> Schema:
    """The strict form of a whole schema. A root that is only a reference is replaced by what it refers to, as providers ask."""
    given: Schema = {_REFS.format(name=key): value for key, value in schema.get("$defs", {}).items()}
    enums: Schema = {ref: value for ref, value in given.items() if value.keys() & {"enum", "const"}}
    definitions: Schema = {key: _strict(value, f"{name}.{key}", enums) for key, value in schema.get("$defs", {}).items()}
    root = {key: value for key, value in schema.items() if key != "$defs"}
    for _ in definitions:  # a definition may itself be only a reference
        if "$ref" in root:
            root = _in_place(root, given[root["$ref"]])
    root = _strict(root, name, enums)
    written = json.dumps([root, definitions], ensure_ascii=False)
    definitions = {key: value for key, value in definitions.items() if f'"{_REFS.format(name=key)}"' in written}
    return {**root, "$defs": definitions} if definitions else root


def _in_place(reference: Schema, definition: Schema) -> Schema:
    """A definition in place of a reference to it, with what the reference adds."""
    said = {key: value for key, value in reference.items() if key != "$ref"}
    texts = [part["description"] for part in (said, definition) if part.get("description")]
    return {**definition, **said, **({"description": "\n\n".join(texts)} if texts else {})}


def _strict(schema: Schema, path: str, enums: Schema) -> Schema:
    """One schema in its strict form. `path` names it in errors; `enums` are the references that stand for a few words.

    No provider takes a reference with keywords beside it. What it refers to is then written out if that is an enum; else the reference
    moves into an `anyOf`, which may have a description, but which Anthropic counts among the (at most 16) properties of several types.
    """
    if "$ref" in schema:
        ref = schema["$ref"]
        beside = {key: value for key, value in schema.items() if key != "$ref" and key not in _NOTED_NOWHERE}
        if not beside:
            return {"$ref": ref}
        schema = _in_place(schema, enums[ref]) if ref in enums else {**beside, "anyOf": [{"$ref": ref}]}
    strict: Schema = {}
    notes: Schema = {}
    for key, value in schema.items():
        if key in _KEPT or (key == "format" and value in _FORMATS) or (key == "minItems" and value in (0, 1)):
            strict[key] = value
        elif key in ("anyOf", "oneOf", "allOf"):
            strict["anyOf" if key == "oneOf" else key] = [_strict(one, path, enums) for one in value]
        elif key == "items" and isinstance(value, dict):
            strict["items"] = _strict(cast("Schema", value), f"{path}[]", enums)
        elif key == "prefixItems":
            kinds = [_strict(one, f"{path}[{index}]", enums) for index, one in enumerate(value)]
            distinct = [kind for index, kind in enumerate(kinds) if kind not in kinds[:index]]
            strict["items"] = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
            if len(distinct) > 1:
                notes["items in order"] = [kind.get("type", "…") for kind in kinds]
        elif key == "properties":
            strict["properties"] = {name: _strict(one, f"{path}.{name}", enums) for name, one in value.items()}
        elif key not in ("additionalProperties", "required", "items") and key not in _NOTED_NOWHERE:
            notes[key] = value
    if schema.get("type") == "object":
        _close(strict, schema, path)
    elif not strict.keys() & {"type", "enum", "const", "anyOf", "allOf"} or (schema.get("type") == "array" and "items" not in strict):
        raise TypeError(f"{path} may hold anything, which no provider can enforce: give it a type, or pass OutputFormat your own schema")
    if notes:
        order = sorted(notes, key=lambda key: (_NOTED.index(key) if key in _NOTED else len(_NOTED), key))
        said = ", ".join(f"{key}: {json.dumps(notes[key], ensure_ascii=False)}" for key in order)
        strict["description"] = f"{strict['description']}\n\n{{{said}}}" if "description" in strict else f"{{{said}}}"
    return strict


def _close(strict: Schema, schema: Schema, path: str) -> None:
    """Close an object and require all its properties."""
    free = schema.get("additionalProperties")
    if "properties" not in strict and free is not False:
        raise TypeError(
            f"{path} is an object with free keys, which strict schemas cannot say: "
            "use a class with named fields, or a list of key and value pairs"
        )
    strict.setdefault("properties", {})
    strict["required"] = list(strict["properties"])
    strict["additionalProperties"] = False
