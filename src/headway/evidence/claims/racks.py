"""Claims on scale-up domains and racks (FS, RK), and on pipelines: weights divided, KV not, and what hops need of scale-out (PP)."""

from __future__ import annotations

from typing import Any

from headway.core.units import BytePerSecond, Number
from headway.evidence.claims.claim import ClaimInputs, Parts, recomputes, weights_s
from headway.laws.collectives.expert_parallel import activation_bytes_per_token, exchange_bytes
from headway.laws.collectives.topology import group_domains
from headway.laws.rack import cable_count, fewest_within, mesh_links, rack_height, star_links
from headway.laws.roofline.balance import bytes_beside_weights, domain_read_s, drain_s, sent_s
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


@recomputes("FS-01")
def hopper_box(inputs: ClaimInputs) -> Parts:
    """HBM of a machine of eight H100."""
    return {"8 H100": inputs.chips * inputs.hbm}


@recomputes("FS-02")
def blackwell_rack(inputs: ClaimInputs) -> Parts:
    """HBM of both Blackwell racks."""
    return {"GB200 NVL72": inputs.chips * inputs.hbm, "GB300 NVL72": inputs.chips * inputs.later_hbm}


@recomputes("FS-03")
def five_trillion(inputs: ClaimInputs) -> Parts:
    """Weights of a 5 T model by format, and memory left for KV with bf16 weights."""
    wide = inputs.total * inputs.bf16
    return {
        "left for KV beside bf16 weights": bytes_beside_weights(inputs.chips * inputs.hbm, wide),
        "fp4 weights": inputs.total * inputs.fp4,
        "fp8 weights": inputs.total * inputs.fp8,
        "bf16 weights": wide,
    }


@recomputes("FS-04")
def floor_of_a_domain(inputs: ClaimInputs) -> Parts:
    """Weight read time of one domain, and its change with a second domain as a pipeline stage or as more chips."""
    weights = inputs.total * inputs.weight_byte
    domain_s = domain_read_s(weights, inputs.chips, inputs.chip_bw)
    half = domain_read_s(weights / (inputs.one * inputs.domains), inputs.chips, inputs.chip_bw)
    return {
        "two domains as stages, over one": half * inputs.domains / domain_s,
        "one domain of twice the chips, over one": domain_read_s(weights, inputs.chips * inputs.domains, inputs.chip_bw) / domain_s,
        "GB200 NVL72": domain_s,
    }


@recomputes("FS-05")
def growth_by_generation(inputs: ClaimInputs) -> Parts:
    """Growth of HBM bandwidth per chip and of the scale-up domain, over the previous generation."""
    return {
        "A100 to H100": inputs.h100_bw / inputs.a100_bw,
        "H200 to B200": inputs.b200_bw / inputs.h200_bw,
        "scale-up domain": inputs.chips / inputs.before,
        "H100 to B200": inputs.b200_bw / inputs.h100_bw,
    }


@recomputes("FS-06")
def floor_of_two_machines(inputs: ClaimInputs) -> Parts:
    """Latency floor on eight H100 and on GB200 NVL72."""
    weights = inputs.total * inputs.weight_byte
    before, now = domain_read_s(weights, inputs.before, inputs.h100_bw), domain_read_s(weights, inputs.chips, inputs.gb200_bw)
    return {
        "improvement": before / now,
        "8 H100": before,
        "GB200 NVL72": now,
        "weights over the memory of 8 H100": weights / (inputs.before * inputs.h100_hbm),
    }


@recomputes("FS-07")
def capacity_or_latency(inputs: ClaimInputs) -> Parts:
    """A large model on machines of 8 H100: stages needed to fit, its unchanged latency floor, and that of GB200 NVL72."""
    weights = inputs.total * inputs.weight_byte
    stages = fewest_within(weights, inputs.before * inputs.h100_hbm)
    on_a_chip = weights / (inputs.before * stages)
    floor = domain_read_s(weights, inputs.before, inputs.h100_bw)
    staged = domain_read_s(on_a_chip * inputs.before, inputs.before, inputs.h100_bw) * stages
    return {
        "weights over a chip's memory, with stages": on_a_chip / inputs.h100_hbm,
        "latency floor with stages over without": staged / floor,
        "latency floor on GB200 NVL72 over 8 H100": domain_read_s(weights, inputs.chips, inputs.gb200_bw) / floor,
        "stages": stages,
        "latency floor on boxes of 8 H100": staged,
    }


@recomputes("FS-10")
def pods_before_racks(inputs: ClaimInputs) -> Parts:
    """Chips of TPU pods over contemporary switched domains, and latency floors of the pods."""
    weights = inputs.total * inputs.weight_byte
    return {
        "TPU v4 pod over 8 H100": inputs.v4_pod / inputs.hopper,
        "TPU v5p pod over 8 H100": inputs.v5p_pod / inputs.hopper,
        "TPU v7 pod over GB200 NVL72": inputs.v7_pod / inputs.blackwell,
        "TPU v3 pod": inputs.v3_side * inputs.v3_side,
        "latency floor, TPU v4 pod": domain_read_s(weights, inputs.v4_pod, inputs.v4_bw),
        "latency floor, 8 H100": domain_read_s(weights, inputs.hopper, inputs.h100_bw),
    }


