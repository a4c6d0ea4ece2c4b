"""What a model's tokens cost: prices by id, from the caller, from our own list, or from `genai-prices`.

Strategy. A price list is data (`prices.json`, with its date and sources): each kind of token has a price of its own, since a cache read
is 0.1, 0.05 or 0.025 of the input price depending on the model. Claude models come from that list, which loads in a millisecond and
knows the factors of fast mode, batches and US-only inference; every other model comes from `genai-prices` (extra `prices`) if it is
installed. A `genai-prices` that updates itself is newer than our list and goes first. What no source knows is None, never a guess.

A caller's own prices are the only source when they are given: negotiated prices must not be mixed with list prices unseen.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from dragoman.catalog.data import data_file
from dragoman.catalog.ids import find, line_of
from dragoman.errors import ConfigError
from dragoman.value import Value

__all__ = ["Circumstances", "Price", "PriceList", "Rates", "genai_context_window", "rates_of"]

Number: TypeAlias = Decimal | int | float | str


class Price(Value, frozen=True):
    """What one model costs, in US dollars per million tokens; `web_search` per thousand searches.

    Numbers may be given as int, float or str and are kept as Decimal. None means not known: a usage that needs it has no cost.
    Raises ConfigError for what is no number from 0.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    web_search: Decimal | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            input: Number,
            output: Number,
            cache_read: Number | None = None,
            cache_write_5m: Number | None = None,
            cache_write_1h: Number | None = None,
            web_search: Number | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                force_setattr(self, name, _price(value, name))


def _price(value: object, name: str) -> Decimal:
    try:
        price = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or price < 0:
        raise ConfigError(f"Price: {name} must be a number of US dollars from 0, not {value!r}")
    return price


class Circumstances(NamedTuple):
    """What about a call changes its prices. `provider` is who was called, `started` Unix time or None; `input` counts all input tokens."""

    provider: str = ""
    service_tier: str = ""
    speed: str = ""
    inference_geo: str = ""
    started: float | None = None
    input: int = 0


class Rates(NamedTuple):
    """The prices that hold for one call: by kind of token (`input`, `cache_read`, `output.audio` …) or `web_search`; and whence."""

    prices: Mapping[str, Decimal]
    source: str
    date: str


PriceList: TypeAlias = Mapping[str, Price]
"""A caller's own prices: model id → Price."""


def rates_of(model: str, given: PriceList | None, call: Circumstances) -> Rates | None:
    """The prices of a model under these circumstances, None if no source knows them."""
    if given is not None:
        price = find(model, given, variants=False)
        return None if price is None else _from_caller(price, model)
    if _genai_is_fresh():
        return _from_genai(model, call) or _from_list(model, call)
    return _from_list(model, call) or _from_genai(model, call)


def _from_caller(price: Price, model: str) -> Rates:
    prices = {name: value for name, value in msgspec.structs.asdict(price).items() if value is not None}
    if "web_search" not in prices and line_of(model):
        prices["web_search"] = _list().web_search  # one price for all of Claude
    return Rates(_with_other_writes(prices), "prices given by the caller", "")


def _with_other_writes(prices: dict[str, Decimal]) -> dict[str, Decimal]:
    """Writes of unknown lifetime at the 5-minute price: what they are unless the caller asked for more."""
    if "cache_write_5m" in prices:
        prices["cache_write_other"] = prices["cache_write_5m"]
    return prices


# ---- our own list


class _Above(msgspec.Struct, frozen=True):
    tokens: int
    factor: Decimal


class _Row(msgspec.Struct, frozen=True):
    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    fast: Decimal | None = None
    us: Decimal = Decimal(1)
    above: _Above | None = None


class _File(msgspec.Struct, frozen=True):
    as_of: str
    batch: Decimal
    web_search: Decimal
    aliases: dict[str, str]
    models: dict[str, _Row]


_PLAIN_TIERS = frozenset({"", "standard", "default", "auto", "on_demand"})
"""Service tiers and speeds that mean the plain price."""

_BUCKETS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
_SOURCE = "Anthropic list prices"
_lock = threading.Lock()
_file: _File | None = None


def _list() -> _File:
    global _file  # noqa: PLW0603  # read once
    if _file is None:
        with _lock:
            if _file is None:
                file = msgspec.json.decode(data_file("prices.json"), type=_File)
                file.models.update({alias: file.models[target] for alias, target in file.aliases.items()})
                _file = file
    return _file


def _from_list(model: str, call: Circumstances) -> Rates | None:
    file = _list()
    row = find(model, file.models, variants=False)
    if row is None:
        return None
    factor = Decimal(1)
    if call.speed == "fast":
        if row.fast is None:
            return None
        factor *= row.fast
    if call.service_tier == "batch":
        factor *= file.batch
    elif call.service_tier not in _PLAIN_TIERS:
        return None  # the priority tier is billed by commitment
    if call.inference_geo == "us":
        factor *= row.us
    if row.above is not None and call.input > row.above.tokens:
        factor *= row.above.factor
    prices = {name: getattr(row, name) * factor for name in _BUCKETS}
    prices["web_search"] = file.web_search
    return Rates(_with_other_writes(prices), _SOURCE, file.as_of)


