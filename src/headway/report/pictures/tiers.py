"""Memory tiers for a KV cache: which wins at which hold time and reuse, how long each takes to drain, what a hold costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.report.pictures import dots, marks
from headway.report.pictures.frame import Picture, View, compose
from headway.report.pictures.plot import Plot
from headway.report.pictures.scale import PictureAxis, axis

Rows = Sequence[Mapping[str, Any]]
MEANINGS = {"hbm": "kv", "ddr": "network", "cxl": "whole", "flash": "weights", "disk": "compute"}
SPARE = ("weights", "network", "compute", "whole", "kv")  # for tiers of the user's own
ABBREVIATIONS = ("hbm", "ddr", "cxl")
MINUTES_5, HOUR = 300.0, 3600.0
HOLD_TICKS = ((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (MINUTES_5, "5 min"), (HOUR, "1 h"), (6 * HOUR, "6 h"), (24 * HOUR, "1 d"),
              (7 * 24 * HOUR, "1 week"), (30 * 24 * HOUR, "30 d"))  # fmt: skip
LIFETIMES = ((MINUTES_5, "5 min"), (HOUR, "1 h"))  # for which providers sell a cache


def meaning_of(tier: str, place: int) -> str:
    """Colour of a tier."""
    return MEANINGS.get(tier, SPARE[place % len(SPARE)])


def tier_name(tier: str) -> str:
    """A tier's name as it is written: abbreviations in capitals."""
    return tier.upper() if tier in ABBREVIATIONS else tier


def tier_map(cells: Sequence[Any], row: Mapping[str, Any], view: View) -> Picture:
    """Picture of the map of hold time by reuse (`economics/cache/tier_map.py`)."""
    ticks = tuple(tick for place, tick in enumerate(HOLD_TICKS) if not view.is_narrow or place in (0, 2, 4, 6, 8))
    x = PictureAxis(title="How long the cache is held (log)", low=cells[0].hold, high=cells[-1].hold_end, ticks=ticks, log=True)
    y = axis("", [cells[0].reuse, cells[-1].reuse_end], "share", log=True, room=0.0, most=5)
    plot = Plot(view, "map", x, y, height=300)
    tiers = list(dict.fromkeys(cell.tier for cell in cells))
    for number, tier in enumerate(tiers):
        fields = [cell for cell in cells if cell.tier == tier]
        meaning = "grid" if tier == "recompute" else meaning_of(tier, number)
        plot.add(marks.pixel_boxes(plot.rows(f"tier{number}", [_field(cell, plot, meaning) for cell in fields]), opacity=0.55))
        name = "computing again" if tier == "recompute" else tier_name(tier)
        if view.is_narrow:
            plot.keys.append((f"■ {name}", "muted" if tier == "recompute" else meaning))
        else:
            plot.note(name, "ink", inside_box=_centre(fields, plot))
    for place, (seconds, _) in enumerate(LIFETIMES):
        plot.add(marks.uprights(plot.rows(f"lifetime{place}", [{"at": seconds}]), x, view.colours.muted))
        plot.canvas.add_curve([x.across(seconds, plot.width)] * 2, [0, plot.height])
    point = (row["hold"], row["reuse"])
    if x.holds(point[0]) and y.holds(point[1]):
        plot.point("here", *point, f"asked: {format_value(point[0], 's')}, {point[1]:.0%}", "ink")
    stores = [tier for tier in tiers if tier != "recompute"]
    title = (
        f"{' then '.join(map(tier_name, stores))} {'win' if len(stores) > 1 else 'wins'} as the hold grows; else computing again is cheaper"
    )
    caption = "Each colour is the tier of least money in devices where keeping pays; dotted: lifetimes on sale, 5 minutes and 1 hour."
    subtitle = f"KV cache of {row['model']} ({format_value(row['kv_bytes'], 'byte/token')}) for {row['system']}, at the stated prices"
    panel = plot.panel("Chance that the cache is used again (log)")
    return compose(view, [[panel]], title=title[:1].upper() + title[1:], subtitle=subtitle, caption=caption)


