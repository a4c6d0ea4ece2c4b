"""The shape of nearly every chunk, typed, so that the hot path is one decode and a few attribute reads.

A chunk that has anything else in it (an unknown key, a finish reason, usage, annotations …) is refused by these types, on purpose, and
is read as a plain dict by `decode.py`, which loses no key. Keys that are the same in every chunk, and padding that hosts add against
traffic analysis (`obfuscation`, Mistral's `p`), are listed so that they do not refuse it.
"""

from __future__ import annotations

import msgspec

__all__ = ["Call", "Choice", "Chunk", "Detail", "common"]


class Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a call."""

    arguments: str | None = None
    name: str | None = None


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `tool_calls`."""

    index: int
    function: Function
    id: str | None = None
    type: str | None = None


class Detail(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A piece of a `reasoning_details` entry that only brings more words."""

    type: str
    index: int
    text: str | None = None
    summary: str | None = None
    format: str | msgspec.UnsetType | None = msgspec.UNSET


class Delta(msgspec.Struct, forbid_unknown_fields=True):
    """What a choice brings."""

    content: str | None = None
    role: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Detail] | None = None
    tool_calls: list[Call] | None = None
    refusal: None = None
    channel: str | None = None


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """One alternative; only the first is ours."""

    delta: Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None
    native_finish_reason: None = None


class Chunk(msgspec.Struct, forbid_unknown_fields=True):
    """One event of the stream."""

    choices: list[Choice]
    id: str | None = None
    object: str | None = None
    created: int | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    provider: str | None = None
    usage: None = None
    obfuscation: str | None = None
    p: str | None = None


common = msgspec.json.Decoder(Chunk).decode
"""Bytes to Chunk; raises msgspec.MsgspecError for any other shape."""
