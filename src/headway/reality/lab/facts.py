"""Facts planted in a context, and attention that recalls them: each token is a fact, a key with its answer; a query asks for one.

Keys are random, and a query is its fact's key with noise, so that dense attention recalls nearly always, by construction: its output is the
mean of answers by softmax, of which the largest is the model's. A pattern reads fewer tokens, and recalls what it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headway.models.attention import AttentionPattern
from headway.reality.lab.decoder import softmax

Array = np.ndarray[Any, Any]
LAYERS = 4  # of one head each; every layer has its facts, and a step asks each of them for one
WIDTH = 128  # of a key, and of a value: one number for each answer that there is
ANSWERS = WIDTH
SHARPNESS = np.float32(2.0)  # of softmax, in standard deviations of the scores
PAIRS, LESSONS, RATE = 256, 2000, 0.02  # of a lesson of the index; lessons; how far the first goes
MEAN_DECAY, SQUARE_DECAY, TINY = 0.9, 0.99, 1e-8  # of Adam


@dataclass(frozen=True, slots=True)
class Index:
    """Projections of queries and keys to the few numbers by which top-k picks."""

    query: Array
    key: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class FactStore:
    """A cache full of facts: layer, token, width; the index keys beside it."""

    keys: Array
    values: Array
    answers: Array
    index: Index
    index_keys: Array

    def ask(self, draw: np.random.Generator, context: int, noise: float) -> tuple[Array, Array]:
        """A query for each layer, which asks for any of the first `context` facts, and the right answers."""
        layers = np.arange(len(self.keys))
        places = draw.integers(context, size=len(layers))
        return noisy(self.keys[layers, places], draw, noise), self.answers[layers, places]


def noisy(keys: Array, draw: np.random.Generator, noise: float) -> Array:
    """Queries that resemble keys."""
    return np.float32((1 - noise) ** 0.5) * keys + np.float32(noise**0.5) * draw.standard_normal(keys.shape, np.float32)


def planted(tokens: int, index: Index, seed: int) -> FactStore:
    """Random facts."""
    draw = np.random.default_rng(seed)
    keys = draw.standard_normal((LAYERS, tokens, WIDTH), np.float32)
    answers = draw.integers(ANSWERS, size=(LAYERS, tokens))
    values = np.zeros((LAYERS, tokens, ANSWERS), np.float32)
    np.put_along_axis(values, answers[..., None], np.float32(1), axis=2)
    return FactStore(keys=keys, values=values, answers=answers, index=index, index_keys=keys @ index.key)


def learned_index(width: int, noise: float, seed: int, lessons: int = LESSONS) -> Index:
    """An index that learns by gradient descent (Adam) to tell a query's key from those of other queries, from random numbers."""
    draw = np.random.default_rng(seed)
    weights = draw.standard_normal((2, WIDTH, width), np.float32) * np.float32(WIDTH**-0.5)
    means, squares = np.zeros_like(weights), np.zeros_like(weights)
    diagonal = np.arange(PAIRS)
    for lesson in range(1, lessons + 1):
        keys = draw.standard_normal((PAIRS, WIDTH), np.float32)
        queries = noisy(keys, draw, noise)
        query_index, key_index = queries @ weights[0], keys @ weights[1]
        errors = softmax(query_index @ key_index.T)
        errors[diagonal, diagonal] -= 1
        errors /= PAIRS
        slopes = np.stack((queries.T @ (errors @ key_index), keys.T @ (errors.T @ query_index)))
        means = MEAN_DECAY * means + (1 - MEAN_DECAY) * slopes
        squares = SQUARE_DECAY * squares + (1 - SQUARE_DECAY) * slopes**2
        size = np.sqrt(squares / (1 - SQUARE_DECAY**lesson)) + TINY
        weights -= RATE * (1 - lesson / lessons) * means / (1 - MEAN_DECAY**lesson) / size
    return Index(query=weights[0], key=weights[1])


# -- what a step reads ------------------------------------------------------------------------------------------------------------


