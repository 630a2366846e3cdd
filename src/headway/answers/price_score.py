"""`headway price --score PRICES.csv --truth ARCH.csv`: sizes of known models estimated from prices, compared with baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing
from headway.economics.inversion.calibration import OURS, fitted_priors, ladders, left_out, read_examples, scores
from headway.economics.inversion.priors import LEVEL
from headway.evidence.price_pages import write
from headway.report import output
from headway.report.words import sentence

COLUMNS = {
    "kind": Column("", "method: errors over all models; model: what the cost laws say of one; ladder: KV of a model sold by context tiers"),
    "method": Column(
        "", "cost laws: this project's; markup as stated: without any learned from prices; constant; regression on both prices"
    ),
    "quantity": Column("", "active or total parameters, or kv in bytes per token"),
    "model": Column("", "the model"),
    "family": Column("", "the family that was left out"),
    "models": Column("", "models scored"),
    "rms_ln_error": Column("", "root mean square of ln(value / truth)"),
    "over_constant": Column("", "that over the constant point's"),
    "width": Column("", "median of the intervals' upper over lower end"),
    "coverage": Column("", "share of the intervals that hold the truth"),
    "truth": Column("", "as published; of kv, with one byte per element"),
    "value": Column("", "middle of the interval"),
    "lo": Column("", "lower end of the interval"),
    "hi": Column("", "upper end of the interval"),
    "holds": Column("bool", "whether the interval holds the truth"),
}
VIEW = ("method", "quantity", "models", "rms_ln_error", "over_constant", "width", "coverage")
SIZE_NAMES = {"active": "active parameters", "total": "all parameters"}


def run(args: Any) -> output.Answer:
    """Answer with rows of methods, of models and of context tiers."""
    if not args.truth:
        raise BadValue("--score", "no --truth", "a CSV of sizes: --truth ARCH.csv")
    bad_notes: list[str] = []
    examples = read_examples(args.score, args.truth, bad_notes)
    estimates, kv = left_out(examples), ladders()
    scored = scores(estimates)
    if args.report:
        write(args.report, estimates, scored, kv)
    rows = [*map(_method, scored), *(_model(estimate) for estimate in estimates if estimate.method == OURS), *map(_ladder, kv)]
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in fitted_priors(examples).items())
    families = len({example.family for example in examples})
    notes = [
        f"{len(examples)} models of {families} families, medians over hosts; each told from other families alone; intervals of {LEVEL:.0%}",
        f"learned from all of them: {numbers}",
        *bad_notes,
    ]
    return output.Answer(
        Listing(rows), describe=lambda table: _describe(list(table)), describes_none=True, columns=COLUMNS, notes=notes, most=200
    )


def _method(score: Any) -> dict[str, Any]:
    return {"kind": "method", "method": score.method, "quantity": score.size, "models": score.models, "rms_ln_error": score.rms,
            "over_constant": score.over_constant, "width": score.width, "coverage": score.coverage}  # fmt: skip


def _model(row: Any) -> dict[str, Any]:
    return {"kind": "model", "method": row.method, "quantity": row.size, "model": row.example.model, "family": row.example.family,
            "truth": row.truth, "value": row.value, "lo": row.lo, "hi": row.hi, "holds": row.holds}  # fmt: skip


def _ladder(ladder: Any) -> dict[str, Any]:
    return {"kind": "ladder", "method": "cost laws", "quantity": "kv", "model": f"{ladder.sold} ({ladder.model})", "truth": ladder.fp8,
            "value": ladder.value, "lo": ladder.lo, "hi": ladder.hi, "holds": ladder.lo <= ladder.fp8 <= ladder.hi}  # fmt: skip


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe(rows: Sequence[Mapping[str, Any]]) -> output.Summary:
    """Summary: the score in one sentence, the methods compared, then all models."""
    methods = [row for row in rows if row["kind"] == "method"]
    ours = [row for row in methods if row["method"] == "cost laws"]
    parts = [f"{SIZE_NAMES[row['quantity']]} within a factor of {row['width']:.2g} ({row['coverage']:.0%} held)" for row in ours]
    headline = "No method is left."
    if ours:
        headline = sentence(f"{ours[0]['models']} models by their prices alone: {parts[0]}", *(f", {part}" for part in parts[1:]))
    remarks = [f"{SIZE_NAMES[row['quantity']]}: error {row['over_constant']:.2f} of that of a constant" for row in ours]
    remarks.append("families are left out in turn; the factor is the median of high over low end; -o csv has each model")
    people = [{name: _cell(row, name) for name in VIEW} for row in methods]
    return output.Summary(headline, VIEW, people=Listing(people) if people else None, remarks=remarks)


def _cell(row: Mapping[str, Any], name: str) -> Any:
    value = row[name]
    return f"{value:.0%}" if name == "coverage" else f"{value:.2f}" if isinstance(value, float) else value
