"""Model ids: taking off what clouds, gateways and callers put around them, for look-ups only.

Strategy. The id that is sent is never changed. A look-up tries the id as it is, then without its decorations, then without its date,
each exactly, and last the longest entry that the id continues at a separator. A continuation that is itself a version number is
another model (`claude-opus-5-6` is no `claude-opus-5`), so it does not match: unknown is better than a neighbour's rules. A price needs
more certainty, since `m-5-mini` may cost a fifth of `m-5`: there only a date, a revision or the like may follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

__all__ = ["LINES", "find", "line_of", "spellings", "version_of"]

T = TypeVar("T")

LINES = ("opus", "sonnet", "haiku", "fable", "mythos")
"""The model lines of Anthropic, as `GET /v1/models` names them."""

_REGION = re.compile(r"^(?:us-gov|us|eu|apac|ap|jp|au|ca|sa|me|in|global)\.")
_BEDROCK_VERSION = re.compile(r"(?<=\d)-v\d+$")
_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest)$")
_BRACKETS = re.compile(r"\[[^\]]*\]$")
_VERSION_FIRST = re.compile(r"^claude-(\d+(?:-\d)?)-(opus|sonnet|haiku|fable|mythos)(?=-|$)")
_VERSION_NEXT = re.compile(r"[-.]\d{1,2}(?!\d)")
_LINE = re.compile(r"^claude-(?:\d+(?:-\d+)?-)?(opus|sonnet|haiku|fable|mythos)(?=-|$)")
_SEPARATORS = "-@:._/"
_SAME_MODEL = re.compile(r"[-@:._/](?:\d{4,}|v\d+|rev\d*|latest|preview|exp)(?![^-@:._/])")


def spellings(model_id: str) -> Iterator[str]:
    """The id itself, the id without decorations, and that without a date; each once.

    Decorations: a vendor path (`anthropic/`, a Bedrock ARN), a region (`us.`), `anthropic.`, `@date`, `-v1:0`, `[1m]`, `:beta`. Claude
    ids are also brought to one order: `claude-4.5-sonnet` is `claude-sonnet-4-5`.
    """
    yield model_id
    bare = _BRACKETS.sub("", model_id.strip().lower()).rpartition("/")[2]
    bare = _REGION.sub("", bare).removeprefix("anthropic.")
    bare, _, at = bare.partition("@")
    bare = _BEDROCK_VERSION.sub("", bare.partition(":")[0])
    if bare.startswith("claude"):
        bare = bare.replace(".", "-")
        match = _VERSION_FIRST.match(bare)
        if match and not match[1].startswith("3"):  # the third generation is really called claude-3-5-sonnet
            bare = f"claude-{match[2]}-{match[1]}{bare[match.end() :]}"
    dated = f"{bare}-{at}" if at.isdigit() else bare
    undated = _DATE.sub("", dated)
    seen = {model_id}
    for form in (dated, undated):
        if form and form not in seen:
            seen.add(form)
            yield form


def find(model_id: str, table: Mapping[str, T], *, variants: bool = True) -> T | None:
    """The table's entry for an id: exactly, else its longest key that the id continues at a separator; None if there is none.

    `variants`: the id may name a variant of an entry (`m-5-mini` of `m-5`), not only a date or revision of it.
    """
    if not model_id:
        return None
    forms = list(spellings(model_id))
    for form in forms:
        entry = table.get(form)
        if entry is not None:
            return entry
    form = forms[-1]
    for end in range(len(form) - 1, 0, -1):
        if form[end] in _SEPARATORS and (not _VERSION_NEXT.match(form, end) if variants else _SAME_MODEL.match(form, end)):
            entry = table.get(form[:end])
            if entry is not None:
                return entry
    return None


def line_of(model_id: str) -> str:
    """The line an id belongs to (`opus` …) by its name, or `""`."""
    *_, bare = spellings(model_id)
    match = _LINE.match(bare)
    return match[1] if match else ""


def version_of(model_id: str) -> tuple[int, ...]:
    """The version numbers in an id, for "which is newest": `claude-opus-4-8` → (4, 8). A date is no version."""
    *_, bare = spellings(model_id)
    return tuple(int(part) for part in bare.split("-") if part.isdigit())
