"""`headway speed MODEL --on MACHINE --prompt N --output N [--tpot 20ms] [--ttft 2s]`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from headway import output, schema
from headway.assumptions import Assumptions
from headway.cli import loads, serve, subjects, words
from headway.errors import BadValue
from headway.layout import Layout
from headway.precision import Precision
from headway.schema import Q
from headway.workload import SLO, Load

MOST_LADDERS = 50
MOST_DOMAINS = 20
RUNGS = ("kind", "scale_up_domain", "speed_multiple", "price_multiple", "tpot_s", "tok_per_s_user", "replicas", "tp", "ep", "dp", "pp",
         "cp", "batch", "batch_ratio", "batch_ratio_identity", "batch_ratio_of_price", "speed_bought", "usd_per_mtok_out", "bound",
         "why")  # fmt: skip
OFFERS = ("kind", "provider", "model", "tier", "date", "price_multiple", "speed_multiple", "ladder_price_multiple", "offer_over_ladder",
          "ladder_speed_multiple", "batch_ratio_of_price", "ladder_batch_ratio", "standing")  # fmt: skip
OF_RUNGS = ("standard", "rung", "floor")
LINES = {"the ladder": "#2e86ab", "larger domain": "#3c9d5d", "offered": "#d1495b", "cost measured": "#8d6cab"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What the ladder is asked for beyond a plan."""

    at: Annotated[Any, Q(low=1, open_low=False, high=1e6, help="speed multiple that the answer and larger domains are taken at")] = 2.5
    domains: Annotated[Any, Q(whole=True, low=2, open_low=False, high=1e6, help="scale-up domains to plan again, times the own one")] = (
        2, 4, 8,
    )  # fmt: skip


def add_flags(parser: Any) -> None:
    """Subject, load, limits, what to search, what to compare."""
    parser.add_argument("model", help="catalogue name, config.json or Hugging Face id; several with commas")
    parser.add_argument("--on", required=True, metavar="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas")
    schema.add_flags(parser, Load, skip=_but(Load, "prompt", "output"), group="load")
    schema.add_flags(parser, SLO, skip=_but(SLO, "ttft", "tpot"), group="limits (--tpot: of the standard rung, default 20 ms)")
    schema.add_flags(parser, Ask, group="ladder")
    schema.add_flags(parser, Layout, group="layout: searched unless pinned to a value or a list")
    schema.add_flags(parser, Precision, group="number formats: a list is searched")
    schema.add_flags(parser, Assumptions, group="assumptions (named defaults)")


def _but(record: type, *names: str) -> tuple[str, ...]:
    return tuple(name for name in schema.fields(record) if name not in names)


def run(args: Any) -> output.Answer:
    """Rungs from the slowest to the fastest, larger domains, offers; one ladder after another where several are asked for."""
    ladders, notes = _ladders(args)
    rows = [row | extra for extra, one in ladders for row in one.plain]
    starts = list(itertools.accumulate((len(one.plain) for _, one in ladders), initial=0))

    def tree(row: Mapping[str, Any], key: str) -> Any:
        number = next(index for index, own in enumerate(rows) if all(row.get(name) == own[name] for name in own))
        place = next(index for index, end in enumerate(starts[1:]) if number < end)
        one = ladders[place][1]
        return one.tree(one.plain[number - starts[place]], key)

    from headway.listing import Listing

    listing = Listing(rows, notes=tuple(dict.fromkeys((*notes, *_notes([one for _, one in ladders])))), tree=tree)
    return output.Answer(listing, describe=lambda kept: _describe(kept, ladders), figure=_figure, most=200)


def _notes(ladders: Sequence[Any]) -> list[str]:
    """The notes of every ladder; what is not true of all names its own."""
    everywhere = [note for note in ladders[0].notes if all(note in one.notes for one in ladders)]
    return [note if note in everywhere else f"{_named(one)}: {note}" for one in ladders for note in one.notes]


