"""`ScriptedProvider`: a provider that answers from a script, without sockets, keys or waiting, for tests of the agent above it.

Strategy. A script is the list of events of one call, and each call takes the next one, so a test writes down the conversation it
wants. `of` writes the scripts for whole messages: the same order of events as a real stream of them, with the text in several
deltas, so a consumer that reads only deltas, or only blocks, is tested honestly. An error is an event like any other (Failed); the
hooks put one before or after any event, which is how a cut connection or a cancellation in mid-answer is played.

    provider = ScriptedProvider.of(assistant(ToolUse("call_1", "get_time", {})), "It is noon.")
    assert agent(provider, "What time is it?") == "It is noon."
    assert provider.requests[1].messages[-1].content == [tool_result("call_1", "12:00")]
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from copy import copy
from threading import Lock
from typing import TypeAlias, cast

from msgspec.structs import replace

from dragoman.errors import ProviderError
from dragoman.event import (
    BlockStart,
    BlockStop,
    CitationDelta,
    Event,
    Failed,
    MessageStart,
    MessageStop,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from dragoman.message import (
    Audio,
    Block,
    InvalidToolUse,
    Message,
    Refusal,
    ServerToolUse,
    Text,
    Thinking,
    ToolUse,
    assistant,
)
from dragoman.provider_base import ProviderBase
from dragoman.request import Request
from dragoman.response import Response, StopReason
from dragoman.retry import RetryPolicy
from dragoman.sources import AsyncIteratorSource, IteratorSource
from dragoman.storage import to_json
from dragoman.stream import AsyncStream, Stream
from dragoman.transport import Timeouts

__all__ = ["Hook", "ScriptedAnswer", "ScriptedProvider", "script"]

ScriptedAnswer: TypeAlias = Message | str | Response | ProviderError
"""One whole answer: a message, its text, a response with stop reason and usage, or the error that the call ends in."""

Hook: TypeAlias = Callable[[Event], BaseException | None]
"""Asked at each event; what it returns ends the call there. None: go on."""

WIRE = "scripted"
"""The `wire` of scripted events."""

_PIECE = 12
"""Characters of a tool's input in one delta."""


