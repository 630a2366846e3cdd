"""Answer of `train`: the best layouts of a run, or a given layout, as rows with explanations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from headway.core import schema
from headway.core.columns import table as column_table
from headway.core.errors import BadValue
from headway.core.listing import Listing, clean, computed
from headway.core.trace import record
from headway.core.units import show
from headway.hardware.chip import price_quote
from headway.hardware.chip_price import MARKET, price_name, price_origin
from headway.laws.step.layer_terms import idle_chips, replica_chips
from headway.training.estimate import overlap
from headway.training.helps import advice
from headway.training.recipe import OBJECTIVES, RECOMPUTE, Failures, Recipe, TrainingReach, TrainingRun
from headway.training.run import case_of, totals
from headway.training.search import (
    LayoutEstimate,
    TrainingAnswer,
    TrainingRequest,
    bounds_of,
    candidates,
    layout_at,
    plainer,
    with_recipe,
)
from headway.training.sizing import keeps, missed_by, misses, planned

TIMES = ("compute", "attention", "traffic", "head", "launch", "tp", "cp", "ep", "bubble", "parameters", "update")  # parts of a step
PARTS = ("weights", "gradients", "optimizer", "gathered", "activations", "head", "allowance")  # of the memory of a chip
RECORDS = (TrainingRun, Recipe, Failures, TrainingReach)  # lists in these records make a row each; lists in TrainingLayout limit the search
MOST_CASES = 200
UNFIT, OVER, LADDER = "does not fit", "over a limit", "ladder"
SURE = 0.8  # chance with which a deadline and a budget are kept unless the user says another
MOST_TWINS = 3  # that a note names
SAMPLED = 24  # layouts at which an input is tried
MOST_ROWS = 8


def answers(requests: Sequence[TrainingRequest]) -> list[tuple[TrainingRequest, TrainingAnswer]]:
    """The answer of each request, the best by the objective first; those that miss a limit, and then those that do not fit, last."""
    return sorted(((request, planned(request)) for request in requests), key=lambda pair: _rank(*pair))


def _rank(request: TrainingRequest, trained: TrainingAnswer) -> tuple[bool, bool, float]:
    first = trained.layouts[0]
    run = totals(request, first)[1]
    if first.fits and not keeps(request, run):
        return False, True, missed_by(request, run.run, run.usd)
    value = first.step / float(first.case.batch) / float(run.goodput)
    if request.objective == "chips":
        value = float(first.case.system.chips)
    elif request.objective == "cost" and run.usd is not None:
        value = float(run.usd) / float(request.run.tokens)
    return not first.fits, not keeps(request, run), value


def rows(request: TrainingRequest, trained: TrainingAnswer, most: int = MOST_ROWS) -> list[dict[str, Any]]:
    """At most `most` rows of the answer, best first; one that needs more memory than a chip has is never printed like one that runs."""
    first, row_list = trained.layouts[0], []
    for place, layout in enumerate(trained.layouts[:most]):
        columns = row(request, layout, "next" if place else "best")
        row_list.append(columns | {"why": columns["why"] or plainer(layout, first)})
    return row_list


def row(request: TrainingRequest, candidate: LayoutEstimate, kind: str) -> dict[str, Any]:
    """Every contract column of one layout."""
    case, layout, recipe = candidate.case, candidate.layout, candidate.case.recipe
    result, run = totals(request, candidate)
    time, memory, use, has = result.time, result.memory, result.use, case.system.chip.need("hbm")
    low, high = (case.batch / (step * case.system.chips) for step in (result.step_high, result.step_low))
    why = ""
    if not bool(result.fits):
        largest = max(PARTS, key=lambda name: float(getattr(memory, name)))
        words = column_table("train")[f"{largest}_bytes_chip"].doc.partition(": ")[2]
        part = f"{words}, {show(getattr(memory, largest), 'byte')}"
        why, kind = f"needs {show(memory.total, 'byte')} on the fullest chip, which has {show(has, 'byte')}; largest: {part}", UNFIT
    elif limits := misses(request, run):
        why, kind = f"misses {' and '.join(limits)}", kind if kind == LADDER else OVER
    return {
        "kind": kind, "model": request.model.name, "system": case.system.name, "chips": case.system.chips,
        "chips_idle": idle_chips(case.system.chips, replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)),
        **{field.name: getattr(layout, field.name) for field in fields(layout)},
        "recompute": recipe.recompute, "schedule": recipe.schedule, "dtype": recipe.dtype, "optimizer": case.optimizer.name,
        "seq": case.work.sequence, "global_batch": case.batch, "micro_batches": result.micro_batches,
        "step_s": time.step, "step_floor_s": time.floor, "step_lo_s": result.step_low, "step_hi_s": result.step_high,
        "tokens_per_s_chip": result.tokens_per_s_chip, "tokens_per_s_chip_lo": low, "tokens_per_s_chip_hi": high,
        "mfu": use.mfu, "mfu_full": use.mfu_full, "hfu": use.hfu, "flops_chip": use.flops_chip, "flops_chip_full": use.flops_chip_full,
        "memory_bytes_chip": memory.total, "memory_bytes_chip_lo": result.memory_low, "memory_bytes_chip_hi": result.memory_high,
        "hbm_bytes_chip": has,
        **{f"{name}_bytes_chip": getattr(memory, name) for name in PARTS},
        **{f"{name}_s": getattr(time, name) for name in TIMES},
        **overlap(case, layout),
        "bound": max(TIMES, key=lambda name: float(getattr(time, name))), "fits": bool(result.fits), "why": why,
        "tokens": request.run.tokens, "goodput": run.goodput, "run_s": run.run, "run_lo_s": run.run_low, "run_hi_s": run.run_high,
        "run_usd": run.usd, "run_usd_lo": run.usd_low, "run_usd_hi": run.usd_high, "energy_j": run.energy, "run_flop": run.flop,
        "confidence": run.confidence,
    }  # fmt: skip


def sample(request: TrainingRequest) -> list[dict[str, Any]]:
    """Rows of layouts taken evenly from all that are legal, whether they fit or not: what an input can change at all."""
    case = case_of(request)
    layouts = candidates(bounds_of(request.model, case), int(request.system.scale_up_domain), request.pinned)
    case = with_recipe(case, request.model, replace(case.recipe, recompute=request.modes[0]))
    places = np.unique(np.linspace(0, len(layouts.tp) - 1, SAMPLED).astype(int)) if len(layouts.tp) else ()
    picks = [layout_at(layouts, int(place), request.pinned) for place in places]
    return [row(request, LayoutEstimate(case=case, layout=layout, step=0, fits=True, bytes=0), "next") for layout in picks]


def _twin_notes(trained: TrainingAnswer) -> Iterator[str]:
    """A note on the twins of the best layout, each by what differs."""
    first = trained.layouts[0]
    if first.fits and trained.twins:
        words = [f"{_difference(twin, first)} ({twin.step / first.step - 1:.1%} slower)" for twin in trained.twins[:MOST_TWINS]]
        yield f"as fast by these laws, which tell no 2 % apart, and joined with the best row: {'; '.join(words)}"


def _difference(twin: LayoutEstimate, first: LayoutEstimate) -> str:
    """Values of a twin that are not those of the best layout."""
    values = [(name, int(getattr(twin.layout, name)), int(getattr(first.layout, name))) for name in ("vpp", "micro_batch", "zero")]
    texts = [f"{name}={value}" for name, value, best in values if value != best]
    mode = twin.case.recipe.recompute
    return " ".join([*texts, *([f"recompute={mode}"] if mode != first.case.recipe.recompute else [])])


def _price_notes(request: TrainingRequest) -> tuple[str, ...]:
    """What a run's cost rests on; none where no run is asked about."""
    if request.run.tokens is None:
        return ()
    price = price_quote(request.system.chip, request.price_metric)
    if price is None:
        return (f"{request.system.chip.name} has no {price_name(request.price_metric)} in the catalogue: --set chip.price=$2/h gives one",)
    return (f"chip price {price_origin(price)}" + ("" if price.metric == "input" else "; --price-metric or --set chip.price changes it"),)


