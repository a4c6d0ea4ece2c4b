"""The finished answer: message, stop reason, usage, and what was measured on the way.

Usage is disjoint: every token is in exactly one of `input`, `cache_read`, `cache_write_*`, `output`, so costs and totals are sums.
`reasoning` and `details` name parts *of* those buckets and are never added to anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar, Literal, TypeVar, cast

from dragoman.message import Extra, InvalidToolUse, Message, ToolUse
from dragoman.value import Value, own_dict, own_list, snake_case

__all__ = ["FINISH", "Finish", "Iteration", "Limit", "Notice", "RateLimits", "Response", "StopDetails", "StopReason", "Timing", "Usage"]

T = TypeVar("T")

StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "refusal",
    "pause_turn",
    "context_exceeded",
    "compaction",
    "action_required",
    "unknown",
]
Finish = Literal["stop", "length", "tool_use", "refusal", "other"]

FINISH: dict[StopReason, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "context_exceeded": "length",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "pause_turn": "other",
    "compaction": "other",
    "action_required": "other",
    "unknown": "other",
}
"""The coarse meaning of each stop reason, for code that only asks "is it done?"."""


class _StopDetailsOptions(Value, frozen=True, kw_only=True):
    category: str = ""
    explanation: str = ""
    extra: Extra = {}


class StopDetails(_StopDetailsOptions, frozen=True):
    """Why a model refused or was stopped. `kind` is `refusal`, `filter`, `guardrail` …"""

    kind: str

    def __post_init__(self) -> None:
        own_dict(self, "extra")


class Usage(Value, frozen=True, kw_only=True):
    """Token counts of one call, each token in one bucket.

    `input` is the uncached part only; `reasoning` is part of `output`; `cache_write_other` was written with no stated lifetime, or is
    more than the split explains. `details["output.audio"]` and the like are parts of their bucket. `iterations` exist only if the wire
    gave them. `reported_cost` is US dollars as a gateway billed. `extra` keeps wire numbers that have no field.
    """

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_write_other: int = 0
    server_tools: dict[str, int] = {}
    iterations: Sequence[Iteration] = []
    details: dict[str, int] = {}
    reported_cost: Decimal | None = None
    service_tier: str = ""
    speed: str = ""
    inference_geo: str = ""
    extra: Extra = {}

    def __post_init__(self) -> None:
        own_list(self, "iterations")
        own_dict(self, "server_tools", "details", "extra")

    @property
    def cache_write(self) -> int:
        """All tokens written to the cache: 5m + 1h + other."""
        return self.cache_write_5m + self.cache_write_1h + self.cache_write_other

    @property
    def total_input(self) -> int:
        """Everything the model read: uncached + cache reads + cache writes."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """Total input plus output, at the top level; the tokens of separately billed iterations are not in it."""
        return self.total_input + self.output

    def __add__(self, other: Usage) -> Usage:
        """The usage of two calls: numbers and tables add, iterations concatenate, tags that differ become `""`.

        In `extra` too numbers add and tables merge; what differs otherwise is left out.
        """
        if not isinstance(other, Usage):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        if self == _NOTHING or other == _NOTHING:  # the start of a sum has no tags to differ in
            return self if other == _NOTHING else other
        costs = [cost for cost in (self.reported_cost, other.reported_cost) if cost is not None]
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            cache_read=self.cache_read + other.cache_read,
            cache_write_5m=self.cache_write_5m + other.cache_write_5m,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
            cache_write_other=self.cache_write_other + other.cache_write_other,
            server_tools=_sum(self.server_tools, other.server_tools),
            iterations=[*self.iterations, *other.iterations],
            details=_sum(self.details, other.details),
            reported_cost=sum(costs, Decimal(0)) if costs else None,
            service_tier=_same(self.service_tier, other.service_tier),
            speed=_same(self.speed, other.speed),
            inference_geo=_same(self.inference_geo, other.inference_geo),
            extra=_merged(self.extra, other.extra),
        )

    def __radd__(self, other: int) -> Usage:
        """Lets `sum(usages)` begin with its 0; any other number is no usage."""
        return self if other == 0 else NotImplemented


_NOTHING = Usage()


class _IterationOptions(Value, frozen=True, kw_only=True):
    model: str = ""
    usage: Usage


class Iteration(_IterationOptions, frozen=True):
    """One round inside a call (`message`, `compaction`, `advisor_message`, `fallback_message`), billed at its own model."""

    kind: str


def _sum(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {key: a.get(key, 0) + b.get(key, 0) for key in [*a, *(k for k in b if k not in a)]}


def _merged(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    merged = {**a, **b}
    for key in a.keys() & b.keys():
        one, two = a[key], b[key]
        if isinstance(one, dict) and isinstance(two, dict):
            merged[key] = _merged(cast("dict[str, Any]", one), cast("dict[str, Any]", two))
        elif type(one) in (int, float) and type(two) in (int, float):  # pyright: ignore[reportUnknownArgumentType]
            merged[key] = one + two
        elif one != two:
            del merged[key]
    return merged


def _same(a: str, b: str) -> str:
    return a if a == b else ""


class Limit(Value, frozen=True):
    """One rate limit as the provider's headers gave it; `reset` is its own text (a date or a duration)."""

    limit: int | None = None
    remaining: int | None = None
    reset: str = ""


