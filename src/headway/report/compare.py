"""Words and columns of `headway compare`."""

from __future__ import annotations

from typing import Any

from headway.core import schema, units
from headway.core.columns import Column
from headway.core.listing import Listing
from headway.hardware.chip import Chip
from headway.hardware.compare import CHIP_FACTS, MODEL_FACTS
from headway.models.describe import ModelSummary
from headway.report.output import Summary


def _marked(record: type, keys: tuple[str, ...]) -> dict[str, Column]:
    marks = {key: mark for key, (mark, _) in schema.fields(record).items()}
    return {key: Column(marks[key].unit, marks[key].help) for key in keys}


def _ratios(keys: tuple[str, ...]) -> dict[str, Column]:
    return {f"{key}_ratio": Column("", f"{key} over that of the first, on the basis of the question") for key in keys}


MACHINES = {
    "machine": Column("", "machine"),
    "chips": Column("", "chips of the machine"),
    "scale_up_domain": Column("", "chips that share scale-up links"),
    **_marked(Chip, CHIP_FACTS),
    "price": Column("USD/s", "price of one chip"),
    "watts": Column("W", "power of one chip: a share of its machine's at the wall if that is known of all, else its TDP"),
    **_ratios(CHIP_FACTS),
    "chips_at_cost": Column("", "chips that the budget rents"),
    "chips_at_power": Column("", "chips that the budget feeds"),
}
MODELS = {"model": Column("", "model"), **_marked(ModelSummary, MODEL_FACTS), **_ratios(MODEL_FACTS)}
BASIS = {"chip": "per chip", "machine": "per machine", "usd": "at equal cost", "watt": "at equal power"}


def side_by_side(rows: Any, basis: str, models: bool) -> Summary:
    """A line per fact, a column per subject; ratios to the first in parentheses."""
    row_list = list(rows)
    name, table = ("model", MODELS) if models else ("machine", MACHINES)
    keys = [key for key in table if key != name and not key.endswith("_ratio") and any(row.get(key) is not None for row in row_list)]
    people = Listing(
        [{"fact": key} | {row[name]: figure(row, key, table[key].unit, row is row_list[0]) for row in row_list} for key in keys]
    )
    if models:
        return Summary(
            f"{row_list[0]['model']} beside {len(row_list) - 1} more: facts, not a ranking; quality is not compared.", (), (), people
        )
    bests = [row for row in row_list[1:] if row.get("hbm_bw_ratio") is not None]
    headline = f"{BASIS[basis].capitalize()}, "
    headline += "; ".join(f"{row['machine']} has {row['hbm_bw_ratio']:.3g} times the memory bandwidth" for row in bests[:2])
    headline = f"{headline} of {row_list[0]['machine']}." if bests else f"Ratios {BASIS[basis]} to {row_list[0]['machine']}."
    return Summary(headline, (), [f"Ratios in parentheses are {BASIS[basis]}, to the first; - where a fact is not published."], people)


def figure(row: dict[str, Any], key: str, unit: str, is_first: bool) -> str:
    """A fact as people read it, with its ratio to that of the first."""
    value, ratio = row.get(key), row.get(f"{key}_ratio")
    text = "-" if value is None else units.show(value, unit, 4)
    return text if is_first or ratio is None else f"{text} ({ratio:.3g}x)"
