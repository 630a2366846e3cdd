"""Rows below each other with a point for a number and a rule for its interval: laws, machines, models beside each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.errors import BadValue
from headway.report.pictures import marks
from headway.report.pictures.frame import EDGE, Panel, View, inner
from headway.report.pictures.lettering import LEADING, SIZE, shorten, text_width
from headway.report.pictures.marks import Row
from headway.report.pictures.scale import AxisScale, PictureAxis

PITCH = 30
MOST_ROWS = 24
PRIOR = ("prior_lo", "prior_hi")
Box = tuple[float, float, float, float]  # left and right end, upper and lower
Entry = tuple[Mapping[str, Any], str, str, str]  # a row, its label, its text, its meaning


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dots:
    """A panel of one number of each row that has it, between a label and a text; its interval where `KEY_lo` and `KEY_hi` are known.

    Behind a row is shaded what was likely before, where `prior_lo` and `prior_hi` are known.
    """

    name: str
    rows: Sequence[Mapping[str, Any]]
    key: str
    labels: Sequence[str]
    texts: Sequence[str]
    unit: str
    title: str = ""  # of the axis
    heading: str = ""
    meaning: str = "compute"
    columns: int = 1  # panels beside each other
    references: Sequence[tuple[float, str]] = ()  # values at which a line stands, with their words
    band: tuple[float, float] | None = None  # values between which the panel is shaded
    tones: Sequence[str] = ()  # meanings of the rows, where they differ; `rest`: rows beside those that the picture is about
    texts_beside: Sequence[str] = ()  # those of the picture's other panels, so that all have the same margins
    labels_beside: Sequence[str] = ()

    def panel(self, view: View, suffix: str) -> Panel:
        """The rows; in a narrow view each label stands over its row."""
        tones = self.tones or [self.meaning] * len(self.rows)
        entries = [entry for entry in zip(self.rows, self.labels, self.texts, tones, strict=True) if entry[0].get(self.key) is not None]
        entries = entries[:MOST_ROWS]
        if not entries:
            raise BadValue("--plot", f"no {self.key}", "rows with numbers to draw")
        raised, columns = SIZE * LEADING * view.is_narrow, 1 if view.is_narrow else self.columns
        widest = max(text_width(label) for label in (*self.labels_beside, *(label for _, label, _, _ in entries))) + 10
        margin = 0.0 if view.is_narrow else min(widest, view.width * 0.3 / columns)
        reserve = max(text_width(text) for text in (*self.texts_beside, *(text for _, _, text, _ in entries))) + 16
        width, pitch, lead = inner(view, margin, reserve, columns), PITCH + raised, SIZE * LEADING * bool(self.references)
        ends = [[row[end] for end in (f"{self.key}_lo", f"{self.key}_hi") if row.get(end) is not None] for row, *_ in entries]
        priors = [[row[end] for end in PRIOR if row.get(end) is not None] for row, *_ in entries]
        values = [*(entry[0][self.key] for entry in entries), *(end for pair in (*ends, *priors) for end in pair)]
        values += [at for at, _ in self.references]
        x = AxisScale(self.title, [*values, *(self.band or ())], self.unit, most=5).fitting(width, view.ends(f"x{suffix}"))
        x = dataclasses.replace(  # without ticks whose texts would leave the frame
            x, ticks=tuple((at, text) for at, text in x.ticks if x.across(at, width) - text_width(text) / 2 > -margin - EDGE)
        )
        data: dict[str, list[Row]] = {part: [] for part in ("band", "guides", "reference", "rules", "points", "names", "words", "tips")}
        boxes: list[Box] = []
        for place, (entry, interval, prior) in enumerate(zip(entries, ends, priors, strict=True)):
            spans = [x.across(value, width) for value in (entry[0][self.key], *interval)]
            middle = lead + place * pitch + (pitch + raised) / 2
            boxes += self._row(view, data, entry, spans, middle, (margin, width + reserve))
            if len(prior) == len(PRIOR):
                low, high = (x.across(value, width) for value in prior)
                data["band"].append({"x": low, "x2": high, "y": middle - 7, "y2": middle + 7, "color": view.colours.rest})
        self._behind(view, data, x, width, boxes)
        names = {part: f"{self.name}_{part}" for part in data}
        layers = [marks.pixel_boxes(names["band"], opacity=0.45), marks.pixel_rules(names["guides"]),
                  marks.pixel_rules(names["reference"], dash=(2, 3)), marks.pixel_rules(names["rules"], width=2),
                  marks.pixel_points(names["points"], size=70), marks.labels(names["names"], align="right" if margin else "left"),
                  marks.labels(names["words"])]  # fmt: skip
        if view.is_page:
            layers = [*layers[:3], *(marks.highlight(layer, view.colours.ink) for layer in layers[3:]), marks.tips(names["tips"])]
        data = {names[part]: rows for part, rows in data.items()}
        return Panel(width=width, height=lead + len(entries) * pitch, layers=layers, data=data, x=x, left_margin=margin,
                     right_margin=reserve, heading=self.heading)  # fmt: skip

    def _row(self, view: View, data: dict[str, list[Row]], entry: Entry, spans: Sequence[float], middle: float,
             room: tuple[float, float]) -> list[Box]:  # fmt: skip
        """Point, interval, name and text of a row, and what leads the eye from the name to the point; the boxes that its words take."""
        (_, label, text, meaning), (margin, outer) = entry, room
        theme, after, half = view.colours, max(spans) + 9, PITCH / 2
        tone, ink = theme.line(meaning), "rest" if meaning == "rest" else "ink"
        whose = {"name": label} if view.is_page else {}
        data["points"].append({"x": spans[0], "y": middle, "color": tone, **whose})
        if len(spans) == 3:
            data["rules"].append({"x": spans[1], "x2": spans[2], "y": middle, "y2": middle, "color": tone, **whose})
        data["words"] += [row | whose for row in marks.label_rows(theme, ink, [text], after, middle)]
        name = shorten(label, margin - 8 if margin else outer)
        spot = (-8.0, middle) if margin else (0.0, middle - SIZE * LEADING)
        data["names"] += [row | whose for row in marks.label_rows(theme, ink, [name], *spot)]
        if margin and min(spans) > 5:
            data["guides"].append({"x": 0.0, "x2": min(spans) - 5, "y": middle, "y2": middle, "color": theme.grid})
        if view.is_page and not view.axes:
            data["tips"].append({"x": spans[0], "y": middle, "downs": [middle], "tip": f"{label}: {text}", **whose})
        over = [] if margin else [(0.0, text_width(name), middle - half - SIZE * LEADING, middle - half)]
        return [*over, (after - 4, after + text_width(text) + 4, middle - half, middle + half)]

    def _behind(self, view: View, data: dict[str, list[Row]], x: PictureAxis, width: float, boxes: Sequence[Box]) -> None:
        """The shaded band, and the lines of the references, which words interrupt, with their own words over them."""
        theme = view.colours
        if self.band:
            low, high = (x.across(at, width) for at in self.band)
            data["band"].append({"x": low, "x2": high, "y": boxes[0][2], "y2": boxes[-1][3], "color": theme.grid})
        for at, text in self.references:
            spot, wide = x.across(at, width), text_width(text)
            data["reference"] += [{"x": spot, "x2": spot, "y": top, "y2": end, "color": theme.muted}
                                  for start, stop, top, end in boxes if not start < spot < stop]  # fmt: skip
            start = max(min(spot - wide / 2, view.width - 2 * EDGE - wide), 0.0)
            data["words"] += marks.label_rows(theme, "muted", [text], start, SIZE * LEADING / 2)
