"""Claims on a mixture of experts spread over a rack, and over several (MOE)."""

from __future__ import annotations

from typing import Any

from headway.laws.batch_step import latency_floor_s
from headway.laws.compare import relative
from headway.laws.exchange import (
    activation_bytes_per_token,
    copies_per_token,
    distinct_places,
    exchange_bytes,
    exchange_out,
    wire_bytes_per_token,
)
from headway.laws.link_balance import sent_s, tensor_ways_paid
from headway.laws.memory import parameter_bytes
from headway.laws.moe import distinct_experts
from headway.laws.pipeline import racks_slowdown, scale_up_ratio, stage_weights_bytes
from headway.laws.rack import batch_per_chip
from headway.laws.rack_shape import hops_through_switches
from headway.laws.shard import idle_chips
from headway.laws.sums import times
from headway.laws.topology import group_domains
from headway.ledger.register import Parts, recomputes


@recomputes("MOE-01")
def share_of_experts(inputs: Any) -> Parts:
    """Active experts over all."""
    return {"share of the experts": relative(inputs.experts_per_token, inputs.experts)}


@recomputes("MOE-02")
def experts_on_a_chip(inputs: Any) -> Parts:
    """Experts over the chips that share them evenly."""
    return {"experts per chip": relative(inputs.experts, inputs.used)}


@recomputes("MOE-03")
def chips_left_idle(inputs: Any) -> Parts:
    """Chips beyond the even share, and the layout with redundant experts that uses all."""
    idle = idle_chips(inputs.chips, inputs.used)
    return {
        "idle chips": idle,
        "idle share": relative(idle, inputs.chips),
        "experts per chip on 72": relative(inputs.experts, inputs.chips),
        "with redundant experts": relative(inputs.with_redundant, inputs.chips),
    }


@recomputes("MOE-04")
def two_exchanges(inputs: Any) -> Parts:
    """Both exchanges over one when each carries the same vectors, and their bytes as DeepSeek sends them."""
    vector = activation_bytes_per_token(inputs.hidden, inputs.bf16)
    dispatch = wire_bytes_per_token(inputs.hidden, inputs.fp8, inputs.scale, inputs.tile)
    both = exchange_bytes(inputs.tokens, inputs.copies, vector, vector)
    return {
        "exchanges": relative(both, times(times(vector, inputs.copies), inputs.tokens)),
        "combine over dispatch, bytes per element": relative(inputs.bf16, inputs.fp8),
        "combine over dispatch, fp8 with scales": relative(vector, dispatch),
    }


@recomputes("MOE-05")
def hops_in_a_rack(inputs: Any) -> Parts:
    """Links between two chips: of one rack, of eight on the same switches."""
    return {
        "one rack": hops_through_switches(inputs.chips, inputs.ports),
        "eight racks in one domain": hops_through_switches(inputs.more_chips, inputs.ports),
    }


@recomputes("MOE-06")
def router_on_every_chip(inputs: Any) -> Parts:
    """What the copies cost, and how many tokens each then routes."""
    router = parameter_bytes(times(times(inputs.hidden, inputs.experts), inputs.moe_layers), inputs.bf16)
    weights = stage_weights_bytes(parameter_bytes(inputs.total, inputs.fp8), inputs.chips, inputs.stages)
    return {"router over a chip's weights": relative(router, weights), "tokens per router": batch_per_chip(inputs.batch, inputs.chips)}


@recomputes("MOE-07")
def scale_out_is_slower(inputs: Any) -> Parts:
    """Bandwidth per chip and direction, scale-up over scale-out."""
    return {
        "H100": scale_up_ratio(inputs.h100_up, inputs.h100_out),
        "GB300 with 800 Gb/s": scale_up_ratio(inputs.gb300_up, inputs.gb300_out),
        "GB200 with 400 Gb/s": scale_up_ratio(inputs.gb200_up, inputs.gb200_out),
    }


@recomputes("MOE-08")
def tokens_leave_the_rack(inputs: Any) -> Parts:
    """The share that leaves one of R racks, and what that does to the all-to-all."""
    ranks = times(inputs.rack, inputs.two)
    slower = {f"slower over {racks} racks": racks_slowdown(inputs.ratio, count) for racks, count in
              ((2, inputs.two), (3, inputs.three), (4, inputs.four), (8, inputs.eight))}  # fmt: skip
    return {"share that leaves one of two": relative(exchange_out(inputs.copies, ranks, inputs.rack), inputs.copies), **slower}


@recomputes("MOE-09")
def experts_over_nodes(inputs: Any) -> Parts:
    """Scale-up domains that DeepSeek's expert-parallel groups span."""
    return {
        "domains of the decode unit": group_domains(inputs.decode_ep, inputs.next_to, inputs.node),
        "domains of the prefill unit": group_domains(inputs.prefill_ep, inputs.next_to, inputs.node),
    }


@recomputes("MOE-10")
def experts_too_small_to_split(inputs: Any) -> Parts:
    """Ways of tensor parallelism that pay, for one expert and for a dense layer."""
    return {
        "one expert of DeepSeek-V3": tensor_ways_paid(inputs.expert_width, inputs.link_bw, inputs.peak, inputs.element),
        "dense layer of Llama-3.1-70B": tensor_ways_paid(inputs.dense_width, inputs.link_bw, inputs.peak, inputs.element),
    }


@recomputes("MOE-11")
def all_to_all_time(inputs: Any) -> Parts:
    """Dispatch and combine of all layers over the step's weight time, in a rack and over scale-out."""
    vectors = (activation_bytes_per_token(inputs.hidden, element) for element in (inputs.fp8, inputs.bf16))
    message_bytes = exchange_bytes(batch_per_chip(inputs.batch, inputs.chips), inputs.copies, *vectors)
    layer = sent_s(message_bytes, inputs.up_bw)
    weights = latency_floor_s(inputs.total, inputs.fp8, inputs.mem_bw)
    steps = {"in the rack": times(layer, inputs.moe_layers)} | {
        f"at {name} GB/s": times(sent_s(message_bytes, bandwidth), inputs.moe_layers)
        for name, bandwidth in (("100", inputs.out_bw), ("50", inputs.slow_bw))
    }
    return {
        "in the rack over weight time": relative(steps["in the rack"], weights),
        "at 100 GB/s over weight time": relative(steps["at 100 GB/s"], weights),
        "bytes per chip and layer": message_bytes,
        "one layer in the rack": layer,
        **steps,
    }


@recomputes("MOE-12")
def sends_per_token(inputs: Any) -> Parts:
    """One send per expert, and the chips that these experts live on: drawn without replacement, and drawn one by one."""
    return {
        "chips reached": distinct_places(inputs.chips, inputs.experts, inputs.active),
        "sends, one per expert": copies_per_token(inputs.active, inputs.chips, inputs.chips),
        "chips reached, each draw alone": distinct_experts(inputs.chips, inputs.one, inputs.active),
        "chips reached by 32 experts": distinct_places(inputs.chips, inputs.experts, inputs.more_active),
        "chips reached by 32 experts, each draw alone": distinct_experts(inputs.chips, inputs.one, inputs.more_active),
    }