@recomputes("RK-01")
def chips_in_a_rack(inputs: ClaimInputs) -> Parts:
    """Chips of a rack: compute trays times chips per tray."""
    return {"GB200 NVL72": inputs.per_tray * inputs.trays}


@recomputes("RK-03")
def rack_outside(inputs: ClaimInputs) -> Parts:
    """Height of a rack from its units, and width from its floor area."""
    return {"height": rack_height(inputs.rack_units), "width": inputs.footprint / inputs.depth}


@recomputes("RK-05")
def cables_grow_with_chips(inputs: ClaimInputs) -> Parts:
    """Growth of cables with twice the chips: star to central switches, and full mesh."""
    more = inputs.chips * inputs.twice
    return {
        "star to central switches": star_links(more, inputs.links) / star_links(inputs.chips, inputs.links),
        "full mesh": mesh_links(more, inputs.per_pair) / mesh_links(inputs.chips, inputs.per_pair),
        "cables of the star": cable_count(star_links(inputs.chips, inputs.links), inputs.pairs),
    }


@recomputes("RK-06")
def domains_by_generation(inputs: ClaimInputs) -> Parts:
    """Chips per scale-up domain by generation; Rubin Ultra in dies and in packages."""
    blackwell = inputs.per_tray * inputs.trays
    return {
        "Rubin Ultra, dies": inputs.ultra * inputs.ultra_dies,
        "Blackwell": blackwell,
        "Hopper to Blackwell": blackwell / inputs.hopper,
        "Rubin Ultra, packages of its name": inputs.ultra_name / inputs.ultra_dies,
        "Rubin NVL144, packages": inputs.rubin_dies / inputs.rubin_dies_per_chip,
    }


@recomputes("RK-07")
def genuine_growth(inputs: ClaimInputs) -> Parts:
    """Growth of the scale-up domain counted in dies, in packages and by name."""
    return {
        "in dies": inputs.ultra * inputs.ultra_dies / (inputs.blackwell * inputs.blackwell_dies),
        "in packages": inputs.ultra / inputs.blackwell,
        "by name": inputs.ultra_name / inputs.blackwell,
    }


def _by_times(inputs: ClaimInputs, up_bw: BytePerSecond, out_bw: BytePerSecond) -> Any:
    """Time of a stage's all-to-alls over the hop to the next stage, per chip, from bytes and bandwidths."""
    vector = activation_bytes_per_token(inputs.hidden, inputs.element)
    tokens = inputs.batch / inputs.chips
    inside = sent_s(exchange_bytes(tokens, inputs.active, vector, vector), up_bw) * inputs.layers
    return inside / sent_s(vector * tokens, out_bw)


@recomputes("PP-01")
def stage_against_hop(inputs: ClaimInputs) -> Parts:
    """All-to-all time over hop time: by the board's formula, and from the times."""
    formula = scale_up_over_hop(inputs.active, inputs.layers, scale_up_ratio(inputs.up_bw, inputs.out_bw))
    return {
        "times over formula": _by_times(inputs, inputs.up_bw, inputs.out_bw) / formula,
        "8 experts, one layer, 8 times slower": formula,
    }


@recomputes("PP-02")
def bar_of_the_ratio(inputs: ClaimInputs) -> Parts:
    """Vectors sent inside a stage per vector sent to the next stage, at equal times: on the board, and on GB200 with 400 Gb/s."""
    vectors = inputs.active * inputs.layers * inputs.phases
    return {
        "with scale-out 8 times slower": vectors / _by_times(inputs, inputs.up_bw, inputs.out_bw),
        "on GB200 with 400 Gb/s": vectors / _by_times(inputs, inputs.gb200_up, inputs.gb200_out),
    }


@recomputes("PP-03")
def ratio_by_experts(inputs: ClaimInputs) -> Parts:
    """All-to-all over hop time with one layer per stage, by active experts; for eight also at the bandwidths of two machines."""
    counts = {"1": inputs.k_1, "2": inputs.k_2, "4": inputs.k_4, "8": inputs.k_8, "16": inputs.k_16, "32": inputs.k_32}
    return {
        **{f"k = {name}": scale_up_over_hop(count, inputs.layers, inputs.ratio) for name, count in counts.items()},
        "k = 8, 9 times slower": scale_up_over_hop(inputs.k_8, inputs.layers, inputs.ratio_h100),
        "k = 8, 18 times slower": scale_up_over_hop(inputs.k_8, inputs.layers, inputs.ratio_gb200),
    }


@recomputes("PP-04")
def layers_a_stage_needs(inputs: ClaimInputs) -> Parts:
    """Layers per stage (whole) at which the hop is no bottleneck, by active experts."""
    counts = {"1": inputs.k_1, "2": inputs.k_2, "4": inputs.k_4, "8": inputs.k_8}
    return {f"k = {name}": fewest_layers_per_stage(count, inputs.ratio) for name, count in counts.items()}


