"""Our span against the one that the provider's own SDK makes of the same bytes: the attributes that both write must agree."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Anthropic, ProviderError, Request, RetryPolicy
from dragoman.testing import WireServer
from dragoman.testing.answer import Answer
from dragoman.testing.anthropic import anthropic_error, anthropic_message, anthropic_stream, content_thinking, content_tool_use
from tests.telemetry.recorder import Recorder

sdk = pytest.importorskip("anthropic", minversion="2.14", reason="the official SDK, which is the oracle, is not installed")

USAGE = {
    "input_tokens": 10,
    "output_tokens": 50,
    "cache_read_input_tokens": 200,
    "cache_creation_input_tokens": 100,
    "cache_creation": {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40},
    "output_tokens_details": {"thinking_tokens": 20},
}
BLOCKS = (content_thinking("hm"), "Hello", content_tool_use("look", {"q": "x"}))

COMPARED = {
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.max_tokens",
    "gen_ai.request.model",
    "gen_ai.request.stream",
    "gen_ai.response.id",
    "gen_ai.response.model",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "server.address",
    "server.port",
}


def theirs(server: WireServer, *, stream: bool) -> dict[str, Any]:
    """The SDK's attributes. It is told by an option of its own where to trace; its global switch stays off."""
    recorder = Recorder()
    options = {"traces": True, "tracer_provider": recorder.tracer_provider}
    with sdk.Anthropic(api_key="k", base_url=server.url, max_retries=0, open_telemetry=options) as client:
        arguments: Any = {"model": "claude-test-1", "max_tokens": 1000, "messages": [{"role": "user", "content": "hi"}]}
        try:
            if stream:
                for _ in client.messages.create(**arguments, stream=True):
                    pass
            else:
                client.messages.create(**arguments)
        except sdk.APIStatusError as error:
            assert error.status_code >= 400  # noqa: PT017  # the span is what is looked at
    return recorder.attributes


def ours(server: WireServer, *, stream: bool) -> dict[str, Any]:
    recorder = Recorder()
    settings: dict[str, Any] = {"telemetry": recorder.telemetry(), "retry": RetryPolicy(max_attempts=1)}
    with Anthropic(api_key="k", base_url=server.url, model="claude-test-1", max_tokens=1000, **settings) as provider:
        try:
            provider.complete(Request("hi"), stream=stream)
        except ProviderError as error:
            assert error.kind  # noqa: PT017
    return recorder.attributes


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("usage", [USAGE, {"input_tokens": 3, "output_tokens": 4}], ids=["everything", "little"])
def test_tokens_ids_and_models_agree(stream: bool, usage: dict[str, Any]) -> None:
    answer = anthropic_stream if stream else anthropic_message
    with WireServer(answer(*BLOCKS, usage=usage, model="claude-test-1-20260101", id="msg_77")) as server:
        their, our = theirs(server, stream=stream), ours(server, stream=stream)
    both = COMPARED & their.keys()
    assert {key: our.get(key, 0) for key in both} == {key: their[key] for key in both}
    assert {"gen_ai.response.id", "gen_ai.response.model", "gen_ai.usage.output_tokens", "server.address"} <= both


@pytest.mark.parametrize(
    "answer",
    [anthropic_error(400, "invalid_request_error"), anthropic_error(529, "overloaded_error"), Answer(status=502, body="<html>")],
    ids=["refused", "overloaded", "a proxy's page"],
)
def test_the_status_of_a_failure_agrees(answer: Answer) -> None:
    with WireServer(answer) as server:
        their, our = theirs(server, stream=True), ours(server, stream=True)
    assert our["http.response.status_code"] == their["http.response.status_code"] == answer.status
