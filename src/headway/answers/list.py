"""`headway list models|chips|systems|tiers|sheets|laws|sources|evidence`: one row per entry of the catalogue or registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.answers import arguments
from headway.core import catalog, schema
from headway.core.columns import Column
from headway.core.errors import check_known
from headway.core.listing import Listing, clean
from headway.report import output, prediction_pictures

COLUMNS = {
    "hf_id": Column("", "name of the repository on Hugging Face"),
    "facts": Column("", "facts of chips and systems that come from the source"),
    "module": Column("", "module of the law"),
    "equation": Column("", "the law as an equation"),
    "family": Column("", "kernels that the chip shares with others"),
    "engine": Column("", "program that served the model"),
    "model_class": Column("", "structure and size of the models"),
    "measure": Column("", "what was measured"),
    "rows": Column("count", "number of measurements"),
    "median_error": Column("", "median of |predicted / measured - 1|"),
    "cross_validated": Column("", "whether the fit that predicted them had not seen them"),
    "sources": Column("", "keys of the sources of the measurements, as in docs/accuracy_serving.md"),
    "empirical": Column("", "why the units of the law are not checked, where it is a fit to measurements"),
}


def run(args: Any) -> output.Answer:
    """Answer with a row per item of the list."""
    check_known("kind of thing to list", args.what, KINDS)
    rows, view = KINDS[args.what](args)
    columns = COLUMNS | (_tier_columns() if args.what == "tiers" else {})

    def describe(table: Any) -> output.Summary:
        if args.what == "evidence":
            words = (
                f"{sum(row['rows'] for row in table):,} measurements in {len(table):,} groups, predicted by fits that had not seen them."
            )
            return output.Summary(words, view, first=("chip", "engine", "model_class"))
        return output.Summary(f"{len(table):,} {args.what}.", view, first=("name",))

    pictures = {"evidence": _errors} if args.what == "evidence" else {}
    return output.Answer(Listing(rows), describe=describe, describes_none=True, columns=columns, most=100_000, pictures=pictures)


def _models(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.models.describe import list_models

    return clean(list_models()), ()


def _chips(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.hardware.chip import Chip
    from headway.hardware.describe import list_chips

    keys = ("name", "vendor", *catalog.declared(Chip))
    view = ("name", "vendor", "year", "peak_bf16", "peak_fp8", "peak_fp4", "hbm", "hbm_bw", "scale_up_bw", "scale_up_domain", "tdp")
    return [clean({key: getattr(chip, key) for key in keys}) for chip in list_chips(arguments.catalog(args))], view


def _systems(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.hardware.describe import list_systems
    from headway.hardware.system import System

    rows = []
    for system in list_systems(arguments.catalog(args)):
        texts = {"name": system.name, "chip": system.chip.name, "topology": system.topology}
        rows.append(clean(texts | {key: getattr(system, key) for key in catalog.declared(System)}))
    return rows, ("name", "chip", "topology", "chips", "scale_up_domain", "scale_up_bw", "scale_out_bw", "power")


def _tiers(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Rows of memory devices for a KV cache: capacity, drain time, price per byte and its date."""
    from headway.hardware.memory_tier import MemoryTier, own_price, tiers
    from headway.laws.roofline.balance import drain_s

    rows = []
    for tier in tiers(arguments.catalog(args)):
        quoted = next((fact for fact in (tier.price, tier.price_low, tier.fee) if fact is not None), None)
        drain = drain_s(tier.capacity, tier.read_bw) if tier.capacity is not None and tier.read_bw is not None else None
        row = {"name": tier.name, "memory": tier.memory, "device": tier.device}
        row |= {key: getattr(tier, key) for key in catalog.declared(MemoryTier) if not key.startswith(("price", "fee"))} | {
            "drain_s": drain
        }
        row |= {"device_usd_per_byte": own_price(tier), "device_usd_per_byte_lo": tier.price_low, "device_usd_per_byte_hi": tier.price_high}
        rows.append(clean(row | {"fee_usd_per_byte_s": tier.fee, "price_date": quoted.date if quoted is not None else None}))
    price = ("device_usd_per_byte", "fee_usd_per_byte_s", "price_date")
    return rows, ("name", "memory", "device", "capacity", "read_bw", "write_bw", "drain_s", *price)


def _tier_columns() -> dict[str, Any]:
    """Columns with a meaning specific to this list."""
    from headway.hardware.memory_tier import MemoryTier

    columns = {key: Column(q.unit, q.help) for key, (q, _) in schema.fields(MemoryTier).items()}
    price = "price of a byte of memory alone: the stated one, or the middle of a range"
    ends = {"": price, "_lo": "the low end of that range", "_hi": "its high end"}
    return columns | {f"device_usd_per_byte{end}": Column("USD/byte", doc) for end, doc in ends.items()}


def _sheets(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.economics.sheets.catalogue import sheets

    rows = []
    for sheet in sheets(arguments.catalog(args)):
        rates = {"input_rate": sheet.rates.input, "output_rate": sheet.rates.output, "cached_rate": sheet.rates.cache_read}
        texts = {"steps": [tier.above for tier in sheet.tiers], "modes": ", ".join(mode.name for mode in sheet.modes)}
        about = {"name": f"{sheet.provider}/{sheet.model}", "as_of": sheet.as_of} | rates | texts
        rows.append(clean(about | {"context_limit": sheet.context_limit, "source": sheet.source, "flags": "; ".join(sheet.flags)}))
    return rows, ("name", "as_of", "input_rate", "output_rate", "cached_rate", "steps", "modes", "source")


def _sources(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.hardware.describe import list_sources

    return clean(list_sources(arguments.catalog(args))), ()


def _evidence(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Groups of measured rows that the fit has, with the median error of their predictions."""
    from headway.evidence.fit.nearest import shipped

    rows = clean([entry for entry in shipped() if entry.cross_validated])
    return rows, ("chip", "engine", "model_class", "measure", "rows", "median_error", "sources")


def _errors(table: Any, view: Any) -> Any:
    """The picture of the errors."""
    return prediction_pictures.errors(table, view)


def _laws(args: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    from headway.core.equation import equation, unit
    from headway.core.formula import REGISTRY
    from headway.core.law_index import sentences

    load_laws()
    rows, texts = [], sentences()
    for name, law in sorted(REGISTRY.items(), key=lambda item: (item[1].module, item[0])):
        doc = texts.get((law.module.removeprefix("headway.laws."), law.name), "")
        row = {"name": name, "module": law.module, "unit": unit(law), "law": doc, "equation": equation(law)}
        rows.append(row | {"source": law.source, "empirical": law.empirical})
    return rows, ("name", "module", "unit", "law", "source")


def load_laws() -> None:
    """Import all modules of laws, which registers their laws."""
    import importlib
    import pkgutil

    from headway import laws

    for module in pkgutil.walk_packages(laws.__path__, "headway.laws."):
        importlib.import_module(module.name)


KINDS: dict[str, Callable[[Any], tuple[list[dict[str, Any]], tuple[str, ...]]]] = {
    "models": _models, "chips": _chips, "systems": _systems, "tiers": _tiers, "sheets": _sheets, "laws": _laws, "sources": _sources,
    "evidence": _evidence,
}  # fmt: skip
