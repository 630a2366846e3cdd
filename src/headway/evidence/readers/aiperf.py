"""Reader of the artifact folder of AIPerf or GenAI-Perf: profile_export_aiperf.json / profile_export_genai_perf.json, or their .csv.

Format: ai-dynamo/aiperf, docs/reference/json-export-schema.md (the unit beside a value is authoritative),
src/aiperf/common/models/export_models.py, src/aiperf/config/phases.py (`input_config.phases`; before it `input_config.loadgen`);
triton-inference-server/perf_analyzer, genai-perf, json_exporter.py (`input_config.perf_analyzer.stimulus`, before it `concurrency`).
The files state no engine, machine, layout or number formats; GPU telemetry, if on, names the chips but not which of them served.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core.csv_text import csv_lines
from headway.core.errors import BadFile, clip
from headway.core.measured import LENGTH, REQUEST_RATE, REQUEST_TIME, REQUESTS, TOKEN_RATE, TPOT, TTFT, TURNS, USERS
from headway.core.schema import Field
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RecordLine, RunFields, RunMachine, Unusable, model, one_model, place
from headway.evidence.rows.row import BadRow, MeasuredRow

WHAT = "an artifact of AIPerf"
SOURCE = "aiperf"
MOST_FILES = 10_000
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "milliseconds": 1e-3, "nanoseconds": 1e-9,
         "microseconds": 1e-6}  # fmt: skip
_NOT_RUNS = ("aggregate", "collated", "timeslice", "server_metrics")
_USERS = re.compile(r"concurrency[-_]?(\d+)", re.I)
_UNIT = re.compile(r"\s*\(([^()]*)\)\s*$")
OPEN = ("poisson", "gamma", "constant")
METRICS = {
    "input_sequence_length": LENGTH, "output_sequence_length": LENGTH, "request_throughput": REQUEST_RATE, "request_latency": REQUEST_TIME,
    "output_token_throughput": TOKEN_RATE, "time_to_first_token": TTFT, "inter_token_latency": TPOT, "request_count": REQUESTS,
    "error_request_count": REQUESTS,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _SentRequest:
    """Load of a run: concurrent users, or requests per second; None for what the file does not state."""

    users: float | None = None
    rate: float | None = None


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each run below a folder or in a file, and the runs that have none with the reason."""
    rows: list[MeasuredRow] = []
    bad: list[BadRow] = []
    summaries = exports(Path(path))
    model_names: set[str] = set()
    for export in summaries:
        name = export.parent.name or export.stem
        try:
            entries = list(_csv(export) if export.suffix.lower() == ".csv" else files.json_records(files.text_of(export), export))
            model_names |= {_model(entry.record) for entry in entries if entry.record}
            new_rows, new_bad = files.rows_of(export, entries, lambda run, line, _, at=export: _row(run, line, at, user_input))
        except BadFile as error:
            if len(summaries) == 1:
                raise
            new_rows, new_bad = [], [BadRow(line=1, id=name, why=str(error))]
        rows, bad = rows + new_rows, bad + new_bad
    one_model(user_input, model_names, WHAT)
    return rows, bad


