"""What a call cost, and how full the context is.

Strategy. A usage is disjoint, so a cost is a sum of line items: tokens of one kind at one model's price. What a gateway says it billed
wins over any list. Where the wire reported iterations, those are billed, each at its own model, since the top-level counts leave out what
a compaction or an advisor used. Amounts are exact decimals; if any part has no known price there is no cost at all, because a total that
leaves something out is a wrong number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import overload

from msgspec.structs import replace

from dragoman.catalog import rules
from dragoman.catalog.prices import Circumstances, Price, PriceList, genai_context_window, rates_of
from dragoman.response import Iteration, Response, Usage
from dragoman.value import Value, own_list

__all__ = ["Cost", "CostItem", "Price", "context_used", "cost"]

_MILLION = Decimal(1_000_000)
_THOUSAND = Decimal(1_000)


class CostItem(Value, frozen=True, kw_only=True):
    """One line of a bill: `amount` US dollars for `quantity` of `kind` at `price`.

    `kind` is a kind of token (`input`, `cache_read`, `cache_write_1h`, `output`, `output.audio` …; price per million), `web_search` (per
    thousand) or `reported` (what the gateway billed). `iteration` is the kind of round it belongs to, `""` without iterations.
    """

    kind: str
    quantity: int
    price: Decimal
    amount: Decimal
    model: str = ""
    iteration: str = ""


class Cost(Value, frozen=True, kw_only=True):
    """What a call cost in US dollars.

    `total` is the sum of the items. `source` says whose prices these are and `date` of which day (ISO 8601; `""` if the source has
    none). `partial` means: of an answer that was cut off, from what was known. `reported` means: the provider's own figure.
    """

    total: Decimal
    items: Sequence[CostItem] = []
    source: str = ""
    date: str = ""
    partial: bool = False
    reported: bool = False

    def __post_init__(self) -> None:
        own_list(self, "items")


@overload
def cost(answer: Response, prices: PriceList | None = None) -> Cost | None: ...
@overload
def cost(answer: Usage, prices: PriceList | None = None, *, model: str) -> Cost | None: ...
def cost(answer: Response | Usage, prices: PriceList | None = None, *, model: str = "") -> Cost | None:
    """The cost of a response; or of the usage of a stream that was cut off, which is then `partial`. None if it is not known.

    `prices` maps model ids to `Price` and is then the only source; ids match exactly, then by their longest prefix at a separator,
    without region, vendor, date and the like. Else Claude ids come from our list, others from `genai-prices` (extra `prices`).
    """
    if isinstance(answer, Response):
        origin = answer.message.origin
        call = Circumstances(
            provider=origin.provider if origin is not None else "",
            started=answer.timing.started if answer.timing is not None else None,
        )
        return _cost(answer.usage, model or answer.model or (origin.model if origin is not None else ""), prices, call)
    found = _cost(answer, model, prices, Circumstances())
    return None if found is None else replace(found, partial=True)


def context_used(response: Response) -> tuple[int, int | None]:
    """How many tokens the conversation fills now, the answer included, and how many the model can hold (None if unknown).

    With iterations the last round counts, since each of them had read the whole conversation.
    """
    rounds = [item.usage for item in response.usage.iterations if item.kind in ("message", "fallback_message")]
    usage = rounds[-1] if rounds else response.usage
    model = response.model
    window = rules(model).context_window if model else None
    if window is None:
        origin = response.message.origin
        window = genai_context_window(model, origin.provider if origin is not None else "")
    return usage.total, window


def _cost(usage: Usage, model: str, prices: PriceList | None, call: Circumstances) -> Cost | None:
    if usage.reported_cost is not None:
        amount = usage.reported_cost
        item = CostItem(kind="reported", quantity=1, price=amount, amount=amount, model=model)
        return Cost(total=amount, items=[item], source="billed amount as the provider reported it", reported=True)
    call = call._replace(service_tier=usage.service_tier, inference_geo=usage.inference_geo)
    items: list[CostItem] = []
    sources: dict[tuple[str, str], None] = {}
    for part in _rounds(usage):
        served_by = part.model or model
        own_model = not part.model or part.model == model
        rates = rates_of(
            served_by, prices, call._replace(speed=part.usage.speed or (usage.speed if own_model else ""), input=part.usage.total_input)
        )
        if rates is None:
            return None
        lines = _lines(part.usage, rates.prices)
        if lines is None:
            return None
        sources[rates.source, rates.date] = None
        items += [CostItem(kind=k, quantity=n, price=p, amount=a, model=served_by, iteration=part.kind) for k, n, p, a in lines]
    dates = [date for _, date in sources if date]
    source = ", ".join(dict.fromkeys(source for source, _ in sources))
    return Cost(total=sum((item.amount for item in items), Decimal(0)), items=items, source=source, date=min(dates, default=""))


def _rounds(usage: Usage) -> list[Iteration]:
    """What is billed, round by round; the searches, which only the top level counts, belong to the first round of the model itself."""
    if not usage.iterations:
        return [Iteration("", usage=usage)]
    rounds = list(usage.iterations)
    own = [i for i, item in enumerate(rounds) if item.kind == "message"]
    if len(own) == 1 and _same_counts(rounds[own[0]].usage, usage):
        # only the first usage object of a stream says how long a cache write lives: the top level knows more than its one round
        index = own[0]
        rounds[index] = replace(rounds[index], usage=replace(usage, iterations=[]))
    elif usage.server_tools and not any(item.usage.server_tools for item in rounds):
        index = own[0] if own else 0
        rounds[index] = replace(rounds[index], usage=replace(rounds[index].usage, server_tools=usage.server_tools))
    return rounds


def _same_counts(a: Usage, b: Usage) -> bool:
    return (a.input, a.output, a.cache_read, a.cache_write) == (b.input, b.output, b.cache_read, b.cache_write)


_BUCKETS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_other", "output")

Line = tuple[str, int, Decimal, Decimal]


def _lines(usage: Usage, prices: Mapping[str, Decimal]) -> list[Line] | None:
    """The lines of one usage (kind, quantity, price, amount), None if one of them has no price."""
    details = {"output.reasoning": usage.reasoning, **usage.details}
    lines: list[Line] = []
    for bucket in _BUCKETS:
        count: int = getattr(usage, bucket)
        for kind, tokens in details.items():
            if tokens > 0 and kind.startswith(f"{bucket}.") and kind in prices:
                part = min(tokens, count)
                count -= part
                lines.append((kind, part, prices[kind], part * prices[kind] / _MILLION))
        if count > 0:
            price = prices.get(bucket)
            if price is None:
                return None
            lines.append((bucket, count, price, count * price / _MILLION))
    searches = sum(count for name, count in usage.server_tools.items() if name.startswith("web_search"))
    if searches:
        price = prices.get("web_search")
        if price is None:
            return None
        lines.append(("web_search", searches, price, searches * price / _THOUSAND))
    return lines
