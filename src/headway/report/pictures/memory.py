"""What fills the memory of a chip: weights, KV cache, what is left or lacking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import bars
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.scale import axis

Rows = Sequence[Mapping[str, Any]]
MOST_BARS = 10


def picture(rows: Rows, names: Sequence[str], view: View, about: str) -> Picture:
    """Picture with a bar for each row of `serve` or `plan`."""
    known = [(row, name) for row, name in zip(rows, names, strict=True) if row.get("weights_bytes_chip") is not None]
    if not known:
        raise BadValue("--plot", "no row with bytes", "rows with weights and KV cache per chip")
    shortlist = _evenly(known)
    all_bars = [_bar(row, name) for row, name in shortlist]
    top = max(max(row["hbm_bytes_chip"], row["weights_bytes_chip"] + (row["kv_bytes_chip"] or 0)) for row, _ in shortlist)
    x = axis("Bytes on the fullest chip; the mark is the HBM that may be used", [0.0, top], "byte", zero=True, log=False, most=6,
             fixed_ends=view.ends("x"), room=0.18 if not view.is_narrow else 0.04)  # fmt: skip
    panel = bars.panel(view, "memory", all_bars, x)
    row = shortlist[0][0]
    share = row["weights_bytes_chip"] / row["hbm_bytes_chip"]
    rest = format_value(max(row["hbm_bytes_chip"] - row["weights_bytes_chip"], 0.0), "byte")
    title = f"Weights take {share:.0%} of a chip's usable HBM, and leave {rest} for the KV cache"
    more = f"; {len(shortlist)} of {len(known)} rows" if len(known) > len(shortlist) else ""
    caption = "Where the bar ends before the mark, the batch or the context can grow by as much; a bar beyond it does not fit."
    return compose(view, [[panel]], title=title, subtitle=f"{about}{more}", caption=caption)


def _evenly(known: Sequence[Any]) -> list[Any]:
    """At most so many of them as there is room for, from the first to the last."""
    count = min(len(known), MOST_BARS)
    return [known[round(place * (len(known) - 1) / max(count - 1, 1))] for place in range(count)]


def _bar(row: Mapping[str, Any], name: str) -> bars.Bar:
    weights, kv, usable = row["weights_bytes_chip"], row["kv_bytes_chip"] or 0.0, row["hbm_bytes_chip"]
    parts = [bars.BarPart(name="weights", value=weights, meaning="weights"), bars.BarPart(name="KV cache", value=kv, meaning="kv")]
    free = usable - weights - kv
    note = f"{format_value(free, 'byte')} free" if free >= 0 else f"{format_value(-free, 'byte')} too much"
    return bars.Bar(name=name, parts=parts, limit=usable, note=note)
