"""The experiments, by name: what each is about, the claims that it tests, the module that runs it. Nothing here loads numpy."""

from __future__ import annotations

from headway.core.errors import check_known
from headway.reality.lab.batch_setup import BatchSetup
from headway.reality.lab.experiment import Experiment
from headway.reality.lab.reversible_setup import ReversibleSetup
from headway.reality.lab.train_setup import TrainSetup

BATCH = Experiment(
    name="batch", title="a weight read that is shared by a batch", claims=("RB-06", "RB-23", "RB-10", "RB-05"), main="step", axis="batch",
    runs="one decode step of a routed decoder at batches from 1 to 1,024, with new tokens in every step",
    setup=BatchSetup(), module="headway.reality.lab.batch",
)  # fmt: skip
TRAINS = Experiment(
    name="trains", title="trains that leave on time, full or not", claims=("TS-05", "TS-04", "TS-13"), main="mean wait", axis="load",
    runs="requests arrive at random; every interval a train takes those that wait, up to its seats, for one real decode step",
    setup=TrainSetup(), module="headway.reality.lab.trains",
)  # fmt: skip
REVERSIBLE = Experiment(
    name="reversible", title="activations made again from the output", claims=("CR-04", "CR-03", "CR-05", "CR-01", "CR-02"),
    main="peak memory, reversible", axis="layers",
    runs="one stack of residual layers trained plain, checkpointed and reversible, at depths from 4 to 64; its couplings encrypt as well",
    setup=ReversibleSetup(), module="headway.reality.lab.reversible",
)  # fmt: skip
EXPERIMENTS = {entry.name: entry for entry in (BATCH, TRAINS, REVERSIBLE)}


def experiment(name: str) -> Experiment:
    """The experiment of a name."""
    check_known("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def experiments_of(claim_id: str) -> list[Experiment]:
    """Those that test a claim."""
    return [entry for entry in EXPERIMENTS.values() if claim_id in entry.claims]
