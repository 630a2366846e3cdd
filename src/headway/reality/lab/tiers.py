"""The experiment `tiers`: a store of the decoder's KV cache in memory, a file and a slow file, under conversations that come back.

The traffic's clock jumps from event to event, so that what is shares depends on it alone, and hours pass in seconds; bytes are moved and
caches made again for real.
"""

from __future__ import annotations

import itertools
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.progress import expect, tick
from headway.core.quantity import known
from headway.core.trace import record
from headway.core.units import Byte, Second, show
from headway.laws.economics.cost import cached_token_s, saved_share
from headway.laws.tiers import hit_share, mean_hold_s, measured_s_per_token
from headway.models.totals import kv_bytes_per_token, total_params
from headway.reality.lab import tier_prices
from headway.reality.lab.clock import REAL, Clock
from headway.reality.lab.decoder import Decoder, KeyValueCache, random_decoder
from headway.reality.lab.experiment import WIDEST, Calibration, Child, PredictedPoint, Say, calibrated
from headway.reality.lab.shape import model_of
from headway.reality.lab.tier_setup import TierSetup
from headway.reality.lab.tier_store import NAMES, TierStore, fill, tiers
from headway.reality.lab.tier_traffic import ARRIVALS, TURN, TURNS, ReuseDraw, Visit, reuse_draw, visits
from headway.reality.measure.timing import QUIET, clock_of

HITS, BYTES, LOAD, AGAIN, SAVED, BREAK_EVEN = "hits", "bytes in tier", "load of a token", "a token again", "time saved", "break-even hold"
CONVERSATIONS, QUICK = 150, 40
DRAWS = 1000  # traffics whose spread is the interval of so many conversations
ENDS = (0.025, 0.975)  # of that spread
LENGTHS = (144, 400)  # tokens that the machine is measured with: unlike those of any conversation
ROUNDS = 12
SWEEP = 64 * 10**6  # bytes, past the caches of processors
NEAR = 0.05  # of a stated rate, and of what a rate measured a minute ago may have drifted
LEAST_SHARE = 0.9  # of a core
LATE = 0.05  # of a slow load: its rate is stated
REPORTS = 10  # of a run, so that one that is stopped keeps its points
WORD = 4.0  # bytes of a number
SPACE = 2.0  # disk that must be free over what files hold at most


def conversations(setup: TierSetup) -> int:
    """Conversations of a run."""
    return QUICK if setup.quick else CONVERSATIONS


def token_bytes(setup: TierSetup) -> Any:
    """KV cache of a token."""
    return kv_bytes_per_token(model_of(setup.shape), known(WORD, "bytes of a number", "byte", "constant", "32 bits"))


def _most_held(setup: TierSetup) -> Byte:
    """Bytes of all conversations' caches at their longest."""
    return conversations(setup) * TURNS * TURN * float(token_bytes(setup))


def fitted(setup: TierSetup) -> TierSetup:
    """Three times to live that rise, and room on the disk."""
    if len(setup.ttl) != len(NAMES) or list(setup.ttl) != sorted(set(setup.ttl)):
        got = ",".join(show(ttl, "s") for ttl in setup.ttl)
        raise BadValue("--ttl", got, f"{len(NAMES)} times that rise, until a cache leaves {', '.join(NAMES)}: 1min,5min,1h")
    need, folder = SPACE * _most_held(setup), tempfile.gettempdir()
    if (free := shutil.disk_usage(folder).free) < need:
        raise BadValue("disk", f"{show(free, 'byte')} free in {folder}", f"{show(need, 'byte')}; TMPDIR names another folder")
    return setup


def memory(setup: TierSetup) -> Byte:
    """Bytes of the decoder, twice while it is drawn, and of all caches, if all of them were in memory at once."""
    return 2 * float(total_params(model_of(setup.shape))) * WORD + max(_most_held(setup), SWEEP)


# -- the machine ------------------------------------------------------------------------------------------------------------------


def calibrate(setup: TierSetup, child: Child) -> Calibration:
    """Prefill, reads of memory and file, and sleeps of this machine, at sizes that no conversation has."""
    return calibrated("tiers", setup, child)


