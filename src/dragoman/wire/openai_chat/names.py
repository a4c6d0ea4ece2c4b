"""Names that several files of this dialect share."""

from __future__ import annotations

from typing import Final

__all__ = ["ERROR_PREFIX", "INVALID_JSON", "MEDIA_STAYS", "MOVED", "WIRE"]

WIRE: Final = "openai-chat"
"""The wire's name: the key in `extra`, in `Origin.wire`, and what `replay --wire` takes."""

ERROR_PREFIX: Final = "Error: "
"""Begins the text of a tool message whose result is an error: the protocol has no flag for it."""

INVALID_JSON: Final = "INVALID_JSON"
"""The one key of the arguments under which a call with unusable input is sent back."""

MEDIA_STAYS: Final = "media_stays"
"""Key in a result's `extra`: a client sent its media in the tool message, though to a host that refuses them there; there they stay."""

MOVED: Final = "See the user message that follows."
"""The text of a tool message all of whose content had to go to the next user message."""
