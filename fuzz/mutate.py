"""Streams that were good and are not any more: events dropped, doubled, swapped and spliced, values replaced by nasty ones, bytes cut.

Everything is drawn from a `random.Random`, so that hypothesis and a plain loop can both drive it and repeat what they found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

__all__ = ["NASTY", "mutated"]

NASTY = [
    b"null", b"true", b"-1", b"0", b"1e400", b"-0", b"1.5", b"99999999999999999999999999", b'""', b'"\\ud83d"', b'"\\udc00x"', b"[]", b"{}",
    b"[[]]", b'{"a":{"b":[1,null]}}', b"NaN", b'"\\u0000"', b"[" * 300 + b"]" * 300, b'{"type":"text"}', b'"tool_use"', b'"text_delta"',
    b'"input_json_delta"', b'"error"', b'{"type":"error","error":{}}', b'"x' + b"y" * 300 + b'"', b'"\xff\xfe"',
]  # fmt: skip
"""JSON values, and a few that are none, to stand where something else stood."""

_BYTES = [b"", b"\n", b"\r", b"\x00", b"\xff", b"{", b"}", b'"', b"\n\n", b"\\"]
_VALUE = re.compile(rb'(?<=:)\s*(?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null|\{\}|\[\])')
_KEY = re.compile(rb'"[a-z_]{2,24}"(?=:)')


def mutated(data: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """`data` after one to four changes; events of `others` may be spliced in."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(_CHANGES)(data, random, others)
    return data


def _events(data: bytes) -> list[bytes]:
    return [part + b"\n\n" for part in data.split(b"\n\n") if part]


def _drop(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    events = _events(data)
    if events:
        del events[random.randrange(len(events))]
    return b"".join(events)


def _double(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    events = _events(data)
    if events:
        events.insert(random.randrange(len(events)), random.choice(events))
    return b"".join(events)


def _swap(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    events = _events(data)
    if len(events) > 1:
        one, other = random.randrange(len(events)), random.randrange(len(events))
        events[one], events[other] = events[other], events[one]
    return b"".join(events)


def _splice(data: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    events, foreign = _events(data), _events(random.choice(others)) if others else []
    if events and foreign:
        at, start = random.randrange(len(events)), random.randrange(len(foreign))
        events[at:at] = foreign[start : start + random.randint(1, 4)]
    return b"".join(events)


def _value(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    found = list(_VALUE.finditer(data))
    if not found:
        return data
    spot = random.choice(found)
    return data[: spot.start()] + random.choice(NASTY) + data[spot.end() :]


def _key(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    found = list(_KEY.finditer(data))
    if not found:
        return data
    spot, donor = random.choice(found), random.choice(found)
    return data[: spot.start()] + random.choice([donor[0], b'"unheard_of"', b'"type"', b'"index"', b'"error"']) + data[spot.end() :]


def _cut(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _byte(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return (
        data[:at]
        + random.choice([b"", b"\n", b"\r", b"\x00", b"\xff", b"{", b"}", b'"', b"\n\n", b"\\"])
        + data[at + random.randint(0, 1) :]
    )


def _line_ends(data: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    return data.replace(b"\n", random.choice([b"\r\n", b"\r"]))


_CHANGES = [_drop, _double, _swap, _splice, _value, _value, _value, _key, _key, _cut, _byte, _byte, _line_ends]
