"""The providers that come with dragoman: each is a wire, an address, credentials and defaults, put together from arguments and
environment. The work is done by `HTTPProvider`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from dragoman.auth import Credentials, CredentialsSource, HeaderAuth, NoAuth, concealed
from dragoman.errors import ConfigError
from dragoman.hooks import TelemetrySetting
from dragoman.names import default_model_for
from dragoman.provider import HTTPProvider
from dragoman.provider_settings import Defaults, check_settings, check_url
from dragoman.request import CacheMode, Request
from dragoman.retry import RetryPolicy
from dragoman.settings import Environment
from dragoman.transport import AsyncTransport, Timeouts, Transport, TransportName
from dragoman.value import Secret
from dragoman.wire.base import Auth

if TYPE_CHECKING:
    from dragoman.call import Clock
    from dragoman.wire.openai_chat import Dialect, Endpoint

__all__ = ["Anthropic", "OpenAIChat", "OpenAIResponses"]

_KEY_VARIABLES = ("DRAGOMAN_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY")
_URL_VARIABLES = ("DRAGOMAN_ANTHROPIC_BASE_URL", "ANTHROPIC_BASE_URL")
_TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105  # a name, not a token


class Anthropic(HTTPProvider):
    """Anthropic's Messages API, or anything that speaks it.

    Every setting is a default that a Request overrides. The key goes out as `x-api-key`, a token as `Authorization: Bearer`; the key wins.
    `credentials` is a callable that is asked at each call, and once more after a 401. `base_url` may end in `/` or `/v1`.
    `max_tokens` is cut to what a request's model can write, since a provider serves many; a Request's own never is.

    What is not given is read from `DRAGOMAN_ANTHROPIC_API_KEY`, `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN`,
    `DRAGOMAN_ANTHROPIC_BASE_URL`, `ANTHROPIC_BASE_URL`, `DRAGOMAN_DEFAULT_MODEL`, `DRAGOMAN_PROVIDER_MAX_RETRIES`,
    `DRAGOMAN_PROVIDER_TIMEOUT`. A missing key is reported by the first call, a bad setting at once (ConfigError that names the setting or
    the variable).
    """

    def __init__(
        self,
        api_key: str | None = None,
        auth_token: str | None = None,
        credentials: CredentialsSource | None = None,
        base_url: str | None = None,
        api_version: str = "2023-06-01",
        model: str = "",
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        stop_sequences: Sequence[str] = (),
        cache: CacheMode = "explicit",
        betas: Sequence[str] = (),
        headers: Mapping[str, str] = {},  # copied
        extra_body: Mapping[str, Any] = {},
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        validate: Literal["error", "off"] = "error",
        allow_http: bool = False,
        transport: Transport | TransportName | None = None,
        async_transport: AsyncTransport | TransportName | None = None,
        telemetry: TelemetrySetting = "auto",
        *,
        name: str = "anthropic",
        clock: Clock | None = None,
    ) -> None:
        from dragoman.wire.anthropic import AnthropicWire
        from dragoman.wire.anthropic.suffixes import cut_suffixes

        self._cut_suffixes = cut_suffixes

        api_key, auth_token, headers = _concealed(api_key), _concealed(auth_token), _headers(headers)
        check_settings(
            credentials=credentials,
            base_url=base_url,
            api_version=api_version,
            max_tokens=max_tokens,
            extra_body=extra_body,
            allow_http=allow_http,
            name=name,
        )
        environment = _environment()
        if credentials is not None and (api_key or auth_token):
            raise ConfigError("Error creating Anthropic client: give credentials= or api_key=/auth_token=, not both")
        if api_key is None and auth_token is None and credentials is None:
            api_key, auth_token = environment.secret(*_KEY_VARIABLES), environment.secret(_TOKEN_VARIABLE)
        url = base_url or _url_of(environment, *_URL_VARIABLES, allow_http=allow_http) or "https://api.anthropic.com"
        looked_at = ", ".join((*_KEY_VARIABLES, _TOKEN_VARIABLE))
        super().__init__(
            AnthropicWire(provider=name, label="Anthropic", api_version=api_version, max_tokens=max_tokens),
            transport,
            HeaderAuth(
                Credentials(api_key=api_key or "", auth_token=auth_token or ""),
                source=credentials,
                missing=f"Anthropic API key is required: pass api_key= or set one of {looked_at}",
            ),
            base_url=url.rstrip("/").removesuffix("/v1"),
            name=name,
            label="Anthropic",
            async_transport=async_transport,
            defaults=Defaults(
                model=model or default_model_for("anthropic", environment),
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                stop_sequences=stop_sequences,
                cache=cache,
                betas=betas,
                headers=headers,
                extra_body=dict(extra_body),
            ),
            timeouts=timeouts or environment.timeouts(),
            retry=retry or environment.retry(),
            validate=validate,
            allow_http=allow_http,
            telemetry=telemetry,
            clock=clock,
        )

    def prepare(self, request: Request) -> Request:
        """The request with this provider's defaults, and the model's suffixes as the headers and keys that they stand for."""
        return self._cut_suffixes(super().prepare(request))


def _concealed(secret: str | None) -> str | None:
    """The same key or token in a form that no traceback shows, without white space around it. Raises ConfigError if it is no string."""
    if secret is not None and not isinstance(secret, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"an API key or token is a string, not {type(secret).__name__}")
    return None if secret is None else Secret(secret.strip())


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The same headers, those that name a secret concealed. Raises ConfigError if they are none."""
    check_settings(headers=headers)
    return concealed(headers)


