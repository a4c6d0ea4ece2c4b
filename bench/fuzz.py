"""`python bench/fuzz.py [--seconds 60] [--seed N]`: random answers, read by the direct transport and by h11, for as long as one likes.

Whole answers, answers cut short, and damaged ones, in pieces of any size; see `tests/transport/direct/differential.py` for what must
hold. Each case is made from its number alone: a failure prints it, and `--seed` with it begins there again. Exits with 1 at a failure.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.transport.direct.differential import by_h11, by_ours, compare, damaged, pieces, random_reply

KINDS = ("whole", "cut", "damaged")


def case(seed: int) -> tuple[str, list[bytes]]:
    """Compare one case. Returns its kind and pieces; raises AssertionError with both outcomes."""
    rng = random.Random(seed)
    reply = random_reply(rng)
    kind = KINDS[seed % len(KINDS)]
    data = reply.data
    if kind == "cut":
        data = data[: rng.randrange(len(data))]
    elif kind == "damaged":
        data = damaged(rng, data)
    parts = pieces(rng, data)
    try:
        compare(None if kind == "damaged" else reply, parts)
    except AssertionError as error:
        raise AssertionError(f"case {seed} ({kind}): {data!r}\nours:  {by_ours(parts)}\nh11's: {by_h11(parts)}") from error
    return kind, parts


def main() -> int:
    parser = argparse.ArgumentParser(description="The direct transport against h11.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    seen: Counter[str] = Counter()
    seed = options.seed
    while time.monotonic() < until:
        try:
            kind, parts = case(seed)
        except AssertionError as error:
            print(error)
            return 1
        if kind == "damaged" and seed % 10 == 0:
            seen[f"damaged, then: ours {by_ours(parts).end}, h11's {by_h11(parts).end} (a sample)"] += 1
        seen[kind] += 1
        seed += 1
    print(f"cases {options.seed} to {seed - 1}: no difference")
    for kind, count in sorted(seen.items()):
        print(f"  {count:8}  {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
