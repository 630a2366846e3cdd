"""Which tables of the catalogue the price sheets of an answer come from, and how old these are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.core import catalog as facts
from headway.core.age import age
from headway.economics.sheets.sheet import PriceSheet, SheetTable

MOST = 4  # tables that a note names


def table_notes(sheets: Iterable[PriceSheet]) -> Iterator[str]:
    """A note on the tables of these sheets: packages, day, whose they are, and what is old of them."""
    groups: dict[tuple[str, str, bool, bool], list[SheetTable]] = {}
    for table in dict.fromkeys(sheet.table for sheet in sheets if sheet.table is not None):
        groups.setdefault((table.packages, table.read, table.ships, table.at_home), []).append(table)
    if groups:
        yield "prices: " + "; ".join(_words(tables) for tables in groups.values())


def _words(tables: list[SheetTable]) -> str:
    names, first = sorted(table.name for table in tables), tables[0]
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    whose = "shipped" if first.ships else "yours"
    origin = f"{first.packages}, read {first.read}" if first.read else "by hand"
    old = age("price sheets", first.read)
    behind = [table.name for table in tables if not table.ships and first.read < _shipped_day(table.name)]
    advice = (": headway update reads newer packages", ": headway update, or --shipped") if first.ships or first.at_home else ("", "")
    marks = [old + advice[0]] * bool(old) + [f"older than the shipped {', '.join(behind)}{advice[1]}"] * bool(behind)
    return f"table{'s' * (len(names) > 1)} {', '.join(names[:MOST])}{more} ({whose}; {'; '.join([origin, *marks])})"


def _shipped_day(name: str) -> str:
    """The day on which the shipped table of a name was read; "" where none ships."""
    path = facts.PACKAGED / "sheets" / f"{name}.toml"
    return str(facts.read(path).get("read", "")) if path.is_file() else ""
