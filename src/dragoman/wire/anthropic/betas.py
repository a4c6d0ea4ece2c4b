"""Which beta a request needs, from one table; and the one `anthropic-beta` header (spec: anthropic.md §3, §7, §13).

Strategy. A feature that is still beta adds its header by itself, so nobody has to remember dates. A beta that the caller names in another
version (`mcp-client-2025-04-04`) stands for its whole family: ours is then not added. Order: the provider's, the request's, those of
`extra_headers`, ours; each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dragoman.wire.json_values import as_list, as_object

__all__ = ["BETAS", "beta_header", "body_features", "content_features"]

BETAS: dict[str, str] = {
    # parameters
    "speed.fast": "fast-mode-2026-02-01",
    "billing_policy": "user-profiles-billing-2026-10-01",
    "compaction": "compact-2026-09-04",
    "context_management": "context-management-2025-06-27",
    "context_management.compact": "compact-2026-01-12",
    "fallback_credit_token": "fallback-credit-2026-07-01",
    "fallbacks": "server-side-fallback-2026-07-01",
    "mcp_servers": "mcp-client-2025-04-04",
    "output_config.task_budget": "task-budgets-2026-03-13",
    "output_format": "structured-outputs-2025-11-13",
    "thinking.display.updates": "thinking-display-updates-2026-08-18",
    "thinking.block_binding": "thinking-binding-controls-2026-08-01",
    "thread": "message-threads-2026-08-12",
    # tools
    "bash_20241022": "computer-use-2024-10-22",
    "text_editor_20241022": "computer-use-2024-10-22",
    "computer_20241022": "computer-use-2024-10-22",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "advisor_20260301": "advisor-tool-2026-03-01",
    "mcp_toolset": "mcp-client-2025-11-20",
    # blocks and messages
    "mcp_tool_use": "mcp-client-2025-11-20",
    "mcp_tool_result": "mcp-client-2025-11-20",
    "mcp_tool_listing": "mcp-client-2025-11-20",
    "advisor_tool_result": "advisor-tool-2026-03-01",
    "compaction_block": "compact-2026-01-12",
    "fallback": "server-side-fallback-2026-07-01",
    "tool_addition": "mid-conversation-tool-changes-2026-07-01",
    "tool_removal": "mid-conversation-tool-changes-2026-07-01",
    "tool_definition": "inline-tools-2026-09-15",
    "clear_at": "mid-conversation-system-clear-at-2026-08-21",
    "message_output_config": "mid-conversation-output-config-2026-07-01",
}
"""Feature → the beta that it needs. Features that are generally available are not here."""

_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def beta_header(given: Iterable[str], features: Sequence[str]) -> str:
    """The value of `anthropic-beta`, or `""`. `given` may hold comma lists; `features` are keys of the table, others are ignored."""
    betas: dict[str, None] = {}
    for text in given:
        betas.update(dict.fromkeys(beta for part in text.split(",") if (beta := part.strip())))
    if not features:
        return ",".join(betas)
    families = {_DATE.sub("", beta) for beta in betas}
    for feature in features:
        ours = BETAS.get(feature)
        if ours is not None and (family := _DATE.sub("", ours)) not in families:
            families.add(family)
            betas[ours] = None
    return ",".join(betas)


def body_features(body: Mapping[str, Any]) -> list[str]:
    """The features that a body's parameters and tools use, those of the messages excepted."""
    if _FEATURED.isdisjoint(body):
        return []
    features = [str(as_object(tool).get("type")) for tool in as_list(body.get("tools"))]
    features += [name for name in _PARAMETERS if body.get(name)]
    if body.get("speed") == "fast":
        features.append("speed.fast")
    features += _context_management(as_object(body.get("context_management")))
    thinking = as_object(body.get("thinking"))
    if thinking.get("display") == "updates":
        features.append("thinking.display.updates")
    if thinking.get("block_binding"):
        features.append("thinking.block_binding")
    if as_object(body.get("output_config")).get("task_budget"):
        features.append("output_config.task_budget")
    return features


_PARAMETERS = ("billing_policy", "compaction", "fallback_credit_token", "fallbacks", "mcp_servers", "output_format", "thread")
_FEATURED = frozenset({*_PARAMETERS, "tools", "speed", "context_management", "thinking", "output_config"})
"""The keys that `body_features` reads."""


def content_features(block: Mapping[str, Any]) -> list[str]:
    """The features that a block uses which has no type of ours."""
    kind = str(block.get("type"))
    features = ["compaction_block" if kind == "compaction" else kind]
    if kind == "tool_addition" and as_object(block.get("tool")).get("type") == "tool_definition":
        features.append("tool_definition")
    return features


def _context_management(value: Mapping[str, Any]) -> list[str]:
    if not value:
        return []
    kinds = [str(as_object(edit).get("type")) for edit in as_list(value.get("edits"))]
    features = ["context_management.compact"] if any(kind.startswith("compact_") for kind in kinds) else []
    if not kinds or not all(kind.startswith("compact_") for kind in kinds):
        features.append("context_management")
    return features
