"""What is written behind a model id with a colon: `:fast` and `:1m`, in any order. They are no part of the id.

`:fast` is the body key `speed` with its beta, `:1m` is a beta (spec: anthropic.md §3, §13). An id is otherwise never changed.
"""

from __future__ import annotations

from typing import Any

from dragoman.request import Request

__all__ = ["FAST_BETA", "LONG_CONTEXT_BETA", "cut_suffixes", "split_model"]

FAST_BETA = "fast-mode-2026-02-01"
LONG_CONTEXT_BETA = "context-1m-2025-08-07"
_SUFFIXES = (":fast", ":1m")


def split_model(model: str) -> tuple[str, list[str], dict[str, Any]]:
    """A model id without its suffixes, and the betas and body keys that they stand for."""
    betas: list[str] = []
    body: dict[str, Any] = {}
    while model.endswith(_SUFFIXES):
        model, _, suffix = model.rpartition(":")
        if suffix == "fast":
            body["speed"] = "fast"
            betas.append(FAST_BETA)
        else:
            betas.append(LONG_CONTEXT_BETA)
    return model, betas, body


def cut_suffixes(request: Request) -> Request:
    """The request with the suffixes of its model as betas and body keys; the request itself if there are none. Betas that are no list
    stay as they are, for validation to name.
    """
    if not isinstance(request.model, str) or not request.model.endswith(_SUFFIXES):  # pyright: ignore[reportUnnecessaryIsInstance]
        return request
    model, betas, body = split_model(request.model)
    known = request.betas
    if not isinstance(known, str):
        known = [*known, *dict.fromkeys(beta for beta in betas if beta not in known)]
    return request.replace(model=model, betas=known, extra_body={**body, **request.extra_body})
