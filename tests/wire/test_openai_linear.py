"""Whatever an OpenAI-compatible peer sends, the work is linear: five times the events run five times the lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from dragoman import Accumulator, Failed
from dragoman.wire import Wire
from dragoman.wire.openai_chat import OpenAIChatWire
from dragoman.wire.openai_responses import OpenAIResponsesWire
from tests.bench.counting import growth

Shape: TypeAlias = Callable[[int], list[dict[str, Any]]]


def call(**entry: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}


FINISH: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def calls_known_by_their_id_only(count: int) -> list[dict[str, Any]]:
    return [*(call(id=f"c{n}", function={"name": "f", "arguments": text}) for text in "{}" for n in range(count)), FINISH]


def calls_that_name_their_tool_last(count: int) -> list[dict[str, Any]]:
    unnamed = [call(index=n, id=f"c{n}", function={"arguments": "{}"}) for n in range(count)]
    return [*unnamed, *(call(index=n, function={"name": "f"}) for n in reversed(range(count))), FINISH]


def calls_that_never_name_their_tool(count: int) -> list[dict[str, Any]]:
    return [*(call(index=n, id=f"c{n}", function={"arguments": "{}"}) for n in range(count)), FINISH]


def a_name_in_every_piece(count: int) -> list[dict[str, Any]]:
    return [*[call(index=0, function={"name": "f", "arguments": "{}"})] * count, FINISH]


def a_name_in_every_piece_of_one_call(count: int) -> list[dict[str, Any]]:
    return [*[call(index=0, function={"name": "f", "arguments": "x}"})] * count, FINISH]


def a_name_in_many_pieces(count: int) -> list[dict[str, Any]]:
    return [call(index=0, id="c", function={"name": "f"}), *[call(index=0, function={"name": "g"})] * count, FINISH]


def item(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}", **fields}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": list(output)}}


def added(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "response.output_item.added", "item": {**each, "arguments": ""}} for each in items]


def items_known_by_their_id_only(count: int) -> list[dict[str, Any]]:
    items = [item(n, id=f"f{n}") for n in range(count)]
    deltas = [{"type": "response.function_call_arguments.delta", "item_id": f"f{n}", "delta": "{}"} for n in range(count)]
    return [*added(items), *deltas, completed(*items)]


def items_known_by_nothing(count: int) -> list[dict[str, Any]]:
    items = [item(n) for n in range(count)]
    return [*added(items), *[{"type": "response.function_call_arguments.delta", "delta": "1"}] * count, completed()]


def items_of_one_id(count: int) -> list[dict[str, Any]]:
    return [completed(*[item(0, id="f")] * count)]


def commands(count: int) -> list[dict[str, Any]]:
    start = {"type": "response.output_item.added", "output_index": 0, "item": {"type": "shell_call", "id": "s", "call_id": "c"}}
    deltas = [{"type": "response.shell_call_command.delta", "output_index": 0, "command_index": n, "delta": "x"} for n in range(count)]
    return [start, *deltas, completed()]


def a_text_that_is_said_whole_again_and_again(count: int) -> list[dict[str, Any]]:
    place = {"output_index": 0, "content_index": 0}
    events = [{"type": "response.output_text.delta", "delta": "x", **place}, {"type": "response.output_text.done", "text": "xx", **place}]
    return [*events * count, completed()]


CHAT: list[Shape] = [
    calls_known_by_their_id_only,
    calls_that_name_their_tool_last,
    calls_that_never_name_their_tool,
    a_name_in_every_piece,
    a_name_in_every_piece_of_one_call,
    a_name_in_many_pieces,
]
RESPONSES: list[Shape] = [
    items_known_by_their_id_only,
    items_known_by_nothing,
    items_of_one_id,
    commands,
    a_text_that_is_said_whole_again_and_again,
]


@pytest.mark.parametrize(
    ("wire", "shape"),
    [*((OpenAIChatWire("generic"), shape) for shape in CHAT), *((OpenAIResponsesWire(), shape) for shape in RESPONSES)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_work_is_linear(wire: Wire, shape: Shape) -> None:
    def work_of(size: int) -> Callable[[], object]:
        data = b"".join([b"data: " + json.dumps(event).encode() + b"\n\n" for event in shape(size)])
        return lambda: fold(wire, data)

    assert growth(work_of, 100) < 5.5


def fold(wire: Wire, data: bytes) -> None:
    """Decode and accumulate."""
    decoder, accumulator = wire.decoder(headers={"content-type": "text/event-stream"}), Accumulator()
    for event in [*decoder.feed(data), *decoder.close()]:
        if not isinstance(event, Failed):
            accumulator.push(event)


def test_a_number_that_a_peer_makes_up_is_not_counted_up_to() -> None:
    for number in (10**30, 1_000_000, -1):
        [start, delta, end] = commands(1)
        events = [start, {**delta, "command_index": number}, end]
        data = b"".join([b"data: " + json.dumps(event).encode() + b"\n\n" for event in events])
        fold(OpenAIResponsesWire(), data)