def calibration(setup: TierSetup) -> dict[str, Any]:
    """Seconds of a token by length and round: made, and loaded from each tier after the decoder worked, as in the traffic."""
    work, kinds = prefill_work(setup), tiers(setup.throttle)[:2]
    cache, late = work.decoder.cache(1, max(LENGTHS)), list[Second]()
    prefills: list[list[Second]] = [[] for _ in LENGTHS]
    blocks = list[tuple[int, tuple[int, ...], list[Any]]]()
    for _ in range(ROUNDS):
        for length, times in zip(LENGTHS, prefills, strict=True):
            times.append(work.seconds(cache, length) / length)
            block = np.stack((cache.keys[:, 0, :, :length], cache.values[:, 0, :, :length]))
            blocks.append((length, block.shape, [tier.write(block) for tier in kinds]))
        due = REAL.now() + min(LENGTHS) * float(token_bytes(setup)) / setup.throttle
        REAL.sleep_until(due)
        late.append(REAL.now() - due)
    loads: list[list[Second]] = [[] for _ in kinds]
    sweep = np.zeros(SWEEP, np.uint8)
    for number, (length, shape, handles) in enumerate(blocks):
        sweep.fill(number)  # so that no processor's cache holds a block, nor the memory that it is read into
        work.seconds(cache, min(LENGTHS))
        for tier, handle, times in zip(kinds, handles, loads, strict=True):
            begin = tier.seconds()
            fill(cache, tier.read(handle, shape))
            times.append((tier.seconds() - begin) / length)
            tier.drop(handle)
    return {"prefills": prefills, "loads": loads, "late_s": statistics.median(late)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillWork:
    """Prefills of random tokens, timed by the processor where there is one thread."""

    setup: TierSetup
    decoder: Decoder
    draw: np.random.Generator

    def seconds(self, cache: KeyValueCache, length: int, before: int = 0) -> Second:
        """Seconds of so many new tokens after those that the cache holds."""
        cache.lengths[0] = before
        tokens, clock = self.draw.integers(self.setup.shape.vocab, size=(1, length)), clock_of(self.setup.threads)
        begin = clock()
        self.decoder.step(tokens, cache)
        return clock() - begin


def prefill_work(setup: TierSetup) -> PrefillWork:
    """Of the decoder of a setup."""
    return PrefillWork(setup=setup, decoder=random_decoder(setup.shape, setup.seed), draw=np.random.default_rng(setup.seed))


# -- predicted --------------------------------------------------------------------------------------------------------------------


def predict(setup: TierSetup, calibration: Calibration) -> Iterator[PredictedPoint]:
    """What each time to live finds and holds, what a load and a prefill take, what the store saves, and the break-even hold."""
    count, kv = conversations(setup), token_bytes(setup)
    if setup.machine_price == TierSetup().machine_price:
        note(f"this machine is taken to cost {show(setup.machine_price, 'USD/s')}: --machine-price")
    draws = [reuse_draw(count, setup.pause, setup.ttl, seed) for seed in range(DRAWS)]
    pauses = [known(pause, "pause", "s", "input", "the experiment") for pause in setup.pause]
    lives = [known(ttl, "ttl", "s", "input", "the experiment") for ttl in setup.ttl]
    with record():
        shares = [sum(hit_share(ttl, pause) for pause in pauses) / len(pauses) for ttl in lives]
        holds = [sum(mean_hold_s(ttl, pause) for pause in pauses) / len(pauses) for ttl in lives]
        again, again_ends = _again(calibration)
        loads = _loads(setup, kv, calibration)
        saved = saved_share(again - sum(_parts(shares, [again - load for load, _ in loads])), again)
    for tier, ttl in enumerate(setup.ttl):
        ends = np.quantile([draw.hit_shares[tier] for draw in draws], ENDS)
        yield PredictedPoint(quantity=HITS, claim="", at=ttl, unit="", value=shares[tier], low=ends[0], high=ends[1])
        with record():
            in_tier = known(ARRIVALS, "arrivals", "1/s", "input", "the experiment") * kv * _token_s(tier, holds, lives)
        scale = ARRIVALS * float(kv)
        ends = np.quantile([scale * draw.token_s[tier] for draw in draws], ENDS)
        yield PredictedPoint(quantity=BYTES, claim="KT-03", at=ttl, unit="byte", value=in_tier, low=ends[0], high=ends[1])
        load, (low, high) = loads[tier]
        yield PredictedPoint(quantity=LOAD, claim="KT-03", at=ttl, unit="s", value=load, low=low, high=high)
    yield PredictedPoint(quantity=AGAIN, claim="KT-01", at=setup.ttl[-1], unit="s", value=again, low=again_ends[0], high=again_ends[1])
    saved_low, saved_high = _saved_ends(draws, loads, again_ends)
    yield PredictedPoint(quantity=SAVED, claim="", at=setup.ttl[-1], unit="", value=saved, low=saved_low, high=saved_high)
    with record():
        holds = [break_even(setup, value) for value in (again, *again_ends)]
    if None not in holds:
        value, low, high = holds
        yield PredictedPoint(quantity=BREAK_EVEN, claim="KT-12", at=setup.ttl[0], unit="s", value=value, low=low, high=high)


def _again(calibration: Calibration) -> tuple[Any, tuple[float, float]]:
    """Seconds of a token that is made again, its quadratic term dropped; the interval is how much the two lengths differ."""
    rates = [statistics.median(times) for times in calibration["prefills"]]
    fresh = known(len(rates) / sum(rates), "fresh", "token/s", "measured", f"this machine: prompts of {LENGTHS[0]} and {LENGTHS[1]} tokens")
    return measured_s_per_token(fresh), (min(rates) * (1 - NEAR), max(rates) * (1 + NEAR))


def _loads(setup: TierSetup, kv: Any, calibration: Calibration) -> list[tuple[Any, tuple[float, float]]]:
    """Seconds of a token's load from each tier, and the interval; a slow file's rate is stated.

    How much of a block a processor's cache still holds is left open, and is a factor of 2 and more.
    """
    loads = []
    for name, times in zip(NAMES, calibration["loads"], strict=False):
        middle, half = statistics.median(times), WIDEST**0.5
        rate = known(float(kv) / middle, f"{name} read", "byte/s", "measured", "this machine: loads of other sizes")
        loads.append((cached_token_s(kv, rate), (middle / half, middle * half)))
    throttle = known(setup.throttle, "throttle", "byte/s", "input", "the experiment")
    slow = cached_token_s(kv, throttle) + loads[0][0]  # slept, then copied as from memory
    late = calibration["late_s"] / TURN
    return [*loads, (slow, (slow * (1 - NEAR), slow * (1 + NEAR) + late))]


def _parts(shares: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Each tier's value, as often as a return finds its cache there."""
    steps = [shares[0], *(until - before for before, until in itertools.pairwise(shares))]
    return [share * value for share, value in zip(steps, values, strict=True)]


def _token_s(tier: int, holds: Sequence[Any], lives: Sequence[Any]) -> Any:
    """Tokens times seconds of a conversation in a tier: those of each turn until the next, or until the tier's end."""
    turns = sum(turn * TURN for turn in range(1, TURNS))
    if tier == 0:
        return turns * holds[0] + TURNS * TURN * lives[0]
    return turns * (holds[tier] - holds[tier - 1]) + TURNS * TURN * (lives[tier] - lives[tier - 1])


def _saved_ends(draws: Sequence[ReuseDraw], loads: Sequence[Any], again_ends: tuple[float, float]) -> list[float]:
    """Ends of the share of time saved, where both hit shares and rates lie at theirs."""
    ends = []
    for quantile, again, end in ((ENDS[0], again_ends[0], 1), (ENDS[1], again_ends[1], 0)):
        shares = [float(np.quantile([draw.hit_shares[tier] for draw in draws], quantile)) for tier in range(len(NAMES))]
        ends.append(sum(_parts(shares, [1 - interval[end] / again for _, interval in loads])))
    return ends


def break_even(setup: TierSetup, again: Any) -> Any:
    """Longest hold in memory that costs less than a token made again, by `headway cache`'s law and the catalogue's price of memory."""
    price = known(setup.machine_price, "machine price", "USD/s", "input", "--machine-price")
    about = tier_prices.subject(token_bytes(setup), again, price)
    return tier_prices.hold_in(tier_prices.places()[0], setup.ttl[0], about).break_even_hold_s


# -- measured, in a process of its own --------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class TierRun:
    """A store under traffic, as far as it has come."""

    setup: TierSetup
    work: PrefillWork
    store: TierStore
    again: list[Second] = field(default_factory=list)  # a token, of each conversation that was made again
    returns: int = 0
    asked_tokens: int = 0  # of returns, before their new turn
    computed_tokens: int = 0
    busy_s: Second = 0.0
    wall_s: Second = 0.0

    def serve(self, visit: Visit, cache: KeyValueCache) -> None:
        """A turn: what is held is loaded, or all of it made again, then the new tokens; the cache is kept."""
        old = visit.tokens - TURN
        cache.lengths[0] = 0
        tier = self.store.load(visit.conversation, cache, visit.moment) if old else None
        new = visit.tokens if tier is None else TURN
        wall = time.perf_counter()
        seconds = self.work.seconds(cache, new, visit.tokens - new)
        self.wall_s, self.busy_s = self.wall_s + time.perf_counter() - wall, self.busy_s + seconds
        self.computed_tokens += new
        if old:
            self.returns, self.asked_tokens = self.returns + 1, self.asked_tokens + old
            if tier is None:
                self.again.append(seconds / new)
        self.store.keep(visit.conversation, cache, visit.moment)

    def figures(self) -> dict[tuple[str, float], tuple[float, float]]:
        """What is known by now, with its spread: by quantity and place.

        Shares and what is held are known once every cache has left: those who come back early come back soon.
        """
        values, ttl, uses = dict[tuple[str, float], tuple[float, float]](), self.setup.ttl, self.store.uses
        for at, use in zip(ttl, uses, strict=True):
            if use.hits:
                load = statistics.median(use.loads)
                values[LOAD, at] = (load, statistics.pstdev(use.loads) / load)
        again = statistics.median(self.again) if self.again else None
        if again is not None:
            values[AGAIN, ttl[-1]] = (again, statistics.pstdev(self.again) / again)
            values[BREAK_EVEN, ttl[0]] = (float(break_even(self.setup, again) or 0.0), 0.0)
        if self.store.caches or again is None:
            return values
        for at, use, shares in zip(ttl, uses, np.cumsum([use.hits for use in uses]) / self.returns, strict=True):
            values[HITS, at] = (float(shares), error_of_share(float(shares), self.returns))
            values[BYTES, at] = (use.held_byte_s * ARRIVALS / conversations(self.setup), 0.0)
        spent = sum(use.load_s - use.loaded_tokens * again for use in uses) + self.asked_tokens * again
        values[SAVED, ttl[-1]] = (float(saved_share(spent, self.asked_tokens * again)), 0.0)
        return values


def error_of_share(share: float, count: int) -> float:
    """Standard error of a share of so many, as a share of it."""
    return ((1 - share) / share / count) ** 0.5 if share else 0.0


def measure(setup: TierSetup, plan: Sequence[Mapping[str, Any]], say: Say, clock: Clock = REAL) -> dict[str, Any]:
    """The traffic through the store; then every cache that is left to the end of its lives, and one made again where none was."""
    begun = time.perf_counter()
    run = TierRun(setup=setup, work=prefill_work(setup), store=TierStore(tiers=tiers(setup.throttle, clock), lives=setup.ttl))
    cache = run.work.decoder.cache(1, TURNS * TURN)
    events = visits(conversations(setup), setup.pause, setup.seed)
    expect(len(events))
    for number, visit in enumerate(events):
        run.serve(visit, cache)
        tick(1)
        if number % (len(events) // REPORTS) == 0:
            _say_points(run, plan, say)
    run.store.age(float("inf"))
    if not run.again:
        run.again = [run.work.seconds(cache, TURNS * TURN) / (TURNS * TURN) for _ in range(3)]
    _say_points(run, plan, say)
    again, slow = statistics.median(run.again), run.store.uses[-1].loads
    return {
        "again_s": again, "again_spread": statistics.pstdev(run.again) / again, "returns": run.returns,
        "slow_spread": statistics.pstdev(slow) / statistics.fmean(slow) if slow else 0.0,
        "computed_tokens": run.computed_tokens, "share": run.busy_s / run.wall_s, "traffic_s": events[-1].moment,
        "wall_s": time.perf_counter() - begun, "tiers": [asdict(replace(use, loads=[])) for use in run.store.uses],
    }  # fmt: skip


def _say_points(run: TierRun, plan: Sequence[Mapping[str, Any]], say: Say) -> None:
    """All points as they are known by now: a run that is stopped keeps them."""
    figures = run.figures()
    for place, point in enumerate(plan):
        if (figure := figures.get((point["quantity"], point["at"]))) is not None:
            say((place, *figure))


def noise(setup: TierSetup, facts: Mapping[str, Any]) -> list[str]:
    """Prefills that scatter or that had no core of their own, and slow loads that did not keep their rate."""
    share, spread, slow = facts.get("share", 1.0), facts.get("again_spread", 0.0), facts.get("slow_spread", 0.0)
    reasons = [f"prefills had {share:.0%} of a core"] if share < LEAST_SHARE else []
    reasons += [f"prefills scatter by {spread:.0%}"] if spread > QUIET else []
    return [*reasons, *([f"loads at a stated rate scatter by {slow:.0%}"] if slow > LATE else [])]
