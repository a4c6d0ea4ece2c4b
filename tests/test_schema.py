"""Schemas of typed answers and tools, and reading typed answers."""

from __future__ import annotations

import enum
import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import msgspec
import pydantic
import pytest
from msgspec import Meta

from dragoman import (
    DragomanError,
    Message,
    Origin,
    OutputFormat,
    OutputParseError,
    Request,
    Response,
    Text,
    Tool,
    ToolUse,
    Usage,
    assistant,
    from_json,
    to_json,
)
from dragoman.schema import output_schema, parse_output, tool_of


class Point(msgspec.Struct):
    x: int
    y: int = 0


@dataclass
class Pixel:
    x: int
    color: str = "red"


class Place(pydantic.BaseModel):
    """Where it is."""

    name: str
    height: float = pydantic.Field(default=0, ge=-500, description="metres above the sea")


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    a: int
    b: str


class Row(TypedDict):
    a: int


POINT = {
    "title": "Point",
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "description": "{default: 0}"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}


# ---- output schemas


def test_a_struct_is_a_closed_object_with_all_properties_required() -> None:
    assert output_schema(Point) == POINT


def test_a_dataclass_and_a_typed_dict_are_too() -> None:
    assert output_schema(Pixel) == {
        "title": "Pixel",
        "type": "object",
        "properties": {"x": {"type": "integer"}, "color": {"type": "string", "description": '{default: "red"}'}},
        "required": ["x", "color"],
        "additionalProperties": False,
    }
    assert output_schema(Row)["required"] == ["a"]


def test_a_pydantic_model_describes_itself() -> None:
    assert output_schema(Place) == {
        "title": "Place",
        "description": "Where it is.",
        "type": "object",
        "properties": {
            "name": {"title": "Name", "type": "string"},
            "height": {
                "title": "Height",
                "type": "number",
                "description": "metres above the sea\n\n{minimum: -500, default: 0}",
            },
        },
        "required": ["name", "height"],
        "additionalProperties": False,
    }


def test_models_within_containers_are_definitions() -> None:
    for type_, name in ((list[Point], "Point"), (list[Place], "Place"), (list[Pixel], "Pixel")):
        schema = output_schema(type_)
        assert (schema["type"], schema["items"]) == ("array", {"$ref": f"#/$defs/{name}"})
        assert schema["$defs"][name] == output_schema(type_.__args__[0])


def test_a_recursive_type_keeps_its_own_definition() -> None:
    schema = output_schema(Node)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"] == {key: value for key, value in schema.items() if key != "$defs"}


