"""The columns of `serve`, `solve` and `plan`: the unit and the sentence of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.core.columns import Column, interval_columns

_SUBJECT = {
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
    "batch": Column("", "users of one replica, whose requests are served together; at a rate, the sequences that decode at once"),
    "concurrency": Column("", "requests in flight over all replicas"),
    "context": Column("token", "tokens attended to in the decode step"),
    "prompt": Column("token", "prompt tokens of a request"),
    "output": Column("token", "output tokens of a request"),
    "rate": Column("1/s", "requests that arrive per second, over all replicas"),
}
_BOUNDS = ("floor", "lo", "hi")
_TIME = (
    interval_columns("step", "s", "one decode step at `context`; of `train`, one optimiser step", _BOUNDS, "_s")
    | interval_columns(
        "ttft", "s", "mean time to first token at the load (TTFT as vLLM's bench serve); floor: of a request alone", _BOUNDS, "_s"
    )
    | interval_columns(
        "tpot", "s", "mean time per output token at the load (TPOT as vLLM's bench serve): prefill of other requests counts", _BOUNDS, "_s"
    )
    | {
        "ttft_unloaded_s": Column("s", "time to first token of a request alone on the machine; expected value"),
        "tpot_decode_s": Column("s", "time per output token of decode steps alone, without prefill of other requests; expected value"),
        "e2e_s": Column("s", "end to end at the load (E2E as vLLM's bench serve): TTFT and all further tokens at TPOT; expected value"),
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
    | {
        "capacity_req_per_s": Column(
            "1/s", "requests per second that all replicas finish: of these users, or at a rate with every seat taken"
        )
    }
    | {"utilisation": Column("", "arrival rate over capacity; from 1 up the queue grows without end")}
    | interval_columns("tok_per_s", "token/s", "output rate of all replicas at the load, prefill included", ("lo", "hi"))
    | interval_columns("decode_tok_per_s", "token/s", "output rate of all replicas while only decoding", ("lo", "hi"))
    | interval_columns("tok_per_s_chip", "token/s", "output rate per chip at the load, idle chips counted", ("lo", "hi"))
)
_COST = (
    interval_columns("usd_per_mtok_in", "USD/Mtok", "cost of a million prefilled prompt tokens at the load", ("lo", "hi"))
    | interval_columns(
        "usd_per_mtok_cached", "USD/Mtok", "cost of a million prompt tokens loaded from a prefix cache outside HBM", ("lo", "hi")
    )
    | interval_columns("usd_per_mtok_out", "USD/Mtok", "cost of a million output tokens at the load", ("lo", "hi"))
    | {
        "usd_per_mtok_out_full": Column("USD/Mtok", "cost of a million output tokens with every replica at its capacity"),
        "usd_per_hour": Column("USD", "cost of the machine per hour, idle and spare chips included"),
        "usd_per_month": Column("USD", "cost of the machine per month of 730 hours, idle and spare chips included"),
    }
)
_FIT = {
    "fits": Column("bool", "whether weights, KV cache and activations fit in HBM and the layout can run"),
    "why": Column("", "why it does not fit, breaks a limit or stands behind a slower one, or empty"),
    "weights_bytes_chip": Column("byte", "weights on the fullest chip"),
    "kv_bytes_chip": Column("byte", "KV cache on the fullest chip"),
    "hbm_bytes_chip": Column("byte", "HBM of one chip that may be used"),
}
SERVE: dict[str, Column] = _SUBJECT | _TIME | _RATE | _COST | _FIT
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
    "usd_per_1k_requests": Column("USD", "cost of a thousand requests, prompt and answer, at the load: what a plan makes least"),
    "input": Column("", "the input that an elasticity row varies"),
    "elasticity": Column("", "per cent by which the best objective improves per cent more of the input, planned again; positive helps"),
    "nodes": Column("", "whole nodes that the plan takes"),
    "node_chips": Column("", "chips of a node"),
    "spare_nodes": Column("", "nodes that may be lost: the load and the limits are those of the other nodes"),
    "max_seqs": Column("", "sequences of one rank that the engine admits"),
    "confidence": Column("", "chance, given the model's error, that every limit holds, by simulation"),
    "simulated_requests": Column("", "requests of the simulation behind the percentiles"),
    "gain": Column("", "how many times better the best row's objective is than this row's"),
    "cause": Column("", "what that gain comes from, in words"),
}
_SOLVE = {
    "for": Column("", "the input that was solved for"),
    "solution": Column("", "the input's value, in its own unit, that this row is taken at"),
    "is": Column("", "what the row is: the real crossing, or its whole-number neighbour below or above"),
}
COLUMNS: dict[str, Column] = SERVE | _PLAN | _SOLVE
IDENTITY = (*_SUBJECT, "is", "solution", "input")  # columns that identify a row


def runs(row: Mapping[str, Any]) -> bool:
    """Whether a point fits in memory and carries its load."""
    return bool(row["fits"]) and (row.get("utilisation") or 0.0) < 1.0


def time_key(row: Mapping[str, Any]) -> str:
    """The time that a point is judged by: TPOT, or the step where there is none."""
    return "tpot_s" if row.get("tpot_s") is not None else "step_s"


def tokens_key(row: Mapping[str, Any]) -> str:
    """The rate that a point without a price is judged by, a column of its table."""
    return "tok_per_s_chip" if row.get("prompt") is not None else "decode_tok_per_s"
