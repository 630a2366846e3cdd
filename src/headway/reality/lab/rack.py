"""The experiment `rack`: worker processes as chips, in racks that a slower link joins; experts over them, then stages of a pipeline."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core.cores import cores
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.progress import expect, tick
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import Byte, Number, Second
from headway.laws.collectives.expert_parallel import (
    activation_bytes_per_token,
    distinct_places,
    exchange_bytes,
    exchange_out,
    exchange_up,
)
from headway.laws.roofline.balance import sent_s
from headway.laws.serving.pipeline import hop_s, scale_up_ratio, stage_kv_bytes
from headway.laws.step.memory import end_bytes, weights_bytes_chip
from headway.laws.training.step import one_forward_one_backward_bubble, wall_time_share
from headway.models.totals import kv_bytes_per_token, params_by_part
from headway.reality.lab.decoder import Array, Decoder, KeyValueCache, LayerWeights, choose, random_decoder, route
from headway.reality.lab.experiment import Calibration, Child, PredictedPoint, Say, calibrated
from headway.reality.lab.links import FORM, WORD, LinkPlan
from headway.reality.lab.rack_parts import LinkProbe, LinkProbeRun, WorkerRun, expert_part, stage_part
from headway.reality.lab.rack_setup import RackSetup
from headway.reality.lab.shape import model_of
from headway.reality.lab.workers import WorkerGroup

PER_RACK, RACKS, STAGES = 4, (1, 2), (1, 2, 4)
WORKERS = PER_RACK * max(RACKS)
MICRO_BATCHES, QUICK_MICRO_BATCHES = (1, 2, 4, 8, 16), (1, 4, 16)
MICRO = 2  # micro-batches of the sequences of one worker
ROUNDS, QUICK_ROUNDS = 12, 4
PROBES, QUICK_PROBES = 40, 15
FAST = 0.1  # of the bursts are faster than the low end of what is expected of them
SOONEST = 0.05  # of the bursts between racks are faster than the one that counts: a sleep may end late, never early
ENDS = (0.005, 0.995)  # of what is drawn: points of one run go together
DRAWS = 200
HALF = 2**0.5  # an interval is no wider than a factor of 2, whatever the machine scattered
LATE = 0.15  # by which throttles let go late where the machine is quiet
SCATTER = 0.4  # of copies there, middle half
ONE_RACK, TWO_RACKS = (0, 1, 2, 3), (0, 1, PER_RACK, PER_RACK + 1)  # workers of the stages
PROGRAM = 9e7  # bytes of a worker, beside what it holds

TOTAL, INSIDE, ACROSS = "bytes of all copies", "bytes inside racks", "bytes across racks"
SHARE, PLACES = "copies that leave their rack", "workers that a token reaches"
INSIDE_S, ACROSS_S, SLOWER = "exchange inside racks", "exchange across racks", "exchange, two racks over one"
RATE, RATIO = "rate of the throttle", "time of a byte, across over inside"
WEIGHTS, KV = "weights of a worker", "KV cache of a worker"
IDLE, HOP, HOP_S = "idle share", "bytes of a hop", "hop across racks"
MACHINE = "this machine: copies between workers"
OF_RACKS, OF_STAGES, OF_MICRO_BATCHES = "racks", "stages", "micro-batches"

Key = tuple[str, str, float]  # quantity, axis, and where along it
Figures = dict[Key, tuple[float, float]]  # value and spread


def fitted(setup: RackSetup) -> RackSetup:
    """Experts that all workers share, layers that all stages do, tokens that differ."""
    shape, batch = setup.shape, setup.sequences * WORKERS
    if not shape.experts or shape.experts % WORKERS:
        raise BadValue("--experts", shape.experts, f"a multiple of {WORKERS}, as many to each worker")
    if shape.layers % max(STAGES):
        raise BadValue("--layers", shape.layers, f"a multiple of {max(STAGES)}, as many to each stage")
    if setup.sequences % MICRO or setup.sequences * shape.per_token < WORKERS:
        want = f"a multiple of {MICRO}, the micro-batches of a worker's sequences, and enough copies of tokens for {WORKERS} workers"
        raise BadValue("--sequences", setup.sequences, want)
    if shape.vocab < batch:
        raise BadValue("--vocab", shape.vocab, f"at least {batch}, so that the {batch} sequences have tokens that differ")
    if setup.threads > 1:
        raise BadValue("--threads", setup.threads, "1: each worker is a chip of its own, which its processor time tells")
    return setup


def memory(setup: RackSetup) -> Byte:
    """Bytes of the decoder, twice while it is drawn, of what each worker has of it, of the caches, and of the links' messages."""
    model = model_of(setup.shape)
    parts = {name: float(value) * WORD for name, value in params_by_part(model).items()}
    cache = WORKERS * setup.sequences * setup.context * float(kv_bytes_per_token(model, WORD))
    weights = WORKERS * (sum(parts.values()) - parts["routed_experts"] * (1 - 1 / WORKERS))
    copies = 4 * WORKERS * setup.sequences * setup.shape.per_token * setup.shape.hidden * WORD
    return 2 * sum(parts.values()) + weights + 2 * cache + copies + WORKERS * PROGRAM


