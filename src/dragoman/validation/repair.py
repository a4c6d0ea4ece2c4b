"""Mending a history: the changes that make a conversation sendable again, and a report of each.

Strategy. Two passes over the caller's messages, which are never changed. `_clean` leaves out what cannot stand where it is, and has every
other block mended by itself (`mended.py`). Then the messages are grouped into turns as the encoder would, and `_pair` gives every call
exactly one result in the turn after it. Messages that need nothing stay the same objects. What a second run would find to do is done in
the first, so a second run changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from dragoman.errors import InvalidInputError, Problem
from dragoman.message import (
    Block,
    InvalidToolUse,
    Message,
    Opaque,
    RedactedThinking,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.request import Request
from dragoman.validation.blocks import BLOCKS, PLACES
from dragoman.validation.mended import Change, mended, mended_extra
from dragoman.validation.sent import has_content
from dragoman.validation.types import Look, wrong_types

__all__ = ["Change", "Repaired", "mend", "mistyped"]

UNANSWERED = "No result: the tool call was interrupted."
"""What the model reads as the result of a call that never got one."""

NOT_RUN = "Not run: the input of this call was not complete, valid JSON."
"""The same for a call that must not be run."""

NOTHING_LEFT = "(This message had no content that could be sent.)"
"""Stands for a conversation of which nothing else is left."""

_NOT_IN_USER = (ToolUse, InvalidToolUse, Thinking, RedactedThinking, ServerToolUse)


class Repaired(NamedTuple):
    """A mended history, and every change that was made; none means that the messages are the ones that were given."""

    messages: list[Message]
    changes: list[Change]


class _Item:
    """One message while it is mended, with its place in the input."""

    __slots__ = ("blocks", "index", "message", "places")

    def __init__(self, index: int, message: Message, blocks: list[Block], places: list[int]) -> None:
        self.index = index
        self.message = message
        self.blocks = blocks
        self.places = places
        """For each block its index in the input message."""

    def path(self, position: int) -> str:
        return f"messages[{self.index}].content[{self.places[position]}]"

    def finished(self) -> Message:
        if len(self.blocks) == len(self.message.content) and all(a is b for a, b in zip(self.blocks, self.message.content, strict=True)):
            return self.message
        return replace(self.message, content=self.blocks)


class _Turn:
    """Neighbouring messages of one role, and what the encoder drops between them."""

    __slots__ = ("items", "role")

    def __init__(self, role: str, items: list[_Item]) -> None:
        self.role = role
        self.items = items


def mend(messages: str | Message | Iterable[Message | str]) -> Repaired:
    """See `dragoman.history.repair`."""
    given = Request(messages).messages
    if wrong := mistyped(given):
        raise InvalidInputError(wrong)
    changes: list[Change] = []
    items = [_clean(i, message, changes) for i, message in enumerate(given)]
    turns = _move_system_messages(_turns(items), changes)
    items = _pair(turns, changes)
    result = [item.finished() for item in items]
    if any(message.role != "system" for message in given) and not any(
        message.role != "system" and has_content(message.content) for message in result
    ):
        changes.append(Change("messages", "required", "a user message stands for what is left of the conversation: nothing"))
        result = [*(message for message in result if message.role == "system"), Message("user", NOTHING_LEFT)]
    return Repaired(result, changes)


def mistyped(messages: Sequence[Message]) -> list[Problem]:
    """What is no message, and values that their field cannot hold: the caller's to mend. What is no block at all is left out instead."""
    look = Look()
    if all(look.message(message) for message in messages):
        return []
    return [problem for problem in wrong_types(Request(messages)) if problem.rule != "not_a_block"]


# ---- blocks


def _clean(index: int, message: Message, changes: list[Change]) -> _Item:
    if message.extra:
        extra = mended_extra(message.extra, f"messages[{index}]", changes, debris=False)
        message = message if extra is message.extra else replace(message, extra=extra)
    blocks: list[Block] = []
    places: list[int] = []
    for j, block in enumerate(message.content):
        path = f"messages[{index}].content[{j}]"
        if type(block) not in BLOCKS:  # stores hold other things
            changes.append(Change(path, "not_a_block", "what is no content block was left out"))
            continue
        if _is_misplaced(message.role, block):
            place = PLACES.get(message.role, "this message")
            changes.append(Change(path, "block_role", f"a block of type {block.type} that cannot stand in {place} was left out"))
            continue
        whole = mended(block, path, changes)
        if whole is not None:
            blocks.append(whole)
            places.append(j)
    return _unpaired(_Item(index, message, blocks, places), changes)


