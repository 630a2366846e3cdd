"""What a worker of the rack holds: experts, with the sequences of which it is the home; a stage of the pipeline; or only links.

A worker's own clock goes with its processor time alone, since workers share cores; it waits where a message arrives later.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from headway.core.units import Byte, Second
from headway.reality.lab.decoder import Array, Decoder, KeyValueCache, LayerWeights, choose, expert_outputs, mixture, normed, random_decoder
from headway.reality.lab.links import FORM, WORD, Burst, Letter, LinkPlan, Links
from headway.reality.lab.shape import LabShape
from headway.reality.lab.workers import WorkerDesk

EMPTY = np.empty(0)


class WorkerRun(NamedTuple):
    """What a worker did in one run."""

    bursts: Sequence[Burst]
    clock: Second  # its own, at the end
    busy: Second  # of its processor, at its layers
    weights: Byte
    kv: Byte
    places: int = 0  # workers to which its tokens went, over all tokens and layers
    stayed: Byte = 0  # of copies that no link carried, there and back
    scores: Array = EMPTY  # of the next tokens, where the request asks for them


@dataclass(kw_only=True)
class ExpertPart:
    """A share of each layer's experts, all else of the decoder, and sequences of its own."""

    plan: LinkPlan
    place: int
    decoder: Decoder  # whose layers hold this worker's experts alone
    cache: KeyValueCache
    tokens: Array

    def run(self, desk: WorkerDesk, request: bool) -> WorkerRun:
        """One decode step; the request is whether to send the scores back."""
        links, homes = Links(plan=self.plan, desk=desk, place=self.place), list[Array]()

        def exchange(x: Array, layer: LayerWeights, per_token: int) -> tuple[Array, int]:
            outputs, touched, layer_homes = exchanged(x, layer, per_token, links)
            homes.append(np.sort(layer_homes, axis=1))
            return outputs, touched

        begin, filled = time.thread_time(), self.cache.lengths.copy()
        scores = self.decoder.step(self.tokens, self.cache, exchange).logits
        self.cache.lengths[:] = filled
        busy, of_copies = time.thread_time() - begin, np.concatenate(homes)
        stayed = int((of_copies == self.place).sum()) * 2 * self.plan.row * WORD
        places = len(of_copies) + int((np.diff(of_copies, axis=1) > 0).sum())
        answer = scores if request else EMPTY
        return WorkerRun(links.bursts, busy, busy, self.decoder.bytes, self.cache.bytes, places, stayed, answer)


