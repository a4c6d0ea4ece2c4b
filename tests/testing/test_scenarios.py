"""Every fault scenario, over both drivers: the table is the specification."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

import dragoman
from dragoman import Anthropic, Failed, MessageStart, Request, Retrying
from dragoman.errors import ERROR_BODY_LIMIT, ConfigError, ProviderError, RequestTimeoutError
from dragoman.event import Event
from dragoman.message import Message
from dragoman.retry import RetryPolicy
from dragoman.testing.scenarios import SCENARIOS, TIMEOUTS, Scenario, open_scenario
from dragoman.testing.wire_server import WireServer
from dragoman.transport import Timeouts
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport

KEY = "sk-ant-SECRET"
PROMPT = "the prompt"
REQUEST = Request(PROMPT)


@dataclass
class Outcome:
    events: list[Event] = field(default_factory=list)
    error: ProviderError | None = None
    partial: Message | None = None
    attempts: int = 0


def provider_for(scenario: Scenario, server: WireServer) -> Anthropic:
    timeouts = Timeouts(**(dict(TIMEOUTS) | dict(scenario.timeouts)))
    return Anthropic(
        api_key=KEY,
        base_url=server.url,
        allow_http=True,
        model="claude-test-1",
        timeouts=timeouts,
        retry=RetryPolicy(base=0.001),
        transport=HTTPX2Transport(trust_env=False),
        async_transport=AsyncHTTPX2Transport(trust_env=False),
        validate="off",
    )


def outcome_of(stream: object, events: Sequence[Event]) -> Outcome:
    assert isinstance(stream, dragoman.Stream | dragoman.AsyncStream)
    last = events[-1]
    if isinstance(last, Failed):
        return Outcome(list(events), last.error, stream.partial(), last.error.attempts)
    return Outcome(list(events), None, stream.partial(), 0)


def blocking(scenario: Scenario, server: WireServer) -> Outcome:
    provider = provider_for(scenario, server)
    stream = provider.events(REQUEST)
    outcome = outcome_of(stream, list(stream))
    if outcome.error is None:
        outcome.attempts = stream.response().attempts
    provider.close()
    return outcome


def on_a_loop(scenario: Scenario, server: WireServer) -> Outcome:
    async def main() -> Outcome:
        provider = provider_for(scenario, server)
        stream = provider.aevents(REQUEST)
        outcome = outcome_of(stream, [event async for event in stream])
        if outcome.error is None:
            outcome.attempts = (await stream.response()).attempts
        await provider.aclose()
        return outcome

    return asyncio.run(main())


@pytest.mark.parametrize("drive", [blocking, on_a_loop])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_scenario(scenario: Scenario, drive: object) -> None:
    assert callable(drive)
    with open_scenario(scenario) as server:
        outcome: Outcome = drive(scenario, server)
        if scenario.requests:
            server.wait_closed()
        requests = server.requests
    error = outcome.error
    assert type(error) is (type(None) if scenario.error is None else scenario.error), error
    assert (error.phase if isinstance(error, RequestTimeoutError) else None) == scenario.phase
    assert (outcome.attempts, len(requests)) == (scenario.attempts, scenario.requests)
    assert outcome.partial is not None
    assert outcome.partial.text == scenario.text
    assert sum(isinstance(event, MessageStart) for event in outcome.events) <= 1
    delays = [event.delay for event in outcome.events if isinstance(event, Retrying)]
    assert len(delays) == scenario.attempts - 1
    assert all(delay >= wait for delay, wait in zip(delays, scenario.waits, strict=False))
    if error is not None:
        assert len(error.body) <= ERROR_BODY_LIMIT
        assert KEY not in f"{error!r} {error.body}"
        assert PROMPT not in repr(error)


def test_there_are_enough_and_each_says_what_it_is() -> None:
    assert len(SCENARIOS) >= 60
    for scenario in SCENARIOS.values():
        assert scenario.story
        assert scenario.must


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="no scenario is called 'nope'; there are: good, byte-by-byte"):
        open_scenario("nope")