class Everything(msgspec.Struct):
    length: Annotated[str, Meta(min_length=1, max_length=9)]
    pattern: Annotated[str, Meta(pattern="^a", description="Begins with a.")]
    range: Annotated[int, Meta(ge=0, lt=10)]
    step: Annotated[float, Meta(multiple_of=0.5)]
    many: Annotated[list[int], Meta(min_length=2, max_length=4)]
    some: Annotated[list[int], Meta(min_length=1)]
    when: Annotated[datetime, Meta(tz=True)]
    data: bytes
    color: Color
    word: Literal["a", "b", 3]
    maybe: str | None
    both: int | str
    pair: tuple[int, str]
    twice: tuple[int, int]
    named: Pair
    example: Annotated[str, Meta(examples=["ü"])]


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("length", {"type": "string", "description": "{minLength: 1, maxLength: 9}"}),
        ("pattern", {"type": "string", "description": 'Begins with a.\n\n{pattern: "^a"}'}),
        ("range", {"type": "integer", "description": "{minimum: 0, exclusiveMaximum: 10}"}),
        ("step", {"type": "number", "description": "{multipleOf: 0.5}"}),
        ("many", {"type": "array", "items": {"type": "integer"}, "description": "{minItems: 2, maxItems: 4}"}),
        ("some", {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        ("when", {"type": "string", "format": "date-time"}),
        ("data", {"type": "string", "description": '{contentEncoding: "base64"}'}),
        ("color", {"$ref": "#/$defs/Color"}),
        ("word", {"enum": [3, "a", "b"]}),
        ("maybe", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ("both", {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (
            "pair",
            {
                "type": "array",
                "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                "description": '{minItems: 2, maxItems: 2, items in order: ["integer", "string"]}',
            },
        ),
        ("twice", {"type": "array", "items": {"type": "integer"}, "description": "{minItems: 2, maxItems: 2}"}),
        ("named", {"$ref": "#/$defs/Pair"}),
        ("example", {"type": "string", "description": '{examples: ["ü"]}'}),
    ],
)
def test_what_a_provider_refuses_moves_into_the_description(name: str, schema: dict[str, Any]) -> None:
    assert output_schema(Everything)["properties"][name] == schema


class Shade(enum.Enum):
    """How dark."""

    LIGHT = "light"
    DARK = "dark"


class Hut(msgspec.Struct):
    place: Annotated[Point, Meta(description="Where it is.")]
    corner: Point = msgspec.field(default_factory=lambda: Point(1))
    before: Point | None = None
    color: Color = Color.RED
    shade: Annotated[Shade, Meta(description="Of the roof.")] = Shade.DARK


class Cabin(pydantic.BaseModel):
    place: Place = pydantic.Field(description="The inner thing.", examples=[{"name": "Elbrus"}])
    other: Place = Place(name="Omsk")
    shade: Shade = pydantic.Field(Shade.DARK, description="Of the roof.")


@pytest.mark.parametrize(
    ("type_", "name", "schema"),
    [
        (Hut, "place", {"anyOf": [{"$ref": "#/$defs/Point"}], "description": "Where it is."}),
        (Hut, "corner", {"$ref": "#/$defs/Point"}),
        (Hut, "color", {"title": "Color", "enum": ["blue", "red"], "description": '{default: "red"}'}),
        (Hut, "shade", {"title": "Shade", "enum": ["dark", "light"], "description": 'Of the roof.\n\nHow dark.\n\n{default: "dark"}'}),
        (
            Cabin,
            "place",
            {"anyOf": [{"$ref": "#/$defs/Place"}], "description": 'The inner thing.\n\n{examples: [{"name": "Elbrus"}]}'},
        ),
        (Cabin, "other", {"anyOf": [{"$ref": "#/$defs/Place"}], "description": '{default: {"name": "Omsk", "height": 0.0}}'}),
        (
            Cabin,
            "shade",
            {
                "title": "Shade",
                "type": "string",
                "enum": ["light", "dark"],
                "description": 'Of the roof.\n\nHow dark.\n\n{default: "dark"}',
            },
        ),
    ],
)
def test_what_is_said_beside_a_reference_is_kept(type_: Any, name: str, schema: dict[str, Any]) -> None:
    assert output_schema(type_)["properties"][name] == schema


def test_an_enum_that_is_written_out_everywhere_is_no_definition() -> None:
    assert set(output_schema(Hut)["$defs"]) == {"Point"}


def test_what_a_strict_tools_docstring_says_of_a_reference_is_kept() -> None:
    def draw(point: Point) -> None:
        """Draw.

        Args:
            point: Where to.
        """

    assert Tool.of(draw, strict=True).input_schema["properties"]["point"] == {
        "anyOf": [{"$ref": "#/$defs/Point"}],
        "description": "Where to.",
    }


class Root(pydantic.RootModel[Place]):
    """Of them all."""


@pytest.mark.parametrize(
    ("type_", "description"),
    [
        (Annotated[Place, pydantic.Field(description="The root.")], "The root.\n\nWhere it is."),
        (Root, "Of them all.\n\nWhere it is."),
        (Annotated[Point, Meta(description="The root.")], "The root."),
    ],
)
def test_a_described_root_is_an_object_with_the_description(type_: Any, description: str) -> None:
    schema = output_schema(type_)
    assert (schema["type"], schema["description"], schema.keys() & {"$ref", "anyOf", "$defs"}) == ("object", description, set())


def test_definitions_are_strict_too() -> None:
    definitions = output_schema(Everything)["$defs"]
    assert definitions["Color"] == {"title": "Color", "enum": ["blue", "red"]}
    assert definitions["Pair"]["description"] == '{minItems: 2, maxItems: 2, items in order: ["integer", "string"]}'


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    tricks: list[str]


def test_a_tagged_union_is_any_of_its_members() -> None:
    schema = output_schema(list[Cat | Dog])
    assert schema["items"] == {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}
    assert schema["$defs"]["Cat"]["properties"]["type"] == {"enum": ["Cat"]}


class Box(pydantic.BaseModel):
    content: Annotated[Cat2 | Dog2, pydantic.Field(discriminator="kind")]


class Cat2(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog2(pydantic.BaseModel):
    kind: Literal["dog"]


def test_one_of_is_written_as_any_of() -> None:
    Box.model_rebuild()
    assert output_schema(Box)["properties"]["content"] == {
        "title": "Content",
        "anyOf": [{"$ref": "#/$defs/Cat2"}, {"$ref": "#/$defs/Dog2"}],
    }


class Empty(msgspec.Struct):
    pass


def test_an_object_without_properties_is_closed() -> None:
    assert output_schema(Empty) == {"title": "Empty", "type": "object", "properties": {}, "required": [], "additionalProperties": False}


class Loose(msgspec.Struct):
    table: dict[str, int]


class Vague(msgspec.Struct):
    thing: Any


@pytest.mark.parametrize(
    ("type_", "place"),
    [
        (dict[str, int], "dict is an object with free keys"),
        (Loose, r"Loose\.Loose\.table is an object with free keys"),
        (Vague, r"Vague\.Vague\.thing may hold anything"),
        (Any, "Any may hold anything"),
        (list[Any], "list may hold anything"),
        (list[list[Any]], r"list\[\] may hold anything"),
        (complex, "complex: JSON cannot carry complex"),
        (list[complex], "JSON cannot carry list"),
        (Callable[[], int], "JSON cannot carry"),
    ],
)
def test_what_a_strict_schema_cannot_say_is_refused_with_its_place(type_: Any, place: str) -> None:
    with pytest.raises(TypeError, match=place):
        output_schema(type_)


def test_a_pydantic_model_without_schema_is_refused() -> None:
    class Odd(pydantic.BaseModel):
        call: Callable[[int], int]

    with pytest.raises(TypeError, match=r"Odd: JSON cannot carry Odd: Cannot generate a JsonSchema.*CallableSchema$"):
        output_schema(Odd)


def test_an_output_format_is_made_of_a_type() -> None:
    assert OutputFormat.of(Point) == OutputFormat(POINT, name="point")
    assert OutputFormat.of(Point, name="p").name == "p"


@pytest.mark.parametrize(
    ("given", "name"),
    [("Page[int]", "page_int"), ("Größe", "gr_e"), ("名前", "output"), ("A" * 40, "_".join("a" * 32))],
)
def test_the_name_of_a_format_is_one_that_every_dialect_takes(given: str, name: str) -> None:
    made = msgspec.defstruct("Made", [("x", int)])
    made.__name__ = given
    assert OutputFormat.of(made).name == name


# ---- typed answers


def answer(*content: Any, stop: Any = "end_turn") -> Response:
    message = Message("assistant", content, origin=Origin("anthropic", "claude-test-1", "anthropic"))
    return Response(message=message, stop=stop, usage=Usage(output=3), request_id="req_1", attempts=2)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ('{"x": 1}', Point, Point(1)),
        ('{"x": 1}', Pixel, Pixel(1)),
        ('{"a": 1}', Row, {"a": 1}),
        ('[{"x": 1}]', list[Point], [Point(1)]),
        ('{"name": "Elbrus", "height": 5642}', Place, Place(name="Elbrus", height=5642)),
        ('[{"name": "Elbrus"}]', list[Place], [Place(name="Elbrus")]),
        ("[1, 2]", list[int], [1, 2]),
        ('"red"', Color, Color.RED),
        (" 7 ", int, 7),
    ],
)
def test_an_answer_is_read_as_its_type(text: str, type_: Any, value: Any) -> None:
    assert answer(text).parse(type_) == value
    assert parse_output(answer(text), type_) == value


def test_an_answer_in_several_texts_is_one() -> None:
    assert answer('{"x"', Text(": 1}")).parse(Point) == Point(1)


def test_an_answer_that_was_complete_is_read_whatever_the_stop() -> None:
    assert answer('{"x": 1}', stop="max_tokens").parse(Point) == Point(1)


def test_an_answer_that_does_not_fit_raises_with_all_that_is_known() -> None:
    response = answer('{"x": "one"}')
    with pytest.raises(OutputParseError) as caught:
        response.parse(Point)
    error = caught.value
    assert str(error) == "Answer does not parse as Point: Expected `int`, got `str` - at `$.x`"
    assert (error.text, error.partial, error.usage) == ('{"x": "one"}', response.message, Usage(output=3))
    assert (error.provider, error.model, error.request_id, error.attempts) == ("anthropic", "claude-test-1", "req_1", 2)
    assert not error.retryable


@pytest.mark.parametrize(
    ("content", "stop", "type_", "text"),
    [
        (['{"x": '], "max_tokens", Point, r"Input data was truncated \(the answer was cut off at max_tokens: raise it\)"),
        (["I cannot"], "refusal", Point, r"\(the model refused\)"),
        ([], "refusal", Place, r"it has no text \(the model refused\)"),
        (['{"x"'], "context_exceeded", Point, "context window: shorten the conversation"),
        ([ToolUse("i", "n", {})], "tool_use", Point, "it has no text$"),
        ([""], "end_turn", Point, "it has no text$"),
        (["```json\n{}\n```"], "end_turn", Point, "JSON is malformed"),
        (['{"name": 1}'], "end_turn", Place, r"string_type - at `\$\.name`"),
        (['[{"name": 1}]'], "end_turn", list[Place], r"as list: string_type - at `\$\[0\]\.name`"),
        (["{"], "end_turn", Place, r"json_invalid - at `\$`"),
        (["[" * 200_000], "end_turn", list[int], "nested too deeply|Expected"),
        (["[" * 200_000], "end_turn", Any, "nested too deeply"),
        (["\ud800"], "end_turn", Point, "it is not Unicode text"),
    ],
)
def test_why_an_answer_does_not_fit(content: list[Any], stop: Any, type_: Any, text: str) -> None:
    with pytest.raises(OutputParseError, match=text):
        answer(*content, stop=stop).parse(type_)


def test_the_error_never_quotes_the_answer_in_its_words() -> None:
    for type_ in (Color, Place):
        with pytest.raises(OutputParseError) as caught:
            answer('"my secret"').parse(type_)
        assert "secret" not in str(caught.value)
        assert caught.value.text == '"my secret"'


def test_an_answer_of_unknown_origin_has_the_responses_model() -> None:
    response = Response(message=assistant("?"), stop="end_turn", model="m")
    with pytest.raises(OutputParseError) as caught:
        response.parse(int)
    assert (caught.value.provider, caught.value.model) == ("", "m")


# ---- tools


def weather(city: str, unit: Literal["C", "F"] = "C", *, days: int = 3) -> str:
    """Say the weather
    of a city.

    It asks the met office.

    Args:
        city (str): The city,
            in any language: Omsk, Омск.
        unit: Celsius or Fahrenheit.

        days: How many days ahead.

    Returns:
        str: A sentence.
    """
    return f"{city} {unit} {days}"


WEATHER = Tool(
    "weather",
    "Say the weather of a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city, in any language: Omsk, Омск."},
            "unit": {"enum": ["C", "F"], "description": "Celsius or Fahrenheit.", "default": "C"},
            "days": {"type": "integer", "description": "How many days ahead.", "default": 3},
        },
        "required": ["city"],
    },
)


