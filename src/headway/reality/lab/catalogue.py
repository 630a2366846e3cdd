"""The experiments, by name: what each is about, the claims that it tests, the module that runs it. Nothing here loads numpy."""

from __future__ import annotations

from headway.core.errors import check_known
from headway.reality.lab.attention_setup import AttentionSetup
from headway.reality.lab.batch_setup import BatchSetup
from headway.reality.lab.experiment import Experiment
from headway.reality.lab.rack_setup import RackSetup
from headway.reality.lab.reversible_setup import ReversibleSetup
from headway.reality.lab.tier_setup import TierSetup
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
TIERS = Experiment(
    name="tiers", title="a cache that is kept in memory, in a file, in a slow file, or made again", claims=("KT-03", "KT-01", "KT-12"),
    main="hits", axis="time to live", axis_unit="s",
    runs="conversations come back after random pauses; their KV cache moves down three tiers as it ages, and is loaded or made again",
    setup=TierSetup(), module="headway.reality.lab.tiers",
)  # fmt: skip
RACK = Experiment(
    name="rack", title="experts fill a rack, stages cross racks", main="idle share", axis="micro-batches",
    claims=("MOE-08", "MOE-07", "MOE-12", "PP-07", "PP-10", "PP-11", "PP-12"),
    runs="worker processes as chips, joined by shared memory and, between racks, a link 8 times slower: experts over them, then stages",
    setup=RackSetup(), module="headway.reality.lab.rack",
)  # fmt: skip
ATTENTION = Experiment(
    name="attention", title="attention that reads less recalls less", claims=("CW-09", "CW-05", "RB-19", "RB-03"), main="recall",
    axis="context", runs="attention of a decode step, dense, in a window, of the best keys, of a square root: time, bytes, facts recalled",
    setup=AttentionSetup(), module="headway.reality.lab.attention",
)  # fmt: skip
REVERSIBLE = Experiment(
    name="reversible", title="activations made again from the output", claims=("CR-04", "CR-03", "CR-05", "CR-01", "CR-02"),
    main="peak memory, reversible", axis="layers",
    runs="one stack of residual layers trained plain, checkpointed and reversible, 2 to 64 layers deep; its couplings encrypt as well",
    setup=ReversibleSetup(), module="headway.reality.lab.reversible",
)  # fmt: skip
EXPERIMENTS = {entry.name: entry for entry in (BATCH, TRAINS, RACK, TIERS, ATTENTION, REVERSIBLE)}


def experiment(name: str) -> Experiment:
    """The experiment of a name."""
    check_known("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def experiments_of(claim_id: str) -> list[Experiment]:
    """Those that test a claim."""
    return [entry for entry in EXPERIMENTS.values() if claim_id in entry.claims]
