"""Questions of money: `price` in its six forms, `speed`, `cache`, `bill` and `breakeven`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core import interval, schema
from headway.core.errors import BadValue
from headway.core.interval import Interval, point
from headway.core.quantity import Sourced, default, user_input
from headway.core.question import MACHINES, MODELS, REQUIRED, SHIPPED, SWITCH, Edits, FlagGroup, FlagRecord, Question, declared, field
from headway.core.schema import Field
from headway.economics.cache.records import CacheHold, CacheService, PrefillCost
from headway.hardware.chip import memory_size
from headway.hardware.chip_price import WHICH, TypedPrice
from headway.models.by_numbers import BY_NUMBERS
from headway.models.precision import Precision
from headway.performance.assumptions import HIT_RATE, Assumptions
from headway.performance.calibration.flag import OWN_RUNS
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from headway.serving.questions import DISAGGREGATE
from headway.simulation.check.limits import LatencyLimits
from headway.simulation.questions import ARRIVALS, SEED, TRACE_BLOCK, CheckedLoad

PER_TOKEN = Field("USD/token", bare="USD/Mtok", open_low=False)
LAYOUT = tuple(schema.fields(Layout))
ASSUME = (
    "take as known or narrow, with commas: active=100B, total, kv, batch, chip=tpu-v7, price=$2/h, mfu, utilisation, margin=0.3..0.6, ..."
)


TYPED = "2.2..4.5 is one interval, 1,2,3 three values, 0..0.8+0.2 five"
ALL_WORK = point(default(1.0, "utilisation", "", "all paid hours work"))
AT_COST = point(default(0.0, "margin", "", "the price is the cost"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommercialTerms:
    """Chip price, utilisation and margin as intervals; no chip price means the catalogue's by a metric, the market's unless named."""

    chip_price: Annotated[
        Any, Field("USD/s", bare="USD/h", help=f"price of a chip (default: the catalogue's by --price-metric); {TYPED}")
    ] = None
    utilisation: Annotated[Any, Field(high=1, help="share of paid chip-hours that do useful work, the same way (default 1)")] = ALL_WORK
    margin: Annotated[Any, Field(low=-10, open_low=False, high=0.999, help="share of the price above cost, the same way (default 0)")] = (
        AT_COST
    )


def terms(**values: Any) -> CommercialTerms:
    """Terms from values that are each an Interval, a number or pair of ends in SI, or command-line text.

    >>> one = terms(chip_price="2.2..4.5", utilisation=(0.3, 0.7))
    >>> round(one.chip_price.low * 3600, 6), one.utilisation.high, one.margin.high
    (2.2, 0.7, 0.0)
    """
    marks = schema.fields(CommercialTerms)
    return CommercialTerms(**{name: _interval(value, marks[name][0], name) for name, value in values.items() if value is not None})


def _interval(value: Any, q: Field, name: str) -> Interval:
    if isinstance(value, Interval):
        return value
    if isinstance(value, str):
        first, *more = interval.read(value, q, name)
        if more:
            raise BadValue(name, value, "one value or one interval")
        return first
    ends: Any = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    for end in ends:
        if isinstance(end, bool) or not isinstance(end, int | float) or q.illegal(end):
            raise BadValue(name, value, f"a number {q.range()}, or a pair of them")
    low, high = ends
    if high < low:
        raise BadValue(name, value, "an interval whose end is not below its start")
    low, high = (end if isinstance(end, Sourced) else user_input(float(end), name, q.unit) for end in (low, high))
    return Interval(low=low, high=high)


class OwnedChips(FlagRecord):
    """Chips that are bought, not rented."""

    own = field(kind="switch", help="price of a chip that is owned: capital, upkeep, power, building", default=False)


class PriceList(FlagRecord):
    """A price list to compare the cost with."""

    at_sheet = field(kind="sheet", word="NAME", help="price sheet by name or file, such as deepseek-v3 or my_prices.toml:model")
    hit_rate = field(
        open_low=False, high=1, spellings=HIT_RATE, help="share of prompt tokens found in a prefix cache; a..b goes by 0.05"
    )
    input_price = field("USD/token", bare="USD/Mtok", open_low=False, help="list price of fresh input")
    cached_price = field("USD/token", bare="USD/Mtok", open_low=False, help="of cached input (default: as fresh)")
    output_price = field("USD/token", bare="USD/Mtok", open_low=False, help="list price of output")


class SheetBackwards(FlagRecord):
    """A price sheet, and what is taken as known of who sells it."""

    sheet = field(kind="sheet", word="NAME|FILE", help="price sheet by name or file: gemini-3.1-pro, my_prices.toml", default="")
    assume = field(kind="text", word="KEY=VALUE", help=ASSUME, default="")


class KnownSizes(FlagRecord):
    """Prices of models whose architecture is published."""

    score = field(
        kind="file",
        word="PRICES.csv",
        help="CSV of prices by host: model, input_usd_per_mtok, output_usd_per_mtok, family and "
        "service_tier if known; standard medians count",
        default="",
    )
    truth = field(kind="file", word="ARCH.csv", help="CSV of sizes: model, active_params_b, total_params_b", default="")
    report = field(kind="output", word="PAGE.md", help="page between whose markers the tables go as well", default="")


class DayCase(FlagRecord):
    """A day as its operator told it."""

    case = field(
        kind="sheet",
        word="NAME",
        help="a day of a service as its operator published it, such as deepseek-day6: cost, revenue, margin, nodes by its own rates",
    )


class MemoryShare(FlagRecord):
    """A machine whose memory is priced, and what the catalogue does not state of it."""

    memory_share = field(
        kind="machine",
        word="MACHINE",
        help="what of a chip's and a machine's price is HBM, DRAM and flash, at dated prices: h100-sxm, gb200-nvl72; several with commas",
    )
    dram = declared(memory_size("host memory of the whole machine, where the catalogue does not know it, such as 2TB"))
    flash = declared(memory_size("flash of the whole machine, such as 30TB"))


class Price(Question):
    """Cost and price per token of a model on a machine, or one of the questions around it."""

    verb, answered_by = "price", "headway.answers.price"
    probes, slow_with = None, ("model", "sheet", "score", "case")
    example = "price deepseek-v3 --on gb200-nvl72 --chip-price 2.2..4.5 --utilisation 0.3..0.7"
    refresh = "on release"
    pictures = (
        ("context", "cost against context: window and memory end"),
        ("grid", "prices along the inputs that vary"),
        ("history", "of --history: rates by the date of the sheet"),
        ("quantities", "of --sheet: what is identified, with its interval"),
    )
    modes = (
        ("MODEL --on MACHINE [flags]", "cost per token, at which price of a chip, use and margin"),
        ("--sheet NAME [flags]", "what a price sheet implies of model and machine"),
        ("--history WHOSE", "dated sheets of a provider, a family or a model"),
        ("--score PRICES.csv [flags]", "what sheets imply, beside models whose architecture is published"),
        ("--case NAME", "a published day of a service, recomputed"),
        ("--memory-share MACHINE [flags]", "share of a machine's cost that is memory"),
    )
    groups = (
        FlagGroup(CommercialTerms, "cost to price"),
        FlagGroup(OwnedChips, "cost to price, further", is_brief=True),
        FlagGroup(PriceList, "margin against a price list", is_brief=True),
        FlagGroup(Load, "load: every number may be a list or a range", skip=("context", "rate"), searched=("batch",)),
        FlagGroup(SLO, "limits (each may be left out)"),
        FlagGroup(Layout, "layout: the cheapest unless pinned to a value or a list", searched=LAYOUT, is_brief=True),
        FlagGroup(Precision, "number formats: a list is searched (KV: bf16 and fp8)", searched=("kv",), is_brief=True),
        FlagGroup(Assumptions, "assumptions (named defaults)", skip=("hit_rate", "price_metric"), is_brief=True),
        FlagGroup(SheetBackwards, "a price sheet read backwards", is_brief=True),
        FlagGroup(KnownSizes, "price sheets of models whose size is known", is_brief=True),
        FlagGroup(DayCase, "a published day", is_brief=True),
        FlagGroup(MemoryShare, "share of memory", is_brief=True),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = field(kind="model", place="?", help="catalogue name, config.json or Hugging Face id; several with commas", default="")
    on = declared(MACHINES, default="")
    disaggregate = declared(DISAGGREGATE, default="auto")
    price_metric = field(kind="word", word="NAME", help=f"which price of a chip, with the range of its quotes: {WHICH} (default market)")
    history = field(
        kind="sheet",
        word="WHOSE",
        help="dated sheets of a provider, a family or a model: anthropic, gpt, my_prices.toml, genai-prices:openai, all",
        default="",
    )
    shipped = declared(SHIPPED, default=False)

    def idle(self) -> dict[str, str]:
        """Edits and the user's own runs, where nothing is computed for a model on a machine of the user's."""
        edits = () if self.model else ("set", "catalog") if self.memory_share else ("catalog",)
        runs = {} if self.model else {"calibration": "a model on a machine: own runs say nothing of a price sheet"}
        tables = {} if self.sheet or self.at_sheet or self.history else {"shipped": "a price sheet"}
        return runs | tables | {name: "" for name in schema.fields(Edits) if edits and name not in edits}


OF_SHEETS = {"sheet": SheetBackwards, "score": KnownSizes, "case": DayCase, "memory_share": MemoryShare}
# The field that asks each question of `price` -> the fields that go with it.
FORMS: dict[str, tuple[str, ...]] = {
    "model": (
        *(flag.name for group in Price.groups if group.record not in OF_SHEETS.values() and not group.into for flag in group.flags()),
        "disaggregate",
        "price_metric",
        "on",
    ),
    **{name: tuple(schema.fields(record)) for name, record in OF_SHEETS.items()},
    "history": ("history",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedRequest:
    """Inputs of the speed tiers beyond those of a plan."""

    at: Annotated[Any, Field(low=1, open_low=False, high=1e6, help="speed multiple that the answer and larger domains are taken at")] = 2.5
    domains: Annotated[
        Any, Field(integer=True, low=2, open_low=False, high=1e6, help="scale-up domains to plan again, times the own one")
    ] = (2, 4, 8)


class Speed(Question):
    """Price of fast and slow tiers against their speed, beside real offers."""

    verb, answered_by = "speed", "headway.answers.speed"
    example = "speed deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k"
    refresh = "on release"
    pictures = (("ladder", "price against speed of fast and slow tiers, with real offers"),)
    groups = (
        FlagGroup(Load, "load", only=("prompt", "output")),
        FlagGroup(SLO, "limits (--tpot: of the standard rung, default 20 ms)", only=("ttft", "tpot")),
        FlagGroup(SpeedRequest, "ladder"),
        FlagGroup(Layout, "layout: searched unless pinned to a value or a list", searched=LAYOUT, is_brief=True),
        FlagGroup(Precision, "number formats: a list is searched (KV: bf16 and fp8)", searched=("kv",), is_brief=True),
        FlagGroup(Assumptions, "assumptions (named defaults)", is_brief=True),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = declared(MODELS)
    on = declared(MACHINES, default=REQUIRED)
    disaggregate = declared(DISAGGREGATE, default="auto")


class CacheFees(FlagRecord):
    """Fees of a provider for cached tokens."""

    sheet = field(kind="sheet", word="NAME", help="price sheet: claude-opus, my_prices.toml, ...; with --workload, whose bill it is")
    fee = field(kind="number", word="USD/token", help="a fee for one hold beyond the input rate: $5/Mtok")
    storage = field(kind="number", word="USD/token/s", help="a fee by the hour: $4.50/Mtok/h")
    shipped = declared(SHIPPED, default=False)


TTLS = "5min,1h,never"


class CacheTrace(FlagRecord):
    """Recorded requests, and the cache that they meet."""

    workload = field(kind="file", word="FILE", help="Mooncake JSON lines with hash_ids, or a CSV with conversations")
    ttl = field(kind="number", word="TIME,...", help=f"times to live, renewed by each use: 5min,1h,never (default {TTLS})", rare=True)
    capacity = field(kind="number", word="BYTES,...", help="room for the cache, least recently used first out: 10GB..1TB*2")
    requests = field(kind="count", word="N", help="the first N requests of the trace alone")
    trace_block = declared(TRACE_BLOCK, rare=True)


class Cache(Question):
    """Memory tier and lifetime of a KV cache; or its size, its fees, or its hit rates over a trace."""

    verb, answered_by = "cache", "headway.answers.cache"
    probes, slow_with = None, ("reuse", "uses", "workload")
    example = "cache deepseek-v3 --on 8xh200 --reuse 0.8 --hold 5min,1h,24h"
    refresh = "at once"
    pictures = (
        ("map", "the cheapest memory tier by hold time and reuse"),
        ("drain", "drain time of each memory tier, from HBM to disk"),
        ("holds", "cost against hold time"),
        ("hit-rates", "of --workload: what the cache has, by lifetime and room"),
    )
    modes = (
        ("MODEL --on MACHINE [flags]", "tier and lifetime of a prefix, by four criteria"),
        ("MODEL --on MACHINE --rate R --hit-rate N [flags]", "how much of each tier a service's cache takes"),
        ("MODEL --on MACHINE --sheet NAME [flags]", "what cache fees would pay for at cost"),
        ("MODEL --on MACHINE --workload FILE [flags]", "hit rates, reuse times and bill of a trace"),
    )
    groups = (
        FlagGroup(PrefillCost, "computing again"),
        FlagGroup(CacheHold, "hold: every number may be a list or a range"),
        FlagGroup(CacheService, "sizes: how much of each tier a service's cache takes"),
        FlagGroup(CacheFees, "fees: what cache fees would pay for at cost"),
        FlagGroup(CacheTrace, "workload: hit rate and bill of a trace"),
        FlagGroup(Layout, "layout of the estimate: searched unless pinned", searched=LAYOUT, is_brief=True),
        FlagGroup(Precision, "number formats (KV cache: bf16 unless told)", is_brief=True),
        FlagGroup(Assumptions, "assumptions (named defaults)", skip=("hit_rate", "mfu"), is_brief=True),
        BY_NUMBERS,
    )
    subjects = ("model", "on", "hold")
    model = field(kind="model", place="?", help="catalogue name, config.json or Hugging Face id; several with commas")
    on = field(kind="machine", word="MACHINE", help="machine that computes, whose HBM is the tier hbm: 8xh200, gb200-nvl72, ...")
    tier = field(
        kind="word", word="NAME,...", help="tiers or devices: ddr, cxl, qlc, tlc_4tb, ..., or all (default hbm,ddr,cxl,flash,disk)"
    )

    def idle(self) -> dict[str, str]:
        """Whose price tables count, where no sheet is named."""
        return {} if self.sheet else {"shipped": "--sheet beside it"}


class BillTraffic(FlagRecord):
    """Requests that are billed: recorded, drawn, or as totals."""

    requests = field(kind="count", word="FILE|N", help="a trace (Azure, BurstGPT, Mooncake, Vidur, plain CSV), or how many of --prompt")
    prompt = field(kind="lengths", word="LENGTHS", help="tokens, what is shared included: 8k, lognormal:8k,1.2, uniform:1k,16k, trace:FILE")
    shared = field(
        "token",
        word="TOKENS",
        integer=True,
        open_low=False,
        high=1e9,
        help="tokens that every prompt begins with (a system prompt, tools, a document)",
    )
    output = field(kind="lengths", word="LENGTHS", help="tokens of an answer, in the same words")
    rate = field("1/s", word="1/s", high=1e12, help="requests per second: 2/min; of a trace, its own unless given")
    arrivals = declared(ARRIVALS, default="poisson")
    turns = field(kind="number", word="N[,GAP]", help="conversations whose prompts grow: mean turns and gap (default 60s)")
    trace_block = declared(TRACE_BLOCK, rare=True)
    seed = declared(SEED, default="0")
    start = field(kind="word", word="HH:MM", help="UTC time of the first request, for prices by the hour (default 00:00)", default="00:00")
    tokens = field(kind="text", word="KEY=N,...", help="totals in place of requests: input=608B,cached=342B,output=168B")


class Bill(Question):
    """Cost of requests under API price sheets, by mode and cache, cheapest first."""

    verb, answered_by = "bill", "headway.answers.bill"
    probes, slow_with = None, ("requests",)
    example = "bill --sheet claude-opus --prompt 8k --shared 6k --output 500 --requests 200 --rate 2/min"
    refresh = "on release"
    pictures = (("modes", "cost of the requests by mode"),)
    progress = "bills computed"
    groups = (FlagGroup(BillTraffic, "requests"),)
    subjects = ()
    edits = ("catalog",)
    sheet = field(
        kind="sheet",
        word="NAME,...",
        help="claude-opus, groq/gpt-oss-120b, my_prices.toml, prices.json:gpt-5.4, genai-prices:NAME, or all that ship",
        default=REQUIRED,
    )
    mode = field(kind="word", word="NAME,...", help="standard, batch, flex, fast, ... (default all that a sheet sells)", default="")
    cache = field(kind="number", word="TIME,...", help="5min,1h,none: times to live (default all that a sheet sells, and none)", default="")
    shipped = declared(SHIPPED, default=False)


class Update(Question):
    """Price tables of your own, read again from the price packages that are installed here; nothing is downloaded."""

    verb, answered_by = "update", "headway.answers.update"
    example = "update --check"
    no_page = "it writes price tables of yours; run `headway update`, and pages show those prices"
    subjects, edits = (), ()
    no_edits = "a verb about a model or a machine; update is about price tables"
    check = field(kind=SWITCH, help="tell what would change, and write nothing", default=False)


class MonthlyVolume(FlagRecord):
    """How much is asked, and when."""

    rate = field("1/s", word="1/s", high=1e9, help="requests, the mean over all hours: 100k/day, 2/s; a list or range is the curve")
    monthly_tokens = field(
        "token", word="TOKENS", high=1e18, help="in place of --rate: tokens of a month of 730 hours, prompts and answers: 3B"
    )
    prompt = field(kind="lengths", word="LENGTHS", help="tokens, what a cache has included: 8k, lognormal:8k,1.2, uniform:1k,16k")
    output = field(kind="lengths", word="LENGTHS", help="tokens of an answer, in the same words")
    peak = field(low=1, open_low=False, high=1e3, help="rate of the busiest hours, which machines must carry, over the mean (default 1)")
    idle_hours = field(word="HOURS", open_low=False, high=23.9, help="hours of a day without requests, paid all the same (default 0)")


class MachineCosts(FlagRecord):
    """What machines cost beside their hours, and what owning them costs."""

    staff = field("USD", word="USD", open_low=False, high=1e12, help="cost a month of the people who run the machines: $15k (default 0)")
    capex = field("USD", word="USD", high=1e9, help="of --own: purchase of a chip, in place of the catalogue's, such as $25k")
    life = field("s", word="TIME", low=86400.0, high=3.2e9, help="of --own: time over which a purchase is written off, such as 4years")
    electricity = field("USD/W/s", word="USD/kWh", bare="USD/kWh", open_low=False, high=1e-3, help="of --own: price of electricity")
    power = field("W", word="W", high=1e6, help="of --own: power of a chip with its share of host, network and cooling")


class Breakeven(Question):
    """The API bill of a workload against rented or own machines that serve it: where it tips, and what each costs by volume."""

    verb, answered_by = "breakeven", "headway.answers.breakeven"
    example = "breakeven llama-3.1-8b --on l40s --sheet groq/llama-3.1-8b --rate 200k/day --prompt 2k --output 300 --ttft 2s --tpot 40ms"
    refresh = "on release"
    pictures = (("volume", "cost of a month by volume: the API's line, the staircase of machines, where they meet, with its interval"),)
    progress, patience_s = "plans searched", 2.0
    groups = (
        FlagGroup(MonthlyVolume, "workload"),
        FlagGroup(SLO, "limits that the machines keep (each may be left out)"),
        FlagGroup(LatencyLimits, "limits on percentiles under the load", skip=("ttft", "tpot", "e2e"), is_brief=True),
        FlagGroup(OwnedChips, "machines", is_brief=True),
        FlagGroup(TypedPrice, "machines"),
        FlagGroup(MachineCosts, "machines"),
        FlagGroup(CheckedLoad, "machines", only=("confidence", "spare", "no_check")),
        FlagGroup(Layout, "layout: searched unless pinned to a value or a list", skip=("replicas",), searched=LAYOUT, is_brief=True),
        FlagGroup(Precision, "number formats: a list is searched (default as published; KV also fp8)", searched=("kv",), is_brief=True),
        FlagGroup(Assumptions, "assumptions (named defaults)", is_brief=True),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = declared(MODELS)
    on = field(kind="machine", word="MACHINE", help="h100-sxm, gb200-nvl72, ...: as many as it takes", default=REQUIRED)
    sheet = field(
        kind="sheet", word="NAME,...", default="",
        help="the API: claude-haiku, groq/gpt-oss-120b, mine.toml; several with commas (default the model's cheapest)",
    )  # fmt: skip
    mode = field(kind="word", word="NAME,...", help="standard (default), batch, flex, ...: the cheapest of these", default="standard")
    cache = field(kind="number", word="TIME,...", help="5min,1h,none: times to live (default the cheapest that a sheet sells)", default="")
    shipped = declared(SHIPPED, default=False)

    def idle(self) -> dict[str, str]:
        """What owning costs, where chips are rented."""
        return {} if self.own else dict.fromkeys(OWNING, "--own beside it: it is about machines that are bought")


OWNING = ("capex", "life", "electricity", "power")
