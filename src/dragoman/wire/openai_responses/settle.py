"""Finishing items: the last deltas and the blocks' finished forms.

Strategy. When an item is known whole, what its deltas have not brought is sent as one more delta, and its blocks stop with the form that
`blocks_in` makes of the whole item: that form is authoritative. An item whose whole form never comes is finished from its deltas, and a
call among those is executable only if its input is complete JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.message import Block, Opaque, Refusal, Text
from dragoman.wire.framing import Framing, Key
from dragoman.wire.json_values import as_objects, as_string
from dragoman.wire.openai_responses.blocks_in import (
    annotations_of,
    call_block,
    call_json,
    compact_json,
    image_block,
    message_extra,
    pair_blocks,
    part_block,
    reasoning_block,
    result_block,
    use_block,
)
from dragoman.wire.openai_responses.items import Item
from dragoman.wire.openai_responses.kinds import WIRE

__all__ = ["Settler"]


class Settler:
    """Finishes items. `notice(code, message, index=)` is told of contradictions.

    `refused` says whether a refusal was among the blocks; `whole`, set by the decoder, that the answer ended as it should.
    """

    def __init__(self, framing: Framing, notice: Callable[..., object]) -> None:
        self.cited: dict[Key, int] = {}
        """How many citations of a block were sent while it was open."""
        self.refused = False
        self.whole = False
        self._reported: set[Key] = set()
        self._framing = framing
        self._notice = notice

    def settle(self, item: Item, final: dict[str, Any] | None) -> None:
        """Finish an item from its whole form, or, without one, from what came."""
        item.settled = True
        match item.role:
            case "message":
                self._message(item, final)
            case "reasoning":
                self._reasoning(item, final)
            case "call":
                self._call(item, final)
            case "pair":
                self._pair(item, final)
            case "use":
                self._use(item, final)
            case "result":
                self._framing.stop(item.key, block=result_block(final or item.start))
            case "image":
                self._framing.stop(item.key, block=image_block(final or item.start))
            case "opaque":
                self._framing.stop(item.key, block=Opaque(final or item.start, wire=WIRE))

    def catch_up(self, key: Key, whole: str, send: Callable[[Key, str], None]) -> None:
        """Send what of a block's text its deltas have not brought. If they say something else, that is reported, once; the finished item
        wins.
        """
        sent = self._framing.raw(key)
        if whole.startswith(sent):
            send(key, whole[len(sent) :])
        elif key not in self._reported:
            self._reported.add(key)
            index = self._framing.index(key)
            self._notice("content_differs", "the deltas of a block differ from its whole form; a finished item's is kept", index=index)

    # ---- messages

    def _message(self, item: Item, final: dict[str, Any] | None) -> None:
        framing = self._framing
        shared = message_extra(final or {key: value for key, value in item.start.items() if key != "status"})
        parts = as_objects((final or {}).get("content"))
        opened = list(item.parts.values())
        if not parts and not opened and final is not None:
            framing.put(Opaque(final, wire=WIRE))
        for number, part in enumerate(parts):
            # a server may count contents over all items (Bedrock's first content index was 1): then their order decides
            in_order = opened[number] if len(opened) == len(parts) else (item.index, number, "final")
            self._part(item.parts.get(number, in_order), part_block(part, shared), part)
        for key in opened:
            if framing.index(key) is not None:
                if shared:
                    framing.remember(key, item=shared)
                block = framing.stop(key)
                self.refused = self.refused or isinstance(block, Refusal)

    def _part(self, key: Key, block: Block, part: dict[str, Any]) -> None:
        framing = self._framing
        if not isinstance(block, Text | Refusal):
            framing.put(block)
            return
        framing.start(key, type(block)(""))
        self.catch_up(key, block.text, framing.text)
        for citation in annotations_of(part)[self.cited.get(key, 0) :]:
            framing.citation(key, citation)
        self.refused = self.refused or isinstance(block, Refusal)
        framing.stop(key, block=block)

    # ---- reasoning

    def _reasoning(self, item: Item, final: dict[str, Any] | None) -> None:
        if final is None:
            self._framing.stop(item.key)
            return
        block = reasoning_block(final)
        self.catch_up(item.key, block.text, self._framing.thinking)
        self._framing.signature(item.key, block.signature)
        self._framing.stop(item.key, block=block)

    # ---- calls

    def _call(self, item: Item, final: dict[str, Any] | None) -> None:
        final = final or item.ended
        if final is None:
            self._cut_call(item)
            return
        block = call_block(final, self._call_id(item, final))
        self._catch_up_input(item, call_json(final), getattr(block, "input", {}))
        self._framing.stop(item.key, block=block)

    def _cut_call(self, item: Item) -> None:
        """A call whose end never came: executable only if the wire sent its input as JSON and that is complete, or, in an answer that is
        whole, if no input came after its start.
        """
        raw = self._framing.raw(item.key)
        executable = item.writer is None and (bool(raw) or self.whole)
        if not raw and executable:
            raw = call_json(item.start)
            self._framing.tool_input(item.key, raw)
        start = {key: value for key, value in item.start.items() if key != "status"}
        if not executable:
            start["status"] = "incomplete"
        self._framing.stop(item.key, block=call_block(start, self._call_id(item, start), raw=raw))

    def _call_id(self, item: Item, final: dict[str, Any]) -> str:
        """The call's id, or the one that `Framing` made for it."""
        return as_string(final.get("call_id")) or f"call_{self._framing.response_id}_{self._framing.index(item.key)}"

    def _pair(self, item: Item, final: dict[str, Any] | None) -> None:
        if final is None:
            self._framing.stop(item.key, cut=True)
            return
        use, result = pair_blocks(final)
        arguments = final.get("arguments")
        raw = arguments if isinstance(arguments, str) else compact_json(use.input) if use.input else ""
        self._catch_up_input(item, raw, use.input)
        self._framing.stop(item.key, block=use)
        self._framing.put(result)

    def _use(self, item: Item, final: dict[str, Any] | None) -> None:
        if final is None:
            self._framing.stop(item.key, cut=True)
            return
        use = use_block(final)
        self._catch_up_input(item, compact_json(use.input) if use.input else "", use.input)
        self._framing.stop(item.key, block=use)

    def _catch_up_input(self, item: Item, raw: str, value: dict[str, Any]) -> None:
        """The rest of a call's input, as JSON text."""
        rest = item.writer.finish(value) if item.writer is not None and value else None
        if rest is None:
            self.catch_up(item.key, raw, self._framing.tool_input)
        else:
            self._framing.tool_input(item.key, rest)
