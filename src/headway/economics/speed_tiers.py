"""Price of speed: tiers of a plan's frontier against a standard tier, a larger scale-up domain, and fast tiers on sale.

On a given machine, only a smaller batch or another layout makes tokens faster. Glue: the arithmetic is in laws/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from math import isclose
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog as facts
from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile, BadValue, HeadwayError
from headway.core.listing import Listing
from headway.core.quantity import default, user_input
from headway.core.schema import Field
from headway.core.trace import record
from headway.core.units import Number, Second
from headway.hardware.edit import edit
from headway.hardware.system import MOST_CHIPS, System
from headway.hardware.system import system as find_system
from headway.laws.economics import cost as laws
from headway.models.config import model as find_model
from headway.models.model import Model
from headway.performance.assumptions import Assumptions
from headway.performance.workload import Load
from headway.serving.plan.choice import OTHER_WAYS, POOLED
from headway.serving.plan.plan import LayoutPlan, plan
from headway.serving.plan.space import domain_of
from headway.serving.serve import SERVE

BASES = ("price", "cost")
ENTRIES = ("name", "notes", "offers", "sources")
OFFER_TEXTS = ("provider", "model", "tier", "basis", "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One tier on sale against its model's standard tier at one provider; None for a multiple that is not published."""

    offer: str
    provider: str
    model: str
    tier: str
    basis: str = "price"  # price, or cost: measured on own machines, not sold
    notes: str = ""
    price_multiple: Annotated[Any, Field(help="price over the standard tier's", high=1e6)] = None
    speed_multiple: Annotated[Any, Field(help="output speed of one user over the standard tier's, as advertised", high=1e6)] = None


def catalogue_offers(catalog: Catalog | None = None) -> tuple[Offer, ...]:
    """Every offer, oldest first; a user's file replaces the package's file of that name."""
    files: dict[str, Path] = {}
    for root in reversed((catalog or default_catalog()).roots):
        files |= {path.name: path for path in sorted((root / "offers").glob("*.toml"))}
    rows = [offer for path in files.values() for offer in _read(path)]
    return tuple(sorted(rows, key=lambda offer: (offer.price_multiple.date, offer.offer)))


def _read(path: Path) -> Iterator[Offer]:
    document = facts.read(path)
    facts.only(document, ENTRIES, path)
    sources, declared = facts.table(document, "sources", path), facts.declared(Offer)
    for name, entry in facts.table(document, "offers", path).items():
        if not isinstance(entry, dict):
            raise BadFile(path, f"offers.{name}: wants a table, [offers.{name}]")
        for key in entry:
            if key not in OFFER_TEXTS and key not in declared:
                raise BadFile(path, f"offers.{name}.{key}: no such entry; wants {', '.join((*OFFER_TEXTS, *declared))}")
        texts = {key: facts.text(entry, key, path) for key in OFFER_TEXTS if key in entry}
        numbers = {key: facts.number(entry[key], q, f"{name}.{key}", sources, path) for key, q in declared.items() if key in entry}
        if "price_multiple" not in numbers:
            raise BadFile(path, f"offers.{name}.price_multiple: missing; wants the price over the standard tier's")
        if texts.get("basis", "price") not in BASES:
            raise BadFile(path, f"offers.{name}.basis: got {texts['basis']!r}; wants one of {', '.join(BASES)}")
        yield Offer(**{"offer": name, "provider": path.stem, "model": "", "tier": ""} | texts | numbers)


STANDARD_TPOT = default(0.020, "standard TPOT", "s", "a departure every 20 ms: 50 tokens/s, unless a TPOT is given")
AT = default(2.5, "at", "", "the speed of the first fast mode sold, at which domains are compared unless told")
DOMAINS = (2, 4, 8)
EVEN = (1.5, 3.0, 4.0)  # further speed multiples to plan, since a steep frontier has few points
SAME = 1e-9  # relative difference below which costs are equal
MULTIPLES = ("speed_multiple", "price_multiple", "speed_bought", "decode_price_multiple", "batch_ratio", "batch_ratio_identity",
             "batch_ratio_of_price")  # fmt: skip
