"""Cassettes: exact bytes with their boundaries, no secrets, strict matching, and the tools around them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Anthropic,
    AuthError,
    ConnectionFailedError,
    IncompleteStreamError,
    InvalidRequestError,
    OpenAIChat,
    ProviderError,
    Request,
    RequestTimeoutError,
    RetryPolicy,
    Timeouts,
)
from dragoman.provider import ProviderBase
from dragoman.testing import (
    Answer,
    Cassette,
    CassetteError,
    Close,
    Recorder,
    Replay,
    ScriptedProvider,
    Stall,
    UnmatchedRequestError,
    WireServer,
    anthropic_error,
    anthropic_events,
    anthropic_stream,
)
from dragoman.testing.anthropic import SSE_HEADERS
from dragoman.testing.cassette import check_writable

ASK = Request("hi")


def client(recorder: Recorder | Replay, url: str = "https://api.anthropic.com", **settings: Any) -> Anthropic:
    settings = {"api_key": "sk-ant-very-secret-1", "model": "claude-test-1", "telemetry": None, "retry": RetryPolicy(base=0), **settings}
    return Anthropic(base_url=url, transport=recorder.transport, async_transport=recorder.async_transport, **settings)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tapes" / "one.json"


def test_a_recorded_call_is_replayed_piece_by_piece(path: Path) -> None:
    events = anthropic_events("Grüße 🌍")
    with WireServer(Answer(headers=SSE_HEADERS, body=events)) as server, Recorder(path) as recorder:
        live = client(recorder, server.url).complete(ASK)
    [exchange] = Cassette.load(path).exchanges
    assert b"".join(piece.data for piece in exchange.pieces) == b"".join(events)
    assert [piece.at for piece in exchange.pieces] == sorted(piece.at for piece in exchange.pieces)
    replay = Replay(path)
    again = client(replay).complete(ASK)
    assert (again.message, again.usage, again.request_id) == (live.message, live.usage, live.request_id)
    assert replay.unused == []


def test_an_async_call_records_and_replays_the_same(path: Path) -> None:
    async def call(provider: Anthropic) -> str:
        text = (await provider.acomplete(ASK)).text
        await provider.aclose()
        return text

    with WireServer(anthropic_stream("Hello")) as server, Recorder(path) as recorder:
        assert asyncio.run(call(client(recorder, server.url))) == "Hello"
    assert asyncio.run(call(client(Replay(path)))) == client(Replay(path)).complete(ASK).text == "Hello"


def test_an_async_stream_left_early_leaves_no_generator_behind(path: Path) -> None:
    """Nobody would close it; trio warns of each. The hook is told of every async generator that begins."""
    begun: list[str] = []

    async def first_words(provider: ProviderBase) -> str:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=lambda generator: begun.append(generator.ag_code.co_qualname))
        async with provider.astream(ASK) as stream:
            text = await anext(aiter(stream.text()))
        sys.set_asyncgen_hooks(*hooks)
        await provider.aclose()
        return text

    with WireServer(anthropic_stream("Hello")) as server, Recorder(path) as recorder:
        assert asyncio.run(first_words(client(recorder, server.url))) == "He"
    assert asyncio.run(first_words(client(Replay(path)))) == "He"
    assert asyncio.run(first_words(ScriptedProvider.of("He is here"))) == "He"
    assert [name for name in begun if "Record" in name or "Replay" in name or "play" in name.lower()] == []


def test_a_cassette_holds_no_key_and_only_listed_headers(path: Path) -> None:
    answer = Answer(headers=[*SSE_HEADERS, ("set-cookie", "session=1"), ("x-ratelimit-limit", "5")], body=anthropic_events("x"))
    with WireServer(answer) as server, Recorder(path) as recorder:
        client(recorder, server.url, headers={"x-mine": "private"}).complete(ASK)
    text = path.read_text()
    assert "secret" not in text
    assert "session=1" not in text
    assert "private" not in text
    [exchange] = Cassette.load(path).exchanges
    assert set(exchange.request_headers) == {"accept", "anthropic-version", "content-type"}
    assert dict(exchange.response_headers)["x-ratelimit-limit"] == "5"


def test_a_cassette_can_be_read_by_people(path: Path) -> None:
    with WireServer(anthropic_stream("Hello")) as server, Recorder(path) as recorder:
        client(recorder, server.url).complete(ASK)
    found = json.loads(path.read_text())
    assert found["exchanges"][0]["request_body"]["messages"] == [{"role": "user", "content": "hi"}]
    assert "event: message_start" in "".join(piece["text"] for piece in found["exchanges"][0]["pieces"])


def test_bytes_that_are_not_text_are_kept_exactly(path: Path) -> None:
    with WireServer(Answer(status=500, body=b"\xff\x00\xfe")) as server, Recorder(path) as recorder:
        with pytest.raises(Exception, match="500"):
            client(recorder, server.url, retry=RetryPolicy(max_attempts=1)).complete(ASK)
    [exchange] = Cassette.load(path).exchanges
    assert [piece.data for piece in exchange.pieces] == [b"\xff\x00\xfe"]


def test_a_retried_call_is_two_exchanges_and_replays_without_waiting(path: Path) -> None:
    with WireServer([anthropic_error(529, "overloaded_error"), anthropic_stream("Hello")]) as server, Recorder(path) as recorder:
        client(recorder, server.url).complete(ASK)
    assert [exchange.status for exchange in Cassette.load(path).exchanges] == [529, 200]
    response = client(Replay(path), retry=RetryPolicy(base=1000, cap=1000, jitter="none")).complete(ASK)
    assert (response.text, response.attempts) == ("Hello", 2)


def test_a_cut_answer_replays_as_cut(path: Path) -> None:
    cut = Answer(headers=SSE_HEADERS, body=[*anthropic_events("Hello")[:4], Close()])
    for again in (False, True):
        with WireServer(cut) as server:
            source = Replay(path) if again else Recorder(path)
            with pytest.raises((IncompleteStreamError, ConnectionFailedError)) as raised:
                client(source, server.url).complete(ASK)
        assert raised.value.partial is not None
        assert raised.value.partial.text


def test_a_timeout_replays_as_that_timeout(path: Path) -> None:
    settings: dict[str, Any] = {"timeouts": Timeouts(idle=0.05), "retry": RetryPolicy(max_attempts=1)}
    with WireServer(Answer(headers=SSE_HEADERS, body=[anthropic_events("Hello")[0], Stall()])) as server, Recorder(path) as recorder:
        with pytest.raises(RequestTimeoutError):
            client(recorder, server.url, **settings).complete(ASK)
    with pytest.raises(RequestTimeoutError) as raised:
        client(Replay(path), **settings).complete(ASK)
    assert raised.value.phase == "idle"


def test_a_refused_connection_replays_as_one(path: Path) -> None:
    with WireServer(accept="refuse") as server, Recorder(path) as recorder:
        with pytest.raises(ConnectionFailedError):
            client(recorder, server.url, retry=RetryPolicy(max_attempts=1)).complete(ASK)
    with pytest.raises(ConnectionFailedError):
        client(Replay(path), retry=RetryPolicy(max_attempts=1)).complete(ASK)


def test_requests_match_by_meaning_and_in_order(path: Path) -> None:
    with WireServer([anthropic_stream(word) for word in ("a", "b", "c")]) as server, Recorder(path) as recorder:
        provider = client(recorder, server.url)
        for ask in (ASK, Request("other"), ASK):
            provider.complete(ask)
    provider = client(Replay(path), api_key="another-key-1")
    assert [provider.complete(ask).text for ask in (ASK, ASK, Request("other"))] == ["a", "c", "b"]


def test_an_unknown_request_and_one_too_many_are_errors(path: Path) -> None:
    with WireServer(anthropic_stream("a")) as server, Recorder(path) as recorder:
        client(recorder, server.url).complete(ASK)
    replay = Replay(path)
    with pytest.raises(UnmatchedRequestError, match=r"POST /v1/messages .* is not on the cassette, which holds: POST /v1/messages"):
        client(replay).complete(Request("something else"))
    assert len(replay.unused) == 1
    client(replay).complete(ASK)
    with pytest.raises(UnmatchedRequestError, match="more often than it was recorded"):
        client(replay).complete(ASK)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"exchanges": 1}', b'{"dragoman_cassette": 99}', b"\xff"])
def test_a_file_that_is_no_cassette_is_named(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(CassetteError, match=r"one\.json"):
        Replay(path)


def test_a_missing_cassette_is_named(path: Path) -> None:
    with pytest.raises(CassetteError, match="No such file"):
        Replay(path)


@pytest.mark.parametrize("name", ["", ".", "folder", "a\0b", "file/one.json", "x" * 300])
def test_a_cassette_that_cannot_be_written_is_named_and_leaves_nothing_behind(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(CassetteError, match="cannot be written: ") as raised:
        Cassette().save(name)
    assert str(raised.value).startswith(name[:200])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


def test_a_recorder_that_cannot_write_sends_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    with WireServer(anthropic_stream("Hello")) as server, pytest.raises(CassetteError, match="is not a file"):
        client(recorder, server.url).complete(ASK)
    assert server.requests == []


@pytest.mark.parametrize("pieces", [1, 30], ids=["all at once", "in pieces"])
def test_an_answer_that_cannot_be_written_down_is_not_lost(path: Path, pieces: int, caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: object) -> Answer:
        path.mkdir(parents=True)
        return anthropic_stream("Hello, world", pieces=pieces)

    with WireServer(answer) as server:
        recorder = Recorder(path)
        provider = client(recorder, server.url)
        assert provider.complete(ASK).text == "Hello, world"
        assert "one.json: cannot be written" in caplog.text
        for refused in (lambda: provider.complete(ASK), provider.close, recorder.close):
            with pytest.raises(CassetteError, match=r"one\.json") as raised:
                refused()
            assert not isinstance(raised.value, OSError | ProviderError)
        assert len(server.requests) == 1
        path.rmdir()
        provider.close()
        assert len(Cassette.load(path).exchanges) == 1


def test_an_async_answer_that_cannot_be_written_down_is_not_lost(path: Path) -> None:
    def answer(request: object) -> Answer:
        path.mkdir(parents=True)
        return anthropic_stream("Hello")

    async def call(provider: Anthropic) -> None:
        assert (await provider.acomplete(ASK)).text == "Hello"
        with pytest.raises(CassetteError, match=r"one\.json"):
            await provider.acomplete(ASK)
        with pytest.raises(CassetteError, match=r"one\.json"):
            await provider.aclose()

    with WireServer(answer) as server:
        asyncio.run(call(client(Recorder(path), server.url)))
    assert len(server.requests) == 1


def test_recording_may_be_checked_beforehand_and_keeps_what_is_there(path: Path) -> None:
    Cassette().save(path)
    before = path.read_bytes()
    check_writable(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_command_line_records_and_replays(path: Path, tmp_path: Path) -> None:
    def dragoman(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        import os

        command = [sys.executable, "-m", "dragoman.cli", *arguments]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, cwd=tmp_path, check=True)

    path.parent.mkdir()
    with WireServer(anthropic_stream("Hello")) as server:
        environment = {"ANTHROPIC_API_KEY": "k-12345678", "ANTHROPIC_BASE_URL": server.url}
        told = dragoman("probe", "--model", "claude-test-1", "--prompt", "hi", "--record", str(path), **environment)
    assert told.stdout == "Hello\n"
    assert dragoman("replay", str(path)).stdout == "Hello\n"
    line = json.loads(dragoman("replay", "--json", str(path)).stdout)
    assert (line["file"], line["response"]["message"]["content"][0]["text"]) == (str(path), "Hello")


def test_the_pytest_fixture_replays_strictly_and_records_when_asked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os
        from dragoman import Anthropic, Request

        def test_it(cassette):
            tape = cassette("hello")
            url = os.environ.get("WIRE_URL", "https://api.anthropic.com")
            provider = Anthropic(api_key="k-12345678", model="claude-test-1", base_url=url, transport=tape.transport)
            assert provider.complete(Request("hi")).text == "Hello"
        """
    )
    missing = pytester.runpytest_subprocess()
    missing.stdout.fnmatch_lines(["*CassetteError*hello.json*"])
    with WireServer(anthropic_stream("Hello")) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIRE_URL", server.url)
        pytester.runpytest_subprocess("--dragoman-record").assert_outcomes(passed=1)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    tape = pytester.path / "cassettes" / "hello.json"
    held = Cassette.load(tape)
    Cassette(exchanges=[*held.exchanges, *held.exchanges]).save(tape)
    pytester.runpytest_subprocess().assert_outcomes(passed=1, errors=1)


