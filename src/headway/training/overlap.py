"""What would hide a layout's communication at every peak: tokens per chip, ways of tensor parallelism, width of an expert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.laws.link_balance import tensor_ways_paid
from headway.laws.sums import sum_over_blocks
from headway.laws.topology import rail_bandwidth
from headway.laws.training_network import exchanging_stage
from headway.laws.training_overlap import expert_width_to_hide, flop_to_hide_behind, parameter_bytes_sent, sublayer_width, tokens_to_hide
from headway.laws.training_state import expert_ways
from headway.laws.training_step import micro_tokens
from headway.model import UNITY
from headway.network import ChipGroup, group
from headway.quantity import known
from headway.training.estimate import TrainingCase
from headway.training.recipe import TrainingLayout
from headway.training.stage import stage
from headway.training.time import TWO_FLOP
from headway.training.work import TrainingWork, dispatched, multiplied_params

PER_TOKEN = known(2.0, "bytes of an activation", "byte/token", "constant", "activations are sent in 16 bits")
NARROW = known(1.0, "bytes of a dispatched activation", "byte/token", "constant", "DeepSeek-V3 (arXiv:2412.19437) section 3.3.3: in fp8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """None where a layout sends nothing of the kind, or a link is not known."""

    micro_tokens: Any  # of one chip
    tokens_to_hide: Any = None  # the exchange of parameters
    tp_paid: Any = None
    expert_width_to_hide: Any = None


def overlap(case: TrainingCase, layout: TrainingLayout) -> Overlap:
    """The conditions beside what a layout has."""
    work, fabric, recipe = case.work, case.machine.fabric, case.recipe
    part, up = stage(work, layout), case.system.scale_up_bw or case.system.chip.scale_up_bw
    hide = tp_limit = wide = None
    if int(part.data_degree) > 1 and (link := _rails(case, group(fabric, part.data_degree, layout.tp), up)) is not None:
        how = exchanging_stage(layout.zero, layout.pp)
        wire_bytes = parameter_bytes_sent(recipe.bytes_param_wire, recipe.bytes_gradient_wire, how)
        hide = tokens_to_hide(wire_bytes, flop_to_hide_behind(TWO_FLOP, how), case.machine.peak, link)
    if up is not None and int(case.system.scale_up_domain) > 1:
        tp_limit = tensor_ways_paid(_width(work), up, case.machine.peak, PER_TOKEN)
    ranks = expert_ways(layout.ep, layout.tp)
    if int(ranks) > 1 and any(kind.block.experts for kind in work.layers):
        link = _link(case, group(fabric, ranks, UNITY), up)
        narrow = NARROW if int(dispatched(recipe.dtype)) == 1 else PER_TOKEN
        wide = None if link is None else expert_width_to_hide(narrow, PER_TOKEN, case.machine.peak, link)
    return Overlap(
        micro_tokens=micro_tokens(layout.micro_batch, work.sequence, layout.cp), tokens_to_hide=hide, tp_paid=tp_limit,
        expert_width_to_hide=wide,
    )  # fmt: skip


def _rails(case: TrainingCase, chip_group: ChipGroup, up: Any) -> Any:
    """Bandwidth of a chip's gathers: chips of one domain share what their links beyond it carry."""
    link = _link(case, chip_group, up)
    return link if link is None or float(chip_group.domains) <= 1 else rail_bandwidth(link, chip_group.inside, up)


def _link(case: TrainingCase, chip_group: ChipGroup, up: Any) -> Any:
    """Bandwidth of a chip on the slowest links of a group."""
    if float(chip_group.domains) <= 1:
        return up
    return None if case.machine.fabric.out_is_missing else case.machine.fabric.out


def _width(work: TrainingWork) -> Any:
    """Width of a plain FFN with the matmuls of the mean sublayer that ends in an exchange."""
    often = sum_over_blocks(tuple(kind.block.count for kind in work.layers), tuple(kind.sublayers for kind in work.layers))
    return sublayer_width(multiplied_params(work), often, work.hidden)
