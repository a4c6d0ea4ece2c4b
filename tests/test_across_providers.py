"""One conversation, many providers: it starts at one, goes on at another, and comes back, with all that is the first one's own intact.

First with recorded answers, each dialect's hardest, then with generated ones, which are written in their provider's own words and
decoded by its wire. In between every conversation is stored and loaded.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import (
    Anthropic,
    Audio,
    Base64,
    FallbackProvider,
    FileId,
    InvalidInputError,
    Message,
    Notice,
    Opaque,
    OpenAIChat,
    Origin,
    RedactedThinking,
    Refusal,
    Request,
    RetryPolicy,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
    from_json,
    to_json,
    user,
)
from dragoman.history import problems
from dragoman.message import Block
from dragoman.testing import Answer as Reply
from dragoman.testing import WireServer, anthropic_error, anthropic_stream, content_thinking, content_tool_use
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import Wire
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire
from tests.across import WANTED, Answer, Home, answers, begun, exchange_of, said
from tests.shared import CORPUS
from tests.strategies import messages

AWAY = {
    "anthropic": Home(AnthropicWire(), "claude-sonnet-4-5"),
    "chat at openai": Home(OpenAIChatWire("openai"), "gpt-4o"),
    "chat at mistral": Home(OpenAIChatWire("mistral"), "mistral-large-latest"),
    "chat at openrouter": Home(OpenAIChatWire("openrouter"), "z-ai/glm-4.6"),
    "responses": Home(OpenAIResponsesWire(), "gpt-5"),
}
"""Where a conversation goes on. Mistral has the narrowest rule for ids: nine letters and digits."""

needs_recordings = pytest.mark.skipif(not CORPUS.exists(), reason=f"the recorded exchanges are not at {CORPUS}")


def stored(messages: list[Message]) -> list[Message]:
    """As they come back from a store."""
    return [from_json(to_json(message)) for message in messages]


def is_foreign(origin: Origin, wire: Wire) -> bool:
    """Whether an answer means nothing to this wire beyond its words and calls. To Anthropic's, any host of its dialect is home."""
    return origin.wire != wire.name or (wire.name != "anthropic" and origin.provider != getattr(wire, "provider", ""))


def legal_id(wire: Wire) -> re.Pattern[str]:
    """What the ids of calls must look like."""
    if isinstance(wire, OpenAIChatWire):
        return re.compile(f"(?=.{{1,{wire.dialect.id_limit}}}$)(?:{wire.dialect.id_pattern})")
    return re.compile(r"[a-zA-Z0-9_-]+" if isinstance(wire, AnthropicWire) else r".{1,64}", re.DOTALL)


def check_pairs(body: bytes, wire: Wire) -> None:
    """Every call has an id of its own that its host takes, and one result."""
    found = said(body, wire.name)
    assert sorted(found.answered) == sorted(found.calls)
    assert len(set(found.calls)) == len(found.calls)
    assert [id for id in found.calls if not legal_id(wire).fullmatch(id)] == []


# ---- recorded answers


@needs_recordings
@pytest.mark.parametrize("dialect", WANTED)
def test_there_are_recorded_replieswith_thinking_and_calls(dialect: str) -> None:
    found = answers(dialect)
    assert len(found) >= 20
    assert sum({"thinking", "tool_use"} <= {block.type for block in answer.message.content} for answer in found) >= 5


@needs_recordings
@pytest.mark.parametrize("away", AWAY)
@pytest.mark.parametrize("dialect", WANTED)
def test_a_recorded_answer_goes_on_elsewhere(dialect: str, away: str) -> None:
    """What another provider may see of it: its words and calls, nothing that only its own provider can read, nothing lost in silence."""
    there = AWAY[away]
    for answer in answers(dialect):
        for thinking in ("drop", "text"):
            request = there.request(stored(begun(answer.message)), foreign_thinking=thinking)
            before = to_json(request)
            http = there.wire.encode(request, stream=True)
            assert problems(request, there.wire) == [], answer.exchange.name
            assert to_json(request) == before, answer.exchange.name
            assert there.wire.encode(request, stream=True).body == http.body, answer.exchange.name
            check_pairs(http.body, there.wire)
            if is_foreign(answer.origin, there.wire):
                check_told(answer, http.body, http.notices, there.wire, as_text=thinking == "text")