# ---- genai-prices

_GENAI_KEYS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write_5m": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "input.audio": "input_audio_mtok",
    "input.image": "input_image_mtok",
    "input.video": "input_video_mtok",
    "input.tool": "input_tool_mtok",
    "cache_read.audio": "cache_audio_read_mtok",
    "cache_read.image": "cache_image_read_mtok",
    "cache_read.video": "cache_video_read_mtok",
    "output.audio": "output_audio_mtok",
    "output.image": "output_image_mtok",
    "output.video": "output_video_mtok",
    "output.reasoning": "output_reasoning_mtok",
    "web_search": "web_searches_kcount",
}
"""Our kinds of token, and the key of a genai-prices ModelPrice."""

_GENAI_PROVIDERS = {"gemini": "google", "vertex": "google", "bedrock": "aws", "xai": "x-ai"}
"""Providers that genai-prices calls by another name."""

_NO_VENDORS = frozenset({"local", "ollama", "vllm", "llamacpp", "lmstudio", "openai-compatible"})
"""Providers whose prices nobody can know by the model's name: it runs on hardware of one's own, or on a host that we do not know."""


def _genai(module: str) -> Any:
    """A module of genai-prices, None if the package is not installed."""
    try:
        return import_module(f"genai_prices.{module}")
    except ImportError:
        return None


def _genai_is_fresh() -> bool:
    """Whether the program keeps genai-prices up to date; it is not imported to find that out."""
    import sys

    loaded = sys.modules.get("genai_prices.data_snapshot")
    return loaded is not None and bool(loaded.get_snapshot().from_auto_update)


def _genai_model(model: str, provider: str) -> Any:
    """The model as genai-prices knows it, None if it does not."""
    snapshots = _genai("data_snapshot")
    if snapshots is None or not model:
        return None
    snapshot = snapshots.get_snapshot()
    for name in dict.fromkeys((_GENAI_PROVIDERS.get(provider, provider) or None, None)):
        try:
            return snapshot.find_provider_model(model, None, name, None)[1]
        except LookupError:
            continue
    return None


def _from_genai(model: str, call: Circumstances) -> Rates | None:
    found = None if call.provider in _NO_VENDORS else _genai_model(model, call.provider)
    if found is None:
        return None
    context = _context(call)
    when = datetime.now(UTC) if call.started is None else datetime.fromtimestamp(call.started, UTC)
    if call.inference_geo == "us" or not all(_has_variant(found, *item) for item in context.items()):
        return None  # it would give the plain price
    price = found.get_prices(when, context)
    prices: dict[str, Decimal] = {}
    for name, key in _GENAI_KEYS.items():
        value = _tier(getattr(price, key, None), call.input)
        if value is not None:
            prices[name] = value
    if "input" not in prices or "output" not in prices:
        return None
    for name in ("cache_read", "cache_write_5m"):  # its own rule: without a price of their own they are plain input
        prices.setdefault(name, prices["input"])
    prices.setdefault("cache_write_1h", prices["cache_write_5m"])
    return Rates(_with_other_writes(prices), f"genai-prices {_genai_version()}", _genai_date())


def _context(call: Circumstances) -> dict[str, str]:
    """What of a call genai-prices may have another price for."""
    context: dict[str, str] = {}
    if call.service_tier == "batch":
        context["processing"] = "batch"
    elif call.service_tier not in _PLAIN_TIERS:
        context["service_tier"] = call.service_tier
    if call.speed not in _PLAIN_TIERS:
        context["speed"] = call.speed
    return context


def _has_variant(model: Any, key: str, value: str) -> bool:
    return any(variant.when.get(key) == value for variant in model.price_variants or ())


def _tier(price: Any, tokens: int) -> Decimal | None:
    """A plain price, or the step of a tiered one that this much input is on (it holds for all tokens of the call)."""
    if price is None or isinstance(price, Decimal):
        return price
    steps = [tier.price for tier in price.tiers if tokens > tier.start]
    return Decimal(steps[-1] if steps else price.base)


def _genai_version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to load

    try:
        return version("genai-prices")
    except PackageNotFoundError:
        return ""


def _genai_date() -> str:
    """The day of the last update; the prices that come with the package have no date but its version."""
    snapshot = _genai("data_snapshot").get_snapshot()
    return snapshot.timestamp.date().isoformat() if snapshot.from_auto_update else ""


def genai_context_window(model: str, provider: str) -> int | None:
    """The context window of a model in tokens as genai-prices knows it, else None."""
    found = _genai_model(model, provider)
    return None if found is None else found.context_window
