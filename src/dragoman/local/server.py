"""llama.cpp's own HTTP server, inside this process: started at first use, shared by all providers, ended with the process.

Strategy. xllamacpp offers the server as an object that listens on a free loopback port as soon as it is made and has no stop method. So
there is one per model file, made under a lock, kept until the process ends. A random key, made per process, keeps other users of
the machine and web pages out. One thread computes: with two, a busy machine drops from 80 to a few tokens per second, because the
threads wait for each other in spin locks.

A forked child talks to its parent's server, for as long as the parent lives. It inherits the server object without its
threads; taking that object apart would wait for them for ever, so a child leaves it alone (`_after_fork`).
"""

from __future__ import annotations

import os
import secrets
import socket
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from dragoman.errors import ConfigError

__all__ = ["CONTEXT", "LocalServer", "chat_template", "check_engine", "process_key", "start_server"]

CONTEXT = 8192
"""Tokens of context that the server keeps, whatever the model could take."""


class LocalServer(msgspec.Struct, frozen=True):
    """A running server: its address (`http://127.0.0.1:port`) and the name that it gives its model."""

    url: str
    model: str


_lock = Lock()
_running: dict[tuple[Path, int], tuple[LocalServer, object]] = {}
_key = ""


def process_key() -> str:
    """The key that this process's servers accept."""
    global _key  # noqa: PLW0603  # one per process, made at first use
    _key = _key or secrets.token_urlsafe(24)
    return _key


def check_engine() -> None:
    """Raises ConfigError if the extra `local` is not installed."""
    if find_spec("xllamacpp") is None:
        raise ConfigError("the local provider needs llama.cpp: pip install 'dragoman[local]'")


def chat_template() -> str:
    """Our template for SmolLM2. It renders tools as worked examples, and thinking if the request's template arguments say so."""
    return (files("dragoman.local") / "smollm2.jinja").read_text(encoding="utf-8")


def start_server(
    path: Path, *, name: str, template: str | None = None, threads: int = 1, port: int = 0, api_key: str | None = None
) -> LocalServer:
    """The server for a model file, started if it is not running yet: about a second for the toy model, with the interpreter
    held (llama.cpp loads without letting other threads run).

    `template`: a Jinja chat template; None: the file's own. `port`: 0 is a free one. `api_key`: None is this process's own, `""` none at
    all. Raises ConfigError if the extra is missing, the port is taken, or the file is no model that llama.cpp reads.
    """
    check_engine()
    place = (path.resolve(), threads)
    with _lock:
        if place not in _running:
            if not _running and hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=_after_fork)
            engine = _engine(
                place[0], name=name, template=template, threads=threads, port=port, key=process_key() if api_key is None else api_key
            )
            _running[place] = (LocalServer(str(engine.listening_address), name), engine)
        return _running[place][0]


def is_running(path: Path, threads: int = 1) -> bool:
    """Whether `start_server` would return at once."""
    return (path.resolve(), threads) in _running


def _engine(path: Path, *, name: str, template: str | None, threads: int, port: int, key: str) -> Any:
    if not path.is_file():
        raise ConfigError(f"the local model's file is missing: {path}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(f"not a GGUF model file: {path}")
    try:
        xllamacpp = import_module("xllamacpp")
    except ImportError as error:
        raise ConfigError(f"llama.cpp cannot be loaded: {error}. Reinstall it: pip install --force-reinstall xllamacpp") from error
    if port:
        _check_port(port)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.n_ctx = CONTEXT
    params.offline = True
    params.ui = False
    params.endpoint_slots = False  # it would show the prompts to whoever asks
    params.verbosity = 0  # standard error belongs to the program
    params.port = port
    params.api_keys = [key] if key else []
    params.default_template_kwargs = {"enable_thinking": "false"}  # a request that wants thinking says so
    params.sampling.temp = 0.0  # for requests that do not say; beside thinking the protocol allows none
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    if template is not None:
        params.chat_template = template
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        raise ConfigError(f"llama.cpp cannot serve {path}: {error}") from error


def _check_port(port: int) -> None:
    """Raises ConfigError if a server cannot listen on this port: of all that fails, llama.cpp only says that it failed to start."""
    try:
        with socket.socket() as listener:
            if os.name == "posix":  # as llama.cpp's server does; elsewhere the option would take the port from whoever has it
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen()
    except OSError as error:
        raise ConfigError(f"cannot listen on 127.0.0.1:{port}: {error.strerror or error}") from error
    except OverflowError:
        raise ConfigError(f"a port is a number from 0 to 65535, not {port}") from None


def _after_fork() -> None:
    """In a forked child: a new lock, since the old one may be held by a thread that is gone; and neither Python nor the C++ runtime may
    take the server apart, whose threads do not exist here.

    `on_exit(_exit)` makes the C library leave with the exit status right after Python has shut down, before any C++
    destructor. It is a function of glibc; elsewhere a child that did not come from `multiprocessing` should leave by `os._exit`.
    """
    global _lock  # noqa: PLW0603
    _lock = Lock()
    import ctypes

    for _, engine in _running.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)
