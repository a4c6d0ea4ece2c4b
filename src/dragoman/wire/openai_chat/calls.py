"""Tool calls of an answer, put together from their pieces.

Strategy. A piece says which call it belongs to by `index`, by `id`, by both or by neither, depending on the host. Seen: the id in the
first piece only (OpenAI), in every piece (some of OpenRouter's hosts), whole calls all at index 0 (Google through OpenRouter), `name` and
`id` null in later pieces (Venice), no id at all (Google), two calls in one chunk (Mistral), arguments null, an empty `custom`
beside the function (Snowflake), the name in every piece and no id (vLLM's named tool choice), the head at one index and the
arguments at the next (a gateway, seen by agno), the same id at two indexes (LocalAI), the name in two pieces.

So: a new id is a new call, unless its index has a call that had no id yet and has not begun. A piece without one goes on with the latest
call at its index; another name there is a new call, but the rest of the name where that call has an id and has not begun; the
same name is a new call only where one JSON object ends and another begins. At an index that is new, a piece without id and name belongs to
the latest call if that has not begun, and a known id to its own. A call has begun when arguments have come.
"""

from __future__ import annotations

from collections.abc import Callable
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

    __slots__ = ("begun", "custom", "early", "id", "key", "latest", "name", "name_rest", "named_again")

    def __init__(self, key: str) -> None:
        self.key = key
        self.id = ""
        self.name = ""
        self.custom = False
        self.name_rest: list[str] = []  # pieces of the name that came after its block had begun
        self.named_again = False  # without arguments: whether that was a new call, the next piece tells
        self.begun = False  # arguments have come
        self.latest = ""  # the latest piece of them
        self.early: list[str] = []  # arguments that came before the name

    def take(self, piece: str) -> None:
        """Note a piece of arguments."""
        if piece:
            self.begun = True
            self.named_again = False
            self.latest = piece

    def ends_before(self, piece: str) -> bool:
        """Whether one JSON object ends in what has come, and another begins with `piece`."""
        return piece.lstrip().startswith("{") and self.latest.rstrip().endswith("}")


