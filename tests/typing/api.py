"""What a user sees of the model, for pyright and mypy in strict mode. Never run.

Both must accept every line, except those marked `# type: ignore[…]`, which both must refuse: a mark too many is an error in both.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, assert_type

import msgspec
from pydantic import BaseModel

from dragoman import (
    Accumulator,
    Audio,
    AuthError,
    Base64,
    Block,
    BlockStart,
    BlockStop,
    Citation,
    CitationDelta,
    Document,
    DragomanError,
    Event,
    Failed,
    FileId,
    Image,
    InvalidInputError,
    InvalidToolUse,
    Message,
    MessageStart,
    MessageStop,
    Notice,
    Opaque,
    OpaqueEvent,
    Origin,
    OutputFormat,
    Parts,
    PlainText,
    Problem,
    ProviderError,
    ProviderTool,
    RateLimitedError,
    RedactedThinking,
    Refusal,
    Request,
    RequestTimeoutError,
    Response,
    Retrying,
    ServerToolResult,
    ServerToolUse,
    SignatureDelta,
    Source,
    StopReason,
    Text,
    TextDelta,
    Thinking,
    ThinkingConfig,
    ThinkingDelta,
    Tool,
    ToolInputDelta,
    ToolNamed,
    ToolResult,
    ToolUse,
    Url,
    Usage,
    UsageUpdate,
    Video,
    assistant,
    from_json,
    is_retryable,
    system,
    to_json,
    tool_result,
    user,
)


class Point(msgspec.Struct):
    x: int


@dataclass
class Pixel:
    x: int


class Place(BaseModel):
    name: str


# ---- constructors


def constructors(blocks: list[Block], texts: list[Text], strings: Iterable[str], messages: list[Message]) -> None:
    Message("user", "hi")
    Message("user", ["hi", Text("a"), Image(Url("u"))])
    Message("assistant", blocks, origin=Origin("p", "m", "w"), extra={"anthropic": {"a": 1}})
    Message("assistant", texts)
    Message("user", strings)
    Message("user", (Text(part) for part in strings))
    ToolResult("id", "text")
    ToolResult("id", blocks, is_error=True)
    ToolResult("id", texts)
    Document(Parts(["page", Image(FileId("f"))]), title="t", cite=True)
    Document(PlainText("t"))
    Image(Base64("image/png", "…"))
    InvalidToolUse("i", "n", "{", reason="incomplete")
    Request("hi")
    Request(["hi", user("a"), assistant("b")], model="m", system="s", tools=[Tool("t"), ProviderTool("x", "y")])
    Request(messages, tool_choice="required", thinking=ThinkingConfig.budget(2048), effort="high", cache="auto")
    Request((message for message in messages), system=texts, tool_choice=ToolNamed("t"))
    user("a", Text("b"), *blocks)
    system("s")


def refused() -> None:
    Message("developer", "hi")  # type: ignore[arg-type]
    Message("user", 7)  # type: ignore[arg-type]
    Message("user", [7])  # type: ignore[list-item]
    Text("a", [])  # type: ignore[call-arg]
    Text(7)  # type: ignore[arg-type]
    Image("cat.png")  # type: ignore[arg-type]
    InvalidToolUse("i", "n", "{", reason="mood")  # type: ignore[arg-type]
    Request("hi", "model")  # type: ignore[call-arg]
    Request("hi", effort="most")  # type: ignore[arg-type]
    MessageStop("eclipse")  # type: ignore[arg-type]
    RequestTimeoutError("m", phase="nap")  # type: ignore[arg-type]
    user("a").content = []  # type: ignore[misc]


# ---- values


def values(message: Message, response: Response, request: Request, usage: Usage) -> None:
    assert_type(message.content, Sequence[Block])
    assert_type(message.text, str)
    assert_type(message.tool_uses, list[ToolUse])
    assert_type(message.invalid_tool_uses, list[InvalidToolUse])
    assert_type(message.origin, Origin | None)
    assert_type(response.text, str)
    assert_type(response.tool_uses, list[ToolUse])
    assert_type(response.stop, StopReason)
    assert_type(response.usage, Usage)
    assert_type(response.message, Message)
    assert_type(response.notices, Sequence[Notice])
    assert_type(request.messages, Sequence[Message])
    assert_type(request.replace(model="m"), Request)
    assert_type(usage + usage, Usage)
    assert_type(sum([usage], Usage()), Usage)
    assert_type(tool_result(message.tool_uses[0], {"a": 1}), ToolResult)
    assert_type(ToolResult("i", "a").content, Sequence[Block])
    assert_type(Image.from_bytes(b""), Image)


def typed_answers(response: Response) -> None:
    assert_type(response.parse(Point), Point)
    assert_type(response.parse(Pixel), Pixel)
    assert_type(response.parse(Place), Place)
    assert_type(response.parse(list[Point]), list[Point])
    assert_type(response.parse(int), int)
    assert_type(OutputFormat.of(Place), OutputFormat)
    assert_type(Tool.of(typed_answers), Tool)


def stored(message: Message, events: list[Event]) -> None:
    assert_type(to_json(message), bytes)
    assert_type(to_json(events), bytes)
    assert_type(from_json(b""), Message)
    assert_type(from_json("", Request), Request)
    assert_type(from_json(b"", list[Message]), list[Message])
    block: Block = from_json(b"", Block)
    event: Event = from_json(b"", Event)
    del block, event


# ---- narrowing


def narrowed_by_class(block: Block) -> str:
    if isinstance(block, Text):
        return assert_type(block, Text).text
    if isinstance(block, ToolUse):
        assert_type(block.input, dict[str, Any])
    return ""


def narrowed_by_tag(block: Block) -> str:
    if block.type == "text":
        assert_type(block.citations, Sequence[Citation])
        return assert_type(block, Text).text
    if block.type == "tool_use":
        return assert_type(block, ToolUse).name
    return ""


def every_block(block: Block) -> str:
    match block:
        case Text(text) | Refusal(text) | Thinking(text):
            return assert_type(text, str)
        case Image(source) | Audio(source) | Video(source) | Document(source):
            return every_source(source)
        case RedactedThinking(data):
            return assert_type(data, str)
        case ToolUse(id, name) | InvalidToolUse(id, name) | ServerToolUse(id, name):
            return id + name
        case ToolResult(id) | ServerToolResult(id):
            return assert_type(id, str)
        case Opaque(data):
            return str(data)
        case _:
            assert_never(block)


def every_source(source: Source) -> str:
    match source:
        case Base64(media_type, _):
            return assert_type(media_type, str)
        case Url(url):
            return assert_type(url, str)
        case FileId(id):
            return assert_type(id, str)
        case PlainText(text):
            return assert_type(text, str)
        case Parts(content):
            return str(len(assert_type(content, Sequence[Block])))
        case _:
            assert_never(source)


def every_event(event: Event) -> object:
    match event:
        case MessageStart(id, model):
            return assert_type(id + model, str)
        case BlockStart(index, block):
            return assert_type(index, int), assert_type(block, Block)
        case TextDelta(_, text) | ThinkingDelta(_, text):
            return assert_type(text, str)
        case SignatureDelta(_, signature):
            return assert_type(signature, str)
        case ToolInputDelta(_, json):
            return assert_type(json, str)
        case CitationDelta(_, citation):
            return assert_type(citation, Citation)
        case BlockStop(_, finished):
            return assert_type(finished, Block | None)
        case UsageUpdate(usage):
            return assert_type(usage, Usage)
        case OpaqueEvent(data):
            return assert_type(data, dict[str, Any])
        case Notice(code, message):
            return assert_type(code + message, str)
        case MessageStop(stop):
            return assert_type(stop, StopReason)
        case Failed(error):
            return assert_type(error, ProviderError)
        case Retrying(attempt, delay, error):
            return assert_type(attempt, int), assert_type(delay, float), assert_type(error, ProviderError)
        case _:
            assert_never(event)


def event_by_tag(event: Event) -> str:
    return assert_type(event, TextDelta).text if event.type == "text_delta" else ""


# ---- folding and errors


def folding(events: Iterable[Event]) -> Message:
    accumulator = Accumulator()
    for event in events:
        accumulator.push(event)
    assert_type(accumulator.partial(), Message)
    assert_type(accumulator.response(), Response)
    assert_type(accumulator.error, ProviderError | None)
    assert_type(accumulator.stop, StopReason | None)
    assert_type(accumulator.block(0), Block)
    return accumulator.message()


def errors(error: DragomanError) -> None:
    assert_type(is_retryable(error), bool)
    if isinstance(error, InvalidInputError):
        assert_type(error.problems, list[Problem])
    if isinstance(error, RateLimitedError):
        assert_type(error.retry_after, float | None)
        assert_type(error.partial, Message | None)
        assert_type(error.usage, Usage | None)
    AuthError("m", status=401, provider="anthropic", retryable=False)


class Body(BaseModel):
    """Our types as fields."""

    history: list[Message]
    block: Block
    response: Response | None = None
