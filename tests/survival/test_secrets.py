"""Keys and prompts stay where they belong: in the request, and nowhere else, whatever goes wrong."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import socket
import struct
import traceback
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any, NamedTuple

import msgspec
import pytest
from rich.console import Console
from rich.pretty import pretty_repr
from rich.traceback import Traceback

import dragoman
from dragoman import (
    Anthropic,
    ConfigError,
    ModelNotFoundError,
    OpenAIChat,
    OpenAIResponses,
    ProviderError,
    Request,
    RetryPolicy,
    StorageError,
    Tenant,
    Timing,
    Usage,
    to_json,
    tool_result,
    user,
)
from dragoman.auth import Credentials, HeaderAuth
from dragoman.errors import DragomanError
from dragoman.hooks import CallInfo, Unfinished
from dragoman.provider import Defaults
from dragoman.storage import to_builtins
from dragoman.tenants import InMemoryTenants
from dragoman.testing import SCENARIOS, Answer, Scenario, WireServer, anthropic_error, anthropic_stream, open_scenario
from dragoman.testing.certificate import Authority
from dragoman.testing.scenarios import TIMEOUTS
from dragoman.transport import Timeouts
from dragoman.transport.httpx2 import AsyncHTTPX2Transport, HTTPX2Transport
from dragoman.wire.base import HTTPRequest
from tests.shared import case
from tests.transport.peers import http2_server, listening

from .calls import ASK, KEY, PROMPT, TOKEN, connect

pytestmark = pytest.mark.usefixtures("each_transport")

WAYS = pytest.mark.parametrize("way", ["sync", "async"])
FAST = RetryPolicy(base=0.001)
GATEWAY = "gateway-canary-5556667778"


class Address(NamedTuple):
    """Where something listens."""

    url: str


def complete(provider: Anthropic, way: str, request: Request = ASK) -> None:
    """One call; its error, if any, is raised."""
    if way == "sync":
        with provider:
            provider.complete(request)
        return

    async def main() -> None:
        async with provider:
            await provider.acomplete(request)

    asyncio.run(main())


def chain(error: BaseException | None) -> list[BaseException]:
    """An error and everything that stands behind it."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def texts_of(error: BaseException) -> str:
    """Everything of an error that ends up in a log or a tracker."""
    everything = ["".join(traceback.format_exception(error))]
    for link in chain(error):
        everything += [str(link), repr(link), repr(link.args), *getattr(link, "__notes__", [])]
    if isinstance(error, DragomanError):
        everything += [repr({**error.__dict__, "partial": None}), repr(pickle.dumps(error)), repr(pickle.loads(pickle.dumps(error)))]
    return "\n".join(everything)


def local_variables_of(error: BaseException) -> str:
    """What tracebacks show that print the local variables of every frame: the standard library's, and rich's, which goes round a
    Struct's repr.
    """
    plain = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    text = StringIO()
    frames = Traceback.from_exception(
        type(error), error, error.__traceback__, show_locals=True, locals_max_length=1000, locals_max_string=10**6, suppress=[pytest]
    )
    Console(file=text, width=200).print(frames)
    return plain + text.getvalue()


# ---- every bad day