def _is_misplaced(role: str, block: Block) -> bool:
    if role == "assistant":
        return isinstance(block, ToolResult)
    if role == "user":
        return isinstance(block, _NOT_IN_USER)
    return not isinstance(block, Text | Opaque)


def _unpaired(item: _Item, changes: list[Change]) -> _Item:
    """Without the other half of a server-side call or result that was left out."""
    kept = set(item.places)
    lost = {_server_id(block) for j, block in enumerate(item.message.content) if j not in kept} - {""}
    for position in reversed(range(len(item.blocks) if lost else 0)):
        block = item.blocks[position]
        if _server_id(block) in lost:
            rule = "tool_result_missing" if isinstance(block, ServerToolUse) else "tool_result_orphan"
            changes.append(Change(item.path(position), rule, f"{block.type} without its other half was left out"))
            del item.blocks[position], item.places[position]
    return item


def _server_id(block: object) -> str:
    """The id that a server-side call and its result share; `""` for any other block."""
    if isinstance(block, ServerToolUse):
        return block.id
    return block.tool_use_id if isinstance(block, ServerToolResult) else ""


# ---- turns


def _turns(items: Sequence[_Item]) -> list[_Turn]:
    turns: list[_Turn] = []
    leading = True
    for item in items:
        role = item.message.role
        blank = not has_content(item.blocks)
        leading = leading and role == "system"
        if turns and (turns[-1].role == role or (blank and role != "user")):
            turns[-1].items.append(item)  # an assistant or system message without content is dropped, so it parts nothing
        elif blank and role == "assistant":
            turns.append(_Turn("", [item]))
        else:
            turns.append(_Turn("" if leading else role, [item]))
    return turns


def _calls(turn: _Turn) -> list[tuple[str, bool]]:
    """The calls of an assistant turn in order: id, and whether it must not be run."""
    calls: list[tuple[str, bool]] = []
    for item in turn.items:
        for block in item.blocks:
            if isinstance(block, ToolUse | InvalidToolUse):
                calls.append((block.id, isinstance(block, InvalidToolUse)))
            elif isinstance(block, Opaque) and block.data.get("type") == "tool_use" and isinstance(block.data.get("id"), str):
                calls.append((block.data["id"], False))
    return calls


def _result_id(block: Block) -> str | None:
    if isinstance(block, ToolResult):
        return block.tool_use_id
    if isinstance(block, Opaque) and block.data.get("type") == "tool_result":
        return str(block.data.get("tool_use_id"))
    return None


def _move_system_messages(turns: list[_Turn], changes: list[Change]) -> list[_Turn]:
    """Put system messages that stand between a call and its result behind the result."""
    moved: list[_Turn] = []
    position = 0
    while position < len(turns):
        turn = turns[position]
        position += 1
        moved.append(turn)
        if turn.role != "assistant":
            continue
        gap: list[_Turn] = []
        while position < len(turns) and turns[position].role in ("user", "system"):
            gap.append(turns[position])
            position += 1
        wanted = {call_id for call_id, _ in _calls(turn)}
        first = 1 if gap and gap[0].role == "user" else 0
        late = [
            other for other in gap[first:] if other.role == "user" and any(_result_id(b) in wanted for i in other.items for b in i.blocks)
        ]
        if late:
            last = gap.index(late[-1])
            ahead, behind = gap[: last + 1], gap[last + 1 :]
            systems = [other for other in ahead if other.role == "system"]
            users = _Turn("user", [item for other in ahead if other.role == "user" for item in other.items])
            changes.extend(
                Change(f"messages[{item.index}]", "system_position", "a system message was moved behind the results of the calls before it")
                for other in systems
                for item in other.items
            )
            gap = [users, *systems, *behind]
        moved += gap
    return moved


# ---- calls and results


def _pair(turns: Sequence[_Turn], changes: list[Change]) -> list[_Item]:
    done: list[_Item] = []
    calls: list[tuple[str, bool]] = []
    for turn in turns:
        if turn.role == "user":
            _answer(turn, calls, changes)
            calls = []
            if any(item.message.role == "user" and has_content(item.blocks) for item in turn.items):
                done += turn.items
            else:
                path = f"messages[{turn.items[0].index}]"
                changes.append(Change(path, "empty_turn", "a user turn without content was left out"))
                done += [item for item in turn.items if item.message.role != "user"]
            continue
        _fill_in(done, calls, changes)
        calls = _calls(turn) if turn.role == "assistant" else []
        done += turn.items
    _fill_in(done, calls, changes)
    return [item for item in done if item.blocks or not item.message.content]  # no message of which all was left out


