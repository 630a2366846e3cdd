"""Results of InferenceX (InferenceMAX before): the agg_*.json of one run, or a list of them.

Format: SemiAnalysisAI/InferenceX, utils/process_result.py (fields and what each throughput is divided by), utils/bench_serving/
benchmark_serving.py (closed loop at `conc`; lengths uniform from 0.8 of the nominal to the nominal: rows keep the nominal, as the tables
of this source do, and the prediction takes the mean);
SemiAnalysisAI/InferenceX-app, packages/db/src/etl/normalizers.ts (`hw` is a chip, then where it stood) and topology.ts.
"""

from __future__ import annotations

from pathlib import Path

from headway.evidence.readers import files, record
from headway.evidence.readers.given import Given, Place, model, one_model
from headway.evidence.readers.record import Record, Unusable
from headway.evidence.row import Bad, Row

WHAT = "a result of InferenceX"
ENGINES = (("trt", "TensorRT-LLM"), ("sglang", "SGLang"), ("vllm", "vLLM"), ("atom", "ATOM"))


def read(path: str | Path, given: Given) -> tuple[list[Row], list[Bad]]:
    """The runs of a file, and the records that are none and why; BadFile where nothing can be read at all."""
    found = list(files.json_records(files.text_of(path), path))
    one_model(given, (record.text(one.record, "model") for one in found if one.record), WHAT)
    return record.rows_of(path, found, lambda run, line, name: _row(run, line, name, given))


def _row(run: Record, line: int, name: str, given: Given) -> Row:
    _refuse(run)
    at = _at(run, given)
    served = model(given, record.text(run, "model"), WHAT)
    rate = _output_rate(run, at)
    return Row(
        line=line, id=name, model=served, mode="disagg" if _disaggregated(run) else "serving_concurrency",
        hardware=at.hardware, chips=at.chips, tp=at.tp, ep=at.ep, pp=at.pp, dp=at.dp,
        engine=given.engine or _engine(record.text(run, "framework")), engine_version=given.engine_version or _image(run),
        weights=given.weights or _weights(run, at.hardware, served), kv=given.kv,
        prompt=record.needed(run, "isl"), output=record.needed(run, "osl"),
        concurrency=record.needed(run, "conc"), ttft_s=record.positive(run, "mean_ttft", "median_ttft"),
        tpot_s=_tpot(run), output_tok_per_s=rate, tok_per_s_chip=rate / at.chips if rate and at.chips else None,
        source="inferencex", reliability="A", roofline="tpot_partial",
    )  # fmt: skip


def _refuse(run: Record) -> None:
    """Runs that measure what a row does not hold."""
    spec = record.text(run, "spec_decoding") or record.text(run, "mtp")
    if spec.lower() not in ("", "none", "off", "false"):
        raise Unusable(f"speculative decoding ({spec}): a row holds steps of one token a user")
    if record.text(run, "scenario_type").startswith("agentic"):
        raise Unusable("a replay of agents' traces: prompts share prefixes and have no one length")
    if record.inner(run, "benchmark_outcome").get("status") == "failed" or record.number(run, "num_requests_successful") == 0:
        raise Unusable("the run failed")
    if not any(key in run for key in ("conc", "isl", "hw")):
        raise Unusable("hw, conc and isl: missing, so no result of InferenceX")


def _disaggregated(run: Record) -> bool:
    if "disagg" in run:
        return record.flag(run, "disagg")
    return bool(record.whole(run, "decode_num_workers")) and "prefill_tp" in run


def _at(run: Record, given: Given) -> Place:
    """As given, else as the run says; the chips of all pools, and at least those of one engine."""
    said = _said(run)
    tp, ep, pp, dp = given.tp or said.tp, given.ep or said.ep, given.pp or said.pp, given.dp or said.dp
    if not (given.hardware or said.hardware):
        raise Unusable("hw: missing; --on names the chips, such as 8xh100-sxm")
    chips = given.chips or said.chips or (tp * (pp or 1) * (dp or 1) if tp else None)
    return Place(hardware=given.hardware or said.hardware, chips=chips, tp=tp, ep=ep, pp=pp, dp=dp)


def _said(run: Record) -> Place:
    """Chips and layout; of a disaggregated run all chips, and the layout of one decode worker."""
    hardware = record.text(run, "hw").lower().rpartition(":")[2].partition("-")[0]
    if _disaggregated(run):
        sizes = [record.whole(run, f"num_{pool}_gpu") for pool in ("prefill", "decode")]
        chips = sum(size for size in sizes if size) if all(sizes) else None
        return _way(run, "decode_", hardware, chips)
    if "tp" in run:
        return _way(run, "", hardware, record.whole(run, "num_gpus"))
    pool = "prefill" if not record.whole(run, "decode_tp") else "decode"
    return _way(run, f"{pool}_", hardware, record.whole(run, "num_gpus", f"num_{pool}_gpu"))


def _way(run: Record, prefix: str, hardware: str, chips: int | None) -> Place:
    """`tp` counts the chips of an engine; with attention data parallel each of them is a rank of its own."""
    tp, ep = record.whole(run, f"{prefix}tp"), record.whole(run, f"{prefix}ep") or 1
    if tp and record.flag(run, f"{prefix}dp_attention"):
        if ep == 1 and tp > 1:
            raise Unusable(f"attention data parallel over {tp} chips with the experts tensor parallel (ep 1): no layout of a row says that")
        return Place(hardware=hardware, chips=chips, tp=1, ep=ep, pp=record.whole(run, f"{prefix}pp"), dp=tp)
    return Place(hardware=hardware, chips=chips, tp=tp, ep=ep, pp=record.whole(run, f"{prefix}pp"))


def _output_rate(run: Record, at: Place) -> float | None:
    """Generated tokens per second of all chips: the file divides by the decode pool's chips where there is one."""
    each = record.positive(run, "output_tput_per_gpu")
    chips = record.whole(run, "num_decode_gpu") if _disaggregated(run) else at.chips
    return each * chips if each and chips else None


def _tpot(run: Record) -> float:
    """Seconds per output token, else the inverse of interactivity."""
    seconds = record.positive(run, "mean_tpot", "median_tpot")
    return seconds or 1 / record.needed(run, "median_intvty", "mean_intvty")


def _engine(framework: str) -> str:
    return next((engine for part, engine in ENGINES if part in framework.lower()), framework)


def _image(run: Record) -> str:
    """The tag of the container that ran it."""
    return record.text(run, "image").rpartition(":")[2][:40]


def _weights(run: Record, hardware: str, served: str) -> str:
    """`fp4` is AMD's and gpt-oss's mxfp4, and nvfp4 elsewhere."""
    precision = record.text(run, "precision").lower()
    if precision != "fp4":
        return precision
    return "mxfp4" if hardware.startswith("mi") or "gpt-oss" in served.lower() else "nvfp4"
