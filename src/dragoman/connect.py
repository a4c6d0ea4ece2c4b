"""From a name to a provider: `connect("anthropic:claude-sonnet-5")`. Opens nothing; the first call does.

One table says which names there are: how each provider is made, and the model it has when none is named. A name that is not in it may
be a wire of another package, found through the entry point group `dragoman.wires`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from dragoman.auth import Credentials, HeaderAuth, NoAuth, concealed
from dragoman.errors import ConfigError
from dragoman.names import CHAT_HOSTS, DEFAULT_MODEL_VARIABLE, RESPONSES_HOSTS, default_model_for, split_name
from dragoman.provider import HTTPProvider
from dragoman.provider_base import ProviderBase
from dragoman.provider_settings import Defaults, check_settings
from dragoman.settings import Environment
from dragoman.value import Secret
from dragoman.vendors import Anthropic, OpenAIChat, OpenAIResponses

__all__ = ["ENTRY_POINTS", "Anthropic", "OpenAIChat", "OpenAIResponses", "connect", "installed_wire", "provider_names"]

ENTRY_POINTS = "dragoman.wires"
"""The entry point group of third-party wires: the entry's name is the provider's, its object gives a Wire when called."""


class _Entry(NamedTuple):
    """A provider's name: how it is made, and the model it has when none is named."""

    make: Callable[..., ProviderBase]
    default_model: str = ""


def _local(**settings: Any) -> ProviderBase:
    from dragoman.local import local_provider

    return local_provider(**settings)


PROVIDERS: dict[str, _Entry] = {
    "anthropic": _Entry(Anthropic, "claude-sonnet-5-5"),
    "local": _Entry(_local),
    **{name: _Entry(partial(OpenAIChat, dialect=name, name=name)) for name in CHAT_HOSTS},
    **{f"{name}-responses": _Entry(partial(OpenAIResponses, provider=name)) for name in RESPONSES_HOSTS},
}


def provider_names() -> list[str]:
    """The names that `connect` knows, without those of other packages."""
    return list(PROVIDERS)


def connect(name: str | None = None, **settings: Any) -> ProviderBase:
    """A provider by name; opens nothing.

    `"anthropic:claude-sonnet-5"` names provider and model; a bare provider name takes its default model; a bare `claude…` is a model of
    Anthropic; None is what `DRAGOMAN_DEFAULT_MODEL` says. `settings` are the provider's own (`Anthropic`, `OpenAIChat` …). The first colon
    separates only if a known provider stands before it, so model ids with colons are safe; an id is never replaced by another.

    Raises ConfigError for an unknown name (listing the known ones) and for a bad setting.
    """
    for secret in ("api_key", "auth_token"):
        if isinstance(settings.get(secret), str):
            settings[secret] = Secret(settings[secret])  # for the sake of tracebacks that show local variables
    if isinstance(settings.get("headers"), Mapping):
        settings["headers"] = concealed(settings["headers"])
    variable = ""
    if name is None:
        variable, name = DEFAULT_MODEL_VARIABLE, Environment().first(DEFAULT_MODEL_VARIABLE)
        if not name:
            raise ConfigError(f"no model named: pass one to connect() or set {variable}; {_known()}")
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"connect() takes a name such as 'anthropic:claude-sonnet-5', not {type(name).__name__}")
    provider, model = split_name(name, variable=variable)
    if not provider:  # perhaps a wire of another package
        provider, _, model = name.partition(":")
    entry = PROVIDERS.get(provider) or _installed(provider)
    if entry is None:
        raise ConfigError(f"{variable and f'{variable}: '}unknown provider or model {name!r}; {_known()}")
    if model:
        if settings.get("model", model) != model:
            raise ConfigError(f"two models named: {model!r} in {name!r} and model={settings['model']!r}")
        settings = {**settings, "model": model}
    elif not settings.get("model") and entry.default_model:
        settings = {**settings, "model": default_model_for(provider, Environment()) or entry.default_model}
    try:
        return entry.make(**settings)
    except TypeError as error:
        if "unexpected keyword argument" in str(error):
            raise ConfigError(f"Error creating {provider.capitalize()} client: {str(error).partition('() ')[2]}") from error
        raise


def installed_wire(name: str) -> Any:
    """The wire that another package offers under this name, or None. Raises ConfigError if it cannot be loaded."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS, name=name):
        try:
            return entry.load()()
        except (ImportError, AttributeError, TypeError) as error:
            raise ConfigError(f"the wire {name!r} of {entry.value} cannot be loaded: {error}") from error
    return None


def _installed(name: str) -> _Entry | None:
    """A third-party wire as a provider. It may say its `base_url`, the `key_variables` to look at, and the `key_header`."""
    wire = installed_wire(name) if name else None
    if wire is None:
        return None

    def make(*, api_key: str | None = None, base_url: str | None = None, model: str = "", **settings: Any) -> ProviderBase:
        check_settings(api_key=api_key, base_url=base_url)
        variables: tuple[str, ...] = getattr(wire, "key_variables", ())
        key = Secret(api_key) if api_key else Environment().secret(*variables)
        looked_at = f" or set one of {', '.join(variables)}" if variables else ""
        auth = HeaderAuth(
            Credentials(api_key=key),
            key_header=getattr(wire, "key_header", "authorization"),
            missing=f"{name} API key is required: pass api_key={looked_at}",
        )
        url = base_url or getattr(wire, "base_url", "")
        if not url:
            raise ConfigError(f"Error creating {name} client: no base URL; pass base_url=")
        return HTTPProvider(
            wire, auth=auth if key or variables else NoAuth(), base_url=url, name=name, defaults=Defaults(model=model), **settings
        )

    return _Entry(make)


def _known() -> str:
    return f"known providers: {', '.join(PROVIDERS)} (as 'provider:model'), and models that begin with 'claude'"
