"""The file of a probe: JSON lines as `vllm bench serve --save-result --save-detailed --append-result` writes them, one load a line.

`headway score --vllm` and `headway calibrate` read it. Format: vllm-project/vllm, vllm/benchmarks/serve.py. It holds no key and no prompt.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import numpy as np

from headway import __version__
from headway.reality.probe.run import ProbeRun, StageRun
from headway.reality.probe.schedule import LOAD
from headway.reality.probe.stream import StreamedRequest

KIND = "openai"  # backend where the server does not say its engine


def tpot_s(request: StreamedRequest) -> float | None:
    """Time per output token after the first, as vLLM's bench serve has it; None of one token."""
    return (request.e2e_s - request.ttft_s) / (request.output_tokens - 1) if request.output_tokens > 1 else None


def record(result: ProbeRun, run: StageRun, date: datetime) -> dict[str, Any]:
    """The record of a load."""
    requests = sorted(run.requests, key=lambda request: request.start)
    prompts = [request.prompt_tokens or run.stage.prompt for request in requests]
    outputs, begin = [request.output_tokens for request in requests], requests[0].start
    duration = max(request.times[-1] for request in requests) - begin
    times = {
        "ttft": [request.ttft_s for request in requests], "tpot": [tpot for request in requests if (tpot := tpot_s(request))],
        "itl": [gap for request in requests for gap in np.diff(request.times).tolist()], "e2el": [request.e2e_s for request in requests],
    }  # fmt: skip
    statistics = {
        f"{name}_{key}_ms": round(1000 * float(value), 6)
        for key, seconds in times.items() if seconds
        for name, value in (("mean", np.mean(seconds)), ("median", np.median(seconds)), ("p99", np.percentile(seconds, 99)))
    }  # fmt: skip
    return {
        "date": date.astimezone(UTC).strftime("%Y%m%d-%H%M%S"), "endpoint_type": (result.before.engine if result.before else KIND).lower(),
        "tool": f"headway probe {__version__}", "model_id": result.protocol.model or "unnamed", "num_prompts": run.stage.requests,
        "request_rate": "inf", "max_concurrency": run.stage.concurrency, "duration": duration, "completed": len(requests),
        "failed": run.failed, "total_input_tokens": sum(prompts), "total_output_tokens": sum(outputs),
        "request_throughput": len(requests) / duration, "output_throughput": sum(outputs) / duration,
        "counted_by": "server" if all(request.is_counted for request in requests) else "events",
    } | statistics | {
        "input_lens": prompts, "output_lens": outputs, "ttfts": times["ttft"],
        "itls": [np.diff(request.times).tolist() for request in requests],
        "start_times": [request.start - begin for request in requests],
    }  # fmt: skip


def text_of(result: ProbeRun, date: datetime) -> str:
    """The whole file; empty where no load was measured."""
    return "".join(json.dumps(record(result, run, date)) + "\n" for run in result.of_kind(LOAD))