class Calls:
    """The calls of one answer, as blocks of `framing`. `notice(code, message, index=)` is told of names that came in pieces."""

    def __init__(self, framing: Framing, notice: Callable[..., object]) -> None:
        self._framing = framing
        self._notice = notice
        self._at: dict[int, _Call] = {}  # by wire index: the latest
        self._of: dict[str, _Call] = {}  # by id: the first, for pieces without an index
        self._latest: _Call | None = None
        self._count = 0
        self._unnamed: dict[str, _Call] = {}  # by key
        self._renamed: list[_Call] = []  # whose name came in pieces

    @property
    def any(self) -> bool:
        """Whether there is a call for the caller to run."""
        return self._framing.calls > 0 or bool(self._unnamed)

    def go_on(self, pieces: list[Call]) -> bool:
        """Take pieces that only bring more arguments; False: one of them does something else, and nothing was taken."""
        for piece in pieces:
            call = self._at.get(piece.index)
            if call is None or piece.id or piece.function.name or call.custom or not call.name or call.named_again:
                return False
        for piece in pieces:
            if piece.function.arguments:
                call = self._at[piece.index]
                call.begun = True
                call.latest = piece.function.arguments
                self._framing.tool_input(call.key, piece.function.arguments)
        return True

    def add(self, entry: dict[str, Any]) -> None:
        """Take one entry of `tool_calls`, whatever it brings."""
        free = as_object(entry.get("custom"))
        custom = entry.get("type") == "custom" or bool(free.get("name") or free.get("input"))
        function = free if custom else as_object(entry.get("function"))
        id, name = as_string(entry.get("id")), as_string(function.get("name"))
        piece = as_string(function.get("input")) if custom else _arguments(function.get("arguments"))
        index: Any = entry.get("index")
        call = self._known(index, id, name)
        if call is not None and call.named_again and not name and call.ends_before(piece):
            name, call = call.name, None
        elif call is not None and _is_another(call, id, name, piece):
            call = None
        if call is None:
            call = self._new(index)
        self._latest = call
        if id and not call.id:
            call.id = id
            self._of.setdefault(id, call)
        if not id and name == call.name and call.begun and not piece:
            call.named_again = bool(name)
        call.custom = call.custom or custom
        self._take(call, name, piece)
        rest = {key: value for key, value in entry.items() if key not in _KEYS and value is not None}
        if rest and call.name:
            self._framing.remember(call.key, **rest)

    def _take(self, call: _Call, name: str, piece: str) -> None:
        """Add what a piece brings to its call, and open its block when the name is known."""
        if call.name and name not in ("", call.name) and not call.begun:
            self._go_on_with_name(call, name)
        call.take(piece)
        if not call.name:
            if not name:
                call.early.append(piece)
                return
            call.name = name
            del self._unnamed[call.key]
            self._framing.tool(call.key, call.id, name, extra={"kind": "custom"} if call.custom else None)
            piece = "".join([*call.early, piece])
        if call.custom:
            self._framing.tool_string(call.key, piece)
        else:
            self._framing.tool_input(call.key, piece)

    def _go_on_with_name(self, call: _Call, rest: str) -> None:
        if not call.name_rest:
            self._renamed.append(call)
            index = self._framing.index(call.key)
            self._notice("tool_name_in_pieces", "the name of a tool came in pieces; the finished block has it whole", index=index)
        call.name_rest.append(rest)

    def add_function_call(self, function: dict[str, Any]) -> None:
        """Take `function_call`, the form before tools: one call, without an id. Snowflake sends one with nothing in it."""
        if not any(function.values()):
            return
        if self._framing.index(_FUNCTION) is None:
            self._framing.tool(_FUNCTION, "", as_string(function.get("name")), extra={"kind": "function_call"})
        self._framing.tool_input(_FUNCTION, _arguments(function.get("arguments")))

    def close(self, *, cut: bool) -> None:
        """Finish the calls that never named a tool, which nobody can run, and those whose block began with part of a name.

        `cut`: the answer ended in the middle.
        """
        for call in self._unnamed.values():
            self._framing.tool(call.key, call.id, "")
            self._framing.tool_input(call.key, "".join(call.early))
            self._framing.stop(call.key, invalid="incomplete")
        self._unnamed.clear()
        for call in self._renamed:
            self._framing.stop(call.key, cut=cut, name="".join([call.name, *call.name_rest]))

    # ---- which call a piece is about

    def _known(self, index: Any, id: str, name: str) -> _Call | None:
        """The call that a piece goes on with, unless what it brings begins another one."""
        if not isinstance(index, int):
            return self._of.get(id) if id else self._latest
        call = self._at.get(index)
        if call is not None:
            return call
        if id:
            call = self._of.get(id)
        elif not name:
            call = self._latest
        if call is None or call.begun or name not in ("", call.name):
            return None
        self._at[index] = call
        return call

    def _new(self, index: Any) -> _Call:
        call = _Call(f"call {self._count}")
        if isinstance(index, int):
            self._at[index] = call
        self._count += 1
        self._unnamed[call.key] = call
        return call


def _is_another(call: _Call, id: str, name: str, piece: str) -> bool:
    """Whether a piece at the place of `call` begins another call."""
    if id and id != call.id:
        if call.id or not name:
            return bool(call.id)
        return bool(call.name) and (call.begun or name != call.name)
    if id or not name or not call.name:
        return False
    if name == call.name:
        return call.ends_before(piece)
    return call.begun or not call.id


def _arguments(value: object) -> str:
    """The text of a call's arguments; a host that sends them as an object is understood, too."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(scrub_tree(value)).decode() if isinstance(value, dict) else ""
