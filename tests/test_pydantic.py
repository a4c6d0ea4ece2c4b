"""Our types as fields of pydantic models, and in the JSON schemas of their pages."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Literal

import pydantic
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.json_schema import models_json_schema

from dragoman import (
    AuthError,
    Block,
    Event,
    Failed,
    Image,
    Message,
    Opaque,
    Request,
    Response,
    Text,
    ToolUse,
    Url,
    Usage,
    assistant,
    to_json,
    user,
)
from tests.golden.storage.v1.values import WRITTEN


class Chat(BaseModel):
    """As a FastAPI body may be."""

    title: str = ""
    history: list[Message] = []
    last: Block | None = None
    usage: Usage = Usage()
    event: Event | None = None


CHAT = Chat(
    title="t",
    history=[user("hi", Image(Url("u"))), assistant(Opaque({"type": "hologram"}, wire="dragoman"))],
    last=ToolUse("i", "n", {"z": 1e20, "a": {}}),
    event=Failed(AuthError("no", status=401)),
)


def test_instances_pass_as_they_are() -> None:
    message = user("a")
    assert Chat(history=[message]).history[0] is message


def test_a_model_comes_back_from_json_equal() -> None:
    assert Chat.model_validate_json(CHAT.model_dump_json()) == CHAT


def test_a_model_comes_back_from_its_dump_equal() -> None:
    assert Chat.model_validate(CHAT.model_dump()) == CHAT


def test_the_json_is_the_stored_form() -> None:
    tree = json.loads(CHAT.model_dump_json())
    assert tree["history"] == [json.loads(to_json(message)) for message in CHAT.history]
    assert tree["last"] == {"type": "tool_use", "id": "i", "name": "n", "input": {"z": 1e20, "a": {}}}


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "lone_surrogate"])  # pydantic's own JSON has none
def test_every_golden_value_passes_through_pydantic(name: str) -> None:
    type_, value = WRITTEN[name]
    adapter: TypeAdapter[Any] = TypeAdapter(type_)
    assert adapter.validate_python(value) is value
    assert adapter.validate_json(adapter.dump_json(value)) == value


def test_an_unknown_block_is_kept_whole() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Block)
    assert adapter.validate_python({"type": "hologram", "a": 1}) == Opaque({"type": "hologram", "a": 1}, wire="dragoman")
    assert adapter.dump_python(Opaque({"type": "hologram", "a": 1}, wire="dragoman")) == {"type": "hologram", "a": 1}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            {"history": [{"role": "user", "content": [{"type": "text", "text": 5}]}]},
            r"Expected `str`, got `int`, at \$\.content\[0\]\.text",
        ),
        ({"history": [{"role": "user", "content": "a", "v": 2}]}, "upgrade dragoman"),
        ({"history": ["hi"]}, "Expected `object`, got `str`"),
        ({"usage": {"input": "many"}}, r"at \$\.input"),
        ({"usage": Text("a")}, "Expected `object`"),
    ],
)
def test_bad_data_is_pydantics_own_error_and_names_the_place(data: Any, text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        Chat.model_validate(data)


def test_what_cannot_be_stored_is_pydantics_own_error() -> None:
    with pytest.raises(pydantic.ValidationError, match="NaN and infinity"):
        Chat.model_validate({"last": {"type": "tool_use", "id": "i", "name": "n", "input": {"x": float("nan")}}})


# ---- schemas


def references(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
        mapping = schema.get("discriminator", {})
        targets = set(mapping["mapping"].values()) if isinstance(mapping, dict) and "mapping" in mapping else set()
        return own | targets | {ref for value in schema.values() for ref in references(value)}
    return {ref for item in schema for ref in references(item)} if isinstance(schema, list) else set()


@pytest.mark.parametrize("mode", ["validation", "serialization"])
@pytest.mark.parametrize("type_", [Chat, Message, Request, Response, Block, Event, Usage], ids=str)
def test_every_reference_of_a_schema_is_defined(type_: Any, mode: Literal["validation", "serialization"]) -> None:
    schema = TypeAdapter(type_).json_schema(mode=mode)
    assert references(schema) <= {f"#/$defs/{name}" for name in schema["$defs"]}


def test_a_type_is_one_named_definition() -> None:
    schema = Chat.model_json_schema()
    assert schema["properties"]["history"] == {"default": [], "items": {"$ref": "#/$defs/Message"}, "title": "History", "type": "array"}
    assert schema["$defs"]["Message"]["properties"]["role"] == {"enum": ["assistant", "system", "user"]}
    assert schema["$defs"]["Url"] == {
        "title": "Url",
        "description": "Bytes that the provider fetches itself.",
        "type": "object",
        "properties": {"type": {"enum": ["url"]}, "url": {"type": "string"}},
        "required": ["type", "url"],
    }


def test_a_page_of_several_models_uses_its_own_reference_template() -> None:
    class Other(BaseModel):
        message: Message

    _, page = models_json_schema([(Chat, "validation"), (Other, "validation")], ref_template="#/components/schemas/{model}")
    assert references(page) <= {f"#/components/schemas/{name}" for name in page["$defs"]}
    assert page["$defs"]["Other"]["properties"]["message"] == {"$ref": "#/components/schemas/Message"}


def test_pydantic_is_not_loaded_by_us() -> None:
    code = "import sys, dragoman, dragoman.schema; dragoman.to_json(dragoman.user('a')); print('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
