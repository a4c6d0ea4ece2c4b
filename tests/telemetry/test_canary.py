"""No string of any signal quotes content while a gate is closed: a canary in everything that a call holds, and a look at everything."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import pytest

from dragoman import (
    Anthropic,
    Base64,
    Document,
    Image,
    Message,
    OutputFormat,
    PlainText,
    ProviderError,
    Request,
    RetryPolicy,
    Tenant,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
    TraceInfo,
    assistant,
    user,
)
from dragoman.testing import WireServer
from dragoman.testing.answer import Answer
from dragoman.testing.anthropic import (
    SSE_HEADERS,
    anthropic_error,
    anthropic_events,
    anthropic_message,
    anthropic_stream,
    content_text,
    content_thinking,
    content_tool_use,
    sse,
)
from tests.shared import case, needs_cases
from tests.telemetry.recorder import Recorder

CANARY = "SECRET"
PNG = "iVBORw0KGgo" + "SECRETSECRETSECRETSECRETSECRETSECRETAAAA" + "AA" + "AAA"


def asked(trace: TraceInfo | None) -> Request:
    """A request with a canary in every place that holds content."""
    return Request(
        [
            user("SECRET-IN", Image(Base64("image/png", PNG)), Document(PlainText("SECRET-DOC"), title="SECRET-TITLE")),
            assistant(Thinking("SECRET-THINK", signature="SECRETSIG"), Text("SECRET-EARLIER"), ToolUse("t1", "look", {"q": "SECRET-TOOL"})),
            user(ToolResult("t1", "SECRET-RESULT")),
        ],
        system="SECRET-SYS",
        tools=[Tool("look", "SECRET-DESCRIPTION", {"type": "object", "properties": {"SECRET-PROPERTY": {"type": "string"}}})],
        output=OutputFormat({"type": "object", "title": "SECRET-SCHEMA"}),
        metadata={"user_id": "SECRET-META"},
        extra_body={"x": "SECRET-EXTRA"},
        extra_headers={"x-note": "SECRET-HEADER"},
        trace=trace,
    )


CONTENT = [content_thinking("SECRET-THOUGHT"), content_text("SECRET-OUT"), content_tool_use("look", {"q": "SECRET-CALL"})]
BROKEN = [*anthropic_events(*CONTENT)[:-2], sse({"type": "error", "error": {"type": "api_error", "message": "SECRET-STREAM-ERROR"}})]

ANSWERS: dict[str, list[Answer]] = {
    "an answer": [anthropic_stream(*CONTENT)],
    "a plain answer": [anthropic_message(*CONTENT)],
    "an error that quotes the prompt": [anthropic_error(400, "invalid_request_error", "messages.0: SECRET-IN is invalid")],
    "a JSON error that is not the dialect's": [
        Answer(status=500, headers={"content-type": "application/json"}, body={"detail": {"SECRET-TOOL": "SECRET-TOOL"}})
    ],
    "HTML from a proxy": [Answer(status=502, headers={"content-type": "text/html"}, body="<html>SECRET-PAGE</html>")],
    "an error in the stream": [Answer(headers=SSE_HEADERS, body=BROKEN)],
    "events that are not the protocol": [Answer(headers=SSE_HEADERS, body=[*anthropic_events(*CONTENT)[:4], b"data: {SECRET-JSON\n\n"])],
    "a retry after an error that quotes": [anthropic_error(529, "overloaded_error", "SECRET-RETRY"), anthropic_stream(*CONTENT)],
    "a cut stream": [Answer(headers=SSE_HEADERS, body=anthropic_events(*CONTENT)[:5])],
}


def strings(value: object) -> Iterator[str]:
    """Every string in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from strings(item)


def every_string(recorder: Recorder, records: list[logging.LogRecord]) -> list[str]:
    found: list[str] = []
    for span in recorder.ended:
        found += [span.name, span.status.description or ""]
        found += strings(span.attributes)
        found += strings(dict(span.resource.attributes))
        for event in span.events:
            found += [event.name, *strings(event.attributes)]
        for link in span.links:
            found += strings(link.attributes)
        found.append(span.to_json())
    for name, points in recorder.metrics().items():
        found.append(name)
        for point in points:
            found += strings(point.attributes)
    for record in records:
        found += [record.getMessage(), record.exc_text or "", repr(record.args)]
    return found


