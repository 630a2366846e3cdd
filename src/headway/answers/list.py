"""`headway list models|chips|systems|tiers|sheets|laws|sources|evidence|splits|calibrations`: a row per entry of catalogue or registry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway import laws
from headway.answers import arguments, calibrations
from headway.core import catalog, equation, law_index, schema, search
from headway.core.columns import Column
from headway.core.errors import check_known
from headway.core.formula import REGISTRY
from headway.core.listing import Listing, clean
from headway.core.notes import note
from headway.economics.sheets import catalogue
from headway.economics.sheets.tables import table_notes
from headway.hardware import memory_tier
from headway.hardware.chip import Chip
from headway.hardware.describe import list_chips, list_sources, list_systems
from headway.hardware.questions import List
from headway.hardware.system import System
from headway.laws.roofline import balance
from headway.models import describe
from headway.performance import nearest
from headway.report import output, prediction_pictures

if TYPE_CHECKING:
    from headway.core.listing import Rows

Kind = tuple[list[dict[str, Any]], tuple[str, ...]]  # the rows of a list, and the columns that people see
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
    "formats": Column("", "formats of their weights"),
    "layouts": Column("", "how their models were split: over tp, pp, ep or dp; one: on a single chip"),
    "sources": Column("", "keys of the sources of the measurements, as in docs/accuracy_serving.md"),
    "operator": Column("", "part of a model that a layout divides or copies"),
    "tp": Column("", "what tensor parallelism does to it: divided, copied, by whole heads or by blocks of them"),
    "dp": Column("", "what attention data parallelism does: each rank copies it, divides it, or has sequences of its own"),
    "cp": Column("", "what context parallelism does"),
    "ep": Column("", "what expert parallelism does"),
    "block": Column("", "heads that a kernel takes together"),
    "slots": Column("", "all: kernels compute every slot of the top k, however short the context"),
    "runs": Column("count", "measured runs that the profile keeps"),
    "deployments": Column("count", "deployments that they are of"),
    "first": Column("", "date of its oldest run"),
    "last": Column("", "date of its newest run"),
    "of": Column("", "models and chips that were measured"),
    "state": Column("", "current, or what is wrong with it"),
    "file": Column("", "its file"),
    "empirical": Column("", "why the units of the law are not checked, where it is a fit to measurements"),
}


def run(args: List) -> output.Answer:
    """Answer with a row per item of the list."""
    check_known("kind of thing to list", args.what, KINDS)
    rows, view = KINDS[args.what](args)

    def describe_rows(table: Rows) -> output.Summary:
        if args.what != "evidence":
            return output.Summary(f"{len(table):,} {args.what}.", view, first=view[:1] or ("name",))
        count = sum(row["rows"] for row in table)
        words = f"{count:,} measurements in {len(table):,} groups, predicted by fits that had not seen them."
        return output.Summary(words, view, first=("chip", "engine", "model_class"))

    columns = COLUMNS
    if args.what == "tiers":
        price = "price of a byte of memory alone: the stated one, or the middle of a range"
        ends = {"": price, "_lo": "the low end of that range", "_hi": "its high end"}
        columns = columns | {key: Column(q.unit, q.help) for key, (q, _) in schema.fields(memory_tier.MemoryTier).items()}
        columns |= {f"device_usd_per_byte{end}": Column("USD/byte", doc) for end, doc in ends.items()}
    pictures = {"evidence": prediction_pictures.errors} if args.what == "evidence" else {}
    return output.Answer(Listing(rows), describe=describe_rows, describes_none=True, columns=columns, most=100_000, pictures=pictures)


def _chips(args: List) -> Kind:
    keys = ("name", "vendor", *catalog.declared(Chip))
    speed = ("peak_bf16", "peak_fp8", "peak_fp4", "hbm", "hbm_reported", "hbm_bw", "scale_up_bw", "scale_up_domain")
    view = ("name", "vendor", "year", *speed, "tdp")
    return [clean({key: getattr(chip, key) for key in keys}) for chip in list_chips(arguments.catalog(args))], view


def _systems(args: List) -> Kind:
    rows = []
    for system in list_systems(arguments.catalog(args)):
        texts = {"name": system.name, "chip": system.chip.name, "topology": system.topology}
        rows.append(clean(texts | {key: getattr(system, key) for key in catalog.declared(System)}))
    return rows, ("name", "chip", "topology", "chips", "scale_up_domain", "scale_up_bw", "scale_out_bw", "power")


def _tiers(args: List) -> Kind:
    """Rows of memory devices for a KV cache: capacity, drain time, price per byte and its date."""
    rows = []
    for tier in memory_tier.tiers(arguments.catalog(args)):
        quoted = next((fact for fact in (tier.price, tier.price_low, tier.fee) if fact is not None), None)
        drain = balance.drain_s(tier.capacity, tier.read_bw) if tier.capacity is not None and tier.read_bw is not None else None
        facts = {key: getattr(tier, key) for key in catalog.declared(memory_tier.MemoryTier) if not key.startswith(("price", "fee"))}
        rows.append(clean({"name": tier.name, "memory": tier.memory, "device": tier.device} | facts | {
            "drain_s": drain, "device_usd_per_byte": memory_tier.own_price(tier), "device_usd_per_byte_lo": tier.price_low,
            "device_usd_per_byte_hi": tier.price_high, "fee_usd_per_byte_s": tier.fee,
            "price_date": quoted.date if quoted is not None else None,
        }))  # fmt: skip
    price = ("device_usd_per_byte", "fee_usd_per_byte_s", "price_date")
    return rows, ("name", "memory", "device", "capacity", "read_bw", "write_bw", "drain_s", *price)


def _sheets(args: List) -> Kind:
    sheets = catalogue.sheets(arguments.catalog(args))
    note(*table_notes(sheets))
    rows = [
        clean({
            "name": f"{sheet.provider}/{sheet.model}", "as_of": sheet.as_of, "input_rate": sheet.rates.input,
            "output_rate": sheet.rates.output, "cached_rate": sheet.rates.cache_read, "steps": [tier.above for tier in sheet.tiers],
            "modes": ", ".join(mode.name for mode in sheet.modes), "context_limit": sheet.context_limit,
            "min_prefix": sheet.min_prefix, "cache_block": sheet.cache_block, "source": sheet.source,
            "flags": "; ".join(sheet.flags),
        })
        for sheet in sheets
    ]  # fmt: skip
    return rows, ("name", "as_of", "input_rate", "output_rate", "cached_rate", "steps", "modes", "source")


def _evidence(args: List) -> Kind:
    """Groups of measured rows that the fit has, with the median error of their predictions."""
    rows = clean([entry for entry in nearest.shipped() if entry.cross_validated])
    return rows, ("chip", "engine", "model_class", "measure", "rows", "median_error", "sources")


def _laws(args: List) -> Kind:
    for module in pkgutil.walk_packages(laws.__path__, "headway.laws."):
        importlib.import_module(module.name)  # which registers its laws
    rows, texts = [], law_index.sentences()
    by_module = sorted(REGISTRY.items(), key=lambda item: (item[1].module, item[0]))
    if args.words:
        nearest_first = [match.page.name for match in search.near_best(" ".join(args.words), "law")]
        by_module = [(name, REGISTRY[name]) for name in nearest_first]
    for name, law in by_module:
        doc = texts.get((law.module.removeprefix("headway.laws."), law.name), "")
        row = {"name": name, "module": law.module, "unit": equation.unit(law), "law": doc, "equation": equation.equation(law)}
        rows.append(row | {"source": law.source, "empirical": law.empirical})
    return rows, ("name", "module", "unit", "law", "source")


def _splits(_: List) -> Kind:
    """What a layout divides and what it copies, per operator and engine, as the table has it."""
    rows: list[dict[str, Any]] = [dict(line) for line in catalog.lines("engines/splits.csv")]
    return rows, ("operator", "engine", "chips", "tp", "dp", "cp", "ep", "block", "about")


def _calibrations(args: List) -> Kind:
    """Profiles of the user's own runs, and what is wrong with one that cannot be used as it is."""
    return calibrations.rows_of(arguments.catalog(args)), ("name", "runs", "deployments", "first", "last", "of", "state")


KINDS: dict[str, Callable[[List], Kind]] = {
    "models": lambda _: (clean(describe.list_models()), ()),
    "chips": _chips, "systems": _systems, "tiers": _tiers, "sheets": _sheets, "laws": _laws,
    "sources": lambda args: (clean(list_sources(arguments.catalog(args))), ()),
    "evidence": _evidence, "splits": _splits,
    "calibrations": _calibrations,
}  # fmt: skip
