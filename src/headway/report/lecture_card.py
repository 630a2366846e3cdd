"""Words of a model's card on a machine, and of the bridge from the board's figures to the machine's."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.listing import Listing, format_value
from headway.evidence.lecture.card import BALANCED, BridgeStage, CardFigure, LectureCase, capacity, grows
from headway.report.output import Summary

CARD_VIEW = ("figure", "here", "lecture", "why_they_differ")
BRIDGE_VIEW = ("quantity", "stage", "factor", "figure", "what_it_counts")


def card(case: LectureCase, figures: Sequence[CardFigure]) -> Summary:
    """The card as a table, with the balanced batch in its first sentence."""
    people = [
        {"figure": entry.name, "here": format_value(None if entry.value is None else float(entry.value), entry.unit),
         "lecture": entry.lecture_text, "why_they_differ": entry.reason}
        for entry in figures
    ]  # fmt: skip
    command = f"headway lecture --model {case.model.name} --on {case.system.name} --bridge"
    after = [f"Next: {command} (from 2,400 to the fitted knee), lecture RB-10 --with model={case.model.name} (any claim with your inputs)"]
    return Summary(f"{case.model.name} on {case.system.name} balances at {_number(float(case.balanced))} sequences; {_board(case)}.",
                   CARD_VIEW, after, Listing(people))  # fmt: skip


def _number(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}"


def _board(case: LectureCase) -> str:
    if case.total == case.active:
        return "the lecture's 2,400 is for a mixture of experts with sparsity 8"
    return "the lecture's 2,400 takes a sparsity of 8 and a ratio of 300"


def bridge(case: LectureCase, stages: Sequence[BridgeStage]) -> Summary:
    """The walks as one table, the balanced batch in the first sentence."""
    people = [
        {"quantity": stage.quantity, "stage": stage.name, "factor": "-" if stage.factor is None else f"x {float(stage.factor):.4g}",
         "figure": format_value(float(stage.value), stage.unit), "what_it_counts": stage.reason}
        for stage in stages
    ]  # fmt: skip
    walk = [stage for stage in stages if stage.quantity == BALANCED]
    if walk:
        first, last = (_number(float(stage.value)) for stage in (walk[0], walk[-1]))
        headline = f"From the board's {first} sequences to {last}, the batch at which {case.model.name} balances on {case.system.name}."
    else:
        headline = f"From the board's figures to those of {case.model.name} on {case.system.name}."
    return Summary(headline, BRIDGE_VIEW, _after(case, walk), Listing(people))


def _after(case: LectureCase, walk: Sequence[BridgeStage]) -> list[str]:
    lines = []
    if walk and walk[-1].factor is not None:
        direction = "down, while the lecture doubles or triples the batch" if float(walk[-1].factor) < 1 else "up, as the lecture does"
        lines.append(f"Fitted rates move the knee {direction} in practice.")
    lines += ["The factors of a quantity multiply to its last figure over its first; --explain value shows the laws of a stage."]
    if not grows(case):
        lines.append("The context where KV equals compute is left out: part of this model's cache is not read at every context.")
    return [*lines, f"Next: headway lecture --model {case.model.name} --on {case.system.name} (the card), lecture RB-10 (the claim)"]


def notes(case: LectureCase) -> list[str]:
    """Layout and formats of the case, and whether its caches fit."""
    weights, cache, compute = case.formats.labels
    lines = [f"layout {case.layout}; weights {weights}, KV cache {cache}, arithmetic {compute} (--weights, --kv)"]
    room = capacity(case)
    if room < float(case.batch):
        cause = "not even one sequence fits beside the weights" if room < 1 else f"caches of {room:,.0f} sequences fit in 90 % of HBM"
        lines.append(f"batch {int(case.batch):,} does not fit at context {int(case.context):,}: {cause}; its times are as if it did")
    return [*lines, *case.formats.notes[:2]]
