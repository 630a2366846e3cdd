"""What is different between a stored answer and one of today: by part and by column, how many and how far."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_RELATIVE = 1e-12
MOST_SHOWN = 60  # letters of a cell


def is_number(value: Any) -> bool:
    """Whether it is a number, which true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def far(old: Any, new: Any) -> float:
    """How far two values are apart: 0 the same, a relative change of numbers, infinity for all else."""
    if is_number(old) and is_number(new):
        largest = max(abs(old), abs(new))
        change = abs(new - old) / largest if largest else 0.0
        return change if change > MOST_RELATIVE else 0.0
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return max((far(before, after) for before, after in zip(old, new, strict=True)), default=0.0)
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        return max((far(old[key], new[key]) for key in old), default=0.0)
    return 0.0 if type(old) is type(new) and old == new else float("inf")


def shown(value: Any) -> str:
    """A value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def summary(where: str, pairs: list[tuple[Any, Any]]) -> Iterator[str]:
    """One line for the pairs that differ."""
    apart = [(far(old, new), old, new) for old, new in pairs]
    changed = [(change, old, new) for change, old, new in apart if change]
    if changed:
        change, old, new = max(changed, key=lambda item: item[0])
        size = "another value" if change == float("inf") else f"largest change {change:.3g}"
        yield f"{where}: {len(changed)} of {len(pairs)} differ, {size}: {shown(old)} -> {shown(new)}"


def listed(where: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    """What differs between two lists, item by item."""
    if len(old) != len(new):
        yield f"{where}: {len(old)} -> {len(new)}"
        at = next((at for at, (before, after) in enumerate(zip(old, new, strict=False)) if far(before, after)), min(len(old), len(new)))
        yield f"{where} {at} is the first: {shown(old[at : at + 1])} -> {shown(new[at : at + 1])}"
    else:
        yield from summary(where, list(zip(old, new, strict=True)))


def columns(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What differs between two tables, column by column."""
    before, after = old.get("columns", {}), new.get("columns", {})
    if list(before) != list(after):
        gone, more = [key for key in before if key not in after], [key for key in after if key not in before]
        yield f"columns: gone {gone}, new {more}" if gone or more else "columns: in another order"
    rows, again = old.get("rows", []), new.get("rows", [])
    if len(rows) != len(again):
        yield f"rows: {len(rows)} -> {len(again)}"
        return
    names, others = [*before, "second"], [*after, "second"]  # the second cell of a count has no column
    for key in before:
        if key in after:
            yield from summary(f"unit of {key}", [(before[key], after[key])])
    for place, key in enumerate(names):
        if key in others and rows and place < len(rows[0]):
            there = others.index(key)
            yield from summary(key, [(row[place], other[there]) for row, other in zip(rows, again, strict=True)])


def named(where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """What differs between lists under names."""
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in old or name not in new:
            yield f"{where} {name}: {'new' if name in new else 'gone'}"
        else:
            yield from listed(f"{where} {name}", old[name], new[name])


def differences(old: dict[str, Any] | None, new: dict[str, Any] | None) -> list[str]:
    """What is different, one line for each column or part; empty where nothing is."""
    if old is None or new is None:
        return [] if old is new else ["not stored yet" if old is None else "is no command any more"]
    lines = list(summary("exit status", [(old["status"], new["status"])]))
    lines += summary("standard error", [(old["stderr"], new["stderr"])])
    lines += columns(old, new)
    lines += listed("notes", old.get("notes", []), new.get("notes", []))
    lines += named("leaves of", old.get("explain", {}), new.get("explain", {}))
    lines += named("file", old.get("files", {}), new.get("files", {}))
    lines += listed("text", old["text"], new["text"])
    return lines