def test_a_tool_is_made_of_a_function() -> None:
    assert Tool.of(weather) == tool_of(weather) == WEATHER


def test_a_strict_tool_requires_all_and_tells_the_defaults() -> None:
    assert Tool.of(weather, strict=True) == Tool(
        "weather",
        "Say the weather of a city.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city, in any language: Omsk, Омск."},
                "unit": {"enum": ["C", "F"], "description": 'Celsius or Fahrenheit.\n\n{default: "C"}'},
                "days": {"type": "integer", "description": "How many days ahead.\n\n{default: 3}"},
            },
            "required": ["city", "unit", "days"],
            "additionalProperties": False,
        },
        strict=True,
    )


def numpy_style(city: str, days: int, plain: bool) -> None:
    """Numpy.

    Parameters
    ----------
    city : str, optional
        The city.
        In any language.
    days
        How many days.

    Returns
    -------
    plain : bool
        Not a parameter's text.
    """


def sphinx_style(city: str, days: int, plain: bool) -> None:
    """Sphinx.
    :param city: The city,
        in any language.
    :param int days: How many days.
    :type city: str
    :returns: plain
    """


@pytest.mark.parametrize(("function", "city"), [(numpy_style, "The city. In any language."), (sphinx_style, "The city, in any language.")])
def test_parameters_are_described_in_other_docstring_styles(function: Callable[..., object], city: str) -> None:
    tool = Tool.of(function)
    assert tool.description in ("Numpy.", "Sphinx.")
    assert tool.input_schema["properties"] == {
        "city": {"type": "string", "description": city},
        "days": {"type": "integer", "description": "How many days."},
        "plain": {"type": "boolean"},
    }


