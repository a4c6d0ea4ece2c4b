"""The yardstick of the codec: msgspec reading the JSON of each delta into a typed value, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["decoder"]


class TextDelta(msgspec.Struct, tag="text_delta"):
    text: str


class InputDelta(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


class Delta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: TextDelta | InputDelta


def decoder() -> Callable[[bytes], Any]:
    """One that is ready to use."""
    return msgspec.json.Decoder(Delta).decode
