"""Claims on pipelines: weights divided, KV not divided, and the scale-out bandwidth that hops need (PP)."""

from __future__ import annotations

from typing import Any

from headway.evidence.claims.claim import Parts, recomputes
from headway.laws.collectives.expert_parallel import activation_bytes_per_token, exchange_bytes
from headway.laws.collectives.topology import group_domains
from headway.laws.rack import fewest_within
from headway.laws.roofline.balance import drain_s, sent_s
from headway.laws.roofline.batch_step import latency_floor_s
from headway.laws.serving.pipeline import (
    fewest_layers_per_stage,
    hop_s,
    micro_batches_needed,
    pipeline_idle_share,
    pipelined_token_s,
    scale_up_over_hop,
    scale_up_ratio,
    stage_kv_bytes,
)
from headway.laws.training.step import one_forward_one_backward_bubble, wall_time_share


def _by_times(inputs: Any, up_bw: Any, out_bw: Any) -> Any:
    """Time of a stage's all-to-alls over the hop to the next stage, per chip, from bytes and bandwidths."""
    vector = activation_bytes_per_token(inputs.hidden, inputs.element)
    tokens = inputs.batch / inputs.chips
    inside = sent_s(exchange_bytes(tokens, inputs.active, vector, vector), up_bw) * inputs.layers
    return inside / sent_s(vector * tokens, out_bw)


@recomputes("PP-01")
def stage_against_hop(inputs: Any) -> Parts:
    """All-to-all time over hop time: by the board's formula, and from the times."""
    formula = scale_up_over_hop(inputs.active, inputs.layers, scale_up_ratio(inputs.up_bw, inputs.out_bw))
    return {
        "times over formula": _by_times(inputs, inputs.up_bw, inputs.out_bw) / formula,
        "8 experts, one layer, 8 times slower": formula,
    }


@recomputes("PP-02")
def bar_of_the_ratio(inputs: Any) -> Parts:
    """Vectors sent inside a stage per vector sent to the next stage, at equal times: on the board, and on GB200 with 400 Gb/s."""
    vectors = inputs.active * inputs.layers * inputs.phases
    return {
        "with scale-out 8 times slower": vectors / _by_times(inputs, inputs.up_bw, inputs.out_bw),
        "on GB200 with 400 Gb/s": vectors / _by_times(inputs, inputs.gb200_up, inputs.gb200_out),
    }


@recomputes("PP-03")
def ratio_by_experts(inputs: Any) -> Parts:
    """All-to-all over hop time with one layer per stage, by active experts; for eight also at the bandwidths of two machines."""
    counts = {"1": inputs.k_1, "2": inputs.k_2, "4": inputs.k_4, "8": inputs.k_8, "16": inputs.k_16, "32": inputs.k_32}
    return {
        **{f"k = {name}": scale_up_over_hop(count, inputs.layers, inputs.ratio) for name, count in counts.items()},
        "k = 8, 9 times slower": scale_up_over_hop(inputs.k_8, inputs.layers, inputs.ratio_h100),
        "k = 8, 18 times slower": scale_up_over_hop(inputs.k_8, inputs.layers, inputs.ratio_gb200),
    }


@recomputes("PP-04")
def layers_a_stage_needs(inputs: Any) -> Parts:
    """Layers per stage (whole) at which the hop is no bottleneck, by active experts."""
    counts = {"1": inputs.k_1, "2": inputs.k_2, "4": inputs.k_4, "8": inputs.k_8}
    return {f"k = {name}": fewest_layers_per_stage(count, inputs.ratio) for name, count in counts.items()}


@recomputes("PP-05")
def neutral_pipeline(inputs: Any) -> Parts:
    """Latency of pipeline stages over one rack, sequences per weight read over one rack's, and latency with hops."""
    one_rack_s = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    stage = drain_s(
        (inputs.total * inputs.weight_byte / (inputs.chips * inputs.stages)) * inputs.chips,
        inputs.mem_bw,
    )
    sequences = inputs.stages * inputs.micro_batch
    return {
        "stages over one rack": stage * inputs.stages / one_rack_s,
        "sequences per weight read over one rack's": sequences / inputs.stages / inputs.micro_batch,
        "with hops, over one rack": pipelined_token_s(one_rack_s, inputs.stages, inputs.hop) / one_rack_s,
    }


@recomputes("PP-06")
def idle_pipeline(inputs: Any) -> Parts:
    """Idle share of a pipeline with one micro-batch in flight."""
    return {"idle": pipeline_idle_share(inputs.stages, inputs.in_flight)}


@recomputes("PP-07")
def training_bubble(inputs: Any) -> Parts:
    """Idle share of a training pipeline (its bubble)."""
    cases = (("4 stages, 4 micro-batches", inputs.stages, inputs.few), ("4 stages, 16 micro-batches", inputs.stages, inputs.some),
             ("8 stages, 32 micro-batches", inputs.more_stages, inputs.many))  # fmt: skip
    return {name: wall_time_share(one_forward_one_backward_bubble(stages, batches)) for name, stages, batches in cases}


@recomputes("PP-08")
def micro_batches(inputs: Any) -> Parts:
    """Micro-batches that fill the pipeline (one per stage), and the idle share with them and with one fewer."""
    needed = micro_batches_needed(inputs.stages)
    return {
        "micro-batches": needed,
        "idle with them": pipeline_idle_share(inputs.stages, needed),
        "idle with one fewer": pipeline_idle_share(inputs.stages, inputs.fewer),
    }


