"""`headway predict ROWS.csv`: what each row of a table of runs should measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway import output
from headway.cli import measured
from headway.columns import Column, column
from headway.listing import Listing

QUANTITIES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "output_tok_s_total": "rate", "tok_s_per_chip": "per_chip"}
ENDS = ("lo", "hi")
VIEW = ("id", "ttft_ms", "ttft_ms_lo~ttft_ms_hi", "tpot_ms", "tpot_ms_floor", "tpot_ms_lo~tpot_ms_hi", "output_tok_s_total",
        "tok_s_per_chip", "tok_s_per_chip_lo~tok_s_per_chip_hi", "why")  # fmt: skip
ABOUT = {
    "id": Column("", "the row's id, as given"),
    "flags": Column("", "what was inferred where the row is silent, joined by '; '"),
    "why": Column("", "the line, and why there is no prediction; or null"),
}
ABOUT_FILE = "CSV whose first line names columns: at least id, model, hardware, mode"


def add_flags(parser: Any) -> None:
    """The rows."""
    parser.add_argument("rows", metavar="ROWS.csv", help=ABOUT_FILE)
    parser.add_argument("--training", action="store_true", help="the rows are training runs: at least id, model, hardware")


def run(args: Any) -> output.Answer:
    """One row out for each line in, in the order of the file."""
    if args.training:
        from headway.cli import predict_training

        return predict_training.run(args)
    from headway.evidence.read_rows import read_rows

    measured.no_edits(args)
    rows, bad = read_rows(args.rows, measured=False)  # what was measured is not looked at, right or wrong
    read = measured.predicted(rows, bad, args)
    line_rows = [
        *((prediction.row.line, _row(prediction)) for prediction in read.predictions),
        *((bad_row.line, _malformed(bad_row)) for bad_row in bad),
    ]
    plain = [row for _, row in sorted(line_rows, key=lambda pair: pair[0])]
    return output.Answer(Listing(plain, always=tuple(_blank(""))), describe=_words, columns=_about())


def _about() -> dict[str, Column]:
    return {key: ABOUT.get(key) or column(key) for key in _blank("")}


def _blank(name: str) -> dict[str, Any]:
    """Every column of an answer, empty."""
    row: dict[str, Any] = {"id": name}
    for key in QUANTITIES:
        row |= dict.fromkeys((key, *(f"{key}_{end}" for end in (*(("floor",) if key.endswith("_ms") else ()), *ENDS))))
    return row | {"flags": None, "why": None}


def _row(prediction: Any) -> dict[str, Any]:
    """A prediction in the units of the table: times in ms, rates in tokens/s."""
    row = _blank(prediction.row.id)
    for key, name in QUANTITIES.items():
        estimate = getattr(prediction, name)
        if estimate is not None:
            time = key.endswith("_ms")
            scale = 1000.0 if time else 1.0
            row[key] = scale * estimate.expected
            row[f"{key}_lo"], row[f"{key}_hi"] = scale * estimate.lo, scale * estimate.hi
            if time:
                row[f"{key}_floor"] = scale * estimate.floor
    row["flags"] = "; ".join(prediction.flags) or None
    row["why"] = measured.at_line(prediction.row.line, prediction.why) if prediction.why else None
    return row


def _malformed(bad_row: Any) -> dict[str, Any]:
    return _blank(bad_row.id) | {"why": measured.at_line(bad_row.line, bad_row.why)}


def _words(rows: Any) -> output.Summary:
    """How many rows are predicted, why the others are not, and what was most often assumed."""
    row_list: Sequence[Mapping[str, Any]] = list(rows)
    if not row_list:
        return output.Summary("No row to predict.")
    from headway.evidence.beyond import MEMORY

    without = [row["why"].partition(": ")[2] for row in row_list if row["why"]]
    over = sum(MEMORY in (row["flags"] or "") for row in row_list)
    beyond = f", {over:,} of them {MEMORY}" if over else ""
    reasons = f"; not predicted: {measured.reason_summary(without)}" if without else ""
    flags = [flag for row in row_list for flag in (row["flags"] or "").split("; ") if flag]
    return output.Summary(
        f"{len(row_list) - len(without):,} of {len(row_list):,} rows predicted{beyond}{reasons}.", VIEW, measured.frequent_flags(flags)
    )
