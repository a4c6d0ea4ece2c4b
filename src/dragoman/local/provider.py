"""`LocalProvider`: the driver of every HTTP provider, with a transport that starts the server before the first request.

Strategy. Making the provider opens nothing. Each call first checks, in the call itself, that there is an engine and a model (`LocalAuth`);
the transport then starts the server, which takes about a second and counts on no clock, and puts its address on the request. What the
request leaves open is filled in for a toy model: few tokens, a short system prompt; the server's own default temperature is 0.
Whether the model thinks is told to the chat template by `chat_template_kwargs`, a llama.cpp extension of the protocol.

Nothing leaves the machine: the transports that are made here know no proxy, whatever the environment names.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec.structs import replace

from dragoman.errors import ConfigError, ProviderError
from dragoman.event import Notice
from dragoman.hooks import CallSpan, TelemetrySetting
from dragoman.local.model_file import ensure_model, find_model
from dragoman.local.server import LocalServer, chat_template, check_engine, is_running, process_key, start_server
from dragoman.provider import HTTPProvider
from dragoman.provider_settings import Defaults, check_settings
from dragoman.request import Request
from dragoman.retry import RetryPolicy
from dragoman.settings import Environment
from dragoman.transport import AsyncHTTPResponse, AsyncTransport, Clocks, HTTPResponse, Timeouts, Transport, TransportName
from dragoman.value import Secret
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.base import HTTPRequest

__all__ = ["LocalModel", "LocalProvider", "local_provider"]

MODEL = "smollm2-135m-instruct"
"""What the toy model is called."""

MAX_TOKENS = 256
"""Tokens of an answer when the request does not say; about three seconds."""

THINKING_TOKENS = 1024
"""Added to MAX_TOKENS when the model may think and no budget is given: the smallest budget that the protocol knows."""

SYSTEM = "You are a helpful assistant. Answer in one or two short sentences."
"""The system prompt when the request has none."""

TIMEOUTS = Timeouts(first_byte=600.0, idle=120.0)
"""The server computes one answer at a time, so a request may wait for many others before its first byte."""


OUTPUT_LEFT_OUT = "the local model has no structured output: the schema is not sent, and the answer need not follow it"
"""What the Notice says about `Request.output`."""


class LocalModel:
    """Which file is served, and how: the toy model, or a GGUF file of the user's. `threads` compute; more than one only helps on a machine
    with idle cores.
    """

    def __init__(self, model: str = "", *, fetch: bool = True, threads: int = 1) -> None:
        check_settings(threads=threads)
        if not isinstance(model, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"model must be {MODEL!r} or the path of a GGUF file, not {type(model).__name__}")
        if threads < 1:
            raise ConfigError(f"threads must be 1 or more, not {threads}")
        self._own = None if model in ("", MODEL) else Path(model).expanduser()
        if self._own is not None and self._own.suffix != ".gguf" and not self._own.is_file():
            raise ConfigError(f"unknown local model {model!r}: it is {MODEL!r}, or the path of a GGUF file")
        self._fetch = fetch
        self._threads = threads
        self._path: Path | None = None
        self.name = MODEL if self._own is None else self._own.stem

    def check(self) -> None:
        """Raises ConfigError if the model cannot be served: no engine, no file and none to be fetched. Quick."""
        check_engine()
        if self._own is not None and not self._own.is_file():
            raise ConfigError(f"the local model's file is missing: {self._own}")
        if self._own is None and not self._fetch and find_model() is None:
            ensure_model(fetch=False)

    @property
    def running(self) -> bool:
        """Whether `serve` returns at once."""
        return self._path is not None and is_running(self._path, self._threads)

    def serve(self, *, port: int = 0, api_key: str | None = None) -> LocalServer:
        """Its server, started at the first call. Fetches the toy model if need be and allowed. Raises ConfigError."""
        self._path = self._own or ensure_model(fetch=self._fetch)
        template = chat_template() if self._own is None else None
        return start_server(self._path, name=self.name, template=template, threads=self._threads, port=port, api_key=api_key)


class LocalAuth:
    """The key of this process's servers, or the one given; and the checks that belong into the call itself."""

    def __init__(self, model: LocalModel, api_key: str | None) -> None:
        self._model = model
        self._key = None if api_key is None else Secret(api_key)

    def apply(self, request: HTTPRequest) -> HTTPRequest:
        """The request with the key. Raises ConfigError if the model cannot be served."""
        self._model.check()
        return replace(request, headers={**request.headers, "x-api-key": Secret(process_key()) if self._key is None else self._key})

    def refresh(self, error: ProviderError) -> bool:
        """There is nothing to renew."""
        del error
        return False


