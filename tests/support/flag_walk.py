"""Every flag of every verb with a legal value that is not its default, beside base commands that answer at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headway.cli.main import parser_of
from headway.cli.parser import help_of
from headway.core.question import QuestionField
from support.paths import ROOT

INPUTS = str(ROOT / "tests" / "contract" / "golden" / "inputs")
SIM = "sim llama-3.1-8b --on h200 --prompt 500 --output 50 --requests 30 --loop plain"
BASES = (
    "serve llama-3.1-8b --on 8xh200 --tp 4 --context 4k --batch 64",
    f"{SIM} --users 4",
    "score --vllm INPUTS/vllm_serve.json --on 8xh100-sxm --tp 8",
    "scale --active 100B --serve 50M/s --months 2",
    "price llama-3.1-8b --on h100-sxm --prompt 500 --output 50",
    "price --history anthropic",
    "price --case deepseek-day6",
    "price --memory-share gb200-nvl72",
    "cache llama-3.1-8b --on 8xh200 --reuse 0.8 --hold 5min,1h --mfu 0.4",
    "cache llama-3.1-8b --on 8xh200 --rate 2 --hit-rate 0.5",
    "cache llama-3.1-8b --on 8xh200 --sheet claude-opus",
    "bill --sheet claude-opus --prompt 8k --shared 6k --output 500 --rate 2/min",
    "law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=h100.hbm_bw",
    "find drain --most 3",
    "matmul bf16[B,4096]bf16[4096,4096] B=128 --peak 197T --from 820GB/s",
    "matmul bf16[B,4096]bf16[4096,4096] B=128 --on h100",
    "collective all-gather 1GB --mesh X8 --on 8xh100",
    "capacity deepseek-v3 --on 8xh200 --context 8k",
    "fits qwen3-30b-a3b --on rtx3090",
    "compare gb200-nvl72,8xh200",
    "compare llama-3.1-8b,deepseek-v3",
    "show model deepseek-v3",
    "show chip h100-sxm",
    "show system gb200-nvl72",
    "show model deepseek-v3 --on 8xh200",
    "list models",
    "rack 8xh100-sxm --chips 8,16",
    "trend chips",
    "lecture RB-10",
    "lecture --model llama-3.1-8b --on 8xh200",
    "feistel avalanche",
    "predict INPUTS/runs.csv",
    "calibrate INPUTS/vllm_serve.json --on 8xh100-sxm --tp 8",
)
SLOW = (
    "train llama-3.1-8b --on 16xh100-sxm --tokens 1T --seq 8k --global-batch 1M --tp 2 --cp 1 --pp 1 --dp 8",
    "plan llama-3.1-8b --on h100-sxm --prompt 500 --output 50 --tp 1",
    "breakeven llama-3.1-8b --on l40s --sheet groq/llama-3.1-8b --rate 500k/day --prompt 2k --output 300 --tp 1 --kv bf16 --no-check",
    "plan llama-3.1-8b --on h100-sxm --prompt 500 --output 50 --rate 2 --ttft 2s",
    "serve qwen3-30b-a3b --on 8xh200 --dp 8 --ep 8 --prompt 2k --output 100 --batch 64",
    f"{SIM} --rate 5",
    "solve serve llama-3.1-8b --on 8xh200 --tp 4 --context 8k --for batch --so-that step_s=20ms",
    "speed llama-3.1-8b --on 8xh100-sxm --prompt 500 --output 50",
    "score INPUTS/measured.csv",
    "price --sheet claude-opus",
    "cache llama-3.1-8b --on 8xh200 --reuse 0.8 --hold 5min,1h",
    "cache llama-3.1-8b --on 8xh200 --workload INPUTS/talk.csv",
    "trend models",
)
# Flags that say how an answer is printed, or permit and check something, or write a file: they change no number.
OTHER = (
    "help", "help_all", "format", "plot", "picture", "plot_width", "plot_theme", "where", "sort", "explain", "depth", "verbose",
    "strict", "catalog", "timeline", "forget", "as_", "save", "into", "replace_",
)  # fmt: skip
VALUES = {
    "set": "chip.hbm_bw=2TB/s", "attention": "window:256", "kv_share": "2", "key": "num_hidden_layers=12", "embedding": "fp8",
    "expert_load": "INPUTS/expert_load.json", "price_metric": "tco_owning_hyperscaler", "chip_price": "$3.3/h", "on": "8xb200",
    "optimizer": "muon", "model": "llama-3.1-70b", "arrivals": "even", "requests": "25", "think": "1s", "turns": "3,10s",
    "prefix_cache": "hbm:10GB", "ttl": "1min", "fast": "0.3", "sensitivity": "0.3", "warmup": "0.3", "seeds": "2", "find": "rate",
    "loop": "compiled", "seed": "7", "objective": "latency", "launch": "vllm", "manifest": "k8s", "chips_per_host": "4",
    "plainest": "off", "current": "tp=1 batch=8", "users": "8", "trace": "INPUTS/talk.csv", "confidence": "0.9", "spare": "1",
    "so_that": "p99_ttft_s=1s", "batch_per_stage": "4", "plan": "missing.json", "sheet": "claude-opus", "fee": "$5/Mtok",
    "storage": "$4.5/Mtok/h", "workload": "INPUTS/talk.csv", "history": "anthropic", "score": "INPUTS/open_models_sold.csv",
    "case": "deepseek-day6", "memory_share": "gb200-nvl72", "context": "3k", "batch": "7", "trace_block": "16", "deadline": "60d",
    "weights": "fp8", "kv": "fp8", "compute": "fp8", "engine": "sglang", "dropout": "1", "communication": "two-batch", "overlap": "serial",
}  # fmt: skip
WORDS = ("fitted", "none", "60s")  # that stand for a default, or for a part of one


@dataclass(frozen=True, slots=True)
class WalkedFlag:
    """A flag beside a base command, with a legal value that is not its default; "" for a switch."""

    base: tuple[str, ...]
    name: str
    value: str
    is_printed: bool
    default: str = ""  # that its help states, and that can be typed

    def words(self, value: str | None = None) -> list[str]:
        """The command with the flag, at its value or another one."""
        text = self.value if value is None else value
        return [*self.base, f"{self.name}={text}" if self.value else self.name]


def words_of(base: str) -> list[str]:
    """A base command as words."""
    return [word.replace("INPUTS", INPUTS) for word in base.split()]


def flags_of(base: str) -> Iterator[WalkedFlag]:
    """The flags of a verb that its base command does not have; those of a model by numbers have tests of their own."""
    words = words_of(base)
    typed = {word.partition("=")[0] for word in words}
    for flag in parser_of(words).flags.values():
        name = next((option for option in flag.spellings if option.startswith("--")), "")
        if name and not flag.into and not typed & set(flag.spellings):
            stated = re.search(r"\(default ([^()\s,;]+)\)", help_of(flag))
            default = stated[1] if stated and not flag.field.is_switch and stated[1] not in WORDS else ""
            yield WalkedFlag(tuple(words), name, "" if flag.field.is_switch else _value(flag), flag.name in OTHER, default)


def _value(flag: QuestionField) -> str:
    """A legal value that is not the default."""
    field = flag.field
    if flag.name in VALUES:
        return VALUES[flag.name].replace("INPUTS", INPUTS)
    if field.choices:
        return [choice for choice in field.choices if choice][-1]
    if not field.is_number:
        return field.word.split("|")[-1] if "|" in field.word else "3"
    if field.integer:
        return "0" if field.high == 1 else "2" if field.high < 1e9 else "777"
    if field.unit == "flop/s":
        return "300T"
    if field.unit:
        return "37ms" if field.unit == "s" else "3"
    return "0.37" if field.high <= 1 else repr(max(3.0, field.low + 1)) if field.high > 3 else repr((field.low + field.high) / 2)
