"""Call ids in the wire copy: at most 64 characters, and each used once.

Strategy. The API refuses a `call_id` of more than 64 characters, and pairs a result with a call by it, so a history whose other provider
counts from `call_0` in every turn must not repeat one. Only such ids are rewritten, only in the wire copy, call and result together:
a digest of the whole id (and of its use, if it is repeated) takes the place of its end. Our own model keeps the id as it is, so the
caller's answers find their calls as before.
"""

from __future__ import annotations

__all__ = ["CALL_ID_LIMIT", "CallIds"]

CALL_ID_LIMIT = 64
"""Characters that the API accepts (400 `string_above_max_length` otherwise)."""

_DIGEST = 16


class CallIds:
    """The ids of one request, in the order in which its calls and results are written."""

    __slots__ = ("_answered", "_open", "_uses")

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}  # our id → the wire ids of its calls that no result has answered
        self._answered: dict[str, str] = {}  # our id → the wire id of the call that was answered last

    def call(self, id: str) -> str:
        """The wire id of a call."""
        use = self._uses[id] = self._uses.get(id, 0) + 1
        wire_id = id if use == 1 and 0 < len(id) <= CALL_ID_LIMIT else _digested(id, use)
        self._open.setdefault(id, []).append(wire_id)
        return wire_id

    def result(self, id: str) -> str:
        """The wire id of the call that a result answers; of several calls with one id each result takes the next."""
        waiting = self._open.get(id)
        if waiting:
            self._answered[id] = waiting.pop(0)
        elif id not in self._answered:  # its call is not in this request: it is part of the conversation that the provider holds
            return id if len(id) <= CALL_ID_LIMIT else _digested(id, 1)
        return self._answered[id]


def _digested(id: str, use: int) -> str:
    from hashlib import sha256

    digest = sha256(f"{use}:{id}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    head = "".join(char if (char.isalnum() and char.isascii()) or char in "-_" else "_" for char in id[: CALL_ID_LIMIT - _DIGEST - 1])
    return f"{head}_{digest}"
