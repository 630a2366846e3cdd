"""The curve of a claim: its inputs in words, those that move its figures, the one it goes along, and between which ends.

Words, counts and shares are data (data/lecture/inputs.toml); whether an input moves a figure is found by a small change of it.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

from headway.core import units
from headway.core.errors import BadValue
from headway.evidence.claims.claim import Claim, claims
from headway.evidence.lecture import quiz
from headway.evidence.lecture.chapters import document
from headway.evidence.lecture.inputs import MOST_SEATS, PER_MTOK, RUNS, InputCase, figures

NUDGE = 1.07  # factor on an input, to see which figures it changes
SPREAD = 16.0  # a curve goes from the lecture's value over this to the value times this
STEPS = 64  # of an axis
MOST_SHARE, SHARE_STEP = 0.98, 0.02
MOST_FIGURES = 0.65  # a curve shows a claim if its input moves at least so many of the figures that move at all
DIGITS = 4
CAPITALS = {"hbm": "HBM", "bw": "bandwidth", "kv": "KV", "mfu": "MFU", "ddr": "DDR", "bf16": "bf16", "usd": "cost", "dsv3": "DeepSeek-V3",
            "up": "scale-up bandwidth", "out": "scale-out bandwidth"}  # fmt: skip
CHIP = re.compile(r"(gb|b|h|a)\d{2,3}$")
TPU = re.compile(r"v\d[ep]?$")


@functools.cache
def _about() -> dict[str, Any]:
    return document("inputs")


def input_words(claim: Claim, name: str) -> str:
    """An input of a claim in words.

    >>> input_words(claims()["RB-10"], "total"), input_words(claims()["TS-03"], "h100_bw")
    ('total parameters', 'H100 bandwidth')
    """
    words = _about()["words"]
    text = words.get(claim.id, {}).get(name) or words.get(name)
    return text if isinstance(text, str) else " ".join(_word(part) for part in name.split("_"))


def _word(part: str) -> str:
    if CHIP.match(part):
        return part.upper()
    return f"TPU {part}" if TPU.match(part) else CAPITALS.get(part, part)


@functools.cache
def moving(claim_id: str) -> dict[str, list[str]]:
    """Inputs that change a figure of the claim, each with those figures."""
    claim = claims()[claim_id]
    base = _figures(claim, {})
    changed: dict[str, list[str]] = {}
    for name, value in claim.inputs.items():
        if (claim.id, name) in RUNS or float(value) <= 0 or not base:
            continue
        nudged = _figures(claim, {name: quiz.type_of(claim, name, float(value) * NUDGE)})
        names = [figure for figure in base if figure in nudged and abs(nudged[figure] - base[figure]) > 1e-9 * abs(base[figure])]
        if names:
            changed[name] = names
    return changed


def _figures(claim: Claim, values: dict[str, Any]) -> dict[str, float]:
    try:
        parts = figures(claim, InputCase(labels={}, values=values))
    except BadValue:
        return {}
    return {name: float(value) for name, value in parts.items()}


def axis(claim: Claim) -> str:
    """The input that the claim's curve goes along; "" where no input moves a figure."""
    present = moving(claim.id)
    preferred = _about()["along"].get(claim.id, "")
    if preferred in present:
        return str(preferred)
    free = [name for name in present if name not in _about()["constants"]] or list(present)
    return max(free, key=lambda name: len(present[name]), default="")


def is_curve(claim: Claim) -> bool:
    """Whether one curve shows the claim: its input moves most of the figures that move at all."""
    present, along = moving(claim.id), axis(claim)
    is_preferred = along == _about()["along"].get(claim.id)
    if not along or (along in _about()["constants"] and not is_preferred):
        return False
    movable = {figure for names in present.values() for figure in names}
    return is_preferred or len(present[along]) >= MOST_FIGURES * len(movable)


def is_count(name: str) -> bool:
    """Whether an input is a whole number."""
    return name in _about()["counts"]


def ends(name: str, value: float) -> tuple[float, float, float]:
    """Lowest and highest value of an input's curve, and the step between points; 0 where they are spaced by a factor."""
    if name in _about()["shares"] and value <= 1:
        return SHARE_STEP, 1.0 if value == 1 else MOST_SHARE, SHARE_STEP
    highest = min(value * SPREAD, MOST_SEATS) if name.endswith("seats") else value * SPREAD
    if is_count(name) and value >= 1:
        step = float(max(1, math.floor(value * SPREAD / STEPS)))
        return step, highest, step
    return value / SPREAD, highest, 0.0


def span(claim: Claim, name: str) -> str:
    """The range of an input's curve, as the command line takes it.

    >>> span(claims()["PP-07"], "stages"), span(claims()["RB-10"], "total")
    ('1..64+1', '41.94B..10.74T*1.09')
    """
    value = claims()[claim.id].inputs[name]
    low, high, step = ends(name, float(value))
    if step:
        return f"{low:g}..{high:g}+{step:g}"
    return f"{word(low, value.unit)}..{word(high, value.unit)}*{SPREAD ** (2 / STEPS):.3g}"


def word(value: float, unit: str) -> str:
    """A value as the command line takes it; prices of tokens are bare numbers in USD per million."""
    if unit in PER_MTOK:
        return f"{value / PER_MTOK[unit]:.{DIGITS}g}"
    return units.show(float(f"{value:.{DIGITS}g}"), unit, DIGITS).replace(" ", "")
