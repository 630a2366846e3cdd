"""Help of a verb: what an everyday question takes; `--help-all` prints every flag."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Flags, by the name of their value, that --help leaves to --help-all.
_STEP = (
    "overlap", "communication", "eff_compute", "eff_memory", "eff_network", "t0", "fixed", "eff_in_switch", "eff_exchange", "eff_out",
    "alpha", "alpha_hop", "alpha_host", "alpha_out", "alpha_exchange", "alpha_exchange_out", "imbalance", "expert_load", "spread",
    "hbm_utilization", "activation_bytes", "dispatch_bytes", "state_bytes", "draft_cost", "redundant", "compute", "attention", "kv_share",
)  # fmt: skip
_SIMULATION = (
    "trace_block", "kv_tokens", "block", "reserve", "departures", "request_overhead", "preemption", "swap_space", "patience", "step_factor",
    "reload", "ttl", "seeds", "fast", "timeline", "sensitivity", "warmup", "loop",
)  # fmt: skip
_TRAINING = (
    "sequence_parallel", "fused_attention", "dropout", "kernels", "fused_loss", "trainable", "bytes_param_wire", "bytes_gradient_wire",
    "mtbf", "restart", "checkpoint", "eff_expert", "eff_head", "eff_attention", "traffic", "hidden_tp", "hidden_dp", "hidden_cp",
    "hidden_ep", "fragmentation", "spread_memory", "vpp", "zero", "micro_batch",
)  # fmt: skip
_SCALING = (
    "month_days", "deployed", "serve_mfu", "serve_price", "kappa", "rl_mfu", "rl_trained", "eta", "granularity", "activation_bits",
    "post_bits", "correlation", "draws", "tokens_per_param",
)  # fmt: skip
_RACK = (
    "links_per_chip", "pairs_per_link", "ports_per_switch", "pairs_per_connector", "dies_per_chip", "chips_per_rack", "rack_units",
    "footprint", "air_limit", "liquid_limit", "cabinet_limit", "floor_limit",
)  # fmt: skip
_PICTURE = ("plot_width", "plot_theme")
ADVANCED = frozenset((*_STEP, *_SIMULATION, *_TRAINING, *_SCALING, *_RACK, *_PICTURE))
EXAMPLES = {
    "plan": "plan deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --ttft 2s --tpot 50ms",
    "serve": "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 1..256*2 --prompt 4k --output 600",
    "sim": "sim llama-3.1-70b --on 8xh100-sxm --tp 4 --replicas 2 --rate 5 --prompt 2k --output 300",
    "speed": "speed deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k",
    "price": "price deepseek-v3 --on gb200-nvl72 --chip-price 2.2..4.5 --utilisation 0.3..0.7",
    "cache": "cache deepseek-v3 --on 8xh200 --reuse 0.8 --hold 5min,1h,24h",
    "bill": "bill --sheet claude-opus --prompt 8k --shared 6k --output 500 --requests 200 --rate 2/min",
    "train": "train llama-3.1-405b --on 16384xh100-sxm --tokens 15T --seq 8k --global-batch 16M",
    "scale": "scale --active 100B --serve 50M/s --months 2",
    "solve": "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 8k --for batch --so-that step_s=20ms",
    "score": "score --vllm bench.json --on 8xh100-sxm --tp 8",
    "rack": "rack gb200-nvl72 --chips 72,144,576",
    "show": "show model deepseek-v3",
    "list": "list models",
    "predict": "predict rows.csv -o csv",
    "fit": "fit --from kernels/ --from measured.csv --out DIR",
    "trend": "trend chips",
    "lecture": "lecture RB-10",
    "law": "law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=h100.hbm_bw",
    "matmul": 'matmul "bf16[B, 4096] int8[4096, 4096]" B=128 --peak 197T --from 820GB/s',
    "collective": "collective all-gather 1GB --mesh X8 --on 8xh100",
    "capacity": "capacity deepseek-v3 --on 8xh200 --context 8k",
    "compare": "compare gb200-nvl72,8xh200",
    "feistel": "feistel avalanche",
    "new": "new chip zeta-1",
    "web": "web lecture RB-10 --open",
    "mcp": "mcp --list",
}


class HelpAll(argparse.Action):
    """`--help-all`: prints the help with every flag and ends the command, as `--help` does."""

    def __init__(self, option_strings: Any, dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=settings.get("help"))

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Print every flag."""
        parser.print_every_flag()
        parser.exit()


def usage(parser: Any, verb: str) -> str:
    """First lines of the help: subjects and flags without which the verb does not run, or a line for each of its modes."""
    if parser.modes:
        width = max(len(words) for words, _ in parser.modes) + len(verb)
        return "\n       ".join(f"{f'headway {verb} {words}':{width + 11}}{sentence}" for words, sentence in parser.modes)
    words = []
    for action in parser._actions:  # argparse offers no other way to its flags
        if not action.option_strings:
            name = str(action.metavar or action.dest)
            words.append(name if "|" in name or action.dest == "verb" else name.upper())
            words[-1] = f"[{words[-1]}]" if action.nargs == "?" else words[-1]
        elif action.required:
            words += [action.option_strings[-1], str(action.metavar or action.dest.upper())]
    return " ".join(["headway", verb, *words, "[flags]"])


def example(verb: str) -> str:
    """Last line of the help: an example."""
    return f"example: headway {EXAMPLES[verb]}" if verb in EXAMPLES else ""


@contextmanager
def everyday(parser: Any) -> Iterator[int]:
    """Within this block the parser's help has everyday flags alone; yields how many are left out."""
    hidden = [action for action in parser._actions if _is_hidden(action)]
    helps = [action.help for action in hidden]
    for action in hidden:
        action.help = argparse.SUPPRESS
    try:
        yield len(hidden)
    finally:
        for action, text in zip(hidden, helps, strict=True):
            action.help = text


def _is_hidden(action: Any) -> bool:
    return bool(action.option_strings) and action.dest in ADVANCED
