"""Price sheets from the genai-prices package: histories by date, prices by hour, thresholds, cache writes of 5 min and 1 h, modes.

Hours have no date in the package, so they belong to the sheet that is valid today; a mode belongs to that one and to those that begin
after it has started.
"""

from __future__ import annotations

import datetime
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from headway.core.age import today
from headway.core.errors import BadFile, MissingExtra, clip
from headway.economics.sheets.schema import SheetMatches, read_all, tiers_of

NAMES = {"input_mtok": "input", "output_mtok": "output", "cache_read_mtok": "cache_read"}
WRITE, LONG_WRITE = "cache_write_mtok", "cache_write_1h_mtok"  # the first means 5 minutes if the second is present
MODES = {("processing", "batch"), ("service_tier", "flex"), ("service_tier", "priority"), ("service_tier", "fast"), ("speed", "fast")}
EARLIEST = datetime.date.min


@functools.cache
def read_genai() -> SheetMatches:
    """Every sheet of the installed package."""
    try:
        from genai_prices.data import providers  # type: ignore[import-not-found]
    except ImportError:
        raise MissingExtra("genai-prices", "prices") from None
    return sheets_of(providers, f"genai-prices {version('genai-prices')}")


class _Entry(SimpleNamespace):
    """An object of the published list, with the names that the package gives it."""

    def __getattr__(self, name: str) -> Any:
        if name in ("context_window", "price_variants"):  # which need not be stated
            return None
        raise AttributeError(name)


DATES = {"start_date": datetime.date.fromisoformat, "start_time": datetime.time.fromisoformat, "end_time": datetime.time.fromisoformat}


def of_json(providers: list[Any], path: Path) -> SheetMatches:
    """A sheet for each provider, model and date of the list that the package publishes as a file; BadFile where it is another list."""
    try:
        return sheets_of([_entry(provider) for provider in providers], path.name)
    except (AttributeError, TypeError, ValueError) as error:
        raise BadFile(path, f"is no list of providers as genai-prices publishes it ({clip(error)})") from None


def _entry(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return value if key == "when" else _Entry(**{name: _entry(part, name) for name, part in value.items()})
    if isinstance(value, list):
        return [_entry(part) for part in value]
    return DATES[key](value) if key in DATES else value


def sheets_of(providers: Iterable[Any], source: str) -> SheetMatches:
    """A sheet for each provider, model and date."""
    documents, left_out = [], Counter[str]()
    for provider in providers:
        for model in provider.models:
            model_documents = list(_documents(provider.id, model, source))
            documents += model_documents
            left_out["models without prices of tokens"] += not model_documents
    return read_all(documents, Path(source), +left_out)


def _documents(provider: str, model: Any, source: str) -> Iterator[dict[str, Any]]:
    """The documents of a model's history."""
    dated, hours = _rows(model)
    priced = [(date, steps) for date, steps in dated if {"input", "output"} <= steps[0].keys()]
    day = today()
    current = max((number for number, (date, _) in enumerate(priced) if date <= day), default=0)
    for number, (date, steps) in enumerate(priced):
        document: dict[str, Any] = {
            "currency": "USD", "provider": provider, "model": model.id, "source": source, "rates": dict(steps[0]),
            "tiers": tiers_of(steps), "as_of": "undated" if date == EARLIEST else date.isoformat(),
            "modes": _modes(model, steps, day if number == current else date),
        }  # fmt: skip
        if model.context_window:
            document["context_limit"] = float(model.context_window)
        if number < len(priced) - 1:
            document["notes"] = [f"until {priced[number + 1][0].isoformat()}"]
        elif len(priced) == 1 and date == EARLIEST:
            document["notes"] = ["the package does not say since when"]
        if number == current:
            document["time_of_day"] = [{"utc": utc, "rates": dict(rates[0]), "tiers": tiers_of(rates)} for utc, rates in hours]
        yield document


def _rows(model: Any) -> tuple[list[tuple[datetime.date, Any]], list[tuple[str, Any]]]:
    """Prices by start date, earliest first, and prices by hours."""
    rows = model.prices if isinstance(model.prices, list) else [model.prices]
    dated, hours = {}, []
    for row in rows:
        constraint: Any = getattr(row, "constraint", None)
        steps = _steps(getattr(row, "prices", row))
        start = getattr(constraint, "start_date", EARLIEST)
        if hasattr(constraint, "start_time"):
            hours.append((f"{_utc(constraint.start_time)}-{_utc(constraint.end_time)}", steps))
        else:
            dated[start] = steps
    return sorted(dated.items()), hours


def _utc(time: datetime.time) -> str:
    """Hour and minute in UTC of a time with or without a time zone."""
    if time.tzinfo:
        time = datetime.datetime.combine(datetime.date(2000, 1, 2), time).astimezone(datetime.UTC).time()
    return f"{time:%H:%M}"


def _steps(prices: Any) -> dict[float, dict[str, Any]]:
    """Rates by threshold in tokens."""
    steps: dict[float, dict[str, Any]] = {0.0: {}}
    writes = {WRITE: "5min" if getattr(prices, LONG_WRITE, None) is not None else "default", LONG_WRITE: "1h"}
    for key, price in vars(prices).items():
        if price is None or key not in {**NAMES, **writes}:
            continue
        tiers = {0.0: getattr(price, "base", price)} | {float(tier.start): tier.price for tier in getattr(price, "tiers", ())}
        for above, rate in tiers.items():
            rates = steps.setdefault(above, {})
            if key in NAMES:
                rates[NAMES[key]] = float(rate)
            else:
                rates.setdefault("cache_write", {})[writes[key]] = float(rate)
    return {above: _rates_at(steps, above) for above in steps}


def _rates_at(steps: Mapping[float, Mapping[str, Any]], above: float) -> dict[str, Any]:
    """The rates of a threshold, with cache writes inherited from the threshold below."""
    rates = dict(steps[above])
    below = [steps[threshold]["cache_write"] for threshold in sorted(steps) if threshold <= above and "cache_write" in steps[threshold]]
    if below and "cache_write" in rates:
        rates["cache_write"] = {ttl: rate for writes in below for ttl, rate in writes.items()}
    return rates


def _modes(model: Any, usual: Mapping[float, Mapping[str, Any]], date: datetime.date) -> dict[str, Any]:
    """Modes on a date, by their single condition; a mode inherits rates and thresholds that it does not restate. Priority is `fast`.

    Of several prices of one mode the first that has started counts, as the package resolves them.
    """
    modes: dict[str, Any] = {}
    for variant in model.price_variants or ():
        conditions = list(variant.when.items())
        steps = _steps(variant.prices)
        started = getattr(getattr(variant, "constraint", None), "start_date", EARLIEST) <= date
        if not started or len(conditions) != 1 or conditions[0] not in MODES or not ({"input", "output"} & steps[0].keys()):
            continue
        mode_keys = {key for step in steps.values() for key in step}
        merged = {above: {key: rate for key, rate in usual.get(above, {}).items() if key not in mode_keys} for above in {*steps, *usual}}
        for above, step in steps.items():
            merged[above] = {**merged[above], **step}
        modes.setdefault(conditions[0][1], {"rates": merged[0.0], "tiers": tiers_of(merged)})
    if "fast" in modes and modes.get("priority") == modes["fast"]:
        del modes["priority"]
    return modes
