"""The command `dragoman`. This file only finds out whether the command line can run; `app` declares the commands, each of which loads
what it needs when it runs.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from os import devnull

__all__ = ["main"]

NEEDED = ("typer", "rich")
"""What the extra `cli` installs."""


def main() -> None:
    """Run the command line; the entry point of the script `dragoman`. Always ends in SystemExit."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever started us had closed it
            setattr(sys, name, open(devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123  # for as long as we run
    missing = [package for package in NEEDED if find_spec(package) is None]
    if missing:
        sys.stderr.write(f"dragoman: the command line needs {' and '.join(missing)}: pip install 'dragoman[cli]'\n")
        sys.exit(2)
    from dragoman.cli.app import run

    sys.exit(run())
