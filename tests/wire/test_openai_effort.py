"""A thinking budget becomes the same effort in both of OpenAI's protocols."""

from __future__ import annotations

import json

import pytest

from dragoman import Request, ThinkingConfig
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire


@pytest.mark.parametrize(
    ("budget", "effort"),
    [(1024, "minimal"), (1025, "low"), (2048, "low"), (5000, "medium"), (8192, "medium"), (16384, "high"), (16385, "xhigh")],
)
def test_a_budget_is_the_smallest_effort_that_has_room_for_it(budget: int, effort: str) -> None:
    request = Request("hi", model="gpt-5", thinking=ThinkingConfig.budget(budget))
    chat, responses = (json.loads(wire.encode(request, stream=False).body) for wire in (OpenAIChatWire(), OpenAIResponsesWire()))
    assert chat["reasoning_effort"] == responses["reasoning"]["effort"] == effort
