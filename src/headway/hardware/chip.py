"""A chip: one package as the datasheet counts it. Peaks are dense, link bandwidth is one direction, blank facts stay None."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core import schema, spellings
from headway.core.catalog import Catalog, default_catalog, fold
from headway.core.errors import BadFile, BadValue, MissingFact, UnknownName, check_known
from headway.core.quantity import Sourced, default
from headway.core.schema import Field
from headway.hardware.chip_price import MARKET, METRICS, Cost, PriceQuote, costs, market_metric, price_by_metric, user_price
from headway.laws.card import reported_bytes

PETABYTE = 1e15


def memory_size(text: str, usual: str = "GB", bare_least: float = 1e6) -> Field:
    """Field of a memory's size."""
    return Field("byte", text, bare_least=bare_least, high=1e3 * PETABYTE, usual=(usual,))


def bandwidth(text: str) -> Field:
    """Field of a memory's bandwidth."""
    return Field("byte/s", text, bare_least=1e6, high=1e3 * PETABYTE, usual=("TB/s", "GB/s"))


def link(text: str) -> Field:
    """Field of a link's bandwidth."""
    return Field("byte/s", text, bare_least=1e5, high=1e3 * PETABYTE, usual=("GB/s",))


def peak_rate(text: str) -> Field:
    """Field of a peak rate of arithmetic."""
    return Field("flop/s", text, bare_least=1e8, high=1e24, usual=("PFLOPS", "TFLOPS"))