def exports(path: Path) -> list[Path]:
    """Summary files of the runs below a folder: the JSON of each folder, else its CSV; for a run with phases, its phases."""

    def is_summary(file: Path) -> bool:
        stem = file.name.rpartition(".")[0]
        is_export = file.suffix in (".json", ".csv") and stem.endswith(("_aiperf", "_genai_perf"))
        return is_export and not any(part in stem for part in _NOT_RUNS)

    try:
        if not path.is_dir():
            return [path]
        candidates = [file for file in sorted(path.rglob("*")) if is_summary(file)][:MOST_FILES]
    except (OSError, ValueError) as error:
        raise BadFile(path, f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    json_folders = {file.parent for file in candidates if file.suffix == ".json"}
    phased = {file.parent.parent.parent for file in candidates if file.parent.parent.name == "phases"}
    summaries = [file for file in candidates if (file.suffix == ".json" or file.parent not in json_folders) and file.parent not in phased]
    if not summaries:
        raise BadFile(path, "holds no profile_export_aiperf.json and no profile_export_genai_perf.json, here or in folders below")
    return summaries


def _csv(path: Path) -> Iterator[RecordLine]:
    """CSV summary (two tables) as the record that its JSON would give; it does not state the load."""
    metrics: dict[str, Any] = {}
    columns: list[str] = []
    for number, cells, why in csv_lines(files.text_of(path)):
        if why:
            raise BadFile(path, f"line {number}: {why}")
        if cells and cells[0] == "Metric":
            columns = cells[1:]
        elif len(cells) > 1 and columns:
            unit = _UNIT.search(cells[0])
            key = _UNIT.sub("", cells[0]).strip().lower().replace(" ", "_")
            values = dict(zip(columns, (cell.replace(",", "") for cell in cells[1:]), strict=False))
            metrics[key] = {"unit": unit[1] if unit else "", "avg": values.get("avg", values.get("Value", ""))}
    if not metrics:
        raise BadFile(path, "is no summary of AIPerf: no line begins with Metric")
    yield RecordLine(line=1, record=metrics)


def _row(run: Record, line: int, path: Path, user_input: RunFields) -> MeasuredRow:
    _refuse(run)
    prompt, output = _metric(run, "input_sequence_length"), _metric(run, "output_sequence_length")
    if not prompt or not output:
        raise Unusable("input_sequence_length and output_sequence_length: missing, so no text of known length was generated")
    request_rate, seconds = _metric(run, "request_throughput"), _metric(run, "request_latency")
    inside = max(request_rate * seconds, 1.0) if request_rate and seconds else None  # Little's law; at least the request itself
    load = _load(run, path)
    if load.users is None and inside is None:
        raise Unusable("neither the concurrency nor request_throughput and request_latency: how many users there were is not known")
    rate = _metric(run, "output_token_throughput") or (request_rate * output if request_rate else None)
    ends = files.inner(run, "telemetry_data", "endpoints").values()
    gpus = [gpu for end in ends if isinstance(end, dict) for gpu in files.inner(end, "gpus").values() if isinstance(gpu, dict)]
    chips = {files.text(gpu, "gpu_name") for gpu in gpus}  # of one kind, if telemetry was on
    at = place(user_input, RunMachine(hardware=chips.pop() if len(chips) == 1 else ""), WHAT)
    return files.measured_row(
        user_input, at, line=line, id=path.parent.name or path.stem, model=model(user_input, _model(run), WHAT),
        mode="serving_concurrency", prompt=prompt, output=output, concurrency=load.users or inside,
        ttft_s=_metric(run, "time_to_first_token"), tpot_s=_metric(run, "inter_token_latency"), output_tok_per_s=rate,
        input_tok_per_s=request_rate * prompt if request_rate else None,
        source=SOURCE if load.users else f"{SOURCE}, {'open loop' if load.rate else 'load not said'} (users by Little's law)",
        reliability="A" if load.users and not files.flag(run, "was_cancelled") and not _metric(run, "error_request_count") else "B",
        roofline="tpot_partial" if load.users else "no",
        length_cv=files.scatter(files.inner(run, "output_sequence_length"), "avg", "std"),
        request_rate=load.rate, requests=_metric(run, "request_count"), month=files.month(run, "start_time"),
    )  # fmt: skip


def _refuse(run: Record) -> None:
    """Raise Unusable for runs whose measurement does not fit a row."""
    if "metadata" in run and "metrics" in run:
        raise BadFile("profile_export.jsonl", "is one record a request: the folder, or profile_export_aiperf.json in it, has the summary")
    if not any(isinstance(run.get(key), dict) for key in ("request_latency", "request_throughput", "output_token_throughput")):
        raise Unusable("request_latency: missing, so no summary of AIPerf or GenAI-Perf")
    if _metric(run, "request_count") == 0:
        raise Unusable("request_count: 0, no request succeeded")
    turns = files.inner(run, "input_config", "input", "conversation", "turn")
    if (files.number(turns, "mean", TURNS) or 1) > 1:
        raise Unusable("conversations of several turns: prompts share a prefix, whose reuse is not told")


def _metric(run: Record, name: str) -> float | None:
    """Mean of a metric in SI, else its median; None if it was not measured."""
    block, q = run.get(name), METRICS[name]
    if block is None:
        return None
    if not isinstance(block, Mapping):
        raise Unusable(f"{name}: got {clip(block)!r}; wants a metric with its avg and its unit")
    unit, is_time = files.text(block, "unit").lower(), q.unit == "s"
    if is_time and unit not in UNITS and any(block.get(key) for key in ("avg", "p50")):
        raise Unusable(f"{name}.unit: got {unit!r}; wants a unit of time")
    try:
        value = files.positive(block, q, "avg", "p50", scale=UNITS.get(unit, 1.0) if is_time else 1.0)
        return 0.0 if value is None and name == "request_count" and files.number(block, "avg", q) == 0 else value
    except Unusable as error:
        raise Unusable(f"{name}.{error}") from None


def _load(run: Record, path: Path) -> _SentRequest:
    """Requested load: from the phase (AIPerf 0.8 on), from `loadgen` (before 0.8), or from `stimulus` (GenAI-Perf).

    A folder that states none may name its users: both tools call it MODEL-ENDPOINT-concurrencyN.
    """
    config = files.inner(run, "input_config")
    if "phases" in config:
        return _phase(config["phases"], path)
    load = files.inner(config, "loadgen") or files.inner(config, "perf_analyzer", "stimulus") or config
    if files.flag(files.inner(config, "input"), "fixed_schedule") or load.get("user_centric_rate"):
        raise Unusable("a replay by a schedule, or by users with pauses: no steady load to compare with")
    rate = _first(load, "request_rate", REQUEST_RATE)
    if rate:
        return _SentRequest(rate=rate)
    match = _USERS.search(path.parent.name)
    return _SentRequest(users=_first(load, "concurrency", USERS) or (float(match[1]) if match and int(match[1]) else None))


def _phase(phases: Any, path: Path) -> _SentRequest:
    """Measured phase of a run; with several phases, the phase that this folder is named for."""
    entries = [{"name": name, **body} for name, body in phases.items() if isinstance(body, dict)] if isinstance(phases, dict) else phases
    measured = [entry for entry in entries if isinstance(entry, dict) and entry.get("kind", entry.get("name")) != "warmup"
                and not entry.get("exclude_from_results")] if isinstance(entries, list) else []  # fmt: skip
    if len(measured) > 1:
        measured = [entry for entry in measured if entry.get("name") == path.parent.name]
    if len(measured) != 1:
        raise Unusable("several phases were pooled: each phase's own export, in phases/, can be read")
    phase, kind = measured[0], files.text(measured[0], "type") or "concurrency"
    if kind == "concurrency":
        return _SentRequest(users=_first(phase, "concurrency", USERS) or 1.0)
    if kind not in OPEN or files.positive(phase, REQUEST_RATE, "rate") is None:
        raise Unusable(f"a phase of type {kind}: no steady load to compare with")
    return _SentRequest(rate=files.positive(phase, REQUEST_RATE, "rate"))


def _first(load: Record, key: str, q: Field) -> float | None:
    """A number, or the only number of a list."""
    value = load.get(key)
    if isinstance(value, list):
        return files.positive({key: value[0]}, q, key) if len(value) == 1 else None
    return files.positive(load, q, key)


def _model(run: Record) -> str:
    """Name of the served model, from the keys that the tool's versions use."""
    config = files.inner(run, "input_config")
    places = (files.inner(config, "endpoint").get("model_names"), files.inner(config, "models").get("items"), config.get("models"),
              config.get("model_names"), config.get("model"))  # fmt: skip
    for value in places:
        first = value[0] if isinstance(value, list) and len(value) == 1 else value
        first = first.get("name") if isinstance(first, dict) else first
        if isinstance(first, str) and first:
            return first
    return ""


