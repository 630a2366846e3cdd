"""The verdict: what a recomputed number says about a stated one, by the claim's own tolerance. Never stored, always computed."""

from __future__ import annotations

AGREES, ROUNDING, DIFFERS = "agrees", "rounding", "differs"
NOT_COMPUTABLE, NOT_YET = "not computable", "not yet computed"
WORST_FIRST = (DIFFERS, ROUNDING, AGREES)
EXACT, TIGHT, ROUND, ORDER = 1e-9, 0.01, 0.25, 3.0  # relative; the last is a factor either way


def beside(recomputed: float, target: float, tolerance: str) -> str:
    """The verdict on one number: `tolerance` is exact, tight, round, oom or a percentage such as "10 %".

    >>> beside(14.4, 15.0, "round"), beside(14.4, 15.0, "tight"), beside(2400.0, 1000.0, "oom"), beside(312.5, 300.0, "10 %")
    ('rounding', 'differs', 'agrees', 'agrees')
    """
    if tolerance == "oom":
        return AGREES if target / ORDER <= recomputed <= target * ORDER else DIFFERS
    if tolerance == "round":
        return AGREES if _near(recomputed, target, TIGHT) else ROUNDING if _near(recomputed, target, ROUND) else DIFFERS
    return AGREES if _near(recomputed, target, width(tolerance)) else DIFFERS


def width(tolerance: str) -> float:
    """The relative width that a tolerance class allows.

    >>> width("tight"), width("20 %")
    (0.01, 0.2)
    """
    widths = {"exact": EXACT, "tight": TIGHT, "round": ROUND}
    return widths[tolerance] if tolerance in widths else float(tolerance.removesuffix("%")) / 100


def within(recomputed: float, low: float, high: float) -> str:
    """The verdict on a number stated as a range, ends included."""
    return AGREES if low <= recomputed <= high else DIFFERS


def worst(verdicts: list[str]) -> str:
    """A claim with several numbers is as good as its worst."""
    return next(verdict for verdict in WORST_FIRST if verdict in verdicts)


def _near(value: float, target: float, relative: float) -> bool:
    return abs(value - target) <= relative * abs(target) * (1 + 1e-12)
