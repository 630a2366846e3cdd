"""`headway rack SYSTEM --chips 72,144,576`, `headway rack --by-year`: cables, all-to-all time and memory of scale-up domains."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import columns, schema
from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing, cell, clean, format_value, place_of
from headway.core.notes import noted
from headway.core.quantity import default
from headway.core.trace import record
from headway.hardware import rack as domain_rack
from headway.hardware.questions import DomainRequest, Rack
from headway.hardware.rack import cached_needs, catalogue_needs, domain, domains, need
from headway.hardware.rack_facts import RackFacts, rack_facts
from headway.hardware.system import RANK, system
from headway.models.work import work_of
from headway.report import output, rack_pictures
from headway.report.pictures import years
from headway.report.words import sentence

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.hardware.system import System
    from headway.report.pictures.frame import Picture, View

MOST_ROWS = 1000
HOST = 8  # most chips of one host
YEARS = ("year", "vendor", "system", "scale_up_domain", "topology", "domain_hbm", "drain_s", "latency_floor_s", "params_fit",
         "largest_model", "largest_floor_s", "models_fit")  # fmt: skip
BRIEF = ("chips", "star_cables", "mesh_cables", "clos_switches", "domain_power", "domain_weight", "cooling", "one_rack", "domain_hbm",
         "domain_bisection", "alltoall_s", "alltoall_racks_s", "latency_floor_s", "models_fit")  # fmt: skip
# panel -> columns drawn in it, with the label of each line
ABREAST = 5  # most domains side by side; more are a table of BRIEF


def run(args: Rack) -> output.Answer:
    """Answer with a row per domain."""
    return _by_year(args) if args.by_year else _of_system(args)


def _of_system(args: Rack) -> output.Answer:
    """Answer with a row for each combination of the inputs, each with its assumed facts and edits."""
    if args.system is None:
        raise BadValue("rack", "no system", "a system, such as headway rack gb200-nvl72 --chips 72,144,576, or --by-year")
    with noted() as book:
        domain_values, fact_values = schema.read(args, DomainRequest, most=MOST_ROWS), schema.read(args, RackFacts)
    axes = schema.axes(domain_values | fact_values)
    points = [dict(zip(axes, values, strict=True)) for values in itertools.islice(itertools.product(*axes.values()), MOST_ROWS + 1)]
    systems, models = arguments.systems(args, args.system), arguments.split(args.model, "--model")
    if len(points) * len(systems) * len(models) > MOST_ROWS:
        raise BadValue("rack", "more points", f"at most {MOST_ROWS}")
    rows, makes, notes = list[dict[str, Any]](), list[Callable[[str], Any]](), list[str]()
    for (machine, edits), name, point in itertools.product(systems, models, points):
        user_facts = {key: point[key] for key in fact_values}
        facts = dataclasses.replace(rack_facts(machine.chip.name, arguments.catalog(args)), **user_facts)
        domain_request = schema.defaults(DomainRequest, {key: point[key] for key in domain_values})
        makes.append(functools.partial(_domain, args, machine, name, facts, domain_request))
        rows.append(clean(dataclasses.asdict(makes[-1](ALL_MODELS))) | clean(user_facts | edits))
        notes += _about(machine, facts)

    def tree(row: Mapping[str, Any], key: str) -> Any:
        return _explained(makes[place_of(row, rows)], key)

    listing = Listing(rows, notes=(*book.texts, *NOTES, *dict.fromkeys(notes)), tree=tree)
    return output.Answer(listing, describe=_describe, pictures=_pictures(args, len(rows) > 1), columns=_own_columns(), most=100)


ALL_MODELS = "all models of the catalogue, computed once"


def _needs(key: str, context: Any) -> Any:
    """What the catalogue's models need, with formulas recorded for a number that depends on them."""
    return cached_needs(context) if key == ALL_MODELS else catalogue_needs(context) if key.startswith(("models", "largest")) else ()


def _domain(args: Rack, machine: System, name: Any, facts: RackFacts, ask: DomainRequest, key: str) -> domain_rack.RackDomain:
    """Row of a domain, with what the number `key` of it takes."""
    model = arguments.model(name, args)
    request = domain_rack.RackRequest(
        chips=ask.chips or machine.scale_up_domain, model=model, need=need(model, ask.context), batch=ask.batch, context=ask.context
    )
    return domain_rack.rack(machine, facts, request, _needs(key, ask.context))


def _explained(make: Callable[[str], Any], key: str) -> Any:
    """Formula tree of a number of a row."""
    with record():
        value = getattr(make(key), key, None)
    if not isinstance(value, float | int):
        raise BadValue("--explain", key, "a column that has a number in this row")
    return value


