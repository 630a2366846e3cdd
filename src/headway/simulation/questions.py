"""The questions `sim` (latencies of requests played through a scheduler, or a saved plan under its load) and `plan` (the best layout)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core import schema
from headway.core.errors import BadValue
from headway.core.question import MODELS, REQUIRED, Edits, FlagGroup, FlagRecord, Question, declared, field
from headway.core.schema import RARE, Field
from headway.hardware.chip_price import TypedPrice
from headway.models.by_numbers import BY_NUMBERS
from headway.models.precision import Precision
from headway.performance.assumptions import EFFICIENCIES, LATENCIES, Assumptions
from headway.performance.calibration.flag import OWN_RUNS
from headway.performance.layout import Layout
from headway.performance.workload import MOST, SLO, Load
from headway.serving.questions import DISAGGREGATE
from headway.simulation.check.limits import LatencyLimits

REQUESTS = 10_000
PER_USER, FEWEST = 10, 100  # requests of each user of a closed loop, as benchmarks send, and of all of them
SEEDS = 5  # default draws of the traffic over which --find looks
CHEAP = 20_000  # most requests of a load of which that many are looked at by default
STREAMED = 1_000_000  # drawn requests from which on none is kept
STEPS = 0.1  # default relative change of step times for the sensitivity
WARMUP = 0.1
LOOPS = ("auto", "plain", "compiled")
PLAINLY = LOOPS[1]
ARRIVALS = Field(kind="word", word="KIND", help="poisson (default), even, bursty:CV, diurnal:PERIOD,LEVEL,...")
TRACE_BLOCK = Field(
    "token",
    word="TOKENS",
    integer=True,
    low=1,
    open_low=False,
    high=1e6,
    help="prompt tokens that each of a trace's hash_ids stands for (default 512)",
)
PERCENTILE_LIST = Field(
    word="P,...",
    low=1,
    open_low=False,
    high=100,
    help="percentiles of latencies that the table shows, such as 50,99.9 (default 99); 50, 90, 95 and 99 are in every JSON row",
)
SEED = Field(kind="count", word="N", help="of what is drawn (default 0)")


POLICIES = ("chunked", "prefill-first", "disaggregated")
ROUTES = ("round-robin", "least-loaded", "prefix-aware")
RELOADS = ("time", "cost")
PREEMPTIONS = ("recompute", "swap")
BLOCK = 16  # tokens, vLLM's default
SWAP_SPACE = 4 * 2**30  # bytes of host memory per chip, vLLM's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The scheduler of one replica; None for the default of the engine family."""

    policy: Annotated[str, Field(choices=(*POLICIES, ""), help="prompts: beside decodes, before them, or on replicas of their own")] = ""
    token_budget: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=1e9, help="tokens of a rank's step")] = None
    max_seqs: Annotated[Any, Field(integer=True, low=1, open_low=False, high=1e6, help="sequences of one rank (vLLM: max_num_seqs)")] = None
    kv_tokens: Annotated[
        Any, Field("token", low=1, open_low=False, high=1e12, help="KV cache of one replica, instead of what is left"), RARE
    ] = None
    block: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=1e6, help="tokens in a block of KV cache"), RARE] = BLOCK
    reserve: Annotated[
        Any, Field(open_low=False, high=1, help="part of an answer's KV cache that is set aside when it is admitted"), RARE
    ] = None
    departures: Annotated[
        Any, Field("s", help="steps leave at multiples of this time, full or not; drain: the time to read all HBM"), RARE
    ] = None
    request_overhead: Annotated[
        Any, Field("s", open_low=False, help="an engine's own work on a request before its first token is out"), RARE
    ] = None
    preemption: Annotated[str, Field(choices=PREEMPTIONS, help="what becomes of a cache for which there is no room any more"), RARE] = (
        "recompute"
    )
    swap_space: Annotated[Any, Field("byte", open_low=False, high=1e15, help="host memory of each chip for caches swapped out"), RARE] = (
        SWAP_SPACE
    )
    patience: Annotated[Any, Field("s", help="a user whose first token has not come by then leaves"), RARE] = None
    step_factor: Annotated[Any, Field(high=1e6, help="every step takes so many times as long as estimated"), RARE] = 1
    prefill_replicas: Annotated[
        Any, Field(integer=True, low=1, open_low=False, high=1e6, help="of policy disaggregated, besides --replicas")
    ] = 1
    routing: Annotated[str, Field(choices=ROUTES, help="which replica gets a request")] = "round-robin"
    reload: Annotated[
        str, Field(choices=RELOADS, help="a found prefix is loaded where that is faster than computing it, or cheaper"), RARE
    ] = "time"


