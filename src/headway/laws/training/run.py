"""A training run: FLOP conventions and utilisation, failures, restarts, cost and energy.

A backward pass costs two forward ones (gradients of inputs and of weights). Sources differ in whether they count all of attention
or its causal half, and whether they count recomputed forwards: never compare two figures without their conventions.
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import (
    Flop,
    FlopPerSecond,
    FlopPerToken,
    Number,
    PerSecond,
    Second,
    Token,
    TokenPerSecond,
    Usd,
    UsdPerSecond,
)

TWO_FLOP: FlopPerToken = 2.0  # a multiply and an add per parameter and token
KORTHIKANTI = "Korthikanti et al. 2022 (arXiv:2205.05198) appendix A"


@formula(source="Kaplan et al. 2020 (arXiv:2001.08361) section 2.1: 2 N forward, 4 N backward")
def training_passes(trainable: Number) -> Number:
    """Forward-pass equivalents of a training step's matmuls: 3, or 2 where no weight gets a gradient (LoRA).

    >>> training_passes(1), training_passes(0)
    (3, 2)
    """
    return 2 + trainable


@formula(source="2 N, embedding look-up excluded, head included")
def matmul_flop_per_token(params: Number) -> FlopPerToken:
    """FLOP per token of a forward pass through the matmuls (Llama-3.1-8B).

    >>> matmul_flop_per_token(7_504_924_672) / 1e9
    15.009849344
    """
    return TWO_FLOP * params


@formula(source="Kaplan et al. 2020 (arXiv:2001.08361) section 2.1: 4 N, gradients of inputs and of weights")
def backward_flop_per_token(forward: FlopPerToken) -> FlopPerToken:
    """FLOP per token of a backward pass: twice the forward pass, since inputs and weights each get a gradient.

    >>> backward_flop_per_token(15.009849344e9) / 1e9  # Llama-3.1-8B
    30.019698688
    """
    return training_passes(0) * forward


@formula(source=KORTHIKANTI + ": scores and values, 4 s a d per token; half of them where the causal mask counts")
def attention_flop_per_token(score: FlopPerToken, mean_context: Token, token: Token) -> FlopPerToken:
    """FLOP per token of a forward pass through attention of one layer, with `mean_context` tokens attended to on average.

    >>> attention_flop_per_token(4 * 64 * 128, 8192, 1) / 1e6  # Llama-3.1-70B, 8k, without the causal half
    268.435456
    """
    return score * mean_context / token


@formula(source=KORTHIKANTI + ": model FLOPs, whatever is recomputed")
def model_flop_per_token(matmul: FlopPerToken, attention: FlopPerToken, passes: Number) -> FlopPerToken:
    """Model FLOP per token in training under one convention of attention (GPT-3 175B, 2k, attention in full).

    >>> round(model_flop_per_token(2 * 174.6e9, 96 * 4 * 12288 * 2048, 3) / 1e12, 4)
    1.0766
    """
    return passes * (matmul + attention)


@formula(source=KORTHIKANTI + ": what the hardware runs, recomputation included")
def hardware_flop_per_token(model: FlopPerToken, forward: FlopPerToken, recomputed: Number) -> FlopPerToken:
    """Hardware FLOP per token: model FLOP and recomputed forward passes; full recomputation gives 4/3.

    >>> hardware_flop_per_token(6.0, 2.0, 1)
    8.0
    """
    return model + forward * recomputed


@formula(source="definition: FLOPs of the model over those of the machine")
def flop_utilisation(per_token: FlopPerToken, rate: TokenPerSecond, peak: FlopPerSecond) -> Number:
    """MFU from model FLOP, HFU from hardware FLOP; `rate` is tokens/s per chip (MPT-70b on H100: 41 % published).

    >>> round(flop_utilisation(6 * 64_862_437_376 + 12 * 80 * 8192 * 2048, 1007, 989.5e12), 4)
    0.4124
    """
    return per_token * rate / peak


@formula(source="definition: FLOPs of the run over those of its chips in their time")
def run_utilisation(flop: Flop, chip_time: Second, peak: FlopPerSecond) -> Number:
    """MFU of a whole run from its FLOP and chip-seconds (DeepSeek-V3: 14.8 T tokens of 37 B in 2.664 M H800-hours of pre-training).

    >>> round(run_utilisation(6 * 37e9 * 14.8e12, 2.664e6 * 3600, 1978.9e12), 4)
    0.1731
    """
    return flop / (chip_time * peak)


YOUNG = "Young 1974, CACM 17(9); Daly 2006, FGCS 22(3): half an interval is lost with each failure"


@formula(source=YOUNG + ": sqrt(2 c / lambda)")
def best_interval_s(checkpoint: Second, failures: PerSecond) -> Second:
    """Time between checkpoints that loses least time to checkpoints and failures.

    >>> round(float(best_interval_s(60, 16384 / (51000 * 3600))) / 60)
    19
    """
    return np.sqrt(2 * checkpoint / failures)


@formula(source=YOUNG)
def goodput_share(checkpoint: Second, interval: Second, failures: PerSecond, restart: Second) -> Number:
    """Share of wall time that advances the run, without checkpoints, restarts and work lost in failures.

    >>> round(goodput_share(60, 1160, 16384 / (51000 * 3600), 900), 3)
    0.825
    """
    return 1 / (1 + checkpoint / interval) * (1 - failures * (restart + interval / 2))


@formula(source="definition")
def wall_s(work: Second, goodput: Number) -> Second:
    """Wall time of a run, failures and checkpoints included.

    >>> wall_s(80.0, 0.8)
    100.0
    """
    return work / goodput


@formula(source="definition: a system is rented whole, idle chips too")
def run_usd(price: UsdPerSecond, chips: Number, wall: Second) -> Usd:
    """Cost of a run (DeepSeek-V3: 2.788 M H800 hours at 2 USD).

    >>> round(run_usd(2 / 3600, 2048, 2.788e6 / 2048 * 3600) / 1e6, 3)
    5.576
    """
    return price * chips * wall


# -- width of a 90 % interval from independent causes, each a factor of half an interval ----------------------------------------


@formula(source="variances of independent causes add; factors are measured by leaving whole classes out, docs/accuracy.md")
def joint_factor(first: Number, second: Number) -> Number:
    """Factor of half an interval from two independent causes, such as an unseen source and an unseen kind of chip.

    >>> round(float(joint_factor(1.25, 1.4)), 3), float(joint_factor(1.25, 1.0))
    (1.497, 1.25)
    """
    return np.exp(np.sqrt(np.log(first) ** 2 + np.log(second) ** 2))
