"""From a name to a provider: `connect("anthropic:claude-sonnet-5")`. Opens nothing; the first call does.

One table says which names there are, with each provider's default model. Settings given as arguments win over the environment, which
is read once, when the provider is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dragoman.auth import Credentials, CredentialsSource, HeaderAuth
from dragoman.errors import ConfigError
from dragoman.hooks import TelemetrySetting
from dragoman.provider import Defaults, HTTPProvider, ProviderBase
from dragoman.request import CacheMode, Request
from dragoman.retry import RetryPolicy
from dragoman.settings import Environment
from dragoman.transport import AsyncTransport, Timeouts, Transport

if TYPE_CHECKING:
    from dragoman.call import Clock

__all__ = ["Anthropic", "connect", "provider_names", "split_model"]

FAST_BETA = "fast-mode-2026-02-01"
LONG_CONTEXT_BETA = "context-1m-2025-08-07"
_SUFFIXES = (":fast", ":1m")
_KEY_VARIABLES = ("DRAGOMAN_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY")
_TOKEN_VARIABLE = "ANTHROPIC_AUTH_TOKEN"  # noqa: S105  # a name, not a token


def split_model(model: str) -> tuple[str, list[str], dict[str, Any]]:
    """A model id without `:fast` and `:1m` (in any order), and the betas and body keys that they stand for."""
    betas: list[str] = []
    body: dict[str, Any] = {}
    while model.endswith(_SUFFIXES):
        model, _, suffix = model.rpartition(":")
        if suffix == "fast":
            body["speed"] = "fast"
            betas.append(FAST_BETA)
        else:
            betas.append(LONG_CONTEXT_BETA)
    return model, betas, body


class Anthropic(HTTPProvider):
    """Anthropic's Messages API, or anything that speaks it.

    Every setting is a default that a Request overrides. The key goes out as `x-api-key`, a token as `Authorization: Bearer`; the key wins.
    `credentials` is a callable that is asked at each call, and once more after a 401. `base_url` may end in `/` or `/v1`. What is
    not given is read from `DRAGOMAN_ANTHROPIC_API_KEY`, `ANTHROPIC_API_KEY`, `ANTHROPIC_AUTH_TOKEN`, `DRAGOMAN_ANTHROPIC_BASE_URL`,
    `ANTHROPIC_BASE_URL`, `DRAGOMAN_DEFAULT_MODEL`, `DRAGOMAN_PROVIDER_MAX_RETRIES`, `DRAGOMAN_PROVIDER_TIMEOUT`. A missing key is
    reported by the first call, a bad setting at once (ConfigError).
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
        transport: Transport | None = None,
        async_transport: AsyncTransport | None = None,
        telemetry: TelemetrySetting = "auto",
        *,
        name: str = "anthropic",
        clock: Clock | None = None,
    ) -> None:
        from dragoman.wire.anthropic import AnthropicWire

        environment = Environment()
        environment.flag("DRAGOMAN_TRACE_LLM_CONTENT")  # read again by the telemetry; a bad value is reported here
        if credentials is not None and (api_key or auth_token):
            raise ConfigError("Error creating Anthropic client: give credentials= or api_key=/auth_token=, not both")
        if api_key is None and auth_token is None and credentials is None:
            api_key, auth_token = environment.first(*_KEY_VARIABLES), environment.first(_TOKEN_VARIABLE)
        url = base_url or environment.first("DRAGOMAN_ANTHROPIC_BASE_URL", "ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        looked_at = ", ".join((*_KEY_VARIABLES, _TOKEN_VARIABLE))
        super().__init__(
            AnthropicWire(provider=name, api_version=api_version, max_tokens=max_tokens),
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
                model=model or _default_model_for("anthropic", environment),
                temperature=temperature,
                top_p=top_p,
                top_k=top_k,
                stop_sequences=stop_sequences,
                cache=cache,
                betas=betas,
                headers=dict(headers),
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
        request = super().prepare(request)
        model, betas, body = split_model(request.model)
        if model == request.model:
            return request
        known = request.betas
        return request.replace(
            model=model,
            betas=[*known, *(beta for beta in betas if beta not in known)],
            extra_body={**body, **request.extra_body},
        )


class _Entry(NamedTuple):
    """A provider's name: how it is made, and the model it has when none is named."""

    make: Callable[..., ProviderBase]
    default_model: str = ""


def _anthropic(**settings: Any) -> ProviderBase:
    return Anthropic(**settings)


def _local(**settings: Any) -> ProviderBase:
    from dragoman.local import local_provider

    return local_provider(**settings)


PROVIDERS: dict[str, _Entry] = {
    "anthropic": _Entry(_anthropic, "claude-sonnet-5-5"),
    "local": _Entry(_local),
}


def provider_names() -> list[str]:
    """The names that `connect` knows."""
    return list(PROVIDERS)


def connect(name: str | None = None, **settings: Any) -> ProviderBase:
    """A provider by name; opens nothing.

    `"anthropic:claude-sonnet-5"` names provider and model; a bare provider name takes its default model; a bare `claude…` is a model of
    Anthropic; None is what `DRAGOMAN_DEFAULT_MODEL` says. `settings` are the provider's own (`Anthropic`). The first colon separates
    only if a known provider stands before it, so model ids with colons are safe; an id is never replaced by another.

    Raises ConfigError for an unknown name (listing the known ones) and for a bad setting.
    """
    if name is None:
        name = Environment().first("DRAGOMAN_DEFAULT_MODEL")
        if not name:
            raise ConfigError(f"no model named: pass one to connect() or set DRAGOMAN_DEFAULT_MODEL; {_known()}")
    provider, model = _split_name(name)
    if not provider:
        raise ConfigError(f"unknown provider or model {name!r}; {_known()}")
    entry = PROVIDERS[provider]
    if model:
        if settings.get("model", model) != model:
            raise ConfigError(f"two models named: {model!r} in {name!r} and model={settings['model']!r}")
        settings = {**settings, "model": model}
    elif not settings.get("model") and entry.default_model:
        settings = {**settings, "model": _default_model_for(provider, Environment()) or entry.default_model}
    try:
        return entry.make(**settings)
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise ConfigError(f"Error creating {provider.capitalize()} client: {str(error).partition('() ')[2]}") from error
        raise


def _split_name(name: str) -> tuple[str, str]:
    """Provider and model of a name; `("", "")` if no provider can be told."""
    before, colon, after = name.partition(":")
    if before in PROVIDERS:
        if colon and not after:
            raise ConfigError(f"{name!r} names no model after the colon")
        return before, after
    return ("anthropic", name) if name.startswith("claude") else ("", "")


def _default_model_for(provider: str, environment: Environment) -> str:
    """The model of `DRAGOMAN_DEFAULT_MODEL` if it is one of this provider, else `""`."""
    name = environment.first("DRAGOMAN_DEFAULT_MODEL")
    if not name:
        return ""
    named, model = _split_name(name)
    return model if named == provider else ""


def _known() -> str:
    return f"known providers: {', '.join(PROVIDERS)} (as 'provider:model'), and models that begin with 'claude'"
