"""Prompt-cache marks: where the caller's go, where `auto` puts ours, and that the cached prefix is the same bytes everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import (
    CacheControl,
    Document,
    Image,
    Message,
    Opaque,
    Origin,
    Parts,
    ProviderTool,
    RedactedThinking,
    Request,
    ServerToolResult,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
    Url,
    assistant,
    tool_result,
    user,
)
from tests.wire.anthropic_requests import MODEL, WIRE, body_of, encode, notices_of, turns_of

GOLDEN = Path(__file__).parents[1] / "golden" / "anthropic" / "requests"
MARK = CacheControl()
HOUR = CacheControl("1h")
SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}
CALL = ToolUse("toolu_1", "f", {})


def marks(*messages: Message | str, **fields: Any) -> dict[str, Any]:
    """Path → mark, of the whole body."""
    body = msgspec.json.decode(encode(*messages, **fields).body)
    found: dict[str, Any] = {"top": body["cache_control"]} if "cache_control" in body else {}

    def look(blocks: Any, base: str) -> None:
        for index, block in enumerate(blocks if isinstance(blocks, list) else []):
            if not isinstance(block, dict):
                continue
            if "cache_control" in block:
                found[f"{base}[{index}]"] = block["cache_control"]
            look(block.get("content"), f"{base}[{index}]")
            if block.get("type") == "document":
                look(block["source"].get("content"), f"{base}[{index}].source")

    look(body.get("tools"), "tools")
    look(body.get("system"), "system")
    for index, turn in enumerate(body["messages"]):
        look(turn["content"], f"m{index}")
    return found


# ---- the caller's marks


def test_explicit_is_the_default_and_sends_the_callers_marks_only() -> None:
    history = [user(Text("q", cache=MARK)), assistant("a"), user("r", Text("s", cache=HOUR))]
    assert marks(*history) == marks(*history, cache="explicit") == {"m0[0]": SHORT, "m2[1]": LONG}


def test_off_sends_no_mark_at_all() -> None:
    found = marks(
        user(Text("q", cache=MARK), Opaque({"type": "search_result", "cache_control": SHORT}, wire="anthropic")),
        assistant(Text(" ", cache=MARK), Thinking("t", signature="S", extra={"anthropic": {"cache_control": SHORT}})),
        system=[Text("s", cache=MARK)],
        tools=[Tool("f", cache=MARK), ProviderTool("t_1", "t", {"cache_control": SHORT})],
        extra_body={"cache_control": SHORT},
        cache="off",
    )
    assert found == {}


def test_off_sends_no_mark_on_what_another_block_holds() -> None:
    part = {"type": "text", "text": "x", "cache_control": SHORT}
    held = {"type": "search_result", "content": [part, "y"]}
    whole = {"type": "document", "title": "t", "source": {"type": "content", "content": [part]}}
    result = ServerToolResult("s", [part], kind="web_search_tool_result")
    history = ["q", assistant(result, "a"), user(Opaque(held, wire="anthropic"), Opaque(whole, wire="anthropic"))]
    assert set(marks(*history)) == {"m1[0][0]", "m2[0][0]", "m2[1].source[0]"}
    assert marks(*history, cache="off") == {}
    plain = {"type": "text", "text": "x"}
    assert turns_of(*history, cache="off")[2]["content"] == [
        {**held, "content": [plain, "y"]},
        {**whole, "source": {"type": "content", "content": [plain]}},
    ]
    assert part == {"type": "text", "text": "x", "cache_control": SHORT}  # nothing of the caller's is changed


@pytest.mark.parametrize("cache", ["explicit", "auto"])
def test_null_is_no_mark(cache: str) -> None:
    block = Opaque({"type": "search_result", "cache_control": None}, wire="anthropic")
    found = marks(user(block, Text("", cache=HOUR)), assistant("a"), cache=cache)
    assert found["m0[0]"] == LONG


def test_the_first_of_several_marks_in_a_result_that_find_no_block_there_goes_to_it() -> None:
    result = ToolResult("toolu_1", [Text("", cache=HOUR), Text("", cache=MARK), Text("x"), Text("", cache=MARK)])
    assert marks("q", assistant(CALL), user(result)) == {"m2[0][0]": SHORT, "m2[0]": LONG}


def test_provider_adds_the_top_level_mark() -> None:
    assert marks("q", cache="provider") == {"top": SHORT}


@pytest.mark.parametrize(
    ("blocks", "place"),
    [
        ([Text("", cache=MARK), CALL], "m0[0]"),
        ([Text("a"), Text(" ", cache=MARK), CALL], "m1[0]"),
        ([CALL, Text("", cache=MARK)], "m1[0]"),
        ([Thinking("t", signature="S", extra={"anthropic": {"cache_control": SHORT}}), CALL], "m0[0]"),
        ([Text("a"), RedactedThinking("R", extra={"anthropic": {"cache_control": SHORT}})], "m1[0]"),
        ([Text("", cache=MARK)], "m0[1]"),  # an empty turn: the user's two are one, with the result first
    ],
)
def test_a_mark_that_its_block_cannot_carry_moves_to_the_nearest_before(blocks: list[Any], place: str) -> None:
    assert marks("q", assistant(*blocks), user(tool_result("toolu_1", "r"))) == {place: SHORT}


MARKED: dict[str, Any] = {"extra": {"anthropic": {"cache_control": SHORT}}}
ELSEWHERE = Origin("google", "gemini-9", "gemini")


@pytest.mark.parametrize(
    "turn",
    [
        assistant(Thinking("t", **MARKED), "a"),
        Message("assistant", [Thinking("t", signature="s", **MARKED), Text("a")], origin=ELSEWHERE),
        Message("assistant", [RedactedThinking("d", **MARKED), Text("a")], origin=ELSEWHERE),
    ],
)
def test_the_mark_of_thinking_that_is_left_out_moves_too(turn: Message) -> None:
    assert marks("q", turn, "r") == {"m0[0]": SHORT}
    assert marks("q", turn, "r", cache="off") == {}


def test_the_mark_of_thinking_that_is_sent_as_text_stays() -> None:
    turn = assistant("a", Thinking("t", **MARKED))
    assert marks("q", turn, "r", foreign_thinking="text") == {"m1[1]": SHORT}
    assert marks("q", turn, "r", foreign_thinking="text", cache="off") == {}


def test_thinking_keeps_its_place_when_its_mark_moves() -> None:
    thinking = Thinking("t", signature="S", extra={"anthropic": {"cache_control": SHORT}})
    assert turns_of("q", assistant(thinking, "a"), "r")[1]["content"] == [
        {"type": "thinking", "thinking": "t", "signature": "S"},
        {"type": "text", "text": "a"},
    ]


def test_a_mark_moves_over_message_borders_into_system_and_tools() -> None:
    empty = user(Text("", cache=MARK), "q")
    assert marks(empty, system="s", tools=[Tool("f")]) == {"system[0]": SHORT}
    assert marks(empty, tools=[Tool("f")]) == {"tools[0]": SHORT}
    assert marks(user(Text("", cache=MARK)), "q", system="s") == {"system[0]": SHORT}


def test_a_mark_with_nothing_before_it_is_dropped_and_reported() -> None:
    empty = user(Text("", cache=MARK), "q")
    assert marks(empty) == {}
    assert notices_of(empty) == [("cache_mark_left_out", "messages")]


def test_a_mark_that_meets_another_is_done() -> None:
    assert marks(user(Text("q", cache=HOUR), Text("", cache=MARK))) == {"m0[0]": LONG}


def test_a_mark_follows_the_order_of_the_wire_not_of_the_message() -> None:
    assert marks("q", assistant(CALL), user(Text("", cache=MARK), tool_result("toolu_1", "r"))) == {"m2[0]": SHORT}


def test_a_mark_inside_a_result_or_document_that_nothing_there_carries_is_its_own() -> None:
    assert marks(user(ToolResult("t", [Text("", cache=MARK)]))) == {"m0[0]": SHORT}
    assert marks(user(ToolResult("t", ["a", Text("", cache=MARK), "b"]))) == {"m0[0][0]": SHORT}
    assert marks(user(Document(Parts([Text("", cache=HOUR)])))) == {"m0[0]": LONG}


def test_an_empty_system_prompt_is_no_system_field() -> None:
    assert body_of(system=[Text("", cache=MARK)]) == {}
    assert marks("q", system=[Text("", cache=MARK)], tools=[Tool("f")]) == {"tools[0]": SHORT}


def test_moving_a_mark_never_touches_an_opaque_block() -> None:
    data = {"type": "search_result", "source": "s", "title": "t", "content": []}
    assert marks(user(Opaque(data, wire="anthropic"), Text("", cache=MARK))) == {"m0[0]": SHORT}
    assert "cache_control" not in data


# ---- cache="auto"

HISTORY = [user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3")]


def test_auto_marks_tools_and_system_and_the_last_two_user_turns() -> None:
    assert marks(*HISTORY, system="s", tools=[Tool("f"), Tool("g")], cache="auto") == {"system[0]": SHORT, "m2[0]": SHORT, "m4[0]": SHORT}
    assert marks(*HISTORY, tools=[Tool("f"), Tool("g")], cache="auto") == {"tools[1]": SHORT, "m2[0]": SHORT, "m4[0]": SHORT}
    assert marks("q", cache="auto") == {"m0[0]": SHORT}


def test_auto_skips_what_cannot_carry_a_mark() -> None:
    upload = Opaque({"type": "container_upload", "file_id": "f"}, wire="anthropic")
    assert marks("q1", assistant("a"), user("q2", upload), assistant("b"), user(upload), cache="auto") == {"m0[0]": SHORT, "m2[0]": SHORT}


def test_auto_marks_the_last_block_of_a_turn() -> None:
    assert marks(user("a", Image(Url("u"))), cache="auto") == {"m0[1]": SHORT}
    assert marks("q", assistant(CALL), user("stop", tool_result("toolu_1", "r")), cache="auto") == {"m0[0]": SHORT, "m2[1]": SHORT}


def test_a_mark_on_another_tool_is_not_the_end_of_the_tools() -> None:
    assert marks("q", tools=[Tool("f", cache=MARK), Tool("g")], cache="auto") == {"tools[0]": SHORT, "tools[1]": SHORT, "m0[0]": SHORT}
    assert marks("q", tools=[Tool("f"), Tool("g", cache=MARK)], cache="auto") == {"tools[1]": SHORT, "m0[0]": SHORT}


def test_auto_adds_nothing_where_a_mark_is() -> None:
    assert marks(user("a", Text("b", cache=HOUR)), system=[Text("s", cache=HOUR)], cache="auto") == {"system[0]": LONG, "m0[1]": LONG}


@pytest.mark.parametrize(
    ("callers", "ours"),
    [(1, ["system[0]", "m4[0]", "m6[0]"]), (2, ["system[0]", "m6[0]"]), (3, ["m6[0]"]), (4, []), (5, [])],
)
def test_the_callers_marks_come_first_and_ours_by_use(callers: int, ours: list[str]) -> None:
    first = user(*[Text("x", cache=MARK) for _ in range(callers)])
    found = marks(first, assistant("a"), user("q1"), assistant("b"), user("q2"), assistant("c"), user("q3"), system="s", cache="auto")
    assert [place for place in found if not place.startswith("m0")] == ours
    assert len(found) == max(4, callers) if callers > 1 else 4


def test_a_mark_of_ours_before_a_1h_mark_lives_as_long() -> None:
    found = marks("q1", assistant("a"), user(Text("q2", cache=HOUR)), assistant("b"), "q3", system="s", cache="auto")
    assert found == {"system[0]": LONG, "m2[0]": LONG, "m4[0]": SHORT}
    assert marks(user(Text("a", cache=HOUR), "b"), cache="auto") == {"m0[0]": LONG, "m0[1]": SHORT}
    found = marks("q1", system="s", cache="auto", extra_body={"cache_control": LONG})
    assert found == {"top": LONG, "system[0]": LONG, "m0[0]": LONG}


@pytest.mark.parametrize("mode", ["auto", "provider"])
def test_nothing_is_added_where_the_model_cannot_cache(mode: str) -> None:
    assert marks("q", system="s", model="claude-2", cache=mode) == {}
    assert marks(user(Text("q", cache=MARK)), model="claude-2", cache=mode) == {"m0[0]": SHORT}


# ---- the same bytes everywhere

PREFIX = """
import sys
from dragoman import *
from dragoman.wire.anthropic import AnthropicWire
schema = {"type": "object", "properties": {k: {"type": "string", "enum": ["z", "a"]} for k in ("zulu", "alpha", "mike")}}
request = Request(
    [
        user("q"),
        assistant(Thinking("t", signature="S"), ToolUse("a.b", "f", {"z": 1, "a": {"y": 2, "b": 3}})),
        user(ToolResult("a.b", "r")),
    ],
    model="claude-sonnet-4-5", system="s", tools=[Tool("zz", "", schema), Tool("aa", "", schema)], cache="auto",
    betas=["x-2025-01-01", "b-2025-01-01"], metadata={"user_id": "u"}, extra_body={"speed": "fast", "container": {"b": 1, "a": 2}},
)
encoded = AnthropicWire().encode(request, stream=True)
sys.stdout.buffer.write(encoded.body)
"""


def test_the_same_request_is_the_same_bytes_in_every_process() -> None:
    def run(seed: str) -> bytes:
        return subprocess.run(
            [sys.executable, "-c", PREFIX], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout

    assert run("0") == run("1") == run("4242") == (GOLDEN / "cached_prefix.json").read_bytes()


def test_a_longer_history_begins_with_the_same_bytes() -> None:
    """What the last request wrote to the cache is what the next one reads: no mark, so no difference before the new turn."""
    shared = Request([user("q1"), assistant(CALL), user(tool_result("toolu_1", "r"))], model=MODEL, system="s", tools=[Tool("f")])
    longer = shared.replace(messages=[*shared.messages, assistant("a"), user("q2")])
    assert WIRE.encode(longer, stream=True).body.startswith(WIRE.encode(shared, stream=True).body.removesuffix(b"]}"))
