"""`headway rack SYSTEM --chips 72,144,576`, and `headway rack --by-year`."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Annotated, Any

from headway import output, schema
from headway.cli import subjects
from headway.errors import BadValue
from headway.listing import Listing
from headway.quantity import default
from headway.rack_facts import RackFacts, rack_facts
from headway.schema import Q
from headway.system import MOST_CHIPS
from headway.workload import MOST

MODEL = "deepseek-v3"
MOST_ROWS = 1000
YEARS = ("year", "vendor", "system", "scale_up_domain", "topology", "domain_hbm", "drain_s", "latency_floor_s", "largest_model", "largest_floor_s",
         "models_fit")  # fmt: skip
BRIEF = ("chips", "star_cables", "mesh_cables", "clos_switches", "domain_power", "domain_weight", "cooling", "one_rack", "domain_hbm",
         "domain_bisection", "alltoall_s", "alltoall_racks_s", "latency_floor_s", "models_fit")  # fmt: skip
ABREAST = 5  # domains shown side by side; more are a table of BRIEF


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What a domain is asked for."""

    chips: Annotated[Any, Q(whole=True, low=1, open_low=False, high=MOST_CHIPS, help="chips in one scale-up domain (default: the system's)")] = None
    batch: Annotated[Any, Q("token", whole=True, low=1, open_low=False, high=MOST, help="tokens per step of the whole domain, for the all-to-all")] = 2400
    context: Annotated[Any, Q("token", whole=True, low=1, open_low=False, high=MOST, help="context of the one sequence that must fit")] = 8192


def add_flags(parser: Any) -> None:
    """The system to scale, what to judge it by, and facts to assume."""
    parser.add_argument("system", nargs="?", help="the known rack: gb200-nvl72, 8xh100-sxm, tpu-v7-pod")
    parser.add_argument("--model", default=MODEL, metavar="NAME", help=f"model for the all-to-all and the floor (default {MODEL})")
    parser.add_argument("--by-year", action="store_true", help="domains of every system of the catalogue instead, by year and vendor")
    schema.add_flags(parser, Domain, group="domain")
    schema.add_flags(parser, RackFacts, group="facts of the rack to assume (default: what is published)")


def run(args: Any) -> output.Answer:
    """One row per domain."""
    return _by_year(args) if args.by_year else _of_system(args)


def _of_system(args: Any) -> output.Answer:
    if args.system is None:
        raise BadValue("rack", "no system", "a system, such as headway rack gb200-nvl72 --chips 72,144,576, or --by-year")
    if args.model is not None and not args.model.strip():
        raise BadValue("--model", args.model, "a catalogue name (headway list models), a path to a config.json, or a Hugging Face id")
    args.on = args.system
    asked, notes = schema.read(args, Domain)
    assumed, more = schema.read(args, RackFacts)
    cases = _cases(args, asked, assumed)
    found = [(output.clean(dataclasses.asdict(case.rack())) | extra) for case, extra in cases]

    def tree(row: Any, key: str) -> Any:
        return _explained(cases[found.index({name: row[name] for name in found[0]})][0].explained, key)

    rows = Listing(found, notes=(*notes, *more, *_notes(cases[0][0])), tree=tree)
    return output.Answer(rows, describe=_describe, columns=_own_columns())


@dataclasses.dataclass(frozen=True, slots=True)
class _Case:
    """One point of the grid."""

    args: Any
    system: Any
    facts: RackFacts
    chips: Any
    batch: Any
    context: Any

    def rack(self) -> Any:
        """Its row, the catalogue's models read once."""
        from headway.rack_fit import cached_needs

        return self._row(cached_needs(self.context))

    def explained(self, key: str) -> Any:
        """Its row with every formula recorded; the catalogue's models only where the key is about them."""
        from headway.rack_fit import catalogue_needs

        return self._row(catalogue_needs(self.context) if key.startswith(("models", "largest")) else ())

    def _row(self, needs: Any) -> Any:
        from headway.rack import Ask, rack
        from headway.rack_fit import need

        model = subjects.model(self.args.model, self.args)
        ask = Ask(chips=self.chips, model=model, need=need(model, self.context), batch=self.batch, context=self.context)
        return rack(self.system, self.facts, ask, needs)


def _cases(args: Any, asked: dict[str, Any], assumed: dict[str, Any]) -> list[tuple[_Case, dict[str, Any]]]:
    """Every combination of what was asked for, with the assumed facts and edits that it was taken at."""
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in (asked | assumed).items()}
    points = [dict(zip(axes, values, strict=True)) for values in itertools.islice(itertools.product(*axes.values()), MOST_ROWS + 1)]
    systems = subjects.systems(args)
    if len(points) * len(systems) > MOST_ROWS:
        raise BadValue("rack", "more points", f"at most {MOST_ROWS}")
    found = []
    for (system, edits), point in itertools.product(systems, points):
        facts = rack_facts(system.chip.name, subjects.catalog(args))
        own = {key: point[key] for key in assumed}
        plain = schema.defaults(Domain, {key: point[key] for key in asked})
        case = _Case(args, system, dataclasses.replace(facts, **own), plain.chips or system.scale_up_domain, plain.batch, plain.context)
        found.append((case, output.clean({key: value for key, value in (own | edits).items()})))
    return found


def _explained(make: Any, key: str) -> Any:
    """The tree behind one number of one row."""
    from headway.formula import record

    with record():
        value = getattr(make(key), key, None)
    if not isinstance(value, float | int):
        raise BadValue("--explain", key, "a column that has a number in this row")
    return value


