"""Tool call ids in the wire copy: legal, and each used once (spec: anthropic.md §5, cases 42 and 43).

Strategy. The API takes `^[a-zA-Z0-9_-]+$` and wants every call of a request to have an id of its own. Histories from other providers have
`functions.ls:0`, or count from `call_0` anew in every turn. Only the ids that the API would refuse are rewritten, in the wire copy only,
call and result together: a result answers a call of the assistant turn before it, so the calls of the latest turn decide.

A rewritten id spells the original one (`dgm1-functions_2els_3a0`: how many-eth use, then each byte that is not a letter, digit or `-` as
`_` and two hex digits), so `original_id` gets it back without a table.
"""

from __future__ import annotations

import re

__all__ = ["ToolIds", "is_legal_id", "original_id"]

_LEGAL = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
_REWRITTEN = re.compile(r"dgm[1-9]\d*-((?:[a-zA-Z0-9-]|_[0-9a-f]{2})*)").fullmatch
_KEPT = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


def is_legal_id(id: str) -> bool:
    """Whether the API takes this id as it is."""
    return (id.isascii() and id.isidentifier()) or _LEGAL(id) is not None  # the first is the common case, and faster


def original_id(id: str) -> str:
    """The id that a call had before it was rewritten; any other id is returned as it is."""
    match = _REWRITTEN(id)
    if match is None:
        return id
    data = re.sub(rb"_([0-9a-f]{2})", lambda m: bytes.fromhex(m[1].decode()), match[1].encode())
    return data.decode("utf-8", "surrogatepass")


def _spelled(id: str, use: int) -> str:
    body = "".join(chr(byte) if byte in _KEPT else f"_{byte:02x}" for byte in id.encode("utf-8", "surrogatepass"))
    return f"dgm{use}-{body}"


_TAKEN = -1


class ToolIds:
    """The ids of one request, in the order in which its calls and results are written."""

    __slots__ = ("answers", "seen", "turn")

    def __init__(self) -> None:
        self.turn = 0
        """Which turn the calls belong to: a number of its own for each."""
        self.seen: dict[str, int] = {}
        """Every id that a call has had so far, and the turn that used it last; `_TAKEN` for one that only we gave."""
        self.answers: dict[str, tuple[int, list[str]]] = {}
        """Original id → its turn, and the wire ids of its calls in order; empty until an id is rewritten."""

    def call(self, id: str) -> str:
        """The wire id of a call."""
        last_turn = self.seen.get(id)
        if last_turn is None and is_legal_id(id):
            self.seen[id] = self.turn
            return id
        return self._rewrite(id, last_turn)

    def result(self, id: str) -> str:
        """The wire id of the call that a result answers. Of several calls with one id, each result takes the next."""
        if id not in self.answers:
            return id
        queue = self.answers[id][1]
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def _rewrite(self, id: str, last_turn: int | None) -> str:
        use = 1 if last_turn is None or last_turn == _TAKEN else 2
        while (wire_id := _spelled(id, use)) in self.seen:
            use += 1
        self.seen[wire_id] = _TAKEN
        turn, queue = self.answers.get(id, (_TAKEN, []))
        if turn == self.turn:
            queue.append(wire_id)
        else:
            first = [id] if last_turn == self.turn else []  # an earlier call of this very turn kept the id
            self.answers[id] = (self.turn, [*first, wire_id])
        self.seen[id] = self.turn
        return wire_id
