"""`train`: the best layouts of a training run, or one that is given, with what the run takes in days, money and energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.chip import chip_price
from headway.cost import Price
from headway.errors import BadValue
from headway.formula import record
from headway.quantity import known
from headway.training.advice import advice
from headway.training.asked import Asked, Trained
from headway.training.candidates import NAMES, none_legal, pinned_one
from headway.training.estimate import TrainingCase, estimate, machine
from headway.training.outlook import outlook
from headway.training.reach import reached
from headway.training.recipe import Run, optimizer
from headway.training.rows import row
from headway.training.search import Found, bounds_of, search
from headway.training.sizing import sized
from headway.training.work import training_work

BOTH_WAYS = known(1, "hidden_ep of DualPipe", "", "default", "DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: all-to-all fully hidden")
USUAL_BATCH = 4 * 2**20  # tokens of a step where none is given
PLACED = ("tp", "cp", "pp", "dp")  # given together, they are a layout rather than limits of a search


def train(asked: Asked) -> Trained:
    """The best layouts for what is asked, and what would help."""
    if asked.objective != "step" or asked.deadline is not None:
        found = sized(asked, best, lambda one, trained: rows(one, trained, 1)[0])
    else:
        found = best(asked)
    first = found.found[0]
    return replace(found, notes=(*found.notes, *advice(asked.model, first.case, asked.pinned, asked.modes, first)))


def best(asked: Asked) -> Trained:
    """The layouts of shortest step on the whole machine."""
    case = case_of(asked)
    price = chip_price(asked.system.chip, asked.price_metric)
    of, domain = bounds_of(asked.model, case), int(asked.system.scale_up_domain)
    single = {name: values[0] for name, values in asked.pinned.items() if len(values) == 1}
    if all(name in single for name in PLACED) or len(single) == len(NAMES):
        pinned_one(single, of, domain)  # a whole layout that is illegal is wrong input
    found = search(asked.model, case, asked.pinned, asked.modes)
    if not found.best:
        raise none_legal(asked.pinned, of, domain)
    return Trained(found=found.best, weighed=found.weighed, fitting=found.fitting, price=price, notes=(*found.dropped, *_long(asked)))


def _long(asked: Asked) -> tuple[str, ...]:
    """A word where sequences are longer than the model was made for."""
    most = asked.model.max_context
    if most is None or int(asked.run.seq) <= int(most):
        return ()
    return (f"sequences of {int(asked.run.seq):,} tokens are longer than {asked.model.name}'s context of {int(most):,}",)


def case_of(asked: Asked) -> TrainingCase:
    """The case of the laws: the batch as given, or a usual one."""
    recipe, system = asked.recipe, asked.system
    if recipe.dtype == "fp8" and system.chip.peak_fp8 is None:
        raise BadValue("--dtype", recipe.dtype, f"bf16: {system.chip.name} has no fp8 peak")
    work = training_work(asked.model, recipe, asked.run.seq)
    reach = reached(system.chip, recipe.dtype, recipe.kernels, asked.reach, fused=bool(recipe.fused_attention))
    if recipe.schedule == "dualpipe" and asked.reach.hidden_ep is None:
        reach = replace(reach, hidden_ep=BOTH_WAYS)
    return TrainingCase(
        work=work, system=system, machine=machine(system, recipe.dtype), recipe=recipe, optimizer=optimizer(recipe.optimizer),
        reach=reach, batch=_batch(asked.run),
    )  # fmt: skip


def _batch(run: Run) -> Any:
    """Tokens of one step; BadValue where they are no whole number of sequences."""
    batch, seq = run.global_batch, int(run.seq)
    if batch is None:
        return known(max(1, USUAL_BATCH // seq) * seq, "global_batch", "token", "default", "4 Mi tokens, in whole sequences")
    if int(batch) % seq:
        near = max(1, round(int(batch) / seq)) * seq
        raise BadValue("global_batch", int(batch), f"a multiple of the sequence of {seq} tokens, such as {near}")
    return batch


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
