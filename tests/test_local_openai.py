"""The real model behind llama.cpp's own OpenAI endpoints, Chat Completions and Responses, called as any server of these protocols is.

Asserts shapes, stop reasons and usage, never words. The last test is one conversation over all three protocols.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import (
    AuthError,
    BlockStop,
    ContextOverflowError,
    HTTPProvider,
    Message,
    MessageStart,
    MessageStop,
    Notice,
    OpenAIChat,
    OpenAIResponses,
    Request,
    Response,
    TextDelta,
    ToolUse,
    connect,
    from_json,
    to_json,
    tool_result,
    user,
)
from dragoman.local.provider import LocalModel
from dragoman.local.server import LocalServer, process_key
from tests.test_local import TOOL_PROMPTS, real

pytestmark = [pytest.mark.local, real]

NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
PROTOCOLS = ("chat", "responses")


@pytest.fixture(scope="module")
def server() -> LocalServer:
    return LocalModel(fetch=False).serve()


def provider_of(protocol: str, server: LocalServer, key: str | None = None) -> HTTPProvider:
    settings: dict[str, Any] = {"model": "toy", "temperature": 0, "extra_body": NO_THINKING, "base_url": f"{server.url}/v1"}
    if protocol == "chat":
        return OpenAIChat(key or process_key(), dialect="llamacpp", **settings)
    return OpenAIResponses(key or process_key(), provider="local", **settings)


@pytest.fixture(scope="module", params=PROTOCOLS)
def model(request: pytest.FixtureRequest, server: LocalServer) -> Iterator[HTTPProvider]:
    with provider_of(request.param, server) as provider:
        yield provider


def test_text(model: HTTPProvider) -> None:
    with model.stream(Request("Say hello.", max_tokens=8)) as stream:
        events = list(stream)
    response = stream.response()
    assert isinstance(events[0], MessageStart)
    assert isinstance(events[-1], MessageStop)
    assert [event.block for event in events if isinstance(event, BlockStop)] == response.message.content
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == response.text != ""
    assert response.stop in ("end_turn", "max_tokens")
    assert response.message.origin is not None
    assert response.message.origin.wire == model.wire.name
    assert response.usage.total_input > 8
    assert 0 < response.usage.output <= 8


def test_stop_by_max_tokens(model: HTTPProvider) -> None:
    response = model.complete(Request("Count from one to one hundred.", max_tokens=4))
    assert (response.stop, response.finish, response.usage.output) == ("max_tokens", "length", 4)


def test_in_one_piece_it_is_the_same_answer(model: HTTPProvider) -> None:
    request = Request("Name a colour.", max_tokens=6)
    streamed, whole = model.complete(request), model.complete(request, stream=False)
    assert whole.text == streamed.text != ""
    assert (whole.stop, whole.usage.output) == (streamed.stop, streamed.usage.output)


def test_a_system_prompt_is_read(model: HTTPProvider) -> None:
    short = model.complete(Request("Hi.", max_tokens=1, system="Be kind."))
    long = model.complete(Request("Hi.", max_tokens=1, system="Be kind. " * 20))
    assert long.usage.total_input - short.usage.total_input >= 19 * 3


def test_several_turns(model: HTTPProvider) -> None:
    first = Request("My name is Ada.", max_tokens=8)
    answer = model.complete(first)
    response = model.complete(Request([*first.messages, answer.message, user("What is my name?")], max_tokens=8))
    assert response.text
    assert response.usage.total_input > answer.usage.total_input + answer.usage.output


def test_a_complete_tool_loop(model: HTTPProvider) -> None:
    """The model is small: three prompts are tried, and one call is enough."""
    for prompt, tools, result in TOOL_PROMPTS:
        ask = Request(prompt, tools=tools, max_tokens=64)
        called = model.complete(ask)
        if not called.tool_uses:
            continue
        use = called.tool_uses[0]
        assert called.stop == "tool_use"
        assert use.name in {tool.name for tool in tools}
        assert use.input
        told = model.complete(ask.replace(messages=[*ask.messages, called.message, user(tool_result(use, result))]))
        assert told.stop in ("end_turn", "max_tokens")
        assert told.text
        assert not any(isinstance(block, ToolUse) for block in told.message.content)
        return
    pytest.fail("none of the three prompts made the model call a tool")


def test_an_event_loop(model: HTTPProvider) -> None:
    async def ask() -> tuple[list[str], str]:
        async with model.astream(Request("Say hello.", max_tokens=6)) as stream:
            texts = [text async for text in stream.text()]
        response = await stream.response()
        await model.aclose()
        return texts, response.text

    texts, whole = asyncio.run(ask())
    assert "".join(texts) == whole != ""


def test_a_prompt_beyond_the_context_is_an_overflow(model: HTTPProvider) -> None:
    with pytest.raises(ContextOverflowError) as caught:
        model.complete(Request("word " * 9000, max_tokens=8))
    assert caught.value.status == 400


def test_its_one_model_is_listed(model: HTTPProvider) -> None:
    [info] = model.models()
    assert info.id == "smollm2-135m-instruct"
    assert info.max_input_tokens is not None
    assert info.max_input_tokens >= 2048


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_bad_key_is_refused(protocol: str, server: LocalServer) -> None:
    with provider_of(protocol, server, key="sk-wrong-key-0123456789") as provider, pytest.raises(AuthError) as caught:
        provider.complete(Request("hi", max_tokens=1))
    assert caught.value.status == 401
    assert "sk-wrong" not in str(caught.value)


def test_one_conversation_over_three_protocols_and_back(server: LocalServer) -> None:
    """Begins over the Messages protocol with a call of a tool, goes on over chat, then Responses, and comes back; stored in between."""
    messages, prompt_tools = begun_with_a_call()
    answered = [messages[1]]
    for protocol in (*PROTOCOLS, "anthropic"):
        with connect("local", fetch=False) if protocol == "anthropic" else provider_of(protocol, server) as provider:
            assert isinstance(provider, HTTPProvider)
            loaded = [from_json(to_json(message)) for message in messages]
            response: Response = provider.complete(Request(loaded, tools=prompt_tools, max_tokens=24))
            sent = json.loads(provider.wire.encode(Request(loaded, model="toy", max_tokens=24), stream=True).body)
        assert response.message.content
        assert response.stop in ("end_turn", "max_tokens", "tool_use")
        assert [notice for notice in response.notices if isinstance(notice, Notice) and notice.code == "block_left_out"] == []
        assert messages[1].tool_uses[0].id in json.dumps(sent)
        results = [tool_result(call, "ok") for call in response.tool_uses]
        messages = [*messages, response.message, user(*results, "And then?")]
        answered.append(response.message)
    assert [message.origin.wire for message in answered if message.origin] == ["anthropic", "openai-chat", "openai-responses", "anthropic"]


def begun_with_a_call() -> tuple[list[Message], list[Any]]:
    """A question, the call that the model makes over the Messages protocol, and its result."""
    with connect("local", fetch=False) as provider:
        for prompt, tools, result in TOOL_PROMPTS:
            response = provider.complete(Request(prompt, tools=tools, max_tokens=64))
            if response.tool_uses:
                return [user(prompt), response.message, user(*(tool_result(call, result) for call in response.tool_uses))], list(tools)
    pytest.fail("none of the three prompts made the model call a tool")
