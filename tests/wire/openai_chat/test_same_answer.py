"""A stream and a body that say the same are the same Response, however the stream was cut into chunks and the chunks into bytes."""

from __future__ import annotations

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Accumulator, Response
from dragoman.wire.openai_chat import DIALECTS, OpenAIChatWire
from tests.shared import Exchange, exchange_params
from tests.wire.openai_chat.build import DONE, JSON, STREAM, event
from tests.wire.openai_chat.recordings import headers_of, wire_of

texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts, lambda v: st.lists(v, max_size=2) | st.dictionaries(texts, v, max_size=2)
)
arguments = st.one_of(st.dictionaries(texts, values, max_size=3).map(json.dumps), st.sampled_from(["", "{", '{"a": tru', "[1]", "null"]))
ids = st.uuids().map(lambda uuid: f"call_{uuid.hex}")


def function_call(identity: str, name: str, text: str) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": text}}


def custom_call(identity: str, text: str) -> dict[str, Any]:
    return {"id": identity, "type": "custom", "custom": {"name": "sql", "input": text}}


calls = st.builds(function_call, ids, st.sampled_from(["f", "search"]), arguments) | st.builds(custom_call, ids, texts)
details = st.one_of(
    st.builds(lambda text: {"type": "reasoning.text", "text": text, "index": 0}, texts.filter(bool)),
    st.builds(
        lambda text, sig: {"type": "reasoning.text", "text": text, "signature": sig, "format": "x", "index": 0}, texts.filter(bool), texts
    ),
    st.builds(lambda data: {"type": "reasoning.encrypted", "data": data, "id": "rs", "index": 1}, texts.filter(bool)),
)
annotations = st.builds(lambda url: {"type": "url_citation", "url_citation": {"url": url, "title": "t"}}, texts)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | texts)}
    optional = {
        "reasoning_content": texts,
        "reasoning": texts,
        "reasoning_details": st.lists(details, max_size=2, unique_by=lambda d: d["index"]),
        "refusal": texts,
        "annotations": st.lists(annotations, max_size=2),
        "tool_calls": st.lists(calls, max_size=3),
        "thought_signature": texts,
    }
    for key, strategy in optional.items():
        if draw(st.booleans()):
            message[key] = draw(strategy)
    if {"reasoning_content", "reasoning", "reasoning_details"} <= message.keys():
        del message["reasoning"]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter", "eos", "new"])),
        "logprobs": draw(st.sampled_from([None, {"content": [{"token": "a", "logprob": -1.0}], "refusal": None}])),
    }
    counts = st.integers(0, 500)
    usage = {"prompt_tokens": draw(counts), "completion_tokens": draw(counts), "prompt_tokens_details": {"cached_tokens": draw(counts)}}
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    body = {"id": "c1", "object": "chat.completion", "created": 7, "model": "m", "choices": [choice], "usage": usage}
    if draw(st.booleans()):
        body |= {"service_tier": "default", "system_fingerprint": "fp", "citations": ["u"]}
    return body


def pieces(text: str, draw: Any) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in itertools.pairwise([0, *cuts, len(text)])]


def deltas_of(message: dict[str, Any], draw: Any) -> list[dict[str, Any]]:
    """The message in pieces, in the order that hosts send them."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for detail in message.get("reasoning_details") or []:
        content = next((key for key in ("text", "summary", "data") if key in detail), "text")
        found = pieces(detail.get(content, ""), draw) if content != "data" else [detail[content]]
        entries = [{"type": detail["type"], "index": detail["index"], content: piece} for piece in found]
        entries[-1] |= detail | {content: entries[-1][content]}
        deltas += [{"reasoning_details": [entry]} for entry in entries]
    told = any(detail.get("text") or detail.get("summary") for detail in message.get("reasoning_details") or [])
    field = "reasoning_content" if message.get("reasoning_content") else "reasoning"
    if not told:
        deltas += [{field: piece} for piece in pieces(message.get(field) or "", draw)]
    deltas += [{"annotations": [annotation]} for annotation in message.get("annotations") or []]
    deltas += [{"content": piece} for piece in pieces(message.get("content") or "", draw)]
    deltas += [{"refusal": piece} for piece in pieces(message.get("refusal") or "", draw)]
    for index, call in enumerate(message.get("tool_calls") or []):
        kind, key = ("custom", "input") if call["type"] == "custom" else ("function", "arguments")
        first = {"index": index, "id": call["id"], "type": kind, kind: {"name": call[kind]["name"], key: ""}}
        rest = [
            {"index": index, **({"type": kind} if kind == "custom" else {}), kind: {key: piece}} for piece in pieces(call[kind][key], draw)
        ]
        deltas += [{"tool_calls": [entry]} for entry in [first, *rest]]
    known = {"role", "content", "reasoning", "reasoning_content", "reasoning_details", "refusal", "annotations", "tool_calls"}
    return [*deltas, *({key: value} for key, value in message.items() if key not in known)]


def stream_of(body: dict[str, Any], draw: Any) -> bytes:
    """The body as a host would have streamed it."""
    choice = body["choices"][0]
    head = {key: value for key, value in body.items() if key not in ("choices", "usage")} | {"object": "chat.completion.chunk"}
    rest = {key: value for key, value in choice.items() if key not in ("message", "finish_reason")}
    data = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas_of(choice["message"], draw)]
    last = {**head, "choices": [{**rest, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    usage = body.get("usage")
    if draw(st.booleans()):
        data += [last, {**head, "choices": [], "usage": usage}]
    else:
        data.append({**last, "usage": usage})
    return b"".join(event(chunk) for chunk in data) + (DONE if draw(st.booleans()) else b"")


def outcome(wire: OpenAIChatWire, data: bytes, headers: dict[str, str], cuts: list[int]) -> Response:
    decoder = wire.decoder(headers=headers)
    accumulator = Accumulator()
    for a, b in itertools.pairwise([0, *cuts, len(data)]):
        for found in decoder.feed(data[a:b]):
            accumulator.push(found)
    for found in decoder.close():
        accumulator.push(found)
    return msgspec.structs.replace(accumulator.response(), rate_limits=decoder.rate_limits)


@given(bodies(), st.data(), st.sampled_from(sorted(DIALECTS)))
def test_a_body_is_the_fold_of_its_stream(body: dict[str, Any], data: st.DataObject, dialect: str) -> None:
    wire = OpenAIChatWire(dialect)
    whole = wire.decode_response(200, JSON, json.dumps(body).encode())
    stream = stream_of(body, data.draw)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    assert outcome(wire, stream, STREAM, cuts) == whole


def streamable(exchange: Exchange) -> bool:
    """Whether the body is an answer that can come in pieces: no error, no audio and no old-style function call, which come whole."""
    body = json.loads(exchange.body)
    if exchange.status != 200 or "choices" not in body or any(choice.get("error") for choice in body["choices"]):
        return False
    message = body["choices"][0]["message"]
    return not (message.get("audio") or message.get("function_call"))


@pytest.mark.parametrize("exchange", exchange_params("openai_chat", streamed=False, where=streamable))
def test_a_recorded_body_is_the_fold_of_a_stream_of_it(exchange: Exchange) -> None:
    body = json.loads(exchange.body)

    def draw(strategy: Any) -> Any:
        return True if strategy is not None and "booleans" in repr(strategy) else [1, 2]

    wire = wire_of(exchange)
    body["choices"] = [{"finish_reason": None, **body["choices"][0]}]
    whole = wire.decode_response(200, headers_of(exchange), json.dumps(body).encode())
    assert outcome(wire, stream_of(body, draw), headers_of(exchange) | STREAM, []) == whole