@WAYS
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_no_bad_day_brings_a_key_or_a_prompt_to_light(scenario: Scenario, way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    texts = ""
    with open_scenario(scenario) as server:
        timeouts = Timeouts(**{**TIMEOUTS, **scenario.timeouts})
        provider = connect(server, timeouts=timeouts, retry=FAST, validate="off", headers={"x-gateway-token": GATEWAY})
        try:
            complete(provider, way)
        except ProviderError as error:
            texts = texts_of(error)
            shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
            assert KEY not in shown
    for secret in (KEY, GATEWAY, PROMPT):
        assert secret not in texts
        assert secret not in caplog.text


# ---- what a server says back


@WAYS
@pytest.mark.parametrize("secret", [KEY, TOKEN, GATEWAY])
@pytest.mark.parametrize(
    "saying",
    [
        "the key {} is wrong",
        "the key {} is wrong" + " and that is a pity" * 50,
        "x" * 285 + " {} stands where the text is cut",
        'authorization: Bearer {}", "x-api-key: {}',
    ],
)
def test_a_server_that_repeats_a_credential_does_not_make_us_repeat_it(saying: str, secret: str, way: str) -> None:
    said = saying.replace("{}", secret)
    keys = {"api_key": None, "auth_token": TOKEN} if secret == TOKEN else {}
    with WireServer(anthropic_error(400, "invalid_request_error", said)) as server:
        with pytest.raises(ProviderError) as raised:
            complete(connect(server, **keys, headers={"x-gateway-token": GATEWAY}), way)
    texts = texts_of(raised.value)
    assert secret not in texts
    assert secret[: len(secret) // 2] not in texts
    assert "[key removed]" in texts


@WAYS
def test_a_body_cut_in_the_middle_of_a_key_does_not_show_its_beginning(way: str) -> None:
    body = b"<" + b"x" * (64 * 1024 - 21) + TOKEN.encode() * 3
    with WireServer(Answer(status=502, headers=[("content-type", "text/html")], body=body)) as server:
        with pytest.raises(ProviderError) as raised:
            complete(connect(server, api_key=None, auth_token=TOKEN, retry=RetryPolicy(max_attempts=1)), way)
    assert TOKEN[:10] not in raised.value.body
    assert len(raised.value.body) <= 64 * 1024


@pytest.mark.parametrize("vendor", [Anthropic, OpenAIChat, OpenAIResponses])
@WAYS
def test_the_key_is_in_no_text_and_in_no_url(vendor: Callable[..., Any], way: str, caplog: pytest.LogCaptureFixture) -> None:
    """BerriAI/litellm#24902."""
    caplog.set_level(logging.DEBUG)
    key = "AIzaTESTKEY123"
    found = case("BerriAI/litellm#24902")["input"]
    head, body = found.split("\r\n\r\n")
    with WireServer(Answer(status=int(head.split()[1]), headers=[("content-type", "application/json")], body=body)) as server:
        provider = vendor(api_key=key, base_url=server.url, model="m", telemetry=None)
        with pytest.raises(ProviderError) as raised:
            complete(provider, way)
        [sent] = server.requests
    assert key not in texts_of(raised.value) + repr(provider) + caplog.text
    assert "key" not in sent.path
    assert key in repr([value for _, value in sent.headers])


# ---- logs


@WAYS
def test_no_logger_of_any_library_says_the_key_or_the_prompt_at_debug(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    request = Request([PROMPT], system=PROMPT, extra_headers={"x-gateway-token": GATEWAY}, extra_body={"x": PROMPT})
    with WireServer([anthropic_error(529, "overloaded_error", PROMPT), anthropic_stream(PROMPT)]) as server:
        complete(connect(server, retry=FAST), way, request)
    assert {record.name for record in caplog.records} >= {"dragoman"}
    assert "attempt 2" in caplog.text
    for secret in (KEY, GATEWAY, PROMPT):
        assert secret not in caplog.text
        assert not any(secret in repr(record.args) for record in caplog.records)


@WAYS
def test_http2_does_not_say_the_key_at_debug_either(way: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    authority = Authority()
    options: dict[str, Any] = {"http2": True, "verify": authority.client_context(), "trust_env": False}
    with http2_server(authority.server_context()) as (port, _):
        provider = Anthropic(
            api_key=KEY,
            base_url=f"https://127.0.0.1:{port}",
            model="m",
            telemetry=None,
            transport=HTTPX2Transport(**options),
            async_transport=AsyncHTTPX2Transport(**options),
        )
        with pytest.raises(ProviderError):
            complete(provider, way)
    assert "/v1/messages" in caplog.text
    assert KEY not in caplog.text


# ---- tracebacks that show local variables


@WAYS
@pytest.mark.parametrize("name", ["closed-before-answer", "cut-after-head"])
def test_no_traceback_with_local_variables_shows_a_key(name: str, way: str) -> None:
    with open_scenario(SCENARIOS[name]) as server:
        timeouts = Timeouts(**{**TIMEOUTS, **SCENARIOS[name].timeouts})
        provider = connect(server, timeouts=timeouts, retry=RetryPolicy(max_attempts=1), headers={"x-note": "plain"})
        with pytest.raises(ProviderError) as raised:
            complete(provider, way)
    assert KEY not in local_variables_of(raised.value)


@WAYS
def test_nor_does_one_of_a_request_that_could_not_be_sent_whole(way: str) -> None:
    def reset(peer: socket.socket) -> None:
        peer.recv(1000)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with listening(reset) as port:
        provider = connect(Address(f"http://127.0.0.1:{port}"), retry=RetryPolicy(max_attempts=1))
        with pytest.raises(ProviderError) as raised:
            complete(provider, way, Request("x" * 20_000_000))
    shown = "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())
    assert KEY not in shown


@WAYS
def test_nor_does_one_of_a_header_that_cannot_be_sent(way: str) -> None:
    with WireServer() as server:
        with pytest.raises(DragomanError) as raised:
            complete(connect(server, headers={"content-length": "5"}, retry=RetryPolicy(max_attempts=1)), way)
    assert KEY not in "".join(traceback.TracebackException.from_exception(raised.value, capture_locals=True).format())


@pytest.mark.parametrize("settings", [{"base_url": "http://api.example.com"}, {"validate": "maybe"}, {"credentials": str}], ids=repr)
@pytest.mark.parametrize("make", [Anthropic, OpenAIChat, OpenAIResponses, partial(dragoman.connect, "anthropic:m")], ids=repr)
def test_nor_does_one_of_a_provider_that_could_not_be_made(make: Callable[..., Any], settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        make(api_key=KEY, headers={"x-gateway-token": GATEWAY}, **settings)
    error = raised.value
    assert error.__traceback__ is not None
    shown = local_variables_of(error.with_traceback(error.__traceback__.tb_next))  # the first frame is ours, and has the key
    assert KEY not in shown
    assert GATEWAY not in shown


# ---- values


def test_reprs_say_what_a_thing_is_and_nothing_it_holds() -> None:
    with WireServer(anthropic_stream("ANSWER-CANARY")) as server:
        provider = connect(server, headers={"x-gateway-token": GATEWAY}, extra_body={"note": PROMPT})
        request = provider.http_request(ASK)
        assert PROMPT.encode() in request.body
        with provider.stream(ASK) as stream:
            source: Any = stream._source  # pyright: ignore[reportPrivateUsage]
            call = source._call
            list(stream)
            signed = HeaderAuth(Credentials(api_key=KEY)).apply(request)
            info = CallInfo(provider="p", model="m", request=ASK)
            shown = [provider, provider.defaults, stream, source, call, request, signed, info, Credentials(auth_token=TOKEN)]
            shown += [HeaderAuth(Credentials(api_key=KEY)), server, provider.transport, provider.async_transport]
        provider.close()
    texts = "\n".join(map(repr, shown))
    assert signed.headers["x-api-key"] == KEY
    for secret in (KEY, TOKEN, GATEWAY, PROMPT, "ANSWER-CANARY"):
        assert secret not in texts


def test_a_header_of_the_provider_whose_name_speaks_of_a_secret_is_one() -> None:
    provider = Anthropic(api_key=KEY, model="m", headers={"X-Gateway-Token": GATEWAY, "x-team": "blue"})
    prepared = provider.prepare(Request("Hello"))
    assert GATEWAY not in repr(prepared) + repr(provider.http_request(Request("Hello")).headers)
    assert prepared.extra_headers == {"X-Gateway-Token": GATEWAY, "x-team": "blue"}
    assert "blue" in repr(prepared)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(provider.defaults)


def test_rich_shows_no_more_of_a_thing_than_its_repr() -> None:
    provider = Anthropic(api_key=KEY, headers={"x-gateway-token": GATEWAY}, model="m", extra_body={"note": PROMPT})
    signed = HeaderAuth(Credentials(api_key=KEY)).apply(provider.http_request(Request("Hello")))
    nothing_yet = Unfinished(partial=user(PROMPT), usage=Usage(), timing=Timing(started=0))
    info = CallInfo(provider="p", model="m", request=ASK)
    things = [signed, Credentials(api_key=KEY), HeaderAuth(Credentials(api_key=KEY)), provider, provider.defaults, info, nothing_yet]
    texts = pretty_repr(things) + pretty_repr(things, max_string=5) + pretty_repr(signed.headers, max_string=5)
    assert "HTTPRequest(" in texts
    for secret in (KEY[:5], GATEWAY, PROMPT):
        assert secret not in texts


WRITERS: list[Callable[[Any], Any]] = [to_json, to_builtins, msgspec.json.encode, msgspec.msgpack.encode, msgspec.to_builtins, pickle.dumps]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("credentials", [Credentials(api_key=KEY), Credentials(auth_token=TOKEN)])
def test_nothing_writes_credentials_or_a_request_that_has_them(credentials: Credentials, write: Callable[[Any], Any]) -> None:
    signed = HeaderAuth(credentials).apply(Anthropic(model="m").http_request(ASK))
    for thing in (credentials, {"settings": [credentials]}, signed, copy.copy(signed), copy.deepcopy(signed), signed.headers):
        with pytest.raises((TypeError, StorageError)) as raised:
            write(thing)
        assert KEY not in texts_of(raised.value)
        assert TOKEN not in texts_of(raised.value)


def test_the_refusal_to_store_a_key_says_where_it_stands_and_what_to_do() -> None:
    with pytest.raises(StorageError, match=r"read the key anew, at \$\[0\]\.api_key") as raised:
        to_json([Credentials(api_key=KEY)])
    assert raised.value.path == "$[0].api_key"


def test_a_request_without_credentials_is_pickled_and_a_signed_one_copied() -> None:
    request = Anthropic(model="m").http_request(ASK)
    assert pickle.loads(pickle.dumps(request)) == request
    signed = HeaderAuth(Credentials(api_key=KEY)).apply(request)
    assert copy.deepcopy(signed).headers["x-api-key"] == KEY


def test_a_registry_of_tenants_is_not_pickled() -> None:
    tenants = InMemoryTenants({"acme": Tenant("acme")}, secrets={("acme", "anthropic"): KEY})
    tenants.rotate("acme", "openai", KEY)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(tenants)
    assert tenants.secret("acme", "openai") == KEY


def test_a_provider_that_is_half_made_has_a_repr() -> None:
    assert repr(Anthropic.__new__(Anthropic)) == "<Anthropic   model=''>"


@pytest.mark.parametrize("given", [None, KEY.encode(), 5])
def test_a_callable_that_gives_no_credentials_is_named_as_the_fault(given: Any) -> None:
    provider = Anthropic(credentials=lambda: given, model="m")
    with pytest.raises(ConfigError, match=f"credentials= must give a string or Credentials.*{type(given).__name__}"):
        provider.complete(ASK)


@pytest.mark.parametrize("vendor", [Anthropic, OpenAIChat, OpenAIResponses])
def test_a_key_that_is_no_string_is_a_config_error(vendor: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="an API key or token is a string, not bytes"):
        vendor(api_key=KEY.encode())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "thing",
    [Anthropic(api_key=KEY), OpenAIChat(api_key=KEY), OpenAIResponses(api_key=KEY), Credentials(api_key=KEY), HeaderAuth(Credentials())],
    ids=repr,
)
def test_what_holds_a_key_is_not_pickled(thing: object, protocol: int) -> None:
    with pytest.raises(TypeError, match=r"not (copied or )?pickled"):
        pickle.dumps(thing, protocol)


def test_what_holds_no_key_is() -> None:
    for value in (Timeouts(idle=1), RetryPolicy(max_attempts=9), Defaults(model="m", betas=["b"])):
        assert pickle.loads(pickle.dumps(value)) == value


def test_credentials_may_be_copied_within_the_process() -> None:
    credentials = Credentials(api_key=KEY)
    assert copy.deepcopy({"settings": [copy.copy(credentials)]}) == {"settings": [credentials]}


def test_a_copy_of_a_provider_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match="Anthropic holds a key and connections"):
        copy.deepcopy(Anthropic(api_key=KEY))


# ---- where a key may travel


@WAYS
def test_a_redirect_is_not_followed_and_the_other_host_gets_nothing(way: str) -> None:
    with WireServer(anthropic_stream("from elsewhere")) as elsewhere:
        there = Answer(status=307, headers=[("location", f"{elsewhere.url}/v1/messages")])
        with WireServer(there) as server:
            with pytest.raises(ProviderError):
                complete(connect(server), way)
            assert len(server.requests) == 1
        assert elsewhere.connections == []


@pytest.mark.parametrize(
    "url",
    ["http://localhost", "http://LOCALHOST:8080", "http://127.0.0.1/v1", "http://127.9.8.7", "http://[::1]:9", "https://api.example.com"],
)
def test_these_hosts_may_be_called(url: str) -> None:
    assert Anthropic(api_key=KEY, base_url=url).base_url


PLAIN = [
    "http://api.example.com",
    "http://10.0.0.1",
    "http://0.0.0.0:8080",
    "http://127.example.com",
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "http://127.1",
    "http://[2001:db8::1]",
]


@pytest.mark.parametrize("vendor", [Anthropic, OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize("url", PLAIN)
def test_plain_http_to_another_host_is_refused_unless_it_is_wanted(url: str, vendor: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="is plain http"):
        vendor(api_key=KEY, base_url=url)
    assert vendor(api_key=KEY, base_url=url, allow_http=True)


@pytest.mark.parametrize(
    "url",
    [
        f"https://api.example.com/?key={KEY}",
        f"https://api.example.com/#{KEY}",
        f"https://me:{KEY}@api.example.com",
        f"https://{KEY}@api.example.com",
        f"https://:{KEY}@api.example.com",
        "https://api.example.com:port",
        "https://api.example.com:99999",
        "http://[::1",
        "https://",
        "ftp://api.example.com",
    ],
)
def test_a_base_url_that_cannot_be_used_is_a_config_error_without_what_may_be_a_key(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^base_url must") as raised:
        Anthropic(api_key=KEY, base_url=url)
    assert KEY not in texts_of(raised.value)


@WAYS
@pytest.mark.parametrize("key", [f"{KEY}\nx", f"{KEY}\r\nx-more: 1", f"{KEY}\x00", f"{KEY}é", f"{KEY}\x7f"])
def test_a_key_that_no_header_can_carry_is_not_shown(key: str, way: str) -> None:
    with WireServer(anthropic_stream("never")) as server:
        with pytest.raises(ConfigError) as raised:
            complete(connect(server, api_key=key), way)
        assert server.requests == []
    assert KEY not in texts_of(raised.value)


@WAYS
def test_a_tool_result_in_a_bad_request_is_named_by_its_path_only(way: str) -> None:
    """Local checks name paths, never content."""
    bad = Request([f"{PROMPT}", tool_result_message(PROMPT)], model="claude-test-1")
    with WireServer(anthropic_stream("never")) as server, pytest.raises(DragomanError) as raised:
        complete(connect(server), way, bad)
    assert PROMPT not in texts_of(raised.value)


def tool_result_message(text: str) -> Any:
    return user(tool_result("toolu_nobody_asked", text))


def test_a_model_that_is_not_there_says_so_without_the_key() -> None:
    with WireServer(anthropic_error(404, "not_found_error", "model: claude-test-1")) as server:
        with pytest.raises(ModelNotFoundError) as raised:
            complete(connect(server), "sync")
    assert KEY not in texts_of(raised.value)


def test_an_addressed_request_has_no_credentials() -> None:
    with WireServer() as server:
        request = connect(server).http_request(ASK)
    assert isinstance(request, HTTPRequest)
    assert KEY not in str(request.headers) + request.url
