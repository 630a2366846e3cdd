"""`headway.train(model, machine, tokens=..., seq=..., tp=...)`: the best layouts of a run, or a given layout, as rows with explanations."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from headway.core import schema
from headway.core.columns import table as column_table
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, clean, computed
from headway.core.quantity import Sourced, known, user_input
from headway.core.trace import record
from headway.core.units import show
from headway.hardware.chip import price_quote
from headway.hardware.chip_price import MARKET, PriceQuote, price_name, price_origin
from headway.hardware.system import System
from headway.hardware.system import system as find_system
from headway.laws.step.layer_terms import idle_chips, replica_chips
from headway.models.config import model as find_model
from headway.training.achieved import chip_efficiency
from headway.training.estimate import TrainingEstimate, estimate, overlap
from headway.training.layouts import LONG, NAMES, candidates, layout_at, none_legal, pinned_one
from headway.training.pipeline import TrainingCase, machine
from headway.training.recipe import (
    ARITHMETIC,
    BINARY_FLAGS,
    OBJECTIVES,
    RECOMPUTE,
    REVERSIBLE,
    Failures,
    Recipe,
    TrainingLayout,
    TrainingReach,
    TrainingRun,
    binary_text,
    optimizer,
)
from headway.training.run import Outlook, TrainingAnswer, TrainingRequest, outlook
from headway.training.search import LayoutEstimate, SearchResult, bounds_of, less_plain, search, with_recipe
from headway.training.sizing import advice, sized
from headway.training.work import training_work

TIMES = ("compute", "attention", "traffic", "head", "launch", "tp", "cp", "ep", "bubble", "parameters", "update")  # parts of a step
PARTS = ("weights", "gradients", "optimizer", "gathered", "activations", "head", "allowance")  # of the memory of a chip


def row(candidate: LayoutEstimate, model: str, result: TrainingEstimate, run: Outlook, tokens: Any, kind: str) -> dict[str, Any]:
    """Every contract column of one layout."""
    case, layout, recipe = candidate.case, candidate.layout, candidate.case.recipe
    used_chips = replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)
    low, high = speeds(case, result)
    columns = {
        "kind": kind, "model": model, "system": case.system.name, "chips": case.system.chips,
        "chips_idle": idle_chips(case.system.chips, used_chips),
        **{field.name: getattr(layout, field.name) for field in fields(layout)},
        "recompute": recipe.recompute, "schedule": recipe.schedule, "dtype": recipe.dtype, "optimizer": case.optimizer.name,
        "seq": case.work.sequence, "global_batch": case.batch, "micro_batches": result.micro_batches,
        "step_s": result.time.step, "step_floor_s": result.time.floor, "step_lo_s": result.step_low, "step_hi_s": result.step_high,
        "tokens_per_s_chip": result.tokens_per_s_chip, "tokens_per_s_chip_lo": low, "tokens_per_s_chip_hi": high,
        "mfu": result.use.mfu, "mfu_full": result.use.mfu_full, "hfu": result.use.hfu, "flops_chip": result.use.flops_chip,
        "flops_chip_full": result.use.flops_chip_full,
        "memory_bytes_chip": result.memory.total, "memory_bytes_chip_lo": result.memory_low, "memory_bytes_chip_hi": result.memory_high,
        "hbm_bytes_chip": case.system.chip.need("hbm"),
    }  # fmt: skip
    columns |= {f"{name}_bytes_chip": getattr(result.memory, name) for name in PARTS}
    columns |= {f"{name}_s": getattr(result.time, name) for name in TIMES}
    conditions = overlap(case, layout)
    columns |= {field.name: getattr(conditions, field.name) for field in fields(conditions)}
    columns |= {
        "bound": max(TIMES, key=lambda name: float(getattr(result.time, name))), "fits": bool(result.fits), "why": why(case, result),
        "tokens": tokens, "goodput": run.goodput, "run_s": run.run, "run_lo_s": run.run_low, "run_hi_s": run.run_high, "run_usd": run.usd,
        "run_usd_lo": run.usd_low, "run_usd_hi": run.usd_high, "energy_j": run.energy, "run_flop": run.flop,
    }  # fmt: skip
    return columns


def speeds(case: Any, result: TrainingEstimate) -> tuple[Any, Any]:
    """Low and high end of the speed (token/s per chip), from the high and low end of the step time."""
    return tuple(case.batch / (step * case.system.chips) for step in (result.step_high, result.step_low))  # type: ignore[return-value]


def why(case: Any, result: TrainingEstimate) -> str:
    """Why a layout does not fit, and its largest part; "" if it fits."""
    if bool(result.fits):
        return ""
    largest = max(PARTS, key=lambda name: float(getattr(result.memory, name)))
    words = column_table("train")[f"{largest}_bytes_chip"].doc.partition(": ")[2]
    has, needs = show(case.system.chip.need("hbm"), "byte"), show(result.memory.total, "byte")
    return f"needs {needs} on the fullest chip, which has {has}; largest: {words}, {show(getattr(result.memory, largest), 'byte')}"


BOTH_WAYS = known(1, "hidden_ep of DualPipe", "", "default", "DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: all-to-all fully hidden")
USUAL_BATCH = 4 * 2**20  # default tokens of a step
PLACED = ("tp", "cp", "pp", "dp")  # all four pinned make a layout rather than limits of a search


def answer(request: TrainingRequest) -> TrainingAnswer:
    """The best layouts for a request, with notes on what would help."""
    if request.objective != "step" or request.deadline is not None:
        answer = sized(request, best, lambda sized_request, trained: rows(sized_request, trained, 1)[0])
    else:
        answer = best(request)
    first = answer.layouts[0]
    return replace(answer, notes=(*answer.notes, *advice(request.model, first.case, request.pinned, request.modes, first)))


def best(request: TrainingRequest) -> TrainingAnswer:
    """The layouts of shortest step time on the whole machine."""
    case = case_of(request)
    price = _price(request)
    of, domain = bounds_of(request.model, case), int(request.system.scale_up_domain)
    single = {name: values[0] for name, values in request.pinned.items() if len(values) == 1}
    if all(name in single for name in PLACED) or len(single) == len(NAMES):
        pinned_one(single, of, domain)  # raises IllegalLayout for a fully specified illegal layout
    result, notes = _search(request, case)
    if not result.best:
        raise none_legal(request.pinned, of, domain)
    return TrainingAnswer(
        layouts=result.best,
        layout_count=result.layout_count,
        fitting=result.fitting,
        price=price,
        notes=(*result.absent_values, *notes, *_long(request), *_reversible(request)),
    )


def _search(request: TrainingRequest, case: TrainingCase) -> tuple[SearchResult, tuple[str, ...]]:
    """Layouts that people run: no context parallelism on short sequences, no layer computed again; else all, with a note."""
    modes = tuple(mode for mode in request.modes if mode != "full") or request.modes
    short = "cp" not in request.pinned and int(request.run.seq) < LONG
    result = search(request.model, case, request.pinned, modes, {"cp": (1,)} if short else None)
    if result.fitting or (modes == tuple(request.modes) and not short):
        return result, ()
    any_result = search(request.model, case, request.pinned, request.modes)
    if not any_result.fitting:
        return any_result, ()
    return any_result, ("nothing fits without full recomputation or context parallelism (--recompute, --cp)",)


def _long(request: TrainingRequest) -> tuple[str, ...]:
    """A note if sequences are longer than the model's context."""
    most = request.model.max_context
    if most is None or int(request.run.seq) <= int(most):
        return ()
    return (f"sequences of {int(request.run.seq):,} tokens are longer than {request.model.name}'s context of {int(most):,}",)


