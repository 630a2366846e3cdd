"""Sentences and pictures of `cache`: the memory tier for a KV cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Rows, format_value
from headway.core.units import show
from headway.economics.cache.placement import RECOMPUTE, tier_map
from headway.report.pictures import dots, frame, palette, plot, scale
from headway.report.words import Row, subject

if TYPE_CHECKING:
    from headway.economics.cache.placement import CacheSubject, MapCell
    from headway.economics.cache.problem import CacheProblem
    from headway.economics.cache.records import CacheHold
    from headway.economics.cache.tiers import CacheTier
    from headway.report.output import PictureOf
    from headway.report.pictures.frame import Picture, View
    from headway.simulation.hit_rates import HitCurve

MOST_ROWS = 10_000
MOST_HOLDS = 3  # holds named in the first sentence


def own_columns(record: type) -> dict[str, Column]:
    """Columns of a row type; some differ from the common columns of that key."""
    return {key: Column(q.unit, q.help) for key, (q, _) in schema.fields(record).items()}


def priced(places: Sequence[CacheTier]) -> list[str]:
    """Line per tier: device, price per byte with its date, and unknown facts."""
    notes = []
    for place in places:
        span = place.price if place.price.value is not None else place.holding
        unit = "USD/byte" if span is place.price else "USD/byte/s"
        ends = "" if span.low == span.high else f" ({show(span.low, unit)} .. {show(span.high, unit)})"
        dated = place.dated if span is place.price else ""
        notes.append(f"{place.name}: {place.device}, {show(span.value, unit)}{ends}{f', {dated}' if dated else ''}")
        if place.read_bw is None:
            notes.append(f"{place.name}: rented; fees for requests and traffic are not counted, so that no criterion chooses it")
        if place.wear.value is None:
            notes.append(f"{place.name}: its rated writes are not public, so no cost with wear (--set tier.{place.name}.drive_writes=1/d)")
    return notes


# -- pictures of holds ----------------------------------------------------------------------------------------------------------

MEANINGS = {"hbm": "kv", "ddr": "network", "cxl": "whole", "flash": "weights", "disk": "compute"}
SPARE = ("weights", "network", "compute", "whole", "kv")  # for tiers of the user's own
ABBREVIATIONS = ("hbm", "ddr", "cxl")
MINUTES_5, HOUR = 300.0, 3600.0
HOLD_TICKS = ((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (MINUTES_5, "5 min"), (HOUR, "1 h"), (6 * HOUR, "6 h"), (24 * HOUR, "1 d"),
              (7 * 24 * HOUR, "1 week"), (30 * 24 * HOUR, "30 d"))  # fmt: skip
LIFETIMES = ((MINUTES_5, "5 min"), (HOUR, "1 h"))  # for which providers sell a cache
HOLD_TITLE = "How long the cache is held (log)"


def pictures(case: Callable[[], tuple[Sequence[CacheTier], CacheSubject, CacheHold]]) -> dict[str, PictureOf]:
    """Pictures of a cache's holds by name; `case` gives the tiers, the subject and the hold of the first case."""

    def cells() -> list[MapCell]:
        places, of, hold = case()
        return tier_map(places, of, hold.uses, hold.waiting)

    return {"map": lambda rows, view: winners(cells(), _rows(rows)[0], view), "drain": drain, "holds": holds}


def _rows(rows: Rows) -> list[Row]:
    table: list[Row] = list(rows)
    if not table:
        raise BadValue("--plot", "no rows", "rows to draw")
    return table


def tier_name(tier: str) -> str:
    """A tier as it is written, abbreviations in capitals."""
    return tier.upper() if tier in ABBREVIATIONS else tier


def _look(tier: str, place: int) -> tuple[str, str]:
    """Name of a tier, and its colour."""
    return tier_name(tier), MEANINGS.get(tier, SPARE[place % len(SPARE)])