PEERS = "what messages between cards reach over their host's PCIe, one direction: its link with peer access, less through its memory"
TOPOLOGIES = ("switch", "mesh", "torus2d", "torus3d", "ring", "dragonfly", "hierarchical", "hybrid", "bridge", "direct", "pcie", "none")
MEMORIES = ("hbm", "gddr", "gddr-ecc", "shared", "sram")  # gddr-ecc: error correction takes part of it; shared: also the host's memory
# fp16 here accumulates in 32 bits, at the BF16 rate; fp16acc accumulates in 16 bits, which some chips do faster.
PEAK_OF = {"bf16": "peak_bf16", "fp16": "peak_bf16", "fp8": "peak_fp8", "fp4": "peak_fp4", "mxfp4": "peak_fp4", "nvfp4": "peak_fp4",
           "int8": "peak_int8", "fp16acc": "peak_fp16"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """Published facts of a chip; each number is a Sourced in SI, or None where no public source was found."""

    name: str
    vendor: str = ""
    topology: str = "none"  # network of the chips in one scale-up domain, one of TOPOLOGIES
    memory: str = ""  # kind of its memory, one of MEMORIES; "": not known
    scale_up_kind: str = ""
    notes: str = ""
    like: str = ""  # chip whose fitted costs (kernels, links, engine) stand in for its own
    hypothetical: bool = False  # described by the user, by numbers or in a file
    year: Annotated[Any, Field(help="year of announcement", integer=True, low=1990, high=2100)] = None
    cores: Annotated[Any, Field(help="TensorCores of a TPU chip; its peaks are of all", integer=True, low=1, open_low=False)] = None
    peak_bf16: Annotated[Any, peak_rate("dense BF16 (or FP16) peak")] = None
    peak_fp16: Annotated[Any, peak_rate("dense FP16 peak with 16-bit accumulation, where it is not the BF16 peak")] = None
    peak_fp8: Annotated[Any, peak_rate("dense FP8 peak")] = None
    peak_fp4: Annotated[Any, peak_rate("dense FP4 peak")] = None
    peak_int8: Annotated[Any, peak_rate("dense INT8 peak")] = None
    hbm: Annotated[Any, memory_size("memory capacity, the datasheet's number in GB = 1e9")] = None
    hbm_reported: Annotated[Any, memory_size("memory as its driver reports it, which engines divide", "GiB")] = None
    hbm_bw: Annotated[Any, bandwidth("memory bandwidth")] = None
    sram: Annotated[Any, memory_size("on-chip memory: last-level cache or scratchpad", "MB", 1e3)] = None
    tdp: Annotated[Any, Field("W", "thermal design power")] = None
    scale_up_bw: Annotated[Any, link("scale-up links of one chip together, one direction")] = None
    scale_up_domain: Annotated[Any, Field(help="chips that scale-up links usually join", integer=True, low=1, open_low=False)] = None
    scale_out_bw: Annotated[Any, link("network beyond the scale-up domain per chip, one direction")] = None
    host_dram: Annotated[Any, memory_size("one chip's share of its host's memory")] = None
    host_dram_bw: Annotated[Any, bandwidth("one chip's share of its host's memory bandwidth")] = None
    host_link_bw: Annotated[Any, link("link to the host (PCIe or chip-to-chip), one direction")] = None
    peer_bw: Annotated[Any, link(PEERS)] = None
    price: Annotated[Any, Field("USD/s", "price of one chip, when the user gives one", bare="USD/h")] = None
    costs: tuple[Cost, ...] = field(default=(), repr=False)
    efficiency: Path | None = field(default=None, repr=False)  # file of the numbers that were fitted to it alone
    market: str = field(default="", repr=False)  # metric that the market price means where several machines are asked about; "": its own

    def need(self, key: str) -> Any:
        """The fact, or MissingFact with the flag that supplies it."""
        return needed(self, key, self.name, "chip")

    def peak(self, dtype: str) -> Any:
        """Dense peak FLOP/s in a number format, None when the chip has none or none is published."""
        check_known("number format with a peak", dtype, PEAK_OF)
        return getattr(self, PEAK_OF[dtype])


SHARE = Field("", "share of the memory", low=0.5, high=1.0)
PEAKS = tuple(PEAK_OF.values())  # which differ by a factor of a thousand between chips: no example is near
LINK_EXAMPLES = {"scale_up_bw": "50GB/s", "scale_out_bw": "50GB/s", "host_link_bw": "64GB/s"}  # of which the last is PCIe 5.0 x16


def needed(record: Any, key: str, subject: str, kind: str) -> Any:
    """A fact of a record, or MissingFact with the flag that supplies it."""
    fields = facts.declared(type(record))
    if key not in fields:
        raise UnknownName(f"{kind} fact", key, fields)
    value = getattr(record, key)
    if value is None:
        usual = "..." if key in PEAKS else spellings.EXAMPLE[fields[key].unit].split(" or ")[0]
        example = LINK_EXAMPLES.get(key, usual)
        hint = "; a decode step at a context needs none" if key in PEAKS else ""
        raise MissingFact(subject, key, f"give it with --set {kind}.{key}={example}{hint}")
    return value


@functools.cache
def reported_shares() -> dict[str, Any]:
    """Share of a card's memory that its driver reports, by kind of memory: medians of the cards whose figure is known."""
    path = facts.PACKAGED / "reported_memory.toml"
    entries = facts.table(facts.read(path), "share", path).items()
    return {kind: facts.number(entry, SHARE, f"reported share of {kind}", {}, path) for kind, entry in entries}


def reported_memory(chip: Chip) -> Any:
    """Bytes of a chip's memory as its driver reports them: the fact, else the user's own size, else the rule of its kind.

    >>> reported_memory(chip("b200-sxm")).kind, round(reported_memory(chip("l20")) / 2**30, 2)
    ('reported', 44.99)
    """
    size = chip.hbm if chip.hbm_reported is None else chip.hbm_reported
    if chip.hbm_reported is not None or getattr(size, "kind", "") == "input" or chip.memory not in reported_shares():
        return chip.need("hbm") if size is None else size
    return reported_bytes(chip.need("hbm"), reported_shares()[chip.memory])


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
    facts.only(document, ("name", "vendor", "topology", "memory", "scale_up_kind", "notes", "like", "facts", "sources"), path)
    topology = facts.text(document, "topology", path) or "none"
    if topology not in TOPOLOGIES:
        raise BadFile(path, f"topology: got {topology!r}; wants one of {', '.join(TOPOLOGIES)}")
    texts = {key: facts.text(document, key, path) for key in ("vendor", "memory", "scale_up_kind", "notes")}
    if texts["memory"] not in ("", *MEMORIES):
        raise BadFile(path, f"memory: got {texts['memory']!r}; wants one of {', '.join(MEMORIES)}")
    like = facts.text(document, "like", path)
    alike = catalog.find("chips", like) if like else None
    if like and alike is None:
        raise BadFile(path, f"like: {UnknownName('chip', like, catalog.names('chips'))}")
    texts["like"] = alike.stem if alike else ""
    is_users = facts.PACKAGED not in path.parents
    return Chip(
        name=name, topology=topology, hypothetical=is_users, **texts, **facts.numbers(document, Chip, name, path),
        costs=costs(name, catalog), efficiency=catalog.find("efficiency", name),
    )  # fmt: skip


# -- a chip by numbers -----------------------------------------------------------------------------------------------------------
# `64x(peak_bf16=1P hbm_bw=8TB/s hbm=192GB scale_up_bw=900GB/s price=$3/h)`, wherever a machine is named.
# Facts are those of a catalogue file, by the same names and units; `like=h100-sxm` takes every other fact, and the costs fitted to its
# kernels, from a chip of the catalogue.


BY_NUMBERS = "64x(peak_bf16=1P hbm_bw=8TB/s hbm=192GB scale_up_bw=900GB/s)"
NEEDED = ("hbm", "hbm_bw")
TYPED_TEXTS = ("name", "topology", "like")
_MACHINE = re.compile(r"\s*(?:(?P<count>[^()\s]+?)\s*[x*×]\s*)?\((?P<facts>[^()]*)\)\s*")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,40}")


