"""What is sent as the caller gave it: inputs of calls, `extra`, citations, opaque blocks, the results of a provider's own tools.

Strategy. No field describes it, so all that can be said is whether JSON has a form for it and whether it is debris of a stream. All
inputs of calls are looked at at once. Few histories hold anything else of it, and the first look at the types (`types.Look`) tells
which; the others are not searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.errors import Problem
from dragoman.message import Block, Citation, Document, Extra, Opaque, Parts, ServerToolResult, Text, ToolResult, ToolUse
from dragoman.request import Request
from dragoman.validation.blocks import check_json
from dragoman.validation.media import are_plain
from dragoman.validation.types import Look

__all__ = ["DEBRIS", "check_verbatim"]

DEBRIS = ("index", "partial_json")
"""Keys of the Messages API's stream events that never belong into a finished block."""

_HOLDERS = frozenset({Citation, Opaque, ServerToolResult})


def check_verbatim(request: Request, look: Look, inputs: Iterable[dict[str, Any]], *, wire: str, claude: bool, out: list[Problem]) -> None:
    """Append what this wire cannot send of it. What belongs to another wire is left out when sent, and not looked at.

    `inputs` are those of the calls in assistant messages.
    """
    if look.extras or look.classes & _HOLDERS or not are_plain(inputs):
        _Verbatim(wire, claude, out).request(request)


class _Verbatim:
    def __init__(self, wire: str, claude: bool, out: list[Problem]) -> None:
        self.wire = wire
        self.claude = claude
        self.out = out

    def request(self, request: Request) -> None:
        for i, tool in enumerate(request.tools):
            self._extra(tool.extra, f"tools[{i}]")
        if not isinstance(request.system, str):
            self._blocks(request.system, "system")
        for i, message in enumerate(request.messages):
            check_json(message.extra.get(self.wire), f"messages[{i}].extra.{self.wire}", self.out)
            self._blocks(message.content, f"messages[{i}].content")
            if message.role == "assistant":
                self._inputs(message.content, f"messages[{i}].content")

    def _inputs(self, blocks: Sequence[Block], base: str) -> None:
        for j, block in enumerate(blocks):
            if isinstance(block, ToolUse):
                check_json(block.input, f"{base}[{j}].input", self.out)

    def _blocks(self, blocks: Sequence[Any], base: str) -> None:
        for j, block in enumerate(blocks):
            path = f"{base}[{j}]"
            if isinstance(block, Opaque):
                if block.wire == self.wire:
                    self._opaque(block, path)
                continue
            self._extra(block.extra, path)
            if isinstance(block, Text):
                for k, citation in enumerate(block.citations):
                    check_json(citation.data, f"{path}.citations[{k}].data", self.out)
            elif isinstance(block, ServerToolResult):
                check_json(block.content, f"{path}.content", self.out)
            elif isinstance(block, ToolResult):
                self._blocks(block.content, f"{path}.content")
            elif isinstance(block, Document) and isinstance(block.source, Parts):
                self._blocks(block.source.content, f"{path}.source.content")

    def _opaque(self, block: Opaque, path: str) -> None:
        check_json(block.data, f"{path}.data", self.out)
        kind: object = block.data.get("type")
        if self.claude and (not isinstance(kind, str) or kind.endswith("_delta")):
            self.out.append(Problem(path, "not_a_block", "is an event of a stream or has no type", "send finished blocks only"))

    def _extra(self, extra: Extra, path: str) -> None:
        own = extra.get(self.wire)
        if not own:
            return
        check_json(own, f"{path}.extra.{self.wire}", self.out)
        for key in DEBRIS if self.claude else ():
            if key in own:
                text = f"`{key}` belongs to a stream event, not to a finished block"
                self.out.append(Problem(path, "stream_debris", text, "send finished blocks only"))
