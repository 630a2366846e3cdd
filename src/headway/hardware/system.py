"""A system: chips of one kind and their links. Inside a scale-up domain chips share fast links; beyond it, scale-out.

In a mesh a chip has links to every chip of its box, and a part of a machine uses those to its own chips.

Names: a catalogue system (gb200-nvl72), R systems (4xgb200-nvl72), N chips (8xh100-sxm), one chip (h200), a torus by shape
(tpu-v5p-4x4x8), N chips by numbers (64x(peak_bf16=1P ...), see chip.py).
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog
from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog, fold
from headway.core.errors import BadFile, BadValue, MissingFact, UnknownName, clip
from headway.core.quantity import known
from headway.core.schema import Field
from headway.core.units import Number
from headway.hardware.chip import TOPOLOGIES, Chip, chip_by_numbers, link, memory_size, needed, price_quote, split_machine
from headway.hardware.chip import read as read_chip
from headway.hardware.chip_price import market_metric
from headway.laws.collectives import topology

CARDS_OF_HOST = 8  # in one box, as rack servers are sold
MOST_CHIPS = 10_000_000
RANK = {"torus2d": 2, "torus3d": 3}
# Facts of the machine as a whole: R machines have R times as much, and an edit of the chips invalidates them.
TOTALS = ("power", "weight", "cables", "switches", "hbm_total", "hosts")
MESHES = ("mesh", "bridge", "hybrid")  # links from chip to chip, none of them through a switch or another chip
PAIR = known(2, "chips of a message", "", "constant", "one sends, one receives")
_TIMES = re.compile(r"([+-]?[\d.,_]+(?:e[+-]?\d+)?)\s*[x*×]\s*(.+)", re.IGNORECASE)
_SHAPED = re.compile(r"(.+?)-([\d.]+(?:x[\d.]+)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One level of a system's network: its kind, bandwidth per chip and direction, and number of chips."""

    kind: str
    bw: Any
    chips: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Chips and their links; each number is a Sourced in SI, or None where no public source was found."""

    name: str
    chip: Chip
    topology: str  # network of one scale-up domain, one of chip.TOPOLOGIES
    shape: tuple[Any, ...] = ()  # sides of a torus, where known
    fixed_count: bool = False  # whether the user stated how many: 1xh100, 8xh100-sxm; a bare name leaves that to a plan
    notes: str = ""
    rented: tuple[Any, ...] = ()  # counts of its cards below a domain that clouds rent alone: of a bare chip whose number is free
    chips: Annotated[Any, Field(help="chips in the system", integer=True, low=1, high=MOST_CHIPS, open_low=False)]
    scale_up_domain: Annotated[Any, Field(help="chips that share scale-up links", integer=True, low=1, high=MOST_CHIPS, open_low=False)]
    scale_up_bw: Annotated[Any, link("scale-up links of one chip together, one direction")] = None
    scale_out_bw: Annotated[Any, link("network beyond the scale-up domain per chip, one direction")] = None
    power: Annotated[Any, Field("W", "power of the whole system")] = None
    weight: Annotated[Any, Field("kg", "weight of the whole system")] = None
    cables: Annotated[Any, Field(help="copper cables of the scale-up network", integer=True, open_low=False)] = None
    switches: Annotated[Any, Field(help="switch chips of the scale-up network", integer=True, open_low=False)] = None
    hbm_total: Annotated[Any, memory_size("memory of the whole system, as its vendor prints it")] = None
    bisection: Annotated[Any, link("bisection bandwidth of one scale-up domain, one direction")] = None
    hosts: Annotated[Any, Field(help="host CPUs", integer=True, open_low=False)] = None

    @property
    def scale_up(self) -> Link:
        """The fast level: links within one scale-up domain."""
        return Link(kind=self.topology, bw=self.scale_up_bw, chips=self.scale_up_domain)

    @property
    def scale_out(self) -> Link:
        """The slower level: links between scale-up domains."""
        return Link(kind="scale-out", bw=self.scale_out_bw, chips=self.chips)

    @property
    def domains(self) -> Any:
        """Number of scale-up domains; the last may be partly filled."""
        count = -(-int(self.chips) // int(self.scale_up_domain))
        return known(count, f"{self.name}.domains", "", "derived", "chips / scale_up_domain, rounded up")

    def need(self, key: str) -> Any:
        """The fact, or MissingFact with the flag that supplies it."""
        return needed(self, key, self.name, "system")


def system(name: str, catalog: Catalog | None = None) -> System:
    """A system by name: from the catalogue, multiplied, or by shape.

    >>> rack, pod = system("gb200-nvl72"), system("16384xh100-sxm")
    >>> rack.chips, pod.scale_up_domain, pod.domains
    (72, 8, 2048)
    """
    where = catalog or default_catalog()
    named_system = _catalogue_system(name, where) if len(name) <= 200 else None
    if named_system is not None:
        return named_system
    by_numbers = split_machine(name)
    if by_numbers is not None:
        count = _count(by_numbers[0], "--on")
        return _filled(count, chip_by_numbers(by_numbers[1], where, count))
    if len(name) > 200:
        raise UnknownName("system", name, ())
    times_match = _TIMES.fullmatch(name.strip())
    if times_match:
        count, rest = _count(times_match[1], name), times_match[2].strip()
        path = where.find("chips", rest) if where.find("systems", rest) is None else None
        if path:
            return replace(_filled(count, read_chip(path, where)), fixed_count=True)
        member = system(rest, where) if _TIMES.fullmatch(rest) else _single_system(rest, name, where)
        return replace(_joined(count, member), fixed_count=True)  # 18x8xh800: 18 servers of 8
    return _single_system(name, name, where)


def with_market(machines: list[System]) -> list[System]:
    """Machines of one question: the market price of each chip is by the first metric that all of them have a quote by.

    >>> [machine.chip.market for machine in with_market([system("h100-sxm"), system("8xmi355x")])]
    ['rental_3yr', 'rental_3yr']
    """
    common = market_metric(machine.chip.costs for machine in machines if machine.chip.price is None)
    if not common or len(machines) == 1:
        return machines
    return [replace(machine, chip=replace(machine.chip, market=common)) if machine.chip.costs else machine for machine in machines]


def market_kinds(machines: list[System]) -> str:
    """Which kind of price the market price of each machine is, where they are of different kinds; "" where they are of one.

    >>> market_kinds([system("8xl4"), system("8xmi355x")])
    'prices of different kinds: rental_on_demand of 8xl4; rental_3yr of 8xmi355x'
    """
    names: dict[str, list[str]] = {}
    for machine in machines:
        quote = price_quote(machine.chip)
        if quote is not None:
            names.setdefault(quote.metric, []).append(machine.name)
    kinds = "; ".join(f"{metric} of {', '.join(dict.fromkeys(members))}" for metric, members in names.items())
    return f"prices of different kinds: {kinds}" if len(names) > 1 else ""


def _catalogue_system(name: str, where: Catalog) -> System | None:
    """A catalogue system or one chip, None when the name is neither."""
    path = where.find("systems", name)
    if path:
        return read(path, where)
    path = where.find("chips", name)
    return _filled(1, read_chip(path, where)) if path else None


def _single_system(name: str, typed: str, where: Catalog) -> System:
    """One system: from the catalogue or by shape, without a count."""
    machine = _catalogue_system(name, where) or _shaped(name, where)
    if machine is None:
        known_names = where.names("systems", "chips")
        hint = "wants a system (gb200-nvl72), chips (8xh100-sxm) or a torus (tpu-v5p-4x4x8); see `headway list systems`, `list chips`"
        raise UnknownName("system or chip", name if name else typed, known_names, hint)
    return machine


def _count(text: str, field: str) -> int:
    wants = f"a whole number of chips or systems from 1 to {MOST_CHIPS}"
    try:
        value = float(text.replace("_", ""))
    except ValueError:
        raise BadValue(field, text, wants) from None
    if not value.is_integer() or not 1 <= value <= MOST_CHIPS:  # infinity is no integer
        raise BadValue(field, text, wants)
    return int(value)


def _typed(value: int, name: str, source: str) -> Any:
    return known(value, name, "", "input", source, "now")


def _filled(count: int, chip: Chip) -> System:
    """A system of N chips that fill scale-up domains of the chip's usual size; cards without links are joined by the PCIe of one host."""
    name = fold(chip.name) if count == 1 else f"{count}x{fold(chip.name)}"
    chips = _typed(count, f"{name}.chips", f"given by the user: {name}")
    usual = chips if count == 1 else usual_domain(chip)
    return System(
        name=name, chip=chip, topology=chip.topology, notes=chip.notes, chips=chips,
        scale_up_domain=usual if usual < count else _typed(count, f"{name}.scale_up_domain", "all chips share one scale-up domain"),
        scale_up_bw=chip.scale_up_bw, scale_out_bw=chip.scale_out_bw,
    )  # fmt: skip


