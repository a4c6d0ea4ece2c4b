"""`dragoman probe`: text on standard output as it arrives, everything else on standard error, and the exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Event, MessageStart, MessageStop, from_json
from dragoman.cli.probe import provider_and_model
from dragoman.testing import (
    Answer,
    Close,
    Gate,
    Wait,
    WireServer,
    anthropic_error,
    anthropic_events,
    anthropic_stream,
    content_text,
    content_thinking,
    content_tool_use,
)
from tests.cli.command import COMMAND, TIMEOUT, Outcome, dragoman, environment, invoke

USAGE = {
    "input_tokens": 12,
    "output_tokens": 34,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 60,
    "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 10},
}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


Probe = Callable[..., Outcome]


@pytest.fixture
def probe(server: WireServer) -> Probe:
    """Run `dragoman probe` in this process against the server, with a key, and a prompt unless the test gives its own."""
    return probing(server, invoke)


@pytest.fixture
def probe_process(server: WireServer) -> Probe:
    """The same in a process of its own."""
    return probing(server, dragoman)


def probing(server: WireServer, run: Callable[..., Outcome]) -> Probe:
    def probe(*arguments: str, stdin: str | bytes | None = None, **variables: str) -> Outcome:
        prompt = () if stdin is not None or "--prompt" in arguments else ("--prompt", "Hi")
        return run("probe", "--model", "claude-test-1", *prompt, *arguments, stdin=stdin, **(settings(server) | variables))

    return probe


def settings(server: WireServer) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": server.url, "DRAGOMAN_PROVIDER_MAX_RETRIES": "0"}


def body(server: WireServer) -> Any:
    return json.loads(server.requests[-1].body)


def test_the_text_goes_to_standard_output_and_ends_in_a_line_feed(server: WireServer, probe_process: Probe) -> None:
    server.add(anthropic_stream("Hello, world"))
    outcome = probe_process()

    assert (outcome.code, outcome.out) == (0, "Hello, world\n")


def test_a_text_that_ends_in_a_line_feed_gets_no_second_one(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_stream("Hello\n"))

    assert probe().out == "Hello\n"


def test_the_summary_is_one_line_on_standard_error(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_stream("Hello", usage=USAGE))
    line = probe().err

    assert re.fullmatch(
        r"end_turn · input 1,072 \(cache: 1,000 read, 50 written for 5m, 10 written for 1h\), output 34"
        r" · first token \d+\.\d\d s( · [\d.]+ tokens/s)? · request req_test_1\n",  # no speed if it came in one piece
        line,
    )


def test_the_options_reach_the_request(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_stream("Hello"))
    probe("--prompt", "Why?", "--system", "Be brief.", "--max-tokens", "4096", "--thinking", "2048", "--effort", "high")
    sent = body(server)

    assert sent["model"] == "claude-test-1"
    assert sent["messages"] == [{"role": "user", "content": "Why?"}]
    assert sent["system"] == "Be brief."
    assert sent["max_tokens"] == 4096
    assert sent["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert sent["output_config"] == {"effort": "high"}
    assert sent["stream"] is True
    assert dict(server.requests[0].headers)["x-api-key"] == "sk-ant-test"


@pytest.mark.parametrize(("word", "sent"), [("adaptive", {"type": "adaptive"}), ("off", {"type": "disabled"}), ("0", {"type": "disabled"})])
def test_thinking_is_a_word_or_a_number(word: str, sent: dict[str, str], server: WireServer, probe: Probe) -> None:
    server.add(anthropic_stream("Hello"))
    assert probe("--thinking", word).code == 0

    assert body(server)["thinking"] == sent


def test_the_prompt_comes_from_standard_input(server: WireServer, probe_process: Probe) -> None:
    server.add(anthropic_stream("Hello"))
    probe_process(stdin="Grüße\nzwei Zeilen\n")

    assert body(server)["messages"][0]["content"] == "Grüße\nzwei Zeilen"


def test_a_new_line_separates_text_from_another_kind_of_block_before_it(server: WireServer, probe: Probe) -> None:
    blocks = [content_text("one"), content_text(" more"), content_tool_use("look", {"at": "it"}), content_text("two")]
    server.add(anthropic_stream(*blocks))
    outcome = probe()

    assert outcome.out == "one more\ntwo\n"
    assert '[calls look {"at":"it"}]\n' in outcome.err


def test_thinking_is_shown_on_standard_error_when_asked_for(server: WireServer, probe: Probe) -> None:
    server.always(anthropic_stream(content_thinking("first I wonder"), {"type": "redacted_thinking", "data": "b3BhcXVl"}, "Done"))
    shown, hidden = probe("--show-thinking"), probe()

    assert (shown.out, hidden.out) == ("Done\n", "Done\n")
    assert shown.err.startswith("first I wonder\n[redacted thinking]\nend_turn")
    assert hidden.err.startswith("end_turn")


def test_json_prints_the_events_one_a_line(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_stream("Hello"))
    outcome = probe("--json")
    events = [from_json(line, Event) for line in outcome.out.splitlines()]

    assert isinstance(events[0], MessageStart)
    assert isinstance(events[-1], MessageStop)
    assert outcome.err.startswith("end_turn")


def test_a_provider_error_is_exit_code_1_and_said(server: WireServer, probe_process: Probe) -> None:
    server.add(anthropic_error(401, "authentication_error", "invalid x-api-key"))
    outcome = probe_process()

    assert (outcome.code, outcome.out) == (1, "")
    assert "AuthError: Anthropic request failed with HTTP 401" in outcome.err
    assert "sk-ant-test" not in outcome.err


def test_what_came_before_an_error_stays(server: WireServer, probe_process: Probe) -> None:
    server.add(Answer(headers={"content-type": "text/event-stream"}, body=[*anthropic_events("Hello, world")[:4], Close()]))
    outcome = probe_process()

    assert outcome.code == 1
    assert outcome.out == "Hell\n"
    assert "IncompleteStreamError" in outcome.err or "ConnectionFailedError" in outcome.err
    assert "failed · input" in outcome.err


def test_json_of_a_failed_call_ends_in_failed_before_the_exit_code(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_error(529, "overloaded_error"))
    outcome = probe("--json")
    [line] = map(json.loads, outcome.out.splitlines())

    assert (outcome.code, line["type"], line["error"]["kind"]) == (1, "failed", "overloaded")


def test_a_retry_is_told(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_error(529, "overloaded_error", headers=[("retry-after", "0")]), anthropic_stream("Hello"))
    outcome = probe(DRAGOMAN_PROVIDER_MAX_RETRIES="1")

    assert (outcome.code, outcome.out) == (0, "Hello\n")
    assert outcome.err.startswith("attempt 1 failed (overloaded), trying again in ")
    assert "2 attempts" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--provider", "nonsense"], "unknown provider or model 'nonsense:claude-test-1'; known providers: anthropic, local"),
        (["--thinking", "much"], "--thinking is a number of tokens, 'adaptive' or 'off', not 'much'"),
        (["--effort", "huge"], "--effort is one of minimal, low, medium, high, xhigh, max, not 'huge'"),
        (["--prompt", " \n"], "the prompt is empty"),
        (["--thinking", "5"], "a budget of 5 is below 1024"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--nonsense"], "No such option"),
    ],
    ids=["provider", "thinking", "effort", "empty prompt", "small budget", "max tokens", "unknown option"],
)
def test_a_mistake_is_exit_code_2_and_sends_nothing(arguments: list[str], said: str, server: WireServer, probe: Probe) -> None:
    outcome = probe(*arguments, COLUMNS="200")

    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
    assert server.requests == []


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("folder", "it is there and is not a file"),
        ("", "it is there and is not a file"),
        ("none/out.json", "there is no folder none"),
        ("file/out.json", "there is no folder file"),
        ("x" * 300, "File name too long"),
    ],
    ids=["a folder", "this folder", "no folder", "a file above", "long"],
)
def test_a_record_that_cannot_be_written_is_exit_code_2_and_sends_nothing(
    file: str, said: str, server: WireServer, probe: Probe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    outcome = probe("--record", file)

    assert (outcome.code, outcome.out, server.requests) == (2, "", [])
    assert outcome.err.startswith(f"dragoman: --record {file[:200] or '.'}")
    assert said in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_record_that_fails_after_the_answer_leaves_the_answer_and_is_exit_code_2(
    server: WireServer, probe: Probe, tmp_path: Path
) -> None:
    def answer(request: object) -> Answer:
        (tmp_path / "out.json").mkdir()
        return anthropic_stream("Hello")

    server.always(answer)
    outcome = probe("--record", str(tmp_path / "out.json"))

    assert (outcome.code, outcome.out, len(server.requests)) == (2, "Hello\n", 1)
    summary, error = outcome.err.splitlines()
    assert summary.startswith("end_turn · ")
    assert error == f"dragoman: {tmp_path / 'out.json'}: cannot be written: it is there and is not a file"


def test_a_missing_key_is_exit_code_2(server: WireServer, probe_process: Probe) -> None:
    outcome = probe_process(ANTHROPIC_API_KEY="")

    assert outcome.code == 2
    assert outcome.err.startswith("dragoman: Anthropic API key is required")


def test_without_prompt_and_input_it_says_how_to_give_one(probe: Probe) -> None:
    outcome = probe(stdin="")

    assert outcome.code == 2
    assert "give --prompt TEXT, or text on standard input" in outcome.err


def test_input_that_is_not_utf8_is_refused(probe: Probe) -> None:
    outcome = probe(stdin=b"caf\xe9")

    assert outcome.code == 2
    assert "not UTF-8 (byte 3)" in outcome.err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_narrow_locale_does_not_end_an_answer(encoding: str, server: WireServer, probe_process: Probe) -> None:
    server.add(anthropic_stream("→ 日本"))
    outcome = probe_process(PYTHONIOENCODING=encoding)

    assert (outcome.code, outcome.out) == (0, "→ 日本\n")


def test_text_arrives_before_the_answer_is_complete_and_an_interrupt_keeps_it(server: WireServer) -> None:
    gate = Gate()
    events = anthropic_events("Hello, world", usage=USAGE)
    server.add(Answer(headers={"content-type": "text/event-stream"}, body=[*events[:4], Wait(gate), *events[4:]]))
    command = [*COMMAND, "probe", "--model", "claude-test-1", "--prompt", "Hi"]
    with subprocess.Popen(
        command, env=environment(**settings(server)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert os.read(process.stdout.fileno(), 100) == b"Hell", process.stderr.read()
        gate.reached()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)

    assert process.returncode == 130
    assert out == b"\n"
    assert err.startswith(b"interrupted \xc2\xb7 input 1,072")
    assert b"Traceback" not in err
    server.wait_closed()


def test_when_the_reader_has_gone_it_leaves_quietly(server: WireServer) -> None:
    gate = Gate()
    events = anthropic_events(*["Hello, world\n"] * 40, pieces=1)
    server.add(Answer(headers={"content-type": "text/event-stream"}, body=[*events[:4], Wait(gate), *events[4:]]))
    command = [*COMMAND, "probe", "--model", "claude-test-1", "--prompt", "Hi"]
    with subprocess.Popen(
        command, env=environment(**settings(server)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert os.read(process.stdout.fileno(), 100) == b"Hello, world\n"
        process.stdout.close()
        gate.open()
        err = process.stderr.read()

    assert (process.returncode, err) == (141, b"")


def on_a_terminal(command: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Run a command with a terminal for all three streams; the exit code and what the terminal received."""
    master, slave = pty.openpty()
    try:
        with subprocess.Popen(command, env=variables, stdin=slave, stdout=slave, stderr=slave) as process:
            os.close(slave)
            received = b""
            while select.select([master], [], [], TIMEOUT)[0]:
                try:
                    data = os.read(master, 4096)
                except OSError:  # Linux: the other end is closed
                    break
                if not data:
                    break
                received += data
        return process.returncode, received.decode().replace("\r\n", "\n")
    finally:
        os.close(master)


