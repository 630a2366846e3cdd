"""What would help a plan: other formats, drafts, a choice taken back; each planned again, as the command printed beside it does."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from headway.answers import arguments
from headway.core.errors import HeadwayError
from headway.core.notes import noted
from headway.report import output
from headway.report import plan as words

if TYPE_CHECKING:
    from headway.serving.plan.choice import Choice
    from headway.serving.plan.plan import LayoutPlan
    from headway.simulation.questions import Plan

MOST_HELPS = 4
LEAST_GAIN = 0.01  # share of what is made best, from which a change is told
HALVES = ("bf16", "fp16", "f32")  # formats of weights that others halve
Planned = Callable[["Plan"], "LayoutPlan"]  # a question -> its plan, which fails where no layout answers it


def helps(args: Plan, plan: LayoutPlan, planned: Planned, promised: Planned) -> list[output.Help]:
    """Changes that make the plan better, the most first, each as `planned` anew, of a list on the best of its machines.

    `promised` is a plan by the search alone: what it does not promise is not planned.
    """
    args = arguments.at_place(args, plan.groups[0].place)
    better: list[output.Help] = []
    with noted():
        before = _tried(promised, args) if promised is not planned else plan
        for change, question in changes(args, plan.best):
            hope = _tried(promised, question)
            if hope is None or (before is not None and _gain(before, hope) < LEAST_GAIN and not _grew(plan, before, hope)):
                continue
            after = hope if promised is planned else _tried(planned, question)
            if after is not None and (gain := _gain(plan, after)) >= LEAST_GAIN:
                command = f"headway {shlex.join(question.command())}"
                better.append(output.Help(change=change, effect=f"{_effect(plan, after, gain)}; try: {command}", gain=gain))
    return output.ranked(better)[:MOST_HELPS]


def changes(args: Plan, best: Choice) -> Iterator[tuple[str, Plan]]:
    """The question with other formats, with drafts, or without a choice that costs time, and what each is in words."""
    chip, (weights, kv, _) = best.case.system.chip, best.case.formats.labels
    if not args.weights and weights in HALVES:
        form = "int4" if chip.peak_fp8 is None else "fp8"
        yield f"--weights {form}", args.replace(weights=form)
    if not args.weights and weights in (*HALVES, "fp8") and chip.peak_fp4 is not None:
        form = "nvfp4" if chip.vendor.lower() == "nvidia" else "mxfp4"
        yield f"--weights {form}", args.replace(weights=form)
    if kv in HALVES and (args.kv or chip.peak_fp8 is None):
        yield "--kv fp8", args.replace(kv="fp8")
    if not args.draft and args.accept_length is None and best.case.load.output > 1:
        draft = "mtp" if best.case.model.prediction_layers else "eagle"
        yield f"--draft {draft}", args.replace(draft=draft)
    if args.eager:
        yield "CUDA graphs (without --eager)", args.without("eager")


def _tried(planned: Planned, question: Plan) -> LayoutPlan | None:
    """The plan of a question; None where it cannot be, or no layout answers it."""
    try:
        plan = planned(question)
    except HeadwayError:
        return None
    return None if plan.fails else plan


def _gain(before: LayoutPlan, after: LayoutPlan) -> float:
    """Share by which what is made best is better; of a load what is paid; infinite where there was no plan."""
    if before.fails:
        return float("inf")
    first, second = _judged(before), _judged(after)
    return first / second - 1 if before.objective in ("cost", "chips") else second / first - 1


def _grew(plan: LayoutPlan, before: LayoutPlan, hope: LayoutPlan) -> bool:
    """Whether the simulation asked more of the plan than its search, so that a change which the search finds no better may yet be."""
    return not plan.fails and _gain(plan, before) >= LEAST_GAIN and _gain(before, hope) > -LEAST_GAIN


def _judged(plan: LayoutPlan) -> float:
    goal, case = plan.groups[0].goal, plan.best.case
    if goal.is_loaded and plan.objective == "cost":
        return float(case.system.chips) * (1.0 if case.price is None else float(case.price.value))
    return plan.best.value


def _effect(before: LayoutPlan, after: LayoutPlan, gain: float) -> str:
    """What is made best, before and after, as the plans say it."""
    row, changed = before.table.row(0), after.table.row(0)
    if before.fails:
        return f"a layout answers: {words.layout(changed)}"
    if before.groups[0].goal.is_loaded and before.objective == "cost":
        key, unit = ("usd_per_month", "/month") if row.get("usd_per_month") is not None else ("chips", " chips")
        sign = "$" if key == "usd_per_month" else ""
        return f"{sign}{row[key]:,.0f} -> {sign}{changed[key]:,.0f}{unit}, {gain:.0%} better"
    (first, of), (second, _) = (words.judged(plan.best, plan.objective) for plan in (before, after))
    return f"{first} -> {second} {of}, {gain:.0%} better"
