"""Types of the keywords of each verb, beside those that verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.cli.functions.flags import (
    AssumptionFlags,
    EditFlags,
    FormatFlags,
    LayoutFlags,
    LimitFlags,
    NumberFlags,
    PercentileFlags,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headway.cli.functions.flags import File, Machine, Number, Text
    from headway.report.result import Result


class PlanFlags(LayoutFlags, FormatFlags, AssumptionFlags, EditFlags, NumberFlags, LimitFlags, PercentileFlags, total=False):
    """Keywords of `plan`."""

    on: Machine
    batch: Number
    prompt: Number
    output: Number
    rate: Number
    hit_rate: Number
    users: Number
    trace: File
    confidence: Number
    no_check: bool
    objective: Text
    disaggregate: bool
    launch: Text
    manifest: Text
    chips_per_host: Number
    spare: Number
    chip_price: Number
    plainest: Text | bool
    current: str | Mapping[str, Number]


class ServeFlags(LayoutFlags, FormatFlags, AssumptionFlags, EditFlags, NumberFlags, total=False):
    """Keywords of `serve`."""

    on: Machine
    batch: Number
    context: Number
    prompt: Number
    output: Number
    rate: Number
    batch_per_stage: Number
    hit_rate: Number
    chip_price: Number


class SimFlags(LayoutFlags, FormatFlags, AssumptionFlags, EditFlags, NumberFlags, total=False):
    """Keywords of `sim`."""

    on: Machine
    plan: File | Result
    trace: File
    trace_block: Number
    rate: Number
    arrivals: Text
    prompt: Number
    output: Number
    requests: Number
    users: Number
    think: Number
    turns: Number
    seed: Number
    ttft: Number
    tpot: Number
    e2e: Number
    policy: Text
    token_budget: Number
    max_seqs: Number
    kv_tokens: Number
    block: Number
    reserve: Number
    departures: Number
    request_overhead: Number
    preemption: Text
    swap_space: Number
    patience: Number
    step_factor: Number
    prefill_replicas: Number
    routing: Text
    reload: Text
    hit_rate: Number
    prefix_cache: Number
    ttl: Number
    find: Text
    so_that: Number
    seeds: Number
    fast: Number
    timeline: File
    sensitivity: Number
    warmup: Number
    loop: Text


class ScoreFlags(EditFlags, total=False):
    """Keywords of `score`."""

    each: bool
    vllm: File
    aiperf: File
    guidellm: File
    trtllm_bench: File
    llama_bench: File
    inferencex: File
    requests: File
    on: Machine
    model: Text
    engine: Text
    engine_version: Text
    weights: Text
    kv: Text
    tp: Number
    ep: Number
    pp: Number
    dp: Number
    prompt: Number
    output: Number


class PredictFlags(EditFlags, total=False):
    """Keywords of `predict`."""

    training: bool


class TrainFlags(EditFlags, NumberFlags, total=False):
    """Keywords of `train`."""

    on: Machine
    seq: Number
    global_batch: Number
    tokens: Number
    tp: Number
    cp: Number
    pp: Number
    vpp: Number
    ep: Number
    dp: Number
    micro_batch: Number
    zero: Number
    dtype: Text
    recompute: Text
    schedule: Text
    optimizer: Text
    sequence_parallel: Number
    fused_attention: Number
    dropout: Number
    kernels: Text
    fused_loss: Number
    captured: Number
    matmul_rate: Number
    mfu: Number
    trainable: Number
    imbalance: Number
    bytes_param_wire: Number
    bytes_gradient_wire: Number
    mtbf: Number
    restart: Number
    checkpoint: Number
    eff_compute: Number
    eff_expert: Number
    eff_head: Number
    eff_attention: Number
    eff_recurrence: Number
    matmul_norm: Number
    traffic: Number
    eff_memory: Number
    launch: Text
    sync: Number
    hidden_tp: Number
    hidden_dp: Number
    hidden_cp: Number
    hidden_ep: Number
    fragmentation: Number
    fixed: Number
    spread: Number
    spread_memory: Number
    objective: Text
    deadline: Number
    price_metric: Text


class ScaleFlags(EditFlags, total=False):
    """Keywords of `scale`."""

    flop: Number
    active: Number
    tokens: Number
    tokens_unique: Number
    quality: Number
    tokens_per_param: Number
    serve: Number
    months: Number
    served: Number
    month_days: Number
    utilisation: Number
    deployed: Number
    serve_mfu: Number
    serve_price: Number
    kappa: Number
    rl: Number
    rl_mfu: Number
    rl_trained: Number
    eta: Number
    experts: Number
    total: Number
    per_token: Number
    granularity: Number
    weight_bits: Number
    activation_bits: Number
    kv_bits: Number
    post_bits: Number
    moe: bool
    law: Text
    beside: Text
    correlation: Number
    draws: Number
    seed: Number


class PriceFlags(LayoutFlags, FormatFlags, AssumptionFlags, EditFlags, NumberFlags, LimitFlags, total=False):
    """Keywords of `price`."""

    on: Machine
    chip_price: Number
    utilisation: Number
    margin: Number
    own: bool
    at_sheet: Text
    hit_rate: Number
    input_price: Number
    cached_price: Number
    output_price: Number
    batch: Number
    prompt: Number
    output: Number
    disaggregate: bool
    sheet: Text
    assume: Number
    score: File
    truth: File
    report: File
    history: Text
    case: Text
    memory_share: Text
    dram: Number
    flash: Number


class BillFlags(EditFlags, total=False):
    """Keywords of `bill`."""

    sheet: Text
    mode: Text
    cache: Number
    requests: Number
    prompt: Number
    shared: Number
    output: Number
    rate: Number
    arrivals: Text
    turns: Number
    trace_block: Number
    seed: Number
    start: Number
    tokens: Number


class CacheFlags(LayoutFlags, FormatFlags, AssumptionFlags, EditFlags, NumberFlags, total=False):
    """Keywords of `cache`."""

    on: Machine
    tier: Number
    prompt: Number
    output: Number
    fresh: Number
    reuse: Number
    uses: Number
    waiting: Number
    hit_tokens: Number
    new_tokens: Number
    rate: Number
    hit_rate: Number
    sheet: Text
    fee: Number
    storage: Number
    workload: File
    ttl: Number
    capacity: Number
    requests: Number
    trace_block: Number


class SpeedFlags(LayoutFlags, FormatFlags, AssumptionFlags, EditFlags, NumberFlags, total=False):
    """Keywords of `speed`."""

    on: Machine
    prompt: Number
    output: Number
    ttft: Number
    tpot: Number
    at: Number
    domains: Number
    hit_rate: Number


class CapacityFlags(EditFlags, NumberFlags, total=False):
    """Keywords of `capacity`."""

    on: Machine
    batch: Number
    context: Number
    weights: Text
    kv: Text
    hbm_utilization: Number


class CompareFlags(EditFlags, total=False):
    """Keywords of `compare`."""

    per: Text
    cost: Number
    power: Number


class RackFlags(EditFlags, total=False):
    """Keywords of `rack`."""

    model: Text
    by_year: bool
    batch: Number
    context: Number
    links_per_chip: Number
    pairs_per_link: Number
    ports_per_switch: Number
    pairs_per_connector: Number
    dies_per_chip: Number
    chips_per_rack: Number
    rack_units: Number
    footprint: Number
    air_limit: Number
    liquid_limit: Number
    cabinet_limit: Number
    floor_limit: Number