def test_annotations_describe_before_the_docstring_does() -> None:
    def function(a: Annotated[int, Meta(ge=0, description="meta")], b: Annotated[int, "note", 7], c: Annotated[int, 7]) -> None:
        """Do.

        Args:
            a: doc
            b: doc
            c: doc
        """

    assert Tool.of(function).input_schema["properties"] == {
        "a": {"type": "integer", "minimum": 0, "description": "meta"},
        "b": {"type": "integer", "description": "note"},
        "c": {"type": "integer", "description": "doc"},
    }


def test_a_function_that_takes_nothing() -> None:
    def now() -> None: ...

    assert Tool.of(now) == Tool("now", "", {"type": "object", "properties": {}})
    assert Tool.of(now, strict=True).input_schema == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def test_a_docstring_that_only_lists_parameters_has_no_description() -> None:
    def function(a: int) -> None:
        """
        Args:
            a: A number.
        """

    assert Tool.of(function) == Tool(
        "function",
        "",
        {"type": "object", "properties": {"a": {"type": "integer", "description": "A number."}}, "required": ["a"]},
    )


def test_types_that_parameters_refer_to_are_definitions() -> None:
    def draw(points: list[Point], place: Place | None = None) -> None: ...

    schema = Tool.of(draw).input_schema
    assert schema["properties"]["points"] == {"type": "array", "items": {"$ref": "#/$defs/Point"}}
    assert schema["properties"]["place"] == {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None}
    assert set(schema["$defs"]) == {"Point", "Place"}
    assert Tool.of(draw, strict=True).input_schema["$defs"]["Point"] == POINT


