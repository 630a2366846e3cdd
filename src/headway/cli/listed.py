"""`headway list models|chips|systems|sheets|laws|sources`."""

from __future__ import annotations

import dataclasses
from typing import Any

from headway import facts, output
from headway.cli import subjects
from headway.errors import UnknownName
from headway.listing import Listing

KINDS = ("models", "chips", "systems", "sheets", "laws", "sources")


def add_flags(parser: Any) -> None:
    """What to list."""
    parser.add_argument("what", metavar="|".join(KINDS))


def run(args: Any) -> output.Answer:
    """One row for each."""
    if args.what not in KINDS:
        raise UnknownName("kind of thing to list", args.what, KINDS, "one of " + ", ".join(KINDS))
    rows, view = {"models": _models, "chips": _chips, "systems": _systems, "sheets": _sheets, "laws": _laws, "sources": _sources}[
        args.what
    ](args)
    return output.Answer(Listing(rows), describe=lambda kept: output.Words(f"{len(kept)} {args.what}", view), most=100_000)


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
