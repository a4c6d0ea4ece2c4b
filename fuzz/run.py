"""Fuzz one property with atheris: `python -m fuzz.run anthropic [libFuzzer options]`; inputs that break it are kept in `fuzz/kept`.

    pip install atheris
    python -m fuzz.run sse -max_total_time=60

The seeds are `fuzz/kept` and, where it is at hand, the recorded traffic. Without atheris the same property is driven by `fuzz.mutate` for
a minute, which finds less but needs nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz.mutate import mutated
from fuzz.properties import PROPERTIES

KEPT = Path(__file__).parent / "kept"
DIALECTS = {"sse": "anthropic", "anthropic": "anthropic", "chat": "openai_chat", "responses": "openai_responses"}
SECONDS = 60.0
SIZE = 20_000


def seeds(name: str) -> list[bytes]:
    """What to start from."""
    shared = Path(os.environ.get("DRAGOMAN_SHARED") or Path(__file__).parents[2] / "shared") / "corpus" / DIALECTS.get(name, "none")
    paths = [*(KEPT / name).glob("*"), *shared.glob("*/*/response.*")]
    return [path.read_bytes() for path in paths if path.is_file() and path.stat().st_size <= SIZE]


def plainly(check: Callable[[bytes], None], name: str) -> int:
    """Drive a property without atheris. The exit status: 1 if it broke."""
    found, number, end = seeds(name), int(time.time() * 1000), time.monotonic() + SECONDS
    while time.monotonic() < end:
        number += 1
        random = Random(number)  # noqa: S311  # chance, not secrecy
        data = mutated(random.choice(found), random, found)
        try:
            check(data)
        except BaseException:
            path = KEPT / name / f"found-{number}"
            path.write_bytes(data)
            print(f"{name} broke; the input is {path}", file=sys.stderr)  # noqa: T201
            raise
    return 0


def main(name: str, *options: str) -> int:
    """Fuzz the property of this name. The exit status."""
    check = PROPERTIES[name]
    try:
        import atheris  # type: ignore[import-not-found, unused-ignore]  # pyright: ignore[reportMissingImports]
    except ImportError:
        return plainly(check, name)
    atheris.instrument_all()  # pyright: ignore[reportUnknownMemberType]
    start = Path(os.environ.get("TMPDIR", "/tmp")) / f"dragoman-fuzz-{name}"  # noqa: S108
    start.mkdir(exist_ok=True)
    for number, data in enumerate(seeds(name)):
        (start / f"seed-{number}").write_bytes(data)
    atheris.Setup([sys.argv[0], str(start), f"-artifact_prefix={KEPT / name}/", *options], check)  # pyright: ignore[reportUnknownMemberType]
    atheris.Fuzz()  # pyright: ignore[reportUnknownMemberType]
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
