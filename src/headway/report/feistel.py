"""Words and pictures of `headway feistel`: vectors, avalanche, differentials beside gradients, couplings forward and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headway.core.errors import BadValue
from headway.core.listing import Rows
from headway.report.output import Summary
from headway.report.pictures import frame, plot, scale, sketch
from headway.report.pictures.lettering import text_width

if TYPE_CHECKING:
    from headway.report.output import PictureOf
    from headway.report.pictures.frame import Picture, View

CAVEAT = "A demonstration, not for protecting data."


def vectors(rows: Rows) -> Summary:
    """Words on published vectors."""
    table = list(rows)
    agreeing = sum(row["agrees"] for row in table)
    names = ", ".join(dict.fromkeys(row["cipher"] for row in table))
    headline = f"{agreeing} of {len(table)} published vectors are reproduced and decrypted: {names or 'no row is left'}."
    following = "Next: headway feistel avalanche (a flipped bit, by round), differential (attacks), coupling (what floats lose)."
    return Summary(headline, ("cipher", "rounds", "key", "plain", "encrypted", "result", "agrees"), [CAVEAT, following])


def avalanche(rows: Rows) -> Summary:
    """Words on avalanche by round."""
    table = list(rows)
    view = ("cipher", "rounds", "changed_bits", "changed_share", "random_share", "sensitivity", "network_sensitivity")
    if not table:
        return Summary("No row is left.", view)
    full = next((row for row in table if row["full_from"] is not None and row["full_from"] <= row["rounds"]), None)
    last = table[-1]
    if full:
        headline = (
            f"From round {full['full_from']}, one flipped bit changes half of {full['cipher']}'s output, as behind a random permutation."
        )
    else:
        headline = f"After {last['rounds']} rounds one flipped bit changes {last['changed_share']:.0%} of {last['cipher']}'s output."
    beside = f"A residual network of {last['rounds']} random blocks passes a small change on {last['network_sensitivity']:.2f}-fold"
    after = [f"{beside}; the cipher multiplies it by {last['sensitivity']:.1f}.", CAVEAT]
    return Summary(headline, view, after)


def differential(rows: Rows) -> Summary:
    """Words on the best differential by round and the gradient attack by depth."""
    table = list(rows)
    view = ("rounds", "input_difference", "output_difference", "probability", "weight_bits", "pairs_needed", "right_share",
            "right_random_share", "right_gradient_share")  # fmt: skip
    countable = [row for row in table if row["probability"] is not None]
    if not countable:
        return Summary("No differential was counted.", view)
    last = countable[-1]
    headline = f"Behind {last['rounds']} rounds of {last['cipher']} one difference in {last['pairs_needed']:,.0f} is predictable; "
    headline += f"a gradient leaves a network {last['right_gradient_share']:.0%} right."
    after = [
        f"Both differentiate: over bits the best of few-bit differences, behind a random permutation {last['random_probability']:.1e}; "
        f"over numbers the loss, every input moved by {last['epsilon']:g} standard deviations.",
        f"The same move in random directions leaves {last['right_random_share']:.0%} right.",
        CAVEAT,
    ]
    return Summary(headline, view, after)


def coupling(rows: Rows) -> Summary:
    """Words on couplings forward and back."""
    table = list(rows)
    view = ("number_format", "layers", "roundoff", "inversion_error")
    if not table:
        return Summary("No row is left.", view)
    exact = [row["number_format"] for row in table if row["inversion_error"] == 0]
    worst = max(table, key=lambda row: row["inversion_error"])
    exactness = f"Whole numbers come back exactly ({', '.join(dict.fromkeys(exact))})" if exact else "No format comes back exactly"
    headline = f"{exactness}; after {worst['layers']} layers, {worst['number_format']} is off by {worst['inversion_error']:.1%}."
    return Summary(headline, view, ["Each layer is x' = y + f(x), y' = x; f has no inverse and needs none."])


WORDS = {"vectors": vectors, "avalanche": avalanche, "differential": differential, "coupling": coupling}


BOX = (74.0, 26.0)


def pictures(what: str) -> dict[str, PictureOf]:
    """Pictures of `feistel` by name; the spread of bits where rounds were counted."""
    drawings: dict[str, PictureOf] = {"avalanche": spread} if what == "avalanche" else {}
    return drawings | {"step": lambda _, view: step(view)}


def step(view: View, numbers: Mapping[str, float] | None = None) -> Picture:
    """(x, y) -> (x, y + f(x)) and its inverse, drawn one after the other; `numbers` x, y and z for f = |x|."""
    halves = [("forward", "Forward", "x", "y", "z = y + f(x)", "+"), ("back", "Back", "x", "z", "y = z − f(x)", "−")]
    if numbers:
        x, y, z = (f"{numbers[name]:g}" for name in "xyz")
        halves = [("forward", "Forward", f"x = {x}", f"y = {y}", f"z = {y} + |{x}| = {z}", "+"),
                  ("back", "Back", f"x = {x}", f"z = {z}", f"y = {z} − |{x}| = {y}", "−")]  # fmt: skip
    width, (wide, high) = min(view.width - 2 * frame.EDGE, 560.0), BOX
    panels = []
    for name, heading, stays, first, result, sign in halves:
        # x goes down on one side and into f; what f gives is added to, or taken from, the other side
        broad = text_width(result) + 14
        near, far, middle = 10 + wide / 2, width - broad / 2, width / 2
        lines = [(x, start, x, end, "ink") for x, start, end in ((near, high, 104), (far, high, 51), (far, 71, 104))]
        lines += [(near, 61, middle - wide / 2, 61, "ink"), (middle + wide / 2, 61, far - 10, 61, "ink")]
        boxes = [
            (near - wide / 2, 0, wide, high, stays, "weights"), (near - wide / 2, 104, wide, high, stays, "weights"),
            (middle - wide / 2, 48, wide, high, "f", "network"), (far - wide / 2, 0, wide, high, first, "kv"),
            (far - 10, 51, 20, 20, sign, "whole"), (far - broad / 2, 104, broad, high, result, "kv"),
        ]  # fmt: skip
        panels.append([sketch.Sketch(name=name, heading=heading, width=width, height=132, boxes=boxes, lines=lines)])
    title = "A Feistel step is undone by its own f, whatever f is"
    caption = "f is never inverted: x passes through unchanged, so that f(x) can be computed again and taken away."
    subtitle = "(x, y) becomes (x, y + f(x)); ciphers add by XOR, reversible networks by +"
    return frame.compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def spread(rows: Rows, view: View) -> Picture:
    """The share of bits that one flipped bit changes, by round, for each cipher."""
    known = sorted((row for row in rows if row.get("changed_share") is not None), key=lambda row: row["rounds"])
    if not known:
        raise BadValue("--plot", "no rounds", "rounds to draw, as feistel avalanche has")
    ciphers = list(dict.fromkeys(row["cipher"] for row in rows if row.get("changed_share") is not None))
    half = known[0]["random_share"]
    parts: list[plot.Part] = [
        plot.Series(rows=[{"x": row["rounds"], "y": row["changed_share"]} for row in known if row["cipher"] == cipher], meaning=meaning,
                    text=cipher, dash=dash, dots=26)
        for cipher, meaning, dash in zip(ciphers, ("compute", "weights", "kv", "network", "whole"), plot.DASHES, strict=False)
    ]  # fmt: skip
    drawing = plot.Plot(
        name="avalanche", parts=[*parts, plot.RuleLines(y=[half], text="half of the bits, as in a random permutation")],
        heading="Share of the output bits that change",
        x=scale.AxisScale("Rounds", [row["rounds"] for row in known], "count", log=False, room=0.03, most=8),
        y=scale.AxisScale("", [0.0, 0.55, *(row["changed_share"] for row in known)], "share", zero=True, log=False, most=6),
    )  # fmt: skip
    full = next((row for row in known if row["changed_share"] >= 0.95 * half), None)
    title = (
        f"One flipped bit changes half of the block after {full['rounds']:.0f} rounds" if full else "One flipped bit spreads round by round"
    )
    caption = "A cipher wants this spread; a network wants the opposite, a small change that stays small."
    subtitle = f"{', '.join(ciphers)}; mean of {known[0]['trials']:,} random blocks"
    return frame.compose(view, [[drawing]], title=title, subtitle=subtitle, caption=caption)
