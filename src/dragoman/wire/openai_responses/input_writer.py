"""The JSON of a call's input while its main value arrives as free text: code, a diff, the commands of a shell.

Strategy. The object is opened with the streamed key, the text is escaped piece by piece, and `finish`, which is given the whole value,
writes the rest: what has not come yet, the end of the string, the other keys. So the deltas joined are always one JSON object equal to
the finished input, and every delta can be shown at once.
"""

from __future__ import annotations

from typing import Any

from dragoman.fragments import Fragments, scrub
from dragoman.wire.framing import escape_json
from dragoman.wire.json_values import is_list
from dragoman.wire.openai_responses.blocks_in import compact_json

__all__ = ["LEFT_OUT", "InputWriter"]


LEFT_OUT = 16
"""Texts that one index may leave out at most: the number is the peer's, and nobody counts up to any."""


class InputWriter:
    """`{"field": "text"}`, or `{"field": ["text", …]}` if `listed`."""

    __slots__ = ("_field", "_held", "_listed", "_texts")

    def __init__(self, field: str, *, listed: bool = False) -> None:
        self._field = field
        self._listed = listed
        self._texts: list[Fragments] = []
        self._held = ""  # a trailing high surrogate, whose other half comes with the next piece

    def piece(self, text: str, index: int = 0) -> str:
        """The JSON for one more piece of text; `index` counts the texts of a list, in order. Texts that it leaves out are empty."""
        json = ""
        wanted = 1 if not self._listed else min(index + 1, len(self._texts) + LEFT_OUT)
        while len(self._texts) < max(wanted, 1):
            json += self._between()
            self._texts.append(Fragments())
        text = self._held + text
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held, text = text[-1], text[:-1]
        text = scrub(text)
        self._texts[-1].add(text)
        return json + escape_json(text)

    def rest(self, text: str, index: int = 0) -> str:
        """What of a text, which is known whole, has not come; nothing if what came is another one, or if a later one has begun."""
        last = len(self._texts) - 1 if self._listed else 0
        sent = self._texts[last].text() if self._texts and index <= last else ""
        if index < last or not text.startswith(sent):
            return ""
        self._held = ""
        return text[len(sent) :]

    def finish(self, value: dict[str, Any]) -> str | None:
        """The rest of the JSON of `value`; None if what was written already contradicts it."""
        self._held = ""
        if not self._texts:
            return compact_json(value)
        given = value.get(self._field)
        final = given if is_list(given) else [given]
        texts = [scrub(text) for text in final if isinstance(text, str)]
        sent = [fragments.text() for fragments in self._texts]
        if is_list(given) != self._listed or len(texts) != len(final) or len(sent) > len(texts):
            return None
        if sent[:-1] != texts[: len(sent) - 1] or not texts[len(sent) - 1].startswith(sent[-1]):
            return None
        json = escape_json(texts[len(sent) - 1][len(sent[-1]) :])
        json += "".join([f'","{escape_json(text)}' for text in texts[len(sent) :]])
        rest = compact_json({key: v for key, v in value.items() if key != self._field})[1:]
        return json + ('"]' if self._listed else '"') + (rest if rest == "}" else "," + rest)

    def _between(self) -> str:
        if self._texts:
            self._held = ""
            return '","'
        return f'{{"{escape_json(self._field)}":' + ('["' if self._listed else '"')
