"""One block in its place: whether it can stand there, and whether what it holds can be written.

The dialect's table says which blocks a message of each role and a tool result may hold. The blocks that histories are mostly made of are
looked at by `turns` itself; here is everything else.
"""

from __future__ import annotations

from dragoman.catalog import ModelRules
from dragoman.errors import Problem
from dragoman.message import (
    Audio,
    Block,
    Document,
    Image,
    InvalidToolUse,
    Opaque,
    RedactedThinking,
    Refusal,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Video,
)
from dragoman.validation.dialect import Dialect, Holder
from dragoman.validation.media import DEPTH_LIMIT, check_document, check_image, is_broken, json_problem

__all__ = ["BLOCKS", "check_block", "check_json", "check_signed"]

BLOCKS = (
    Text,
    Refusal,
    Image,
    Audio,
    Video,
    Document,
    Thinking,
    RedactedThinking,
    ToolUse,
    InvalidToolUse,
    ToolResult,
    ServerToolUse,
    ServerToolResult,
    Opaque,
)
"""Everything that is a block."""

_ASSISTANTS_OWN = "put it into an assistant message"
_HOME: dict[type, str] = {
    ToolUse: _ASSISTANTS_OWN,
    InvalidToolUse: _ASSISTANTS_OWN,
    Thinking: _ASSISTANTS_OWN,
    RedactedThinking: _ASSISTANTS_OWN,
    ServerToolUse: _ASSISTANTS_OWN,
    ToolResult: "put it into the user message after its call",
}
"""Where a block that stands in the wrong place belongs."""

PLACES: dict[str, str] = {
    "user": "a user message",
    "assistant": "an assistant message",
    "system": "a system message",
    "tool result": "a tool result",
}
"""What holds blocks, in the words of errors."""


def check_block(
    block: Block, holder: Holder, path: str, *, dialect: Dialect, rules: ModelRules, latest_api: bool, out: list[Problem]
) -> None:
    """Append what is wrong with a block that is part of `holder`. `latest_api`: the rules of the newest Messages API version apply."""
    if type(block) not in dialect.blocks[holder]:
        out.append(_misplaced(block, holder, path, dialect))
    elif isinstance(block, Image):
        check_image(block, path, rules, claude=dialect.claude, out=out)
    elif isinstance(block, Document):
        check_document(block, path, rules, claude=dialect.claude, out=out)
        if holder == "assistant" and latest_api:
            text = "this API version takes no document in an assistant message"
            out.append(Problem(path, "api_version", text, "move it to a user message"))
    elif isinstance(block, ServerToolUse):
        check_json(block.input, f"{path}.input", out)
    elif isinstance(block, RedactedThinking):
        check_signed(block.data, path, out)


def _misplaced(block: Block, holder: str, path: str, dialect: Dialect) -> Problem:
    if isinstance(block, Audio | Video):
        return Problem(path, f"no_{block.type}", f"{dialect.label} takes no {block.type}", "leave it out, or send its words as text")
    text = f"a block of type {block.type} cannot stand in {PLACES[holder]}"
    return Problem(path, "block_role", text, _HOME.get(type(block), "move it to a user message"))


def check_json(value: object, path: str, out: list[Problem], limit: int = DEPTH_LIMIT) -> None:
    """Append the first thing in a value that JSON has no form for, or that nests deeper than `limit` levels."""
    problem = json_problem(value, path, limit)
    if problem is not None:
        out.append(problem)


def check_signed(text: str, path: str, out: list[Problem]) -> None:
    """Append if signed text cannot be sent exactly as it is."""
    if is_broken(text):
        reason = "signed thinking holds half a character (a lone surrogate), and signed text cannot be changed"
        out.append(Problem(path, "broken_unicode", reason, "leave this block out"))
