"""The bad days of a provider, each with a name: what the server does, and what a correct client must do.

`SCENARIOS` is the table; `open_scenario` starts a server that plays one, `serve` does so until it is interrupted. The table is for
any client of Anthropic's protocol: a test runs each of them over both drivers of dragoman, and `dragoman serve-faults` offers them
to clients in other languages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from threading import Event

from dragoman.errors import ConfigError
from dragoman.testing.answer import Answer
from dragoman.testing.connection import RecordedRequest
from dragoman.testing.scenarios.connections import CONNECTIONS
from dragoman.testing.scenarios.events import STREAMS
from dragoman.testing.scenarios.scenario import TIMEOUTS, Scenario
from dragoman.testing.scenarios.statuses import STATUSES
from dragoman.testing.wire_server import WireServer
from dragoman.transport import wait_in_steps

__all__ = ["SCENARIOS", "TIMEOUTS", "Scenario", "open_scenario", "serve"]

SCENARIOS: Mapping[str, Scenario] = {scenario.name: scenario for scenario in (*STREAMS, *STATUSES, *CONNECTIONS)}
"""Every scenario by its name."""


def open_scenario(scenario: Scenario | str, *, host: str = "127.0.0.1", port: int = 0, cycle: bool = False) -> WireServer:
    """A server, not started yet, that plays the scenario: use it in `with`. After the last answer it is given again; with `cycle`,
    the scenario begins anew. Raises ConfigError for a name that is not in the table.
    """
    if isinstance(scenario, str):
        if scenario not in SCENARIOS:
            raise ConfigError(f"no scenario is called {scenario!r}; there are: {', '.join(SCENARIOS)}")
        scenario = SCENARIOS[scenario]
    tls = None
    if scenario.tls:
        from dragoman.testing.certificate import Authority

        tls = Authority().server_context(host)
    answers = scenario.answers
    numbers = count()

    def play(request: RecordedRequest) -> Answer:
        number = next(numbers)
        answer = answers[number % len(answers) if cycle else min(number, len(answers) - 1)]
        return answer if isinstance(answer, Answer) else answer(request)

    return WireServer(play if answers else (), tls=tls, accept=scenario.accept, host=host, port=port)


def serve(scenario_name: str, host: str = "127.0.0.1", port: int = 0, *, started: Callable[[WireServer], None] | None = None) -> None:
    """Play a scenario, over and over, until KeyboardInterrupt (which ends it quietly). `started` is told the running server.

    Raises ConfigError for a name that is not in the table, OSError if the port is taken.
    """
    with open_scenario(scenario_name, host=host, port=port, cycle=True) as server:
        if started is not None:
            started(server)
        try:
            wait_in_steps(Event(), None)
        except KeyboardInterrupt:
            return
