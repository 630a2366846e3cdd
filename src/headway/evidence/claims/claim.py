"""Claims as data (data/claims/*.toml), and the registry of functions that recompute them."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from headway.core.quantity import known

Parts = dict[str, Any]  # figure name -> value
RECOMPUTE: dict[str, Callable[[Any], Parts]] = {}


def recomputes(claim_id: str) -> Callable[[Callable[[Any], Parts]], Callable[[Any], Parts]]:
    """Decorator: registers a function of a claim's inputs as its recomputation."""

    def register(function: Callable[[Any], Parts]) -> Callable[[Any], Parts]:
        if claim_id in RECOMPUTE:
            raise ValueError(f"{claim_id} is recomputed twice")
        RECOMPUTE[claim_id] = function
        return function

    return register


FACTS = "facts"  # file of facts shared by several claims


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A quantitative claim: `stated` values by part; `reference` values where a recomputation by hand is the only figure."""

    id: str
    group: str
    title: str  # title of the group
    claim: str
    stated_text: str
    unit: str
    tolerance: str
    cause: str
    note: str
    source: str
    worked: str  # recomputation by hand, in words, for a claim without a function
    empirical: bool
    units: Mapping[str, str]  # units of parts that differ from `unit`
    stated: Mapping[str, float]
    reference: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    inputs: Mapping[str, Any]  # name -> Sourced
    today: Mapping[str, str]  # input name -> path of its current value in the catalogue
    invariant: tuple[str, ...]  # inputs and law constants that must not change the result


def _folder() -> Any:
    return files("headway") / "data" / "claims"


@functools.cache
def claims() -> dict[str, Claim]:
    """All claims by id, in the order of the files' groups."""
    facts = tomllib.loads((_folder() / f"{FACTS}.toml").read_text(encoding="utf-8"))
    groups = []
    for path in _folder().iterdir():
        if path.name.endswith(".toml") and path.name != f"{FACTS}.toml":
            groups.append(tomllib.loads(path.read_text(encoding="utf-8")))
    groups.sort(key=lambda group: group["order"])
    by_id: dict[str, Claim] = {}
    for group in groups:
        for row in group["claim"]:
            claim = _claim(row, group, facts)
            if claim.id in by_id:
                raise ValueError(f"two claims are named {claim.id}")
            by_id[claim.id] = claim
    return by_id


def _claim(row: dict[str, Any], group: dict[str, Any], facts: dict[str, Any]) -> Claim:
    inputs, today = {}, {}
    for name, entry in row.get("inputs", {}).items():
        fact = _fact(entry, facts) if isinstance(entry, str) else entry
        inputs[name] = known(fact["value"], name, fact["unit"], "claim", fact["source"], fact.get("date", "undated"))
        if "today" in fact:
            today[name] = fact["today"]
    texts = {key: row.get(key, "") for key in ("id", "claim", "stated_text", "unit", "tolerance", "cause", "note", "source", "worked")}
    return Claim(
        **texts,
        group=group["group"],
        title=group["title"],
        empirical=row.get("empirical", False),
        units=row.get("units", {}),
        stated={name: float(value) for name, value in row.get("stated", {}).items()},
        reference={name: float(value) for name, value in row.get("reference", {}).items()},
        ranges={name: (float(low), float(high)) for name, (low, high) in row.get("ranges", {}).items()},
        inputs=inputs,
        today=today,
        invariant=tuple(row.get("invariant", ())),
    )


def _fact(path: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Shared fact by dotted name, such as h100.peak_bf16."""
    subject, _, field = path.partition(".")
    return facts[subject][field]
