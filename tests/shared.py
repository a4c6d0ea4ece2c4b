"""Where the shared material is, and the recorded exchanges in it. Everything is read in place; nothing is copied."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

SHARED = Path(os.environ.get("DRAGOMAN_SHARED") or Path(__file__).parents[2] / "shared")
CORPUS = SHARED / "corpus"
CASES = SHARED / "spec" / "cases.jsonl"

needs_cases = pytest.mark.skipif(not CASES.exists(), reason=f"the fault cases are not at {CASES}")


class Exchange(NamedTuple):
    """One recorded HTTP exchange."""

    folder: Path

    @property
    def name(self) -> str:
        return "/".join(self.folder.parts[-2:])

    @property
    def streamed(self) -> bool:
        return (self.folder / "response.sse").exists()

    @property
    def body(self) -> bytes:
        return (self.folder / ("response.sse" if self.streamed else "response.json")).read_bytes()

    @property
    def status(self) -> int:
        return int(self._meta().get("status", 200))

    @property
    def headers(self) -> dict[str, str]:
        headers = self._meta().get("headers") or {}
        return {name: value if isinstance(value, str) else value[0] for name, value in headers.items()}

    def json(self, name: str) -> Any:
        """A JSON file of the exchange, or None."""
        path = self.folder / name
        return json.loads(path.read_bytes()) if path.exists() else None

    def _meta(self) -> dict[str, Any]:
        return self.json("response_meta.json") or {}


@cache
def exchanges(dialect: str) -> list[Exchange]:
    """All recorded exchanges of a dialect that have an SSE or JSON answer, in a stable order; none if the corpus is absent."""
    folders = sorted((CORPUS / dialect).glob("*/*/"))
    return [Exchange(f) for f in folders if (f / "response.sse").exists() or (f / "response.json").exists()]


def exchange_params(dialect: str, *, streamed: bool | None = None, where: Callable[[Exchange], bool] | None = None) -> list[Any]:
    """The exchanges (those for which `where` holds) as pytest parameters; one skipped parameter that says why if the corpus is absent."""
    found = [e for e in exchanges(dialect) if (streamed is None or e.streamed == streamed) and (where is None or where(e))]
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the recorded exchanges are not at {CORPUS / dialect}"))]
    return [pytest.param(e, id=e.name) for e in found]


@cache
def cases() -> dict[str, dict[str, Any]]:
    """The fault cases by id."""
    if not CASES.exists():
        return {}
    lines = CASES.read_bytes().split(b"\n")  # not splitlines: the cases hold U+2028, which is the point of one of them
    return {found["id"]: found for found in map(json.loads, filter(None, lines))}


def case(identity: str) -> dict[str, Any]:
    """One fault case; skips if they are absent."""
    if not cases():
        pytest.skip(f"the fault cases are not at {CASES}")
    return cases()[identity]
