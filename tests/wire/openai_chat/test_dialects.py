"""The tables of dialects and of the names of `connect`."""

from __future__ import annotations

import re

import msgspec
import pytest

from dragoman import ConfigError
from dragoman.names import CHAT_HOSTS
from dragoman.wire.base import ServerWire
from dragoman.wire.openai_chat import CONNECT, DIALECTS, Dialect, OpenAIChatWire
from dragoman.wire.openai_chat.tool_ids import ToolIds

ASKED_FOR = {
    "openai",
    "azure",
    "openrouter",
    "groq",
    "ollama",
    "mistral",
    "deepseek",
    "xai",
    "together",
    "fireworks",
    "perplexity",
    "cerebras",
    "vllm",
    "llamacpp",
    "lmstudio",
}


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_row_names_its_evidence(name: str) -> None:
    row = DIALECTS[name]
    assert row.name == name
    assert row.evidence
    assert all(re.match(r"recorded: |[a-z]+ \d", evidence) for evidence in row.evidence)


def test_every_host_can_be_connected_to() -> None:
    assert set(CONNECT) >= ASKED_FOR
    for name, endpoint in CONNECT.items():
        assert endpoint.dialect in DIALECTS, name
        assert endpoint.keys[0].startswith("DRAGOMAN_")
        assert endpoint.base_url.startswith("https://") == endpoint.key_required or name == "azure"
        assert not endpoint.base_url.endswith("/")


def test_the_names_of_connect_are_the_tables() -> None:
    assert set(CHAT_HOSTS) == set(CONNECT)


def test_an_unknown_dialect_is_refused_with_the_names() -> None:
    with pytest.raises(ConfigError, match=r"unknown OpenAI chat dialect 'x'; known are .*openai"):
        OpenAIChatWire("x")


def test_a_row_of_ones_own_is_a_dialect() -> None:
    row = Dialect(name="mine", label="Mine", provider="mine", evidence=("recorded: here",), max_tokens="max_completion_tokens")
    assert OpenAIChatWire(row).dialect is row


def test_the_wire_works_both_ways() -> None:
    wire: ServerWire = OpenAIChatWire()
    assert wire.name == "openai-chat"


def test_rows_are_values() -> None:
    with pytest.raises(AttributeError):
        DIALECTS["openai"].label = "x"  # type: ignore[misc]
    assert msgspec.structs.replace(DIALECTS["openai"], label="x") != DIALECTS["openai"]


def test_an_orphan_result_keeps_a_legal_id_and_gets_one_if_it_has_none() -> None:
    ids = ToolIds(limit=9, pattern=r"[a-zA-Z0-9]{9}")
    assert ids.result("abcdefghi") == "abcdefghi"
    assert len(ids.result("call_1")) == 9


def test_ids_are_the_same_in_every_process() -> None:
    assert ToolIds(limit=40, pattern=r"[\x21-\x7e]+").call("call_" + "a" * 60) == "call_aaaaaaaaaaaaaaaaaaaaaa-P5vpkGv5X8Iu"
    assert ToolIds(limit=64, pattern=r"[\x21-\x7e]+").call("functions.ls:0") == "functions.ls:0"
