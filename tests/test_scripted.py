"""ScriptedProvider: the n-th call gets the n-th script, whole messages become honest streams, errors come where the test says."""

from __future__ import annotations

import asyncio
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Accumulator,
    Anthropic,
    Audio,
    Base64,
    BlockStart,
    BlockStop,
    Citation,
    Failed,
    Image,
    InvalidToolUse,
    Message,
    MessageStart,
    MessageStop,
    OverloadedError,
    RateLimitedError,
    RedactedThinking,
    Refusal,
    Request,
    Response,
    ServerToolResult,
    ServerToolUse,
    SignatureDelta,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolInputDelta,
    ToolUse,
    Url,
    Usage,
    assistant,
    user,
)
from dragoman.testing import ScriptedProvider
from dragoman.testing.scripted import script

ASK = Request("hello")

EVERYTHING = Message(
    "assistant",
    [
        Thinking("let me see ", signature="c2ln"),
        RedactedThinking("b3BhcXVl"),
        Text("Two words,  spaced\n", citations=[Citation("url", {"url": "https://example.org"})]),
        ServerToolUse("srv_1", "web_search", {"query": "noon"}),
        ServerToolResult("srv_1", [{"type": "found"}], kind="web_search_tool_result"),
        Image(Url("https://example.org/clock.png")),
        Refusal("No more."),
        Audio(Base64("audio/wav", "UklGRg=="), transcript="Tick tock"),
        ToolUse("call_1", "get_time", {"zone": "Europe/Vienna", "format": {"hours": 24}}),
        InvalidToolUse("call_2", "get_time", '{"zone": "Eu', reason="incomplete"),
    ],
    extra={"anthropic": {"note": 1}},
)


def test_a_text_streams_in_several_deltas_and_ends() -> None:
    events = list(ScriptedProvider.of("It is noon.").events(ASK))

    assert events == [
        MessageStart("msg_1", "scripted-1", provider="scripted", wire="scripted"),
        BlockStart(0, Text("")),
        TextDelta(0, "It"),
        TextDelta(0, " is"),
        TextDelta(0, " noon."),
        BlockStop(0, Text("It is noon.")),
        MessageStop("end_turn"),
    ]


def test_every_kind_of_block_comes_back_as_it_was() -> None:
    response = ScriptedProvider.of(EVERYTHING).complete(ASK)

    assert response.message.content == EVERYTHING.content
    assert response.message.extra == EVERYTHING.extra
    assert response.stop == "tool_use"


def test_blocks_that_always_start_empty_start_empty() -> None:
    events = script(EVERYTHING)
    starts = [event.block for event in events if isinstance(event, BlockStart)]

    assert starts[0] == Thinking("")
    assert starts[1] == RedactedThinking("b3BhcXVl")
    assert starts[2] == Text("")
    assert starts[3] == ServerToolUse("srv_1", "web_search", {})
    assert starts[8] == ToolUse("call_1", "get_time", {})
    assert starts[9] == ToolUse("call_2", "get_time", {})
    assert [type(event) for event in events if getattr(event, "index", -1) == 0] == [
        BlockStart,
        *[ThinkingDelta] * 4,
        SignatureDelta,
        BlockStop,
    ]


@given(st.text())
def test_deltas_alone_give_the_text(text: str) -> None:
    events = script(assistant(Text(text)))

    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=8
    )
)
def test_deltas_alone_give_the_input(value: object) -> None:
    events = script(assistant(ToolUse("c", "t", {"v": value})))
    events = [BlockStop(event.index) if isinstance(event, BlockStop) else event for event in events]
    accumulator = Accumulator()
    for event in events:
        accumulator.push(event)

    assert accumulator.message().content == [ToolUse("c", "t", {"v": value})]
    assert any(isinstance(event, ToolInputDelta) for event in events)


def test_each_call_takes_the_next_script_and_is_recorded() -> None:
    provider = ScriptedProvider.of("one", "two")
    second = Request([user("hello"), assistant("one"), user("more")])

    assert provider.complete(ASK).text == "one"
    assert provider.complete(second).text == "two"
    assert provider.requests == [ASK, second]


def test_a_call_beyond_the_last_script_is_the_tests_mistake() -> None:
    provider = ScriptedProvider.of("one")
    provider.complete(ASK)

    with pytest.raises(RuntimeError, match="no script for call 2; scripts: 1"):
        provider.events(ASK)
    assert provider.requests == [ASK]


def test_a_request_is_recorded_by_the_call_not_by_the_reading() -> None:
    provider = ScriptedProvider.of("one")
    stream = provider.stream(ASK)

    assert provider.requests == [ASK]
    stream.close()


def test_handwritten_events_are_handed_out_as_they_are() -> None:
    events = [
        MessageStart("m", "x", provider="p", wire="w"),
        BlockStart(0, ToolUse("c", "t", {})),
        ToolInputDelta(0, '{"a":'),
        ToolInputDelta(0, "1}"),
        BlockStop(0),
        MessageStop("tool_use"),
    ]
    provider = ScriptedProvider([events], name="mine", model="mine-1")

    assert list(provider.events(ASK)) == events
    assert (provider.name, provider.default_model) == ("mine", "mine-1")


def test_a_response_brings_its_stop_reason_usage_and_ids() -> None:
    given = Response(
        message=assistant("cut"),
        stop="max_tokens",
        raw_stop="max_tokens",
        usage=Usage(input=7, output=3, cache_read=2),
        id="msg_x",
        model="m-2",
        request_id="req_x",
        extra={"anthropic": {"container": {"id": "c"}}},
    )
    got = ScriptedProvider.of(given).complete(ASK)

    assert (got.stop, got.usage, got.id, got.model, got.request_id, got.extra) == (
        "max_tokens",
        given.usage,
        "msg_x",
        "m-2",
        "req_x",
        given.extra,
    )
    assert got.text == "cut"


