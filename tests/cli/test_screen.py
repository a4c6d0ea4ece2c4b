"""What stands where: answers on standard output, notes on standard error, and how the two share a terminal."""

from __future__ import annotations

import io

import pytest

from dragoman import (
    BlockStart,
    BlockStop,
    Citation,
    Event,
    InvalidToolUse,
    MessageStop,
    Notice,
    OverloadedError,
    Refusal,
    Retrying,
    ServerToolUse,
    Text,
    TextDelta,
    Timing,
    ToolUse,
    Usage,
    assistant,
)
from dragoman.cli.printer import Printer, summary
from dragoman.cli.terminal import Screen
from dragoman.testing.scripted import script


class Terminal(io.StringIO):
    """A text stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Both:
    """One place that both streams write to, as on a terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        self.seen = Terminal()
        self.screen = Screen(self.seen, self.seen)


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    return Both(monkeypatch)


def printed(*events: Event, thinking: bool = False) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(Screen(out, err), thinking=thinking)
    for event in events:
        printer.show(event)
    return out.getvalue(), err.getvalue()


def test_on_a_terminal_a_note_begins_its_own_line(both: Both) -> None:
    both.screen.write("half a line")
    both.screen.note("a note")
    both.screen.write("more")
    both.screen.say("the end")

    assert both.seen.getvalue() == "half a line\na note\nmore\nthe end\n"


def test_apart_neither_disturbs_the_other() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, err)
    screen.write("half a line")
    screen.note("a note")
    screen.write(", and the rest")
    screen.end_line()
    screen.end_line()
    screen.say("the end")

    assert (out.getvalue(), err.getvalue()) == ("half a line, and the rest\n", "a note\nthe end\n")


def test_nothing_is_written_for_nothing() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, err)
    screen.write("")
    screen.note("")
    screen.end_line()
    screen.end_note()

    assert (out.getvalue(), err.getvalue()) == ("", "")


def test_a_citation_is_noted_after_its_text() -> None:
    cited = Text("Noon.", citations=[Citation("url", {"url": "https://example.org", "title": "Clock"}), Citation("page", {})])

    assert printed(*script(assistant(cited))) == ("Noon.", "[cites Clock]\n[cites page]\n")


def test_a_refusal_is_text() -> None:
    assert printed(*script(assistant(Refusal("I will not.")))) == ("I will not.", "")


def test_calls_are_noted_with_their_input() -> None:
    calls = assistant(
        ServerToolUse("s", "search", {"q": "noon"}), ToolUse("c", "look", {}), InvalidToolUse("i", "cut", "{", reason="incomplete")
    )

    assert printed(*script(calls)) == ("", '[calls search {"q":"noon"}]\n[calls look {}]\n[calls cut: not a valid call (incomplete)]\n')


def test_a_hand_written_stop_without_its_block_shows_the_text_alone() -> None:
    events = (BlockStart(0, Text("")), TextDelta(0, "Hi"), BlockStop(0), MessageStop("end_turn"))

    assert printed(*events) == ("Hi", "")


def test_a_notice_and_a_retry_are_noted() -> None:
    events = (Retrying(1, 2.04, OverloadedError("busy")), Notice("unknown_event", "passed on"))

    assert printed(*events) == ("", "attempt 1 failed (overloaded), trying again in 2.0 s\nunknown_event: passed on\n")


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage(), "input 0, output 0"),
        (Usage(input=1, output=2, reasoning=1), "input 1, output 2 (thinking 1)"),
        (Usage(input=1000, cache_read=24), "input 1,024 (cache: 24 read), output 0"),
        (Usage(cache_write_5m=1, cache_write_1h=2), "input 3 (cache: 1 written for 5m, 2 written for 1h), output 0"),
        (Usage(cache_write_other=3), "input 3 (cache: 3 written), output 0"),
    ],
    ids=["none", "thinking", "read", "written", "written, no lifetime"],
)
def test_usage_names_its_cache_parts(usage: Usage, text: str) -> None:
    assert summary("end_turn", usage, None, "") == f"end_turn · {text}"


def test_the_speed_is_that_of_the_tokens_after_the_first() -> None:
    timing = Timing(started=0.0, first_content=0.5, finished=2.5, attempts=2)

    assert summary("end_turn", Usage(output=101), timing, "req_1") == (
        "end_turn · input 0, output 101 · first token 0.50 s · 50.0 tokens/s · 2 attempts · request req_1"
    )


def test_one_token_has_no_speed() -> None:
    timing = Timing(started=0.0, first_content=0.5, finished=0.5)

    assert summary("max_tokens", Usage(output=1), timing, "") == "max_tokens · input 0, output 1 · first token 0.50 s"


def test_an_answer_in_one_piece_has_no_speed() -> None:
    timing = Timing(started=0.0, first_content=0.5, finished=0.5001)

    assert summary("end_turn", Usage(output=100), timing, "") == "end_turn · input 0, output 100 · first token 0.50 s"
