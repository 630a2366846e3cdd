"""One layout of a training run as a row: its keys, their units and their sentences, and where each is in the records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from headway.laws.shard import idle_chips, replica_chips
from headway.laws.training_step import tokens_per_s_chip
from headway.training.estimate import TrainingEstimate
from headway.training.outlook import Outlook
from headway.training.overlap import overlap
from headway.training.search import Found
from headway.training_columns import PARTS, TIMES
from headway.units import show


def row(found: Found, model: str, made: TrainingEstimate, run: Outlook, tokens: Any, kind: str) -> dict[str, Any]:
    """Every key of one layout."""
    case, layout, recipe = found.case, found.layout, found.case.recipe
    used = replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)
    low, high = speeds(case, made)
    shown = {
        "kind": kind, "model": model, "system": case.system.name, "chips": case.system.chips,
        "chips_idle": idle_chips(case.system.chips, used),
        **{field.name: getattr(layout, field.name) for field in fields(layout)},
        "recompute": recipe.recompute, "schedule": recipe.schedule, "dtype": recipe.dtype, "optimizer": case.optimizer.name,
        "seq": case.work.sequence, "global_batch": case.batch, "micro_batches": made.micro_batches,
        "step_s": made.time.step, "step_floor_s": made.time.floor, "step_lo_s": made.step_low, "step_hi_s": made.step_high,
        "tokens_per_s_chip": made.tokens_per_s_chip, "tokens_per_s_chip_lo": low, "tokens_per_s_chip_hi": high,
        "mfu": made.use.mfu, "mfu_full": made.use.mfu_full, "hfu": made.use.hfu, "flops_chip": made.use.flops_chip,
        "flops_chip_full": made.use.flops_chip_full,
        "memory_bytes_chip": made.memory.total, "memory_bytes_chip_lo": made.memory_low, "memory_bytes_chip_hi": made.memory_high,
        "hbm_bytes_chip": case.system.chip.need("hbm"),
    }  # fmt: skip
    shown |= {f"{name}_bytes_chip": getattr(made.memory, name) for name in PARTS}
    shown |= {f"{name}_s": getattr(made.time, name) for name in TIMES}
    conditions = overlap(case, layout)
    shown |= {field.name: getattr(conditions, field.name) for field in fields(conditions)}
    shown |= {
        "bound": max(TIMES, key=lambda name: float(getattr(made.time, name))), "fits": bool(made.fits), "why": why(case, made),
        "tokens": tokens, "goodput": run.goodput, "run_s": run.run, "run_lo_s": run.run_low, "run_hi_s": run.run_high, "run_usd": run.usd,
        "run_usd_lo": run.usd_low, "run_usd_hi": run.usd_high, "energy_j": run.energy, "run_flop": run.flop,
    }  # fmt: skip
    return shown


def speeds(case: Any, made: TrainingEstimate) -> tuple[Any, Any]:
    """Ends of the interval of the speed: those of the step, the other way round."""
    return tuple(tokens_per_s_chip(case.batch, step, case.system.chips) for step in (made.step_high, made.step_low))  # type: ignore[return-value]


def why(case: Any, made: TrainingEstimate) -> str:
    """Why a layout does not fit, and what of it is largest; "" where it fits."""
    if bool(made.fits):
        return ""
    largest = max(PARTS, key=lambda name: float(getattr(made.memory, name)))
    has, needs = show(case.system.chip.need("hbm"), "byte"), show(made.memory.total, "byte")
    return f"needs {needs} on the fullest chip, which has {has}; largest: {PARTS[largest]}, {show(getattr(made.memory, largest), 'byte')}"
