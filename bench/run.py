"""`make bench`: dragoman, a raw socket reader and the peers on the same work, in turns, in one run.

Strategy. The mock server runs in a process of its own; every contestant in another, in its own environment (see `environments.py`). A
case is done by all of them in turns, round by round. What counts is the CPU time, user and system, of the client's process; only
latencies are wall time. Every answer is checked. A contestant that is too slow (`--patience` seconds for one turn) or fails drops out of
the case, and the page says so. Quote ratios of one run, never single figures of two.

Writes `bench/results/TIME.json` and, with `--page`, `docs/benchmarks.md` with its plots.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple, Self

from cases import CASES, CONTESTANTS, FREE, Case, Contestant
from environments import ROOT, extra, installed, python

RESULTS = ROOT / "bench" / "results"
COLD_ROUNDS = 7


class Server(NamedTuple):
    """Where the mock server is, and the certificate that signed its own."""

    http: str
    https: str
    authority: str


class DroppedOutError(Exception):
    """A contestant failed, or took too long."""


class Process:
    """A contestant at work."""

    def __init__(self, contestant: Contestant, case: Case, server: Server, patience: float) -> None:
        self._patience = patience
        url = server.https if case.tls else server.http
        command = [python(contestant.environment), ROOT / "bench" / "worker.py", contestant.client, url]
        environ = environment(contestant, server, case.extra) | case.environ
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self.started = self._read()

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """Have it do one job. Raises DroppedOutError."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], self._patience)[0]:
            self.end()
            raise DroppedOutError(f"no result within {self._patience:g} s")
        line = self._process.stdout.readline()
        if not line:
            self.end()
            self._errors.seek(0)
            raise DroppedOutError("failed: " + (self._errors.read().strip().splitlines() or ["no reason given"])[-1][:200])
        return json.loads(line)

    @property
    def ended(self) -> bool:
        """Whether it is at work no more."""
        return self._process.poll() is not None

    def end(self) -> None:
        """Stop it."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


def environment(contestant: Contestant, server: Server, more: str = "") -> dict[str, str]:
    """The environment variables of a contestant: paths, certificate, its own settings, and nothing of this shell's keys and proxies."""
    path = [ROOT / "bench"] + [ROOT / "src"] * (contestant.environment == "dragoman") + ([extra(more)] if more else [])
    return {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "SSL_CERT_FILE": server.authority,
        **contestant.environ,
    }


@contextmanager
def serving() -> Iterator[Server]:
    """The mock server, in its own process, with a certificate made for this run."""
    import trustme

    with tempfile.TemporaryDirectory() as folder:
        authority = trustme.CA()
        own = authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.bytes()
        certificate, trusted = Path(folder) / "server.pem", Path(folder) / "authority.pem"
        certificate.write_bytes(own)
        authority.cert_pem.write_to_path(trusted)
        command = [sys.executable, ROOT / "bench" / "server.py", certificate]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            ports = json.loads(process.stdout.readline())
            yield Server(f"http://127.0.0.1:{ports['http']}", f"https://127.0.0.1:{ports['https']}", str(trusted))
        finally:
            process.kill()
            process.communicate()


class Crew:
    """The processes of a run: a contestant keeps its process from case to case, except where memory is measured. Ended by `with`."""

    def __init__(self, server: Server, patience: float) -> None:
        self._server = server
        self._patience = patience
        self._processes: dict[tuple[str, bool, str], Process] = {}

    def get(self, contestant: Contestant, case: Case) -> Process:
        """A process for this case. Raises DroppedOutError, CalledProcessError if its environment cannot be built."""
        key = contestant.key, case.tls, case.extra
        process = self._processes.get(key)
        if process is not None and (case.fresh or process.ended):
            process.end()
            process = None
        if process is None:
            process = self._processes[key] = Process(contestant, case, self._server, self._patience)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.end()


ENOUGH = 15.0
"""Seconds: who needs so long for one turn of a case is not asked for another."""


def run_case(case: Case, contestants: list[Contestant], crew: Crew, *, rounds: int) -> dict[str, Any]:
    """One case: for each contestant the figure of every round, or why it has none."""
    found: dict[str, Any] = {}
    running: dict[str, Process] = {}
    for contestant in contestants:
        if contestant.key in case.who:
            try:
                process = crew.get(contestant, case)
                process.ask(case.ready)
                running[contestant.key] = process
                found[contestant.key] = {"values": [], "first": [], "whole": [], "cpus": []}
            except (DroppedOutError, subprocess.CalledProcessError) as error:
                found[contestant.key] = {"failed": str(error)}
    for turn in range(rounds):
        order = list(running)
        first = turn % max(len(order), 1)
        for key in order[first:] + order[:first]:
            try:
                reply = running[key].ask(case.job)
            except DroppedOutError as error:
                running.pop(key)
                found[key] = {"failed": str(error)}
                continue
            entry = found[key]
            if case.figure is not None:
                entry["values"].append(case.figure(reply))
            else:
                entry["first"] += reply.get("first", [])
                entry["whole"] += reply["whole"]
                entry["cpus"].append(reply["cpu"] / case.job["times"])
            if reply["wall"] > ENOUGH:
                running.pop(key)
    for entry in found.values():
        _summarise(entry)
    return found


