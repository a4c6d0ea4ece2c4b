"""The request that a client of the Responses API sent, as ours: for gateways and for tests.

Strategy. Input items become blocks by the same functions as output items (`blocks_in`), results by their kind, and neighbours of one
side are gathered into one message as long as the encoder would cut them apart again in the same way. What has no field is kept: in the
`extra` of a block or message, as an `Opaque`, or in `extra_body`. The API stores by default and we do not, so an absent `store` is
kept as true, and a stateless request without encrypted reasoning as an empty `include`. An assistant turn that holds what only this
dialect can read gets an `origin` of it, so that a gateway's encoder of another one leaves that out.
"""

from __future__ import annotations

from typing import Any, cast

from dragoman.errors import InvalidInputError, Problem
from dragoman.fragments import scrub
from dragoman.message import (
    Audio,
    Base64,
    Block,
    Document,
    Extra,
    FileId,
    Image,
    Message,
    Opaque,
    Refusal,
    Source,
    Text,
    ToolResult,
    Url,
)
from dragoman.request import Effort, OutputFormat, Request, ThinkingConfig
from dragoman.wire.base import Headers, lower_headers
from dragoman.wire.client_turns import client_origin
from dragoman.wire.decoder import load_json
from dragoman.wire.json_values import as_object, as_objects, as_string, is_list, is_object
from dragoman.wire.openai_responses.blocks_in import annotations_of, blocks_of, compact_json, message_extra, part_block
from dragoman.wire.openai_responses.encode import ENCRYPTED_REASONING
from dragoman.wire.openai_responses.kinds import BARE, OUTPUTS, WIRE, is_user_side, role_of
from dragoman.wire.openai_responses.results_out import shell_text
from dragoman.wire.openai_responses.tools import read_tool_choice, tools_of

__all__ = ["decode_request"]

_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
_NUMBERS = {"max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p"}
_Item = dict[str, Any]


def decode_request(body: bytes, headers: Headers = ()) -> Request:
    """The request. Raises InvalidInputError naming the path of what is not the dialect."""
    problems: list[Problem] = []
    try:
        value: Any = load_json(body)
    except ValueError as error:
        raise InvalidInputError([Problem("$", "json", f"the body is not JSON: {error}")]) from None
    if not is_object(value):
        raise InvalidInputError([Problem("$", "type", "the body must be an object")])
    rest = dict(value)
    rest.pop("stream", None)
    messages = _messages(rest.pop("input", []), problems)
    tools = tools_of(rest.pop("tools", None), "tools", problems)
    fields: dict[str, Any] = {"model": as_string(rest.pop("model", "")), "system": as_string(rest.pop("instructions", "")), "tools": tools}
    choice = read_tool_choice(rest.get("tool_choice"), tools)
    if choice is not None and tools:
        fields["tool_choice"] = choice
        del rest["tool_choice"]
    if tools and rest.get("parallel_tool_calls") is False:
        fields["parallel_tools"] = rest.pop("parallel_tool_calls")
    for key, field in _NUMBERS.items():
        number = rest.get(key)
        if isinstance(number, int if field == "max_tokens" else int | float) and not isinstance(number, bool):
            fields[field] = rest.pop(key)
    if is_object(rest.get("metadata")):
        fields["metadata"] = rest.pop("metadata")
    fields |= _output(rest) | _reasoning(rest)
    _keep_storage(rest)
    beta = lower_headers(headers).get("openai-beta", "")
    fields["betas"] = [name.strip() for name in beta.split(",") if name.strip()]
    if problems:
        raise InvalidInputError(problems)
    return Request(messages, **fields, extra_body={key: v for key, v in rest.items() if v is not None})


def _output(rest: _Item) -> _Item:
    """`text.format` of a JSON schema as an OutputFormat; what else stands in `text` stays."""
    text = as_object(rest.get("text"))
    form = as_object(text.get("format"))
    if form.get("type") != "json_schema" or not is_object(form.get("schema")):
        return {}
    output = OutputFormat(form["schema"], name=as_string(form.get("name")) or "output", strict=form.get("strict") is True)
    left = {key: v for key, v in form.items() if key not in ("type", "schema", "name", "strict") and v is not None}
    others = {key: v for key, v in text.items() if key != "format"} | ({"format": left} if left else {})
    _put(rest, "text", others)
    return {"output": output}