LAID = ("ladder_price_multiple", "ladder_speed_multiple", "ladder_batch_ratio", "offer_over_ladder")
TEXTS = ("offer", "provider", "tier", "basis", "standing", "date", "source", "about")
KEYS = (*SERVE, *POOLED, "scale_up_domain", *MULTIPLES, *LAID, *TEXTS)
Read = Callable[["SpeedTier", str], Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpeedTier:
    """One point of a plan with its kind: standard, rung, floor (the fastest), domain, domain_floor; together, apart (the other way)."""

    kind: str
    plan: LayoutPlan
    at: int  # row in the plan
    row: Mapping[str, Any]
    domain: Any

    @property
    def decoders(self) -> str:
        """The column of the chips that decode: all of them, or with prefill apart one pool."""
        return "chips" if self.row.get("decode_chips") is None else "decode_chips"


@dataclass(frozen=True, kw_only=True)
class SpeedTiers:
    """Speed tiers from slowest to fastest, tiers on larger domains, and offers.

    `other_way` is the standard tier's other way of prefill, with one pool or apart, where both were weighed.
    """

    standard: SpeedTier
    rungs: tuple[SpeedTier, ...]
    wider: tuple[SpeedTier, ...]
    offers: tuple[Offer, ...]
    at: Any
    limit: Any  # TPOT limit (s) of the standard tier; None if it is the cheapest layout of all
    infeasible: str
    notes: tuple[str, ...]
    other_way: SpeedTier | None = None

    @cached_property
    def tiers(self) -> tuple[SpeedTier, ...]:
        """Every point of a plan, in order."""
        beside = () if self.other_way is None else (self.other_way,)
        return (*(tier for rung in self.rungs for tier in (rung, *(beside if rung is self.standard else ()))), *self.wider)

    @cached_property
    def plain(self) -> list[dict[str, Any]]:
        """Every row, with equal keys."""
        if self.infeasible:
            return [_row(self.standard, {})]
        return [*(_row(rung, self.measured(rung)) for rung in self.tiers), *map(self._offered, self.offers)]

    @property
    def rows(self) -> Listing:
        """The rows as a listing, to filter, sort, print and explain."""
        return Listing(self.plain, notes=self.notes, tree=self.tree)

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The multiples of every speed tier."""
        return [_multiples(self.standard, rung, _row_value) for rung in self.rungs]

    def measured(self, rung: SpeedTier, read: Read | None = None) -> dict[str, Any]:
        """The multiples of a speed tier over the standard tier, and the speed bought over the next slower tier."""
        read = read or _row_value
        multiples = _multiples(self.standard, rung, read)
        below = self.rungs[self.rungs.index(rung) - 1] if rung in self.rungs[1:] else None
        if below is None:
            return multiples
        slower = _multiples(self.standard, below, read)
        if multiples["price_multiple"] <= slower["price_multiple"] * (1 + SAME):
            return multiples
        pairs = (slower["speed_multiple"], multiples["speed_multiple"], slower["price_multiple"], multiples["price_multiple"])
        return multiples | {"speed_bought": laws.speed_bought(*pairs)}

    def between(self, x: str, at: Number, y: str, read: Read | None = None) -> Any:
        """The tiers' `y`, interpolated where their `x` is `at`; None beyond the ends."""
        for low, high, slower, faster in zip(self.rungs, self.rungs[1:], self.steps, self.steps[1:], strict=False):
            if slower[x] <= at <= faster[x] and slower[x] < faster[x]:
                if read is not None:
                    slower, faster = (_multiples(self.standard, rung, read) for rung in (low, high))
                return laws.between_rungs(at, slower[x], faster[x], slower[y], faster[y])
        return None

    def laid(self, offer: Offer, read: Read | None = None) -> dict[str, Any]:
        """An offer's multiples, and the multiples of this machine's tiers at its speed and at its price."""
        price, speed = offer.price_multiple, offer.speed_multiple
        multiples = {"price_multiple": price, "ladder_speed_multiple": self.between("price_multiple", price, "speed_multiple", read)}
        if speed is None:
            return multiples
        multiples |= {"speed_multiple": speed, "batch_ratio_of_price": laws.batch_ratio_identity(price, speed)}
        ladder = self.between("speed_multiple", speed, "price_multiple", read)
        if ladder is None:
            return multiples
        ratio = self.between("speed_multiple", speed, "batch_ratio", read)
        over = price / ladder
        return multiples | {"ladder_price_multiple": ladder, "ladder_batch_ratio": ratio, "offer_over_ladder": over}

    def _offered(self, offer: Offer) -> dict[str, Any]:
        texts = {"kind": "offer", "model": offer.model, "offer": offer.offer, "provider": offer.provider, "tier": offer.tier}
        texts |= {"basis": offer.basis, "date": offer.price_multiple.date, "source": offer.price_multiple.source, "about": offer.notes}
        multiples = self.laid(offer)
        return dict.fromkeys(KEYS) | texts | _floats(multiples) | {"standing": self._standing(offer, multiples)}

    def _standing(self, offer: Offer, multiples: Mapping[str, Any]) -> str:
        """Comparison of an offer with this machine's tiers, in words."""
        if offer.speed_multiple is None:
            cheapest = self.steps[0]["price_multiple"]
            return "cheaper than any rung" if offer.price_multiple < cheapest else "speed not published"
        if "offer_over_ladder" not in multiples:
            fastest = self.steps[-1]["speed_multiple"]
            return "faster than any rung" if offer.speed_multiple > fastest else "slower than any rung"
        return "above the ladder" if multiples["offer_over_ladder"] > 1 else "below the ladder"

    def tree(self, row: Mapping[str, Any], key: str) -> Any:
        """One number of one row as a tree of laws."""
        number, read = self.plain.index({name: row[name] for name in KEYS}), cache(_explained)
        with record():
            if self.infeasible or number < len(self.tiers):
                return self._rung_tree(self.standard if self.infeasible else self.tiers[number], key, read)
            value = self.laid(self.offers[number - len(self.tiers)], read).get(key)
        if value is None:
            raise BadValue("explain", key, "a number of this row: an offer whose speed is published has the ladder's there")
        return value

    def _rung_tree(self, rung: SpeedTier, key: str, read: Read) -> Any:
        if key in (*MULTIPLES, *LAID) and not self.infeasible:
            value = self.measured(rung, read).get(key)
            if value is not None:
                return value
        if key not in (*SERVE, *POOLED):
            raise BadValue("explain", key, "a numeric column that applies to this row, such as price_multiple or tpot_s")
        return rung.plan.explain(key, rung.at)


def _row_value(rung: SpeedTier, key: str) -> Any:
    return rung.row[key]


def _explained(rung: SpeedTier, key: str) -> Any:
    return rung.plan.explain(key, rung.at)


def _multiples(standard: SpeedTier, rung: SpeedTier, read: Read) -> dict[str, Any]:
    """Speed, price and batch of a speed tier over those of the standard tier; sequences are per chip that decodes."""
    base_batch, rung_batch = (read(member, "concurrency") / read(member, member.decoders) for member in (standard, rung))
    theirs, mine = (
        read(standard, "tpot_s") / base_batch,
        read(rung, "tpot_s") / rung_batch,
    )
    speed = read(standard, "tpot_s") / read(rung, "tpot_s")
    decode = mine / theirs
    price = read(standard, "tok_per_s_chip") / read(rung, "tok_per_s_chip")
    return {
        "speed_multiple": speed,
        "price_multiple": price,
        "decode_price_multiple": decode,
        "batch_ratio": base_batch / rung_batch,
        "batch_ratio_identity": laws.batch_ratio_identity(decode, speed),
        "batch_ratio_of_price": laws.batch_ratio_identity(price, speed),
    }


def _row(rung: SpeedTier, multiples: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: rung.row[key] for key in SERVE} | {key: rung.row.get(key) for key in POOLED}
    return dict.fromkeys(KEYS) | plain | {"kind": rung.kind, "scale_up_domain": int(rung.domain)} | _floats(multiples)


def _floats(multiples: Mapping[str, Any]) -> dict[str, Any]:
    return {key: None if value is None else float(value) for key, value in multiples.items()}


# -- the search -----------------------------------------------------------------------------------------------------------------


def ladder(
    model: Model | str,
    system: System | str,
    load: Load,
    *,
    ttft: Second = None,
    tpot: Second = None,
    weights: str | Sequence[str] = ("",),
    kv: str | Sequence[str] = (),
    compute: str | Sequence[str] = ("",),
    ways: Mapping[str, Any] | None = None,
    assumptions: Assumptions | None = None,
    disaggregate: str | bool = "auto",
    at: Number = AT,
    domains: Sequence[int] = DOMAINS,
    offers: Sequence[Offer] | None = None,
) -> SpeedTiers:
    """The speed tiers of one model on one machine. The standard tier is the cheapest within `tpot`, by default 20 ms.

    Each tier has one pool or prefill apart, whichever costs less per request (`disaggregate` as in `plan`).

    `at` is the speed multiple at which machines of `domains` times the scale-up domain are compared; `offers` defaults to the
    catalogue's offers. A `tpot` that nothing meets is an answer (`infeasible`); invalid input is a HeadwayError.
    """
    resolved_model = find_model(model) if isinstance(model, str) else model
    machine = find_system(system) if isinstance(system, str) else system
    searched = {"ttft": ttft, "weights": weights, "kv": kv, "compute": compute, "ways": ways, "assumptions": assumptions,
                "disaggregate": disaggregate}  # fmt: skip
    planned: Callable[..., LayoutPlan] = partial(plan, resolved_model, load=load, elasticities=False, **searched)
    limit = STANDARD_TPOT if tpot is None else tpot
    first = planned(machine, tpot=limit, frontier=False)
    notes: tuple[str, ...] = ()
    if first.infeasible and tpot is None:
        slower = planned(machine, frontier=False)
        if not slower.infeasible:
            notes = (f"nothing meets the default TPOT of 20 ms ({first.infeasible}): the standard tier is the cheapest of all",)
            first, limit = slower, None
    standard = SpeedTier(kind="standard", plan=first, at=0, row=first.table.row(0), domain=domain_of(machine))
    sold = tuple(catalogue_offers() if offers is None else offers)
    if first.infeasible:
        return _ladder(standard, (), (), sold, at, limit, first)
    rungs = _rungs(standard, planned, machine, [at, *EVEN, *(offer.speed_multiple for offer in sold if offer.speed_multiple is not None)])
    wider, more = _wider(standard, planned, machine, domains, at)
    return _ladder(standard, rungs, wider, sold, at, limit, first, (*notes, *more))


def _ladder(
    standard: SpeedTier, rungs: Sequence[SpeedTier], wider: Sequence[SpeedTier], sold: tuple[Offer, ...], at: Number, limit: Any,
    first: LayoutPlan, notes: Sequence[str] = (),
) -> SpeedTiers:  # fmt: skip
    all_notes = (*notes, *first.notes)
    place = next((number for number, kind in enumerate(first.table.values("kind")) if kind in OTHER_WAYS), None)
    row = None if place is None else first.table.row(place)
    other_way = None
    if row is not None and place is not None and row["fits"]:
        other_way = SpeedTier(kind=row["kind"], plan=first, at=place, row=row, domain=standard.domain)
    rest = {"at": at, "limit": limit, "infeasible": first.infeasible, "notes": all_notes, "other_way": other_way}
    return SpeedTiers(standard=standard, rungs=tuple(rungs), wider=tuple(wider), offers=sold, **rest)


def _rungs(standard: SpeedTier, planned: Callable[..., LayoutPlan], machine: System, speeds: Sequence[Any]) -> list[SpeedTier]:
    """The frontier, the standard tier and the cheapest tier at each of `speeds`, slowest first, dominated tiers dropped.

    The frontier is of no TPOT limit: pools within one have no slower tiers.
    """
    free, new_rung = planned(machine), partial(SpeedTier, kind="rung", domain=standard.domain)
    rungs = [new_rung(plan=free, at=at, row=row) for at, row in enumerate(free.rows()) if row["kind"] == "frontier"]
    for speed in sorted(set(speeds)):
        candidate = planned(machine, tpot=float(standard.row["tpot_s"] / speed), frontier=False)
        if not candidate.infeasible:
            rungs.append(new_rung(plan=candidate, at=0, row=candidate.table.row(0)))
    rungs.sort(key=lambda rung: (rung.row["tpot_s"], -rung.row["tok_per_s_chip"]))
    front: list[SpeedTier] = []
    for candidate in rungs:
        if not front or candidate.row["tok_per_s_chip"] > front[-1].row["tok_per_s_chip"] * (1 + SAME):
            front.append(candidate)
    standard_tpot = standard.row["tpot_s"]
    front = [rung for rung in front if not isclose(rung.row["tpot_s"], standard_tpot, rel_tol=SAME)]
    front[:1] = [replace(rung, kind="floor") if rung.row["tpot_s"] < standard_tpot else rung for rung in front[:1]]
    return sorted([*front, standard], key=lambda rung: -rung.row["tpot_s"])


def _wider(
    standard: SpeedTier, planned: Callable[..., LayoutPlan], machine: System, domains: Sequence[int], at: Number
) -> tuple[list[SpeedTier], list[str]]:
    """Tiers on larger domains: the cheapest at the speed multiple `at`, and the fastest; with notes."""
    rungs, notes = [], []
    limit = float(standard.row["tpot_s"] / at)
    for factor in domains:
        try:
            wide = widened(machine, factor)
            wide_plan = planned(wide, tpot=limit)
        except HeadwayError as error:
            notes.append(f"a scale-up domain {factor:g}x as large is left out: {error}")
            continue
        new_rung = partial(SpeedTier, plan=wide_plan, domain=wide.scale_up_domain)
        if not wide_plan.infeasible:
            rungs.append(new_rung(kind="domain", at=0, row=wide_plan.table.row(0)))
        fast = [(row["tpot_s"], at, row) for at, row in enumerate(wide_plan.rows()) if row["kind"] == "frontier"]
        if fast:
            _, place, row = min(fast, key=lambda entry: entry[:2])
            rungs.append(new_rung(kind="domain_floor", at=place, row=row))
    return rungs, notes


def widened(machine: System, factor: int) -> System:
    """The machine with a scale-up domain `factor` times as large, with more chips if it has too few."""
    domain = int(domain_of(machine) * factor)
    if domain > MOST_CHIPS:
        raise BadValue("domains", f"{domain} chips", f"at most {MOST_CHIPS}")
    wide = edit(machine, "system.chips", domain) if machine.chips < domain else machine
    sides = sorted(machine.shape)  # a torus grows along its shortest side
    shape = (user_input(int(sides[0] * factor), "shape"), *sides[1:]) if sides else ()
    return replace(edit(wide, "system.scale_up_domain", domain), shape=shape, name=f"{machine.name} with a domain of {domain}")
