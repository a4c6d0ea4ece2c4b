"""Whether a header can be carried by HTTP: a name of token characters, a value without line ends and beyond Latin-1 (RFC 9110 §5).

And what a request's own headers say of the API: the version, and the betas that are on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import cast

from dragoman.errors import Problem
from dragoman.request import Request

__all__ = ["HEADER_FIX", "check_headers", "is_header", "sent_betas", "sent_version"]

HEADER_FIX = "leave out line ends, other control characters and what is not Latin-1"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch
_USUAL_NAMES = frozenset({"accept", "content-type", "anthropic-version", "anthropic-beta"})
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}").fullmatch


def is_header(name: str, value: str) -> bool:
    """Whether HTTP can carry this header."""
    plain = name in _USUAL_NAMES and value.isascii() and value.isprintable()  # a tenth of what the expressions take
    return plain or (_TOKEN(name) is not None and _VALUE(value) is not None)


def check_headers(request: Request, out: list[Problem]) -> None:
    """Append the headers and betas that HTTP cannot carry."""
    text = "has a name or value that HTTP cannot carry"
    for name, value in request.extra_headers.items():
        if not is_header(name, value):
            out.append(Problem(f"extra_headers.{name!r}", "header", text, HEADER_FIX))
    for i, beta in enumerate(request.betas):
        if not is_header("anthropic-beta", beta):
            out.append(Problem(f"betas[{i}]", "header", "is no text that a header can carry", HEADER_FIX))


def sent_version(request: Request, default: str) -> str:
    """The `anthropic-version` that is sent: that of `extra_headers` wins over the wire's, `default`. What is no date says nothing."""
    if not request.extra_headers:
        return default
    return next((value for value in _values(request, "anthropic-version") if _DATED(value)), default)


def sent_betas(request: Request, wires: Sequence[str] = ()) -> list[str]:
    """All betas that are sent but those that the encoder adds: the wire's, the request's, and those of its `extra_headers`."""
    given = (*wires, *request.betas)
    if request.extra_headers:
        given = (*given, *_values(request, "anthropic-beta"))
    if not given:
        return []
    return [part.strip() for beta in given for part in beta.split(",")]


def _values(request: Request, header: str) -> Iterator[str]:
    """The values of a header in `extra_headers`, spelled as it may be, the last first: that one wins. Nothing that is no string."""
    given = cast("dict[object, object]", request.extra_headers)  # read before the types are known
    for name, value in reversed(given.items()):
        if isinstance(name, str) and isinstance(value, str) and name.lower() == header:
            yield value
