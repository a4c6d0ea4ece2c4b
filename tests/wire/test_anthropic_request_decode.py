"""`decode_request`: what clients send to the Messages API becomes a `Request` that encodes to the same JSON meaning."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import (
    Request,
    from_json,
    to_json,
)
from dragoman.wire.anthropic import AnthropicWire
from tests.shared import CORPUS, Exchange, exchanges
from tests.wire.anthropic_forms import normal

WIRE = AnthropicWire()


def recorded_requests() -> list[Any]:
    """Every recorded Messages API request, of Anthropic and of Bedrock's invoke; one skipped parameter if there are none."""
    found = [e for e in exchanges("anthropic") if (e.folder / "request.json").exists()]
    found += [
        Exchange(path.parent) for path in sorted((CORPUS / "bedrock").glob("*/*/request.json")) if b"anthropic_version" in path.read_bytes()
    ]
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the recorded exchanges are not at {CORPUS}"))]
    return [pytest.param(exchange, id=exchange.name) for exchange in found]


@pytest.mark.parametrize("exchange", recorded_requests())
def test_a_recorded_request_encodes_to_the_same_meaning(exchange: Exchange) -> None:
    body = exchange.json("request.json")
    body.setdefault("model", "claude-sonnet-4-5")  # Vertex and Bedrock have it in the URL
    headers = exchange.json("request_headers.json") or {}
    request = WIRE.decode_request(json.dumps(body).encode(), headers)
    encoded = WIRE.encode(from_json(to_json(request), Request), stream=body.get("stream") is True)
    assert normal(msgspec.json.decode(encoded.body)) == normal(body)
    sent = encoded.headers.get("anthropic-beta", "").split(",")
    given = [beta for part in headers.get("anthropic-beta", "").split(",") if (beta := part.strip())]
    assert sent[: len(given)] == given or not given


@pytest.mark.parametrize("exchange", recorded_requests())
def test_a_second_round_trip_changes_nothing(exchange: Exchange) -> None:
    body = {"model": "claude-sonnet-4-5", **exchange.json("request.json")}
    first = WIRE.encode(WIRE.decode_request(json.dumps(body).encode()), stream=False)
    assert WIRE.encode(WIRE.decode_request(first.body), stream=False).body == first.body
