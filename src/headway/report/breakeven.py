"""Words and picture of `breakeven`: where machines become cheaper than the API, and what either side costs by volume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import Listing, format_value
from headway.laws.economics.cost import HOUR, MONTH_HOURS
from headway.report import output
from headway.report.pictures import frame, plot, scale
from headway.report.words import Row, sentence

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

FIRST = ("kind", "requests_per_day", "system", "api_usd_per_month", "machines_usd_per_month", "cheaper")
VIEW = ("kind", "sheet", "requests_per_day", "requests_per_day_lo~requests_per_day_hi", "tokens_per_month", "system", "layout",
        "utilisation", "tip_utilisation", "tip_hit_rate", "api_usd_per_month", "machines_usd_per_month",
        "machines_usd_per_month_lo~machines_usd_per_month_hi", "over_api", "cheaper", "payback_s", "confidence", "why")  # fmt: skip
MONTH_S = HOUR * MONTH_HOURS
THINNED = 4  # of so many volumes of the curve one stands in the table of a person


def describe(rows: Sequence[Row], known: Sequence[Row], volumes: int) -> output.Summary:
    """Summary: the volume asked about or where it tips, then hit rate, utilisation and payback at which it does.

    `known` are all rows of the answer, those that a reader has left out too.
    """
    first = rows[0]
    tip = next((row for row in known if row["kind"] == "tip" and row["sheet"] == first["sheet"]), None)
    volumes_asked = [row for row in rows if row["kind"] == "volume"]
    several = len({row["sheet"] for row in rows}) > 1
    view = [key for key in VIEW if key != "sheet" or several]
    alone = volumes_asked[0] if volumes == 1 and volumes_asked else None
    remarks = [*_no_interval(tip), *_at_volume(alone), *_stays(known, tip), *_further(known, first), *_checked(rows)]
    curve = [row for row in rows if row["kind"] == "curve" and row["sheet"] == first["sheet"]][::THINNED]
    people = Listing([*(row for row in rows if row["kind"] != "curve"), *curve])
    return output.Summary(_answer(alone, tip, known, first), view, people=people, remarks=remarks, first=FIRST)


def _answer(alone: Row | None, tip: Row | None, rows: Sequence[Row], first: Row) -> str:
    """The first sentence: which side is cheaper at the user's volume, and from which volume machines are."""
    turn = f"machines are cheaper {_turn(rows, tip)}" if tip is not None else "no volume makes machines cheaper"
    if alone is None:
        if all(row["machines_usd_per_month"] is None for row in rows):
            return sentence(f"{_chip(first)} carries {first['model']} at no volume", f": {first['why']}")
        if tip is None:
            return sentence(f"{first['model']} on {_chip(first)} is at no volume cheaper than {_list(first)}", _least(rows))
        cost = f": {tip['system']} for {_month(tip, 'machines_usd_per_month')}"
        return sentence(f"{first['model']} is cheaper than {_list(first)} {_turn(rows, tip)}", cost)
    api = f"At {_day(alone)} {_list(alone)} bills {_month(alone, 'api_usd_per_month')}"
    if alone["machines_usd_per_month"] is None:
        return sentence(api, f"; {alone['system']} does not carry it: {alone['why']}")
    cost = f", {alone['system']} {'cost' if alone['chips'] > 1 else 'costs'} {_month(alone, 'machines_usd_per_month', '')}"
    return sentence(api + cost, f"; {turn}")


def _turn(rows: Sequence[Row], tip: Row) -> str:
    """From which volume machines are cheaper; where later steps make the API cheaper again, the first such volume and the last."""
    last = _last(rows, str(tip["sheet"]))
    start = f"{_day(tip)}{_between(tip)}"
    if last is not None:
        return f"first at {start}, for good from {_count(last['requests_per_day'])}{_between(last, '')}"
    carried = [row["requests_per_day"] for row in rows if row["sheet"] == tip["sheet"] and row["machines_usd_per_month"] is not None]
    ended = any(row["sheet"] == tip["sheet"] and row["why"] and row["requests_per_day"] > max(carried) for row in rows)
    return f"from {start} to {_count(max(carried))}, the most that was tried and that they carry" if ended else f"from {start} on"


def _last(rows: Sequence[Row], sheet: str) -> Row | None:
    """The volume from which machines stay cheaper, where that is not the first at which they are."""
    return next((row for row in rows if row["kind"] == "last tip" and row["sheet"] == sheet), None)


