"""A chip: one package as the datasheet counts it. Peaks are dense, link bandwidth is one direction, blank facts stay None."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core import units
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, MissingFact, UnknownName, check_known
from headway.core.schema import Field
from headway.hardware.chip_price import MARKET, METRICS, Cost, PriceQuote, costs, market_metric, price_by_metric, user_price
from headway.hardware.fact_range import bandwidth, link, memory_size, peak_rate

TOPOLOGIES = ("switch", "mesh", "torus2d", "torus3d", "ring", "dragonfly", "hierarchical", "hybrid", "bridge", "direct", "pcie", "none")
# fp16 here accumulates in 32 bits, at the BF16 rate; fp16acc accumulates in 16 bits, which some chips do faster.
PEAK_OF = {"bf16": "peak_bf16", "fp16": "peak_bf16", "fp8": "peak_fp8", "fp4": "peak_fp4", "mxfp4": "peak_fp4", "nvfp4": "peak_fp4",
           "int8": "peak_int8", "fp16acc": "peak_fp16"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """Published facts of a chip; each number is a Sourced in SI, or None where no public source was found."""

    name: str
    vendor: str = ""
    topology: str = "none"  # network of the chips in one scale-up domain, one of TOPOLOGIES
    scale_up_kind: str = ""
    notes: str = ""
    like: str = ""  # chip whose fitted costs (kernels, links, engine) stand in for its own
    hypothetical: bool = False  # described by the user, by numbers or in a file
    year: Annotated[Any, Field(help="year of announcement", integer=True, low=1990, high=2100)] = None
    peak_bf16: Annotated[Any, peak_rate("dense BF16 (or FP16) peak")] = None
    peak_fp16: Annotated[Any, peak_rate("dense FP16 peak with 16-bit accumulation, where it is not the BF16 peak")] = None
    peak_fp8: Annotated[Any, peak_rate("dense FP8 peak")] = None
    peak_fp4: Annotated[Any, peak_rate("dense FP4 peak")] = None
    peak_int8: Annotated[Any, peak_rate("dense INT8 peak")] = None
    hbm: Annotated[Any, memory_size("memory capacity, the datasheet's number in GB = 1e9")] = None
    hbm_bw: Annotated[Any, bandwidth("memory bandwidth")] = None
    sram: Annotated[Any, memory_size("on-chip memory: last-level cache or scratchpad", "MB", 1e3)] = None
    tdp: Annotated[Any, Field("W", "thermal design power")] = None
    scale_up_bw: Annotated[Any, link("scale-up links of one chip together, one direction")] = None
    scale_up_domain: Annotated[Any, Field(help="chips that scale-up links usually join", integer=True, low=1, open_low=False)] = None
    scale_out_bw: Annotated[Any, link("network beyond the scale-up domain per chip, one direction")] = None
    host_dram_bw: Annotated[Any, bandwidth("one chip's share of its host's memory bandwidth")] = None
    host_link_bw: Annotated[Any, link("link to the host (PCIe or chip-to-chip), one direction")] = None
    price: Annotated[Any, Field("USD/s", "price of one chip, when the user gives one", bare="USD/h")] = None
    costs: tuple[Cost, ...] = field(default=(), repr=False)
    market: str = field(default="", repr=False)  # metric that the market price means where several machines are asked about; "": its own

    def need(self, key: str) -> Any:
        """The fact, or MissingFact with the flag that supplies it."""
        return needed(self, key, self.name, "chip")

    def peak(self, dtype: str) -> Any:
        """Dense peak FLOP/s in a number format, None when the chip has none or none is published."""
        check_known("number format with a peak", dtype, PEAK_OF)
        return getattr(self, PEAK_OF[dtype])


PEAKS = tuple(PEAK_OF.values())  # which differ by a factor of a thousand between chips: no example is near
LINKS, LINK_EXAMPLE = ("scale_up_bw", "scale_out_bw", "host_link_bw"), "50GB/s"


def needed(record: Any, key: str, subject: str, kind: str) -> Any:
    """A fact of a record, or MissingFact with the flag that supplies it."""
    fields = facts.declared(type(record))
    if key not in fields:
        raise UnknownName(f"{kind} fact", key, fields)
    value = getattr(record, key)
    if value is None:
        example = LINK_EXAMPLE if key in LINKS else "..." if key in PEAKS else units.EXAMPLE[fields[key].unit].split(" or ")[0]
        hint = "; a decode step at a context needs none" if key in PEAKS else ""
        raise MissingFact(subject, key, f"give it with --set {kind}.{key}={example}{hint}")
    return value


def price_quote(chip: Chip, metric: str = MARKET) -> PriceQuote | None:
    """Price of one chip per second: the user's if given, else the catalogue's by this metric, else None.

    >>> f"{price_quote(chip('b200-sxm')).value * 3600:.3g}", price_quote(chip("gb300")).metric
    ('5.98', 'rental_3yr')
    """
    if chip.price is not None:
        return user_price(chip.price)
    return price_by_metric(chip.costs, meant_metric(chip, metric))


def meant_metric(chip: Chip, metric: str) -> str:
    """The metric that a name of a price means for a chip: itself, but for the market price."""
    return metric if metric != MARKET else chip.market or market_metric([chip.costs]) or METRICS[0]


def chip(name: str, catalog: Catalog | None = None) -> Chip:
    """A chip of the catalogue by name or alias.

    >>> chip("H100").hbm_bw, chip("h100-sxm").hbm_bw.name
    (3350000000000.0, 'h100_sxm.hbm_bw')
    """
    where = catalog or default_catalog()
    return read(where.path("chips", name), where)


def read(path: Path, catalog: Catalog) -> Chip:
    """A chip from its file, with its prices."""
    document, name = facts.read(path), path.stem
    facts.only(document, ("name", "vendor", "topology", "scale_up_kind", "notes", "like", "facts", "sources"), path)
    topology = facts.text(document, "topology", path) or "none"
    if topology not in TOPOLOGIES:
        raise BadFile(path, f"topology: got {topology!r}; wants one of {', '.join(TOPOLOGIES)}")
    texts = {key: facts.text(document, key, path) for key in ("vendor", "scale_up_kind", "notes")}
    like = facts.text(document, "like", path)
    alike = catalog.find("chips", like) if like else None
    if like and alike is None:
        raise BadFile(path, f"like: {UnknownName('chip', like, catalog.names('chips'))}")
    texts["like"] = alike.stem if alike else ""
    is_users = facts.PACKAGED not in path.parents
    return Chip(
        name=name,
        topology=topology,
        hypothetical=is_users,
        **texts,
        **facts.numbers(document, Chip, name, path),
        costs=costs(name, catalog),
    )
