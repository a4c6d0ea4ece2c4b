"""From names, settings and the environment to a provider."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import dragoman
from dragoman import (
    Anthropic,
    ConfigError,
    HTTPProvider,
    InvalidInputError,
    OpenAIChat,
    OpenAIResponses,
    Request,
    RetryPolicy,
    Timeouts,
    connect,
)
from dragoman.auth import Credentials
from dragoman.local import local_provider
from dragoman.names import CHAT_HOSTS, RESPONSES_HOSTS
from dragoman.provider_settings import Defaults
from dragoman.settings import Environment
from dragoman.wire.anthropic import AnthropicWire
from dragoman.wire.anthropic.suffixes import split_model
from dragoman.wire.base import HTTPRequest

VARIABLES = (
    "DRAGOMAN_ANTHROPIC_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "DRAGOMAN_ANTHROPIC_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "DRAGOMAN_DEFAULT_MODEL",
    "DRAGOMAN_PROVIDER_MAX_RETRIES",
    "DRAGOMAN_PROVIDER_TIMEOUT",
    "DRAGOMAN_TRACE_LLM_CONTENT",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OLLAMA_BASE_URL",
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def headers(provider: Anthropic) -> dict[str, str]:
    return provider._auth.apply(provider.http_request(Request("hi", model="claude-test-1"))).headers


# ---- names


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("anthropic:claude-sonnet-5", "claude-sonnet-5"),
        ("claude-sonnet-5", "claude-sonnet-5"),
        ("claude-opus-4-6:fast", "claude-opus-4-6:fast"),
        ("anthropic:claude-opus-4-6:1m:fast", "claude-opus-4-6:1m:fast"),
        ("anthropic:anthropic.claude-v1:0", "anthropic.claude-v1:0"),
        ("anthropic", "claude-sonnet-5-5"),
    ],
)
def test_a_name_is_a_provider_and_a_model(name: str, model: str) -> None:
    provider = connect(name)
    assert isinstance(provider, Anthropic)
    assert (provider.name, provider.default_model) == ("anthropic", model)


def test_no_name_is_the_default_model_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="DRAGOMAN_DEFAULT_MODEL"):
        connect()
    monkeypatch.setenv("DRAGOMAN_DEFAULT_MODEL", "anthropic:claude-haiku-5-5")
    assert connect().default_model == "claude-haiku-5-5"
    assert connect("anthropic").default_model == "claude-haiku-5-5"
    assert Anthropic().default_model == "claude-haiku-5-5"
    assert connect("anthropic:claude-opus-5").default_model == "claude-opus-5"


def test_the_default_model_of_another_provider_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DEFAULT_MODEL", "local:smollm2")
    assert Anthropic().default_model == ""


@pytest.mark.parametrize("name", ["gpt", "nonsense:model", "", "anthropic:"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(ConfigError, match="anthropic"):
        connect(name)


def test_two_different_models_are_a_mistake() -> None:
    with pytest.raises(ConfigError, match="two models"):
        connect("anthropic:claude-a", model="claude-b")


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^Error creating Anthropic client: .*'colour'"):
        connect("anthropic", colour="red")


# ---- suffixes


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-x", ("claude-x", [], {})),
        ("claude-x:fast", ("claude-x", ["fast-mode-2026-02-01"], {"speed": "fast"})),
        ("claude-x:1m", ("claude-x", ["context-1m-2025-08-07"], {})),
        ("claude-v1:0", ("claude-v1:0", [], {})),
    ],
)
def test_suffixes_are_cut_from_the_id(model: str, expected: object) -> None:
    assert split_model(model) == expected


@pytest.mark.parametrize("model", ["claude-x:fast:1m", "claude-x:1m:fast"])
def test_both_suffixes_in_any_order_make_one_beta_header_without_duplicates(model: str) -> None:
    provider = connect(f"anthropic:{model}", api_key="k-123456", betas=["fast-mode-2026-02-01", "mine-2026-01-01"])
    request = provider.http_request(Request("hi", betas=["mine-2026-01-01"]))  # type: ignore[attr-defined]
    sent = sorted(request.headers["anthropic-beta"].split(","))
    assert sent == ["context-1m-2025-08-07", "fast-mode-2026-02-01", "mine-2026-01-01"]
    assert b'"model":"claude-x"' in request.body
    assert b'"speed":"fast"' in request.body


# ---- credentials and addresses


def test_the_key_goes_out_as_x_api_key_and_the_token_as_bearer() -> None:
    assert headers(Anthropic(api_key="k-123456"))["x-api-key"] == "k-123456"
    token = headers(Anthropic(auth_token="t-123456"))
    assert token["authorization"] == "Bearer t-123456"
    assert "x-api-key" not in token


def test_the_key_wins_over_the_token() -> None:
    both = headers(Anthropic(api_key="k-123456", auth_token="t-123456"))
    assert (both["x-api-key"], "authorization" in both) == ("k-123456", False)


def test_arguments_win_over_the_environment_and_ours_over_the_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "vendor-1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://vendor.test")
    assert headers(Anthropic())["x-api-key"] == "vendor-1"
    monkeypatch.setenv("DRAGOMAN_ANTHROPIC_API_KEY", "ours-12")
    monkeypatch.setenv("DRAGOMAN_ANTHROPIC_BASE_URL", "https://ours.test/v1/")
    assert headers(Anthropic())["x-api-key"] == "ours-12"
    assert Anthropic().base_url == "https://ours.test"
    assert headers(Anthropic(api_key="mine-12"))["x-api-key"] == "mine-12"
    assert Anthropic(base_url="https://mine.test/").base_url == "https://mine.test"


def test_a_token_of_the_environment_is_used_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-1")
    assert headers(Anthropic())["authorization"] == "Bearer token-1"


@pytest.mark.parametrize("url", ["https://api.test", "https://api.test/", "https://api.test/v1", "https://api.test/v1/"])
def test_a_base_url_may_end_in_a_slash_or_v1(url: str) -> None:
    assert Anthropic(api_key="k", base_url=url).http_request(Request("hi", model="claude-x")).url == "https://api.test/v1/messages"


@pytest.mark.parametrize("url", ["ftp://x.test", "api.test", "https://", "https://user:pass@api.test"])
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        Anthropic(api_key="k", base_url=url)


def test_plain_http_leaves_the_machine_only_if_allowed() -> None:
    for host in ("localhost", "127.0.0.1", "127.8.8.8", "[::1]"):
        assert Anthropic(api_key="k", base_url=f"http://{host}:8080").base_url
    with pytest.raises(ConfigError, match="allow_http=True"):
        Anthropic(api_key="k", base_url="http://api.test")
    assert Anthropic(api_key="k", base_url="http://api.test", allow_http=True).base_url == "http://api.test"


def test_credentials_come_from_one_place() -> None:
    with pytest.raises(ConfigError, match="not both"):
        Anthropic(api_key="k", credentials=lambda: "k2")


def test_a_credentials_source_may_give_a_token() -> None:
    from dragoman.auth import Credentials

    assert headers(Anthropic(credentials=lambda: Credentials(auth_token="t-1")))["authorization"] == "Bearer t-1"
    assert repr(Credentials(auth_token="t-1")) == "Credentials(auth_token)"
    with pytest.raises(ConfigError, match=r"^Anthropic API key is required"):
        headers(Anthropic(credentials=lambda: ""))


# ---- OpenAI's protocols and their hosts


def sent(provider: object, model: str = "m-1") -> HTTPRequest:
    assert isinstance(provider, HTTPProvider)
    return provider._auth.apply(provider.http_request(Request("hi", model=model)))


@pytest.mark.parametrize("name", CHAT_HOSTS)
def test_every_chat_host_has_a_row_and_an_address_or_says_how_to_give_one(name: str) -> None:
    settings = {"base_url": "https://res.test/openai/v1"} if name == "azure" else {}
    request = sent(connect(f"{name}:m-1", api_key="k-123456", **settings))
    assert request.url.endswith("/chat/completions")
    assert request.headers["api-key" if name == "azure" else "authorization"].removeprefix("Bearer ") == "k-123456"


@pytest.mark.parametrize("host", RESPONSES_HOSTS)
def test_every_responses_host_speaks_responses(host: str) -> None:
    settings = {"base_url": "https://res.test/openai/v1"} if host == "azure" else {}
    assert sent(connect(f"{host}-responses:m-1", api_key="k-123456", **settings)).url.endswith("/responses")


def test_an_azure_endpoint_variable_names_the_resource_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="AZURE_OPENAI_ENDPOINT"):
        connect("azure:m-1", api_key="k")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://res.openai.azure.com/")
    assert sent(connect("azure:m-1", api_key="k-123456")).url == "https://res.openai.azure.com/openai/v1/chat/completions"


def test_a_local_server_needs_no_key_and_a_vendor_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "authorization" not in sent(connect("ollama:m-1")).headers
    for name in ("openai", "openai-responses"):
        with pytest.raises(ConfigError, match=r"^OpenAI API key is required.*OPENAI_API_KEY"):
            sent(connect(f"{name}:m-1"))


def test_a_base_url_without_a_dialect_is_a_generic_server() -> None:
    provider = OpenAIChat(base_url="http://localhost:9/v1")
    assert (sent(provider).url, provider.name) == ("http://localhost:9/v1/chat/completions", "openai-compatible")


@pytest.mark.parametrize("make", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://eu.api.openai.com/v1", "openai"),
        ("https://api.groq.com/openai/v1/", "groq"),
        ("https://res.openai.azure.com/openai/v1", "azure"),
        ("https://api.openai.com.evil.test/v1", "openai-compatible"),
        ("https://evilapi.openai.com/v1", "openai-compatible"),
        ("http://localhost:11434/v1", "openai-compatible"),
    ],
)
def test_a_base_url_says_whose_server_it_is_and_nobody_else_gets_the_key(
    make: type[HTTPProvider], url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "GROQ_API_KEY", "AZURE_OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "k-123456")
    provider = make(base_url=url)  # type: ignore[call-arg]
    assert provider.name == name
    assert any("k-123456" in value for value in sent(provider).headers.values()) == (name != "openai-compatible")


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://generativelanguage.googleapis.com/v1beta/openai", "google"),
        ("https://org-account.snowflakecomputing.com/api/v2/cortex/v1", "snowflake"),
    ],
)
def test_a_vendor_without_a_name_for_connect_is_known_by_its_host_and_gets_the_key_that_is_passed(url: str, dialect: str) -> None:
    provider = OpenAIChat("k-123456", base_url=url)
    assert repr(provider.wire) == f"OpenAIChatWire({dialect!r})"
    assert sent(provider).headers["authorization"] == "Bearer k-123456"


@pytest.mark.parametrize(
    ("name", "variable"), [("ollama", "OLLAMA_BASE_URL"), ("lmstudio", "LM_STUDIO_API_BASE"), ("vllm", "VLLM_BASE_URL")]
)
@pytest.mark.parametrize("url", ["http://localhost:9", "http://localhost:9/", "http://localhost:9/v1"])
def test_the_variable_of_a_local_server_may_name_the_host_only(name: str, variable: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, url)
    assert sent(connect(f"{name}:m-1")).url == "http://localhost:9/v1/chat/completions"


def test_every_host_speaks_the_dialect_of_its_name() -> None:
    from dragoman.wire.openai_chat import CONNECT

    assert {name: row.dialect for name, row in CONNECT.items()} == {name: name for name in CHAT_HOSTS}


def test_silence_is_no_sign_of_death_where_nothing_is_sent_while_thinking() -> None:
    assert OpenAIChat(api_key="k").timeouts.idle == OpenAIResponses(api_key="k").timeouts.idle == 300


def test_a_wire_of_another_package_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wire(AnthropicWire):
        base_url = "https://other.test"
        key_variables = ("OTHER_KEY",)

    class Entry:
        value = "other:Wire"

        def __init__(self, load: object) -> None:
            self.load = lambda: load

    found: dict[str, list[Entry]] = {"other": [Entry(Wire)], "broken": [Entry(None)]}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: found.get(name, []) if group == "dragoman.wires" else [])
    request = sent(connect("other:m-1", api_key="k-123456"))
    assert (request.url, request.headers["authorization"]) == ("https://other.test/v1/messages", "Bearer k-123456")
    with pytest.raises(ConfigError, match=r"^other API key is required.*OTHER_KEY"):
        sent(connect("other:m-1"))
    with pytest.raises(ConfigError, match=r"^base_url must be a string, not int"):
        connect("other:m-1", base_url=5)
    monkeypatch.setenv("OTHER_KEY", "k-654321")
    assert sent(connect("other:m-1")).headers["authorization"] == "Bearer k-654321"
    monkeypatch.setenv("OTHER_KEY", "one\ntwo")
    with pytest.raises(ConfigError, match=r"^OTHER_KEY contains a line break"):
        connect("other:m-1")
    with pytest.raises(ConfigError, match=r"wire 'broken' of other:Wire cannot be loaded"):
        connect("broken:m")


# ---- other settings of the environment


def test_retries_and_timeouts_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_PROVIDER_MAX_RETRIES", "0")
    monkeypatch.setenv("DRAGOMAN_PROVIDER_TIMEOUT", "1.5")
    provider = Anthropic()
    assert provider.retry == RetryPolicy(max_attempts=1)
    assert provider.timeouts == Timeouts(first_byte=1.5, idle=1.5)
    assert Anthropic(retry=RetryPolicy(max_attempts=7)).retry.max_attempts == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DRAGOMAN_PROVIDER_MAX_RETRIES", "-1"),
        ("DRAGOMAN_PROVIDER_MAX_RETRIES", "two"),
        ("DRAGOMAN_PROVIDER_TIMEOUT", "0"),
        ("DRAGOMAN_PROVIDER_TIMEOUT", "nan"),
        ("DRAGOMAN_PROVIDER_TIMEOUT", "1e12"),
        ("DRAGOMAN_PROVIDER_TIMEOUT", "soon"),
        ("DRAGOMAN_TRACE_LLM_CONTENT", "perhaps"),
        ("DRAGOMAN_ANTHROPIC_BASE_URL", "nowhere"),
    ],
)
def test_a_bad_value_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name):
        Anthropic()


@pytest.mark.parametrize("name", ["openai", "openai-responses", "ollama", "local", "anthropic"])
def test_a_flag_that_is_neither_true_nor_false_is_named_by_every_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_TRACE_LLM_CONTENT", "maybe")
    with pytest.raises(ConfigError, match="DRAGOMAN_TRACE_LLM_CONTENT must be true or false, not 'maybe'"):
        connect(name)


@pytest.mark.parametrize(
    ("name", "variable", "value", "said"),
    [
        ("anthropic", "ANTHROPIC_BASE_URL", "api.x", r"must be an http\(s\) URL with a host, not 'api.x'"),
        ("anthropic", "ANTHROPIC_BASE_URL", "http://api.example.com", "'http://api.example.com' is plain http"),
        ("anthropic", "ANTHROPIC_BASE_URL", "https://me:pw@api.example.com", "must not contain a user name"),
        ("anthropic", "ANTHROPIC_BASE_URL", "https://[::1", "must be an http"),
        ("openai", "OPENAI_BASE_URL", "https://api.example.com?key=x", "must not contain a query"),
        ("openai-responses", "OPENAI_BASE_URL", "api.x", "must be an http"),
        ("ollama", "OLLAMA_BASE_URL", "localhost:11434", "must be an http"),
        ("anthropic", "ANTHROPIC_API_KEY", "one\ntwo", "contains a line break"),
        ("anthropic", "ANTHROPIC_AUTH_TOKEN", "ключ", "contains a line break or a character that no header can carry"),
        ("openai", "OPENAI_API_KEY", "one\ntwo", "contains a line break"),
        ("anthropic", "DRAGOMAN_DEFAULT_MODEL", "anthropic:", "'anthropic:' names no model"),
        (None, "DRAGOMAN_DEFAULT_MODEL", "anthropic:", "'anthropic:' names no model"),
        (None, "DRAGOMAN_DEFAULT_MODEL", "nope", "unknown provider or model 'nope'"),
    ],
)
def test_whatever_is_wrong_with_a_value_its_variable_is_named(
    name: str | None, variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"^{variable}:? {said}"):
        connect(name)


# ---- settings of another type


CHAT: dict[str, object] = {"model": "m-1", "base_url": "https://api.test/v1"}


@pytest.mark.parametrize("make", [Anthropic, partial(OpenAIChat, **CHAT)])  # type: ignore[arg-type]
@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("stop_sequences", "STOP", "a list of strings, not str"),
        ("stop_sequences", b"STOP", "a list of strings, not bytes"),
        ("stop_sequences", ["STOP", 5], "a list of strings, not list of int"),
        ("stop_sequences", {"STOP"}, "a list of strings, not set"),
        ("base_url", 5, "a string, not int"),
        ("headers", [("x-a", "1")], "a dict of strings, not list of tuple"),
        ("headers", {"x-a": 1}, "a dict of strings, not dict of int"),
        ("headers", None, "a dict of strings, not NoneType"),
        ("extra_body", "speed=fast", "a dict with strings as keys, not str"),
        ("extra_body", {1: "x"}, "a dict with strings as keys, not dict of int"),
        ("max_tokens", "100", "a whole number of tokens, not str"),
        ("max_tokens", 5.5, "a whole number of tokens, not float"),
        ("max_tokens", True, "a whole number of tokens, not bool"),
        ("max_tokens", -5, r"1 or more \(0 only fills the prompt cache\), not -5"),
        ("temperature", "hot", "a number, not str"),
        ("top_p", False, "a number, not bool"),
        ("top_k", 1.5, "a whole number, not float"),
        ("credentials", "sk-secret", "a function that gives a key or Credentials when it is called, not str"),
        ("credentials", Credentials(api_key="sk-secret"), "a function that gives a key or Credentials when it is called, not Credentials"),
        ("allow_http", "no", "True or False, not str"),
        ("model", 5, "a string, not int"),
    ],
)
def test_a_setting_of_another_type_is_named_when_the_provider_is_made(make: Any, setting: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{setting} must be {said}$"):
        make(**{setting: value})


@pytest.mark.parametrize(
    ("make", "setting", "value", "said"),
    [
        (Anthropic, "betas", "context-1m-2025-08-07", "a list of strings, not str"),
        (Anthropic, "api_version", 20230601, "a string, not int"),
        (Anthropic, "api_version", None, "a string, not NoneType"),
        (Anthropic, "cache", "always", "one of explicit, auto, provider, off, not str"),
        (Anthropic, "name", None, "a string, not NoneType"),
        (OpenAIResponses, "max_tokens", 5.5, "a whole number of tokens, not float"),
        (OpenAIResponses, "max_tokens", -1, r"1 or more .*, not -1"),
        (OpenAIResponses, "provider", 5, "a string, not int"),
        (Defaults, "betas", "context-1m-2025-08-07", "a list of strings, not str"),
        (Defaults, "headers", {"x-a": 1}, "a dict of strings, not dict of int"),
        (local_provider, "api_key", 5, "a string, not int"),
        (local_provider, "system", None, "a string, not NoneType"),
        (local_provider, "threads", "2", "a whole number, not str"),
        (local_provider, "fetch", "no", "True or False, not str"),
        (local_provider, "model", 5, "'smollm2-135m-instruct' or the path of a GGUF file, not int"),
    ],
)
def test_so_is_one_that_only_some_providers_have(make: Any, setting: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^{setting} must be {said}$"):
        make(**{setting: value})


def test_what_is_no_name_is_said() -> None:
    with pytest.raises(ConfigError, match="connect\\(\\) takes a name such as 'anthropic:claude-sonnet-5', not int"):
        connect(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [OpenAIChat, OpenAIResponses])
def test_an_address_that_cannot_be_read_is_a_bad_setting(make: Any) -> None:
    with pytest.raises(ConfigError, match=r"^base_url must be an http\(s\) URL with a host: Invalid IPv6 URL"):
        make(base_url="https://[::1", model="m-1")


def test_max_tokens_of_the_provider_are_at_most_those_that_the_model_can_write() -> None:
    provider = Anthropic("k", max_tokens=10**9)
    assert b'"max_tokens":64000' in provider.http_request(Request("hi", model="claude-haiku-4-5")).body
    with pytest.raises(InvalidInputError, match="max_tokens"):
        provider.http_request(Request("hi", model="claude-haiku-4-5", max_tokens=10**9))


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("1", True), ("Yes", True), ("off", False), ("", False)])
def test_flags_are_read(value: str, expected: bool) -> None:
    assert Environment({"F": value}).flag("F") is expected


# ---- defaults of the provider


def test_filling_in_changes_neither_the_request_nor_the_defaults() -> None:
    defaults = Defaults(model="m", max_tokens=5, cache="auto", stop_sequences=["s"], betas=["b"], headers={"h": "1"}, extra_body={"k": 1})
    request = Request("hi", betas=["c"], extra_headers={"x": "2"}, extra_body={"y": 2})
    before = request.replace()
    filled = defaults.fill(request)
    assert request == before
    assert filled == request.replace(
        model="m",
        max_tokens=5,
        cache="auto",
        stop_sequences=["s"],
        betas=["b", "c"],
        extra_headers={"h": "1", "x": "2"},
        extra_body={"k": 1, "y": 2},
    )
    filled.extra_body["z"] = 3
    assert isinstance(filled.stop_sequences, list)
    filled.stop_sequences.append("t")
    assert (request, defaults.extra_body, list(defaults.stop_sequences)) == (before, {"k": 1}, ["s"])


def test_a_providers_defaults_fill_in_what_a_request_leaves_out() -> None:
    provider = Anthropic(
        api_key="k", model="claude-test-1", max_tokens=77, temperature=0.5, stop_sequences=["x"], headers={"x-a": "1"}, extra_body={"b": 1}
    )
    sent = provider.http_request(Request("hi"))
    for part in (b'"max_tokens":77', b'"temperature":0.5', b'"stop_sequences":["x"]', b'"b":1'):
        assert part in sent.body
    assert sent.headers["x-a"] == "1"
    own = provider.http_request(Request("hi", max_tokens=5, temperature=0.1, stop_sequences=["y"], extra_body={"b": 2}))
    for part in (b'"max_tokens":5', b'"temperature":0.1', b'"stop_sequences":["y"]', b'"b":2'):
        assert part in own.body


def test_validation_is_on_or_off() -> None:
    with pytest.raises(ConfigError, match="validate"):
        Anthropic(validate="maybe")  # type: ignore[arg-type]


def test_the_public_function_is_not_hidden_by_the_file_of_its_name() -> None:
    import importlib

    module = importlib.import_module("dragoman.connect")
    assert dragoman.connect is module.connect


def test_lazy_names_are_listed_and_unknown_ones_are_attribute_errors() -> None:
    assert {"connect", "Anthropic", "Timeouts"} <= set(dir(dragoman))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        dragoman.nonsense  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("model", ["claude-x:fast:1m", "claude-x:1m:fast"])
def test_the_wire_itself_knows_the_suffixes(model: str) -> None:
    for request in (
        AnthropicWire().encode(Request("hi", model=model), stream=True),
        AnthropicWire().encode_count(Request("hi", model=model)),
    ):
        assert b'"model":"claude-x"' in request.body
        assert set(request.headers["anthropic-beta"].split(",")) >= {"fast-mode-2026-02-01", "context-1m-2025-08-07"}


def test_keys_are_stripped_and_checked() -> None:
    assert headers(Anthropic(api_key=" k-123456\n"))["x-api-key"] == "k-123456"
    with pytest.raises(ConfigError, match="no header can carry"):
        headers(Anthropic(api_key="k\x00"))
