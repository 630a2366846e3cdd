"""NVIDIA aiconfigurator's predictions of measured rows, as `bench/league.py` reads them: an adapter, run by the Python that has it.

`PYTHON bench/league_aiconfigurator.py ROWS.csv > predictions.csv`. Models go by their configuration in its package (Llama 3 and 3.3 by
that of 3.1, whose shape they have), engines by the current tables of the chip, whatever version was measured. A row that it has no table,
no model or no load for has no prediction, and `why`. What a row leaves out is not guessed, but for tp (all chips). Exit status 69 where it
is not installed.
"""

import csv
import functools
import logging
import sys
from pathlib import Path

try:
    from aiconfigurator.cli.api import cli_estimate
except ImportError:
    print("aiconfigurator is not installed in this Python", file=sys.stderr)
    sys.exit(69)

logging.disable(logging.CRITICAL)
COLUMNS = ("id", "ttft_ms", "tpot_ms", "output_tok_s_total", "tok_s_per_chip", "why")
SYSTEMS = {
    "H100-SXM-80GB": "h100_sxm", "H100-PCIe-80GB": "h100_pcie", "H200-SXM-141GB": "h200_sxm", "B200-SXM-180GB": "b200_sxm",
    "B300-SXM": "b300_sxm",
    "GB200-NVL72": "gb200", "GB300-NVL72": "gb300", "A100-SXM-80GB": "a100_sxm", "A100-80GB": "a100_sxm", "A100-PCIe-80GB": "a100_pcie",
    "A100-80GB(PCIe-linked)": "a100_pcie", "L40S": "l40s", "L4": "l4", "RTX-PRO-6000-Blackwell": "rtx_pro_6000_server",
}  # fmt: skip
ENGINES = {"vLLM": "vllm", "SGLang": "sglang", "TensorRT-LLM": "trtllm"}
MODELS = {  # the name without its publisher, format and tuning, in lower case
    "llama-3-8b": "meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B", "llama-3.3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-405b": "meta-llama/Meta-Llama-3.1-405B", "qwen3-32b": "Qwen/Qwen3-32B", "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B", "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B", "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1", "gpt-oss-120b": "openai/gpt-oss-120b", "gpt-oss-20b": "openai/gpt-oss-20b",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b-v0.1": "mistralai/Mixtral-8x7B-v0.1",
    "mixtral-8x22b-v0.1": "mistralai/Mixtral-8x22B-v0.1",
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5", "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "llama-4-scout-17b-16e": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "llama-4-maverick-17b-128e": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
}  # fmt: skip
ROUTED = ("a3b", "a22b", "deepseek", "gpt-oss", "mixtral", "minimax", "kimi", "llama-4")
WHOLE = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8", "nvfp4": "nvfp4", "awq_int4": "int4_wo", "gptq_int4": "int4_wo"}
BLOCKS = ("qwen3", "deepseek", "minimax")  # whose makers publish FP8 with a scale a block
KV = {"fp8": "fp8", "bf16": "bfloat16", "fp16": "bfloat16"}

OF_ONE_POOL = ("batch_size", "mode", "tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")


class Unknown(Exception):
    """Why a row has no prediction."""


def number(row, name, otherwise=None):
    """A cell as a whole number."""
    text = (row.get(name) or "").strip()
    return round(float(text)) if text else otherwise


def of(table, key, what):
    """An entry of a table, or why there is none."""
    if key not in table:
        raise Unknown(f"no {what} for {key or 'a row that states none'}")
    return table[key]


def model_of(row):
    """Path of a row's model, and its plain name."""
    name = row["model"].split("/")[-1].lower().replace("meta-", "").removesuffix("-kv")
    for ending in ("-fp8", "-fp4", "-nvfp4", "-awq", "-instruct-v0.1", "-instruct", "-chat-hf", "-hf", "-fp8"):
        name = name.removesuffix(ending)
    return of(MODELS, name, "model"), name


