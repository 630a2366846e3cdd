"""Subject of `cache` from the command line: model, machine, tiers, and cost of recomputing tokens."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.answers import arguments
from headway.answers.no_effect import search_notes, shown_notes
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.quantity import default
from headway.core.question import refuse
from headway.economics.cache.problem import CacheProblem
from headway.economics.cache.records import CacheHold, PrefillCost
from headway.economics.cache.tiers import EDITED, edit_of
from headway.economics.questions import Cache
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout

OWN_FLAGS = ("hit_rate", "mfu")  # of the service, and of computing again, in place of the assumptions
PROBED = {"prompt": 8192, "output": 1024}  # load at which an assumption is tried
TIERS = "hbm,ddr,cxl,flash,disk"
CHIP_MEMORY, ALL = "hbm", "all"
HOLDS = (300.0, 3600.0, 86400.0)
MOST_CASES = 200
MOST_VALUES = 10_000  # holds, reuses, uses


@dataclass(frozen=True, kw_only=True)
class CacheQuestion:
    """A cache problem, with the inputs in which it differs from the others."""

    case: Any
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _UsefulFlags:
    """Which flags count for a question: a flag that is not read is refused, whatever its value."""

    lengths: bool  # --prompt and --output
    recompute: bool  # what computing again costs counts
    typed_cost: bool  # and is typed, so that no layout is searched
    mfu: bool
    quote: bool  # the price of a chip counts

    @property
    def is_estimated(self) -> bool:
        """Whether a layout is searched for what computing again costs."""
        return self.recompute and not self.typed_cost

    def costs(self) -> tuple[str, ...]:
        """Fields of PrefillCost that do not count."""
        return (*(() if self.lengths else ("prompt", "output")), *(() if self.recompute else ("mfu", "fresh", "active")))

    def formats(self, args: Cache) -> tuple[str, ...]:
        """Fields of Precision that do not count."""
        kv = () if self.is_estimated or args.kv_bytes is None else ("kv",)
        return (*kv, *(() if self.is_estimated else ("weights",)), *(() if self.is_estimated or self.mfu else ("compute",)))

    def skipped(self, args: Cache) -> tuple[str, ...]:
        """Every field that does not count."""
        of_layout = () if self.is_estimated else tuple(schema.fields(Layout))
        of_step = tuple(name for name in self.assumptions() if name not in OWN_FLAGS)
        return (*self.costs(), *of_layout, *self.formats(args), *of_step)

    def assumptions(self) -> tuple[str, ...]:
        """Fields of Assumptions that do not count."""
        rest = () if self.is_estimated else tuple(name for name in schema.fields(Assumptions) if name != "price_metric")
        return (*OWN_FLAGS, *(name for name in rest if name not in OWN_FLAGS), *(() if self.quote else ("price_metric",)))


def _useful_flags(args: Cache, lengths: bool, recompute: bool) -> _UsefulFlags:
    typed_cost = args.mfu is not None or args.fresh is not None
    in_hbm = bool(args.on) and CHIP_MEMORY in _tiers(args)
    return _UsefulFlags(
        lengths=lengths or (recompute and not typed_cost), recompute=recompute, typed_cost=typed_cost,
        mfu=recompute and args.mfu is not None, quote=recompute or in_hbm,
    )  # fmt: skip


def _recompute_values(args: Cache, useful: _UsefulFlags) -> dict[str, Any]:
    """What the user said of computing again."""
    values = schema.read(args, PrefillCost, skip=useful.costs())
    if len({"mfu", "fresh"} & values.keys()) > 1:
        raise BadValue("--mfu", "both --mfu and --fresh", "one of them")
    if "active" in values and "mfu" not in values:
        raise BadValue("--active", args.active, "--mfu beside it: nothing else reckons with it")
    return values


def cases(args: Cache, lengths: bool = False, recompute: bool = True) -> list[CacheQuestion]:
    """Cache problems for each combination of models, machines, edits, formats and numbers.

    `lengths`: prompt and output count even where no layout is searched; `recompute`: what computing again costs counts.
    """
    useful = _useful_flags(args, lengths, recompute)
    recompute_values = _recompute_values(args, useful)
    formats = schema.read(args, Precision, skip=useful.formats(args))
    assumptions = schema.read(args, Assumptions, skip=useful.assumptions())
    if not useful.is_estimated:
        refuse(args, {"embedding": "a question that searches a layout, whose weights it is about"})
    refuse(args, dict.fromkeys(useful.skipped(args), ""))
    models = arguments.models(args) if args.model else [None]
    if args.model and args.on and useful.is_estimated:
        note(*search_notes(_of_machine(args), PROBED, skip=OWN_FLAGS))
    axes = schema.axes(recompute_values | assumptions)
    kv_axes = schema.axes({"kv": formats.get("kv") or "bf16"})
    for key, number_format in formats.items():
        if key != "kv" and isinstance(number_format, tuple):
            raise BadValue(f"--{key}", ", ".join(number_format), "one format")
    variants = []
    for model, (system, edits, tiers), kv, values in itertools.islice(
        itertools.product(models, list(_machines(args)), kv_axes["kv"], itertools.product(*axes.values())), MOST_CASES + 1
    ):
        point = dict(zip(axes, values, strict=True))
        extra = edits | {key: value for key, value in point.items() if len(axes[key]) > 1} | ({"kv": kv} if len(kv_axes["kv"]) > 1 else {})
        case = CacheProblem(
            model=model, system=system, kv=kv, weights=formats.get("weights") or "", compute=formats.get("compute") or "",
            ways=schema.read(args, Layout) if useful.is_estimated else {}, tiers=_tiers(args), edits=tiers,
            catalog=arguments.catalog(args),
            assumptions=schema.defaults(Assumptions, {key: value for key, value in point.items() if key in assumptions}),
            **{key: value for key, value in point.items() if key in recompute_values},
        )  # fmt: skip
        variants.append(CacheQuestion(case=case, extra=extra))
    if len(variants) > MOST_CASES:
        raise BadValue("cache", "too many combinations of models, machines, formats and numbers", f"at most {MOST_CASES}")
    if useful.is_estimated and args.model and args.on:
        note(*shown_notes(_of_machine(args), [variant.case.recompute.plan.best for variant in variants], skip=OWN_FLAGS))
    return variants


def _machines(args: Cache) -> Iterator[tuple[Any, dict[str, Any], dict[str, dict[str, Any]]]]:
    """Machines for each combination of --set values, with their edits and those of tiers."""
    machine_edits = _of_machine(args).set
    of_tiers = [text for text in args.set if text not in machine_edits]
    edits: dict[str, dict[str, Any]] = {}
    for text in of_tiers:
        name, facts = edit_of(text)
        if name not in _tiers(args):
            raise BadValue("--set", text, f"one of the tiers asked for: {', '.join(_tiers(args))}")
        edits.setdefault(name, {}).update(facts)
    if not args.on:
        if machine_edits:
            raise BadValue("--set", machine_edits[0], "--on MACHINE beside it")
        yield None, {}, edits
        return
    for system, varied in arguments.systems(_of_machine(args)):
        yield system, varied if any("," in text for text in machine_edits) else {}, edits


def _of_machine(args: Cache) -> Any:
    """The arguments without the edits of tiers."""
    return args.replace(set=tuple(text for text in args.set if not text.strip().startswith(EDITED)))


def _tiers(args: Cache) -> tuple[str, ...]:
    if args.tier == ALL:
        from headway.hardware.memory_tier import tiers

        return (CHIP_MEMORY, *(tier.name for tier in tiers(arguments.catalog(args)) if tier.memory != CHIP_MEMORY))
    names = tuple(part.strip() for part in (args.tier or TIERS).split(","))
    if not all(names) or len(set(names)) < len(names):
        raise BadValue("--tier", args.tier, "names of tiers, each once, such as hbm,ddr,flash,disk")
    return names


def holds(args: Cache) -> dict[str, tuple[Any, ...]]:
    """Fields of CacheHold from the command line, each a list."""
    hold_values = schema.read(args, CacheHold, most=MOST_VALUES)
    axes = schema.axes(hold_values)
    if "hold" not in axes:
        axes["hold"] = tuple(default(seconds, "hold", "s", "default of --hold") for seconds in HOLDS)
        note("by default --hold 5min,1h,24h")
    return axes
