"""Assumptions of an estimate until measured: efficiencies, fixed costs, the spread, the price. All named, all editable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.quantity import known
from headway.core.schema import RARE, Field
from headway.hardware.chip_price import MARKET, WHICH
from headway.laws.step.coefficients import COMMUNICATIONS, OVERLAPS

OFFLOADS = ("none", "experts")
ENGINES = ("vllm", "sglang", "trtllm", "llamacpp", "other", "none")  # none: kernels without an engine
STEP_MODEL = "step model: fitted to measurements; or flat, unfitted, by what overlaps: full (all work), operators, serial"
SPREAD = "interval: expected / spread to expected * spread, instead of the fitted 90 % one"
IMBALANCE = (
    "routed work of the busiest chip over the mean (default: of a skewed router, fitted; 1: as even as copies of busy experts make it)"
)
EAGER = "without CUDA graphs, as vLLM's --enforce-eager: the host launches each kernel of every step"
DRAFT = "speculation: mtp (its own head), eagle, eagle:VOCABULARY, or a smaller model of its vocabulary"
ACCEPTANCE = "share of drafts accepted, of each place if those before are: one number, or one a place with commas"
ACCEPT_LENGTH = "mean tokens of a step with speculation: short for --draft, as a note says"
DRAFT_COST = "time of the drafts of a step as a share of the step, in place of a head's (with --accept-length)"
LENGTH_CV = (
    "scatter of answers' lengths of users who wait for them: standard deviation over mean (as InferenceX draws them; 0: all of one length, "
    "so that users march in step)"
)
OFFLOAD = "experts: routed experts lie in the host's memory, and each step moves those that its tokens use over the chip's link to it"
UTILIZATION = known(0.9, "hbm_utilization", "", "default", "vLLM's gpu_memory_utilization")
HIT_RATE = ("--hit-rate", "--hit")  # one thing under two names
EFFICIENCIES = ("eff_compute", "eff_memory", "eff_network", "eff_in_switch", "eff_exchange", "eff_out", "eff_host")  # at 1 in the floor
LATENCIES = ("t0", "alpha", "alpha_hop", "alpha_host", "alpha_out", "alpha_exchange", "alpha_exchange_out")  # at 0 in the floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Named defaults; None means the fitted value (data/efficiency.toml)."""

    overlap: Annotated[str, Field(choices=tuple(OVERLAPS), help=STEP_MODEL), RARE] = "fitted"
    communication: Annotated[str, Field(choices=tuple(COMMUNICATIONS), help="overlap of collectives: exposed, or two-batch"), RARE] = (
        "exposed"
    )
    engine: Annotated[str, Field(choices=ENGINES, help="engine family, whose own work the step includes")] = "other"
    eager: Annotated[bool, Field(kind="switch", help=EAGER)] = False
    offload: Annotated[str, Field(choices=OFFLOADS, help=OFFLOAD)] = "none"
    eff_compute: Annotated[Any, Field(high=1, help="share of peak FLOP/s that kernels reach (default fitted)"), RARE] = None
    mfu: Annotated[Any, Field(high=1, help="share of the peak that a prefill's model FLOP/s reach: nothing fixed, all work overlaps")] = (
        None
    )
    eff_memory: Annotated[Any, Field(high=1, help="share of HBM bandwidth that kernels reach (default fitted)"), RARE] = None
    eff_network: Annotated[Any, Field(high=1, help="share of link bandwidth that collectives reach (default fitted)"), RARE] = None
    t0: Annotated[Any, Field("s", open_low=False, help="fixed cost of every kernel (default fitted)"), RARE] = None
    fixed: Annotated[Any, Field(open_low=False, high=100, help="factor on the fixed costs of a step, of kernels and engine"), RARE] = 1
    eff_in_switch: Annotated[
        Any, Field(high=1, help="share of link bandwidth that in-switch all-reduce reaches (default fitted)"), RARE
    ] = None
    eff_exchange: Annotated[Any, Field(high=1, help="share of link bandwidth that exchanges of experts reach (default fitted)"), RARE] = (
        None
    )
    eff_out: Annotated[Any, Field(high=1, help="share of scale-out bandwidth that collectives reach (default fitted)"), RARE] = None
    eff_host: Annotated[Any, Field(high=1, help="share of the link to the host that moved experts reach (default measured)"), RARE] = None
    alpha: Annotated[Any, Field("s", open_low=False, help="latency of a round over scale-up (default fitted)"), RARE] = None
    alpha_hop: Annotated[Any, Field("s", open_low=False, help="latency of a hop on a torus (TPU: about 1 us)"), RARE] = 1e-6
    alpha_host: Annotated[Any, Field("s", open_low=False, help="latency of a round over a host's PCIe (default fitted)"), RARE] = None
    alpha_out: Annotated[Any, Field("s", open_low=False, help="latency of a round over scale-out (default published)"), RARE] = None
    alpha_exchange: Annotated[
        Any, Field("s", open_low=False, help="latency of an exchange of experts over scale-up (default fitted)"), RARE
    ] = None
    alpha_exchange_out: Annotated[
        Any, Field("s", open_low=False, help="latency of an exchange of experts over scale-out (default fitted)"), RARE
    ] = None
    imbalance: Annotated[Any, Field(low=1, open_low=False, help=IMBALANCE), RARE] = None
    expert_load: Annotated[
        str, Field(kind="file", help="file of tokens per expert (a JSON list, or one number a line); gives the imbalance instead"), RARE
    ] = ""
    spread: Annotated[Any, Field(low=1, open_low=False, high=100, help=SPREAD), RARE] = None
    hbm_utilization: Annotated[
        Any, Field(high=1, help="share of the card that an engine may use: vLLM's gpu_memory_utilization and the like"), RARE
    ] = 0.9
    activation_bytes: Annotated[Any, Field("byte", help="bytes per element of an activation on the wire"), RARE] = 2
    dispatch_bytes: Annotated[Any, Field("byte", help="bytes per element sent to an expert; left out, as the experts are stored"), RARE] = (
        None
    )
    state_bytes: Annotated[
        Any, Field("byte", help="bytes per element of recurrent state; left out, as the config names it, else 2"), RARE
    ] = None
    hit_rate: Annotated[
        Any,
        Field(open_low=False, high=1, spellings=HIT_RATE, help="share of prompt tokens that hit a prefix cache in HBM: not prefilled"),
    ] = 0
    length_cv: Annotated[Any, Field(open_low=False, high=10, help=LENGTH_CV), RARE] = 0.064
    draft: Annotated[str, Field(kind="text", word="WHAT", help=DRAFT)] = ""
    draft_tokens: Annotated[Any, Field(integer=True, open_low=False, high=64, help="drafts of a sequence in each step")] = None
    acceptance: Annotated[str, Field(kind="text", word="SHARE", help=ACCEPTANCE)] = ""
    accept_length: Annotated[Any, Field(low=1, open_low=False, high=65, help=ACCEPT_LENGTH)] = 1
    draft_cost: Annotated[Any, Field(open_low=False, high=100, help=DRAFT_COST), RARE] = None
    images: Annotated[Any, Field(open_low=False, high=1e6, help="images of a request, whose tokens are part of its prompt")] = 0
    image_tokens: Annotated[
        Any, Field("token", integer=True, low=1, open_low=False, high=1e9, help="tokens of an image; left out, the model's own number")
    ] = None
    price_metric: Annotated[str, Field(kind="word", help=f"which price of a chip: {WHICH}")] = MARKET
