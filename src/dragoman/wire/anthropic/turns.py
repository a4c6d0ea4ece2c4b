"""The conversation as the wire's turns, and the system text before it (spec: anthropic.md §4; design §2 system, §3 closed list).

Strategy. One pass over the messages: each block is written by `blocks_out`, same-role neighbours go to one turn, and what is left empty
never becomes a turn. Then, only where it is needed: tool results first in a user turn, and no white space at the end of a final
assistant text. Contents are lists, in which our own plain blocks may stand for themselves (`plain.py`), until
`collapse` writes a lone plain text as a string.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from dragoman.catalog import ModelRules
from dragoman.catalog.ids import spellings
from dragoman.message import Message, Opaque, Text, ToolResult, ToolUse
from dragoman.request import Request
from dragoman.validation.blocks import check_json
from dragoman.validation.sent import is_hoistable
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.blocks_out import BLOCKS, SYSTEM_BLOCKS, write_call
from dragoman.wire.anthropic.cache import MovedMark
from dragoman.wire.anthropic.plain import PlainResult, Turn, WireBlock, is_plain, unfolded
from dragoman.wire.anthropic.writer import Writer, is_json

__all__ = ["collapse", "finished", "hoisted", "trim_end", "write_system", "write_turns"]

_MESSAGE_FEATURES = {"clear_at": "clear_at", "output_config": "message_output_config"}


# ---- system


def hoisted(request: Request) -> list[int]:
    """The positions of the system messages that go to the system text: the leading ones, or all.

    One that stays where it is (`is_hoistable`) is not leading, nor is what comes after it: the order is the caller's.
    """
    positions: list[int] = []
    for position, message in enumerate(request.messages):
        if message.role == "system" and is_hoistable(message, WIRE):
            positions.append(position)
        elif request.hoist_system == "leading":
            break
    return positions


def write_system(w: Writer, request: Request, positions: Sequence[int]) -> list[WireBlock]:
    """The system text: `request.system`, then the hoisted messages. One block if all parts are strings, joined by a blank line."""
    given = request.system
    if not given and not positions:
        return []
    parts: list[tuple[str, int, Sequence[Text]]] = [("system", 0, [Text(given)] if isinstance(given, str) else given)]
    for position in positions:
        message = request.messages[position]
        if message.extra:
            _message_extra(w, position, message)  # of another dialect
        parts.append(("", position, cast("Sequence[Text]", message.content)))
    if all(_is_string(part) for _, _, part in parts):
        text = "\n\n".join([part[0].text for _, _, part in parts if part and part[0].text and not part[0].text.isspace()])
        return [{"type": "text", "text": text}] if text else []
    blocks: list[WireBlock] = []
    for w.base, w.message, w.content in parts:
        blocks += [wire for block in w.content if (wire := SYSTEM_BLOCKS[block.__class__](w, block)) is not None]
    w.base = ""
    return blocks


def _is_string(part: Sequence[Text]) -> bool:
    """Whether a part of the system text counts as a string: it is one plain text, or nothing."""
    if len(part) != 1:
        return not part
    block = part[0]
    return not block.extra and not block.citations and block.cache is None


# ---- turns


def write_turns(w: Writer, request: Request, rules: ModelRules, system: list[WireBlock], skipped: Sequence[int]) -> list[Turn]:
    """The turns, their contents lists of blocks, without the messages at the `skipped` positions.

    A user turn of nothing that can be sent is a problem. A mark before the first turn moves to `system`. The blocks that histories are
    made of are written here, without a call for each (`plain.py`); one that has options goes the way of all others.
    """
    turns: list[Turn] = []
    mixed: list[Turn] = []
    role = ""
    mergeable = False
    empty_user: int | None = None
    skip = frozenset(skipped)
    origins = _Origins(w, request.model, rules)
    ids, seen, inputs = w.ids, w.ids.seen, w.inputs
    block: Any
    part: Any
    for at, message in enumerate(request.messages):
        if skip and at in skip:
            continue
        writer = message.role
        own = _message_extra(w, at, message) if message.extra else None
        origin = message.origin
        if (origin is not None and (origin.wire != WIRE or rules.thinking_prefix_bound)) or not w.replays_thinking:
            origins.enter(message)
        merges = writer == role and mergeable and not own
        if writer == "assistant" and not merges:  # a system message that is dropped parts no turn
            ids.turn = at
        blocks: list[Any] = []
        if writer == "system":
            blocks = _write_mid_system(w, at, message)
        else:
            for block in message.content:
                kind: type = type(block)  # pyright: ignore[reportUnknownVariableType]
                if kind is ToolUse:
                    if block.cache is None and not block.extra:
                        id = block.id
                        inputs.append(block.input)
                        if id not in seen and id.isidentifier() and id.isascii():  # what `ids.call` would find out
                            seen[id] = ids.turn
                            blocks.append(block)
                        else:
                            blocks.append(write_call(block, ids.call(id)))
                        continue
                elif kind is Text:
                    if block.cache is None and not block.extra and not block.citations and (text := block.text) and not text.isspace():
                        blocks.append(block)
                        continue
                elif kind is ToolResult:
                    parts = block.content
                    if (
                        len(parts) == 1
                        and type(part := parts[0]) is Text
                        and part.cache is None
                        and not part.citations
                        and not part.extra
                        and (text := part.text)
                        and not text.isspace()
                        and not block.is_error
                        and block.cache is None
                        and not block.extra
                        and not w.toolsets
                    ):
                        id = block.tool_use_id
                        blocks.append(PlainResult(ids.result(id) if ids.answers else id, text))
                        continue
                w.message, w.content = at, message.content
                wire = BLOCKS[kind](w, block)
                if wire is not None:
                    blocks.append(wire)
        if not blocks or (w.moved and _are_marks(blocks)):
            (turns[-1].content if turns else system).extend(blocks)
            if writer == "user" and role != "user" and empty_user is None and not w.has_problem(f"messages[{at}]"):
                empty_user = at
            if own:
                w.note("extra_left_out", "what a message without content carries is left out with it", f"messages[{at}].extra")
        elif merges:
            if empty_user is not None:  # it stands between two turns of the assistant
                _report_empty(w, empty_user)
                empty_user = None
            turns[-1].content += blocks
            mixed.append(turns[-1])
        else:
            if empty_user is not None:
                if writer != "user":
                    _report_empty(w, empty_user)
                empty_user = None
            if own:
                w.own[len(turns)] = own
            role, mergeable = writer, not own
            turn = Turn(writer, blocks)
            turns.append(turn)
            if len(blocks) > 1:
                if writer == "user":
                    mixed.append(turn)
            elif type(blocks[0]) is not PlainResult:
                w.lone.append(turn)
    if empty_user is not None:
        _report_empty(w, empty_user)
    for turn in mixed:
        if turn.role == "user":
            _results_first(turn)
    return turns


def _write_mid_system(w: Writer, at: int, message: Message) -> list[WireBlock]:
    w.message, w.content = at, message.content
    return [wire for block in w.content if (wire := SYSTEM_BLOCKS[block.__class__](w, block)) is not None]


def _are_marks(blocks: Sequence[WireBlock]) -> bool:
    """Whether nothing is left of a content but marks that have to move."""
    return all(isinstance(block, MovedMark) and block["block"] is None for block in blocks)


def _report_empty(w: Writer, index: int) -> None:
    text = "nothing is left of this user turn: empty text is not sent"
    w.problem(f"messages[{index}]", "empty_turn", text, "say something, or leave the message out")


class _Origins:
    """What the writer of an assistant turn means for its blocks.

    Thinking of another dialect is never sent back. That of another Claude model is left to the API, which ignores it, except where the
    model asked binds thinking to what came before it and would refuse (anthropic.md §14); an answer that a fallback model finished is
    one whole and stays so.
    """

    def __init__(self, w: Writer, model: str, rules: ModelRules) -> None:
        self._w = w
        self._model = model
        self._bound = rules.thinking_prefix_bound
        self._same: dict[str, bool] = {}

    def enter(self, message: Message) -> None:
        """From here on blocks of this message are written."""
        origin = message.origin
        if origin is None or origin.wire == WIRE:
            self._w.foreign = False
            self._w.replays_thinking = (
                not self._bound or origin is None or not origin.model or self._is_same(origin.model) or _has_fallback(message)
            )
        else:
            self._w.foreign = True
            self._w.replays_thinking = False

    def _is_same(self, model: str) -> bool:
        """Whether a model is the one that is asked, by any spelling of its id."""
        same = self._same.get(model)
        if same is None:
            same = self._same[model] = _bare(model) == _bare(self._model)
        return same


def _bare(model: str) -> str:
    *_, bare = spellings(model)
    return bare


def _has_fallback(message: Message) -> bool:
    return any(isinstance(block, Opaque) and block.data.get("type") == "fallback" for block in message.content)


def _message_extra(w: Writer, at: int, message: Message) -> dict[str, Any]:
    """What a message carries beside role and content (`clear_at` of a system message)."""
    for name in message.extra:
        if name != WIRE:
            w.note("extra_left_out", f"what a message carries for the {name} dialect is left out", f"messages[{at}].extra")
    own = {key: value for key, value in message.extra.get(WIRE, {}).items() if key not in ("role", "content")}
    if not is_json(own):
        check_json(own, f"messages[{at}].extra.{WIRE}", w.problems)
    w.features.update(dict.fromkeys(_MESSAGE_FEATURES[key] for key in own if key in _MESSAGE_FEATURES))
    return own


def _results_first(turn: Turn) -> None:
    """The API wants the results of a user turn before everything else (case 51)."""
    content: list[Any] = turn.content
    results = [block for block in content if _is_result(block)]
    if results and not all(map(_is_result, content[: len(results)])):
        turn.content = results + [block for block in content if not _is_result(block)]


def _is_result(block: Any) -> bool:
    return type(block) is PlainResult or (type(block) is dict and unfolded(block)["type"] == "tool_result")


# ---- the last touches


def trim_end(turns: Sequence[Turn]) -> None:
    """A final assistant text must not end in white space."""
    if not turns or turns[-1].role != "assistant":
        return
    content: list[Any] = turns[-1].content
    last = unfolded(content[-1])
    text = last.get("text")  # of an Opaque it may be anything
    if last.get("type") == "text" and isinstance(text, str) and text[-1:].isspace():
        content[-1] = {**last, "text": text.rstrip()}


def collapse(turns: Sequence[Turn]) -> None:
    """Write a content that is one plain text as a string."""
    for turn in turns:
        content: list[Any] = turn.content
        if len(content) == 1:
            block = content[0]
            if type(block) is Text:
                turn.content = block.text
            elif type(block) is dict and is_plain(cast("WireBlock", block)):
                turn.content = block["text"]


def finished(w: Writer, turns: Sequence[Turn]) -> Sequence[Turn | WireBlock]:
    """The turns with what their messages carry beside role and content."""
    if not w.own:
        return turns
    return [{"role": turn.role, "content": turn.content, **w.own[i]} if i in w.own else turn for i, turn in enumerate(turns)]