def test_an_answer_that_is_an_error_fails_the_call() -> None:
    provider = ScriptedProvider.of(RateLimitedError("slow down", retry_after=2.0), "then this")

    with pytest.raises(RateLimitedError, match="slow down"):
        provider.complete(ASK)
    assert provider.complete(ASK).text == "then this"


def test_events_end_in_failed_and_do_not_raise() -> None:
    events = list(ScriptedProvider.of(OverloadedError("busy")).events(ASK))

    assert events == [Failed(OverloadedError("busy"))]


def test_the_same_script_fails_afresh_each_time() -> None:
    scripted = Failed(OverloadedError("busy"))
    provider = ScriptedProvider([[scripted], [scripted]])
    [first], [second] = list(provider.events(ASK)), list(provider.events(ASK))

    assert first == second == scripted
    assert isinstance(first, Failed)
    assert isinstance(second, Failed)
    assert first.error is not second.error
    assert first.error is not scripted.error


def test_an_error_before_an_event_keeps_what_came_before_it() -> None:
    provider = ScriptedProvider.of(
        "one two three", before=lambda event: OverloadedError("busy") if event == TextDelta(0, " three") else None
    )

    with pytest.raises(OverloadedError) as caught:
        provider.complete(ASK)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "one two"


def test_an_error_after_an_event_keeps_the_event() -> None:
    provider = ScriptedProvider.of("one two three", after=lambda event: OverloadedError("busy") if event == TextDelta(0, " two") else None)
    stream = provider.stream(ASK)

    with pytest.raises(OverloadedError):
        list(stream)
    assert stream.partial().text == "one two"


def test_an_error_before_the_first_event_is_the_only_event() -> None:
    provider = ScriptedProvider.of("one", before=lambda _: OverloadedError("busy"))

    assert list(provider.events(ASK)) == [Failed(OverloadedError("busy"))]


def test_an_exception_that_is_no_provider_error_passes_unwrapped() -> None:
    provider = ScriptedProvider.of("one two", after=lambda event: KeyboardInterrupt() if isinstance(event, TextDelta) else None)
    stream = provider.stream(ASK)

    with pytest.raises(KeyboardInterrupt):
        list(stream)
    assert stream.partial().text == "one"
    assert stream.closed


def test_only_an_assistant_answers() -> None:
    with pytest.raises(ValueError, match="not with one of the user"):
        ScriptedProvider.of(user("hello"))


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (ToolUse("call_1", "get_time", {}), "ToolUse"),
        (ValueError("no"), "ValueError"),
        (OverloadedError, "the class OverloadedError"),
        (None, "NoneType"),
        (["one", "two"], "list"),
    ],
)
def test_what_is_no_answer_is_refused_when_the_provider_is_made(answer: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"^a script answers with a message, its text, a Response or a ProviderError, not {said}$"):
        ScriptedProvider.of(answer)


@pytest.mark.parametrize(
    ("scripts", "said"),
    [(["hello"], "str"), (script("hello"), "MessageStart"), ([[*script("hello"), None]], "NoneType"), ([[Failed]], "the class Failed")],
)
def test_what_is_no_script_is_refused_when_the_provider_is_made(scripts: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"^a script is a list of events, not {said};"):
        ScriptedProvider(scripts)


def test_a_call_takes_a_request_as_with_real_providers() -> None:
    real: Any = Anthropic("sk-ant-secret-key-1", model="claude-test-1", telemetry=None)
    provider: Any = ScriptedProvider.of("hello")

    with pytest.raises(TypeError) as expected:
        real.complete("hi")
    for call in (provider.complete, provider.events, provider.stream, provider.aevents, provider.astream):
        with pytest.raises(TypeError, match=f"^{re.escape(str(expected.value))}$"):
            call("hi")
    assert provider.requests == []


def test_it_serves_an_event_loop_the_same_way() -> None:
    provider = ScriptedProvider.of("one two", OverloadedError("busy"), EVERYTHING)

    async def talk() -> list[object]:
        async with provider.astream(ASK) as stream:
            texts = [text async for text in stream.text()]
        with pytest.raises(OverloadedError):
            await provider.acomplete(ASK)
        return [texts, (await provider.acomplete(ASK)).message.content]

    assert asyncio.run(talk()) == [["one", " two"], EVERYTHING.content]
    assert len(provider.requests) == 3


def test_many_threads_get_each_script_once() -> None:
    provider = ScriptedProvider.of(*(f"answer {n}" for n in range(200)))

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda _: provider.complete(ASK).text, range(200)))

    assert sorted(texts) == sorted(f"answer {n}" for n in range(200))


def test_its_repr_shows_no_content() -> None:
    provider = ScriptedProvider.of("secret answer")
    provider.complete(Request("secret prompt"))

    assert repr(provider) == "<ScriptedProvider scripted: 1 of 1 scripts played>"


def test_a_failed_call_survives_pickling() -> None:
    with pytest.raises(OverloadedError) as caught:
        ScriptedProvider.of("one two", after=lambda event: OverloadedError("busy") if isinstance(event, TextDelta) else None).complete(ASK)

    again = pickle.loads(pickle.dumps(caught.value))
    assert again == caught.value
    assert again.partial.text == "one"
