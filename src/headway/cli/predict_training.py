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
    found = [(one.row.line, _row(one)) for one in predict(rows, subjects.catalog(args))]
    found += [(one.line, _blank(one.id) | {"why": measured.at_line(one.line, one.why)}) for one in bad]
    plain = [row for _, row in sorted(found, key=lambda pair: pair[0])]
    return output.Answer(Listing(plain, always=tuple(_blank(""))), describe=_words, columns=_about())


def _about() -> dict[str, Column]:
    found = {"id": Column("", "the row's id, as given")}
    for key, (_, _, unit, said) in QUANTITIES.items():
        found |= {key + end: Column(unit, f"{said}; {what}") for end, what in ENDS.items()}
    return found | {
        "flags": Column("", "what was taken where the row is silent, joined by '; '"),
        "why": Column("", "the line, and why there is no prediction; or null"),
    }


def _blank(name: str) -> dict[str, Any]:
    """Every column of an answer, empty."""
    return {"id": name} | {key + end: None for key in QUANTITIES for end in ENDS} | {"flags": None, "why": None}


def _row(one: Any) -> dict[str, Any]:
    """A prediction in the units of the table."""
    row = _blank(one.row.id)
    for key, (name, scale, _, _) in QUANTITIES.items():
        found = getattr(one, name)
        if found is not None:
            row |= {key: found.expected / scale, f"{key}_lo": found.lo / scale, f"{key}_hi": found.hi / scale}
    row["flags"] = "; ".join(one.flags) or None
    row["why"] = measured.at_line(one.row.line, one.why) if one.why else None
    return row


def _words(rows: Any) -> output.Words:
    """How many rows are predicted, why the others are not, and what was most often taken."""
    left: Sequence[Mapping[str, Any]] = list(rows)
    if not left:
        return output.Words("No row to predict.")
    without = [row["why"].partition(": ")[2] for row in left if row["why"]]
    told = f"; not predicted: {measured.counted(without)}" if without else ""
    flags = [flag for row in left for flag in (row["flags"] or "").split("; ") if flag]
    return output.Words(f"{len(left) - len(without):,} of {len(left):,} rows predicted{told}.", VIEW, measured.often(flags))
