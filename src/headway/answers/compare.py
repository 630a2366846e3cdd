"""`headway compare A,B ...`: machines or models side by side, with ratios to the first."""

from __future__ import annotations

from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.catalog import default_catalog
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import traced_listing
from headway.core.quantity import default
from headway.core.question import Edits, refuse
from headway.core.schema import Field
from headway.core.trace import record
from headway.hardware.compare import machine_rows, model_rows, watts_of
from headway.hardware.questions import Compare
from headway.hardware.system import market_kinds, system
from headway.models.describe import about_model
from headway.report import compare as words
from headway.report import compare_picture, output

COST, POWER = Field("USD/s", "", bare="USD/h"), Field("W", "")
CONTEXT = "8192"


def run(args: Compare) -> output.Answer:
    """Answer with a row per machine or model."""
    names = [name for text in args.names for name in arguments.split(text, "name")]
    if len(names) < 2:
        raise BadValue("compare", ", ".join(names), "two names or more, such as h100-sxm,b200-sxm")
    basis = "usd" if args.cost else "watt" if args.power else args.per
    if (args.cost and args.power) or (args.per != "chip" and basis != args.per):
        raise BadValue("--per", args.per, "one basis: --per, --cost or --power")
    systems = _systems(names, args)
    notes: list[str] = []
    with record():
        if systems is None:
            if basis != "chip":
                raise BadValue("--per", basis, "machines; models have no price and no power")
            refuse(args, {"set": "a machine to edit"})
            context = default(int(CONTEXT), "context", "token", "context at which KV read per token is taken")
            traced = model_rows([about_model(arguments.model(name, args), context) for name in names])
        else:
            refuse(args, {name: "a verb about a model" for name in schema.fields(Edits) if name not in ("set", "catalog")})
            cost = schema.scalar(args.cost, COST, "--cost") if args.cost else None
            power = schema.scalar(args.power, POWER, "--power") if args.power else None
            watts, power_basis = watts_of(systems, arguments.catalog(args) or default_catalog())
            notes = [*filter(None, [market_kinds(systems)]), f"power of a chip: {power_basis}, of every machine here"]
            traced = machine_rows(systems, basis, cost, power, watts)
    table = words.MODELS if systems is None else words.MACHINES
    return output.Answer(
        traced_listing(traced), notes=notes, describe=lambda rows: words.side_by_side(rows, basis, systems is None), columns=table,
        pictures={"figures": lambda rows, view: compare_picture.figures(list(rows), basis, systems is None, view)},
    )  # fmt: skip


def _systems(names: list[str], args: Compare) -> list[Any] | None:
    """The machines of these names with edits; None where they are models."""
    catalog = arguments.catalog(args)
    machines, strangers = [], []
    for name in names:
        try:
            machines.append(system(name, catalog).name)
        except UnknownName:
            strangers.append(name)
    if not machines:
        return None
    if strangers:
        kinds = f"machines ({', '.join(machines)}) or models, not both; {strangers[0]} is no machine"
        raise BadValue("compare", ", ".join(names), kinds)
    return [machine for machine, _ in arguments.systems(args, tuple(dict.fromkeys(names)))]
