"""`headway price --score PRICES.csv --truth ARCH.csv`: models of known size by their prices, each family left out, beside baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway import output, units
from headway.columns import Column
from headway.errors import BadValue
from headway.listing import Listing

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
NAMED = {"active": "active parameters", "total": "all parameters"}


def add_flags(parser: Any) -> None:
    """The two tables."""
    group = parser.add_argument_group("price sheets of models whose size is known")
    said = "CSV of prices by host: model, input_usd_per_mtok, output_usd_per_mtok, family and service_tier if known; standard medians count"
    group.add_argument("--score", default="", metavar="PRICES.csv", help=said)
    group.add_argument("--truth", default="", metavar="ARCH.csv", help="CSV of sizes: model, active_params_b, total_params_b")
    group.add_argument("--report", default="", metavar="PAGE.md", help="page between whose markers the tables go as well")


def run(args: Any) -> output.Answer:
    """Rows of methods, of models and of ladders."""
    from headway.evidence.prices import OURS, ladders, learned, left_out, read_examples, scores
    from headway.inversion.priors import LEVEL

    if not args.truth:
        raise BadValue("--score", "no --truth", "a CSV of sizes: --truth ARCH.csv")
    examples = read_examples(args.score, args.truth)
    told, kv = left_out(examples), ladders()
    scored = scores(told)
    if args.report:
        from headway.evidence.price_page import write

        write(args.report, told, scored, kv)
    rows = [*map(_method, scored), *(_model(one) for one in told if one.method == OURS), *map(_ladder, kv)]
    numbers = ", ".join(f"{name} {value:.4g}" for name, value in learned(examples).items())
    families = len({one.family for one in examples})
    notes = [
        f"{len(examples)} models of {families} families, medians over hosts; each told from other families alone; intervals of {LEVEL:.0%}",
        f"learned from all of them: {numbers}",
    ]
    return output.Answer(Listing(rows), describe=lambda kept: _describe(list(kept)), columns=COLUMNS, notes=notes, most=200)


def _method(one: Any) -> dict[str, Any]:
    return {"kind": "method", "method": one.method, "quantity": one.size, "models": one.models, "rms_ln_error": one.rms,
            "over_constant": one.over_constant, "width": one.width, "coverage": one.coverage}  # fmt: skip


def _model(one: Any) -> dict[str, Any]:
    return {"kind": "model", "method": one.method, "quantity": one.size, "model": one.example.model, "family": one.example.family,
            "truth": one.truth, "value": one.value, "lo": one.lo, "hi": one.hi, "holds": one.holds}  # fmt: skip


def _ladder(one: Any) -> dict[str, Any]:
    return {"kind": "ladder", "method": "cost laws", "quantity": "kv", "model": f"{one.sold} ({one.model})", "truth": one.fp8,
            "value": one.value, "lo": one.lo, "hi": one.hi, "holds": one.lo <= one.fp8 <= one.hi}  # fmt: skip


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe(kept: Sequence[Mapping[str, Any]]) -> output.Words:
    """The score in one sentence, the methods beside each other, then every model."""
    methods = [row for row in kept if row["kind"] == "method"]
    ours = [row for row in methods if row["method"] == "cost laws"]
    parts = [
        f"{NAMED[row['quantity']]} by a factor of {row['width']:.2g} (median hi/lo), {row['coverage']:.0%} held, "
        f"error {row['over_constant']:.2f} of a constant's"
        for row in ours
    ]
    headline = f"{ours[0]['models']} models by their prices alone, families left out: {'; '.join(parts)}." if ours else "No method is left."
    people = [{name: _cell(row, name) for name in VIEW} for row in methods]
    return output.Words(headline, VIEW, [_line(row) for row in kept if row["kind"] != "method"], Listing(people) if people else None)


def _cell(row: Mapping[str, Any], name: str) -> Any:
    value = row[name]
    return f"{value:.0%}" if name == "coverage" else f"{value:.2f}" if isinstance(value, float) else value


def _line(row: Mapping[str, Any]) -> str:
    unit = "byte/token" if row["quantity"] == "kv" else ""
    truth, value, lo, hi = (units.show(row[name], unit) for name in ("truth", "value", "lo", "hi"))
    return f"{row['model']}, {row['quantity']}: {lo} .. {value} .. {hi}, published {truth}{'' if row['holds'] else ' (outside)'}"
