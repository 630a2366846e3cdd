"""Words on what a machine costs: per hour and month, per token at this load and at full load, and which machines lack a price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.hardware.chip_price import MARKET
from headway.report.words import number_of, value

METRICS = {
    "rental_on_demand": "on-demand", "rental_1yr": "1-year rental", "rental_3yr": "3-year rental", "rental_cloud_list": "cloud list",
    "rental_flex_start": "flex-start rental", "rental_spot": "spot",
    "tco_owning_hyperscaler": "hyperscaler's own", "tco_owning_neocloud": "neocloud's own",
}  # fmt: skip
MOST_NAMES = 2  # machines that a clause names

Row = Mapping[str, Any]


def metric_name(metric: str) -> str:
    """A price metric in words.

    >>> metric_name("rental_on_demand"), metric_name("rental_paper_assumption")
    ('on-demand', 'rental paper assumption')
    """
    return METRICS.get(metric, metric.replace("_", " "))


def unpriced(rows: Iterable[Row], metric: str) -> str:
    """Clause on the machines of these rows that have no price by the metric; "" where all have one."""
    names = list(dict.fromkeys(row["system"] for row in rows if row.get("prompt") is not None and row.get("usd_per_hour") is None))
    if not names:
        return ""
    subject = " and ".join(names) if len(names) <= MOST_NAMES else f"{number_of(len(names), 'machine')} of these"
    return f"; {subject} {'has' if len(names) == 1 else 'have'} no {f'{metric_name(metric)} ' if metric != MARKET else ''}price"


def machine_costs(rows: Sequence[Row]) -> list[str]:
    """A note on the cost of each machine of these rows per hour and month, and on the chips that every row leaves idle."""
    priced = {row["system"]: row for row in rows if row.get("usd_per_hour") is not None}
    sums = {name: f"{value(row, 'usd_per_hour')}/hour, {value(row, 'usd_per_month')}/month" for name, row in priced.items()}
    texts = [f"{name} costs {text}{_idle(rows, name)}" for name, text in sums.items()]
    return ["; ".join(texts[:MOST_NAMES])] if texts else []


def _idle(rows: Sequence[Row], system: str) -> str:
    """Clause on the fewest chips of a machine that a layout of these rows leaves idle; "" where one uses them all.

    >>> _idle([{"system": "8xh200", "chips": 8, "chips_idle": 6}, {"system": "8xh200", "chips": 8, "chips_idle": 4}], "8xh200")
    ', of which at least 4 of 8 chips idle'
    """
    idle = [(int(row.get("chips_idle") or 0), int(row.get("chips") or 0)) for row in rows if row["system"] == system]
    fewest, chips = min(idle)
    several = "at least " if max(idle)[0] > fewest else ""
    return f", of which {several}{fewest} of {chips} chips idle" if fewest else ""


def load_costs(row: Row) -> list[str]:
    """A note on the cost of output at this load and at full load; none where the load is the full one."""
    if row.get("usd_per_mtok_out") is None or row.get("utilisation") is None:
        return []
    loaded_text = f"{value(row, 'usd_per_mtok_out')} per Mtok of output and {value(row, 'usd_per_mtok_in')} per Mtok of input at this load"
    return [f"{loaded_text}; output at full load: {value(row, 'usd_per_mtok_out_full')}"]