def _summarise(entry: dict[str, Any]) -> None:
    cpus = entry.pop("cpus", [])
    if cpus:
        entry["cpu"] = statistics.median(cpus) * 1e6
    if entry.get("values"):
        entry["median"] = statistics.median(entry["values"])
    for name in ("first", "whole"):
        times = sorted(entry.pop(name, []))
        if times:
            entry[name] = {"p50": times[len(times) // 2] * 1e6, "p99": times[len(times) * 99 // 100] * 1e6, "requests": len(times)}
            entry.setdefault("median", entry[name]["p50"])


def cold_starts(contestants: list[Contestant], server: Server, rounds: int) -> dict[str, Any]:
    """What a cold start costs each library: medians of fresh processes, taking turns; and what is installed for it."""
    rows: dict[str, list[dict[str, float]]] = {}
    libraries = [contestant for contestant in contestants if contestant.library]
    for _ in range(rounds + 1):  # the first one writes bytecode and does not count
        for contestant in libraries:
            command = [python(contestant.environment), ROOT / "bench" / "cold.py", contestant.library, contestant.client, server.http]
            done = subprocess.run(command, env=environment(contestant, server), capture_output=True, text=True, check=False)
            if done.returncode == 0:
                rows.setdefault(contestant.key, []).append(json.loads(done.stdout.splitlines()[-1]))
    found: dict[str, Any] = {}
    for contestant in libraries:
        measured = rows.get(contestant.key, [])[1:]
        if measured:
            medians = {name: statistics.median(row[name] for row in measured) for name in measured[0]}
            found[contestant.key] = medians | installed(contestant.environment)
    return found


def chosen(names: str) -> list[Contestant]:
    """The contestants that `--peers` names, and our own."""
    wanted = {contestant.key for contestant in CONTESTANTS} if names == "all" else {*FREE, "traced", "unchecked", *names.split(",")}
    if "anthropic" in wanted:
        wanted |= {contestant.key for contestant in CONTESTANTS if contestant.client == "clients.sdk"}
    if not (ROOT / "src" / "dragoman" / "transport" / "direct").exists():
        wanted.discard("direct")
    return [contestant for contestant in CONTESTANTS if contestant.key in wanted]


def main() -> int:
    """Run, write the results, and say what was found."""
    parser = argparse.ArgumentParser(description="Measure dragoman, a raw reader and the peers on the same work, in turns.")
    parser.add_argument("--peers", default="all", help="comma-separated: anthropic, pydantic-ai, any-llm, langchain, litellm; all; none")
    parser.add_argument("--cases", default="", help="only these rows of cases.py, comma-separated, * as in a shell; cold: the cold starts")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of each case, instead of its own number")
    parser.add_argument("--patience", type=float, default=60, help="seconds that one turn of a contestant may take (default 60)")
    parser.add_argument("--merge", type=Path, help="add what is measured to these results of an earlier run instead of beginning anew")
    parser.add_argument("--page", action="store_true", help="write docs/benchmarks.md and its plots from the results")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended early"))  # so that nothing is left running
    contestants = chosen(options.peers)
    wanted = [name for name in options.cases.split(",") if name]
    results = json.loads(options.merge.read_text()) if options.merge else {"cases": {}, "runs": []}
    began = datetime.now(UTC)
    this_run: dict[str, Any] = {
        "command": " ".join(["python", "bench/run.py", *sys.argv[1:]]),
        "began": began.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load before": os.getloadavg(),
    }
    results["runs"].append(this_run)
    path = RESULTS / f"{began:%Y%m%dT%H%M%S}.json"

    def save() -> None:
        this_run["minutes"] = round((datetime.now(UTC) - began).total_seconds() / 60, 1)
        this_run["load after"] = os.getloadavg()
        RESULTS.mkdir(exist_ok=True)
        path.write_text(json.dumps(results, indent=1))

    with serving() as server, Crew(server, options.patience) as crew:
        if not wanted or "cold" in wanted:
            print("cold starts", file=sys.stderr, flush=True)
            results["cold"] = cold_starts(contestants, server, options.rounds or COLD_ROUNDS)
            save()
        for case in CASES:
            if wanted and not any(fnmatchcase(case.key, pattern) for pattern in wanted):
                continue
            clock = time.monotonic()
            rounds = min(options.rounds, case.rounds) or case.rounds
            found = results["cases"][case.key] = run_case(case, contestants, crew, rounds=rounds)
            save()
            figures = ", ".join(f"{key} {entry['median']:.3g}" if "median" in entry else f"{key}: -" for key, entry in found.items())
            print(f"{case.title} ({case.unit}; {time.monotonic() - clock:.0f} s): {figures}", file=sys.stderr, flush=True)
    print(path)
    if options.page:
        import report

        report.write(results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
