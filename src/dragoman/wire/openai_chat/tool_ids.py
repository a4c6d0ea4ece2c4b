"""Tool call ids in the wire copy: in the host's form, and each used once.

Strategy. Hosts limit the length of an id (OpenAI 40, Mistral exactly 9 letters and digits), and a conversation that came from elsewhere may
have longer ones, or count from `call_0` anew in every turn. Only an id that the host would refuse, or that was used before, is
rewritten, call and result together and in the wire copy only: the conversation keeps its own ids, so it can go back to where they came
from. The new id is the old one's beginning and a hash of all of it: the same in every process, different for two ids with one beginning.
"""

from __future__ import annotations

import re
from hashlib import sha256

__all__ = ["ToolIds"]

_SAFE = re.compile(r"[^a-zA-Z0-9_-]")
_HASH = 12
"""Characters of the hash behind the beginning of an id."""
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class ToolIds:
    """The ids of one request, in the order in which its calls and results are written."""

    def __init__(self, *, limit: int, pattern: str) -> None:
        self._limit = limit
        self._matches = re.compile(pattern).fullmatch
        self._used: set[str] = set()
        self._turn = 0
        self._answers: dict[str, tuple[int, list[str]]] = {}  # our id → the turn that used it last, and its wire ids there

    def next_turn(self) -> None:
        """The calls that follow belong to another assistant turn."""
        self._turn += 1

    def call(self, id: str) -> str:
        """The wire id of a call."""
        wire_id, use = id, 1
        while wire_id in self._used or len(wire_id) > self._limit or self._matches(wire_id) is None:
            wire_id = self._spelled(id, use)
            use += 1
        self._used.add(wire_id)
        turn, queue = self._answers.get(id, (-1, []))
        self._answers[id] = (self._turn, [*queue, wire_id] if turn == self._turn else [wire_id])
        return wire_id

    def result(self, id: str) -> str:
        """The wire id of the call that a result answers. Of several calls with one id in a turn, each result takes the next."""
        if id not in self._answers:
            legal = len(id) <= self._limit and self._matches(id) is not None
            return id if legal else self._spelled(id, 1)
        queue = self._answers[id][1]
        return queue.pop(0) if len(queue) > 1 else queue[0]

    def _spelled(self, id: str, use: int) -> str:
        number = int.from_bytes(sha256(f"{use}:{id}".encode("utf-8", "surrogatepass")).digest(), "big")
        size = min(_HASH, self._limit)
        digest = ""
        for _ in range(size):
            number, digit = divmod(number, len(_DIGITS))
            digest += _DIGITS[digit]
        room = self._limit - size - 1
        return f"{_SAFE.sub('_', id[:room])}-{digest}" if room > 0 else digest
