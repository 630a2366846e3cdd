"""`headway probe URL`: a running server, asked within a budget; what its answers tell, and what headway predicts of it."""

from __future__ import annotations

import functools
import secrets as random_source
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from headway.answers import arguments, benchmark_files, calibrate, score
from headway.core import schema
from headway.core.errors import INTERRUPTED, BadValue, HeadwayError
from headway.core.files import check_output, write_whole
from headway.core.listing import Listing
from headway.core.notes import note
from headway.evidence.questions import Calibrate, Probe, Score, UnsaidFacts
from headway.reality.probe.address import check, credentials, server_address
from headway.reality.probe.budget import Limits, ProbeBudget
from headway.reality.probe.http import ProbeTarget
from headway.reality.probe.observed import ServerFigures, decoding_at_once, figures
from headway.reality.probe.run import ProbeRun, StageRun
from headway.reality.probe.run import run as run_probe
from headway.reality.probe.saved import text_of, tpot_s
from headway.reality.probe.schedule import WARM_UP, ProbeStage, schedule
from headway.report import output
from headway.report import probe as words

FACTS = tuple(name for name in schema.fields(UnsaidFacts) if name not in ("prompt", "output", "eager"))
MOST_HELPS = 3


def run(args: Probe) -> output.Answer:
    """Answer with a row per stage; of a dry run the stages that would be sent."""
    address, keys = server_address(args.url), credentials(args.api_key_env, args.header)
    check(address, args.yes_remote, keys)
    most = Limits(**{"seconds" if name == "budget" else name: _numbers(args, name)[0] for name in schema.fields(ProbeBudget)})
    lengths, outputs = _numbers(args, "prompt"), _numbers(args, "output")
    if len(lengths) > 2 or len(outputs) > 1:
        raise BadValue("--prompt and --output", f"{len(lengths)} and {len(outputs)} lengths", "one or two of prompts, and one of answers")
    planned, beyond = schedule(lengths, outputs[0], _numbers(args, "concurrency"), most)
    silence = float(_numbers(args, "silence")[0])
    if args.dry_run:
        return _plan(args, planned, beyond, words.before(address.text, most, keys.names, args.out))
    path = check_output(args.out, "--out", args.replace_, "nothing was sent")
    _check_facts(args)
    seed = int(_numbers(args, "seed")[0]) if args.seed is not None else random_source.randbelow(2**31)
    target = ProbeTarget(address=address, secrets=keys, silence_s=silence)
    result, spending = run_probe(target, planned, most, seed, args.served_model or "")
    text = text_of(result, datetime.now(UTC))
    is_measured = any(stage.requests for stage in result.stages if stage.stage.kind != WARM_UP)
    if not is_measured and result.interrupted:
        raise KeyboardInterrupt
    if not is_measured:
        why = result.fault or result.stopped or "no load was answered"
        raise HeadwayError(f"{address.text}: {why}; {spending.requests} requests sent, nothing measured")
    unstored = "" if text else f"no load was answered: {path} is not written"
    try:
        write_whole(path, text) if text else None
    except OSError as error:
        unstored = f"{path} cannot be written ({error.strerror or error}): the runs stand here alone"
    note(*[unstored] * bool(unstored))
    if beyond:
        note(f"the budget does not hold {len(beyond)} of the stages that were wanted: --dry-run lists them")
    note(*words.notes(result, spending, seed))
    server = figures(result)
    rows = [_row(stage, server) for stage in result.stages if stage.requests]
    answer = output.Answer(Listing(rows), status=INTERRUPTED if result.interrupted else int(bool(unstored)))
    answer.pictures = {"load": words.drawing}
    answer.words = words.summary(result, server, str(path))
    if not unstored:
        _predict(args, answer, result, path)
    return answer


def _numbers(args: Probe, name: str) -> list[Any]:
    """Numbers of a field, one or several."""
    field = args.flags()[name].field
    field = schema.Field(integer=True, open_low=False, high=2**31) if name == "seed" else field
    values, drop_notes = schema.axis(str(getattr(args, name)), field, schema.flag(name))
    note(*drop_notes)
    numbers = [int(value) if field.integer else float(value) for value in schema.several(values)]
    if len(numbers) > 1 and name not in ("prompt", "output", "concurrency"):
        raise BadValue(schema.flag(name), getattr(args, name), "one value")
    return numbers


