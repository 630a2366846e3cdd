"""Every key of every answer: its unit and its sentence. What is not here is not in the contract."""

from __future__ import annotations

import dataclasses
import functools

from headway.economics.columns import BILL, HISTORY
from headway.training.columns import SCALE, TRAINING


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One key of an answer."""

    unit: str
    doc: str


def _interval(stem: str, unit: str, doc: str, ends: tuple[str, ...], suffix: str = "") -> dict[str, Column]:
    words = {
        "floor": "roofline floor: nothing real is faster",
        "lo": "lower end of the 90 % interval",
        "hi": "upper end of the 90 % interval",
    }
    expected_column = {stem + suffix: Column(unit, doc + "; expected value")}
    return expected_column | {f"{stem}_{end}{suffix}": Column(unit, f"{doc}; {words[end]}") for end in ends}


_WHAT = {
    "kind": Column(
        "", "what the row is: point; best, frontier, elasticity, current of a plan; best, next of train; fast, slow, found, beyond of sim"
    ),
    "model": Column("", "model, by its catalogue name or file"),
    "system": Column("", "machine"),
    "chips": Column("", "chips paid for: all replicas and the idle ones"),
    "chips_idle": Column("", "chips of the machine that the layout leaves unused"),
    "replicas": Column("", "independent copies of the layout"),
    "tp": Column("", "tensor-parallel ways"),
    "ep": Column("", "expert-parallel ways, on the chips of tp x cp x dp"),
    "dp": Column("", "data-parallel ways of attention inside one replica; of `train`, of the whole model"),
    "pp": Column("", "pipeline stages"),
    "cp": Column("", "context-parallel ways"),
    "redundant": Column("", "copies of busy routed experts, in all"),
    "weights": Column("", "number format of the weights"),
    "kv": Column("", "number format of the KV cache"),
    "compute": Column("", "number format of the matrix multiplications"),
    "batch": Column("", "sequences decoded together in one replica"),
    "concurrency": Column("", "requests in flight over all replicas"),
    "context": Column("token", "tokens attended to in the decode step"),
    "prompt": Column("token", "prompt tokens of a request"),
    "output": Column("token", "output tokens of a request"),
    "rate": Column("1/s", "requests that arrive per second, over all replicas"),
}
_ALL = ("floor", "lo", "hi")
_TIME = (
    _interval("step", "s", "one decode step at `context`; of `train`, one optimiser step", _ALL, "_s")
    | _interval("ttft", "s", "time to first token (TTFT as vLLM's bench serve), unloaded", _ALL, "_s")
    | _interval("tpot", "s", "time per output token (TPOT as vLLM's bench serve), mean over the request's growing context", _ALL, "_s")
    | {
        "tpot_interleaved_s": Column("s", "TPOT that a user sees while others' prompts are prefilled between two tokens; expected value"),
        "e2e_s": Column("s", "end to end (E2E as vLLM's bench serve): TTFT and all further tokens at TPOT, unloaded; expected value"),
        "compute_s": Column("s", "matrix arithmetic of one decode step; of `train`, the layers' matmuls, recomputed ones too"),
        "weights_s": Column("s", "reading the weights in one decode step"),
        "kv_s": Column("s", "reading the KV cache in one decode step"),
        "network_s": Column("s", "collectives of one decode step"),
        "overhead_s": Column("s", "fixed launch and latency overhead of one decode step"),
        "bound": Column("", "what binds: compute, weights, kv, network, overhead or capacity; of `train`, the largest part of a step"),
    }
)
_RATE = (
    {"tok_per_s_user": Column("token/s", "output tokens per second that one user sees: 1 / TPOT")}
    | {"capacity_req_per_s": Column("1/s", "requests per second that all replicas finish in steady state")}
    | {"utilisation": Column("", "rate over capacity; at 1 the queue grows without end")}
    | _interval("tok_per_s", "token/s", "sustained output rate of all replicas, prefill paid for", ("lo", "hi"))
    | _interval("decode_tok_per_s", "token/s", "output rate of all replicas while only decoding", ("lo", "hi"))
    | _interval("tok_per_s_chip", "token/s", "sustained output rate per chip, idle chips counted", ("lo", "hi"))
)
_COST = (
    _interval("usd_per_mtok_in", "USD/Mtok", "cost of a million prefilled prompt tokens", ("lo", "hi"))
    | _interval("usd_per_mtok_cached", "USD/Mtok", "cost of a million prompt tokens read from a prefix cache", ("lo", "hi"))
    | _interval("usd_per_mtok_out", "USD/Mtok", "cost of a million output tokens", ("lo", "hi"))
)
_FIT = {
    "fits": Column("bool", "whether weights, KV cache and activations fit in HBM and the layout can run"),
    "why": Column("", "why it does not fit, or empty"),
    "weights_bytes_chip": Column("byte", "weights on the fullest chip"),
    "kv_bytes_chip": Column("byte", "KV cache on the fullest chip"),
    "hbm_bytes_chip": Column("byte", "HBM of one chip that may be used"),
}
_PLAN = {
    "prefill_tp": Column("", "tensor-parallel ways of the prefill pool; the row's own ways, batch and steps are the decode pool's"),
    "prefill_ep": Column("", "expert-parallel ways of the prefill pool"),
    "prefill_dp": Column("", "data-parallel ways of attention in a replica of the prefill pool"),
    "prefill_pp": Column("", "pipeline stages of the prefill pool"),
    "prefill_cp": Column("", "context-parallel ways of the prefill pool"),
    "prefill_replicas": Column("", "replicas of the prefill pool"),
    "prefill_chips": Column("", "chips that the prefill pool uses"),
    "decode_chips": Column("", "chips that the decode pool uses"),
    "transfer_s": Column("s", "handing a prompt's KV cache from the prefill to the decode pool; part of TTFT"),
    "input": Column("", "the input that an elasticity row varies"),
    "elasticity": Column("", "per cent by which the best objective improves per cent more of the input, planned again; positive helps"),
    "gain": Column("", "how many times better the best row's objective is than this row's"),
    "cause": Column("", "what that gain comes from, in words"),
}
_SOLVE = {
    "for": Column("", "the input that was solved for"),
    "solution": Column("", "the input's value, in its own unit, that this row is taken at"),
    "is": Column("", "what the row is: the real crossing, or its whole-number neighbour below or above"),
}
_LEDGER = {
    "id": Column("", "the claim's number in its group"),
    "group": Column("", "group of claims, such as RB for roofline and batch"),
    "claim": Column("", "what is claimed, in the project's words"),
    "stated": Column("", "the figure that was stated, in the row's unit"),
    "recomputed": Column("", "the same figure by the project's laws from the claim's own inputs"),
    "unit": Column("", "unit of stated and recomputed"),
    "tolerance": Column("", "exact 1e-9, tight 1 %, round 25 %, oom a factor of 3 either way, a percentage, or a range"),
    "verdict": Column("", "agrees, rounding, differs, not computable or not yet computed; computed, never stored"),
    "cause": Column("", "why a claim differs or is loose: an input off, an ambiguous convention, a slip, rounding"),
    "note": Column("", "what a reader of the claim should know"),
    "today": Column("", "the same figure with the catalogue's current facts"),
    "reference": Column("", "the same figure worked out by hand, where no figure was stated or to check the laws"),
    "stated_text": Column("", "what was stated, in words"),
    "source": Column("", "where the claim was made"),
    "parts": Column("", "every figure of the claim: name, unit, stated, reference, recomputed, today, verdict"),
    "inputs": Column("", "what the claim is recomputed with: name, value, unit, source, date, and what the catalogue says today"),
}
_TREND = {
    "year": Column("", "year of announcement"),
    "vendor": Column("", "who makes it"),
    "chip": Column("", "catalogue name"),
    "flop_per_byte_bf16": Column("flop/byte", "dense bf16 peak over memory bandwidth"),
    "flop_per_byte_fp8": Column("flop/byte", "dense fp8 peak over memory bandwidth"),
    "flop_per_byte_fp4": Column("flop/byte", "dense fp4 peak over memory bandwidth"),
    "hardware_ratio_bf16": Column("token", "tokens at which compute takes as long as reading bf16 weights"),
    "hardware_ratio_fp8": Column("token", "the same for fp8 weights and arithmetic"),
    "hardware_ratio_fp4": Column("token", "the same for fp4 weights and arithmetic"),
    "drain_s": Column("s", "time to read all of the memory once"),
    "hbm_per_flop": Column("byte*s/flop", "memory over the dense bf16 peak"),
    "latency_floor_s": Column("s", "reading the model's weights once with the whole scale-up domain: no decode step is shorter"),
    "longest_context": Column("token", "longest context of one sequence whose KV fits beside the weights in the scale-up domain"),
}
_RACK = {
    "dies": Column("", "compute dies in the domain: what the names of some racks count"),
    "chips_growth": Column("", "chips over those of the known domain"),
    "mesh_links": Column("", "links of a full mesh, one per pair of chips"),
    "mesh_cables": Column("", "differential pairs of those links: cables, as an NVL72's are counted"),
    "mesh_growth": Column("", "links of a mesh over those of a mesh of the known domain: quadratic in the chips"),
    "mesh_links_per_chip": Column("", "links that each chip of a full mesh needs"),
    "mesh_connectors_per_chip": Column("", "backplane connectors that each chip of a full mesh needs"),
    "star_links": Column("", "links from all chips to central switches"),
    "star_cables": Column("", "differential pairs of those links"),
    "star_growth": Column("", "the same over the known domain's: linear in the chips"),
    "star_switches": Column("", "central switch chips that have ports for all of them; one hop between any two only where `levels` is one"),
    "star_connectors_per_chip": Column("", "backplane connectors of one chip in a star or a Clos"),
    "clos_links": Column("", "links of a two-level Clos (fat tree) at full bandwidth, chips to leaves and leaves to spines"),
    "clos_cables": Column("", "differential pairs of those links"),
    "clos_switches": Column("", "switch chips of both levels"),
    "clos_most_chips": Column("", "chips that two levels of such switches can join"),
    "torus_links": Column("", "links of a torus of these chips"),
    "levels": Column("", "levels of switches that join all chips, each with a link in every plane"),
    "pairs_per_rack_unit": Column("", "differential pairs of the star per unit of height, all in one rack"),
    "domain_power": Column("W", "power of the domain, each chip's share as in the known machine"),
    "domain_weight": Column("kg", "weight of the domain, each chip's share as in the known machine"),
    "watts_per_rack_unit": Column("W", "power per unit of height, all in one rack of the known height"),
    "cooling": Column("", "what cools all of it in one rack: air, liquid, or beyond what liquid-cooled racks are announced for"),
    "floor_load": Column("kg/m^2", "weight over the footprint of one rack, all in one rack"),
    "racks": Column("", "racks at the known machine's chips per rack; boxes where it is smaller than a rack"),
    "air_racks": Column("", "fewest racks that room air can cool"),
    "liquid_racks": Column("", "fewest racks within what liquid-cooled racks are announced for"),
    "cabinet_racks": Column("", "fewest racks whose cabinets carry the weight"),
    "footprints": Column("", "rack footprints, aisle included, over which the weight stays within the recommended floor load"),
    "one_rack": Column("", "whether one rack as known today can hold the domain, or what is over its limits: power, weight, space"),
    "domain_hbm": Column("byte", "memory of the domain"),
    "scale_up_total": Column("byte/s", "what all chips of the domain send at once, one direction"),
    "domain_bisection": Column("byte/s", "bandwidth between the halves of the domain, one direction"),
    "scale_out_ratio": Column("", "how many times slower scale-out is than scale-up, per chip and direction"),
    "racks_slowdown": Column("", "all-to-all over racks of the known size joined by scale-out, over one domain: ratio x (1 - 1/R)"),
    "alltoall_bytes": Column("byte", "what one chip sends for dispatch and combine of one expert layer"),
    "alltoall_s": Column("s", "time of that in one scale-up domain; floor"),
    "alltoall_racks_s": Column("s", "time of that over racks of the known size joined by scale-out; floor"),
    "weights_bytes": Column("byte", "the model's weights as its checkpoint stores them"),
    "params_fit": Column("", "parameters that fit in fp8 beside the stated model's one sequence"),
    "models_fit": Column("", "models of the catalogue that fit with one sequence of `context`"),
    "largest_model": Column("", "the largest of them, by parameters"),
    "largest_params": Column("", "its parameters"),
    "largest_floor_s": Column("s", "reading its weights once with the whole domain: no decode step is shorter"),
    "fitting": Column("", "each model that fits: model, total_params, weights_bytes, latency_floor_s"),
    "topology": Column("", "how the chips of one scale-up domain are joined"),
}
_SPEED = {
    "speed_multiple": Column("", "speed of one user over the standard rung's; of an offer, as advertised over its own standard tier"),
    "price_multiple": Column("", "chip time (so cost) per request over the standard rung's; of an offer, price over the standard tier's"),
    "speed_bought": Column("", "per cent of speed that one per cent of price buys, coming from the next slower rung"),
    "decode_price_multiple": Column("", "chip time of an output token over the standard rung's, prefill left out"),
    "batch_ratio": Column("", "sequences per chip on the standard rung over those on this one"),
    "batch_ratio_identity": Column("", "the same from price in proportion to t / B: decode_price_multiple x speed_multiple"),
    "batch_ratio_of_price": Column("", "what price_multiple x speed_multiple imply: all an outsider sees, prefill taken for decode"),
    "ladder_price_multiple": Column("", "price multiple of the ladder at the offer's speed multiple, between two rungs"),
    "ladder_speed_multiple": Column("", "speed multiple of the ladder at the offer's price multiple, between two rungs"),
    "ladder_batch_ratio": Column("", "batch_ratio of the ladder at the offer's speed multiple, between two rungs"),
    "offer_over_ladder": Column("", "the offer's price multiple over the ladder's at its speed"),
    "standing": Column("", "the offer beside the ladder: above or below it, faster or cheaper than any rung, or of unpublished speed"),
    "offer": Column("", "the offer's name in the catalogue"),
    "provider": Column("", "who sells it, or who measured it"),
    "tier": Column("", "the tier as its provider calls it"),
    "basis": Column("", "price of an offer, or cost that others measured"),
    "date": Column("", "when the offer was made or read"),
    "about": Column("", "what the multiples are taken from"),
}
_MEASURED = (
    _interval("ttft_ms", "ms", "time to first token, as the row's benchmark loads the server", _ALL)
    | _interval("tpot_ms", "ms", "time per output token", _ALL)
    | _interval("output_tok_s_total", "token/s", "generated tokens per second of all chips; of a prefill, prompt tokens", ("lo", "hi"))
    | _interval("tok_s_per_chip", "token/s", "the same per chip", ("lo", "hi"))
    | {"flags": Column("", "what was inferred where a row is silent, joined by '; '")}
)
_LATENCIES = {"ttft": "time to first token", "tpot": "time per output token", "itl": "time between two tokens of a request",
              "e2e": "time from sending a request to its last token", "queue": "time from sending a request to its first step"}  # fmt: skip
_SIM = (
    {
        f"{part}_{key}_s": Column("s", f"{words}, of completed requests after the warm-up: {statistic}, as vLLM's bench serve defines it")
        for key, words in _LATENCIES.items()
        for part, statistic in (("mean", "mean"), *((f"p{percent}", f"percentile {percent}") for percent in (50, 90, 95, 99)))
    }
    | {
        f"mean_{key}_ci_s": Column("s", f"half width of the 95 % confidence interval of the mean {key}, by 20 batch means")
        for key in _LATENCIES
        if key != "itl"
    }
    | {
        f"{part}_{key}_{end}_s": Column("s", f"{part} {key} had every step taken 10 % (or --sensitivity) {words} than estimated")
        for part in ("mean", "p99")
        for key in ("ttft", "tpot")
        for end, words in (("lo", "less"), ("hi", "longer"))
    }
    | {
        f"prefill_{key}": Column("", f"{words} of the pool that computes prompts")
        for key, words in (
            ("busy_share", "share of the time in steps"),
            ("running_mean", "requests in service"),
            ("waiting_mean", "requests that wait"),
            ("kv_used_mean", "share of the KV cache that requests hold"),
        )
    }
    | {
        "users": Column("", "users of a closed loop, each of whom waits for an answer and asks again"),
        "little": Column("", "requests in the replicas, as counted over time, over the time that requests spent there: 1 by Little's law"),
        "stable": Column("bool", "whether the queue does not grow without end"),
        "queue_growth_per_s": Column(
            "1/s", "requests per second by which the queue grew over the second half of the arrivals, where unstable"
        ),
        "measured": Column("", "requests that the latencies are of"),
        "requests": Column("", "requests sent"),
        "completed": Column("", "requests that got their last token"),
        "rejected": Column("", "requests longer than the KV cache of a replica"),
        "cancelled": Column("", "users who gave up, and what they would have asked next; under way or not sent when interrupted"),
        "duration_s": Column("s", "from the first request sent to the last token"),
        "offered_req_per_s": Column("1/s", "requests sent per second"),
        "req_per_s": Column("1/s", "requests completed per second over the duration"),
        "output_tok_per_s": Column("token/s", "output tokens of completed requests per second over the duration"),
        "total_tok_per_s": Column("token/s", "the same with their prompt tokens"),
        "goodput_req_per_s": Column("1/s", "requests per second that keep every limit"),
        "good_share": Column("", "share of requests that keep every limit"),
        "busy_share": Column("", "share of the time that a replica is in a step"),
        "waiting_share": Column("", "share of the time that requests wait during a step"),
        "running_mean": Column("", "requests in service in all replicas, mean over time"),
        "waiting_mean": Column("", "requests that wait in all replicas, mean over time"),
        "decode_batch_mean": Column("", "sequences in a step that decodes, mean"),
        "kv_used_mean": Column("", "share of the KV cache that requests hold, mean over time"),
        "kv_used_peak": Column("", "the most that they held"),
        "kv_tokens": Column("token", "KV cache of one replica"),
        "hit_rate": Column("", "share of prompts' blocks that the prefix cache had; what a preempted request left is not counted"),
        "hit_rate_tokens": Column("", "share of prompts' tokens that needed no computing"),
        "hit_rate_by_tier": Column("", "the same as hit_rate by the tier that had them"),
        "preemptions": Column("", "sequences sent back to the queue for lack of KV cache"),
        "swaps": Column("", "of them, those whose cache went to the host's memory"),
        "steps": Column("", "iterations of all replicas"),
        "usd_per_request": Column("USD", "cost of a completed request: the whole machine over the duration"),
        "usd_per_mtok": Column("USD/Mtok", "the same per million output tokens, prompts paid for"),
        "joule_per_token": Column("J/token", "energy of an output token: busy chips at their thermal design power, prompts included"),
        "wall_s": Column("s", "time that the simulation took"),
        "compile_s": Column("s", "time that compiling it took, before"),
    }
)
_TIERS = {
    "memory": Column("", "kind of memory"),
    "device": Column("", "what one device is"),
    "write_bw": Column("byte/s", "sequential writing"),
    "fee_usd_per_byte_s": Column("USD/byte/s", "list price of holding a byte, where it is rented"),
    "price_date": Column("", "when that price was asked"),
}
_TOKENS = {"in": "fresh input", "cached": "cached input", "out": "output"}
_ENDS = {"": ", middle", "_lo": ", least", "_hi": ", most"}
_PRICE = {
    f"{stem}_{kind}{end}": Column("USD/Mtok", f"{words} of a million tokens of {token_kind}{more}")
    for stem, words in (("cost", "cost, idle hours counted,"), ("price", "price: cost over 1 - margin,"))
    for kind, token_kind in _TOKENS.items()
    for end, more in (
        ("", ", every input in its middle"),
        ("_lo", ", lower end of the 90 % interval"),
        ("_hi", ", upper end of the 90 % interval"),
        ("_least", ", every input at its better end"),
        ("_most", ", every input at its worse end"),
    )
} | {
    **{f"chip_price{end}": Column("USD/s", f"price of a chip{more}") for end, more in _ENDS.items()},
    **{f"utilisation{end}": Column("", f"share of paid hours that do useful work{more}") for end, more in _ENDS.items() if end},
    **{f"margin{end}": Column("", f"share of the price that is not cost{more}") for end, more in _ENDS.items()},
    "width_estimate": Column("", "share of the width of price_out's interval that the estimate of the times is behind"),
    "width_chip_price": Column("", "the same of the price of a chip"),
    "width_utilisation": Column("", "the same of utilisation"),
    "width_margin": Column("", "the same of the margin"),
    "driver": Column("", "the input behind most of that width"),
    "prefill_share": Column("", "share of a request's cost that its prompt is, cached part included"),
    "decode_share": Column("", "share of a request's cost that its output is"),
    "usd_charged": Column("USD", "what the list price brings for a request"),
    **{f"sheet_{kind}": Column("USD/Mtok", f"list price of {token_kind}") for kind, token_kind in _TOKENS.items()},
    "sheet_margin": Column("", "margin that the list price leaves over the cost"),
    "sheet_margin_lo": Column("", "the same with the costs at their upper ends"),
    "sheet_margin_hi": Column("", "the same with the costs at their lower ends"),
    **{f"power_share{end}": Column("", f"share of the price of a chip by the hour that is power{more}")
       for end, more in (("", ""), ("_lo", ", where a chip is dear"), ("_hi", ", where a chip is cheap"))},
    "memory_share_lo": Column("", "share of what a chip costs to buy that its HBM is, low end"),
    "memory_share_hi": Column("", "share of what a chip costs to buy that its HBM is, high end"),
    **{f"own_{part}": Column("USD/s", f"{part} of a chip that is owned") for part in ("capital", "upkeep", "power", "building")},
}  # fmt: skip
IDENTITY = (*_WHAT, "users", "is", "solution", "input", "id", "name", "fact", "chip", "year", "law")  # what says which row it is
_BILL = {key: Column(*about) for key, about in (BILL | HISTORY).items()}
_TRAINING = {key: Column(*about) for key, about in (SCALE | TRAINING).items()}
SERVE: dict[str, Column] = _WHAT | _TIME | _RATE | _COST | _FIT
_VERBS = _PLAN | _SOLVE | _LEDGER | _TREND | _RACK | _SPEED | _MEASURED | _SIM | _TIERS | _PRICE | _BILL
COLUMNS: dict[str, Column] = _TRAINING | SERVE | _VERBS


@functools.cache
def _facts() -> dict[str, Column]:
    """Facts of chips and systems and named assumptions, by the names that flags and --set take."""
    from headway.core import schema
    from headway.economics.cache.records import CACHE
    from headway.hardware.chip import Chip
    from headway.hardware.system import System
    from headway.models.describe import ModelSummary
    from headway.performance.assumptions import Assumptions

    facts = {f"{owner}.{key}": q for owner, record in (("chip", Chip), ("system", System)) for key, (q, _) in schema.fields(record).items()}
    for record in (*CACHE, ModelSummary, Chip, System, Assumptions):
        facts |= {key: q for key, (q, _) in schema.fields(record).items()}
    return {key: Column(q.unit, q.help) for key, q in facts.items()}


def column(key: str) -> Column:
    """The unit and the sentence of a key; both empty for a key that is in no contract."""
    return COLUMNS.get(key) or _facts().get(key) or Column("", "")


def unit(key: str) -> str:
    """The unit of a key: "" for counts, ratios and texts."""
    return column(key).unit


def doc(key: str) -> str:
    """The sentence of a key."""
    return column(key).doc
