"""`train`: the best layouts of a training run, or one that is given, with what the run takes in days, money and energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.chip import chip_price
from headway.cost import Price
from headway.errors import BadValue
from headway.formula import record
from headway.model import Model
from headway.quantity import known
from headway.system import System
from headway.training.candidates import NAMES, pinned_one
from headway.training.estimate import TrainingCase, estimate, machine
from headway.training.legality import bounds
from headway.training.outlook import Failures, outlook
from headway.training.reach import TrainingReach, reached
from headway.training.recipe import Recipe, Run, optimizer
from headway.training.rows import row
from headway.training.search import Found, search
from headway.training.work import training_work

BOTH_WAYS = known(1, "hidden_ep of DualPipe", "", "default", "DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: all-to-all fully hidden")
OBJECTIVES = ("step", "chips", "cost")
USUAL_BATCH = 4 * 2**20  # tokens of a step where none is given
PLACED = ("tp", "cp", "pp", "dp")  # given together, they are a layout rather than limits of a search


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run is asked for."""

    model: Model
    system: System
    run: Run
    recipe: Recipe
    modes: tuple[str, ...]  # recompute modes to weigh
    pinned: Mapping[str, tuple[int, ...]]
    failures: Failures
    reach: TrainingReach
    price_metric: str
    objective: str = "step"
    deadline: Any = None  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The answer: layouts, best first, and how many were weighed."""

    found: tuple[Found, ...]
    weighed: int
    fitting: int
    price: Price | None
    notes: tuple[str, ...]


def train(asked: Asked) -> Trained:
    """The best layouts for what is asked."""
    if asked.objective != "step" or asked.deadline is not None:
        return _sized(asked)
    case = case_of(asked)
    price = chip_price(asked.system.chip, asked.price_metric)
    of = bounds(asked.model, int(asked.system.chips), int(case.work.sequence), sequences(asked), _chunked(asked.recipe))
    single = {name: values[0] for name, values in asked.pinned.items() if len(values) == 1}
    if all(name in single for name in PLACED) or len(single) == len(NAMES):
        pinned_one(single, of, int(asked.system.scale_up_domain))  # a whole layout that is illegal is wrong input
    found = search(asked.model, case, asked.pinned, asked.modes)
    if not found.best:
        pinned_one(single, of, int(asked.system.scale_up_domain))
        raise BadValue("layout", " ".join(f"{name}={','.join(map(str, values))}" for name, values in asked.pinned.items()) or "any",
                       f"a layout that divides {of.chips} chips and {of.sequences} sequences of a step: no legal one is left")  # fmt: skip
    return Trained(found=found.best, weighed=found.weighed, fitting=found.fitting, price=price, notes=())


def case_of(asked: Asked) -> TrainingCase:
    """The case of the laws: the batch as given, or a usual one."""
    recipe, system = asked.recipe, asked.system
    work = training_work(asked.model, recipe, asked.run.seq)
    reach = reached(system.chip, recipe.dtype, recipe.kernels, asked.reach)
    if recipe.schedule == "dualpipe" and asked.reach.hidden_ep is None:
        reach = replace(reach, hidden_ep=BOTH_WAYS)
    batch = asked.run.global_batch
    if batch is None:
        count = max(1, USUAL_BATCH // int(asked.run.seq))
        batch = known(count * int(asked.run.seq), "global_batch", "token", "default", "4 Mi tokens, in whole sequences")
    return TrainingCase(
        work=work, system=system, machine=machine(system, recipe.dtype), recipe=recipe, optimizer=optimizer(recipe.optimizer),
        reach=reach, batch=batch,
    )  # fmt: skip


def sequences(asked: Asked) -> int:
    """Sequences of one step; BadValue where the batch is no whole number of them."""
    batch, seq = asked.run.global_batch, int(asked.run.seq)
    if batch is None:
        return max(1, USUAL_BATCH // seq)
    if int(batch) % seq:
        near = max(1, round(int(batch) / seq)) * seq
        raise BadValue("global_batch", int(batch), f"a multiple of the sequence of {seq} tokens, such as {near}")
    return int(batch) // seq


def _chunked(recipe: Recipe) -> str:
    return "" if recipe.schedule == "1f1b" else recipe.schedule


def rows(asked: Asked, trained: Trained, most: int = 8) -> list[dict[str, Any]]:
    """The answer as rows: the best first."""
    kinds = ("best", *("next",) * most)
    return [_row(asked, found, trained.price, kind) for found, kind in zip(trained.found[:most], kinds, strict=False)]


def _row(asked: Asked, found: Found, price: Price | None, kind: str) -> dict[str, Any]:
    made = estimate(found.case, found.layout)
    run = outlook(made, found.case.system, found.case.batch, asked.run.tokens, asked.failures, price)
    return row(found, asked.model.name, made, run, asked.run.tokens, kind)


def explained(asked: Asked, found: Found, price: Price | None, key: str) -> Any:
    """One number of one row, with every formula recorded."""
    with record():
        case = replace(case_of(replace(asked, recipe=found.case.recipe, system=found.case.system)), batch=found.case.batch)
        return _row(asked, replace(found, case=case), price, "best").get(key)


def _sized(asked: Asked) -> Trained:
    """The fewest chips that meet a deadline, or those that cost least: whole scale-up domains, fewer and fewer."""
    if asked.run.tokens is None:
        raise BadValue("--objective", asked.objective, "the tokens of the run: --tokens 15T")
    best: tuple[float, Trained] | None = None
    weighed = fitting = 0
    for system in _sizes(asked.system):
        try:
            one = train(replace(asked, system=system, objective="step", deadline=None))
        except BadValue:
            continue
        weighed, fitting = weighed + one.weighed, fitting + one.fitting
        first = _row(asked, one.found[0], one.price, "best")
        late = asked.deadline is not None and float(first["run_s"]) > float(asked.deadline)
        if late or not first["fits"]:
            continue
        worth = float(first["run_usd"]) if asked.objective == "cost" and first["run_usd"] is not None else float(system.chips)
        if best is None or worth < best[0]:
            best = (worth, one)
    if best is None:
        whole = train(replace(asked, objective="step", deadline=None))
        return replace(whole, notes=(f"no number of chips up to {int(asked.system.chips)} meets the deadline, by these laws",))
    return replace(best[1], weighed=weighed, fitting=fitting)


def _sizes(system: System) -> Sequence[System]:
    """The machine, and smaller ones of the same domains: halves and three quarters, down to one domain."""
    domain, chips = int(system.scale_up_domain), int(system.chips)
    counts = {chips}
    for power in range(chips.bit_length()):
        counts |= {chips >> power, 3 * chips >> (power + 2)}
    whole = sorted((n for n in counts if n >= 1 and (n % domain == 0 or n < domain)), reverse=True)
    return [_part(system, n) for n in whole]


def _part(system: System, chips: int) -> System:
    if chips == int(system.chips):
        return system
    count = known(chips, f"{system.name}.chips", "", "derived", "part of the machine")
    return replace(system, chips=count, name=f"{chips} of {system.name}", scale_up_domain=min(system.scale_up_domain, count))
