"""The conversation: which blocks stand where, and that every tool use is answered by exactly one result in the very next user turn.

Strategy. One pass over the messages, since this runs before every request and a history can be long. The blocks that histories are made
of (text, tool use and result, thinking) are looked at in the loops themselves, their types included, told apart by their exact class
(`isinstance` of a Struct that it is not goes through ABCMeta, ten times as slow). Everything else goes to `_look`, for its types, and to
`_other`. A value that may be of a wrong type ends the pass: who knows the types for sure begins another one. A path is built only for a
problem.

Neighbours of one role are one turn, as the encoder makes them, and what the encoder leaves out does not count. Hoisted system messages
are gone; one that stays is a turn of its own. Calls of one turn with the same id are answered in their order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.message import (
    Audio,
    Block,
    InvalidToolUse,
    Message,
    Opaque,
    Origin,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.request import Request
from dragoman.validation.blocks import check_block, check_signed
from dragoman.validation.dialect import Dialect, Holder
from dragoman.validation.sent import are_sent, has_content, is_foreign, is_hoistable, server_holds_history
from dragoman.validation.tools import NAME_FIX
from dragoman.validation.types import Look

__all__ = ["DoubtError", "Turns"]

_MESSAGES = frozenset({Message})
_SERVER_SIDE = (ServerToolUse, ServerToolResult, Opaque)


class DoubtError(Exception):
    """A value may be of a wrong type, so nothing that was found counts."""


_Place: TypeAlias = tuple[int, int]
"""Of a block: the positions of its message, and in it."""


class Turns:
    """The pass over the messages of one request, whose settings are of the right types. `run()` collects what it finds.

    `trusted`: every value of the messages too is known to be of the right type, by whatever subclass.
    """

    def __init__(
        self, request: Request, dialect: Dialect, rules: ModelRules, look: Look, *, wire: str, api_version: str, trusted: bool
    ) -> None:
        self.messages = request.messages
        self.hoist_all = request.hoist_system == "all"
        self.dialect = dialect
        self.rules = rules
        self.wire = wire
        self.latest_api = dialect.claude and api_version >= "2026-10-21"
        self.thinking_as_text = request.foreign_thinking == "text"
        self.pairs = not server_holds_history(request)
        self.look = look
        self.trusted = trusted
        self.out: list[Problem] = []
        self.silent = False
        """Whether there is no user or assistant message of which anything is sent."""
        self.marked = False
        """Whether any block may have a cache mark."""
        self.inputs: list[dict[str, Any]] = []
        """The inputs of all calls."""
        self.names: set[str] = set()
        self.turn = ""
        """The role of the turn at hand."""
        self.start = 0
        """Where the user turn at hand begins."""
        self.kept = True
        """Whether the user turn at hand holds anything that is sent."""
        self.open: dict[str, _Place] = {}
        """The calls of the assistant turn at hand or, in a user turn, those of the one before that are not answered yet."""
        self.later: dict[str, list[_Place]] = {}
        """The others of those that have the same id."""
        self.invalid: set[_Place] = set()
        """Those that must not be run."""
        self.staying: set[int] = set()
        """The positions of the system messages that stay where they are."""
        self._called: tuple[int, set[str]] = (-1, set())
        self._places: dict[str, _Place] | None = None

    # ---- messages

    def run(self) -> None:
        """Look at every message. Raises DoubtError."""
        ahead = 0  # system messages that are hoisted, and nothing before them
        last: Message | None = None
        if set(map(type, self.messages)) - _MESSAGES:
            for message in self.messages:
                self._settle(self.look.message(message))
        open_calls, names, inputs = self.open, self.names, self.inputs
        block: Any
        part: Any
        for i, message in enumerate(self.messages):
            if message.extra:
                self._settle(self.look.message(message))
            origin = message.origin
            if origin is not None and not (
                type(origin) is Origin and type(origin.wire) is str and type(origin.model) is str and type(origin.provider) is str
            ):
                self._settle(self.look.origin(origin))
            content = message.content
            role = message.role
            in_user = role == "user"
            if in_user:
                if self.turn != "user":
                    self.turn, self.start, self.kept = "user", i, False
            elif role == "assistant":
                if not (content and type(content[-1]) is ToolUse) and not self._is_sent(message):
                    continue
                if self.turn != "assistant":
                    if open_calls or not self.kept:
                        self._end_turn()
                    self.turn = "assistant"
            else:
                self._settle(type(role) is str and role == "system")
                self._blocks_of_system(i, message)
                hoistable = is_hoistable(message, self.wire)
                if hoistable and ahead == i:
                    ahead += 1
                elif not (hoistable and self.hoist_all):
                    self._system(i, message)
                continue
            last = message
            j = -1  # `enumerate` costs three times as much
            for block in content:
                j += 1
                kind: type = type(block)  # pyright: ignore[reportUnknownVariableType]
                if kind is Text:
                    if type(block.text) is not str or block.cache is not None or block.citations or block.extra:
                        self._odd_text(block, role, i, j)
                    if in_user and not self.kept:
                        self.kept = bool(block.text) and not block.text.isspace()
                elif kind is ToolUse and not in_user:
                    call_id = block.id
                    if type(call_id) is not str or block.cache is not None or block.extra:
                        self._look(block)
                    inputs.append(block.input)
                    if call_id in open_calls or block.name not in names:
                        self._call(block, i, j)
                    else:
                        open_calls[call_id] = i, j
                elif kind is ToolResult and in_user:
                    self.kept = True
                    parts = block.content
                    if (
                        block.is_error is not False
                        or block.cache is not None
                        or block.extra
                        or len(parts) != 1
                        or type(part := parts[0]) is not Text
                        or type(part.text) is not str
                        or part.cache is not None
                        or part.citations
                        or part.extra
                    ):
                        self._odd_result(block, i, j)
                    place = open_calls.pop(block.tool_use_id, None)
                    if place is None or self.later or self.invalid:
                        self._look(block)
                        self._result(block.tool_use_id, place, block.is_error, i, j)
                elif kind is Thinking and not in_user:
                    if type(block.text) is not str or type(block.signature) is not str or block.extra:
                        self._look(block)
                    if block.signature and not (block.text.isascii() and block.signature.isascii()):
                        check_signed(block.text + block.signature, _path(i, j), self.out)
                else:
                    self._look(block)
                    rest = self._others_of_user if in_user else self._others_of_assistant
                    rest(block, origin, i, j)
        self._end(last)

    def _settle(self, fits: bool) -> None:
        """Go on with a value only if it fits, or if somebody knows that it is right all the same."""
        if not fits:
            if not self.trusted:
                raise DoubtError
            self.look.extras = True  # it may hold some where nobody looked

    def _look(self, block: Block) -> None:
        """A block of a rare class, or with rare fields."""
        self.marked = True  # looked at in earnest by `check_marks`
        self._settle(self.look.block(block))

    def _end(self, last: Message | None) -> None:
        """After the last message: nothing may be left open. `last` is the last that is no system message."""
        prefill = self.turn == "assistant" and not self.open and last is not None and _is_prefill(last)
        self._end_turn()
        if prefill and not self.rules.prefill and self.pairs:
            path = f"messages[{len(self.messages) - 1}]"
            self._add(path, "prefill", f"{self.rules.id} does not continue an assistant message", "end with a user message")
        self.silent = last is None or not self._anything()

    def _anything(self) -> bool:
        """Whether a message is left; a user turn without content is a problem of its own."""
        for message in self.messages:  # a generator that is left early costs as much as fifty turns of this
            if message.role == "user" or (message.role == "assistant" and self._are_sent(message.content, message.origin)):
                return True
        return False

    def _is_sent(self, message: Message) -> bool:
        """Whether the encoder sends anything of an assistant message. What ends with text is most of those that end with no call."""
        content = message.content
        if content:
            last = content[-1]
            if type(last) is Text and type(last.text) is str and last.text and not last.text.isspace():
                return True
        for block in content:
            self._look(block)
        return self._are_sent(content, message.origin)

    def _are_sent(self, blocks: Iterable[Block], origin: Origin | None) -> bool:
        return are_sent(blocks, origin, wire=self.wire, thinking_as_text=self.thinking_as_text)

    def _blocks_of_system(self, i: int, message: Message) -> None:
        for j, block in enumerate(message.content):
            self._look(block)
            if not isinstance(block, Text):
                self._other(block, "system", _path(i, j))

    def _system(self, i: int, message: Message) -> None:
        """A system message that stays where it is."""
        if not has_content(message.content):
            return
        if not self.rules.mid_system and message.text.strip():
            text = f"{self.rules.id} does not honour a system message among the others"
            self._add(f"messages[{i}]", "system_position", text, 'put it into Request.system, or set hoist_system="all"')
        self._end_turn()
        self.turn = "system"
        self.staying.add(i)

    def _end_turn(self) -> None:
        """The turn at hand is over, and no user turn follows an assistant's: what is not answered never will be."""
        for call_id, place in self.open.items() if self.pairs else ():
            text = f"tool use `{call_id}` has no result in the very next user turn"
            for open_place in (place, *self.later.get(call_id, ())):
                self._add(_path(*open_place), "tool_result_missing", text, "answer it with tool_result(…), or use repair(…)")
        self.open.clear()
        self.later.clear()
        self.invalid.clear()
        if self.turn == "user" and not self.kept and self.dialect.claude:
            path = f"messages[{self.start}]"
            self._add(path, "empty_turn", "nothing is left of this user turn without its empty text", "give it text, or leave it out")

    # ---- blocks

    def _odd_text(self, block: Text, role: str, i: int, j: int) -> None:
        self._look(block)
        if block.citations and self.latest_api and role == "user":
            self._add(_path(i, j), "api_version", "this API version takes no citations in a user message", "leave them out")

    def _odd_result(self, block: ToolResult, i: int, j: int) -> None:
        self._look(block)
        for k, part in enumerate(block.content):
            if not isinstance(part, Text):
                self._other(part, "tool result", f"{_path(i, j)}.content[{k}]")

    def _others_of_assistant(self, block: Block, origin: Origin | None, i: int, j: int) -> None:
        if isinstance(block, InvalidToolUse):
            self.invalid.add((i, j))
            self._call(block, i, j)
        elif not (isinstance(block, Audio) and is_foreign(origin, self.wire)):  # another provider's sound is sent as its words
            self._other(block, "assistant", _path(i, j))
            if self._is_own(block, "tool_use"):
                self._open(str(block.data.get("id")), i, j)

    def _others_of_user(self, block: Block, origin: Origin | None, i: int, j: int) -> None:
        if not isinstance(block, Opaque):
            if not self.kept:
                self.kept = self._are_sent((block,), origin)  # misplaced blocks too: one problem is enough
            self._other(block, "user", _path(i, j))
        elif block.wire == self.wire:
            self.kept = True
            self._other(block, "user", _path(i, j))
            if self._is_own(block, "tool_result"):
                answered = str(block.data.get("tool_use_id"))
                self._result(answered, self.open.pop(answered, None), bool(block.data.get("is_error")), i, j)

    def _call(self, block: ToolUse | InvalidToolUse, i: int, j: int) -> None:
        """A call with a name that is new, or with an id that another call of its turn has."""
        name = block.name
        if name not in self.names:
            if type(name) is not str:
                self._look(block)
            if self.dialect.tool_name.fullmatch(name):
                self.names.add(name)
            else:
                self._add(f"{_path(i, j)}.name", "tool_name", "is no legal tool name", NAME_FIX)
        self._open(block.id, i, j)

    def _open(self, call_id: str, i: int, j: int) -> None:
        if call_id in self.open:
            self.later.setdefault(call_id, []).append((i, j))
        else:
            self.open[call_id] = i, j

    def _result(self, call_id: str, place: _Place | None, is_error: bool, i: int, j: int) -> None:
        """A result that may answer no call, one of several with its id, or one that must not be run."""
        if place is None:
            if self.pairs:
                self._orphan(call_id, _path(i, j))
            return
        queue = self.later.get(call_id)
        if queue:
            self.open[call_id] = queue.pop(0)
            if not queue:
                del self.later[call_id]
        if place not in self.invalid:
            return
        self.invalid.remove(place)
        if not is_error and self.pairs:
            text = f"answers the invalid call at {_path(*place)}, which was never run"
            self._add(f"{_path(i, j)}.is_error", "invalid_call_result", text, "set is_error=True")

    # ---- everything else

    def _orphan(self, call_id: str, path: str) -> None:
        if call_id in self._called_before():
            text = f"is another result for `{call_id}`, which has one in this turn"
            self._add(path, "tool_result_repeated", text, "leave one result per call, or use repair(…)")
            return
        if self._places is None:
            self._places = _call_places(self.messages)
        place = self._places.get(call_id)
        if place is None:
            text = f"result for `{call_id}`, but no call has this id"
            self._add(path, "tool_result_orphan", text, "leave it out, or use repair(…)")
        else:
            text = f"result for `{call_id}` does not follow its call at {_path(*place)} directly"
            self._add(path, "tool_result_orphan", text, "move it into the user turn right after the call, or use repair(…)")

    def _called_before(self) -> set[str]:
        """The ids of all calls of the assistant turn before the user turn at hand."""
        if self._called[0] != self.start:
            found: set[str] = set()
            for i in range(self.start - 1, -1, -1):
                message = self.messages[i]
                if message.role == "user" or i in self.staying:
                    break
                found.update(block.id for block in message.content if isinstance(block, ToolUse | InvalidToolUse))
                found.update(str(block.data.get("id")) for block in message.content if self._is_own(block, "tool_use"))
            self._called = self.start, found
        return self._called[1]

    def _is_own(self, block: Block, kind: str) -> TypeGuard[Opaque]:
        """Whether a block is one of this wire, whole, of a kind that has a class of ours."""
        return isinstance(block, Opaque) and block.wire == self.wire and block.data.get("type") == kind

    def _other(self, block: Block, holder: Holder, path: str) -> None:
        """A block that is none of the common ones in its place."""
        check_block(block, holder, path, dialect=self.dialect, rules=self.rules, latest_api=self.latest_api, out=self.out)

    def _add(self, path: str, rule: str, message: str, fix: str) -> None:
        self.out.append(Problem(path, rule, message, fix))


def _is_prefill(message: Message) -> bool:
    """Whether a trailing assistant message asks to be continued: not a turn that the server paused."""
    return not isinstance(message.content[-1], _SERVER_SIDE)


def _call_places(messages: Iterable[Message]) -> dict[str, _Place]:
    """Where each call stands; built for the text of a problem only."""
    return {
        block.id: (i, j)
        for i, message in enumerate(messages)
        for j, block in enumerate(message.content)
        if isinstance(block, ToolUse | InvalidToolUse)
    }


def _path(i: int, j: int) -> str:
    return f"messages[{i}].content[{j}]"
