"""The experiment `attention`: what a decode step's attention reads, takes and recalls, dense and by sparse patterns."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.progress import expect, tick
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import Byte, Second, Token
from headway.laws.architecture.kv import attended_tokens, kv_bytes
from headway.laws.architecture.recall import answered_share, index_recall, noisy_correlation
from headway.laws.roofline.batch_step import batch_kv_s
from headway.models.attention import AttentionPattern, AttentionSpan, Indexer
from headway.models.attention.grouped_query import Attention
from headway.models.variants import WANTS, look_of
from headway.reality.lab.attention_setup import AttentionSetup
from headway.reality.lab.batch import noise as noise  # the same reasons against a verdict
from headway.reality.lab.experiment import Calibration, Child, PredictedPoint, Say, calibrated
from headway.reality.lab.facts import (
    ANSWERS,
    LAYERS,
    LESSONS,
    WIDTH,
    FactStore,
    Index,
    PickReader,
    RunReader,
    blocks_of,
    learned_index,
    planted,
    reader_of,
)
from headway.reality.measure.timing import Clock, Rounds, clock_of, timed

STEP, BYTES, RECALL = "step", "bytes read", "recall"
CONTEXTS = (1024, 4096, 16384, 65536)
QUICK = 3  # of these contexts
CLAIMS = {"dense": "RB-03", "window": "RB-19", "topk": "RB-19", "sqrt": "CW-05"}  # that the time of a pattern tests
LAYERS_READ = known(LAYERS, "layers", "", "constant", "of the experiment, one head each")
KEY_WIDTH = known(WIDTH, "key_width", "", "constant", "of the experiment")
ANSWER_COUNT = known(ANSWERS, "answers", "", "constant", "of the experiment")
ONE_TOKEN = known(1.0, "best key", "token", "constant", "that which softmax finds")
WORD = known(4, "element_bytes", "byte", "constant", "numbers of 32 bits")
RUN, INDEX = "neighbouring tokens", "an index"  # ways to read; picks are a way for each pattern
APART = 0.3125  # of a context's root: how far the lengths with which this machine is measured lie from those that are predicted
FEW = 16  # tokens with which the fixed time of a read is measured
QUERIES = 64  # in turn, so that what a step reads was not read just before
CALIBRATION = Rounds(budget_s=0.1)
HALF = 2**0.5  # an interval is no wider than a factor of 2, whatever the machine scattered
LAW_ERROR = 0.01  # of the law of recall, and of an index that learns for two seconds
DEVIATIONS = 1.96  # of the middle 95 %: points are many, and 90 % would miss several in each run
ENDS, DRAWS = (0.025, 0.975), 10_000
NEAR, QUICK_NEAR, SHARE = 0.02, 0.03, 0.28  # half of a recall's interval from its trials, and that as a share of it
LEAST_TRIALS = 400
ROUNDS = 10  # in which all points have their turn
QUARTER = 0.25  # of the steps are faster than the one that counts: others' work only adds to a step


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTime:
    """Seconds of one way to read, in all layers; the fixed part is what next to no tokens take."""

    way: str
    cached: int  # tokens among which those that are read lie: few stay near the processor
    bytes: int
    seconds: Second
    fixed: Second


def looks(setup: AttentionSetup) -> dict[str, AttentionPattern]:
    """The patterns, by their text."""
    texts = dict.fromkeys(part.strip() for part in setup.patterns.split(","))
    try:
        return {text: look_of(text) for text in texts}
    except BadValue:
        raise BadValue("--patterns", setup.patterns, WANTS) from None


def fitted(setup: AttentionSetup) -> AttentionSetup:
    """With contexts; a square root whose blocks read what its law says."""
    setup = replace(setup, context=tuple(sorted(set(setup.context or CONTEXTS[: QUICK if setup.quick else None]))))
    for text, look in looks(setup).items():
        if look.name == "sqrt":
            root = math.sqrt(look.sqrt_tokens)
            if root % 1 or not 2 <= root <= 64:
                raise BadValue("--patterns", text, "a square of 4 to 4,096, as of sqrt:64")
            for context in setup.context:
                if math.sqrt(context) % 2 or context <= look.sqrt_tokens:
                    wants = f"squares of even numbers, above {look.sqrt_tokens:g}, beside {text}, such as 1024 or 4096"
                    raise BadValue("--context", context, wants)
    return setup


def memory(setup: AttentionSetup) -> Byte:
    """Bytes of the facts: keys, values, index keys, answers."""
    return float(max(setup.context) * LAYERS * (float(WORD) * (WIDTH + ANSWERS + setup.index_width) + 8))


# -- measured beforehand ----------------------------------------------------------------------------------------------------------


def calibrate(setup: AttentionSetup, child: Child) -> Calibration:
    """How fast this machine reads a cache in each way, at lengths beside those that are predicted."""
    return calibrated("attention", setup, child)


def apart(tokens: Token, predicted: Sequence[int] = (), least: Token = 0) -> int:
    """The square of an even number, about 0.4 times as large, that is not `predicted`, and above the least.

    >>> apart(1024), apart(1024, predicted=(400,)), apart(100, least=64)
    (400, 484, 100)
    """
    half = max(2, round(APART * math.sqrt(tokens)))
    while (2 * half) ** 2 in predicted or (2 * half) ** 2 <= least:
        half += 1
    return (2 * half) ** 2


def calibration(setup: AttentionSetup) -> dict[str, Any]:
    """The times of every way to read that a pattern of the setup takes."""
    lengths = {(text, context): _length(look, context, setup.context) for text, look in looks(setup).items() for context in setup.context}
    index = Index(*np.random.default_rng(setup.seed).standard_normal((2, WIDTH, setup.index_width), np.float32))
    store, clock = planted(max(lengths.values()), index, setup.seed + 1), clock_of(setup.threads)
    times = dict[tuple[str, int], ReadTime]()
    for text, look in looks(setup).items():
        few = _read_times(text, _smaller(look, 0.5, FEW), store, apart(0, least=_least(look)), clock)
        for context in setup.context:
            length = lengths[text, context]
            smaller = _smaller(look, min(1.0, look.cap_tokens / context), length)
            for way, (seconds, size) in _read_times(text, smaller, store, length, clock).items():
                entry = ReadTime(way=way, cached=length, bytes=size, seconds=seconds, fixed=few[way][0])
                times.setdefault((way, length), entry)
    return {"times": [asdict(entry) for entry in times.values()]}


def _length(look: AttentionPattern, context: int, predicted: Sequence[int]) -> int:
    """Tokens with which a pattern is measured for a context."""
    return apart(min(context, look.cap_tokens) if look.name == "window" else context, predicted, _least(look))


def _least(look: AttentionPattern) -> float:
    """Tokens up to which a pattern reads all."""
    return look.sqrt_tokens if look.name == "sqrt" else 0


def _smaller(look: AttentionPattern, share: float, length: int) -> AttentionPattern:
    """A top-k that picks this share of so many tokens; other patterns as they are."""
    return replace(look, cap_tokens=max(1, round(share * length))) if look.name == "topk" else look


def _read_times(text: str, look: AttentionPattern, store: FactStore, context: int, clock: Clock) -> dict[str, tuple[Second, int]]:
    """Each way in which a pattern reads so many tokens: seconds and bytes in all layers. Each step has other queries and places."""
    reader, draw = reader_of(store, look, context), np.random.default_rng(0)
    queries = itertools.cycle(draw.standard_normal((QUERIES, WIDTH), np.float32))
    reads: dict[str, Callable[[int], object]] = {
        RUN if isinstance(reader, RunReader) else text: lambda layer: reader.read(layer, next(queries))
    }
    if isinstance(reader, PickReader) and look.name == "topk":
        places = itertools.cycle([np.sort(draw.permutation(context)[: reader.picked]) for _ in range(QUERIES)])
        reads = {
            INDEX: lambda layer: reader.places(layer, next(queries)),
            text: lambda layer: reader.gather(layer, next(queries), next(places)),
        }
    times = {}
    for way, read in reads.items():
        reader.bytes = 0
        for layer in range(LAYERS):
            read(layer)
        size = reader.bytes
        times[way] = timed(lambda read=read: [read(layer) for layer in range(LAYERS)], CALIBRATION, clock).median_s, size
    return times


# -- predicted --------------------------------------------------------------------------------------------------------------------


def predict(setup: AttentionSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """Time, bytes and recall of each pattern at each context; bytes at the longest alone, where they lie farthest apart."""
    times = [ReadTime(**entry) for entry in calibration["times"]]
    with record():
        for text, look in looks(setup).items():
            for tokens in setup.context:
                context = known(float(tokens), "context", "token", "input", "the experiment")
                step, size = 0, 0
                for span in attention_of(look, setup).spans():
                    read = attended_tokens(context, span.cap_tokens, span.sqrt_tokens)
                    token_bytes = kv_bytes(span.read_elements_per_token, WORD)
                    rate, fixed = rate_of(times, text, look, span, tokens)
                    size += LAYERS_READ * read * token_bytes
                    step += fixed + batch_kv_s(LAYERS_READ, read, token_bytes, rate)
                yield _point(STEP, text, CLAIMS[look.name], tokens, "s", step, step / HALF, step * HALF)
                if tokens == max(setup.context):
                    yield _point(BYTES, text, "CW-05", tokens, "byte", size, size, size)
                recall = recall_of(look, context, setup)
                low, high = ends(float(recall), trials(float(recall), setup.quick), setup.seed)
                yield _point(RECALL, text, "CW-09", tokens, "", recall, low, high)


def _point(quantity: str, text: str, claim: str, tokens: int, unit: str, value: Any, low: Any, high: Any) -> PredictedPoint:
    return PredictedPoint(quantity=f"{quantity}, {text}", claim=claim, at=tokens, unit=unit, value=value, low=low, high=high)


def attention_of(look: AttentionPattern, setup: AttentionSetup) -> Attention:
    """A layer's attention as headway's own, which says what a pattern reads."""
    width, own_index = (known(size, name, "", "input", "shape of the lab's attention") for size, name in (
        (WIDTH, "head_dim"), (setup.index_width, "index_width")))  # fmt: skip
    indexer = Indexer(heads=1, dim=own_index, query_input=width) if look.name == "topk" else None
    return Attention(hidden=width, heads=1, kv_heads=1, head_dim=width, value_dim=width, look=look, indexer=indexer)


def rate_of(times: Sequence[ReadTime], text: str, look: AttentionPattern, span: AttentionSpan, context: int) -> tuple[Any, Any]:
    """Rate at which a span is read, between the lengths that were measured, and the fixed time."""
    way = INDEX if span.what == "index" else RUN if look.name in ("dense", "window") else text
    cached = min(context, span.cap_tokens) if way == RUN else context
    measured = sorted((entry for entry in times if entry.way == way), key=lambda entry: entry.cached)
    logs = [math.log(entry.bytes / max(entry.seconds - entry.fixed, entry.seconds / 10)) for entry in measured]
    rate = math.exp(float(np.interp(math.log(cached), [math.log(entry.cached) for entry in measured], logs)))
    source = f"this machine: {way}, measured at other lengths"
    fixed = statistics.median(entry.fixed for entry in measured)
    return known(rate, "mem_bw", "byte/s", "measured", source), known(fixed, "fixed_s", "s", "measured", source)


def recall_of(look: AttentionPattern, context: Any, setup: AttentionSetup) -> Any:
    """Share of questions answered: those whose fact a pattern reads, and whose key softmax tells from the others; a guess else."""
    correlation = noisy_correlation(known(setup.noise, "noise", "", "input", "the experiment"))
    read = attended_tokens(context, look.cap_tokens, look.sqrt_tokens)
    coverage = read / context
    if look.name == "topk":
        coverage = index_recall(correlation, known(setup.index_width, "index_width", "", "input", "the experiment"), 1, coverage)
    if look.name == "sqrt":
        block, picked = blocks_of(look, int(context))
        size = known(block, "block", "", "input", "the experiment: half the root of the context")
        share = known(picked * block / int(context), "share of blocks", "", "input", "the experiment")
        coverage = index_recall(correlation, KEY_WIDTH, size, share)
    return answered_share(coverage * index_recall(correlation, KEY_WIDTH, 1, ONE_TOKEN / read), ANSWER_COUNT)


def trials(recall: float, quick: bool) -> int:
    """Questions after which a share is known well, in itself and as a multiple."""
    near = min(QUICK_NEAR if quick else NEAR, SHARE * recall)
    return max(LEAST_TRIALS, math.ceil(recall * (1 - recall) * (DEVIATIONS / near) ** 2))


def ends(recall: float, count: int, seed: int) -> tuple[float, float]:
    """Between what so many questions scatter in 95 % of runs, around the law as far as it may err."""
    draw = np.random.default_rng(seed)
    low, high = (float(np.quantile(draw.binomial(count, share, DRAWS) / count, end)) for share, end in zip(
        (max(recall - LAW_ERROR * recall, 0.0), min(recall + LAW_ERROR * recall, 1.0)), ENDS, strict=True))  # fmt: skip
    return low, high


# -- measured, in a process of its own --------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class PatternCount:
    """A pattern at a context as its steps are made: their times, and the questions answered."""

    reader: RunReader | PickReader
    context: int
    trials: int
    times: list[float]
    answered: int = 0

    @property
    def figures(self) -> dict[str, tuple[float, float]]:
        """Value and spread of each quantity."""
        steps, step = len(self.times), float(np.quantile(self.times, QUARTER))
        recall = self.answered / (steps * LAYERS)
        scatter = math.sqrt((1 - recall) / max(self.answered, 1))
        return {STEP: (step, statistics.median(self.times) / step - 1), BYTES: (self.reader.bytes / steps, 0.0), RECALL: (recall, scatter)}


def measure(setup: AttentionSetup, plan: Sequence[Mapping[str, Any]], say: Say) -> dict[str, Any]:
    """All patterns and contexts in turn, each step with new questions; the index has learned before."""
    draw, clock, patterns = np.random.default_rng(setup.seed), clock_of(setup.threads), looks(setup)
    lessons = LESSONS if any(look.name == "topk" for look in patterns.values()) else 0
    store = planted(max(setup.context), learned_index(setup.index_width, setup.noise, setup.seed, lessons), setup.seed)
    counts_by_point = {
        (text, context): PatternCount(
            reader=reader_of(store, look, context), context=context, times=[],
            trials=trials(float(recall_of(look, float(context), setup)), setup.quick),
        )
        for text, look in patterns.items() for context in setup.context
    }  # fmt: skip
    begun, wall = clock(), time.perf_counter()
    expect(ROUNDS * len(counts_by_point))
    for turn in range(1, ROUNDS + 1):
        for count in counts_by_point.values():
            while len(count.times) * LAYERS < count.trials * turn / ROUNDS:
                take_step(store, count, draw, clock, setup.noise)
            tick(1)
        for place, point in enumerate(plan):
            quantity, _, text = point["quantity"].partition(", ")
            say((place, *counts_by_point[text, int(point["at"])].figures[quantity]))
    spreads = [count.figures[STEP][1] for count in counts_by_point.values()]
    share = (clock() - begun) / (time.perf_counter() - wall)
    counts = {f"{text} at {context}": [count.answered, len(count.times) * LAYERS] for (text, context), count in counts_by_point.items()}
    return {"spread": statistics.median(spreads), "share": share, "answered_of": counts}


def take_step(store: FactStore, count: PatternCount, draw: np.random.Generator, clock: Clock, noise_share: float) -> None:
    """One step: each layer asks for a fact."""
    queries, answers = store.ask(draw, count.context, noise_share)
    begin = clock()
    outputs = [count.reader.read(layer, query) for layer, query in enumerate(queries)]
    count.times.append(clock() - begin)
    count.answered += sum(int(output.argmax()) == int(answer) for output, answer in zip(outputs, answers, strict=True))
