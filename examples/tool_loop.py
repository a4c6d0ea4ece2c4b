"""Let a model call functions of ours until it has its answer; what it may call is what stands in `TOOLS`.

A call that is not complete, valid JSON never comes as a ToolUse, so what is run here is safe to run. It still has to be answered: the
provider refuses a call without a result.
"""

import sys
from collections.abc import Callable

from dragoman import InvalidToolUse, ProviderBase, Request, Tool, ToolResult, ToolUse, connect, tool_result, user

TURNS = 5
"""Rounds before we give up on a model that calls for ever."""


def get_weather(city: str) -> str:
    """Get the weather in a city."""
    return f"18 degrees and sunny in {city}"


TOOLS: dict[str, Callable[..., str]] = {"get_weather": get_weather}


def run(use: ToolUse | InvalidToolUse) -> ToolResult:
    if isinstance(use, InvalidToolUse):
        return tool_result(use.id, f"the input is no valid JSON ({use.reason})", is_error=True)
    try:
        return tool_result(use, TOOLS[use.name](**use.input))
    except (KeyError, TypeError) as error:
        return tool_result(use, f"no such call: {error}", is_error=True)


def ask(provider: ProviderBase, prompt: str) -> str:
    request = Request(prompt, tools=[Tool.of(function) for function in TOOLS.values()])
    for _ in range(TURNS):
        answer = provider.complete(request)
        uses = [*answer.tool_uses, *answer.invalid_tool_uses]
        if not uses:
            return answer.text
        print(*(f"[{use.name}]" for use in uses))
        request = request.replace(messages=[*request.messages, answer.message, user(*map(run, uses))])
    return f"no answer after {TURNS} rounds"


def main(name: str = "local") -> None:
    print(ask(connect(name), "What is the weather in Paris?"))


if __name__ == "__main__":
    main(*sys.argv[1:])