class PlayedTraffic(FlagRecord):
    """Where the requests come from."""

    trace = field(kind="file", word="FILE", help="Azure, BurstGPT, Mooncake or Vidur format, or a CSV of arrival_s, prompt, output")
    trace_block = declared(TRACE_BLOCK, rare=True)
    rate = field("1/s", word="1/s", high=1e12, help="requests per second over all replicas; several make a curve; scales a trace")
    arrivals = declared(ARRIVALS, default="poisson")
    prompt = field(kind="lengths", word="LENGTHS", help="tokens: 2k, lognormal:2k,1.2, uniform:1,4k or trace:FILE")
    output = field(kind="lengths", word="LENGTHS", help="tokens of an answer, typed as --prompt")
    requests = field(
        kind="count", word="N", help=f"how many, of a trace the first (default {REQUESTS}, of --users {PER_USER} each, of a trace all)"
    )
    users = field(
        word="N",
        integer=True,
        low=1,
        open_low=False,
        help="a closed loop: each user waits for the answer and asks again; several make a curve",
    )
    think = field(kind="word", word="TIME", help="pause before asking again: 2s or exponential:2s (default none)", default="")
    turns = field(kind="number", word="TURNS,GAP", help="conversations whose prompts grow: mean turns and gap, such as 5,60s")
    seed = declared(SEED, default="0")


STEP_LAW = (
    'how long a step takes, in place of a model: "5ms + 0.1ms*n" of n requests in it; also of decodes, prompts, tokens, prompt_tokens '
    "and context (tokens of KV cache that it reads)"
)
# What moves only the model's own step times, so that it says nothing beside --step.
OF_STEPS = (
    "compute", "overlap", "communication", "eager", *EFFICIENCIES, *LATENCIES, "mfu", "fixed", "imbalance", "expert_load", "spread",
    "activation_bytes", "dispatch_bytes", "draft_cost", "images", "image_tokens",
)  # fmt: skip
OF_ANY_ENGINE = ("engine", "hit_rate", "length_cv")  # what a step law alone takes of the assumptions
OF_A_MACHINE = ("prefix_cache", "ttl", "reload", "prefill", "prefill_replicas", "swap_space", "calibration")