def layout(row, chips, is_routed):
    """Flags of the layout, and how many replicas of it the chips hold."""
    tp, pp, dp, ep = (number(row, name, 1) for name in ("tp", "pp", "dp", "ep"))
    if not row.get("tp"):
        tp = chips // (pp * dp)
    inside = dp if is_routed and tp * pp * dp <= chips else 1
    flags = {"tp_size": tp, "pp_size": pp, "attention_dp_size": inside}
    if is_routed:
        flags |= {"moe_ep_size": min(ep, tp * inside), "moe_tp_size": tp * inside // min(ep, tp * inside)}
    return flags, max(1, chips // (tp * pp * inside))


def formats(row, name, is_routed):
    """Flags of the formats: as the package's configuration says where the row says what it publishes."""
    stored = row.get("weight_precision", "")
    flags = {"kvcache_quant_mode": KV.get(row.get("kv_precision", ""))}
    if stored == "mxfp4":
        return flags
    mode = of(WHOLE, stored, "format")
    mode = "fp8_block" if mode == "fp8" and name.startswith(BLOCKS) else mode
    return flags | {"gemm_quant_mode": mode} | ({"moe_quant_mode": mode} if is_routed else {})


@functools.cache
def estimate(flags):
    """One estimate."""
    return cli_estimate(**dict(flags))


def asked(row):
    """Flags of a row's estimate, its chips and its replicas."""
    system, engine = of(SYSTEMS, row["hardware"], "system"), of(ENGINES, row.get("engine", ""), "engine")
    path, name = model_of(row)
    if row.get("draft") or row.get("accept_length") or row.get("rate_req_s"):
        raise Unknown("speculation and arrivals at a rate are not asked of it")
    is_routed = any(part in name for part in ROUTED)
    tp, dp = number(row, "tp", 1), number(row, "dp", 1)
    chips = number(row, "n_chips") or tp * number(row, "pp", 1) * dp
    flags, replicas = layout(row, chips, is_routed)
    context, prompt, output = number(row, "context_len"), number(row, "isl"), number(row, "osl")
    users = number(row, "batch_or_concurrency", 1 if row.get("roofline") == "tpot_low_qps" or row["mode"] == "prefill" else None)
    if users is None:
        raise Unknown("no batch or users: it has no limit by memory to fill up to")
    if not (prompt or context):
        raise Unknown("no input length")
    batch = max(1, round(users / replicas / flags["attention_dp_size"]))
    mode = {"prefill": "static_ctx", "decode_step": "static_gen"}.get(row["mode"], "agg")
    if row.get("roofline") in ("yes_e2e", "yes_static_batch"):
        mode = "static"
    if mode == "static_gen":
        prompt, output = context or prompt + (output or 0) // 2, 2
    if mode != "static_ctx" and not output:
        raise Unknown("no output length")
    flags |= formats(row, name, is_routed) | {"isl": prompt, "osl": output or 2, "batch_size": batch, "mode": mode}
    return {"model_path": path, "system_name": system, "backend_name": engine, **flags}, chips, replicas


def disaggregated(row):
    """Flags of a row with pools apart: workers as stated."""
    flags, chips, _ = asked(row | {"mode": "serving_concurrency"})
    workers = {role: number(row, f"{role}_workers") for role in ("prefill", "decode")}
    if not all(workers.values()):
        raise Unknown("workers of pools apart are not stated")
    users, path = number(row, "batch_or_concurrency"), flags["model_path"]
    flags = {name: value for name, value in flags.items() if name not in OF_ONE_POOL}
    is_routed = any(part in path.lower() for part in ROUTED)
    for role, count in workers.items():
        tp, dp, ep = number(row, f"{role}_tp", 1), number(row, f"{role}_dp", 1), number(row, f"{role}_ep", 1)
        flags |= {f"{role}_tp_size": tp, f"{role}_attention_dp_size": dp, f"{role}_num_workers": count}
        flags[f"{role}_batch_size"] = 1 if role == "prefill" else max(1, round(users / count / dp))
        if is_routed:
            flags |= {f"{role}_moe_ep_size": min(ep, tp * dp), f"{role}_moe_tp_size": tp * dp // min(ep, tp * dp)}
    return flags | {"mode": "disagg"}, chips, 1


def predicted(row):
    """The cells of one row's prediction."""
    try:
        flags, chips, replicas = disaggregated(row) if row["mode"] == "disagg" else asked(row)
        found = estimate(tuple(sorted(flags.items())))
    except Unknown as error:
        return {"why": str(error)}
    except Exception as error:  # its own errors have many types
        return {"why": " ".join(f"{type(error).__name__}: {error}".split())[:160]}
    mode, cells = flags["mode"], {}
    if mode == "static_ctx":
        rate = flags["batch_size"] * flags["isl"] * flags["attention_dp_size"] * replicas / found.ttft * 1e3
    else:
        rate = float(found.raw.get("tokens/s") or found.tokens_per_second) * replicas
        cells["tpot_ms"] = found.tpot
    if mode != "static_gen":
        cells["ttft_ms"] = found.ttft
    return {name: f"{float(value):.6g}" for name, value in (cells | {"output_tok_s_total": rate, "tok_s_per_chip": rate / chips}).items()}


def main():
    """Write a line for each row of the file."""
    with Path(sys.argv[1]).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    for row in rows:
        writer.writerow({"id": row["id"], **predicted(row)})


if __name__ == "__main__":
    main()