def attended(keys: Array, values: Array, query: Array) -> Array:
    """The mean of values by softmax, of a query whose length is that of its scores' standard deviation."""
    return softmax(keys @ (query * (SHARPNESS / np.sqrt(query @ query)))) @ values


@dataclass(slots=True, kw_only=True)
class RunReader:
    """Neighbouring tokens: all of them, or the last in a window."""

    store: FactStore
    first: int
    end: int
    bytes: int = 0

    def read(self, layer: int, query: Array) -> Array:
        """Attention where the cache lies."""
        keys, values = (part[layer, self.first : self.end] for part in (self.store.keys, self.store.values))
        self.bytes += keys.nbytes + values.nbytes
        return attended(keys, values, query)


@dataclass(slots=True, kw_only=True)
class PickReader:
    """Blocks of tokens wherever they lie, picked by an index and gathered before attention: single tokens, or longer blocks."""

    keys: Array  # layer, block, numbers of its tokens
    values: Array
    index_keys: Array  # layer, block, width of the index
    projection: Array | None  # of a query; None: the index is as wide as a key
    picked: int  # blocks
    bytes: int = 0
    room: tuple[Array, Array] = field(init=False)  # for what is gathered, as fresh memory takes time
    scores: tuple[Array, Array] = field(init=False)

    def __post_init__(self) -> None:
        gathered, blocks = (self.picked, self.keys.shape[2]), self.keys.shape[1]
        self.room = np.empty(gathered, np.float32), np.empty(gathered, np.float32)
        self.scores = np.empty(blocks, np.float32), np.empty(blocks, np.float32)

    def read(self, layer: int, query: Array) -> Array:
        """Index keys of the whole context, then attention over the tokens picked."""
        return self.gather(layer, query, self.places(layer, query))

    def places(self, layer: int, query: Array) -> Array:
        """The blocks with the best scores of the index, in their order."""
        index_keys, (scores, ordered) = self.index_keys[layer], self.scores
        self.bytes += index_keys.nbytes
        ordered[:] = np.matmul(index_keys, query if self.projection is None else query @ self.projection, out=scores)
        last = len(scores) - self.picked
        ordered.partition(last)
        return np.flatnonzero(scores >= ordered[last])[: self.picked]

    def gather(self, layer: int, query: Array, places: Array) -> Array:
        """Attention over blocks."""
        for part, room in zip((self.keys, self.values), self.room, strict=True):
            part[layer].take(places, 0, room, "clip")
            self.bytes += room.nbytes
        keys, values = (room.reshape(-1, WIDTH) for room in self.room)
        return attended(keys, values, query)


def blocks_of(look: AttentionPattern, context: int) -> tuple[int, int]:
    """Tokens of a block, and blocks picked, with which a square root reads what its law says.

    >>> from headway.models.variants import look_of
    >>> blocks_of(look_of("sqrt:64"), 4096)  # means of 128 blocks, which are 64 tokens' bytes, and 448 tokens: 512 = sqrt(4096 * 64)
    (32, 14)
    """
    return round(context**0.5 / 2), round(2 * (float(look.sqrt_tokens) ** 0.5 - 1))


def reader_of(store: FactStore, look: AttentionPattern, context: int) -> RunReader | PickReader:
    """What reads the first `context` tokens by a pattern."""
    if look.name in ("dense", "window"):
        return RunReader(store=store, first=context - int(min(look.cap_tokens, context)), end=context)
    keys, index_keys, projection = store.keys[:, :context], store.index_keys[:, :context], store.index.query
    block, picked = (1, min(context, int(look.cap_tokens))) if look.name == "topk" else blocks_of(look, context)
    if look.name == "sqrt":
        index_keys, projection = keys.reshape(LAYERS, context // block, block, WIDTH).mean(axis=2), None
    keys, values = (part[:, :context].reshape(LAYERS, context // block, block * WIDTH) for part in (store.keys, store.values))
    return PickReader(keys=keys, values=values, index_keys=index_keys, projection=projection, picked=picked)
