"""Turns of a timeline as blocks, a row for each stage of a pipeline, gaps being what is idle."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.report.pictures import marks
from headway.report.pictures.frame import EDGE, Panel, View
from headway.report.pictures.lettering import text_width
from headway.report.pictures.palette import MEANINGS
from headway.report.pictures.scale import PictureAxis

if TYPE_CHECKING:
    from headway.training.timeline import PipelineBlock

ROW = 20  # px of a stage
HALF = ROW / 2
LANES = {0: (1, ROW - 1), 1: (1, HALF - 0.5), 2: (HALF + 0.5, ROW - 1)}  # upper and lower edge in the row; two at once share it
BEFORE, AFTER = 64.0, 10.0  # px beside the blocks
KINDS = {"F": ("forward", "compute"), "B": ("backward", "kv"), "W": ("gradients of weights", "weights")}
LIGHT = {"light": ("kv",), "dark": ("kv", "compute", "whole")}  # tones on which text is black


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A panel of micro-batches over stages, each by its number, coloured by what is done or by micro-batch."""

    name: str
    blocks: Sequence[PipelineBlock]
    stages: int
    end: float  # of the time that is drawn
    heading: str
    has_key: bool = False
    is_serving: bool = False  # whether a micro-batch keeps its colour

    def panel(self, view: View, suffix: str) -> Panel:
        """The blocks, as wide as they are long."""
        theme, width = view.colours, view.width - 2 * EDGE - BEFORE - AFTER
        x_axis = PictureAxis(title="", low=0.0, high=self.end, ticks=())
        boxes, words = [], []
        for block in self.blocks:
            meaning = MEANINGS[block.micro_batch % len(MEANINGS)] if self.is_serving else KINDS[block.kind][1]
            x, x2 = block.start * (width / self.end), min(block.end * (width / self.end), width)
            top, low = (block.stage * ROW + edge for edge in LANES[block.lane])
            boxes.append({"x": x, "x2": x2, "y": top, "y2": low, "color": theme.line(meaning)})
            text = str(block.micro_batch + 1)
            if x2 - x > text_width(text) + 3 and not block.lane:
                tone = "var(--paper)" if view.is_page else "#141414" if meaning in LIGHT[view.theme] else "#ffffff"
                words.append({"x": (x + x2) / 2, "y": (block.stage + 0.5) * ROW, "text": text, "color": tone})
        names = [{"x": -8.0, "y": (stage + 0.5) * ROW, "text": f"stage {stage + 1}", "color": theme.muted} for stage in range(self.stages)]
        data = {f"{self.name}_blocks": boxes, f"{self.name}_words": words, f"{self.name}_stages": names}
        layers = [marks.pixel_boxes(f"{self.name}_blocks", stroke=theme.paper or theme.grid),
                  marks.labels(f"{self.name}_words", align="center"), marks.labels(f"{self.name}_stages", align="right")]  # fmt: skip
        keys = [(f"■ {words_of}", meaning) for words_of, meaning in KINDS.values() if self.has_key]
        return Panel(width=width, height=self.stages * ROW, layers=layers, data=data, x=x_axis, left_margin=BEFORE, right_margin=AFTER,
                     heading=self.heading, keys=keys, below=8)  # fmt: skip
