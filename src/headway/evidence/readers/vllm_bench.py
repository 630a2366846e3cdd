"""Reader of `vllm bench serve --save-result` (and --append-result): a JSON object per run, as in SGLang's bench_serving.

Format: vllm-project/vllm, vllm/benchmarks/serve.py, `main_async` and `benchmark` (result_json, process_one_metric) and
vllm/benchmarks/throughput.py (`--output-json`); sgl-project/sglang, python/sglang/bench_serving.py. The file states no machine,
layout or number formats, unless --metadata tp=8 version=0.11 added them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core.errors import clip
from headway.core.measured import ACCEPTED, LENGTH, REQUEST_RATE, REQUEST_TIME, REQUESTS, RUN_TIME, TOKEN_RATE, TOKENS, TPOT, TTFT, USERS
from headway.core.schema import Field
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RunFields, RunMachine, Unusable, model, one_model, place
from headway.evidence.rows.row import BadRow, MeasuredRow

WHAT = "a result of vllm bench"
SOURCE = "vllm bench serve"
# `backend` is the client's protocol; the OpenAI protocols do not identify the engine.
ENGINES = {"vllm": "vLLM", "sglang": "SGLang", "sglang-native": "SGLang", "sglang-oai": "SGLang", "tensorrt-llm": "TensorRT-LLM",
           "trt": "TensorRT-LLM", "llama.cpp": "llama.cpp", "tgi": "TGI", "lmdeploy": "LMDeploy", "deepspeed-mii": "DeepSpeed-MII",
           "scalellm": "ScaleLLM"}  # fmt: skip
FULL = 0.8  # least mean share of the allowed users present, for a run to count as a closed loop


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """Load of a run, and the reliability of the row that follows."""

    mode: str = "serving_concurrency"
    concurrency: float | None = None
    source: str = SOURCE
    reliability: str = "A"
    roofline: str = "tpot_partial"
    decoding: float | None = None  # sequences that decoded at once, mean over the run


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each run in a file, and the records without a row with the reason; BadFile or BadValue if unreadable."""
    entries = list(files.json_records(files.text_of(path), path))
    one_model(user_input, (files.text(entry.record, "model_id") for entry in entries if entry.record), WHAT)
    return files.rows_of(path, entries, lambda run, line, name: _row(run, line, name, user_input))


