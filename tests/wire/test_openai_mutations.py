"""Answers and requests of OpenAI's protocols with some of their values replaced: no exception of the interpreter, one terminal event, and
what is read can be stored and sent again.
"""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Accumulator, Failed, InvalidInputError, MessageStop, ProviderError, Request, from_json, problems, to_json, user
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire

ODD: list[Any] = [None, True, 0, -1, 1.5, 10**30, "", "x", "\ud800", [], {}, [None], [{}], [1], ["x"], {"type": "text"}, {"a": None}]
Change: TypeAlias = tuple[float, Any]
"""Where, as a share of all places, and what stands there instead."""

changes = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.sampled_from(ODD)), min_size=1, max_size=3)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [(path)] * bool(path) + [place for key, item in below for place in places(item, (*path, key))]


def changed(value: Any, how: list[Change]) -> Any:
    value = copy.deepcopy(value)
    for share, odd in how:
        found = places(value)
        if not found:
            break
        *above, last = found[int(share * len(found))]
        holder = value
        for key in above:
            holder = holder[key]
        holder[last] = copy.deepcopy(odd)
    return value


def answer(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


USAGE = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 2}, "cost": 0.5}
CHAT: list[Any] = [
    answer({"role": "assistant", "content": "Hi"}),
    answer({"reasoning": "so"}),
    answer({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s", "format": "f"}]}),
    answer({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}}]}),
    answer({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]}),
    answer({"annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}], "images": [{"image_url": {"url": "u"}}]}),
    answer({"audio": {"id": "a", "data": "AAAA", "transcript": "t"}, "refusal": "no", "function_call": {"name": "g", "arguments": "{}"}}),
    answer({}, "tool_calls", usage=USAGE, logprobs={"content": []}, x_groq={"id": "r", "usage": USAGE}),
]


def added(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


OUTPUT: list[Any] = [
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "so"}], "encrypted_content": "E"},
    {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi", "annotations": [{"type": "u"}]}]},
    {"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": '{"x":1}', "status": "completed"},
    {"type": "shell_call", "id": "s", "call_id": "d", "action": {"commands": ["ls", "pwd"]}},
    {"type": "code_interpreter_call", "id": "i", "code": "1", "outputs": []},
    {"type": "image_generation_call", "id": "p", "result": "AAAA", "output_format": "png"},
]
RESPONSES: list[Any] = [
    {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
    added(0, {"type": "reasoning", "id": "r", "summary": []}),
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "so"},
    added(1, {"type": "message", "id": "m", "content": []}),
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "item_id": "m", "delta": "Hi"},
    {"type": "response.output_text.annotation.added", "output_index": 1, "content_index": 0, "annotation": {"type": "u"}},
    added(2, {"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": ""}),
    {"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "f", "delta": '{"x":1}'},
    added(3, {"type": "shell_call", "id": "s", "call_id": "d", "action": {}}),
    {"type": "response.shell_call_command.delta", "output_index": 3, "command_index": 0, "delta": "ls"},
    {"type": "response.image_generation_call.partial_image", "output_index": 5, "partial_image_b64": "AA"},
    *({"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(OUTPUT)),
    {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": OUTPUT, "usage": {"input_tokens": 1}}},
]
FILE = "data:a/b;base64,AA"
CHAT_REQUEST: Any = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "q"}, {"type": "file", "file": {"filename": "n", "file_data": FILE}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "r"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}}],
    "tool_choice": "auto",
    "max_completion_tokens": 5,
    "temperature": 0.5,
    "stop": ["x"],
    "reasoning_effort": "low",
    "metadata": {"a": "b"},
}
RESPONSES_REQUEST: Any = {
    "model": "m",
    "instructions": "s",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "q"}, {"type": "input_file", "filename": "n", "file_data": FILE}]},
        *OUTPUT[:4],
        {"type": "function_call_output", "call_id": "c", "output": "r"},
        {"type": "shell_call_output", "call_id": "d", "output": [{"stdout": "x", "outcome": {"type": "exit", "exit_code": 0}}]},
    ],
    "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}],
    "tool_choice": "auto",
    "max_output_tokens": 5,
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "events"), [(OpenAIChatWire("openrouter"), CHAT), (OpenAIResponsesWire(), RESPONSES)], ids=["chat", "responses"]
)
@settings(derandomize=True, max_examples=400)
@given(how=changes)
def test_an_answer_is_read_whatever_stands_in_it(wire: Any, events: list[Any], how: list[Change]) -> None:
    data = b"".join([b"data: " + json.dumps(event).encode() + b"\n\n" for event in changed(events, how)])
    decoder, accumulator = wire.decoder(headers={"content-type": "text/event-stream"}), Accumulator()
    found = [*decoder.feed(data), *decoder.close()]
    assert [isinstance(event, MessageStop | Failed) for event in found] == [False] * (len(found) - 1) + [True]
    try:
        for event in found:
            accumulator.push(event)
    except ProviderError as error:
        assert isinstance(found[-1], Failed)
        assert error is found[-1].error  # noqa: PT017
        return
    message = accumulator.message()
    assert from_json(to_json(message)) == message
    with suppress(InvalidInputError):
        wire.encode(Request([user("q"), message, user("and?")], model="m"), stream=True)


@pytest.mark.parametrize(
    ("wire", "body"), [(OpenAIChatWire(), CHAT_REQUEST), (OpenAIResponsesWire(), RESPONSES_REQUEST)], ids=["chat", "responses"]
)
@settings(derandomize=True, max_examples=400)
@given(how=changes)
def test_a_request_is_read_or_refused_whatever_stands_in_it(wire: Any, body: Any, how: list[Change]) -> None:
    with suppress(InvalidInputError):
        request = wire.decode_request(json.dumps(changed(body, how)).encode())
        from_json(to_json(request), Request)
        if not problems(request, wire):
            wire.encode(request, stream=True)
