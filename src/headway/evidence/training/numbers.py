"""The numbers of training that runs decide: what each means, and what is believed of it before any row is seen.

A family's number is believed near that of all families, and a format's near that of 16 bits: what no row speaks about stays there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.efficiency import Efficiencies
from headway.quantity import known

ALL, FAMILIES = "other", ("ampere", "hopper", "blackwell", "tpu")
MEANINGS = {
    "compute": ("", "share of the dense peak that matmuls reach, clocks under load included"),
    "attention_fused": ("", "share of the 16-bit peak that attention's scores and values reach, with Megatron's or XLA's kernels"),
    "attention_eager": ("", "the same with PyTorch's"),
    "attention_kept": ("", "the same where scores are written to memory, beside the time of writing them"),
    "traffic_fused": ("", "times that each activation kept moves between chip and HBM, kernels between matmuls fused"),
    "traffic_eager": ("", "the same where they run one by one"),
    "memory": ("", "share of HBM bandwidth that the optimiser's update reaches"),
    "launch_fused": ("s", "fixed cost of a layer, forward and backward, on one micro-batch, kernels between matmuls fused"),
    "launch_eager": ("s", "the same where they run one by one"),
    "hidden_tp_fused": ("", "share of tensor parallelism's exchanges that runs beside matmuls, in Megatron"),
    "hidden_tp_eager": ("", "the same in PyTorch"),
    "hidden_dp": ("", "share of gathers and reductions over data-parallel ranks that runs beside work"),
    "hidden_cp": ("", "share of context parallelism's exchanges that runs beside attention"),
    "hidden_ep": ("", "share of exchanges between experts that runs beside matmuls"),
    "fragmentation": ("", "memory taken over what tensors need, as a share"),
    "fixed": ("byte", "memory that contexts and communicators take"),
}
PRIORS = {  # of every family, in 16 bits: the number, and the logarithm of what it may be off by
    "compute": (0.65, 0.2), "attention_fused": (0.45, 0.3), "attention_eager": (0.35, 0.3), "attention_kept": (0.3, 0.5),
    "traffic_fused": (4.0, 0.5),
    "traffic_eager": (8.0, 0.5), "memory": (0.8, 0.0), "launch_fused": (50e-6, 0.7), "launch_eager": (200e-6, 0.7),
    "hidden_tp_fused": (0.4, 0.5), "hidden_tp_eager": (0.4, 0.5), "hidden_dp": (0.8, 0.2), "hidden_cp": (0.8, 0.0), "hidden_ep": (0.5, 0.0),
}  # fmt: skip
APART = {"compute": 0.15, "attention_fused": 0.15, "attention_eager": 0.15, "hidden_tp_fused": 0.3}  # and a family's from it
SHARES = (
    "compute", "attention_fused", "attention_eager", "attention_kept", "memory", "hidden_tp_fused", "hidden_tp_eager", "hidden_dp",
    "hidden_cp", "hidden_ep",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingNumber:
    """One number: `prior` times that of `parent` (or alone), believed within a factor exp(spread); fixed when `spread` is 0."""

    section: str
    key: str
    prior: float
    spread: float = 0.0
    parent: str = ""

    @property
    def most(self) -> float:
        return 1.0 if self.key in SHARES else math.inf


def numbers() -> tuple[TrainingNumber, ...]:
    """Every number, parents first."""
    shared_section = f"training.{ALL}.bf16"
    all_numbers = [TrainingNumber(section=shared_section, key=key, prior=prior, spread=spread) for key, (prior, spread) in PRIORS.items()]
    for family in FAMILIES:
        section = f"training.{family}.bf16"
        all_numbers += [
            TrainingNumber(section=section, key=key, prior=1.0, spread=spread, parent=shared_section) for key, spread in APART.items()
        ]
    for family in (ALL, *FAMILIES[1:3]):  # the families that have 8-bit arithmetic
        section, wide = f"training.{family}.fp8", f"training.{family}.bf16"
        all_numbers.append(TrainingNumber(section=section, key="compute", prior=0.8, spread=0.15, parent=wide))
    return tuple(all_numbers)


def values(all_numbers: Sequence[TrainingNumber], z: Sequence[float]) -> dict[tuple[str, str], float]:
    """Each number, so many standard deviations of its prior away from it; `z` of the free ones, in their order."""
    value_by_key: dict[tuple[str, str], float] = {}
    moves = iter(z)
    for number in all_numbers:
        base = number.prior * (value_by_key[number.parent, number.key] if number.parent else 1.0)
        value_by_key[number.section, number.key] = min(base * math.exp(number.spread * next(moves)) if number.spread else base, number.most)
    return value_by_key


def influence(all_numbers: Sequence[TrainingNumber]) -> Any:
    """How far the logarithm of each number moves for one standard deviation of each free one: its own, and that of its parents."""
    import numpy as np

    free = [(number.section, number.key) for number in all_numbers if number.spread]
    moves_by_key: dict[tuple[str, str], Any] = {}
    for number in all_numbers:
        moves = np.zeros(len(free))
        if number.spread:
            moves[free.index((number.section, number.key))] = number.spread
        moves_by_key[number.section, number.key] = moves + (moves_by_key[number.parent, number.key] if number.parent else 0.0)
    return np.array([moves_by_key[number.section, number.key] for number in all_numbers])


def table(value_by_key: Mapping[tuple[str, str], float], base: Efficiencies) -> Efficiencies:
    """Efficiencies with these numbers, and the others of `base`."""
    sections = {name: dict(numbers) for name, numbers in base.sections.items()}
    for (section, key), value in value_by_key.items():
        unit, meaning = MEANINGS[key]
        sections.setdefault(section, {})[key] = known(value, f"{section}.{key}", unit, "fitted", meaning)
    return Efficiencies(sections)
