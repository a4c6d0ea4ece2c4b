"""Whether a header can be carried by HTTP: a name of token characters, a value without line ends and beyond Latin-1 (RFC 9110 §5)."""

from __future__ import annotations

import re

from dragoman.errors import Problem
from dragoman.request import Request

__all__ = ["HEADER_FIX", "check_headers", "is_header"]

HEADER_FIX = "leave out line ends, other control characters and what is not Latin-1"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch


def is_header(name: str, value: str) -> bool:
    """Whether HTTP can carry this header."""
    return _TOKEN(name) is not None and _VALUE(value) is not None


def check_headers(request: Request, out: list[Problem]) -> None:
    """Append the headers and betas that HTTP cannot carry."""
    text = "has a name or value that HTTP cannot carry"
    for name, value in request.extra_headers.items():
        if not is_header(name, value):
            out.append(Problem(f"extra_headers.{name!r}", "header", text, HEADER_FIX))
    for i, beta in enumerate(request.betas):
        if not is_header("anthropic-beta", beta):
            out.append(Problem(f"betas[{i}]", "header", "is no text that a header can carry", HEADER_FIX))
