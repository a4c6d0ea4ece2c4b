"""Text in pieces, and what counts as a tool's input."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.fragments import INPUT_DEPTH_LIMIT, JOIN_EVERY, Fragments, parse_input, scrub, scrub_tree
from tests.strategies import json_objects

# ---- fragments


@given(st.lists(st.text(max_size=3), max_size=40))
def test_fragments_are_their_joined_pieces(pieces: list[str]) -> None:
    fragments = Fragments()
    for piece in pieces:
        fragments.add(piece)
    assert fragments.text() == "".join(pieces)
    assert fragments.text() == "".join(pieces)


def test_nothing_is_empty_and_false() -> None:
    fragments = Fragments()
    assert (fragments.text(), bool(fragments)) == ("", False)


@pytest.mark.parametrize("count", [1, JOIN_EVERY - 1, JOIN_EVERY, JOIN_EVERY + 1, 5 * JOIN_EVERY])
def test_fragments_may_be_asked_at_any_time(count: int) -> None:
    fragments = Fragments()
    for index in range(count):
        fragments.add("ab")
        if index % 100 == 0:
            assert fragments.text() == "ab" * (index + 1)
    assert fragments
    assert fragments.text() == "ab" * count


def test_a_hundred_thousand_fragments_are_joined_in_few_objects() -> None:
    fragments = Fragments()
    for index in range(100_000):
        fragments.add(f"{index},")
    held = len(fragments._joined) + len(fragments.pieces)
    assert held <= 100_000 / JOIN_EVERY + JOIN_EVERY
    assert fragments.text() == "".join(f"{index}," for index in range(100_000))


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_each_character_is_copied_twice_at_most(count: int) -> None:
    fragments, copied, before = Fragments(), 0, 0
    for _ in range(count):
        fragments.add("x" * 10)
        if len(fragments._joined) > before:
            copied, before = copied + len(fragments._joined[-1]), len(fragments._joined)
    assert copied + len(fragments.text()) <= 2 * 10 * count


# ---- surrogates


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("", ""),
        ("plain ☕ \U0001f600", "plain ☕ \U0001f600"),
        ("\ud800", "\ufffd"),
        ("a\udfffb", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, clean: str) -> None:
    assert scrub(text) == clean


@given(st.text(st.characters(exclude_categories=())))
def test_scrubbed_text_has_utf8(text: str) -> None:
    assert scrub(text).encode().decode() == scrub(text)


def test_a_tree_is_scrubbed_everywhere_and_not_in_place() -> None:
    tree = {"a\ud800": ["\udfff", {"b": "\ud800"}, 1, None], "c": "plain"}
    assert scrub_tree(tree) == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}, 1, None], "c": "plain"}
    assert list(tree) == ["a\ud800", "c"]


def test_a_tree_may_nest_as_deeply_as_can_be_written() -> None:
    deep: Any = ("\ud800",)
    for _ in range(900):
        deep = [deep]
    leaf = scrub_tree(deep)
    while isinstance(leaf, list):
        (leaf,) = leaf  # pyright: ignore[reportUnknownVariableType]
    assert leaf == "\ufffd"


def test_a_tree_that_holds_itself_has_an_end() -> None:
    loop: list[Any] = []
    loop += [loop, {"a": loop}]
    with pytest.raises(RecursionError, match="nests too deeply"):
        scrub_tree(loop)


# ---- inputs


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("", {}),
        ("{}", {}),
        (' {"a" : 1 } \n', {"a": 1}),
        ('{"a":1e20,"b":10000000000000000000000000,"c":{},"d":[]}', {"a": 1e20, "b": 10**25, "c": {}, "d": []}),
        ('{"a":"\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        ('{"a":"\\ud83d","b":1}', {"a": "\ufffd", "b": 1}),
        ('{"\\udfff":"x\\ud800y\\\\ud800"}', {"\ufffd": "x\ufffdy\\ud800"}),
        ('{"a":"\ud800"}', {"a": "\ufffd"}),
        ('{"a":"\\ud800\\ud83d\\ude00"}', {"a": "\ufffd\U0001f600"}),
        ('{"a":"\\ud800"}', {"a": "\ufffd"}),
        ('{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_a_json_object_is_an_input(raw: str, value: Any) -> None:
    assert parse_input(raw) == value


def test_the_order_and_the_kinds_of_numbers_are_kept() -> None:
    value = parse_input('{"z":1,"a":1.0,"m":{"y":2,"x":1}}')
    assert json.dumps(value) == '{"z": 1, "a": 1.0, "m": {"y": 2, "x": 1}}'


@pytest.mark.parametrize(
    "raw",
    [
        '{"a":NaN}',
        '{"a":Infinity}',
        '{"a":-Infinity}',
        '{"a":1e999}',
        '{"a":%s}' % ("1" * 5000),
        '{"a":1}x',
        '{"a":1}{"b":2}',
        '{"a":"\\x"}',
        '{"a":"\x01"}',
        '{"a":"\n"}',
        "{'a':1}",
        '{"a":1,}',
        "{a:1}",
        '{"a":01}',
        '{"a":1.}',
        '{"a":-}',
        '{"a":tru}',
        '{"a":"\\ud83"}',
        '{"a":"\\ud800","b":NaN}',
        '{"a":"\\ud800"}x',
        "\ud800",
        "}",
        "\ufeff{}",
    ],
)
def test_what_is_not_json_is_invalid(raw: str) -> None:
    assert parse_input(raw) == "invalid_json"


@pytest.mark.parametrize("raw", ["[]", '[{"a":1}]', "null", "true", "7", '"{}"', '"\\ud800"'])
def test_json_that_is_no_object_is_none(raw: str) -> None:
    assert parse_input(raw) == "not_an_object"


@pytest.mark.parametrize(
    "raw", [" ", "{", '{"a', '{"a":', '{"a":1', '{"a":-', '{"a":1.', '{"a":1e', '{"a":1e+', '{"é":-', "[1", '"a', "tru"]
)
def test_a_text_that_ends_too_early_is_incomplete(raw: str) -> None:
    assert parse_input(raw) == "incomplete"


@given(json_objects, st.data())
@example({"a": [1.5, -2, "\ud800 \U0001f600"]}, None)
def test_every_beginning_of_an_input_is_incomplete(value: dict[str, Any], data: st.DataObject | None) -> None:
    for raw in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        ends = range(1, len(raw)) if data is None else [data.draw(st.integers(1, len(raw) - 1))]
        assert [parse_input(raw[:end]) for end in ends] == ["incomplete"] * len(ends)


@given(json_objects)
def test_every_object_is_read_as_the_standard_library_reads_it(value: dict[str, Any]) -> None:
    assert parse_input(json.dumps(value)) == scrub_tree(value)


@given(st.text(st.characters(exclude_categories=()), max_size=20) | st.text('{}[]",:\\ud8019.e-', max_size=20))
def test_any_text_is_an_object_or_has_a_reason(raw: str) -> None:
    assert isinstance(parse_input(raw), dict) or parse_input(raw) in ("incomplete", "invalid_json", "not_an_object")


# ---- bounds


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def test_an_input_may_nest_to_its_limit() -> None:
    assert isinstance(parse_input(nested(INPUT_DEPTH_LIMIT)), dict)
    assert parse_input(nested(INPUT_DEPTH_LIMIT + 1)) == "invalid_json"


@pytest.mark.parametrize("raw", ["[" * 1_000_000, '{"a":' * 100_000, "[{" * 500_000, '{"a":"\\ud800","b":' + "[" * 100_000])
def test_endless_nesting_is_invalid(raw: str) -> None:
    assert parse_input(raw) == "invalid_json"


def test_brackets_in_strings_do_not_nest() -> None:
    text = '[{"\\' * 1000
    assert parse_input(json.dumps({"a": text})) == {"a": text}
    assert parse_input(json.dumps({"a": text})[:-2]) == "incomplete"


def test_many_brackets_side_by_side_do_not_nest() -> None:
    value = {"rows": [{"cells": [[], {}]} for _ in range(2000)]}
    assert parse_input(json.dumps(value)) == value


def test_a_large_input_is_parsed_by_few_calls() -> None:
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    raw = json.dumps({"rows": [{"text": "\\ud800" * 3} for _ in range(20_000)]})
    sys.setprofile(profile)
    try:
        value = parse_input(raw)
    finally:
        sys.setprofile(None)
    assert isinstance(value, dict)
    assert count < 1000