def winners(cells: Sequence[MapCell], row: Row, view: View) -> Picture:
    """The tier that wins at each hold time and chance of reuse, as a map."""
    tiers = list(dict.fromkeys(cell.tier for cell in cells))
    parts: list[plot.Part] = []
    keys = []
    for number, tier in enumerate(tiers):
        fields = [cell for cell in cells if cell.tier == tier]
        name, meaning = ("computing again", "grid") if tier == RECOMPUTE else _look(tier, number)
        parts.append(plot.Boxes(rows=_region(fields, meaning), opacity=0.55, is_whole=True))
        if view.is_narrow:
            keys.append((f"■ {name}", "muted" if tier == RECOMPUTE else meaning))
        else:
            first, last = _broadest(fields)
            middle = math.sqrt(first.hold * last.hold_end), math.sqrt(first.reuse * first.reuse_end)
            parts.append(plot.Note(x=middle[0], y=middle[1], text=name, meaning="ink", is_inside=True))
    parts += [plot.RuleLines(x=[seconds]) for seconds, _ in LIFETIMES]
    text = f"asked: {format_value(row['hold'], 's')}, {row['reuse']:.0%}"
    parts.append(plot.Point(x=row["hold"], y=row["reuse"], text=text, is_free=True))
    low, high = cells[0].hold, cells[-1].hold_end
    drawing = plot.Plot(
        name="map", parts=parts, keys=keys, heading="Chance that the cache is used again (log)", height=300,
        x=scale.AxisScale(HOLD_TITLE, [low, high], log=True, ends=(low, high), ticks=HOLD_TICKS[::2] if view.is_narrow else HOLD_TICKS),
        y=scale.AxisScale("", [cells[0].reuse, cells[-1].reuse_end], "share", log=True, room=0.0, most=5),
    )  # fmt: skip
    surest = max(cell.reuse for cell in cells)
    until = {cell.tier: cell.hold_end for cell in cells if cell.reuse == surest and cell.tier != RECOMPUTE}
    spans = [f"{_look(tier, 0)[0]} to about {format_value(hold, 's', 2)}" for tier, hold in until.items()]
    spans[-1:] = [_look([*until][-1], 0)[0]] if until and until[[*until][-1]] == high else spans[-1:]
    title = f"A cache surely used again costs least in {', then '.join(spans)}" if spans else "Computing again costs least everywhere"
    caption = "Each colour is the tier of least money in devices where keeping pays; dotted: lifetimes on sale, 5 minutes and 1 hour."
    subtitle = f"KV cache of {row['model']} ({format_value(row['kv_bytes'], 'byte/token')}) for {row['system']}, at the stated prices"
    return frame.compose(view, [[drawing]], title=title[:1].upper() + title[1:], subtitle=subtitle, caption=caption)


def _runs(fields: Sequence[MapCell]) -> list[list[MapCell]]:
    """Fields of a region that follow each other in a row, row by row."""
    runs: list[list[MapCell]] = []
    for cell in sorted(fields, key=lambda cell: (cell.reuse, cell.hold)):
        if not runs or (runs[-1][-1].reuse, runs[-1][-1].hold_end) != (cell.reuse, cell.hold):
            runs.append([])
        runs[-1].append(cell)
    return runs


def _region(fields: Sequence[MapCell], meaning: str) -> list[dict[str, Any]]:
    """A region as few boxes: rows of one width over each other are a single one, without seams."""
    boxes: list[dict[str, Any]] = []
    for run in sorted(_runs(fields), key=lambda run: (run[0].hold, run[-1].hold_end, run[0].reuse)):
        box = {"x": run[0].hold, "x2": run[-1].hold_end, "y": run[0].reuse, "y2": run[0].reuse_end, "meaning": meaning}
        if boxes and [boxes[-1][key] for key in ("x", "x2", "y2")] == [box[key] for key in ("x", "x2", "y")]:
            boxes[-1]["y2"] = box["y2"]
        else:
            boxes.append(box)
    return boxes