class ScriptedProvider(ProviderBase):
    """Answers the n-th call with the n-th script, in the order of the calls, from any thread or event loop.

    `before` and `after` are asked before and after each event is handed out. A ProviderError they return is the call's last event
    (Failed), any other exception is raised as it is (KeyboardInterrupt, a bug of the transport); after the terminal event neither can
    happen. `requests` holds what was asked, in order. A call beyond the last script is a mistake of the test: RuntimeError.
    """

    def __init__(
        self,
        scripts: Iterable[Sequence[Event]],
        *,
        before: Hook | None = None,
        after: Hook | None = None,
        name: str = "scripted",
        model: str = "scripted-1",
    ) -> None:
        self.name = name
        self.default_model = model
        self.requests: list[Request] = []
        self._scripts = [_checked(events) for events in scripts]
        self._before = before
        self._after = after
        self._lock = Lock()

    @classmethod
    def of(
        cls,
        *answers: ScriptedAnswer,
        before: Hook | None = None,
        after: Hook | None = None,
        name: str = "scripted",
        model: str = "scripted-1",
    ) -> ScriptedProvider:
        """A provider that gives these answers, one per call. Raises TypeError for what is no answer, ValueError for a message that is not
        the assistant's.
        """
        scripts = [script(answer, id=f"msg_{n}", provider=name, model=model) for n, answer in enumerate(answers, 1)]
        return cls(scripts, before=before, after=after, name=name, model=model)

    def events(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> Stream:
        """The next script. Nothing waits and nothing is retried, so `timeouts` and `retry` have nothing to do."""
        del timeouts, retry
        return Stream(IteratorSource(self._play(self._next(request))), raises=False, span=self._span(request))

    def aevents(self, request: Request, *, timeouts: Timeouts | None = None, retry: RetryPolicy | None = None) -> AsyncStream:
        """As `events`, for an event loop."""
        del timeouts, retry
        return AsyncStream(AsyncIteratorSource(_AsyncPlay(self._play(self._next(request)))), raises=False, span=self._span(request))

    def _next(self, request: Request) -> list[Event]:
        if not isinstance(request, Request):  # pyright: ignore[reportUnnecessaryIsInstance]  # as real providers refuse it
            raise TypeError(f"a call takes a Request, as in complete(Request(…)), not {type(request).__name__}")
        with self._lock:
            number = len(self.requests)
            if number >= len(self._scripts):
                raise RuntimeError(f"ScriptedProvider: no script for call {number + 1}; scripts: {len(self._scripts)}")
            self.requests.append(request)
            return self._scripts[number]

    def _play(self, events: list[Event]) -> Iterator[Event]:
        for event in events:
            if (error := self._before and self._before(event)) is not None:
                yield _failed(error)
                return
            # what a call learns is written into its error, so each run of a script gets its own
            yield replace(event, error=copy(event.error)) if isinstance(event, Failed) else event
            if (error := self._after and self._after(event)) is not None:
                yield _failed(error)
                return

    def __repr__(self) -> str:
        return f"<ScriptedProvider {self.name}: {len(self.requests)} of {len(self._scripts)} scripts played>"


def _checked(events: object) -> list[Event]:
    """One script. Raises TypeError for what is none, or holds what is no event."""
    odd = [events]
    if isinstance(events, Iterable):
        script = list(cast("Iterable[object]", events))
        odd = [event for event in script if not isinstance(event, Event)]
        if not odd:
            return cast("list[Event]", script)
    raise TypeError(f"a script is a list of events, not {_kind(odd[0])}; ScriptedProvider.of takes whole answers")


def _kind(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


class _AsyncPlay:
    """The same for an event loop. No async generator: one that is left early is closed by nobody, and trio warns of it."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        for event in self._events:
            return event
        raise StopAsyncIteration


def _failed(error: BaseException) -> Failed:
    if isinstance(error, ProviderError):
        return Failed(copy(error))
    raise error


def script(answer: ScriptedAnswer, *, id: str = "msg_1", provider: str = "scripted", model: str = "scripted-1") -> list[Event]:
    """The events of one whole answer, in the order in which a real stream brings them.

    A message that calls tools stops with `tool_use`, any other with `end_turn`; a Response stops as it says and brings its usage.
    Raises TypeError for what is no answer, ValueError for a message that is not the assistant's.
    """
    if isinstance(answer, ProviderError):
        return [Failed(answer)]
    if isinstance(answer, Response):
        start = MessageStart(answer.id or id, answer.model or model, provider=provider, wire=WIRE, request_id=answer.request_id)
        end = MessageStop(
            answer.stop,
            raw_stop=answer.raw_stop,
            stop_sequence=answer.stop_sequence,
            stop_details=answer.stop_details,
            usage=answer.usage,
            extra=answer.extra,
            message_extra=answer.message.extra,
        )
        return [start, *_blocks(answer.message), end]
    message = assistant(answer) if isinstance(answer, str) else answer
    if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]  # a block, another exception
        raise TypeError(f"a script answers with a message, its text, a Response or a ProviderError, not {_kind(message)}")
    if message.role != "assistant":
        raise ValueError(f"a script answers with an assistant message, not with one of the {message.role}")
    stop: StopReason = "tool_use" if message.tool_uses or message.invalid_tool_uses else "end_turn"
    start = MessageStart(id, model, provider=provider, wire=WIRE)
    return [start, *_blocks(message), MessageStop(stop, message_extra=message.extra)]


def _blocks(message: Message) -> Iterator[Event]:
    for index, block in enumerate(message.content):
        shell, deltas = _open(index, block)
        yield BlockStart(index, shell)
        yield from deltas
        yield BlockStop(index, block)


def _open(index: int, block: Block) -> tuple[Block, list[Event]]:
    """How a block starts, and the deltas that fill it."""
    match block:
        case Text(text):
            deltas: list[Event] = [TextDelta(index, piece) for piece in _words(text)]
            deltas += [CitationDelta(index, citation) for citation in block.citations]
            return replace(block, text="", citations=[]), deltas
        case Refusal(text):
            return replace(block, text=""), [TextDelta(index, piece) for piece in _words(text)]
        case Audio():
            return replace(block, transcript=""), [TextDelta(index, piece) for piece in _words(block.transcript)]
        case Thinking(text):
            deltas = [ThinkingDelta(index, piece) for piece in _words(text)]
            deltas += [SignatureDelta(index, block.signature)] if block.signature else []
            return replace(block, text="", signature=""), deltas
        case ToolUse() | ServerToolUse():
            return replace(block, input={}), _input(index, to_json(block.input).decode())
        case InvalidToolUse(id, name, raw):
            return ToolUse(id, name, {}), _input(index, raw)
        case _:
            return block, []


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+|\s+$", text)


def _input(index: int, json: str) -> list[Event]:
    return [ToolInputDelta(index, json[at : at + _PIECE]) for at in range(0, len(json), _PIECE)]