class Playing(FlagRecord):
    """How it is played, and what is looked for."""

    step = field(kind="text", word='"5ms + 0.1ms*n"', help=STEP_LAW)

    prefix_cache = field(kind="word", word="TIER:SIZE,...", help="reuse prefixes: hbm:60GB,ddr:1TB of each,flash:30TB:shared of all")
    ttl = field(
        kind="number", word="TIME,...", help="how long each tier keeps what nobody uses: 5min,1h (default for ever)", rare=True, default=""
    )
    find = field(kind="text", word="rate", help="the highest rate at which --so-that holds")
    so_that = field(kind="text", word="KEY=MOST,...", help="limits on columns, such as p99_ttft_s=1s,p99_tpot_s=50ms")
    percentiles = declared(PERCENTILE_LIST)
    seeds = field(
        kind="count",
        word="N",
        help="draws of the traffic over which --find looks, for lowest and highest of the rates "
        f"(default {SEEDS}, above {CHEAP} requests 1)",
        rare=True,
    )
    prefill = field(
        kind="text",
        word='"KEY=VALUE ..."',
        help='layout of the prefill replicas of --policy disaggregated, such as "tp=4 pp=2" (default: that of the others)',
        rare=True,
    )
    fast = field(
        word="SHARE", open_low=False, high=1, help="this share of requests goes before all others, in a class of its own", rare=True
    )
    timeline = field(kind="output", word="FILE", help="write the last run as trace events, which ui.perfetto.dev opens", rare=True)
    sensitivity = field(
        word="SHARE",
        open_low=False,
        high=0.9,
        help=f"latencies also with every step so much shorter and longer (default {STEPS:.0%}, on a chip whose kernels were not "
        f"measured the interval of its steps; above {CHEAP} requests and with --find 0)",
        rare=True,
    )
    warmup = field(
        word="SHARE", open_low=False, high=0.9, help=f"first requests left out of latencies (default {WARMUP}, of a trace 0)", rare=True
    )
    loop = field(choices=LOOPS, help="run as plain Python or compiled (default: the sooner)", rare=True, default="auto")
    limit_memory = field("byte", word="BYTES", low=1, open_low=False, help="refuse a run that would take more, before it begins", rare=True)


