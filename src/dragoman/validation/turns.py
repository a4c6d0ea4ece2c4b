"""The conversation: which blocks stand where, and that every tool use is answered by exactly one result in the very next user turn.

Strategy. One pass over the messages, since this runs before every request and a history can be long. The blocks that histories are made
of (text, tool use and result, thinking) are looked at in the loop itself, told apart by their exact class (`isinstance` of a Struct that
it is not goes through ABCMeta, ten times as slow); everything else goes to `_other`. A path is built only for a problem.

Neighbours of one role are one turn, as the encoder makes them, and what the encoder leaves out does not count. Hoisted system messages
are gone; one that stays is a turn of its own. Calls of one turn with the same id are answered in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.message import (
    Audio,
    Block,
    InvalidToolUse,
    Message,
    Opaque,
    Origin,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from dragoman.request import Request
from dragoman.validation.blocks import check_block, check_json, check_signed
from dragoman.validation.dialect import Dialect, Holder
from dragoman.validation.media import is_plain
from dragoman.validation.tools import NAME_FIX

__all__ = ["Turns", "has_content"]

_SERVER_STATE = ("previous_message_id", "previous_response_id", "conversation")
_SERVER_SIDE = (ServerToolUse, ServerToolResult, Opaque)
_DIALECTS_OWN = (RedactedThinking, ServerToolUse, ServerToolResult)


class _Call(Struct, frozen=True):
    """A call that waits for its result, and the next one of the same id in the same turn."""

    message: int
    block: int
    invalid: bool
    next: _Call | None = None


def has_content(blocks: Iterable[Block]) -> bool:
    """Whether any block is sent: empty and white-space-only text is not, nor is thinking that nobody signed."""
    for block in blocks:
        if isinstance(block, Text | Refusal):
            if block.text and not block.text.isspace():
                return True
        elif not isinstance(block, Thinking) or block.signature:
            return True
    return False


def server_holds_history(request: Request) -> bool:
    """Whether the request continues a conversation that the provider keeps, so its history need not be complete."""
    body = request.extra_body
    if not body:
        return False
    thread = body.get("thread")
    continued = isinstance(thread, dict) and bool(cast("dict[str, Any]", thread).get("previous_message_id"))
    return continued or any(body.get(key) for key in _SERVER_STATE)


class Turns:
    """The pass over the messages of one request: `run()` appends the problems to `out`."""

    def __init__(self, request: Request, dialect: Dialect, rules: ModelRules, *, wire: str, api_version: str, out: list[Problem]) -> None:
        self.messages = request.messages
        self.hoist_all = request.hoist_system == "all"
        self.dialect = dialect
        self.rules = rules
        self.wire = wire
        self.latest_api = dialect.claude and api_version >= "2026-10-21"
        self.thinking_as_text = request.foreign_thinking == "text"
        self.pairs = not server_holds_history(request)
        self.out = out
        self.marked = False
        """Whether any block has a cache mark."""
        self.names: set[str] = set()
        self.turn = ""
        """The role of the turn at hand."""
        self.start = 0
        """Where the user turn at hand begins."""
        self.kept = True
        """Whether the user turn at hand holds anything that is sent."""
        self.calls: dict[str, _Call] = {}
        """The calls of the assistant turn at hand or, in a user turn, of the one before."""
        self.open: dict[str, _Call] = {}
        """Those of `calls` that this user turn has not answered yet."""
        self._places: dict[str, tuple[int, int]] | None = None

    # ---- messages

    def run(self) -> None:
        """Look at every message."""
        leading = True
        last: Message | None = None
        for i, message in enumerate(self.messages):
            role = message.role
            if role == "user":
                if self.turn != "user":
                    self._begin_user(i)
                self._user(i, message)
            elif role == "assistant":
                if not self._are_sent(message.content, message.origin):
                    continue
                if self.turn != "assistant":
                    if self.turn:
                        self._end_turn()
                    self.turn, self.calls = "assistant", {}
                self._assistant(i, message)
            else:
                hoistable = self._is_text_only(i, message)
                leading = leading and hoistable
                if not leading and not (hoistable and self.hoist_all):
                    self._system(i, message)
                continue
            leading = False
            last = message
        self._end(last)

    def _end(self, last: Message | None) -> None:
        """After the last message: nothing may be left open. `last` is the last that is no system message."""
        prefill = self.turn == "assistant" and not self.calls and last is not None and _is_prefill(last)
        unanswered = self.calls if self.turn == "assistant" else {}
        self._end_turn()
        self._unanswered(unanswered)
        if prefill and not self.rules.prefill and self.pairs:
            path = f"messages[{len(self.messages) - 1}]"
            self._add(path, "prefill", f"{self.rules.id} does not continue an assistant message", "end with a user message")
        if self.dialect.claude and (last is None or not self._anything()) and not any(problem.path == "messages" for problem in self.out):
            text = f"{self.dialect.label} request requires at least one user/assistant message"
            self._add("messages", "required", text, "add a user message with text")

    def _anything(self) -> bool:
        """Whether a message is left; a user turn without content is a problem of its own."""
        return any(m.role == "user" or (m.role == "assistant" and self._are_sent(m.content, m.origin)) for m in self.messages)

    def _is_foreign(self, origin: Origin | None) -> bool:
        return origin is not None and origin.wire != self.wire

    def _are_sent(self, blocks: Iterable[Block], origin: Origin | None) -> bool:
        """Whether the encoder sends any of these blocks; it drops what is empty, unsigned or another dialect's own."""
        foreign = self._is_foreign(origin)
        for block in blocks:
            if type(block) is Text or type(block) is Refusal:
                if block.text and not block.text.isspace():
                    return True
            elif type(block) is ToolUse:
                return True
            elif isinstance(block, Thinking):
                if (block.signature and not foreign) or (self.thinking_as_text and block.text and not block.text.isspace()):
                    return True
            elif isinstance(block, Opaque):
                if block.wire == self.wire:
                    return True
            elif isinstance(block, Audio) and foreign:
                if block.transcript and not block.transcript.isspace():
                    return True
            elif not (foreign and isinstance(block, _DIALECTS_OWN)):
                return True
        return False

    def _is_text_only(self, i: int, message: Message) -> bool:
        """Whether a system message can be hoisted; one that changes the tools stays where it is."""
        plain = True
        for j, block in enumerate(message.content):
            if isinstance(block, Text):
                self.marked = self.marked or block.cache is not None
            else:
                plain = False
                self._other(block, "system", _path(i, j))
        return plain

    def _system(self, i: int, message: Message) -> None:
        """A system message that stays where it is."""
        if not has_content(message.content):
            return
        if not self.rules.mid_system and message.text.strip():
            text = f"{self.rules.id} does not honour a system message among the others"
            self._add(f"messages[{i}]", "system_position", text, 'put it into Request.system, or set hoist_system="all"')
        unanswered = self.calls if self.turn == "assistant" else {}
        self._end_turn()
        self._unanswered(unanswered)
        self.turn, self.calls = "system", {}

    def _begin_user(self, i: int) -> None:
        if self.turn != "assistant":
            self.calls = {}
        self.turn, self.start, self.kept = "user", i, False
        self.open = self.calls.copy() if self.calls else {}

    def _end_turn(self) -> None:
        """If a user turn is at hand, it is over: what it has not answered never will be."""
        if self.turn == "user":
            if self.open:
                self._unanswered(self.open)
                self.open = {}
            if not self.kept and self.dialect.claude:
                path = f"messages[{self.start}]"
                self._add(path, "empty_turn", "nothing is left of this user turn without its empty text", "give it text, or leave it out")

    def _unanswered(self, calls: dict[str, _Call]) -> None:
        if not self.pairs:
            return
        for call_id, first in calls.items():
            call: _Call | None = first
            while call is not None:
                text = f"tool use `{call_id}` has no result in the very next user turn"
                path = _path(call.message, call.block)
                self._add(path, "tool_result_missing", text, "answer it with tool_result(…), or use repair(…)")
                call = call.next

    # ---- the common blocks

    def _assistant(self, i: int, message: Message) -> None:
        for j, block in enumerate(message.content):
            if type(block) is Text:
                if block.cache is not None:
                    self.marked = True
            elif type(block) is ToolUse:
                self._call(block.id, block.name, i, j)
                if block.cache is not None:
                    self.marked = True
                if not is_plain(block.input):
                    check_json(block.input, f"{_path(i, j)}.input", self.out)
            elif type(block) is Thinking:
                if block.signature and not (block.text.isascii() and block.signature.isascii()):
                    check_signed(block.text + block.signature, _path(i, j), self.out)
            elif isinstance(block, InvalidToolUse):
                self._call(block.id, block.name, i, j, invalid=True)
            elif not (isinstance(block, Audio) and self._is_foreign(message.origin)):  # another provider's sound is sent as its words
                self._other(block, "assistant", _path(i, j))
                if isinstance(block, Opaque) and block.wire == self.wire and block.data.get("type") == "tool_use":
                    self._call(str(block.data.get("id")), "opaque", i, j)

    def _user(self, i: int, message: Message) -> None:
        for j, block in enumerate(message.content):
            if type(block) is Text:
                if not self.kept:
                    self.kept = bool(block.text) and not block.text.isspace()
                if block.cache is not None:
                    self.marked = True
                if block.citations and self.latest_api:
                    self._add(_path(i, j), "api_version", "this API version takes no citations in a user message", "leave them out")
            elif type(block) is ToolResult:
                self.kept = True
                if block.cache is not None:
                    self.marked = True
                if len(block.content) != 1 or not isinstance(only := block.content[0], Text) or only.cache is not None:
                    self._result_content(block.content, _path(i, j))
                if self.pairs:
                    self._result(block.tool_use_id, block.is_error, i, j)
            elif isinstance(block, Opaque):
                if block.wire == self.wire:
                    self.kept = True
                    self._other(block, "user", _path(i, j))
                    if self.pairs and block.data.get("type") == "tool_result":
                        self._result(str(block.data.get("tool_use_id")), bool(block.data.get("is_error")), i, j)
            else:
                if not self.kept:
                    self.kept = self._are_sent((block,), message.origin)  # misplaced blocks too: one problem is enough
                self._other(block, "user", _path(i, j))

    def _call(self, call_id: str, name: str, i: int, j: int, *, invalid: bool = False) -> None:
        call = _Call(i, j, invalid)
        earlier = self.calls.get(call_id)
        self.calls[call_id] = call if earlier is None else _chained(earlier, call)
        if name not in self.names:
            if self.dialect.tool_name.fullmatch(name):
                self.names.add(name)
            else:
                self._add(f"{_path(i, j)}.name", "tool_name", "is no legal tool name", NAME_FIX)

    def _result(self, call_id: str, is_error: bool, i: int, j: int) -> None:
        call = self.open.pop(call_id, None)
        if call is None:
            self._orphan(call_id, _path(i, j))
            return
        if call.next is not None:
            self.open[call_id] = call.next
        if call.invalid and not is_error:
            text = f"answers the invalid call at {_path(call.message, call.block)}, which was never run"
            self._add(f"{_path(i, j)}.is_error", "invalid_call_result", text, "set is_error=True")

    # ---- everything else

    def _orphan(self, call_id: str, path: str) -> None:
        if call_id in self.calls:
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

    def _result_content(self, content: Sequence[Block], path: str) -> None:
        for k, block in enumerate(content):
            if isinstance(block, Text):
                self.marked = self.marked or block.cache is not None
            else:
                self._other(block, "tool result", f"{path}.content[{k}]")

    def _other(self, block: Block, holder: Holder, path: str) -> None:
        """A block that is none of the common ones in its place."""
        self.marked = True  # looked at in earnest by `check_marks`
        check_block(block, holder, path, dialect=self.dialect, rules=self.rules, latest_api=self.latest_api, out=self.out)

    def _add(self, path: str, rule: str, message: str, fix: str) -> None:
        self.out.append(Problem(path, rule, message, fix))


def _chained(first: _Call, last: _Call) -> _Call:
    return replace(first, next=last if first.next is None else _chained(first.next, last))


def _is_prefill(message: Message) -> bool:
    """Whether a trailing assistant message asks to be continued: not a turn that the server paused."""
    return not isinstance(message.content[-1], _SERVER_SIDE)


def _call_places(messages: Iterable[Message]) -> dict[str, tuple[int, int]]:
    """Where each call stands; built for the text of a problem only."""
    return {
        block.id: (i, j)
        for i, message in enumerate(messages)
        for j, block in enumerate(message.content)
        if isinstance(block, ToolUse | InvalidToolUse)
    }


def _path(i: int, j: int) -> str:
    return f"messages[{i}].content[{j}]"
