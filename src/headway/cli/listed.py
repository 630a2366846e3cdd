"""`headway list models|chips|systems|tiers|sheets|laws|sources`."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway import facts, output
from headway.cli import subjects
from headway.errors import UnknownName
from headway.listing import Listing

KINDS = ("models", "chips", "systems", "tiers", "sheets", "laws", "sources")


def add_flags(parser: Any) -> None:
    """What to list."""
    parser.add_argument("what", metavar="|".join(KINDS))


def run(args: Any) -> output.Answer:
    """One row for each."""
    if args.what not in KINDS:
        raise UnknownName("kind of thing to list", args.what, KINDS, "one of " + ", ".join(KINDS))
    makers = {
        "models": _models, "chips": _chips, "systems": _systems, "tiers": _tiers, "sheets": _sheets, "laws": _laws, "sources": _sources,
    }  # fmt: skip
    rows, view = makers[args.what](args)
    own = _tier_columns() if args.what == "tiers" else {}
    return output.Answer(Listing(rows), describe=lambda kept: output.Words(f"{len(kept)} {args.what}", view), columns=own, most=100_000)


def _models(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.about_model import list_models

    return [_plain(row) for row in list_models()], ()


def _chips(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.about import list_chips
    from headway.chip import Chip

    keys = ("name", "vendor", *facts.declared(Chip))
    view = ("name", "vendor", "year", "peak_bf16", "peak_fp8", "peak_fp4", "hbm", "hbm_bw", "scale_up_bw", "scale_up_domain", "tdp")
    return [output.clean({key: getattr(chip, key) for key in keys}) for chip in list_chips(subjects.catalog(args))], view


def _systems(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.about import list_systems
    from headway.system import System

    rows = []
    for system in list_systems(subjects.catalog(args)):
        texts = {"name": system.name, "chip": system.chip.name, "topology": system.topology}
        rows.append(output.clean(texts | {key: getattr(system, key) for key in facts.declared(System)}))
    return rows, ("name", "chip", "topology", "chips", "scale_up_domain", "scale_up_bw", "scale_out_bw", "power")


def _tiers(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Devices that can hold a KV cache: what they hold, how long it takes to read it all, what a byte costs and since when."""
    from headway.laws.drain import drain_s
    from headway.tier import Tier, tiers
    from headway.tier_cost import price_of

    rows = []
    for one in tiers(subjects.catalog(args)):
        quoted = next((fact for fact in (one.price, one.price_low, one.fee) if fact is not None), None)
        drain = drain_s(one.capacity, one.read_bw) if one.capacity is not None and one.read_bw is not None else None
        told = {"name": one.name, "memory": one.memory, "device": one.device}
        told |= {key: getattr(one, key) for key in facts.declared(Tier) if not key.startswith(("price", "fee"))} | {"drain_s": drain}
        told |= {"device_usd_per_byte": price_of(one), "device_usd_per_byte_lo": one.price_low, "device_usd_per_byte_hi": one.price_high}
        rows.append(output.clean(told | {"fee_usd_per_byte_s": one.fee, "price_date": quoted.date if quoted is not None else None}))
    price = ("device_usd_per_byte", "fee_usd_per_byte_s", "price_date")
    return rows, ("name", "memory", "device", "capacity", "read_bw", "write_bw", "drain_s", *price)


def _tier_columns() -> dict[str, Any]:
    """What means something of its own here."""
    from headway import schema
    from headway.columns import Column
    from headway.tier import Tier

    found = {key: Column(q.unit, q.help) for key, (q, _) in schema.fields(Tier).items()}
    price = "price of a byte: the stated one, or the middle of a range"
    ends = {"": price, "_lo": "the low end of that range", "_hi": "its high end"}
    return found | {f"device_usd_per_byte{end}": Column("USD/byte", doc) for end, doc in ends.items()}


def _sheets(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.sheets.catalogue import sheets

    rows = []
    for one in sheets(subjects.catalog(args)):
        rates = {"input_rate": one.rates.input, "output_rate": one.rates.output, "cached_rate": one.rates.cache_read}
        texts = {"steps": [tier.above for tier in one.tiers], "modes": ", ".join(mode.name for mode in one.modes)}
        about = {"name": f"{one.provider}/{one.model}", "as_of": one.as_of} | rates | texts
        rows.append(output.clean(about | {"context_limit": one.context_limit, "source": one.source, "flags": "; ".join(one.flags)}))
    return rows, ("name", "as_of", "input_rate", "output_rate", "cached_rate", "steps", "modes", "source")


def _sources(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.about import list_sources

    return [_plain(row) for row in list_sources(subjects.catalog(args))], ()


def _laws(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.explain import equation, unit
    from headway.formula import REGISTRY

    load_laws()
    rows = []
    for name, law in sorted(REGISTRY.items(), key=lambda item: (item[1].module, item[0])):
        doc = (law.run.__doc__ or "").strip().partition("\n")[0]
        row = {"name": name, "module": law.module, "unit": unit(law), "law": doc, "equation": equation(law)}
        rows.append(row | {"source": law.source, "empirical": law.empirical})
    return rows, ("name", "module", "unit", "law", "source")


def load_laws() -> None:
    """Import every file of laws, so that each registers."""
    import importlib
    import pkgutil

    from headway import laws

    for module in pkgutil.iter_modules(laws.__path__):
        importlib.import_module(f"headway.laws.{module.name}")


def _plain(record: Any) -> dict[str, Any]:
    return output.clean(dataclasses.asdict(record) if dataclasses.is_dataclass(record) and not isinstance(record, type) else record)
