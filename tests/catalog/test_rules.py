"""What each model accepts: the matrix of anthropic.md section 14, row by row."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from dragoman import ProtocolError
from dragoman.catalog import EFFORTS, ModelInfo, ModelRules, known, model_info, reset, rules, update

FABLE = ["claude-fable-5", "claude-fable-5-1", "claude-fable-5-2"]
MYTHOS = ["claude-mythos-5", "claude-mythos-5-1", "claude-mythos-5-2"]
CURRENT = [
    *FABLE,
    *MYTHOS,
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-sonnet-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
]
FOUR_SIX = ["claude-opus-4-6", "claude-sonnet-4-6", "claude-mythos-preview"]
FOUR_FIVE = ["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"]
LISTED = [*CURRENT, *FOUR_SIX, *FOUR_FIVE]
"""The ids of the API, without those that differ by a date only."""


@pytest.fixture(autouse=True)
def _local_data() -> Iterator[None]:
    reset()
    yield
    reset()


def having(**expected: object) -> set[str]:
    """The listed models whose rules are these."""
    return {model for model in LISTED if all(getattr(rules(model), name) == value for name, value in expected.items())}


def test_sampling_parameters_and_budgets_are_refused_by_the_same_models() -> None:
    assert having(sampling=False) == having(thinking_budget=False) == set(CURRENT)


def test_who_is_adaptive() -> None:
    assert having(thinking_adaptive=True) == {*CURRENT, *FOUR_SIX}


def test_who_thinks_unless_told_otherwise() -> None:
    assert having(thinking_default_on=True) == set(CURRENT) - {"claude-opus-4-7", "claude-opus-4-8"} | {"claude-mythos-preview"}


def test_who_cannot_be_without_thinking() -> None:
    assert having(thinking_off="never") == {*FABLE, *MYTHOS, "claude-mythos-preview", "claude-opus-5-5"}


def test_who_thinks_between_tools_when_off() -> None:
    assert having(thinking_off="between_tools") == {"claude-sonnet-5-5"}


def test_whose_effort_is_capped_without_thinking() -> None:
    assert having(effort_max_without_thinking="high") == {"claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5"}


def test_who_cannot_be_made_to_call_a_tool() -> None:
    expected = {"claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-1", "claude-mythos-5-2", "claude-opus-5-5", "claude-sonnet-5-5"}
    assert having(forced_tool_choice=False) == expected


def test_whose_thinking_is_bound_to_its_prefix() -> None:
    expected = {"claude-fable-5-1", "claude-fable-5-2", "claude-mythos-5-2", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"}
    assert having(thinking_prefix_bound=True) == expected


def test_who_honours_a_system_message_in_mid_conversation() -> None:
    assert having(mid_system=True) == {*FABLE, *MYTHOS, "claude-opus-4-8", "claude-opus-5", "claude-opus-5-5"}


def test_how_much_each_can_write() -> None:
    assert having(max_output=128_000) == {*CURRENT, *FOUR_SIX}
    assert having(max_output=64_000) == set(FOUR_FIVE)


def test_who_has_a_fast_mode() -> None:
    opus = {"claude-opus-4-6", "claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-opus-5-5"}
    assert having(fast_mode=True) == {*opus, "claude-fable-5-2", "claude-mythos-5-2"}


def test_structured_output_and_strict_tools_come_together_from_the_4_5_generation_on() -> None:
    assert having(structured_output=True, strict_tools=True) == set(LISTED)
    assert rules("claude-opus-4-1").structured_output
    assert not rules("claude-sonnet-4-0").strict_tools


def test_prefill_ended_with_the_4_6_generation() -> None:
    assert having(prefill=True) == set(FOUR_FIVE)


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("claude-opus-5", EFFORTS),
        ("claude-sonnet-4-6", ("low", "medium", "high", "max")),
        ("claude-opus-4-5", ("low", "medium", "high")),
        ("claude-haiku-4-5", ()),
    ],
)
def test_the_efforts_of_a_model(model: str, efforts: tuple[str, ...]) -> None:
    assert rules(model).effort == efforts


def test_retired_models_are_known_still() -> None:
    old = rules("claude-opus-4-1-20250805")

    assert (old.lifecycle, old.max_output, old.temperature_and_top_p_together, old.thinking_adaptive) == ("retired", 32_000, False, False)
    assert rules("claude-opus-4-20250514") == rules("claude-opus-4-0")
    assert rules("claude-3-5-sonnet-20240620").max_output == 8192
    assert not rules("claude-3-haiku-20240307").thinking_budget
    assert not rules("anthropic.claude-v2:1").caching


@pytest.mark.parametrize(
    ("unknown", "newest"),
    [
        ("claude-opus-6", "claude-opus-5-5"),
        ("claude-opus-5-6", "claude-opus-5-5"),
        ("claude-sonnet-9-20300101", "claude-sonnet-5-5"),
        ("us.anthropic.claude-haiku-6-20280101-v1:0", "claude-haiku-5-5"),
        ("claude-fable-6", "claude-fable-5-2"),
        ("claude-mythos-6", "claude-mythos-5-2"),
    ],
)
def test_an_unknown_id_of_a_known_line_has_the_rules_of_its_newest_model(unknown: str, newest: str) -> None:
    assert rules(unknown) == rules(newest)


@pytest.mark.parametrize("model", ["claude-test-1", "gpt-5", "", "claude-next"])
def test_an_id_of_no_known_line_has_no_rules(model: str) -> None:
    assert rules(model) == ModelRules()
    assert not rules(model).is_known


def test_auto_thinking_is_adaptive_only_where_the_model_is_known_to_be() -> None:
    assert rules("claude-sonnet-4-6").auto_adaptive
    assert not rules("claude-sonnet-4-5").auto_adaptive
    assert not rules("claude-test-1").auto_adaptive


def test_each_known_model_is_listed_once() -> None:
    ids = [row.id for row in known()]

    assert len(ids) == len(set(ids))
    assert set(LISTED) <= set(ids)


# ---- what the provider says

WIRE_MODEL = {
    "type": "model",
    "id": "claude-opus-6",
    "display_name": "Claude Opus 6",
    "created_at": "2027-02-01T00:00:00Z",
    "lifecycle": "active",
    "deprecated_at": None,
    "retires_at": None,
    "line": "opus",
    "max_input_tokens": 2_000_000,
    "max_tokens": 256_000,
    "capabilities": {
        "image_input": {"supported": True},
        "pdf_input": {"supported": False},
        "structured_outputs": {"supported": True},
        "effort": {
            "supported": True,
            "low": {"supported": True},
            "medium": {"supported": True},
            "high": {"supported": True},
            "xhigh": None,
            "max": {"supported": False},
        },
        "thinking": {
            "supported": True,
            "types": {
                "enabled": {"supported": True},
                "adaptive": {"supported": True},
                "disabled": {"supported": False},
                "between_tools": {"supported": True},
            },
        },
    },
    "allowed_fallback_models": ["claude-opus-5-5"],
}


def test_a_model_is_read_from_the_wire_and_keeps_what_it_does_not_know() -> None:
    info = model_info(WIRE_MODEL)

    assert (info.id, info.line, info.lifecycle, info.max_tokens) == ("claude-opus-6", "opus", "active", 256_000)
    assert (info.deprecated_at, info.retires_at) == ("", "")
    assert info.extra == {"allowed_fallback_models": ["claude-opus-5-5"]}


@pytest.mark.parametrize(
    ("capability", "answer"),
    [
        ("image_input", True),
        ("pdf_input", False),
        ("thinking.types.disabled", False),
        ("effort.xhigh", None),
        ("batch", None),
        ("effort.low.supported.more", None),
    ],
)
def test_a_capability_is_asked_for_by_its_path(capability: str, answer: bool | None) -> None:
    assert model_info(WIRE_MODEL).supports(capability) is answer


def test_a_compatible_server_may_say_less() -> None:
    assert model_info({"id": "llama", "object": "model"}) == ModelInfo(id="llama", extra={"object": "model"})


def test_what_has_no_id_is_no_model() -> None:
    with pytest.raises(ProtocolError, match="no `id`"):
        model_info({"object": "model"})


def test_an_update_makes_a_new_model_known_and_the_newest_of_its_line() -> None:
    update([model_info(WIRE_MODEL)])
    row = rules("claude-opus-6-20270201")

    assert (row.id, row.context_window, row.max_output, row.thinking_off) == ("claude-opus-6", 2_000_000, 256_000, "between_tools")
    assert row.effort == ("low", "medium", "high")
    assert (row.thinking_budget, row.pdf_input, row.forced_tool_choice) == (True, False, False)  # the last as the line's newest had it
    assert rules("claude-opus-7") == row


def test_an_update_changes_only_what_it_says_and_reset_undoes_it() -> None:
    before = rules("claude-sonnet-4-5")
    update([ModelInfo(id="claude-sonnet-4-5-20250929", lifecycle="retired", retires_at="2026-11-30T00:00:00Z")])
    after = rules("claude-sonnet-4-5")

    assert (after.lifecycle, after.retires_at) == ("retired", "2026-11-30T00:00:00Z")
    assert (after.max_output, after.effort, after.id) == (before.max_output, before.effort, before.id)
    assert rules("us.anthropic.claude-sonnet-4-5-20250929-v1:0") == after
    reset()
    assert rules("claude-sonnet-4-5") == before


def test_an_update_of_an_unknown_line_takes_the_provider_at_its_word() -> None:
    update([ModelInfo(id="claude-saga-1", line="saga", max_tokens=1000)])

    assert (rules("claude-saga-1").line, rules("claude-saga-1").max_output) == ("saga", 1000)


def test_readers_and_writers_may_run_at_once() -> None:
    failures: list[str] = []

    def read() -> None:
        for _ in range(300):
            row = rules("claude-opus-5-5")
            if row.max_output not in (128_000, 5):
                failures.append(repr(row.max_output))

    def write() -> None:
        for _ in range(100):
            update([ModelInfo(id="claude-opus-5-5", max_tokens=5)])
            reset()

    threads = [threading.Thread(target=job) for job in (read, read, write, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert rules("claude-opus-5-5").max_output == 128_000


def test_made_up_ids_do_not_fill_the_memory() -> None:
    from dragoman.catalog import capabilities

    for i in range(3000):
        rules(f"made-up-{i}")
    assert len(capabilities._current().found) <= 1024
