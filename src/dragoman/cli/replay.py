"""`dragoman replay`: decode recorded answers offline, as if they had just come.

A recording is a body as it was received: `.sse` or `.json`. Beside it may lie `response_meta.json` (`{"status", "headers"}`) and
`request.json` (the request's body); a request that cannot be read, cut short by whoever recorded it, counts as none. A cassette, as
`probe --record` writes it, is a `.json` file with any number of exchanges.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from dragoman.accumulator import Accumulator
from dragoman.cli.outcome import ANSWERED, PROVIDER_FAILED, UsageError
from dragoman.cli.printer import Printer, describe_error, summary
from dragoman.cli.terminal import Screen
from dragoman.errors import InvalidInputError, ProviderError
from dragoman.event import Event, Failed
from dragoman.request import Request
from dragoman.storage import to_builtins, to_json
from dragoman.wire.base import ServerWire, Wire

__all__ = ["WIRES", "replay", "wire_named"]

WIRES: dict[str, str] = {
    "anthropic": "dragoman.wire.anthropic:AnthropicWire",
    "openai-chat": "dragoman.wire.openai_chat:OpenAIChatWire",
    "openai-responses": "dragoman.wire.openai_responses:OpenAIResponsesWire",
}
"""Each `--wire` name and the class that decodes it."""

_CONTENT_TYPES = {".sse": "text/event-stream", ".json": "application/json"}


def replay(files: list[Path], *, wire: str, show_thinking: bool, json: bool) -> int:
    """Decode each file. 0 if all are answers, 1 if one is a provider's error or cut, 2 (raised) if one cannot be read."""
    decoding = wire_named(wire)
    recordings = [one for file in files for one in _recordings(file, decoding)]  # all are read before anything is printed
    screen = Screen()
    code = ANSWERED
    for recording in recordings:
        events = recording.events()
        if json:
            failed = _print_line(screen, recording.name, events)
        else:
            if len(recordings) > 1:
                screen.say(f"== {recording.name}")
            failed = _print_answer(screen, events, thinking=show_thinking)
        code = PROVIDER_FAILED if failed else code
    return code


def wire_named(name: str) -> Wire:
    """The wire of that name, ours or an installed package's. Raises UsageError listing ours."""
    if name not in WIRES:
        from dragoman.connect import installed_wire

        installed: Wire | None = installed_wire(name)
        if installed is None:
            raise UsageError(f"--wire is one of {', '.join(WIRES)}, or a wire of an installed package, not {name!r}")
        return installed
    module, _, cls = WIRES[name].partition(":")
    wire: Wire = getattr(import_module(module), cls)()
    return wire


def _recordings(file: Path, wire: Wire) -> list[_Recording]:
    """What a file holds: one body, or the exchanges of a cassette."""
    if file.suffix not in _CONTENT_TYPES:
        raise UsageError(f"{file}: a recording is a .sse or .json file")
    body = _read(file)
    if file.suffix == ".json" and b'"dragoman_cassette"' in body[:100]:
        return _cassette(file, wire)
    meta = _read_meta(file.with_name("response_meta.json"))
    headers = meta.pairs()
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("content-type", _CONTENT_TYPES[file.suffix]))
    path = file.with_name("request.json")
    request = _request(_read(path), wire) if path != file and path.is_file() else None
    return [_Recording(str(file), wire, meta.status or 200, headers, [body], request)]


def _cassette(file: Path, wire: Wire) -> list[_Recording]:
    from dragoman.testing.cassette import Cassette, CassetteError

    try:
        exchanges = Cassette.load(file).exchanges
    except CassetteError as error:
        raise UsageError(str(error)) from error
    return [
        _Recording(
            f"{file}#{number}" if len(exchanges) > 1 else str(file),
            wire,
            exchange.status or 200,
            exchange.response_headers,
            [piece.data for piece in exchange.pieces],
            _request(msgspec.json.encode(exchange.request_body), wire),
        )
        for number, exchange in enumerate(exchanges, 1)
    ]


def _request(body: bytes, wire: Wire) -> Request | None:
    if not hasattr(wire, "decode_request"):
        return None
    server: ServerWire = wire  # type: ignore[assignment]  # it has decode_request
    try:
        return server.decode_request(body)
    except InvalidInputError:
        return None


class _Recording(NamedTuple):
    """One answer: its pieces, and what was kept of the exchange around it."""

    name: str
    wire: Wire
    status: int
    headers: list[tuple[str, str]]
    pieces: list[bytes]
    request: Request | None

    def events(self) -> list[Event]:
        decoder = self.wire.decoder(self.request, status=self.status, headers=self.headers)
        return [*(event for piece in self.pieces for event in decoder.feed(piece)), *decoder.close()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error


class _Meta(msgspec.Struct):
    """What a recorder kept of an answer's head. A header that came twice has a list."""

    status: int | None = None
    headers: dict[str, str | list[str]] | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """The headers, one pair for each value."""
        headers = (self.headers or {}).items()
        return [(name, value) for name, given in headers for value in ([given] if isinstance(given, str) else given)]


def _read_meta(path: Path) -> _Meta:
    if not path.is_file():
        return _Meta()
    try:
        return msgspec.json.decode(_read(path), type=_Meta)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path}: not an object with status and headers: {error}") from error


def _fold(events: list[Event]) -> tuple[Accumulator, ProviderError | None]:
    accumulator = Accumulator()
    try:
        for event in events:
            accumulator.push(event)
    except ProviderError as error:
        return accumulator, error
    return accumulator, None


def _print_line(screen: Screen, name: str, events: list[Event]) -> bool:
    """One JSON line. Returns whether it is an error's."""
    accumulator, error = _fold(events)
    line: dict[str, Any] = {"file": name}
    if error is None:
        line["response"] = accumulator.response()
    else:
        line["error"] = to_builtins(Failed(error))["error"]
        line["partial"] = error.partial
    screen.write(to_json(line).decode() + "\n")
    return error is not None


def _print_answer(screen: Screen, events: list[Event], *, thinking: bool) -> bool:
    printer = Printer(screen, thinking=thinking)
    for event in events:
        printer.show(event)
    accumulator, error = _fold(events)
    screen.end_line()
    if error is not None:
        screen.say(describe_error(error))
    request_id = error.request_id if error is not None else accumulator.response().request_id
    stop = accumulator.stop or ("failed" if error is not None else "unknown")
    screen.say(summary(stop, accumulator.usage, None, request_id))
    return error is not None