@pytest.mark.parametrize(
    ("variables", "thought"),
    [({}, "\x1b[2mhm\x1b[0m\x1b[2m\n\x1b[0m"), ({"NO_COLOR": "1"}, "hm\n"), ({"TERM": "dumb"}, "hm\n")],
    ids=["colour", "NO_COLOR", "dumb"],
)
def test_on_a_terminal_thinking_is_dimmed_unless_that_is_unwanted(variables: dict[str, str], thought: str, server: WireServer) -> None:
    server.add(anthropic_stream(content_thinking("hm"), "Done", pieces=1))
    command = [*COMMAND, "probe", "--model", "claude-test-1", "--prompt", "Hi", "--show-thinking"]
    code, seen = on_a_terminal(command, environment(**settings(server), **variables))

    assert code == 0
    assert seen.startswith(f"{thought}Done\nend_turn")


def test_on_a_terminal_what_the_model_writes_is_shown_not_obeyed(server: WireServer) -> None:
    server.add(anthropic_stream("\x1b]0;owned\x07red\x1b[31m\x9b2J tab\there", pieces=1))
    command = [*COMMAND, "probe", "--model", "claude-test-1", "--prompt", "Hi"]
    code, seen = on_a_terminal(command, environment(**settings(server)))

    assert code == 0
    assert seen.split("\n")[0].split() == ["]0;ownedred[31m2J", "tab", "here"]


