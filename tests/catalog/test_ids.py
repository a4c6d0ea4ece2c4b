"""Finding a model's row by whatever a cloud, a gateway or a caller calls it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.ids import find, line_of, spellings, version_of


@pytest.mark.parametrize(
    "decorated",
    [
        "us.anthropic.claude-test-1-20260101-v1:0",
        "eu.anthropic.claude-test-1-20260101-v1:0",
        "global.anthropic.claude-test-1-v1",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-test-1-20260101-v1:0",
        "anthropic.claude-test-1",
        "anthropic/claude-test-1",
        "openrouter/anthropic/claude-test-1",
        "claude-test-1@20260101",
        "claude-test-1[1m]",
        "claude-test-1:beta",
        "claude-test-1-20260101",
        "claude-test-1-2026-01-01",
        "claude-test-1-latest",
        "Claude-Test-1",
    ],
)
def test_a_decorated_id_is_the_model_it_decorates(decorated: str) -> None:
    assert find(decorated, {"claude-test-1": "row"}) == "row"


@pytest.mark.parametrize(
    ("spelled", "known"),
    [
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-4-5-sonnet-20250929", "claude-sonnet-4-5"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("anthropic/claude-3.5-haiku", "claude-3-5-haiku"),
        ("claude-3-5-haiku-20241022", "claude-3-5-haiku"),
    ],
)
def test_claude_ids_are_brought_to_one_order(spelled: str, known: str) -> None:
    assert find(spelled, {known: known}) == known


@pytest.mark.parametrize(("model", "row"), [("m-5-pro-2026-01-01", 10), ("m-5-mini", 0.1), ("m-5-2026-01-01", 1), ("m-50", None)])
def test_the_longest_prefix_at_a_separator_is_found(model: str, row: float | None) -> None:
    assert find(model, {"m-5": 1, "m-5-pro": 10, "m-5-mini": 0.1}) == row


def test_an_exact_id_goes_before_what_is_left_without_its_date() -> None:
    assert find("m-5-2026-01-01", {"m-5": "any", "m-5-2026-01-01": "that one"}) == "that one"


@pytest.mark.parametrize("newer", ["claude-opus-5-6", "claude-opus-5.6", "claude-opus-5-10-20270101"])
def test_another_version_is_another_model(newer: str) -> None:
    assert find(newer, {"claude-opus-5": "row"}) is None


@pytest.mark.parametrize("variant", ["claude-opus-5-preview", "gpt-4-0613", "gemini-2.0-flash-001"])
def test_a_variant_that_is_no_version_is_the_model(variant: str) -> None:
    assert find(variant, {"claude-opus-5": "row", "gpt-4": "row", "gemini-2.0-flash": "row"}) == "row"


def test_an_empty_id_is_no_model() -> None:
    assert find("", {"": "row", "a": "row"}) is None


@pytest.mark.parametrize(
    ("model", "line"),
    [
        ("claude-opus-9", "opus"),
        ("us.anthropic.claude-haiku-7-20280101-v1:0", "haiku"),
        ("claude-3-7-sonnet-latest", "sonnet"),
        ("claude-fable-6", "fable"),
        ("claude-mythos-preview", "mythos"),
        ("claude-test-1", ""),
        ("claude-opusculum-1", ""),
        ("gpt-5", ""),
        ("", ""),
    ],
)
def test_the_line_is_read_off_the_name(model: str, line: str) -> None:
    assert line_of(model) == line


def test_versions_compare_as_numbers() -> None:
    assert version_of("claude-opus-4-10") > version_of("claude-opus-4-8-20260101") > version_of("claude-opus-4") == (4,)


@given(st.text(max_size=40))
def test_any_text_can_be_looked_up(model: str) -> None:
    forms = list(spellings(model))

    assert forms[0] == model
    assert len(set(forms)) == len(forms)
    assert find(model, {}) is None