def namesake(*fields: tuple[str, Any], base: Any = msgspec.Struct) -> Any:
    """A type named Point with these fields."""
    return msgspec.defstruct("Point", fields) if base is msgspec.Struct else pydantic.create_model("Point", **dict(fields))


def taking(**hints: Any) -> Any:
    """A function with these parameters."""

    def function(*args: Any, **kwargs: Any) -> None: ...

    kind = inspect.Parameter.KEYWORD_ONLY
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind, annotation=hint) for name, hint in hints.items()])  # type: ignore[attr-defined]
    function.__annotations__ = hints
    return function


def test_types_of_one_name_are_each_a_definition() -> None:
    other = namesake(("name", str))
    schema = Tool.of(taking(a=Point, b=list[other], c=Point, d=other)).input_schema
    assert schema["properties"] == {
        "a": {"$ref": "#/$defs/Point"},
        "b": {"type": "array", "items": {"$ref": "#/$defs/Point_2"}},
        "c": {"$ref": "#/$defs/Point"},
        "d": {"$ref": "#/$defs/Point_2"},
    }
    assert {name: list(definition["properties"]) for name, definition in schema["$defs"].items()} == {
        "Point": ["x", "y"],
        "Point_2": ["name"],
    }


def test_what_refers_to_a_renamed_definition_is_another_one_too() -> None:
    first, second, third = (
        msgspec.defstruct("Line", [("start", point)], tag=True) for point in (Point, namesake(("name", str)), namesake(("z", int)))
    )
    road = msgspec.defstruct("Road", [("n", int)], tag=True)
    schema = Tool.of(taking(a=list[first], b=second | road, c=list[third])).input_schema
    assert schema["properties"]["c"]["items"] == {"$ref": "#/$defs/Line_3"}
    assert schema["properties"]["b"]["discriminator"]["mapping"] == {"Line": "#/$defs/Line_2", "Road": "#/$defs/Road"}
    assert {name: part["properties"]["start"]["$ref"] for name, part in schema["$defs"].items() if "Line" in name} == {
        "Line": "#/$defs/Point",
        "Line_2": "#/$defs/Point_2",
        "Line_3": "#/$defs/Point_3",
    }


def test_types_of_one_name_are_told_apart_whoever_describes_them() -> None:
    other = namesake(("z", int), base=pydantic.BaseModel)
    schema = Tool.of(taking(a=Point, b=list[other]), strict=True).input_schema
    assert schema["properties"]["b"]["items"] == {"$ref": "#/$defs/Point_2"}
    assert list(schema["$defs"]["Point_2"]["properties"]) == ["z"]


class Toolbox:
    async def later(self, a: int) -> None:
        """Later."""


def test_methods_and_coroutines_are_functions_too() -> None:
    assert Tool.of(Toolbox().later) == Tool(
        "later", "Later.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    )


def test_a_default_that_json_cannot_hold_is_only_optional() -> None:
    def function(a: float = float("inf"), b: int = object()) -> None: ...  # type: ignore[assignment]

    assert Tool.of(function).input_schema == {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "integer"}}}


def test_a_wrapped_function_is_described_as_what_it_wraps() -> None:
    @functools.wraps(weather)
    def wrapper(*args: Any, **kwargs: Any) -> str:
        return weather(*args, **kwargs)

    assert Tool.of(wrapper) == WEATHER


