"""Achieved shares of a machine's peaks in training, and the share of communication that overlaps: fitted by chip family and format."""

from __future__ import annotations

import functools
from dataclasses import fields, replace
from typing import Any

from headway.core.catalog import Catalog, default_catalog
from headway.core.errors import BadFile
from headway.hardware.chip import Chip
from headway.hardware.chip import chip as find_chip
from headway.laws.training.run import joint_factor
from headway.laws.training.step import clock_share, share_of_peak
from headway.performance.achieved import OTHER_FAMILY, WIDE, Efficiencies, family, fitted_files, laid
from headway.training.recipe import DISPATCHERS, Recipe, TrainingReach
from headway.training.work import TrainingWork, is_fused, is_recurrent, is_routed

SHARED_SECTION = f"training.{OTHER_FAMILY}.{WIDE}"
FILE = "training/efficiency.toml"  # within a catalogue folder
COPIES = {"alltoall": "copied", "deepep": "packed", "hybridep": "packed"}  # table sections: a copy to every expert, or one to every chip
SCORES_KEPT = "attention_kept"  # table section of attention kernels that write their scores to memory
SHARES = ("eff_compute", "eff_expert", "eff_head", "eff_attention", "eff_recurrence")  # of peak FLOP/s
NARROW = ("fp8", "mxfp8", "nvfp4")  # formats with numbers of their own
BY_KERNELS = ("traffic", "launch", "eff_attention", "hidden_tp")
BY_DISPATCHER = ("sync", "hidden_ep")


def power_limited(efficiency: TrainingReach, chip: Chip, exponent: Any) -> TrainingReach:
    """Achieved shares at the clocks of a chip with another power per FLOP than the family's usual chip."""
    usual = usual_chip(family_of(chip))
    if usual is None or chip.tdp is None or chip.peak_bf16 is None or usual.name == chip.name:
        return efficiency
    share = clock_share(chip.tdp, chip.peak_bf16, usual.need("tdp"), usual.need("peak_bf16"), exponent)
    return replace(efficiency, **{name: share_of_peak(getattr(efficiency, name), share) for name in SHARES})


@functools.cache
def usual_chip(kind: str) -> Chip | None:
    """The chip on which most measured training runs of a family ran, or None."""
    name = {"ampere": "a100_sxm_80", "hopper": "h100_sxm", "blackwell": "b200_sxm"}.get(kind)
    return None if name is None else find_chip(name)


def chip_efficiency(
    chip: Chip,
    recipe: Recipe,
    user_values: TrainingReach | None = None,
    work: TrainingWork | None = None,
    table: Efficiencies | None = None,
) -> TrainingReach:
    """Fitted efficiencies for a chip's family and a recipe, with the user's values in place of fitted ones; `work` sets the interval."""
    table = training_efficiencies() if table is None else table
    efficiency = from_table(table, chip, recipe)
    efficiency = replace(efficiency, spread=_spread(table, chip, recipe.dtype, work))
    overrides = {
        field.name: getattr(user_values, field.name)
        for field in fields(TrainingReach)
        if getattr(user_values, field.name, None) is not None
    }
    return replace(efficiency, **overrides)


def _spread(table: Efficiencies, chip: Chip, dtype: str, work: TrainingWork | None) -> Any:
    """Factor of half the interval of a step, wider for each thing of the case that no measured run has."""
    kind = family_of(chip)
    routed, recurrent = (work is not None and is_routed(work)), (work is not None and is_recurrent(work))
    factor = table.find("spread_routed" if routed else "spread", SHARED_SECTION)
    for key, is_new in (
        ("new_chip", kind == OTHER_FAMILY),
        ("new_format", dtype in NARROW and f"training.{kind}.{dtype}" not in table.sections),
        ("new_structure", recurrent),
    ):
        factor = joint_factor(factor, table.find(key, SHARED_SECTION)) if is_new else factor
    return factor


def from_table(table: Efficiencies, chip: Chip, recipe: Recipe) -> TrainingReach:
    """Efficiencies of a table for a chip's family and a recipe: its format, kernels, attention and dispatcher of tokens."""
    kind, form = family_of(chip), recipe.dtype if recipe.dtype in NARROW else WIDE
    places = {field.name: (field.name.removeprefix("eff_"), form) for field in fields(TrainingReach)} | {"eff_head": ("compute", WIDE)}
    places["eff_expert"] = ("compute", form)  # lowered below
    places["matmul_norm"] = ("norm", form)
    places |= {name: (f"{places[name][0]}_{recipe.kernels}", form) for name in BY_KERNELS}
    places |= {name: (f"{name}_{COPIES[recipe.dispatcher or DISPATCHERS[0]]}", form) for name in BY_DISPATCHER}
    places |= {} if is_fused(recipe) else {"eff_attention": (SCORES_KEPT, form)}
    efficiency = TrainingReach(**{name: table.kernel("training", kind, of, key) for name, (key, of) in places.items()})
    experts, exponent = (table.kernel("training", kind, form, key) for key in ("expert", "power"))
    return power_limited(replace(efficiency, eff_expert=efficiency.eff_expert * experts), chip, exponent)


def family_of(chip: Chip) -> str:
    """The chip family whose fitted training numbers apply to a chip: its kernel family, tpu, or other."""
    chip_family = family(chip)
    return "tpu" if chip_family == OTHER_FAMILY and chip.name.startswith("tpu") else chip_family


def training_efficiencies(catalog: Catalog | None = None) -> Efficiencies:
    """Training efficiencies: those of catalogue folders that have such a file, over the shipped ones."""
    files = fitted_files(catalog or default_catalog(), FILE)
    if not files:
        raise BadFile(FILE, "missing; `headway fit --training` writes it")
    return laid(files)
