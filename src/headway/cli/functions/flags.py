"""Types of the keywords that several verbs share: the flags of a record, as numbers in SI or as text with units.

Keywords are named as the flags are; those that are words of Python end in an underscore (`as_`, `for_`). A test compares these classes
with the parsers of the verbs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Any, TypeAlias

    from numpy.typing import NDArray

    from headway.hardware.system import System
    from headway.models.model import Model

    Number: TypeAlias = float | str | Sequence[float] | Sequence[str] | NDArray[Any]  # SI, "20ms", "1,2,4", "1..512*2", or several
    Text: TypeAlias = str | Sequence[str]
    File: TypeAlias = str | PathLike[str]
    Edits: TypeAlias = Mapping[str, Number] | Text  # {"chip.hbm_bw": "10TB/s"}
    Subject: TypeAlias = Model | File | Sequence[Model | str]
    Machine: TypeAlias = System | str | Sequence[System | str]


class LayoutFlags(TypedDict, total=False):
    """Degrees of a layout."""

    tp: Number
    ep: Number
    dp: Number
    pp: Number
    cp: Number
    replicas: Number
    redundant: Number


class FormatFlags(TypedDict, total=False):
    """Number formats."""

    weights: Text
    kv: Text
    compute: Text


class AssumptionFlags(TypedDict, total=False):
    """Named defaults of an estimate."""

    overlap: Text
    communication: Text
    engine: Text
    eff_compute: Number
    mfu: Number
    eff_memory: Number
    eff_network: Number
    t0: Number
    fixed: Number
    eff_in_switch: Number
    eff_exchange: Number
    eff_out: Number
    alpha: Number
    alpha_hop: Number
    alpha_host: Number
    alpha_out: Number
    alpha_exchange: Number
    alpha_exchange_out: Number
    imbalance: Number
    expert_load: File
    spread: Number
    hbm_utilization: Number
    activation_bytes: Number
    dispatch_bytes: Number
    state_bytes: Number
    accept_length: Number
    draft_cost: Number
    images: Number
    image_tokens: Number
    price_metric: Text


class EditFlags(TypedDict, total=False):
    """Edits of machines and models, and the user's own catalogue."""

    set: Edits
    catalog: File | Sequence[File]
    attention: Text
    kv_share: Number
    strict: bool
    as_: Text
    key: Edits
    embedding: Text


class NumberFlags(TypedDict, total=False):
    """A model by numbers, in place of its name."""

    params: Number
    active: Number
    layers: Number
    kv_bytes: Number
    hidden: Number
    heads: Number
    kv_heads: Number
    head_dim: Number
    intermediate: Number
    vocab: Number
    experts: Number
    experts_per_token: Number


class LimitFlags(TypedDict, total=False):
    """Limits of mean latencies."""

    ttft: Number
    tpot: Number
    e2e: Number
    tpot_decode: Number


class PercentileFlags(TypedDict, total=False):
    """Limits of percentiles under a load."""

    ttft_p50: Number
    ttft_p90: Number
    ttft_p95: Number
    ttft_p99: Number
    tpot_p50: Number
    tpot_p90: Number
    tpot_p95: Number
    tpot_p99: Number
    itl: Number
    itl_p50: Number
    itl_p90: Number
    itl_p95: Number
    itl_p99: Number
    e2e_p50: Number
    e2e_p90: Number
    e2e_p95: Number
    e2e_p99: Number