def split_machine(text: str) -> tuple[str, str] | None:
    """(count, facts) of a machine by numbers; None where the text has no brackets."""
    if "(" not in text or not ("=" in text or "()" in text):
        return None
    match = _MACHINE.fullmatch(text) if len(text) <= 2000 else None
    if match is None:
        raise BadValue("--on", text, f"a machine by numbers, such as {BY_NUMBERS}")
    return match["count"] or "1", match["facts"]


def chip_by_numbers(text: str, where: Catalog, count: int) -> Chip:
    """The chip that a text of facts describes."""
    texts, numbers = _typed_facts(text)
    base = read(where.path("chips", texts["like"]), where) if "like" in texts else None
    name = fold(texts.get("name", "hypothetical"))
    if not _NAME.fullmatch(name):
        raise BadValue("name", texts["name"], "letters, digits and dashes")
    if where.find("chips", name):
        raise BadValue("name", texts["name"], "a name that no chip of the catalogue has; like=NAME takes facts from one")
    topology = texts.get("topology", base.topology if base else "switch")
    check_known("topology", topology, TOPOLOGIES)
    if base and "hbm" in numbers:
        base = replace(base, hbm_reported=None)
    chip = replace(base, name=name, costs=(), **numbers) if base else Chip(name=name, **numbers)
    chip = replace(chip, topology=topology, hypothetical=True, like=base.like or base.name if base else "", notes="by numbers")
    missing = [key for key in NEEDED if getattr(chip, key) is None]
    if all(getattr(chip, key) is None for key in ("peak_bf16", "peak_fp8", "peak_fp4", "peak_int8")):
        missing.insert(0, "peak_bf16")
    if missing:
        raise BadValue("--on", f"({text})", f"{', '.join(missing)} too, as in {BY_NUMBERS}, or like=CHIP for the rest")
    if chip.scale_up_domain is None and count > 1:
        chip = replace(chip, scale_up_domain=default(count, "scale_up_domain", "", "all chips in one domain, since no size was given"))
    return chip