def _environment() -> Environment:
    """The environment of a provider that is made. Raises ConfigError for a flag that only the telemetry will read."""
    environment = Environment()
    environment.flag("DRAGOMAN_TRACE_LLM_CONTENT")
    return environment


def _url_of(environment: Environment, *variables: str, allow_http: bool) -> str:
    """The base URL of the first of these that is set, or `""`. Raises ConfigError, naming it, if it is none."""
    url = environment.first(*variables)
    if url:
        check_url(url, allow_http=allow_http, name=environment.which(*variables))
    return url


WITHOUT_SIGNS_OF_LIFE = Timeouts(first_byte=300.0, idle=300.0)
"""For protocols that send nothing while a model thinks: silence does not mean that the server is gone."""


class _OpenAI(HTTPProvider):
    """What the two OpenAI protocols share: hosts by name, each with its address, its variables and its header for the key."""

    @staticmethod
    def _address(
        endpoint: Endpoint,
        environment: Environment,
        label: str,
        base_url: str | None,
        api_key: str | None,
        source: CredentialsSource | None,
        *,
        allow_http: bool,
    ) -> tuple[str, Auth]:
        """The base URL and the credentials. Raises ConfigError if there is no URL."""
        url = base_url or ""
        if (
            not url
            and (url := _url_of(environment, *endpoint.urls, allow_http=allow_http))
            and endpoint.url_suffix
            and endpoint.url_suffix not in url
        ):
            url = url.rstrip("/") + endpoint.url_suffix
        url = url or endpoint.base_url
        if not url:
            looked_at = f" or set one of {', '.join(endpoint.urls)}" if endpoint.urls else ""
            raise ConfigError(f"Error creating {label} client: no base URL; pass base_url={looked_at}")
        if source is not None and api_key:
            raise ConfigError(f"Error creating {label} client: give credentials= or api_key=, not both")
        if api_key is None and source is None:
            api_key = environment.secret(*endpoint.keys)
        if not api_key and source is None and not endpoint.key_required:
            return url, NoAuth()
        variables = f" or set one of {', '.join(endpoint.keys)}" if endpoint.keys else ""
        missing = f"{label} API key is required: pass api_key={variables}"
        return url, HeaderAuth(Credentials(api_key=api_key or ""), source=source, key_header=endpoint.header, missing=missing)