class LocalTransport:
    """Sends to the model's server over another transport, starting the server first. `started` is told its address."""

    def __init__(self, inner: Transport, model: LocalModel, started: Callable[[LocalServer], None]) -> None:
        self._inner = inner
        self._model = model
        self._started = started

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        """Send, once the server is up. Raises ConfigError if it cannot be started."""
        timeouts.pause()  # starting is no network: no clock runs
        server = self._model.serve()
        timeouts.resume()
        self._started(server)
        return self._inner.send(replace(request, base_url=server.url), timeouts)

    def close(self) -> None:
        """Close the connections; the server stays."""
        self._inner.close()


class AsyncLocalTransport:
    """As `LocalTransport`, for an event loop: fetching happens in a thread. Loading holds the interpreter for its second all the same."""

    def __init__(self, inner: AsyncTransport, model: LocalModel, started: Callable[[LocalServer], None]) -> None:
        self._inner = inner
        self._model = model
        self._started = started

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        """Send, once the server is up. Raises ConfigError if it cannot be started."""
        timeouts.pause()
        server = self._model.serve() if self._model.running else await _in_thread(self._model.serve)
        timeouts.resume()
        self._started(server)
        return await self._inner.send(replace(request, base_url=server.url), timeouts)

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        """Wait, at most until `clocks.abort()`."""
        await self._inner.sleep(seconds, clocks)

    async def close(self) -> None:
        """Close the connections of the running loop; the server stays."""
        await self._inner.close()


async def _in_thread(function: Callable[[], LocalServer]) -> LocalServer:
    from anyio import to_thread  # comes with httpx2; serves asyncio and trio

    return await to_thread.run_sync(function, abandon_on_cancel=True)


class LocalWire(AnthropicWire):
    """The Messages protocol as llama.cpp's server speaks it: no parameter there asks for structured output (tried: `output_config`,
    `output_format`, `response_format`, `json_schema`, `grammar`; its Chat Completions take one). So `output` is left out, with a Notice.
    """

    __slots__ = ()

    def encode(self, request: Request, *, stream: bool) -> HTTPRequest:
        """As `AnthropicWire.encode`, without `output`."""
        if request.output is None:
            return super().encode(request, stream=stream)
        encoded = super().encode(request.replace(output=None), stream=stream)
        return replace(encoded, notices=[*encoded.notices, Notice("output_left_out", OUTPUT_LEFT_OUT, path="output")])


