"""Whose KV is held, on which machine, in which tiers, and what it costs to compute again: as typed on the command line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

from headway import schema
from headway.assumptions import Assumptions
from headway.cli import subjects
from headway.errors import BadValue
from headway.layout import Layout
from headway.precision import Precision
from headway.quantity import default, given
from headway.schema import Q
from headway.workload import MOST

TIERS = "hbm,ddr,flash,disk"
REQUEST = {"prompt": 8000, "output": 1000}
MOST_CASES = 200
COUNT = Q("token", whole=True, low=1, open_low=False, high=MOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """The model, and what computing its tokens costs, where it is not the estimate's answer."""

    prompt: Annotated[Any, replace(COUNT, help="prompt tokens of a request, for the estimate of prefill (default 8k)")] = None
    output: Annotated[Any, replace(COUNT, help="output tokens of a request (default 1k)")] = None
    mfu: Annotated[Any, Q(high=1, help="computing again reaches this share of the peak, instead of the estimate")] = None
    fresh: Annotated[Any, Q("token/s", high=1e12, help="prompt tokens that one chip was measured to compute, instead")] = None
    kv_bytes: Annotated[Any, Q("byte", high=1e12, help="KV bytes per token, instead of the model's")] = None
    active: Annotated[Any, Q(high=1e15, help="active parameters, instead of the model's (for --mfu)")] = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """One model on one machine with one set of numbers."""

    args: Any
    model: Any  # None where --kv-bytes stands for it
    system: Any  # None where none was named
    asked: Mapping[str, Any]  # fields of Fresh
    kv: str
    compute: str
    assumed: Mapping[str, Any]
    tiers: tuple[str, ...]
    edits: Mapping[str, Mapping[str, Any]]  # tier -> its facts as the user has them
    extra: Mapping[str, Any]  # what was varied

    @property
    def name(self) -> str:
        """The model in a row."""
        return self.model.name if self.model is not None else "-"

    @property
    def machine(self) -> str:
        """The machine in a row."""
        return self.system.name if self.system is not None else "-"

    def kv_bytes(self) -> Any:
        """KV bytes of one token, index keys included, in the format asked for."""
        if "kv_bytes" in self.asked:
            return given(float(self.asked["kv_bytes"]), "kv_bytes", "byte/token")
        from headway.laws.sums import total
        from headway.precision import formats
        from headway.whole_model import index_bytes_per_token, kv_bytes_per_token

        if self.model is None:
            raise BadValue("cache", "no model", "a model, such as headway cache deepseek-v3 --on 8xh200, or --kv-bytes 35kB")
        element = formats()[self.kv].bytes
        found = total((kv_bytes_per_token(self.model, element), index_bytes_per_token(self.model, element)))
        if not found > 0:
            raise BadValue("model", self.model.name, "a model whose cache grows with the context, or --kv-bytes 35kB")
        return found

    def price(self) -> Any:
        """What one chip costs."""
        from headway.chip import chip_price
        from headway.errors import MissingFact

        taken = schema.defaults(Assumptions, dict(self.assumed))
        found = chip_price(self._machine().chip, taken.price_metric)
        if found is None:
            how = "give --set chip.price=$2/h or another --price-metric"
            raise MissingFact(self.system.chip.name, f"price ({taken.price_metric})", how)
        return found

    def _machine(self) -> Any:
        if self.system is None:
            raise BadValue("--on", "nothing", "a machine whose chips compute and whose HBM holds, such as --on 8xh200")
        return self.system

    def places(self) -> list[Any]:
        """The tiers asked for; laws are recorded where they are made within `record()`."""
        from headway.cache_place import OWN, device_named, own_memory, place_of

        found = []
        for name in self.tiers:
            if name == OWN and self.system is not None and OWN not in self.edits:
                found.append(own_memory(self.system.chip, self.price()))
            else:
                found.append(place_of(device_named(name, dict(self.edits.get(name, {})), subjects.catalog(self.args)), name))
        return found

    @cached_property
    def recompute(self) -> Any:
        """What computing a token again costs."""
        from headway.recompute import Recompute

        chip = self._machine().chip
        shared = {"chip": chip, "price": self.price()}
        if "fresh" in self.asked:
            return Recompute(**shared, fresh=self.asked["fresh"])
        if "mfu" in self.asked:
            if self.model is None and "active" not in self.asked:
                raise BadValue("--mfu", "no model", "a model, or --active 37B")
            from headway.resolve import peak

            wanted = self.compute or self._stored()
            return Recompute(
                **shared, mfu=self.asked["mfu"], model=self.model, active=self.asked.get("active"), compute=peak(chip, wanted)[0]
            )
        return Recompute(**shared, plan=self._plan())

    def _stored(self) -> str:
        """The format that most of the checkpoint is multiplied in."""
        if self.model is None:
            return "bf16"
        from headway.compile import work_of
        from headway.resolve import STORED, main_part

        blocks = work_of(self.model).blocks
        block, part = main_part(blocks)
        return getattr(blocks[block], f"{STORED[part]}_dtype")

    def _plan(self) -> Any:
        from headway.plan import plan
        from headway.workload import Load

        if self.model is None:
            raise BadValue("cache", "no model", "a model, or --fresh 4k/s or --mfu 0.5 --active 37B for what computing again costs")
        load = {key: self.asked.get(key, default(most, key, "token", f"default of --{key}")) for key, most in REQUEST.items()}
        ways, _ = schema.read(self.args, Layout)
        weights, _ = schema.read(self.args, Precision)
        chosen = {key: weights.get(key, "") for key in ("weights", "compute")}
        found = plan(
            self.model, self.system, Load(**load), **chosen, kv=self.kv, ways=ways,
            assumptions=schema.defaults(Assumptions, dict(self.assumed)), elasticities=False,
        )  # fmt: skip
        if found.infeasible:
            wants = "a machine that holds the model, or --fresh 4k/s or --mfu 0.5 for what computing again costs"
            raise BadValue("--on", f"{self.machine}: {found.infeasible}", wants)
        return found

    def subject(self, traced: bool = False) -> Any:
        """What is held and what it would cost to compute; with its equations where asked for (within `record()`)."""
        from headway.cache import Subject

        return Subject(
            model=self.name, system=self.machine, kv=self.kv_bytes(), chip_time=self.recompute.chip_time(traced), price=self.price()
        )


