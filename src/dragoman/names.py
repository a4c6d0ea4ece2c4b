"""The names of providers, and how a name splits into provider and model."""

from __future__ import annotations

from dragoman.errors import ConfigError
from dragoman.settings import Environment

__all__ = ["CHAT_HOSTS", "DEFAULT_MODEL_VARIABLE", "NAMES", "RESPONSES_HOSTS", "default_model_for", "split_name"]

DEFAULT_MODEL_VARIABLE = "DRAGOMAN_DEFAULT_MODEL"
"""The environment's default: a name as `connect` takes it."""

CHAT_HOSTS = (
    "openai", "azure", "openrouter", "vercel", "groq", "mistral", "deepseek", "xai", "zai", "moonshot", "together", "fireworks",
    "perplexity", "cerebras", "ollama", "vllm", "llamacpp", "lmstudio",
)  # fmt: skip
"""Hosts of the Chat Completions protocol; their addresses and variables are in `dragoman.wire.openai_chat.CONNECT`."""

RESPONSES_HOSTS = ("openai", "azure", "openrouter", "xai", "groq")
"""Hosts of the Responses protocol, called `<host>-responses`."""

NAMES = ("anthropic", "local", *CHAT_HOSTS, *(f"{host}-responses" for host in RESPONSES_HOSTS))
"""Every name that comes with dragoman."""


def split_name(name: str, *, variable: str = "") -> tuple[str, str]:
    """Provider and model of a name; the provider is `""` if none can be told.

    The first colon separates only behind a known provider; a bare `claude…` is Anthropic's. Raises ConfigError for `provider:`, naming
    the variable that it comes from.
    """
    before, colon, after = name.partition(":")
    if before in NAMES:
        if colon and not after:
            raise ConfigError(f"{variable and f'{variable}: '}{name!r} names no model after the colon")
        return before, after
    return ("anthropic" if name.startswith("claude") else ""), name


def default_model_for(provider: str, environment: Environment) -> str:
    """The model of `DRAGOMAN_DEFAULT_MODEL` if it is one of this provider, else `""`. Raises ConfigError for `provider:`."""
    named, model = split_name(environment.first(DEFAULT_MODEL_VARIABLE), variable=DEFAULT_MODEL_VARIABLE)
    return model if named == provider else ""
