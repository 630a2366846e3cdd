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
def share_of_experts(i: Any) -> Parts:
    """Active experts over all."""
    return {"share of the experts": relative(i.experts_per_token, i.experts)}


@recomputes("MOE-02")
def experts_on_a_chip(i: Any) -> Parts:
    """Experts over the chips that share them evenly."""
    return {"experts per chip": relative(i.experts, i.used)}


@recomputes("MOE-03")
def chips_left_idle(i: Any) -> Parts:
    """Chips beyond the even share, and the layout with redundant experts that uses all."""
    idle = idle_chips(i.chips, i.used)
    return {
        "idle chips": idle,
        "idle share": relative(idle, i.chips),
        "experts per chip on 72": relative(i.experts, i.chips),
        "with redundant experts": relative(i.with_redundant, i.chips),
    }


@recomputes("MOE-04")
def two_exchanges(i: Any) -> Parts:
    """Both exchanges over one when each carries the same vectors, and their bytes as DeepSeek sends them."""
    vector = activation_bytes_per_token(i.hidden, i.bf16)
    dispatch = wire_bytes_per_token(i.hidden, i.fp8, i.scale, i.tile)
    both = exchange_bytes(i.tokens, i.copies, vector, vector)
    return {
        "exchanges": relative(both, times(times(vector, i.copies), i.tokens)),
        "combine over dispatch, bytes per element": relative(i.bf16, i.fp8),
        "combine over dispatch, fp8 with scales": relative(vector, dispatch),
    }


@recomputes("MOE-05")
def hops_in_a_rack(i: Any) -> Parts:
    """Links between two chips: of one rack, of eight on the same switches."""
    return {
        "one rack": hops_through_switches(i.chips, i.ports),
        "eight racks in one domain": hops_through_switches(i.more_chips, i.ports),
    }


@recomputes("MOE-06")
def router_on_every_chip(i: Any) -> Parts:
    """What the copies cost, and how many tokens each then routes."""
    router = parameter_bytes(times(times(i.hidden, i.experts), i.moe_layers), i.bf16)
    weights = stage_weights_bytes(parameter_bytes(i.total, i.fp8), i.chips, i.stages)
    return {"router over a chip's weights": relative(router, weights), "tokens per router": batch_per_chip(i.batch, i.chips)}


@recomputes("MOE-07")
def scale_out_is_slower(i: Any) -> Parts:
    """Bandwidth per chip and direction, scale-up over scale-out."""
    return {
        "H100": scale_up_ratio(i.h100_up, i.h100_out),
        "GB300 with 800 Gb/s": scale_up_ratio(i.gb300_up, i.gb300_out),
        "GB200 with 400 Gb/s": scale_up_ratio(i.gb200_up, i.gb200_out),
    }


@recomputes("MOE-08")
def tokens_leave_the_rack(i: Any) -> Parts:
    """The share that leaves one of R racks, and what that does to the all-to-all."""
    ranks = times(i.rack, i.two)
    slower = {f"slower over {racks} racks": racks_slowdown(i.ratio, count) for racks, count in
              ((2, i.two), (3, i.three), (4, i.four), (8, i.eight))}  # fmt: skip
    return {"share that leaves one of two": relative(exchange_out(i.copies, ranks, i.rack), i.copies), **slower}


@recomputes("MOE-09")
def experts_over_nodes(i: Any) -> Parts:
    """Scale-up domains that DeepSeek's expert-parallel groups span."""
    return {
        "domains of the decode unit": group_domains(i.decode_ep, i.next_to, i.node),
        "domains of the prefill unit": group_domains(i.prefill_ep, i.next_to, i.node),
    }


@recomputes("MOE-10")
def experts_too_small_to_split(i: Any) -> Parts:
    """Ways of tensor parallelism that pay, for one expert and for a dense layer."""
    return {
        "one expert of DeepSeek-V3": tensor_ways_paid(i.expert_width, i.link_bw, i.peak, i.element),
        "dense layer of Llama-3.1-70B": tensor_ways_paid(i.dense_width, i.link_bw, i.peak, i.element),
    }


@recomputes("MOE-11")
def all_to_all_time(i: Any) -> Parts:
    """Dispatch and combine of all layers over the step's weight time, in a rack and over scale-out."""
    vectors = (activation_bytes_per_token(i.hidden, element) for element in (i.fp8, i.bf16))
    sent = exchange_bytes(batch_per_chip(i.batch, i.chips), i.copies, *vectors)
    layer = sent_s(sent, i.up_bw)
    weights = latency_floor_s(i.total, i.fp8, i.mem_bw)
    steps = {"in the rack": times(layer, i.moe_layers)} | {
        f"at {name} GB/s": times(sent_s(sent, bandwidth), i.moe_layers) for name, bandwidth in (("100", i.out_bw), ("50", i.slow_bw))
    }
    return {
        "in the rack over weight time": relative(steps["in the rack"], weights),
        "at 100 GB/s over weight time": relative(steps["at 100 GB/s"], weights),
        "bytes per chip and layer": sent,
        "one layer in the rack": layer,
        **steps,
    }


@recomputes("MOE-12")
def sends_per_token(i: Any) -> Parts:
    """One send per expert, and the chips that these experts live on: drawn without replacement, and drawn one by one."""
    return {
        "chips reached": distinct_places(i.chips, i.experts, i.active),
        "sends, one per expert": copies_per_token(i.active, i.chips, i.chips),
        "chips reached, each draw alone": distinct_experts(i.chips, i.one, i.active),
        "chips reached by 32 experts": distinct_places(i.chips, i.experts, i.more_active),
        "chips reached by 32 experts, each draw alone": distinct_experts(i.chips, i.one, i.more_active),
    }
