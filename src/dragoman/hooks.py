"""What a call tells whoever observes it: the `Telemetry` protocol. The core knows nothing else about tracing.

A telemetry object is asked once per call for a `CallSpan`; the stream then tells it what happens, in the order of the methods below.
One of `finished`, `failed` and `cancelled` is called, exactly once, on every path and before the terminal event is handed out.
"""

from __future__ import annotations

import sys
from typing import Any, Literal, Protocol

from dragoman.errors import ConfigError, ProviderError
from dragoman.event import Retrying
from dragoman.message import Message
from dragoman.request import Request
from dragoman.response import Response, Timing, Usage
from dragoman.value import Value

__all__ = ["CallInfo", "CallSpan", "Telemetry", "TelemetrySetting", "Unfinished", "resolve_telemetry"]


class CallInfo(Value, frozen=True, kw_only=True):
    """One call, as it begins. `request` is what is sent, with the provider's defaults filled in. Its repr shows no content.

    `provider` and `model` are what was asked; `server_address` is a host name or IP address, `""` if there is no server.
    """

    provider: str
    model: str
    request: Request
    streaming: bool = True
    server_address: str = ""
    server_port: int | None = None

    def __repr__(self) -> str:
        return f"CallInfo({self.provider}, {self.model})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For `rich`, which goes round the repr of a Struct."""
        return [("provider", self.provider), ("model", self.model)]


class Unfinished(Value, frozen=True, kw_only=True):
    """What is known of a call that ends without a response. Its repr shows no content.

    `partial` and `usage` are what had arrived; `id`, `model` and `request_id` are `""` before the answer began; `raw_stop` is the wire's
    stop reason, if one came all the same; `timing` is complete up to the moment.
    """

    partial: Message
    usage: Usage
    timing: Timing
    id: str = ""
    model: str = ""
    request_id: str = ""
    raw_stop: str = ""

    def __repr__(self) -> str:
        return f"Unfinished({self.id or '?'}, {self.model or '?'})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """For `rich`, which goes round the repr of a Struct."""
        return [("id", self.id), ("model", self.model)]


class CallSpan(Protocol):
    """One call under observation. Methods must not raise and must be quick."""

    def headers(self) -> dict[str, str]:
        """HTTP headers to send with each attempt (trace context), usually none."""
        ...

    def retried(self, event: Retrying) -> None:
        """An attempt failed and another will follow."""
        ...

    def first_content(self, timing: Timing) -> None:
        """The first content of any kind has come: text, thinking, tool input, or a block that comes whole."""
        ...

    def chunk(self, seconds: float) -> None:
        """One more piece of content has come, so many seconds after the last."""
        ...

    def finished(self, response: Response) -> None:
        """The answer is complete; `response.timing` is set."""
        ...

    def failed(self, error: ProviderError, call: Unfinished) -> None:
        """The call failed for good."""
        ...

    def cancelled(self, call: Unfinished) -> None:
        """The caller left early: break, close, cancellation, garbage collection."""
        ...


class Telemetry(Protocol):
    """Observes calls, from any number of threads and event loops."""

    def started(self, call: CallInfo) -> CallSpan | None:
        """A call begins. Runs in the context (`contextvars`) in which the call was made. None: this one is not observed."""
        ...


TelemetrySetting = Literal["auto"] | Telemetry | None


def resolve_telemetry(setting: TelemetrySetting) -> Telemetry | None:
    """The telemetry that a setting means. `auto` looks only if the program has loaded the OpenTelemetry API: without it nobody can have
    configured a tracer, and nothing is imported. Raises ConfigError for anything that is no Telemetry.
    """
    if setting is None or (setting == "auto" and "opentelemetry.trace" not in sys.modules):
        return None
    if setting == "auto":
        from dragoman.telemetry import configured

        return configured()
    if isinstance(setting, str) or not callable(getattr(setting, "started", None)):
        raise ConfigError(f"telemetry must be 'auto', None or a Telemetry object, not {type(setting).__name__}")
    return setting
