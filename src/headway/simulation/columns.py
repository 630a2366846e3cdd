"""The columns of `sim`: the unit and the sentence of each."""

from __future__ import annotations

from headway.core.columns import Column

_LATENCIES = {"ttft": "time to first token", "tpot": "time per output token", "itl": "time between two tokens of a request",
              "e2e": "time from sending a request to its last token", "queue": "time from sending a request to its first step"}  # fmt: skip
COLUMNS: dict[str, Column] = (
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
        "stable": Column(
            "bool", "whether the queue does not grow without end: utilisation at most 1, and no growth beyond chance over the second half"
        ),
        "queue_growth_per_s": Column(
            "1/s", "where unstable: by how much the queue grew over the second half of the arrivals; within chance, rate less capacity"
        ),
        "capacity_ci_req_per_s": Column("1/s", "half width of the 95 % confidence interval of the capacity"),
        "rate_lo": Column("1/s", "lowest of the rates that --find found over --seeds draws of the traffic"),
        "rate_hi": Column("1/s", "highest of them; five contain the median of all draws with 94 % confidence"),
        "seeds": Column("", "draws of the traffic over which the rate was looked for"),
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
        "limits_met": Column("bool", "whether the queue is stable and every limit of the plan is met"),
        **{
            f"{key}_within": Column("", f"share of requests whose {words} is at most the plan's lowest limit of it")
            for key, words in _LATENCIES.items()
            if key not in ("itl", "queue")
        },
        "itl_within": Column("", "share of tokens that come within the plan's lowest limit of the time between two tokens"),
        "busy_share": Column("", "share of the time that a replica is in a step"),
        "waiting_share": Column("", "share of the time that requests wait during a step"),
        "departures_s": Column("s", "interval of a timetable: steps leave at its multiples, full or not"),
        "train_period_s": Column("s", "mean time from a departure to the next while a replica is busy; some steps take several intervals"),
        "train_fill": Column("", "mean sequences of a departing step over those that it could carry"),
        "half_train_fill": Column("", "the same with half the interval"),
        "half_mean_queue_s": Column("s", "mean time from sending to the first step with half the interval"),
        "half_mean_ttft_s": Column("s", "mean time to first token with half the interval"),
        "half_mean_tpot_s": Column("s", "mean time per output token with half the interval"),
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
        "usd_per_mtok_out_and_prompt": Column("USD/Mtok", "the same per million output tokens, prompts paid for"),
        "joule_per_token": Column("J/token", "energy of an output token: busy chips at their thermal design power, prompts included"),
        "wall_s": Column("s", "time that the simulation took"),
        "compile_s": Column("s", "time that compiling it took, before"),
    }
)
IDENTITY = ("users",)  # columns that identify a row
