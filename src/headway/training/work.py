"""Work of one training token by kind of layer, and FLOPs, MFU and HFU in the conventions of published figures.

`causal` counts the half of attention that the mask leaves, `full` counts all of it, `recompute` adds recomputation (HFU).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.laws.arithmetic import sum_over_blocks
from headway.laws.training.memory import (
    expert_activation_bytes,
    expert_moved_bytes,
    expert_selective_bytes,
    matmul_activation_bytes,
    score_bytes,
    whole_activation_bytes,
)
from headway.laws.training.run import (
    attention_flop_per_token,
    flop_utilisation,
    hardware_flop_per_token,
    matmul_flop_per_token,
    model_flop_per_token,
    training_passes,
)
from headway.laws.training.step import micro_pairs, unfused_expert_bytes
from headway.models.model import Dense, Model, MoE
from headway.models.work import LayerWork, embedding_and_head, works
from headway.training.recipe import BY_MODULE, FORWARD_AGAIN, Recipe

WIDE = known(2, "bytes of an activation", "byte", "constant", "activations are kept in 16 bits")
NARROW = known(1, "bytes of a dispatched activation", "byte", "constant", "DeepSeek-V3 (arXiv:2412.19437) section 3.3.3: dispatch in fp8")
TRANSFORMER_ENGINE = "Transformer Engine, pytorch/module: inputs of a matmul are saved for the backward pass as they were quantised"
NARROW_INPUT = known(1, "bytes of a matmul's kept input", "byte", "constant", TRANSFORMER_ENGINE)
HALF_SPARED = known(0.5, "share of 16 bits spared", "", "constant", TRANSFORMER_ENGINE)
NOTHING_SPARED = known(0, "share of 16 bits spared", "", "constant", "what 16-bit matmuls read is kept in 16 bits")
EIGHT_BITS = ("fp8", "mxfp8", "nvfp4")  # formats that fused kernels quantise to before a matmul
MASK = known(1, "bytes of a dropout mask", "byte", "constant", "Korthikanti et al. 2022 (arXiv:2205.05198) section 4.1")
NO_MASK = known(0, "no dropout", "byte", "constant", "the recipe has none")
EVERY_MATMUL, EVERY_SECOND = (
    known(share, "matmuls whose output is kept", "", "constant", f"selective checkpointing of PyTorch (torchtitan): {which}")
    for share, which in ((1, "all, but for its eager kernels"), (0.5, "every second with its eager kernels"))
)
PUBLISHED_PASSES = known(
    3, "recomputed passes of attention", "", "constant", "Korthikanti et al. 2022, appendix A: HFU counts 72 B L s h^2 (1 + s/3h + v/12hL)"
)
NO_BYTES = known(0.0, "none", "byte/token", "constant", "the layer has no such part")
ONE_SUBLAYER = known(1, "sublayers", "", "constant", "matmuls between two exchanges of tensor parallelism: the mixer, or the FFN")
TWO_SUBLAYERS = known(2, "sublayers", "", "constant", "the mixer and the FFN")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLayer:
    """One kind of layer: its work per token, and the activation bytes per token that it keeps for the backward pass."""

    work: LayerWork  # of one token: parameters, spans, FLOPs
    sublayers: Any  # sublayers that end in a tensor-parallel exchange
    unsplit_bytes: Any  # activation bytes that tensor parallelism does not split
    mixer: Any  # activation bytes of the mixer
    ffn: Any  # activation bytes of the FFN that every token uses
    ffn_vectors: Any  # vectors of the FFN's width in `ffn`
    routed: Any  # activation bytes of routed experts
    routed_moved: Any  # bytes that routed experts write, kept or not
    mixer_selective: Any  # activation bytes of the mixer when latent up-projections are recomputed
    routed_selective: Any  # activation bytes of experts when their activation function is recomputed
    recomputed_params: Any  # parameters whose matmuls selective recomputation repeats
    unfused: Any  # bytes per token that kernels of biased or clamped experts move one by one
    score_bytes: Any  # activation bytes of attention scores, of which a fused kernel keeps a log-sum-exp; 0 without attention


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWork:
    """Work of a model per training token, by kind of layer, with its embedding and head."""

    layers: tuple[TrainingLayer, ...]
    hidden: Any
    vocab: Any
    embedding: Any  # parameters of the embedding table; those of `head` are 0 when it is tied
    head: Any
    logits: Any  # parameters of the output matmul, tied or not
    mask: Any  # bytes of a dropout mask per element, 0 without dropout
    fused: Any  # 1 where attention is a fused kernel, else 0
    sequence: Any  # tokens of a training sequence


def training_work(model: Model, recipe: Recipe, sequence: Any) -> TrainingWork:
    """Work of training a model with this recipe at a sequence length."""
    mask = MASK if recipe.dropout else NO_MASK
    table, head = embedding_and_head(model)
    kinds = tuple(_layer(block, work, model, recipe, sequence, mask) for block, work in zip(model.blocks, works(model), strict=True))
    logits = model.vocab * model.embedding_dim
    return TrainingWork(
        layers=kinds, hidden=model.hidden, vocab=model.vocab, embedding=table, head=head, logits=logits,
        mask=mask, fused=is_fused(recipe), sequence=sequence,
    )  # fmt: skip


def _layer(block: Any, work: LayerWork, model: Model, recipe: Recipe, sequence: Any, mask: Any) -> TrainingLayer:
    routed = work.experts > 0
    shared = routed and getattr(block.ffn, "shared_experts", 0) > 0
    expert_bytes = selective_expert_bytes = moved_bytes = unfused = NO_BYTES
    if routed:
        routing = (work.experts_per_token, recipe.imbalance, WIDE)
        moved_bytes = expert_moved_bytes(model.hidden, work.expert_params, *routing)
        expert_bytes, selective_expert_bytes = (
            law(model.hidden, work.expert_params, block.ffn.matrices, *routing, kept_input(recipe))
            for law in (expert_activation_bytes, expert_selective_bytes)
        )
        ffn, active = block.ffn, work.experts_per_token * recipe.imbalance
        unfused = unfused_expert_bytes(active, model.hidden, ffn.intermediate, ffn.biases, ffn.clamped, is_captured(recipe))
    has_scores = any(span.what == "kv" for span in work.spans)
    return TrainingLayer(
        work=work,
        sublayers=ONE_SUBLAYER if routed and not shared else TWO_SUBLAYERS,
        unsplit_bytes=whole_activation_bytes(model.hidden, WIDE, mask),
        mixer=block.attention.activation_bytes(model.hidden, WIDE),
        mixer_selective=block.attention.selective_activation_bytes(model.hidden, WIDE),
        recomputed_params=block.attention.recomputed_params(),
        ffn=matmul_activation_bytes(work.dense_ffn_params, model.hidden, WIDE),
        ffn_vectors=_vectors(block.ffn),
        routed=expert_bytes,
        routed_moved=moved_bytes,
        routed_selective=selective_expert_bytes,
        unfused=unfused,
        score_bytes=score_bytes(work.heads, sequence, WIDE, mask, is_fused(recipe)) if has_scores else NO_BYTES,
    )


def is_captured(recipe: Recipe) -> Any:
    """1 where a step runs as one graph, as it does unless the recipe says otherwise."""
    return 1 if recipe.captured is None else recipe.captured


def is_fused(recipe: Recipe) -> Any:
    """1 where a kernel keeps attention's scores on the chip, as it does unless the recipe says otherwise."""
    return 1 if recipe.fused_attention is None else recipe.fused_attention


