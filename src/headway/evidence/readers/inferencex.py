"""Reader of InferenceX results (formerly InferenceMAX): the agg_*.json of a run, or a list of such records.

Format: SemiAnalysisAI/InferenceX, utils/process_result.py (fields and what each throughput is divided by), utils/bench_serving/
benchmark_serving.py (closed loop at `conc`; lengths uniform from 0.8 of the nominal to the nominal: rows hold the nominal, as this
source's tables do, and the prediction uses the mean);
SemiAnalysisAI/InferenceX-app, packages/db/src/etl/normalizers.ts (`hw` is a chip, then its location) and topology.ts.
"""

from __future__ import annotations

from pathlib import Path

from headway.core.measured import CHIP_TOKEN_RATE, LENGTH, REQUESTS, TPOT, TTFT, USER_TOKEN_RATE, USERS
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RunFields, RunMachine, Unusable, model, one_model
from headway.evidence.rows.csv_file import BadRow
from headway.evidence.rows.row import MeasuredRow

WHAT = "a result of InferenceX"
ENGINES = (("trt", "TensorRT-LLM"), ("sglang", "SGLang"), ("vllm", "vLLM"), ("atom", "ATOM"))


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each run in a file, and the records without a row with the reason; BadFile if the file is unreadable."""
    entries = list(files.json_records(files.text_of(path), path))
    one_model(user_input, (files.text(entry.record, "model") for entry in entries if entry.record), WHAT)
    return files.rows_of(path, entries, lambda run, line, name: _row(run, line, name, user_input))


def _row(run: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    _refuse(run)
    at = _at(run, user_input)
    served = model(user_input, files.text(run, "model"), WHAT)
    rate = _output_rate(run, at)
    return MeasuredRow(
        line=line, id=name, model=served, mode="disagg" if _disaggregated(run) else "serving_concurrency",
        hardware=at.hardware, chips=at.chips, tp=at.tp, ep=at.ep, pp=at.pp, dp=at.dp,
        engine=user_input.engine or _engine(files.text(run, "framework")), engine_version=user_input.engine_version or _image(run),
        weights=user_input.weights or _weights(run, at.hardware, served), kv=user_input.kv,
        prompt=files.needed(run, LENGTH, "isl"), output=files.needed(run, LENGTH, "osl"),
        concurrency=files.needed(run, USERS, "conc"), ttft_s=files.positive(run, TTFT, "mean_ttft", "median_ttft"),
        tpot_s=_tpot(run), output_tok_per_s=rate, tok_per_s_chip=rate / at.chips if rate and at.chips else None,
        source="inferencex", reliability="A", roofline="tpot_partial",
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


def _at(run: Record, user_input: RunFields) -> RunMachine:
    """Machine of a run, from the command line, else from the run: chips of all pools, at least those of one engine."""
    run_place = _run_place(run)
    tp, ep, pp, dp = (
        user_input.tp or run_place.tp,
        user_input.ep or run_place.ep,
        user_input.pp or run_place.pp,
        user_input.dp or run_place.dp,
    )
    if not (user_input.hardware or run_place.hardware):
        raise Unusable("hw: missing; --on names the chips, such as 8xh100-sxm")
    chips = user_input.chips or run_place.chips or (tp * (pp or 1) * (dp or 1) if tp else None)
    return RunMachine(hardware=user_input.hardware or run_place.hardware, chips=chips, tp=tp, ep=ep, pp=pp, dp=dp)


def _run_place(run: Record) -> RunMachine:
    """Chips and layout that a run states; for a disaggregated run, all chips and the layout of a decode worker."""
    hardware = files.text(run, "hw").lower().rpartition(":")[2].partition("-")[0]
    if _disaggregated(run):
        sizes = [files.count(run, f"num_{pool}_gpu") for pool in ("prefill", "decode")]
        chips = sum(size for size in sizes if size) if all(sizes) else None
        return _way(run, "decode_", hardware, chips)
    if "tp" in run:
        return _way(run, "", hardware, files.count(run, "num_gpus"))
    pool = "prefill" if not files.count(run, "decode_tp") else "decode"
    return _way(run, f"{pool}_", hardware, files.count(run, "num_gpus", f"num_{pool}_gpu"))


def _way(run: Record, prefix: str, hardware: str, chips: int | None) -> RunMachine:
    """Layout of an engine: `tp` counts its chips; with attention data parallelism each chip is a separate attention rank."""
    tp, ep = files.count(run, f"{prefix}tp"), files.count(run, f"{prefix}ep") or 1
    if tp and files.flag(run, f"{prefix}dp_attention"):
        if ep == 1 and tp > 1:
            raise Unusable(f"attention data parallel over {tp} chips with the experts tensor parallel (ep 1): no layout of a row says that")
        return RunMachine(hardware=hardware, chips=chips, tp=1, ep=ep, pp=files.count(run, f"{prefix}pp"), dp=tp)
    return RunMachine(hardware=hardware, chips=chips, tp=tp, ep=ep, pp=files.count(run, f"{prefix}pp"))


def _output_rate(run: Record, at: RunMachine) -> float | None:
    """Output tokens per second over all chips; the file divides by the chips of the decode pool if there is one."""
    chip_rate = files.positive(run, CHIP_TOKEN_RATE, "output_tput_per_gpu")
    chips = files.count(run, "num_decode_gpu") if _disaggregated(run) else at.chips
    return chip_rate * chips if chip_rate and chips else None


def _tpot(run: Record) -> float:
    """TPOT in seconds, else the inverse of interactivity."""
    seconds = files.positive(run, TPOT, "mean_tpot", "median_tpot")
    return seconds or 1 / files.needed(run, USER_TOKEN_RATE, "median_intvty", "mean_intvty")


def _engine(framework: str) -> str:
    return next((engine for part, engine in ENGINES if part in framework.lower()), framework)


def _image(run: Record) -> str:
    """Tag of the engine's container image."""
    return files.text(run, "image").rpartition(":")[2][:40]


def _weights(run: Record, hardware: str, served: str) -> str:
    """Format of the weights: `fp4` means mxfp4 for AMD and gpt-oss, else nvfp4."""
    precision = files.text(run, "precision").lower()
    if precision != "fp4":
        return precision
    return "mxfp4" if hardware.startswith("mi") or "gpt-oss" in served.lower() else "nvfp4"
