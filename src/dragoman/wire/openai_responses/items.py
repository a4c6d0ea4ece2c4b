"""The items of one answer while they arrive: what each is, and which one an event is about.

Strategy. An event names its item by `output_index`. Where that is missing (llama.cpp) the item is found by its id, else it is the latest
open one of the kind that the event fits. An item whose id changes from one event to the next (GitHub Copilot) is marked `unstable`.
"""

from __future__ import annotations

from typing import Any

from dragoman.wire.framing import Key
from dragoman.wire.json_values import as_string
from dragoman.wire.openai_responses.input_writer import InputWriter
from dragoman.wire.openai_responses.kinds import CALLS, Role, role_of

__all__ = ["Item", "Items", "id_of"]

_PAIR_TEXT = {"code_interpreter_call": "code", "custom_tool_call": "input"}
"""Items run by the provider whose input arrives as free text, and its key."""


class Item:
    """One output item. `key` is the key of its block in `Framing`; a message has one block for each part instead."""

    __slots__ = (
        "done",
        "ended",
        "id",
        "index",
        "key",
        "kind",
        "part",
        "part_begun",
        "parts",
        "role",
        "settled",
        "start",
        "unstable",
        "whole",
        "writer",
    )

    def __init__(self, index: int, item: dict[str, Any], role: Role) -> None:
        self.index = index
        self.kind = as_string(item.get("type"))
        self.role: Role = role
        self.id = id_of(item)
        self.start = item
        self.key: Key = (index,)
        self.parts: dict[int, Key] = {}
        """Message: content index → the key of its block."""
        self.part: tuple[str, int] | None = None
        """Reasoning: the part that is arriving."""
        self.part_begun = False
        """Reasoning: whether any text of that part has come."""
        self.writer = _writer(self.kind, role)
        self.done: dict[str, Any] | None = None
        """The whole item, if `output_item.done` has brought it."""
        self.ended: dict[str, Any] | None = None
        """A call of free text: the item with its input, if an event has brought that whole."""
        self.whole: set[Key] = set()
        """What of it an event has brought whole."""
        self.unstable = False
        self.settled = False


def id_of(item: dict[str, Any]) -> str:
    """What identifies an item: its id, or, where it has none (llama.cpp's calls), its call id."""
    return as_string(item.get("id")) or as_string(item.get("call_id"))


def _writer(kind: str, role: Role) -> InputWriter | None:
    if role == "use":
        return InputWriter("commands", listed=True)
    if role == "call" and CALLS[kind].streamed:
        return InputWriter(CALLS[kind].streamed, listed=kind == "shell_call")
    return InputWriter(_PAIR_TEXT[kind]) if role == "pair" and kind in _PAIR_TEXT else None


class Items:
    """All items of one answer, by output index. `own_tools` are the names of the caller's own tools.

    Whatever a peer sends, looking one up takes the same time for the first and the last.
    """

    def __init__(self, own_tools: frozenset[str]) -> None:
        self._own_tools = own_tools
        self._items: dict[int, Item] = {}
        self._next = 0  # the index after the largest
        self._named: dict[tuple[str, str], list[Item]] = {}  # by kind and id, the latest last
        self._open: dict[str, list[Item]] = {}  # by kind, the latest last; the settled ones at the end are dropped when one is looked for
        self._matched: dict[tuple[str, str], int] = {}  # by kind and id: how many of those in `_named` are taken

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, index: int) -> bool:
        return index in self._items

    def get(self, index: int) -> Item | None:
        """The item at an output index."""
        return self._items.get(index)

    def unsettled(self) -> list[Item]:
        """Those that are not finished, in the order of their start."""
        return [item for item in self._items.values() if not item.settled]

    def free_index(self, wish: Any) -> int:
        """The output index that an item gets: the one it asks for if that is free, else the next."""
        return wish if isinstance(wish, int) and wish not in self._items else self._next

    def add(self, index: int, item: dict[str, Any]) -> Item:
        """A new item."""
        added = self._items[index] = Item(index, item, role_of(item, self._own_tools))
        self._next = max(self._next, index + 1)
        self._named.setdefault((added.kind, added.id), []).append(added)
        self._open.setdefault(added.kind, []).append(added)
        return added

    def find(self, value: dict[str, Any], kind: str, *, id: str = "") -> Item | None:
        """The item that an event is about; `kind` is what fits, `id` what the event's item says of itself."""
        index = value.get("output_index")
        id = id or as_string(value.get("item_id"))
        if isinstance(index, int):
            item = self._items.get(index)
            if item is not None and id and id != item.id:
                item.unstable = True
            return item
        if id and (named := self._named.get((kind, id))):
            return named[-1]
        latest = self._open.get(kind, [])
        while latest and latest[-1].settled:
            latest.pop()
        return latest[-1] if latest else None

    def match(self, position: int, final: dict[str, Any], taken: set[int]) -> Item | None:
        """The item that a finished one is: the one of its id, else the one at its position, if the kinds agree. `taken` are no choice, and
        only grow.
        """
        kind, id = as_string(final.get("type")), id_of(final)
        named = self._named.get((kind, id), []) if id else []
        at = self._matched.get((kind, id), 0)
        while at < len(named) and named[at].index in taken:
            at += 1
        self._matched[kind, id] = at
        if at < len(named):
            return named[at]
        placed = self._items.get(position)
        return placed if placed is not None and placed.kind == kind and position not in taken else None
