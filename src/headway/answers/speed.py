"""`headway speed MODEL --on MACHINE --prompt N --output N [--tpot 20ms] [--ttft 2s]`: price of fast and slow tiers by speed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.answers.no_effect import search_notes
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import Listing, clean, format_value, place_of
from headway.core.notes import note
from headway.economics.questions import Speed, SpeedRequest
from headway.economics.speed_tiers import SpeedTiers, catalogue_offers, ladder
from headway.performance.assumptions import Assumptions
from headway.performance.workload import SLO
from headway.report import output, serving
from headway.report import price as words
from headway.report.plan import POOLINGS
from headway.report.words import sentence, timed

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.report.pictures.frame import Picture, View

MOST_LADDERS = 50
MOST_DOMAINS = 20
RUNGS = ("kind", "scale_up_domain", "speed_multiple", "price_multiple", "tpot_s", "tok_per_s_user", "replicas", "tp", "ep", "dp", "pp",
         "cp", "batch", "batch_ratio", "batch_ratio_identity", "batch_ratio_of_price", "speed_bought", "usd_per_mtok_out", "bound",
         "why")  # fmt: skip
OFFERS = ("kind", "provider", "model", "tier", "date", "price_multiple", "speed_multiple", "ladder_price_multiple", "offer_over_ladder",
          "ladder_speed_multiple", "batch_ratio_of_price", "ladder_batch_ratio", "standing")  # fmt: skip
OF_RUNGS = ("standard", "rung", "floor")
LEAST_GAIN = 0.001  # share of speed from which a larger domain helps
NARROW = ("kind", "scale_up_domain", "tok_per_s_user", "price_multiple", "speed_multiple", "tpot_s", "batch")  # of a narrow table


def run(args: Speed) -> output.Answer:
    """Answer with speed tiers from slowest to fastest, larger domains and offers, for each requested case in turn."""
    ladders = _ladders(args)
    rows = [row | extra for extra, ladder in ladders for row in ladder.plain]
    starts = list(itertools.accumulate((len(ladder.plain) for _, ladder in ladders), initial=0))

    def tree(row: Mapping[str, Any], key: str) -> Any:
        number = place_of(row, rows)
        place = next(index for index, end in enumerate(starts[1:]) if number < end)
        ladder = ladders[place][1]
        return ladder.tree(ladder.plain[number - starts[place]], key)

    listing = Listing(rows, notes=tuple(dict.fromkeys(_notes([ladder for _, ladder in ladders]))), tree=tree)
    return output.Answer(listing, describe=lambda table: _describe(table, ladders), pictures={"ladder": _drawing}, most=200)


def _notes(ladders: Sequence[SpeedTiers]) -> list[str]:
    """Notes of all cases; a note that does not hold for all names its case."""
    everywhere = [note for note in ladders[0].notes if all(note in ladder.notes for ladder in ladders)]
    return [note if note in everywhere else f"{_subject(ladder)}: {note}" for ladder in ladders for note in ladder.notes]


def _ladders(args: Speed) -> list[tuple[dict[str, Any], SpeedTiers]]:
    """Speed tiers for each combination of models, machines, loads, limits and assumptions."""
    grid, speed_values = arguments.search_grid(args), schema.read(args, SpeedRequest)
    domains = speed_values.pop("domains", None)
    options = {} if domains is None else {"domains": schema.several(domains)}
    if len(options.get("domains", ())) > MOST_DOMAINS:
        raise BadValue("--domains", f"{len(options['domains'])} values", f"at most {MOST_DOMAINS}")
    note(*search_notes(args, grid.load))
    ladders = []
    for case in grid.cases("speed", MOST_LADDERS, speed_values):
        tiers = ladder(
            case.model, case.system, case.load, **{key: value for key, value in case.inputs.items() if key not in grid.load},
            **options, **grid.formats, ways=grid.degrees, disaggregate=args.disaggregate,
            assumptions=schema.defaults(Assumptions, case.assumptions), offers=catalogue_offers(arguments.catalog(args)),
        )  # fmt: skip
        ladders.append((clean(case.edits | case.labels | case.varied), tiers))
    return ladders


# -- words ------------------------------------------------------------------------------------------------------------------------


def _describe(table: Rows, ladders: Sequence[tuple[dict[str, Any], SpeedTiers]]) -> output.Summary:
    """Summary: the cost of the requested speed, the tiers, what binds the fastest, what larger domains would help, and the offers."""
    rows = list(table)
    ladder_rows = [row for row in rows if row["kind"] != "offer"]
    first = ladders[0][1]
    headline = _sentence(first)
    if not ladder_rows:
        return output.Summary(headline, list(dict.fromkeys((*_varied(rows), *OFFERS))))
    view = [key for key in RUNGS if key in ("kind", "scale_up_domain") or len({row[key] for row in ladder_rows}) > 1]
    if len(ladders) > 1:
        remarks = [*(_sentence(ladder) for _, ladder in ladders[1:]), serving.DEFINED]
        return output.Summary(headline, [*_varied(ladder_rows), *view], people=Listing(ladder_rows), remarks=remarks)
    if first.infeasible:
        binds = serving.binds(first.standard.row)
        return output.Summary(headline, view, people=Listing(ladder_rows), binds=binds, remarks=[serving.DEFINED])
    offers = _offers([row for row in rows if row["kind"] == "offer"])
    remarks = [_standard(first), _other_way(first), _bought(first), *_slow(first), *offers, serving.DEFINED]
    return output.Summary(
        headline, view, people=Listing(ladder_rows), binds=_floor(first), helps=_lever(first), remarks=[text for text in remarks if text],
        first=NARROW,
    )  # fmt: skip


def _varied(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = ("model", "system", "prompt", "output", "ttft", "tpot", "at")
    return [key for key in names if len({row.get(key) for row in rows}) > 1]


def _subject(ladder: SpeedTiers) -> str:
    return f"{ladder.standard.row['model']} on {ladder.standard.row['system']}"


def _times(value: Any) -> str:
    return f"{format_value(value, '')}x"


def _standard(ladder: SpeedTiers) -> str:
    """Note on the standard tier."""
    row = ladder.standard.row
    about = f"{serving.value(row, 'tok_per_s_user')} per user, {serving.layout(row)}, batch {row['batch']}"
    return f"the standard tier is the cheapest {_within(ladder)}: {about}"


def _other_way(ladder: SpeedTiers) -> str:
    """Note on the way of prefill that the standard tier does not have: its price, and the ratio."""
    if ladder.other_way is None:
        return ""
    row, names = ladder.other_way.row, (POOLINGS["apart"], POOLINGS["together"])
    best, dearer = names if row["kind"] == "together" else names[::-1]
    gain = _times(ladder.measured(ladder.other_way)["price_multiple"])
    return f"at the standard tier {best} costs least per request, {dearer} {gain} its price ({serving.layout(row)}, batch {row['batch']})"


def _within(ladder: SpeedTiers) -> str:
    return "of all" if ladder.limit is None else f"with TPOT <= {format_value(_seconds(ladder.limit), 's')}"


def _seconds(limit: Any) -> Any:
    return schema.scalar(limit, schema.fields(SLO)["tpot"][0], "tpot") if isinstance(limit, str) else limit


def _sentence(ladder: SpeedTiers) -> str:
    """Sentence on the cost of the requested speed, and on the speed that no price buys."""
    if ladder.infeasible:
        return sentence(f"{_subject(ladder)}: no standard tier, nothing meets every limit", f": {ladder.infeasible}")
    last = ladder.measured(ladder.rungs[-1])
    most = f"at most {_times(last['speed_multiple'])} at any price"
    price = ladder.between("speed_multiple", ladder.at, "price_multiple")
    speed = f"{_times(ladder.at)} the speed of the standard tier"
    if price is None:
        return sentence(f"{_subject(ladder)}: no price buys {speed}, the cheapest {_within(ladder)}", f"; {most}")
    ratio = ladder.between("speed_multiple", ladder.at, "batch_ratio")
    fewer = f", with {_times(ratio)} fewer sequences per chip"
    apart = "" if ladder.standard.row.get("prefill_chips") is None else ", prefill apart"
    return sentence(f"{_subject(ladder)}{apart}: {speed} costs {_times(price)} its price", fewer, f"; {most}")


def _floor(ladder: SpeedTiers) -> str:
    """What binds the fastest tier."""
    row, multiples = ladder.rungs[-1].row, ladder.measured(ladder.rungs[-1])
    where = f"at {_times(multiples['price_multiple'])} the price, {serving.layout(row)}, batch {row['batch']}"
    return f"the fastest tier has TPOT {timed(row, 'tpot')} {where}: {serving.binds(row)}"


def _bought(ladder: SpeedTiers) -> str:
    """Note on the last step of the tiers."""
    bought = ladder.measured(ladder.rungs[-1]).get("speed_bought")
    return "" if bought is None else f"on the last step to the fastest tier 1 % of price buys {format_value(bought, '')} % of speed"


def _slow(ladder: SpeedTiers) -> list[str]:
    """Note on the savings of a slower tier."""
    if ladder.rungs[0] is ladder.standard:
        return ["no slower tier is cheaper than the standard one"]
    multiples = ladder.measured(ladder.rungs[0])
    price, speed = _times(multiples["price_multiple"]), _times(multiples["speed_multiple"])
    return [f"nothing costs less than {price} the standard price, at {speed} its speed; lower offers sell idle capacity, not batch"]


def _lever(ladder: SpeedTiers) -> list[output.Help]:
    """Larger scale-up domains: price of the requested speed there, and the fastest tier, ranked by its speed."""
    helps, fastest = [], ladder.measured(ladder.rungs[-1])["speed_multiple"]
    for domain in dict.fromkeys(int(rung.domain) for rung in ladder.wider):
        rungs = {rung.kind: (rung.row, ladder.measured(rung)) for rung in ladder.wider if rung.domain == domain}
        parts, gain = [], None
        if "domain" in rungs:
            parts.append(f"{_times(ladder.at)} the speed for {_times(rungs['domain'][1]['price_multiple'])} the price")
        if "domain_floor" in rungs:
            row, measured = rungs["domain_floor"]
            gain = float(measured["speed_multiple"] / fastest - 1)
            parts.append(f"at most {_times(measured['speed_multiple'])}, TPOT {serving.value(row, 'tpot_s')}, where {serving.bound(row)}")
        if gain is None or gain > LEAST_GAIN:
            change = f"a scale-up domain of {domain} instead of {int(ladder.standard.domain)}"
            helps.append(output.Help(change=change, effect="; ".join(parts), gain=gain))
    return output.ranked(helps)


def _offers(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines that compare offers with the tiers, grouped by equal multiples."""
    equal: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        equal.setdefault((row["price_multiple"], row["speed_multiple"], row["basis"]), []).append(row)
    return [_offer(same) for same in equal.values()]