@recomputes("PP-05")
def neutral_pipeline(inputs: ClaimInputs) -> Parts:
    """Latency of pipeline stages over one rack, sequences per weight read over one rack's, and latency with hops."""
    one_rack_s = weights_s(inputs)
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
def idle_pipeline(inputs: ClaimInputs) -> Parts:
    """Idle share of a pipeline with one micro-batch in flight."""
    return {"idle": pipeline_idle_share(inputs.stages, inputs.in_flight)}


@recomputes("PP-07")
def training_bubble(inputs: ClaimInputs) -> Parts:
    """Idle share of a training pipeline (its bubble)."""
    cases = (("4 stages, 4 micro-batches", inputs.stages, inputs.few), ("4 stages, 16 micro-batches", inputs.stages, inputs.some),
             ("8 stages, 32 micro-batches", inputs.more_stages, inputs.many))  # fmt: skip
    return {name: wall_time_share(one_forward_one_backward_bubble(stages, batches)) for name, stages, batches in cases}


@recomputes("PP-08")
def micro_batches(inputs: ClaimInputs) -> Parts:
    """Micro-batches that fill the pipeline (one per stage), and the idle share with them and with one fewer."""
    needed = micro_batches_needed(inputs.stages)
    return {
        "micro-batches": needed,
        "idle with them": pipeline_idle_share(inputs.stages, needed),
        "idle with one fewer": pipeline_idle_share(inputs.stages, inputs.fewer),
    }


@recomputes("PP-09")
def held_by_a_pipeline(inputs: ClaimInputs) -> Parts:
    """Sequences in flight: stages times micro-batch."""
    return {"sequences in flight": inputs.stages * inputs.micro_batch}


def _memory(inputs: ClaimInputs, stages: Number) -> tuple[Any, Any]:
    """Weights and KV per chip."""
    return inputs.weights / (inputs.chips * stages), stage_kv_bytes(
        inputs.micro_batch, inputs.context, inputs.kv_bytes, inputs.chips, stages
    )


@recomputes("PP-10")
def memory_per_chip(inputs: ClaimInputs) -> Parts:
    """Table of weights and KV per chip, by number of stages."""
    table = {}
    for name, stages in (("1", inputs.p_1), ("2", inputs.p_2), ("4", inputs.p_4), ("8", inputs.p_8)):
        table[f"weights, P = {name}"], table[f"KV, P = {name}"] = _memory(inputs, stages)
    return table


@recomputes("PP-11")
def kv_is_not_divided(inputs: ClaimInputs) -> Parts:
    """KV per chip with 8 stages over KV with one stage."""
    alone, eight_stages = (_memory(inputs, stages) for stages in (inputs.p_1, inputs.p_8))
    return {"KV with 8 stages over one": eight_stages[1] / alone[1], "KV": eight_stages[1], "weights": eight_stages[0]}


@recomputes("PP-12")
def hop_between_racks(inputs: ClaimInputs) -> Parts:
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
def kv_dominates(inputs: ClaimInputs) -> Parts:
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
def trillion_parameters(inputs: ClaimInputs) -> Parts:
    """Weights of a trillion parameters, by format."""
    return {name: inputs.total * width for name, width in (("bf16", inputs.bf16), ("fp8", inputs.fp8), ("fp4", inputs.fp4))}


@recomputes("PP-15")
def memory_of_a_rack(inputs: ClaimInputs) -> Parts:
    """HBM of both Blackwell racks, and of GB200 NVL72 with its hosts' memory."""
    hbm = inputs.chips * inputs.hbm
    return {
        "GB200 NVL72": hbm,
        "GB300 NVL72": inputs.chips * inputs.later_hbm,
        "GB200 NVL72 and its hosts": hbm + (inputs.hosts * inputs.host_memory),
    }


@recomputes("PP-16")
def less_memory_per_chip(inputs: ClaimInputs) -> Parts:
    """Weights and KV per chip with 8 stages, over those with one stage."""
    (weights, kv), (one_stage_weights, one_stage_kv) = _memory(inputs, inputs.p_8), _memory(inputs, inputs.p_1)
    return {
        "weights with 8 stages over one": weights / one_stage_weights,
        "KV with 8 stages over one": kv / one_stage_kv,
        "chip's memory with 8 stages over one": (weights + kv) / (one_stage_weights + one_stage_kv),
    }


@recomputes("PP-17")
def stages_in_practice(inputs: ClaimInputs) -> Parts:
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
def stages_do_not_add_bandwidth(inputs: ClaimInputs) -> Parts:
    """Latency floor of several racks over one rack's: racks as pipeline stages, and as one expert-parallel group."""
    weights = inputs.total * inputs.weight_byte
    one_rack_s = weights_s(inputs)
    stage = drain_s((weights / (inputs.chips * inputs.racks)) * inputs.chips, inputs.mem_bw)
    group = latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw * inputs.racks)
    return {
        "racks as stages": stage * inputs.racks / one_rack_s,
        "racks as one group": group / one_rack_s,
        "one rack": one_rack_s,
    }