def kept_input(recipe: Recipe) -> Any:
    """Bytes per element in which what a matmul reads is kept for the backward pass: in its 8 bits by fused kernels."""
    return WIDE if spared_input(recipe) is NOTHING_SPARED else NARROW_INPUT


def spared_input(recipe: Recipe) -> Any:
    """Share of 16 bits that keeping what a matmul reads in its own format spares."""
    return HALF_SPARED if recipe.dtype in EIGHT_BITS and recipe.kernels == "fused" else NOTHING_SPARED


def dispatched(dtype: str) -> Any:
    """Bytes per element of a token that is dispatched to its experts."""
    return NARROW if dtype == "fp8" else WIDE  # block-scaled formats are made after the exchange


def is_routed(work: TrainingWork) -> bool:
    """Whether a model has routed experts."""
    return any(kind.work.experts > 0 for kind in work.layers)


def is_recurrent(work: TrainingWork) -> bool:
    """Whether a model has layers with a state of fixed size: SSM, linear attention."""
    return any(float(kind.work.recurrence_flop_per_token) > 0 for kind in work.layers)


def _vectors(ffn: Any) -> Any:
    """Vectors of the FFN's width that are kept per token: one per matrix."""
    if isinstance(ffn, Dense):
        return ffn.matrices
    return ffn.shared_matrices if isinstance(ffn, MoE) and ffn.shared_matrices else 1


def over_layers(work: TrainingWork, of_layer: Callable[[TrainingLayer], Any]) -> Any:
    """Sum over all layers of what one layer of each kind has."""
    return sum_over_blocks(tuple(kind.work.count for kind in work.layers), tuple(of_layer(kind) for kind in work.layers))


def multiplied_params(work: TrainingWork) -> Any:
    """Parameters that multiply a token in all layers, before sharding."""

    return over_layers(work, lambda kind: kind.work.mixer_params + _ffn_params(kind))


