"""Printed equations of the claims' figures (tests/evidence/claim_equations.toml), evaluated without any law of headway.

An input that multiplies there and divides in a recomputation is a defect of the one or the other. The functions are those that the
equations name; fitted coefficients are read from the files that hold them.
"""

from __future__ import annotations

import math
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "evidence" / "claim_equations.toml"
EQUATIONS: dict[str, dict[str, str]] = tomllib.loads(FILE.read_text(encoding="utf-8"))
ABBREVIATIONS = {
    "t_w": "total*weight_byte/mem_bw", "c": "2*active/peak", "k": "kv_bytes/mem_bw",
    "b_star": "weight_byte*peak/(2*mem_bw)*total/active",
}  # fmt: skip


def _fits(name: str) -> dict[str, dict[str, float]]:
    """Published coefficients, as the files hold them."""
    text = (files("headway") / "data" / "scaling" / f"{name}.toml").read_text(encoding="utf-8")
    return {key: {name: item["value"] for name, item in fit.items() if isinstance(item, dict) and "value" in item}
            for key, fit in tomllib.loads(text).items() if isinstance(fit, dict)}  # fmt: skip


DENSE, ROUTED = _fits("dense"), _fits("routed")


def clark(active: float, experts: float, law: str = "s-base") -> float:
    """Dense size of equal loss: the equations that SP-05 prints."""
    by = ROUTED[law]
    saturated = 1 / (1 / (experts - 1 + 1 / (1 / by["start"] - 1 / by["most"])) + 1 / by["most"])

    def exponent(count: float) -> float:
        return by["a"] + by["c"] * math.log10(count)

    start = exponent(by["start"])
    return active ** (exponent(saturated) / start) * (saturated / by["start"]) ** (by["b"] / start)


def optimal_tokens(active: float, law: str) -> float:
    """Tokens at which compute is best spent at this size: d/dN and d/dD of A N^-alpha + B D^-beta at constant N D are equal."""
    by = DENSE[law]
    return (by["beta"] * by["b"] / (by["alpha"] * by["a"])) ** (1 / by["beta"]) * active ** (by["alpha"] / by["beta"])


def passed_by(experts: float, active: float, places: float) -> float:
    """Chance that none of the experts of a token is among the experts / places of one place: C(E - n, k) / C(E, k)."""
    here = experts / places
    logs = (math.lgamma(experts - here + 1) - math.lgamma(experts - here - active + 1)) - (
        math.lgamma(experts + 1) - math.lgamma(experts - active + 1)
    )
    return math.exp(logs)


def waiting(mean: float, seats: float) -> float:
    """Mean number left behind by a train of `seats` when Poisson(mean) arrive between trains: the chain itself, stepped until still."""
    import numpy as np

    if mean >= seats:
        return math.inf
    places, seats = int(seats * 8 + 60), int(seats)
    arrivals = np.array([math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) for count in range(places)])
    left = np.zeros(places)
    left[0] = 1.0
    for _ in range(400):
        waits = np.convolve(left, arrivals)[: places + seats]
        left = np.concatenate([[waits[: seats + 1].sum()], waits[seats + 1 : seats + places]])[:places]
        left = np.pad(left, (0, places - len(left))) / left.sum()
    return float((np.arange(places) * left).sum())


def reversible(x: float, y: float, layers: float) -> float:
    """x after so many layers x' = y + |x|, y' = x."""
    for _ in range(int(layers)):
        x, y = y + abs(x), x
    return x


FUNCTIONS: dict[str, Any] = {
    "max": max, "min": min, "ceil": math.ceil, "sqrt": math.sqrt, "log": math.log, "abs": abs, "inf": math.inf,
    "clark": clark, "optimal_tokens": optimal_tokens, "passed_by": passed_by, "waiting": waiting, "reversible": reversible,
    "beta": lambda law: DENSE[law]["beta"],
}  # fmt: skip


def evaluate(equation: str, inputs: dict[str, float]) -> float:
    """Value of a printed equation at these inputs; nothing of headway's arithmetic is called."""
    names = {"__builtins__": {}} | FUNCTIONS | inputs
    for name, text in ABBREVIATIONS.items():
        if set(re.findall(r"[a-z_]+", text)) <= set(inputs):
            names[name] = eval(text, names)
    return float(eval(equation, names))
