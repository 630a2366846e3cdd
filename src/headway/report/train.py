"""Words for the bars of training layouts, and pictures of `train`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.errors import BadValue
from headway.core.listing import Rows, cell, format_value
from headway.report.output import Help
from headway.report.pictures import bars, blocks, frame, scale
from headway.report.words import Row, subject
from headway.training import dualpipe, timeline
from headway.training.train import LADDER

if TYPE_CHECKING:
    from headway.report.output import PictureOf
    from headway.report.pictures.frame import Picture, View
    from headway.training.helps import TrainingHelp
    from headway.training.timeline import PipelineBlock

DEGREES = ("tp", "cp", "pp", "vpp", "ep", "dp")
APART = ("model", "system", "seq", "global_batch", "dtype", "optimizer", "schedule", "recompute", "micro_batch", "zero")


MOST_BARS = 8
NOTHING = "none"  # recomputed
SUREST = 0.995  # chance from which a sentence gives no figure
BETTER = {"step": "faster", "cost": "better by cost", "chips": "better by number of chips"}
STEP = (
    ("matmuls", "compute", ("compute_s",)),
    ("attention and head", "weights", ("attention_s", "head_s", "traffic_s", "launch_s")),
    ("network", "network", ("tp_s", "cp_s", "ep_s", "parameters_s")),
    ("bubble and update", "whole", ("bubble_s", "update_s")),
)
MEMORY = (
    ("weights", "weights", ("weights_bytes_chip", "gathered_bytes_chip")),
    ("gradients and optimizer", "network", ("gradients_bytes_chip", "optimizer_bytes_chip")),
    ("activations", "kv", ("activations_bytes_chip", "head_bytes_chip")),
    ("allowance", "whole", ("allowance_bytes_chip",)),
)
MOST_STAGES, MOST_MICRO_BATCHES = 4, 8  # that are drawn
CHUNKS = 2  # of layers on each stage, where the schedule interleaves them


def share(chance: float) -> str:
    """A chance in words, which is never certain.

    >>> share(0.834), share(0.999), share(0.0)
    ('83%', 'over 99%', 'under 1%')
    """
    return "over 99%" if chance >= SUREST else "under 1%" if chance <= 1 - SUREST else f"{chance:.0%}"


def help_words(useful: TrainingHelp, best: Row) -> Help:
    """A change that would help, with what it does to the run, or to the speed where no tokens are given."""
    change, run = useful.change, useful.run
    if run.run is None:
        chips, step = useful.best.case.system.chips, useful.best.step
        speed = float(useful.best.case.batch) / step / float(chips)
        effect = f"{best['tokens_per_s_chip']:,.0f} -> {speed:,.0f} tokens/s per chip"
    else:
        effect = f"{format_value(best['run_s'], 's')} -> {format_value(float(run.run), 's')}"
        if best.get("run_usd") is not None:
            effect += f", {format_value(best['run_usd'], 'USD')} -> {format_value(float(run.usd), 'USD')}"
        if int(useful.best.case.system.chips) != best["chips"]:
            effect += f", {best['chips']:,} -> {int(useful.best.case.system.chips):,} chips"
        if run.confidence is not None:
            effect += f", chance {share(float(run.confidence))}"
    better = ", which keeps the limits" if useful.saves else f", {useful.gain:.1%} {BETTER[useful.aim]}"
    return Help(change=f"{change.words} ({change.flags})", effect=effect + better, gain=useful.gain)


def pictures() -> dict[str, PictureOf]:
    """Pictures of `train` by name."""

    def stages(rows: Rows, view: View) -> Picture:
        row = next((row for row in rows if row["pp"] > 1), None)
        if row is None:
            raise BadValue("--picture", "pipeline", "a layout with stages, such as --pp 8")
        return pipeline(int(row["pp"]), int(row["micro_batches"]), view, subject(row))

    return {"layouts": lambda rows, view: layouts([row for row in rows if row["kind"] != LADDER], view), "pipeline": stages}


def layouts(rows: Sequence[Row], view: View) -> Picture:
    """Step time and memory of training layouts, by part, a bar for each layout."""
    names = [f"{place}. {name}" for place, name in enumerate(labels(rows), 1)]
    pairs = [(row, name) for row, name in zip(rows, names, strict=True) if row.get("step_s") is not None][:MOST_BARS]
    if not pairs:
        raise BadValue("--plot", "no rows", "rows to draw")
    steps = [bars.Bar(name=name, parts=_parts(row, STEP), note=format_value(row["step_s"], "s"), low=row["step_lo_s"],
                      high=row["step_hi_s"]) for row, name in pairs]  # fmt: skip
    sizes = [bars.Bar(name=name, parts=_parts(row, MEMORY), note=format_value(row["memory_bytes_chip"], "byte"),
                      limit=row["hbm_bytes_chip"]) for row, name in pairs]  # fmt: skip
    common = {"zero": True, "log": False, "most": 5, "room": 0.22}
    time = scale.AxisScale("Time of one optimizer step; the rule is the 90 % interval", [0.0, *(row["step_hi_s"] for row, _ in pairs)], "s",
                           **common)  # fmt: skip
    most = [value for row, _ in pairs for value in (row["hbm_bytes_chip"], row["memory_bytes_chip"])]
    memory = scale.AxisScale("Memory of the fullest chip; the mark is its HBM", [0.0, *most], "byte", **common)
    drawings = [[bars.Bars(name="step", bars=steps, x=time)], [bars.Bars(name="memory", bars=sizes, x=memory)]]
    best = pairs[0][0]
    apart = [max(values) - min(values) for values in zip(*([value for _, value, _ in bar.parts] for bar in steps), strict=True)]
    title = f"A step takes {steps[0].note} at MFU {best['mfu']:.0%}"
    if len(pairs) > 1:
        second = format_value(min(row["step_s"] for row, _ in pairs[1:]), "s")
        title += f", {second} or more in the other layouts, which differ most in {STEP[apart.index(max(apart))][0]}"
    else:
        title += f", the largest part {max(_parts(best, STEP), key=lambda part: part[1])[0]}"
    subtitle = f"{subject(best)}; expected values; named are degrees, schedule and what is recomputed"
    subtitle += f"; the first {len(pairs)} of {len(rows)} layouts" if len(rows) > len(pairs) else ""
    caption = "Above, where a step's time goes: what is not matmuls is what a better layout can save; below, what the fullest chip holds."
    return frame.compose(view, drawings, title=title, subtitle=subtitle, caption=caption)


def _parts(row: Row, parts: Sequence[tuple[str, str, tuple[str, ...]]]) -> list[bars.BarPart]:
    """Parts of a bar from the row's columns."""
    return [(words, sum(row.get(key) or 0.0 for key in keys), meaning) for words, meaning, keys in parts]