def _answer(turn: _Turn, calls: Sequence[tuple[str, bool]], changes: list[Change]) -> None:
    """Make the results of a user turn answer exactly these calls."""
    waiting: dict[str, list[bool]] = {}
    for called, invalid in calls:
        waiting.setdefault(called, []).append(invalid)
    first: dict[str, tuple[_Item, int, bool]] = {}
    for item in turn.items:
        blocks: list[Block] = []
        places: list[int] = []
        for position, block in enumerate(item.blocks):
            call_id = _result_id(block)
            if call_id is None:
                pass
            elif waiting.get(call_id):
                invalid = waiting[call_id].pop(0)
                first[call_id] = (item, len(blocks), invalid)
                blocks.append(_marked(block, invalid, item.path(position), changes))
                places.append(item.places[position])
                continue
            elif call_id in first:
                holder, kept_at, invalid = first[call_id]
                kept_in = blocks if holder is item else holder.blocks
                kept_in[kept_at] = _merged(kept_in[kept_at], block, invalid)
                changes.append(
                    Change(item.path(position), "tool_result_repeated", f"another result for `{call_id}` was merged into the first")
                )
                continue
            else:
                changes.append(
                    Change(item.path(position), "tool_result_orphan", f"a result for `{call_id}`, which no call asks for, was left out")
                )
                continue
            blocks.append(block)
            places.append(item.places[position])
        item.blocks, item.places = blocks, places
    missing = [(called, invalid) for called, left in waiting.items() for invalid in left]
    if missing:
        ids = {call_id for call_id, _ in missing}  # what answers one of these already comes first: calls of one id are answered in order
        after = [item for item in turn.items if any(_result_id(block) in ids for block in item.blocks)]
        _insert((after or turn.items[:1])[-1], [call_id for call_id, _ in calls], missing, changes)


def _marked(block: Block, invalid: bool, path: str, changes: list[Change]) -> Block:
    if not invalid:
        return block
    told = Change(f"{path}.is_error", "invalid_call_result", "the result of an invalid call became an error")
    if isinstance(block, ToolResult) and not block.is_error:
        changes.append(told)
        return replace(block, is_error=True)
    if isinstance(block, Opaque) and not block.data.get("is_error"):
        changes.append(told)
        return replace(block, data={**block.data, "is_error": True})
    return block


def _merged(kept: Block, extra: Block, invalid: bool) -> Block:
    """Two results of one call as one; what says the same is said once."""
    if not isinstance(kept, ToolResult) or not isinstance(extra, ToolResult) or kept.content == extra.content:
        return kept
    is_error = invalid or (kept.is_error and extra.is_error)
    return replace(kept, content=[*kept.content, *extra.content], is_error=is_error, cache=kept.cache or extra.cache)


def _insert(item: _Item, order: Sequence[str], missing: Sequence[tuple[str, bool]], changes: list[Change]) -> None:
    """Put results for unanswered calls at the front of a user message, in the order of the calls with those that are there."""
    rank = {call_id: place for place, call_id in reversed(list(enumerate(order)))}
    found = [(block, place) for block, place in zip(item.blocks, item.places, strict=True) if _result_id(block) in rank]
    rest = [(block, place) for block, place in zip(item.blocks, item.places, strict=True) if _result_id(block) not in rank]
    new = [(_filler(call_id, invalid), 0) for call_id, invalid in missing]
    front = sorted([*found, *new], key=lambda pair: rank[str(_result_id(pair[0]))])
    item.blocks = [block for block, _ in (*front, *rest)]
    item.places = [place for _, place in (*front, *rest)]
    changes.extend(
        Change(f"messages[{item.index}]", "tool_result_missing", f"an error result for `{call_id}` was added") for call_id, _ in missing
    )


def _fill_in(done: list[_Item], calls: Sequence[tuple[str, bool]], changes: list[Change]) -> None:
    """A user message of error results after calls that no user turn follows."""
    if not calls:
        return
    index = done[-1].index if done else 0
    content: list[Block] = [_filler(call_id, invalid) for call_id, invalid in calls]
    done.append(_Item(index, Message("user", content), content, [0] * len(content)))
    changes.extend(
        Change(f"messages[{index}]", "tool_result_missing", f"an error result for `{call_id}` was added after it") for call_id, _ in calls
    )


def _filler(call_id: str, invalid: bool) -> ToolResult:
    return ToolResult(call_id, NOT_RUN if invalid else UNANSWERED, is_error=True)
