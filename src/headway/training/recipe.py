"""Inputs of `train` as records: the layout, the recipe (formats, memory, recomputation), the run and the optimiser."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from headway.core import catalog
from headway.core.errors import UnknownName
from headway.core.quantity import known
from headway.core.schema import RARE, Field
from headway.performance.workload import MOST

MOST_WAYS = 1_000_000
SCHEDULES = ("1f1b", "gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v", "dualpipe")
KERNELS = ("fused", "eager")
RECOMPUTE = ("none", "selective", "ffn", "full")  # modes that are searched, the cheapest first
BY_MODULE = ("selective", "ffn")  # modes that make parts of a layer again
REVERSIBLE = "reversible"  # another network: its layers are couplings, so it is never searched
FORWARD_AGAIN = ("full", REVERSIBLE)  # modes whose backward pass runs every layer forward again
RECOMPUTE_HELP = (
    "activations computed again in the backward pass; selective: scores, or with fused attention norms and activation functions "
    "(where Megatron's own selective is none); ffn: the FFN or the routed experts too (Megatron's modules mlp and moe); reversible: a "
    "network of couplings, which keeps none"
)
DISPATCHERS = ("alltoall", "deepep", "hybridep")  # ways to send tokens to their experts
OBJECTIVES = ("step", "chips", "cost")
DTYPES = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
ARITHMETIC = {"mxfp8": "fp8"}  # formats that run at the peak of another one; a scale for each 32 elements
FILE = "data/training/optimizers.toml"
OPTIMIZERS = ("adam", "adam-bf16-grad", "adam-no-master", "adam-8bit", "adam-bf16-moments", "muon", "sgd")  # of that file


BINARY_FLAGS = ("seq", "global_batch")  # sequence lengths and token batches
_DECIMAL = re.compile(r"(\d)([kKMG])(?![a-zA-Z])")


def binary_text(text: str) -> str:
    """Text with k and M as powers of 1024, as the field writes sequence lengths and token batches.

    >>> binary_text("8k"), binary_text("4096,16M"), binary_text("8Ki")
    ('8Ki', '4096,16Mi', '8Ki')
    """
    return _DECIMAL.sub(lambda match: f"{match[1]}{match[2].replace('k', 'K')}i", text)


def _degree(help: str) -> Field:
    return Field(integer=True, low=1, open_low=False, high=MOST_WAYS, help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLayout:
    """Degrees of parallelism: chips = tp*cp*pp*dp, and dp takes the remaining chips. ep divides tp*cp*dp and re-uses those chips."""

    tp: Annotated[Any, _degree("tensor parallel ways (with sequence parallelism)")] = 1
    cp: Annotated[Any, _degree("context parallel ways")] = 1
    pp: Annotated[Any, _degree("pipeline stages")] = 1
    vpp: Annotated[Any, _degree("chunks of layers per stage (interleaved schedule)"), RARE] = 1
    ep: Annotated[Any, _degree("expert parallel ways (divides tp*cp*dp)")] = 1
    dp: Annotated[Any, _degree("data parallel ways")] = 1
    micro_batch: Annotated[Any, _degree("sequences of one micro-batch of one data-parallel rank"), RARE] = 1
    zero: Annotated[Any, Field(integer=True, low=0, open_low=False, high=3, help="ZeRO stage: 0, 1, 2, or 3 (FSDP)"), RARE] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Formats, pipeline schedule, kept and recomputed activations of a training step."""

    dtype: Annotated[str, Field(choices=DTYPES, help="format of the layers' matmuls; head and attention stay in 16 bits")] = "bf16"
    recompute: Annotated[str, Field(choices=(*RECOMPUTE, REVERSIBLE), help=RECOMPUTE_HELP)] = "none"
    schedule: Annotated[str, Field(choices=SCHEDULES, help="pipeline schedule (interleaved where vpp > 1)")] = "1f1b"
    optimizer: Annotated[str, Field(choices=OPTIMIZERS, help="bytes per parameter of data/training/optimizers.toml")] = "adam"
    sequence_parallel: Annotated[
        Any, Field(integer=True, open_low=False, high=1, help="1: norms and inputs are split over tp too"), RARE
    ] = 1
    fused_attention: Annotated[
        Any,
        Field(
            integer=True, open_low=False, high=1,
            help="1: scores stay on the chip (FlashAttention); 0: the matrix of scores is written and kept; default by the chip's year",
        ),
        RARE,
    ] = None  # fmt: skip
    dropout: Annotated[Any, Field(integer=True, open_low=False, high=1, help="1: masks of dropout are kept, a byte each"), RARE] = 0
    kernels: Annotated[str, Field(choices=KERNELS, help="between matmuls: fused (Megatron, XLA), or op by op (PyTorch FSDP)"), RARE] = (
        "fused"
    )
    fused_loss: Annotated[Any, Field(integer=True, open_low=False, high=1, help="1: the loss is one kernel; default by kernels"), RARE] = (
        None
    )
    captured: Annotated[
        Any, Field(integer=True, open_low=False, high=1, help="1: a step is one graph; 0: the host launches; default by dtype")
    ] = None
    dispatcher: Annotated[
        str | None,
        Field(choices=DISPATCHERS, help="how tokens reach their experts: NCCL, DeepEP, HybridEP; default by the chip"),
        RARE,
    ] = None  # fmt: skip
    offload_layers: Annotated[
        Any, Field(integer=True, open_low=False, high=10_000, help="layers of a stage whose activations wait in the host's memory"), RARE
    ] = 0
    matmul_rate: Annotated[Any, Field("flop/s", help="measured rate of large matmuls in this format, instead of the fitted share")] = None
    mfu: Annotated[Any, Field(high=1, help="share of the peak that the run's model FLOP/s reach, instead of the laws' step")] = None
    trainable: Annotated[
        Any, Field(open_low=False, high=1, help="share of the parameters that get a gradient (LoRA: about 0.01)"), RARE
    ] = 1
    imbalance: Annotated[Any, Field(low=1, open_low=False, help="routed work of the busiest chip over the mean"), RARE] = 1
    bytes_param_wire: Annotated[Any, Field("byte", help="bytes of a parameter gathered by ZeRO"), RARE] = 2
    bytes_gradient_wire: Annotated[Any, Field("byte", help="bytes of a gradient that is reduced"), RARE] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """The run: sequence length, global batch and total tokens."""

    seq: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="tokens of a sequence")] = 4096
    global_batch: Annotated[Any, Field("token", integer=True, low=1, open_low=False, high=MOST, help="tokens of one optimiser step")] = None
    tokens: Annotated[Any, Field("token", low=0, high=1e18, help="tokens of the whole run")] = None


