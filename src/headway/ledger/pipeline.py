"""Claims on pipelines: what they divide, what they leave whole, and when scale-out keeps up with scale-up (PP)."""

from __future__ import annotations

from typing import Any

from headway.laws.batch_step import latency_floor_s
from headway.laws.bubble import one_forward_one_backward_bubble, wall_time_share
from headway.laws.capacity import domain_bytes
from headway.laws.compare import relative
from headway.laws.drain import drain_s
from headway.laws.exchange import activation_bytes_per_token, exchange_bytes
from headway.laws.link_balance import sent_s
from headway.laws.memory import parameter_bytes
from headway.laws.pipeline import (
    fewest_layers_per_stage,
    hop_s,
    micro_batches_needed,
    pipeline_idle_share,
    pipelined_token_s,
    scale_up_over_hop,
    scale_up_ratio,
    sequences_in_flight,
    stage_kv_bytes,
    stage_weights_bytes,
)
from headway.laws.rack import batch_per_chip, fewest_within
from headway.laws.sums import times, total
from headway.laws.topology import group_domains
from headway.ledger.register import Parts, recomputes


def _by_times(i: Any, up_bw: Any, out_bw: Any) -> Any:
    """The stage's all-to-alls over the hop behind it, from bytes and bandwidths; both send what one chip holds."""
    vector = activation_bytes_per_token(i.hidden, i.element)
    tokens = batch_per_chip(i.batch, i.chips)
    inside = times(sent_s(exchange_bytes(tokens, i.active, vector, vector), up_bw), i.layers)
    return relative(inside, sent_s(times(vector, tokens), out_bw))


@recomputes("PP-01")
def stage_against_hop(i: Any) -> Parts:
    """The board's formula, and the same from the times themselves."""
    formula = scale_up_over_hop(i.active, i.layers, scale_up_ratio(i.up_bw, i.out_bw))
    return {"times over formula": relative(_by_times(i, i.up_bw, i.out_bw), formula), "8 experts, one layer, 8 times slower": formula}


@recomputes("PP-02")
def bar_of_the_ratio(i: Any) -> Parts:
    """Vectors sent inside a stage for each one handed on, at which both take as long: on the board, on GB200 with 400 Gb/s."""
    sent = times(times(i.active, i.layers), i.phases)
    return {
        "with scale-out 8 times slower": relative(sent, _by_times(i, i.up_bw, i.out_bw)),
        "on GB200 with 400 Gb/s": relative(sent, _by_times(i, i.gb200_up, i.gb200_out)),
    }


@recomputes("PP-03")
def ratio_by_experts(i: Any) -> Parts:
    """The ratio with one layer a stage, by active experts; for eight also at the ratios of two machines."""
    counts = {"1": i.k_1, "2": i.k_2, "4": i.k_4, "8": i.k_8, "16": i.k_16, "32": i.k_32}
    return {
        **{f"k = {name}": scale_up_over_hop(count, i.layers, i.ratio) for name, count in counts.items()},
        "k = 8, 9 times slower": scale_up_over_hop(i.k_8, i.layers, i.ratio_h100),
        "k = 8, 18 times slower": scale_up_over_hop(i.k_8, i.layers, i.ratio_gb200),
    }


@recomputes("PP-04")
def layers_a_stage_needs(i: Any) -> Parts:
    """Whole layers, by active experts."""
    counts = {"1": i.k_1, "2": i.k_2, "4": i.k_4, "8": i.k_8}
    return {f"k = {name}": fewest_layers_per_stage(count, i.ratio) for name, count in counts.items()}


@recomputes("PP-05")
def neutral_pipeline(i: Any) -> Parts:
    """Stages one after the other over the whole at once; sequences per read of the weights over those without stages; with hops."""
    whole = latency_floor_s(i.total, i.weight_byte, i.mem_bw)
    stage = drain_s(times(stage_weights_bytes(parameter_bytes(i.total, i.weight_byte), i.chips, i.stages), i.chips), i.mem_bw)
    held = sequences_in_flight(i.stages, i.micro_batch)
    return {
        "stages over one rack": relative(times(stage, i.stages), whole),
        "sequences per weight read over one rack's": relative(relative(held, i.stages), i.micro_batch),
        "with hops, over one rack": relative(pipelined_token_s(whole, i.stages, i.hop), whole),
    }


@recomputes("PP-06")
def idle_pipeline(i: Any) -> Parts:
    """One micro-batch in flight."""
    return {"idle": pipeline_idle_share(i.stages, i.in_flight)}


@recomputes("PP-07")
def training_bubble(i: Any) -> Parts:
    """Idle time over all time."""
    cases = (("4 stages, 4 micro-batches", i.stages, i.few), ("4 stages, 16 micro-batches", i.stages, i.some),
             ("8 stages, 32 micro-batches", i.more_stages, i.many))  # fmt: skip
    return {name: wall_time_share(one_forward_one_backward_bubble(stages, batches)) for name, stages, batches in cases}


@recomputes("PP-08")
def micro_batches(i: Any) -> Parts:
    """As many as stages, and what one fewer leaves idle."""
    needed = micro_batches_needed(i.stages)
    return {
        "micro-batches": needed,
        "idle with them": pipeline_idle_share(i.stages, needed),
        "idle with one fewer": pipeline_idle_share(i.stages, i.fewer),
    }


