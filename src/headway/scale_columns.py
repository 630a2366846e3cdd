"""The keys of `scale`: the unit and the sentence of each, beside those that all verbs share."""

from __future__ import annotations

_SCALE_ONLY = {
    "law": ("", "the fit or law that the row is by"),
    "flop": ("flop", "compute of pre-training, 6 N D"),
    "loss": ("", "loss in nats per token, the entropy of text included"),
    "size_exponent": ("", "power of compute with which the best size grows"),
    "data_exponent": ("", "power of compute with which the best number of tokens grows"),
    "in_range": ("bool", "whether size, data and their ratio are within those of the models fitted; null where the range is not known"),
    "beyond": ("", "what of them is outside, and by how much"),
    # data that repeats
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
_ENDED = {
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
    | _ENDED
    | _BY
    | _with_ends(_ENDED)
    | _with_ends({key: _SCALE_ONLY[key] for key in _DOUBTED})
    | _with_ends({"rule_regret": _BY["rule_regret"]})
)