def _api(row: Row) -> str:
    """The sheet without its date, which the rows have."""
    return str(row["sheet"]).partition(" (")[0]


def _list(row: Row) -> str:
    """The sheet, and that it sells another model than the machines serve."""
    return f"{_api(row)}{' (another model)' if row['another_model'] else ''}"


def _chip(row: Row) -> str:
    return str(row["system"]).partition("x")[2] if str(row["system"])[0].isdigit() else str(row["system"])


def _day(row: Row) -> str:
    return f"{_count(row['requests_per_day'])} requests/day"


def _count(value: float) -> str:
    """A number of requests, to three digits."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if 1000 <= rounded < 1e6 else format_value(rounded, "")


def _between(row: Row, level: str = "90 %: ") -> str:
    """The interval of a volume; open where one end never comes, and none where a step's error moves neither end."""
    low, high = row["requests_per_day_lo"], row["requests_per_day_hi"]
    if low == high:
        return ""
    return f" ({level}{'none' if low is None else _count(low)} .. {'never' if high is None else _count(high)})"


def _usd(value: float) -> str:
    return f"${value:,.0f}" if value >= 10 else format_value(value, "USD")


def _month(row: Row, key: str, per: str = "/month") -> str:
    return f"{_usd(row[key])}{per}"


def _least(rows: Sequence[Row]) -> str:
    """What a request costs at least on either side."""
    row = min((row for row in rows if row["over_api"] is not None), key=lambda row: row["over_api"], default=None)
    if row is None:
        return ""
    least, api = (format_value(usd, "USD") for usd in (row["api_usd_each"] * row["over_api"], row["api_usd_each"]))
    return f": of the volumes tried a request costs {least} or more there, {api} at the API"


def _at_volume(row: Row | None) -> list[str]:
    """Hit rate, utilisation and payback at which the volume asked about tips."""
    if row is None or row["machines_usd_per_month"] is None:
        return []
    notes = []
    if row["tip_utilisation"] is not None:
        ends = f" (90 %: {_percent(row['tip_utilisation_lo'])} .. {_percent(row['tip_utilisation_hi'])})"
        share = row["tip_utilisation"]
        need = f"both cost the same at {_percent(share)}{ends}" if share <= 1 else "even in full use they cost more than the API"
        most = "what they finish at most, latency limits aside"
        notes.append(f"these machines are used to {_percent(row['utilisation'])} of {most}, the mean over all hours; {need}")
    if row["tip_hit_rate"] is not None:
        low, high = row["tip_hit_rate_lo"], row["tip_hit_rate_hi"]
        ends = "" if low is None or high is None else f" (90 %: {_percent(low)} .. {_percent(high)})"
        notes.append(f"at this volume both cost the same at a hit rate of {_percent(row['tip_hit_rate'])}{ends}")
    else:
        notes.append(f"at this volume no hit rate makes {'the API' if row['cheaper'] == 'machines' else 'machines'} cheaper")
    return [*notes, *_payback(row)]


def _payback(row: Row) -> list[str]:
    """When a purchase has paid for itself."""
    if row["purchase_usd"] is None:
        return []
    if row["payback_s"] is None:
        return [f"the purchase of {_usd(row['purchase_usd'])} never pays: running the machines costs more than the API"]
    low, high = (row[f"payback_{end}_s"] for end in ("lo", "hi"))
    ends = f" (90 %: {_months(low)} .. {'never' if high is None else _months(high)})" if low is not None else ""
    return [f"the purchase of {_usd(row['purchase_usd'])} has paid for itself after {_months(row['payback_s'])} months{ends}"]


def _months(seconds: float) -> str:
    return f"{seconds / MONTH_S:.3g}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 or not share else f"{share * 100:.2g}%"


def _stays(rows: Sequence[Row], tip: Row | None) -> list[str]:
    """Volumes between the first and the last at which it tips, where the next machine makes the API cheaper again."""
    if tip is None or _last(rows, str(tip["sheet"])) is None:
        return []
    return ["between these two volumes each further machine, paid whole, can make the API cheaper again until more requests fill it"]


def _no_interval(tip: Row | None) -> list[str]:
    """Why the volume at which it tips has no interval."""
    if tip is None or tip["requests_per_day_lo"] != tip["requests_per_day_hi"]:
        return []
    return ["the volume at which it tips has no interval: the smallest fleet tips there, however fast, its price is one figure"]