class RateLimits(Value, frozen=True):
    """The rate limits that came with an answer; None where the provider said nothing."""

    requests: Limit | None = None
    tokens: Limit | None = None
    input_tokens: Limit | None = None
    output_tokens: Limit | None = None


class Timing(Value, frozen=True):
    """When things happened. `started` is Unix time; all others are seconds from it, None if it did not happen.

    `first_byte` is of the answer's body; `first_content` is the first content delta or block of any kind; `longest_gap` is the longest
    wait for the network between two reads of the body; `bytes` counts the body as received.
    """

    started: float
    first_byte: float | None = None
    first_content: float | None = None
    finished: float | None = None
    longest_gap: float = 0.0
    attempts: int = 1
    bytes: int = 0


class _NoticeOptions(Value, frozen=True, kw_only=True):
    index: int | None = None
    path: str | None = None


class Notice(_NoticeOptions, frozen=True, tag=snake_case, tag_field="type"):
    """Something odd that was tolerated or changed: `code` for programs, `message` for people. Never quotes content.

    An event of the stream (`dragoman.event`), kept in the response too.
    """

    code: str
    message: str
    type: ClassVar[Literal["notice"]] = "notice"


class Response(Value, frozen=True, kw_only=True):
    """One finished answer."""

    message: Message
    stop: StopReason
    raw_stop: str = ""
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None
    usage: Usage = Usage()
    id: str = ""
    model: str = ""
    request_id: str = ""
    attempts: int = 1
    rate_limits: RateLimits | None = None
    timing: Timing | None = None
    notices: Sequence[Notice] = []
    extra: Extra = {}

    def __post_init__(self) -> None:
        own_list(self, "notices")
        own_dict(self, "extra")

    @property
    def text(self) -> str:
        """The message's text."""
        return self.message.text

    def join_text(self, separator: str) -> str:
        """The message's Text blocks with `separator` before each after the first."""
        return self.message.join_text(separator)

    @property
    def tool_uses(self) -> list[ToolUse]:
        """The calls the caller should make."""
        return self.message.tool_uses

    @property
    def invalid_tool_uses(self) -> list[InvalidToolUse]:
        """The calls that must not be made."""
        return self.message.invalid_tool_uses

    @property
    def finish(self) -> Finish:
        """The coarse stop reason."""
        return FINISH[self.stop]

    def parse(self, type: type[T]) -> T:
        """The text as a value of `type` (msgspec Struct, dataclass, pydantic model, or any type msgspec reads).

        Raises OutputParseError, which holds the text and the usage, if it does not fit.
        """
        from dragoman.schema import parse_output

        return parse_output(self, type)
