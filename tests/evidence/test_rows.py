"""Rows of measurements: what is read, which setup a row means by which rule, and why some mean none."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from headway.core.catalog import default_catalog
from headway.core.errors import BadFile, UnknownName
from headway.evidence.rows.defaults import GGUF, HEAD, SPELLINGS, StatedLayout, place, precision
from headway.evidence.rows.names import family, hardware, model_name
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import KINDS, Task, Unpredictable, tasks
from headway.evidence.serving.predict import predict
from headway.models.precision import WEIGHTS, formats
from support.synthetic import Rig, csv_text, tasks_of
from support.work import calls

BASE = {"id": "a", "model": "meta-llama/Llama-3.1-8B", "hardware": "H100-SXM-80GB", "mode": "serving_concurrency", "n_chips": "1",
        "engine": "vLLM", "weight_precision": "bf16", "kv_precision": "bf16", "tp": "1", "isl": "1000", "osl": "100",
        "batch_or_concurrency": "8"}  # fmt: skip


def written(tmp_path: Path, *rows: dict[str, str], text: str = "") -> Path:
    path = tmp_path / "rows.csv"
    out = io.StringIO()
    if rows:
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(out, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    path.write_text(text or out.getvalue(), encoding="utf-8")
    return path


def one(tmp_path: Path, **changes: str) -> Task | Unpredictable:
    rows, bad = read_rows(written(tmp_path, BASE | changes))
    assert bad == []
    return tasks(rows)[0]


def done(tmp_path: Path, **changes: str) -> Task:
    task = one(tmp_path, **changes)
    assert isinstance(task, Task), task.why
    return task


def why(tmp_path: Path, **changes: str) -> str:
    task = one(tmp_path, **changes)
    assert isinstance(task, Unpredictable)
    return task.why


def ways(task: Task) -> tuple[int, ...]:
    layout = task.setup.layout
    return (*(int(getattr(layout, name)) for name in ("tp", "ep", "pp", "dp")), task.setup.replicas)


def flagged(task: Task, words: str) -> bool:
    return any(words in flag for flag in task.flags)


# Reading


def test_read_rows__si_units_by_column_name(tmp_path: Path) -> None:
    full = {"notes": "ignored, secret", "surprise": "x"} | BASE | {"ttft_ms": "250", "tpot_ms": "12.5", "output_tok_s_total": "640"}
    rows, bad = read_rows(written(tmp_path, full))
    assert bad == [] and len(rows) == 1
    row = rows[0]
    assert (row.line, row.chips, row.tp, row.ep, row.prompt, row.concurrency) == (2, 1, 1, None, 1000, 8)
    assert (row.ttft_s, row.tpot_s, row.output_tok_per_s, row.tok_per_s_chip) == (0.25, 0.0125, 640, None)
    assert not any("secret" in str(getattr(row, name)) for name in row.__slots__)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"isl": "many"}, "isl: got 'many'; wants a number of tokens"),
        ({"isl": "-5"}, "isl"), ({"isl": "nan"}, "isl"), ({"osl": "inf"}, "osl"), ({"isl": "1_000"}, "isl"),
        ({"n_chips": "1.5"}, "n_chips: got '1.5'; wants a whole number"), ({"n_chips": "0"}, "n_chips"), ({"tp": "1e300"}, "tp"),
        ({"batch_or_concurrency": "0"}, "batch_or_concurrency"), ({"model": ""}, "model: missing"),
        ({"hardware": " "}, "hardware: missing"),
        ({"mode": ""}, "mode: missing"), ({"mode": "training"}, "mode: got 'training'; wants one of decode_step"),
        ({"max_num_seqs": "-1"}, "max_num_seqs: got '-1'; wants a whole number at least 1"), ({"max_num_seqs": "0"}, "max_num_seqs"),
        ({"max_num_seqs": "nan"}, "max_num_seqs"), ({"requests": "0"}, "requests: got '0'"), ({"requests": "2.5"}, "requests"),
        ({"tpot_ms": "fast"}, "tpot_ms"), ({"tpot_ms": "-1"}, "tpot_ms"),
    ],
)  # fmt: skip
def test_read_rows__malformed_row_is_listed_with_its_line(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    rows, bad = read_rows(written(tmp_path, BASE, BASE | {"id": "b"} | changes, BASE | {"id": "c"}))
    assert [row.id for row in rows] == ["a", "c"]
    assert (bad[0].line, bad[0].id) == (3, "b")
    assert words in bad[0].why and "\n" not in bad[0].why


def test_read_rows__line_numbers_past_quoted_breaks_and_blanks(tmp_path: Path) -> None:
    lines = 'b,m,h,prefill\nc,m,h,prefill,x,y\nd,m,h,prefill,\ne,m,h,prefill,"x\nf,m,h,prefill,x\n'
    text = 'id,model,hardware,mode,notes\na,m,h,prefill,"two\nlines"\n\n' + lines
    rows, bad = read_rows(written(tmp_path, text=text))
    assert [(row.id, row.line) for row in rows] == [("a", 2), ("d", 7), ("f", 9)]
    assert [(each.id, each.line) for each in bad] == [("b", 5), ("c", 6), ("", 8)]
    for row, why in zip(bad, ("4 cells under 5 column names", "6 cells under 5 column names", "opens a quote"), strict=True):
        assert why in row.why


@pytest.mark.parametrize("text", ["id,model,hardware\na,b,c\n", "1,2,3\n"])
def test_read_rows__missing_columns_are_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(BadFile, match=r"has no column .*mode"):
        read_rows(path)


def test_read_rows__duplicate_column_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="more than one column isl"):
        read_rows(written(tmp_path, text="id,model,hardware,mode,isl,isl,notes,notes\n"))


def test_read_rows__unreadable_file_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xff\xfe\x00\x01" * 50)
    for bad in (path, tmp_path, tmp_path / "nothing.csv"):
        with pytest.raises(BadFile):
            read_rows(bad)


def test_read_rows__header_alone_is_empty(tmp_path: Path) -> None:
    assert read_rows(written(tmp_path, text="\ufeffid,model,hardware,mode\n")) == ([], [])


# Names


@pytest.mark.parametrize(
    ("name", "chip", "count"),
    [
        ("H100-SXM-80GB", "h100_sxm", None), ("8xH100", "h100_sxm", 8), ("H100 x8", "h100_sxm", 8), ("4x A100 80GB", "a100_sxm_80", 4),
        ("NVIDIA A100-SXM4-40GB", "a100_sxm_40", None), ("A100-80GB(PCIe-linked)", "a100_pcie_80", None),
        ("H100-NVL-94GB", "h100_nvl", None),
        ("GB200-NVL72", "gb200", None), ("GH200-480GB", "gh200_96", None), ("RTX-4090", "rtx4090", None),
        ("NVIDIA GeForce RTX 4090 24GiB", "rtx4090", None), ("RTX-3090 (x2)", "rtx3090", 2), ("AMD Instinct MI300X OAM", "mi300x", None),
        ("MI325X-OAM-256GB", "mi325x", None), ("M2 Ultra (76-core GPU)", "apple_m2_ultra", None),
        ("Apple M4 Max 128GB", "apple_m4_max", None),
        ("Google Cloud TPU v5e", "tpu_v5e", None), ("L40S", "l40s", None), ("Intel Gaudi3", "gaudi3", None), ("dgx_h100", "h100_sxm", None),
        ("TPU v6e-8", "tpu_v6e", 8), ("tpu-v5p-16", "tpu_v5p", 8), ("v5litepod-4", "tpu_v5e", 4),
        ("B300-SXM-288GB", "b300_sxm", None), ("NVIDIA H200 141GB HBM3e", "h200_sxm", None),
        ("A30-PCIe-24GB", "a30", None), ("8xA800-80GB", "a800_sxm_80", 8), ("NVIDIA A800 80GB PCIe", "a800_pcie_80", None),
        ("RTX-A5000-24GB", "rtx_a5000", None), ("GeForce RTX 3080 (12GB)", "rtx3080_12", None), ("RTX-3080", "rtx3080_10", None),
        ("Tesla P100-SXM2-16GB", "p100_sxm2_16", None), ("AMD Instinct MI50 32GB", "mi50_32", None),
        ("AMD Radeon PRO W7900", "radeon_pro_w7900", None), ("Intel(R) Arc(TM) A770 Graphics", "arc_a770_16", None),
    ],
)  # fmt: skip
def test_hardware_name__spellings_of_public_tables(name: str, chip: str, count: int | None) -> None:
    found = hardware(name, default_catalog())
    assert (found.chip, found.count) == (chip, count)


@pytest.mark.parametrize(
    "name",
    [
        "H100-SXM-40GB",
        "A100-SXM-24GB",
        "RTX 4050",
        "H101",
        "MI300-96GB",
        "M3 Max (30-core GPU)",
        "MI50-16GB",
        "8x",
        "x8",
        "0xH100",
        "GPU",
        "",
        "-",
    ],
)
def test_hardware_name__other_sizes_are_not_guessed(name: str) -> None:
    with pytest.raises(UnknownName):
        hardware(name, default_catalog())


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("meta-llama/Llama-3.1-70B", "llama-3.1-70b"), ("Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b-fp8"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "llama-3.1-8b"), ("amd/Llama-3.1-405B-Instruct-FP8-KV", "llama-3.1-405b"),
        ("EleutherAI/gpt-j-6b", "gpt-j-6b"), ("huggyllama/llama-7b", "llama-7b"), ("tiiuae/falcon-180B", "falcon-180b"),
        ("codellama/CodeLlama-34b-Instruct-hf", "codellama-34b"), ("nvidia/DeepSeek-R1-0528-FP4-v2", "deepseek-r1"),
        ("amd/DeepSeek-R1-MXFP4-Preview", "deepseek-r1"), ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "llama-3.1-70b"),
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.1-70b"), ("TheBloke/Llama-2-70B-Chat-AWQ", "llama-2-70b"),
        ("llama-2-7b.Q4_K_M.gguf", "llama-2-7b"), ("llama 7B Q4_0", "llama-7b"), ("llama3.1:70b", "llama-3.1-70b"),
        ("gemma2:9b", "gemma-2-9b"), ("Mistral Small 24B Instruct 2501", "mistral-small-24b"), ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-3.1-70b"), ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "qwen2.5-72b"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen3-30b-a3b"), ("zai-org/GLM-4.6-FP8", "glm-4.5"), ("LLaMA-2 70B chat", "llama-2-70b"),
    ],
)  # fmt: skip
def test_model_name__spellings_of_public_tables(name: str, model: str) -> None:
    assert model_name(name) == model


@pytest.mark.parametrize("name", ["Llama-3.1-12B", "Llama-3-65b", "Qwen2.5-9B", "instruct", "FP8", "/", "-", "7b", "Llama", "70B-Instruct"])
def test_model_name__other_sizes_are_not_guessed(name: str) -> None:
    with pytest.raises(UnknownName):
        model_name(name)


def test_engine_family__spellings() -> None:
    said = {"TensorRT-LLM": "TensorRT-LLM", "TRT-LLM": "TensorRT-LLM", "tensorrt_llm": "TensorRT-LLM", "vllm 0.6": "vLLM",
            "SGLang": "SGLang",
            "ollama": "llama.cpp", "llama.cpp": "llama.cpp", "MLC-LLM": "native", "ExLlamaV2": "native", "CUDA 12.4": "other",
            "MLX": "other",
            "": "other", "dynamo-trt": "TensorRT-LLM", "Dynamo (vLLM)": "vLLM"}  # fmt: skip
    assert {name: family(name) for name in said} == said


# Formats


@pytest.mark.parametrize(
    ("weights", "stored_in", "compute", "bits"),
    [
        ("bf16", "", "", 16), ("fp16", "", "", 16), ("fp8", "fp8", "", 8), ("FP8_E4M3", "fp8", "", 8), ("w8a8", "int8", "", 8),
        ("smoothquant_int8", "int8", "", 8),
        ("nvfp4", "nvfp4", "", 4.5), ("mxfp4", "mxfp4", "", 4.25), ("gptq_int4", "int4_g128", "", 4.156),
        ("awq_int4", "int4_g128", "", 4.156),
        ("w4a16", "int4_g128", "", 4.156), ("w4a8_awq", "int4_g128", "fp8", 4.156), ("gptq_int8", "int8", "bf16", 8),
        ("w8a16", "int8", "bf16", 8),
        ("int4_g (q4f16)", "int4_g32", "", 4.5), ("gguf_q4_k_m", "q4_k_m", "", 4.8), ("Q4_0", "q4_0", "", 4.5),
        ("gguf_q8_0", "q8_0", "", 8.5),
        ("q6_k", "q6_k", "", 6.5625), ("q5_k_m", "q5_k_m", "", 5.65), ("gguf_q3_k_m", "q3_k_m", "", 3.85), ("q2_k", "q2_k", "", 2.94),
        ("gguf_iq2_xxs", "iq2_xxs", "", 2.0625), ("IQ3_XXS", "iq3_xxs", "", 3.0625), ("gguf_iq3_s", "iq3_s", "", 3.4375),
        ("gguf_iq1_s", "iq1_s", "", 1.5625), ("iq1_m", "iq1_m", "", 1.75), ("UD-Q4_K_XL", "q4_k_m", "", 4.8),
        ("gguf_ud-iq2_xs", "iq2_xs", "", 2.3125),
    ],
)  # fmt: skip
def test_weights_format__spellings_and_bits(weights: str, stored_in: str, compute: str, bits: float) -> None:
    found = precision(weights, "bf16", "m", "vLLM", "NVIDIA", "bf16")
    assert (found.precision.weights, found.precision.compute) == (stored_in, compute)
    assert 8 * float(formats()[stored_in or "bf16"].bytes) == pytest.approx(bits, rel=0.003)


def test_weights_format__every_spelling_exists() -> None:
    named = {name for _, name, _, _ in SPELLINGS if name != "gguf"} | set(GGUF.values()) | set(HEAD) | set(HEAD.values())
    assert named <= set(WEIGHTS) <= set(formats())


def test_weights_format__gguf_file_sizes_of_the_readme(tmp_path: Path) -> None:
    # GiB of Llama-3.1-8B
    sizes = {"q4_k_m": 4.58, "q5_k_m": 5.33, "q6_k": 6.14, "q8_0": 7.95, "q4_k_s": 4.36, "q2_k": 2.95, "iq3_xxs": 3.04}
    for weights, gib in sizes.items():
        setup = done(tmp_path, weight_precision=weights, engine="llama.cpp").setup
        assert setup.weights_bytes == pytest.approx(gib * 2**30, rel=0.003), weights


def test_precision__unstated_formats_follow_a_rule_and_are_flagged() -> None:
    by_name = precision("", "", "nvidia/Llama-3.1-8B-Instruct-FP8", "TensorRT-LLM", "NVIDIA", "bf16")
    assert (by_name.precision.weights, by_name.precision.kv) == ("fp8", "fp8") and len(by_name.flags) == 2
    assert precision("", "", "Llama-3.1-8B", "vLLM", "NVIDIA", "bf16").precision.weights == ""
    assert precision("fp8", "", "amd/Llama-3.1-405B-Instruct-FP8-KV", "vLLM", "AMD", "bf16").precision.kv == "fp8"
    assert precision("fp8", "", "m", "vLLM", "NVIDIA", "bf16").precision.kv == "bf16"
    assert precision("fp8", "", "m", "vLLM", "NVIDIA", "bf16", "inferencex").precision.kv == "fp8"
    assert precision("bf16", "", "m", "vLLM", "NVIDIA", "bf16", "inferencex").precision.kv == "bf16"
    assert precision("q4_0", "", "m", "llama.cpp", "NVIDIA", "bf16").precision.kv == "fp16"
    fp4 = {(vendor, stored): precision("fp4", "", "m", "vLLM", vendor, stored).precision.weights
           for vendor, stored in (("amd", "bf16"), ("nvidia", "fp8"), ("nvidia", "mxfp4"))}  # fmt: skip
    assert fp4 == {("amd", "bf16"): "mxfp4", ("nvidia", "fp8"): "nvfp4", ("nvidia", "mxfp4"): ""}
    assert precision("mxfp4", "", "gpt-oss", "vLLM", "AMD", "mxfp4").precision.weights == ""  # as stored: attention stays bf16
    assert "ud-iq1-s taken as iq1_s" in precision("UD-IQ1_S", "", "m", "llama.cpp", "NVIDIA", "bf16").flags
    named = precision("", "", "unsloth/DeepSeek-R1-UD-IQ2_XXS", "llama.cpp", "NVIDIA", "bf16")
    assert (named.precision.weights, named.head) == ("iq2_xxs", "")
    for weights, kv in (("int3_magic", ""), ("bf16", "fp2")):
        with pytest.raises(UnknownName):
            precision(weights, kv, "m", "vLLM", "NVIDIA", "bf16")


# Layouts

MOE = {"model": "mistralai/Mixtral-8x7B-v0.1"}
FP8_MOE = {"model": "deepseek-ai/DeepSeek-R1", "weight_precision": "fp8", "hardware": "H200-SXM-141GB", "n_chips": "8"}


@pytest.mark.parametrize(
    ("changes", "expected", "flag"),
    [
        ({"n_chips": "8", "tp": "2", "pp": "1", "dp": "4"}, (2, 1, 1, 1, 4), ""),
        ({"n_chips": "8", "tp": "2"}, (2, 1, 1, 1, 4), ""),
        ({"n_chips": "8", "tp": "2", "dp": "2"}, (2, 1, 1, 1, 4), "taken as 4 replicas"),
        ({"n_chips": "", "tp": "4", "pp": "2"}, (4, 1, 2, 1, 1), "chips not stated: 8"),
        ({"n_chips": "7", "tp": "2"}, (2, 1, 1, 1, 3), "1 of 7 chips idle"),
        ({"n_chips": "8", "tp": ""}, (8, 1, 1, 1, 1), "tp not stated: 8, one instance"),
        ({"n_chips": "8", "tp": "", "mode": "offline_throughput"}, (1, 1, 1, 1, 8), "tp not stated: 1, the fewest"),
        ({"model": "llama-3.1-70b", "n_chips": "8", "tp": "", "mode": "offline_throughput"}, (4, 1, 1, 1, 2), "tp not stated: 4"),
        ({"model": "qwen2.5-7b", "n_chips": "8", "tp": ""}, (4, 1, 1, 1, 2), "tp not stated: 4"),  # 28 heads
        ({"n_chips": "4", "tp": "", "engine": "llama.cpp", "hardware": "RTX-4090"}, (1, 1, 4, 1, 1), "splits the layers over 4"),
        ({"n_chips": "5", "tp": "5", "engine": "llama.cpp", "hardware": "RTX-4090"}, (1, 1, 5, 1, 1), "taken as one of layers"),
        (FP8_MOE | {"tp": "", "n_chips": "16", "hardware": "H100"}, (8, 1, 2, 1, 1), "pp not stated: 2"),
        (FP8_MOE | {"tp": "1", "dp": "8", "ep": "8"}, (1, 8, 1, 8, 1), ""),
        (FP8_MOE | {"tp": "8", "dp": "8", "ep": "8"}, (1, 8, 1, 8, 1), "tp counted the data parallel ranks"),
        (FP8_MOE | {"tp": "8", "dp": "1", "ep": "8"}, (8, 8, 1, 1, 1), ""),
        (FP8_MOE | {"tp": "8"}, (8, 1, 1, 1, 1), "ep not stated"),
        (MOE | {"n_chips": "8", "tp": "2", "dp": "4", "ep": "1"}, (2, 1, 1, 4, 1), ""),
        ({"n_chips": "2", "tp": "2", "ep": "2"}, (2, 1, 1, 1, 1), "ep 2 left out"),
        (FP8_MOE | {"n_chips": "40", "tp": "8", "ep": "8", "mode": "disagg"}, (8, 8, 1, 1, 1), "one decode worker's"),
    ],
)  # fmt: skip
def test_row_layout__stated_and_default(tmp_path: Path, changes: dict[str, str], expected: tuple[int, ...], flag: str) -> None:
    task = done(tmp_path, **changes)
    assert ways(task) == expected
    assert flagged(task, flag) if flag else not [each for each in task.flags if "KV cache" not in each]


@pytest.mark.parametrize(("version", "expected"), [("1.0", (1, 8, 1, 8, 1)), ("0.17", (8, 1, 1, 1, 1)), ("", (8, 1, 1, 1, 1))])
def test_row_layout__offline_moe_on_recent_tensorrt_llm_uses_attention_dp(tmp_path: Path, version: str, expected: tuple[int, ...]) -> None:
    offline = FP8_MOE | {"tp": "8", "mode": "offline_throughput", "engine": "TensorRT-LLM", "engine_version": version}
    assert ways(done(tmp_path, **offline)) == expected
    assert ways(done(tmp_path, **offline | {"dp": "1"})) == (8, 1, 1, 1, 1)  # stated


def test_place__smallest_tp_that_fits() -> None:
    said = StatedLayout(chips=16, tp=None, ep=None, pp=None, dp=None, engine="vLLM", version=None, load="saturated", moe=False, split=False)
    placed = place(said, lambda tp, pp: tp >= 2, lambda tp: 12 % tp == 0, 8)
    assert not isinstance(placed, str)
    assert (placed.layout.tp, placed.replicas) == (2, 8)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_chips": "4", "tp": "8"}, "the layout needs 8 chips, the row has 4"),
        ({"model": "qwen2.5-7b", "n_chips": "8", "tp": "8"}, "tp 8 does not divide 28 attention heads"),
        (FP8_MOE | {"tp": "8", "ep": "3"}, "ep 3 does not divide"),
        ({"model": "someone/else-9b"}, "no model named"), ({"hardware": "Abacus"}, "no chip named"),
        ({"weight_precision": "int3_magic"}, "no format of weights named"), ({"kv_precision": "fp2"}, "no format of a KV cache named"),
        ({"hardware": "matx_one"}, "not known"),
        ({"hardware": "M2 Ultra", "n_chips": "2", "tp": "2"}, "not known"),
        ({"isl": ""}, "input length not stated"), ({"osl": ""}, "output length not stated"),
        ({"batch_or_concurrency": ""}, "no load stated"), ({"mode": "disagg", "batch_or_concurrency": ""}, "no load stated"),
        ({"mode": "decode_step", "batch_or_concurrency": ""}, "batch_or_concurrency: missing"),
        (FP8_MOE | {"mode": "decode_step", "batch_or_concurrency": "", "dp": "8", "ep": "8"}, "batch_or_concurrency: missing"),
        ({"mode": "decode_step", "isl": ""}, "input length not stated"), ({"mode": "prefill", "isl": "0"}, "a prefill of no tokens"),
        ({"mode": "offline_throughput", "isl": ""}, "input length not stated"),
        ({"isl": "0"}, "a prefill of no tokens"), ({"mode": "offline_throughput", "isl": "0"}, "a prefill of no tokens"),
        ({"mode": "disagg", "n_chips": "8", "tp": "8"}, "none is left for prefill"),
    ],
)  # fmt: skip
def test_row_setup__reasons_without_a_prediction(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    assert words in why(tmp_path, **changes)


@pytest.mark.parametrize(("chips", "tp"), [("8", 4), ("16", 8), ("2", 1)])
def test_disagg__decode_worker_leaves_chips_for_prefill(tmp_path: Path, chips: str, tp: int) -> None:
    assert done(tmp_path, mode="disagg", n_chips=chips, tp="").setup.layout.tp == tp
    stated = done(tmp_path, mode="disagg", n_chips="", tp="4")
    assert stated.setup.system.chips == 8
    assert "chips not stated: 8, a decode worker and as many for prefill" in stated.flags


# Machines


@pytest.mark.parametrize(
    ("name", "chips", "topology", "domain", "bandwidth"),
    [
        ("H100-SXM-80GB", "16", "switch", 8, 450e9), ("GB200-NVL72", "16", "switch", 16, 900e9), ("MI300X", "8", "mesh", 8, 448e9),
        ("RTX-4090", "4", "pcie", 4, 31.5e9), ("A100-PCIe-80GB", "2", "pcie", 2, 31.5e9), ("H100-NVL-94GB", "2", "bridge", 2, 300e9),
        ("RTX 3090 NVLink", "2", "bridge", 2, 56.25e9), ("A100-80GB(PCIe-linked)", "8", "pcie", 8, 31.5e9),
    ],
)  # fmt: skip
def test_row_machine__chips_and_scale_up(tmp_path: Path, name: str, chips: str, topology: str, domain: int, bandwidth: float) -> None:
    system = done(tmp_path, hardware=name, n_chips=chips, tp="2").setup.system
    assert (int(system.chips), system.topology, int(system.scale_up_domain)) == (int(chips), topology, domain)
    assert float(system.scale_up_bw) == pytest.approx(bandwidth)


def test_row_machine__chip_count_in_the_name(tmp_path: Path) -> None:
    assert int(done(tmp_path, hardware="8xH100", n_chips="", tp="8").setup.system.chips) == 8
    assert flagged(done(tmp_path, hardware="8xH100", n_chips="16", tp="8"), "8xH100 with 16 chips")


# Modes


@pytest.mark.parametrize(
    ("changes", "kind", "load"),  # prompt, output, context, batch, concurrency
    [
        ({"mode": "decode_step", "context_len": "256", "isl": "0", "osl": "512"}, "decode", (0, 512, 256, 8, 8)),
        ({"mode": "decode_step", "batch_or_concurrency": "", "engine": "llama.cpp"}, "decode", (1000, 100, 1050, 1, 1)),
        ({"mode": "decode_step", "osl": "", "n_chips": "2", "tp": "1", "dp": "2"}, "decode", (1000, None, 1000, 4, 8)),
        ({"mode": "decode_step", "roofline": "yes_e2e", "context_len": "2000"}, "decode_e2e", (1000, 100, 2000, 8, 8)),
        ({"mode": "prefill", "osl": "0", "batch_or_concurrency": "1"}, "prefill", (1000, 0, None, 1, 1)),
        ({"mode": "serving_concurrency"}, "serving", (1000, 100, 1050, None, 8)),
        (
            {"mode": "serving_concurrency", "roofline": "tpot_low_qps", "batch_or_concurrency": ""},
            "serving_unloaded",
            (1000, 100, 1050, 1, 1),
        ),
        ({"mode": "offline_throughput", "batch_or_concurrency": ""}, "offline", (1000, 100, 1050, None, None)),
        ({"mode": "offline_throughput", "roofline": "yes_static_batch"}, "static", (1000, 100, 1050, 8, 8)),
        ({"mode": "disagg", "n_chips": "2"}, "disagg", (1000, 100, 1050, None, 8)),
        ({"mode": "serving_concurrency", "source_key": "inferencex_x"}, "serving", (900, 90, 945, None, 8)),
        ({"mode": "offline_throughput", "source_key": "inferencex_x"}, "offline", (1000, 100, 1050, None, 8)),
    ],
)
def test_row_mode__kind_and_load(tmp_path: Path, changes: dict[str, str], kind: str, load: tuple[float | None, ...]) -> None:
    task = done(tmp_path, **changes)
    assert task.kind == kind and kind in KINDS
    assert (task.prompt, task.output, task.context, task.batch, task.concurrency) == pytest.approx(load)


def test_row_setup__independent_of_measured_columns(tmp_path: Path) -> None:
    seen = done(tmp_path, ttft_ms="100", tpot_ms="5", output_tok_s_total="900", tok_s_per_chip="900", notes="tp=4")
    unseen = done(tmp_path)
    assert seen.setup is unseen.setup  # equal setups are one object
    assert (seen.prompt, seen.output, seen.context, seen.batch, seen.concurrency, seen.flags) == (
        unseen.prompt, unseen.output, unseen.context, unseen.batch, unseen.concurrency, unseen.flags,
    )  # fmt: skip


def test_read_rows__little_work_for_ten_thousand_rows(tmp_path: Path) -> None:
    rows = [BASE | {"id": str(number), "isl": str(100 + number), "tp": str(1 << number % 4), "n_chips": "8"} for number in range(10_000)]
    path = written(tmp_path, *rows)
    answers = []
    assert calls(lambda: answers.append(read_rows(path))) < 20 * len(rows)  # bench/bench_read.py measures the time
    read, bad = answers[0]
    assert calls(lambda: answers.append(tasks(read))) < 20 * len(rows)
    found = answers[1]
    assert (len(found), bad) == (10_000, [])
    assert len({id(task.setup) for task in found if isinstance(task, Task)}) == 4


@pytest.mark.parametrize(
    ("column", "meant"),
    [("weight_precison", "weight_precision"), ("weights", "weight_precision"), ("prompt", "isl"), ("concurrency", "batch_or_concurrency"),
     ("KV-precision", "kv_precision"), ("max_num_seq", "max_num_seqs"), ("max_seqs", "max_num_seqs"), ("num_prompts", "requests"),
     ("engine-version", "engine_version"), ("batch_or_concurency", "batch_or_concurrency")],
)  # fmt: skip
def test_columns__a_slip_is_named_with_what_was_meant(tmp_path: Path, column: str, meant: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"id,model,hardware,mode,{column}\na,llama-3.1-8b,h100,decode_step,8\n", encoding="utf-8")
    with pytest.raises(BadFile, match=f"'{column}' is not read; did you mean {meant}"):
        read_rows(path)


def test_columns__of_ones_own_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    own = "notes,routing,rate_req_s,prefill_workers,operator,ticket,mfu"
    path.write_text(f"id,model,hardware,mode,{own}\na,llama-3.1-8b,h100,decode_step,{',' * own.count(',')}\n", encoding="utf-8")
    assert len(read_rows(path)[0]) == 1


def test_rate_without_users__is_an_open_loop() -> None:
    """A server told only its arrivals is predicted: rare ones are each alone, many share its steps."""
    line = Rig("llama-3.1-8b", "H100-SXM-80GB", 1, "vllm", 1).line("r", "serving_concurrency", 1000, 200, 1, "x") | {
        "batch_or_concurrency": ""
    }
    slow, fast = tasks_of(csv_text([line | {"rate_req_s": rate} for rate in ("0.01", "12")]))
    few, many = (prediction.tpot.expected for prediction in predict([slow, fast]) if prediction.tpot)
    assert slow.rate == 0.01 and slow.concurrency is None and few < many