def _field(cell: Any, plot: Plot, meaning: str) -> dict[str, Any]:
    """A field in whole px, so that neighbours meet without a seam."""
    across = (round(plot.x.across(end, plot.width)) for end in (cell.hold, cell.hold_end))
    down = (round(plot.y.down(end, plot.height)) for end in (cell.reuse_end, cell.reuse))
    return dict(zip(("x", "x2", "y", "y2"), (*across, *down), strict=True)) | {"color": plot.view.colours.line(meaning)}


def _centre(fields: Sequence[Any], plot: Plot) -> tuple[float, float]:
    """The middle of a region's broadest row."""
    runs: list[list[Any]] = []
    for cell in sorted(fields, key=lambda cell: (cell.reuse, cell.hold)):
        if not runs or (runs[-1][-1].reuse, runs[-1][-1].hold_end) != (cell.reuse, cell.hold):
            runs.append([])
        runs[-1].append(cell)
    longest = max(map(len, runs))
    rows = [run for run in runs if len(run) == longest]
    row = rows[len(rows) // 2]
    across = (plot.x.across(row[0].hold, plot.width) + plot.x.across(row[-1].hold_end, plot.width)) / 2
    return across, plot.y.down((row[0].reuse * row[0].reuse_end) ** 0.5, plot.height)


def drain(rows: Rows, view: View) -> Picture:
    """Picture of the drain times of the tiers of the first hold."""
    tiers: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        if row.get("drain_s") is not None:
            tiers.setdefault(row["tier"], row)
    ladder = sorted(tiers.values(), key=lambda row: row["drain_s"])
    if not ladder:
        raise BadValue("--plot", "no tier with a bandwidth", "tiers that are read")
    texts = [format_value(row["drain_s"], "s") for row in ladder]
    labels = [f"{tier_name(row['tier'])}: {row['device']}" if not view.is_narrow else tier_name(row["tier"]) for row in ladder]
    panel = dots.panel(view, "drain", ladder, "drain_s", labels, texts, unit="s", title="Capacity over read bandwidth (log)", meaning="kv",
                       references=LIFETIMES)  # fmt: skip
    first, last = ladder[0], ladder[-1]
    shortest, longest = (format_value(row["drain_s"], "s") for row in (first, last))
    title = f"Draining takes {shortest} in {tier_name(first['tier'])} and {longest} on {tier_name(last['tier'])}"
    caption = "A tier pays for caches held about as long as it takes to drain; providers sell lifetimes of 5 minutes and 1 hour."
    return compose(view, [[panel]], title=title, subtitle="one device of each memory tier, from its own facts", caption=caption)


def holds(rows: Rows, view: View) -> Picture:
    """Picture of what a hold costs by tier, beside computing again."""
    known = [row for row in rows if row.get("usd_per_mtok_held") is not None]
    if len({row["hold"] for row in known}) < 2:
        raise BadValue("--plot", "one hold", "several, such as --hold 1min..48h*2")
    tiers = list(dict.fromkeys(row["tier"] for row in known))
    first = known[0]
    again = first.get("usd_per_mtok_recompute")
    x = axis("How long the cache is held (log)", [row["hold"] for row in known], "s", log=True, most=6, room=0.02)
    x = PictureAxis(title=x.title, low=x.low, high=x.high, ticks=tuple(tick for tick in HOLD_TICKS if x.holds(tick[0])), log=True)
    y = axis("", [*(row["usd_per_mtok_held"] for row in known), again], "USD/Mtok", log=True)
    plot = Plot(view, "holds", x, y, height=300, ends=[tier_name(tier) for tier in tiers])
    for number, tier in enumerate(tiers):
        mine = sorted((row for row in known if row["tier"] == tier and row["model"] == first["model"]), key=lambda row: row["hold"])
        data = plot.rows(f"tier{number}", [{"x": row["hold"], "y": row["usd_per_mtok_held"]} for row in mine])
        plot.curve(data, "x", "y", meaning_of(tier, number), text=tier_name(tier))
    plot.level("again", again, f"computing again {format_value(again, 'USD/Mtok')}" if again else "", "ink")
    title = "Holding costs less than computing again as long as a line is below the level" if again else "What a hold costs"
    caption = "Each line is a tier with its wear: rent grows with time, wear does not; the lowest line is the least cost with wear."
    subtitle = f"{first['model']} on {first['system']}, at the stated prices, one use per hold"
    return compose(view, [[plot.panel("Cost of a million tokens for the whole hold")]], title=title, subtitle=subtitle, caption=caption)
