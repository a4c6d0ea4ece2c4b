"""`dragoman replay`: recorded answers, decoded offline, with what lies beside them."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dragoman import Response, from_json, to_json
from dragoman.testing import anthropic_events
from dragoman.wire.anthropic import AnthropicWire
from tests.cli.command import dragoman, invoke
from tests.shared import CORPUS, exchanges

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test-1",
    "content": [{"type": "text", "text": "Noon."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 3},
}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_2"}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """A recorded stream."""
    path = tmp_path / "response.sse"
    path.write_bytes(b"".join(anthropic_events("It is noon.")))
    return path


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps(value))
    return path


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_stream_is_shown_like_a_live_one(stream: Path) -> None:
    outcome = dragoman("replay", str(stream))

    assert (outcome.code, outcome.out, outcome.err) == (0, "It is noon.\n", "end_turn · input 10, output 5\n")


def test_a_body_is_shown_the_same_way(tmp_path: Path) -> None:
    outcome = invoke("replay", str(written(tmp_path / "a.json", MESSAGE)))

    assert (outcome.code, outcome.out, outcome.err) == (0, "Noon.\n", "end_turn · input 9, output 3\n")


def test_json_prints_the_response_with_its_file(stream: Path) -> None:
    [line] = lines(invoke("replay", "--json", str(stream)).out)
    expected = AnthropicWire().decode_response(200, {"content-type": "text/event-stream"}, stream.read_bytes())

    assert line == {"file": str(stream), "response": json.loads(to_json(expected))}
    assert from_json(json.dumps(line["response"]), Response) == expected


def test_json_of_an_error_prints_the_error_and_what_had_come(tmp_path: Path) -> None:
    cut = tmp_path / "cut.sse"
    cut.write_bytes(b"".join(anthropic_events("It is noon.")[:4]))
    outcome = invoke("replay", "--json", str(cut))
    [line] = lines(outcome.out)

    assert outcome.code == 1
    assert line.keys() == {"file", "error", "partial"}
    assert line["error"]["kind"] == "incomplete_stream"
    assert [block["text"] for block in line["partial"]["content"]] == ["It i"]


def test_an_error_body_has_no_partial(tmp_path: Path) -> None:
    written(tmp_path / "response_meta.json", {"status": 529, "headers": {"content-type": "application/json"}})
    [line] = lines(invoke("replay", "--json", str(written(tmp_path / "response.json", OVERLOADED))).out)

    assert (line["error"]["kind"], line["error"]["status"], line["error"]["request_id"]) == ("overloaded", 529, "req_2")
    assert line["partial"] is None


def test_an_error_is_said_on_standard_error(tmp_path: Path) -> None:
    written(tmp_path / "response_meta.json", {"status": 529, "headers": {}})
    outcome = invoke("replay", str(written(tmp_path / "response.json", OVERLOADED)))

    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("error: OverloadedError: Anthropic request failed with HTTP 529 (overloaded_error)")
    assert "failed · input 0, output 0 · request req_2" in outcome.err


def test_headers_are_taken_from_the_meta_file_also_when_they_come_twice(stream: Path) -> None:
    written(stream.parent / "response_meta.json", {"status": 200, "headers": {"request-id": ["req_a", "req_b"], "x": "y"}})
    [line] = lines(invoke("replay", "--json", str(stream)).out)

    assert line["response"]["request_id"] == "req_a"


def test_the_request_beside_it_is_read(stream: Path) -> None:
    """A pause is a normal stop only if the request had a hosted tool."""
    stream.write_bytes(b"".join(anthropic_events("Wait.", stop_reason="pause_turn")))
    without = invoke("replay", str(stream))
    request = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "x"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }
    written(stream.parent / "request.json", request)
    with_request = invoke("replay", str(stream))

    assert (without.code, with_request.code) == (1, 0)
    assert with_request.err.startswith("pause_turn")


def test_a_request_that_cannot_be_read_counts_as_none(stream: Path) -> None:
    (stream.parent / "request.json").write_text('{"messages": "elided…')

    assert invoke("replay", str(stream)).code == 0


def test_several_files_are_told_apart_and_one_failure_is_the_exit_code(stream: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "b" / "response.json", OVERLOADED)
    written(other.parent / "response_meta.json", {"status": 529})
    outcome = invoke("replay", str(stream), str(other))

    assert outcome.code == 1
    assert f"== {stream}\n" in outcome.err
    assert f"== {other}\n" in outcome.err
    assert outcome.out == "It is noon.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.sse"], "nowhere.sse: No such file"),
        (["notes.txt"], "a recording is a .sse or .json file"),
        (["--wire", "morse", "x.sse"], "--wire is one of anthropic"),
        ([], "FILE"),
    ],
    ids=["missing", "another kind", "unknown wire", "no file"],
)
def test_what_cannot_be_read_is_exit_code_2(arguments: list[str], said: str) -> None:
    outcome = invoke("replay", *arguments)

    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


def test_a_file_that_is_missing_among_others_prints_nothing_at_all(stream: Path) -> None:
    outcome = invoke("replay", str(stream), "nowhere.sse")

    assert (outcome.code, outcome.out) == (2, "")


def test_a_meta_file_that_is_none_is_named(stream: Path) -> None:
    (stream.parent / "response_meta.json").write_text("[]")
    outcome = invoke("replay", str(stream))

    assert outcome.code == 2
    assert "response_meta.json: not an object with status and headers" in outcome.err


def test_a_wire_of_an_installed_package_decodes_too(stream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connecting = import_module("dragoman.connect")  # the package's attribute of that name is the function
    monkeypatch.setattr(connecting, "installed_wire", lambda name: AnthropicWire(provider=name) if name == "theirs" else None)
    [line] = lines(invoke("replay", "--wire", "theirs", "--json", str(stream)).out)

    assert line["response"]["message"]["origin"]["provider"] == "theirs"


def test_a_lone_surrogate_ends_neither_form(tmp_path: Path) -> None:
    message = {**MESSAGE, "content": [{"type": "thinking", "thinking": "half \ud83d", "signature": "c2ln"}, {"type": "text", "text": "ok"}]}
    path = str(written(tmp_path / "a.json", message))

    assert dragoman("replay", "--show-thinking", path).code == 0
    assert lines(dragoman("replay", "--json", path).out)[0]["response"]["message"]["content"][0]["text"] == "half \ud83d"


@pytest.mark.skipif(not exchanges("anthropic"), reason=f"the recorded exchanges are not at {CORPUS / 'anthropic'}")
def test_every_recorded_exchange_becomes_one_line() -> None:
    files = [str(e.folder / ("response.sse" if e.streamed else "response.json")) for e in exchanges("anthropic")]
    outcome = dragoman("replay", "--json", *files)
    printed = lines(outcome.out)

    assert outcome.err == ""
    assert [line["file"] for line in printed] == files
    assert all(line.keys() in ({"file", "response"}, {"file", "error", "partial"}) for line in printed)
    assert outcome.code == (1 if any("error" in line for line in printed) else 0)