class Answering:
    def __call__(self, a: int) -> None: ...


def no_annotation(a, b: int) -> None: ...  # type: ignore[no-untyped-def]
def many(*values: int) -> None: ...
def any_name(**values: int) -> None: ...
def by_position(a: int, /) -> None: ...
def strange(a: int, b: complex) -> None: ...
def unknown(a: int, b: list[Nowhere]) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def unknown_result(a: int) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821


class Unfinished(msgspec.Struct):
    a: Nowhere  # type: ignore[name-defined]  # noqa: F821


def of_unfinished(a: Unfinished) -> None: ...
def missing_name(a: os.nowhere) -> None: ...  # type: ignore[name-defined]
def odd_annotation(a: "1 +") -> None: ...  # type: ignore[syntax]  # noqa: F722


@pytest.mark.parametrize(
    "bound", [functools.partial(weather, "Omsk", days=2), functools.wraps(weather)(functools.partial(weather, "Omsk", days=2))]
)
def test_a_partial_is_the_function_without_what_is_bound(bound: Any) -> None:
    tool = Tool.of(bound)
    assert (tool.name, tool.description) == (WEATHER.name, WEATHER.description)
    assert tool.input_schema == {"type": "object", "properties": {"unit": WEATHER.input_schema["properties"]["unit"]}}


@pytest.mark.parametrize("type", [int | None, Point | None, Optional[int]])  # noqa: UP045  # the other spelling
def test_an_answer_of_several_types_is_refused_with_what_to_do(type: Any) -> None:
    with pytest.raises(
        TypeError,
        match=r"is a choice of types, not one: use a class with a field of it, since OpenAI takes no choice at the top of a schema",
    ):
        OutputFormat.of(type)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (no_annotation, r"no_annotation\(\): parameter `a` has no annotation"),
        (many, r"many\(\): parameter `values` takes any number of values"),
        (any_name, r"any_name\(\): parameter `values` takes any number of values"),
        (by_position, r"by_position\(\): parameter `a` is positional-only"),
        (strange, r"strange\(\): parameter `b`: JSON cannot carry complex"),
        (unknown, r"unknown\(\): the annotation of b cannot be resolved: name 'Nowhere'"),
        (unknown_result, r"unknown_result\(\): the annotation of the result cannot be resolved"),
        (of_unfinished, r"of_unfinished\(\): parameter `a`: JSON cannot carry Unfinished: name 'Nowhere' is not defined"),
        (Unfinished, r"Unfinished\(\): the annotation of a cannot be resolved: name 'Nowhere'"),
        (missing_name, r"missing_name\(\): the annotation of a cannot be resolved: module 'os' has no attribute 'nowhere'"),
        (odd_annotation, r"odd_annotation\(\): the annotation of a"),
        (int, r"int\(\) has no signature that can be read"),
        (max, r"max\(\) has no signature that can be read"),
        (dict, r"dict\(\) has no signature .* pass Tool\(name, description, input_schema\)"),
        (functools.partial(int), r"int\(\) has no signature that can be read"),
        (functools.partial(weather, nowhere=1), r"weather\(\) has no signature .* or a partial binds what it does not take"),
        (functools.partial(weather, "Omsk", "C", 3), r"weather\(\) has no signature .* or a partial binds what it does not take"),
        (Toolbox.later, r"later\(\): parameter `self` has no annotation"),
        (lambda: None, "a tool needs a named function"),
        (functools.partial(lambda: None), "a tool needs a named function, not a lambda: give it a name with def"),
        (Answering(), "not an object of type Answering: give it a name with def, or pass Tool"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_naming_the_parameter(function: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Tool.of(function)


def free(table: dict[str, int], anything: Any) -> None: ...


def test_a_free_form_parameter_is_fine_unless_strict() -> None:
    assert Tool.of(free).input_schema["properties"] == {
        "table": {"type": "object", "additionalProperties": {"type": "integer"}},
        "anything": {},
    }
    with pytest.raises(TypeError, match=r"free\(\)\.table is an object with free keys"):
        Tool.of(free, strict=True)


def test_tools_and_formats_are_stored_with_a_request() -> None:
    request = Request("hi", tools=[Tool.of(weather, strict=True)], output=OutputFormat.of(Everything))
    assert from_json(to_json(request), Request) == request


def test_the_error_is_one_of_ours() -> None:
    assert issubclass(OutputParseError, DragomanError)
