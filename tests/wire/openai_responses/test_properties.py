"""What holds for every answer: a stream, cut anywhere, is its body; what was stored goes back as it came."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import Event, Message, Origin, Request, Text, Thinking, ToolUse, from_json, to_json, user
from tests.strategies import texts
from tests.wire.openai_responses.answers import STREAM, WIRE, body_answer, call, folded, message, reasoning, response, stream_of

plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.sampled_from(["a", "get_weather"])
json_objects = st.dictionaries(
    plain, st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | plain, st.lists, max_leaves=3), max_size=3
)
ids = st.integers(0, 10**6).map(str)

items = st.one_of(
    st.builds(lambda number, parts: message(*parts, id=f"msg_{number}"), ids, st.lists(plain, max_size=3)),
    st.builds(lambda number, text: {**message(id=f"msg_{number}"), "content": [{"type": "refusal", "refusal": text}]}, ids, plain),
    st.builds(
        lambda number, parts, signature: reasoning(*parts, id=f"rs_{number}", encrypted_content=signature),
        ids,
        st.lists(plain, max_size=3),
        plain,
    ),
    st.builds(
        lambda number, name, value: call(json.dumps(value), name=name, call_id=f"call_{number}") | {"id": f"fc_{number}"},
        ids,
        names,
        json_objects,
    ),
    st.builds(lambda number, raw: call(raw, call_id=f"call_raw_{number}") | {"id": f"fcr_{number}"}, ids, plain),
    st.builds(
        lambda number, text: {
            "id": f"ctc_{number}",
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": f"call_custom_{number}",
            "name": "sh",
            "input": text,
        },
        ids,
        plain,
    ),
    st.builds(
        lambda number, code: {"id": f"ci_{number}", "type": "code_interpreter_call", "status": "completed", "code": code, "outputs": None},
        ids,
        plain,
    ),
    st.builds(
        lambda number, value: {"id": f"x_{number}", "type": "hologram", **value}, ids, st.dictionaries(st.just("data"), json_objects)
    ),
)
answers = st.lists(items, max_size=5, unique_by=lambda item: item["id"]).map(lambda found: response(*found))


def _batches(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@given(answers, st.integers(1, 5))
def test_a_stream_is_its_body(answer: dict[str, Any], size: int) -> None:
    decoder = WIRE.decoder(headers=STREAM)
    streamed = folded(decoder.feed(stream_of(answer, lambda text: _batches(text, size))) + decoder.close()).response()
    assert streamed == body_answer(answer)


@given(answers, st.lists(st.integers(0, 4000), max_size=8))
def test_no_event_depends_on_how_the_bytes_were_cut(answer: dict[str, Any], cuts: list[int]) -> None:
    data = stream_of(answer)

    def events(edges: list[int]) -> list[Event]:
        decoder = WIRE.decoder(headers=STREAM)
        return [event for a, b in itertools.pairwise(edges) for event in decoder.feed(data[a:b])] + decoder.close()

    assert events([0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]) == events([0, len(data)])


@given(answers)
def test_what_was_stored_goes_back_as_it_came(answer: dict[str, Any]) -> None:
    made = body_answer(answer)
    stored = from_json(to_json(made.message))
    sent = json.loads(WIRE.encode(Request([user("q"), stored], model="m"), stream=True).body)["input"][1:]
    output = answer["output"]
    while output and output[-1]["type"] == "reasoning":  # the API refuses a reasoning that nothing follows
        output = output[:-1]
    if not made.message.invalid_tool_uses:
        assert [_bare(item) for item in sent] == [_bare(item) for item in output]


def _bare(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value not in (None, [], "") and (key, value) != ("arguments", "{}")}


@given(texts, texts, texts)
def test_any_text_can_be_sent(one: str, two: str, three: str) -> None:
    turn = Message(
        "assistant", [Thinking(one), Text(two), ToolUse("call_1", "f", {"x": three})], origin=Origin("openai", "m", "openai-responses")
    )
    request = WIRE.encode(Request([user(one), turn, user(three)], model="m", system=two), stream=True)
    assert WIRE.decode_request(request.body).messages[-1].role == "user"


@given(
    st.binary(max_size=200), st.sampled_from([200, 400, 500]), st.sampled_from(["text/event-stream", "application/json", "text/html", ""])
)
def test_nothing_that_a_server_sends_raises(data: bytes, status: int, content_type: str) -> None:
    decoder = WIRE.decoder(status=status, headers={"content-type": content_type})
    events = decoder.feed(data) + decoder.close()
    assert events[-1].type in ("failed", "message_stop")


json_values = st.recursive(st.none() | st.booleans() | st.integers(-2, 3) | plain, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
event_types = st.sampled_from(
    [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.annotation.added",
        "response.refusal.delta",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
        "response.shell_call_command.delta",
        "response.completed",
        "response.failed",
        "error",
    ]
)
wild_items = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["message", "reasoning", "function_call", "shell_call", "custom_tool_call", "mcp_call", "image_generation_call", 3]
        )
    },
    optional=dict.fromkeys(
        ("id", "content", "summary", "arguments", "call_id", "name", "action", "input", "status", "encrypted_content"), json_values
    ),
)
wild_events = st.fixed_dictionaries(
    {"type": event_types},
    optional={
        "item": wild_items | json_values,
        "part": st.fixed_dictionaries({"type": st.sampled_from(["output_text", "refusal", "reasoning_text"])}) | json_values,
        "response": st.fixed_dictionaries(
            {},
            optional={
                "id": json_values,
                "output": st.lists(wild_items | json_values, max_size=3),
                "status": json_values,
                "usage": json_values,
            },
        )
        | json_values,
        "error": json_values,
        **dict.fromkeys(("output_index", "content_index", "summary_index", "command_index", "item_id", "delta", "annotation"), json_values),
    },
)


@given(st.lists(wild_events, max_size=8))
def test_no_event_however_malformed_raises_or_breaks_the_order(events: list[dict[str, Any]]) -> None:
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    decoder = WIRE.decoder(headers=STREAM)
    accumulator = folded(decoder.feed(data) + decoder.close())
    assert accumulator.stop is not None or accumulator.error is not None
    from_json(to_json(accumulator.partial()))
