"""Price sheets by date: price multiples of each, and changes from the previous sheet of its model family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headway.core import units
from headway.core.units import Number, UsdPerToken
from headway.economics.sheets.catalogue import day, family, version
from headway.economics.sheets.sheet import PriceSheet, Rates
from headway.laws.tiers import per_mtok

PEAK = "peak"
SAME = 1e-9  # relative difference below which rates are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedSheet:
    """One sheet of a history; None for a multiple that it does not state."""

    as_of: str
    provider: str
    model: str
    line: str  # family, such as claude-opus for claude-opus-5.5
    changed: str
    input_usd_per_mtok: Any
    output_usd_per_mtok: Any
    cached_usd_per_mtok: Any
    output_multiple: Any  # output rate over the input rate
    cached_multiple: Any
    write_multiple: Any
    write_long_multiple: Any
    step_above: Any  # tokens
    step_input_multiple: Any
    step_output_multiple: Any
    fast_multiple: Any  # fast mode's output rate over the standard mode's
    fast_speed_multiple: Any
    slow_multiple: Any
    hours_multiple: Any
    context_limit: Any
    min_prefix: Any  # tokens
    cache_block: Any
    source: str


def history(sheets: Sequence[PriceSheet]) -> tuple[DatedSheet, ...]:
    """Every sheet with its multiples, by date."""
    lines: dict[tuple[str, str], list[PriceSheet]] = {}
    dated_rows = []
    for sheet in sorted(sheets, key=lambda row: (day(row), row.provider, row.model)):
        line = lines.setdefault((sheet.provider, family(sheet)), [])
        # A date may be the day of reading, so a model never follows a later version of its family.
        dated_rows.append(_dated(sheet, next((older for older in reversed(line) if version(older) <= version(sheet)), None)))
        line.append(sheet)
    return tuple(dated_rows)


def _dated(sheet: PriceSheet, before: PriceSheet | None) -> DatedSheet:
    rates, step = sheet.rates, sheet.tiers[0] if sheet.tiers else None
    modes = [mode for mode in sheet.modes if mode.name != PEAK]
    dearer, cheaper = (
        [mode for mode in modes if mode.rates.output > rates.output], [mode for mode in modes if mode.rates.output < rates.output]
    )  # fmt: skip
    fast = max(dearer, key=lambda mode: mode.rates.output, default=None)
    slow, hours = min(cheaper, key=lambda mode: mode.rates.output, default=None), _hours(sheet)
    writes = [write.rate for write in rates.cache_writes]
    return DatedSheet(
        as_of=sheet.as_of, provider=sheet.provider, model=sheet.model, line=family(sheet), changed="; ".join(_changes(sheet, before)),
        input_usd_per_mtok=per_mtok(rates.input), output_usd_per_mtok=per_mtok(rates.output),
        cached_usd_per_mtok=None if rates.cache_read is None else per_mtok(rates.cache_read),
        output_multiple=_times(rates.output, rates.input), cached_multiple=_times(rates.cache_read, rates.input),
        write_multiple=_times(writes[0] if writes else None, rates.input),
        write_long_multiple=_times(writes[-1] if len(writes) > 1 else None, rates.input),
        step_above=step.above if step else None, step_input_multiple=_times(step and step.rates.input, rates.input),
        step_output_multiple=_times(step and step.rates.output, rates.output),
        fast_multiple=_times(fast and fast.rates.output, rates.output), fast_speed_multiple=fast.speed_ratio if fast else None,
        slow_multiple=_times(slow and slow.rates.output, rates.output), hours_multiple=_times(hours and hours.output, rates.output),
        context_limit=sheet.context_limit, min_prefix=sheet.min_prefix, cache_block=sheet.cache_block, source=sheet.source,
    )  # fmt: skip


def _times(rate: UsdPerToken, base: UsdPerToken) -> Any:
    return None if rate is None or not base else rate / base


def _hours(sheet: PriceSheet) -> Rates | None:
    """The rates of the most expensive hours, also if given as a mode; of the cheapest hours if none is more expensive."""
    hour_rates = [hours.rates for hours in sheet.hours] + [mode.rates for mode in sheet.modes if mode.name == PEAK]
    if not hour_rates:
        return None
    dearest = max(hour_rates, key=lambda rates: rates.output)
    return dearest if dearest.output > sheet.rates.output else min(hour_rates, key=lambda rates: rates.output)


# -- changes --------------------------------------------------------------------------------------------------------------------


def _changes(sheet: PriceSheet, before: PriceSheet | None) -> Iterator[str]:
    """Each change from the previous sheet, in words; none for the first sheet of a family."""
    if before is None:
        return
    if sheet.model != before.model:
        yield f"follows {before.model}"
    new_rates, old = sheet.rates, before.rates
    changes = [*_rate_change("input", new_rates.input, old.input), *_rate_change("output", new_rates.output, old.output)]
    changes += _share_change("cached", new_rates.cache_read, new_rates.input, old.cache_read, old.input)
    changes += _share_change("write", _first(new_rates), new_rates.input, _first(old), old.input)
    steps, old_steps = sheet.tiers, before.tiers
    if old_steps and not steps:
        changes.append(f"no step at {units.show(old_steps[0].above, 'token')} any more")
    elif steps and (not old_steps or steps[0].above != old_steps[0].above):
        changes.append(f"a step at {units.show(steps[0].above, 'token')}")
    changes += _modes(sheet, before)
    yield from changes or ["same rates"]


def _rate_change(name: str, new: float, old: float) -> Iterator[str]:
    if _differ(new, old):
        yield f"{name} {units.show(per_mtok(old), 'USD')} to {units.show(per_mtok(new), 'USD')}"


def _share_change(name: str, new: UsdPerToken, base: UsdPerToken, old: UsdPerToken, old_base: UsdPerToken) -> list[str]:
    """A change of a multiple of the input rate, if both sheets state it."""
    if None in (new, old) or not base or not old_base or not _differ(new / base, old / old_base):
        return []
    return [f"{name} {_x(old / old_base)} to {_x(new / base)} of input"]


def _first(rates: Rates) -> Any:
    return rates.cache_writes[0].rate if rates.cache_writes else None


def _modes(sheet: PriceSheet, before: PriceSheet) -> Iterator[str]:
    """Modes added, removed or re-priced, by their output rate over the standard mode's."""
    old = {mode.name: _times(mode.rates.output, before.rates.output) for mode in before.modes}
    for mode in sheet.modes:
        now = _times(mode.rates.output, sheet.rates.output)
        if mode.name not in old:
            yield f"{mode.name} comes at {_x(now)}"
        elif now and old[mode.name] and _differ(now, old[mode.name]):
            yield f"{mode.name} {_x(old[mode.name])} to {_x(now)}"
    gone = [name for name in old if name not in {mode.name for mode in sheet.modes}]
    yield from (f"{name} goes" for name in gone)


def _x(multiple: Number) -> str:
    return "-" if multiple is None else f"{float(multiple):.3g}x"


def _differ(new: float, old: float) -> bool:
    return abs(new - old) > SAME * max(abs(new), abs(old))