class Simulate(Question):
    """Percentiles, goodput and capacity under a trace or drawn traffic, a row per layout and rate."""

    verb, answered_by = "sim", "headway.answers.sim"
    example = "sim llama-3.1-70b --on 8xh100-sxm --tp 4 --replicas 2 --rate 5 --prompt 2k --output 300"
    refresh = "on release"
    pictures = (
        ("time", "queue, batch and KV cache over time, with the limits"),
        ("latency", "latency percentiles against rate, with saturation"),
        ("trains", "timetable of steps: when they leave, how full, who waits"),
    )
    progress, patience_s = "requests simulated", 2.0
    groups = (
        FlagGroup(PlayedTraffic, "traffic"),
        FlagGroup(SLO, "limits of goodput (each may be left out)", skip=("tpot_decode",)),
        FlagGroup(Policy, "scheduler: what the engine family does unless told otherwise"),
        FlagGroup(Layout, "layout", is_brief=True),
        FlagGroup(Precision, "number formats", is_brief=True),
        FlagGroup(Assumptions, "assumptions (named defaults)", is_brief=True),
        FlagGroup(Playing, "simulation"),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = field(kind="model", place="?", help="catalogue name, config.json or Hugging Face id")
    on = field(kind="machine", word="MACHINE", help="gb200-nvl72, 8xh100-sxm, h200, ...")
    plan = field(kind="file", word="FILE.json", help="play what plan -o json wrote, instead of model, machine, layout and load")

    def _idle_beside_step(self) -> dict[str, str]:
        """Beside a step law, what moves only the steps of a model; without a model, what is of one or of its machine."""
        if not self.step or self.plan:
            return {}
        idle: dict[str, str] = {name: "no --step beside it, which says how long a step takes" for name in OF_STEPS}
        if self.model or self.on:
            return idle
        records = (name for record in (Layout, Precision, Assumptions, Edits) for name in schema.fields(record))
        names = {*records, *OF_A_MACHINE} - {"replicas", *OF_ANY_ENGINE}
        return idle | dict.fromkeys(sorted(names), "MODEL --on MACHINE beside it: a step law alone has no chips")

    def idle(self) -> dict[str, str]:
        """Arrivals of users who wait, or of a trace, which has its own; draws, where no rate is looked for."""
        draws = ({"arrivals": ""} if self.users or self.trace else {}) | ({} if self.find else {"seeds": ""})
        return draws | self._idle_beside_step()

    def check_printed(self, printed: Any) -> None:
        """Where a rate is looked for there is no run to draw."""
        if self.find and printed.plot:
            raise BadValue("--plot", printed.plot, "loads that are given, such as --rate 10, not --find")


MOST_SPARE = 100
OBJECTIVES = ("cost", "throughput", "latency", "chips")
ENGINES = ("vllm", "sglang", "trtllm")


class CheckedLoad(FlagRecord):
    """A load that nodes or cards carry, and how it is checked."""

    users = field(
        word="N",
        integer=True,
        low=1,
        open_low=False,
        high=MOST,
        help="users over all replicas, who each wait for the answer before they ask again",
    )
    trace = field(kind="file", word="FILE", help="recorded requests: Azure, BurstGPT, Mooncake or Vidur format, or a CSV")
    confidence = field(
        word="SHARE", low=0.5, open_low=False, high=0.999, help="chance, given the model's error, that all limits hold (default 0.8)"
    )
    spare = field(
        word="N",
        integer=True,
        open_low=False,
        high=MOST_SPARE,
        help="nodes, or cards rented together, that may be lost: the load and its limits hold on the others (default 0)",
    )
    no_check = field(kind="switch", help="do not simulate: limits on means alone, of the expected times", default=False)


class PlanGoal(FlagRecord):
    """What is made best, and what is printed beside it."""

    objective = field(choices=OBJECTIVES, help="what to make best (default cost); of equals the faster, then fewer chips", default="cost")
    disaggregate = declared(DISAGGREGATE, default="auto")
    launch = field(choices=ENGINES, help="also print the command line that realises the best layout")
    manifest = field(
        kind="manifest", word="k8s FILE", takes="words", help="Kubernetes manifests of --launch, to FILE or else printed", default=()
    )
    chips_per_host = field(
        word="N",
        integer=True,
        low=1,
        open_low=False,
        high=1e7,
        help="chips of one server or tray, for --launch (default: a fact of the chip)",
    )
    plainest = field(choices=("on", "off"), help="of layouts within 3 % of the best, the plainest (default on)", default="on")
    current = field(kind="text", word='"KEY=VALUE ..."', help='your own layout, such as "tp=8 batch=64": the gain and its cause')


class Plan(Question):
    """The best layout for a load and limits, the frontier of speed against cost, sensitivities, and the user's own layout."""

    verb, answered_by = "plan", "headway.answers.plan"
    probes = ("plainest", "confidence")  # which of its layouts it takes
    example = "plan deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --ttft 2s --tpot 50ms"
    refresh = "on release"
    pictures = (
        ("frontier", "speed of a user against throughput and cost, with the plan, the limits and your own layout"),
        ("memory", "what fills a chip of the plan"),
        ("tornado", "what a tenth more or less of each input changes"),
        ("batch", "latency and cost against batch of the plan's layout"),
        ("ladder", "at a load, the chance that every limit holds by the number of chips"),
        ("rates", "of several rates: what a month costs, in steps of whole machines"),
    )
    groups = (
        FlagGroup(Load, "load", skip=("context",), searched=("batch",)),
        FlagGroup(SLO, "limits (each may be left out)"),
        FlagGroup(Layout, "layout: searched unless pinned to a value or a list", searched=tuple(schema.fields(Layout)), is_brief=True),
        FlagGroup(Precision, "number formats: a list is searched (default as published; KV also fp8)", searched=("kv",), is_brief=True),
        FlagGroup(Assumptions, "assumptions (named defaults)", is_brief=True),
        FlagGroup(TypedPrice, "cost (or --price-metric NAME)"),
        FlagGroup(CheckedLoad, "a load: nodes, or cards where clouds rent them, that carry it, checked by simulation (or --rate)"),
        FlagGroup(LatencyLimits, "limits on percentiles under the load", skip=("ttft", "tpot", "e2e"), is_brief=True),
        FlagGroup(PlanGoal, "question"),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = declared(MODELS)
    on = field(kind="machine", word="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas, the best first", default=REQUIRED)
