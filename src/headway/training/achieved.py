"""Achieved shares of a machine's peaks in training, and the share of communication that overlaps: fitted by chip family and format."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog
from headway.core.errors import BadFile
from headway.core.schema import Field
from headway.hardware.chip import Chip
from headway.hardware.chip import chip as find_chip
from headway.laws.arithmetic import divided, times
from headway.laws.serving.request import interval_factor
from headway.laws.training.step import clock_share
from headway.performance.efficiency import OTHER_FAMILY, WIDE, Efficiencies, efficiencies, family, sections

FILE = "data/training/efficiency.toml"
SCORES_KEPT = "attention_kept"  # table section of attention kernels that write their scores to memory
SHARES = ("eff_compute", "eff_expert", "eff_head", "eff_attention")  # of peak FLOP/s
BY_KERNELS = ("traffic", "launch", "eff_attention", "hidden_tp")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReach:
    """Achieved shares of peaks, overlapped shares of communication, and factors; a user's value replaces the fitted value."""

    eff_compute: Annotated[Any, Field(high=1, help="share of the peak that matmuls reach in training")] = None
    eff_expert: Annotated[Any, Field(high=1, help="the same of routed experts, whose matmuls are smaller")] = None
    eff_head: Annotated[Any, Field(high=1, help="the same of the head's, in 16 bits whatever the layers are in")] = None
    eff_attention: Annotated[Any, Field(high=1, help="share of the 16-bit peak that attention reaches")] = None
    traffic: Annotated[Any, Field(open_low=False, help="times that each activation kept moves between chip and HBM, both ways")] = None
    eff_memory: Annotated[Any, Field(high=1, help="share of HBM bandwidth that the optimiser's update reaches")] = None
    launch: Annotated[Any, Field("s", open_low=False, help="fixed cost of a layer's forward and backward on one micro-batch")] = None
    hidden_tp: Annotated[Any, Field(open_low=False, high=1, help="share of tensor parallelism's exchanges that runs beside matmuls")] = None
    hidden_dp: Annotated[Any, Field(open_low=False, high=1, help="the same of gathers and reductions over data-parallel ranks")] = None
    hidden_cp: Annotated[Any, Field(open_low=False, high=1, help="the same of context parallelism's keys and values")] = None
    hidden_ep: Annotated[Any, Field(open_low=False, high=1, help="the same of exchanges between experts")] = None
    fragmentation: Annotated[Any, Field(open_low=False, high=10, help="memory taken over what tensors need, as a share")] = None
    fixed: Annotated[Any, Field("byte", open_low=False, help="memory that contexts and communicators take")] = None
    spread: Annotated[Any, Field(low=1, open_low=False, high=100, help="half of the 90 % interval of a step's time, as a factor")] = None
    spread_memory: Annotated[Any, Field(low=1, open_low=False, high=100, help="half of the 90 % interval of the memory, as a factor")] = (
        None
    )


def power_limited(efficiency: TrainingReach, chip: Chip) -> TrainingReach:
    """Achieved shares lowered for a chip with less power per FLOP than the family's usual chip, since its clocks drop under load."""
    usual = usual_chip(family_of(chip))
    if usual is None or chip.tdp is None or chip.peak_bf16 is None or usual.name == chip.name:
        return efficiency
    share = clock_share(chip.tdp, chip.peak_bf16, usual.need("tdp"), usual.need("peak_bf16"))
    return replace(efficiency, **{name: times(getattr(efficiency, name), share) for name in SHARES})


@functools.cache
def usual_chip(kind: str) -> Chip | None:
    """The chip on which most measured training runs of a family ran, or None."""
    name = {"ampere": "a100_sxm_80", "hopper": "h100_sxm", "blackwell": "b200_sxm"}.get(kind)
    return None if name is None else find_chip(name)


def chip_efficiency(chip: Chip, dtype: str, kernels: str, user_values: TrainingReach | None = None, fused: bool = True) -> TrainingReach:
    """Fitted efficiencies for a chip's family and a format, with the user's values in place of fitted ones."""
    efficiency = from_table(training_efficiencies(), chip, dtype, kernels, fused)
    if family_of(chip) == OTHER_FAMILY:  # no measured training runs of this family
        efficiency = replace(efficiency, spread=interval_factor(efficiency.spread, efficiencies().interval("unmeasured")))
    overrides = {
        field.name: getattr(user_values, field.name)
        for field in fields(TrainingReach)
        if getattr(user_values, field.name, None) is not None
    }
    return replace(efficiency, **overrides)


def from_table(table: Efficiencies, chip: Chip, dtype: str, kernels: str, fused: bool = True) -> TrainingReach:
    """Efficiencies of a table for a chip's family, a format and fused or eager `kernels`; `fused` says whether attention is fused."""
    kind, form = family_of(chip), "fp8" if dtype == "fp8" else WIDE
    places = {field.name: (field.name.removeprefix("eff_"), form) for field in fields(TrainingReach)} | {"eff_head": ("compute", WIDE)}
    places["eff_expert"] = ("compute", form)  # lowered below
    places |= {name: (f"{places[name][0]}_{kernels}", form) for name in BY_KERNELS}
    places |= {} if fused else {"eff_attention": (SCORES_KEPT, form)}
    efficiency = TrainingReach(**{name: table.kernel("training", kind, of, key) for name, (key, of) in places.items()})
    return power_limited(replace(efficiency, eff_expert=_of_experts(efficiency.eff_expert, chip, form)), chip)


def _of_experts(compute: Any, chip: Chip, form: str) -> Any:
    """Achieved share of routed experts: that of dense matmuls times the measured ratio of expert to dense kernels."""
    kernels, kind = efficiencies(), family(chip)
    return times(compute, divided(kernels.kernel("moe", kind, form, "compute"), kernels.kernel("gemm", kind, form, "compute")))


def family_of(chip: Chip) -> str:
    """The chip family whose fitted training numbers apply to a chip: its kernel family, tpu, or other."""
    chip_family = family(chip)
    return "tpu" if chip_family == OTHER_FAMILY and chip.name.startswith("tpu") else chip_family


@functools.cache
def training_efficiencies() -> Efficiencies:
    """The training efficiencies that ship with the package."""
    path = Path(str(files("headway").joinpath(FILE)))
    if not path.is_file():
        raise BadFile(path, "missing; `headway fit --training` writes it")
    return Efficiencies(sections(catalog.read(path), path))
