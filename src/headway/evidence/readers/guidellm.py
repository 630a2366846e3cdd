"""Reader of GuideLLM's benchmarks.json: one object with a list of benchmarks, each a load with its distributions of metrics.

Format: vllm-project/guidellm, src/guidellm/benchmark/schemas/generative/ (metrics.py, benchmark.py, report.py). Each metric holds its
distribution by status of the requests. Its inter-token latency is a request's time after the first token over its later tokens, which
is TPOT here; its time per output token counts the first one too. The file states no machine, layout or number formats.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headway.core.errors import BadFile
from headway.core.measured import LENGTH, REQUEST_RATE, REQUEST_TIME, REQUESTS, TOKEN_RATE, TPOT, TTFT, USERS
from headway.core.schema import Field
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RecordLine, RunFields, RunMachine, Unusable, model, place
from headway.evidence.rows.row import BadRow, MeasuredRow

WHAT = "a report of GuideLLM"
SOURCE = "guidellm benchmark"
RATED = ("constant", "poisson")  # strategies that send at a rate


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each benchmark of a report, and those without a row with the reason; BadFile if unreadable."""
    entries = [*_benchmarks(path)]
    if not entries:
        raise BadFile(path, "holds no result of GuideLLM: no object has a list named benchmarks")
    return files.rows_of(path, entries, lambda run, line, name: _row(run, line, name, user_input))


def _benchmarks(path: str | Path) -> Iterator[RecordLine]:
    """Each benchmark of a report, with the report's arguments, which name the model."""
    for entry in files.json_records(files.text_of(path), path):
        if entry.record is None:
            yield entry
            continue
        benchmarks = entry.record.get("benchmarks")
        for benchmark in benchmarks if isinstance(benchmarks, list) else ():
            if isinstance(benchmark, dict):
                yield RecordLine(line=entry.line, record={"report_args": entry.record.get("args"), **benchmark})


def _row(run: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    prompt, output, ttft, tpot, latency, through = (
        _mean(run, metric, q, scale)
        for metric, q, scale in (
            ("prompt_token_count", LENGTH, 1.0), ("output_token_count", LENGTH, 1.0), ("time_to_first_token_ms", TTFT, 1e-3),
            ("inter_token_latency_ms", TPOT, 1e-3), ("request_latency", REQUEST_TIME, 1.0), ("requests_per_second", REQUEST_RATE, 1.0),
        )
    )  # fmt: skip
    if not prompt or not output:
        raise Unusable("prompt_token_count and output_token_count: missing, so no text of known length was generated")
    strategy = _inner(run, ("config", "strategy"), ("args", "strategy"), ("scheduler", "strategy"))  # the latter two in older reports
    args = _inner(run, ("report_args",), ("config", "backend"), ("benchmarker", "backend"), ("worker",), key="model")
    served = files.text(args, "model")
    kind = files.text(strategy, "type_")
    rate = files.needed(strategy, REQUEST_RATE, "rate") if kind in RATED else None
    users = 1.0 if kind == "synchronous" else files.positive(strategy, USERS, "streams") if kind == "concurrent" else None
    inside = max(through * latency, 1.0) if through and latency else _mean(run, "request_concurrency", USERS)
    if not (users or inside):
        raise Unusable(f"strategy {kind or 'not stated'}: neither its users nor requests_per_second and request_latency")
    at = place(user_input, RunMachine(hardware=""), WHAT)
    tokens = _mean(run, "output_tokens_per_second", TOKEN_RATE) or (through * output if through else None)
    return files.measured_row(
        user_input, at, line=line, id=name, model=model(user_input, served, WHAT), mode="serving_concurrency", engine="vLLM",
        prompt=prompt, output=output, concurrency=users or inside, ttft_s=ttft, tpot_s=tpot if output > 1 else None,
        output_tok_per_s=tokens, input_tok_per_s=through * prompt if through else None,
        source=SOURCE if users else f"{SOURCE}, {'open loop' if rate else 'all at once'} (users by Little's law)",
        reliability="A" if users else "B", roofline="tpot_partial" if users else "no", request_rate=rate,
        requests=files.positive(files.inner(run, "metrics", "request_totals"), REQUESTS, "successful"),
        length_cv=files.scatter(files.inner(run, "metrics", "output_token_count", "successful"), "mean", "std_dev"),
        month=files.month(run, "start_time"),
    )  # fmt: skip


def _mean(run: Record, metric: str, q: Field, scale: float = 1.0) -> float | None:
    """Mean of a metric over the successful requests, in SI."""
    try:
        return files.positive(files.inner(run, "metrics", metric, "successful"), q, "mean", scale=scale)
    except Unusable as error:
        raise Unusable(f"{metric}.{error}") from None


def _inner(run: Record, *places: tuple[str, ...], key: str = "") -> Record:
    """The first of some records of a benchmark that is there, and has a text `key`; empty if none is."""
    records = (files.inner(run, *keys) for keys in places)
    return next((record for record in records if (files.text(record, key) if key else record)), {})
