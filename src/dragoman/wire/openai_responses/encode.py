"""A Request as the body of `POST /responses`.

Strategy. Stateless unless told otherwise: `store` is false and the reasoning comes back encrypted, so that the next request can carry it
and nothing is kept at the provider. `extra_body` chooses otherwise (`store`, `previous_response_id`, `conversation`). Standard fields win
over `extra_body` keys of the same name, with a notice; where both are objects (`text`, `reasoning`) they are merged.

A parameter that this API does not have is refused, not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.errors import InvalidInputError, Problem
from dragoman.event import Notice
from dragoman.fragments import scrub, scrub_tree
from dragoman.message import Text
from dragoman.request import Request
from dragoman.wire.base import HTTPRequest
from dragoman.wire.json_values import as_object, as_string, is_finite
from dragoman.wire.openai_effort import effort_of
from dragoman.wire.openai_responses.blocks_out import ItemWriter, hoisted
from dragoman.wire.openai_responses.tools import write_tool, write_tool_choice
from dragoman.wire.settled import settled

__all__ = ["ENCRYPTED_REASONING", "PATH", "encode_request"]

PATH = "/responses"
"""Below a base URL that ends in the version, as `https://api.openai.com/v1`."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"

NO_REASONING = ("gpt-3.5", "gpt-4", "chatgpt-", "gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat", "computer-use")
"""Beginnings of model ids without reasoning, which refuse to encrypt any ("Encrypted content is not supported with this model")."""

SUMMARY_OF_DISPLAY: dict[str, str | None] = {"summarized": "auto", "omitted": None}
"""`ThinkingConfig.display` as `reasoning.summary`; any other word (`detailed`, `concise`) is the wire's own."""


def encode_request(request: Request, *, stream: bool, provider: str, max_tokens: int | None) -> HTTPRequest:
    """The HTTP request. Raises InvalidInputError for what cannot be written."""
    notices: list[Notice] = []
    problems = _unsupported(request)
    given = request.extra_body
    stateless = not given.get("store", False)
    writer = ItemWriter(provider=provider, stateless=stateless, thinking_as_text=request.foreign_thinking == "text")
    to_system = set(hoisted(request))
    for index, message in enumerate(request.messages):
        if index not in to_system:
            writer.message(message, index)
    writer.finish()
    problems += writer.problems
    body: dict[str, Any] = {"model": request.model} if request.model else {}
    instructions = _instructions(request, to_system)
    if instructions:
        body["instructions"] = instructions
    if writer.items or "input" not in given:
        bare = writer.bare and len(writer.items) == 1 and isinstance(writer.items[0].get("content"), str)
        body["input"] = writer.items[0]["content"] if bare else writer.items
    _add_settings(body, request, max_tokens)
    reasoning = _reasoning(request, notices)
    if reasoning:
        body["reasoning"] = reasoning
    if request.output is not None:
        form = request.output
        body["text"] = {"format": {"type": "json_schema", "name": form.name, "schema": form.schema, "strict": form.strict}}
    if given.get("background") is True:
        notices.append(Notice("background_unsupported", "nothing here waits for a background response", path="extra_body.background"))
    body = _merged(given, body, "extra_body", notices)
    body.setdefault("store", False)
    include = _include(request, given, stateless=stateless)
    if include:
        body["include"] = include
    else:
        body.pop("include", None)
    if bool(body.pop("stream", stream)) != stream:
        notices.append(_ignored("extra_body.stream"))
    if stream:
        body["stream"] = True
    if problems:
        raise InvalidInputError(problems)
    return HTTPRequest(
        path=PATH,
        headers=_headers(request, stream=stream),
        body=_json(body),
        notices=[*writer.notices, *notices],
        settled=settled(request, body, max_tokens="max_output_tokens", effort=_sent_effort(body)),
    )


def _unsupported(request: Request) -> list[Problem]:
    found: list[Problem] = []
    if request.top_k is not None:
        found.append(
            Problem("top_k", "unsupported", "the Responses API has no top_k", "leave it out; a compatible server may take extra_body")
        )
    if request.stop_sequences:
        found.append(Problem("stop_sequences", "unsupported", "the Responses API has no stop sequences", "leave them out"))
    return found