def _reasoning(rest: _Item) -> _Item:
    if not is_object(rest.get("reasoning")):
        return {}
    left = {key: v for key, v in rest["reasoning"].items() if v is not None}
    fields: _Item = {}
    if left.get("effort") in _EFFORTS:
        fields["effort"] = cast("Effort", left.pop("effort"))
    elif left.get("effort") == "none":
        fields["thinking"] = ThinkingConfig.off()
        del left["effort"]
    if "thinking" not in fields and isinstance(left.get("summary"), str):
        summary = left.pop("summary")
        fields["thinking"] = ThinkingConfig.adaptive(display="summarized" if summary == "auto" else summary)
    _put(rest, "reasoning", left)
    return fields


def _put(rest: _Item, key: str, value: _Item) -> None:
    if value:
        rest[key] = value
    else:
        del rest[key]


def _keep_storage(rest: _Item) -> None:
    """Say what our encoder would otherwise choose differently."""
    include: Any = rest.get("include")
    if rest.get("store") is False:
        del rest["store"]
        if include == [ENCRYPTED_REASONING]:
            del rest["include"]
        elif not include:
            rest["include"] = []
    else:
        rest["store"] = True
        if not include:
            rest.pop("include", None)


# ---- the conversation


def _messages(value: Any, problems: list[Problem]) -> list[Message]:
    if isinstance(value, str):
        return [Message("user", scrub(value), extra={WIRE: {BARE: True}})]
    if not is_list(value):
        problems.append(Problem("input", "type", "must be a string or a list of items"))
        return []
    gathered = _Gathered(problems)
    for index, item in enumerate(value):
        if is_object(item):
            gathered.item(item, f"input[{index}]")
        else:
            problems.append(Problem(f"input[{index}]", "type", "must be an object"))
    gathered.close()
    return gathered.messages


class _Gathered:
    """Items in, messages out."""

    def __init__(self, problems: list[Problem]) -> None:
        self.messages: list[Message] = []
        self._problems = problems
        self._role: str = ""
        self._blocks: list[Block] = []
        self._in_container: set[str] = set()

    def item(self, item: _Item, path: str) -> None:
        kind = item.get("type", "message" if "role" in item else "item_reference")
        role = item.get("role")
        if kind == "message" and role == "assistant":
            self._assistant_message(item, path)
        elif kind == "message" and role in ("user", "system", "developer"):
            self.close()
            self._input_message(item, path)
        elif kind == "message":
            self._problems.append(Problem(f"{path}.role", "role", f"must be user, assistant, system or developer, not {str(role)[:40]!r}"))
        else:
            self._other(item, str(kind))

    def close(self) -> None:
        """End the message that is being gathered."""
        if self._blocks:
            is_answer = self._role == "assistant"
            origin = client_origin(self._blocks, WIRE) if is_answer else None
            self.messages.append(Message("assistant" if is_answer else "user", self._blocks, origin=origin))
        self._blocks = []
        self._role = ""

    def _add(self, role: str, blocks: list[Block]) -> None:
        if role != self._role:
            self.close()
            self._role = role
        self._blocks += blocks

    def _assistant_message(self, item: _Item, path: str) -> None:
        content = item.get("content")
        shared = message_extra(item)
        if isinstance(content, str):
            blocks: list[Block] = [Text(scrub(content), extra={WIRE: {"item": shared}} if shared else {})]
        elif is_list(content):
            blocks = [part_block(part, shared) for part in as_objects(content)]
        else:
            self._problems.append(Problem(f"{path}.content", "type", "must be a string or a list of parts"))
            return
        last = self._blocks[-1] if self._blocks and self._role == "assistant" else None
        if isinstance(last, Text | Refusal) and last.extra.get(WIRE, {}).get("item", {}) == shared:
            self.close()  # the encoder would write both as one item
        self._add("assistant", blocks)

    def _input_message(self, item: _Item, path: str) -> None:
        content = item.get("content")
        role = str(item["role"])
        extra = {key: v for key, v in item.items() if key not in ("type", "role", "content") and v is not None}
        if role != "user":
            extra["role"] = role  # it stays where it is: our encoder would move a plain one to the instructions
        if isinstance(content, str):
            blocks: list[Block] = [Text(scrub(content))]
        elif is_list(content):
            blocks = [_input_part(part) for part in as_objects(content)]
        else:
            self._problems.append(Problem(f"{path}.content", "type", "must be a string or a list of parts"))
            return
        self.messages.append(Message("user" if role == "user" else "system", blocks, extra={WIRE: extra} if extra else {}))

    def _other(self, item: _Item, kind: str) -> None:
        call_id = as_string(item.get("call_id"))
        if kind in OUTPUTS and call_id not in self._in_container and (kind != "tool_search_output" or item.get("execution") == "client"):
            self._add("user", [_result(item, kind)])
            return
        role = role_of(item)
        if role == "use":
            self._in_container.add(call_id)
        if role == "opaque" and is_user_side(kind):
            self._add("user", [Opaque(item, wire=WIRE)])
        else:
            self._add("assistant", blocks_of(item, role))


