"""The public seam holds: a wire that knows nothing of our dialects, found through its entry point, driven like any other."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Event,
    Failed,
    IncompleteStreamError,
    MessageStop,
    ModelNotFoundError,
    ProtocolError,
    Request,
    ServerError,
    TextDelta,
    ToolUse,
    connect,
)
from dragoman.transport import Clocks
from dragoman.wire import HTTPRequest, Wire

SOURCE = Path(__file__).parents[2] / "examples" / "third_party_wire.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("third_party_wire", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its types are resolved by name
    spec.loader.exec_module(module)
    return module


example = load()
LINES = (
    b'{"model":"m","created_at":"t","message":{"role":"assistant","content":"Hel"},"done":false}\n'
    b'{"model":"m","created_at":"t","message":{"role":"assistant","content":"lo"},"done":false}\n'
    b'{"model":"m","done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}\n'
)


def events(data: bytes, cuts: list[int] = [], status: int = 200) -> list[Event]:  # noqa: B006
    decoder = example.OllamaWire().decoder(status=status)
    edges = [0, *cuts, len(data)]
    return [*(event for a, b in itertools.pairwise(edges) for event in decoder.feed(data[a:b])), *decoder.close()]


class Transport:
    """Answers every request with the same lines."""

    def __init__(self) -> None:
        self.sent: list[HTTPRequest] = []

    def send(self, request: HTTPRequest, timeouts: Clocks) -> Answer:
        self.sent.append(request)
        return Answer()

    def close(self) -> None:
        pass


class Answer:
    status = 200
    headers = (("content-type", "application/x-ndjson"),)

    def __iter__(self) -> Iterator[bytes]:
        yield LINES

    def read(self) -> bytes:
        return LINES

    def close(self) -> None:
        pass


def test_it_is_short_enough_to_read() -> None:
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) < 200


def test_connect_finds_it_and_drives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        value = "third_party_wire:OllamaWire"

        def load(self) -> type:
            return example.OllamaWire  # type: ignore[no-any-return]

    monkeypatch.setattr(
        "importlib.metadata.entry_points", lambda group, name: [Entry()] if (group, name) == ("dragoman.wires", "ollama-native") else []
    )
    transport = Transport()
    with connect("ollama-native:llama3.2", transport=transport) as provider, provider.stream(Request("hi")) as stream:
        assert list(stream.text()) == ["Hel", "lo"]
    (request,) = transport.sent
    assert request.url == "http://localhost:11434/api/chat"
    assert b'"model":"llama3.2"' in request.body


def test_it_is_a_wire() -> None:
    wire: Wire = example.OllamaWire()
    response = wire.decode_response(200, {}, LINES)
    assert (response.text, response.stop, response.usage.total) == ("Hello", "end_turn", 5)
    assert response.message.origin is not None
    assert response.message.origin.wire == "ollama-native"


@given(st.lists(st.integers(0, len(example.ANSWER))).map(sorted))
def test_no_event_depends_on_how_the_bytes_were_cut(cuts: list[int]) -> None:
    assert events(example.ANSWER, cuts) == events(example.ANSWER)


def test_calls_without_ids_get_one_and_are_answered_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    (call,) = example.OllamaWire().decode_response(200, {}, example.ANSWER).tool_uses
    assert call == ToolUse("call_t1_1", "weather", {"city": "Paris"}, extra={"ollama-native": {"synthetic_id": True}})
    example.main()
    assert '"tool_name":"weather","content":"sunny"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "status", "cls"),
    [
        (LINES[:120], 200, IncompleteStreamError),
        (b"", 200, IncompleteStreamError),
        (b'{"error":"no such thing"}\n', 200, ServerError),
        (b"<html>\n", 200, ProtocolError),
        (b'{"message":{"content":3}}\n', 200, ProtocolError),
        (b'{"error":"model not found"}', 404, ModelNotFoundError),
    ],
)
def test_whatever_the_peer_sends_the_last_event_says_how_it_ended(data: bytes, status: int, cls: type[Exception]) -> None:
    last = events(data, status=status)[-1]
    assert isinstance(last, Failed)
    assert type(last.error) is cls


def test_what_had_come_before_a_failure_is_kept() -> None:
    found = events(LINES[:120])
    assert TextDelta(0, "Hel") in found
    assert not any(isinstance(event, MessageStop) for event in found)


def test_a_request_is_written() -> None:
    http = example.OllamaWire().encode(Request("hi", model="m", system="s", temperature=0.5), stream=True)
    assert http.body == (
        b'{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"}],"stream":true,"options":{"temperature":0.5}}'
    )