@recomputes("PP-09")
def held_by_a_pipeline(inputs: Any) -> Parts:
    """Sequences in flight: stages times micro-batch."""
    return {"sequences in flight": inputs.stages * inputs.micro_batch}


def _memory(inputs: Any, stages: Any) -> tuple[Any, Any]:
    """Weights and KV per chip."""
    return inputs.weights / (inputs.chips * stages), stage_kv_bytes(
        inputs.micro_batch, inputs.context, inputs.kv_bytes, inputs.chips, stages
    )


@recomputes("PP-10")
def memory_per_chip(inputs: Any) -> Parts:
    """Table of weights and KV per chip, by number of stages."""
    table = {}
    for name, stages in (("1", inputs.p_1), ("2", inputs.p_2), ("4", inputs.p_4), ("8", inputs.p_8)):
        table[f"weights, P = {name}"], table[f"KV, P = {name}"] = _memory(inputs, stages)
    return table


@recomputes("PP-11")
def kv_is_not_divided(inputs: Any) -> Parts:
    """KV per chip with 8 stages over KV with one stage."""
    alone, eight_stages = (_memory(inputs, stages) for stages in (inputs.p_1, inputs.p_8))
    return {"KV with 8 stages over one": eight_stages[1] / alone[1], "KV": eight_stages[1], "weights": eight_stages[0]}


@recomputes("PP-12")
def hop_between_racks(inputs: Any) -> Parts:
    """Time of a hop over today's links, and time per token with the board's hop and with this hop."""
    vector = activation_bytes_per_token(inputs.hidden, inputs.element)
    hop = hop_s(inputs.batch, vector, inputs.chips, inputs.out_bw, inputs.alpha)
    return {
        "one hop": hop,
        "token with 4 hops": pipelined_token_s(inputs.step_s, inputs.stages, hop),
        "token with the board's hops": pipelined_token_s(inputs.step_s, inputs.stages, inputs.board_hop),
        "bytes of a hop over the link": sent_s(vector * (inputs.batch / inputs.chips), inputs.out_bw),
    }


@recomputes("PP-13")
def kv_dominates(inputs: Any) -> Parts:
    """KV over weights per chip at two contexts, and the context of equality."""
    weights = inputs.weights / (inputs.chips * inputs.p_2)
    longer, shorter = (
        stage_kv_bytes(inputs.micro_batch, context, inputs.kv_bytes, inputs.chips, inputs.p_2)
        for context in (inputs.longer, inputs.context)
    )
    return {
        "KV over weights at 200 k": longer / weights,
        "KV over weights at 100 k": shorter / weights,
        "context where they are equal": inputs.context * (weights / shorter),
        "weights": weights,
        "KV at 200 k": longer,
    }


@recomputes("PP-14")
def trillion_parameters(inputs: Any) -> Parts:
    """Weights of a trillion parameters, by format."""
    return {name: inputs.total * width for name, width in (("bf16", inputs.bf16), ("fp8", inputs.fp8), ("fp4", inputs.fp4))}


@recomputes("PP-15")
def memory_of_a_rack(inputs: Any) -> Parts:
    """HBM of both Blackwell racks, and of GB200 NVL72 with its hosts' memory."""
    hbm = inputs.chips * inputs.hbm
    return {
        "GB200 NVL72": hbm,
        "GB300 NVL72": inputs.chips * inputs.later_hbm,
        "GB200 NVL72 and its hosts": hbm + (inputs.hosts * inputs.host_memory),
    }


@recomputes("PP-16")
def less_memory_per_chip(inputs: Any) -> Parts:
    """Weights and KV per chip with 8 stages, over those with one stage."""
    (weights, kv), (one_stage_weights, one_stage_kv) = _memory(inputs, inputs.p_8), _memory(inputs, inputs.p_1)
    return {
        "weights with 8 stages over one": weights / one_stage_weights,
        "KV with 8 stages over one": kv / one_stage_kv,
        "chip's memory with 8 stages over one": (weights + kv) / (one_stage_weights + one_stage_kv),
    }


@recomputes("PP-17")
def stages_in_practice(inputs: Any) -> Parts:
    """Fewest stages at which weights fit in a domain, and scale-up domains of DeepSeek's expert-parallel groups."""
    weights = inputs.total * inputs.weight_byte
    hopper, blackwell = inputs.node * inputs.hopper_hbm, inputs.rack * inputs.blackwell_hbm
    return {
        "stages, DeepSeek-V3 on 8 H100": fewest_within(weights, hopper),
        "stages, DeepSeek-V3 on GB200 NVL72": fewest_within(weights, blackwell),
        "stages, 5 T parameters on GB200 NVL72": fewest_within(inputs.large_total * inputs.weight_byte, blackwell),
        "domains of DeepSeek's decode EP": group_domains(inputs.decode_ep, inputs.next_to, inputs.node),
    }


@recomputes("PP-18")
def stages_do_not_add_bandwidth(inputs: Any) -> Parts:
    """Latency floor of several racks over one rack's: racks as pipeline stages, and as one expert-parallel group."""
    weights = inputs.total * inputs.weight_byte
    one_rack_s = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)
    stage = drain_s((weights / (inputs.chips * inputs.racks)) * inputs.chips, inputs.mem_bw)
    group = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw * inputs.racks)
    return {
        "racks as stages": stage * inputs.racks / one_rack_s,
        "racks as one group": group / one_rack_s,
        "one rack": one_rack_s,
    }