def _row(run: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    if "elapsed_time" in run and "total_num_tokens" in run:
        return _throughput(run, line, name, user_input)
    if "avg_latency" in run and "latencies" in run:
        raise Unusable("a result of `vllm bench latency` says neither the batch nor the lengths: use `vllm bench serve --save-result`")
    _refuse(run)
    completed = files.needed(run, REQUESTS, "completed")
    prompt, output = _length(run, "total_input_tokens", completed), _length(run, "total_output_tokens", completed)
    ttft, tpot = _time_s(run, "ttft", TTFT), _time_s(run, "tpot", TPOT)
    measured = _time_s(run, "e2el", REQUEST_TIME) or _time_s(run, "e2e_latency", REQUEST_TIME)
    load = _load(run, completed, ttft, measured or (ttft + tpot * (output - 1) if ttft and tpot else None))
    timed, drafts = load.mode == "serving_concurrency", _drafts(run)
    rate = files.positive(run, TOKEN_RATE, "output_throughput") or completed * output / files.needed(run, RUN_TIME, "duration")
    return files.measured_row(
        user_input, **_base(run, user_input), line=line, id=name, mode=load.mode, prompt=prompt, output=output,
        concurrency=load.concurrency, ttft_s=ttft if timed else None, tpot_s=tpot if timed and output > 1 else None, output_tok_per_s=rate,
        input_tok_per_s=rate * prompt / output, source=load.source, reliability=load.reliability, roofline=load.roofline,
        request_rate=_rate(run), requests=completed, decoding=load.decoding, length_cv=_scatter(run),
        itl_s=_stated_s(run, TPOT, "median_itl") if timed and output > 1 and not drafts else None, **drafts,
    )  # fmt: skip


def _drafts(run: Record) -> dict[str, Any]:
    """Speculation of a run: mean tokens of a step, and the drafts of one where vLLM counted them; empty without any."""
    length = files.positive(run, ACCEPTED, "spec_decode_acceptance_length", "accept_length")
    steps, drafted = (files.positive(run, TOKENS, f"spec_decode_{key}") for key in ("num_drafts", "draft_tokens"))
    if length is None and any(key.startswith("spec_decode") and run[key] for key in run):
        raise Unusable("spec_decode_acceptance_length: missing, and with speculative decoding a step yields so many tokens")
    if length is None or length == 1:
        return {}
    return {"accept_length": length, **({"draft_tokens": round(drafted / steps)} if steps and drafted else {})}


def _refuse(run: Record) -> None:
    """Raise Unusable for runs whose measurement does not fit a row."""
    if "completed" not in run:
        raise Unusable("completed: missing, so no result of `vllm bench serve --save-result`")
    if files.text(run, "ramp_up_strategy"):
        raise Unusable("the request rate was ramped up: no steady load to compare with")
    if files.number(run, "completed", REQUESTS) == 0:
        raise Unusable("completed: 0, no request succeeded")
    if "total_input_tokens" in run and "total_output_tokens" not in run:
        raise Unusable("total_output_tokens: missing, so no text was generated (an embedding or pooling run)")


def _length(run: Record, key: str, requests: float) -> float:
    """Mean tokens of a request, from those of all."""
    mean = files.needed(run, TOKENS, key) / requests
    if mean > LENGTH.high:
        raise Unusable(f"{key}: got {clip(run[key])}, which is {mean:.3g} tokens a request; wants at most {LENGTH.high:g}")
    return mean


def _scatter(run: Record) -> float | None:
    """Scatter of answers' lengths, where the file lists each one (SGLang's always, vLLM's with --save-detailed)."""
    lengths = run.get("output_lens")
    if not isinstance(lengths, list):
        return None
    return files.scatter_of([value for value in lengths if isinstance(value, int | float) and 0 < value <= LENGTH.high])


def _time_s(run: Record, name: str, q: Field) -> float | None:
    """Mean of a metric in seconds (the mean obeys Little's law), else its median; None if the server did not stream."""
    return _stated_s(run, q, f"mean_{name}", f"median_{name}")


def _stated_s(run: Record, q: Field, *keys: str) -> float | None:
    """The first of these times that the run states: milliseconds where the key ends so, else seconds, within the run's own time."""
    milliseconds = files.positive(run, q, *(f"{key}_ms" for key in keys), scale=1e-3)
    if milliseconds:
        return milliseconds
    for key in keys:
        seconds, lasted = files.positive(run, q, key), files.positive(run, RUN_TIME, "duration")
        if seconds and lasted and seconds > lasted:
            raise Unusable(f"{key}: got {seconds:g} s in a run of {lasted:g} s; likely milliseconds, which {key}_ms says")
        if seconds:
            return seconds
    return None


def _load(run: Record, completed: float, ttft: float | None, seconds: float | None) -> _Load:
    """Load of a run: a closed loop of users, a rate (users by Little's law), or all requests at once."""
    failed = files.number(run, "failed", REQUESTS) or 0.0
    users, rate = files.positive(run, USERS, "max_concurrency"), _rate(run)
    through = files.positive(run, REQUEST_RATE, "request_throughput") or completed / files.needed(run, RUN_TIME, "duration")
    inside = max(through * seconds, 1.0) if seconds else None  # Little's law; at least the request itself
    decoding = through * (seconds - ttft) if seconds and ttft and seconds > ttft else None
    if rate is not None:
        if inside is None:
            raise Unusable(f"request rate {rate:g}/s: without TTFT and TPOT, or E2EL, Little's law does not give the users at a time")
        return _Load(concurrency=inside, source=f"{SOURCE}, open loop (users by Little's law)", reliability="B", roofline="no",
                     decoding=decoding)  # fmt: skip
    if users is None and decoding:
        return _Load(concurrency=completed + failed, source=f"{SOURCE}, all at once", reliability="B", roofline="no", decoding=decoding)
    if users is None:
        return _Load(mode="offline_throughput", source=f"{SOURCE}, all at once", reliability="B", roofline="upper_bound_only")
    users = min(users, completed + failed)
    steady = not failed and (inside is None or inside >= FULL * users)
    return _Load(concurrency=users, reliability="A" if steady else "B", decoding=decoding)


def _rate(run: Record) -> float | None:
    """Offered requests per second; None if unlimited."""
    value = run.get("request_rate")
    unlimited = value == math.inf or (isinstance(value, str) and value.strip().lower() in ("inf", "infinity"))
    return None if unlimited else files.positive(run, REQUEST_RATE, "request_rate")


def _throughput(run: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    """Row of `vllm bench throughput --output-json`, which states only the sum of tokens: the given lengths must agree with it."""
    prompt, output = user_input.prompt, user_input.output
    if not (prompt and output):
        raise Unusable("a result of `vllm bench throughput` does not tell prompt from output: --prompt and --output say how long they were")
    requests, tokens = files.needed(run, REQUESTS, "num_requests"), files.needed(run, TOKENS, "total_num_tokens")
    if abs(requests * (prompt + output) / tokens - 1) > 0.02:
        raise Unusable(f"total_num_tokens: {tokens / requests:.6g} a request, not the {prompt + output:.6g} of --prompt and --output")
    rate = requests * output / files.needed(run, RUN_TIME, "elapsed_time")
    return files.measured_row(
        user_input, **_base(run, user_input), line=line, id=name, mode="offline_throughput", prompt=prompt, output=output,
        output_tok_per_s=rate, input_tok_per_s=rate * prompt / output, source="vllm bench throughput", reliability="A",
        roofline="upper_bound_only",
    )  # fmt: skip


def _base(run: Record, user_input: RunFields) -> dict[str, Any]:
    """Machine, layout, model and engine of a run; fields from --metadata count as the file's."""
    run_place = RunMachine(hardware="", tp=files.count(run, "tp", "tensor_parallel_size"), ep=files.count(run, "ep"),
                 pp=files.count(run, "pp", "pipeline_parallel_size"), dp=files.count(run, "dp", "data_parallel_size"))  # fmt: skip
    backend = files.text(run, "backend").lower() or files.text(run, "endpoint_type").lower()
    return {
        "at": place(user_input, run_place, WHAT), "model": model(user_input, files.text(run, "model_id"), WHAT),
        "engine": ENGINES.get(backend, "vLLM"), "engine_version": files.text(run, "version"), "month": files.month(run, "date"),
        "max_num_seqs": files.sequences(run, "max_num_seqs")
        or files.sequences(files.inner(run, "server_info"), "max_running_requests"),  # SGLang's
    }  # fmt: skip
