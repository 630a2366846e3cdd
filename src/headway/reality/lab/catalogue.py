"""The experiments, by name."""

from __future__ import annotations

from headway.core.errors import check_known
from headway.reality.lab.experiment import Experiment
from headway.reality.lab.trains import TRAINS

EXPERIMENTS = {experiment.name: experiment for experiment in (TRAINS,)}


def experiment(name: str) -> Experiment:
    """The experiment of a name."""
    check_known("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def experiments_of(claim_id: str) -> list[Experiment]:
    """Those that test a claim."""
    return [experiment for experiment in EXPERIMENTS.values() if claim_id in experiment.claims]
