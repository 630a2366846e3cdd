"""Reader of InferenceX results (formerly InferenceMAX): the agg_*.json of a run, or a list of such records.

Format: SemiAnalysisAI/InferenceX, utils/process_result.py (fields and what each throughput is divided by), utils/bench_serving/
benchmark_serving.py (closed loop at `conc`; lengths uniform from 0.8 of the nominal to the nominal: rows hold the nominal, as this
source's tables do, and the prediction uses the mean);
SemiAnalysisAI/InferenceX-app, packages/db/src/etl/normalizers.ts (`hw` is a chip, then its location) and topology.ts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headway.core.measured import CHIP_TOKEN_RATE, LENGTH, REQUESTS, TPOT, TTFT, USER_TOKEN_RATE, USERS
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RunFields, RunMachine, Unusable, model, one_model
from headway.evidence.rows.row import BadRow, MeasuredRow

WHAT = "a result of InferenceX"
ENGINES = (("trt", "TensorRT-LLM"), ("sglang", "SGLang"), ("vllm", "vLLM"), ("atom", "ATOM"))


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each run in a file, and the records without a row with the reason; BadFile if the file is unreadable."""
    entries = list(files.json_records(files.text_of(path), path))
    one_model(user_input, (files.text(entry.record, "model") for entry in entries if entry.record), WHAT)
    return files.rows_of(path, entries, lambda run, line, name: _row(run, line, name, user_input))


def _row(run: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    _refuse(run)
    is_split = _disaggregated(run)
    at = files.run_machine(user_input, _run_place(run, is_split))
    if not at.hardware:
        raise Unusable("hw: missing; --on names the chips, such as 8xh100-sxm")
    if not at.chips and at.tp:  # at least those of one engine
        at = replace(at, chips=at.tp * (at.pp or 1) * (at.dp or 1))
    served, framework = model(user_input, files.text(run, "model"), WHAT), files.text(run, "framework")
    chip_rate = files.positive(run, CHIP_TOKEN_RATE, "output_tput_per_gpu")  # the file divides by the chips of the decode pool, if any
    rated = files.count(run, "num_decode_gpu") if is_split else at.chips
    return files.measured_row(
        user_input, at, line=line, id=name, model=served, mode="disagg" if is_split else "serving_concurrency",
        engine=next((engine for part, engine in ENGINES if part in framework.lower()), framework),
        engine_version=files.text(run, "image").rpartition(":")[2][:40],  # tag of the engine's container image
        weights=_weights(run, at.hardware, served), prompt=files.needed(run, LENGTH, "isl"), output=files.needed(run, LENGTH, "osl"),
        concurrency=files.needed(run, USERS, "conc"), ttft_s=files.positive(run, TTFT, "mean_ttft", "median_ttft"),
        tpot_s=files.positive(run, TPOT, "mean_tpot", "median_tpot")
        or 1 / files.needed(run, USER_TOKEN_RATE, "median_intvty", "mean_intvty"),  # else the inverse of interactivity
        output_tok_per_s=chip_rate * rated if chip_rate and rated else None, source="inferencex", reliability="A", roofline="tpot_partial",
    )  # fmt: skip


def _refuse(run: Record) -> None:
    """Raise Unusable for runs whose measurement does not fit a row."""
    spec = files.text(run, "spec_decoding") or files.text(run, "mtp")
    if spec.lower() not in ("", "none", "off", "false"):
        raise Unusable(f"speculative decoding ({spec}): a row holds steps of one token a user")
    if files.text(run, "scenario_type").startswith("agentic"):
        raise Unusable("a replay of agents' traces: prompts share prefixes and have no one length")
    if files.inner(run, "benchmark_outcome").get("status") == "failed" or files.number(run, "num_requests_successful", REQUESTS) == 0:
        raise Unusable("the run failed")
    if not any(key in run for key in ("conc", "isl", "hw")):
        raise Unusable("hw, conc and isl: missing, so no result of InferenceX")


def _disaggregated(run: Record) -> bool:
    if "disagg" in run:
        return files.flag(run, "disagg")
    return bool(files.count(run, "decode_num_workers")) and "prefill_tp" in run


def _run_place(run: Record, is_split: bool) -> RunMachine:
    """Chips and layout that a run states; for a disaggregated run, all chips and the layout of a decode worker."""
    if is_split:
        sizes = [files.count(run, f"num_{pool}_gpu") for pool in ("prefill", "decode")]
        prefix, chips = "decode_", sum(size for size in sizes if size) if all(sizes) else None
    elif "tp" in run:
        prefix, chips = "", files.count(run, "num_gpus")
    else:
        pool = "prefill" if not files.count(run, "decode_tp") else "decode"
        prefix, chips = f"{pool}_", files.count(run, "num_gpus", f"num_{pool}_gpu")
    tp, ep = files.count(run, f"{prefix}tp"), files.count(run, f"{prefix}ep") or 1
    dp = tp if tp and files.flag(run, f"{prefix}dp_attention") else None  # then each of an engine's `tp` chips is an attention rank
    if dp and ep == 1 and dp > 1:
        raise Unusable(f"attention data parallel over {dp} chips with the experts tensor parallel (ep 1): no layout of a row says that")
    hardware = files.text(run, "hw").lower().rpartition(":")[2].partition("-")[0]
    return RunMachine(hardware=hardware, chips=chips, tp=1 if dp else tp, ep=ep, pp=files.count(run, f"{prefix}pp"), dp=dp)


def _weights(run: Record, hardware: str, served: str) -> str:
    """Format of the weights: `fp4` means mxfp4 for AMD and gpt-oss, else nvfp4."""
    precision = files.text(run, "precision").lower()
    if precision != "fp4":
        return precision
    return "mxfp4" if hardware.startswith("mi") or "gpt-oss" in served.lower() else "nvfp4"
