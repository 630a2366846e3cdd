"""A decoder in numpy, small and real: grouped-query attention with a KV cache, gated MLP, a top-k router, routed and shared experts.

Weights are random, so that its text means nothing; its work is that of a trained model of its shape. Prompts and decode steps are one
function: a step of one new token for each sequence, or of several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.reality.lab.shape import LabShape

Array = np.ndarray[Any, Any]
EPSILON = 1e-6  # of norms, against a row of zeros
ROTATION_BASE = 10_000.0  # of rotary positions (arXiv:2104.09864)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWeights:
    """One layer's matrices, inputs along the rows; gate and up of an expert stand side by side."""

    attention_norm: Array
    query_key_value: Array
    output: Array
    expert_norm: Array
    router: Array  # hidden x experts
    experts_in: Array  # experts x hidden x 2 widths
    experts_out: Array  # experts x width x hidden
    shared_in: Array
    shared_out: Array


RoutedExperts = Callable[[Array, LayerWeights, int], tuple[Array, int]]  # as `route`


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueCache:
    """Keys and values of the tokens so far: layer, sequence, KV head, token, width."""

    keys: Array
    values: Array
    lengths: Array  # tokens of each sequence

    @property
    def bytes(self) -> int:
        """Bytes of keys and values, those that are yet to come among them."""
        return self.keys.nbytes + self.values.nbytes

    def of(self, first: int, end: int) -> KeyValueCache:
        """The part of some sequences, which shares this memory."""
        return KeyValueCache(keys=self.keys[:, first:end], values=self.values[:, first:end], lengths=self.lengths[first:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """What a step gives: scores of the next token of each sequence, and the routed experts that it touched in each layer."""

    logits: Array
    experts_touched: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A decoder's weights, and its step."""

    shape: LabShape
    embedding: Array
    layers: tuple[LayerWeights, ...]
    norm: Array
    head: Array

    @property
    def bytes(self) -> int:
        """Bytes of all weights."""
        arrays = [self.embedding, self.norm, self.head, *(getattr(layer, f.name) for layer in self.layers for f in fields(layer))]
        return sum(array.nbytes for array in arrays)

    def cache(self, sequences: int, tokens: int, filled: int = 0, seed: int = 0) -> KeyValueCache:
        """A cache with room for so many tokens of each sequence; `filled` of them random, as behind a prompt that nobody computed."""
        shape, form = self.shape, self.head.dtype
        sizes = (shape.layers, sequences, shape.kv_heads, tokens, shape.head_dim)
        keys, values = np.zeros(sizes, form), np.zeros(sizes, form)
        if filled:
            draw = np.random.default_rng(seed)
            for store in (keys, values):
                store[..., :filled, :] = draw.standard_normal((*sizes[:3], filled, shape.head_dim), np.float32)
        return KeyValueCache(keys=keys, values=values, lengths=np.full(sequences, filled))

    def step(self, tokens: Array, cache: KeyValueCache, routed: RoutedExperts | None = None) -> StepOutput:
        """New tokens of each sequence (sequences x tokens) through all layers; the cache grows by them."""
        x, touched = self.through(self.embedding[tokens].reshape(tokens.size, self.shape.hidden), cache, routed)
        return StepOutput(logits=self.scores(x, len(tokens)), experts_touched=touched)

    def through(self, x: Array, cache: KeyValueCache, routed: RoutedExperts | None = None) -> tuple[Array, tuple[int, ...]]:
        """Vectors of new tokens, those of one sequence side by side, through the layers that there are; `routed` stands for `route`."""
        count = len(x) // len(cache.lengths)
        if int(cache.lengths.max()) + count > cache.keys.shape[3]:
            raise BadValue("tokens", count, f"room in the cache, which holds {cache.keys.shape[3]}")
        positions = cache.lengths[:, None] + np.arange(count)
        turns = rotation(positions, self.shape.head_dim, self.head.dtype)
        touched = []
        for index, layer in enumerate(self.layers):
            x = x + self._attention(layer, normed(x, layer.attention_norm), (cache.keys[index], cache.values[index]), positions, turns)
            inputs = normed(x, layer.expert_norm)
            if self.shape.shared_width:
                x = x + gated(inputs, layer.shared_in, layer.shared_out)
            if self.shape.experts:
                outputs, experts = (routed or route)(inputs, layer, self.shape.per_token)
                x, touched = x + outputs, [*touched, experts]
        cache.lengths[:] += count
        return x, tuple(touched)

    def scores(self, x: Array, sequences: int) -> Array:
        """Scores of the next token of each sequence, behind all layers."""
        return normed(x.reshape(sequences, -1, self.shape.hidden)[:, -1], self.norm) @ self.head

    def _attention(self, layer: LayerWeights, x: Array, store: tuple[Array, Array], positions: Array, turns: tuple[Array, Array]) -> Array:
        """Every new token attends to its own sequence, up to itself."""
        shape, (sequences, count), (keys, values) = self.shape, positions.shape, store
        group, width = shape.heads // shape.kv_heads, shape.head_dim
        heads = (x @ layer.query_key_value).reshape(sequences, count, shape.heads + 2 * shape.kv_heads, width)
        turned = rotated(heads[:, :, : shape.heads + shape.kv_heads], turns)
        rows = np.arange(sequences)[:, None]
        keys[rows, :, positions] = turned[:, :, shape.heads :]
        values[rows, :, positions] = heads[:, :, shape.heads + shape.kv_heads :]
        end = int(positions.max()) + 1
        queries = turned[:, :, : shape.heads].reshape(sequences, count, shape.kv_heads, group, width).transpose(0, 2, 3, 1, 4)
        queries = queries.reshape(sequences, shape.kv_heads, group * count, width) * np.asarray(width**-0.5, x.dtype)
        scores = queries @ keys[:, :, :end].swapaxes(2, 3)
        if int(positions.min()) + 1 < end:  # some token must not see all of them
            hidden = np.arange(end) > positions[..., None]
            by_query = scores.reshape(sequences, shape.kv_heads, group, count, end)
            by_query += np.where(hidden, np.asarray(-np.inf, x.dtype), np.asarray(0, x.dtype))[:, None, None]
        mixed = softmax(scores) @ values[:, :, :end]
        by_token = mixed.reshape(sequences, shape.kv_heads, group, count, width).transpose(0, 3, 1, 2, 4)
        return by_token.reshape(sequences * count, shape.heads * width) @ layer.output


def normed(x: Array, scale: Array) -> Array:
    """Root-mean-square norm."""
    return x * (scale / np.sqrt(np.einsum("ij,ij->i", x, x)[:, None] / x.shape[1] + EPSILON))


def softmax(scores: Array) -> Array:
    """Weights that sum to one along the last axis; the scores are overwritten."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def rotation(positions: Array, width: int, form: Any) -> tuple[Array, Array]:
    """Cosines and sines of rotary positions, for each half of a head."""
    speeds = ROTATION_BASE ** (-np.arange(width // 2) / (width // 2))
    angles = positions[..., None, None] * speeds
    return np.cos(angles).astype(form), np.sin(angles).astype(form)


def rotated(heads: Array, turns: tuple[Array, Array]) -> Array:
    """Heads turned by their positions."""
    first, second = np.split(heads, 2, axis=-1)
    cosine, sine = turns
    return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), axis=-1)


def gated(x: Array, inwards: Array, outwards: Array) -> Array:
    """A gated MLP: silu(gate) * up, and back."""
    both = x @ inwards
    gate, up = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
    return (gate / (1 + np.exp(-gate)) * up) @ outwards


def choose(x: Array, layer: LayerWeights, per_token: int) -> tuple[Array, Array]:
    """The routed experts of each token, and the softmax of their scores."""
    scores = x @ layer.router
    choices = np.argpartition(-scores, per_token - 1, axis=1)[:, :per_token]
    return choices, softmax(np.take_along_axis(scores, choices, 1))


def expert_outputs(x: Array, rows: Array, experts: Array, layer: LayerWeights) -> tuple[Array, int]:
    """What experts make of rows of x, one expert for each, and how many of them have a row."""
    order = np.argsort(experts, kind="stable")  # rows of one expert side by side
    inputs, outputs = x[rows[order]], np.empty((order.size, x.shape[1]), x.dtype)
    ends = np.cumsum(np.bincount(experts, minlength=layer.experts_in.shape[0])).tolist()
    touched, start = 0, 0
    for expert, end in enumerate(ends):
        if end > start:
            outputs[start:end] = gated(inputs[start:end], layer.experts_in[expert], layer.experts_out[expert])
            touched, start = touched + 1, end
    back = np.empty_like(outputs)
    back[order] = outputs
    return back, touched


def mixture(weights: Array, outputs: Array) -> Array:
    """The sum of what its experts made of each token, by their weights."""
    return np.einsum("tk,tkh->th", weights, outputs.reshape(*weights.shape, -1))


def route(x: Array, layer: LayerWeights, per_token: int) -> tuple[Array, int]:
    """The routed experts' sum of each token, and how many experts some token chose."""
    choices, weights = choose(x, layer, per_token)
    outputs, touched = expert_outputs(x, np.arange(choices.size) // per_token, choices.ravel(), layer)
    return mixture(weights, outputs), touched


def random_decoder(shape: LabShape, seed: int = 0, form: Any = np.float32) -> Decoder:
    """A decoder with random weights, whose router prefers no expert, as training balances it: the law of experts touched assumes that."""
    draw, depth = np.random.default_rng(seed), (2 * shape.layers) ** -0.5

    def matrix(*sizes: int, by: float = 1.0) -> Array:
        return (draw.standard_normal(sizes, np.float32) * np.float32(by * max(sizes[-2], 1) ** -0.5)).astype(form, copy=False)

    def scale() -> Array:
        return draw.uniform(0.8, 1.2, shape.hidden).astype(form)

    def router() -> Array:  # at right angles, so that no expert's score follows another's
        directions = matrix(shape.hidden, shape.experts)
        return np.linalg.qr(directions)[0] if shape.experts <= shape.hidden else directions

    heads = shape.heads + 2 * shape.kv_heads
    layers = tuple(
        LayerWeights(
            attention_norm=scale(), query_key_value=matrix(shape.hidden, heads * shape.head_dim),
            output=matrix(shape.heads * shape.head_dim, shape.hidden, by=depth), expert_norm=np.ones(shape.hidden, form), router=router(),
            experts_in=matrix(shape.experts, shape.hidden, 2 * shape.expert_width),
            experts_out=matrix(shape.experts, shape.expert_width, shape.hidden, by=depth),
            shared_in=matrix(shape.hidden, 2 * shape.shared_width), shared_out=matrix(shape.shared_width, shape.hidden, by=depth),
        )
        for _ in range(shape.layers)
    )  # fmt: skip
    embedding = draw.standard_normal((shape.vocab, shape.hidden), np.float32).astype(form, copy=False)
    return Decoder(shape=shape, embedding=embedding, layers=layers, norm=scale(), head=matrix(shape.hidden, shape.vocab))