def of_chip(chip: Chip) -> System:
    """One chip as a machine."""
    return _filled(1, chip)


def usual_domain(chip: Chip) -> Any:
    """Chips that share scale-up links where many are joined as usual; cards without links share the PCIe of one host."""
    usual = chip.scale_up_domain
    if usual is None:
        raise MissingFact(chip.name, "scale_up_domain", "a catalogue file of yours (--catalog DIR) can say how many chips it joins")
    if usual == 1 and chip.topology == "pcie":
        return known(CARDS_OF_HOST, f"{chip.name}.scale_up_domain", "", "derived", "cards that one host joins by PCIe", "undated")
    return usual


def of_count(machine: System, chips: int) -> System:
    """The machine with another number of chips, in scale-up domains of its own; a bare chip is joined as its kind usually is.

    >>> [of_count(system(name), 16).name for name in ("h100-sxm", "8xh100-sxm", "1024xh100-sxm")]
    ['16xh100-sxm', '16xh100-sxm', '16 of 1024xh100-sxm']
    >>> of_count(system("gb200-nvl72"), 144).name, int(of_count(system("h100-sxm"), 16).scale_up_domain)
    ('2xgb200-nvl72', 8)
    >>> of_count(system("2x12xh100-sxm"), 48).name, of_count(system("gb200-nvl72"), 100).name
    ('4x12xh100-sxm', '100 of 2xgb200-nvl72')
    """
    now, domain = int(machine.chips), machine.scale_up_domain
    if chips == now:
        return machine
    multiple = _TIMES.fullmatch(machine.name)
    times, member = (int(multiple[1]), multiple[2]) if multiple else (1, machine.name)
    of_chips = member == fold(machine.chip.name)
    if of_chips and int(domain) == min(int(usual := usual_domain(machine.chip)), now):  # not of a size of the user's
        domain = usual
    size = 1 if of_chips else now // times
    larger = f"{-(-chips // size)}x{member}" if chips > now else machine.name
    name = larger if chips > now and chips % size == 0 else f"{chips} of {larger}"
    count = known(chips, f"{machine.name}.chips", "", "derived", "a number of chips that the question leaves open")
    return replace(machine, chips=count, name=name, scale_up_domain=min(domain, count), fixed_count=True)


