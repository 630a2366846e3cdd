"""HFU times the peak is what the step computes: matmuls of layers and head, attention, and what the recipe computes again."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from headway.core.schema import defaults
from headway.hardware.system import system
from headway.models.config import model
from headway.training.estimate import estimate
from headway.training.pipeline import placement
from headway.training.recipe import Recipe, TrainingLayout, TrainingRun
from headway.training.run import case_of
from headway.training.search import with_recipe
from headway.training.step_time import step_work
from headway.training.train import TrainingQuestion, cases
from headway.training.work import hardware_flop

SEED = 20261129
MODELS = {"llama-3.1-8b": 32, "llama-3.2-1b": 16, "deepseek-v2-lite": 27, "qwen3-30b-a3b": 48, "gemma-2-9b": 42}
DRAWS = 500
FULL_OVER_CAUSAL = 2.0  # published HFU counts the masked half of attention


def test_hardware_flop__is_what_the_step_computes() -> None:
    """Over drawn models, recipes and layouts without idle layers; attention of models without windows."""
    dice = random.Random(SEED)
    for _ in range(DRAWS):
        name = dice.choice(sorted(MODELS))
        pp = dice.choice([n for n in (1, 2, 3, 4, 8, 9) if MODELS[name] % n == 0])
        mode, asked = dice.choice(("none", "selective", "full")), {"kernels": dice.choice(("fused", "eager")),
                 "trainable": dice.choice((1, 1, 0.5)), "captured": 1}  # fmt: skip
        tp = 1 if name.startswith("deepseek") else dice.choice((1, 2))  # latents are computed on every tensor-parallel chip
        question = TrainingQuestion(records={TrainingRun: {"seq": 4096, "global_batch": 4096 * 64}, Recipe: asked})
        case = case_of(cases([model(name)], [system("64xh100-sxm")], question)[0])
        case = with_recipe(case, model(name), replace(case.recipe, recompute=mode))
        layout = defaults(TrainingLayout, {"tp": tp, "pp": pp, "dp": 2, "micro_batch": dice.choice((1, 2)), "zero": 1})
        step, machine = step_work(placement(case, layout)), case.machine
        tokens = int(layout.micro_batch) * 4096
        layers = (step.matmuls + step.experts) * (step.passes + step.again) * machine.peak
        head = step.head * step.passes * machine.wide_peak
        of_matmuls = float(layers * tp * pp + head * tp) / tokens
        passes = 2 + case.recipe.trainable + (1 if mode == "full" else 0)
        scores = 0.0 if name == "gemma-2-9b" else float(step.scores * machine.wide_peak * tp * pp) / tokens * passes * FULL_OVER_CAUSAL
        whole = float(hardware_flop(case.work, case.recipe))
        if name == "gemma-2-9b":  # windows: only matmuls are compared, from below
            assert of_matmuls < whole, (SEED, name, mode, asked)
        else:
            assert of_matmuls + scores == pytest.approx(whole, rel=1e-9), (SEED, name, mode, asked, pp, tp)
        found: Any = estimate(case, layout)
        assert float(found.use.hfu * machine.peak) == pytest.approx(whole * float(found.tokens_per_s_chip), rel=1e-12)
