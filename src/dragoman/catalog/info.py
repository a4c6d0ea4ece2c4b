"""What `GET /v1/models` says of a model, as a value.

Strategy. The fields that the Messages API documents get a name (anthropic.md §14); the tree of capabilities is kept verbatim, since it
grows with every release, and is read by path with `supports`; everything else goes to `extra`. A server that speaks less, as
compatible servers do, gives an id and empty fields, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.errors import ProtocolError
from dragoman.value import Value, own_dict

__all__ = ["ModelInfo", "model_info"]


class ModelInfo(Value, frozen=True, kw_only=True):
    """One model as its provider describes it. Dates are the provider's text (RFC 3339), limits are tokens.

    `lifecycle` is `active`, `deprecated` or `retired`; `line` is `opus`, `sonnet` …; `""` and None mean: not said.
    """

    id: str
    display_name: str = ""
    created_at: str = ""
    lifecycle: str = ""
    deprecated_at: str = ""
    retires_at: str = ""
    line: str = ""
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    capabilities: dict[str, Any] = {}
    extra: dict[str, Any] = {}

    def __post_init__(self) -> None:
        own_dict(self, "capabilities", "extra")

    def supports(self, capability: str) -> bool | None:
        """Whether a capability is supported, by its path (`image_input`, `effort.xhigh`, `thinking.types.adaptive`); None: not said."""
        node: object = self.capabilities
        for key in capability.split("."):
            if not isinstance(node, dict):
                return None
            node = cast("dict[str, object]", node).get(key)
        supported = cast("dict[str, object]", node).get("supported") if isinstance(node, dict) else node
        return supported if isinstance(supported, bool) else None


_TEXTS = ("display_name", "created_at", "lifecycle", "deprecated_at", "retires_at", "line")
_NUMBERS = ("max_input_tokens", "max_tokens")


def model_info(data: Mapping[str, Any], *, label: str = "") -> ModelInfo:
    """A model from its wire object. Raises ProtocolError if it has no id; `label`, whose answer it is, begins the error's text."""
    model_id = data.get("id")
    if not isinstance(model_id, str) or not model_id:
        raise ProtocolError(f"{f'{label} request failed: protocol error: ' if label else ''}not a model: the object has no `id`")
    fields: dict[str, Any] = {name: data[name] for name in _TEXTS if isinstance(data.get(name), str)}
    fields |= {name: data[name] for name in _NUMBERS if isinstance(data.get(name), int)}
    capabilities = data.get("capabilities")
    if isinstance(capabilities, dict):
        fields["capabilities"] = capabilities
    named = {"id", "type", *_TEXTS, *_NUMBERS, "capabilities"}
    return ModelInfo(id=model_id, **fields, extra={key: value for key, value in data.items() if key not in named})