def _instructions(request: Request, to_system: set[int]) -> str:
    given = request.system
    parts = [given] if isinstance(given, str) else [text.text for text in given]
    for index in sorted(to_system):
        parts += [block.text for block in request.messages[index].content if isinstance(block, Text)]
    return scrub("\n\n".join([part for part in parts if part]))


def _add_settings(body: dict[str, Any], request: Request, max_tokens: int | None) -> None:
    if request.tools:
        body["tools"] = [write_tool(tool) for tool in request.tools]
        choice = write_tool_choice(request)
        if choice is not None:
            body["tool_choice"] = choice
        if not request.parallel_tools:
            body["parallel_tool_calls"] = False
    limit = request.max_tokens if request.max_tokens is not None else max_tokens
    settings = {
        "max_output_tokens": limit,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "metadata": request.metadata or None,
    }
    body |= {key: value for key, value in settings.items() if value is not None}


def _reasoning(request: Request, notices: list[Notice]) -> dict[str, Any]:
    """`reasoning`: the effort, and whether a summary is wanted."""
    thinking = request.thinking
    effort: str | None = request.effort
    if thinking is None:
        return {"effort": effort} if effort else {}
    if thinking.mode == "off":
        return {"effort": "none"}
    if thinking.mode == "budget" and effort is None:
        effort = effort_of(thinking.budget_tokens or 0)
        notices.append(
            Notice("thinking_budget_as_effort", f"the Responses API has no thinking budget; effort {effort} stands for it", path="thinking")
        )
    reasoning: dict[str, Any] = {"effort": effort} if effort else {}
    summary = None if thinking.display is None else SUMMARY_OF_DISPLAY.get(thinking.display, thinking.display)
    return reasoning | ({"summary": summary} if summary else {})


def _sent_effort(body: Mapping[str, Any]) -> str | None:
    """The effort that a body asks for; None also where thinking is off."""
    effort = as_string(as_object(body.get("reasoning")).get("effort"))
    return effort if effort and effort != "none" else None


def _include(request: Request, given: Mapping[str, Any], *, stateless: bool) -> list[str]:
    """What the answer shall contain beside the usual. An empty list in `extra_body` means: nothing, not even the encrypted reasoning."""
    wanted: Any = given.get("include")
    names = [str(name) for name in cast("list[Any]", wanted)] if isinstance(wanted, list | tuple) else []
    bare = request.model.rpartition("/")[2].lower()
    if stateless and (names or wanted is None) and ENCRYPTED_REASONING not in names and not bare.startswith(NO_REASONING):
        names.append(ENCRYPTED_REASONING)
    return names


def _merged(given: Mapping[str, Any], body: dict[str, Any], path: str, notices: list[Notice]) -> dict[str, Any]:
    """Both; the second wins, with a notice, and objects of the same name are merged in the same way. `path` is where `given` stands."""
    merged = {key: value for key, value in given.items() if key not in body}
    for key, value in body.items():
        other = given.get(key)
        if isinstance(value, dict) and isinstance(other, Mapping) and key in ("text", "reasoning", "format"):
            value = _merged(cast("Mapping[str, Any]", other), cast("dict[str, Any]", value), f"{path}.{key}", notices)  # noqa: PLW2901
        elif key in given and other != value:
            notices.append(_ignored(f"{path}.{key}"))
        merged[key] = value
    return merged


def _ignored(path: str) -> Notice:
    return Notice("extra_body_ignored", f"a field of the request wins over {path}", path=path)


def _headers(request: Request, *, stream: bool) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "text/event-stream" if stream else "application/json"}
    if request.betas:
        headers["openai-beta"] = ",".join(dict.fromkeys(request.betas))
    return headers | {name.lower(): value for name, value in request.extra_headers.items()}


def _json(body: dict[str, Any]) -> bytes:
    try:
        data = msgspec.json.encode(body)
    except UnicodeEncodeError:
        data = msgspec.json.encode(scrub_tree(body))
    except TypeError as error:
        raise InvalidInputError(
            [Problem("extra_body", "not_json", f"the request holds a value that JSON has no form for ({error})")]
        ) from None
    if b"null" in data and not is_finite(body):  # msgspec writes NaN as null
        raise InvalidInputError([Problem("request", "not_json", "the request holds NaN or an infinity", "use finite numbers")])
    return data
