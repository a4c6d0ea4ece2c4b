"""A provider over providers: who is asked, when, and what the consumer sees of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from dragoman import (
    Anthropic,
    AuthError,
    BlockStart,
    ConfigError,
    Event,
    Failed,
    InvalidRequestError,
    MessageStart,
    OpenAIChat,
    QuotaExceededError,
    RateLimitedError,
    Request,
    Retrying,
    ServerError,
    Text,
    TextDelta,
    UsageUpdate,
)
from dragoman.errors import OverloadedError
from dragoman.fallback import FallbackProvider
from dragoman.provider import ProviderBase
from dragoman.response import Usage
from dragoman.retry import RetryPolicy
from dragoman.testing import ScriptedProvider, WireServer, anthropic_error, anthropic_message
from dragoman.transport import Timeouts

REQUEST = Request("hi")
BUSY = RateLimitedError("busy")


def test_the_first_provider_that_answers_is_the_answer() -> None:
    first, second, third = ScriptedProvider.of(BUSY), ScriptedProvider.of("second"), ScriptedProvider.of("third")
    response = FallbackProvider([first, second, third]).complete(REQUEST)
    assert (response.text, response.attempts) == ("second", 2)
    assert [len(provider.requests) for provider in (first, second, third)] == [1, 1, 0]


def test_a_provider_that_answers_is_the_only_one_asked() -> None:
    first, second = ScriptedProvider.of("first"), ScriptedProvider.of("second")
    assert FallbackProvider([first, second]).complete(REQUEST).text == "first"
    assert second.requests == []


def test_the_change_is_told_by_a_retrying_event_and_nothing_else_is_seen_of_the_attempt() -> None:
    failing = ScriptedProvider([[MessageStart("msg_0", "m", provider="a", wire="w"), UsageUpdate(Usage(input=3)), Failed(BUSY)]])
    events = list(FallbackProvider([failing, ScriptedProvider.of("fine")]).events(REQUEST))
    change = events[0]
    assert isinstance(change, Retrying)
    assert (change.attempt, change.delay, change.error.kind) == (1, 0.0, "rate_limited")
    assert [event.id for event in events if isinstance(event, MessageStart)] == ["msg_1"]
    assert not [event for event in events if isinstance(event, UsageUpdate)]


def test_nothing_is_tried_again_after_the_first_content() -> None:
    begun = [MessageStart("msg_0", "m", provider="a", wire="w"), BlockStart(0, Text("")), TextDelta(0, "half")]
    second = ScriptedProvider.of("second")
    with FallbackProvider([ScriptedProvider([[*begun, Failed(BUSY)]]), second]).stream(REQUEST) as stream:
        with pytest.raises(RateLimitedError):
            stream.response()
        assert stream.partial().text == "half"
    assert second.requests == []


@pytest.mark.parametrize("error", [InvalidRequestError("bad"), QuotaExceededError("spent"), AuthError("no")])
def test_an_error_that_cannot_go_away_is_final(error: InvalidRequestError) -> None:
    second = ScriptedProvider.of("second")
    with pytest.raises(type(error)):
        FallbackProvider([ScriptedProvider.of(error), second]).complete(REQUEST)
    assert second.requests == []


@pytest.mark.parametrize(
    "on",
    [
        QuotaExceededError,
        (AuthError, QuotaExceededError),
        lambda error: error.kind == "quota",
    ],
)
def test_the_caller_names_the_errors(on: type[QuotaExceededError]) -> None:
    fallback = FallbackProvider([ScriptedProvider.of(QuotaExceededError("spent"), BUSY), ScriptedProvider.of("paid")], on=on)
    assert fallback.complete(REQUEST).text == "paid"
    if on is QuotaExceededError:
        with pytest.raises(RateLimitedError):
            fallback.complete(REQUEST)  # not among those named


def test_the_errors_may_stand_in_a_list() -> None:
    asked = FallbackProvider([ScriptedProvider.of(AuthError("no")), ScriptedProvider.of("second")], on=[AuthError, RateLimitedError])
    assert asked.complete(REQUEST).text == "second"


@pytest.mark.parametrize("on", ["RateLimitedError", None, RuntimeError, (RateLimitedError, RuntimeError)])
def test_what_names_no_errors_is_refused_when_the_provider_is_made(on: Any) -> None:
    with pytest.raises(ConfigError, match="on= takes a class of ProviderError"):
        FallbackProvider([ScriptedProvider.of("x")], on=on)


@pytest.mark.parametrize(
    ("providers", "said"),
    [
        (["anthropic:claude-sonnet-5"], r"items must be providers; use connect\(…\)\. Item 0 is of type str"),
        ([ScriptedProvider.of("x"), None], "Item 1 is of type NoneType"),
        ([ScriptedProvider.of("x"), ScriptedProvider], "Item 1 is the class ScriptedProvider"),
        ("anthropic:claude-sonnet-5", "takes a list of providers, not str"),
        (ScriptedProvider.of("x"), "takes a list of providers, not ScriptedProvider"),
    ],
)
def test_what_is_no_provider_is_refused_when_the_provider_is_made(providers: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        FallbackProvider(providers)


@pytest.mark.parametrize("is_async", [False, True])
def test_an_answer_in_one_piece_is_asked_of_every_provider(is_async: bool) -> None:
    with WireServer([anthropic_error(529, "overloaded_error")]) as busy, WireServer(anthropic_message("whole")) as fine:
        first, second = (
            Anthropic(api_key="test", base_url=server.url, model="claude-test-1", retry=RetryPolicy(max_attempts=1), telemetry=None)
            for server in (busy, fine)
        )
        nested = FallbackProvider([first, FallbackProvider([second])])

        async def call() -> str:
            async with nested:
                return (await nested.acomplete(REQUEST, stream=False)).text

        with nested:
            text = asyncio.run(call()) if is_async else nested.complete(REQUEST, stream=False).text
        assert text == "whole"
        assert ["stream" in server.requests[0].json() for server in (busy, fine)] == [False, False]


class Raising(ProviderBase):
    """Raises its failure instead of handing it out."""

    name = "raising"

    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Iterator[Event]:
        yield MessageStart("m", "m", provider="p", wire="w")
        raise BUSY

    async def aevents(
        self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None
    ) -> AsyncIterator[Event]:
        yield MessageStart("m", "m", provider="p", wire="w")
        raise BUSY


def test_a_failure_that_is_raised_leads_on_like_one_that_is_handed_out() -> None:
    assert FallbackProvider([Raising(), ScriptedProvider.of("fine")]).complete(REQUEST).text == "fine"
    assert asyncio.run(FallbackProvider([Raising(), ScriptedProvider.of("fine")]).acomplete(REQUEST)).text == "fine"


def test_the_last_providers_error_is_the_calls_error() -> None:
    fallback = FallbackProvider([ScriptedProvider.of(BUSY), ScriptedProvider.of(ServerError("down"))])
    events = list(fallback.events(REQUEST))
    assert [type(event) for event in events] == [Retrying, Failed]
    assert events[-1] == Failed(ServerError("down", attempts=2))


def test_the_error_counts_the_attempts_of_all_providers() -> None:
    first = ScriptedProvider([[Retrying(1, 0.5, BUSY), Failed(BUSY)]])
    early, late = ServerError("down", attempts=3), ServerError("cut", attempts=1)
    early.__cause__ = OSError("why")
    failed = list(FallbackProvider([first, Plain(Failed(early))]).events(REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.attempts, early.attempts) == (5, 3)
    assert failed.error.__cause__ is early.__cause__
    first = ScriptedProvider([[Retrying(1, 0.5, BUSY), Failed(BUSY)]])
    cut = Plain(*script_of("half")[:3], Failed(late, stop="error", raw_stop="cut", usage=Usage(output=1)))
    failed = list(FallbackProvider([first, cut]).events(REQUEST))[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.attempts, failed.stop, failed.raw_stop, failed.usage) == (3, "error", "cut", Usage(output=1))
    assert late.attempts == 1


def test_what_was_held_back_is_handed_out_when_a_provider_stops_without_an_end() -> None:
    start = MessageStart("m", "m", provider="p", wire="w")

    async def looped() -> list[Event]:
        return [event async for event in FallbackProvider([Plain(start)]).aevents(REQUEST)]

    assert list(FallbackProvider([Plain(start)]).events(REQUEST)) == [start]
    assert asyncio.run(looped()) == [start]


def test_the_attempts_of_all_providers_are_counted_on() -> None:
    first = ScriptedProvider([[Retrying(1, 0.5, BUSY), Retrying(2, 1.0, BUSY), Failed(BUSY)]])
    second = ScriptedProvider([[Retrying(1, 0.5, OverloadedError("full")), *script_of("fine")]])
    events = list(FallbackProvider([first, second]).events(REQUEST))
    assert [event.attempt for event in events if isinstance(event, Retrying)] == [1, 2, 3, 4]


def script_of(text: str) -> list[Event]:
    return list(ScriptedProvider.of(text).events(REQUEST))


def test_the_model_of_the_request_is_the_first_providers() -> None:
    first = ScriptedProvider.of(BUSY, model="own-1")
    second = ScriptedProvider.of(BUSY, model="own-2")
    third = ScriptedProvider.of("fine", model="")
    FallbackProvider([first, second, third]).complete(REQUEST.replace(model="asked"))
    assert [provider.requests[0].model for provider in (first, second, third)] == ["asked", "", "asked"]


def test_it_is_a_provider_like_any_other() -> None:
    inner = FallbackProvider([ScriptedProvider.of(BUSY), ScriptedProvider.of(BUSY)], name="inner")
    outer = FallbackProvider([inner, ScriptedProvider.of("last")])
    assert (outer.name, outer.default_model) == ("fallback", "scripted-1")
    assert repr(outer) == "<FallbackProvider fallback: inner, scripted>"
    assert outer.complete(REQUEST).text == "last"


def test_it_answers_in_an_event_loop() -> None:
    first, second = ScriptedProvider.of(BUSY), ScriptedProvider.of("second")
    response = asyncio.run(FallbackProvider([first, second]).acomplete(REQUEST))
    assert (response.text, response.attempts) == ("second", 2)


def test_an_async_failure_after_content_is_final() -> None:
    begun = [MessageStart("msg_0", "m", provider="a", wire="w"), BlockStart(0, Text("")), TextDelta(0, "half")]
    second = ScriptedProvider.of("second")

    async def run() -> str:
        async with FallbackProvider([ScriptedProvider([[*begun, Failed(BUSY)]]), second]).astream(REQUEST) as stream:
            with pytest.raises(RateLimitedError):
                await stream.response()
            return stream.partial().text

    assert asyncio.run(run()) == "half"
    assert second.requests == []


# ---- letting go


class Plain:
    """A provider of the four names only, with iterators that say when they are closed."""

    name = "plain"
    default_model = ""

    def __init__(self, *events: Event) -> None:
        self.closed: list[str] = []
        self._events = events

    def events(self, request: Request, *, timeouts: object = None, retry: object = None) -> Iterator[Event]:
        try:
            yield from self._events
        finally:
            self.closed.append("iterator")

    async def aevents(self, request: Request, *, timeouts: object = None, retry: object = None) -> AsyncIterator[Event]:
        try:
            for event in self._events:
                yield event
        finally:
            self.closed.append("async iterator")


class Closing(Plain):
    def close(self) -> None:
        self.closed.append("provider")

    async def aclose(self) -> None:
        self.closed.append("provider, async")


def test_leaving_early_leaves_the_provider_that_was_answering() -> None:
    answering = Plain(*script_of("fine"))
    with FallbackProvider([ScriptedProvider.of(BUSY), answering]).stream(REQUEST) as stream:
        for event in stream:
            if isinstance(event, BlockStart):
                break
    assert answering.closed == ["iterator"]


def test_leaving_early_in_an_event_loop_leaves_the_provider_that_was_answering() -> None:
    answering = Plain(*script_of("fine"))

    async def run() -> None:
        async with FallbackProvider([ScriptedProvider.of(BUSY), answering]).astream(REQUEST) as stream:
            async for event in stream:
                if isinstance(event, BlockStart):
                    break

    asyncio.run(run())
    assert answering.closed == ["async iterator"]


def test_a_provider_that_is_given_up_is_left() -> None:
    given_up = Plain(Failed(BUSY))
    FallbackProvider([given_up, ScriptedProvider.of("fine")]).complete(REQUEST)
    asyncio.run(FallbackProvider([given_up, ScriptedProvider.of("fine")]).acomplete(REQUEST))
    assert given_up.closed == ["iterator", "async iterator"]


def test_closing_closes_all_that_can_be_closed() -> None:
    providers = [Closing(), Plain(), Closing()]
    with FallbackProvider(providers):
        pass
    assert [provider.closed for provider in providers] == [["provider"], [], ["provider"]]


def test_closing_in_an_event_loop_closes_all() -> None:
    providers = [Closing(), Closing()]
    asyncio.run(FallbackProvider(providers).aclose())
    assert [provider.closed for provider in providers] == [["provider, async"], ["provider, async"]]


def test_one_that_cannot_be_closed_keeps_no_other_open() -> None:
    class Stuck(Closing):
        def close(self) -> None:
            raise OSError("stuck")

    last = Closing()
    with pytest.raises(OSError, match="stuck"):
        FallbackProvider([Stuck(), last]).close()
    assert last.closed == ["provider"]


def test_without_providers_there_is_nothing_to_ask() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        FallbackProvider([])


def test_a_mistake_that_the_first_provider_sees_comes_from_the_call_itself() -> None:
    class Unready(Plain):
        def events(self, request: Request, *, timeouts: object = None, retry: object = None) -> Iterator[Event]:
            raise ConfigError("no key")

    with pytest.raises(ConfigError, match="no key"):
        FallbackProvider([Unready(), ScriptedProvider.of("second")]).events(REQUEST)


def test_a_mistake_that_only_a_later_provider_sees_says_why_it_was_asked() -> None:
    without_a_key = OpenAIChat(api_key="", base_url="https://api.openai.com/v1", model="m-1")
    provider = FallbackProvider([ScriptedProvider.of(BUSY), without_a_key])
    with pytest.raises(ConfigError, match="OpenAI API key is required") as caught:
        provider.complete(REQUEST)
    assert caught.value.__cause__ == BUSY
    with pytest.raises(ConfigError) as caught:
        asyncio.run(FallbackProvider([ScriptedProvider.of(BUSY), without_a_key]).acomplete(REQUEST))
    assert caught.value.__cause__ == BUSY
