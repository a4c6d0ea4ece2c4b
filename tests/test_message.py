"""Messages and their blocks: what a constructor takes, what a value is, what may be asked of it."""

from __future__ import annotations

import base64
import copy
import json
import pickle
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from dragoman import (
    Audio,
    Base64,
    Block,
    CacheControl,
    Citation,
    Document,
    FileId,
    Image,
    InvalidToolUse,
    Message,
    Opaque,
    Origin,
    Parts,
    PlainText,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Source,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Url,
    Video,
    assistant,
    system,
    tool_result,
    user,
)
from dragoman.message import sniff_image
from dragoman.value import snake_case

EXAMPLES: list[Any] = [
    Text("a"),
    Refusal("a"),
    Image(Url("u")),
    Audio(FileId("f")),
    Video(Url("u")),
    Document(PlainText("t")),
    Thinking("t"),
    RedactedThinking("d"),
    ToolUse("i", "n", {"a": 1}),
    InvalidToolUse("i", "n", "{", reason="incomplete"),
    ToolResult("i", "r"),
    ServerToolUse("i", "n", {}),
    ServerToolResult("i", [], kind="k"),
    Opaque({"type": "x"}, wire="w"),
    Base64("image/png", ""),
    Url("u"),
    FileId("f"),
    PlainText("t"),
    Parts(["t"]),
    Message("user", "a"),
    Origin("p", "m", "w"),
    Citation("k", {}),
    CacheControl(),
]
IDS = [type(value).__name__ for value in EXAMPLES]


# ---- values