class LocalProvider(HTTPProvider):
    """A model on this machine. Made by `local_provider`."""

    def __init__(
        self,
        model: LocalModel,
        *,
        system: str,
        api_key: str | None,
        transport: Transport | TransportName | None,
        async_transport: AsyncTransport | TransportName | None,
        **settings: Any,
    ) -> None:
        self._model = model
        self._system = system
        self._starting: LocalTransport | None = None
        self._astarting: AsyncLocalTransport | None = None
        super().__init__(
            LocalWire(provider="local"),
            auth=LocalAuth(model, api_key),
            base_url="http://127.0.0.1",
            name="local",
            transport=_without_proxy(transport),
            async_transport=_async_without_proxy(transport if async_transport is None and isinstance(transport, str) else async_transport),
            **settings,
        )

    @property
    def transport(self) -> Transport:
        """The transport of blocking calls; starts the server before its first request."""
        if self._starting is None:
            if self._transport is None:
                self._refuse_detour(self._async_transport, "transport", "async_transport")
                self._transport = _without_proxy("auto")
            self._starting = LocalTransport(super().transport, self._model, self._serves)
        return self._starting

    @property
    def async_transport(self) -> AsyncTransport:
        """The transport of async calls; starts the server before its first request."""
        if self._astarting is None:
            if self._async_transport is None:
                self._refuse_detour(self._transport, "async_transport", "transport")
                self._async_transport = _async_without_proxy("auto")
            self._astarting = AsyncLocalTransport(super().async_transport, self._model, self._serves)
        return self._astarting

    def _serves(self, server: LocalServer) -> None:
        self.base_url = server.url

    def _span(self, request: Request, **details: Any) -> Callable[[], CallSpan | None] | None:
        """As of every provider. The port is left out until a server runs: nobody knows it before."""
        if urlsplit(self.base_url).port is None:
            details["server_port"] = None
        return super()._span(request, **details)

    def prepare(self, request: Request) -> Request:
        """The request with what a toy model needs where it says nothing."""
        request = super().prepare(request)
        thinking = request.thinking
        thinks = thinking is not None and thinking.mode != "off"
        changes: dict[str, Any] = {}
        if request.max_tokens is None:
            budget = (thinking.budget_tokens or THINKING_TOKENS) if thinking is not None and thinks else 0
            changes["max_tokens"] = MAX_TOKENS + budget
        if not request.system and not (request.messages and request.messages[0].role == "system"):
            changes["system"] = self._system
        if thinks:
            changes["extra_body"] = {"chat_template_kwargs": {"enable_thinking": True}, **request.extra_body}
        return request.replace(**changes)


def _without_proxy(transport: Transport | TransportName | None) -> Transport | None:
    """The transport of this name, deaf to the environment; any other as it is. Raises ConfigError for an unknown name."""
    if not isinstance(transport, str):
        return transport
    from dragoman.transport.choose import transport_named

    return transport_named(transport, trust_env=False)


def _async_without_proxy(transport: AsyncTransport | TransportName | None) -> AsyncTransport | None:
    """As `_without_proxy`, for an event loop."""
    if not isinstance(transport, str):
        return transport
    from dragoman.transport.choose import async_transport_named

    return async_transport_named(transport, trust_env=False)


def local_provider(
    model: str = "",
    *,
    fetch: bool = True,
    threads: int = 1,
    system: str = SYSTEM,
    api_key: str | None = None,
    timeouts: Timeouts | None = None,
    retry: RetryPolicy | None = None,
    validate: Literal["error", "off"] = "error",
    transport: Transport | TransportName | None = None,
    async_transport: AsyncTransport | TransportName | None = None,
    telemetry: TelemetrySetting = "auto",
) -> HTTPProvider:
    """A language model inside this process: `connect("local")`. Opens nothing; the first call starts the server.

    `model`: the toy model if it is left out, or the path of a GGUF file. `fetch`: download the toy model's 98 MB once, if it is not in the
    cache folder; with False its absence is a ConfigError of the call. `threads`: how many compute. `system`: the prompt where a
    request has none. `api_key`: a key to try instead of the server's own; it is refused, as a wrong key is anywhere. `transport` and
    `async_transport` carry the requests; but for one of your own none goes by a proxy. Raises ConfigError for a model that is neither.
    """
    check_settings(api_key=api_key, system=system, fetch=fetch)
    environment = Environment()
    environment.flag("DRAGOMAN_TRACE_LLM_CONTENT")  # read again by the telemetry
    served = LocalModel(model, fetch=fetch, threads=threads)
    return LocalProvider(
        served,
        system=system,
        api_key=api_key,
        defaults=Defaults(model=served.name),
        timeouts=timeouts or environment.timeouts() or TIMEOUTS,
        retry=retry or environment.retry(),
        validate=validate,
        transport=transport,
        async_transport=async_transport,
        telemetry=telemetry,
    )
