"""`train`: the best layouts of a training run, or one that is given, with what the run takes in days, money and energy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.chip import chip_price
from headway.cost import PriceQuote
from headway.errors import BadValue
from headway.formula import record
from headway.quantity import known
from headway.training.advice import advice
from headway.training.asked import TrainingAnswer, TrainingRequest
from headway.training.candidates import NAMES, none_legal, pinned_one
from headway.training.estimate import TrainingCase, estimate, machine
from headway.training.outlook import outlook
from headway.training.reach import chip_efficiency
from headway.training.recipe import TrainingRun, optimizer
from headway.training.rows import row
from headway.training.search import LayoutEstimate, bounds_of, search
from headway.training.sizing import sized
from headway.training.work import training_work

BOTH_WAYS = known(1, "hidden_ep of DualPipe", "", "default", "DeepSeek-V3 (arXiv:2412.19437) section 3.2.1: all-to-all fully hidden")
USUAL_BATCH = 4 * 2**20  # tokens of a step where none is given
PLACED = ("tp", "cp", "pp", "dp")  # given together, they are a layout rather than limits of a search


def train(request: TrainingRequest) -> TrainingAnswer:
    """The best layouts for what is asked, and what would help."""
    if request.objective != "step" or request.deadline is not None:
        answer = sized(request, best, lambda sized_request, trained: rows(sized_request, trained, 1)[0])
    else:
        answer = best(request)
    first = answer.layouts[0]
    return replace(answer, notes=(*answer.notes, *advice(request.model, first.case, request.pinned, request.modes, first)))


def best(request: TrainingRequest) -> TrainingAnswer:
    """The layouts of shortest step on the whole machine."""
    case = case_of(request)
    price = chip_price(request.system.chip, request.price_metric)
    of, domain = bounds_of(request.model, case), int(request.system.scale_up_domain)
    single = {name: values[0] for name, values in request.pinned.items() if len(values) == 1}
    if all(name in single for name in PLACED) or len(single) == len(NAMES):
        pinned_one(single, of, domain)  # a whole layout that is illegal is wrong input
    result = search(request.model, case, request.pinned, request.modes)
    if not result.best:
        raise none_legal(request.pinned, of, domain)
    return TrainingAnswer(
        layouts=result.best,
        layout_count=result.layout_count,
        fitting=result.fitting,
        price=price,
        notes=(*result.absent_values, *_long(request)),
    )


def _long(request: TrainingRequest) -> tuple[str, ...]:
    """A word where sequences are longer than the model was made for."""
    most = request.model.max_context
    if most is None or int(request.run.seq) <= int(most):
        return ()
    return (f"sequences of {int(request.run.seq):,} tokens are longer than {request.model.name}'s context of {int(most):,}",)


def case_of(request: TrainingRequest) -> TrainingCase:
    """The case of the laws: the batch as given, or a usual one."""
    recipe, system = request.recipe, request.system
    if recipe.dtype == "fp8" and system.chip.peak_fp8 is None:
        raise BadValue("--dtype", recipe.dtype, f"bf16: {system.chip.name} has no fp8 peak")
    work = training_work(request.model, recipe, request.run.seq)
    efficiency = chip_efficiency(system.chip, recipe.dtype, recipe.kernels, request.efficiency, fused=bool(recipe.fused_attention))
    if recipe.schedule == "dualpipe" and request.efficiency.hidden_ep is None:
        efficiency = replace(efficiency, hidden_ep=BOTH_WAYS)
    return TrainingCase(
        work=work, system=system, machine=machine(system, recipe.dtype), recipe=recipe, optimizer=optimizer(recipe.optimizer),
        efficiency=efficiency, batch=_batch(request.run),
    )  # fmt: skip


def _batch(run: TrainingRun) -> Any:
    """Tokens of one step; BadValue where they are no whole number of sequences."""
    batch, seq = run.global_batch, int(run.seq)
    if batch is None:
        return known(max(1, USUAL_BATCH // seq) * seq, "global_batch", "token", "default", "4 Mi tokens, in whole sequences")
    if int(batch) % seq:
        near = max(1, round(int(batch) / seq)) * seq
        raise BadValue("global_batch", int(batch), f"a multiple of the sequence of {seq} tokens, such as {near}")
    return batch


def rows(request: TrainingRequest, trained: TrainingAnswer, most: int = 8) -> list[dict[str, Any]]:
    """The answer as rows: the best first."""
    kinds = ("best", *("next",) * most)
    return [_row(request, candidate, trained.price, kind) for candidate, kind in zip(trained.layouts[:most], kinds, strict=False)]


def _row(request: TrainingRequest, candidate: LayoutEstimate, price: PriceQuote | None, kind: str) -> dict[str, Any]:
    numbers = estimate(candidate.case, candidate.layout)
    run = outlook(numbers, candidate.case.system, candidate.case.batch, request.run.tokens, request.failures, price)
    return row(candidate, request.model.name, numbers, run, request.run.tokens, kind)


def explained(request: TrainingRequest, candidate: LayoutEstimate, price: PriceQuote | None, key: str) -> Any:
    """One number of one row, with every formula recorded."""
    with record():
        case = replace(case_of(replace(request, recipe=candidate.case.recipe, system=candidate.case.system)), batch=candidate.case.batch)
        return _row(request, replace(candidate, case=case), price, "best").get(key)
