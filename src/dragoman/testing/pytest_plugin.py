"""The pytest fixtures `wire_server`, a running `WireServer` with an empty script, and `cassette`, which records once and then replays.

Found by pytest through an entry point, so it is imported in every pytest run where dragoman is installed: nothing but pytest is
imported until the fixture is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.testing.recorder import Recorder
    from dragoman.testing.replay import Replay
    from dragoman.testing.wire_server import WireServer

__all__ = ["cassette", "pytest_addoption", "wire_server"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--dragoman-record`: cassettes are recorded anew, over the network."""
    parser.addoption("--dragoman-record", action="store_true", help="record the cassettes of the `cassette` fixture anew")


@pytest.fixture
def wire_server() -> Iterator[WireServer]:
    """A `WireServer` on loopback; give it answers with `add` and `always`."""
    from dragoman.testing.wire_server import WireServer

    with WireServer() as server:
        yield server


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Recorder | Replay]]:
    """`cassette("name")` gives the transports of `cassettes/name.json` beside the test's file.

    They replay it, strictly; a test that leaves a recorded exchange unused fails. With `--dragoman-record` they record it instead. A
    cassette that does not exist is an error, so a test never goes to the network by itself.
    """
    from dragoman.testing.recorder import Recorder
    from dragoman.testing.replay import Replay

    opened: list[Recorder | Replay] = []

    def open_cassette(name: str) -> Recorder | Replay:
        path = request.path.parent / "cassettes" / f"{name}.json"
        made = Recorder(path) if request.config.getoption("--dragoman-record") else Replay(path)
        opened.append(made)
        return made

    yield open_cassette
    for one in opened:
        if isinstance(one, Recorder):
            one.close()
        else:
            assert not one.unused, f"recorded exchanges that were not asked for: {len(one.unused)}"