def check_told(answer: Answer, body: bytes, notices: Any, wire: Wire, *, as_text: bool) -> None:
    """What of a foreign answer is said, and what is reported instead."""
    codes = {notice.code for notice in notices if isinstance(notice, Notice)}
    strings = said(body, wire.name).strings
    for block in answer.message.content:
        if isinstance(block, Text | ToolUse) and set(block.extra) - {wire.name, "dragoman"}:
            assert "extra_left_out" in codes, answer.exchange.name
        if isinstance(block, Text) and block.citations and block.text.strip():
            assert "citations_left_out" in codes, answer.exchange.name
        match block:
            case Text(text) | Refusal(text):
                assert not text.strip() or any(text.rstrip() in string for string in strings), answer.exchange.name
            case Thinking(text, signature=signature):
                shown = as_text and bool(text.strip())
                assert (text in strings) == shown or not text.strip(), answer.exchange.name
                assert ("thinking_as_text" if shown else "thinking_left_out") in codes, answer.exchange.name
                assert not signature or not any(signature in string for string in strings), answer.exchange.name
            case RedactedThinking(data):
                assert not any(data in string for string in strings), answer.exchange.name
                assert "thinking_left_out" in codes, answer.exchange.name
            case Opaque() | ServerToolUse() | ServerToolResult():
                assert "block_left_out" in codes, answer.exchange.name
            case Audio(transcript=transcript):
                assert transcript in strings, answer.exchange.name
                assert "audio_as_text" in codes, answer.exchange.name
            case _:
                assert block.type in ("tool_use", "image"), answer.exchange.name


@needs_recordings
@pytest.mark.parametrize("elsewhere", WANTED)
@pytest.mark.parametrize("dialect", WANTED)
def test_a_recorded_conversation_comes_back(dialect: str, elsewhere: str) -> None:
    """What was sent before the excursion is sent again byte for byte, signatures and ids included: a prompt cache still holds it."""
    visits = [answer for answer in answers(elsewhere) if answer.message.tool_uses or answer.message.text][:6]
    for answer in answers(dialect):
        home = Home(answer.wire, answer.origin.model)
        messages = begun(answer.message)
        before = said(home.wire.encode(home.request(messages), stream=True).body, home.wire.name)
        for visit in visits:
            AWAY["responses"].wire.encode(AWAY["responses"].request(messages), stream=True)
            http = home.wire.encode(home.request(stored([*messages, *exchange_of(visit.message)])), stream=True)
            after = said(http.body, home.wire.name)
            assert after.turns[: len(before.turns)] == before.turns, (answer.exchange.name, visit.exchange.name)
            assert after.answered[: len(before.answered)] == before.answered
            check_pairs(http.body, home.wire)


@needs_recordings
@pytest.mark.parametrize("dialect", WANTED)
def test_what_the_provider_signed_is_in_the_request_as_it_was_in_the_answer(dialect: str) -> None:
    """Against the recorded bytes themselves, not against what we made of them."""
    seen = 0
    for answer in answers(dialect):
        home = Home(answer.wire, answer.origin.model)
        http = home.wire.encode(home.request(stored(begun(answer.message))), stream=True)
        if all(isinstance(block, Thinking) for block in answer.message.content):
            continue  # OpenAI refuses a reasoning that leads to nothing, so it stays at home
        for block in answer.message.content:
            signed = block.data if isinstance(block, RedactedThinking) else block.signature if isinstance(block, Thinking) else ""
            if signed:
                quoted = json.dumps(signed, ensure_ascii=False).encode()
                assert quoted in http.body
                assert quoted in answer.exchange.body or len(answer.exchange.body.split(b"signature_delta")) > 2
                seen += 1
    assert seen >= 5


# ---- generated answers, in the providers' own words

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="§"), min_size=1, max_size=12).filter(
    lambda text: bool(text.strip())
)
marks = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="+/="), max_size=12)
inputs = st.dictionaries(st.sampled_from(["city", "n", "größe"]), words | st.integers() | st.lists(words, max_size=2), max_size=2)


class Part(NamedTuple):
    """What a generated answer holds, in nobody's words: thinking (None: redacted), a text, the inputs of calls, and something odd."""

    thoughts: list[str | None]
    text: str
    mark: str
    inputs: list[dict[str, Any]]
    odd: bool


parts = st.builds(Part, st.lists(words | st.none(), max_size=2), words, marks, st.lists(inputs, max_size=2), st.booleans())


