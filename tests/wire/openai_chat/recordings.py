"""The recorded chat exchanges with the dialect of their host, and what two readings of one answer must agree on."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

from dragoman import Accumulator, Event, InvalidToolUse, Message, ProviderError, Refusal, Thinking, ToolUse
from dragoman.wire.openai_chat import OpenAIChatWire
from tests.shared import CORPUS, Exchange

DIALECT_OF_HOST = {
    "api.openai.com": "openai",
    "azure": "azure",
    "openrouter.ai": "openrouter",
    "openrouter": "openrouter",
    "ai-gateway.vercel.sh": "vercel",
    "api.groq.com": "groq",
    "groq": "groq",
    "api.mistral.ai": "mistral",
    "mistral": "mistral",
    "api.deepseek.com": "deepseek",
    "deepseek": "deepseek",
    "api.x.ai": "xai",
    "xai": "xai",
    "api.z.ai": "zai",
    "moonshotai": "moonshot",
    "generativelanguage.googleapis.com": "google",
    "api.cerebras.ai": "cerebras",
    "api.perplexity.ai": "perplexity",
    "perplexity": "perplexity",
    "api.together.xyz": "together",
    "ollama.com": "ollama",
    "llamacpp": "llamacpp",
    "localhost:8080": "llamacpp",
    "localhost:8000": "vllm",
    "xxxxx-xxxxxxxxx.snowflakecomputing.com": "snowflake",
}
"""Hosts as `INDEX.tsv` names them; any other speaks `generic`."""


@cache
def _hosts() -> dict[str, str]:
    rows = (CORPUS / "INDEX.tsv").read_text(encoding="utf-8").split("\n")
    columns = rows[0].split("\t")
    path, host = columns.index("path"), columns.index("host")
    cells = [row.split("\t") for row in rows[1:] if row]
    return {"/".join(row[path].split("/")[-2:]): row[host] for row in cells}


def wire_of(exchange: Exchange) -> OpenAIChatWire:
    """The wire for the host that answered."""
    return OpenAIChatWire(DIALECT_OF_HOST.get(_hosts()[exchange.name], "generic"))


def headers_of(exchange: Exchange) -> dict[str, str]:
    """The recorded headers; some recorders dropped or renamed the content type, which the form of the body says as well."""
    return {**exchange.headers, "content-type": "text/event-stream" if exchange.streamed else "application/json"}


def decode(exchange: Exchange, cuts: list[int]) -> list[Event]:
    """The events of an answer that arrived in these pieces."""
    decoder = wire_of(exchange).decoder(status=exchange.status, headers=headers_of(exchange))
    body = exchange.body
    edges = [0, *cuts, len(body)]
    events = [event for a, b in itertools.pairwise(edges) for event in decoder.feed(body[a:b])]
    return events + decoder.close()


def fold(events: list[Event]) -> tuple[Accumulator, ProviderError | None]:
    """The events folded, and the error they end in."""
    accumulator = Accumulator()
    try:
        for event in events:
            accumulator.push(event)
    except ProviderError as error:
        return accumulator, error
    return accumulator, None


def plain(message: Message) -> dict[str, Any]:
    """What of our message the official SDK knows, too."""
    calls = [block for block in message.content if isinstance(block, ToolUse | InvalidToolUse)]
    return {
        "text": message.text,
        "refusal": "".join(block.text for block in message.content if isinstance(block, Refusal)),
        "reasoning": "".join(block.text for block in message.content if isinstance(block, Thinking)),
        "calls": [(call.id, call.name, call.input if isinstance(call, ToolUse) else call.raw) for call in calls],
    }
