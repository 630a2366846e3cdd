"""One layout of a training run as a row: its keys, their units and their sentences, and where each is in the records."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from headway.laws.shard import idle_chips, replica_chips
from headway.laws.training_step import tokens_per_s_chip
from headway.training.estimate import TrainingEstimate
from headway.training.outlook import Outlook
from headway.training.overlap import overlap
from headway.training.search import LayoutEstimate
from headway.training_columns import PARTS, TIMES
from headway.units import show


def row(candidate: LayoutEstimate, model: str, result: TrainingEstimate, run: Outlook, tokens: Any, kind: str) -> dict[str, Any]:
    """Every key of one layout."""
    case, layout, recipe = candidate.case, candidate.layout, candidate.case.recipe
    used_chips = replica_chips(layout.tp, layout.cp, layout.dp, layout.pp)
    low, high = speeds(case, result)
    columns = {
        "kind": kind, "model": model, "system": case.system.name, "chips": case.system.chips,
        "chips_idle": idle_chips(case.system.chips, used_chips),
        **{field.name: getattr(layout, field.name) for field in fields(layout)},
        "recompute": recipe.recompute, "schedule": recipe.schedule, "dtype": recipe.dtype, "optimizer": case.optimizer.name,
        "seq": case.work.sequence, "global_batch": case.batch, "micro_batches": result.micro_batches,
        "step_s": result.time.step, "step_floor_s": result.time.floor, "step_lo_s": result.step_low, "step_hi_s": result.step_high,
        "tokens_per_s_chip": result.tokens_per_s_chip, "tokens_per_s_chip_lo": low, "tokens_per_s_chip_hi": high,
        "mfu": result.use.mfu, "mfu_full": result.use.mfu_full, "hfu": result.use.hfu, "flops_chip": result.use.flops_chip,
        "flops_chip_full": result.use.flops_chip_full,
        "memory_bytes_chip": result.memory.total, "memory_bytes_chip_lo": result.memory_low, "memory_bytes_chip_hi": result.memory_high,
        "hbm_bytes_chip": case.system.chip.need("hbm"),
    }  # fmt: skip
    columns |= {f"{name}_bytes_chip": getattr(result.memory, name) for name in PARTS}
    columns |= {f"{name}_s": getattr(result.time, name) for name in TIMES}
    conditions = overlap(case, layout)
    columns |= {field.name: getattr(conditions, field.name) for field in fields(conditions)}
    columns |= {
        "bound": max(TIMES, key=lambda name: float(getattr(result.time, name))), "fits": bool(result.fits), "why": why(case, result),
        "tokens": tokens, "goodput": run.goodput, "run_s": run.run, "run_lo_s": run.run_low, "run_hi_s": run.run_high, "run_usd": run.usd,
        "run_usd_lo": run.usd_low, "run_usd_hi": run.usd_high, "energy_j": run.energy, "run_flop": run.flop,
    }  # fmt: skip
    return columns


def speeds(case: Any, result: TrainingEstimate) -> tuple[Any, Any]:
    """Ends of the interval of the speed: those of the step, the other way round."""
    return tuple(tokens_per_s_chip(case.batch, step, case.system.chips) for step in (result.step_high, result.step_low))  # type: ignore[return-value]


def why(case: Any, result: TrainingEstimate) -> str:
    """Why a layout does not fit, and what of it is largest; "" where it fits."""
    if bool(result.fits):
        return ""
    largest = max(PARTS, key=lambda name: float(getattr(result.memory, name)))
    has, needs = show(case.system.chip.need("hbm"), "byte"), show(result.memory.total, "byte")
    return f"needs {needs} on the fullest chip, which has {has}; largest: {PARTS[largest]}, {show(getattr(result.memory, largest), 'byte')}"