def anthropic_answer(n: int, part: Part, ids: list[str]) -> dict[str, Any]:
    signed = [(f"§anthropic-{n}-{i}-{part.mark}", thought) for i, thought in enumerate(part.thoughts)]
    content: list[dict[str, Any]] = [
        {"type": "redacted_thinking", "data": mark} if thought is None else {"type": "thinking", "thinking": thought, "signature": mark}
        for mark, thought in signed
    ]
    content.append({"type": "text", "text": part.text})
    content += [{"type": "tool_use", "id": id, "name": "look", "input": value} for id, value in zip(ids, part.inputs, strict=False)]
    content += [{"type": "hologram", "data": f"§anthropic-{n}"}] * part.odd
    return {
        "id": f"msg_{n}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "tool_use" if part.inputs else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def chat_answer(n: int, part: Part, ids: list[str]) -> dict[str, Any]:
    details = [
        {"type": "reasoning.encrypted", "data": f"§openrouter-{n}-{i}-{part.mark}", "format": "openai-responses-v1", "index": i}
        if thought is None
        else {"type": "reasoning.text", "text": thought, "signature": f"§openrouter-{n}-{i}", "format": "anthropic-claude-v1", "index": i}
        for i, thought in enumerate(part.thoughts)
    ]
    calls = [
        {"id": id, "type": "function", "function": {"name": "look", "arguments": json.dumps(value)}}
        for id, value in zip(ids, part.inputs, strict=False)
    ]
    message = {"role": "assistant", "content": part.text, "reasoning_details": details, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": f"gen-{n}", "object": "chat.completion", "model": "z-ai/glm-4.6", "choices": [choice]}


def responses_answer(n: int, part: Part, ids: list[str], vendor: str = "openai") -> dict[str, Any]:
    output: list[dict[str, Any]] = [
        {
            "id": f"§{vendor}-rs-{n}-{i}",
            "type": "reasoning",
            "summary": [] if thought is None else [{"type": "summary_text", "text": thought}],
            "encrypted_content": f"§{vendor}-{n}-{i}-{part.mark}",
        }
        for i, thought in enumerate(part.thoughts)
    ]
    output += [{"id": f"§{vendor}-list-{n}", "type": "mcp_list_tools", "server_label": "s", "tools": []}] * part.odd
    text = {"type": "output_text", "text": part.text, "annotations": []}
    output.append({"id": f"§{vendor}-msg-{n}", "type": "message", "role": "assistant", "status": "completed", "content": [text]})
    output += [
        {
            "id": f"§{vendor}-fc-{i}",
            "type": "function_call",
            "call_id": id,
            "name": "look",
            "arguments": json.dumps(v),
            "status": "completed",
        }
        for i, (id, v) in enumerate(zip(ids, part.inputs, strict=False))
    ]
    return {"id": f"resp_{n}", "object": "response", "model": "gpt-5", "status": "completed", "output": output}


HOMES = {
    "anthropic": (Home(AnthropicWire(), "claude-sonnet-4-5"), anthropic_answer),
    "openrouter": (Home(OpenAIChatWire("openrouter"), "z-ai/glm-4.6"), chat_answer),
    "openai": (Home(OpenAIResponsesWire(), "gpt-5"), responses_answer),
    "xai": (Home(OpenAIResponsesWire(provider="xai"), "grok-4"), partial(responses_answer, vendor="xai")),
}
"""Each provider, and how it would say a part. What only it can read holds `§` and its name."""


def own_ids(home: str, n: int, count: int) -> list[str]:
    """Ids as this provider makes them, each used once."""
    form = {"anthropic": "toolu_{}_{}", "openrouter": "functions.look:{}{}", "openai": "call_{}_{}", "xai": "xai-{}-{}"}[home]
    return [form.format(n, i) for i in range(count)]


def repeated_ids(home: str, n: int, count: int) -> list[str]:
    """Ids that begin anew in every turn, and long ones."""
    del home
    return [f"call_{i}" if n % 2 else f"call.{'x' * 60}{i}" for i in range(count)]


class Leg(NamedTuple):
    """One turn of a conversation: who answered, and with what, in its own words and in ours."""

    home: str
    native: dict[str, Any]
    message: Message


def legs(ids: Any) -> st.SearchStrategy[list[Leg]]:
    def made(chosen: list[tuple[str, Part]]) -> list[Leg]:
        found: list[Leg] = []
        for n, (name, part) in enumerate(chosen):
            home, answer = HOMES[name]
            native = answer(n, part, ids(name, n, len(part.inputs)))
            body = json.dumps(native).encode()
            found.append(Leg(name, native, home.wire.decode_response(200, {"content-type": "application/json"}, body).message))
        return found

    return st.lists(st.tuples(st.sampled_from(sorted(HOMES)), parts), min_size=1, max_size=4).map(made)


def conversation(travelled: list[Leg]) -> list[Message]:
    return [user("Begin."), *[message for leg in travelled for message in exchange_of(leg.message)]]


def private(home: str, value: dict[str, Any]) -> list[Any]:
    """What of an answer, or of a request's turn, only this provider can read, and what ties its calls to it; in its own words."""
    if home == "anthropic":
        content = value["content"] if isinstance(value["content"], list) else []
        return [block for block in content if block["type"] in ("thinking", "redacted_thinking", "tool_use", "hologram")]
    if home == "openrouter":
        return [*value.get("reasoning_details", []), *[call["id"] for call in value.get("tool_calls", [])]]
    kept = ("reasoning", "function_call", "mcp_list_tools")
    return [{**value, "arguments": json.loads(value.get("arguments", "null"))}] if value.get("type") in kept else []


def native_turns(leg: Leg) -> list[dict[str, Any]]:
    """An answer as the turns or items that a request would hold."""
    if leg.home == "anthropic":
        return [leg.native]
    return [choice["message"] for choice in leg.native["choices"]] if leg.home == "openrouter" else list(leg.native["output"])


@given(legs(own_ids))
def test_every_provider_gets_its_own_back_byte_for_byte(travelled: list[Leg]) -> None:
    loaded = stored(conversation(travelled))
    for name, (home, _) in HOMES.items():
        sent = said(home.wire.encode(home.request(loaded), stream=True).body, home.wire.name).turns
        found = [item for turn in sent for item in private(name, turn)]
        own = [item for leg in travelled if leg.home == name for turn in native_turns(leg) for item in private(name, turn)]
        # between them stand the calls of others
        assert [item for item in found if item in own] == own


@given(legs(repeated_ids), st.sampled_from(["drop", "text"]))
def test_nobody_gets_what_only_another_can_read(travelled: list[Leg], thinking: Any) -> None:
    loaded = conversation(travelled)
    for name, (home, _) in HOMES.items():
        http = home.wire.encode(home.request(loaded, foreign_thinking=thinking), stream=True)
        strings = said(http.body, home.wire.name).strings
        assert [string for string in strings if string.startswith("§") and not string.startswith(f"§{name}")] == []
        foreign = [leg for leg in travelled if leg.home != name]
        thoughts = {block.text for leg in foreign for block in leg.message.content if isinstance(block, Thinking) and block.text}
        if thinking == "text":
            assert thoughts <= set(strings)
        codes = {notice.code for notice in http.notices}
        odd = any(isinstance(block, Opaque) for leg in foreign for block in leg.message.content)
        assert ("block_left_out" in codes) == odd
        unsaid = [block for leg in foreign for block in leg.message.content if isinstance(block, RedactedThinking) or _is_silent(block)]
        if unsaid or (thoughts and thinking == "drop"):
            assert "thinking_left_out" in codes


def _is_silent(block: Block) -> bool:
    return isinstance(block, Thinking) and not block.text


@given(legs(repeated_ids), st.sampled_from(sorted(AWAY)))
def test_any_conversation_goes_anywhere(travelled: list[Leg], away: str) -> None:
    loaded = conversation(travelled)
    before = to_json(AWAY[away].request(loaded))
    there = AWAY[away]
    http = there.wire.encode(there.request(loaded), stream=True)
    check_pairs(http.body, there.wire)
    strings = said(http.body, there.wire.name).strings
    assert [leg.message.text for leg in travelled if not any(leg.message.text.rstrip() in string for string in strings)] == []
    assert problems(there.request(loaded), there.wire) == []
    assert to_json(there.request(loaded)) == before
    assert there.wire.encode(there.request(stored(loaded)), stream=True).body == http.body


# ---- by hand


def test_a_voice_goes_on_as_its_words_where_nobody_speaks() -> None:
    voice = Message(
        "assistant", [Audio(Base64("audio/wav", "UklGRg=="), transcript="Hello")], origin=Origin("openai", "gpt-audio", "openai-chat")
    )
    there = AWAY["anthropic"]
    request = there.request([user("Begin."), voice, user("Go on.")])
    assert problems(request, there.wire) == []
    http = there.wire.encode(request, stream=True)
    assert said(http.body, "anthropic").turns[1] == {"role": "assistant", "content": "Hello"}
    assert [(notice.code, notice.path) for notice in http.notices] == [("audio_as_text", "messages[1].content[0]")]


def test_a_voice_without_words_is_left_out_with_its_turn() -> None:
    voice = Message("assistant", [Audio(FileId("audio_1"))], origin=Origin("openai", "gpt-audio", "openai-chat"))
    there = AWAY["anthropic"]
    request = there.request([user("Begin."), voice, user("Go on.")])
    assert problems(request, there.wire) == []
    http = there.wire.encode(request, stream=True)
    assert [turn["role"] for turn in said(http.body, "anthropic").turns] == ["user"]
    assert [notice.code for notice in http.notices] == ["block_left_out"]


def test_a_voice_that_nobody_else_gave_is_refused_before_anything_is_sent() -> None:
    there = AWAY["anthropic"]
    request = there.request([user("Begin."), Message("assistant", [Audio(FileId("a"), transcript="Hello")]), user("Go on.")])
    assert [problem.rule for problem in problems(request, there.wire)] == ["no_audio"]
    with pytest.raises(InvalidInputError):
        there.wire.encode(request, stream=True)


def test_a_call_whose_id_was_rewritten_elsewhere_is_answered_by_its_own_id() -> None:
    """An id that Mistral would refuse is rewritten in the wire copy alone: the caller's result still names the first one's id."""
    call = ToolUse("functions.look:0", "look", {"city": "Oslo"})
    asked = Message("assistant", [call], origin=Origin("moonshot", "kimi-k2", "openai-chat"))
    messages = begun(asked)
    at_mistral = said(AWAY["chat at mistral"].wire.encode(AWAY["chat at mistral"].request(messages), stream=True).body, "openai-chat")
    moonshot = Home(OpenAIChatWire("moonshot"), "kimi-k2")
    back = said(moonshot.wire.encode(moonshot.request(messages), stream=True).body, "openai-chat")
    assert at_mistral.calls == at_mistral.answered != ["functions.look:0"]
    assert back.calls == back.answered == ["functions.look:0"]


def test_a_conversation_falls_back_and_comes_back_over_the_network() -> None:
    """The first provider thinks and calls, is then overloaded for one turn, which another answers, and goes on with its own signature."""
    reply = {"id": "chat_1", "model": "gpt-4o", "choices": [{"index": 0, "message": {"content": "18 degrees."}, "finish_reason": "stop"}]}
    thinks = anthropic_stream(
        content_thinking("Look it up.", signature="c2lnbg=="), content_tool_use("look", {"city": "Oslo"}, id="toolu_1")
    )
    with (
        WireServer([thinks, anthropic_error(529, "overloaded_error"), anthropic_stream("Bye.")]) as claude,
        WireServer(Reply(headers={"content-type": "application/json"}, body=reply)) as spare,
    ):
        first = Anthropic("k-123456", base_url=claude.url, model="claude-sonnet-4-5", retry=RetryPolicy(max_attempts=1))
        second = OpenAIChat("k-123456", base_url=f"{spare.url}/v1", dialect="openai", model="gpt-4o")
        with FallbackProvider([first, second]) as provider:
            history = [user("Weather?")]
            replies: list[Message] = []
            for _ in range(3):
                replies.append(provider.complete(Request(history)).message)
                history = stored([*history, *exchange_of(replies[-1])])
        at_claude = [said(request.body, "anthropic") for request in claude.requests]
        at_spare = said(spare.requests[0].body, "openai-chat")
    assert [message.origin.wire for message in replies if message.origin] == ["anthropic", "openai-chat", "anthropic"]
    assert at_spare.calls == at_spare.answered == ["toolu_1"]
    assert not [string for string in at_spare.strings if "c2lnbg==" in string]
    assert at_claude[2].turns[: len(at_claude[1].turns)] == at_claude[1].turns
    assert at_claude[2].turns[1]["content"][0] == {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbg=="}
    assert at_claude[2].turns[3] == {"role": "assistant", "content": "18 degrees."}


# ---- anything at all


@given(st.lists(messages, min_size=1, max_size=4), st.sampled_from(sorted(AWAY)), st.sampled_from(["drop", "text"]))
def test_whatever_a_history_holds_it_is_written_or_refused(history: list[Message], away: str, thinking: Any) -> None:
    """With the same bytes or the same problems each time, and nothing is changed."""
    there = AWAY[away]
    request = there.request([user("Begin."), *history, user("Go on.")], foreign_thinking=thinking)
    before = to_json(request)

    def written() -> object:
        try:
            return there.wire.encode(request, stream=True).body
        except InvalidInputError as error:
            return error.problems

    first = written()
    assert first
    assert written() == first
    assert to_json(request) == before
    if isinstance(first, bytes):
        json.loads(first)