def _shaped(name: str, where: Catalog) -> System | None:
    """A torus by its shape, such as tpu-v5p-4x4x8; None when the name is not of that form."""
    match = _SHAPED.fullmatch(fold(name))
    path = where.find("chips", match[1]) if match else None
    if not match or not path:
        return None
    chip = read_chip(path, where)
    sides = [_count(side, name) for side in match[2].split("x")]
    rank = RANK.get(chip.topology)
    if rank is None:
        raise BadValue(name, match[2], f"a count instead, such as 8x{fold(chip.name)}: {chip.name} is not joined as a torus")
    example = "4x4x8" if rank == 3 else "4x8"
    if len(sides) != rank:
        raise BadValue(name, match[2], f"{rank} sides, as in {fold(chip.name)}-{example}: {chip.name} is joined as a {rank}D torus")
    count, most = math.prod(sides), chip.need("scale_up_domain")
    if count > most:
        raise BadValue(name, f"{match[2]} = {count} chips", f"at most the {most} chips that one torus of {chip.name} joins")
    torus_name = f"{fold(chip.name)}-{'x'.join(map(str, sides))}"
    shape = tuple(_typed(side, f"{torus_name}.shape", f"given by the user: {torus_name}") for side in sides)
    chips = _typed(count, f"{torus_name}.chips", f"given by the user: {torus_name}")
    domain = _typed(count, f"{torus_name}.scale_up_domain", "all chips share one torus")
    return replace(_filled(1, chip), name=torus_name, shape=shape, chips=chips, scale_up_domain=domain)


def _joined(count: int, member: System) -> System:
    """A system of `count` systems joined by scale-out."""
    name, total = f"{count}x{member.name}", count * int(member.chips)
    if total > MOST_CHIPS:
        raise BadValue(name, f"{total} chips", f"at most {MOST_CHIPS} chips")
    if count == 1:
        return member
    facts_of_one = {key: getattr(member, key) for key in TOTALS}
    totals = {
        key: known(count * fact, f"{name}.{key}", fact.unit, "derived", f"{count} x {fact.name} ({fact.source})", fact.date)
        for key, fact in facts_of_one.items()
        if fact is not None
    }
    return replace(member, name=name, chips=_typed(total, f"{name}.chips", f"given by the user: {count} x {member.chips} chips"), **totals)


def read(path: Path, catalog: Catalog) -> System:
    """A system from its file; link facts that it omits come from its chip."""
    document, name = facts.read(path), path.stem
    facts.only(document, ("name", "chip", "topology", "shape", "notes", "facts", "sources"), path)
    chip_name = facts.text(document, "chip", path)
    chip_path = catalog.find("chips", chip_name)
    if chip_path is None:
        raise BadFile(path, str(UnknownName("chip", chip_name, catalog.names("chips"))))
    chip = read_chip(chip_path, catalog)
    topology = facts.text(document, "topology", path) or chip.topology
    if topology not in TOPOLOGIES:
        raise BadFile(path, f"topology: got {topology!r}; wants one of {', '.join(TOPOLOGIES)}")
    numbers = facts.numbers(document, System, name, path)
    if "chips" not in numbers:
        raise BadFile(path, "facts.chips: missing; wants how many chips the system has")
    links = {"scale_up_bw": chip.scale_up_bw, "scale_out_bw": chip.scale_out_bw, "scale_up_domain": numbers["chips"]}
    shape = _read_shape(facts.text(document, "shape", path), name, path, numbers["chips"])
    notes = facts.text(document, "notes", path)
    return System(name=fold(name), chip=chip, topology=topology, shape=shape, notes=notes, **links | numbers)


