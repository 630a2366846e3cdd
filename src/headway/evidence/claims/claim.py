"""Claims as data (data/claims/*.toml), and the registry of functions that recompute them."""

from __future__ import annotations

import dataclasses
import functools
import math
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

from headway.core.quantity import known
from headway.core.records import record_of
from headway.core.units import Number, Second, SecondPerToken, Token
from headway.laws.roofline.balance import balanced_batch, compute_s_per_token, hardware_ratio
from headway.laws.roofline.batch_step import batch_compute_s, batch_kv_s, latency_floor_s


class ClaimInputs(SimpleNamespace):
    """Inputs of a claim, each a number with its source, by the names that data/claims gives them."""


Parts = dict[str, Any]  # figure name -> value
Recomputation = Callable[[ClaimInputs], Parts]
RECOMPUTE: dict[str, Recomputation] = {}


def recomputes(claim_id: str) -> Callable[[Recomputation], Recomputation]:
    """Decorator: registers a function of a claim's inputs as its recomputation."""

    def register(function: Recomputation) -> Recomputation:
        if claim_id in RECOMPUTE:
            raise ValueError(f"{claim_id} is recomputed twice")
        RECOMPUTE[claim_id] = function
        return function

    return register


# -- terms of a step, of claims whose inputs have these names ---------------------------------------------------------------------------


def compute_s(inputs: ClaimInputs, tokens: Token) -> Second:
    """Compute time of a step of so many tokens."""
    return batch_compute_s(tokens, inputs.active, inputs.peak)


def token_s(inputs: ClaimInputs) -> SecondPerToken:
    """Compute time of a token."""
    return compute_s_per_token(inputs.active, inputs.peak)


def weights_s(inputs: ClaimInputs) -> Second:
    """Time to read all weights."""
    return latency_floor_s(inputs.total, inputs.weight_byte, inputs.mem_bw)


def kv_s(inputs: ClaimInputs, batch: Number, context: Token) -> Second:
    """Time to read the KV of a batch."""
    return batch_kv_s(batch, context, inputs.kv_bytes, inputs.mem_bw)


def terms(inputs: ClaimInputs, batch: Number, context: Token) -> tuple[Second, Second, Second]:
    """Compute, weight read and KV read time of a decode step."""
    return compute_s(inputs, batch), weights_s(inputs), kv_s(inputs, batch, context)


def balance(inputs: ClaimInputs) -> Token:
    """Batch at which weights take as long to read as to compute with."""
    return balanced_batch(hardware_ratio(inputs.weight_byte, inputs.peak, inputs.mem_bw), inputs.total, inputs.active)


# -- data -----------------------------------------------------------------------------------------------------------------------------


FACTS = "facts.toml"  # facts shared by several claims
LAW, COUNT, BOUND, PREDICTION, MEASUREMENT, NOT_ARITHMETIC = "law", "count", "bound", "prediction", "measurement", "not arithmetic"
KINDS = {  # what decides a claim
    LAW: "the laws, with the claim's own inputs",
    COUNT: "counted from the catalogue and from public facts",
    BOUND: "the lowest and the highest figure that public facts allow; more than ten times apart they decide nothing",
    PREDICTION: "headway's own, with its 90 % interval, beside what was measured",
    MEASUREMENT: "an experiment of headway lab, as it was measured on the machine that its inputs name",
    NOT_ARITHMETIC: "it states nothing that a law, a count or an experiment gives",
}
LEAST, MOST = ENDS = (", at least", ", at most")  # of the names of a bound's two figures, or of an interval's


def between(name: str, *figures: Any) -> Parts:
    """Ends of a bound: whatever inputs a reader changes, the least of the figures comes before the most."""
    return {name + LEAST: min(figures), name + MOST: max(figures)}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A quantitative claim: `stated` values by part; `reference` values where a recomputation by hand is the only figure."""

    id: str
    group: str
    title: str  # title of the group
    inputs: Mapping[str, Any]  # name -> Sourced
    today: Mapping[str, str]  # input name -> path of its current value in the catalogue
    claim: str = ""
    stated_text: str = ""
    unit: str = ""
    tolerance: str = ""
    cause: str = ""
    note: str = ""
    source: str = ""
    worked: str = ""  # recomputation by hand, in words, for a claim without a function
    kind: str = LAW  # what decides it, of KINDS
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)  # units of parts that differ from `unit`
    stated: Mapping[str, float] = dataclasses.field(default_factory=dict)
    reference: Mapping[str, float] = dataclasses.field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    invariant: tuple[str, ...] = ()  # inputs and law constants that must not change the result

    def range_of(self, name: str) -> tuple[float, float] | None:
        """Range that a figure has to lie in to agree, None if it has a number instead: the ends of a bound enclose what is stated."""
        if self.kind in (BOUND, PREDICTION) and name in self.stated:
            return (0.0, self.stated[name]) if name.endswith(LEAST) else (self.stated[name], math.inf)
        return self.ranges.get(name)


@functools.cache
def claims() -> dict[str, Claim]:
    """All claims by id, in the order of the files' groups."""
    folder = files("headway") / "data" / "claims"
    pages = {path.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir() if path.name.endswith(".toml")}
    facts = pages.pop(FACTS)
    by_id: dict[str, Claim] = {}
    for group in sorted(pages.values(), key=lambda group: group["order"]):
        for row in group["claim"]:
            if row["id"] in by_id:
                raise ValueError(f"two claims are named {row['id']}")
            by_id[row["id"]] = _claim(row, group, facts)
    return by_id


def _claim(row: dict[str, Any], group: dict[str, Any], facts: dict[str, Any]) -> Claim:
    inputs, today = {}, {}
    for name, fact in row.get("inputs", {}).items():
        if isinstance(fact, str):  # a shared fact by its name, such as h100.peak_bf16
            subject, _, field = fact.partition(".")
            fact = facts[subject][field]
        inputs[name] = known(fact["value"], name, fact["unit"], "claim", fact["source"], fact.get("date", "undated"))
        if "today" in fact:
            today[name] = fact["today"]
    if row.get("kind", LAW) not in KINDS:
        raise ValueError(f"{row['id']}: kind {row['kind']!r} is not one of {', '.join(KINDS)}")
    return record_of(Claim, row, group=group["group"], title=group["title"], inputs=inputs, today=today)


