"""What a call cost, to the digit, and how full the context is. The figures of recorded answers are worked out by hand beside each."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from dragoman import ConfigError, Cost, Iteration, Message, Origin, Price, Response, Timing, Usage, context_used, cost, from_json, to_json
from dragoman.catalog import prices as price_lists
from dragoman.catalog.cost import CostItem
from dragoman.wire.anthropic import AnthropicWire

from .shared import CORPUS, Exchange, case

ANTHROPIC = CORPUS / "anthropic"


def answer(usage: Usage, model: str = "claude-sonnet-4-6", **fields: Any) -> Response:
    return Response(message=Message("assistant", "a"), stop="end_turn", usage=usage, model=model, **fields)


def total(usage: Usage, model: str = "claude-sonnet-4-6", prices: dict[str, Price] | None = None) -> Decimal | None:
    found = cost(answer(usage, model), prices)
    return None if found is None else found.total


def lines(found: Cost | None) -> list[tuple[str, str, int, Decimal]]:
    assert found is not None
    return [(item.kind, item.model, item.quantity, item.amount) for item in found.items]


def recorded(name: str) -> Response:
    exchange = Exchange(ANTHROPIC / name)
    if not exchange.folder.exists():
        pytest.skip(f"the recorded exchange is not at {exchange.folder}")
    return AnthropicWire().decode_response(200, exchange.headers, exchange.body)


# ---- line items


def test_each_kind_of_token_has_its_own_price() -> None:
    usage = Usage(input=1_000_000, output=100_000, cache_read=10_000, cache_write_5m=2_000, cache_write_1h=3_000, cache_write_other=4_000)
    assert lines(cost(answer(usage))) == [
        ("input", "claude-sonnet-4-6", 1_000_000, Decimal(3)),
        ("cache_read", "claude-sonnet-4-6", 10_000, Decimal("0.003")),
        ("cache_write_5m", "claude-sonnet-4-6", 2_000, Decimal("0.0075")),
        ("cache_write_1h", "claude-sonnet-4-6", 3_000, Decimal("0.018")),
        ("cache_write_other", "claude-sonnet-4-6", 4_000, Decimal("0.015")),
        ("output", "claude-sonnet-4-6", 100_000, Decimal("1.5")),
    ]


def test_the_total_is_the_sum_and_says_whence_and_of_when() -> None:
    found = cost(answer(Usage(input=1000, output=1000)))
    assert found == Cost(
        total=Decimal("0.018"),
        items=[
            CostItem(kind="input", quantity=1000, price=Decimal(3), amount=Decimal("0.003"), model="claude-sonnet-4-6"),
            CostItem(kind="output", quantity=1000, price=Decimal(15), amount=Decimal("0.015"), model="claude-sonnet-4-6"),
        ],
        source="Anthropic list prices",
        date="2026-11-30",
    )


def test_reasoning_is_part_of_the_output_and_not_billed_again() -> None:
    assert total(Usage(input=10, output=120, reasoning=100), "m", {"m": Price(1, 10)}) == Decimal("0.00121")


def test_nothing_used_costs_nothing() -> None:
    assert total(Usage()) == 0


def test_a_web_search_costs_a_cent_and_a_fetch_nothing() -> None:
    usage = Usage(server_tools={"web_search_requests": 3, "web_fetch_requests": 5})
    assert lines(cost(answer(usage))) == [("web_search", "claude-sonnet-4-6", 3, Decimal("0.03"))]


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("claude-opus-5", "0.5"),
        ("claude-opus-5-5", "0.2"),
        ("claude-sonnet-5-5", "0.1"),
        ("claude-fable-5-1", "0.25"),
        ("claude-fable-5", "1"),
    ],
)
def test_the_price_of_a_cache_read_is_no_fixed_part_of_the_input_price(model: str, read: str) -> None:
    assert total(Usage(cache_read=1_000_000), model) == Decimal(read)


# ---- what changes a price


@pytest.mark.parametrize(
    ("model", "circumstances", "factor"),
    [
        ("claude-opus-5-5", {}, "1"),
        ("claude-opus-5-5", {"service_tier": "standard", "speed": "standard", "inference_geo": "global"}, "1"),
        ("claude-opus-5-5", {"service_tier": "batch"}, "0.5"),
        ("claude-opus-5-5", {"speed": "fast"}, "2"),
        ("claude-opus-5-5", {"inference_geo": "us"}, "1.1"),
        ("claude-opus-5-5", {"speed": "fast", "inference_geo": "us"}, "2.2"),
        ("claude-sonnet-4-5", {"inference_geo": "us"}, "1"),
    ],
)
def test_batches_fast_mode_and_a_region_multiply_every_token_price(model: str, circumstances: dict[str, str], factor: str) -> None:
    tokens: dict[str, Any] = {"input": 1000, "cache_read": 2000, "cache_write_1h": 3000, "output": 4000}
    plain = total(Usage(**tokens), model)
    assert plain is not None
    assert total(Usage(**tokens, **circumstances), model) == plain * Decimal(factor)


def test_a_search_costs_the_same_in_a_batch() -> None:
    assert total(Usage(server_tools={"web_search_requests": 1}, service_tier="batch")) == Decimal("0.01")


@pytest.mark.parametrize(
    ("model", "circumstances"),
    [
        ("claude-opus-4-6", {"speed": "fast"}),
        ("claude-opus-5", {"service_tier": "priority"}),
        ("gpt-5", {"service_tier": "a new one"}),
        ("gpt-5", {"speed": "fast"}),
    ],
)
def test_circumstances_whose_price_is_not_known_leave_no_cost(model: str, circumstances: dict[str, str]) -> None:
    assert total(Usage(input=1, **circumstances), model) is None  # type: ignore[arg-type]


def test_above_the_step_all_tokens_cost_more() -> None:
    assert total(Usage(input=100_000, output=10), "claude-haiku-5-5") == Decimal("0.010005")
    assert total(Usage(input=1, cache_read=100_000, output=10), "claude-haiku-5-5") == Decimal("0.0050255")


# ---- finding a price


@pytest.mark.parametrize(
    "model",
    [
        "us.anthropic.claude-test-1-20260101-v1:0",
        "claude-test-1@20260101",
        "anthropic/claude-test-1",
        "claude-test-1[1m]",
        "claude-test-1:beta",
    ],
)
def test_a_decorated_id_has_the_price_of_the_model(model: str) -> None:
    assert total(Usage(input=1_000_000), model, {"claude-test-1": Price(3, 15)}) == 3


def test_an_unknown_model_has_no_cost() -> None:
    assert cost(answer(Usage(input=1), "totally-new-model")) is None
    assert cost(answer(Usage(input=1), "totally-new-model"), {"claude-test-1": Price(3, 15)}) is None
    assert cost(answer(Usage(input=1), "")) is None


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("m-5-pro-2026-01-01", 10),
        ("m-5-mini", Decimal("0.1")),
        ("m-5-2026-01-01", 1),
        ("m-5-pro-0711", 10),
        ("m-5-pro-preview-0711", 10),
        ("m-5-v2", 1),
        ("m-50", None),
        ("m-5-nano", None),
        ("m-5-pro-lite", None),
        ("m-5-previews", None),
    ],
)
def test_a_date_or_a_revision_costs_the_same_and_a_variant_is_another_model(model: str, price: Decimal | None) -> None:
    table = {"m-5": Price(1, 1), "m-5-pro": Price(10, 10), "m-5-mini": Price(0.1, 0.1)}
    assert total(Usage(input=1_000_000), model, table) == price


def test_a_newer_version_has_not_the_price_of_the_old_one() -> None:
    assert total(Usage(input=1), "claude-opus-5-6") is None


def test_given_prices_are_the_only_source() -> None:
    assert total(Usage(input=1), "claude-opus-5", {"claude-sonnet-5": Price(1, 1)}) is None
    found = cost(answer(Usage(input=1), "claude-opus-5"), {"claude-opus-5": Price(1, 1)})
    assert found is not None
    assert (found.source, found.date) == ("prices given by the caller", "")


def test_a_price_that_was_not_given_is_not_guessed() -> None:
    table = {"m": Price(2.5, 10, 1.25)}
    assert total(Usage(input=86, cache_read=1920, output=300), "m", table) == Decimal("0.005615")
    assert total(Usage(cache_write_5m=1), "m", table) is None
    assert total(Usage(server_tools={"web_search_requests": 1}), "m", table) is None
    assert total(Usage(server_tools={"web_search_requests": 1}), "m", {"m": Price(1, 1, web_search=25)}) == Decimal("0.025")


def test_prices_are_exact_however_they_are_written() -> None:
    assert Price(0.1, "0.2", 1, Decimal("0.25")) == Price(Decimal("0.1"), Decimal("0.2"), Decimal(1), Decimal("0.25"))


def test_the_split_of_cache_writes_decides(  # a stream repeats only their total
) -> None:
    fault = case("earendil-works/pi#5737")
    response = AnthropicWire().decode_response(200, {"content-type": "text/event-stream"}, fault["input"].encode())
    found = cost(response, {"claude-test-1": Price(3, 15, 0.3, 3.75, 6)})
    assert found is not None
    assert found.total == Decimal("0.0051")


# ---- what was billed, and by whom


def test_what_the_gateway_billed_wins_and_says_so() -> None:
    found = cost(answer(Usage(input=1000, reported_cost=Decimal("0.0421")), "totally-new-model"))
    assert found is not None
    assert (found.total, found.reported, lines(found)) == (
        Decimal("0.0421"),
        True,
        [("reported", "totally-new-model", 1, Decimal("0.0421"))],
    )


def test_iterations_are_billed_each_at_its_own_model() -> None:
    usage = Usage(
        input=300,
        output=30,
        iterations=[
            Iteration("message", usage=Usage(input=100, output=10)),
            Iteration("advisor_message", model="claude-opus-5", usage=Usage(input=1000, output=100)),
            Iteration("message", usage=Usage(input=200, output=20)),
        ],
    )
    assert total(usage) == Decimal("0.0009") + Decimal("0.00045") + Decimal("0.005") + Decimal("0.0025")


def test_an_iteration_of_an_unknown_model_leaves_no_cost() -> None:
    usage = Usage(
        input=1, iterations=[Iteration("message", usage=Usage(input=1)), Iteration("advisor_message", model="new", usage=Usage(input=1))]
    )
    assert cost(answer(usage)) is None


def test_searches_are_billed_once_beside_iterations() -> None:
    rounds = [Iteration("message", usage=Usage(input=1000)), Iteration("message", usage=Usage(input=1000))]
    assert total(Usage(input=2000, server_tools={"web_search_requests": 2}, iterations=rounds)) == Decimal("0.026")


def test_a_single_round_is_billed_with_the_lifetimes_that_only_the_top_level_knows() -> None:
    rounds = [Iteration("message", usage=Usage(input=1, output=2, cache_write_other=1000))]
    usage = Usage(input=1, output=2, cache_write_1h=1000, iterations=rounds)
    assert total(usage) == Decimal("0.000003") + Decimal("0.00003") + Decimal("0.006")


def test_a_fast_call_has_an_advisor_at_its_plain_price() -> None:
    rounds = [Iteration("message", usage=Usage(input=1000)), Iteration("advisor_message", model="claude-opus-5", usage=Usage(input=1000))]
    assert total(Usage(input=1000, speed="fast", iterations=rounds), "claude-opus-5-5") == Decimal("0.008") + Decimal("0.005")


def test_the_usage_of_a_cut_off_stream_has_a_partial_cost() -> None:
    found = cost(Usage(input=1000, output=10), model="claude-sonnet-4-6")
    assert found is not None
    assert (found.total, found.partial) == (Decimal("0.00315"), True)
    assert cost(Usage(input=1), model="totally-new-model") is None


def test_a_cost_can_be_stored() -> None:
    found = cost(answer(Usage(input=1000, output=10)))
    assert from_json(to_json(found), type=Cost) == found


# ---- genai-prices, for every other model


def test_other_models_are_priced_by_genai_prices() -> None:
    pytest.importorskip("genai_prices")
    found = cost(answer(Usage(input=1_000_000, cache_read=1_000_000, output=1_000_000), "gpt-5"))
    assert found is not None
    assert (found.total, found.source.split()[0]) == (Decimal("11.375"), "genai-prices")


def test_audio_has_a_price_of_its_own() -> None:
    pytest.importorskip("genai_prices")
    usage = Usage(input=185, output=49, details={"input.audio": 130, "output.audio": 34})
    # 55 x 2.5 + 130 x 32 + 15 x 10 + 34 x 64 dollars per million
    assert total(usage, "gpt-audio-1.5") == Decimal("0.0066235")


def test_a_tier_of_another_provider_is_priced_where_it_is_known() -> None:
    pytest.importorskip("genai_prices")
    started = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    plain = cost(answer(Usage(input=1_000_000), "o3", timing=Timing(started=started)))
    flex = cost(answer(Usage(input=1_000_000, service_tier="flex"), "o3", timing=Timing(started=started)))
    assert plain is not None
    assert flex is not None
    assert flex.total == plain.total / 2


def test_a_long_prompt_is_priced_on_its_step() -> None:
    pytest.importorskip("genai_prices")
    short = total(Usage(input=200_000), "gemini-2.5-pro")
    long = total(Usage(input=200_001), "gemini-2.5-pro")
    assert short is not None
    assert long is not None
    assert long > short * Decimal("1.9")


@pytest.mark.parametrize("provider", ["local", "ollama", "vllm", "llamacpp", "lmstudio", "openai-compatible"])
def test_a_model_on_hardware_of_ones_own_has_no_clouds_price(provider: str) -> None:
    pytest.importorskip("genai_prices")
    message = Message("assistant", "x", origin=Origin(provider, "gpt-4o", "openai-chat"))
    own = Response(message=message, stop="end_turn", usage=Usage(input=1_000_000), model="gpt-4o")
    assert cost(own) is None
    given = cost(own, {"gpt-4o": Price(1, 2)})
    assert given is not None
    assert given.total == 1


@pytest.mark.parametrize("value", ["abc", float("nan"), "inf", -1, (1, 2)])
def test_a_price_is_a_number(value: Any) -> None:
    with pytest.raises(ConfigError, match="Price: output must be a number of US dollars from 0, not"):
        Price(1, value)


def test_without_genai_prices_other_models_have_no_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    assert total(Usage(input=1), "gpt-5") is None
    assert total(Usage(input=1_000_000)) == 3
    assert context_used(answer(Usage(input=1), "gpt-5")) == (1, None)


def test_our_list_agrees_with_genai_prices_where_both_have_a_model() -> None:
    pytest.importorskip("genai_prices")
    call = price_lists.Circumstances(provider="anthropic", started=datetime(2026, 11, 30, tzinfo=UTC).timestamp())
    compared = 0
    for model in price_lists._list().models:
        theirs, ours = price_lists._from_genai(model, call), price_lists._from_list(model, call)
        if theirs is not None:
            assert ours is not None
            assert {kind: theirs.prices[kind] for kind in ours.prices if kind in theirs.prices} == {
                kind: price for kind, price in ours.prices.items() if kind in theirs.prices
            }, model
            compared += 1
    assert compared >= 20


def test_prices_that_the_program_keeps_up_to_date_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = pytest.importorskip("genai_prices.data_snapshot")
    fresh = snapshots.DataSnapshot(providers=snapshots.get_snapshot().providers, from_auto_update=True)
    monkeypatch.setattr(snapshots, "_custom_snapshot", fresh)
    found = cost(answer(Usage(input=1_000_000)))
    assert found is not None
    assert (found.source.split()[0], found.date) == ("genai-prices", fresh.timestamp.date().isoformat())
    mythos = cost(answer(Usage(input=1_000_000), "claude-mythos-5"))  # which it does not know
    assert mythos is not None
    assert mythos.source == "Anthropic list prices"


# ---- how full the context is


def test_what_was_read_and_written_fills_the_context() -> None:
    usage = Usage(input=1, cache_read=20, cache_write_5m=300, output=4000, reasoning=50)
    assert context_used(answer(usage)) == (4321, 1_000_000)
    assert context_used(answer(usage, "claude-haiku-4-5")) == (4321, 200_000)


def test_only_the_last_round_fills_it() -> None:
    rounds = [
        Iteration("message", usage=Usage(input=100)),
        Iteration("advisor_message", usage=Usage(input=9)),
        Iteration("message", usage=Usage(input=7)),
    ]
    assert context_used(answer(Usage(input=107, iterations=rounds)))[0] == 7


def test_a_model_that_nobody_knows_has_no_window() -> None:
    assert context_used(answer(Usage(input=5), "totally-new-model")) == (5, None)


def test_the_window_of_other_models_is_known_to_genai_prices() -> None:
    pytest.importorskip("genai_prices")
    message = Message("assistant", "a", origin=Origin("openai", "gpt-5", "openai-responses"))
    response = Response(message=message, stop="end_turn", usage=Usage(input=5), model="gpt-5")
    assert context_used(response) == (5, 400_000)


# ---- recorded answers, worked out by hand (dollars per million tokens)

RECORDED = [
    # sonnet-4-6: 3 in x 3 + 10 written for 5m x 3.75 + 3,259 for 1h x 6 + 6 out x 15
    ("rig/c_response_identity_edge_caching_and_identity_share_the_wire_streaming.0.20f3c77c", "0.0196905"),
    # sonnet-4-6: 19 x 3 + 407 x 3.75 + 1,931 x 6 + 61 x 15
    ("rig/hema_integrations_static_prefix_ttl_caching_coexists_with_strict_tools.0.5e5324ac", "0.01408425"),
    # sonnet-4-5: 6 x 3 + 2,092 read x 0.3 + 79 x 3.75 + 68 x 15
    ("braintrust-js/scenarios_flue-instrumentation_flue-v0-8-0.8.5228332e", "0.00196185"),
    # 3.5 haiku: 3 x 0.8 + 2,262 x 1 + 84 x 4
    ("crewai/ltimodalAnthropic.test_mixed_files-anthropic-claude-3-5-haiku-20241022.0.493e8408", "0.0026004"),
    # haiku-4-5, one search: 10 x 1 + 12,016 read x 0.1 + (12,016 + 8,702) written x 1.25 + 188 x 5, + 0.01
    ("mirascope/web-search-tool_anthropic_performs-web-search-and-returns-results.1.a760dca9", "0.0380491"),
    # haiku-4-5, one search: 2,292 x 1 + 12,032 written x 1.25 + 150 x 5, + 0.01
    ("mirascope/web-search-tool_anthropic_streams-with-web-search-tool.1.5b498974", "0.028082"),
    # opus-4-6: compaction 60,385 x 5 + 592 x 25, then message 682 x 5 + 1,320 x 25
    ("vercel-ai/anthropic_anthropic-compaction.1.0.e5f1f055", "0.353135"),
    # sonnet-4-6: compaction 100 x 3 + 55,096 written x 3.75 + 131 x 15, then message 229 x 3 + 5 x 15
    ("pydantic-ai/test_anthropic_test_anthropic_compaction_usage_with_cache.0.9df6bc88", "0.209637"),
    # sonnet-4-6: 1,051 x 3 + 35 x 15; advisor opus-4-7: 2,728 x 5 + 874 x 25; 1,363 x 3 + 3,165 x 15
    ("vercel-ai/anthropic_anthropic-advisor-20260301.1.0.6d8ea201", "0.090732"),
    # sonnet-5: 1,128 x 2 + 110 x 10; advisor opus-4-8: 2,518 x 5 + 22 x 25; 1,262 x 2 + 11 x 10
    ("pydantic-ai/test_anthropic_test_anthropic_advisor_tool.0.fbd71b23", "0.01913"),
    # fable-5, refused: 408 x 10; then opus-4-8: 412 x 5 + 264 x 25
    ("vercel-ai/anthropic_anthropic-fallback.0.aae68c13", "0.01274"),
]


@pytest.mark.parametrize(("name", "dollars"), RECORDED)
def test_a_recorded_answer_costs_what_it_costs_by_hand(name: str, dollars: str) -> None:
    found = cost(recorded(name))
    assert found is not None
    assert found.total == Decimal(dollars)