def _own_columns() -> dict[str, Any]:
    return {"chips": Column("", "chips in one scale-up domain"), "batch": Column("token", schema.fields(DomainRequest)["batch"][0].help),
            "context": Column("token", schema.fields(DomainRequest)["context"][0].help),
            "fits": Column("bool", "whether the model and one sequence of `context` fit in the domain")}  # fmt: skip


def _pictures(args: Rack, several: bool) -> dict[str, Any]:
    """Pictures of domains by name: along their size, of the wiring, of an expert layer."""

    def sizes(rows: Rows, view: View) -> Picture:
        return rack_pictures.sizes(list(rows), view)

    def wiring(rows: Rows, view: View) -> Picture:
        return rack_pictures.wiring(_first(rows), view)

    def experts(rows: Rows, view: View) -> Picture:
        row = _first(rows)
        block = next((block for block in work_of(arguments.model(row["model"], args)).blocks if block.experts), None)
        if block is None:
            raise BadValue("--picture", "experts", f"a model with routed experts; {row['model']} has none")
        return rack_pictures.experts(row, int(block.experts), int(block.experts_per_token), view)

    drawings = {"wiring": wiring, "experts": experts, "sizes": sizes}
    return {"sizes": sizes, **drawings} if several else drawings


def _first(rows: Rows) -> Any:
    row = next(iter(rows), None)
    if row is None:
        raise BadValue("--plot", "no rows", "rows to draw")
    return row


def _year_drawing(rows: Rows, view: View) -> Picture:
    plain = list(rows)
    quantities = (("scale_up_domain", "Chips in a scale-up domain (log)", "count"), ("domain_hbm", "Memory of the domain (log)", "byte"),
                  ("latency_floor_s", "Least decode step (log)", "s"))  # fmt: skip
    dated = [row for row in plain if row.get("year") is not None and row.get("scale_up_domain")]
    title = "Domains by the year they came out"
    if dated:
        first = min(row["year"] for row in dated)
        early, late = (max(of, key=lambda row: row["scale_up_domain"]) for of in ([row for row in dated if row["year"] == first], dated))
        title = f"The largest domain: {early['scale_up_domain']:,g} chips in {first}, {late['scale_up_domain']:,g} in {late['year']}"
    systems = years.Sides(name="system", is_lit=lambda row: (row["scale_up_domain"] or 0) > HOST, lit=f"domains of more than {HOST}",
                          rest="hosts")  # fmt: skip
    subtitle = f"each point is a system by the year it came out; steps of {plain[0]['model'] if plain else 'a model'}"
    return years.picture(plain, quantities, systems, {}, view, title=title, subtitle=subtitle,
                         caption="A step is never faster than reading the weights with the whole domain.")  # fmt: skip


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe(rows: Rows) -> output.Summary:
    domains = list(rows)
    first, *clauses = (f"{clause}" for clause in _point(domains[0]))
    last = "".join(f"; {_point(row)[0]}" for row in domains[1:ABREAST])
    headline = sentence(f"{domains[0]['system']}: {first}", *(f", {clause}" for clause in clauses), last)
    if len(domains) > ABREAST:
        return output.Summary(headline, BRIEF)
    remarks = [_fitting(row) for row in domains]
    return output.Summary(headline, people=Listing(_side_by_side(domains)), remarks=remarks, first=("fact",))


def _point(row: dict[str, Any]) -> list[str]:
    """Clauses on one domain, the most telling first."""
    fit = "" if row["fits"] is None else f"{row['model']} {'fits' if row['fits'] else 'does not fit'}"
    over = str(row["one_rack"]).removeprefix("no: ")
    rack_text = {"yes": "one rack holds it", None: ""}.get(row["one_rack"], f"one rack cannot hold it ({over})")
    labels = {"star_cables": "cables to central switches", "domain_power": "", "domain_weight": "", "latency_floor_s": "floor"}
    parts = [f"{cell(key, row)} {word}".strip() for key, word in labels.items() if row.get(key) is not None]
    known = [part for part in (fit, rack_text, *parts) if part] or ["no public figure to go by"]
    return [f"{_chips(row)}: {known[0]}", *known[1:]]


def _chips(row: dict[str, Any]) -> str:
    return f"{row['chips']} chip{'' if row['chips'] == 1 else 's'}"


