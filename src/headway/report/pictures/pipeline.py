"""Micro-batches as blocks over the stages of a pipeline, a panel for each schedule, gaps being the bubble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.report.pictures import marks
from headway.report.pictures.frame import EDGE, Panel, Picture, View, compose
from headway.report.pictures.lettering import text_width
from headway.report.pictures.palette import MEANINGS
from headway.report.pictures.scale import PictureAxis

ROW = 20  # px of a stage
MARGIN = 64.0
KINDS = {"F": ("forward", "compute"), "B": ("backward", "kv"), "W": ("gradients of weights", "weights")}
MOST_STAGES, MOST_MICRO_BATCHES = 8, 12
CHUNKS = 2  # of layers on each stage, where the schedule interleaves them


def training(stages: int, count: int, schedules: Sequence[str], view: View, *, subject: str) -> Picture:
    """Picture of one training step by schedule; backward takes twice as long as forward."""
    from headway.training.timeline import idle_share, interleaved
    from headway.training.timeline import training as timeline

    rows, micro = min(stages, MOST_STAGES), min(count, MOST_MICRO_BATCHES)
    micro = max(micro - micro % rows, min(micro, rows))  # whole groups, which interleaving asks for
    runs = [(schedule, timeline(schedule, rows, micro, 1.0, 1.0, 1.0)) for schedule in schedules]
    if rows > 1 and micro % rows == 0:
        runs.append((f"interleaved, {CHUNKS} chunks of layers a stage", interleaved(rows, micro, CHUNKS, 1.0, 2.0)))
    longest = max(block.end for _, blocks in runs for block in blocks)
    panels, shares = [], []
    for schedule, blocks in runs:
        end = max(block.end for block in blocks)
        shares.append(idle_share(blocks, rows, 0.0, end))
        heading = f"{schedule}: stages idle {shares[-1]:.0%} of the step"
        panels.append([_panel(view, f"pipeline{len(panels)}", blocks, rows, longest, heading, first=not panels)])
    note = "" if (rows, micro) == (stages, count) else f", of which {rows} stages and {micro} micro-batches are drawn"
    subtitle = f"{subject}: {stages} stages, {count} micro-batches{note}; a backward takes as long as two forwards"
    least = min(range(len(runs)), key=shares.__getitem__)
    title = f"Of {rows} stages and {micro} micro-batches, {runs[least][0]} leaves {shares[least]:.0%} idle, {runs[0][0]} {shares[0]:.0%}"
    caption = "Each block is one micro-batch on one stage, by its number; white gaps are the bubble, which more micro-batches make smaller."
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def serving(stages: int, view: View, *, subject: str) -> Picture:
    """Picture of decoding in stages: one micro-batch leaves all stages but one idle, as many as stages fill them."""
    from headway.training.timeline import decoding, idle_share

    rows = min(stages, MOST_STAGES)
    cases = sorted({1, max(rows // 2, 1), rows})
    end, panels = 3.0 * rows, []
    for count in cases:
        blocks = [block for block in decoding(rows, count, 4) if block.start < end]
        share = idle_share(blocks, rows, float(rows), end)
        heading = f"{count} micro-batch{'es' * (count > 1)} in flight: stages idle {share:.0%} of the time"
        panels.append([_panel(view, f"decode{len(panels)}", blocks, rows, end, heading, by_micro_batch=True)])
    title = f"Decoding through {rows} stages takes {rows} micro-batches to keep them busy"
    caption = "A token's latency is the way through all stages, whatever the micro-batches: stages save memory, not time."
    return compose(view, panels, title=title, subtitle=subject, caption=caption)


def _panel(view: View, name: str, blocks: Sequence[Any], stages: int, longest: float, heading: str, first: bool = False,
           by_micro_batch: bool = False) -> Panel:  # fmt: skip
    theme, width = view.colours, view.width - 2 * EDGE - MARGIN - 10
    scale = width / longest
    boxes, words = [], []
    for block in blocks:
        meaning = MEANINGS[block.micro_batch % len(MEANINGS)] if by_micro_batch else KINDS[block.kind][1]
        x, x2 = block.start * scale, min(block.end * scale, width)
        boxes.append({"x": x, "x2": x2, "y": block.stage * ROW + 1, "y2": (block.stage + 1) * ROW - 1, "color": theme.line(meaning)})
        text = str(block.micro_batch + 1)
        if x2 - x > text_width(text) + 3:
            words.append({"x": (x + x2) / 2, "y": (block.stage + 0.5) * ROW, "text": text, "color": _on(view, meaning)})
    names = [{"x": -8.0, "y": (stage + 0.5) * ROW, "text": f"stage {stage + 1}", "color": theme.muted} for stage in range(stages)]
    data = {f"{name}_blocks": boxes, f"{name}_words": words, f"{name}_stages": names}
    layers = [marks.pixel_boxes(f"{name}_blocks", stroke=theme.paper or theme.grid), marks.labels(f"{name}_words", align="center"),
              marks.labels(f"{name}_stages", align="right")]  # fmt: skip
    kinds = [KINDS[kind] for kind in KINDS] if first else []
    return Panel(width=width, height=stages * ROW, layers=layers, data=data, x=_time(longest), left_margin=MARGIN, right_margin=10,
                 heading=heading, keys=[(f"■ {words_of}", meaning) for words_of, meaning in kinds], below=8)  # fmt: skip


def _time(longest: float) -> PictureAxis:
    return PictureAxis(title="", low=0.0, high=longest, ticks=())


def _on(view: View, meaning: str) -> str:
    """Colour of text on a block: white on dark tones, black on light ones."""
    light = {"light": ("kv",), "dark": ("kv", "compute", "whole"), "css": ()}[view.theme]
    return "var(--paper)" if view.theme == "css" else "#141414" if meaning in light else "#ffffff"
