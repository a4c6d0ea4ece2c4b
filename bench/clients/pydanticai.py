"""pydantic-ai's direct requests: no agent around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from pydantic_ai import direct
from pydantic_ai.messages import ModelRequest, ModelResponse, PartDeltaEvent, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from clients.peer import PeerClient
from material import history, tools

_SETTINGS = ModelSettings(max_tokens=1024)
_WRITE = ModelRequestParameters(function_tools=[ToolDefinition(name="write", parameters_json_schema={"type": "object", "properties": {}})])


def _content(response: ModelResponse) -> Any:
    part = response.parts[0]
    if isinstance(part, ToolCallPart):
        return part.args_as_dict()["lines"]
    assert isinstance(part, TextPart)
    return part.content


class Client(PeerClient):
    """One model object per model name, one provider for all."""

    def __init__(self, url: str) -> None:
        self._provider = AnthropicProvider(api_key="k", base_url=url)
        self._models: dict[str, AnthropicModel] = {}
        self._hi = [ModelRequest.user_text_prompt("hi")]

    def _model(self, name: str) -> AnthropicModel:
        if name not in self._models:
            self._models[name] = AnthropicModel(name, provider=self._provider)
        return self._models[name]

    def _tools(self, model: str) -> ModelRequestParameters | None:
        return _WRITE if "-tool-" in model else None

    def pieces(self, model: str) -> Iterator[Any]:
        """Read a stream."""
        with direct.model_request_stream_sync(
            self._model(model), self._hi, model_settings=_SETTINGS, model_request_parameters=self._tools(model)
        ) as stream:
            for event in stream:
                yield isinstance(event, PartDeltaEvent) or bool(getattr(getattr(event, "part", None), "content", ""))
            yield _content(stream.response)

    async def apieces(self, model: str) -> AsyncIterator[Any]:
        """As `pieces`."""
        async with direct.model_request_stream(
            self._model(model), self._hi, model_settings=_SETTINGS, model_request_parameters=self._tools(model)
        ) as stream:
            async for event in stream:
                yield isinstance(event, PartDeltaEvent) or bool(getattr(getattr(event, "part", None), "content", ""))
            yield _content(stream.get())

    def complete(self, model: str) -> str:
        """An answer that does not stream."""
        return _content(direct.model_request_sync(self._model(model), self._hi, model_settings=_SETTINGS))

    def conversation(self) -> Any:
        """The long history in its types."""
        turns: list[Any] = []
        names: dict[str, str] = {}
        for turn in history():
            content = turn["content"]
            if isinstance(content, str):
                turns.append(ModelRequest(parts=[UserPromptPart(content)]))
            elif turn["role"] == "assistant":
                text, call = content
                names[call["id"]] = call["name"]
                turns.append(ModelResponse(parts=[TextPart(text["text"]), ToolCallPart(call["name"], call["input"], call["id"])]))
            else:
                result = content[0]
                turns.append(
                    ModelRequest(
                        parts=[ToolReturnPart(names[result["tool_use_id"]], result["content"], tool_call_id=result["tool_use_id"])]
                    )
                )
        offered = [
            ToolDefinition(name=tool["name"], description=tool["description"], parameters_json_schema=tool["input_schema"])
            for tool in tools()
        ]
        return turns, ModelRequestParameters(function_tools=offered)

    def send(self, conversation: Any, model: str) -> str:
        """Send it, without streaming."""
        turns, offered = conversation
        return _content(direct.model_request_sync(self._model(model), turns, model_settings=_SETTINGS, model_request_parameters=offered))
