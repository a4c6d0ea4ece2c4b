"""`dragoman probe`: ask a model one thing and watch the answer arrive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast, get_args

import dragoman
from dragoman.cli.outcome import ANSWERED, INTERRUPTED, PROVIDER_FAILED, UsageError
from dragoman.cli.printer import Printer, describe_error, summary
from dragoman.cli.terminal import Screen
from dragoman.cli.tracing import tracing
from dragoman.event import Event
from dragoman.names import DEFAULT_MODEL_VARIABLE, split_name
from dragoman.request import Effort, Request, ThinkingConfig
from dragoman.settings import Environment
from dragoman.sources import IteratorSource
from dragoman.storage import to_json
from dragoman.stream import Stream

__all__ = ["probe"]

TOY = "SmolLM2-135M, a toy model on this machine: it shows that everything works, and is often wrong"
"""What is said before the local model answers."""

PROMPT_LIMIT = 32 * 1024 * 1024
"""Bytes of a prompt that are read from standard input; no provider takes more."""


def probe(
    *,
    provider: str,
    model: str,
    prompt: str | None,
    system: str,
    max_tokens: int | None,
    thinking: str | None,
    effort: str | None,
    show_thinking: bool,
    json: bool,
    trace: bool,
    trace_console: bool,
    record: Path | None,
) -> int:
    """Ask, show, sum up. The exit code: 0 answered, 1 the provider failed, 130 interrupted."""
    request = Request(
        read_prompt() if prompt is None else prompt,
        system=system,
        max_tokens=max_tokens,
        thinking=thinking_config(thinking),
        effort=effort_of(effort),
    )
    if not request.messages[0].text.strip():
        raise UsageError("the prompt is empty: give --prompt TEXT, or text on standard input")
    if record is not None:
        check_record(record)
    provider, model = provider_and_model(provider, model)
    screen = Screen()
    if provider == "local" and not model:
        screen.note(f"{TOY}\n")
    traced = tracing(export=trace, show=trace_console)
    with client(provider, model, record) as answering:
        answering.telemetry = traced.telemetry
        with events_of(answering, request) as stream:
            code = _watch(stream, screen, _json_lines(screen) if json else Printer(screen, thinking=show_thinking).show)
    traced.report(screen)
    return code


def check_record(file: Path) -> None:
    """Raises UsageError for a `--record` that cannot be written: better before the answer is paid for. A folder is not made for it."""
    from dragoman.testing.cassette import CassetteError, check_writable

    if not file.parent.is_dir():
        raise UsageError(f"--record {file}: there is no folder {file.parent}")
    try:
        check_writable(file)
    except CassetteError as error:
        raise UsageError(f"--record {error}") from error


def provider_and_model(provider: str, model: str) -> tuple[str, str]:
    """What the options say, else what `DRAGOMAN_DEFAULT_MODEL` says, else Anthropic. An empty provider is what `connect()` makes of the
    variable. Raises ConfigError for `provider:`.
    """
    default = "" if provider else Environment().first(DEFAULT_MODEL_VARIABLE)
    if not default:
        return provider or "anthropic", model
    known, own = split_name(default, variable=DEFAULT_MODEL_VARIABLE)
    if known:
        return known, model or own
    return (default.partition(":")[0], model) if model else ("", "")  # of another package, or a slip that `connect` names


def client(provider: str, model: str, record: Path | None = None) -> dragoman.ProviderBase:
    """The provider of that name. For the local one, its model is fetched here, with a progress bar. `record`: onto this cassette."""
    if provider == "local" and not model:
        from dragoman.cli.local import fetch_if_missing

        fetch_if_missing()
    settings: dict[str, object] = {}
    if record is not None:
        from dragoman.testing.recorder import Recorder
        from dragoman.transport.choose import AutoTransport

        settings["transport"] = Recorder(record, AutoTransport(trust_env=provider != "local")).transport
    return dragoman.connect(f"{provider}:{model}" if model else provider or None, **settings)


def events_of(provider: dragoman.ProviderBase, request: Request) -> Stream:
    """The events of one call, Failed among them, as a stream that remembers what it handed out."""
    events = provider.events(request)
    return events if isinstance(events, Stream) else Stream(IteratorSource(iter(events)), raises=False)


def _watch(stream: Stream, screen: Screen, show: Callable[[Event], None]) -> int:
    """Show events until the end of the answer; whatever had arrived stays, however it ends."""
    interrupted = False
    try:
        for event in stream:
            show(event)
    except KeyboardInterrupt:
        interrupted = True
        stream.close()
    finally:
        screen.end_line()
    if stream.error is not None:
        screen.say(describe_error(stream.error))
    stop = "interrupted" if interrupted else stream.stop or ("failed" if stream.error is not None else "unknown")
    screen.say(summary(stop, stream.usage, stream.timing, stream.request_id))
    return INTERRUPTED if interrupted else PROVIDER_FAILED if stream.error is not None else ANSWERED


def _json_lines(screen: Screen) -> Callable[[Event], None]:
    return lambda event: screen.write(to_json(event).decode() + "\n")


def read_prompt() -> str:
    """The prompt from standard input. Raises UsageError if that is a terminal, or not UTF-8."""
    if sys.stdin is None or sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]  # None under pythonw
        raise UsageError("no prompt: give --prompt TEXT, or text on standard input")
    data = sys.stdin.buffer.read(PROMPT_LIMIT + 1)
    if len(data) > PROMPT_LIMIT:
        raise UsageError(f"the prompt is larger than {PROMPT_LIMIT:,} bytes")
    try:
        return data.decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise UsageError(f"the prompt on standard input is not UTF-8 (byte {error.start})") from error


def thinking_config(text: str | None) -> ThinkingConfig | None:
    """`--thinking`: a budget in tokens, `adaptive` or `off`. Raises UsageError."""
    if text is None:
        return None
    if text == "off":
        return ThinkingConfig.off()
    if text == "adaptive":
        return ThinkingConfig.adaptive()
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return ThinkingConfig.budget(int(text))
    raise UsageError(f"--thinking is a number of tokens, 'adaptive' or 'off', not {text!r}")


def effort_of(text: str | None) -> Effort | None:
    """`--effort`. Raises UsageError listing the words."""
    if text is None or text in get_args(Effort):
        return cast("Effort | None", text)
    raise UsageError(f"--effort is one of {', '.join(get_args(Effort))}, not {text!r}")
