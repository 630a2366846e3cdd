"""A question about scaling as rows: every law at every point, the chosen one first, with intervals where errors are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.formula import record
from headway.listing import computed
from headway.scaling import compute, doubt, experts, life, outside
from headway.scaling.ask import Doubt
from headway.scaling.fits import Fit, exponents, fit
from headway.scaling.point import Point, point

MODES: dict[str, Callable[[Fit, Point], dict[str, Any]]] = {
    "split": compute.best_split,
    "given": compute.as_given,
    "life": life.given_size,
    "quality": life.given_quality,
}
OF_SPLIT = ("over_law", "served_exact", "serve_exact")  # what a rounded fit cannot say
HIDDEN = ("rule_left",)
NO_SERVING = "trained on fewer tokens than are best without serving: none justifies it"
NO_SIZE = "tokens equal to serving leave more loss than is sought, whatever the size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question: its kind, the flags of every point, the laws that answer and those beside them."""

    mode: str  # split, given, life, quality or experts
    points: Sequence[Mapping[str, Any]]
    laws: tuple[str, ...]
    beside: tuple[str, ...] = ()
    doubt: Doubt
    varied: tuple[str, ...] = ()  # flags with several values


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as it is shown, and where it comes from."""

    plain: dict[str, Any]
    law: str
    at: int  # its point


def rows(asked: Asked) -> list[Row]:
    """Every row: point by point, the laws that answer first."""
    stacked = point({key: np.array([one[key] for one in asked.points]) for key in asked.points[0]})
    every = [_of_law(asked, name, stacked) for name in (*asked.laws, *asked.beside)]
    found = [each[at] for at in range(len(asked.points)) for each in every]
    if asked.mode == "split" and asked.beside:
        found += [_exponents(one) for one in exponents()]
    return found


def explained(asked: Asked, row: Row, key: str) -> Any:
    """One number of a row with every law recorded; an end of an interval as the leaf it is."""
    given = asked.points[row.at] if row.at >= 0 else {}
    if key in row.plain and key.endswith(tuple(doubt.ENDS)) and row.plain[key] is not None:
        return doubt.leaf(row.plain[key], key, fit(row.law), asked.doubt)
    if row.plain.get("kind") == "exponents":
        one = next(each for each in exponents() if each.name == row.law)
        return {"size_exponent": one.size, "data_exponent": one.data}.get(key)
    if row.plain.get(key) is None and key not in given:
        return computed(None, key)
    with record():
        found = _columns(asked.mode, row.law)(point(given))
    return computed(found[key] if key in found else given.get(key), key)


def _columns(mode: str, law: str) -> Callable[[Point], dict[str, Any]]:
    """The columns of one law."""
    if mode == "experts":
        return experts.worth(law)
    if law == RULE:
        return compute.by_ratio
    return lambda at: MODES[mode](fit(law), at)


RULE = "rule"


def _of_law(asked: Asked, law: str, stacked: Point) -> list[Row]:
    """The rows of one law, all points at once."""
    count = len(asked.points)
    with np.errstate(all="ignore"):
        columns = _columns(asked.mode, law)(stacked)
    spread = {key: np.broadcast_to(np.asarray(value, float), (count,)) for key, value in columns.items()}
    kind = "rule" if law == RULE else "law" if law in asked.laws else "beside"
    found = []
    for at, given in enumerate(asked.points):
        axes = {key: given[key] for key in asked.varied}
        numbers = {key: _finite(values[at]) for key, values in spread.items()}
        plain = {"kind": kind, "law": law} | axes | numbers
        if asked.mode != "experts" and law != RULE:
            plain |= _doubted(asked, law, given) | _settled(asked.mode, law, plain)
        elif asked.mode == "experts":
            plain |= _routed_range(law, plain, float(given.get("per_token", 1)))
        found.append(Row(plain={key: value for key, value in plain.items() if key not in HIDDEN}, law=law, at=at))
    return found


def _doubted(asked: Asked, law: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Ends of intervals, of a law that answers and whose errors are known."""
    own = fit(law)
    if law not in asked.laws or own.errors is None:
        return {}
    at = point(given)
    return doubt.interval(lambda one: MODES[asked.mode](one, at), own, asked.doubt)


def _settled(mode: str, law: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """What a row cannot say left out, with the reason; and whether the law was fitted there."""
    found: dict[str, Any] = {}
    own, why = fit(law), ""
    if mode == "given" and own.rounded:
        found |= {key: None for key in OF_SPLIT if key in plain}
        why = f"too few digits to split compute by: {own.rounded} has them all"
    elif mode == "given" and (plain["served_exact"] or 0) <= 0:
        found |= {key: None for key in ("served_exact", "serve_exact") if key in plain}
        why = NO_SERVING
    elif mode == "quality" and (plain["rule_left"] or 0) <= 0:
        found |= {"rule_active": None, "rule_regret": None}
        why = NO_SIZE
    inside, beyond = outside.dense(plain, own.range)
    return found | {"in_range": inside, "beyond": beyond, "why": why}


def _routed_range(law: str, plain: Mapping[str, Any], per_token: float) -> dict[str, Any]:
    if law == experts.LING:
        return {"in_range": None, "beyond": "its range is not stated in what was read"}
    inside, beyond = outside.routed(plain, per_token)
    return {"in_range": inside, "beyond": beyond}


def _exponents(one: Any) -> Row:
    plain = {"kind": "exponents", "law": one.name, "size_exponent": float(one.size), "data_exponent": float(one.data)}
    return Row(plain=plain, law=one.name, at=-1)


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
