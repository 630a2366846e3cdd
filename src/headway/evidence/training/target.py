"""What a training row measured, as tokens per second and chip: from its speed, its step time, or its FLOP/s in its source's convention."""

from __future__ import annotations

from headway.evidence.training.setup import TrainingSetup
from headway.training.conventions import hardware_flop, model_flop

# The one rule by source: how its FLOPs are counted (docs/measured_rows.md); every other source counts attention in full, nothing twice.
COUNTS_RECOMPUTATION = ("narayanan-2021", "bloom")
COUNTS_HALF = ("llama-3", "palm")
TERA = 1e12


def flop_per_token(setup: TrainingSetup) -> float:
    """FLOPs of a token as the row's source counts them."""
    work, recipe = setup.case.work, setup.case.recipe
    if setup.row.source in COUNTS_RECOMPUTATION:
        return float(hardware_flop(work, recipe))
    return float(model_flop(work, recipe, causal=setup.row.source in COUNTS_HALF))


def measured_speed(setup: TrainingSetup) -> float | None:
    """Tokens per second and chip that the row measured; None where it gives no speed of any kind."""
    row = setup.row
    if row.tokens_per_s_per_chip:
        return row.tokens_per_s_per_chip
    if row.step_time_s and row.global_batch:
        return float(setup.case.batch) / row.step_time_s / float(setup.case.system.chips)
    if row.tflops_per_chip:
        return row.tflops_per_chip * TERA / flop_per_token(setup)
    if row.mfu_pct:
        return row.mfu_pct / 100 * float(setup.case.machine.peak) / flop_per_token(setup)
    return None