RESTART = "time from a failure to the first step after it (MegaScale, arXiv:2402.15627: found and restarted within 10 minutes)"
CHECKPOINT = "time that a checkpoint holds training up (the same: several seconds, to the host's memory)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Failure rate of chips, restart time and checkpoint time; without `mtbf` nothing fails.

    The defaults together give Llama 3's run the goodput that it is published with, more than 90 % (arXiv:2407.21783, section 3.3.4).
    """

    mtbf: Annotated[Any, Field("s", help="mean time between failures of one chip and its share of the rest (Llama 3: 51,000 h)"), RARE] = (
        None
    )
    restart: Annotated[Any, Field("s", open_low=False, help=RESTART), RARE] = 600
    checkpoint: Annotated[Any, Field("s", help=CHECKPOINT), RARE] = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingReach:
    """Achieved shares of peaks, overlapped shares of communication, and factors; a user's value replaces the fitted value."""

    eff_compute: Annotated[Any, Field(high=1, help="share of the peak that matmuls reach in training"), RARE] = None
    eff_expert: Annotated[Any, Field(high=1, help="the same of routed experts, whose matmuls are smaller"), RARE] = None
    eff_head: Annotated[Any, Field(high=1, help="the same of the head's, in 16 bits whatever the layers are in"), RARE] = None
    eff_attention: Annotated[Any, Field(high=1, help="share of the 16-bit peak that attention reaches"), RARE] = None
    eff_recurrence: Annotated[Any, Field(high=1, help="the same of scans of SSM and linear-attention layers")] = None
    matmul_norm: Annotated[Any, Field(low=1, open_low=False, high=100, help="p-norm of a matmul's arithmetic and weight traffic")] = None
    traffic: Annotated[Any, Field(open_low=False, help="times that each activation kept moves between chip and HBM, both ways"), RARE] = (
        None
    )
    eff_memory: Annotated[Any, Field(high=1, help="share of HBM bandwidth that the optimiser's update reaches"), RARE] = None
    launch: Annotated[Any, Field("s", open_low=False, help="fixed cost of a layer's forward and backward on one micro-batch")] = None
    sync: Annotated[Any, Field("s", open_low=False, help="time that the host adds to a routed layer and micro-batch, not captured")] = None
    hidden_tp: Annotated[
        Any, Field(open_low=False, high=1, help="share of tensor parallelism's exchanges that runs beside matmuls"), RARE
    ] = None
    hidden_dp: Annotated[Any, Field(open_low=False, high=1, help="the same of gathers and reductions over data-parallel ranks"), RARE] = (
        None
    )
    hidden_cp: Annotated[Any, Field(open_low=False, high=1, help="the same of context parallelism's keys and values"), RARE] = None
    hidden_ep: Annotated[Any, Field(open_low=False, high=1, help="the same of exchanges between experts"), RARE] = None
    fragmentation: Annotated[Any, Field(open_low=False, high=10, help="memory taken over what tensors need, as a share"), RARE] = None
    fixed: Annotated[Any, Field("byte", open_low=False, help="memory that contexts and communicators take"), RARE] = None
    spread: Annotated[Any, Field(low=1, open_low=False, high=100, help="half of the 90 % interval of a step's time, as a factor"), RARE] = (
        None
    )
    spread_memory: Annotated[
        Any, Field(low=1, open_low=False, high=100, help="half of the 90 % interval of the memory, as a factor"), RARE
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """Bytes per parameter of an optimiser: weights used in matmuls, gradients, states."""

    name: str
    meaning: str
    weight: Any
    gradient: Any
    states: Any


def optimizer(name: str) -> Optimizer:
    """An optimiser's bytes per parameter.

    >>> adam = optimizer("adam")
    >>> adam.weight + adam.gradient + adam.states
    18
    """
    table = optimizers()
    if name not in table:
        raise UnknownName("optimizer", name, table, "one of " + ", ".join(table))
    return table[name]


@functools.cache
def optimizers() -> dict[str, Optimizer]:
    """Every optimiser of the data file, by name."""
    path = Path(str(files("headway").joinpath(FILE)))
    document = catalog.read(path)
    sources = catalog.table(document, "sources", path)
    by_name = {}
    for name, entry in document.items():
        if name == "sources":
            continue
        numbers = {}
        for key in ("weight", "gradient", "states"):
            origin = catalog.origin(entry[key], f"{name}.{key}", sources, path)
            numbers[key] = known(entry[key]["value"], f"{name}.{key}", "byte", *origin)
        by_name[name] = Optimizer(name=name, meaning=entry["meaning"], **numbers)
    return by_name
