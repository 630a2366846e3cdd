"""Memory of the fullest chip in training, part by part. Scalars and arrays broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.laws.training.communication import exchanging_stage
from headway.laws.training.memory import (
    activation_bytes_chip,
    allocated_bytes,
    checkpoint_bytes,
    embedding_activation_bytes,
    gathered_bytes,
    head_activation_bytes,
    kept_share,
    layer_activation_bytes,
    layers_on_chip,
    part_of_fuller,
    reversible_bytes_chip,
    sharded_from,
    states_bytes,
    stream_bytes,
)
from headway.training.pipeline import ChipContents, Placement, dense_params, ends, expert_params
from headway.training.recipe import FORWARD_AGAIN, REVERSIBLE, Recipe
from headway.training.work import EVERY_MATMUL, WIDE, TrainingLayer, is_fused, kept_outputs, over_layers, spared_input

STAGE_1, STAGE_2, STAGE_3 = (
    known(stage, f"ZeRO stage {stage}", "", "constant", "Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054)") for stage in (1, 2, 3)
)
LAYERS_GATHERED = known(2, "layers gathered at once", "", "default", "FSDP: the layer at hand, and the next one prefetched")
LOGIT = {
    "compiled": known(4, "bytes of a logit", "byte", "constant", "Korthikanti et al. 2022 (arXiv:2205.05198) section 4.3: 32 bits"),
    "fused": known(6, "bytes of a logit", "byte", "constant", "Megatron-LM, cross_entropy.py: 16 bits, and the softmax in 32"),
    "eager": known(14, "bytes of a logit", "byte", "constant", "PyTorch cross entropy: 16 bits, 32 bits, log-softmax and its gradient"),
}
NO_BYTES = known(0.0, "none", "byte/token", "constant", "nothing beside what is counted already")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of the fullest chip in bytes, by part."""

    weights: Any
    gradients: Any
    optimizer: Any
    gathered: Any
    activations: Any
    head: Any
    allowance: Any
    total: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationBytes:
    """Activation bytes per token that a chip keeps for the backward pass."""

    layer: Any  # mean of one layer; of a reversible network, all that it keeps
    at_hand: Any  # all activations of one layer, while it is recomputed


def memory(at: Placement) -> Memory:
    """Memory of the fullest chip of a pipeline: at one of its ends, or behind the first, where layers may be more."""
    token_bytes = kept_per_token(at, at.case.recipe.recompute)
    parts, *rivals = ((*_params_bytes(at, chip), *_activations(at, chip, token_bytes)) for chip in at.chips)
    for candidate in rivals:
        of_parts, of_candidate = sum(parts), sum(candidate)
        parts = tuple(part_of_fuller(first, second, of_parts, of_candidate) for first, second in zip(parts, candidate, strict=True))
    fullest_bytes = sum(parts)
    allocated = allocated_bytes(fullest_bytes, at.case.efficiency.fragmentation, at.case.efficiency.fixed)
    names = ("weights", "gradients", "optimizer", "gathered", "activations", "head")
    return Memory(**dict(zip(names, parts, strict=True)), allowance=allocated - fullest_bytes, total=allocated)


def logit_bytes(recipe: Recipe) -> Any:
    """Bytes of a logit until the loss's backward pass."""
    return LOGIT["compiled" if recipe.fused_loss else recipe.kernels]


def _activations(at: Placement, chip: ChipContents, token_bytes: ActivationBytes) -> tuple[Any, Any]:
    """Activation bytes of a chip: of its layers, and of embedding and head."""
    work, recipe, layout = at.case.work, at.case.recipe, at.layout
    whole_ways = layout.tp if recipe.sequence_parallel else 1
    embedding = embedding_activation_bytes(work.hidden, work.mask, chip.in_flight, whole_ways)
    head = head_activation_bytes(work.hidden, work.vocab, WIDE, logit_bytes(recipe), whole_ways, layout.tp) * chip.logits
    head = np.maximum(head - token_bytes.at_hand, NO_BYTES)  # logits are gone before the first layer is made again
    if recipe.recompute == REVERSIBLE:
        layers = reversible_bytes_chip(token_bytes.layer, token_bytes.at_hand, at.tokens, chip.in_flight)
    else:
        layer_count = chip.kept_layers
        if recipe.offload_layers:
            layer_count = layer_count * layers_on_chip(at.stage.layers_per_stage, recipe.offload_layers)
        layers = activation_bytes_chip(token_bytes.layer, token_bytes.at_hand, at.tokens, layer_count)
    return layers, (embedding * chip.has_first + head * chip.has_last) * at.tokens