def _typed_facts(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Texts and numbers by key, each number the user's."""
    fields = facts.declared(Chip)
    texts: dict[str, str] = {}
    numbers: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        name = key.lower().replace("-", "_")
        if not equals or not value:
            raise BadValue("--on", word, f"FACT=VALUE, as in {BY_NUMBERS}")
        if name not in (*TYPED_TEXTS, *fields):
            raise UnknownName("fact of a chip", key, [*fields, *TYPED_TEXTS], "`headway show chip h100-sxm` lists the facts")
        if name in texts or name in numbers:
            raise BadValue("--on", text, f"{name} once")
        if name in TYPED_TEXTS:
            texts[name] = value
        else:
            numbers[name] = schema.scalar(value, fields[name], name)
    return texts, numbers


# -- A chip as the text of a catalogue file: one that reads back to the same chip, and one to fill in. The format is in docs/chips.md 


FILE_HEAD = "# A chip of headway: save as DIR/chips/{name}.toml and give --catalog DIR. The format is in docs/chips.md.\n"
EXAMPLES = {
    "year": "2026", "cores": "2", "peak_bf16": "1 PFLOP/s", "peak_fp16": "2 PFLOP/s", "peak_fp8": "2 PFLOP/s", "peak_fp4": "4 PFLOP/s",
    "peak_int8": "2 POPS",
    "hbm": "192 GB", "hbm_reported": "179 GiB",
    "hbm_bw": "8 TB/s", "sram": "100 MB", "tdp": "1000 W", "scale_up_bw": "900 GB/s", "scale_up_domain": "64",
    "scale_out_bw": "50 GB/s", "host_dram": "256 GB", "host_dram_bw": "100 GB/s", "host_link_bw": "64 GB/s", "peer_bw": "16 GB/s",
    "price": "$3/h",
}  # fmt: skip


def chip_toml(chip: Chip, like: str) -> str:
    """The catalogue file of a chip: its facts in SI, each with source, date and kind; `like` is the chip whose fitted costs it has."""
    lines = [FILE_HEAD.format(name=chip.name.replace("-", "_")), f"vendor = {_quoted(chip.vendor)}", f"topology = {_quoted(chip.topology)}"]
    lines += [f"{key} = {_quoted(value)}" for key in ("memory", "scale_up_kind", "notes") if (value := getattr(chip, key))]
    if like:
        lines.append(f"like = {_quoted(like)}  # whose fitted costs it has, under any name")
    lines += ["", "[facts]"]
    for key in facts.declared(Chip):
        fact = getattr(chip, key)
        if isinstance(fact, Sourced):
            number = repr(int(fact)) if isinstance(fact, int) else repr(float(fact))  # type: ignore[arg-type]
            about = f"source = {_quoted(fact.source)}, date = {_quoted(fact.date)}, kind = {_quoted(fact.kind)}"
            unit = "USD/s" if key == "price" else fact.unit
            lines.append(f"{key} = {{ value = {number}, unit = {_quoted(unit)}, {about} }}")
    return "\n".join(lines) + "\n"


def empty_toml(name: str) -> str:
    """A catalogue file to fill in: every fact with its sentence and an example, none of them set."""
    fields = facts.declared(Chip)
    lines = [FILE_HEAD.format(name=name), 'vendor = ""', f'topology = "switch"  # one of {", ".join(TOPOLOGIES)}']
    lines += [
        '# like = "h100_sxm"  # a measured chip whose fitted costs stand in; without it those of all measured chips do',
        "",
        "[facts]",
    ]
    lines.append("# Needed: a peak, hbm and hbm_bw. Remove the # of a line that you fill in; leave out what you do not know.")
    lines.append('# A bare number is in SI (a price in USD/h). Or { value = 8, unit = "TB/s", source = "datasheet", date = "2026-01" }')
    width = max(map(len, (f'# {key} = "{EXAMPLES[key]}"' for key in fields)))
    lines += [f"{f'# {key} = {_quoted(EXAMPLES[key])}':{width}}  # {q.help} [{q.unit or 'count'}]" for key, q in fields.items()]
    return "\n".join(lines) + "\n"


def _quoted(value: str) -> str:
    """Text in quotes, as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
