"""`headway trend chips|models`: chips by year, models by release date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.answers import arguments
from headway.core.errors import check_known
from headway.core.listing import cell, clean, remade
from headway.hardware.questions import Trend
from headway.hardware.trend import trend_chips, trend_models
from headway.report import output, trend
from headway.report.words import number_of, sentence

if TYPE_CHECKING:
    from headway.core.listing import Rows

VIEW = ("year", "chip", "hardware_ratio_bf16", "hardware_ratio_fp8", "hardware_ratio_fp4", "drain_s", "hbm_per_flop", "scale_up_domain",
        "latency_floor_s", "longest_context")  # fmt: skip


FLOOR = "floor and longest context are those of DeepSeek-V3 on the chip's scale-up domain, - where it does not fit"
MODEL_VIEW = ("released", "model", "total_params", "active_params", "sparsity", "max_context", "kv_bytes_per_token", "training_tokens",
              "tokens_per_active", "tokens_status", "scale_up_domain", "domain_hbm", "fits")  # fmt: skip
SUBJECTS = ("chips", "models")


def run(args: Trend) -> output.Answer:
    """Answer with a row per chip or model, by date."""
    check_known("trend", args.what, SUBJECTS)
    rows_of = trend_models if args.what == "models" else trend_chips
    catalog = arguments.catalog(args)
    listing = remade(clean(rows_of(catalog)), lambda place: rows_of(catalog)[place])
    if args.what == "models":
        pictures = {"years": trend.drawing}
        return output.Answer(listing, describe=lambda rows: trend.words(list(rows), MODEL_VIEW), pictures=pictures, most=1000)
    return output.Answer(listing, describe=_describe, pictures={"years": trend.chips}, most=1000)


def _describe(table: Rows) -> output.Summary:
    """Summary: the span of years, and what the newest chips changed since the oldest."""
    rows = list(table)
    dated = sorted((row for row in rows if row["year"] is not None and row["hardware_ratio_bf16"] is not None), key=lambda row: row["year"])
    span = ""
    if dated:
        by_ratio = sorted(dated, key=lambda row: row["hardware_ratio_bf16"])
        ends = [f"{cell('hardware_ratio_bf16', row)} ({cell('chip', row)}, {row['year']})" for row in (by_ratio[0], by_ratio[-1])]
        span = f"; hardware ratio in bf16 from {ends[0]} to {ends[1]}"
    return output.Summary(sentence(number_of(len(rows), "chip"), span), VIEW, remarks=[FLOOR], first=("year", "chip"))