@pytest.fixture
def open_tenant_and_environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> TraceInfo | None:
    """One of the ways in which at least one gate is closed."""
    environment, trace = request.param
    if environment:
        monkeypatch.setenv("DRAGOMAN_TRACE_LLM_CONTENT", "true")
    info: TraceInfo | None = trace
    return info


closed = pytest.mark.parametrize(
    "open_tenant_and_environment",
    [
        (False, None),
        (False, TraceInfo(tenant=Tenant("acme", trace_llm_content=True))),
        (True, None),
        (True, TraceInfo(tenant=Tenant("acme"))),
    ],
    ids=["both closed", "environment closed", "no tenant", "tenant closed"],
    indirect=True,
)


def client(server: WireServer, recorder: Recorder) -> Anthropic:
    return Anthropic(
        api_key="key-1",
        base_url=server.url,
        model="claude-sonnet-4-5",
        telemetry=recorder.telemetry(genai_content=True),
        retry=RetryPolicy(max_attempts=2, base=0.0),
        validate="off",
    )


@closed
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
@needs_cases
def test_no_string_of_any_signal_quotes_content(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, answers: list[Answer], open_tenant_and_environment: TraceInfo | None
) -> None:
    case("traceloop/openllmetry#2777")
    caplog.set_level(logging.DEBUG)
    with WireServer(answers, repeat=True) as server, client(server, recorder) as provider:
        with suppress(ProviderError):
            provider.complete(asked(open_tenant_and_environment), stream=answers is not ANSWERS["a plain answer"])
    assert recorder.ended
    assert [text for text in every_string(recorder, caplog.records) if CANARY in text] == []


@closed
def test_an_async_call_quotes_nothing_either(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, open_tenant_and_environment: TraceInfo | None
) -> None:
    caplog.set_level(logging.DEBUG)

    async def main(server: WireServer) -> None:
        async with client(server, recorder) as provider:
            with pytest.raises(ProviderError):
                await provider.acomplete(asked(open_tenant_and_environment))

    with WireServer([anthropic_error(400, "invalid_request_error", "SECRET-IN is invalid")]) as server:
        asyncio.run(main(server))
    assert [text for text in every_string(recorder, caplog.records) if CANARY in text] == []


@needs_cases
def test_a_refusal_that_quotes_the_prompt_is_known_by_its_type_and_status(recorder: Recorder) -> None:
    case("traceloop/openllmetry#4466")
    with WireServer(ANSWERS["an error that quotes the prompt"]) as server, client(server, recorder) as provider:
        with pytest.raises(ProviderError, match="SECRET-IN"):  # the caller may see it
            provider.complete(asked(None))
    assert recorder.attributes["error.type"] == "invalid_request"
    assert recorder.attributes["http.response.status_code"] == 400
    assert recorder.span.status.description == "invalid_request"
    assert recorder.events == [("exception", {"exception.type": "dragoman.errors.InvalidRequestError"})]


def test_the_canary_is_found_where_it_is(recorder: Recorder, caplog: pytest.LogCaptureFixture, open_gate: None) -> None:
    """With both gates open the same look finds it, so the look is a real one."""
    with WireServer(ANSWERS["an answer"]) as server, client(server, recorder) as provider:
        provider.complete(asked(TraceInfo(tenant=Tenant("acme", trace_llm_content=True))))
    found = " ".join(every_string(recorder, caplog.records))
    for canary in ("SECRET-IN", "SECRET-DOC", "SECRET-SYS", "SECRET-TOOL", "SECRET-RESULT", "SECRET-OUT", "SECRET-CALL", "SECRET-THOUGHT"):
        assert canary in found
    assert "SECRETSIG" not in found


@pytest.mark.parametrize("value", ["info", "unfinished"])
def test_what_the_telemetry_is_told_shows_no_content_in_its_repr(value: str) -> None:
    from dragoman import Timing, Usage
    from dragoman.hooks import CallInfo, Unfinished

    told = {
        "info": CallInfo(provider="p", model="m", request=Request("SECRET-IN")),
        "unfinished": Unfinished(partial=Message("assistant", "SECRET-OUT"), usage=Usage(), timing=Timing(started=0.0)),
    }
    assert CANARY not in repr(told[value])