def _own_columns() -> dict[str, Any]:
    from headway.columns import Column

    return {"chips": Column("", "chips in one scale-up domain"), "batch": Column("token", schema.fields(Domain)["batch"][0].help),
            "context": Column("token", schema.fields(Domain)["context"][0].help)}  # fmt: skip


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe(rows: Any) -> output.Words:
    kept = list(rows)
    if not kept:
        return output.Words("No row is left.")
    headline = f"{kept[0]['system']}: " + "; ".join(_point(row) for row in (kept if len(kept) < 3 else (kept[0], kept[-1])))
    if len(kept) > ABREAST:
        return output.Words(headline, BRIEF)
    return output.Words(headline, after=[_fitting(row) for row in kept], people=Listing(_abreast(kept)))


def _point(row: dict[str, Any]) -> str:
    """One domain in a few words."""
    told = {"star_cables": "cables to central switches", "mesh_cables": "for a mesh", "domain_power": "", "domain_weight": "", "latency_floor_s": "floor"}
    parts = [f"{output.cell(key, row)} {word}".strip() for key, word in told.items() if row.get(key) is not None]
    fit = "" if row["fits"] is None else f"{row['model']} {'fits' if row['fits'] else 'does not fit'}"
    one = {"yes": "one rack holds it", None: ""}.get(row["one_rack"], f"one rack cannot hold it ({str(row['one_rack']).removeprefix('no: ')})")
    return f"{row['chips']} chips: " + ", ".join(part for part in (*parts, fit, one) if part)


def _abreast(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The domains side by side: a line for each key that has something to say."""
    from headway import columns

    own = _own_columns()
    keys = [key for key in rows[0] if key not in ("system", "fitting")]
    lines = []
    for key in keys:
        cells = [output.cell(key, row) for row in rows]
        if any(cell != "-" for cell in cells):
            lines.append({"fact": key} | {f"({number})": cell for number, cell in enumerate(cells, 1)} | {"about": (own.get(key) or columns.column(key)).doc})
    return lines


def _fitting(row: dict[str, Any]) -> str:
    """The largest models that fit, with their floors."""
    named = [f"{one['model']} {output.shown(one['latency_floor_s'], 's')}" for one in row["fitting"][:8]]
    more = f", and {len(row['fitting']) - 8} smaller" if len(row["fitting"]) > 8 else ""
    return f"fit in {row['chips']} chips, largest first, with their floors: {', '.join(named) or 'none'}{more}"


def _notes(case: _Case) -> list[str]:
    """What the numbers take for granted, and which facts are not public."""
    from headway.system import RANK

    system, facts = case.system, case.facts
    missing = [key for key, value in ((field.name, getattr(facts, field.name)) for field in dataclasses.fields(facts)) if value is None]
    missing += [f"system.{key}" for key in ("power", "weight", "scale_out_bw") if getattr(system, key) is None]
    notes = [f"power and weight scale with the chips from the {system.chips} of {system.name}; a mesh has one link per pair; cables are differential pairs"]
    notes.append("floors: bytes over peak bandwidth, weights as in the checkpoint, spread evenly over the domain; no latency counted")
    if missing:
        notes.append(f"not public, so left out (each can be given, --rack-units 48, --set system.power=120kW): {', '.join(missing)}")
    if system.topology not in (*RANK, "switch", "mesh"):
        notes.append(f"{system.topology}: bisection is known at the published size only; elsewhere the all-to-all runs at full link rate")
    return notes


# -- by year --------------------------------------------------------------------------------------------------------------------


def _by_year(args: Any) -> output.Answer:
    from headway.domains import domain, domains
    from headway.rack_fit import cached_needs, catalogue_needs, need
    from headway.system import system

    given = [schema.flag(key) for record in (Domain, RackFacts) for key in schema.fields(record) if key != "context" and getattr(args, key) is not None]
    if args.system is not None or given or args.set:
        raise BadValue("--by-year", args.system or ", ".join([*given, *args.set]), "only --model and --context beside it: it lists every system")
    asked, notes = schema.read(args, Domain)
    context = asked.get("context", default(8192, "context", "token", "default of Domain.context"))
    if isinstance(context, tuple):
        raise BadValue("--context", args.context, "one context beside --by-year")
    model, where = subjects.model(args.model, args), subjects.catalog(args)
    rows = output.clean([dataclasses.asdict(row) for row in domains(need(model, context), context, cached_needs(context), where)])

    def tree(row: Any, key: str) -> Any:
        def make(key: str) -> Any:
            needs = catalogue_needs(context) if key.startswith(("models", "largest")) else ()
            return domain(system(row["system"], where), need(model, context), context, needs)

        return _explained(make, key)

    return output.Answer(Listing(rows, notes=tuple(notes), tree=tree), describe=_years, most=1000)


def _years(rows: Any) -> output.Words:
    kept = [row for row in rows if row["latency_floor_s"] is not None]
    if not kept:
        return output.Words("No system's domain holds it.", YEARS)
    first, best = kept[0], min(kept, key=lambda row: row["latency_floor_s"])
    return output.Words(
        f"{first['model']} at {output.cell('context', first)} first fits in a {first['system']} ({first['year']}, {first['scale_up_domain']} chips, "
        f"floor {output.cell('latency_floor_s', first)}); the lowest floor is {output.cell('latency_floor_s', best)} on {best['system']} ({best['year']})",
        YEARS,
    )