def _ladders(args: Any) -> tuple[list[tuple[dict[str, Any], Any]], list[str]]:
    """One ladder for each combination of models, machines, loads, limits and assumptions."""
    load, notes = schema.read(args, Load, serve.COUNTS)
    limits, more = schema.read(args, SLO)
    ways, dropped = schema.read(args, Layout)
    formats, _ = schema.read(args, Precision)
    asked, trimmed = schema.read(args, Ask)
    taken, assumed = serve.combinations(args, Assumptions)
    load, unsaid = loads.requested(load)
    domains = asked.pop("domains", None)
    own = {} if domains is None else {"domains": domains if isinstance(domains, tuple) else (domains,)}
    if len(own.get("domains", ())) > MOST_DOMAINS:
        raise BadValue("--domains", f"{len(own['domains'])} values", f"at most {MOST_DOMAINS}")
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in (load | limits | asked).items()}
    own |= {key: value if isinstance(value, tuple) else (value,) for key, value in formats.items()}
    models = subjects.models(args)
    unsaid += loads.beyond(models, load)
    points = itertools.product(models, subjects.systems(args), itertools.product(*axes.values()), taken)
    cases = list(itertools.islice(points, MOST_LADDERS + 1))
    if len(cases) > MOST_LADDERS:
        raise BadValue("speed", "too many combinations of models, machines, loads, limits and assumptions", f"at most {MOST_LADDERS}")
    found = []
    for model, (system, edits), values, chosen in cases:
        point = dict(zip(axes, values, strict=True))
        extra = {key: value for key, value in point.items() if key in limits | asked and len(axes[key]) > 1}
        extra |= {key: value for key, value in chosen.items() if len(taken) > 1}
        found.append((output.clean(edits | extra), _ladder(model, system, point, ways, own, chosen, subjects.catalog(args))))
    return found, [*notes, *unsaid, *more, *dropped, *trimmed, *assumed]


def _ladder(model: Any, system: Any, point: dict[str, Any], ways: Any, own: dict[str, Any], chosen: dict[str, Any], catalog: Any) -> Any:
    from headway.offers import offers
    from headway.speed import ladder

    load = Load(prompt=point["prompt"], output=point["output"])
    rest = {key: value for key, value in point.items() if key not in ("prompt", "output")}
    return ladder(model, system, load, **rest, **own, ways=ways, assumptions=schema.defaults(Assumptions, chosen), offers=offers(catalog))


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(kept: Any, ladders: Sequence[tuple[Any, Any]]) -> output.Words:
    """The answer at the speed asked for, the rungs, then the floor, the lever and the offers."""
    from headway.listing import Listing

    rows = list(kept)
    if not rows:
        return output.Words("No row is left.")
    shown = [row for row in rows if row["kind"] != "offer"]
    first = ladders[0][1]
    if not shown:
        return output.Words(f"{_named(first)}: {_sentence(first)}", list(dict.fromkeys((*_varied(rows), *OFFERS))))
    view = [key for key in RUNGS if key in ("kind", "scale_up_domain") or len({row[key] for row in shown}) > 1]
    more = [f"{_named(one)}: {_sentence(one)}" for _, one in ladders[1:]]
    offers = _offers([row for row in rows if row["kind"] == "offer"])
    if len(ladders) > 1:
        return output.Words(f"{_named(first)}: {_sentence(first)}", [*_varied(shown), *view], [*more, words.DEFINED], Listing(shown))
    if first.infeasible:
        row = first.standard.row
        return output.Words(f"{_named(first)}: {_sentence(first)}", view, [*words.binds(row)[:1], words.DEFINED], Listing(shown))
    after = [_floor(first), *_slow(first), *_lever(first), *offers, words.DEFINED]
    return output.Words(f"{_named(first)}: {_sentence(first)}", view, after, Listing(shown))


