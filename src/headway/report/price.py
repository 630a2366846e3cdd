"""Sentences and pictures of `price`: costs, price sheets, their history, and of `bill`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import Listing, Rows, cell, format_value
from headway.core.units import show
from headway.economics.price.price import LAID
from headway.report import output, serving
from headway.report.pictures import bars, frame, palette, plot, scale, years
from headway.report.pictures import grid as along
from headway.report.plan import POOLINGS
from headway.report.words import Row, number_of, sentence, subject

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

BY_KIND = {"in": "fresh input", "cached": "cached input", "out": "output"}
ENDS = ("chip_price", "utilisation", "margin")
SUBJECT = ("model", "system", "prompt", "output")  # of the columns of a layout those that no search fills
CELL_ENDS = ("", "_lo", "_hi", "_least", "_most")  # of a cost or a price
DRIVERS = {
    "estimate": "the estimate of the times",
    "chip_price": "the price of a chip",
    "utilisation": "utilisation",
    "margin": "the margin",
}
FLAGS = {"chip_price": "--chip-price", "utilisation": "--utilisation", "margin": "--margin"}
UNITS = {"chip_price": "USD/s", "utilisation": "", "margin": ""}
DIGITS = 6  # of a value as it is printed and priced with
LEAST_GAIN = 0.01  # share of the interval from which a change is told
GRID_VIEW = ("price_in", "price_in_lo~price_in_hi", "price_cached", "price_out", "price_out_lo~price_out_hi", "cost_in", "cost_out",
        "prefill_share", "sheet_margin", "sheet_margin_lo~sheet_margin_hi", "tpot_s", "driver", "why")  # fmt: skip
HOW = (
    "intervals: 90 %, the estimate's own 90 % interval with the price of a chip (even in its logarithm between the ends), utilisation and "
    "margin (even between theirs), deviations of the logarithms in quadrature; ends: every input at its better or its worse end at once"
)


Changed = Callable[[Row, str, str], Row | None]  # (row, name of a term, its text) -> the row that it leads to


def describe(table: Any, changed: Changed = lambda *_: None) -> output.Summary:
    """Summary: the sentence, a table by kind of token or by row, and the main cause of the interval's width.

    `changed` prices a row again with another value of a commercial term, None where that flag cannot be added.
    """
    everything = list(table)
    rows = bests(everything)
    priced = [row for row in rows if row.get("price_out") is not None]
    if not priced:
        return output.Summary(sentence(f"{subject(rows[0])}: no price", f", {rows[0]['why']}"), [*LAID, "why"])
    if len(rows) == 1:
        row, second = rows[0], next((line for line in everything if line is not rows[0]), None)
        remarks = [*_remarks(row), *([] if second is None else [f"{POOLINGS[second['kind']]}: {_where(second)}"]), HOW]
        return output.Summary(
            _sold(row, second), people=_by_kind(row, second), binds=_binds(row), helps=_helps(row, changed), remarks=remarks
        )
    both = [] if len(rows) == len(everything) else ["kind"]
    view = [*_varying(rows), *both, *(key for key in GRID_VIEW if any(row.get(key.partition("~")[0]) is not None for row in rows))]
    varying = _varying(rows)
    sold = [row for row in priced if row.get("sheet_margin") is not None]
    if sold:
        least, most = (_margin(pick(sold, key=lambda row: row["sheet_margin"]), varying) for pick in (min, max))
        summary = f"the list leaves a margin of {least}" + (f" to {most}" if most != least else "")
    else:
        least, most = (cell("price_out", pick(priced, key=lambda row: row["price_out"])) for pick in (min, max))
        summary = f"output from {least} to {most} per Mtok" if least != most else f"output {least} per Mtok"
    about = "Cost to price" if {"model", "system"} & {*varying} else subject(rows[0]) if varying else _where(rows[0])
    return output.Summary(sentence(f"{about}: {len(rows)} prices, {summary}"), view, remarks=[HOW], first=varying)


def bests(rows: Sequence[Row]) -> list[Row]:
    """The best row of each question; where only rows of the other way are left, these."""
    return [row for row in rows if row["kind"] == "best"] or list(rows)


def _varying(rows: Sequence[Row]) -> list[str]:
    keys = [
        key for key in rows[0] if key in (*LAID, "hit_rate", *(f"{n}{e}" for n in ENDS for e in ("", "_lo", "_hi")), "tpot", "ttft", "e2e")
    ]
    varying_keys = [key for key in keys if len({row.get(key) for row in rows}) > 1]
    for name in ENDS:  # an interval of zero width prints its value once
        if all(row.get(f"{name}_lo") == row.get(f"{name}_hi") for row in rows):
            varying_keys = [key for key in varying_keys if key not in (f"{name}_lo", f"{name}_hi")]
        else:
            varying_keys = [key for key in varying_keys if key != name]
    return varying_keys


def _margin(row: Row, varying: Sequence[str]) -> str:
    """A margin, and what tells its row from the others."""
    about = _apart(row, varying)
    return f"{row['sheet_margin']:.0%}" + (f" ({about})" if about else "")


def _apart(row: Row, varying: Sequence[str]) -> str:
    """What tells a row from the others: its hit rate, or what it is of."""
    if "hit_rate" in varying or not varying:
        return f"hit rate {row['hit_rate']:.0%}"
    keys = [key for key in varying if key in SUBJECT] or [key for key in varying if key not in LAID]
    return ", ".join(cell(key, row) for key in keys)


def _where(row: Row) -> str:
    """What one price is of; the prefill pool precedes the figures of the decode pool."""
    pool = ""
    if row.get("prefill_replicas") is not None:
        prefill = serving.layout({key: int(row[f"prefill_{key}"]) for key in ("tp", "ep", "dp", "pp", "cp", "replicas")})
        pool = f"{int(row['prefill_chips'])} chips that prefill ({prefill}) and {int(row['decode_chips'])} that decode: "
    return f"{subject(row)} with {pool}{serving.layout(row)}, {serving.formats(row)}, {serving.work(row)}"


def _sold(row: Row, second: Row | None) -> str:
    """Sentence on the price of output with its interval, then of input, and on the way of prefill that was dearer per request."""
    middle, low, high = (cell(f"price_out{end}", row) for end in ("", "_lo", "_hi"))
    ends = f" (90 %: {low} .. {high})" if low != high else ""
    inputs = [f"{BY_KIND[kind]} {cell(f'price_{kind}', row)}" for kind in ("in", "cached") if row.get(f"price_{kind}") is not None]
    with_layout = f" with {serving.layout(row)}, batch {serving.value(row, 'batch')}"
    times = "" if row.get("output_multiple") is None else f", {row['output_multiple']:.3g} times fresh input"
    input_text = f", {', '.join(inputs)}" if inputs else ""
    times_cheaper = "" if second is None or second["gain"] <= 1 else f"{second['gain']:.3g} times cheaper than {POOLINGS[second['kind']]}"
    least = f"; {_way(row)} costs least per request, {times_cheaper}" if times_cheaper else ""
    margin = f"; the list leaves a margin of {row['sheet_margin']:.0%}" if row.get("sheet_margin") is not None else ""
    return sentence(f"{subject(row)}: output costs {middle} per Mtok{ends}", times, margin, least, input_text, with_layout)


def _way(row: Row) -> str:
    return POOLINGS["together" if row.get("prefill_replicas") is None else "apart"]


def _interval(row: Row, name: str) -> str:
    low, high = (cell(f"{name}_{end}", row) for end in ("lo", "hi"))
    return low if low == high else f"{low} .. {high}"


def _by_kind(row: Row, second: Row | None) -> Listing:
    """Table with a row per kind of token, and beside its price that of the other way of prefill."""
    shares = {"in": row["prefill_share"], "cached": None, "out": row["decode_share"]}
    token_rows = []
    for kind, name in BY_KIND.items():
        if row.get(f"cost_{kind}") is None:
            continue
        cells = {column: cell(column, row) for stem in ("cost", "price") for column in (f"{stem}_{kind}{end}" for end in CELL_ENDS)}
        low, high, least, most = (cells[f"price_{kind}{end}"] for end in CELL_ENDS[1:])
        line = {"tokens": name, "cost": cells[f"cost_{kind}"], "cost 90 %": f"{cells[f'cost_{kind}_lo']} .. {cells[f'cost_{kind}_hi']}",
                "price": cells[f"price_{kind}"], "price 90 %": f"{low} .. {high}", "price, ends": f"{least} .. {most}"}  # fmt: skip
        if second is not None:
            line[f"price, {POOLINGS[second['kind']]}"] = cell(f"price_{kind}", second)
        if row.get(f"sheet_{kind}") is not None:
            line["list"] = cell(f"sheet_{kind}", row)
        share = shares[kind]
        token_rows.append(line | {"share of a request's cost": "-" if share is None else f"{share:.0%}"})
    return Listing(token_rows)


def _binds(row: Row) -> str:
    """What binds a step, and what makes the interval of the price wide."""
    step = f"{serving.bound(row)} a step: TPOT {cell('tpot_s', row)}, {cell('tok_per_s_chip', row)} per chip"
    drivers = ", ".join(f"{DRIVERS[name]} {share:.0%}" for name, share in _widths(row))
    return step + (f"; the interval of the price of output comes from {drivers}" if drivers else "")


def _widths(row: Row) -> list[tuple[str, float]]:
    """Causes of the width of the price of output, the greatest first."""
    shares = [(name, row.get(f"width_{name}") or 0.0) for name in DRIVERS]
    return sorted(((name, share) for name, share in shares if share), key=lambda item: -item[1])


def _helps(row: Row, changed: Changed) -> list[output.Help]:
    """Fewer idle hours, by what they save; one value for an uncertain input, by how much narrower the interval is. Each priced again."""
    helps = []
    after = changed(row, "utilisation", "1") if row["utilisation"] < 1 else None
    if after is not None:
        effect = f"output {cell('cost_out', row)} -> {cell('cost_out', after)} per Mtok"
        helps.append(output.Help(change="no idle hours (--utilisation 1)", effect=effect, gain=1 - after["cost_out"] / row["cost_out"]))
    for name, _ in _widths(row):
        text = show(row[name], UNITS[name], DIGITS).replace(" ", "") if name in FLAGS else ""
        after = changed(row, name, text) if text else None
        if after is None:
            continue
        gain = 1 - _width(after) / _width(row)
        if gain >= LEAST_GAIN:
            effect = f"price of output, 90 %: {_interval(row, 'price_out')} -> {_interval(after, 'price_out')} per Mtok"
            helps.append(output.Help(change=f"one value for {DRIVERS[name]} ({FLAGS[name]} {text})", effect=effect, gain=gain))
    return output.ranked(helps)


def _width(row: Row) -> float:
    """Width of the interval of the price of output, as a logarithm."""
    return log(row["price_out_hi"] / row["price_out_lo"])


def _remarks(row: Row) -> list[str]:
    """Notes on one price: its inputs, power, memory."""
    ends = ", ".join(f"{name.replace('_', ' ')} {_interval(row, name)}" for name in ENDS)
    notes = [f"{_where(row)}; at {ends}"]
    if row.get("sheet_margin") is not None:
        low, high = row["sheet_margin_lo"], row["sheet_margin_hi"]
        notes.append(f"margin of the list, 90 %: {low:.0%} .. {high:.0%}, at a hit rate of {row['hit_rate']:.0%}")
    if row.get("list_in") is not None:
        rates = (f"{BY_KIND[kind]} {_list_ends(row, kind)}" for kind in ("in", "out"))
        notes.append(f"hosts would list such a model at {' and '.join(rates)} per Mtok, by the list prices of open models")
    if row.get("power_share") is not None:
        least, most = (f"{row[f'power_share_{end}']:.1%}" for end in ("lo", "hi"))
        share = least if row["power_share_lo"] == row["power_share_hi"] else f"{least} .. {most}"
        notes.append(f"power is {share} of the price of a chip by the hour")
    if row.get("memory_share_lo") is not None:
        notes.append(
            f"HBM is {row['memory_share_lo']:.1%} .. {row['memory_share_hi']:.1%} of what a chip costs to buy (more with --memory-share)"
        )
    return notes


def _list_ends(row: Row, kind: str) -> str:
    low, high = (show(row[f"list_{kind}_{end}"], "USD") for end in ("lo", "hi"))
    return f"{low} .. {high}"


# -- pictures -------------------------------------------------------------------------------------------------------------------


def _numbers(rows: Sequence[Row]) -> list[str]:
    """Inputs of these rows that have several values and are numbers."""
    return [key for key in _varying(rows) if "~" not in key and key not in serving.TEXTS] if rows else []


def varies(rows: Sequence[Row]) -> bool:
    """Whether an input of the rows has several values."""
    return bool(_numbers([row for row in bests(rows) if row.get("price_out") is not None]))


def grid(rows: Rows, view: View) -> Picture:
    """Margin against hit rate at a sheet, else prices against the input with the most values."""
    priced = [row for row in bests(list(rows)) if row.get("price_out") is not None]
    varying = _numbers(priced)
    if not varying:
        raise BadValue("--picture", "grid", "a list or a range, such as --hit 0..0.95 or --margin 0,0.4,0.8")
    x = "hit_rate" if "hit_rate" in varying else max(varying, key=lambda key: len({row[key] for row in priced}))
    ys = ("sheet_margin",) if any(row.get("sheet_margin") is not None for row in priced) else ("price_in", "price_out")
    about = subject(priced[0])
    title = along.finding(priced, x, ys[-1], about)
    return along.picture(priced, x, ys, [key for key in varying if key != x], view, title=title, about=about)


RATES = (
    ("input_usd_per_mtok", "Input, USD per Mtok (log)", "USD/Mtok"),
    ("output_usd_per_mtok", "Output, USD per Mtok (log)", "USD/Mtok"),
    ("output_multiple", "Output over input rate (log)", "x"),
    ("cached_multiple", "Cache read over input rate (log)", "x"),
)
PARTS = (
    ("usd_input", "input", "compute"), ("usd_written", "written to the cache", "network"), ("usd_cached", "read from the cache", "kv"),
    ("usd_storage", "kept", "whole"), ("usd_output", "output", "weights"),
)  # fmt: skip
MOST_BARS = 12
NEAR, FAR = 60.0, 130.0  # px from its point at which the name of an offer stands at most, in a narrow view and a wide one
LEAST_FASTER = 0.001  # share of speed from which a larger domain is drawn


def history(rows: Sequence[Row], view: View, whose: str) -> Picture:
    """Price sheets by their date, a line for each line of models; where there are many, those whose prices moved most are lit."""
    dated = [{**row, "year": int(row["as_of"][:4]), "released": row["as_of"]} for row in rows if row["as_of"][:4].isdigit()]
    is_one = len({row["provider"] for row in dated}) == 1
    by_line: dict[str, list[Row]] = {}
    for row in sorted(dated, key=years.year):
        if row["input_usd_per_mtok"]:
            by_line.setdefault(row["line"] if is_one else f"{row['provider']} {row['line']}", []).append(row)
    if not by_line:
        raise BadValue("--plot", "these rows", "sheets with a date")
    by_change = sorted(by_line, key=lambda name: (-_price_change(by_line[name]), -len(by_line[name])))
    lit = [*by_change[: len(palette.MEANINGS) - 1]]
    rates = [rate for rate in RATES if len({f"{row[rate[0]]:.3g}" for row in dated if row[rate[0]]}) > 1]
    ratio = {f"{row['output_multiple']:.3g}" for row in dated if row["output_multiple"]}
    rates = [rate for rate in rates if len(ratio) > 1 or rate[0] != "output_usd_per_mtok"]
    plots = [_history(by_line, lit, rate, number, min(len(rates), 2)) for number, rate in enumerate(rates)]
    first, last = by_line[by_change[0]][0], by_line[by_change[0]][-1]
    title = f"{whose}: no input price of {number_of(len(by_line), 'line')} of models moved"
    if _price_change(by_line[by_change[0]]):
        ends = [format_value(row["input_usd_per_mtok"], "USD/Mtok") for row in (first, last)]
        title = f"{by_change[0]}: a million input tokens from {ends[0]} ({first['as_of'][:7]}) to {ends[1]} ({last['as_of'][:7]})"
    constant = f" Output costs {ratio.pop()} times input in every one of them." if len(ratio) == 1 else ""
    panels = [plots[place : place + 2] for place in range(0, len(plots), 2)]
    about = f"list prices of {whose} by the date of the sheet, a line for each line of models"
    return frame.compose(view, panels, title=title, subtitle=about, caption=f"Each point is a dated price sheet.{constant}")


def _price_change(sheets: Sequence[Row]) -> float:
    """How far the input price moved from the first sheet to the last, as a logarithm."""
    return abs(log(sheets[-1]["input_usd_per_mtok"] / sheets[0]["input_usd_per_mtok"]))


def _history(by_line: Mapping[str, Sequence[Row]], lit: Sequence[str], rate: years.Quantity, number: int, columns: int) -> plot.Plot:
    key, words, unit = rate
    known = {line: [row for row in sheets if row[key]] for line, sheets in by_line.items()}
    parts: list[plot.Part] = []
    for line, sheets in sorted(known.items(), key=lambda entry: entry[0] in lit):
        points = [{"x": years.year(row), "y": row[key], "name": line,
                   "tip": f"{row['model']}, {row['as_of']}: {format_value(row[key], unit)}"} for row in sheets]  # fmt: skip
        meaning, name = (palette.MEANINGS[lit.index(line)], line) if line in lit else ("rest", "")
        if points:
            parts.append(plot.Series(rows=points, meaning=meaning, text=name, steps="step-after", dots=34, width=2 if name else 1.2))
    values = [(years.year(row), row[key]) for sheets in known.values() for row in sheets]
    return plot.Plot(name=f"rates{number}", parts=parts, heading=words, columns=columns, height=260,
                     x=scale.AxisScale("", [at for at, _ in values], "year", log=False, most=4, room=0.06), is_fitting=True,
                     y=scale.AxisScale("", [value for _, value in values], unit, log=True, room=0.08))  # fmt: skip


def bills(rows: Sequence[Row], view: View) -> Picture:
    """The same requests billed in every way: a bar of parts for each, the cheapest on top."""
    options = [row for row in rows if row["usd"] is not None][:MOST_BARS]
    if not options:
        raise BadValue("--plot", "these rows", "at least one bill")
    same = len({(row["provider"], row["model"]) for row in options}) == 1
    lines = []
    for row in options:
        prompts = f", {row['prompt_layout']}" if row["prompt_layout"] not in ("any", "as recorded") else ""
        way = f"{row['mode']}, {'no cache' if row['cache'] == 'none' else row['cache']}{prompts}"
        parts = [(words, row[key], meaning) for key, words, meaning in PARTS if row.get(key)]
        name = way if same else f"{row['provider']}/{row['model']}, {way}"
        lines.append(bars.Bar(name=name, note=format_value(row["usd"], "USD"), parts=parts))
    x = scale.AxisScale("Bill of all requests", [0.0, *(row["usd"] for row in options)], "USD", zero=True, log=False, most=5, room=0.18)
    whose = f"{options[0]['provider']}/{options[0]['model']}, " if same else ""
    subtitle = f"{whose}the cheapest way on top" + (f"; {len(rows) - len(options)} more are not drawn" if len(rows) > len(options) else "")
    caption = "Each bar is the same requests billed in another way; its parts show what the money is for."
    title = f"The same requests cost {lines[0].note} to {lines[-1].note}"
    return frame.compose(view, [[bars.Bars(name="bills", bars=lines, x=x)]], title=title, subtitle=subtitle, caption=caption)


LADDER, WIDER, OFFERED, COST = "the ladder", "larger domain", "offered", "cost measured"
SOLD = {OFFERED: ("sold", "kv", "square"), COST: ("cost measured", "network", "circle")}  # words before a name, meaning, shape


def ladder(points: Sequence[Row], view: View, about: str) -> Picture:
    """Price against speed, both over the standard rung (y, x): the ladder of batch sizes, larger domains, real offers with their names."""
    if not points:
        raise BadValue("--plot", "these rows", "rows with a price multiple and a speed multiple")
    by_kind = {kind: [point for point in points if point["kind"] == kind] for kind in (LADDER, WIDER, OFFERED, COST)}
    parts: list[plot.Part] = []
    for of in dict.fromkeys(point["subject"] for point in by_kind[LADDER]):  # its ends are named by their batch
        rungs = sorted((point for point in by_kind[LADDER] if point["subject"] == of), key=lambda point: point["x"])
        rows = [_bought(rung, f"batch {rung['batch']:,.0f}") for rung in rungs]
        parts.append(plot.Series(rows=rows, meaning="compute", width=2.5, dots=40))
        ends = ((rungs[0], "batch" if view.is_narrow else "smaller batches, from batch"), (rungs[-1], "batch"))
        parts += [plot.Note(x=rung["x"], y=rung["y"], text=f"{words} {rung['batch']:,.0f}", meaning="compute") for rung, words in ends]
    fastest = max((point["x"] for point in by_kind[LADDER]), default=0.0)
    parts += _wider(by_kind[WIDER], fastest)
    for kind, (sold, meaning, shape) in SOLD.items():
        rows = [_bought(point, point["name"]) for point in by_kind[kind]]
        parts.append(plot.Series(rows=rows, meaning=meaning, width=0, dots=55, shape=shape))
        places: dict[tuple[float, float], list[str]] = {}
        for point in by_kind[kind]:
            places.setdefault((point["x"], point["y"]), []).append(point["name"])
        for (x, y), names in places.items():
            text = names[0] if view.is_narrow else f"{sold}: {names[0]}"
            text += f" and {len(names) - 1} more" if len(names) > 1 else ""
            parts.append(plot.Note(x=x, y=y, text=text, meaning=meaning, most=NEAR if view.is_narrow else FAR))
    drawing = plot.Plot(
        name="ladder", parts=parts, heading="Price per token over the standard tier (log)", height=340,
        x=scale.AxisScale("Speed of one user over the standard tier (log)", [point["x"] for point in points], "x", log=True, room=0.06),
        y=scale.AxisScale("", [point["y"] for point in points], "x", log=True, room=0.08),
    )  # fmt: skip
    beyond = sum(point["x"] > fastest for point in by_kind[OFFERED])
    caption = "Offers are over their own standard tier; above the line, a smaller batch alone would be cheaper for that speed."
    caption += f" {number_of(beyond, 'offer')} beyond its end: faster than any batch here." if beyond else ""
    return frame.compose(view, [[drawing]], title=_bought_title(by_kind[OFFERED], fastest), subtitle=about, caption=caption)


def _bought(point: Row, name: str) -> Row:
    return {"x": point["x"], "y": point["y"], "tip": f"{name}: {point['x']:.3g}x the speed for {point['y']:.3g}x the price"}


def _wider(points: Sequence[Row], fastest: float) -> list[plot.Part]:
    """The fastest point of each larger domain that is faster than the ladder, else words that none is."""
    if not points:
        return []
    best = {point["name"]: point for point in sorted(points, key=lambda point: point["x"])}
    faster = [point for point in best.values() if point["x"] > fastest * (1 + LEAST_FASTER)]
    if not faster:
        end = max(points, key=lambda point: point["x"])
        return [plot.Note(x=end["x"], y=end["y"], text=f"{max(best, key=lambda name: (len(name), name))}: no faster")]
    notes = (plot.Note(x=point["x"], y=point["y"], text=point["name"], meaning="weights") for point in faster)
    return [plot.Series(rows=faster, meaning="weights", width=0, dots=55, shape="diamond"), *notes]


def _bought_title(offers: Sequence[Row], fastest: float) -> str:
    """What offers ask for speed, beside what a smaller batch costs at that speed."""
    above, beside = [point for point in offers if point["above"]], [point for point in offers if point["ladder"] is not None]
    if above or not beside:
        most = f"Smaller batches buy up to {fastest:.3g}x the speed"
        return f"{most}; {len(above)} of {len(offers)} offers ask more than they cost" if offers else most
    speed, price, alone = (_from_to([point[key] for point in beside]) for key in ("x", "y", "ladder"))
    return f"Offers sell {speed} the speed at {price} the price; smaller batches alone would cost {alone}"


def _from_to(values: Sequence[float]) -> str:
    """The least and the largest of multiples.

    >>> _from_to([2.0, 2.5]), _from_to([2.0, 2.0])
    ('2 to 2.5x', '2x')
    """
    low, high = (f"{end(values):.3g}" for end in (min, max))
    return f"{low} to {high}x" if low != high else f"{high}x"
