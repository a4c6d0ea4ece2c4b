"""The pytest fixture `wire_server`: a running `WireServer` with an empty script, stopped after the test.

Found by pytest through an entry point, so it is imported in every pytest run where dragoman is installed: nothing but pytest is
imported until the fixture is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dragoman.testing.wire_server import WireServer

__all__ = ["wire_server"]


@pytest.fixture
def wire_server() -> Iterator[WireServer]:
    """A `WireServer` on loopback; give it answers with `add` and `always`."""
    from dragoman.testing.wire_server import WireServer

    with WireServer() as server:
        yield server
