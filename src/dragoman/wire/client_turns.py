"""Who wrote the assistant turns of a request that a client sends to a gateway."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.message import Audio, Block, Origin, RedactedThinking, ServerToolResult, ServerToolUse, Text, Thinking

__all__ = ["client_origin"]

_OWN = (Thinking, RedactedThinking, ServerToolUse, ServerToolResult, Audio)


def client_origin(blocks: Iterable[Block], wire: str) -> Origin | None:
    """Somebody of this dialect, if the turn holds what another could not read (thinking, server-side calls, sound, citations), so that a
    gateway's encoder of another dialect leaves it out; else None, as for a turn that the caller wrote. Which vendor and model wrote it, a
    request does not say: both are `""`.
    """
    if any(isinstance(block, _OWN) or (isinstance(block, Text) and block.citations) for block in blocks):
        return Origin("", "", wire)
    return None
