"""`headway trend chips`: facts of chips by year."""

from __future__ import annotations

from typing import Any

from headway.cli import arguments
from headway.core.errors import UnknownName
from headway.core.listing import Listing, clean, computed
from headway.report import output

VIEW = ("year", "chip", "hardware_ratio_bf16", "hardware_ratio_fp8", "hardware_ratio_fp4", "drain_s", "hbm_per_flop", "scale_up_domain",
        "latency_floor_s", "longest_context")  # fmt: skip


FIGURE_KEYS = ("flop_per_byte_bf16", "flop_per_byte_fp8", "drain_s", "hbm_per_flop", "latency_floor_s", "longest_context")


def add_flags(parser: Any) -> None:
    """Flags of the verb: the quantity to follow over generations."""
    parser.add_argument("what", metavar="chips")


def run(args: Any) -> output.Answer:
    """Answer with a row per chip, by year."""
    if args.what != "chips":
        raise UnknownName("trend", args.what, ("chips",), "chips")
    from headway.core.formula import record
    from headway.hardware.trend import trend_chips

    def tree(row: Any, key: str) -> Any:
        with record():
            chip_row = next(entry for entry in trend_chips(arguments.catalog(args)) if entry.chip == row["chip"])
        return computed(getattr(chip_row, key), key)

    rows = clean(list(trend_chips(arguments.catalog(args))))
    headline = "what each generation changed; floor and longest context of DeepSeek-V3 on the chip's scale-up domain, - where none"
    return output.Answer(Listing(rows, tree=tree), words=output.Summary(headline, VIEW), figure=_figure, most=1000)


def _figure(rows: Any) -> dict[str, Any]:
    from headway.report import figures

    return figures.listing(
        rows, FIGURE_KEYS, "Chips by year; latency floor and longest context are those of DeepSeek-V3 on one scale-up domain"
    )