@pytest.mark.parametrize("value", EXAMPLES, ids=IDS)
def test_values_are_not_hashable(value: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


@pytest.mark.parametrize("value", EXAMPLES, ids=IDS)
def test_values_are_frozen(value: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(value, value.__struct_fields__[0], "x")


@pytest.mark.parametrize("value", EXAMPLES, ids=IDS)
def test_values_copy_and_pickle_as_equals(value: Any) -> None:
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value
        assert type(twin) is type(value)


@pytest.mark.parametrize("cls", [*get_args(Block), *get_args(Source)], ids=lambda cls: cls.__name__)
def test_the_tag_is_the_class_name_in_snake_case(cls: Any) -> None:
    assert cls.type == snake_case(cls.__name__) == cls.__struct_config__.tag


def test_equal_by_value_and_type() -> None:
    assert Text("a") == Text("a")
    assert Text("a") != Text("b")
    assert Text("a") != Refusal("a")


def test_blocks_match_by_position() -> None:
    match ToolUse("i", "n", {"a": 1}):
        case ToolUse(id, name, input):
            assert (id, name, input) == ("i", "n", {"a": 1})


@pytest.mark.parametrize(
    ("cls", "positional", "options"),
    [
        (Text, ["text"], {"citations", "cache", "extra"}),
        (Refusal, ["text"], {"extra"}),
        (Image, ["source"], {"cache", "extra"}),
        (Audio, ["source"], {"transcript", "cache", "extra"}),
        (Video, ["source"], {"cache", "extra"}),
        (Document, ["source"], {"title", "context", "cite", "cache", "extra"}),
        (Thinking, ["text"], {"signature", "extra"}),
        (RedactedThinking, ["data"], {"extra"}),
        (ToolUse, ["id", "name", "input"], {"cache", "extra"}),
        (InvalidToolUse, ["id", "name", "raw"], {"reason", "extra"}),
        (ToolResult, ["tool_use_id", "content"], {"is_error", "cache", "extra"}),
        (ServerToolUse, ["id", "name", "input"], {"extra"}),
        (ServerToolResult, ["tool_use_id", "content"], {"kind", "extra"}),
        (Opaque, ["data"], {"wire"}),
        (Message, ["role", "content"], {"origin", "extra"}),
    ],
)
def test_fields_before_the_star_are_positional_and_the_rest_by_keyword(cls: Any, positional: list[str], options: set[str]) -> None:
    assert list(cls.__match_args__) == positional
    assert set(cls.__struct_fields__) == {*positional, *options}


# ---- what is given is copied


def test_lists_given_are_copied() -> None:
    content: list[str | Block] = [Text("a")]
    citations = [Citation("k", {})]
    values = [Message("user", content), ToolResult("i", content), Parts(content)]
    text = Text("a", citations=citations)
    content.append("b")
    citations.clear()
    assert [value.content for value in values] == [[Text("a")]] * 3
    assert text.citations == [Citation("k", {})]


def test_dicts_given_are_copied() -> None:
    data: dict[str, Any] = {"a": 1}
    extra: dict[str, dict[str, Any]] = {"w": {}}
    call = ToolUse("i", "n", data, extra=extra)
    server, opaque, citation = ServerToolUse("i", "n", data), Opaque(data, wire="w"), Citation("k", data)
    data["b"] = 2
    extra["x"] = {}
    assert call.input == server.input == opaque.data == citation.data == {"a": 1}
    assert call.extra == {"w": {}}


def test_defaults_are_not_shared() -> None:
    assert Text("a").extra is not Text("a").extra


# ---- content


def test_a_string_is_one_text() -> None:
    assert Message("user", "hi").content == [Text("hi")]
    assert ToolResult("i", "hi").content == [Text("hi")]
    assert Parts("hi").content == [Text("hi")]


def test_an_empty_string_is_one_empty_text() -> None:
    assert Message("user", "").content == [Text("")]


def test_strings_among_blocks_are_texts() -> None:
    assert Message("user", ["a", Image(Url("u")), "b"]).content == [Text("a"), Image(Url("u")), Text("b")]


def test_any_iterable_of_parts_is_made_a_list() -> None:
    for parts in (("a", "b"), (letter for letter in "ab"), iter(["a", "b"])):
        assert Message("user", parts).content == [Text("a"), Text("b")]


def test_replacing_content_by_a_string_makes_it_a_text() -> None:
    assert msgspec.structs.replace(user("a"), content="b") == user("b")


def test_helpers_make_one_turn_each() -> None:
    assert user("a", Image(Url("u"))) == Message("user", [Text("a"), Image(Url("u"))])
    assert assistant("a") == Message("assistant", "a")
    assert system("a") == Message("system", "a")
    assert user().content == []


def test_text_joins_the_texts_and_only_those() -> None:
    message = assistant("It is ", Refusal("no"), Thinking("hm"), "cold", ToolUse("i", "n", {}), ".")
    assert message.text == "It is cold."
    assert message.join_text("|") == "It is |cold|."


def test_a_message_without_text_has_the_empty_text() -> None:
    assert assistant(Thinking("hm")).text == ""
    assert assistant().join_text(", ") == ""


def test_calls_are_listed_in_order() -> None:
    a, bad, b = ToolUse("1", "n", {}), InvalidToolUse("2", "n", "[", reason="invalid_json"), ToolUse("3", "n", {})
    message = assistant(a, "and", bad, b, ServerToolUse("4", "n", {}))
    assert message.tool_uses == [a, b]
    assert message.invalid_tool_uses == [bad]


def test_a_tool_result_has_its_text() -> None:
    assert ToolResult("i", ["a", Image(Url("u")), "b"]).text == "ab"


# ---- citations


def test_a_citation_answers_from_the_wires_own_object() -> None:
    data = {"url": "https://example.org", "document_title": "Atlas", "cited_text": "cold", "title": None}
    citation = Citation("char_location", data)
    assert (citation.url, citation.title, citation.cited_text) == ("https://example.org", "Atlas", "cold")


def test_a_citation_without_an_answer_says_the_empty_string() -> None:
    citation = Citation("k", {"url": 7})
    assert (citation.url, citation.title, citation.cited_text) == ("", "", "")


# ---- images

PNG = b"\x89PNG\r\n\x1a\n...."
SNIFFED = [
    (PNG, "image/png"),
    (b"\xff\xd8\xff\xe0....", "image/jpeg"),
    (b"GIF87a....", "image/gif"),
    (b"GIF89a....", "image/gif"),
    (b"RIFF\x01\x02\x03\x04WEBPVP8 ", "image/webp"),
    (b"RIFF\x01\x02\x03\x04WAVEfmt ", ""),
    (b"%PDF-1.7", ""),
    (b"", ""),
]


@pytest.mark.parametrize(("data", "media_type"), SNIFFED)
def test_the_first_bytes_tell_the_media_type(data: bytes, media_type: str) -> None:
    assert sniff_image(data) == media_type


def test_an_image_from_bytes_knows_its_type() -> None:
    assert Image.from_bytes(PNG, cache=CacheControl("1h")) == Image(
        Base64("image/png", base64.b64encode(PNG).decode()), cache=CacheControl("1h")
    )


def test_a_given_media_type_wins() -> None:
    assert Image.from_bytes(b"?", "image/bmp").source == Base64("image/bmp", "Pw==")


def test_bytes_that_are_no_known_image_need_a_media_type() -> None:
    with pytest.raises(ValueError, match="pass media_type="):
        Image.from_bytes(b"%PDF-1.7")


def test_an_image_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "cat"
    path.write_bytes(PNG)
    assert Image.from_file(path) == Image.from_file(str(path)) == Image.from_bytes(PNG)
    with pytest.raises(FileNotFoundError):
        Image.from_file(tmp_path / "dog")


# ---- tool results


@pytest.mark.parametrize("call", [ToolUse("i", "n", {}), InvalidToolUse("i", "n", "", reason="incomplete"), "i"])
def test_a_result_answers_a_call_or_its_id(call: Any) -> None:
    assert tool_result(call, "cold", is_error=True) == ToolResult("i", "cold", is_error=True)


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", "text"),
        ("", ""),
        ({"city": "Omsk", "n": [1, None, 1e20]}, '{"city":"Omsk","n":[1,null,1e+20]}'),
        ([1, 2], "[1,2]"),
        ([], "[]"),
        (["a"], '["a"]'),
        (None, "null"),
        (True, "true"),
        (7, "7"),
        (10**25, "10000000000000000000000000"),
        ({"café": "☕"}, '{"café":"☕"}'),
        ({"x": "\ud800"}, '{"x":"\ud800"}'),
        (Text("a"), [Text("a")]),
        ([Text("a"), Image(Url("u"))], [Text("a"), Image(Url("u"))]),
        ((Text("a"),), [Text("a")]),
        (Origin("p", "m", "w"), '{"provider":"p","model":"m","wire":"w"}'),
    ],
)
def test_a_result_is_text_or_blocks_or_json(value: Any, content: Any) -> None:
    assert tool_result("i", value) == ToolResult("i", content)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_result_with_nan_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        tool_result("i", {"x": [number]})


@pytest.mark.parametrize("value", [object(), {"x": object()}, [Text("a"), object()]])
def test_a_result_that_json_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        tool_result("i", value)


def test_a_result_mixed_of_blocks_and_data_is_json() -> None:
    assert json.loads(tool_result("i", [Text("a"), 1]).text) == [{"type": "text", "text": "a"}, 1]


def test_a_result_of_blocks_and_strings_is_content() -> None:
    assert tool_result("id", [Text("a"), "b"]) == ToolResult("id", [Text("a"), Text("b")])
    assert tool_result("id", ["a", "b"]).text == '["a","b"]'


def test_a_result_may_be_a_pydantic_model() -> None:
    import pydantic

    class Weather(pydantic.BaseModel):
        degrees: int

    assert tool_result("id", Weather(degrees=18)).text == '{"degrees":18}'
