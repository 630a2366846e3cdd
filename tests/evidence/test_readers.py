"""Readers of benchmark tools' own output. The files in tests/data/readers are made up in the public formats: no run stands behind them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import BadFile, BadValue, HeadwayError
from headway.core.user_file import BENCHMARK
from headway.evidence.readers import aiperf, guidellm, inferencex, llama_bench, trtllm_bench, vllm_bench
from headway.evidence.readers.files import RunFields, RunMachine, machine, place
from headway.evidence.rows.row import BadRow, MeasuredRow
from support.paths import DATA

READERS = DATA / "readers"
H100 = RunFields(hardware="h100-sxm", chips=2, tp=2, model="")
Read = Callable[[Path, RunFields], tuple[list[MeasuredRow], list[BadRow]]]


def write(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(json.dumps(one) for one in records), encoding="utf-8")
    return path


def serve(**more: Any) -> dict[str, Any]:
    return json.loads((READERS / "vllm_serve.json").read_text(encoding="utf-8")) | more


def agg(**more: Any) -> dict[str, Any]:
    return json.loads((READERS / "inferencex.json").read_text(encoding="utf-8"))[0] | more


def bench(**more: Any) -> dict[str, Any]:
    return json.loads((READERS / "llama_bench.jsonl").read_text(encoding="utf-8").splitlines()[1]) | more


def only(result: tuple[list[MeasuredRow], list[BadRow]]) -> MeasuredRow:
    rows, bad = result
    assert not bad and len(rows) == 1
    return rows[0]


def refused(result: tuple[list[MeasuredRow], list[BadRow]]) -> str:
    rows, bad = result
    assert not rows and len(bad) == 1
    return bad[0].why


# -- what is given ----------------------------------------------------------------------------------------------------------------


def test_run_machine__chip_and_count() -> None:
    assert machine("8xh100-sxm") == ("h100-sxm", 8)
    assert machine(" 4 X MI300X ") == ("MI300X", 4)
    assert machine("h200") == ("h200", None)


def test_run_machine__chips_from_the_layout() -> None:
    assert place(RunFields(hardware="h100-sxm", tp=4, dp=2), RunMachine(hardware=""), "it").chips == 8
    assert place(RunFields(hardware="h100-sxm"), RunMachine(hardware=""), "it").chips == 1
    assert place(RunFields(hardware="gb200-nvl72"), RunMachine(hardware=""), "it").chips == 72
    assert (
        place(RunFields(hardware="h100-sxm", chips=8, tp=8, dp=8, ep=8), RunMachine(hardware=""), "it").chips == 8
    )  # attention ranks within tp
    with pytest.raises(BadValue, match=r"--on 4xh100-sxm, or add --dp 2$"):
        place(RunFields(hardware="h100-sxm", chips=8, tp=4), RunMachine(hardware=""), "it")


def test_readers__missing_facts_name_their_flag(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"^--on: got 'nothing'"):
        vllm_bench.read(READERS / "vllm_serve.json", RunFields())
    with pytest.raises(BadValue, match=r"^--model: got 'nothing'"):
        vllm_bench.read(READERS / "sglang_serving.jsonl", RunFields(hardware="h100-sxm"))
    with pytest.raises(BadValue, match=r"^--model: got 'nothing'.*llama 8B"):
        llama_bench.read(READERS / "llama_bench.md", RunFields())
    with pytest.raises(BadValue, match="names 2 models: a, b"):
        vllm_bench.read(write(tmp_path / "two.json", serve(model_id="a"), serve(model_id="b")), RunFields(hardware="h100", model="c"))


# -- vllm bench -------------------------------------------------------------------------------------------------------------------


def test_vllm_bench__closed_loop() -> None:
    row = only(vllm_bench.read(READERS / "vllm_serve.json", H100))
    assert (row.mode, row.concurrency, row.prompt, row.output) == ("serving_concurrency", 64, 1000, 101)
    assert (row.model, row.engine, row.hardware, row.chips, row.tp) == ("meta-llama/Llama-3.1-8B-Instruct", "vLLM", "h100-sxm", 2, 2)
    assert row.ttft_s == pytest.approx(0.120) and row.tpot_s == pytest.approx(0.010) and row.reliability == "A"
    assert row.output_tok_per_s == pytest.approx(64 / 1.12 * 101)  # 64 users, each back after 120 ms and 100 steps of 10 ms
    assert row.tok_per_s_chip == pytest.approx(32 / 1.12 * 101)
    assert row.source == "vllm bench serve"


def test_vllm_bench__appended_runs_survive_a_cut_line_and_nan() -> None:
    rows, bad = vllm_bench.read(READERS / "vllm_appended.jsonl", RunFields(hardware="h100-sxm"))
    assert [row.line for row in rows] == [1, 3, 5] and [one.line for one in bad] == [2, 4]
    closed, opened, at_once = rows
    assert (closed.tp, closed.chips, closed.engine_version) == (2, 2, "0.11.0")  # said by --metadata
    assert opened.concurrency == pytest.approx(4.0 * 1.0)  # 4 requests a second, each 1 s inside
    assert opened.source.endswith("open loop (users by Little's law)") and opened.reliability == "B"
    assert (at_once.mode, at_once.ttft_s, at_once.tpot_s) == ("serving_concurrency", 4.0, 0.02)  # a burst of all its prompts
    assert at_once.concurrency == at_once.requests and at_once.source.endswith("all at once")
    assert at_once.output_tok_per_s == pytest.approx(2525)
    assert "is not JSON" in bad[0].why and bad[1].why.startswith("mean_tpot_ms: got 'nan'")


def test_vllm_bench__open_loop_latency_from_its_parts(tmp_path: Path) -> None:
    row = only(vllm_bench.read(write(tmp_path / "a.json", serve(max_concurrency=None, request_rate=4.0, request_throughput=3.9)), H100))
    assert row.concurrency == pytest.approx(3.9 * 1.12)
    quiet = serve(max_concurrency=None, request_rate=0.1, request_throughput=0.1)
    assert only(vllm_bench.read(write(tmp_path / "c.json", quiet), H100)).concurrency == 1  # never fewer than the request itself
    lacking = serve(max_concurrency=None, request_rate=4.0, mean_ttft_ms=0.0, median_ttft_ms=0.0)
    assert "Little's law does not give the users" in refused(vllm_bench.read(write(tmp_path / "b.json", lacking), H100))


def test_vllm_bench__keys_without_a_unit_are_seconds(tmp_path: Path) -> None:
    """As other tools write the same file: the three times are those of the keys in milliseconds; what cannot be seconds is named."""
    times = {key: value for key, value in serve().items() if key.endswith("_ms")}
    bare = {key: value for key, value in serve().items() if key not in times}
    in_seconds = bare | {key.removesuffix("_ms"): value / 1e3 for key, value in times.items()}
    plain, unnamed = (only(vllm_bench.read(write(tmp_path / "a.json", run), H100)) for run in (serve(), in_seconds))
    assert (unnamed.ttft_s, unnamed.tpot_s, unnamed.itl_s) == pytest.approx((plain.ttft_s, plain.tpot_s, plain.itl_s))
    wrong = bare | {key.removesuffix("_ms"): value for key, value in times.items()}
    assert "milliseconds" in refused(vllm_bench.read(write(tmp_path / "b.json", wrong), H100))


def test_vllm_bench__empty_seats_lower_the_reliability(tmp_path: Path) -> None:
    few = serve(max_concurrency=1000)  # 640 requests in all
    row = only(vllm_bench.read(write(tmp_path / "a.json", few), H100))
    assert row.concurrency == 640 and row.reliability == "B"
    assert only(vllm_bench.read(write(tmp_path / "b.json", serve(failed=3)), H100)).reliability == "B"


def test_readers__month_and_batch_limit_of_a_run(tmp_path: Path) -> None:
    row = only(vllm_bench.read(write(tmp_path / "a.json", serve(max_num_seqs="256")), H100))
    assert (row.month, row.max_num_seqs) == ("2026-01", 256)
    assert only(vllm_bench.read(tmp_path / "a.json", replace(H100, max_num_seqs=64))).max_num_seqs == 64
    assert "max_num_seqs: got '-4'" in refused(vllm_bench.read(write(tmp_path / "b.json", serve(max_num_seqs=-4)), H100))
    of_sglang = serve(server_info={"max_running_requests": 48}, date="soon")
    row = only(vllm_bench.read(write(tmp_path / "c.json", of_sglang), H100))
    assert (row.month, row.max_num_seqs) == ("", 48)
    assert {row.month for row in llama_bench.read(READERS / "llama_bench.json", RunFields())[0]} == {"2026-01"}


def test_vllm_bench__speculation_of_a_run(tmp_path: Path) -> None:
    """1,000 steps that drafted 3,000 tokens, of which 1,400 were accepted, yield 2.4 tokens each; SGLang says the mean alone."""
    counted = {"spec_decode_acceptance_length": 2.4, "spec_decode_num_drafts": 1000, "spec_decode_draft_tokens": 3000}
    row = only(vllm_bench.read(write(tmp_path / "a.json", serve(**counted)), H100))
    assert (row.draft_tokens, row.accept_length, row.itl_s) == (3, 2.4, None)
    row = only(vllm_bench.read(write(tmp_path / "b.json", serve(accept_length=1.8)), H100))
    assert (row.draft_tokens, row.accept_length) == (None, 1.8)
    assert only(vllm_bench.read(write(tmp_path / "c.json", serve(accept_length=1)), H100)).accept_length is None


@pytest.mark.parametrize(("more", "why"), [
    ({"completed": 0}, "no request succeeded"),
    ({"ramp_up_strategy": "linear"}, "ramped up"),
    ({"spec_decode_acceptance_rate": 60.0}, "spec_decode_acceptance_length: missing"),
    ({"total_input_tokens": "lots"}, "total_input_tokens: got 'lots'"),
    ({"mean_ttft_ms": -1.0}, "mean_ttft_ms: got '-1.0'"),
    ({"tp": "1.5"}, "tp: got '1.5'; wants a whole number"),
    ({"duration": None, "request_throughput": None}, "duration: missing or 0"),
])  # fmt: skip
def test_vllm_bench__refused_runs(more: dict[str, Any], why: str, tmp_path: Path) -> None:
    assert why in refused(vllm_bench.read(write(tmp_path / "a.json", serve(**more)), RunFields(hardware="h100-sxm")))


def test_vllm_bench__other_results_are_refused_by_name(tmp_path: Path) -> None:
    pooled = {key: value for key, value in serve().items() if key != "total_output_tokens"}
    assert "embedding or pooling" in refused(vllm_bench.read(write(tmp_path / "a.json", pooled), H100))
    latency = {"avg_latency": 1.0, "latencies": [1.0], "percentiles": {}}
    assert "vllm bench latency" in refused(vllm_bench.read(write(tmp_path / "b.json", latency), H100))
    assert "no result of `vllm bench serve" in refused(vllm_bench.read(write(tmp_path / "c.json", {"a": 1}), H100))


def test_vllm_bench__throughput_needs_and_checks_lengths() -> None:
    path, given = READERS / "vllm_throughput.json", RunFields(hardware="h100-sxm", model="llama-3.1-8b")
    assert "--prompt and --output" in refused(vllm_bench.read(path, given))
    full = RunFields(hardware="h100-sxm", model="llama-3.1-8b", prompt=1000, output=128)
    row = only(vllm_bench.read(path, full))
    assert (row.mode, row.output_tok_per_s, row.input_tok_per_s) == ("offline_throughput", 2560, 20000)
    wrong = RunFields(hardware="h100-sxm", model="llama-3.1-8b", prompt=1000, output=1000)
    assert "1128 a request, not the 2000" in refused(vllm_bench.read(path, wrong))


def test_sglang_bench__same_fields_as_vllm() -> None:
    row = only(vllm_bench.read(READERS / "sglang_serving.jsonl", RunFields(hardware="h100-sxm", model="llama-3.1-8b")))
    assert (row.engine, row.concurrency, row.reliability) == ("SGLang", 16, "A")


# -- AIPerf and GenAI-Perf --------------------------------------------------------------------------------------------------------


def test_aiperf__folder_of_runs() -> None:
    rows, bad = aiperf.read(READERS / "aiperf", RunFields(hardware="h100-sxm", tp=2, engine="vLLM", model="qwen3-32b"))
    assert not bad
    found = {row.id: row for row in rows}
    assert set(found) == {"qwen-chat-concurrency16", "qwen-chat-request_rate5", "genai-concurrency8", "csv-concurrency4"}
    closed = found["qwen-chat-concurrency16"]
    assert (closed.concurrency, closed.prompt, closed.output) == (16, 2048, 256)
    assert (closed.ttft_s, closed.tpot_s) == (pytest.approx(0.2), pytest.approx(0.015))
    assert closed.output_tok_per_s == pytest.approx(16 / (0.2 + 0.015 * 255) * 256)
    assert found["qwen-chat-request_rate5"].concurrency == pytest.approx(5 * (0.2 + 0.015 * 255))
    assert "open loop" in found["qwen-chat-request_rate5"].source
    assert found["genai-concurrency8"].concurrency == 8
    table = found["csv-concurrency4"]
    assert (table.concurrency, table.tpot_s, table.output_tok_per_s) == (4, pytest.approx(0.012), 319)


def test_aiperf__model_and_gpu_from_the_file(tmp_path: Path) -> None:
    run = json.loads((READERS / "aiperf/qwen-chat-concurrency16/profile_export_aiperf.json").read_text(encoding="utf-8"))
    run["telemetry_data"] = {"endpoints": {"localhost:9400": {"gpus": {"gpu_0": {"gpu_name": "NVIDIA H100 80GB HBM3"}}}}}
    row = only(aiperf.read(write(tmp_path / "profile_export_aiperf.json", run), RunFields(tp=2)))
    assert (row.model, row.hardware, row.chips) == ("Qwen/Qwen3-32B-FP8", "NVIDIA H100 80GB HBM3", 2)


def test_aiperf__pooled_phases_are_refused_and_single_ones_read(tmp_path: Path) -> None:
    source = READERS / "aiperf/qwen-chat-request_rate5/profile_export_aiperf.json"
    run = json.loads(source.read_text(encoding="utf-8"))
    run["input_config"]["phases"] += [{"name": "busy", "kind": "profiling", "type": "concurrency", "concurrency": 32}]
    write(tmp_path / "profile_export_aiperf.json", run)
    given = RunFields(hardware="h100-sxm", tp=2)
    assert "several phases were pooled" in refused(aiperf.read(tmp_path, given))
    (tmp_path / "phases/busy").mkdir(parents=True)
    write(tmp_path / "phases/busy/profile_export_aiperf.json", run)
    assert only(aiperf.read(tmp_path, given)).concurrency == 32  # the pooled export above it is left out


@pytest.mark.parametrize(("change", "why"), [
    ({"time_to_first_token": {"unit": "furlongs", "avg": 3.0}}, "time_to_first_token.unit: got 'furlongs'"),
    ({"output_sequence_length": None}, "no text of known length"),
    ({"inter_token_latency": {"unit": "ms", "avg": "fast"}}, "inter_token_latency.avg: got 'fast'"),
    ({"request_count": {"unit": "requests", "avg": 0}}, "no request succeeded"),
    ({"input_config": {"phases": [{"name": "profiling", "type": "fixed_schedule"}]}}, "no steady load"),
    ({"input_config": {"input": {"conversation": {"turn": {"mean": 4}}}}}, "several turns"),
])  # fmt: skip
def test_aiperf__refused_runs(change: dict[str, Any], why: str, tmp_path: Path) -> None:
    run = json.loads((READERS / "aiperf/qwen-chat-concurrency16/profile_export_aiperf.json").read_text(encoding="utf-8")) | change
    given = RunFields(hardware="h100-sxm", tp=2, model="qwen3-32b")
    assert why in refused(aiperf.read(write(tmp_path / "profile_export_aiperf.json", run), given))


def test_aiperf__wrong_folder_and_wrong_file(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"holds no profile_export_aiperf\.json"):
        aiperf.read(tmp_path, H100)
    with pytest.raises(BadFile, match="one record a request"):
        aiperf.read(write(tmp_path / "profile_export.jsonl", {"metadata": {}, "metrics": {}}), H100)


def test_aiperf__one_broken_run_leaves_the_rest(tmp_path: Path) -> None:
    shutil.copytree(READERS / "aiperf", tmp_path / "runs")
    (tmp_path / "runs/genai-concurrency8/profile_export_genai_perf.json").write_text('{"request_latency": {"unit', encoding="utf-8")
    rows, bad = aiperf.read(tmp_path / "runs", RunFields(hardware="h100-sxm", tp=2, model="qwen3-32b"))
    assert len(rows) == 3 and [one.id for one in bad] == ["genai-concurrency8"]


# -- llama-bench ------------------------------------------------------------------------------------------------------------------


def guidellm_report(strategy: dict[str, Any], **metrics: float) -> dict[str, Any]:
    """A report of one benchmark, with the fields that are read."""
    means = {
        "prompt_token_count": 1000.0, "output_token_count": 101.0, "time_to_first_token_ms": 120.0, "inter_token_latency_ms": 10.0,
        "request_latency": 1.12, "requests_per_second": 50.0,
    } | metrics  # fmt: skip
    known = {key: {"successful": {"mean": value}} for key, value in means.items()} | {"request_totals": {"successful": 640}}
    return {"args": {"model": "llama-3.1-8b"}, "benchmarks": [{"config": {"strategy": strategy}, "metrics": known}]}


def test_guidellm__users_rate_and_neither(tmp_path: Path) -> None:
    loads = ({"type_": "concurrent", "streams": 64}, {"type_": "poisson", "rate": 50.0}, {"type_": "synchronous"}, {"type_": "throughput"})
    rows = [guidellm.read(write(tmp_path / "a.json", guidellm_report(load)), GIVEN)[0][0] for load in loads]
    assert [row.concurrency for row in rows] == pytest.approx([64, 56, 1, 56])  # Little's law: 50 a second for 1.12 s
    assert [row.request_rate for row in rows] == [None, 50.0, None, None]
    first = rows[0]
    assert (first.ttft_s, first.tpot_s, first.prompt, first.output, first.requests) == (0.12, 0.01, 1000, 101, 640)
    assert first.output_tok_per_s == pytest.approx(5050) and first.reliability == "A" and rows[1].reliability == "B"


def test_guidellm__refused_benchmarks(tmp_path: Path) -> None:
    silent = guidellm_report({"type_": "concurrent", "streams": 8}, output_token_count=0.0)
    assert "no text of known length" in guidellm.read(write(tmp_path / "a.json", silent), GIVEN)[1][0].why
    with pytest.raises(BadFile, match="benchmarks"):
        guidellm.read(write(tmp_path / "a.json", {"benchmarks": 3}), GIVEN)


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv", "sql", "md"])
def test_llama_bench__same_rows_in_every_format(kind: str) -> None:
    rows, _ = llama_bench.read(READERS / f"llama_bench.{kind}", RunFields(model="llama-3.1-8b" if kind == "md" else ""))
    prefill, decode, deep = rows[:3]
    for row in (prefill, decode, deep):
        assert (row.model, row.hardware, row.chips, row.concurrency) == ("llama-3.1-8b", "NVIDIA GeForce RTX 4090", 1, 1)
        assert (row.engine, row.engine_version, row.weights, row.kv) == ("llama.cpp", "b6500", "gguf_q4_k_m", "f16")
    assert (prefill.mode, prefill.prompt, prefill.ttft_s) == ("prefill", 512, pytest.approx(512 / 8000))
    assert (prefill.input_tok_per_s, prefill.output_tok_per_s) == (pytest.approx(8000), None)
    assert (decode.mode, decode.context, decode.tpot_s) == ("decode_step", 64, pytest.approx(1 / 125))
    assert (deep.prompt, deep.output, deep.context, deep.tpot_s) == (4096, 128, 4096 + 64, pytest.approx(1 / 100))


def test_llama_bench__splits_and_refusals() -> None:
    rows, bad = llama_bench.read(READERS / "llama_bench.json", RunFields())
    assert [(row.chips, row.tp, row.pp) for row in rows[3:]] == [(2, 1, 2), (2, 2, 1)]
    combined, behind, host = (one.why for one in bad)
    assert combined.startswith("pp512+tg128: one time for a prompt and a generation")
    assert behind.startswith("pp512 @ d4096") and host.startswith("n_gpu_layers: 20 of 32 layers")


@pytest.mark.parametrize(("more", "why"), [
    ({"type_v": "q8_0"}, "keys in f16 and values in q8_0"),
    ({"no_kv_offload": True}, "no_kv_offload"),
    ({"n_cpu_moe": 4}, "n_cpu_moe"),
    ({"tensor_buft_overrides": "exps=CPU"}, "tensor_buft_overrides"),
    ({"backends": "CUDA,RPC"}, "RPC"),
    ({"gpu_info": "NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 3090"}, "chips of several kinds"),
    ({"model_filename": "nobody-13b-q4_0.gguf"}, "--model says"),
    ({"n_gpu_layers": 0}, "0 of 32 layers"),
    ({"n_gen": 0}, "no test of llama-bench"),
    ({"avg_ns": 0, "avg_ts": 0.0}, "avg_ts: missing or 0"),
])  # fmt: skip
def test_llama_bench__refused_tests(more: dict[str, Any], why: str, tmp_path: Path) -> None:
    assert why in refused(llama_bench.read(write(tmp_path / "a.jsonl", bench(**more)), RunFields()))


@pytest.mark.parametrize(("described", "weights"), [
    ("llama 7B mostly Q4_0", "gguf_q4_0"), ("qwen3moe 30B.A3B Q4_K - Small", "gguf_q4_k_s"), ("llama 70B all F32", "f32"),
    ("gpt-oss 20B MXFP4 MoE", "mxfp4"), ("granite 3B IQ4_XS - 4.25 bpw", "gguf_iq4_xs"), ("llama 8B BF16", "bf16"),
    ("gemma3 27B Q8_0", "gguf_q8_0"), ("llama 8B Q6_K (guessed)", "gguf_q6_k"),
])  # fmt: skip
def test_llama_bench__formats_of_weights(described: str, weights: str, tmp_path: Path) -> None:
    assert only(llama_bench.read(write(tmp_path / "a.jsonl", bench(model_type=described)), RunFields())).weights == weights


@pytest.mark.parametrize("name", [
    "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "C:\\models\\Llama-3.1-8B-Instruct-UD-Q4_K_XL-00001-of-00002.gguf",
    "/m/llama-3.1-8b.f16.gguf",
])  # fmt: skip
def test_llama_bench__model_from_file_name(name: str, tmp_path: Path) -> None:
    assert only(llama_bench.read(write(tmp_path / "a.jsonl", bench(model_filename=name)), RunFields())).model == "llama-3.1-8b"


def test_llama_bench__cpu_run(tmp_path: Path) -> None:
    xeon = "Intel(R) Xeon(R) Platinum 8480+"
    for run in (bench(gpu_info="", backends="CPU", n_gpu_layers=0, cpu_info=xeon), bench(devices="none", cpu_info=xeon)):
        row = only(llama_bench.read(write(tmp_path / "a.jsonl", run), RunFields()))
        assert (row.hardware, row.chips) == (xeon, 1)


# -- InferenceX -------------------------------------------------------------------------------------------------------------------


def test_inferencex__runs() -> None:
    rows, bad = inferencex.read(READERS / "inferencex.json", RunFields())
    plain, pools, amd = rows
    assert (plain.mode, plain.hardware, plain.engine, plain.weights) == ("serving_concurrency", "h200", "SGLang", "fp8")
    assert (plain.chips, plain.tp, plain.ep, plain.dp, plain.concurrency) == (8, 8, 1, None, 64)
    assert (plain.ttft_s, plain.tpot_s, plain.output_tok_per_s) == (0.5, 0.02, 3200)
    assert (plain.prompt, plain.output, plain.source) == (1024, 1024, "inferencex")  # nominal, as the tables of this source have them
    assert (pools.mode, pools.chips, pools.tp, pools.dp, pools.ep) == ("disagg", 24, 1, 16, 16)
    assert (pools.engine, pools.weights, pools.output_tok_per_s) == ("TensorRT-LLM", "nvfp4", 32000)
    assert pools.tok_per_s_chip == pytest.approx(32000 / 24)
    assert (amd.hardware, amd.weights, amd.tp, amd.dp) == ("mi355x", "mxfp4", 1, 8)
    speculative, experts, text = (one.why for one in bad)
    assert "speculative decoding (mtp)" in speculative and "ep 1" in experts and text.startswith("conc: got 'many'")


@pytest.mark.parametrize(("more", "why"), [
    ({"hw": None}, "--on names the chips"),
    ({"isl": None}, "isl: missing or 0"),
    ({"scenario_type": "agentic-coding"}, "agents' traces"),
    ({"mean_tpot": None, "median_tpot": None, "median_intvty": None, "mean_intvty": None}, "median_intvty or mean_intvty: missing"),
])  # fmt: skip
def test_inferencex__refused_runs(more: dict[str, Any], why: str, tmp_path: Path) -> None:
    assert why in refused(inferencex.read(write(tmp_path / "agg.json", agg(**more)), RunFields()))


def test_inferencex__chip_name_without_location(tmp_path: Path) -> None:
    for hw, chip in (("b200-nvd", "b200"), ("cluster:b300-nv", "b300"), ("mi300x-amd", "mi300x")):
        assert only(inferencex.read(write(tmp_path / "agg.json", agg(hw=hw)), RunFields())).hardware == chip


# -- files that are broken ----------------------------------------------------------------------------------------------------------

READER_FILES: list[tuple[Read, str]] = [(vllm_bench.read, "vllm_serve.json"), (vllm_bench.read, "vllm_appended.jsonl"),
    (aiperf.read, "aiperf/qwen-chat-concurrency16/profile_export_aiperf.json"),
    (aiperf.read, "aiperf/csv-concurrency4/profile_export_aiperf.csv"),
    (llama_bench.read, "llama_bench.json"), (llama_bench.read, "llama_bench.csv"), (llama_bench.read, "llama_bench.sql"),
    (llama_bench.read, "llama_bench.md"), (inferencex.read, "inferencex.json")]  # fmt: skip
GIVEN = RunFields(hardware="h100-sxm", chips=2, model="llama-3.1-8b")


def outcome(read: Read, path: Path) -> None:
    """Rows, bad records, or one typed line; nothing else."""
    try:
        rows, bad = read(path, GIVEN)
    except HeadwayError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
        return
    assert rows or bad
    assert all("\n" not in one.why and len(one.why) < 500 for one in bad)


@pytest.mark.parametrize(("read", "name"), READER_FILES, ids=[name for _, name in READER_FILES])
def test_readers__file_cut_anywhere(read: Read, name: str, tmp_path: Path) -> None:
    data = (READERS / name).read_bytes()
    cut = tmp_path / Path(name).name
    for size in range(0, len(data), max(1, len(data) // 60)):
        cut.write_bytes(data[:size])
        outcome(read, cut)


@pytest.mark.parametrize(("read", "make"), [(vllm_bench.read, serve), (inferencex.read, agg), (llama_bench.read, bench)])
@pytest.mark.parametrize(
    "value", [None, "", "x", float("nan"), float("inf"), -1, 0, [], {}, [[1]], True, 10**400, "9" * 9000, "\x00", 1e308]
)
def test_readers__any_value_in_any_field(read: Read, make: Callable[..., dict[str, Any]], value: Any, tmp_path: Path) -> None:
    for key in make():
        outcome(read, write(tmp_path / "a.json", make(**{key: value})))


@pytest.mark.parametrize(
    "value", [None, "", "x", -1, 0, [], {}, [[1]], True, {"avg": None}, {"unit": [], "avg": 1}, {"items": [3]}, [None]]
)
def test_aiperf__any_value_in_any_field(value: Any, tmp_path: Path) -> None:
    run = json.loads((READERS / "aiperf/qwen-chat-request_rate5/profile_export_aiperf.json").read_text(encoding="utf-8"))
    for key in run:
        outcome(aiperf.read, write(tmp_path / "a.json", run | {key: value}))
    for key in (*run["input_config"], "loadgen", "perf_analyzer", "input", "concurrency", "model"):
        config = {name: part for name, part in run["input_config"].items() if name != "phases" or key == "phases"}
        outcome(aiperf.read, write(tmp_path / "a.json", run | {"input_config": config | {key: value}}))


@pytest.mark.parametrize("read", [vllm_bench.read, aiperf.read, guidellm.read, llama_bench.read, inferencex.read])
@pytest.mark.parametrize(("content", "why"), [
    (b"", "is empty"), (b" \n\n", "is empty"), (b"\x1f\x8b\x08\x00\x00\xff", "is not text"), (b"{}\x00", "is not text"),
    (b"once upon a time", "is no"), (b"[]", "holds no result"), (b"[" * 100_000, "is not JSON"),
])  # fmt: skip
def test_readers__file_of_another_kind(read: Read, content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(BadFile, match=why):
        read(tmp_path / "a.json", GIVEN)


@pytest.mark.parametrize("read", [vllm_bench.read, aiperf.read, guidellm.read, llama_bench.read, inferencex.read])
def test_readers__missing_file(read: Read, tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", Path("nul\x00.json")):
        with pytest.raises(BadFile, match="cannot be read"):
            read(path, GIVEN)


def test_readers__huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(BENCHMARK.most_bytes + 1)  # sparse: takes no room
    with pytest.raises(BadFile, match="above 256 MiB"):
        vllm_bench.read(path, GIVEN)


def test_readers__utf_16_and_byte_order_mark(tmp_path: Path) -> None:
    text = (READERS / "llama_bench.json").read_text(encoding="utf-8")
    for coding in ("utf-16", "utf-8-sig"):
        (tmp_path / "a.json").write_text(text, encoding=coding)
        assert len(llama_bench.read(tmp_path / "a.json", RunFields())[0]) == 5


def test_llama_bench__a_latent_cache_has_the_format_of_its_keys(tmp_path: Path) -> None:
    given = RunFields(hardware="8xh100-sxm", model="deepseek-v3")
    two = bench(type_k="q4_0", type_v="f16")
    latent = write(tmp_path / "a.jsonl", two | {"model_type": "deepseek2 671B Q4_0"})
    assert only(llama_bench.read(latent, given)).kv == "q4_0"
    assert "one format for both" in refused(llama_bench.read(write(tmp_path / "b.jsonl", two), RunFields(hardware="h100-sxm", model="")))


# -- trtllm-bench ---------------------------------------------------------------------------------------------------------------------


def trtllm(**more: dict[str, Any]) -> dict[str, Any]:
    """The stored report, with some values of its parts changed."""
    report = json.loads((READERS / "trtllm_bench.json").read_text(encoding="utf-8"))
    return {**report, **{part: report.get(part, {}) | values for part, values in more.items()}}


def test_trtllm_bench__a_report_is_a_row(tmp_path: Path) -> None:
    given = RunFields(hardware="h100-sxm", chips=8, model="")
    row = only(trtllm_bench.read(write(tmp_path / "a.json", trtllm()), given))
    assert (row.model, row.tp, row.chips, row.weights, row.kv) == ("meta-llama/Llama-3.1-70B-Instruct", 8, 8, "fp8", "fp8")
    assert (row.concurrency, row.prompt, row.output, row.max_num_seqs) == (245.1, 1000.0, 1000.0, 256)
    assert (row.ttft_s, row.tpot_s, row.output_tok_per_s, row.tok_per_s_chip) == pytest.approx((0.9, 0.032, 7100.0, 887.5))
    plain = trtllm(engine={"quantization": None, "kv_cache_dtype": "auto"}, streaming_metrics={"avg_ttft_ms": None, "avg_tpot_ms": None})
    row = only(trtllm_bench.read(write(tmp_path / "b.json", plain), given))
    assert (row.weights, row.kv, row.ttft_s, row.tpot_s) == ("bf16", "bf16", None, None)


@pytest.mark.parametrize(("change", "says"), [
    ({"decoding_stats": {"mode": "eagle"}}, "speculative"), ({"engine": {"quantization": "nothing-known"}}, "quantization"),
    ({"request_info": {"avg_output_length": float("nan")}}, "avg_output_length"), ({"world_info": {"tp_size": 4}}, "chips"),
])  # fmt: skip
def test_trtllm_bench__what_is_no_row_says_why(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    given = RunFields(hardware="h100-sxm", chips=8, model="")
    assert says in refused(trtllm_bench.read(write(tmp_path / "a.json", trtllm(**change)), given))
