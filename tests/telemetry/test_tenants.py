"""Tenants: whose key a call uses, asked at each call, and what is recorded of whom."""

from __future__ import annotations

import pytest

from dragoman import Anthropic, AuthError, ConfigError, Request, RetryPolicy, Tenant, Tenants, connect
from dragoman.auth import Credentials
from dragoman.tenants import InMemoryTenants
from dragoman.testing import WireServer
from dragoman.testing.anthropic import anthropic_error, anthropic_stream
from tests.telemetry.recorder import Recorder

ACME = Tenant("acme", trace_llm_content=True)
REFUSED = anthropic_error(401, "authentication_error")


def registry() -> InMemoryTenants:
    return InMemoryTenants(
        {"acme": ACME, "globex": Tenant("globex", langfuse_enabled=False)},
        secrets={("acme", "anthropic"): "key-of-acme", ("globex", "anthropic"): Credentials(auth_token="token-of-globex")},
    )


def client(server: WireServer, tenants: Tenants, id: str) -> Anthropic:
    retry = RetryPolicy(max_attempts=1)
    secret = tenants.credentials(id)
    provider = connect("anthropic:claude-test-1", base_url=server.url, credentials=secret, telemetry=None, retry=retry)
    assert isinstance(provider, Anthropic)
    return provider


def test_each_tenant_calls_with_its_own_credentials() -> None:
    tenants = registry()
    with WireServer(anthropic_stream("Hello")) as server:
        for id in ("acme", "globex"):
            with client(server, tenants, id) as provider:
                provider.complete(Request("hi"))
        first, second = (dict(request.headers) for request in server.requests)
    assert first["x-api-key"] == "key-of-acme"
    assert second["authorization"] == "Bearer token-of-globex"


def test_a_rotated_key_is_used_by_the_next_call() -> None:
    tenants = registry()
    with WireServer(anthropic_stream("Hello")) as server, client(server, tenants, "acme") as provider:
        provider.complete(Request("hi"))
        tenants.rotate("acme", "anthropic", "new-key")
        provider.complete(Request("hi"))
        assert [dict(request.headers)["x-api-key"] for request in server.requests] == ["key-of-acme", "new-key"]


def test_a_key_that_is_refused_is_asked_for_once_more() -> None:
    class Rotating(InMemoryTenants):
        """Gives another key each time."""

        def secret(self, id: str, provider: str) -> str:
            keys.append(f"key-{len(keys) + 1}")
            return keys[-1]

    keys: list[str] = []
    with WireServer([REFUSED, anthropic_stream("Hello")]) as server, client(server, Rotating({}), "acme") as provider:
        assert provider.complete(Request("hi")).text == "Hello"
        assert [dict(request.headers)["x-api-key"] for request in server.requests] == ["key-1", "key-2"]


def test_a_key_that_is_refused_twice_fails_the_call() -> None:
    with WireServer([REFUSED, REFUSED]) as server, client(server, registry(), "acme") as provider:
        with pytest.raises(AuthError) as caught:
            provider.complete(Request("hi"))
        assert len(server.requests) == 2
    assert "key-of-acme" not in str(caught.value)


def test_the_tenants_switches_are_on_the_span(recorder: Recorder) -> None:
    tenants = registry()
    with WireServer(anthropic_stream("Hello")) as server, client(server, tenants, "globex") as provider:
        provider.telemetry = recorder.telemetry()
        provider.complete(Request("hi", trace=tenants.trace("globex", user_id="u-7", tags=["x"])))
    found = recorder.attributes
    assert found["dragoman.tenant.id"] == "globex"
    assert found["dragoman.tenant.trace_llm_content"] is False
    assert found["dragoman.tenant.langfuse_enabled"] is False
    assert found["langfuse.user.id"] == "u-7"


def test_unknown_tenants_and_missing_secrets_are_named() -> None:
    tenants = registry()
    with pytest.raises(ConfigError, match="unknown tenant 'initech'"):
        tenants.trace("initech")
    with pytest.raises(ConfigError, match="tenant 'acme' has no credentials for 'openai'"):
        tenants.credentials("acme", "openai")()


def test_no_repr_shows_a_secret() -> None:
    tenants = registry()
    assert repr(tenants) == "InMemoryTenants('acme', 'globex')"
    assert repr(tenants.credentials("acme")) == "credentials of tenant 'acme' for anthropic"


def test_what_was_given_is_copied() -> None:
    given = {("acme", "anthropic"): "key"}
    tenants = InMemoryTenants({"acme": ACME}, secrets=given)
    given["acme", "anthropic"] = "changed"
    assert tenants.secret("acme", "anthropic") == "key"
