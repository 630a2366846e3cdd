"""Words and picture of `headway probe`: what a server's answers tell of its step, and what to ask next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.listing import Rows, format_value
from headway.reality.probe.budget import Limits, Spending
from headway.reality.probe.observed import ROOM, ServerFigures, is_told
from headway.reality.probe.run import ProbeRun
from headway.reality.probe.schedule import LOAD, WARM_UP
from headway.report.output import Help, Summary
from headway.report.pictures import grid
from headway.report.words import number_of, sentence

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

VIEW = (
    "stage", "prompt", "concurrency", "requests", "mean_ttft_s", "p99_ttft_s", "mean_tpot_s", "p99_itl_s", "output_tok_per_s", "decoding",
    "waiting", "kv_used", "preemptions",
)  # fmt: skip
NARROW = ("prompt", "concurrency", "mean_ttft_s", "mean_tpot_s", "output_tok_per_s", "decoding")
PLAN_VIEW = ("stage", "prompt", "output", "concurrency", "requests", "tokens_in", "tokens_out", "fits")
BESIDE = "sent beside them: GET /v1/models once, GET /metrics at most twice a second; no proxy, no redirect, a retry only where it asks"
REFUSED = {"ignore_eos": "answers may end early", "stream_options": "tokens are counted by events"}
FAR = 0.25  # of a step, from which the line through all batches misses that of one request
BUSY = 0.5  # requests of others, from which a server was not alone


def _s(seconds: float | None) -> str:
    return format_value(seconds, "s")


def before(where: str, most: Limits, headers: str, file: str) -> list[str]:
    """Notes of a dry run: the budget, what goes along, what is written."""
    return [
        f"budget: at most {most.requests:,} requests, {most.seconds:g} s, {most.tokens_in:,} tokens in, {most.tokens_out:,} tokens out",
        BESIDE,
        f"headers that go along, their values hidden: {headers}" if headers else "no key and no header of yours goes along",
        f"prompts are drawn words that say nothing; {file} would hold times and counts alone, no prompt, no answer, no key",
    ]


def planned(rows: Rows, where: str) -> Summary:
    """What would be sent."""
    fitting = [row for row in rows if row["fits"]]
    total = {key: sum(row[key] for row in fitting) for key in ("requests", "tokens_in", "tokens_out")}
    text = f"Nothing was sent; to {where} would go {number_of(total['requests'], 'request')} with {total['tokens_in']:,} tokens"
    beyond = len(list(rows)) - len(fitting)
    more = f"; the budget does not hold {number_of(beyond, 'stage')}" if beyond else ""
    return Summary(sentence(text, f" for {total['tokens_out']:,} back", more), PLAN_VIEW)


def summary(result: ProbeRun, server: ServerFigures, path: str) -> Summary:
    """What the server does, what binds it, and the command that says why."""
    step = server.step
    parts = []
    if step is not None:
        slopes = [f"{_s(step.request_s)} per request"] if is_told(step.request_s, step.request_half) else []
        slopes += [f"{_s(1000 * (step.token_s or 0.0))} per 1,000 tokens of context"] if is_told(step.token_s, step.token_half) else []
        start = "Tokens come every" if server.is_flat else "A step takes"
        parts.append(" + ".join([f"{start} {_s(step.fixed_s)}", *slopes]))
    else:
        parts.append("The server answered, but no two tokens of a request tell its step")
    limit = f"at most {server.most_decoding:g} requests decode at once" if server.is_limited else ""
    parts += [f"; {limit}" if limit else "", f"; departures every {_s(server.interval_s)}" if server.interval_s else ""]
    parts += [f"; TTFT alone {_s(server.unloaded_s)}" if server.unloaded_s else ""]
    command = f"headway score --vllm {path} --on MACHINE --model MODEL"
    helps = [Help(change="say what it runs on", effect=f"calibrated figures, what binds and what would help; run: {command}")]
    return Summary(sentence(*parts), VIEW, binds=_binds(result, server), helps=helps, first=NARROW, remarks=_remarks(server))


def _binds(result: ProbeRun, server: ServerFigures) -> str:
    """The largest part of a step at the highest load, or the batch limit."""
    step, runs = server.step, result.of_kind(LOAD)
    if step is None or server.is_flat or not runs:
        return ""
    batch = server.most_decoding
    context = max(run.stage.prompt for run in runs) * batch
    shares = {"its fixed part (weights, launch)": step.fixed_s, "what each request adds": (step.request_s or 0.0) * batch,
              "context (KV cache)": (step.token_s or 0.0) * context}  # fmt: skip
    total = sum(shares.values()) or 1.0
    name, most = max(shares.items(), key=lambda item: item[1])
    limit = f"; more than {batch:g} requests wait for a seat" if server.is_limited else ""
    longest = max(run.stage.prompt for run in runs)
    return f"{name}, {most / total:.0%} of a step of {batch:g} requests with prompts of {longest:,} tokens{limit}"


def _remarks(server: ServerFigures) -> list[str]:
    step, lines = server.step, []
    if step is not None:
        halves = [("the fixed part", step.fixed_s, step.fixed_half), ("the slope by request", step.request_s, step.request_half),
                  ("the slope by context", step.token_s, step.token_half)]  # fmt: skip
        unknown = [name for name, value, half in halves if not is_told(value, half)]
        lines += [f"not told apart from noise here: {', '.join(unknown)}"] if unknown else []
        sure = [f"{name} ± {_s(half)}" for name, value, half in halves[:2] if half and is_told(value, half)]
        lines += [f"90 % intervals: {', '.join(sure)}"] if sure else []
        if server.is_flat and server.interval_s:
            lines.append(f"that is a number of whole departures: a step is up to {_s(server.interval_s)} shorter")
        elif server.is_flat:
            lines.append("no clock of departures was told apart: on a timetable this is its interval, and a step is shorter")
        line = step.fixed_s + (step.request_s or 0.0)
        if server.alone is not None and server.interval_s is None and abs(line / server.alone.fixed_s - 1) > FAR:
            lines.append(f"no line holds from one request on: alone a step takes {_s(server.alone.fixed_s)}, by the line {_s(line)}")
    if not server.is_limited and server.most_decoding:
        further = "longer answers (--output)" if server.most_sent >= ROOM * server.most_decoding else "a higher --concurrency"
        lines.append(f"no batch limit shows: {server.most_decoding:g} requests decoded at once; {further} would look further")
    if server.prefill_tok_per_s:
        lines.append(f"a prompt alone is read at {format_value(server.prefill_tok_per_s, 'token/s')}")
    return lines


def notes(result: ProbeRun, spending: Spending, seed: int) -> list[str]:
    """What ended the probe, what it spent, and how it counted."""
    requests = [request for run in result.stages for request in run.requests]
    warm = [request for run in result.of_kind(WARM_UP) for request in run.requests]
    lines = [f"stopped: {result.fault}; what was measured before is kept"] if result.fault else []
    lines += [f"stopped: {result.stopped}"] if result.stopped else []
    lines += ["interrupted: stages that are missing were not sent"] if result.interrupted else []
    lines += result.notes
    if result.before is not None and (result.before.running or 0.0) + (result.before.waiting or 0.0) >= BUSY:
        lines.append(f"others used the server: {result.before.running or 0:g} requests ran before the probe; figures are of both together")
    if not all(request.is_counted for request in requests):
        lines.append("tokens are counted by events, since the server sends no usage: an event of several tokens counts as one")
    if any(len(request.times) < request.output_tokens / 1.5 for request in requests):
        lines.append("an event holds several tokens: steps are times between events over the tokens that the server counts in them")
    if not all(request.is_ended for request in requests):
        lines.append("the server does not end its streams; each was closed after its last token")
    lines += [f"the server refuses {name}: {effect}" for name, effect in REFUSED.items() if name not in result.protocol.more]
    if warm:
        lines.append(f"warm-up, left out of the figures: TTFT {', '.join(_s(request.ttft_s) for request in warm)}")
    if len(result.models) > 1:
        lines.append(f"the server lists {len(result.models)} models; the first was asked: --served-model names another")
    spent = f"{spending.requests:,} requests, {spending.tokens_in:,} tokens in and {spending.tokens_out:,} out, {spending.seconds:.0f} s"
    return [*lines, f"spent of the budget: {spent}; --seed {seed} sends the same prompts again"]


def drawing(rows: Sequence[dict], view: View) -> Picture:
    """TTFT, TPOT and rate by concurrency, a line for each length of prompts."""
    loads = [row for row in rows if row["stage"] == LOAD]
    title = "Latency and rate of the server by requests at once"
    rows = [row | {"prompt": round(row["prompt"])} for row in loads]
    panels = ("mean_ttft_s", "mean_tpot_s", "output_tok_per_s", "decoding")
    about = "measured from outside; a line for each length of prompts"
    return grid.picture(rows, "concurrency", panels, ("prompt",), view, title=title, about=about)
