"""What OpenAI's protocol, and the hosts that speak it, say of their models."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dragoman import ConfigError, ModelNotFoundError, OpenAIChat, OpenAIResponses, ProtocolError, Request
from dragoman.catalog import ModelInfo
from dragoman.testing import Answer, WireServer
from dragoman.wire.openai_models import read_model, read_models

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("make", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_the_models_of_a_host_are_listed(make: Any, way: str) -> None:
    page = {"object": "list", "data": [{"id": "gpt-4o", "object": "model", "created": 1715367049, "owned_by": "system"}, {"id": "o3"}]}
    with WireServer(Answer(headers=JSON, body=page)) as server, make("sk-test-12345678", base_url=f"{server.url}/v1") as provider:
        models = provider.models() if way == "sync" else asyncio.run(provider.amodels())
        [request] = server.requests
    assert models == [ModelInfo(id="gpt-4o", created_at="2024-05-10T18:50:49Z", extra={"owned_by": "system"}), ModelInfo(id="o3")]
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert ("authorization", "Bearer sk-test-12345678") in request.headers


def test_one_model_is_described() -> None:
    with WireServer(Answer(headers=JSON, body={"id": "ft:gpt-4o:me::1"})) as server:
        model = OpenAIChat("sk-test-12345678", base_url=f"{server.url}/v1").model("ft:gpt-4o:me::1")
        assert [request.path for request in server.requests] == ["/v1/models/ft%3Agpt-4o%3Ame%3A%3A1"]
    assert model.id == "ft:gpt-4o:me::1"


def test_a_model_that_is_not_there_is_not_found() -> None:
    error = {"error": {"message": "The model 'x' does not exist", "type": "invalid_request_error", "code": "model_not_found"}}
    with WireServer(Answer(status=404, headers=JSON, body=error)) as server, pytest.raises(ModelNotFoundError, match="does not exist"):
        OpenAIChat("sk-test-12345678", base_url=f"{server.url}/v1").model("x")


@pytest.mark.parametrize(
    ("said", "window", "longest"),
    [
        ({"context_length": 400000, "top_provider": {"max_completion_tokens": 128000}}, 400000, 128000),  # OpenRouter
        ({"context_window": 131072, "max_completion_tokens": 65536}, 131072, 65536),  # Groq
        ({"max_context_length": 32768}, 32768, None),  # Mistral
        ({"max_model_len": 4096}, 4096, None),  # vLLM
        ({"meta": {"n_ctx_train": 8192}}, 8192, None),  # llama.cpp
        ({"context_length": None, "max_completion_tokens": True}, None, None),
    ],
)
def test_limits_have_many_names(said: dict[str, Any], window: int | None, longest: int | None) -> None:
    model = read_model({"id": "m", **said}, "Mine")
    assert (model.max_input_tokens, model.max_tokens) == (window, longest)


def test_what_a_host_says_beside_is_kept() -> None:
    model = read_model({"id": "m", "name": "The M", "pricing": {"prompt": "0.1"}, "capabilities": {"vision": True}}, "Mine")
    assert (model.display_name, model.extra, model.supports("vision")) == ("The M", {"pricing": {"prompt": "0.1"}}, True)


def test_a_bare_list_is_a_list() -> None:
    assert [model.id for model in read_models([{"id": "a"}, {"id": "b"}], "Together")] == ["a", "b"]


@pytest.mark.parametrize("value", [{}, {"data": None}, "models", {"data": [{}]}, {"data": ["m"]}, None])
def test_what_is_no_list_of_models_is_a_protocol_error(value: object) -> None:
    with pytest.raises(ProtocolError):
        read_models(value, "Test")


def test_a_bare_list_is_read_from_the_wire() -> None:
    with WireServer(Answer(headers=JSON, body=json.dumps([{"id": "a"}]).encode())) as server:
        assert [model.id for model in OpenAIChat(base_url=server.url).models()] == ["a"]


def test_tokens_cannot_be_counted_beforehand() -> None:
    with pytest.raises(ConfigError, match="openai cannot count tokens"):
        OpenAIChat("sk-test-12345678", model="gpt-4o").count_tokens(Request("hi"))
