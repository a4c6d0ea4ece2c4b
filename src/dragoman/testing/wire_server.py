"""`WireServer`: a real HTTP/1.1 server on loopback that answers from a script and can go wrong at any byte.

It runs on its own event loop in its own thread, so one server serves sync and async clients, and a blocked client cannot block it.
Requests are parsed by h11; answers are written by hand, because a server that must break the protocol cannot be built on one that
keeps it. Everything a test waits for is a condition that the server signals: a request seen, a connection closed by the client, a
gate reached. Nothing polls and nothing sleeps.

    with WireServer([anthropic_stream("Hello")]) as server:
        client = Anthropic(api_key="test", base_url=server.url)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterable
from threading import Condition, Thread
from types import TracebackType
from typing import Literal, Self, TypeAlias

from dragoman.testing.answer import WAIT_LIMIT, Answer
from dragoman.testing.connection import Connection, RecordedRequest, Served
from dragoman.testing.listener import BACKLOG, Accept, listening_socket

__all__ = ["Connection", "RecordedRequest", "Script", "WireServer"]

Responder: TypeAlias = Callable[[RecordedRequest], Answer]
Script: TypeAlias = Answer | Responder | Iterable[Answer | Responder]
"""One answer or function serves every request; a sequence serves one each."""


class WireServer:
    """A scripted HTTP server on 127.0.0.1; a sync and an async context manager.

    `script`: an answer or a function from the request to an answer, which then serves every request, or a sequence of these, one per
    request in the order of arrival. After the last one, `repeat` serves it again; else the server answers 400 and says that the
    script is at its end, so a test that sends too much fails clearly. `tls`: the server's context; `url` is then https. `accept`:
    `refuse` refuses every connection, `never` has a full backlog, so that a client's connect does not finish.

    A client that says `connection: close`, or speaks HTTP/1.0, gets its answer and then the end of the connection; to HTTP/1.0 a body of
    steps is sent without chunks, unless its answer has `framing="chunked"`.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        repeat: bool = False,
        tls: ssl.SSLContext | None = None,
        accept: Accept = "all",
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self._script: list[Answer | Responder] = []
        self._always: Answer | Responder | None = None
        self._repeat = repeat
        self._tls = tls
        self._accept: Accept = accept
        self._bind = (host, port)
        self._changed = Condition()
        self._requests: list[RecordedRequest] = []
        self._dropped: list[RecordedRequest] = []
        self._connections: list[Connection] = []
        self._errors: list[BaseException] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._thread: Thread | None = None
        self._sockets: list[socket.socket] = []
        self._address: tuple[str, int] = ("", 0)
        if isinstance(script, Answer) or callable(script):
            self._always = script
        else:
            self.add(*script)

    # ---- where it is, and what it saw

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end. Only while the server runs."""
        host, port = self._address
        return f"{'https' if self._tls else 'http'}://{host}:{port}"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._address[1]

    @property
    def requests(self) -> list[RecordedRequest]:
        """The requests that were answered from the script, in the order of arrival."""
        with self._changed:
            return list(self._requests)

    @property
    def dropped(self) -> list[RecordedRequest]:
        """The requests that `after="drop_next"` threw away."""
        with self._changed:
            return list(self._dropped)

    @property
    def connections(self) -> list[Connection]:
        """Every connection that was accepted, in order."""
        with self._changed:
            return list(self._connections)

    @property
    def open_connections(self) -> list[Connection]:
        """The connections that neither side has closed."""
        return [connection for connection in self.connections if not connection.closed]

    # ---- waiting for its signals

    def wait_for(self, condition: Callable[[], bool], what: str = "the condition", timeout: float = WAIT_LIMIT) -> None:
        """Wait until `condition` holds; it is asked again whenever something happens at the server.

        Raises TimeoutError, naming `what`, after `timeout` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(condition, timeout):
                raise TimeoutError(
                    f"{what} did not come within {timeout:g} s: requests {len(self._requests)}, connections {self._connections}"
                )

    def wait_requests(self, count: int, timeout: float = WAIT_LIMIT) -> None:
        """Wait until `count` requests have arrived whole."""
        self.wait_for(lambda: len(self._requests) >= count, f"request {count}", timeout)

    def wait_closed(self, connection: int | None = None, timeout: float = WAIT_LIMIT) -> None:
        """Wait until the connection with this index (default: every one) is closed, by either side."""

        def closed() -> bool:
            which = self._connections if connection is None else self._connections[connection : connection + 1]
            return bool(which) and all(one.closed for one in which)

        self.wait_for(closed, "the end of every connection" if connection is None else f"the end of connection {connection}", timeout)

    # ---- the script

    def add(self, *answers: Answer | Responder) -> None:
        """Append to the script. Raises TypeError for what is neither an answer nor a function."""
        for answer in answers:
            _check(answer)
        with self._changed:
            self._script.extend(answers)

    def always(self, answer: Answer | Responder) -> None:
        """Answer every request that the script does not serve like this. Raises TypeError as `add`."""
        _check(answer)
        with self._changed:
            self._always = answer

    # ---- running

    def start(self) -> Self:
        """Listen and serve. Raises OSError if the port is taken."""
        if self._thread is not None:
            raise RuntimeError("this WireServer is running already")
        self._sockets = listening_socket(self._bind, self._accept)
        self._address = self._sockets[0].getsockname()[:2]
        if self._accept == "all":
            self._thread = Thread(target=lambda: asyncio.run(self._serve()), name=f"WireServer {self.port}", daemon=True)
            self._thread.start()
            self.wait_for(lambda: self._loop is not None, "the server's event loop")
        return self

    def stop(self) -> None:
        """Close everything. Idempotent. Raises what a function of the script raised, if one did, and RuntimeError if a client sent what is
        not HTTP (TLS to a server without is only turned away).
        """
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(self._stopping.set)
            thread.join()
        for sock in self._sockets:
            sock.close()
        self._sockets = []
        errors, self._errors = self._errors, []
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        try:
            self.stop()
        except BaseException as error:  # whatever a script raised must not hide why the block is being left
            if exc is None:
                raise
            exc.add_note(f"{self!r}: its script had failed with {error!r}")

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        self.__exit__(exc_type, exc, traceback)

    def __repr__(self) -> str:
        return f"<WireServer {self.url if self._sockets else 'stopped'}, requests: {len(self._requests)}>"

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._loop_error)
        served = Served(self._take, self._note)
        server = await loop.create_server(lambda: Connection(served), sock=self._sockets[0], ssl=self._tls, backlog=BACKLOG)
        self._stopping = asyncio.Event()
        with self._changed:
            self._loop = loop
            self._changed.notify_all()
        await self._stopping.wait()
        with contextlib.suppress(NotImplementedError):  # Windows accepts in another way
            loop.remove_reader(self._sockets[0])
        await asyncio.sleep(0)  # asyncio accepts by a task each: one that has not begun when it is cancelled leaves an open socket behind
        server.close()
        await self._end_connections(served)
        accepting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in accepting:
            task.cancel()
        await asyncio.gather(*accepting, return_exceptions=True)
        await self._end_connections(served)

    async def _end_connections(self, served: Served) -> None:
        for connection in self.connections:
            connection.abort()
        await served.finish()

    def _loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        del loop
        error = context.get("exception")
        if isinstance(error, BaseException) and not isinstance(error, OSError):  # OSError: a client broke off, maybe its handshake
            self._note("error", error)

    def _note(self, kind: Literal["opened", "changed", "dropped", "error"], item: object = None) -> None:
        with self._changed:
            if isinstance(item, Connection) and kind == "opened":
                item.index = len(self._connections)
                self._connections.append(item)
            elif isinstance(item, RecordedRequest) and kind == "dropped":
                self._dropped.append(item)
            elif isinstance(item, BaseException):
                self._errors.append(item)
            self._changed.notify_all()

    def _take(self, request: RecordedRequest) -> Answer:
        with self._changed:
            number = len(self._requests)
            self._requests.append(request)
            self._changed.notify_all()
            step: Answer | Responder | None
            if number < len(self._script):
                step = self._script[number]
            else:
                step = self._always or (self._script[-1] if self._repeat and self._script else None)
        if step is None:
            message = f"WireServer: the script is at its end: answers {len(self._script)}, and this is request {number + 1}"
            return Answer(status=400, body={"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        if isinstance(step, Answer):
            return step
        made = step(request)
        if not isinstance(made, Answer):  # pyright: ignore[reportUnnecessaryIsInstance]  # a forgotten `return` is a common slip
            raise TypeError(f"a function of the script must return an Answer, not {type(made).__name__}")
        return made


def _check(answer: Answer | Responder) -> None:
    if not isinstance(answer, Answer) and not callable(answer):  # pyright: ignore[reportUnnecessaryComparison]
        raise TypeError(f"a script holds Answers and functions from the request to an Answer, not {type(answer).__name__}")
