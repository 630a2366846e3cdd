"""The files that the golden commands read: `python tests/contract/golden/golden.py --inputs` writes them again into inputs/.

Tables of measured rows come from tests/data; fit_rows.csv and few.csv (drawn once, with seeded noise) are not made here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent
INPUTS = HERE / "inputs"
DATA = HERE.parents[1] / "data"
COPIED = {
    "training_rows.csv": "training_rows.csv", "open_models_sold.csv": "open_models_sold.csv",
    "open_models_sizes.csv": "open_models_sizes.csv",
    "readers/vllm_serve.json": "vllm_serve.json", "readers/llama_bench.json": "llama_bench.json",
    "readers/requests.csv": "requests.csv",
    "readers/inferencex.json": "inferencex.json", "readers/aiperf/qwen-chat-concurrency16": "aiperf",
}  # fmt: skip

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip
CHIP = """vendor = "me"
topology = "switch"
[facts]
hbm = "96 GB"
hbm_bw = "5 TB/s"
peak_bf16 = "1000 TFLOPS"
scale_up_domain = "8"
scale_up_bw = "400 GB/s"
"""
RUNS_HEAD = "id,model,hardware,n_chips,engine,weight_precision,tp,mode,isl,osl,batch_or_concurrency"
GOOD = "llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,1024,1024,64"
RUNS = f"""{RUNS_HEAD}
first,{GOOD}
nomodel,,h100-sxm,8,vllm,fp8,8,serving_concurrency,1024,1024,64
nochip,llama-3.1-70b,h1000,8,vllm,fp8,8,serving_concurrency,1024,1024,64
text,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,many,1024,64
wide,{GOOD},7,8
tp3,llama-3.1-70b,h100-sxm,8,vllm,fp8,3,serving_concurrency,1024,1024,64
nolength,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,,1024,64
,{GOOD}
offline,llama-3.1-8b,a100-80gb,1,tensorrt-llm,fp16,1,offline_throughput,128,128,
experts,deepseek-v3,h200-sxm,8,sglang,fp8,8,serving_concurrency,4096,1024,32
prefill,llama-3.1-8b,rtx4090,1,llama.cpp,q4_k_m,1,prefill,512,,1
last,llama-3.1-8b,rtx4090,1,llama.cpp,q4_k_m,1,decode_step,0,128,1
"""
MEASURED = f"""{RUNS_HEAD},ttft_ms,tpot_ms,tok_s_per_chip,source_key,reliability
fast,{GOOD},200,14,,one,A
slow,{GOOD},,28,,one,B
none,{GOOD},,,,two,A
never,{GOOD},1,1,,two,C
bad,llama-3.1-70b,h100-sxm,8,vllm,fp8,8,serving_concurrency,x,1024,64,200,14,,one,A
nochip,llama-3.1-70b,h1000,8,vllm,fp8,8,serving_concurrency,1024,1024,64,200,14,,one,A
offline,llama-3.1-8b,a100-80gb,1,tensorrt-llm,fp16,1,offline_throughput,128,128,,,,5000,three,A
experts,deepseek-v3,h200-sxm,8,sglang,fp8,8,serving_concurrency,4096,1024,32,900,21,,three,A
prefill,llama-3.1-8b,rtx4090,1,llama.cpp,q4_k_m,1,prefill,512,,1,70,,7300,four,A
decode,llama-3.1-8b,rtx4090,1,llama.cpp,q4_k_m,1,decode_step,0,128,1,,8,,four,A
"""
TRAINING_NEW = """id,model,hardware,n_chips,precision,seq_len,tp,pp,ep,zero_or_fsdp,micro_batch,global_batch,recompute
mi300x,Llama-3.1-8B,AMD Instinct MI300X,8,bf16,8192,1,1,,FSDP,2,64,
b200,llama3.1-70b,DGX-B200,64,fp8,8192,2,4,,dist-opt,1,128,
deepseek,DeepSeek-V3,H800,2048,fp8,4096,1,16,64,zero-1,1,15360,selective
mixtral,mistralai/Mixtral-8x7B-v0.1,H100 SXM5 80GB,128,bf16,4096,1,4,8,,1,256,
v6e,llama2-70b,TPU v6e,256,bf16,4096,,,,,,,
notdp,llama3-8b,TPU-v5e,16,bf16,8192,,,,,,,
v100,GPT-3 175B,V100-32GB,1024,fp16,2048,8,16,,,1,1536,full
"""
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-16 18:16:02.1000000,2048,77
2023-11-16 18:16:03.2000000,1200,31
2023-11-16 18:16:46.6805901,879,55
"""
TALK = """arrival_s,prompt,output,conversation
0,640,129,a
10,500,5,b
60,1000,10,a
75,3000,80,c
90,1500,40,a
130,4200,60,c
400,2200,100,b
900,2500,30,a
"""
PRICES = """currency = "USD"
provider = "mine"
model = "mine-1"
as_of = "2026-02"
source = "price page"
context_limit = "1M"
min_prefix = 1024
rates = { input = 5, output = 25, cache_read = "0.1x", cache_write = { 5min = 6.25, 1h = "2x" }, storage_per_mtok_h = 1 }
tiers = [{ above_tokens = "200k", input = 10, output = 37.5 }]
modes.fast = { ratio = 6, speed_ratio = 2.5, sla_tok_s = 80 }
time_of_day = [{ utc = "16:30-00:30", ratio = 0.5 }]
"""
SHEETS = {
    "currency": "USD", "provider": "other", "source": "price page",
    "sheets": [
        {"model": "small", "as_of": "2025-05", "rates": {"input": 0.15, "output": 0.6}},
        {"model": "large", "as_of": "2026-01", "context_limit": "200k", "rates": {"input": 3, "output": 15, "cache_read": "0.1x"}},
    ],
}  # fmt: skip


