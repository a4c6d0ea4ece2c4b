"""The JSON of an input that arrives as free text: always one object, whatever the pieces."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire.openai_responses.input_writer import InputWriter

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
others = st.dictionaries(st.sampled_from(["path", "type", "timeout_ms"]), st.none() | st.integers(0, 9) | texts)


@given(texts, st.integers(0, 8), others)
def test_a_text_cut_anywhere_is_its_value(text: str, cut: int, rest: dict[str, object]) -> None:
    value = {"type": "update_file", "diff": text, **rest}
    writer = InputWriter("diff")
    written = writer.piece(text[:cut]) + writer.piece(text[cut:]) + (writer.finish(value) or "?")
    assert json.loads(written) == value


@given(st.lists(texts, max_size=4), st.integers(0, 4), others)
def test_a_list_of_texts_of_which_some_have_come_is_its_value(commands: list[str], come: int, rest: dict[str, object]) -> None:
    value = {"commands": commands, **rest}
    writer = InputWriter("commands", listed=True)
    written = "".join([writer.piece(text, index) for index, text in enumerate(commands[:come])])
    assert json.loads(written + (writer.finish(value) or "?")) == value


def test_a_pair_of_surrogates_that_was_cut_is_one_character() -> None:
    writer = InputWriter("code")
    assert json.loads(writer.piece("a\ud83d") + writer.piece("\ude00") + (writer.finish({"code": "a😀"}) or "?")) == {"code": "a😀"}


def test_an_index_that_was_left_out_is_an_empty_text() -> None:
    writer = InputWriter("commands", listed=True)
    assert json.loads(writer.piece("b", 1) + (writer.finish({"commands": ["", "b"]}) or "?")) == {"commands": ["", "b"]}


def test_a_value_that_contradicts_what_was_written_cannot_be_finished() -> None:
    writer = InputWriter("code")
    writer.piece("abc")
    assert [writer.finish(value) for value in ({"code": "xyz"}, {"code": 5}, {"code": ["abc"]}, {})] == [None] * 4
    commands = InputWriter("commands", listed=True)
    commands.piece("a", 0)
    commands.piece("b", 1)
    assert [commands.finish({"commands": found}) for found in (["a"], ["x", "b"], ["a", "x"], "ab")] == [None] * 4
