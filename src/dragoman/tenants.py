"""Tenants: on whose behalf a call is made, with whose key, and what may be recorded of it.

Strategy. A registry answers two questions, who is this tenant and what is its secret for a provider; where the answers come from (a
table, a vault, a file that is rotated) is its own affair. Providers know nothing of it: they take a callable that is asked for
credentials at each call, and `credentials` makes that callable. Nothing is cached here, so a rotated key is used by the next call, and
a key that is refused with 401 is asked for once more before the call fails.

    tenants = InMemoryTenants({"acme": Tenant("acme", trace_llm_content=True)}, secrets={("acme", "anthropic"): key})
    provider = connect("anthropic", credentials=tenants.credentials("acme"))
    provider.complete(Request("Hello", trace=tenants.trace("acme", user_id="u-7")))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from dragoman.auth import Credentials, CredentialsSource
from dragoman.errors import ConfigError
from dragoman.request import Tenant, TraceInfo
from dragoman.value import Secret

__all__ = ["InMemoryTenants", "Tenants"]


class Tenants(ABC):
    """A registry of tenants. A subclass writes `tenant` and `secret`; both are called from any thread, and in async programs from the
    event loop, so they must be quick: keep a secret that comes over the network ready.
    """

    @abstractmethod
    def tenant(self, id: str) -> Tenant:
        """The tenant of this id. Raises ConfigError if there is none."""

    @abstractmethod
    def secret(self, id: str, provider: str) -> Credentials | str:
        """The tenant's credentials for a provider, as of now; a string is an API key. Raises ConfigError if it has none."""

    def credentials(self, id: str, provider: str = "anthropic") -> CredentialsSource:
        """What a provider takes as `credentials=`: a callable that asks `secret` at each call, and once more after a 401."""
        return _TenantSecret(self, id, provider)

    def trace(
        self,
        id: str,
        *,
        conversation_id: str = "",
        user_id: str = "",
        session_id: str = "",
        trace_name: str = "",
        tags: Sequence[str] = (),
    ) -> TraceInfo:
        """What `Request(trace=…)` takes, with the tenant filled in. Raises ConfigError if there is no such tenant."""
        return TraceInfo(
            conversation_id=conversation_id,
            user_id=user_id,
            session_id=session_id,
            trace_name=trace_name,
            tags=tags,
            tenant=self.tenant(id),
        )


class _TenantSecret:
    """One tenant's credentials for one provider. The repr names both and shows no secret."""

    __slots__ = ("_id", "_provider", "_tenants")

    def __init__(self, tenants: Tenants, id: str, provider: str) -> None:
        self._tenants = tenants
        self._id = id
        self._provider = provider

    def __call__(self) -> Credentials | str:
        return self._tenants.secret(self._id, self._provider)

    def __repr__(self) -> str:
        return f"credentials of tenant {self._id!r} for {self._provider}"


class InMemoryTenants(Tenants):
    """A registry that is a table: for tests, and for programs that read their tenants when they start.

    `secrets` is keyed by tenant id and provider name. `rotate` replaces one; the next call uses it. The repr shows ids only.
    """

    def __init__(
        self,
        tenants: Mapping[str, Tenant],
        *,
        secrets: Mapping[tuple[str, str], Credentials | str] = {},  # copied
    ) -> None:
        self._tenants = dict(tenants)
        self._secrets = {place: _concealed(secret) for place, secret in secrets.items()}

    def tenant(self, id: str) -> Tenant:
        """The tenant of this id. Raises ConfigError if there is none."""
        try:
            return self._tenants[id]
        except KeyError:
            raise ConfigError(f"unknown tenant {id!r}: the registry does not hold it") from None

    def secret(self, id: str, provider: str) -> Credentials | str:
        """The tenant's credentials for a provider. Raises ConfigError if it has none."""
        try:
            return self._secrets[id, provider]
        except KeyError:
            raise ConfigError(f"tenant {id!r} has no credentials for {provider!r}: add them to the registry") from None

    def rotate(self, id: str, provider: str, secret: Credentials | str) -> None:
        """Replace a tenant's credentials for a provider."""
        self._secrets[id, provider] = _concealed(secret)

    def __repr__(self) -> str:
        return f"InMemoryTenants({', '.join(map(repr, self._tenants))})"


def _concealed(secret: Credentials | str) -> Credentials | str:
    return Secret(secret) if isinstance(secret, str) else secret
