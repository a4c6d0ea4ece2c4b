"""The conversation: which blocks stand where, and that every tool use is answered by exactly one result in the very next user turn.

Strategy. One pass over the messages with the state of the turn at hand, since this runs before every request and a history can be long:
the common blocks cost a few comparisons and no allocation, and a path is built only for a problem. Neighbours of one role are one turn,
as the encoder makes them; what the encoder leaves out does not count. Calls of one turn with the same id are answered in order.

A message is looked at as the dialect will see it: hoisted system messages are gone, those that stay are a turn of their own.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.message import (
    Audio,
    Block,
    Document,
    Image,
    InvalidToolUse,
    Message,
    Opaque,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Video,
)
from dragoman.request import Request
from dragoman.validation.dialect import Dialect
from dragoman.validation.media import check_document, check_image, not_json
from dragoman.validation.tools import TOOL_NAME

__all__ = ["Turns"]

Place: TypeAlias = tuple[int, int]
"""Message and block index."""

_ROLES = frozenset({"user", "assistant", "system"})
_SERVER_STATE = ("previous_message_id", "previous_response_id", "conversation")
_SERVER_SIDE = (ServerToolUse, ServerToolResult, Opaque)
_TOOL_NAME_FIX = "use 1 to 128 letters, digits, `_` and `-`, as in the tool's own name"


def server_holds_history(request: Request) -> bool:
    """Whether the request continues a conversation that the provider keeps, so its history need not be complete."""
    body = request.extra_body
    thread = body.get("thread")
    continued = isinstance(thread, dict) and bool(cast("dict[str, Any]", thread).get("previous_message_id"))
    return continued or any(body.get(key) for key in _SERVER_STATE)


class Turns:
    """The pass over the messages of one request. `run()` appends the problems; `marks` are the cache marks it met."""

    def __init__(self, request: Request, dialect: Dialect, rules: ModelRules, *, wire: str, api_version: str, out: list[Problem]) -> None:
        self.messages = request.messages
        self.hoist_all = request.hoist_system == "all"
        self.dialect = dialect
        self.rules = rules
        self.wire = wire
        self.strict_documents = dialect.claude and api_version >= "2026-10-21"
        self.pairs = not server_holds_history(request)
        self.out = out
        self.names: set[str] = set()
        self.called: dict[str, Place] = {}
        """Every call so far, for the text about a result that comes too late."""
        self.calls: list[tuple[str, bool, Place]] = []
        """The calls of the assistant turn at hand: id, whether invalid, where."""
        self.open: dict[str, list[tuple[bool, Place]]] = {}
        """The calls of the assistant turn before, not yet answered: id → (invalid, where)."""
        self.answered: dict[str, Place] = {}
        """The results of the user turn at hand."""
        self.role = ""
        self.turn_start = 0
        self.kept = True
        """Whether the user turn at hand holds anything that is sent."""

    # ---- messages

    def run(self) -> None:
        """Look at every message."""
        leading = True
        anything = False
        last: Message | None = None
        for i, message in enumerate(self.messages):
            if not isinstance(message, Message):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without a type checker
                self._add(f"messages[{i}]", "not_a_message", "is no Message", "use user(…), assistant(…), system(…) or Message(…)")
                continue
            role = message.role
            if role == "system":
                if not leading and not self.hoist_all:
                    self._system(i, message)
                continue
            leading = False
            if role == "assistant":
                if not self._is_kept(message):
                    continue
                if self.role != "assistant":
                    self._end_turn()
                    self.role = "assistant"
                self._assistant(i, message)
                anything = True
                last = message
            elif role == "user":
                if self.role != "user":
                    self._end_turn()
                    self.role, self.turn_start, self.kept = "user", i, False
                self._user(i, message)
                anything = True
            else:
                self._add(f"messages[{i}].role", "unknown_role", "is no role", f"use one of {', '.join(sorted(_ROLES))}")
        self._end(last)
        if not anything and not any(problem.path == "messages" for problem in self.out):
            text = f"{self.dialect.label} request requires at least one user/assistant message"
            self._add("messages", "required", text, "add a user message with text")

    def _end(self, last: Message | None) -> None:
        """After the last message: nothing may be left open. `last` is the last assistant message."""
        prefilled = self.role == "assistant" and last is not None and _is_prefill(last)
        pending = bool(self.calls) and self.pairs
        self._end_turn()
        self._unanswered()
        if prefilled and not self.rules.prefill and not pending and self.pairs:
            path = f"messages[{len(self.messages) - 1}]"
            self._add(path, "prefill", f"{self.rules.id} does not continue an assistant message", "end with a user message")

    def _system(self, i: int, message: Message) -> None:
        """A system message that stays where it is."""
        path = f"messages[{i}]"
        blank = True
        for j, block in enumerate(message.content):
            if isinstance(block, Text):
                blank = blank and not block.text.strip()
            else:
                blank = False
                if not isinstance(block, Opaque):
                    self._misplaced(block, (i, j), "system")
        if blank:
            return
        if not self.rules.mid_system:
            text = f"{self.rules.id} does not honour a system message among the others"
            self._add(path, "system_position", text, 'put it into Request.system, or set hoist_system="all"')
        self._end_turn()
        self._unanswered()
        self.role = "system"

    def _end_turn(self) -> None:
        """The turn at hand is over: its calls wait for an answer, or its results were the only chance."""
        if self.role == "user":
            self._unanswered()
            if not self.kept:
                path = f"messages[{self.turn_start}]"
                self._add(path, "empty_turn", "nothing is left of this user turn without its empty text", "give it text, or leave it out")
        elif self.role == "assistant":
            for call_id, invalid, place in self.calls:
                self.open.setdefault(call_id, []).append((invalid, place))
        self.calls = []
        self.answered = {}
        self.role = ""

    def _unanswered(self) -> None:
        if self.open and self.pairs:
            for call_id, waiting in self.open.items():
                for _, (i, j) in waiting:
                    text = f"tool use `{call_id}` has no result in the very next user turn"
                    self._add(f"messages[{i}].content[{j}]", "tool_result_missing", text, "answer it with tool_result(…), or use repair(…)")
        self.open = {}

    # ---- assistant turns

    def _is_kept(self, message: Message) -> bool:
        """Whether anything of an assistant message is sent. What is dropped may still be wrong, so only empty text is passed over."""
        return any(not isinstance(block, Text | Refusal) or (block.text and not block.text.isspace()) for block in message.content)

    def _assistant(self, i: int, message: Message) -> None:
        allowed = self.dialect.assistant
        for j, block in enumerate(message.content):
            kind = type(block)
            if kind is Text:
                continue
            if kind is ToolUse or kind is InvalidToolUse:
                self._call(cast("ToolUse | InvalidToolUse", block), (i, j))
            elif kind is Thinking:
                self._thinking(cast("Thinking", block), (i, j))
            elif kind not in allowed:
                self._misplaced(block, (i, j), "assistant")
            elif kind is Document and self.strict_documents:
                self._add(
                    _path(i, j), "api_version", "this API version takes no document in an assistant message", "move it to a user message"
                )
            elif kind is Opaque:
                self._opaque_call(cast("Opaque", block), (i, j))
            elif kind in _MEDIA or kind is ServerToolUse:
                self._value(block, _path(i, j))

    def _opaque_call(self, block: Opaque, place: Place) -> None:
        """A call of an unusual shape, kept whole by the decoder, is answered like any other."""
        call_id = block.data.get("id")
        if block.wire == self.wire and block.data.get("type") == "tool_use" and isinstance(call_id, str):
            self.calls.append((call_id, False, place))
            self.called[call_id] = place

    def _call(self, call: ToolUse | InvalidToolUse, place: Place) -> None:
        self.calls.append((call.id, type(call) is InvalidToolUse, place))
        self.called[call.id] = place
        name = call.name
        if name not in self.names:
            if TOOL_NAME.fullmatch(name):
                self.names.add(name)
            else:
                self._add(f"{_path(*place)}.name", "tool_name", "is no legal tool name", _TOOL_NAME_FIX)
        if isinstance(call, ToolUse):
            self._input(call.input, place)

    def _input(self, value: object, place: Place) -> None:
        if not isinstance(value, dict):
            if value != "":  # some stores write a call without arguments as ""
                path = f"{_path(*place)}.input"
                self._add(path, "tool_input", "is no JSON object", "give a dict, or use InvalidToolUse for what the model wrote")
            return
        if any(type(item) is not str for item in cast("dict[object, object]", value).values()):
            self._json(cast("object", value), f"{_path(*place)}.input")

    def _json(self, value: object, path: str) -> None:
        where = not_json(value, path)
        if where:
            self._add(where, "not_json", "holds a value that JSON has no form for", "use plain JSON values")

    def _thinking(self, block: Thinking, place: Place) -> None:
        if block.signature and not block.text.isascii() and _has_surrogate(block.text):
            text = "signed thinking holds half a surrogate pair, which cannot be sent unchanged"
            self._add(_path(*place), "broken_unicode", text, "leave this block out")

    # ---- user turns

    def _user(self, i: int, message: Message) -> None:
        allowed = self.dialect.user
        for j, block in enumerate(message.content):
            kind = type(block)
            if kind is Text:
                text = cast("Text", block)
                if not self.kept:
                    self.kept = bool(text.text) and not text.text.isspace()
                if self.strict_documents and text.citations:
                    self._add(_path(i, j), "api_version", "this API version takes no citations in a user message", "leave them out")
            elif kind is ToolResult:
                self.kept = True
                result = cast("ToolResult", block)
                content = result.content
                if len(content) != 1 or type(content[0]) is not Text:
                    self._result_content(content, (i, j))
                if self.pairs:
                    self._result(result.tool_use_id, result.is_error, (i, j))
            elif kind not in allowed:
                self.kept = True  # one problem is enough
                self._misplaced(block, (i, j), "user")
            elif kind is Opaque:
                if cast("Opaque", block).wire == self.wire:
                    self.kept = True
                    data = cast("Opaque", block).data
                    if self.pairs and data.get("type") == "tool_result":
                        self._result(str(data.get("tool_use_id")), bool(data.get("is_error")), (i, j))
            else:
                self.kept = True
                if kind in _MEDIA:
                    self._value(block, _path(i, j))

    def _result(self, call_id: str, is_error: bool, place: Place) -> None:
        waiting = self.open.get(call_id)
        if waiting is None:
            self._orphan(call_id, place)
            return
        invalid, call_place = waiting.pop(0)
        if not waiting:
            del self.open[call_id]
        self.answered[call_id] = place
        if invalid and not is_error:
            text = f"answers the invalid call at {_path(*call_place)}, which was never run"
            self._add(f"{_path(*place)}.is_error", "invalid_call_result", text, "set is_error=True")

    def _orphan(self, call_id: str, place: Place) -> None:
        path = _path(*place)
        if call_id in self.answered:
            text = f"is another result for `{call_id}`, which {_path(*self.answered[call_id])} answers"
            self._add(path, "tool_result_repeated", text, "leave one result per call, or use repair(…)")
        elif call_id in self.called:
            text = f"result for `{call_id}` does not follow its call at {_path(*self.called[call_id])} directly"
            self._add(path, "tool_result_orphan", text, "move it into the user turn right after the call, or use repair(…)")
        else:
            text = f"result for `{call_id}`, which no call in the assistant turn before has as its id"
            self._add(path, "tool_result_orphan", text, "leave it out, or use repair(…)")

    def _result_content(self, content: Any, place: Place) -> None:
        for k, block in enumerate(cast("list[Block]", content)):
            kind = type(block)
            path = f"{_path(*place)}.content[{k}]"
            if kind not in self.dialect.result:
                self._misplaced(block, place, "tool result", path)
            elif kind in _MEDIA:
                self._value(block, path)

    # ---- blocks

    def _value(self, block: Block, path: str) -> None:
        if isinstance(block, Image):
            check_image(block, path, self.rules, claude=self.dialect.claude, out=self.out)
        elif isinstance(block, Document):
            check_document(block, path, self.rules, claude=self.dialect.claude, out=self.out)
        elif isinstance(block, ServerToolUse):
            self._json(block.input, f"{path}.input")

    def _misplaced(self, block: object, place: Place, holder: str, path: str = "") -> None:
        path = path or _path(*place)
        if not isinstance(block, _BLOCKS):
            self._add(
                path, "not_a_block", "is no content block", "use Text(…), ToolUse(…) …, or Opaque(data, wire=…) for a wire's own block"
            )
        elif isinstance(block, Audio | Video):
            self._add(path, f"no_{block.type}", f"{self.dialect.label} takes no {block.type}", "leave it out, or send its words as text")
        else:
            self._add(path, "block_role", f"a {block.type} block cannot stand in a {holder} message", _HOME.get(type(block), "move it"))

    def _add(self, path: str, rule: str, message: str, fix: str) -> None:
        self.out.append(Problem(path, rule, message, fix))


_MEDIA = frozenset({Image, Document})
_BLOCKS = (
    Text,
    Refusal,
    Image,
    Audio,
    Video,
    Document,
    Thinking,
    RedactedThinking,
    ToolUse,
    InvalidToolUse,
    ToolResult,
    ServerToolUse,
    ServerToolResult,
    Opaque,
)
_HOME: dict[type, str] = {
    ToolUse: "put it into an assistant message",
    InvalidToolUse: "put it into an assistant message",
    Thinking: "put it into an assistant message",
    RedactedThinking: "put it into an assistant message",
    ServerToolUse: "put it into an assistant message",
    ToolResult: "put it into the user message after its call",
}


def _is_prefill(message: Message) -> bool:
    """Whether a trailing assistant message asks to be continued: not a turn that the server paused, not what is left out anyway."""
    if isinstance(message.content[-1], _SERVER_SIDE):
        return False
    return not all(isinstance(block, Thinking) and not block.signature for block in message.content)


def _path(i: int, j: int) -> str:
    return f"messages[{i}].content[{j}]"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