# ---- parts and results


def _extra(part: _Item, *known: str) -> Extra:
    rest = {key: v for key, v in part.items() if key not in ("type", *known) and v is not None}
    return {WIRE: rest} if rest else {}


def _source(url: str) -> Source:
    if url.startswith("data:"):
        head, comma, data = url[5:].partition(",")
        if comma and head.endswith(";base64"):
            return Base64(head.removesuffix(";base64"), data)
    return Url(url)


def _input_part(part: _Item) -> Block:
    """One content part of a user or system message, or of a result."""
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(scrub(text), citations=annotations_of(part), extra=_extra(part, "text", "annotations"))
        case {"type": "input_image", "image_url": str(url)}:
            return Image(_source(url), extra=_extra(part, "image_url"))
        case {"type": "input_image", "file_id": str(id)}:
            return Image(FileId(id), extra=_extra(part, "file_id"))
        case {"type": "input_file", "file_data": str(data)} if data.startswith("data:") and isinstance(part.get("filename", ""), str):
            return Document(_source(data), title=part.get("filename"), extra=_extra(part, "file_data", "filename"))
        case {"type": "input_file", "file_url": str(url)}:
            return Document(Url(url), extra=_extra(part, "file_url"))
        case {"type": "input_file", "file_id": str(id)}:
            return Document(FileId(id), extra=_extra(part, "file_id"))
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(form)}}:
            return Audio(Base64("audio/mpeg" if form == "mp3" else f"audio/{form}", data), extra=_extra(part, "input_audio"))
        case _:
            return Opaque(part, wire=WIRE)


def _result(item: _Item, kind: str) -> ToolResult:
    """The answer to a call. What the wire says beyond text and pictures stays in `extra`."""
    call_kind = OUTPUTS[kind]
    own = {key: v for key, v in item.items() if key not in ("type", "call_id", "output") and v is not None}
    if call_kind != "function_call":
        own["kind"] = call_kind
    output: Any = item.get("output")
    content: str | list[Block]
    is_error = False
    match call_kind, output:
        case "shell_call", _:
            own["output"] = output
            content = shell_text(as_objects(output))
        case "computer_call", _:
            picture = _screenshot(as_object(output), own)
            content = [picture] if picture is not None else compact_json(output)
        case "tool_search_call", _:
            content = compact_json(own.pop("tools", []))
        case _, list():
            content = [_input_part(part) for part in as_objects(output)]
        case _:
            content = scrub(as_string(output))
    if own.get("status") == "failed" or (call_kind == "function_call" and own.get("status") == "incomplete"):
        is_error = True
        del own["status"]
    elif call_kind == "apply_patch_call":
        own.pop("status", None)
    id = as_string(item.get("call_id")) or as_string(item.get("id"))
    return ToolResult(id, content, is_error=is_error, extra={WIRE: own} if own else {})


def _screenshot(output: _Item, own: _Item) -> Image | None:
    url, id = output.get("image_url"), output.get("file_id")
    detail = {key: v for key, v in output.items() if key not in ("type", "image_url", "file_id") and v is not None}
    if detail:
        own["output"] = detail
    if isinstance(url, str):
        return Image(_source(url))
    return Image(FileId(id)) if isinstance(id, str) else None
