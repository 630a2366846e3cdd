"""Micro-batches over the stages of a pipeline, block by block: when each stage works on which, by schedule; and decoding in stages.

A stage takes its blocks in the order of its schedule, each as soon as what it needs has come; blocks of a stage never overlap.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEDULES = ("gpipe", "1f1b", "zb-h1")


@dataclass(frozen=True, slots=True)
class PipelineBlock:
    """A span in which a stage works on a micro-batch: forward F, backward B, gradients of weights W."""

    stage: int
    kind: str
    micro_batch: int
    start: float
    end: float


def order(schedule: str, stage: int, stages: int, count: int) -> list[tuple[str, int]]:
    """The blocks of a stage in the order of its schedule; W is inside B except where zero bubble moves it."""
    if schedule == "gpipe":
        return [("F", micro) for micro in range(count)] + [("B", micro) for micro in range(count)]
    ahead = min(stages - stage - 1, count)
    blocks = [("F", micro) for micro in range(ahead)]
    for micro in range(count - ahead):
        blocks += [("F", ahead + micro), ("B", micro)]
        if schedule == "zb-h1" and micro >= stage:  # a later stage has fewer in flight, so that weights wait for fewer
            blocks.append(("W", micro - stage))
    tail = [("B", micro) for micro in range(count - ahead, count)]
    if schedule != "zb-h1":
        return blocks + tail
    waiting = [micro for micro in range(count) if ("W", micro) not in blocks]
    for block in tail:
        blocks.append(block)
        if waiting:
            blocks.append(("W", waiting.pop(0)))
    return blocks + [("W", micro) for micro in waiting]


def training(schedule: str, stages: int, count: int, forward: float, input_grad: float, weight_grad: float) -> list[PipelineBlock]:
    """Blocks of one training step; times of one micro-batch on one stage."""
    split = schedule == "zb-h1"
    spans = {"F": forward, "B": input_grad if split else input_grad + weight_grad, "W": weight_grad}
    queues = [order(schedule, stage, stages, count) for stage in range(stages)]
    ends: dict[tuple[str, int, int], float] = {}
    free = [0.0] * stages
    blocks = []
    while any(queues):
        progress = False
        for stage, queue in enumerate(queues):
            while queue and (ready := _ready(queue[0], stage, stages, ends)) is not None:
                kind, micro = queue.pop(0)
                start = max(free[stage], ready)
                free[stage] = ends[kind, stage, micro] = start + spans[kind]
                blocks.append(PipelineBlock(stage, kind, micro, start, free[stage]))
                progress = True
        if not progress:
            raise RuntimeError(f"{schedule}: the blocks of {stages} stages wait for each other")
    return blocks


def _ready(block: tuple[str, int], stage: int, stages: int, ends: dict[tuple[str, int, int], float]) -> float | None:
    """When a block's input has come; None if it is not known yet."""
    kind, micro = block
    if kind == "F":
        return 0.0 if stage == 0 else ends.get(("F", stage - 1, micro))
    if kind == "W":
        return ends.get(("B", stage, micro))
    return ends.get(("F", stage, micro)) if stage == stages - 1 else ends.get(("B", stage + 1, micro))


def decoding(stages: int, count: int, rounds: int) -> list[PipelineBlock]:
    """Blocks of decode steps: a micro-batch enters the first stage again when its token has left the last; a stage takes 1."""
    period = max(stages, count)
    return [
        PipelineBlock(stage, "F", micro, float(turn * period + micro + stage), float(turn * period + micro + stage + 1))
        for turn in range(rounds)
        for micro in range(count)
        for stage in range(stages)
    ]


def idle_share(blocks: list[PipelineBlock], stages: int, start: float, end: float) -> float:
    """Idle time of all stages between two times, over the whole."""
    busy = sum(max(0.0, min(block.end, end) - max(block.start, start)) for block in blocks)
    return 1 - busy / (stages * (end - start))