def random_numbers(count: int, seed: int) -> list[int]:
    """Whole numbers below 2^31 from a linear congruence: the same on every machine."""
    state, numbers = seed, []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        numbers.append(state >> 8)
    return numbers


def conversation_trace(requests: int = 80) -> str:
    """A plain trace of requests that arrive about twice a second."""
    numbers, clock, lines = random_numbers(3 * requests, 5), 0.0, ["arrival_s,prompt,output"]
    for gap, prompt, output in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        clock += gap % 1000 / 1000
        lines.append(f"{clock:.3f},{100 + prompt % 4000},{5 + output % 200}")
    return "\n".join(lines) + "\n"


def mooncake_trace(requests: int = 60) -> str:
    """A trace with prefix identities: every request begins with one of four documents, some go on as an earlier one did."""
    numbers, clock, lines = random_numbers(4 * requests, 9), 0, []
    for at in range(requests):
        gap, document, length, output = numbers[4 * at : 4 * at + 4]
        clock += gap % 60_000
        shared = [1000 * (document % 4) + block for block in range(1 + length % 5)]
        rest = [10_000 + (at // 3) * 10 + block for block in range(1 + length % 3)]
        blocks = shared + rest
        tokens = 512 * (len(blocks) - 1) + 1 + length % 512
        lines.append(json.dumps({"timestamp": clock, "input_length": tokens, "output_length": 20 + output % 300, "hash_ids": blocks}))
    return "\n".join(lines) + "\n"


def texts() -> dict[str, str]:
    """Path under inputs/ -> text of the file."""
    return {
        "config.json": json.dumps(CONFIG, indent=1) + "\n", "catalog/chips/dream1.toml": CHIP, "runs.csv": RUNS, "measured.csv": MEASURED,
        "training_new.csv": TRAINING_NEW, "azure.csv": AZURE, "talk.csv": TALK, "my_prices.toml": PRICES,
        "sheets.json": json.dumps(SHEETS, indent=1) + "\n", "conv.csv": conversation_trace(), "mooncake.jsonl": mooncake_trace(),
        "expert_load.json": json.dumps([1000 + number % 700 for number in random_numbers(256, 3)]) + "\n",
    }  # fmt: skip


def write() -> None:
    """Write every input file."""
    for name, text in texts().items():
        path = INPUTS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, target in COPIED.items():
        source = DATA / name
        if source.is_dir():
            shutil.copytree(source, INPUTS / target, dirs_exist_ok=True)
        elif source.is_file():
            shutil.copyfile(source, INPUTS / target)
