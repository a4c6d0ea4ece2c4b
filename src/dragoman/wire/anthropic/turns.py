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
from dragoman.message import Message, Opaque, Text
from dragoman.request import Request
from dragoman.wire.anthropic.blocks import WIRE
from dragoman.wire.anthropic.blocks_out import SYSTEM_BLOCKS, write_blocks
from dragoman.wire.anthropic.cache import MovedMark
from dragoman.wire.anthropic.plain import WireBlock, is_plain, unfolded
from dragoman.wire.anthropic.writer import Writer, is_json

__all__ = ["collapse", "hoisted", "trim_end", "write_system", "write_turns"]

_MESSAGE_FEATURES = {"clear_at": "clear_at", "output_config": "message_output_config"}


# ---- system


def hoisted(request: Request) -> list[int]:
    """The positions of the system messages that go to the system text: the leading ones, or all.

    Only text can go there; a system message that changes the tools stays where it is.
    """
    positions: list[int] = []
    leading = True
    for position, message in enumerate(request.messages):
        if message.role != "system":
            leading = False
            if request.hoist_system == "leading":
                break
        elif (leading or request.hoist_system == "all") and all(block.__class__ is Text for block in message.content):
            positions.append(position)
    return positions


def write_system(w: Writer, request: Request, positions: Sequence[int]) -> list[WireBlock]:
    """The system text: `request.system`, then the hoisted messages. One block if all parts are strings, joined by a blank line."""
    given = request.system
    parts: list[tuple[str, int, Sequence[Text]]] = [("system", 0, [Text(given)] if isinstance(given, str) else given)]
    parts += [("", position, cast("Sequence[Text]", request.messages[position].content)) for position in positions]
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


def write_turns(w: Writer, request: Request, rules: ModelRules, system: list[WireBlock], skipped: Sequence[int]) -> list[WireBlock]:
    """The turns, each `{"role", "content": [blocks]}`, without the messages at the `skipped` positions.

    A user turn of nothing that can be sent is a problem. A mark before the first turn moves to `system`.
    """
    turns: list[WireBlock] = []
    content: list[WireBlock] = system
    role = ""
    mergeable = True
    empty_user: int | None = None
    skip = frozenset(skipped)
    origins = _Origins(w, request.model, rules)
    for w.message, message in enumerate(request.messages):
        if skip and w.message in skip:
            continue
        writer = message.role
        own = _message_extra(w, message) if message.extra else None
        origin = message.origin
        if (origin is not None and (origin.wire != WIRE or rules.thinking_prefix_bound)) or not w.replays_thinking:
            origins.enter(message)
        merges = writer == role and mergeable and not own
        if writer == "assistant" and not merges:  # a system message that is dropped parts no turn
            w.ids.turn = w.message
        if writer == "system":
            w.content = message.content
            blocks = [wire for block in w.content if (wire := SYSTEM_BLOCKS[block.__class__](w, block)) is not None]
        else:
            blocks = write_blocks(w, message.content)
        if not blocks or (w.moved and _are_marks(blocks)):
            content += blocks
            if writer == "user" and role != "user" and empty_user is None and not w.has_problem(f"messages[{w.message}]"):
                empty_user = w.message
        elif merges:
            content += blocks
        else:
            if empty_user is not None:
                if writer != "user":
                    _report_empty(w, empty_user)
                empty_user = None
            role = writer
            content = blocks
            mergeable = not own
            turns.append({"role": role, "content": content, **own} if own else {"role": role, "content": content})
    if empty_user is not None:
        _report_empty(w, empty_user)
    for turn in turns:
        if len(turn["content"]) > 1 and turn["role"] == "user":
            _results_first(turn)
    return turns


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


def _message_extra(w: Writer, message: Message) -> dict[str, Any]:
    """What a message carries beside role and content (`clear_at` of a system message)."""
    for name in message.extra:
        if name != WIRE:
            w.note("extra_left_out", f"what a message carries for the {name} dialect is left out", f"messages[{w.message}].extra")
    own = {key: value for key, value in message.extra.get(WIRE, {}).items() if key not in ("role", "content")}
    if not is_json(own):
        w.problem(f"messages[{w.message}].extra", "not_json", "holds a value that JSON has no form for", "use plain JSON values")
    w.features.update(dict.fromkeys(_MESSAGE_FEATURES[key] for key in own if key in _MESSAGE_FEATURES))
    return own


def _results_first(turn: WireBlock) -> None:
    """The API wants the results of a user turn before everything else (case 51)."""
    content: list[Any] = turn["content"]
    results = [block for block in content if _is_result(block)]
    if results and not all(map(_is_result, content[: len(results)])):
        turn["content"] = results + [block for block in content if not _is_result(block)]


def _is_result(block: Any) -> bool:
    return block.__class__ is dict and block["type"] == "tool_result"


# ---- the last touches


def trim_end(turns: Sequence[WireBlock]) -> None:
    """A final assistant text must not end in white space."""
    if not turns or turns[-1]["role"] != "assistant":
        return
    content: list[Any] = turns[-1]["content"]
    last = unfolded(content[-1])
    if last["type"] == "text" and last["text"][-1:].isspace():
        content[-1] = {**last, "text": last["text"].rstrip()}


def collapse(turns: Sequence[WireBlock]) -> None:
    """Write a content that is one plain text as a string."""
    for turn in turns:
        content: list[Any] = turn["content"]
        if len(content) == 1:
            block = content[0]
            if block.__class__ is Text:
                turn["content"] = block.text
            elif block.__class__ is dict and is_plain(block):
                turn["content"] = block["text"]
