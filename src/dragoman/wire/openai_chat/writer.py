"""What the parts of one request share while it is written: its dialect, tool ids, notices and problems."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.errors import Problem
from dragoman.event import Notice
from dragoman.message import CacheControl, Extra
from dragoman.wire.json_values import is_finite
from dragoman.wire.openai_chat.dialects import Dialect
from dragoman.wire.openai_chat.names import MEDIA_STAYS, WIRE
from dragoman.wire.openai_chat.tool_ids import ToolIds

__all__ = ["OWN_KEYS", "WireObject", "Writer"]

WireObject = dict[str, Any]
"""An object of the wire."""

OWN_KEYS: Final = frozenset({"kind", "synthetic_id", "field", "detail", "channel", "logprobs", "id", "expires_at", "role", MEDIA_STAYS})
"""Keys in `extra[wire]` that say something about a block and are no keys of the wire's object."""


class Writer:
    """The state of one `encode`."""

    __slots__ = (
        "_notes",
        "calls",
        "dialect",
        "ids",
        "keep_marks",
        "model",
        "moved",
        "native",
        "origin_known",
        "path",
        "problems",
        "thinking_as_text",
    )

    def __init__(self, dialect: Dialect, *, model: str, keep_marks: bool, thinking_as_text: bool) -> None:
        self.dialect = dialect
        self.model = model
        self.keep_marks = keep_marks
        self.thinking_as_text = thinking_as_text
        self.ids = ToolIds(limit=dialect.id_limit, pattern=dialect.id_pattern)
        self.path = ""
        """Where in the request the value at hand is."""
        self.native = True
        """Whether the message at hand is this host's, or one that names no host: the caller's, or a client's in this dialect."""
        self.origin_known = False
        """Whether the message at hand names the host that wrote it: it is an answer."""
        self.calls: dict[str, tuple[str, str]] = {}
        """Calls whose results are written in another way: id → kind (`function_call`, `synthetic_id`) and tool name."""
        self.moved: list[WireObject] = []
        """Parts of results that wait for a user message: the host takes them in no other, and none may stand between two results."""
        self.problems: list[Problem] = []
        self._notes: dict[tuple[str, str], tuple[str, int]] = {}

    def note(self, code: str, message: str, path: str | None = None) -> None:
        """Report a change. The same one at many places is reported once, with the first place and the count."""
        first, count = self._notes.get((code, message), (path or self.path, 0))
        self._notes[code, message] = (first, count + 1)

    def notices(self) -> list[Notice]:
        """All that was reported."""
        return [
            Notice(code, message if count == 1 else f"{message} ({count} times)", path=path)
            for (code, message), (path, count) in self._notes.items()
        ]

    def problem(self, rule: str, message: str, fix: str, path: str | None = None) -> None:
        """Report what cannot be written."""
        self.problems.append(Problem(path or self.path, rule, message, fix))

    def left_out(self, what: str) -> None:
        """Report a block that this protocol has no place for."""
        self.note("block_left_out", f"{what} has no place in this protocol and is left out")

    def own(self, extra: Extra) -> dict[str, Any]:
        """What a value carries for this dialect; the rest is reported."""
        for name in extra:
            if name != WIRE and name != "dragoman":
                self.note("extra_left_out", f"what a block carries for the {name} dialect is left out")
        return extra.get(WIRE, {}) if extra else {}

    def finish(self, wire: WireObject, extra: Extra, cache: CacheControl | None = None) -> WireObject:
        """`wire` with its cache mark and what the value carries for this dialect; keys that have a field win."""
        if cache is not None and self.keep_marks and self.dialect.cache_marks:
            mark: dict[str, str] = {"type": "ephemeral"}
            wire["cache_control"] = mark if cache.ttl == "5m" else {**mark, "ttl": cache.ttl}
        if extra:
            for key, value in self.own(extra).items():
                if key not in wire and key not in OWN_KEYS and (key != "cache_control" or self.keep_marks):
                    wire[key] = value
        return wire

    def arguments(self, value: dict[str, Any]) -> str:
        """A call's input as JSON text."""
        try:
            data = msgspec.json.encode(value)
        except UnicodeEncodeError:
            from dragoman.fragments import scrub_tree

            data = msgspec.json.encode(scrub_tree(value))
        if b"null" in data and not is_finite(value):  # msgspec writes NaN as null
            self.problem("not_json", "the input of a call holds NaN or an infinity, which JSON has no form for", "use finite numbers")
        return data.decode()