def pipeline(stages: int, count: int, view: View, about: str) -> Picture:
    """One training step by schedule, micro-batches as blocks over the stages; backward takes twice as long as forward."""
    rows, micro = min(stages, MOST_STAGES), min(count, MOST_MICRO_BATCHES)
    micro = max(micro - micro % rows, min(micro, rows))  # whole groups, which interleaving asks for
    runs = _schedules(rows, micro)
    longest = max(block.end for turns in runs.values() for block in turns)
    shares = {name: 1 - 3.0 * micro / timeline.longest_stage(turns, rows) for name, turns in runs.items()}  # a micro-batch takes 1 + 2
    panels = [[blocks.Blocks(name=f"pipeline{number}", blocks=turns, stages=rows, end=longest, has_key=not number,
                             heading=f"{name}: a stage idles {shares[name]:.0%} of its step")]
              for number, (name, turns) in enumerate(runs.items())]  # fmt: skip
    note = "" if (rows, micro) == (stages, count) else f", of which {rows} stages and {micro} micro-batches are drawn"
    subtitle = f"{about}: {stages} stages, {count} micro-batches{note}; a backward takes as long as two forwards"
    least, first = min(shares, key=lambda name: shares[name]), next(iter(shares))
    short = least.partition(",")[0]
    title = f"Of {rows} stages and {micro} micro-batches, {short} leaves {shares[least]:.0%} idle, {first} {shares[first]:.0%}"
    caption = "Each block is one micro-batch on one stage, by its number; white gaps are the bubble, which more micro-batches make smaller."
    return frame.compose(view, panels, title=title, subtitle=subtitle, caption=caption)


def _schedules(stages: int, count: int) -> dict[str, list[PipelineBlock]]:
    """Blocks of every schedule that so many stages and micro-batches allow, by its name; forward and either half of a backward take 1."""
    runs = {name: timeline.training(name, stages, count, 1.0, 1.0, 1.0) for name in timeline.SCHEDULES}
    if stages > 1 and count % stages == 0:
        runs[f"interleaved, {CHUNKS} chunks of layers a stage"] = timeline.interleaved(stages, count, CHUNKS, 1.0, 2.0)
    if count >= 2 * stages - 1:
        runs["zb-h2, up to twice the activations"] = timeline.training(timeline.TWICE_AHEAD, stages, count, 1.0, 1.0, 1.0)
    if stages % 2 == 0 and count % 2 == 0 and count >= 2 * stages:
        times = dualpipe.DualPipeTimes(forward=1.0, input_grad=1.0, weight_grad=1.0, both=3.0)
        runs["dualpipe, two copies of the weights, a forward beside a backward"] = dualpipe.blocks(stages, count, times)
    return runs


def labels(rows: Sequence[Row]) -> list[str]:
    """Label per row: its degrees of parallelism, and settings that differ between rows, where they are any."""
    apart = [key for key in APART if len({row[key] for row in rows}) > 1]
    layout_texts = [" ".join(f"{key}{row[key]}" for key in DEGREES if row[key] != 1) or "one chip a copy" for row in rows]
    return [
        ", ".join([way, *(_field_text(key, row) for key in apart if row[key] != NOTHING)])
        for way, row in zip(layout_texts, rows, strict=True)
    ]


def _field_text(key: str, row: Row) -> str:
    return str(row[key]) if isinstance(row[key], str) else f"{key} {cell(key, row)}"
