"""`headway trend chips|models`: chips by year, models by release date."""

from __future__ import annotations

from typing import Any

from headway.cli import arguments
from headway.core.errors import UnknownName
from headway.core.listing import Listing, clean, computed
from headway.report import output

VIEW = ("year", "chip", "hardware_ratio_bf16", "hardware_ratio_fp8", "hardware_ratio_fp4", "drain_s", "hbm_per_flop", "scale_up_domain",
        "latency_floor_s", "longest_context")  # fmt: skip


MODEL_VIEW = ("released", "model", "total_params", "active_params", "sparsity", "max_context", "kv_bytes_per_token", "training_tokens",
              "tokens_per_active", "tokens_status", "scale_up_domain", "domain_hbm", "fits")  # fmt: skip
SUBJECTS = ("chips", "models")
FIGURE_KEYS = ("flop_per_byte_bf16", "flop_per_byte_fp8", "drain_s", "hbm_per_flop", "latency_floor_s", "longest_context")


def add_flags(parser: Any) -> None:
    """Flags of the verb: what to follow over the years."""
    parser.add_argument("what", metavar="|".join(SUBJECTS))


def run(args: Any) -> output.Answer:
    """Answer with a row per chip or model, by date."""
    if args.what not in SUBJECTS:
        raise UnknownName("trend", args.what, SUBJECTS, "one of " + ", ".join(SUBJECTS))
    return _models(args) if args.what == "models" else _chips(args)


def _models(args: Any) -> output.Answer:
    from headway.core.formula import record
    from headway.hardware.model_trend import trend_models
    from headway.report import trend

    def tree(row: Any, key: str) -> Any:
        with record():
            model_row = next(entry for entry in trend_models(arguments.catalog(args)) if entry.model == row["model"])
        return computed(getattr(model_row, key), key)

    rows = clean(list(trend_models(arguments.catalog(args))))
    return output.Answer(
        Listing(rows, tree=tree), describe=lambda listing: trend.words(list(listing), MODEL_VIEW), figure=trend.figure, most=1000
    )  # fmt: skip


def _chips(args: Any) -> output.Answer:
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