def _ffn_params(kind: TrainingLayer) -> Any:
    """Parameters of a layer's FFN, routed experts included, that multiply a token."""
    b = kind.work
    return b.dense_ffn_params + (b.expert_params * b.experts_per_token if b.experts else 0)


NO_FLOP = known(0.0, "attention not counted", "flop/token", "constant", "by definition of 6 N")
ONE_TOKEN = known(1, "one token", "token", "constant", "per token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Shares of the peak of the layers' format, and FLOP/s of a chip, by convention."""

    mfu: Any  # causal
    mfu_full: Any
    hfu: Any
    flops_chip: Any  # causal
    flops_chip_full: Any
    flops_chip_recompute: Any
    flop_per_token: Any  # causal


def utilisation(work: TrainingWork, recipe: Recipe, machine: Any, speed: Any) -> Utilisation:
    """Utilisation by every convention, at a speed in tokens per second and chip."""
    causal, full = model_flop(work, recipe, causal=True), model_flop(work, recipe, causal=False)
    hardware = hardware_flop(work, recipe)
    return Utilisation(
        mfu=flop_utilisation(causal, speed, machine.peak), mfu_full=flop_utilisation(full, speed, machine.peak),
        hfu=flop_utilisation(hardware, speed, machine.peak), flops_chip=causal * speed,
        flops_chip_full=full * speed, flops_chip_recompute=hardware * speed, flop_per_token=causal,
    )  # fmt: skip


def model_flop(work: TrainingWork, recipe: Recipe, causal: bool) -> Any:
    """Training FLOPs of a token, recomputation not counted."""
    return model_flop_per_token(_matmul(work), _attention(work, causal), training_passes(recipe.trainable))


def matmul_flop(work: TrainingWork, recipe: Recipe) -> Any:
    """Training FLOPs of a token in matmuls of parameters alone: 6 N."""
    return model_flop_per_token(_matmul(work), NO_FLOP, training_passes(recipe.trainable))


def hardware_flop(work: TrainingWork, recipe: Recipe) -> Any:
    """FLOPs that the hardware runs for a token: full attention, and what the recipe (not a fused kernel) computes again."""
    share, again = recomputed_matmuls(recipe), scores_again(recipe)
    again = again * PUBLISHED_PASSES if recipe.recompute in BY_MODULE else again
    params = over_layers(work, lambda kind: again_params(kind, recipe)) if share is None else multiplied_params(work) * share
    forward = matmul_flop_per_token(params) + _attention(work, causal=False) * again
    return hardware_flop_per_token(model_flop(work, recipe, causal=False), forward, 1)


def kept_outputs(recipe: Recipe) -> Any:
    """Share of the matmuls whose outputs are kept: every second in PyTorch's selective recomputation."""
    is_second = recipe.recompute == "selective" and is_fused(recipe) and recipe.kernels == "eager"
    return EVERY_SECOND if is_second else EVERY_MATMUL


def recomputed_matmuls(recipe: Recipe) -> Any:
    """Share of the layers' matmuls that run forward again, None where those are the matmuls of `again_params`."""
    if recipe.recompute in FORWARD_AGAIN:
        return 1
    if kept_outputs(recipe) is EVERY_SECOND:
        return 1 - EVERY_SECOND
    return None if recipe.recompute == "ffn" or (recipe.recompute == "selective" and is_fused(recipe)) else 0


def again_params(kind: TrainingLayer, recipe: Recipe) -> Any:
    """Parameters that recomputation by module multiplies a token with again: up-projections of latent attention, and the FFN."""
    params = kind.recomputed_params if is_fused(recipe) else 0
    return params + _ffn_params(kind) if recipe.recompute == "ffn" else params


def scores_again(recipe: Recipe) -> Any:
    """Recomputed forward passes of attention, besides those that fused attention makes in its backward pass."""
    return 1 if recipe.recompute in FORWARD_AGAIN or (recipe.recompute in BY_MODULE and not is_fused(recipe)) else 0


def _matmul(work: TrainingWork) -> Any:
    return matmul_flop_per_token(multiplied_params(work) + work.logits)


def _attention(work: TrainingWork, causal: bool) -> Any:
    def flop(kind: TrainingLayer) -> Any:
        parts = [kind.work.recurrence_flop_per_token]
        for span in kind.work.spans:
            pairs = micro_pairs(ONE_TOKEN, work.sequence, span.cap_tokens) if causal else min(work.sequence, span.cap_tokens)
            parts.append(attention_flop_per_token(span.prefill_score_flop, pairs, ONE_TOKEN))
        return sum(parts)

    return over_layers(work, flop)