class OpenAIChat(_OpenAI):
    """OpenAI's Chat Completions API, and the hosts that speak it, each in its own dialect.

    `dialect` is a name of `dragoman.wire.openai_chat.DIALECTS` (`openai`, `groq`, `ollama` …) or a row of your own; with a name that
    `connect` knows, address and key come from that host's variables. Without it: `openai`; with a base URL the vendor whose host that is,
    else `generic`, which has no key but the one that is passed. `base_url` is what stands before `/chat/completions`. Other settings as
    for `Anthropic`.
    """

    def __init__(
        self,
        api_key: str | None = None,
        credentials: CredentialsSource | None = None,
        base_url: str | None = None,
        dialect: str | Dialect | None = None,
        model: str = "",
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        top_k: int | None = None,
        stop_sequences: Sequence[str] = (),
        headers: Mapping[str, str] = {},  # copied
        extra_body: Mapping[str, Any] = {},
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        validate: Literal["error", "off"] = "error",
        allow_http: bool = False,
        transport: Transport | TransportName | None = None,
        async_transport: AsyncTransport | TransportName | None = None,
        telemetry: TelemetrySetting = "auto",
        *,
        name: str = "",
        clock: Clock | None = None,
    ) -> None:
        from dragoman.wire.openai_chat import CONNECT, Endpoint, OpenAIChatWire
        from dragoman.wire.openai_chat.hosts import host_of

        api_key, headers = _concealed(api_key), _headers(headers)
        check_settings(credentials=credentials, base_url=base_url, extra_body=extra_body, allow_http=allow_http, name=name)
        if base_url:
            check_url(base_url, allow_http=allow_http)
        environment = _environment()
        wire = OpenAIChatWire(dialect or (host_of(base_url) or "generic" if base_url else "openai"))
        row = wire.dialect
        endpoint = CONNECT.get(name or row.name, Endpoint(dialect=row.name, key_required=False))
        url, auth = self._address(endpoint, environment, row.label, base_url, api_key, credentials, allow_http=allow_http)
        super().__init__(
            wire,
            transport,
            auth,
            base_url=url,
            name=name or row.provider,
            label=row.label,
            async_transport=async_transport,
            defaults=Defaults(
                model=model or default_model_for(name or row.name, environment),
                max_tokens=max_tokens,
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                stop_sequences=stop_sequences,
                headers=headers,
                extra_body=dict(extra_body),
            ),
            timeouts=timeouts or environment.timeouts() or WITHOUT_SIGNS_OF_LIFE,
            retry=retry or environment.retry(),
            validate=validate,
            allow_http=allow_http,
            telemetry=telemetry,
            clock=clock,
        )


class OpenAIResponses(_OpenAI):
    """OpenAI's Responses API, and the hosts that speak it. Stateless: nothing is stored at the provider unless `extra_body` says so.

    `provider` names whose server it is (`openai`, `azure`, `openrouter`, `xai`, `groq` …): address and key come from that host's
    variables, and it decides what of a history may be replayed. Without it: `openai`; with a base URL the vendor whose host that is,
    else `openai-compatible`, which has no key but the one that is passed. Other settings as for `OpenAIChat`.
    """

    def __init__(
        self,
        api_key: str | None = None,
        credentials: CredentialsSource | None = None,
        base_url: str | None = None,
        provider: str = "",
        model: str = "",
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        headers: Mapping[str, str] = {},  # copied
        extra_body: Mapping[str, Any] = {},
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        validate: Literal["error", "off"] = "error",
        allow_http: bool = False,
        transport: Transport | TransportName | None = None,
        async_transport: AsyncTransport | TransportName | None = None,
        telemetry: TelemetrySetting = "auto",
        *,
        name: str = "",
        clock: Clock | None = None,
    ) -> None:
        from dragoman.wire.openai_chat import CONNECT, Endpoint
        from dragoman.wire.openai_chat.hosts import host_of
        from dragoman.wire.openai_responses import OpenAIResponsesWire

        api_key, headers = _concealed(api_key), _headers(headers)
        check_settings(
            credentials=credentials,
            base_url=base_url,
            provider=provider,
            max_tokens=max_tokens,
            extra_body=extra_body,
            allow_http=allow_http,
            name=name,
        )
        if base_url:
            check_url(base_url, allow_http=allow_http)
        environment = _environment()
        provider = provider or (host_of(base_url) or "openai-compatible" if base_url else "openai")
        wire = OpenAIResponsesWire(provider=provider, max_tokens=max_tokens)
        endpoint = CONNECT.get(provider, Endpoint(dialect="generic", key_required=False))
        url, auth = self._address(endpoint, environment, wire.label, base_url, api_key, credentials, allow_http=allow_http)
        super().__init__(
            wire,
            transport,
            auth,
            base_url=url,
            name=name or provider,
            label=wire.label,
            async_transport=async_transport,
            defaults=Defaults(
                model=model or default_model_for(name or f"{provider}-responses", environment),
                temperature=temperature,
                top_p=top_p,
                headers=headers,
                extra_body=dict(extra_body),
            ),
            timeouts=timeouts or environment.timeouts() or WITHOUT_SIGNS_OF_LIFE,
            retry=retry or environment.retry(),
            validate=validate,
            allow_http=allow_http,
            telemetry=telemetry,
            clock=clock,
        )
