"""What a body says of the Request's own settings, whoever decided it: the request, the wire, or `extra_body`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.request import Request
from dragoman.wire.json_values import as_list

__all__ = ["settled"]


def settled(request: Request, body: Mapping[str, Any], *, max_tokens: str, effort: str | None, stop: str = "") -> dict[str, Any]:
    """For `HTTPRequest.settled`: `max_tokens` and the effort, and of the other settings those of which the body says something else than
    the request. `max_tokens` and `stop` are what the wire calls these; a value of a foreign type counts as none.
    """
    always = {"max_tokens": body.get(max_tokens), "effort": effort}
    if not request.extra_body:
        return always
    stops = body.get(stop)
    sent: dict[str, Any] = {name: _number(body.get(name)) for name in ("temperature", "top_p", "top_k")}
    sent["stop_sequences"] = [text for text in ([stops] if isinstance(stops, str) else as_list(stops)) if isinstance(text, str)]
    other = {name: value for name, value in sent.items() if value != getattr(request, name)}
    return always | other


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