def exchanged(x: Array, layer: LayerWeights, per_token: int, links: Links) -> tuple[Array, int, Array]:
    """As `route`, each expert at its worker: a token is sent once for each of its experts. Last, the worker of each copy."""
    choices, weights = choose(x, layer, per_token)
    place, workers, experts, share = links.place, len(links.plan.ranks), choices.ravel(), len(layer.experts_in)
    homes = experts // share
    copies = [np.flatnonzero(homes == worker) for worker in range(workers)]
    colleagues = [(place + step) % workers for step in range(1, workers)]  # all begin with another one
    links.meet()
    links.send(x, [Letter(worker, copies[worker] // per_token, experts[copies[worker]] % share) for worker in colleagues])
    arrivals = {place: (x[copies[place] // per_token], experts[copies[place]] % share)}
    arrivals |= {worker: links.receive(worker)[:2] for worker in colleagues}
    inputs = np.concatenate([arrivals[worker][0] for worker in range(workers)])
    local = np.concatenate([arrivals[worker][1] for worker in range(workers)])
    outputs, touched = expert_outputs(inputs, np.arange(len(inputs)), local, layer)
    ends = np.cumsum([len(arrivals[worker][0]) for worker in range(workers)])
    parts = [np.arange(end - len(arrivals[worker][0]), end) for worker, end in enumerate(ends)]
    links.meet()
    links.send(outputs, [Letter(worker, parts[worker]) for worker in colleagues])
    back = np.empty((experts.size, x.shape[1]), x.dtype)
    back[copies[place]] = outputs[parts[place]]
    for worker in colleagues:
        back[copies[worker]] = links.receive(worker)[0]
    return mixture(weights, back), touched, homes.reshape(choices.shape)


def expert_part(decoder: Decoder, cache: KeyValueCache, tokens: Array, plan: LinkPlan, place: int) -> ExpertPart:
    """What one of the plan's workers holds of a decoder, and of a batch."""
    workers, batch = len(plan.ranks), len(tokens)
    share, sequences = decoder.shape.experts // workers, batch // workers
    first, home = place * share, slice(place * sequences, (place + 1) * sequences)
    layers = tuple(
        replace(layer, experts_in=layer.experts_in[first : first + share], experts_out=layer.experts_out[first : first + share])
        for layer in decoder.layers
    )
    return ExpertPart(
        plan=plan, place=place, decoder=replace(decoder, layers=layers), cache=cache.of(home.start, home.stop), tokens=tokens[home]
    )


@dataclass(kw_only=True)
class StagePart:
    """Some of a decoder's layers, with their cache of every micro-batch; the first stage embeds, the last one has the head."""

    plan: LinkPlan
    place: int
    decoder: Decoder
    cache: KeyValueCache
    tokens: Array  # of all micro-batches
    micro_batch: int  # sequences

    def run(self, desk: WorkerDesk, request: tuple[int, bool]) -> WorkerRun:
        """One decode step of so many micro-batches, one behind the other; and whether to send the scores back."""
        micro_batches, scored = request
        links, last = Links(plan=self.plan, desk=desk, place=self.place), len(self.plan.ranks) - 1
        clock = busy = 0.0
        scores = []
        for index in range(micro_batches):
            rows = slice(index * self.micro_batch, (index + 1) * self.micro_batch)
            x, arrival = None, 0.0
            if self.place:
                x, _, arrival = links.receive(self.place - 1, index)
            part = self.cache.of(rows.start, rows.stop)
            filled, begin = part.lengths.copy(), time.thread_time()
            x, _ = self.decoder.through(self.decoder.embedding[self.tokens[rows, 0]] if x is None else x, part)
            seconds = time.thread_time() - begin
            part.lengths[:] = filled
            clock, busy = max(clock, arrival) + seconds, busy + seconds
            if self.place < last:
                links.send(x, [Letter(self.place + 1, np.arange(len(x)))], index, clock)
            elif scored:
                scores.append(self.decoder.scores(x, self.micro_batch))
        answer = np.concatenate(scores) if scores else EMPTY
        return WorkerRun(links.bursts, clock, busy, self.decoder.bytes, self.cache.bytes, scores=answer)


def stage_part(decoder: Decoder, cache: KeyValueCache, tokens: Array, plan: LinkPlan, place: int, micro_batch: int) -> StagePart:
    """One stage of as many as the plan has workers."""
    stages = len(plan.ranks)
    count, nothing = decoder.shape.layers // stages, decoder.embedding[:0]
    layers = slice(place * count, (place + 1) * count)
    is_last = place == stages - 1
    part = replace(
        decoder, layers=decoder.layers[layers], embedding=nothing if place else decoder.embedding,
        norm=decoder.norm if is_last else decoder.norm[:0], head=decoder.head if is_last else decoder.head[:, :0],
    )  # fmt: skip
    store = KeyValueCache(keys=cache.keys[layers], values=cache.values[layers], lengths=cache.lengths)
    return StagePart(plan=plan, place=place, decoder=part, cache=store, tokens=tokens, micro_batch=micro_batch)


class LinkProbeRun(NamedTuple):
    """What a worker measured of its links and its processor."""

    bursts: Sequence[Burst]
    work_s: Sequence[Second]  # of a layer


@dataclass(kw_only=True)
class LinkProbe:
    """Exchanges of random rows between all, and between them a layer that is like those of the decoder, but none of them."""

    plan: LinkPlan
    place: int
    shape: LabShape
    tokens: int  # of this worker
    micro_batch: int  # of them, those that pass the layer
    context: int
    seed: int

    def run(self, desk: WorkerDesk, request: int) -> LinkProbeRun:
        """So many exchanges, there and back, the first of which warms up."""
        plan, draw, workers = self.plan, np.random.default_rng((self.seed, self.place)), len(self.plan.ranks)
        layer = random_decoder(replace(self.shape, layers=1, vocab=2), int(draw.integers(2**31)), FORM)
        cache = layer.cache(self.micro_batch, self.context, self.context - 1, self.seed)
        x, scale = draw.standard_normal((self.tokens, plan.row)), draw.standard_normal(plan.row)
        colleagues = [place for place in range(workers) if place != self.place]
        times, links = list[Second](), Links(plan=plan, desk=desk, place=self.place)
        for turn in range(request + 1):
            if turn == 1:
                links.bursts.clear()
                times.clear()
            begin = time.thread_time()
            layer.through(x[: self.micro_batch], cache)
            times.append(time.thread_time() - begin)
            cache.lengths[:] = self.context - 1
            fresh, rows_out = normed(x, scale), draw.integers(self.tokens, size=(workers, plan.rows))
            links.meet()
            links.send(fresh, [Letter(place, rows_out[place]) for place in colleagues])
            outputs = np.concatenate([links.receive(place)[0] for place in colleagues]) * scale
            blocks = np.split(np.arange(len(outputs)), len(colleagues))
            links.meet()
            links.send(outputs, [Letter(place, rows) for place, rows in zip(colleagues, blocks, strict=True)])
            np.concatenate([links.receive(place)[0] for place in colleagues])
        return LinkProbeRun(links.bursts, times)
