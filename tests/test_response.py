"""Responses and usage."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    InvalidToolUse,
    Iteration,
    Limit,
    Notice,
    RateLimits,
    Response,
    StopDetails,
    StopReason,
    Timing,
    ToolUse,
    Usage,
    assistant,
)
from dragoman.response import FINISH, Finish
from tests.strategies import usages

VALUES: list[Any] = [
    Usage(input=1),
    Iteration("message", usage=Usage()),
    StopDetails("refusal"),
    RateLimits(),
    Limit(),
    Timing(0.0),
    Response(message=assistant("a"), stop="end_turn"),
    Notice("c", "m"),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_unhashable_and_copy_as_equals(value: Any) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    with pytest.raises(AttributeError):
        setattr(value, value.__struct_fields__[0], "x")
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert twin == value


# ---- usage

ONE = Usage(
    input=1,
    output=2,
    reasoning=3,
    cache_read=4,
    cache_write_5m=5,
    cache_write_1h=6,
    cache_write_other=7,
    server_tools={"web_search": 1, "fetch": 2},
    iterations=[Iteration("message", usage=Usage(input=1))],
    details={"output.audio": 1},
    reported_cost=Decimal("0.1"),
    service_tier="standard",
    speed="fast",
    inference_geo="eu",
)


def test_totals_are_sums_of_disjoint_buckets() -> None:
    assert ONE.cache_write == 5 + 6 + 7
    assert ONE.total_input == 1 + 4 + 18
    assert ONE.total == 1 + 4 + 18 + 2


def test_iterations_details_and_reasoning_are_in_no_total() -> None:
    parts = Usage(reasoning=9, details={"input.audio": 9}, iterations=[Iteration("message", usage=Usage(input=9))], server_tools={"x": 9})
    assert (parts.total_input, parts.total) == (0, 0)


def test_usages_add() -> None:
    other = Usage(
        input=10,
        output=20,
        reasoning=30,
        cache_read=40,
        cache_write_5m=50,
        cache_write_1h=60,
        cache_write_other=70,
        server_tools={"fetch": 1, "code": 1},
        iterations=[Iteration("compaction", model="m", usage=Usage(output=1))],
        details={"input.audio": 1},
        reported_cost=Decimal("0.2"),
        service_tier="batch",
        speed="fast",
        inference_geo="us",
    )
    assert ONE + other == Usage(
        input=11,
        output=22,
        reasoning=33,
        cache_read=44,
        cache_write_5m=55,
        cache_write_1h=66,
        cache_write_other=77,
        server_tools={"web_search": 1, "fetch": 3, "code": 1},
        iterations=[Iteration("message", usage=Usage(input=1)), Iteration("compaction", model="m", usage=Usage(output=1))],
        details={"output.audio": 1, "input.audio": 1},
        reported_cost=Decimal("0.3"),
        speed="fast",
    )


def test_a_cost_that_only_one_reports_is_the_reported_cost() -> None:
    assert (ONE + Usage()).reported_cost == (Usage() + ONE).reported_cost == Decimal("0.1")
    assert (Usage() + Usage()).reported_cost is None


def test_extra_numbers_add_tables_merge_and_what_differs_is_left_out() -> None:
    a = Usage(extra={"w": {"n": 1, "f": 0.5, "same": "x", "differs": "x", "flag": True, "deep": {"n": 1, "a": None}}, "a": {"k": 1}})
    b = Usage(extra={"w": {"n": 2, "f": 1, "same": "x", "differs": "y", "flag": False, "deep": {"n": 2, "b": []}}, "b": {"k": [1]}})
    assert (a + b).extra == {
        "w": {"n": 3, "f": 1.5, "same": "x", "deep": {"n": 3, "a": None, "b": []}},
        "a": {"k": 1},
        "b": {"k": [1]},
    }


def test_adding_changes_neither() -> None:
    a, b = Usage(extra={"w": {"d": {"n": 1}}}, server_tools={"x": 1}), Usage(extra={"w": {"d": {"n": 1}}}, server_tools={"x": 1})
    _ = a + b
    assert a == b == Usage(extra={"w": {"d": {"n": 1}}}, server_tools={"x": 1})


@given(usages, usages)
def test_totals_of_a_sum_are_the_sums_of_the_totals(a: Usage, b: Usage) -> None:
    assert (a + b).total == a.total + b.total
    assert (a + b).total_input == a.total_input + b.total_input


@given(st.lists(usages, max_size=4))
def test_a_sum_starts_from_an_empty_usage(all_: list[Usage]) -> None:
    assert sum(all_, Usage()).input == sum(usage.input for usage in all_)


def test_sum_needs_no_empty_usage_to_start_from() -> None:
    assert sum([ONE, ONE]) == ONE + ONE


def test_a_usage_adds_to_nothing_else() -> None:
    with pytest.raises(TypeError):
        ONE + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 + ONE


def test_tables_given_are_copied() -> None:
    tools, details, extra, iterations = {"a": 1}, {"b": 1}, {"w": {"c": 1}}, [Iteration("message", usage=Usage())]
    usage = Usage(server_tools=tools, details=details, extra=extra, iterations=iterations)
    before = copy.deepcopy(usage)
    for given_ in (tools, details, extra, iterations):
        given_.clear()  # type: ignore[attr-defined]
    assert usage == before


# ---- response


def test_a_response_answers_for_its_message() -> None:
    call, bad = ToolUse("1", "n", {}), InvalidToolUse("2", "n", "", reason="incomplete")
    response = Response(message=assistant("hel", "lo", call, bad), stop="tool_use")
    assert (response.text, response.tool_uses, response.invalid_tool_uses) == ("hello", [call], [bad])


def test_every_stop_reason_has_a_coarse_meaning() -> None:
    assert set(FINISH) == set(get_args(StopReason))
    assert set(FINISH.values()) == set(get_args(Finish))


@pytest.mark.parametrize(("stop", "finish"), FINISH.items())
def test_finish_is_the_coarse_stop_reason(stop: StopReason, finish: Finish) -> None:
    assert Response(message=assistant("a"), stop=stop).finish == finish


def test_a_responses_lists_are_copied() -> None:
    notices, extra = [Notice("c", "m")], {"w": {}}
    response = Response(message=assistant("a"), stop="end_turn", notices=notices, extra=extra)
    notices.clear()
    extra.clear()
    assert (response.notices, response.extra) == ([Notice("c", "m")], {"w": {}})


def test_timing_and_limits_take_their_fields_in_order() -> None:
    assert Timing(1.0, 0.1, 0.2, 0.3, 0.05, 2, 99) == Timing(
        started=1.0, first_byte=0.1, first_content=0.2, finished=0.3, longest_gap=0.05, attempts=2, bytes=99
    )
    limit = Limit(50, 0, "6m0s")
    assert RateLimits(limit, None, limit) == RateLimits(requests=limit, input_tokens=limit)


def test_a_sum_of_usages_keeps_the_tags_they_share() -> None:
    one = Usage(input=1, service_tier="batch", speed="fast")
    assert sum([one, one], Usage()) == Usage(input=2, service_tier="batch", speed="fast")
    assert (Usage() + one, one + Usage()) == (one, one)


def test_a_response_joins_its_text() -> None:
    assert Response(message=assistant("a", "b"), stop="end_turn").join_text("-") == "a-b"