def _plan(args: Probe, planned: Sequence[ProbeStage], beyond: Sequence[ProbeStage], notes: Sequence[str]) -> output.Answer:
    """The stages that would be sent, and those that the budget does not hold."""
    rows = [
        {
            "stage": stage.kind, "prompt": stage.prompt, "output": stage.output, "concurrency": stage.concurrency,
            "requests": stage.requests, "tokens_in": stage.requests * stage.prompt,
            "tokens_out": stage.requests * stage.output, "fits": fits,
        }
        for stages, fits in ((planned, True), (beyond, False)) for stage in stages
    ]  # fmt: skip
    where = server_address(args.url).text
    return output.Answer(Listing(rows), describe=functools.partial(words.planned, where=where), notes=notes)


def _facts(args: Probe) -> dict[str, Any]:
    return {name: value for name in (*FACTS, "catalog") if (value := getattr(args, name))}


def _check_facts(args: Probe) -> None:
    """Raise an error for a machine or a model that does not exist, before anything is sent."""
    if args.on:
        benchmark_files.run_fields(Score.from_values({"vllm": args.out} | _facts(args)))
        if args.model:
            arguments.model(args.model, args)


def _row(run: StageRun, server: ServerFigures) -> dict[str, Any]:
    """What a stage measured, with the server's own counts and the figures of the whole probe."""
    requests, loads = run.requests, run.loads
    ttft = [request.ttft_s for request in requests]
    tpot = [value for request in requests if (value := tpot_s(request))]
    gaps = [gap for request in requests for gap in np.diff(request.times)]
    span = max(request.times[-1] for request in requests) - min(request.start for request in requests)
    tokens = sum(request.output_tokens for request in requests)
    counts = {
        name: max((value for load in loads if (value := getattr(load, name)) is not None), default=None)
        for name in ("running", "waiting", "kv_used")
    }
    preempted = [load.preemptions for load in loads if load.preemptions is not None]
    step, alone = server.step, server.alone
    return {
        "stage": run.stage.kind, "prompt": float(np.mean([request.prompt_tokens or run.stage.prompt for request in requests])),
        "output": tokens / len(requests), "concurrency": run.stage.concurrency, "requests": len(requests), "failed": run.failed,
        "mean_ttft_s": float(np.mean(ttft)), "p99_ttft_s": float(np.percentile(ttft, 99)),
        "mean_tpot_s": float(np.mean(tpot)) if tpot else None, "mean_itl_s": float(np.mean(gaps)) if gaps else None,
        "p99_itl_s": float(np.percentile(gaps, 99)) if gaps else None, "req_per_s": len(requests) / span, "output_tok_per_s": tokens / span,
        "decoding": decoding_at_once(run), **counts, "preemptions": preempted[-1] - preempted[0] if preempted else None,
        "step_fixed_s": step and step.fixed_s, "step_request_s": step and step.request_s, "step_context_s": step and step.token_s,
        "step_alone_s": alone and alone.fixed_s, "step_alone_context_s": alone and alone.token_s,
        "batch_limit": server.most_decoding if server.is_limited else None, "interval_s": server.interval_s,
        "prefill_tok_per_s": server.prefill_tok_per_s,
    }  # fmt: skip


def _predict(args: Probe, answer: output.Answer, result: ProbeRun, path: Path) -> None:
    """Put what `score` and `calibrate` say of the file into the words: what binds, what would help, what the runs change."""
    if not args.on:
        return
    answer.words.helps = []  # what it runs on is known
    values = _facts(args)
    if not args.model:
        values["model"] = result.protocol.model
        note(f"--model was guessed from the server's name of it, {result.protocol.model}: --model says another")
    try:
        scored = score.run(Score.from_values({"vllm": str(path)} | values))
        output.describe(scored)
        calibrated = calibrate.run(Calibrate.from_values({"rows": (str(path),)} | values))
    except (HeadwayError, KeyboardInterrupt) as error:
        note(f"no prediction: {str(error) or 'interrupted'}; the runs are in {path}")
        answer.status = answer.status if isinstance(error, HeadwayError) else INTERRUPTED
        return
    flags = shlex.join(Calibrate.from_values({"rows": (str(path),)} | values).command()[1:])
    keep = f"calibrated: {calibrated.words.headline} headway calibrate {flags} --save NAME keeps it"
    answer.words.remarks = [scored.words.headline, keep, *answer.words.remarks, *calibrated.notes]
    answer.words.binds = scored.words.binds or answer.words.binds
    answer.words.helps = scored.words.helps[:MOST_HELPS]
