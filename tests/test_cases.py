"""Every fault case of the protocols that we speak has a test: its id stands in one, or the table below says which test is about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.shared import cases, needs_cases

HERE = Path(__file__)
TO_COME = frozenset({"langchain-ai/langchainjs#11423"})
"""A case of a dialect without a wire yet, under another theme (what Gemini counts)."""

THEMES_TO_COME = frozenset({"bedrock", "gemini"})
"""Dialects without a wire yet."""

ABOUT = {
    "AtomicBot-ai/atomic-agent#323": "transport/test_clocks.py::test_idle_begins_anew_with_every_byte",
    "BerriAI/litellm#3521": "test_cost.py::test_a_decorated_id_has_the_price_of_the_model",
    "NousResearch/hermes-agent#84738": "driver/test_call.py::test_the_server_says_how_long_to_wait",
    "browser-use/browser-use#4294": "test_response.py::test_totals_are_sums_of_disjoint_buckets",
    "frontman-ai/frontman#731": "driver/test_call.py::test_pings_reset_the_idle_clock_but_not_that_of_content",
    "unslothai/unsloth#5690": "test_cost.py::test_a_date_or_a_revision_costs_the_same_and_a_variant_is_another_model",
}
"""Cases whose test does not say their id."""


@needs_cases
def test_no_fault_case_is_without_a_test() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in HERE.parent.rglob("*.py") if path != HERE)
    wanted = [identity for identity, case in cases().items() if case["theme"] not in THEMES_TO_COME and identity not in TO_COME]
    assert wanted
    assert [identity for identity in wanted if identity not in ABOUT and not re.search(rf"{re.escape(identity)}(?!\d)", text)] == []


@pytest.mark.parametrize("place", ABOUT.values())
def test_the_test_of_a_case_is_there(place: str) -> None:
    file, _, name = place.partition("::")
    assert f"def {name}(" in (HERE.parent / file).read_text(encoding="utf-8")
