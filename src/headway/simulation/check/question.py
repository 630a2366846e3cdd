"""The question of `plan`: the best layout for a load and its limits, checked by simulation where there is one load."""

from __future__ import annotations

from headway.core import schema
from headway.core.question import MODELS, REQUIRED, FlagGroup, FlagRecord, Question, declared, field
from headway.hardware.chip_price import TypedPrice
from headway.models.by_numbers import BY_NUMBERS
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import MOST, SLO, Load
from headway.simulation.check.limits import LatencyLimits

MOST_SPARE = 100
OBJECTIVES = ("cost", "throughput", "latency", "chips")
ENGINES = ("vllm", "sglang", "trtllm")


class CheckedLoad(FlagRecord):
    """A load that whole nodes carry, and how it is checked."""

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
        help="nodes that may be lost: the load and its limits hold on the others (default 0)",
    )
    no_check = field(kind="switch", help="do not simulate: limits on means alone, of the expected times", default=False)


class PlanGoal(FlagRecord):
    """What is made best, and what is printed beside it."""

    objective = field(choices=OBJECTIVES, help="what to make best (default cost); of equals the faster, then fewer chips", default="cost")
    disaggregate = field(kind="switch", help="prefill and decode on separate pools of the machine", default=False)
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
    )
    groups = (
        FlagGroup(Load, "load", skip=("context",), searched=("batch",)),
        FlagGroup(SLO, "limits (each may be left out)"),
        FlagGroup(Layout, "layout: searched unless pinned to a value or a list", searched=tuple(schema.fields(Layout))),
        FlagGroup(Precision, "number formats: a list is searched (default as published; KV also fp8)", searched=("kv",)),
        FlagGroup(Assumptions, "assumptions (named defaults)"),
        FlagGroup(TypedPrice, "cost (or --price-metric NAME)"),
        FlagGroup(CheckedLoad, "a load: whole nodes that carry it, checked by simulation (or --rate)"),
        FlagGroup(LatencyLimits, "limits on percentiles under the load", skip=("ttft", "tpot", "e2e")),
        FlagGroup(PlanGoal, "question"),
        BY_NUMBERS,
    )
    model = declared(MODELS)
    on = field(kind="machine", word="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas, the best first", default=REQUIRED)
