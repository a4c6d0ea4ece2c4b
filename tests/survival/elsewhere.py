"""A `WireServer` in a process of its own, so that what it remembers is not counted with what the client holds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.testing import Answer, WireServer, anthropic_error

from .calls import echo, silent, stalled

SCRIPTS: dict[str, Answer | Callable[..., Answer]] = {
    "echo": echo,
    "silent": silent(),
    "stalled": stalled(),
    "529": anthropic_error(529, "overloaded_error"),
    "500": anthropic_error(500, "api_error"),
}


class Elsewhere:
    """The server over there. Each question is a word, each answer a line."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._asks: IO[str] = child.stdin
        self._says: IO[str] = child.stdout
        self.url = self._says.readline().strip()

    def _ask(self, question: str) -> str:
        self._asks.write(question + "\n")
        self._asks.flush()
        return self._says.readline().strip()

    def wait_requests(self, count: int) -> None:
        """Wait until so many requests have arrived."""
        assert self._ask(f"requests {count}") == "yes"

    def wait_closed(self) -> None:
        """Wait until every connection is closed."""
        assert self._ask("closed") == "yes"

    @property
    def requests(self) -> int:
        """How many have arrived."""
        return int(self._ask("count requests"))

    @property
    def connections(self) -> int:
        """How many were opened."""
        return int(self._ask("count connections"))


@contextmanager
def elsewhere(script: str) -> Iterator[Elsewhere]:
    """A server that plays one of `SCRIPTS`."""
    command = [sys.executable, "-m", "tests.survival.elsewhere", script]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        try:
            yield Elsewhere(child)
        finally:
            child.kill()


def main(script: str) -> None:
    """Serve until there are no more questions."""
    with WireServer(SCRIPTS[script]) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            match line.split():
                case ["requests", count]:
                    server.wait_requests(int(count), 60)
                    answer = "yes"
                case ["closed"]:
                    server.wait_closed(timeout=60)
                    answer = "yes"
                case ["count", what]:
                    answer = str(len(server.requests if what == "requests" else server.connections))
                case _:
                    answer = "what?"
            print(answer, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