@recomputes("PP-09")
def held_by_a_pipeline(i: Any) -> Parts:
    """Stages times micro-batch."""
    return {"sequences in flight": sequences_in_flight(i.stages, i.micro_batch)}


def _memory(i: Any, stages: Any) -> tuple[Any, Any]:
    """Weights and KV of one chip."""
    return stage_weights_bytes(i.weights, i.chips, stages), stage_kv_bytes(i.micro_batch, i.context, i.kv_bytes, i.chips, stages)


@recomputes("PP-10")
def memory_per_chip(i: Any) -> Parts:
    """The table: weights and KV per chip by stages."""
    table = {}
    for name, stages in (("1", i.p_1), ("2", i.p_2), ("4", i.p_4), ("8", i.p_8)):
        table[f"weights, P = {name}"], table[f"KV, P = {name}"] = _memory(i, stages)
    return table


@recomputes("PP-11")
def kv_is_not_divided(i: Any) -> Parts:
    """KV of one chip with many stages over that with one."""
    alone, many = (_memory(i, stages) for stages in (i.p_1, i.p_8))
    return {"KV with 8 stages over one": relative(many[1], alone[1]), "KV": many[1], "weights": many[0]}


@recomputes("PP-12")
def hop_between_racks(i: Any) -> Parts:
    """A hop over today's links, and the time per token with the board's hop and with that."""
    vector = activation_bytes_per_token(i.hidden, i.element)
    hop = hop_s(i.batch, vector, i.chips, i.out_bw, i.alpha)
    return {
        "one hop": hop,
        "token with 4 hops": pipelined_token_s(i.step_s, i.stages, hop),
        "token with the board's hops": pipelined_token_s(i.step_s, i.stages, i.board_hop),
        "bytes of a hop over the link": sent_s(times(vector, batch_per_chip(i.batch, i.chips)), i.out_bw),
    }


@recomputes("PP-13")
def kv_dominates(i: Any) -> Parts:
    """KV over weights of one chip at two contexts, and where they are equal."""
    weights = stage_weights_bytes(i.weights, i.chips, i.p_2)
    longer, shorter = (stage_kv_bytes(i.micro_batch, context, i.kv_bytes, i.chips, i.p_2) for context in (i.longer, i.context))
    return {
        "KV over weights at 200 k": relative(longer, weights),
        "KV over weights at 100 k": relative(shorter, weights),
        "context where they are equal": times(i.context, relative(weights, shorter)),
        "weights": weights,
        "KV at 200 k": longer,
    }


@recomputes("PP-14")
def trillion_parameters(i: Any) -> Parts:
    """Weights by format."""
    return {name: parameter_bytes(i.total, width) for name, width in (("bf16", i.bf16), ("fp8", i.fp8), ("fp4", i.fp4))}


@recomputes("PP-15")
def memory_of_a_rack(i: Any) -> Parts:
    """HBM of both Blackwell racks, and the first with its hosts' memory."""
    hbm = domain_bytes(i.chips, i.hbm)
    return {
        "GB200 NVL72": hbm,
        "GB300 NVL72": domain_bytes(i.chips, i.later_hbm),
        "GB200 NVL72 and its hosts": total((hbm, domain_bytes(i.hosts, i.host_memory))),
    }


@recomputes("PP-16")
def less_memory_per_chip(i: Any) -> Parts:
    """Weights and KV of one chip with eight stages over those with one."""
    (weights, kv), (whole, held) = _memory(i, i.p_8), _memory(i, i.p_1)
    return {
        "weights with 8 stages over one": relative(weights, whole),
        "KV with 8 stages over one": relative(kv, held),
        "chip's memory with 8 stages over one": relative(total((weights, kv)), total((whole, held))),
    }


@recomputes("PP-17")
def stages_in_practice(i: Any) -> Parts:
    """The fewest stages whose weights fit their domains, and the domains of DeepSeek's expert parallelism."""
    weights = parameter_bytes(i.total, i.weight_byte)
    hopper, blackwell = domain_bytes(i.node, i.hopper_hbm), domain_bytes(i.rack, i.blackwell_hbm)
    return {
        "stages, DeepSeek-V3 on 8 H100": fewest_within(weights, hopper),
        "stages, DeepSeek-V3 on GB200 NVL72": fewest_within(weights, blackwell),
        "stages, 5 T parameters on GB200 NVL72": fewest_within(parameter_bytes(i.large_total, i.weight_byte), blackwell),
        "domains of DeepSeek's decode EP": group_domains(i.decode_ep, i.next_to, i.node),
    }


@recomputes("PP-18")
def stages_do_not_add_bandwidth(i: Any) -> Parts:
    """The latency floor over one rack's: the racks as stages, and as one expert-parallel group."""
    weights = parameter_bytes(i.total, i.weight_byte)
    one = latency_floor_s(i.total, i.weight_byte, i.mem_bw)
    stage = drain_s(times(stage_weights_bytes(weights, i.chips, i.racks), i.chips), i.mem_bw)
    group = latency_floor_s(i.total, i.weight_byte, times(i.mem_bw, i.racks))
    return {"racks as stages": relative(times(stage, i.racks), one), "racks as one group": relative(group, one), "one rack": one}