# -- from flags to requests -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """Flags of a question to every model and machine; values may be tuples."""

    records: Mapping[type, Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    objective: str | None = None  # None: the step, or under a deadline the chips
    deadline: Any = None
    budget: Any = None
    confidence: float | None = None  # of both; None: SURE
    price_metric: str = MARKET


def cases(models: Iterable[Any], systems: Iterable[Any], request: TrainingQuestion) -> list[TrainingRequest]:
    """One request for each combination of listed values; lists of layout values limit the search instead."""
    if request.objective not in (None, *OBJECTIVES):
        raise BadValue("--objective", request.objective, "one of " + ", ".join(OBJECTIVES))
    if request.confidence is not None and request.deadline is None and request.budget is None:
        raise BadValue("--confidence", request.confidence, "--deadline or --budget beside it: it is the chance that these are kept")
    given_of = {record: dict(request.records.get(record, {})) for record in RECORDS}
    modes = given_of[Recipe].pop("recompute", RECOMPUTE)
    limits = {name: tuple(int(v) for v in (value if isinstance(value, tuple) else (value,))) for name, value in request.layout.items()}
    shared: dict[str, Any] = {
        "modes": (modes,) if isinstance(modes, str) else tuple(modes), "price_metric": request.price_metric,
        "objective": request.objective or ("step" if request.deadline is None else "chips"),
        "deadline": request.deadline, "budget": request.budget, "confidence": SURE if request.confidence is None else request.confidence,
        "row_names": (*(name for name, values in limits.items() if len(values) > 1), *(() if modes == RECOMPUTE else ("recompute",))),
    }  # fmt: skip
    requests = []
    for model, system, records in itertools.product(models, systems, _points(given_of)):
        run, recipe, failures, efficiency = records
        plain = {"vpp": (1,)} if "schedule" in given_of[Recipe] and recipe.schedule == "1f1b" else {}  # explicit 1F1B: no chunks
        subject = {"model": model, "system": system, "run": run, "recipe": recipe, "failures": failures, "efficiency": efficiency}
        requests.append(TrainingRequest(**subject, pinned=plain | limits, **shared))
        if len(requests) > MOST_CASES:
            raise BadValue("train", "more combinations of lists", f"at most {MOST_CASES}")
    return requests


def _points(given_of: Mapping[type, Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """The records of every combination of listed values."""
    choices = []
    for record_type, values in given_of.items():
        axes = {name: value if isinstance(value, tuple) else (value,) for name, value in values.items()}
        variants = []
        for combination in itertools.product(*axes.values()):
            plain = dict(zip(axes, combination, strict=True))
            variants.append(TrainingReach(**plain) if record_type is TrainingReach else schema.defaults(record_type, plain))
        choices.append(variants)
    return list(itertools.product(*choices))


def swept(requests: Sequence[TrainingRequest]) -> tuple[tuple[str, str], ...]:
    """Inputs that differ between requests, as (part of the request, field)."""
    first = requests[0]
    parts = {part: fields(getattr(first, part)) for part in ("run", "recipe", "failures", "efficiency")}
    return tuple(
        (part, mark.name) for part, marks in parts.items() for mark in marks
        if any(getattr(getattr(request, part), mark.name) != getattr(getattr(first, part), mark.name) for request in requests)
    )  # fmt: skip


# -- the answer -----------------------------------------------------------------------------------------------------------------


def listing(trained_requests: Sequence[tuple[TrainingRequest, TrainingAnswer]], notes: tuple[str, ...] = ()) -> Listing:
    """The answers as rows: several layouts of a single request, or the best layout of each of several requests."""
    axes, single = swept([request for request, _ in trained_requests]), len(trained_requests) == 1
    plain: list[dict[str, Any]] = []
    origins: list[tuple[TrainingRequest, LayoutEstimate]] = []
    for request, trained in trained_requests:
        answer_rows = rows(request, trained, MOST_ROWS if single else 1)
        origins += [(request, candidate) for candidate in trained.layouts[: len(answer_rows)]]
        if single:
            answer_rows += [row(request, candidate, LADDER) for candidate in trained.ladder]
            origins += [(request, candidate) for candidate in trained.ladder]
            notes += (*trained.notes, *_twin_notes(trained), *advice(request, trained.layouts[0]))
        inputs = {name: getattr(getattr(request, part), name) for part, name in axes}
        plain += [clean(inputs | row | {"why": row["why"] or trained.infeasible_reason}) for row in answer_rows]
        notes += (*((trained.infeasible_reason,) if single and trained.infeasible_reason else ()), *_price_notes(request))
    layout_count, fitting = sum(t.layout_count for _, t in trained_requests), sum(t.fitting for _, t in trained_requests)
    notes = (*dict.fromkeys(notes), f"{layout_count:,} legal layouts evaluated, {fitting:,} fit")

    @functools.lru_cache(maxsize=1)
    def recorded_row(place: int) -> dict[str, Any]:
        """The row again with every formula recorded, which its columns share."""
        request, candidate = origins[place]
        with record():
            case = case_of(replace(request, recipe=candidate.case.recipe, system=candidate.case.system))
            case = replace(case, batch=candidate.case.batch)
            return row(request, replace(candidate, case=case), "best")

    def tree(row: Any, key: str) -> Any:
        return computed(recorded_row(plain.index(dict(row))).get(key), key)

    return Listing(plain, notes=notes, tree=tree)