def _further(rows: Sequence[Row], first: Row) -> Iterable[str]:
    """Where the other sheets tip."""
    for name in dict.fromkeys(row["sheet"] for row in rows if row["sheet"] != first["sheet"]):
        tip = next((row for row in rows if row["kind"] == "tip" and row["sheet"] == name), None)
        yield f"beside {_api({'sheet': name})} machines are cheaper {'at no volume' if tip is None else _turn(rows, tip)}"


def _checked(rows: Sequence[Row]) -> list[str]:
    """Which rows were simulated."""
    if all(row["confidence"] is None for row in rows):
        return []
    return ["rows with a confidence were simulated as headway plan does; the others and the widths of intervals are of the search alone"]


# -- picture --------------------------------------------------------------------------------------------------------------------


def picture(rows: Sequence[Row], known: Sequence[Row], view: View) -> Picture:
    """Cost of a month by volume: a line for each sheet, the machines as points joined by steps, the volume asked about, the tip."""
    points = sorted((row for row in rows if row["machines_usd_per_month"] is not None), key=lambda row: row["requests_per_day"])
    if len(points) < 2:
        raise BadValue("--plot", "these rows", "at least two volumes that machines carry")
    sheets = list(dict.fromkeys(row["sheet"] for row in rows))
    tip = next((row for row in known if row["kind"] == "tip" and row["sheet"] == sheets[0]), None)
    ends = _open_ends(tip, points)
    first = "first " if _last(known, sheets[0]) else ""
    parts: list[Any] = [plot.Span(start=ends[0], end=ends[1], text=f"{first}break-even, 90 %")] if ends else []
    tones = ("kv", "network", "weights", "whole")
    for place, name in enumerate(sheets):
        line = [{"x": row["requests_per_day"], "y": row["api_usd_per_month"]} for row in points if row["sheet"] == name]
        text = _api({"sheet": name})
        parts.append(plot.Series(rows=line, meaning=tones[place % len(tones)], text=text, data=f"api{place}"))
    steps_of = [row for row in points if row["sheet"] == sheets[0]]
    steps = [
        {"x": row["requests_per_day"], "y": row["machines_usd_per_month"], "system": row["system"], "utilisation": row["utilisation"],
         "tip": f"{_day(row)}: {row['system']} {_month(row, 'machines_usd_per_month')}, {_api(row)} {_month(row, 'api_usd_per_month')}"}
        for row in steps_of
    ]  # fmt: skip
    parts.append(plot.Series(rows=steps, meaning="compute", text="machines", steps="step-before", dots=24, data="machines"))
    for row in steps_of:
        if row["kind"] in ("volume", "tip"):
            words = f"{'break-even' if row['kind'] == 'tip' else 'your volume'}: {_count(row['requests_per_day'])}/day, {row['system']}"
            shape = "diamond" if row["kind"] == "tip" else "circle"
            parts.append(plot.Point(x=row["requests_per_day"], y=row["machines_usd_per_month"], text=words, shape=shape, size=90))
    x = scale.AxisScale("Requests a day (log)", [row["requests_per_day"] for row in points], "", log=True)
    costs = [row[key] for row in points for key in ("api_usd_per_month", "machines_usd_per_month")]
    y = scale.AxisScale("", [cost for cost in costs if cost > 0], "USD", log=True)
    drawing = plot.Plot(name="months", x=x, y=y, parts=parts, height=320, heading="Cost of a month (log)")
    title = f"Machines cost less {_turn(known, tip)}" if tip is not None else "Machines cost more at every volume drawn"
    lists = {row["sheet"]: _list(row) for row in rows}
    subtitle = f"{rows[0]['model']} on {_chip(rows[0])} beside {', '.join(lists.values())}"
    caption = "An API bills requests; machines come whole and are paid for all hours. Each point is a plan for the busiest hours; a step "
    caption += "lies between two of them."
    return frame.compose(view, [[drawing]], title=title, subtitle=subtitle, caption=caption)


def _open_ends(tip: Row | None, points: Sequence[Row]) -> tuple[float, float] | None:
    """The interval of the break-even as a span of the axis, to its ends where it is open; None where there is none."""
    if tip is None or tip["requests_per_day_lo"] == tip["requests_per_day_hi"]:
        return None
    return tuple(row["requests_per_day"] if tip[key] is None else tip[key]
                 for key, row in (("requests_per_day_lo", points[0]), ("requests_per_day_hi", points[-1])))  # fmt: skip
