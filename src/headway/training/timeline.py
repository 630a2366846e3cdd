"""Micro-batches over the stages of a pipeline, block by block: when each stage works on which, by schedule; and decoding in stages.

A stage takes its blocks in the order of its schedule, each as soon as what it needs has come; blocks of a stage never overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

SCHEDULES = ("gpipe", "1f1b", "zb-h1")
TWICE_AHEAD = "zb-h2"
Block = tuple[str, int]  # kind and micro-batch, or micro-batch of a chunk


@dataclass(frozen=True, slots=True)
class PipelineBlock:
    """A span in which a stage works on a micro-batch: forward F, backward B, gradients of weights W."""

    stage: int
    kind: str
    micro_batch: int
    start: float
    end: float
    lane: int = 0  # of two that run at once the upper, 1, or the lower, 2


def order(schedule: str, stage: int, stages: int, count: int) -> list[tuple[str, int]]:
    """The blocks of a stage in the order of its schedule; W is inside B except where zero bubble moves it."""
    if schedule == "gpipe":
        return [("F", micro) for micro in range(count)] + [("B", micro) for micro in range(count)]
    if schedule == TWICE_AHEAD:
        return _second_zero_bubble(stage, stages, count)
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


def _second_zero_bubble(stage: int, stages: int, count: int) -> list[tuple[str, int]]:
    """ZB-H2: twice the forwards of 1F1B before the first backward (Qi et al. 2023, section 2.2); `count` is at least 2 stages - 1.

    At the end backwards follow each other at the pace of two blocks: while forwards are left weights wait for them, to the last.
    """
    ahead, hurried = 2 * (stages - stage) - 1, 2 * stages - 1
    blocks = [("F", micro) for micro in range(ahead)]
    weights = 0
    for micro in range(count):
        has_forward = ahead + micro < count
        blocks.append(("B", micro))
        if micro < count - hurried or not has_forward:
            blocks.append(("W", weights))
            weights += 1
        if has_forward:
            blocks.append(("F", ahead + micro))
    return blocks + [("W", micro) for micro in range(weights, count)]


def training(schedule: str, stages: int, count: int, forward: float, input_grad: float, weight_grad: float) -> list[PipelineBlock]:
    """Blocks of one training step; times of one micro-batch on one stage."""
    split = schedule in ("zb-h1", TWICE_AHEAD)
    spans = {"F": forward, "B": input_grad if split else input_grad + weight_grad, "W": weight_grad}
    queues = [order(schedule, stage, stages, count) for stage in range(stages)]
    return _played(queues, spans, lambda block, stage, ends: _ready(block, stage, stages, ends), lambda block: block[1])


def interleaved(stages: int, count: int, chunks: int, forward: float, backward: float) -> list[PipelineBlock]:
    """Blocks of one training step in which each stage holds several chunks of layers; `count` is a multiple of the stages.

    A group of as many micro-batches as stages passes through one chunk after another (Narayanan et al. 2021, arXiv:2104.04473, 2.2).
    """
    spans = {"F": forward / chunks, "B": backward / chunks}
    queues = [_interleaved_order(stage, stages, count, chunks) for stage in range(stages)]

    def ready(block: Block, stage: int, ends: dict[tuple[str, int, int], float]) -> float | None:
        kind, place = block
        chunk, micro = divmod(place, count)
        position, last = chunk * stages + stage, chunks * stages - 1
        if kind == "F" and position == 0:
            return 0.0
        if kind == "B" and position == last:
            return ends.get(("F", stage, place))
        neighbour = position - 1 if kind == "F" else position + 1
        return ends.get((kind, neighbour % stages, neighbour // stages * count + micro))

    return _played(queues, spans, ready, lambda block: block[1] % count)


def _interleaved_order(stage: int, stages: int, count: int, chunks: int) -> list[Block]:
    """The blocks of a stage: a warm-up of forwards, one forward and one backward in turn, and the backwards that are left."""
    total = count * chunks

    def block(kind: str, turn: int) -> Block:
        group, place = divmod(turn, stages * chunks)
        chunk = place // stages if kind == "F" else chunks - 1 - place // stages
        return kind, chunk * count + group * stages + place % stages

    ahead = min((stages - stage - 1) * 2 + (chunks - 1) * stages, total)
    blocks = [block("F", turn) for turn in range(ahead)]
    for turn in range(total - ahead):
        blocks += [block("F", ahead + turn), block("B", turn)]
    return blocks + [block("B", turn) for turn in range(total - ahead, total)]


def _played(
    queues: list[list[Block]],
    spans: dict[str, float],
    ready: Callable[[Block, int, dict[tuple[str, int, int], float]], float | None],
    micro_batch: Callable[[Block], int],
) -> list[PipelineBlock]:
    """Every stage's queue played in its order, each block as soon as what it needs has come."""
    ends: dict[tuple[str, int, int], float] = {}
    free = [0.0] * len(queues)
    blocks = []
    while any(queues):
        progress = False
        for stage, queue in enumerate(queues):
            while queue and (input_s := ready(queue[0], stage, ends)) is not None:
                block = queue.pop(0)
                start = max(free[stage], input_s)
                free[stage] = ends[block[0], stage, block[1]] = start + spans[block[0]]
                blocks.append(PipelineBlock(stage, block[0], micro_batch(block), start, free[stage]))
                progress = True
        if not progress:
            raise RuntimeError(f"the blocks of {len(queues)} stages wait for each other")
    return blocks


def _ready(block: Block, stage: int, stages: int, ends: dict[tuple[str, int, int], float]) -> float | None:
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


def longest_stage(blocks: list[PipelineBlock], stages: int) -> float:
    """The longest time from a stage's first block to its last: steps follow each other at that pace."""
    spans = [[(block.start, block.end) for block in blocks if block.stage == stage] for stage in range(stages)]
    return max(max(end for _, end in mine) - min(start for start, _ in mine) for mine in spans)


def idle_share(blocks: list[PipelineBlock], stages: int, start: float, end: float) -> float:
    """Idle time of all stages between two times, over the whole."""
    busy = sum(max(0.0, min(block.end, end) - max(block.start, start)) for block in blocks)
    return 1 - busy / (stages * (end - start))