def _read_shape(shape_text: str, name: str, path: Path, chips: Number) -> tuple[Any, ...]:
    if not shape_text:
        return ()
    sides = shape_text.split("x")
    if not all(side.isascii() and side.isdigit() for side in sides) or math.prod(map(int, sides)) != chips:
        raise BadFile(path, f"shape: got {clip(shape_text)!r}; wants the sides of a torus of {chips} chips, such as 4x4x4")
    return tuple(known(int(side), f"{name}.shape", "", chips.kind, chips.source, chips.date) for side in sides)


def wired(system: System) -> Any:
    """Chips that the links of a chip lead to, itself included: of the usual box, of which the system may be a part.

    >>> from headway.hardware.system import system
    >>> wired(system("2xmi300x")), wired(system("16xmi300x"))
    (8, 8)
    """
    chip, domain = system.chip, system.scale_up_domain
    if chip.scale_up_domain is None or system.topology != chip.topology or system.scale_up_bw != chip.scale_up_bw:
        return domain  # a machine with links of its own
    return max(domain, chip.scale_up_domain)


def domain_bandwidth(system: System) -> Any:
    """Bandwidth of a chip to the other chips of its scale-up domain together (byte/s), None where it is not known.

    >>> from headway.hardware.system import system
    >>> [float(domain_bandwidth(system(name))) / 1e9 for name in ("2xmi300x", "8xmi300x", "2xh100-sxm")]
    [64.0, 448.0, 450.0]
    """
    return group_bandwidth(system, system.scale_up_domain)


def pair_bandwidth(system: System) -> Any:
    """Bandwidth from one chip to another of its scale-up domain (byte/s): one link of a mesh, all links to a switch."""
    return group_bandwidth(system, PAIR)


def group_bandwidth(system: System, members: Number) -> Any:
    """Bandwidth of a chip within a group of its scale-up domain (byte/s), None where it is not known."""
    up = system.scale_up_bw if system.scale_up_bw is not None else system.chip.scale_up_bw
    if up is None or system.topology not in MESHES:
        return up
    return topology.mesh_bandwidth(up, members, wired(system))


# -- chips of one host: the server or compute tray that one process of an engine can reach without the network ------------------


MOST = 8  # chips of a scale-up domain that is one server where no fact says otherwise


@functools.cache
def host_facts() -> dict[str, Any]:
    """Chips per host of each chip whose scale-up domain spans several hosts."""
    document = catalog.read(catalog.PACKAGED / "hosts.toml")
    sources = document["sources"]
    return {
        name: known(row["value"], f"{name}.chips_per_host", "", "datasheet", sources[row["source"]], row["date"])
        for name, row in document["chips"].items()
    }


@functools.cache
def rented_facts() -> dict[str, tuple[Any, ...]]:
    """Counts of cards that clouds rent as one machine, by chip, ascending."""
    document = catalog.read(catalog.PACKAGED / "hosts.toml")
    counts: dict[str, tuple[Any, ...]] = {}
    for row in sorted(document["rented"]["rows"], key=lambda row: row["value"]):
        name, source = row["chip"], document["sources"][row["source"]]
        count = known(row["value"], f"{name}.rented", "", row["kind"], source, row["date"])
        counts[name] = (*counts.get(name, ()), count)
    return counts


def rented_counts(chip: Chip) -> tuple[Any, ...]:
    """Counts of a chip's cards that clouds rent as one machine; none where no source says that they rent less than a domain.

    >>> from headway.hardware.system import system
    >>> [rented_counts(system(name).chip) for name in ("a10g", "gb200-nvl72")]
    [(1, 4, 8), ()]
    """
    return rented_facts().get(fold(chip.name).replace("-", "_"), ())


@functools.cache
def host_link_reached() -> Any:
    """Share of the bandwidth between a chip and its host that copies reach.

    >>> float(host_link_reached())
    0.81
    """
    document = catalog.read(catalog.PACKAGED / "hosts.toml")
    row = document["link"]["reached"]
    return known(row["value"], "host_link_reached", "", row["kind"], document["sources"][row["source"]], row["date"])


def chips_per_host(system: System) -> Any:
    """Chips of one host of a system: a fact, else a scale-up domain of at most 8 chips, else None."""
    fact = host_facts().get(fold(system.chip.name).replace("-", "_"))
    domain = system.scale_up_domain
    if fact is not None:
        return fact
    return domain if domain is not None and domain <= MOST else None
