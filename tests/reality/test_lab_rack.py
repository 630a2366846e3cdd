"""Worker processes as chips: they compute what one process does, count every byte, wait as the law says, and leave nothing behind."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import signal
import subprocess
import sys
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np
import pytest

from headway.core.errors import BadValue, HeadwayError
from headway.laws.training.step import unequal_stages_s
from headway.reality.lab import experiment as frame
from headway.reality.lab import rack
from headway.reality.lab.decoder import softmax
from headway.reality.lab.rack_setup import RackSetup
from headway.reality.lab.shape import LabShape
from headway.reality.lab.workers import WorkerGroup
from support.rack_part import Faulty

SHAPE = LabShape(
    layers=4, hidden=32, heads=2, kv_heads=1, head_dim=8, experts=16, per_token=3, expert_width=8, shared_width=8, vocab=64
)  # fmt: skip
SETUP = RackSetup(shape=SHAPE, context=9, sequences=4, quick=True)
PACE = [1e-10, 1.1e-10, 1.3e-10]
CALIBRATION = {
    "inside_1_s_per_byte": PACE, "inside_2_s_per_byte": PACE, "across_2_s_per_byte": [8.9e-10, 9e-10, 9.9e-10],
    "work_s": [[1e-3, 1.1e-3, 1.05e-3]] * rack.WORKERS,
}  # fmt: skip


def counted(setup: RackSetup) -> dict[str, list[list[int]]]:
    """Copies by hop, as a calibration has them."""
    choices, _ = rack.routing(*rack._decoder(setup), setup)
    size = {racks: racks * rack.PER_RACK * setup.sequences for racks in rack.RACKS}
    return {str(racks): rack.copies_by_hop(choices[:, : size[racks]], setup.shape.experts, racks) for racks in rack.RACKS}


def test_workers_compute_what_one_process_does_and_every_byte_is_counted():
    """All layouts, of a small decoder: each exact count as predicted, scores equal to rounding of 64 bits."""
    predictions = list(rack.predict(SETUP, CALIBRATION | {"copies": counted(SETUP)}))
    points: dict[int, float] = {}
    facts = rack.measure(SETUP, [point.plain() for point in predictions], lambda part: points.update({int(part[0]): part[1]}))
    assert 0 <= facts["difference"] < 1e-12
    assert len(points) == len(predictions)
    exact = [place for place, point in enumerate(predictions) if point.unit == "byte"]
    assert len(exact) == 2 + 3 + 4 + 6 + 1
    assert {place: points[place] for place in exact} == {place: float(predictions[place].value) for place in exact}
    shares = [points[place] for place, point in enumerate(predictions) if point.quantity == rack.IDLE]
    assert all(0 < share < 1 for share in shares)


def test_copies_by_hop_are_those_that_a_router_sends_token_by_token():
    """The plain way: each token alone through the decoder's own norms and routers."""
    decoder, tokens = rack._decoder(SETUP)
    homes = [[[0] * 8 for _ in range(8)] for _ in range(SHAPE.layers)]
    inputs: list[np.ndarray] = []

    def listen(x, layer, per_token):
        inputs.append(x)
        scores = x @ layer.router
        best = np.argsort(-scores, axis=1)[:, :per_token]
        weights = softmax(np.take_along_axis(scores, best, 1))
        outputs = np.zeros_like(x)
        for token, experts in enumerate(best):
            for expert, weight in zip(experts, weights[token], strict=True):
                both = x[token] @ layer.experts_in[expert]
                gate, up = np.split(both, 2)
                outputs[token] += weight * (gate / (1 + np.exp(-gate)) * up) @ layer.experts_out[expert]
                homes[len(inputs) - 1][token // SETUP.sequences][expert // 2] += 1
        return outputs, 0

    decoder.step(tokens, decoder.cache(len(tokens), SETUP.context, SETUP.context - 1, SETUP.seed), listen)
    assert np.sum(homes, axis=0).tolist() == counted(SETUP)["2"]
    assert np.sum(homes) == SHAPE.layers * len(tokens) * SHAPE.per_token


def test_chances_of_a_token_are_those_of_combinations():
    """Shares and workers that are drawn, against counting all choices of experts."""
    setup = dataclasses.replace(SETUP, sequences=64, shape=dataclasses.replace(SHAPE, vocab=512))
    for racks in rack.RACKS:
        workers = racks * rack.PER_RACK
        held = SHAPE.experts // workers
        passed = math.comb(SHAPE.experts - held, SHAPE.per_token) / math.comb(SHAPE.experts, SHAPE.per_token)
        shares, places = rack.draw_routing(setup, racks)
        assert np.mean(places) == pytest.approx(workers * (1 - passed), rel=3e-3)
        assert np.mean(shares) == pytest.approx(1 - 1 / racks, abs=3e-3)


@pytest.mark.parametrize(("stages", "micro_batches", "share"), [(4, 4, 3 / 7), (4, 16, 3 / 19), (8, 32, 7 / 39), (4, 1, 3 / 4)])
def test_equal_stages_wait_as_published(stages: int, micro_batches: int, share: float):
    """GPipe (arXiv:1811.06965): (K - 1) / (M + K - 1)."""
    assert rack.idle_share(np.ones((micro_batches, 1, stages)), np.zeros(1))[0] == pytest.approx(share, abs=1e-12)


def test_unequal_stages_are_paced_by_the_slowest_and_hops_add_to_them():
    stage_s, count = (1.0, 1.1, 1.4, 0.9), 7
    work = np.tile(stage_s, (count, 1, 1))
    end = count * sum(stage_s) / (4 * (1 - rack.idle_share(work, np.zeros(1))[0]))
    assert end == pytest.approx(float(unequal_stages_s(stage_s, count)))
    later = count * sum(stage_s) / (4 * (1 - rack.idle_share(work, np.array([0.25]))[0]))
    assert later == pytest.approx(end + 3 * 0.25)


def test_no_two_points_are_alike_and_no_interval_is_wider_than_a_factor_of_two():
    points = list(rack.predict(SETUP, CALIBRATION | {"copies": counted(SETUP)}))
    assert len({(point.quantity, point.axis, point.at) for point in points}) == len(points)
    for point in frame.sharp(points):
        assert point.low <= point.value * (1 + 1e-9) and point.value <= point.high * (1 + 1e-9), point
    assert len(frame.sharp(points)) == len(points)


@pytest.mark.parametrize(("change", "flag"), [
    ({"sequences": 3}, "--sequences"), ({"sequences": 2}, "--sequences"), ({"threads": 2}, "--threads"), ({"sequences": 32}, "--vocab"),
    ({"shape": dataclasses.replace(SHAPE, experts=12)}, "--experts"), ({"shape": dataclasses.replace(SHAPE, layers=6)}, "--layers"),
])  # fmt: skip
def test_what_workers_cannot_share_out_is_refused(change, flag):
    with pytest.raises(BadValue, match=flag):
        rack.fitted(dataclasses.replace(SETUP, **change))


def test_a_worker_that_fails_or_ends_is_one_line():
    with WorkerGroup(count=2, memory_bytes=4096) as workers:
        workers.hold({0: Faulty(), 1: Faulty()})
        assert workers.run({0: "a", 1: "b"}) == {0: "a", 1: "b"}
        with pytest.raises(HeadwayError, match="worker 1: ValueError: a fault"):
            workers.run({1: "raise"})
        with pytest.raises(HeadwayError, match=r"worker [01] ended"):
            workers.run({0: "wait", 1: "end"})


PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background without Ctrl-C
from headway.reality.lab.workers import WorkerGroup
from support.rack_part import Sleeper
with WorkerGroup(count=2, memory_bytes=4096) as workers:
    workers.hold({0: Sleeper(), 1: Sleeper()})
    print(workers.segment.name, *[process.pid for process in workers.processes], flush=True)
    workers.run({0: None, 1: None})
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_who_stops_leaves_no_process_and_no_memory(number: signal.Signals):
    """Ctrl-C, which a terminal sends to all; an end that only the process that measures is told of."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          start_new_session=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}) as program:  # fmt: skip
        assert program.stdout is not None
        name, *pids = program.stdout.readline().split()
        (os.killpg if number == signal.SIGINT else os.kill)(program.pid, number)
        program.wait(60)
    for _ in range(1000):  # they end by themselves, a moment later
        if not any(map(runs, pids)) and not is_there(name):
            return
        time.sleep(0.02)
    raise AssertionError("a worker or its memory outlived what began it")


def runs(pid: str) -> bool:
    """Whether a process goes on; one that nobody has asked about since it ended does not."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(OSError):
        return state.read_text().rpartition(")")[2].split()[0] != "Z"
    return not state.parent.parent.is_dir()


def is_there(name: str) -> bool:
    return Path(f"/dev/shm/{name}").exists() if Path("/dev/shm").is_dir() else _opens(name)


def _opens(name: str) -> bool:
    try:
        SharedMemory(name=name).close()
    except FileNotFoundError:
        return False
    return True
