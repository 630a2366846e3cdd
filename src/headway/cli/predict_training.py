"""`headway predict --training ROWS.csv`: what each training run of a table should measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway import output
from headway.cli import measured, subjects
from headway.columns import Column
from headway.listing import Listing

GIB, TERA = 2.0**30, 1e12
# Columns as tables of runs have them: the quantity, what one of them is in SI, and what it says.
QUANTITIES = {
    "tokens_per_s_per_chip": ("speed", 1.0, "token/s", "tokens of training per second and chip"),
    "step_time_s": ("step", 1.0, "s", "one optimiser step"),
    "tflops_per_chip": ("flops", TERA, "", "model TFLOP/s: attention in full, nothing twice, or as the row's source counts"),
    "memory_gb_per_chip": ("memory", GIB, "", "memory that tensors take on the fullest chip, in GiB, as frameworks print"),
}  # fmt: skip
ENDS = {"": "expected", "_lo": "lower end of the 90 % interval", "_hi": "upper end of it"}
VIEW = ("id", "tokens_per_s_per_chip", "tokens_per_s_per_chip_lo~tokens_per_s_per_chip_hi", "step_time_s", "tflops_per_chip",
        "memory_gb_per_chip", "memory_gb_per_chip_lo~memory_gb_per_chip_hi", "why")  # fmt: skip


def run(args: Any) -> output.Answer:
    """One row out for each line in, in the order of the file."""
    from headway.evidence.training.predict import predict
    from headway.evidence.training.row import read_training_rows

    measured.no_edits(args)
    rows, bad = read_training_rows(args.rows, measured=False)
    line_rows = [(prediction.row.line, _row(prediction)) for prediction in predict(rows, subjects.catalog(args))]
    line_rows += [(bad_row.line, _blank(bad_row.id) | {"why": measured.at_line(bad_row.line, bad_row.why)}) for bad_row in bad]
    plain = [row for _, row in sorted(line_rows, key=lambda pair: pair[0])]
    return output.Answer(Listing(plain, always=tuple(_blank(""))), describe=_words, columns=_about())


def _about() -> dict[str, Column]:
    columns = {"id": Column("", "the row's id, as given")}
    for key, (_, _, unit, doc) in QUANTITIES.items():
        columns |= {key + end: Column(unit, f"{doc}; {what}") for end, what in ENDS.items()}
    return columns | {
        "flags": Column("", "what was taken where the row is silent, joined by '; '"),
        "why": Column("", "the line, and why there is no prediction; or null"),
    }


def _blank(name: str) -> dict[str, Any]:
    """Every column of an answer, empty."""
    return {"id": name} | {key + end: None for key in QUANTITIES for end in ENDS} | {"flags": None, "why": None}


def _row(prediction: Any) -> dict[str, Any]:
    """A prediction in the units of the table."""
    row = _blank(prediction.row.id)
    for key, (name, scale, _, _) in QUANTITIES.items():
        estimate = getattr(prediction, name)
        if estimate is not None:
            row |= {key: estimate.expected / scale, f"{key}_lo": estimate.lo / scale, f"{key}_hi": estimate.hi / scale}
    row["flags"] = "; ".join(prediction.flags) or None
    row["why"] = measured.at_line(prediction.row.line, prediction.why) if prediction.why else None
    return row


def _words(rows: Any) -> output.Summary:
    """How many rows are predicted, why the others are not, and what was most often taken."""
    row_list: Sequence[Mapping[str, Any]] = list(rows)
    if not row_list:
        return output.Summary("No row to predict.")
    without = [row["why"].partition(": ")[2] for row in row_list if row["why"]]
    reasons = f"; not predicted: {measured.reason_summary(without)}" if without else ""
    flags = [flag for row in row_list for flag in (row["flags"] or "").split("; ") if flag]
    return output.Summary(
        f"{len(row_list) - len(without):,} of {len(row_list):,} rows predicted{reasons}.", VIEW, measured.frequent_flags(flags)
    )