def _params_bytes(at: Placement, chip: ChipContents) -> list[Any]:
    """Bytes of weights, gradients and optimiser states on a chip, and of the weights that it gathers for a while under ZeRO-3."""
    layout, part, optimizer, trained = at.layout, at.stage, at.case.optimizer, at.case.recipe.trainable
    dense, routed = dense_params(part, chip), expert_params(part, chip)
    parts = []
    exchange_stage = exchanging_stage(layout.zero, layout.pp)  # gradients are exchanged once a step in a pipeline, and whole until then
    for param_bytes, zero, stage, share in (
        (optimizer.weight, layout.zero, STAGE_3, 1),
        (optimizer.gradient, exchange_stage, STAGE_2, trained),
        (optimizer.states, layout.zero, STAGE_1, trained),
    ):
        shards = (
            states_bytes(dense / sharded_from(zero, stage, part.data_degree), param_bytes),
            states_bytes(routed / sharded_from(zero, stage, part.expert_data_degree), param_bytes),
        )
        parts.append(sum(shards) * share)
    gathered = gathered_bytes(
        part.largest, ends(part, chip), dense + routed, optimizer.weight, optimizer.gradient, LAYERS_GATHERED, layout.zero, layout.pp
    )
    return [*parts, gathered]


def moved_per_token(at: Placement) -> Any:
    """Bytes per token that a layer writes between its matmuls, kept or not."""
    work, whole_ways = at.case.work, at.layout.tp if at.case.recipe.sequence_parallel else 1

    def of_layer(kind: TrainingLayer) -> Any:
        split = kind.mixer + kind.ffn + kind.routed_moved
        return layer_activation_bytes(kind.unsplit_bytes, split, kind.score_bytes, 1, at.layout.tp, whole_ways)

    return over_layers(work, of_layer) / at.stage.layers


def kept_per_token(at: Placement, recompute: str) -> ActivationBytes:
    """Activation bytes per token that a chip keeps until the backward pass: per layer, and for the layer being recomputed."""
    work, recipe, tp = at.case.work, at.case.recipe, at.layout.tp
    whole_ways = tp if recipe.sequence_parallel else 1

    def layer_bytes(selective: bool, has_ffn: bool = True) -> Any:
        keeps_scores = 0 if selective else 1
        fewer = selective and bool(is_fused(recipe))  # no scores to drop: norms, activation functions, latent up-projections
        spared = 1 if fewer else spared_input(recipe)
        outputs = kept_outputs(recipe) if selective else EVERY_MATMUL

        def of_layer(kind: TrainingLayer) -> Any:
            mixer, routed = (kind.mixer_selective, kind.routed_selective) if fewer else (kind.mixer, kind.routed)
            ffn = kind.ffn * kept_share(kind.ffn_vectors, 1, spared) * outputs + routed
            split = mixer + ffn if has_ffn else mixer
            unsplit_bytes = kind.unsplit_bytes * kept_share(2, 1, spared)
            return layer_activation_bytes(unsplit_bytes, split, kind.score_bytes, keeps_scores, tp, whole_ways)

        return over_layers(work, of_layer) / at.stage.layers

    if recompute == "ffn":
        at_hand = over_layers(work, lambda kind: (kind.ffn + kind.routed) / tp) / at.stage.layers
        return ActivationBytes(layer=layer_bytes(selective=True, has_ffn=False), at_hand=at_hand)
    if recompute not in FORWARD_AGAIN:
        return ActivationBytes(layer=layer_bytes(recompute == "selective"), at_hand=NO_BYTES)
    checkpoint = checkpoint_bytes(work.hidden, WIDE, whole_ways)  # of a reversible network both streams behind the last layer
    layer = stream_bytes(checkpoint) if recompute == REVERSIBLE else checkpoint
    return ActivationBytes(layer=layer, at_hand=layer_bytes(selective=False))