def _varied(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = ("model", "system", "prompt", "output", "ttft", "tpot", "at")
    return [key for key in names if len({row.get(key) for row in rows}) > 1]


def _named(one: Any) -> str:
    return f"{one.standard.row['model']} on {one.standard.row['system']}"


def _times(value: Any) -> str:
    return f"{output.shown(value, '')}x"


def _standard(one: Any) -> str:
    row = one.standard.row
    within = "of all" if one.limit is None else f"with TPOT <= {output.shown(_seconds(one.limit), 's')}"
    about = f"{words.value(row, 'tok_per_s_user')} per user, {words.layout(row)}, batch {row['batch']}"
    return f"the standard rung, the cheapest {within} ({about})"


def _seconds(limit: Any) -> Any:
    return schema.scalar(limit, schema.fields(SLO)["tpot"][0], "tpot") if isinstance(limit, str) else limit


def _sentence(one: Any) -> str:
    """What the speed asked for costs, and what no price buys."""
    if one.infeasible:
        return f"no standard rung, nothing meets every limit: {one.infeasible}."
    last = one.measured(one.rungs[-1])
    most = f"at most {_times(last['speed_multiple'])} at any price"
    price = one.between("speed_multiple", one.at, "price_multiple")
    if price is None:
        return f"no price buys {_times(one.at)} the speed of {_standard(one)}: {most}."
    ratio = one.between("speed_multiple", one.at, "batch_ratio")
    fewer = f"{_times(ratio)} fewer sequences per chip"
    return f"{_times(one.at)} the speed costs {_times(price)} the price of {_standard(one)}, with {fewer}; {most}."


def _floor(one: Any) -> str:
    """The fastest rung: what it costs and what holds it there."""
    row, found = one.rungs[-1].row, one.measured(one.rungs[-1])
    bought = found.get("speed_bought")
    slope = "" if bought is None else f"; on the last step 1 % of price buys {output.shown(bought, '')} % of speed"
    parts = ", ".join(f"{key.removesuffix('_s')} {words.value(row, key)}" for key in words.PARTS)
    where = f"at {_times(found['price_multiple'])} the price, {words.layout(row)}, batch {row['batch']}"
    return (
        f"floor: TPOT {words.timed(row, 'tpot')} {where}: "
        f"{words.bound(row)} (the step is made of {parts}){slope}; what would help: {words.FASTER[row['bound']]}"
    )


def _slow(one: Any) -> list[str]:
    """What a slower tier saves."""
    if one.rungs[0] is one.standard:
        return ["slow: no slower rung is cheaper than the standard one"]
    found = one.measured(one.rungs[0])
    price, speed = _times(found["price_multiple"]), _times(found["speed_multiple"])
    beyond = "what is sold below that is idle capacity, not batch"
    return [f"slow: nothing costs less than {price} the standard price, at {speed} its speed; {beyond}"]


def _lever(one: Any) -> list[str]:
    """What a larger scale-up domain changes: the price of the speed asked for, and the floor."""
    lines = []
    for domain in dict.fromkeys(int(each.domain) for each in one.wider):
        found = {each.kind: (each.row, one.measured(each)) for each in one.wider if each.domain == domain}
        parts = []
        if "domain" in found:
            parts.append(f"{_times(one.at)} the speed for {_times(found['domain'][1]['price_multiple'])} the price")
        if "domain_floor" in found:
            row, measured = found["domain_floor"]
            at = f"TPOT {words.value(row, 'tpot_s')} (roofline {words.value(row, 'tpot_floor_s')})"
            parts.append(f"at most {_times(measured['speed_multiple'])}, {at}, where {words.bound(row)}")
        lines.append(f"lever: a scale-up domain of {domain} instead of {int(one.standard.domain)}: {'; '.join(parts)}")
    return [*lines, "lever: speculation moves the whole ladder: --accept-length with --draft-cost plans it"]


def _offers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The offers beside the ladder, those of equal multiples together."""
    equal: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        equal.setdefault((row["price_multiple"], row["speed_multiple"], row["basis"]), []).append(row)
    return [_offer(same) for same in equal.values()]


def _offer(rows: Sequence[Mapping[str, Any]]) -> str:
    """Offers of equal multiples beside the ladder."""
    row = rows[0]
    kind = "cost" if row["basis"] == "cost" else "offer"
    speed = "" if row["speed_multiple"] is None else f" for {_times(row['speed_multiple'])} the speed"
    who = ", ".join(f"{each['provider']} {each['model']} {each['tier']} {each['date']}" for each in rows)
    told = [str(row["standing"])]
    if row["ladder_price_multiple"] is not None:
        share = f"{_times(row['offer_over_ladder'])} the ladder's {_times(row['ladder_price_multiple'])}"
        told = [f"{row['standing']}, {share} there"]
    if row["ladder_speed_multiple"] is not None:
        told.append(f"here that price buys {_times(row['ladder_speed_multiple'])}")
    return f"{kind}: {_times(row['price_multiple'])} the price{speed}: {'; '.join(told)} ({who})"


# -- figure -----------------------------------------------------------------------------------------------------------------------


def _figure(rows: Any) -> dict[str, Any]:
    """Price multiple against speed multiple: the rungs as a line, larger domains and offers as points."""
    from headway import figures

    drawn = [row for row in rows if row["price_multiple"] is not None and row["speed_multiple"] is not None]
    if not drawn:
        raise BadValue("--plot", "these rows", "rows with a price multiple and a speed multiple")
    points = [
        {"x": row["speed_multiple"], "y": row["price_multiple"], "line": _line(row), "name": _label(row),
         "of": f"{row['model']} {row['system']}", "above": row["standing"] == "above the ladder"}
        for row in drawn
    ]  # fmt: skip
    axes = {
        key: {"field": key, "type": "quantitative", "title": title, "scale": {"type": "log", "nice": False}, "axis": {"format": ".3~g"}}
        for key, title in (("x", "speed of one user over the standard rung"), ("y", "price over the standard rung"))
    }
    names = list(LINES)
    colour = {"field": "line", "type": "nominal", "title": None, "sort": names, "scale": {"domain": names, "range": list(LINES.values())}}
    encoding = {**axes, "color": colour}
    ladder = {"transform": [{"filter": "datum.line === 'the ladder'"}], "mark": {"type": "line", "strokeWidth": 2},
              "encoding": encoding | {"detail": {"field": "of"}}}  # fmt: skip
    dots = {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.85}, "encoding": encoding | {"tooltip": [{"field": "name"}]}}
    title = {"text": _title(drawn), "subtitle": "offers are over their own standard tier; above the line they ask for more than batch"}
    return {"$schema": figures.SCHEMA, "config": figures.CONFIG, "title": title, "width": 560, "height": 400,
            "data": {"values": points}, "layer": [ladder, dots, *_texts(points, axes)]}  # fmt: skip


def _texts(points: Sequence[Mapping[str, Any]], axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The name of an offer beside each place where one or several stand: those above the ladder to the left, away from it."""
    places: dict[tuple[float, float, bool], list[str]] = {}
    for point in points:
        if point["line"] in ("offered", "cost measured"):
            places.setdefault((point["x"], point["y"], point["above"]), []).append(point["name"])
    layers = []
    for above, align, shift in ((True, "right", -7), (False, "left", 7)):
        named = [(place, names) for place, names in places.items() if place[2] is above]
        values = [{"x": x, "y": y, "text": names[0] + (f" and {len(names) - 1} more" if names[1:] else "")} for (x, y, _), names in named]
        mark = {"type": "text", "align": align, "dx": shift, "fontSize": 11}
        layers += [{"data": {"values": values}, "mark": mark, "encoding": {**axes, "text": {"field": "text"}}}] if values else []
    return layers


def _line(row: Mapping[str, Any]) -> str:
    if row["kind"] == "offer":
        return "cost measured" if row["basis"] == "cost" else "offered"
    return "the ladder" if row["kind"] in OF_RUNGS else "larger domain"


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['model']} {row['tier']}" if row["kind"] == "offer" else f"{words.layout(row)}, batch {row['batch']}"


def _title(rows: Sequence[Mapping[str, Any]]) -> str:
    own = {f"{row['model']} on {row['system']}" for row in rows if row["kind"] in OF_RUNGS}
    return ", ".join(sorted(own)) or "Price against speed"
