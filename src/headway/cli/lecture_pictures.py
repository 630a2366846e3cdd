"""`headway lecture RB-10 --plot FILE`: the claim's curve on the board, the picture of the verb it is about, or its figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadValue
from headway.evidence.claims.claim import claims

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

BOARD = ("RB", "FM")  # groups about time and cost against batch
CONTEXT = ("CW", "AP")  # groups about cost against context
HOLD = "cache deepseek-v3 --on 8xh200 --reuse 0.8 --hold 5min"
OVERTRAINING = "scale --active 100B --serve 50M/s --months 2"
# Group or claim -> the command whose picture it is, and the picture.
COMMANDS = {
    "TS": ("sim llama-3.1-8b --on 1xh100-sxm --tp 1 --rate 100 --prompt 64 --output 40 --departures drain --requests 2000", "trains"),
    "TS-01": ("trend chips", "years"), "TS-02": ("trend chips", "years"), "TS-03": ("trend chips", "years"),
    "RB-08": ("trend chips", "years"), "RB-09": ("trend chips", "years"),
    "MOE": ("rack gb200-nvl72", "experts"), "RK": ("rack gb200-nvl72", "wiring"), "SU": ("rack gb200-nvl72 --chips 8..1024*2", "sizes"),
    "PP": ("serve llama-3.1-70b --on 8xh100-sxm --tp 2 --pp 4 --batch 64 --context 8k", "pipeline"),
    "OT": (OVERTRAINING, "overtraining"), "OT-11": (OVERTRAINING.replace("50M/s", "500M/s"), "overtraining"),
    "KT": (HOLD, "drain"), "KT-11": (HOLD, "map"),
    "CR-01": ("feistel", "step"), "CR-02": ("feistel", "step"), "CR-07": ("feistel avalanche", "avalanche"),
}  # fmt: skip
LECTURE_STEP = 200e3  # tokens: the lecture's price step, for claims on contexts that state none
STEP = 1.5  # the lecture's price above it, over the price below


def pictures(rows: list[Any]) -> dict[str, Any]:
    """The picture of the one claim of an answer; none for several."""
    return {"claim": lambda table, view: draw(list(table), view)} if len(rows) == 1 else {}


def draw(rows: list[Mapping[str, Any]], view: View) -> Picture:
    """The picture of a claim."""
    if len(rows) != 1:
        raise BadValue("--plot", f"{len(rows)} claims", "one claim, such as headway lecture RB-10 --plot claim.png")
    row = rows[0]
    command = COMMANDS.get(row["id"]) or COMMANDS.get(row["group"])
    if command:
        return _of_command(*command, view)
    if row["group"] in BOARD:
        return _board(row, view)
    if row["group"] in CONTEXT and (row["group"] == "CW" or "crossing" in claims()[row["id"]].inputs):
        return _context(row, view)
    return _figures(row, view)


def _of_command(command: str, name: str, view: View) -> Picture:
    """The picture of another verb, as its own command draws it."""
    from headway.cli.main import parsed
    from headway.report import complete

    module, args = parsed(shlex.split(command))
    return complete.draw(module.run(args), view, name)


def _board(row: Mapping[str, Any], view: View) -> Picture:
    from headway.evidence.lecture.board import board_curves
    from headway.report.pictures import curves

    inputs = {**claims()["RB-10"].inputs, **claims()[row["id"]].inputs}
    case = board_curves({**inputs, **{key: claims()["RB-21"].inputs[key] for key in ("chips", "chip_price")}})
    subject = {"model": f"claim {row['id']}", "system": "the lecture's rack"}
    return curves.batch(case, subject, "KV cache left out, as on the board", view)


def _context(row: Mapping[str, Any], view: View) -> Picture:
    from headway.report.pictures import price_context

    knee = float(claims()[row["id"]].inputs.get("crossing", LECTURE_STEP))
    about = f"claim {row['id']}: dense attention reads the whole cache, square-root attention less; price as in the lecture"
    return price_context.picture(knee, STEP, knee, view, about=about)


def _figures(row: Mapping[str, Any], view: View) -> Picture:
    from headway.report.pictures import claim

    return claim.figures(row, view)