def test_in_a_pipe_the_text_goes_through_as_it_is(server: WireServer, probe: Probe) -> None:
    server.add(anthropic_stream("red\x1b[31m", pieces=1))

    assert probe().out == "red\x1b[31m\n"


def test_on_a_terminal_without_a_prompt_it_does_not_wait_for_one(server: WireServer) -> None:
    code, seen = on_a_terminal([*COMMAND, "probe", "--model", "claude-test-1"], environment(**settings(server)))

    assert code == 2
    assert "no prompt: give --prompt TEXT" in seen


@pytest.mark.parametrize(
    ("variable", "arguments", "chosen"),
    [
        ("", [], ("anthropic", "")),
        ("", ["groq", "m"], ("groq", "m")),
        ("openai:gpt-5", [], ("openai", "gpt-5")),
        ("openai:gpt-5", ["", "gpt-5-mini"], ("openai", "gpt-5-mini")),
        ("openai:gpt-5", ["anthropic"], ("anthropic", "")),
        ("local", [], ("local", "")),
        ("claude-x", [], ("anthropic", "claude-x")),
        ("acme:m", [], ("", "")),
        ("acme:m", ["", "n"], ("acme", "n")),
    ],
)
def test_without_a_provider_it_is_the_one_of_the_variable(
    variable: str, arguments: list[str], chosen: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_DEFAULT_MODEL", variable)
    assert provider_and_model(*[*arguments, "", ""][:2]) == chosen


def test_an_unknown_model_of_the_variable_is_named_with_it() -> None:
    outcome = invoke("probe", "--prompt", "Hi", DRAGOMAN_DEFAULT_MODEL="nope")
    assert outcome.code == 2
    assert "DRAGOMAN_DEFAULT_MODEL: unknown provider or model 'nope'" in outcome.err
