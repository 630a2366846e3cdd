"""Model and hardware FLOPs of a token, and MFU and HFU, in the conventions that sources print them in.

`causal` counts the half of attention that the mask leaves, `full` counts all of it, `recompute` also what is computed again (HFU).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws.sums import sum_over_blocks, total
from headway.laws.training_flop import (
    achieved_flops,
    attention_flop_per_token,
    flop_utilisation,
    hardware_flop_per_token,
    matmul_flop_per_token,
    model_flop_per_token,
    training_passes,
)
from headway.laws.training_step import micro_pairs
from headway.model import NONE, UNITY
from headway.quantity import known
from headway.training.recipe import Recipe
from headway.training.work import TrainingWork, multiplied_params

ONE_TOKEN = known(1, "one token", "token", "constant", "per token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Shares of the peak of the format that the layers run in, and FLOP/s of a chip, by convention."""

    mfu: Any  # causal
    mfu_full: Any
    hfu: Any
    flops_chip: Any  # causal
    flops_chip_full: Any
    flops_chip_recompute: Any
    flop_per_token: Any  # causal


def utilisation(work: TrainingWork, recipe: Recipe, machine: Any, speed: Any) -> Utilisation:
    """Every convention's figure at a speed in tokens per second and chip."""
    causal, full = model_flop(work, recipe, causal=True), model_flop(work, recipe, causal=False)
    hardware = hardware_flop(work, recipe)
    return Utilisation(
        mfu=flop_utilisation(causal, speed, machine.peak), mfu_full=flop_utilisation(full, speed, machine.peak),
        hfu=flop_utilisation(hardware, speed, machine.peak), flops_chip=achieved_flops(causal, speed),
        flops_chip_full=achieved_flops(full, speed), flops_chip_recompute=achieved_flops(hardware, speed), flop_per_token=causal,
    )  # fmt: skip


def model_flop(work: TrainingWork, recipe: Recipe, causal: bool) -> Any:
    """Training FLOPs of a token, whatever is computed again."""
    return model_flop_per_token(_matmul(work), _attention(work, causal), training_passes(recipe.trainable))


def hardware_flop(work: TrainingWork, recipe: Recipe) -> Any:
    """FLOPs that the hardware runs for a token, attention in full."""
    forward = total((_matmul(work), _attention(work, causal=False)))
    again = UNITY if recipe.recompute == "full" else NONE
    return hardware_flop_per_token(model_flop(work, recipe, causal=False), forward, again)


def _matmul(work: TrainingWork) -> Any:
    return matmul_flop_per_token(total((multiplied_params(work), work.logits)))


def _attention(work: TrainingWork, causal: bool) -> Any:
    counts, layer_flop = tuple(kind.block.count for kind in work.layers), []
    for kind in work.layers:
        b = kind.block
        parts = [b.recurrence_flop_per_token]
        for span in b.spans:
            pairs = micro_pairs(ONE_TOKEN, work.sequence, span.cap_tokens) if causal else min(work.sequence, span.cap_tokens)
            parts.append(attention_flop_per_token(span.prefill_score_flop, pairs, ONE_TOKEN))
        layer_flop.append(total(tuple(parts)))
    return sum_over_blocks(counts, tuple(layer_flop))
