"""Sentences and pictures of `sim`, with loads or a saved plan: latencies, queue and occupancy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headway.core.columns import percentile_mark
from headway.core.errors import BadValue
from headway.core.listing import Listing, Rows, format_value
from headway.report import output, serving
from headway.report.pictures import frame, plot, scale
from headway.report.words import Row, sentence, subject
from headway.simulation import timetable as runs
from headway.simulation.results import curves, percentile_keys

if TYPE_CHECKING:
    from headway.report.output import PictureOf
    from headway.report.pictures.frame import Picture, View
    from headway.simulation.check.latencies import LimitStatus
    from headway.simulation.simulate import SimulatedRun
    from headway.simulation.timetable import Boarding, Departure

VIEW = (
    "kind", "rate", "users", "replicas", "tp", "stable", "utilisation", "mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "p99_tpot_s",
    "p99_itl_s", "mean_e2e_s", "req_per_s", "goodput_req_per_s", "output_tok_per_s", "decode_batch_mean", "kv_used_mean", "hit_rate",
    "usd_per_mtok_out_and_prompt", "why",
)  # fmt: skip
BAND = ("p99_ttft_lo_s", "p99_ttft_hi_s", "p99_tpot_lo_s", "p99_tpot_hi_s")
FIRST = ("kind", "rate", "users", "stable", "utilisation", "p99_ttft_s", "p99_tpot_s", "mean_ttft_s", "mean_tpot_s")  # of a narrow table
DEFINED = "TTFT, TPOT, ITL, E2E and goodput are defined as in vLLM's `bench serve`; queue: from sending to the first step."
USUAL = "p99_"  # the percentile of a table without --percentiles
DETAIL_KINDS = ("found", "beyond", "fast", "slow")  # rows with details of the first row
DRAINED = 0.9  # least completed over offered rate; below it, ramp-up and drain bias the results of a run
LEAST_PRINTED = 0.001  # relative half width of the capacity from which it is printed
ON_TIME = 1.05  # departures over the interval above which steps count as longer than the interval
PERCENT_LIMIT = 10  # load over capacity above which it is printed as a factor, not as a percentage


def describe(rows: Any, percentiles: Sequence[float] = ()) -> output.Summary:
    """Summary: the sentence, the columns of the table with the percentiles that were chosen, and the lines below it."""
    row_list = list(rows)
    runs = [row for row in row_list if row.get("kind") not in DETAIL_KINDS]
    kinds = VIEW if len({row.get("kind") for row in row_list}) > 1 else VIEW[1:]
    labels = tuple(itertools.takewhile(lambda key: key not in FIRST, row_list[0]))  # inputs that vary stand before the load
    kinds, first = (*labels, *(key for key in kinds if key not in labels)), (*labels, *FIRST)
    kinds, first = with_percentiles(kinds, percentiles), with_percentiles(first, percentiles)
    rejected = rejected_requests(row_list[0])
    if len(runs) <= 1:
        row = row_list[0]
        load = [*_train(row), *waiting(row), *_growing(row), *_draining(row)]
        remarks = [*verdict(row), *_settling(row), *rejected, *load, *sensitive(row), DEFINED]
        return output.Summary(_sentence(row), kinds, binds=_binds(row), remarks=remarks, first=first)
    at = next(at for at, key in enumerate(kinds) if key.endswith("_itl_s"))
    by_hits = next((f"at {serving.value(row, 'rate')} the service {_on_hits(row)}." for row in runs if _lives_on_hits(row)), "")
    remarks = [*filter(None, [by_hits]), *rejected, *_draining(runs[-1]), DEFINED]
    return output.Summary(_several_runs(runs), (*kinds[:at], *BAND, *kinds[at:]), remarks=remarks, first=first)


def with_percentiles(keys: Sequence[str], percentiles: Sequence[float]) -> tuple[str, ...]:
    """Columns of a table with the percentiles that were chosen in place of the usual one."""
    if not percentiles:
        return tuple(keys)
    of_one = ((key,) if not key.startswith(USUAL) else percentile_keys(percentiles, key.removeprefix(USUAL)) for key in keys)
    return tuple(itertools.chain.from_iterable(of_one))


def waiting(row: Row) -> list[str]:
    """Line on how many requests wait, the largest latencies, and the spread of the batch."""
    if row.get("fits") is False or row.get("wait_share") is None or row.get("queued_share") is None:
        return []
    known = (name for name in ("ttft", "tpot", "e2e") if row[f"max_{name}_s"] is not None)
    largest = ", ".join(f"{name.upper()} {serving.value(row, f'max_{name}_s')}" for name in known)
    step = "a decode step" if row.get("prefill_replicas") else "a step"
    spread = "" if row["mean_batch"] is None else f", p50 {row['p50_batch']}, p99 {row['p99_batch']}, at most {row['max_batch']}"
    batch = f"; {step} holds {row['mean_batch']:.3g} requests{spread}" if spread else ""
    waits = f"{row['wait_share']:.1%} of requests wait for their first step, {row['queued_share']:.1%} longer than for the end of one"
    return [f"{waits}; largest {largest}{batch}."]


def checked(rows: Sequence[Row]) -> dict[str, Any] | None:
    """What was simulated and its verdict; None if no request was completed."""
    runs = [row for row in rows if row.get("kind") not in DETAIL_KINDS[1:] and row.get("completed")]
    if not runs:
        return None
    stable = sum(bool(row["stable"]) for row in runs)
    requests = sum(int(row["completed"]) for row in runs)
    verdict_text = ("stable" if stable else "overloaded") if len(runs) == 1 else f"{stable} of {len(runs)} runs stable"
    return {"answer": f"{requests:,} requests simulated: {verdict_text}.", "requests": requests, "runs": len(runs), "stable": stable}


def beyond(row: Row, limits: Mapping[str, float]) -> str:
    """Clause on the limits that a row exceeds."""
    if not row["stable"]:
        return f"at {serving.value(row, 'rate')} the replicas are overloaded, at {_load_text(row)}"
    if row.get("recovers") is False:
        return f"at {serving.value(row, 'rate')} the service {_on_hits(row)}"
    misses = [
        f"{key} is {serving.value(row, key)}, above {format_value(most, 's')}" if row.get(key) is not None else f"{key} has no value"
        for key, most in limits.items()
        if _misses(row, key, most)
    ]
    return f"at {serving.value(row, 'rate')} {' and '.join(misses)}"


def _misses(row: Row, key: str, most: float) -> bool:
    return row.get(key) is None or row[key] > most


def _several_runs(runs: Sequence[Row]) -> str:
    """Sentence on several runs: number of stable runs, and the load from which the others are unstable."""
    known = [row for row in runs if row.get("fits") is not False]
    stable = [row for row in known if row["stable"]]
    clauses = []
    rates = [row["rate"] for row in stable if row.get("rate")]
    if rates and len(rates) == len(stable):
        last = max(stable, key=lambda row: row["rate"])
        load = f", {_load_text(last)}" if last.get("utilisation") else ""
        clauses = [f", the highest at {serving.value(last, 'rate')}{load}"]
        known_tails = [(word, f"p99_{word}_s") for word in ("ttft", "tpot") if last.get(f"p99_{word}_s") is not None]
        clauses += [f", p99 {word.upper()} {serving.value(last, key)}" for word, key in known_tails]
    return sentence(f"{len(runs)} simulations, {len(stable)} of them stable", *clauses)


def rejected_requests(row: Row) -> list[str]:
    """Line on requests larger than the KV cache."""
    if not row.get("rejected"):
        return []
    room = f"the {serving.value(row, 'kv_tokens')} tokens of a replica's KV cache"
    return [f"{row['rejected']:,} of {row['requests']:,} requests are rejected: they are longer than {room}."]


def _draining(row: Row) -> list[str]:
    """Line on a run too short, compared with its requests, to represent a sustained load."""
    offered_rate, ended = row.get("offered_req_per_s"), row.get("req_per_s")
    if not (row.get("stable") and offered_rate and ended and ended < DRAINED * offered_rate and not row["cancelled"] + row["rejected"]):
        return []
    few = f"{serving.value(row, 'offered_req_per_s')} were sent, {serving.value(row, 'req_per_s')} ended until the last answer was out"
    return [f"a short run: {few}; rates, costs and what is full count filling and draining: more --requests make that less."]


def _train(row: Row) -> list[str]:
    """Lines on steps that leave on a timetable: how full, how long the wait, and what half the interval does."""
    if row.get("departures_s") is None:
        return []
    intervals = row["train_period_s"] / row["departures_s"]
    often = f", {intervals:.1f} intervals, since a step takes longer than one" if intervals > ON_TIME else ""
    first = f"A step leaves every {serving.value(row, 'train_period_s')}{often}; it is {row['train_fill']:.1%} full; a request waits "
    lines = [f"{first}{serving.value(row, 'mean_queue_s')} for its first step."]
    if row.get("half_mean_ttft_s") is not None:
        half = f"Half the interval: {row['half_train_fill']:.1%} full, wait {serving.value(row, 'half_mean_queue_s')}, TTFT "
        half += f"{serving.value(row, 'mean_ttft_s')} -> {serving.value(row, 'half_mean_ttft_s')}, TPOT "
        lines.append(f"{half}{serving.value(row, 'mean_tpot_s')} -> {serving.value(row, 'half_mean_tpot_s')}.")
    return lines


def sensitive(row: Row) -> list[str]:
    """Line on latencies with shorter and longer step times."""
    if row.get("mean_ttft_lo_s") is None:
        return []

    def ends(key: str) -> str:
        low, high = (row.get(f"{key}_{end}_s") for end in ("lo", "hi"))
        upper = "overload" if low is not None and high is None else serving.value(row, f"{key}_hi_s")
        return f"{serving.value(row, f'{key}_lo_s')} .. {upper}"

    ttft, tpot = (f"{name.upper()} {ends(f'mean_{name}')} (p99 {ends(f'p99_{name}')})" for name in ("ttft", "tpot"))
    return [f"had every step been shorter .. longer (--sensitivity): {ttft}, {tpot}."]


def _load_text(row: Row) -> str:
    share, able = row.get("utilisation"), serving.value(row, "capacity_req_per_s")
    if not share:
        return "the given load"
    hits = "" if row.get("hit_rate_settled") is None else f" with {row['hit_rate_settled']:.0%} prefix hits"
    width = row.get("capacity_ci_req_per_s") or 0.0
    able += f" ± {width / row['capacity_req_per_s']:.1%}" if width >= LEAST_PRINTED * row["capacity_req_per_s"] else ""
    return (
        f"{share:.0%} of its capacity{hits} ({able})"
        if share < PERCENT_LIMIT
        else f"{format_value(share, '')} times its capacity{hits} ({able})"
    )


def verdict(row: Row) -> list[str]:
    """Line on a verdict that utilisation and queue do not give alike, or that the error of the capacity leaves open."""
    share, width = row.get("utilisation"), row.get("capacity_ci_req_per_s")
    if not share or width is None:
        return []
    if not row["stable"] and share <= 1.0:
        return [
            f"overloaded although the rate is {share:.0%} of the capacity: over the second half of the arrivals the queue grew by "
            f"{row['queue_growth_per_s']:.3g} requests a second, which chance does not explain."
        ]
    if abs(share - 1.0) * row["capacity_req_per_s"] <= width:
        return [
            f"the rate is within the error of the capacity: {'stable' if row['stable'] else 'overloaded'} is the likelier of two verdicts."
        ]
    return []


def _settling(row: Row) -> list[str]:
    """Lines on requests beyond those asked for, without which hits or latencies would not be those of a lasting load."""
    lines, judged = [], row.get("judged_requests") or 0
    if _lives_on_hits(row):
        lines.append(f"the service {_on_hits(row)}.")
    if judged > row.get("requests", judged):
        lines.append(
            f"{'stable' if row['stable'] else 'overloaded'} by a run of {judged:,} requests: in {row['requests']:,} the hit rate had not "
            f"settled; in {judged:,} it is {row['hit_rate_settled']:.1%} of prompt tokens."
        )
    if row.get("hit_rate_drifts"):
        lines.append(f"the hit rate still changes after {judged:,} requests; capacity and verdict count what it was last.")
    if row.get("replay_requests"):
        apart = f"limited latencies differ by {row['replay_difference']:.1%}"
        lines.append(f"found with {row['requests']:,} requests; replayed with {row['replay_requests']:,}, {apart}.")
    return lines


def _lives_on_hits(row: Row) -> bool:
    return bool(row.get("capacity_without_hits_req_per_s"))


def _on_hits(row: Row) -> str:
    """Clause on a load that only a filled prefix cache carries."""
    after = {None: "", True: "; after a stop it comes back", False: "; after a stop or a burst it stays overloaded"}
    without = serving.value(row, "capacity_without_hits_req_per_s")
    return f"lives on its prefix hits: without them it carries {without}{after[row['recovers']]}"


def _by_seed(row: Row) -> str:
    """Interval of a rate found over several draws of the traffic."""
    if row.get("seeds") is None:
        return ""
    return f" ({row['seeds']} seeds: {format_value(row['rate_lo'], '1/s')} to {format_value(row['rate_hi'], '1/s')})"


def _refused(row: Row) -> str:
    """Clause on requests that are longer than the KV cache."""
    if not row.get("rejected"):
        return ""
    return (
        f": {row['rejected']:,} of {row['requests']:,} need more than a replica's KV cache, {row['kv_tokens']:,.0f} tokens in whole blocks"
    )


def _about(row: Row) -> str:
    """What was simulated."""
    steps = f"steps of {row['step_law']}" if row.get("step_law") else ""
    if row.get("model") is None:
        return f"{row['replicas']} {'replica' if row['replicas'] == 1 else 'replicas'} with {steps}"
    return f"{subject(row)} with {serving.layout(row)}{' and ' if steps else ''}{steps}"


def _sentence(row: Row) -> str:
    """Sentence on one run: its limits, p99 latencies and load."""
    about = _about(row)
    if row.get("fits") is False:
        return sentence(f"{about} does not run", f": {row['why']}")
    if not row["completed"]:
        return sentence(f"{about} completed no request", _refused(row))
    load = f", at {_load_text(row)}"
    if not row["stable"] and row["mean_ttft_s"] is None:
        return sentence(f"{about} is overloaded", load, "; latencies have no value")
    if row["kind"] == "found":
        about = f"{about} keeps the limits up to {serving.value(row, 'rate')}"
    if row["kind"] == "beyond":
        about = f"{about} keeps the limits at no rate, not even {serving.value(row, 'rate')}"
    if not row["measured"]:
        return sentence(f"{about} has no latency to tell", f": all {row['completed']:,} requests that ended are warm-up", load)
    known = [(name, serving.value(row, f"p99_{name}_s")) for name in ("ttft", "tpot") if row[f"p99_{name}_s"] is not None]
    latencies_text = ", ".join(f"p99 {name.upper()} {text}" for name, text in known)
    overloaded = "" if row["stable"] else "; overloaded"
    without = serving.value(row, "capacity_without_hits_req_per_s")
    for_good = "; a stop is for good" if row.get("recovers") is False else ""
    hits = f"; lives on prefix hits ({without} without{for_good})" if _lives_on_hits(row) else ""
    return sentence(f"{about}{_by_seed(row)}: {latencies_text}", overloaded, hits, load)


def _binds(row: Row) -> str:
    """What limits a run: its load over its capacity, and what is full."""
    if row.get("fits") is False or not row["completed"]:
        return ""
    text = f"load is {_load_text(row)}, {'stable' if row['stable'] else 'overloaded'}"
    full, batch = row.get("kv_used_mean"), row.get("decode_batch_mean")
    texts = [f"{full:.0%} of the KV cache is full"] if full is not None else []
    texts += [f"{format_value(batch, '')} sequences decode at once"] if batch is not None else []
    return f"{text}; on average {', '.join(texts)}" if texts else text


def _growing(row: Row) -> list[str]:
    """Note on latencies of an overloaded run."""
    if row.get("fits") is False or not row["completed"] or row["stable"]:
        return []
    if row["mean_ttft_s"] is None:
        return [f"the queue grows by {row['queue_growth_per_s']:.3g} requests a second"]
    return ["overloaded: the queue grows as long as the trace lasts, and these latencies with it"]


# -- a saved plan, played -------------------------------------------------------------------------------------------------------

QUANTITIES = ("ttft", "tpot", "itl", "e2e")
STATISTICS = ("mean", "p50", "p95", "p99")
MOST_NAMED = 3  # limits in the first sentence


def describe_plan(rows: Rows, statuses: Sequence[LimitStatus], percentiles: Sequence[float] = ()) -> output.Summary:
    """Summary of a played plan: the verdict, a row for each latency beside its limits, the load and what the engine meets."""
    row = next(iter(rows))
    if row.get("fits") is False:
        return output.Summary(f"The plan does not run: {row['why']}.")
    statistics = ("mean", *(f"p{percentile_mark(percent)}" for percent in percentiles)) if percentiles else STATISTICS
    table = []
    for quantity in QUANTITIES:
        limits = [status.limit for status in statuses if status.limit.quantity == quantity]
        most = ", ".join(f"{format_value(limit.most_s, 's')} {limit.statistic}" for limit in limits)
        cells = {statistic: serving.value(row, f"{statistic}_{quantity}_s") for statistic in statistics}
        within = row.get(f"{quantity}_within")
        share = "-" if within is None else f"{within:.1%}"
        table.append({"latency": quantity.upper(), **cells, "limit": most or "-", "requests within": share})
    share = row.get("utilisation")
    of_capacity = f"load is {share:.0%} of capacity ({serving.value(row, 'capacity_req_per_s')})" if share else "the load"
    if row.get("users"):
        rate = serving.value(row, "req_per_s")
        load = f"load: {row['users']} users who each wait for an answer and ask again; {rate} of requests are answered."
    else:
        rate, where = serving.value(row, "offered_req_per_s"), f"{serving.layout(row)}, {serving.formats(row)}"
        load = f"load: {rate} of requests on {where}; {of_capacity}, {'stable' if row['stable'] else 'not stable'}."
    close = " and ".join(status.limit.words for status in statuses if status.is_close)
    close_notes = [f"{close}: the limit lies within the error of so few requests; more --requests decide."] if close else []
    count = f"in {row['measured']:,} requests"
    broken = [status for status in statuses if not status.is_met]
    figures = ", ".join(
        f"{status.limit.words} {'without a value' if status.simulated is None else format_value(status.simulated.value, 's')} of "
        f"{format_value(status.limit.most_s, 's')}" for status in (broken or statuses)[:MOST_NAMED]
    )  # fmt: skip
    if not row["stable"]:
        headline = f"Overloaded: {of_capacity}, so the queue grows and {'no limit is met' if statuses else 'latencies have no value'}."
    elif not row["measured"]:
        headline = f"The plan has no latency to tell: all {row['completed']:,} requests that ended are warm-up."
    elif not statuses:
        latencies_text = f"p95 TTFT {serving.value(row, 'p95_ttft_s')}, p95 TPOT {serving.value(row, 'p95_tpot_s')}"
        headline = f"The plan is stable and has no limits: {latencies_text}, {count}."
    elif broken:
        verdict_text = "The limit is broken" if len(statuses) == 1 else f"{len(broken)} of {len(statuses)} limits are broken"
        headline = f"{verdict_text}: {figures}, {count}."
    else:
        headline = f"Every limit is met: {figures}, {count}."
    remarks = [load, *verdict(row), *close_notes, *sensitive(row), *rejected_requests(row), DEFINED]
    return output.Summary(headline, ("latency", *statistics, "limit", "requests within"), people=Listing(table), remarks=remarks)


# -- pictures -------------------------------------------------------------------------------------------------------------------

MOST_BINS = 200
MOST_REQUESTS = 400
SERIES = (("waiting", "Requests waiting, all replicas", "whole", ""),
          ("running", "Requests in service (the batch), all replicas", "compute", ""),
          ("kv_blocks", "KV cache that requests hold (share of the whole)", "kv", "share"))  # fmt: skip
PERCENTILES = (("p50", "compute", ()), ("p95", "weights", (6, 3)), ("p99", "kv", (2, 3)))
LATENCIES = (("ttft", "Time to first token (TTFT)"), ("tpot", "Time per output token (TPOT)"))


def pictures(run: SimulatedRun | None, limits: Mapping[str, float]) -> dict[str, PictureOf]:
    """Pictures of a simulation by name: over time for one load, percentiles along several, the timetable; `limits` by column."""

    def points(rows: Rows) -> tuple[SimulatedRun, list[Row]]:
        simulated: list[Row] = [row for row in rows if row["kind"] == "point"]
        if not simulated or run is None:
            raise BadValue("--plot", "no layout that runs" if simulated else "no rows", "a run to draw")
        return run, simulated

    def loads(rows: Sequence[Row]) -> str:
        return next((load for load in ("rate", "users") if len({row.get(load) for row in rows}) > 1), "")

    def time(rows: Rows, view: View) -> Picture:
        played, simulated = points(rows)
        load = loads(simulated)
        return latencies(simulated, load, limits, view) if load else over_time(played, simulated[-1], limits, view)

    def latency(rows: Rows, view: View) -> Picture:
        _, simulated = points(rows)
        if not loads(simulated):
            raise BadValue("--picture", "latency", "several rates or numbers of users, such as --rate 1..8+1")
        return latencies(simulated, loads(simulated), limits, view)

    def trains(rows: Rows, view: View) -> Picture:
        played, (*_, row) = points(rows)
        departures, boardings = runs.timetable(played)
        if not departures:
            raise BadValue("--picture", "trains", "steps that leave on a clock: --departures 20ms or drain")
        beat, seats = float(played.rules.departures), max(train.riders for train in departures)
        fill = f"trains are {row['train_fill']:.0%} full" if row.get("train_fill") is not None else f"{seats} ride at most"
        wait = format_value(row["mean_queue_s"], "s")
        title = f"A train leaves every {format_value(beat, 's')}, full or not: {fill}, and a request waits {wait}"
        return timetable(departures, boardings, beat, view, title=title, subtitle=f"{_about(row)}, one replica, where most board")

    return {"time": time, "latency": latency, "trains": trains}


def over_time(run: SimulatedRun, row: Row, limits: Mapping[str, float], view: View) -> Picture:
    """Queue, batch, KV cache and TTFT over the time of one run; `limits` by column, such as p99_ttft_s."""
    replicas = [curves(state) for state in run.states]
    times = max((curve["time_s"] for curve in replicas), key=len)
    sums = {key: np.zeros(len(times)) for key, *_ in SERIES}  # over all replicas
    for curve in replicas:
        for key, total in sums.items():
            total[: len(curve[key])] += curve[key]
    sums["kv_blocks"] /= run.rules.capacity * len(replicas)
    stride, end = -(-len(times) // MOST_BINS), float(times[-1]) or 1.0
    points = [{"t": float(times[at]), **{key: float(total[at : at + stride].mean()) for key, total in sums.items()}}
              for at in range(0, len(times), stride)]  # fmt: skip
    panels = []

    def add(heading: str, parts: Sequence[plot.Part], values: Sequence[float | None], unit: str, room: float) -> None:
        number = len(panels)
        title = "Time since the first request" if number > 1 else ""
        panels.append(plot.Plot(name=f"time{number}", parts=parts, heading=heading, columns=2, height=170,
                                x=scale.AxisScale(title, [0.0, end], "s", ends=(0.0, end), log=False, most=5),
                                y=scale.AxisScale("", values, unit, zero=True, log=False, most=5, room=room)))  # fmt: skip

    for key, heading, meaning, unit in SERIES:
        line = plot.Series(rows=points, x="t", y=key, meaning=meaning, steps="step-after")
        add(heading, [line], [point[key] for point in points], unit, 0.15)
    at = np.flatnonzero(run.completed)
    at = at[:: -(-len(at) // MOST_REQUESTS) or 1]
    ttft = (run.first - run.arrival) * run.first_token_factor
    requests = [{"t": float(run.arrival[place]), "ttft": float(ttft[place])} for place in at]
    dots = plot.Series(rows=requests, x="t", y="ttft", meaning="compute", width=0, dots=10, opacity=0.5)
    limit = next((value for key, value in limits.items() if "ttft" in key), None)
    levels = [] if limit is None else [plot.RuleLines(y=[limit], text=f"limit {format_value(limit, 's')}", meaning="ink")]
    first_tokens = [*(request["ttft"] for request in requests), limit]
    add("Time to first token of a request, by its arrival", [dots, *levels], first_tokens, "s", 0.12)
    load = f"{format_value(row['rate'], '1/s')} offered" if row.get("rate") else f"{row.get('users')} users"
    title = f"{row['waiting_mean']:.2g} requests wait on average, and the KV cache is at most {row['kv_used_peak']:.0%} full"
    if not row.get("stable", True):
        title = "The queue grows without end: more arrives than the replicas finish"
    caption = (
        "A queue that returns to nothing again and again is stable; where the KV cache is full, requests wait however idle the chips are."
    )
    subtitle = f"{_about(row)}, {load}, {row['completed']:,} requests completed"
    return frame.compose(view, [panels[:2], panels[2:]], title=title, subtitle=subtitle, caption=caption)


def latencies(rows: Sequence[Row], load: str, limits: Mapping[str, float], view: View) -> Picture:
    """Percentiles of TTFT and TPOT against the rate or the users, with saturation."""
    rows = sorted((row for row in rows if row["kind"] == "point" and row.get(load) is not None), key=lambda row: row[load])
    known = [row for row in rows if row.get("p99_ttft_s") is not None]
    if not known:
        raise BadValue("--plot", "no rate that is stable", "rates below capacity")
    able = next((row["capacity_req_per_s"] for row in rows if row.get("capacity_req_per_s")), None) if load == "rate" else None
    across = [row[load] for row in rows]
    x = scale.AxisScale("Requests per second offered" if load == "rate" else "Users who wait for an answer and ask again", [*across, able],
                        log=max(across) / max(min(across), 1e-9) > 30, zero=load == "rate")  # fmt: skip
    saturated = [] if able is None else [plot.Span(start=able, end=math.inf, text="saturated")]
    panels = []
    for number, (key, heading) in enumerate(LATENCIES):
        points = [{"x": row[load], **{name: row[f"{name}_{key}_s"] for name, *_ in PERCENTILES}} for row in known]
        lines = [plot.Series(rows=points, y=name, meaning=meaning, text=name, dash=dash, dots=22) for name, meaning, dash in PERCENTILES]
        values = [point[name] for point in points for name, *_ in PERCENTILES]
        limit = next(((column, most) for column, most in limits.items() if key in column), None)
        levels = []
        if limit:
            words = f"limit on {limit[0].split('_')[0]}: {format_value(limit[1], 's')}"
            levels = [plot.RuleLines(y=[limit[1]], text=words, meaning="ink")]
        y = scale.AxisScale("", [*values, limit[1] if limit else None], "s", zero=max(values) / min(values) < 15)
        parts = [*saturated, *lines, *levels]
        panels.append(plot.Plot(name=f"latency{number}", x=x, y=y, parts=parts, heading=heading, columns=2, height=260, flag=load))
    first, last = known[0], known[-1]
    title = f"p99 TTFT goes from {format_value(first['p99_ttft_s'], 's')} to {format_value(last['p99_ttft_s'], 's')} as the load grows"
    title += f"; the replicas saturate at {format_value(able, '1/s')}" if able else ""
    caption = (
        "Half of the requests are faster than p50, one in a hundred is slower than p99; beyond saturation the queue grows without end."
    )
    subtitle = f"{_about(first)}, simulated; percentiles over requests"
    return frame.compose(view, [panels], title=title, subtitle=subtitle, caption=caption)


def timetable(departures: Sequence[Departure], boardings: Sequence[Boarding], beat: float, view: View, *, title: str,
              subtitle: str) -> Picture:  # fmt: skip
    """Steps that leave on a clock, as the lecture's trains do: riders of each above, requests that wait for theirs below."""
    start = departures[0].time_s
    ends = (-1.5 * beat, departures[-1].time_s - start + beat / 2)
    x = scale.AxisScale("Time since the first of these departures", ends, "s", ends=ends, log=False, most=5)
    carriages, half = [], beat * 0.3
    for train in departures:  # those aboard, and those who board on top of them
        at, aboard = train.time_s - start, train.riders - train.boarded
        carriages += [{"x": at - half, "x2": at + half, "y": low, "y2": high, "meaning": meaning}
                      for low, high, meaning in ((0, aboard, "compute"), (aboard, train.riders, "kv"))]  # fmt: skip
    waits = [{"x": entry.arrival_s - start, "x2": entry.departure_s - start, "y": place + 0.5, "y2": place + 0.5, "meaning": "network"}
             for place, entry in enumerate(boardings[:MOST_REQUESTS])]  # fmt: skip
    leaving = plot.RuleLines(x=[train.time_s - start for train in departures], data="departures")
    stay = any(train.riders > train.boarded for train in departures)
    seats = max(train.riders for train in departures)
    riders = plot.Plot(name="riders", x=x, height=150,
                       y=scale.AxisScale("", [0.0, seats], "count", zero=True, log=False, most=5, room=0.15),
                       parts=[plot.Boxes(rows=carriages)], heading="Sequences in each departing step",
                       keys=[*([("■ still aboard", "compute")] if stay else []), ("■ boarding here", "kv")])  # fmt: skip
    queue = plot.Plot(name="waits", x=x, y=scale.AxisScale("", [0.0, len(boardings)], "count", zero=True, log=False, most=4, falls=True),
                      parts=[plot.Boxes(rows=waits, line=1.5), leaving], heading="Requests in order of arrival, waiting for their train",
                      height=190)  # fmt: skip
    caption = "Each line below is one request from its arrival to the departure it boards: half a beat on average while seats are free."
    return frame.compose(view, [[riders], [queue]], title=title, subtitle=subtitle, caption=caption)
