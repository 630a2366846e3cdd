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
MOST_STAGES, MOST_MICRO_BATCHES, MOST_DECODING_STAGES = 4, 8, 8
CHUNKS = 2  # of layers on each stage, where the schedule interleaves them


def training(stages: int, count: int, view: View, *, subject: str) -> Picture:
    """Picture of one training step by schedule; backward takes twice as long as forward."""
    from headway.training.timeline import longest_stage

    rows, micro = min(stages, MOST_STAGES), min(count, MOST_MICRO_BATCHES)
    micro = max(micro - micro % rows, min(micro, rows))  # whole groups, which interleaving asks for
    runs = _schedules(rows, micro)
    longest = max(block.end for blocks in runs.values() for block in blocks)
    panels, shares = [], {}
    for name, blocks in runs.items():
        shares[name] = 1 - 3.0 * micro / longest_stage(blocks, rows)  # a micro-batch is 3 on each stage: forward 1, backward 2
        heading = f"{name}: a stage idles {shares[name]:.0%} of its step"
        panels.append([_panel(view, f"pipeline{len(panels)}", blocks, rows, longest, heading, first=not panels)])
    note = "" if (rows, micro) == (stages, count) else f", of which {rows} stages and {micro} micro-batches are drawn"
    subtitle = f"{subject}: {stages} stages, {count} micro-batches{note}; a backward takes as long as two forwards"
    least, first = min(shares, key=lambda name: shares[name]), next(iter(shares))
    short = least.partition(",")[0]
    title = f"Of {rows} stages and {micro} micro-batches, {short} leaves {shares[least]:.0%} idle, {first} {shares[first]:.0%}"
    caption = "Each block is one micro-batch on one stage, by its number; white gaps are the bubble, which more micro-batches make smaller."
    return compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def _schedules(stages: int, count: int) -> dict[str, list[Any]]:
    """Blocks of every schedule that so many stages and micro-batches allow, by its name; forward and either half of a backward take 1."""
    from headway.training import dualpipe, timeline

    runs: dict[str, list[Any]] = {name: timeline.training(name, stages, count, 1.0, 1.0, 1.0) for name in timeline.SCHEDULES}
    if stages > 1 and count % stages == 0:
        runs[f"interleaved, {CHUNKS} chunks of layers a stage"] = timeline.interleaved(stages, count, CHUNKS, 1.0, 2.0)
    if count >= 2 * stages - 1:
        runs["zb-h2, up to twice the activations"] = timeline.training(timeline.TWICE_AHEAD, stages, count, 1.0, 1.0, 1.0)
    if stages % 2 == 0 and count % 2 == 0 and count >= 2 * stages:
        times = dualpipe.DualPipeTimes(forward=1.0, input_grad=1.0, weight_grad=1.0, both=3.0)
        runs["dualpipe, two copies of the weights, a forward beside a backward"] = dualpipe.blocks(stages, count, times)
    return runs


def serving(stages: int, view: View, *, subject: str) -> Picture:
    """Picture of decoding in stages: one micro-batch leaves all stages but one idle, as many as stages fill them."""
    from headway.training.timeline import decoding, idle_share

    rows = min(stages, MOST_DECODING_STAGES)
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
        top, low = _lane(block)
        boxes.append({"x": x, "x2": x2, "y": top, "y2": low, "color": theme.line(meaning)})
        text = str(block.micro_batch + 1)
        if x2 - x > text_width(text) + 3 and not block.lane:
            words.append({"x": (x + x2) / 2, "y": (block.stage + 0.5) * ROW, "text": text, "color": _on(view, meaning)})
    names = [{"x": -8.0, "y": (stage + 0.5) * ROW, "text": f"stage {stage + 1}", "color": theme.muted} for stage in range(stages)]
    data = {f"{name}_blocks": boxes, f"{name}_words": words, f"{name}_stages": names}
    layers = [marks.pixel_boxes(f"{name}_blocks", stroke=theme.paper or theme.grid), marks.labels(f"{name}_words", align="center"),
              marks.labels(f"{name}_stages", align="right")]  # fmt: skip
    kinds = [KINDS[kind] for kind in KINDS] if first else []
    return Panel(width=width, height=stages * ROW, layers=layers, data=data, x=_time(longest), left_margin=MARGIN, right_margin=10,
                 heading=heading, keys=[(f"■ {words_of}", meaning) for words_of, meaning in kinds], below=8)  # fmt: skip


def _lane(block: Any) -> tuple[float, float]:
    """Upper and lower edge of a block in its row; two that run at once share it."""
    high, half = block.stage * ROW, ROW / 2
    return {0: (high + 1, high + ROW - 1), 1: (high + 1, high + half - 0.5), 2: (high + half + 0.5, high + ROW - 1)}[block.lane]


def _time(longest: float) -> PictureAxis:
    return PictureAxis(title="", low=0.0, high=longest, ticks=())


def _on(view: View, meaning: str) -> str:
    """Colour of text on a block: white on dark tones, black on light ones."""
    light = {"light": ("kv",), "dark": ("kv", "compute", "whole"), "css": ()}[view.theme]
    return "var(--paper)" if view.theme == "css" else "#141414" if meaning in light else "#ffffff"
