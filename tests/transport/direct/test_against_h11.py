"""Ours against h11, byte for byte: the same few cases each time; `bench/fuzz.py` looks for new ones, for as long as one likes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .differential import Outcome, Reply, by_h11, by_ours, compare, damaged, pieces, random_reply

SEEDS = st.integers(min_value=0, max_value=2**63)


@given(SEEDS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_whole_answer_is_what_it_was_made_of(seed: int) -> None:
    rng = random.Random(seed)
    reply = random_reply(rng)
    parts = pieces(rng, reply.data)
    compare(reply, parts)
    ours = by_ours(parts)
    assert (ours.end, ours.status, ours.body) == ("complete", reply.status, reply.body)
    assert ours.reusable == (reply.keep and not reply.closes)


@given(SEEDS)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_an_answer_that_is_cut_short(seed: int) -> None:
    rng = random.Random(seed)
    reply = random_reply(rng)
    compare(reply, pieces(rng, reply.data[: rng.randrange(len(reply.data))]))


@given(SEEDS)
@settings(max_examples=500, deadline=None, derandomize=True)
def test_a_damaged_answer_is_refused_or_read_alike(seed: int) -> None:
    rng = random.Random(seed)
    compare(None, pieces(rng, damaged(rng, random_reply(rng).data)))


def test_the_comparison_notices_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = Reply(200, [], b"ab", "length", True, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab")
    assert by_h11([reply.data]) == by_ours([reply.data]) == Outcome("complete", 200, [("content-length", "2")], b"ab", True)
    monkeypatch.setattr("dragoman.transport.direct.answer.Answer.take", lambda self: b"ax")
    with pytest.raises(AssertionError):
        compare(reply, [reply.data])
