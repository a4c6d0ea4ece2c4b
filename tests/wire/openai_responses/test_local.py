"""The real model behind llama.cpp's own Responses endpoint: shapes, stop reasons and usage, never words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dragoman import Message, OpenAIResponses, Request, Response, Text, Thinking, Tool, ToolUse, tool_result, user
from dragoman.errors import ContextOverflowError
from tests.test_local import real

NO_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}
WEATHER = Tool(
    "get_weather", "Get the weather of a city", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
)
READ = Tool("read_file", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
PROMPTS = [("What is the weather in Paris?", WEATHER), ("Read the file notes.txt", READ)]

pytestmark = [pytest.mark.local, real]


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIResponses]:
    from dragoman.local.provider import LocalModel
    from dragoman.local.server import process_key

    server = LocalModel(fetch=False).serve()
    with OpenAIResponses(
        process_key(), base_url=f"{server.url}/v1", provider="local", model="toy", temperature=0, extra_body=NO_THINKING
    ) as provider:
        yield provider


def test_an_answer_streamed_and_whole(model: OpenAIResponses) -> None:
    for stream in (True, False):
        response = model.complete(Request("Say hello.", max_tokens=60), stream=stream)
        assert [type(block) for block in response.message.content] == [Text]
        assert response.text
        assert (response.stop, response.raw_stop) in (("end_turn", "completed"), ("max_tokens", "completed"))
        assert response.usage.total_input > 0
        assert response.usage.output > 0
        assert response.notices == [] or response.stop == "max_tokens"


def test_an_answer_that_the_limit_cut_says_so(model: OpenAIResponses) -> None:
    response = model.complete(Request("Tell me a long story about a fox.", max_tokens=8))
    assert (response.stop, response.raw_stop, response.usage.output) == ("max_tokens", "completed", 8)


def test_thinking_is_a_block_of_its_own_and_goes_back(model: OpenAIResponses) -> None:
    question = Request("Say hello.", max_tokens=200, extra_body=THINKING)
    response = model.complete(question)
    first = response.message.content[0]
    assert isinstance(first, Thinking)
    assert first.text
    after = question.replace(messages=[*question.messages, response.message, user("Again.")], max_tokens=8)
    assert model.complete(after).usage.total_input > response.usage.total_input


def test_a_conversation_with_a_tool(model: OpenAIResponses) -> None:
    """A toy model: one of two prompts has to make it call."""
    called: list[tuple[Request, Response]] = []
    for prompt, tool in PROMPTS:
        request = Request(prompt, tools=[tool], max_tokens=120)
        response = model.complete(request)
        if response.tool_uses:
            called.append((request, response))
    assert called
    request, response = called[0]
    assert response.stop == "tool_use"
    use = response.tool_uses[0]
    assert isinstance(use, ToolUse)
    results = user(*(tool_result(each, "Sunny, 20 degrees.") for each in response.tool_uses))
    messages: list[Message] = [*request.messages, response.message, results]
    final = model.complete(request.replace(messages=messages))
    assert final.message.content
    assert final.usage.total_input > 0


def test_a_question_that_is_too_long_is_an_overflow(model: OpenAIResponses) -> None:
    with pytest.raises(ContextOverflowError):
        model.complete(Request("word " * 9000, max_tokens=8))
