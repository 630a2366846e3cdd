"""Memory of the fullest chip in training, part by part. Scalars and arrays broadcast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.laws.arithmetic import sum_over_blocks
from headway.laws.training.activations import (
    activation_bytes_chip,
    allocated_bytes,
    checkpoint_bytes,
    embedding_activation_bytes,
    head_activation_bytes,
    head_bytes_chip,
    kept_share,
    layer_activation_bytes,
)
from headway.laws.training.reversible import reversible_bytes_chip, stream_bytes
from headway.laws.training.state import end_params, gathered_bytes, part_of_fuller, sharded_from, states_bytes
from headway.models.model import NONE, UNITY
from headway.training.pipeline import Stage, copies, in_flight
from headway.training.recipe import REVERSIBLE, Optimizer, Recipe, TrainingLayout
from headway.training.work import WIDE, TrainingWork

STAGE_1, STAGE_2, STAGE_3 = (
    known(stage, f"ZeRO stage {stage}", "", "constant", "Rajbhandari et al. 2019, ZeRO (arXiv:1910.02054)") for stage in (1, 2, 3)
)
LAYERS_GATHERED = known(2, "layers gathered at once", "", "default", "FSDP: the layer at hand, and the next one prefetched")
TWO = known(2, "norm inputs and outputs", "", "constant", "of what tensor parallelism leaves whole, half is what norms make")
LOGIT = {
    "fused": known(4, "bytes of a logit", "byte", "constant", "Korthikanti et al. 2022 (arXiv:2205.05198) section 4.3: 32 bits"),
    "eager": known(14, "bytes of a logit", "byte", "constant", "PyTorch cross entropy: 16 bits, 32 bits, log-softmax and its gradient"),
}
NO_BYTES = known(0.0, "none", "byte/token", "constant", "recomputed layers only have a layer at hand")


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
class Allowance:
    """Memory of allocators and communicators beyond the tensors."""

    fragmentation: Any
    fixed: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationBytes:
    """Activation bytes per token that a chip keeps for the backward pass."""

    layer: Any  # mean of one layer; of a reversible network, all that it keeps
    at_hand: Any  # all activations of one layer, while it is recomputed


def memory(
    work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer, tokens: Any, count: Any, room: Allowance
) -> Memory:
    """Memory of the fullest chip, which is in the first or the last pipeline stage."""
    first = _stage(work, part, layout, recipe, optimizer, tokens, in_flight(recipe.schedule, layout, count), last=False)
    last = _stage(work, part, layout, recipe, optimizer, tokens, UNITY, last=True)
    fullest_bytes = np.maximum(sum(first), sum(last))
    parts = tuple(part_of_fuller(first_part, last_part, sum(first), sum(last)) for first_part, last_part in zip(first, last, strict=True))
    allocated = allocated_bytes(fullest_bytes, room.fragmentation, room.fixed)
    names = ("weights", "gradients", "optimizer", "gathered", "activations", "head")
    return Memory(**dict(zip(names, parts, strict=True)), allowance=allocated - fullest_bytes, total=allocated)


def _stage(
    work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer, tokens: Any, flying: Any, last: bool
) -> tuple[Any, ...]:
    """Memory parts of a chip in the first or the last stage, in bytes."""
    whole_ways = layout.tp if recipe.sequence_parallel else UNITY
    token_bytes = kept_per_token(work, part, layout, recipe)
    states = _states(part, layout, recipe, optimizer, UNITY if last else NONE)
    stage_params = (part.dense + part.experts) * part.share
    gathered = gathered_bytes(part.largest, stage_params, optimizer.weight, optimizer.gradient, LAYERS_GATHERED, layout.zero, layout.pp)
    if recipe.recompute == REVERSIBLE:
        activations = reversible_bytes_chip(token_bytes.layer, token_bytes.at_hand, tokens, flying)
    else:
        activations = activation_bytes_chip(token_bytes.layer, token_bytes.at_hand, tokens, part.layers_per_stage, flying)
    embedding = embedding_activation_bytes(work.hidden, work.mask, flying, whole_ways)
    head = head_activation_bytes(work.hidden, work.vocab, WIDE, LOGIT[recipe.kernels], whole_ways, layout.tp)
    ends = head_bytes_chip(embedding, head, layout.pp, UNITY if last else NONE, tokens)
    return (*states, gathered, activations, ends)


def _states(part: Stage, layout: TrainingLayout, recipe: Recipe, optimizer: Optimizer, is_last: Any) -> tuple[Any, Any, Any]:
    """Bytes of weights, gradients and optimiser states on a chip of a stage."""
    ends = end_params(part.embedding, part.head, layout.pp, is_last)
    dense = part.dense * part.share + ends
    routed = part.experts * part.share
    trained = recipe.trainable
    state_bytes = []
    for param_bytes, stage, share in (
        (optimizer.weight * copies(recipe.schedule), STAGE_3, UNITY),
        (optimizer.gradient, STAGE_2, trained),
        (optimizer.states, STAGE_1, trained),
    ):
        shards = (
            states_bytes(dense / sharded_from(layout.zero, stage, part.data_degree), param_bytes),
            states_bytes(routed / sharded_from(layout.zero, stage, part.expert_data_degree), param_bytes),
        )
        state_bytes.append(sum(shards) * share)
    return state_bytes[0], state_bytes[1], state_bytes[2]


def kept_per_token(work: TrainingWork, part: Stage, layout: TrainingLayout, recipe: Recipe) -> ActivationBytes:
    """Activation bytes per token that a chip keeps until the backward pass: per layer, and for the layer being recomputed."""
    whole_ways = layout.tp if recipe.sequence_parallel else UNITY
    counts = tuple(kind.work.count for kind in work.layers)

    def layer_bytes(selective: bool) -> Any:
        keeps_scores = NONE if selective else UNITY
        fewer = selective and bool(recipe.fused_attention)  # no scores to drop: norms, activation functions, latent up-projections
        again = UNITY if fewer else NONE
        layers = tuple(
            layer_activation_bytes(
                kind.unsplit_bytes * kept_share(TWO, UNITY, again),
                (kind.mixer_selective if fewer else kind.mixer)
                + kind.ffn * kept_share(kind.ffn_vectors, UNITY, again)
                + (kind.routed_selective if fewer else kind.routed),
                kind.score_bytes, keeps_scores, layout.tp, whole_ways,
            )
            for kind in work.layers
        )  # fmt: skip
        return sum_over_blocks(counts, layers) / part.layers

    if recipe.recompute == REVERSIBLE:  # of all layers together: both streams behind the last
        streams = stream_bytes(checkpoint_bytes(work.hidden, WIDE, whole_ways))
        return ActivationBytes(layer=streams, at_hand=layer_bytes(selective=False))
    if recipe.recompute == "full":
        return ActivationBytes(layer=checkpoint_bytes(work.hidden, WIDE, whole_ways), at_hand=layer_bytes(selective=False))
    return ActivationBytes(layer=layer_bytes(recipe.recompute == "selective"), at_hand=NO_BYTES)