def micro_batches(setup: RackSetup) -> tuple[int, ...]:
    """Micro-batches of a run."""
    return QUICK_MICRO_BATCHES if setup.quick else MICRO_BATCHES


# -- the machine, before the prediction -------------------------------------------------------------------------------------------


def calibrate(setup: RackSetup, child: Child) -> Calibration:
    """Links and layers, measured by workers without the decoder; to which experts the decoder sends its tokens."""
    if cores() < WORKERS:
        note(f"{WORKERS} workers share {cores()} cores: their work counts by processor time, as if each had a core of its own")
    return calibrated("rack", setup, child)


def calibration(setup: RackSetup) -> dict[str, Any]:
    """The pace of links and how late throttles let go, the scatter of like layers, and the routing of the decoder in one process."""
    shape, tokens = setup.shape, setup.sequences
    rows = tokens * shape.per_token // PER_RACK

    def probe(racks: int, rate: float) -> list[LinkProbeRun]:
        ranks = tuple(range(racks * PER_RACK))
        plan = LinkPlan(ranks=ranks, per_rack=PER_RACK, slots=1, rows=rows // racks, row=shape.hidden, rate=rate)
        kind = {"shape": shape, "tokens": tokens, "micro_batch": tokens // MICRO, "context": setup.context, "seed": setup.seed}
        workers.hold({rank: LinkProbe(plan=plan, place=rank, **kind) for rank in ranks})
        runs = list(workers.run(dict.fromkeys(ranks, QUICK_PROBES if setup.quick else PROBES)).values())
        tick(1)
        return runs

    expect(len(RACKS))
    with WorkerGroup(count=WORKERS, memory_bytes=PER_RACK * WORKERS * rows * shape.hidden * WORD) as workers:
        alone = _paces(probe(1, np.inf), across=False)
        joined = probe(2, 1 / (np.quantile(alone, 0.5) * setup.slower))
    choices, _ = routing(*_decoder(setup), setup)
    hops = {str(racks): copies_by_hop(choices[:, : racks * PER_RACK * tokens], shape.experts, racks) for racks in RACKS}
    paces = {"inside_1": alone, "inside_2": _paces(joined, across=False), "across_2": _paces(joined, across=True)}
    ends = {f"{name}_s_per_byte": [float(np.quantile(pace, end)) for end in (FAST, 0.5, 1 - FAST)] for name, pace in paces.items()}
    return {**ends, "work_s": [list(run.work_s) for run in joined], "copies": hops}


def _paces(runs: Sequence[Any], across: bool) -> list[float]:
    """Seconds of each byte, by burst."""
    return [burst.seconds / burst.bytes for run in runs for burst in run.bursts if burst.across == across]


def _decoder(setup: RackSetup) -> tuple[Decoder, Array]:
    """In 64 bits, so that workers and one process choose the same experts for every token; and tokens that differ."""
    tokens = np.random.default_rng(setup.seed).permutation(setup.shape.vocab)[: WORKERS * setup.sequences, None]
    return random_decoder(setup.shape, setup.seed, FORM), tokens


def routing(decoder: Decoder, tokens: Array, setup: RackSetup) -> tuple[Array, Array]:
    """Experts of each token in each layer (layers x tokens x experts), as the decoder chooses in one process, and its scores."""
    choices: list[Array] = []

    def listen(x: Array, layer: LayerWeights, per_token: int) -> tuple[Array, int]:
        choices.append(choose(x, layer, per_token)[0])
        return route(x, layer, per_token)

    scores = decoder.step(tokens, decoder.cache(len(tokens), setup.context, setup.context - 1, setup.seed), listen).logits
    return np.array(choices), scores


def copies_by_hop(choices: Array, experts: int, racks: int) -> list[list[int]]:
    """Copies of tokens from each worker to each, over all layers, where tokens and experts are shared out in their order.

    >>> copies_by_hop(np.array([[[0], [7], [3], [3]]]), 8, 1)  # four tokens, two experts to a worker: two stay, no other pair has two
    [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    """
    workers = racks * PER_RACK
    sources = np.arange(choices.shape[1])[None, :, None] // (choices.shape[1] // workers) + np.zeros_like(choices)
    pairs = sources * workers + choices // (experts // workers)
    return np.bincount(pairs.ravel(), minlength=workers**2).reshape(workers, workers).tolist()


# -- predicted --------------------------------------------------------------------------------------------------------------------


def predict(setup: RackSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Bytes by hop, link times, what a worker holds, idle shares."""
    with record():
        yield from _predict_experts(setup, calibration)
        yield from _predict_memory(setup)
        yield from _predict_pipeline(setup, calibration)


def _of(value: Number, name: str, unit: str = "") -> Any:
    return known(value, name, unit, "input", "the experiment")


def _rates(setup: RackSetup, calibration: Calibration) -> tuple[Any, Any]:
    """Bytes per second inside a rack and across racks."""
    inside = known(1 / calibration["inside_1_s_per_byte"][1], "inside", "byte/s", "measured", MACHINE)
    return inside, inside / _of(setup.slower, "slower")


def _point(key: Key, claim: str, unit: str, value: Any, half: tuple[float, float] = (1.0, 1.0)) -> PredictedPoint:
    """A point whose interval reaches by these factors down and up; exact without."""
    quantity, axis, at = key
    low, high = value / min(half[0], HALF), value * min(half[1], HALF)
    return PredictedPoint(quantity=quantity, axis=axis, claim=claim, at=at, unit=unit, value=value, low=low, high=high)


def _predict_experts(setup: RackSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Experts over one rack and over two, as many sequences to each worker."""
    shape, layers, inner = setup.shape, _of(setup.shape.layers, "layers"), _of(PER_RACK, "per_rack")
    tokens, copies = _of(setup.sequences, "sequences", "token"), _of(shape.per_token, "per_token")
    vector = activation_bytes_per_token(_of(shape.hidden, "hidden"), _of(WORD, "word", "byte"))
    inside, across = _rates(setup, calibration)
    late = calibration["across_2_s_per_byte"][1] * float(across)
    times, both = list[Any](), (1.0, 1.0)  # what a time across racks over one inside may be off by
    for racks in RACKS:
        workers = _of(racks * PER_RACK, "workers")
        fast, usual, slow = calibration[f"inside_{racks}_s_per_byte"]
        pace = known(1 / usual, f"inside_{racks}", "byte/s", "measured", MACHINE)
        times.append(sent_s(exchange_bytes(tokens, exchange_up(copies, workers, inner), vector, vector), pace))
        yield _point((TOTAL, OF_RACKS, racks), "MOE-12", "byte", exchange_bytes(tokens * workers, copies, vector, vector) * layers)
        for name, count in zip((INSIDE, ACROSS), copies_sent(calibration["copies"][str(racks)]), strict=True):
            if count:
                routed = known(count, "copies", "token", "measured", "routing of the decoder in one process")
                yield _point((name, OF_RACKS, racks), "MOE-08", "byte", 2 * routed * vector)
        shares, counts = draw_routing(setup, racks)
        places = distinct_places(workers, _of(shape.experts, "experts"), copies)
        yield _by_chance((PLACES, OF_RACKS, racks), "MOE-12", places, counts)
        yield _point((INSIDE_S, OF_RACKS, racks), "MOE-07", "s", times[-1], (usual / fast, slow / usual))
        if racks == 1:
            both = slow / usual, usual / fast * late
            continue
        share = exchange_out(copies, workers, inner) / copies
        yield _by_chance((SHARE, OF_RACKS, racks), "MOE-08", share, shares)
        away = sent_s(exchange_bytes(tokens, exchange_out(copies, workers, inner), vector, vector), across)
        low, high = (float(end / share) for end in np.quantile(shares, ENDS))  # as many tokens leave more or less by chance
        yield _point((ACROSS_S, OF_RACKS, racks), "MOE-07", "s", away, (1 / low, high * late))
        yield _point((RATE, OF_RACKS, racks), "MOE-07", "byte/s", across, (late, 1.0))
        yield _point((RATIO, OF_RACKS, racks), "MOE-07", "", scale_up_ratio(inside, across), both)
        yield _point((SLOWER, OF_RACKS, racks), "MOE-08", "", away / times[0], both)


def copies_sent(hops: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Copies between workers of one rack, and between racks.

    >>> copies_sent(np.ones((8, 8)))  # each of eight workers has three colleagues, and four elsewhere
    (24, 32)
    """
    counts, rack_of = np.array(hops), np.arange(len(hops)) // PER_RACK
    together = int(counts[rack_of[:, None] == rack_of].sum())
    return together - int(counts.trace()), int(counts.sum()) - together


def _by_chance(key: Key, claim: str, value: Any, draws: Sequence[float]) -> PredictedPoint:
    """A point whose interval is how far as many tokens scatter."""
    low, high = np.quantile(draws, ENDS)
    quantity, axis, at = key
    return PredictedPoint(quantity=quantity, axis=axis, claim=claim, at=at, unit="", value=value, low=float(low), high=float(high))


def draw_routing(setup: RackSetup, racks: int) -> tuple[list[float], list[float]]:
    """Shares that leave their rack, and workers that a token reaches, of as many tokens whose experts are drawn."""
    shape, workers, draw = setup.shape, racks * PER_RACK, np.random.default_rng(setup.seed)
    tokens = shape.layers * setup.sequences * workers
    origin = np.arange(tokens)[:, None] % racks
    shares, counts = [], []
    for _ in range(DRAWS):
        homes = np.argpartition(draw.random((tokens, shape.experts), np.float32), shape.per_token - 1)[:, : shape.per_token]
        homes = np.sort(homes // (shape.experts // workers), axis=1)
        shares.append(float((homes // PER_RACK != origin).mean()))
        counts.append(float(1 + (np.diff(homes, axis=1) > 0).sum(1).mean()))
    return shares, counts


def _predict_memory(setup: RackSetup) -> Iterator[PredictedPoint]:
    """Weights and KV cache of the fullest worker: experts shared out, or layers."""
    model, word = model_of(setup.shape), _of(WORD, "word", "byte")
    parts = params_by_part(model)
    embedding, head = parts["embedding"] * word, parts["head"] * word
    vector, single = model.hidden * word, _of(1, "one")  # the last norm, which stands behind all layers
    dense = (parts["mixers"] + parts["dense_ffn_shared_experts_and_routers"] + parts["norms_and_biases"]) * word - vector
    routed, context, per_token = parts["routed_experts"] * word, _of(setup.context, "context", "token"), kv_bytes_per_token(model, word)
    sequences = _of(setup.sequences, "sequences")
    for racks in RACKS:
        workers = _of(racks * PER_RACK, "workers")
        weights = weights_bytes_chip(dense, routed / workers, end_bytes(embedding, head, vector, single), single)
        yield _point((WEIGHTS, OF_RACKS, racks), "PP-10", "byte", weights)
        yield _point((KV, OF_RACKS, racks), "PP-10", "byte", stage_kv_bytes(sequences * workers, context, per_token, workers, single))
    for count in STAGES:
        stages = _of(count, "stages")
        weights = weights_bytes_chip(dense, routed, end_bytes(embedding, head, vector, stages), single / stages)
        yield _point((WEIGHTS, OF_STAGES, count), "PP-10", "byte", weights)
        yield _point((KV, OF_STAGES, count), "PP-11", "byte", stage_kv_bytes(sequences / MICRO, context, per_token, single, stages))


def _predict_pipeline(setup: RackSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Bytes and time of a hop, and the share of its time that a worker waits."""
    tokens, stages = _of(setup.sequences / MICRO, "micro_batch", "token"), _of(max(STAGES), "stages")
    vector = activation_bytes_per_token(_of(setup.shape.hidden, "hidden"), _of(WORD, "word", "byte"))
    _, across = _rates(setup, calibration)
    away = hop_s(tokens, vector, _of(1, "chips"), across, _of(0.0, "latency", "s"))
    late = calibration["across_2_s_per_byte"][1] * float(across)
    yield _point((HOP, OF_STAGES, max(STAGES)), "PP-12", "byte", tokens * vector)
    yield _point((HOP_S, OF_STAGES, max(STAGES)), "PP-12", "s", away, (1.0, late))
    for count in micro_batches(setup):
        share = wall_time_share(one_forward_one_backward_bubble(stages, _of(count, "micro_batches")))
        draws = draw_idle(calibration, count, float(tokens * vector), setup.seed)
        low, high = np.quantile(draws, ENDS)
        yield PredictedPoint(
            quantity=IDLE, axis="", claim="PP-07", at=count, unit="", value=share, low=min(float(share), low), high=max(float(share), high)
        )


def draw_idle(calibration: Calibration, micro_batches: int, hop: Byte, seed: int) -> Array:
    """Idle shares of pipelines whose stages take what like layers took some of the workers, and whose hops what copies did."""
    draw, work_s = np.random.default_rng(seed), np.array(calibration["work_s"])
    workers = np.array([draw.permutation(len(work_s))[: max(STAGES)] for _ in range(DRAWS)])
    turns = draw.integers(work_s.shape[1], size=(micro_batches, DRAWS, max(STAGES)))
    return idle_share(work_s[workers, turns], hop * draw.choice(calibration["inside_2_s_per_byte"], DRAWS))


def idle_share(work: Array, hop: Array) -> Array:
    """Share of its time that a worker waits while micro-batches pass all stages (micro-batches x any x stages).

    >>> idle_share(np.ones((16, 1, 4)), np.zeros(1)).round(3)
    array([0.158])
    """
    stages = work.shape[2]
    ends = np.zeros(work.shape[1:])
    for turn in work:
        arrival = np.zeros(len(ends))
        for stage in range(stages):
            ends[:, stage] = np.maximum(ends[:, stage], arrival) + turn[:, stage]
            arrival = ends[:, stage] + hop
    return 1 - work.sum((0, 2)) / (stages * ends.max(1))



# -- measured, by workers ---------------------------------------------------------------------------------------------------------


def measure(setup: RackSetup, plan: Sequence[Mapping[str, Any]], say: Say) -> dict[str, Any]:
    """Experts over one rack and over two, then stages; each layout's points as they are known."""
    rate = next(point["value"] for point in plan if point["quantity"] == RATE)
    decoder, tokens = _decoder(setup)
    choices, scores = routing(decoder, tokens, setup)
    cache = decoder.cache(len(tokens), setup.context, setup.context - 1, setup.seed)
    bench = Bench(setup=setup, rate=rate, decoder=decoder, tokens=tokens, cache=cache, choices=choices, scores=scores)
    expect(len(plan))
    size = max(bench.stage_plan(ONE_RACK).bytes, *(bench.expert_plan(racks).bytes for racks in RACKS))
    with WorkerGroup(count=WORKERS, memory_bytes=size) as workers:
        for figures in bench.run(workers):
            for place, point in enumerate(plan):
                if (key := (point["quantity"], point["axis"], point["at"])) in figures:
                    say((place, *figures[key]))
                    tick(1)
    return {"late": bench.late, "spread": bench.spread, "difference": bench.difference}


@dataclass(slots=True, kw_only=True)
class Bench:
    """A decoder whose parts go to workers, the truth about a step of it, and what shows how quiet the machine is."""

    setup: RackSetup
    rate: float  # of throttles
    decoder: Decoder
    tokens: Array
    cache: KeyValueCache
    choices: Array  # of experts, in one process
    scores: Array  # of the next tokens, in one process
    alone: tuple[Second, Second] = (0.0, 0.0)  # of a byte, and of an exchange, in one rack
    late: float = 0.0  # by how much throttles let go late, as a share of their time
    spread: float = 0.0  # of copies inside a rack
    difference: float = 0.0  # of the workers' scores from those of one process, as a share of the largest

    def run(self, workers: WorkerGroup) -> Iterator[Figures]:
        """Every layout in turn."""
        for racks in RACKS:
            yield self._experts(workers, racks)
        for stages in STAGES:
            yield self._stages(workers, stages)
        yield self._hop(workers)
        part = self._hold_stages(workers, ONE_RACK, max(micro_batches(self.setup)))
        for count in micro_batches(self.setup):
            runs = [self._ask(workers, part, (count, False)) for _ in range(self._rounds)]
            shares = [1 - sum(run.busy for run in turn) / (len(turn) * max(run.clock for run in turn)) for turn in runs]
            yield {(IDLE, "", count): (statistics.median(shares), _spread(shares))}

    @property
    def _rounds(self) -> int:
        return QUICK_ROUNDS if self.setup.quick else ROUNDS

    def expert_plan(self, racks: int) -> LinkPlan:
        """Links of experts, with room for the longest message that the routing sends."""
        workers = racks * PER_RACK
        choices = self.choices[:, : workers * self.setup.sequences]
        rows = max(int(np.max(copies_by_hop(layer[None], self.setup.shape.experts, racks))) for layer in choices)
        return LinkPlan(ranks=tuple(range(workers)), per_rack=PER_RACK, slots=1, rows=rows, row=self.setup.shape.hidden, rate=self.rate)

    def stage_plan(self, ranks: Sequence[int]) -> LinkPlan:
        """Links of stages, with room for all micro-batches."""
        slots, rows = max(micro_batches(self.setup)), self.setup.sequences // MICRO
        hidden = self.setup.shape.hidden
        return LinkPlan(ranks=tuple(ranks), per_rack=PER_RACK, slots=slots, rows=rows, row=hidden, rate=self.rate, chain=True)

    def _ask(self, workers: WorkerGroup, ranks: Sequence[int], request: Any) -> list[WorkerRun]:
        answers = workers.run(dict.fromkeys(ranks, request))
        return [answers[rank] for rank in ranks]

    def _compare(self, scores: Array) -> None:
        far = float(np.abs(scores - self.scores[: len(scores)]).max() / np.abs(self.scores).max())
        self.difference = max(self.difference, far)

    def _experts(self, workers: WorkerGroup, racks: int) -> Figures:
        plan, setup = self.expert_plan(racks), self.setup
        count = len(plan.ranks)
        batch = self.cache.of(0, count * setup.sequences), self.tokens[: count * setup.sequences]
        workers.hold({rank: expert_part(self.decoder, *batch, plan, rank) for rank in plan.ranks})
        first = self._ask(workers, plan.ranks, True)
        self._compare(np.concatenate([run.scores for run in first]))
        runs = [run for _ in range(self._rounds) for run in self._ask(workers, plan.ranks, False)]
        inside, across = (_paces(runs, across=far) for far in (False, True))
        volume = {far: sum(burst.bytes for run in first for burst in run.bursts if burst.across == far) for far in (False, True)}
        copies = sum(volume.values()) + sum(run.stayed for run in first)
        exchanges, tokens = count * setup.shape.layers, len(batch[1]) * setup.shape.layers
        pace, spread = statistics.median(inside), _spread(inside)
        self.spread = max(self.spread, spread)
        exchange = pace * volume[False] / exchanges
        if racks == 1:
            self.alone = pace, exchange
        figures = {
            TOTAL: (copies, 0.0), INSIDE: (volume[False], 0.0), PLACES: (sum(run.places for run in first) / tokens, 0.0),
            INSIDE_S: (exchange, spread), WEIGHTS: (max(run.weights for run in first), 0.0), KV: (max(run.kv for run in first), 0.0),
        }  # fmt: skip
        if across:
            slow = float(np.quantile(across, SOONEST))
            late, away = statistics.median(across) / slow - 1, slow * volume[True] / exchanges
            self.late = max(self.late, statistics.median(across) * self.rate - 1)
            figures |= {
                ACROSS: (volume[True], 0.0), SHARE: (volume[True] / copies, 0.0), ACROSS_S: (away, late), RATE: (1 / slow, late),
                RATIO: (slow / self.alone[0], late), SLOWER: (away / self.alone[1], late),
            }  # fmt: skip
        return {(quantity, OF_RACKS, racks): figure for quantity, figure in figures.items()}

    def _hold_stages(self, workers: WorkerGroup, ranks: Sequence[int], micro_batches: int) -> Sequence[int]:
        plan, micro_batch = self.stage_plan(ranks), self.setup.sequences // MICRO
        batch = self.cache.of(0, micro_batches * micro_batch), self.tokens[: micro_batches * micro_batch]
        workers.hold({rank: stage_part(self.decoder, *batch, plan, place, micro_batch) for place, rank in enumerate(ranks)})
        self._compare(self._ask(workers, ranks, (micro_batches, True))[-1].scores)
        return ranks

    def _stages(self, workers: WorkerGroup, stages: int) -> Figures:
        """As many micro-batches as stages: what a worker holds, what a hop sends."""
        runs = self._ask(workers, self._hold_stages(workers, ONE_RACK[:stages], stages), (stages, False))
        figures: Figures = {(name, OF_STAGES, stages): (max(getattr(run, field) for run in runs), 0.0) for name, field in
                            ((WEIGHTS, "weights"), (KV, "kv"))}  # fmt: skip
        sizes = [burst.bytes for run in runs for burst in run.bursts]
        return figures | ({(HOP, OF_STAGES, stages): (statistics.fmean(sizes), 0.0)} if sizes else {})

    def _hop(self, workers: WorkerGroup) -> Figures:
        """The same stages in two racks."""
        ranks = self._hold_stages(workers, TWO_RACKS, max(STAGES))
        runs = [run for _ in range(self._rounds) for run in self._ask(workers, ranks, (max(STAGES), False))]
        slow = [burst.seconds for run in runs for burst in run.bursts if burst.across]
        fast = float(np.quantile(slow, SOONEST))
        return {(HOP_S, OF_STAGES, max(STAGES)): (fast, statistics.median(slow) / fast - 1)}


def _spread(values: Sequence[float]) -> float:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float((high - low) / middle)


def noise(setup: RackSetup, facts: Mapping[str, Any]) -> list[str]:
    """Throttles that let go late, and copies that scatter."""
    late, spread = facts.get("late", 0.0), facts.get("spread", 0.0)
    reasons = [f"the usual throttle let go {late:.0%} late"] if late > LATE else []
    return [*reasons, *([f"copies inside a rack scatter by {spread:.0%}"] if spread > SCATTER else [])]
