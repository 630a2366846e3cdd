"""Priors of the inversion, with their sources, the user's assumptions that replace them, and what is drawn from them.

Drawn are models and machines that may be behind a price sheet, with list prices and markups over cost. The stated priors of chip price,
utilisation, margin and MFU imply a distribution of the markup; open models' prices imply a narrower one. Both are log-normal, so
conditioning has a closed form. There are three rates: input, output, and the output rate's slope over context tokens.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np

from headway.core import catalog as facts
from headway.core.catalog import Catalog
from headway.core.errors import BadValue, UnknownName
from headway.core.interval import Interval
from headway.core.interval import read as read_interval
from headway.core.quantity import default
from headway.core.schema import Field, fields
from headway.core.units import BytePerToken, Number
from headway.economics.chip_cost import over_all
from headway.hardware.chip import Chip, chip
from headway.laws.economics import inversion as laws
from headway.laws.economics.cost import cost_share
from headway.laws.roofline.balance import compute_s_per_token, kv_s_per_token

LIST_FACTOR = default(3.3, "list factor", "", "each end of a list price lies this many times from its middle")
LEVEL = 0.9  # share of the weighted draws within every interval


def _share(help: str) -> Field:
    return Field(help=help, high=1, open_low=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Facts of data/inversion.toml. From `markup_input` on they are fitted to open models' prices."""

    dense_mfu: Annotated[Any, Field(help="share of peak FLOP/s at which a dense model's prompts are computed", high=1)]
    sparse_exponent: Annotated[Any, Field(help="power of total over active parameters by which that share falls", open_low=False)]
    mfu_spread: Annotated[Any, Field(help="spread of its logarithm")]
    eff_compute: Annotated[Any, Field(help="share of peak FLOP/s that decode's arithmetic reaches", high=1)]
    eff_memory: Annotated[Any, Field(help="share of memory bandwidth that decode reaches", high=1)]
    step_fixed: Annotated[Any, Field("s", "fixed cost of a decode step")]
    weights_share: Annotated[Any, Field(help="share of a replica's memory that weights may fill", high=1)]
    context: Annotated[Any, Field("token", "tokens that a decoded token attends to, mean")]
    batch_low: Annotated[Any, Field(help="sequences decoded together in a replica, 10 % point")]
    batch_high: Annotated[Any, Field(help="the same, 90 % point")]
    kv_low: Annotated[Any, Field("byte", "KV bytes read per token of context, 10 % point")]
    kv_high: Annotated[Any, Field("byte", "the same, 90 % point")]
    weight_byte_low: Annotated[Any, Field(help="bytes of a weight, 10 % point")]
    weight_byte_high: Annotated[Any, Field(help="the same, 90 % point")]
    utilisation_low: Annotated[Any, _share("share of paid chip-hours that work, least")]
    utilisation_high: Annotated[Any, _share("the same, most")]
    margin_low: Annotated[Any, _share("share of a price that is not cost, least")]
    margin_high: Annotated[Any, _share("the same, most")]
    policy_spread: Annotated[Any, Field(help="spread of a list price's logarithm around cost with idle hours and margin")]
    ladder_markup: Annotated[Any, _share("share of the output markup's logarithm that the price of further context carries")]
    ladder_middle: Annotated[Any, Field(help="a ladder's slope over that cost and markup, middle over open models with a ladder")]
    tier_spread: Annotated[Any, Field(help="spread of its logarithm between them")]
    markup_input: Annotated[Any, Field(help="input price over the cost of busy reference chips, middle")]
    markup_output: Annotated[Any, Field(help="output price over the cost of busy reference chips, middle")]
    markup_input_spread: Annotated[Any, Field(help="spread of its logarithm between models")]
    markup_output_spread: Annotated[Any, Field(help="spread of its logarithm between models, that of batch, KV and formats left out")]
    markup_correlation: Annotated[Any, Field(help="correlation of the two", low=-1, high=1)]
    active_middle: Annotated[Any, Field(help="active parameters of models that are sold, middle")]
    active_spread: Annotated[Any, Field(help="spread of the logarithm")]
    dense_share: Annotated[Any, _share("share of models that are dense")]
    sparsity_middle: Annotated[Any, Field(help="total over active parameters of the others, middle")]
    sparsity_spread: Annotated[Any, Field(help="spread of the logarithm")]
    line_scale_active: Annotated[Any, Field(help="active parameters at $1/Mtok of both, by a straight line on both logarithms")]
    line_input_active: Annotated[Any, Field(help="power of the input price in it")]
    line_output_active: Annotated[Any, Field(help="power of the output price in it", low=-10)]
    line_spread_active: Annotated[Any, Field(help="spread of the logarithm around it")]
    line_scale_total: Annotated[Any, Field(help="the same of all parameters")]
    line_input_total: Annotated[Any, Field(help="the same of all parameters", low=-10)]
    line_output_total: Annotated[Any, Field(help="the same of all parameters", low=-10)]
    line_spread_total: Annotated[Any, Field(help="the same of all parameters")]
    list_age: Annotated[Any, Field(help="years from a model's release to its prices, mean", open_low=False)]
    list_scale_input: Annotated[Any, Field("USD/token", "list price of input whose cost on busy reference chips is $1/Mtok")]
    list_power_input: Annotated[Any, Field(help="power of the cost that it goes by")]
    list_growth_input: Annotated[Any, Field(help="how many times dearer a model a year older is, at the same cost")]
    list_scale_output: Annotated[Any, Field("USD/token", "the same of output")]
    list_power_output: Annotated[Any, Field(help="the same of output")]
    list_growth_output: Annotated[Any, Field(help="the same of output")]
    host_spread_input: Annotated[Any, Field(help="spread of the logarithm of one host's input price around the median over hosts")]
    host_spread_output: Annotated[Any, Field(help="the same of the output price")]
    host_correlation: Annotated[Any, Field(help="correlation of the two", low=-1, high=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateChip:
    """A chip that may be behind a sheet, with its price range."""

    chip: Chip
    peak: Any  # flop/s, in fp8 if the chip has it
    price: Interval  # USD/s


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedIntervals:
    """Intervals that a user assumes; None to keep the prior."""

    active: Annotated[Any, Field(help="active parameters", high=1e15)] = None
    total: Annotated[Any, Field(help="all parameters", high=1e16)] = None
    kv: Annotated[Any, Field("byte", "KV bytes read per token of context", high=1e9)] = None
    batch: Annotated[Any, Field(help="sequences decoded together in a replica", low=1, open_low=False, high=1e7)] = None
    price: Annotated[Any, Field("USD/s", "price of a chip", bare="USD/h")] = None
    mfu: Annotated[Any, Field(help="share of peak FLOP/s at which prompts are computed", high=1)] = None
    utilisation: Annotated[Any, Field(help="share of paid chip-hours that work", high=1)] = None
    margin: Annotated[Any, Field(help="share of a price that is not cost", low=-10, high=0.999)] = None
    weight_byte: Annotated[Any, Field(help="bytes of a weight", high=8)] = None
    context: Annotated[Any, Field("token", "tokens that a decoded token attends to, mean", high=1e9)] = None
    hosts: Annotated[Any, Field(help="1: the sheet is one host's among several, not a median over them", integer=True, high=1000)] = None
    chip: str = ""


def path() -> Path:
    """Path of the file of priors."""
    return Path(str(files("headway").joinpath("data/inversion.toml")))


@functools.cache
def priors() -> Priors:
    """The priors that ship with the package."""
    where = path()
    return Priors(**facts.numbers(facts.read(where), Priors, "inversion", where))


def machines(assumptions: AssumedIntervals, catalog: Catalog | None = None) -> tuple[CandidateChip, ...]:
    """The chips that may be behind a sheet: the assumed chip, or the chips in the file of priors."""
    names = (assumptions.chip,) if assumptions.chip else tuple(facts.read(path())["chips"])
    return tuple(machine(name, assumptions.price, catalog) for name in names)


def reference(catalog: Catalog | None = None) -> CandidateChip:
    """The reference chip of markups."""
    return machine(facts.read(path())["reference"], None, catalog)


def machine(name: str, price: Interval | None = None, catalog: Catalog | None = None) -> CandidateChip:
    """A chip with its peak FLOP/s and price range."""
    device = chip(name, catalog) if catalog else chip(name)
    peak = device.peak_fp8 if device.peak_fp8 is not None else device.need("peak_bf16")
    for fact in ("hbm", "hbm_bw"):
        device.need(fact)
    return CandidateChip(chip=device, peak=peak, price=price or over_all(device).interval)


def read_assumed(text: str) -> AssumedIntervals:
    """Assumptions from text such as `active=100B,chip=tpu-v7,margin=0.3..0.6`."""
    declared = {name: q for name, (q, _) in fields(AssumedIntervals).items()}
    values: dict[str, Any] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not value.strip():
            raise BadValue("--assume", part, "KEY=VALUE with commas between, such as active=100B,chip=tpu-v7,margin=0.3..0.6")
        if key in values:
            raise BadValue("--assume", text, f"{key} once")
        if key == "chip":
            values[key] = value.strip()
        elif key in declared:
            values[key] = _interval(value.strip(), declared[key], key)
        else:
            raise UnknownName("assumption", key, (*declared, "chip"), "one of " + ", ".join((*declared, "chip")))
    return AssumedIntervals(**values)


def _interval(text: str, q: Field, key: str) -> Interval:
    quantity = text.removesuffix("/token").strip()  # KV is bytes per token
    intervals = read_interval(quantity, q, key)
    if len(intervals) != 1:
        raise BadValue(key, text, "one value, or one interval such as 0.3..0.6")
    return intervals[0]


def assumed_intervals(assumptions: AssumedIntervals) -> dict[str, Interval]:
    """The assumed intervals, by name."""
    values = {field.name: getattr(assumptions, field.name) for field in dataclasses.fields(assumptions) if field.name != "chip"}
    return {name: value for name, value in values.items() if value is not None}


SEED = 20260429
SD_TO_P90 = NormalDist().inv_cdf(0.9)  # standard deviations from the middle of a normal to its 90 % point
SD_TO_END = NormalDist().inv_cdf((1 + LEVEL) / 2)  # to an end of an interval
MOST_SPARSE = 100.0
LEAST, MOST = 1e-300, 1e300


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """One array per quantity, one element per draw; `log_price` has log prices of input, output and the slope over context.

    `log_cost` has the log costs of these three on busy reference chips at the usual batch, the base of a markup.
    """

    active: Any
    total: Any
    sparsity: Any
    kv: Any
    batch: Any
    utilisation: Any
    margin: Any
    mfu: Any
    weight_byte: Any
    chip_price: Any
    context: Any
    log_price: Any  # 3 x draws
    log_cost: Any  # 3 x draws, with the usual KV
    log_cost_kv: Any  # 3 x draws, with the draw's own KV
    log_weight: Any  # log weight of the prior for draws that assumptions make unlikely


class _Stream:
    """Latin hypercube columns: shuffles of evenly spaced points, reproducible from the seed."""

    def __init__(self, count: int) -> None:
        self.rng = np.random.default_rng(SEED)
        self.count = count

    def even(self) -> Any:
        """Evenly spread values between 0 and 1."""
        return self.rng.permutation((np.arange(self.count) + 0.5) / self.count)

    def normal(self) -> Any:
        """Standard normal values."""
        return self.rng.permutation(_normal_points(self.count))


@functools.cache
def _normal_points(count: int) -> Any:
    normal = NormalDist()
    return np.array([normal.inv_cdf((index + 0.5) / count) for index in range(count)])


def draw(priors: Priors, assumptions: AssumedIntervals, count: int, catalog: Catalog | None = None) -> Samples:
    """`count` draws from the priors, with assumed intervals in their place."""
    stream, intervals = _Stream(count), assumed_intervals(assumptions)
    active, sparsity, log_weight = _size(stream, priors, intervals)
    if not np.isfinite(log_weight).any():
        raise BadValue("--assume", "total below active", "no more active parameters than there are in all")
    kv = _positive(stream, intervals.get("kv"), priors.kv_low, priors.kv_high)
    batch = np.maximum(_positive(stream, intervals.get("batch"), priors.batch_low, priors.batch_high), 1.0)
    byte = _positive(stream, intervals.get("weight_byte"), priors.weight_byte_low, priors.weight_byte_high)
    utilisation = _even(stream, intervals.get("utilisation"), priors.utilisation_low, priors.utilisation_high)
    margin = _even(stream, intervals.get("margin"), priors.margin_low, priors.margin_high)
    wobble = np.exp(float(priors.mfu_spread) * stream.normal())
    mfu = np.minimum(laws.sparse_mfu(float(priors.dense_mfu), sparsity, float(priors.sparse_exponent)) * wobble, 1.0)
    mfu = _between(stream, intervals["mfu"]) if "mfu" in intervals else mfu
    context = _between(stream, intervals["context"]) if "context" in intervals else np.full(count, float(priors.context))
    work = _Work(active=active, sparsity=sparsity, kv=kv, batch=batch, byte=byte, context=context)
    hardware = _hardware(stream, machines(assumptions, catalog))
    markup = 1.0 / (utilisation * cost_share(margin))
    return Samples(
        active=active, total=work.total, sparsity=sparsity, kv=kv, batch=batch, utilisation=utilisation, margin=margin, mfu=mfu,
        weight_byte=byte, chip_price=hardware.price, context=context, log_weight=log_weight,
        log_price=_log_rates(work, hardware, priors, mfu, markup),
        log_cost=reference_log_cost(priors, reference(catalog), active, sparsity),
        log_cost_kv=reference_log_cost(priors, reference(catalog), active, sparsity, kv),
    )  # fmt: skip


# -- the parts of a draw --------------------------------------------------------------------------------------------------------


class _Work:
    """The served model and its load, per draw."""

    def __init__(self, *, active: Number, sparsity: Number, kv: Number, batch: Number, byte: Number, context: Number) -> None:
        self.active, self.sparsity, self.kv, self.batch, self.byte, self.context = active, sparsity, kv, batch, byte, context
        self.total = active * sparsity


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hardware:
    peak: Any
    mem_bw: Any
    capacity: Any
    price: Any


def _size(stream: _Stream, priors: Priors, intervals: dict[str, Interval]) -> tuple[Any, Any, Any]:
    """Active parameters, total over active, and the log prior weight when both sizes are assumed."""
    middle, spread = float(priors.active_middle), float(priors.active_spread)
    active = _between(stream, intervals["active"]) if "active" in intervals else middle * np.exp(spread * stream.normal())
    dense = stream.even() < float(priors.dense_share)
    sparse_ratio = float(priors.sparsity_middle) * np.exp(float(priors.sparsity_spread) * stream.normal())
    sparsity = np.where(dense, 1.0, np.clip(sparse_ratio, 1.5, MOST_SPARSE))
    if "total" not in intervals:
        return active, sparsity, np.zeros(stream.count)
    total = _between(stream, intervals["total"])
    if "active" not in intervals:  # draws the sparsity, from which active parameters follow
        active = total / sparsity
        return active, sparsity, -0.5 * (np.log(active / middle) / spread) ** 2
    ratio = total / active
    return active, np.maximum(ratio, 1.0), np.where(ratio < 1 - 1e-9, -np.inf, 0.0)


def _hardware(stream: _Stream, candidates: tuple[CandidateChip, ...]) -> _Hardware:
    """A chip for each draw, in equal shares, with a log-uniform price within its range."""
    which = np.minimum((stream.even() * len(candidates)).astype(int), len(candidates) - 1)
    share = stream.even()

    def of(values: list[Any]) -> Any:
        return np.array([float(value) for value in values])[which]

    low, high = of([candidate.price.low for candidate in candidates]), of([candidate.price.high for candidate in candidates])
    return _Hardware(
        peak=of([candidate.peak for candidate in candidates]), mem_bw=of([candidate.chip.hbm_bw for candidate in candidates]),
        capacity=of([candidate.chip.hbm for candidate in candidates]), price=low * (high / low) ** share,
    )  # fmt: skip


def _positive(stream: _Stream, interval: Interval | None, low: Any, high: Any) -> Any:
    """Log-normal values from 10 % and 90 % points, or log-uniform within an assumed interval."""
    if interval is not None:
        return _between(stream, interval)
    middle, spread = 0.5 * (np.log(float(low)) + np.log(float(high))), (np.log(float(high)) - np.log(float(low))) / (2 * SD_TO_P90)
    return np.exp(middle + spread * stream.normal())


def _even(stream: _Stream, interval: Interval | None, low: Any, high: Any) -> Any:
    start, end = (float(low), float(high)) if interval is None else (float(interval.low), float(interval.high))
    return start + (end - start) * stream.even()


def _between(stream: _Stream, interval: Interval) -> Any:
    """Log-uniform values within an assumed interval."""
    low, high = float(interval.low), float(interval.high)
    return low * (high / low) ** stream.even()


# -- cost and price -------------------------------------------------------------------------------------------------------------


def _log_rates(work: _Work, on: _Hardware, priors: Priors, mfu: Number, markup: Number) -> Any:
    """Log rates of input, output, and of the output rate's slope over context."""
    compute = compute_s_per_token(work.active, on.peak)
    prefill = compute / mfu
    weights = work.total * work.byte
    chips = laws.chips_for(weights, on.capacity, float(priors.weights_share))
    decode = laws.decode_chip_s(
        compute, float(priors.step_fixed), chips, weights, laws.context_kv(work.context, work.kv), work.batch, on.mem_bw,
        float(priors.eff_compute), float(priors.eff_memory),
    )  # fmt: skip
    further = kv_s_per_token(1.0, work.kv, on.mem_bw) / float(priors.eff_memory)
    carried = markup ** float(priors.ladder_markup)
    rates = [chip_s * on.price * added for chip_s, added in ((prefill, markup), (decode, markup), (further, carried))]
    return np.log(np.clip(np.broadcast_arrays(*rates), LEAST, MOST))


def reference_log_cost(priors: Priors, machine: CandidateChip, active: Number, sparsity: Number, kv: BytePerToken = None) -> Any:
    """Log costs on reference chips that are never idle, at the middle of their price, with the usual batch, weight format and KV."""
    price = _middle(machine.price.low, machine.price.high)
    at = _Hardware(peak=float(machine.peak), mem_bw=float(machine.chip.hbm_bw), capacity=float(machine.chip.hbm), price=price)
    mfu = laws.sparse_mfu(float(priors.dense_mfu), sparsity, float(priors.sparse_exponent))
    usual = _Work(
        active=active, sparsity=sparsity, kv=_middle(priors.kv_low, priors.kv_high) if kv is None else kv, context=float(priors.context),
        batch=_middle(priors.batch_low, priors.batch_high), byte=_middle(priors.weight_byte_low, priors.weight_byte_high),
    )  # fmt: skip
    return _log_rates(usual, at, priors, mfu, 1.0)


def _middle(low: Any, high: Any) -> float:
    """The geometric middle of an interval."""
    return float(low) ** 0.5 * float(high) ** 0.5


MOMENTS = 4096  # draws
SMALL = 1e-6  # numerical stand-in for a zero variance
EVEN = 1 / 12  # variance of a uniform value between 0 and 1
FLOOR = 0.1  # least share of the fitted precision that vague assumptions leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """Normal distribution of the log markup of the three rates: price over cost of busy reference chips."""

    middle: Any  # 3
    spread: Any  # 3 x 3
    prior_middle: Any  # 3: mean under priors and assumptions alone
    prior_spread: Any  # 3 x 3
    policy: Any  # 3 x 3: part of both spreads from pricing policy, not chip, idle hours or margin


def markup(draws: Samples, priors: Priors, slope: float | None = None, hosts: bool = False) -> Markup:
    """The markup for these draws; `slope`: variance of a sheet's context slope, None without tiers; `hosts`: many hosts sell the model."""
    host = _covariance(priors.host_spread_input, priors.host_spread_output, priors.host_correlation) if hosts else np.zeros((2, 2))
    policy = _beside(np.eye(2) * float(priors.policy_spread) ** 2 + host, 1.0, slope or SMALL)
    fitted = _covariance(priors.markup_input_spread, priors.markup_output_spread, priors.markup_correlation)
    base, before, _, _ = _base(priors, slope is not None)
    share, output = float(priors.ladder_markup), np.log(float(priors.markup_output))
    further, further_variance = further_markup(priors)
    # What the slope shares with the output markup comes by `share`; the rest of its variance is its own.
    spread = _beside(fitted + host, share, further_variance - share**2 * fitted[1, 1] + (slope or SMALL))
    middle = np.array([np.log(float(priors.markup_input)), output, further])
    excess = draws.log_price - (draws.log_cost if slope is None else draws.log_cost_kv)
    prior_middle, narrowed = excess.mean(1), np.cov(excess) + policy
    precision = [np.linalg.inv(matrix) for matrix in (spread, narrowed, before + policy)]
    joint_precision = precision[0] + precision[1] - precision[2]
    least, turn = np.linalg.eigh(joint_precision)
    joint_precision = turn @ np.diag(np.maximum(least, FLOOR * np.linalg.eigvalsh(precision[0]).min())) @ turn.T
    joint_covariance = np.linalg.inv(joint_precision)
    pulled = precision[0] @ middle + precision[1] @ prior_middle - precision[2] @ base
    return Markup(
        middle=joint_covariance @ pulled, spread=joint_covariance, prior_middle=prior_middle, prior_spread=narrowed, policy=policy
    )


def further_markup(priors: Priors) -> tuple[float, float]:
    """Middle and variance of the log markup of further context, before the spread between ladders and of requests in a tier."""
    _, _, chip, chip_spread = _base(priors, True)
    share, output = float(priors.ladder_markup), np.log(float(priors.markup_output))
    middle = share * output + (1 - share) * chip + np.log(float(priors.ladder_middle))
    variance = (1 - share) ** 2 * chip_spread + (output - chip) ** 2 * EVEN + share**2 * float(priors.markup_output_spread) ** 2
    return float(middle), float(variance)


def stated_only(priors: Priors) -> Priors:
    """The priors with the markup implied by stated chip price, utilisation, margin, MFU, batch and KV in place of the fitted markup."""
    middle, spread, _, _ = _base(priors, False)
    spread = spread[:2, :2] + np.eye(2) * float(priors.policy_spread) ** 2
    sd = np.sqrt(spread.diagonal())
    return dataclasses.replace(
        priors, markup_input=float(np.exp(middle[0])), markup_output=float(np.exp(middle[1])), markup_input_spread=float(sd[0]),
        markup_output_spread=float(sd[1]), markup_correlation=float(spread[0, 1] / (sd[0] * sd[1])),
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _base(priors: Priors, laddered: bool) -> tuple[Any, Any, float, float]:
    """Mean and covariance of the markup that the stated priors imply, before policy; mean and variance of the slope's chip part."""
    draws = draw(priors, AssumedIntervals(), MOMENTS)
    excess = draws.log_price - (draws.log_cost_kv if laddered else draws.log_cost)
    added = 1.0 / (draws.utilisation * cost_share(draws.margin))
    chip = (draws.log_price - draws.log_cost_kv)[2] - float(priors.ladder_markup) * np.log(added)
    return excess.mean(1), np.cov(excess), float(chip.mean()), float(chip.var())


def _covariance(first: Number, second: Number, correlation: Number) -> Any:
    shared = float(first) * float(second) * float(correlation)
    return np.array([[float(first) ** 2, shared], [shared, float(second) ** 2]])


def _beside(spread: Number, share: float, extra_variance: float) -> Any:
    """Covariance of input, output and context slope; the slope follows output by `share`, with `extra_variance` of its own."""
    carry = np.array([[1, 0], [0, 1], [0, share]])
    wide = carry @ spread @ carry.T
    wide[2, 2] += extra_variance
    return wide
