"""When two Messages API bodies mean the same: a normal form that knows the closed list of what encoding may change, and nothing else.

Each function is one entry of the list in docs/reference/anthropic-requests.md.
"""

from __future__ import annotations

from typing import Any

__all__ = ["normal", "normal_content"]

Wire = dict[str, Any]


def normal(body: Wire) -> Wire:
    """The normal form of a request body."""
    form = {key: value for key, value in body.items() if value is not None and key not in ("messages", "system", "tools")}
    form["messages"] = _turns(body["messages"])
    system = normal_content(body.get("system") or [])
    if system:
        form["system"] = system
    if body.get("tools"):
        form["tools"] = [_tool(tool) for tool in body["tools"]]
    else:
        form.pop("tool_choice", None)  # without tools neither is sent
    for key in ("stop_sequences", "metadata", "output_config"):
        if not form.get(key, True):
            del form[key]
    if form.get("stream") is False:
        del form["stream"]
    if form.get("tool_choice", {}).get("disable_parallel_tool_use") is False:
        form["tool_choice"] = {key: value for key, value in form["tool_choice"].items() if key != "disable_parallel_tool_use"}
    if "cache_control" in form:
        form["cache_control"] = _mark(form["cache_control"])
    return form


def _turns(messages: list[Wire]) -> list[Wire]:
    """Same-role neighbours are one turn, tool results first in a user's; empty assistant turns are gone."""
    turns: list[Wire] = []
    for message in messages:
        turn = {**message, "content": normal_content(message["content"])}
        if message["role"] == "assistant" and not turn["content"]:
            continue
        if turns and turns[-1].keys() == turn.keys() == {"role", "content"} and turns[-1]["role"] == turn["role"]:
            turns[-1]["content"] += turn["content"]
        else:
            turns.append(turn)
    for turn in turns:
        if turn["role"] == "user":
            turn["content"].sort(key=lambda block: block["type"] != "tool_result")
    if turns and turns[-1]["role"] == "assistant" and turns[-1]["content"][-1]["type"] == "text":
        last = turns[-1]["content"][-1]
        turns[-1]["content"][-1] = {**last, "text": last["text"].rstrip()}
    return turns


def normal_content(content: str | list[Wire]) -> list[Wire]:
    """A content as a list of blocks in normal form, without empty text and unsigned thinking."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [_block(block) for block in blocks if not _is_left_out(block)]


def _is_left_out(block: Wire) -> bool:
    if block["type"] == "text":
        return not block["text"].strip()
    return block["type"] == "thinking" and not block["signature"]


def _block(block: Wire) -> Wire:
    form = dict(block)
    for key in ("cache_control", "citations", "title", "context", "is_error", "encrypted_content"):
        if key in form and not form[key]:
            del form[key]
    if "cache_control" in form:
        form["cache_control"] = _mark(form["cache_control"])
    if form["type"] == "tool_result" and "content" in form:
        form["content"] = normal_content(form["content"])
        if not form["content"]:
            del form["content"]
    source = form.get("source")
    if isinstance(source, dict):
        form["source"] = dict(source)
        if source.get("media_type") == "image/jpg":
            form["source"]["media_type"] = "image/jpeg"
        if source["type"] == "content":
            form["source"]["content"] = normal_content(source["content"])
    if form.get("citations") == {"enabled": False}:
        del form["citations"]
    return form


def _mark(mark: Wire) -> Wire:
    return {key: value for key, value in mark.items() if (key, value) != ("ttl", "5m")}


def _tool(tool: Wire) -> Wire:
    form = dict(tool)
    for key, default in (("type", "custom"), ("description", ""), ("strict", False), ("eager_input_streaming", False)):
        if form.get(key) == default:
            del form[key]
    form = {key: value for key, value in form.items() if value is not None}
    if "cache_control" in form:
        form["cache_control"] = _mark(form["cache_control"])
    return form
