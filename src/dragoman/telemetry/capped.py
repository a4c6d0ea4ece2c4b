"""JSON of messages and parts within a number of bytes, cut at whole parts.

Strategy. Every part is encoded by itself, so its size is known and the whole is put together by joining bytes. If all of it is too
much, room is given from the newest part backwards, since a long history is known from earlier spans. A part is there as it was or not
at all; where parts are missing stands one of type `omitted` that says how many, and how many bytes of JSON they were.

Nothing here raises for what a message holds: a span is no reason for a call to fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from dragoman.fragments import scrub_tree
from dragoman.telemetry.messages import Part, RoleParts

__all__ = ["CAP_MINIMUM", "capped_messages", "capped_parts"]

CAP_MINIMUM: Final = 1024
"""Bytes: a smaller cap has no room to say what is missing."""

MARK: Final = 64
"""Bytes that an `omitted` part takes at most, with its comma."""

BRACKETS: Final = 2


def capped_parts(parts: Sequence[Part], cap: int) -> str:
    """A list of parts as JSON of at most `cap` bytes."""
    [kept] = _fit([[_encoded(part) for part in parts]], cap, frame=0)
    return _list(kept or []).decode()


def capped_messages(conversation: Sequence[RoleParts], cap: int, *, finish_reason: str = "") -> str:
    """A list of messages as JSON of at most `cap` bytes. `finish_reason` is written into each, if given."""
    frames = [_frame(role, finish_reason) for role, _ in conversation]
    widest = max((len(before) + len(after) for before, after in frames), default=0)
    kept = _fit([[_encoded(part) for part in parts] for _, parts in conversation], cap - BRACKETS, frame=widest + 1)
    return _list(before + _list(parts) + after for (before, after), parts in zip(frames, kept, strict=True) if parts is not None).decode()


def _frame(role: str, finish_reason: str) -> tuple[bytes, bytes]:
    """A message's JSON before and after its parts."""
    end = b"}" if not finish_reason else b',"finish_reason":' + msgspec.json.encode(finish_reason) + b"}"
    return b'{"role":' + msgspec.json.encode(role) + b',"parts":', end


def _list(items: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


# ---- what fits


def _fit(groups: list[list[bytes]], room: int, *, frame: int) -> list[list[bytes] | None]:
    """For each group of parts those that fit; None for a group of which nothing is left. `frame`: bytes of a group without its parts."""
    if sum(frame + BRACKETS + sum(len(part) + 1 for part in group) for group in groups) <= room:
        return [*groups]
    room -= frame + BRACKETS + MARK  # kept free for what `_mark_gap` says
    result: list[list[bytes] | None] = []
    lost: list[bytes] = []
    for group in reversed(groups):
        kept = _fit_group(group, room - frame - BRACKETS)
        if kept is None:
            lost += group
        else:
            room -= frame + BRACKETS + sum(len(part) + 1 for part in kept)
        result.append(kept)
    result.reverse()
    if lost:
        newest = max(at for at, kept in enumerate(result) if kept is None)
        result[newest] = [_omitted(lost)]
    return result


def _fit_group(group: list[bytes], room: int) -> list[bytes] | None:
    """The parts of one group that fit, newest first considered, each gap marked. None if none does."""
    kept: list[bytes] = []
    gap: list[bytes] = []
    for part in reversed(group):
        if len(part) + 1 + 2 * MARK > room:  # one mark for a gap before it, one for a gap after it
            gap.append(part)
            continue
        if gap:
            kept.append(_omitted(gap))
            gap = []
            room -= MARK
        kept.append(part)
        room -= len(part) + 1
    if not kept:
        return None
    return [*([_omitted(gap)] if gap else []), *reversed(kept)]


def _omitted(parts: list[bytes]) -> bytes:
    return msgspec.json.encode({"type": "omitted", "parts": len(parts), "bytes": sum(map(len, parts))})


# ---- one part


def _unknown(value: object) -> str:
    """What JSON has no form for (a script may hold anything) is named, not quoted."""
    return f"<{type(value).__name__}>"


_encode = msgspec.json.Encoder(enc_hook=_unknown).encode


_UNWRITABLE = (TypeError, ValueError, RecursionError)
"""What the encoder raises: keys that are no strings, lone surrogates, endless nesting."""


def _encoded(part: Part) -> bytes:
    try:
        return _encode(part)
    except _UNWRITABLE:
        pass
    try:
        return _encode(scrub_tree(part))
    except _UNWRITABLE:
        return _encode({"type": "unwritable"})
