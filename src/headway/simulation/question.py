"""The question of `sim`: latencies of requests that are played through a scheduler; or a saved plan under its load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.errors import BadValue
from headway.core.question import FlagGroup, FlagRecord, Question
from headway.core.schema import RARE, Field
from headway.models.by_numbers import BY_NUMBERS
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import SLO
from headway.simulation.policy import Policy

REQUESTS = 10_000
SEEDS = 5  # default draws of the traffic over which --find looks
CHEAP = 20_000  # most requests of a load of which that many are looked at by default
STEPS = 0.1  # default relative change of step times for the sensitivity
WARMUP = 0.1
LOOPS = ("auto", "plain", "compiled")
ARRIVALS = Field(kind="word", word="KIND", help="poisson (default), even, bursty:CV, diurnal:PERIOD,LEVEL,...")
TRACE_BLOCK = Field(
    "token", word="TOKENS", integer=True, low=1, open_low=False, high=1e6,
    help="prompt tokens that each of a trace's hash_ids stands for (default 512)",
)  # fmt: skip
SEED = Field(kind="count", word="N", help="of what is drawn (default 0)")


@dataclass(frozen=True, kw_only=True)
class PlayedTraffic(FlagRecord):
    """Where the requests come from."""

    trace: Annotated[
        Any, Field(kind="file", word="FILE", help="Azure, BurstGPT, Mooncake or Vidur format, or a CSV of arrival_s, prompt, output")
    ] = None
    trace_block: Annotated[Any, TRACE_BLOCK, RARE] = None
    rate: Annotated[
        Any, Field("1/s", word="1/s", high=1e12, help="requests per second over all replicas; several make a curve; scales a trace")
    ] = None
    arrivals: Annotated[Any, ARRIVALS] = "poisson"
    prompt: Annotated[Any, Field(kind="lengths", word="LENGTHS", help="tokens: 2k, lognormal:2k,1.2, uniform:1,4k or trace:FILE")] = None
    output: Annotated[Any, Field(kind="lengths", word="LENGTHS", help="tokens of an answer, typed as --prompt")] = None
    requests: Annotated[Any, Field(kind="count", word="N", help=f"how many, of a trace the first (default {REQUESTS}, of a trace all)")] = (
        None
    )
    users: Annotated[
        Any,
        Field(word="N", integer=True, low=1, open_low=False,
              help="a closed loop: each user waits for the answer and asks again; several make a curve"),
    ] = None  # fmt: skip
    think: Annotated[Any, Field(kind="word", word="TIME", help="pause before asking again: 2s or exponential:2s (default none)")] = ""
    turns: Annotated[
        Any, Field(kind="number", word="TURNS,GAP", help="conversations whose prompts grow: mean turns and gap, such as 5,60s")
    ] = None
    seed: Annotated[Any, SEED] = "0"


@dataclass(frozen=True, kw_only=True)
class Playing(FlagRecord):
    """How it is played, and what is looked for."""

    prefix_cache: Annotated[
        Any, Field(kind="word", word="TIER:SIZE,...", help="reuse prefixes: hbm:60GB,ddr:1TB of each,flash:30TB:shared of all")
    ] = None
    ttl: Annotated[
        Any, Field(kind="number", word="TIME,...", help="how long each tier keeps what nobody uses: 5min,1h (default for ever)"), RARE
    ] = ""
    find: Annotated[Any, Field(kind="text", word="rate", help="the highest rate at which --so-that holds")] = None
    so_that: Annotated[Any, Field(kind="text", word="KEY=MOST,...", help="limits on columns, such as p99_ttft_s=1s,p99_tpot_s=50ms")] = None
    seeds: Annotated[
        Any,
        Field(kind="count", word="N", help="draws of the traffic over which --find looks, for lowest and highest of the rates "
              f"(default {SEEDS}, above {CHEAP} requests 1)"),
        RARE,
    ] = None  # fmt: skip
    fast: Annotated[
        Any, Field(word="SHARE", open_low=False, high=1, help="this share of requests goes before all others, in a class of its own"), RARE
    ] = None
    timeline: Annotated[
        Any, Field(kind="output", word="FILE", help="write the last run as trace events, which ui.perfetto.dev opens"), RARE
    ] = None
    sensitivity: Annotated[
        Any,
        Field(word="SHARE", open_low=False, high=0.9, help="latencies also with every step so much shorter and longer "
              f"(default {STEPS:.0%}, above {CHEAP} requests and with --find 0)"),
        RARE,
    ] = None  # fmt: skip
    warmup: Annotated[
        Any,
        Field(word="SHARE", open_low=False, high=0.9, help=f"first requests left out of latencies (default {WARMUP}, of a trace 0)"),
        RARE,
    ] = None  # fmt: skip
    loop: Annotated[Any, Field(choices=LOOPS, help="run as plain Python or compiled (default: the sooner)"), RARE] = "auto"


class Simulate(Question):
    """Percentiles, goodput and capacity under a trace or drawn traffic, a row per layout and rate."""

    verb, answered_by = "sim", "headway.answers.sim"
    example = "sim llama-3.1-70b --on 8xh100-sxm --tp 4 --replicas 2 --rate 5 --prompt 2k --output 300"
    progress, patience_s = "requests simulated", 2.0
    groups = (
        FlagGroup(PlayedTraffic, "traffic"),
        FlagGroup(SLO, "limits of goodput (each may be left out)", skip=("tpot_decode",)),
        FlagGroup(Policy, "scheduler: what the engine family does unless told otherwise"),
        FlagGroup(Layout, "layout"),
        FlagGroup(Precision, "number formats"),
        FlagGroup(Assumptions, "assumptions (named defaults)"),
        FlagGroup(Playing, "simulation"),
        BY_NUMBERS,
    )
    model: Annotated[Any, Field(kind="model", place="?", help="catalogue name, config.json or Hugging Face id")] = None
    on: Annotated[Any, Field(kind="machine", word="MACHINE", help="gb200-nvl72, 8xh100-sxm, h200, ...")] = None
    plan: Annotated[
        Any, Field(kind="file", word="FILE.json", help="play what plan -o json wrote, instead of model, machine, layout and load")
    ] = None

    def idle(self) -> dict[str, str]:
        """Arrivals of users who wait, or of a trace, which has its own; draws, where no rate is looked for."""
        return ({"arrivals": ""} if self.users or self.trace else {}) | ({} if self.find else {"seeds": ""})

    def check_printed(self, printed: Any) -> None:
        """Where a rate is looked for there is no run to draw."""
        if self.find and printed.plot:
            raise BadValue("--plot", printed.plot, "loads that are given, such as --rate 10, not --find")
