"""Price sheets by date: the multiples of each, and what changed against the one before in the same line of models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from headway import units
from headway.laws.compare import relative
from headway.laws.reload import per_mtok
from headway.price_sheet import Mode, PriceSheet, Rates
from headway.sheets.catalogue import day, family, version

PEAK = "peak"
SAME = 1e-9  # relative: rates that differ by less are equal


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """One sheet of a history; a multiple that the sheet does not state is None."""

    as_of: str
    provider: str
    model: str
    line: str  # claude-opus of claude-opus-5.5
    changed: str
    input_usd_per_mtok: Any
    output_usd_per_mtok: Any
    cached_usd_per_mtok: Any
    output_multiple: Any  # of the input rate
    cached_multiple: Any
    write_multiple: Any
    write_long_multiple: Any
    step_above: Any  # tokens
    step_input_multiple: Any
    step_output_multiple: Any
    fast_multiple: Any  # of the standard mode's output
    fast_speed_multiple: Any
    slow_multiple: Any
    hours_multiple: Any
    context_limit: Any
    source: str


def history(sheets: Sequence[PriceSheet]) -> tuple[Dated, ...]:
    """Every sheet with its multiples, by date."""
    lines: dict[tuple[str, str], list[PriceSheet]] = {}
    found = []
    for one in sorted(sheets, key=lambda one: (day(one), one.provider, one.model)):
        line = lines.setdefault((one.provider, family(one)), [])
        # A date may be that of reading the price: a model does not follow one with a later version.
        found.append(_dated(one, next((other for other in reversed(line) if version(other) <= version(one)), None)))
        line.append(one)
    return tuple(found)


def _dated(one: PriceSheet, before: PriceSheet | None) -> Dated:
    rates, step = one.rates, one.tiers[0] if one.tiers else None
    fast, slow, hours = _fast(one), _slow(one), _hours(one)
    writes = [write.rate for write in rates.cache_writes]
    return Dated(
        as_of=one.as_of, provider=one.provider, model=one.model, line=family(one), changed="; ".join(_changes(one, before)),
        input_usd_per_mtok=per_mtok(rates.input), output_usd_per_mtok=per_mtok(rates.output),
        cached_usd_per_mtok=None if rates.cache_read is None else per_mtok(rates.cache_read),
        output_multiple=_times(rates.output, rates.input), cached_multiple=_times(rates.cache_read, rates.input),
        write_multiple=_times(writes[0] if writes else None, rates.input),
        write_long_multiple=_times(writes[-1] if len(writes) > 1 else None, rates.input),
        step_above=step.above if step else None, step_input_multiple=_times(step and step.rates.input, rates.input),
        step_output_multiple=_times(step and step.rates.output, rates.output),
        fast_multiple=_times(fast and fast.rates.output, rates.output), fast_speed_multiple=fast.speed_ratio if fast else None,
        slow_multiple=_times(slow and slow.rates.output, rates.output), hours_multiple=_times(hours and hours.output, rates.output),
        context_limit=one.context_limit, source=one.source,
    )  # fmt: skip


def _times(rate: Any, base: Any) -> Any:
    return None if rate is None or not base else relative(rate, base)


def _fast(one: PriceSheet) -> Mode | None:
    """The dearest mode that is not a matter of hours."""
    dearer = [mode for mode in one.modes if mode.name != PEAK and mode.rates.output > one.rates.output]
    return max(dearer, key=lambda mode: mode.rates.output, default=None)


def _slow(one: PriceSheet) -> Mode | None:
    cheaper = [mode for mode in one.modes if mode.name != PEAK and mode.rates.output < one.rates.output]
    return min(cheaper, key=lambda mode: mode.rates.output, default=None)


def _hours(one: PriceSheet) -> Rates | None:
    """The rates of the dearest hours, also where they are given as a mode; where none is dearer, of the cheapest."""
    other = [hours.rates for hours in one.hours] + [mode.rates for mode in one.modes if mode.name == PEAK]
    if not other:
        return None
    dearest = max(other, key=lambda rates: rates.output)
    return dearest if dearest.output > one.rates.output else min(other, key=lambda rates: rates.output)


# -- what changed ---------------------------------------------------------------------------------------------------------------


def _changes(one: PriceSheet, before: PriceSheet | None) -> Iterator[str]:
    """Each change in words; of the first of a line nothing."""
    if before is None:
        return
    if one.model != before.model:
        yield f"follows {before.model}"
    own, old = one.rates, before.rates
    told = [*_moved("input", own.input, old.input), *_moved("output", own.output, old.output)]
    told += _moved_share("cached", own.cache_read, own.input, old.cache_read, old.input)
    told += _moved_share("write", _first(own), own.input, _first(old), old.input)
    told += [*_steps(one, before), *_modes(one, before)]
    yield from told or ["same rates"]


def _moved(name: str, new: float, old: float) -> Iterator[str]:
    if _differ(new, old):
        yield f"{name} {units.show(per_mtok(old), 'USD')} to {units.show(per_mtok(new), 'USD')}"


def _moved_share(name: str, new: Any, base: Any, old: Any, old_base: Any) -> list[str]:
    """A change of a multiple of the input rate; one that only one of the sheets states is no change."""
    if None in (new, old) or not base or not old_base or not _differ(relative(new, base), relative(old, old_base)):
        return []
    return [f"{name} {_x(relative(old, old_base))} to {_x(relative(new, base))} of input"]


def _first(rates: Rates) -> Any:
    return rates.cache_writes[0].rate if rates.cache_writes else None


def _steps(one: PriceSheet, before: PriceSheet) -> Iterator[str]:
    new, old = one.tiers, before.tiers
    if old and not new:
        yield f"no step at {units.show(old[0].above, 'token')} any more"
    elif new and (not old or new[0].above != old[0].above):
        yield f"a step at {units.show(new[0].above, 'token')}"


def _modes(one: PriceSheet, before: PriceSheet) -> Iterator[str]:
    """Modes that came, went or moved, by their output rate over the standard one's."""
    old = {mode.name: _times(mode.rates.output, before.rates.output) for mode in before.modes}
    for mode in one.modes:
        now = _times(mode.rates.output, one.rates.output)
        if mode.name not in old:
            yield f"{mode.name} comes at {_x(now)}"
        elif now and old[mode.name] and _differ(now, old[mode.name]):
            yield f"{mode.name} {_x(old[mode.name])} to {_x(now)}"
    gone = [name for name in old if name not in {mode.name for mode in one.modes}]
    yield from (f"{name} goes" for name in gone)


def _x(multiple: Any) -> str:
    return "-" if multiple is None else f"{float(multiple):.3g}x"


def _differ(new: float, old: float) -> bool:
    return abs(new - old) > SAME * max(abs(new), abs(old))
