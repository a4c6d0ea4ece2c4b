"""Tool calls of an answer, put together from their pieces.

Strategy. A piece says which call it belongs to by `index`, by `id`, by both or by neither, depending on the host. Seen: the id in the
first piece only (OpenAI), in every piece (some of OpenRouter's hosts), whole calls all at index 0 (Google through OpenRouter), `name` and
`id` null in later pieces (Venice), no id at all (Google), two calls in one chunk (Mistral), arguments null, an empty `custom`
beside the function (Snowflake). So: a new id is a new call; a
piece without one goes on with the latest call at its index; without ids a new name is a new call once arguments had begun.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.fragments import scrub_tree
from dragoman.wire.framing import Framing
from dragoman.wire.json_values import as_object, as_string
from dragoman.wire.openai_chat.chunk import Call

__all__ = ["Calls"]

_FUNCTION = "function_call"
_KEYS = frozenset({"index", "id", "type", "function", "custom"})


class _Call:
    """One call; it has no block until its name is known."""

    __slots__ = ("begun", "custom", "early", "id", "key", "name")

    def __init__(self, key: str, id: str) -> None:
        self.key = key
        self.id = id
        self.name = ""
        self.custom = False
        self.begun = False  # arguments have come
        self.early: list[str] = []  # arguments that came before the name


class Calls:
    """The calls of one answer, as blocks of `framing`."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._at: dict[int, _Call] = {}  # by wire index: the latest
        self._of: dict[str, _Call] = {}  # by id: the first, for pieces without an index
        self._latest: _Call | None = None
        self._count = 0
        self._unnamed: dict[str, _Call] = {}  # by key

    @property
    def any(self) -> bool:
        """Whether there is a call for the caller to run."""
        return self._framing.calls > 0 or bool(self._unnamed)

    def go_on(self, pieces: list[Call]) -> bool:
        """Take pieces that only bring more arguments; False: one of them does something else, and nothing was taken."""
        for piece in pieces:
            call = self._at.get(piece.index)
            if call is None or piece.id or piece.function.name or call.custom or not call.name:
                return False
        for piece in pieces:
            if piece.function.arguments:
                call = self._at[piece.index]
                call.begun = True
                self._framing.tool_input(call.key, piece.function.arguments)
        return True

    def add(self, entry: dict[str, Any]) -> None:
        """Take one entry of `tool_calls`, whatever it brings."""
        custom = entry.get("type") == "custom" or bool(as_object(entry.get("custom")).get("name"))
        function = as_object(entry.get("custom" if custom else "function"))
        id, name = as_string(entry.get("id")), as_string(function.get("name"))
        call = self._call_of(entry.get("index"), id, name)
        call.custom = call.custom or custom
        piece = as_string(function.get("input")) if custom else _arguments(function.get("arguments"))
        if not call.name:
            if not name:
                call.early.append(piece)
                return
            call.name = name
            del self._unnamed[call.key]
            self._framing.tool(call.key, call.id, name, extra={"kind": "custom"} if call.custom else None)
            piece = "".join([*call.early, piece])
        rest = {key: value for key, value in entry.items() if key not in _KEYS and value is not None}
        if rest:
            self._framing.remember(call.key, **rest)
        call.begun = call.begun or bool(piece)
        if call.custom:
            self._framing.tool_string(call.key, piece)
        else:
            self._framing.tool_input(call.key, piece)

    def add_function_call(self, function: dict[str, Any]) -> None:
        """Take `function_call`, the form before tools: one call, without an id. Snowflake sends one with nothing in it."""
        if not any(function.values()):
            return
        if self._framing.index(_FUNCTION) is None:
            self._framing.tool(_FUNCTION, "", as_string(function.get("name")), extra={"kind": "function_call"})
        self._framing.tool_input(_FUNCTION, _arguments(function.get("arguments")))

    def close_unnamed(self) -> None:
        """Finish the calls that never named a tool: nobody can run them."""
        for call in self._unnamed.values():
            self._framing.tool(call.key, call.id, "")
            self._framing.tool_input(call.key, "".join(call.early))
            self._framing.stop(call.key, invalid="incomplete")
        self._unnamed.clear()

    def _call_of(self, index: Any, id: str, name: str) -> _Call:
        if isinstance(index, int):
            call = self._at.get(index)
        elif id:
            call = self._of.get(id)
        else:
            call = self._latest
        if call is not None:
            other_id = bool(id) and id != call.id and bool(call.id or name)
            other_name = bool(name) and not id and call.begun
            if other_id or other_name:
                call = None
        if call is None:
            call = _Call(f"call {self._count}", id)
            if isinstance(index, int):
                self._at[index] = call
            self._of.setdefault(id, call)
            self._count += 1
            self._unnamed[call.key] = call
        self._latest = call
        return call


def _arguments(value: object) -> str:
    """The text of a call's arguments; a host that sends them as an object is understood, too."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(scrub_tree(value)).decode() if isinstance(value, dict) else ""