def add_flags(parser: Any) -> None:
    """The model, the machine, the tiers, and how tokens are computed again."""
    parser.add_argument("model", nargs="?", help="catalogue name, config.json or Hugging Face id; several with commas")
    parser.add_argument("--on", metavar="MACHINE", help="machine that computes, whose HBM is the tier hbm: 8xh200, gb200-nvl72, ...")
    parser.add_argument("--tier", metavar="NAME,...", help=f"tiers or devices: ddr, cxl, remote, qlc, s3, tlc_4tb, ... (default {TIERS})")
    schema.add_flags(parser, Fresh, group="computing again")


def cases(args: Any) -> tuple[list[Case], list[str]]:
    """Every combination of models, machines, edits, formats and numbers, and notes."""
    asked, notes = schema.read(args, Fresh)
    if len({"mfu", "fresh"} & asked.keys()) > 1:
        raise BadValue("--mfu", "both --mfu and --fresh", "one of them")
    formats, _ = schema.read(args, Precision)
    taken, more = schema.read(args, Assumptions)
    models = subjects.models(args) if args.model else [None]
    axes = {key: value if isinstance(value, tuple) else (value,) for key, value in (asked | taken).items()}
    kept = {key: value if isinstance(value, tuple) else (value,) for key, value in {"kv": formats.get("kv") or "bf16"}.items()}
    compute = formats.get("compute") or ""
    for key, one in formats.items():
        if key != "kv" and isinstance(one, tuple):
            raise BadValue(f"--{key}", ", ".join(one), "one format")
    found = []
    for model, (system, edits, tiers), kv, values in itertools.islice(
        itertools.product(models, list(_machines(args)), kept["kv"], itertools.product(*axes.values())), MOST_CASES + 1
    ):
        point = dict(zip(axes, values, strict=True))
        extra = edits | {key: value for key, value in point.items() if len(axes[key]) > 1} | ({"kv": kv} if len(kept["kv"]) > 1 else {})
        found.append(Case(
            args=args, model=model, system=system, kv=kv, compute=compute, tiers=_tiers(args), edits=tiers, extra=extra,
            asked={key: value for key, value in point.items() if key in asked},
            assumed={key: value for key, value in point.items() if key in taken},
        ))  # fmt: skip
    if len(found) > MOST_CASES:
        raise BadValue("cache", "too many combinations of models, machines, formats and numbers", f"at most {MOST_CASES}")
    return found, [*notes, *more]


def _machines(args: Any) -> Iterator[tuple[Any, dict[str, Any], dict[str, dict[str, Any]]]]:
    """Each machine with each combination of --set values: its own edits, and those of tiers."""
    from headway.cache_place import EDITED, edit_of

    of_tiers = [text for text in args.set if text.strip().startswith(EDITED)]
    others = [text for text in args.set if text not in of_tiers]
    edits: dict[str, dict[str, Any]] = {}
    for text in of_tiers:
        name, facts = edit_of(text)
        if name not in _tiers(args):
            raise BadValue("--set", text, f"one of the tiers asked for: {', '.join(_tiers(args))}")
        edits.setdefault(name, {}).update(facts)
    if not args.on:
        if others:
            raise BadValue("--set", others[0], "--on MACHINE beside it")
        yield None, {}, edits
        return
    plain = _Set(args, others)
    for system, varied in subjects.systems(plain):
        yield system, varied if any("," in text for text in others) else {}, edits


class _Set:
    """The arguments with other --set texts."""

    def __init__(self, args: Any, texts: list[str]) -> None:
        self.on, self.catalog, self.set = args.on, args.catalog, texts


def _tiers(args: Any) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (args.tier or TIERS).split(","))
    if not all(names) or len(set(names)) < len(names):
        raise BadValue("--tier", args.tier, "names of tiers, each once, such as hbm,ddr,flash,disk")
    return names
