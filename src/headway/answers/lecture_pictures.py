"""`headway lecture RB-10 --plot FILE`: a claim's picture, drawn from the claim's own inputs.

A few claims have a scene of their own; those about batch or context have the lecture's curves; the others a curve along the input that
moves their figures, and where no input moves most of them, the figures beside each other.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.core.listing import format_value
from headway.core.question import from_words
from headway.evidence.claims.claim import Claim, claims

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

BOARD = ("RB-01", "RB-04", "RB-05", "RB-06", "RB-07", "RB-10", "RB-27")  # about time and cost against batch
CONTEXT = ("CW", "AP")  # groups about cost against context
STEP = 1.5  # the lecture's price above its step, over the price below
ARRIVALS = 7  # seed of the requests of a timetable


def pictures(rows: list[Any]) -> dict[str, Any]:
    """The picture of the one claim of an answer; none for several."""
    return {"claim": lambda table, view: draw(list(table), view)} if len(rows) == 1 else {}


def draw(rows: list[Mapping[str, Any]], view: View) -> Picture:
    """The picture of a claim."""
    from headway.evidence.lecture import along

    if len(rows) != 1:
        raise BadValue("--plot", f"{len(rows)} claims", "one claim, such as headway lecture RB-10 --plot claim.png")
    claim = claims()[rows[0]["id"]]
    if claim.id in SCENES:
        return SCENES[claim.id](claim, view)
    if claim.id in BOARD:
        return _board(claim, view)
    if claim.group in CONTEXT and "crossing" in claim.inputs:
        return _context(claim, view)
    if along.is_curve(claim):
        return _curve(claim, along.axis(claim), view)
    return _figures(rows[0], view)


# -- curves ---------------------------------------------------------------------------------------------------------------------


def _curve(claim: Claim, name: str, view: View) -> Picture:
    """The claim's figures along one of its inputs, as `--with` draws them."""
    from headway.answers import lecture_inputs
    from headway.evidence.lecture import along
    from headway.report import complete

    return complete.draw(lecture_inputs.run(claim.id, [f"{name}={along.span(claim, name)}"]), view, "inputs")


def _board(claim: Claim, view: View) -> Picture:
    from headway.evidence.lecture.board import board_curves
    from headway.report.pictures import curves

    prices = claims()["RB-21"].inputs
    case = board_curves({**claim.inputs, "chips": prices["chips"], "chip_price": prices["chip_price"]})
    subject = {"model": f"claim {claim.id}", "system": "the lecture's rack"}
    return curves.batch(case, subject, "KV cache left out, as on the board", view)


def _context(claim: Claim, view: View) -> Picture:
    from headway.report.pictures import price_context

    knee = float(claim.inputs["crossing"])
    about = f"claim {claim.id}: dense attention reads the whole cache, square-root attention less; price as in the lecture"
    return price_context.picture(knee, STEP, knee, view, about=about)


def _figures(row: Mapping[str, Any], view: View) -> Picture:
    from headway.report.pictures import claim

    return claim.figures(row, view)


# -- scenes ---------------------------------------------------------------------------------------------------------------------


def _timetable(claim: Claim, view: View) -> Picture:
    """The small train of the claim: its seats, its load, its beat."""
    from headway.evidence.lecture.inputs import lecture_figures
    from headway.laws.queueing.departures import train_rate
    from headway.report.pictures import timetable
    from headway.simulation.timetable import DEPARTURES, random_timetable

    beat, seats, load = (float(claim.inputs[name]) for name in ("step_s", "few_seats", "few_load"))
    table = random_timetable(float(train_rate(load, beat, seats)), beat, int(seats), DEPARTURES, ARRIVALS)
    wait = lecture_figures(claim)["mean wait, 4 seats 80 % full"]
    title = f"A train leaves every {format_value(beat, 's')}, full or not: {load:.0%} of the seats are asked for, the mean wait is " \
            f"{format_value(wait, 's')}"  # fmt: skip
    subtitle = f"claim {claim.id}: {seats:g} seats, requests drawn at random, first come, first served"
    return timetable.picture(table.departures, table.boardings, beat, view, title=title, subtitle=subtitle)


def _decoding(claim: Claim, view: View) -> Picture:
    from headway.report.pictures import pipeline

    stages = int(claim.inputs["stages"])
    return pipeline.serving(stages, view, subject=f"claim {claim.id}: the lecture's {stages} stages")


def _bubbles(claim: Claim, view: View) -> Picture:
    from headway.report.pictures import pipeline

    stages, count = int(claim.inputs["stages"]), int(claim.inputs["few"])
    return pipeline.training(stages, count, view, subject=f"claim {claim.id}")


def _coupling(claim: Claim, view: View) -> Picture:
    from headway.evidence.lecture.inputs import lecture_figures
    from headway.report.pictures import feistel

    numbers = {"x": float(claim.inputs["x"]), "y": float(claim.inputs["y"]), "z": lecture_figures(claim)["z"]}
    return feistel.step(view, numbers)


def _avalanche(claim: Claim, view: View) -> Picture:
    rounds, flips = (int(claim.inputs[name]) for name in ("rounds", "flips"))
    return _of_command(f"feistel avalanche --cipher simon32 --rounds 1..{rounds}+1 --trials {flips}", "avalanche", view)


def _valley(claim: Claim, view: View) -> Picture:
    active, served = (float(claim.inputs[name]) for name in ("active", "served"))
    return _of_command(f"scale --active {active:g} --served {served:g}", "overtraining", view)


def _of_command(command: str, name: str, view: View) -> Picture:
    """The picture of another verb that is asked with the claim's inputs."""
    from headway.report import complete

    return complete.draw(from_words(shlex.split(command)).answer(), view, name)


SCENES: dict[str, Callable[[Claim, Any], Picture]] = {
    "TS-05": _timetable, "PP-06": _decoding, "PP-08": _decoding, "PP-09": _decoding, "PP-07": _bubbles, "CR-01": _coupling,
    "CR-07": _avalanche, "OT-15": _valley, "OT-16": _valley, "OT-18": _valley,
}  # fmt: skip
