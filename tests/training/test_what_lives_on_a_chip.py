"""What lives on a chip in training is what is exchanged: drawn layouts against the rules of ZeRO in a pipeline and of tied tables."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest

from headway.hardware.system import system
from headway.models.config import model
from headway.training.recipe import Recipe, TrainingLayout, TrainingRun, optimizer
from headway.training.run import case_of
from headway.training.search import NAMES, bounds, candidates, estimate, rows
from headway.training.train import TrainingQuestion, cases

SEED = 20261125
SUBJECTS = (("llama-3.1-8b", "64xh100-sxm", 256), ("llama-3.1-70b", "256xh100-sxm", 512), ("qwen3-30b-a3b", "64xh100-sxm", 256),
            ("llama-3.2-1b", "16xh100-sxm", 64))  # fmt: skip


def drawn(name: str, machine: str, sequences: int, count: int, **recipe: Any) -> tuple[Any, TrainingLayout]:
    """A case, and layouts of it drawn from all that are legal."""
    run = {"seq": 4096, "global_batch": 4096 * sequences}
    question = TrainingQuestion(records={TrainingRun: run, Recipe: recipe})
    case = case_of(cases([model(name)], [system(machine)], question)[0])
    every = candidates(bounds(model(name), int(system(machine).chips), 4096, sequences), 8, {})
    places = random.Random(f"{SEED} {name}").sample(range(len(every.tp)), min(count, len(every.tp)))
    return case, rows(every, np.array(places))


def with_zero(layouts: TrainingLayout, stage: int) -> TrainingLayout:
    return dataclasses.replace(layouts, zero=np.full(len(layouts.tp), stage))


@pytest.mark.parametrize(("name", "machine", "sequences"), SUBJECTS)
def test_in_a_pipeline__zero_2_spares_nothing_that_it_does_not_exchange(name: str, machine: str, sequences: int) -> None:
    """Gradients that are reduced once a step are whole until then (500 layouts of each model)."""
    case, layouts = drawn(name, machine, sequences, 500)
    first, second = (estimate(case, with_zero(layouts, stage)) for stage in (1, 2))
    staged = layouts.pp > 1
    assert staged.sum() > 50 and (~staged).sum() > 20
    for part in ("weights", "gradients", "optimizer", "total"):
        assert np.asarray(getattr(second.memory, part))[staged] == pytest.approx(np.asarray(getattr(first.memory, part))[staged])
    assert np.asarray(second.time.step)[staged] == pytest.approx(np.asarray(first.time.step)[staged])
    shared = ~staged & (layouts.dp * layouts.cp > 1)
    assert (np.asarray(second.memory.gradients)[shared] < np.asarray(first.memory.gradients)[shared]).all()


def test_whole_gradients__of_the_fullest_stage_by_hand() -> None:
    """Llama-3.1-405B on 8 x 16 x 128 chips: 8 of 126 layers on the second stage, 7 and a table on the first; matrices alone."""
    found = model("llama-3.1-405b")
    run = {"seq": 8192, "global_batch": 8192 * 2048}
    case = case_of(cases([found], [system("16384xh100-sxm")], TrainingQuestion(records={TrainingRun: run}))[0])
    degrees = {"tp": 8, "cp": 1, "pp": 16, "vpp": 1, "ep": 1, "dp": 128, "micro_batch": 1, "zero": 2}
    memory = estimate(case, TrainingLayout(**{name: degrees[name] for name in NAMES})).memory
    layer = 16384 * (16384 + 2 * 8 * 128) + 16384 * 16384 + 3 * 16384 * 53248
    gradient = float(optimizer(case.recipe.optimizer).gradient)
    of_stages = [layers / 8 * gradient for layers in (8 * layer, 7 * layer + 128256 * 16384)]
    assert any(float(memory.gradients) == pytest.approx(of_stage, rel=1e-3) for of_stage in of_stages)


@pytest.mark.parametrize("pp", [1, 2, 4])
def test_a_tied_table__is_copied_to_the_last_stage(pp: int) -> None:
    """Where stages part it, a tied model needs what an untied one does; on one chip it needs a table less."""
    found = model("llama-3.2-1b")
    degrees = dict.fromkeys(NAMES, 1) | {"pp": pp}
    totals = []
    for tied in (True, False):
        subject = dataclasses.replace(found, tied=tied)
        question = TrainingQuestion(records={TrainingRun: {"seq": 4096, "global_batch": 4096 * 64}})
        case = case_of(cases([subject], [system(f"{pp}xh100-sxm")], question)[0])
        totals.append(float(estimate(case, TrainingLayout(**degrees)).memory.weights))
    assert totals[0] == pytest.approx(totals[1] - (2 * 128256 * 2048 if pp == 1 else 0), rel=1e-12)
