"""`train`: the best layouts of a training run, or one that is given, with what the run takes in days, money and energy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from headway.chip import chip_price
from headway.cost import DEFAULT_METRIC, Price
from headway.errors import BadValue, IllegalLayout
from headway.formula import record
from headway.laws.shard import idle_chips
from headway.laws.training_flop import run_flop, training_run_s
from headway.laws.training_run import best_interval_s, chip_power_w, failure_rate, goodput_share, run_energy_j, run_usd, wall_s
from headway.model import ONE, Model
from headway.quantity import known
from headway.schema import Q
from headway.system import System
from headway.training.estimate import TrainingCase, TrainingEstimate, estimate, machine
from headway.training.reach import TrainingReach, reached
from headway.training.recipe import Recipe, Run, TrainingLayout, optimizer
from headway.training.work import training_work
"""