def _broadest(fields: Sequence[MapCell]) -> tuple[MapCell, MapCell]:
    """First and last field of a region's broadest row, of several the middle one."""
    runs = _runs(fields)
    longest = max(map(len, runs))
    rows = [run for run in runs if len(run) == longest]
    row = rows[len(rows) // 2]
    return row[0], row[-1]


def drain(rows: Rows, view: View) -> Picture:
    """How long the tiers of the first hold take to drain."""
    tiers: dict[str, Row] = {}
    for row in _rows(rows):
        if row.get("drain_s") is not None:
            tiers.setdefault(row["tier"], row)
    ladder = sorted(tiers.values(), key=lambda row: row["drain_s"])
    if not ladder:
        raise BadValue("--plot", "no tier with a bandwidth", "tiers that are read")
    names, texts = [_look(row["tier"], 0)[0] for row in ladder], [format_value(row["drain_s"], "s") for row in ladder]
    labels = names if view.is_narrow else [f"{name}: {row['device'].replace('_', '-')}" for name, row in zip(names, ladder, strict=True)]
    panel = dots.Dots(name="drain", rows=ladder, key="drain_s", labels=labels, texts=texts, unit="s", meaning="kv", references=LIFETIMES,
                      title="Capacity over read bandwidth (log)")  # fmt: skip
    caption = "A tier pays for caches held about as long as it takes to drain; providers sell lifetimes of 5 minutes and 1 hour."
    return frame.compose(view, [[panel]], title=f"Draining takes {texts[0]} in {names[0]} and {texts[-1]} on {names[-1]}",
                         subtitle="one device of each memory tier, from its own facts", caption=caption)  # fmt: skip


def holds(rows: Rows, view: View) -> Picture:
    """What a hold costs by tier, beside computing again."""
    known = [row for row in _rows(rows) if row.get("usd_per_mtok_held") is not None]
    if len({row["hold"] for row in known}) < 2:
        raise BadValue("--plot", "one hold", "several, such as --hold 1min..48h*2")
    first = known[0]
    again = first.get("usd_per_mtok_recompute")
    parts: list[plot.Part] = []
    for number, tier in enumerate(dict.fromkeys(row["tier"] for row in known)):
        mine = sorted((row for row in known if row["tier"] == tier and row["model"] == first["model"]), key=lambda row: row["hold"])
        name, meaning = _look(tier, number)
        line = [{"x": row["hold"], "y": row["usd_per_mtok_held"]} for row in mine]
        parts.append(plot.Series(rows=line, meaning=meaning, text=name))
    parts.append(plot.RuleLines(y=[again], text=f"computing again {format_value(again, 'USD/Mtok')}" if again else "", meaning="ink"))
    drawing = plot.Plot(
        name="holds", parts=parts, heading="Cost of a million tokens for the whole hold", height=300,
        x=scale.AxisScale(HOLD_TITLE, [row["hold"] for row in known], "s", log=True, room=0.02, ticks=HOLD_TICKS),
        y=scale.AxisScale("", [*(row["usd_per_mtok_held"] for row in known), again], "USD/Mtok", log=True),
    )  # fmt: skip
    pays = {_look(row["tier"], 0)[0]: row["break_even_hold_s"] for row in known if row.get("break_even_hold_s")}
    paying = ", ".join(f"{format_value(hold, 's')} in {name}" for name, hold in sorted(pays.items(), key=lambda pair: pair[1]))
    title = f"Holding costs less than computing again for {paying}" if again and pays else "What a hold costs"
    caption = "Each line is a tier with its wear: rent grows with time, wear does not; the lowest line is the least cost with wear."
    subtitle = f"{subject(first)}, at the stated prices, one use per hold"
    return frame.compose(view, [[drawing]], title=title, subtitle=subtitle, caption=caption)


# -- pictures of a trace --------------------------------------------------------------------------------------------------------

MOST_LINES = 5


def trace_pictures(hits: HitCurve, case: CacheProblem | None) -> dict[str, PictureOf]:
    """Hit rates of a trace: against the time to live, a line for each capacity, and against the capacity, a line for each time to live."""

    def hit_rates(rows: Rows, view: View) -> Picture:
        table = _rows(rows)
        token = 1.0 if case is None else float(case.token_bytes())
        by_ttl, by_room = {}, {}
        for room in list(dict.fromkeys((None, *(row["room"] for row in table))))[:MOST_LINES]:
            name = "any room" if room is None else format_value(room, "byte")
            by_ttl[name] = [(float(ttl), hits.hit_share(float(ttl), hits.blocks_in(room, token))) for ttl in hits.gaps()]
        for ttl in list(dict.fromkeys((*(row["ttl"] for row in table), None)))[:MOST_LINES]:
            name, until = ("for ever", math.inf) if ttl is None else (format_value(ttl, "s"), float(ttl))
            by_room[name] = [(float(blocks) * hits.block_tokens * token, hits.hit_share(until, float(blocks))) for blocks in hits.rooms()]
        panels = []
        along = ((by_ttl, "Time to live, renewed by each use (log)", "s"),
                 (by_room, "Room of the cache (log)", "token" if case is None else "byte"))  # fmt: skip
        for number, (lines, title, unit) in enumerate(along):
            x = scale.AxisScale(title, [at for line in lines.values() for at, _ in line if at > 0], unit, log=True, most=5, room=0.02)
            y = scale.AxisScale("", [share for line in lines.values() for _, share in line], "share", zero=True, log=False, most=5)
            parts = [plot.Series(rows=[{"x": at, "y": share} for at, share in line if at > 0], meaning=palette.MEANINGS[place], text=name,
                                 dash=plot.DASHES[place]) for place, (name, line) in enumerate(lines.items())]  # fmt: skip
            panels.append(plot.Plot(name=f"hits{number}", x=x, y=y, parts=parts, heading="Share of prompt tokens in the cache", columns=2,
                                    height=260))  # fmt: skip
        highest = max(share for line in (*by_ttl.values(), *by_room.values()) for _, share in line)
        title = f"A prefix cache has at most {highest:.0%} of the prompt tokens of {table[0]['trace']}"
        caption = "Left, each line is a room; right, each line is a lifetime: where lines meet, more of the other buys nothing."
        about = "" if case is None else f"; {case.name}, {case.kv} KV cache"
        return frame.compose(view, [panels], title=title, subtitle=f"least recently used first out{about}", caption=caption)

    return {"hit-rates": hit_rates}
