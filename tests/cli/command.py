"""The command line as a user runs it, with no settings but those the test puts there: in a process of its own (`dragoman`), or, many times
faster, in this one (`invoke`) where only options, output and exit code matter.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from typer.testing import CliRunner

from dragoman.cli.app import app

TIMEOUT = 120
"""Seconds after which a command that hangs fails its test."""

COMMAND = [sys.executable, "-m", "dragoman.cli"]
_FORGOTTEN = ("DRAGOMAN_", "ANTHROPIC_", "OTEL_", "LANGFUSE_", "NO_COLOR", "FORCE_COLOR", "COLUMNS")


class Outcome(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without the settings of the one who runs the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FORGOTTEN)}
    return {**kept, "TERM": "xterm", **variables}


def dragoman(*arguments: str, stdin: str | bytes | None = None, **variables: str) -> Outcome:
    """Run `dragoman` with these arguments, standard input and environment variables."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    given = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run([*COMMAND, *arguments], env=environment(**variables), capture_output=True, timeout=TIMEOUT, check=False, **given)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def invoke(*arguments: str, stdin: str | bytes | None = None, **variables: str) -> Outcome:
    """As `dragoman`, in this process."""
    forgotten: dict[str, str | None] = {name: None for name in os.environ if name.startswith(_FORGOTTEN)}
    done = CliRunner().invoke(app, arguments, input=stdin or b"", env=forgotten | variables, catch_exceptions=False)
    return Outcome(done.exit_code, done.stdout, done.stderr)