def _reversible(request: TrainingRequest) -> tuple[str, ...]:
    """A note if the layers are to be couplings: that is another network."""
    if REVERSIBLE not in request.modes:
        return ()
    return ("reversible: a network whose layers are couplings, one forward more; RevNet's implementations took 1.5 to 2 times as long",)


def case_of(request: TrainingRequest) -> TrainingCase:
    """The case that the laws take, with the requested batch or the default."""
    recipe, system = _captured(request.recipe, request.system), request.system
    if recipe.dtype not in ("bf16", "fp16") and system.chip.peak(ARITHMETIC.get(recipe.dtype, recipe.dtype)) is None:
        raise BadValue("--dtype", recipe.dtype, f"bf16: {system.chip.name} has no {recipe.dtype} peak")
    work = training_work(request.model, recipe, request.run.seq)
    efficiency = chip_efficiency(system.chip, recipe.dtype, recipe.kernels, request.efficiency, bool(recipe.fused_attention), work)
    if recipe.matmul_rate is not None:
        efficiency = _measured(efficiency, recipe, system, request.efficiency)
    if recipe.schedule == "dualpipe" and request.efficiency.hidden_ep is None:
        efficiency = replace(efficiency, hidden_ep=BOTH_WAYS)
    return TrainingCase(
        work=work, system=system, machine=machine(system, recipe.dtype), recipe=recipe, optimizer=optimizer(recipe.optimizer),
        efficiency=efficiency, batch=_batch(request.run),
    )  # fmt: skip


BLOCK_SCALED, GPU_VENDORS = ("mxfp8", "nvfp4"), ("nvidia", "amd")


