"""Reader of the report that trtllm-bench writes with --report_json.

Format: NVIDIA/TensorRT-LLM, tensorrt_llm/bench/dataclasses/reporting.py (read 2026-11-25): engine, world_info, request_info, performance,
and streaming_metrics where the run streamed. Its TPOT is a request's time after the first token over its later tokens, as here; its
requests at a time are a mean by Little's law, those that wait among them. The report names no chip.
"""

from __future__ import annotations

from pathlib import Path

from headway.core.measured import LENGTH, REQUEST_RATE, REQUESTS, TOKEN_RATE, TPOT, TTFT, USERS
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RunFields, RunMachine, Unusable, model, one_model, place
from headway.evidence.rows.row import BadRow, MeasuredRow

WHAT = "a report of trtllm-bench"
SOURCE = "trtllm-bench report"
FORMATS = {"": "", "fp8": "fp8", "fp8_block_scales": "fp8", "nvfp4": "nvfp4", "w4a8_awq": "int4", "w4a16_awq": "int4", "int8": "int8"}
DTYPES = {"bfloat16": "bf16", "float16": "fp16"}


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each report in a file, and the records without a row with the reason; BadFile if the file is unreadable."""
    entries = list(files.json_records(files.text_of(path), path))
    one_model(user_input, (files.text(files.inner(entry.record, "engine"), "model") for entry in entries if entry.record), WHAT)
    return files.rows_of(path, entries, lambda run, line, name: _row(run, line, name, user_input))


def _row(run: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    engine, world, requests, performance, streamed = (
        files.inner(run, key) for key in ("engine", "world_info", "request_info", "performance", "streaming_metrics")
    )
    if not requests or not performance:
        raise Unusable("request_info and performance: missing, so no report of trtllm-bench")
    if run.get("decoding_stats"):
        raise Unusable("decoding_stats: speculative decoding, and a row holds steps of one token a user")
    tp, ep, pp, chips = (files.count(world, key) for key in ("tp_size", "ep_size", "pp_size", "world_size"))
    at = place(user_input, RunMachine(hardware="", chips=chips, tp=tp, ep=ep, pp=pp), WHAT)
    prompt, output = (files.needed(requests, LENGTH, f"avg_{part}_length") for part in ("input", "output"))
    through = files.positive(performance, REQUEST_RATE, "request_throughput_req_s")
    tokens = files.positive(performance, TOKEN_RATE, "system_output_throughput_tok_s") or (through * output if through else None)
    dtype = DTYPES.get(files.text(engine, "dtype").removeprefix("torch."), "")
    stored, cache = (_format(engine, key) or dtype for key in ("quantization", "kv_cache_dtype"))
    return files.measured_row(
        user_input, at, line=line, id=name, model=model(user_input, files.text(engine, "model"), WHAT), mode="serving_concurrency",
        engine="TensorRT-LLM", engine_version=files.text(engine, "version"), weights=stored, kv=cache, prompt=prompt, output=output,
        concurrency=files.needed(requests, USERS, "avg_num_concurrent_requests"),
        ttft_s=files.positive(streamed, TTFT, "avg_ttft_ms", scale=1e-3),
        tpot_s=files.positive(streamed, TPOT, "avg_tpot_ms", scale=1e-3) if output > 1 else None, output_tok_per_s=tokens,
        input_tok_per_s=through * prompt if through else None,
        source=f"{SOURCE} (users by Little's law)", reliability="B", roofline="no",
        requests=files.positive(requests, REQUESTS, "num_requests"), max_num_seqs=files.sequences(world, "max_batch_size"),
    )  # fmt: skip


def _format(engine: Record, key: str) -> str:
    """A format by TensorRT-LLM's name of its algorithm; "" where none is stated."""
    algorithm = files.text(engine, key).lower()
    if algorithm in ("none", "auto"):
        return ""
    if algorithm not in FORMATS:
        raise Unusable(f"{key}: got {algorithm!r}; wants one of {', '.join(filter(None, FORMATS))}, or --weights and --kv")
    return FORMATS[algorithm]


