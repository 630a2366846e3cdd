"""The keys of `train`: the unit and the sentence of each, beside those that all verbs share."""

from __future__ import annotations

TIMES = {
    "compute": "matmuls of the layers, forward, backward and recomputed", "attention": "attention's scores and values",
    "traffic": "what runs between matmuls", "head": "the output head", "launch": "fixed cost of kernels",
    "tp": "exchanges of tensor parallelism that nothing hides", "cp": "the same of context parallelism",
    "ep": "the same between experts", "bubble": "idle time of the pipeline, and hops", "parameters": "gathers and reductions not hidden",
    "update": "the optimiser's update",
}  # fmt: skip
PARTS = {
    "weights": "weights", "gradients": "gradients", "optimizer": "the optimiser's states", "gathered": "whole layers gathered by ZeRO-3",
    "activations": "activations kept", "head": "what embedding or head keep", "allowance": "fragmentation, contexts, communicators",
}  # fmt: skip
ENDS = {"": "expected", "_floor": "no real step is faster", "_lo": "lower end of the 90 % interval", "_hi": "upper end of it"}
_TRAINING_ONLY = {
    "vpp": ("", "chunks of layers per stage (interleaved schedule)"),
    "micro_batch": ("", "sequences of a micro-batch"),
    "zero": ("", "ZeRO stage"),
    "recompute": ("", "activations computed again"),
    "schedule": ("", "pipeline schedule"),
    "dtype": ("", "format of the layers' matmuls"),
    "optimizer": ("", "optimiser"),
    "seq": ("token", "tokens of a sequence"),
    "global_batch": ("token", "tokens of one optimiser step"),
    "micro_batches": ("", "micro-batches of a step and rank"),
    "mfu": ("", "model FLOPs over the dense peak of `dtype`, attention's causal half"),
    "mfu_full": ("", "model FLOPs over the dense peak of `dtype`, attention in full"),
    "hfu": ("", "hardware FLOPs over the same peak: what is computed again counts"),
    "flops_chip": ("flop/s", "model FLOPs of a chip per second, attention's causal half"),
    "flops_chip_full": ("flop/s", "the same, attention in full"),
    "micro_tokens": ("token", "tokens of a micro-batch on a chip"),
    "tokens_to_hide": ("token", "of those, how many hide gathers and reductions of parameters behind matmuls, at every peak"),
    "tp_paid": ("", "ways of tensor parallelism up to which exchanges take less than matmuls, at every peak"),
    "expert_width_to_hide": ("", "width of an expert from which its matmuls hide its own exchange, at every peak"),
    "tokens": ("token", "tokens of the run"),
    "goodput": ("", "share of the wall time that advances the run"),
    "run_flop": ("flop", "model FLOPs of the run"),
    "energy_j": ("J", "chips at their thermal design power over the run"),
}
_ENDED = {
    "memory_bytes_chip": ("byte", "memory of the fullest chip"),
    "run_usd": ("USD", "cost of the run, idle chips too"),
    "tokens_per_s_chip": ("token/s", "tokens trained per second and chip"),
}
_SECONDS = {"step": "time of one optimiser step", "run": "wall time of the run"}
TRAINING = (
    _TRAINING_ONLY
    | {f"{name}{end}": (unit, f"{meaning}; {ENDS[end]}") for name, (unit, meaning) in _ENDED.items() for end in ("", "_lo", "_hi")}
    | {
        f"{name}{end}_s": ("s", f"{meaning}; {which}")
        for name, meaning in _SECONDS.items()
        for end, which in ENDS.items()
        if (name, end) != ("run", "_floor")
    }
    | {f"{name}_s": ("s", f"of a training step: {meaning}") for name, meaning in TIMES.items()}
    | {f"{name}_bytes_chip": ("byte", f"of training's memory: {meaning}") for name, meaning in PARTS.items()}
)
