"""The recorded exchanges, served in random chunks, framed in random ways, through both direct transports: every byte arrives."""

from __future__ import annotations

import random

import pytest

from dragoman.testing import Answer, WireServer
from dragoman.testing.connection import RecordedRequest
from tests.shared import CORPUS, exchanges
from tests.transport.calls import request_to

from .drive import BOTH, fetching

DIALECTS = ("anthropic", "openai_chat", "openai_responses", "gemini")


def cut(rng: random.Random, body: bytes) -> list[bytes]:
    size = rng.choice([3, 50, 1000, 100_000])
    parts: list[bytes] = []
    while body:
        at = rng.randint(1, size)
        parts.append(body[:at])
        body = body[at:]
        if len(parts) == 200:
            return [*parts, body] if body else parts
    return parts


@BOTH
@pytest.mark.parametrize("dialect", DIALECTS)
def test_arrives_as_it_was_recorded(dialect: str, library: str) -> None:
    bodies = [exchange.body for exchange in exchanges(dialect)]
    if not bodies:
        pytest.skip(f"the recorded exchanges are not at {CORPUS / dialect}")
    rng = random.Random(dialect)

    def answer(request: RecordedRequest) -> Answer:
        body = bodies[int(request.path.removeprefix("/"))]
        return Answer(
            body=cut(rng, body),
            framing=rng.choice(["chunked", "chunked", "length", "close"]),
            gzip=rng.random() < 0.2,
            headers=[("content-type", "text/event-stream")],
        )

    with WireServer(answer) as server, fetching(library) as fetch:
        for number, body in enumerate(bodies):
            assert fetch(request_to(server, path=f"/{number}"))[2] == body
