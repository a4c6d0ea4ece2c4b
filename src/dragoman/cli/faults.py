"""`dragoman serve-faults`: a provider's bad days on a loopback port, for clients in any language."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dragoman.cli.outcome import ANSWERED, INTERRUPTED, UsageError
from dragoman.testing.scenarios import SCENARIOS, serve

if TYPE_CHECKING:
    from dragoman.testing.wire_server import WireServer

__all__ = ["list_scenarios", "serve_scenario"]


def list_scenarios() -> int:
    """Print every scenario: its name, what the server does, what a correct client must do."""
    for scenario in SCENARIOS.values():
        sys.stdout.write(f"{scenario.name}\n    server: {scenario.story}\n    client: {scenario.must}\n")
    return ANSWERED


def serve_scenario(name: str, *, host: str, port: int) -> int:
    """Play one scenario, over and over, until interrupted; prints the address. Raises ConfigError and UsageError."""
    if not name:
        raise UsageError("name a scenario: --scenario NAME; --list explains each")

    def started(server: WireServer) -> None:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stderr.write(f"{name}: a correct client must {SCENARIOS[name].must}; Ctrl-C ends it\n")

    try:
        serve(name, host=host, port=port, started=started)
    except ImportError as error:  # the scenarios with TLS need a package that makes certificates
        raise UsageError(f"scenario {name}: {error}") from error
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return INTERRUPTED