def _side_by_side(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Table of domains side by side: a line per key with a value."""
    rack_columns = _own_columns()
    keys = [key for key in rows[0] if key != "fitting"]
    heads = [_chips(row) for row in rows]
    heads = heads if len(set(heads)) == len(heads) else [f"({number})" for number in range(1, len(rows) + 1)]
    lines = []
    for key in keys:
        cells = [cell(key, row) for row in rows]
        if any(cell != "-" for cell in cells):
            about = (rack_columns.get(key) or columns.column(key)).doc
            lines.append({"fact": key} | dict(zip(heads, cells, strict=True)) | {"about": about})
    return lines


def _fitting(row: dict[str, Any]) -> str:
    """Text on the largest models that fit, with their latency floors."""
    models = [f"{model['model']} {format_value(model['latency_floor_s'], 's')}" for model in row["fitting"][:8]]
    more = f", and {len(row['fitting']) - 8} smaller" if len(row["fitting"]) > 8 else ""
    return f"fit in {_chips(row)}, largest first, with their floors: {', '.join(models) or 'none'}{more}"


NOTES = (
    "a mesh has one link per pair of chips; cables are differential pairs, as an NVL72's 5,184 are number_of",
    "floors: bytes over peak bandwidth, weights as in the checkpoint, spread evenly over the domain; no latency number_of",
)


def _about(system: System, facts: RackFacts) -> list[str]:
    """Notes on the facts scaled from a system, and on its unknown facts."""
    notes = [f"power and weight scale with the chips from the {system.chips} of {system.name}"]
    limits = {"room air": (facts.air_limit, "W"), "liquid": (facts.liquid_limit, "W"), "cabinet": (facts.cabinet_limit, "kg")}
    limits["floor"] = facts.floor_limit, "kg/m^2"
    limit_text = ", ".join(f"{name} {format_value(*limit)}" for name, limit in limits.items() if limit[0] is not None)
    notes.append(f"limits of one rack: {limit_text}; --air-limit, --liquid-limit, --cabinet-limit and --floor-limit change them")
    missing = [field.name for field in dataclasses.fields(facts) if getattr(facts, field.name) is None]
    missing += [f"system.{key}" for key in ("power", "weight", "scale_out_bw") if getattr(system, key) is None]
    if missing:
        how = "each can be given, as in --rack-units 48 or --set system.power=120kW"
        notes.append(f"{system.name}: not public and left out: {', '.join(missing)} ({how})")
    if system.topology not in (*RANK, "switch", "mesh"):
        notes.append(f"{system.name}: its bisection is known at the published size only; elsewhere the all-to-all runs at full link rate")
    return notes


# -- by year --------------------------------------------------------------------------------------------------------------------


def _by_year(args: Rack) -> output.Answer:
    keys = [key for record in (DomainRequest, RackFacts) for key in schema.fields(record) if key != "context"]
    beside = [*filter(None, (args.system,)), *(schema.flag(key) for key in keys if getattr(args, key) is not None), *args.set]
    if beside:
        raise BadValue("--by-year", ", ".join(beside), "only --model and --context beside it: it lists every system")
    domain_values = schema.read(args, DomainRequest, most=MOST_ROWS)
    context = domain_values.get("context", default(8192, "context", "token", "default of Domain.context"))
    if isinstance(context, tuple):
        raise BadValue("--context", args.context, "one context beside --by-year")
    model, where = arguments.model(args.model, args), arguments.catalog(args)
    rows = clean([dataclasses.asdict(row) for row in domains(need(model, context), context, cached_needs(context), where)])

    def tree(row: Mapping[str, Any], key: str) -> Any:
        return _explained(lambda key: domain(system(row["system"], where), need(model, context), context, _needs(key, context)), key)

    return output.Answer(
        Listing(rows, tree=tree), describe=_years, pictures={"years": _year_drawing}, columns=_own_columns(), most=1000
    )


def _years(rows: Rows) -> output.Summary:
    domain_rows = [row for row in rows if row["latency_floor_s"] is not None]
    if not domain_rows:
        return output.Summary("No system's domain holds the model.", YEARS)
    first, best = domain_rows[0], min(domain_rows, key=lambda row: row["latency_floor_s"])
    about = f"{first['model']} with {cell('context', first)} tokens of context"
    earliest = f"{first['system']} ({first['year']}, {first['scale_up_domain']} chips, floor {cell('latency_floor_s', first)})"
    lowest = f"{best['system']} ({best['year']}, {best['scale_up_domain']} chips, {cell('latency_floor_s', best)})"
    headline = sentence(f"{about} first fits in one domain with {earliest}", f"; lowest floor: {lowest}")
    return output.Summary(headline, YEARS, first=("year", "system"))
