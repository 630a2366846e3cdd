"""DualPipe over the stages of a pipeline, block by block: micro-batches enter from both ends, and a forward runs beside a backward.

The order of each chip follows the README and the schedule of deepseek-ai/DualPipe; each chip holds a stage of either direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headway.training.timeline import PipelineBlock

Task = tuple[str, int]  # kind (F, B with its weights, I for inputs alone, W) and direction
Turn = tuple[Task] | tuple[Task, Task]  # one task, or a forward beside a backward


@dataclass(frozen=True, slots=True, kw_only=True)
class DualPipeTimes:
    """Times of one micro-batch on one stage; `both` is a forward beside a whole backward."""

    forward: float
    input_grad: float
    weight_grad: float
    both: float

    def of(self, turn: Turn) -> float:
        """How long a turn takes."""
        if len(turn) > 1:
            return self.both
        kind = turn[0][0]
        return {"F": self.forward, "I": self.input_grad, "W": self.weight_grad, "B": self.input_grad + self.weight_grad}[kind]


def blocks(stages: int, count: int, times: DualPipeTimes) -> list[PipelineBlock]:
    """Blocks of one training step; `stages` and `count` are even, and there are at least twice as many micro-batches as stages."""
    queues = [list(_order(stage, stages, count)) for stage in range(stages)]
    starts = [{kind: [0, 0] for kind in "FBW"} for _ in range(stages)]  # micro-batches of each direction that a stage has begun
    ends: dict[tuple[str, int, int, int], float] = {}
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(stages)]  # weight gradients left for later
    free, drawn_blocks = [0.0] * stages, []
    while any(queues):
        progress = False
        for stage, queue in enumerate(queues):
            while queue and (ready := _ready(queue[0], stage, stages, starts[stage], ends)) is not None:
                turn = queue.pop(0)
                start = max(free[stage], ready)
                free[stage] = start + times.of(turn)
                for lane, task in enumerate(turn, 1 if len(turn) > 1 else 0):
                    direction, micro = _begin(task, starts[stage], waiting[stage])
                    kind = "B" if task[0] == "I" else task[0]
                    ends[kind, stage, direction, micro] = free[stage]
                    drawn_blocks.append(PipelineBlock(stage, kind, direction * (count // 2) + micro, start, free[stage], lane))
                progress = True
        if not progress:
            raise RuntimeError(f"the blocks of {stages} stages wait for each other")
    return drawn_blocks


def _begin(task: Task, starts: dict[str, list[int]], waiting: list[tuple[int, int]]) -> tuple[int, int]:
    """Direction and micro-batch of a task that begins."""
    kind, direction = task
    if kind == "W":
        return waiting.pop(0)
    key = "F" if kind == "F" else "B"
    micro = starts[key][direction]
    starts[key][direction] += 1
    if kind == "I":
        waiting.append((direction, micro))
    return direction, micro


def _ready(turn: Turn, stage: int, stages: int, starts: dict[str, list[int]], ends: dict[tuple[str, int, int, int], float]) -> float | None:
    """When the inputs of a turn have come; None if one is not known yet."""
    latest = 0.0
    for kind, direction in turn:
        if kind == "W":
            continue
        position = stage if direction == 0 else stages - 1 - stage
        step = 1 if direction == 0 else -1
        if kind == "F":
            micro = starts["F"][direction]
            needed = [("F", stage - step, direction, micro)] if position else []
        else:
            micro = starts["B"][direction]
            needed = [("F", stage, direction, micro)]
            needed += [("B", stage + step, direction, micro)] if position < stages - 1 else []
        if any(key not in ends for key in needed):
            return None
        latest = max([latest, *(ends[key] for key in needed)])
    return latest


def _order(stage: int, stages: int, count: int) -> Iterator[Turn]:
    """The turns of a stage; in the second half the directions are exchanged."""
    half, place = stages // 2, min(stage, stages - 1 - stage)
    near, far = (0, 1) if stage < half else (1, 0)
    outer = half - place - 1
    yield from [(("F", near),)] * (2 * outer)
    for _ in range(place + 1):
        yield (("F", near),)
        yield (("F", far),)
    for _ in range(outer):
        yield (("I", far),)
        yield (("W", far),)
        yield (("F", far),)
    for turn in range(count // 2 - stages + place + 1):
        if turn == 0 and not outer:  # the two stages in the middle wait for each other's first forward
            yield (("F", near),)
            yield (("B", far),)
        else:
            yield (("F", near), ("B", far))
        yield (("F", far), ("B", near))
    for _ in range(outer):
        yield (("B", far),)
        yield (("F", far), ("B", near))
    yield from _drain(place, near, far)
    for _ in range(outer):
        yield (("W", near),)
        yield (("I", near),)
    yield from [(("W", near),)] * (place + 1)


def _drain(place: int, near: int, far: int) -> Iterator[Turn]:
    """Backwards without a forward beside them; from the middle on their weight gradients are left for later."""
    is_split = False
    for turn in range(place + 1):
        is_split = is_split or (turn == (place + 1) // 2 and place % 2 == 1)
        yield (("I" if is_split else "B", far),)
        is_split = is_split or (turn == (place + 1) // 2 and place % 2 == 0)
        yield (("I" if is_split else "B", near),)