def _measured(efficiency: TrainingReach, recipe: Recipe, system: System, user_values: TrainingReach) -> TrainingReach:
    """Efficiencies with the measured rate of matmuls in place of the fitted share; experts keep their ratio to dense matmuls."""
    most = machine(system, recipe.dtype).peak
    if float(recipe.matmul_rate) > float(most):
        raise BadValue("--matmul-rate", show(recipe.matmul_rate, "flop/s"), f"at most the {recipe.dtype} peak of {show(most, 'flop/s')}")
    share = recipe.matmul_rate / most
    measured = {"eff_compute": share, "eff_expert": share * (efficiency.eff_expert / efficiency.eff_compute)}
    return replace(efficiency, **{name: value for name, value in measured.items() if getattr(user_values, name) is None})


def _captured(recipe: Recipe, system: System) -> Recipe:
    """Recipe that says whether a step is one graph: compiled on other chips than GPUs; on GPUs in block-scaled formats, as recipes do."""
    if recipe.captured is not None:
        return recipe
    is_graph = recipe.dtype in BLOCK_SCALED or system.chip.vendor not in GPU_VENDORS
    reason = "Megatron-Bridge recipes since 2026-06: whole steps in MXFP8 and NVFP4 are captured; XLA compiles every step"
    return replace(recipe, captured=known(1 if is_graph else 0, "captured", "", "default", reason))