def test_the_key_of_a_call_is_masked_where_a_body_repeats_it(path: Path) -> None:
    key = "sk-ant-very-secret-1"
    refusal = json.dumps({"error": {"type": "authentication_error", "message": f"no such key: {key}, Bearer {key}"}}).encode()
    cut = refusal.index(key.encode()) + 9
    answers = [Answer(status=401, headers=[("content-type", "application/json")], body=[refusal[:cut], refusal[cut:]])]
    with WireServer(answers) as server, Recorder(path) as recorder, pytest.raises(AuthError):
        client(recorder, server.url).complete(Request("x", extra_body={"note": f"my key is {key}"}))
    text = path.read_text(encoding="utf-8")
    assert key not in text
    [exchange] = Cassette.load(path).exchanges
    body = b"".join(piece.data for piece in exchange.pieces)
    assert key.encode() not in body
    assert body == refusal.replace(key.encode(), b"*" * len(key))
    assert exchange.request_body["note"] == "my key is " + "*" * len(key)
    with pytest.raises(AuthError, match="no such key"):
        client(Replay(path)).complete(Request("x", extra_body={"note": f"my key is {key}"}))


@pytest.mark.parametrize("name", ["apim-request-id", "mistral-correlation-id", "x-generation-id"])
def test_a_failure_keeps_its_request_id_whatever_its_host_calls_it(name: str, path: Path) -> None:
    seen: list[tuple[str, str]] = []
    answer = Answer(status=400, headers=[("content-type", "application/json"), (name, "rq_1")], body=b'{"error": {"message": "no"}}')
    with WireServer(answer) as server, Recorder(path) as recorder:
        for source in (recorder, None):
            transport = (source or Replay(path)).transport
            provider = OpenAIChat(base_url=server.url, api_key="sk-secret-1", model="m", telemetry=None, transport=transport)
            with pytest.raises(InvalidRequestError) as raised:
                provider.complete(ASK)
            seen.append((str(raised.value), raised.value.request_id))
    assert seen[0] == seen[1]
    assert seen[0][1] == "rq_1"


@pytest.mark.parametrize("data", ["abc", "!!!", "Zm9v\n!"])
def test_a_piece_that_holds_no_bytes_is_found_when_the_cassette_is_loaded(data: str, path: Path) -> None:
    exchange = {"fingerprint": "f", "method": "POST", "path": "/", "pieces": [{"at": 0, "text": "fine"}, {"at": 1, "base64": data}]}
    path.parent.mkdir()
    path.write_text(json.dumps({"dragoman_cassette": 1, "exchanges": [exchange]}), encoding="utf-8")
    with pytest.raises(CassetteError, match=r"exchanges\[0\]\.pieces\[1\] holds no bytes"):
        Cassette.load(path)