def _offer(rows: Sequence[Mapping[str, Any]]) -> str:
    """Line that compares offers of equal multiples with the tiers."""
    row = rows[0]
    kind = "cost" if row["basis"] == "cost" else "offer"
    speed = "" if row["speed_multiple"] is None else f" for {_times(row['speed_multiple'])} the speed"
    sources = ", ".join(f"{offer['provider']} {offer['model']} {offer['tier']} {offer['date']}" for offer in rows)
    parts = [str(row["standing"])]
    if row["ladder_price_multiple"] is not None:
        share = f"{_times(row['offer_over_ladder'])} the tiers' {_times(row['ladder_price_multiple'])}"
        parts = [f"{row['standing']}, {share} there"]
    if row["ladder_speed_multiple"] is not None:
        parts.append(f"here that price buys {_times(row['ladder_speed_multiple'])}")
    return f"{kind}: {_times(row['price_multiple'])} the price{speed}: {'; '.join(parts)} ({sources})"


# -- picture ----------------------------------------------------------------------------------------------------------------------


def _drawing(rows: Rows, view: View) -> Picture:
    """Picture of price multiple against speed multiple: tiers as a line, larger domains and offers as points."""
    tiers = [row for row in rows if row["kind"] not in POOLINGS]
    point_rows = [row for row in tiers if row["price_multiple"] is not None and row["speed_multiple"] is not None]
    titles = {f"{row['model']} on {row['system']}" for row in point_rows if row["kind"] in OF_RUNGS}
    points = [
        {"x": row["speed_multiple"], "y": row["price_multiple"], "kind": _line(row), "name": _label(row), "batch": row["batch"],
         "subject": f"{row['model']} {row['system']}", "above": row["standing"] == "above the ladder",
         "ladder": row["ladder_price_multiple"]}
        for row in point_rows
    ]  # fmt: skip
    return words.ladder(points, view, ", ".join(sorted(titles)) or "Price against speed")


def _line(row: Mapping[str, Any]) -> str:
    if row["kind"] == "offer":
        return "cost measured" if row["basis"] == "cost" else "offered"
    return "the ladder" if row["kind"] in OF_RUNGS else "larger domain"


def _label(row: Mapping[str, Any]) -> str:
    return f"{row['model']} {row['tier']}" if row["kind"] == "offer" else f"domain of {row['scale_up_domain']} chips"