def _batch(run: TrainingRun) -> Any:
    """Tokens of one step; BadValue if they are not a whole number of sequences."""
    batch, seq = run.global_batch, int(run.seq)
    if batch is None:
        return known(max(1, USUAL_BATCH // seq) * seq, "global_batch", "token", "default", "4 Mi tokens, in whole sequences")
    if int(batch) % seq:
        near = max(1, round(int(batch) / seq)) * seq
        raise BadValue("global_batch", int(batch), f"a multiple of the sequence of {seq} tokens, such as {near}")
    return batch


def rows(request: TrainingRequest, trained: TrainingAnswer, most: int = 8) -> list[dict[str, Any]]:
    """At most `most` rows of the answer, best first."""
    first = trained.layouts[0]
    pairs = zip(trained.layouts[:most], kinds(trained), strict=False)
    row_list = [_row(request, candidate, trained.price, kind) for candidate, kind in pairs]
    return [line | {"why": line["why"] or less_plain(of, first)} for line, of in zip(row_list, trained.layouts, strict=False)]


def kinds(trained: TrainingAnswer) -> list[str]:
    """What each layout is in the answer: a layout that needs more memory than a chip has is never printed like one that runs."""
    return [UNFIT if not layout.fits else "next" if place else "best" for place, layout in enumerate(trained.layouts)]


def _row(request: TrainingRequest, candidate: LayoutEstimate, price: PriceQuote | None, kind: str) -> dict[str, Any]:
    numbers = estimate(candidate.case, candidate.layout)
    run = outlook(numbers, candidate.case.system, candidate.case.batch, request.run.tokens, request.failures, price)
    return row(candidate, request.model.name, numbers, run, request.run.tokens, kind)


def sample(request: TrainingRequest) -> list[dict[str, Any]]:
    """Rows of layouts taken evenly from all that are legal, whether they fit or not: what an input can change at all."""
    case = case_of(request)
    layouts = candidates(bounds_of(request.model, case), int(request.system.scale_up_domain), request.pinned)
    case, price = with_recipe(case, request.model, replace(case.recipe, recompute=request.modes[0])), _price(request)
    places = np.unique(np.linspace(0, len(layouts.tp) - 1, SAMPLED).astype(int)) if len(layouts.tp) else ()
    picks = [layout_at(layouts, int(place), request.pinned) for place in places]
    return [_row(request, LayoutEstimate(case=case, layout=layout, step=0, fits=True, bytes=0), price, "next") for layout in picks]


def _price(request: TrainingRequest) -> PriceQuote | None:
    return price_quote(request.system.chip, request.price_metric)


def _price_notes(request: TrainingRequest, price: PriceQuote | None) -> tuple[str, ...]:
    """What a run's cost rests on; none where no run is asked about."""
    if request.run.tokens is None:
        return ()
    if price is None:
        return (f"{request.system.chip.name} has no {price_name(request.price_metric)} in the catalogue: --set chip.price=$2/h gives one",)
    return (f"chip price {price_origin(price)}" + ("" if price.metric == "input" else "; --price-metric or --set chip.price changes it"),)


def recorded(request: TrainingRequest, candidate: LayoutEstimate, price: PriceQuote | None) -> dict[str, Any]:
    """The numbers of one layout, with every formula recorded."""
    with record():
        case = replace(case_of(replace(request, recipe=candidate.case.recipe, system=candidate.case.system)), batch=candidate.case.batch)
        return _row(request, replace(candidate, case=case), price, "best" if candidate.fits else UNFIT)


RECORDS = (TrainingRun, Recipe, Failures, TrainingReach)  # lists in these records make a row each; lists in TrainingLayout limit the search
MOST_CASES = 200
UNFIT = "does not fit"
SAMPLED = 24  # layouts at which an input is tried
MOST_ROWS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingQuestion:
    """Flags of a question to every model and machine; values may be tuples."""

    records: Mapping[type, Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    objective: str = "step"
    deadline: Any = None
    price_metric: str = MARKET


def train(
    model: Any, system: Any, *, objective: str = "step", deadline: Any = None, price_metric: str = MARKET, **flags: Any
) -> Listing:
    """The best layouts, best first, with memory, step time, days, cost and energy.

    Further keywords are the flags of `headway train`: numbers (SI), text such as "15T", or tuples of these. Layout flags limit the
    search; tuples of other flags give a row each.
    """
    records: dict[type, dict[str, Any]] = {record: {} for record in (*RECORDS, TrainingLayout)}
    for name, value in flags.items():
        owner = next((record for record in records if name in schema.fields(record)), None)
        if owner is None:
            raise UnknownName("argument of train", name, [known for record in records for known in schema.fields(record)])
        records[owner][name] = _read(value, schema.fields(owner)[name][0], name)
    layout = records.pop(TrainingLayout)
    limit = None if deadline is None else _read(deadline, schema.Field("s"), "deadline")
    request = TrainingQuestion(records=records, layout=layout, objective=objective, deadline=limit, price_metric=price_metric)
    return listing(cases([find_model(model)], [find_system(system)], request))


def _read(value: Any, q: schema.Field, name: str) -> Any:
    """A Python value read by the rules of the command line."""
    if isinstance(value, list | tuple):
        if not value:
            raise BadValue(name, value, "at least one value")
        return tuple(_read(item, q, name) for item in value)
    if isinstance(value, str):
        value = binary_text(value) if name in BINARY_FLAGS else value
        return value if not q.choices and not q.unit and not q.integer and not _numeric(value) else schema.axis(value, q, name)[0]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadValue(name, value, "a number, or text such as 8k")
    wants = q.illegal(value)
    if wants:
        raise BadValue(name, value, wants)
    return value if isinstance(value, Sourced) else user_input(int(value) if q.integer else float(value), name, q.unit)


def _numeric(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in ".-+"


def cases(models: Iterable[Any], systems: Iterable[Any], request: TrainingQuestion) -> list[TrainingRequest]:
    """One request for each combination of listed values; lists of layout values limit the search instead."""
    if request.objective not in OBJECTIVES:
        raise BadValue("--objective", request.objective, "one of " + ", ".join(OBJECTIVES))
    given_of = {record: dict(request.records.get(record, {})) for record in RECORDS}
    modes = given_of[Recipe].pop("recompute", RECOMPUTE)
    limits = {name: tuple(int(v) for v in (value if isinstance(value, tuple) else (value,))) for name, value in request.layout.items()}
    shared: dict[str, Any] = {
        "modes": (modes,) if isinstance(modes, str) else tuple(modes), "price_metric": request.price_metric,
        "objective": "chips" if request.deadline is not None and request.objective == "step" else request.objective,
        "deadline": request.deadline,
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


def swept_inputs(request: TrainingRequest, axes: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The value of each swept input in a request."""
    return {name: getattr(getattr(request, part), name) for part, name in axes}


def listing(requests: Sequence[TrainingRequest], notes: tuple[str, ...] = ()) -> Listing:
    """The answers as rows: several layouts of a single request, or the best layout of each of several requests."""
    answers, axes = [(item, answer(item)) for item in requests], swept(requests)
    plain: list[dict[str, Any]] = []
    origins: list[tuple[TrainingRequest, LayoutEstimate, Any]] = []
    for request, trained in answers:
        answer_rows = rows(request, trained, MOST_ROWS if len(answers) == 1 else 1)
        inputs = swept_inputs(request, axes)
        plain += [clean(inputs | row | {"why": row["why"] or trained.infeasible_reason}) for row in answer_rows]
        origins += [(request, candidate, trained.price) for candidate in trained.layouts[: len(answer_rows)]]
        notes += trained.notes if len(answers) == 1 else ()
        notes += _price_notes(request, trained.price)
    layout_count, fitting = sum(t.layout_count for _, t in answers), sum(t.fitting for _, t in answers)
    notes = (*dict.fromkeys(notes), f"{layout_count:,} legal layouts evaluated, {fitting:,} fit")

    @functools.lru_cache(maxsize=1)
    def recorded_row(place: int) -> dict[str, Any]:
        """The row again with every formula recorded, which its columns share."""
        return recorded(*origins[place])

    def tree(row: Any, key: str) -> Any:
        return computed(recorded_row(plain.index(dict(row))).get(key), key)

    return Listing(plain, notes=notes, tree=tree)
