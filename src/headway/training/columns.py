"""The columns of `train` and `scale`: the unit and the sentence of each."""

from __future__ import annotations

from headway.core.columns import Column

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


_SCALE_ONLY = {
    "law": ("", "the fit or law that the row is by"),
    "flop": ("flop", "compute of pre-training, 6 N D"),
    "loss": ("", "loss in nats per token, the entropy of text included"),
    "size_exponent": ("", "power of compute with which the best size grows"),
    "data_exponent": ("", "power of compute with which the best number of tokens grows"),
    "in_range": ("bool", "whether size, data and their ratio are within those of the models fitted; null where the range is not known"),
    "beyond": ("", "what of them is outside, and by how much"),
    # repeated data
    "tokens_unique": ("token", "tokens there are"),
    "epochs": ("", "how often the unique tokens are seen"),
    "tokens_worth": ("token", "fresh tokens that are worth as much"),
    "fresh_share": ("", "the same over the tokens seen"),
    "loss_fresh": ("", "loss had all tokens been new"),
    "params_worth": ("", "parameters that are worth as much, with data that repeats or formats of few bits"),
    "loss_rounded": ("", "loss with the weights rounded to --post-bits after training"),
    # serving
    "serve": ("token/s", "tokens served per second, at their most"),
    "months": ("", "months of serving"),
    "served": ("token", "tokens that will have been served, the chance of deployment taken off"),
    "kappa": ("", "price of a useful FLOP in serving over one in training"),
    "eta": ("", "cost of an RL token over a pre-training token"),
    "rl": ("", "RL tokens per pre-training token"),
    "serving_tokens": ("token", "pre-training tokens that cost what serving costs"),
    "chinchilla": ("token", "tokens that are not over-training: a fixed number per parameter"),
    "over_law": ("", "tokens over those that the row's own law has as best without serving"),
    "bill_flop": ("flop", "pre-training, RL and serving, as training FLOPs of the same price"),
    "share_train": ("", "share of that bill that is pre-training"),
    "share_rl": ("", "share of it that is RL"),
    "share_serve": ("", "share of it that is serving"),
    "serve_over_train": ("", "serving over pre-training"),
    "rule_share_train": ("", "share of the bill that is pre-training by the simple rule, training = serving"),
    "rule_share_rl": ("", "share of that bill that is reinforcement learning"),
    "rule_share_serve": ("", "share of that bill that is serving"),
    "served_rule": ("token", "tokens served that cost what pre-training costs"),
    "serve_rule": ("token/s", "the same as a rate over --months"),
    "served_exact": ("token", "tokens served for which so much training is the cheapest at its quality"),
    "serve_exact": ("token/s", "the same as a rate over --months"),
    "quality": ("", "parameters of the model whose loss is to be reached"),
    "quality_tokens": ("token", "its tokens"),
    "saved": ("", "share of its bill that the cheapest model of its quality saves"),
    "rule_active": ("", "parameters that reach the loss with tokens equal to serving"),
    # experts
    "experts": ("", "routed experts of a layer"),
    "experts_counted": ("", "experts that count, as the law saturates"),
    "total_of_law": ("", "all parameters of a model as the law's were: every second FFN routed"),
    "total_over_active": ("", "the same over the active parameters"),
    "effective_params": ("", "parameters of the dense model of the same loss"),
    "effective_over_active": ("", "the same over the active parameters"),
    "cutoff_params": ("", "size at which experts stop helping, by the law"),
    "loss_routed": ("", "validation loss as the law was fitted to: 130 B tokens of its own data"),
    "granularity": ("", "fineness of the experts"),
    "per_token": ("", "experts that a token uses"),
}
_SCALE_ENDED = {
    "active": ("", "active parameters"),
    "tokens": ("token", "tokens of the run"),
    "tokens_per_param": ("token", "tokens per active parameter"),
    "over_training": ("", "tokens over a fixed number per parameter, Chinchilla's 20 unless told"),
}
_DOUBTED = ("over_law", "served_exact", "serve_exact", "size_exponent")
_CHOICES = {"rule": "pre-training equal to serving", "chosen": "the tokens given"}
_CHOICE = {
    "tokens": ("token", "tokens"),
    "over_training": ("", "tokens over Chinchilla's"),
    "loss": ("", "loss"),
    "flop": ("flop", "bill, in training FLOPs"),
    "regret": ("", "bill over that of the cheapest model of the same quality, less one"),
    "cheapest_active": ("", "parameters of that model"),
    "cheapest_tokens": ("token", "tokens of that model"),
}
_ENDS = {"_lo": "lower end of the 90 % interval from the errors of the coefficients", "_hi": "upper end of it"}


def _with_ends(about: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    return {f"{key}{end}": (unit, f"{meaning}; {which}") for key, (unit, meaning) in about.items() for end, which in _ENDS.items()}


_BY = {f"{name}_{key}": (unit, f"{meaning}, with {what}") for name, what in _CHOICES.items() for key, (unit, meaning) in _CHOICE.items()}
SCALE = (
    _SCALE_ONLY
    | _SCALE_ENDED
    | _BY
    | _with_ends(_SCALE_ENDED)
    | _with_ends({key: _SCALE_ONLY[key] for key in _DOUBTED})
    | _with_ends({"rule_regret": _BY["rule_regret"]})
)
COLUMNS = {key: Column(*about) for key, about in (SCALE | TRAINING).items()}
IDENTITY = ("law",)  # columns that identify a row
