"""Laws of split arrays and of a full batch against counts by hand: meshes walked, messages passed on, batches played."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from headway.laws.architecture.kv import kv_bytes_per_token
from headway.laws.collectives.topology import axis_exchange_share, one_way_exchange_share, torus_gather_share
from headway.laws.economics.inversion import decode_mfu_of_prices
from headway.laws.roofline.sharding import (
    array_copies,
    decode_tensor_ways,
    gather_over_reduce,
    stationary_1d_bytes,
    stationary_2d_bytes,
    stationary_2d_chips,
)
from headway.laws.serving.room import freed_kv_bytes
from headway.laws.training.run import backward_flop_per_token
from headway.laws.training.step import one_forward_one_backward_bubble, wall_time_share
from headway.models.config import model
from headway.models.totals import kv_bytes_per_token as of_model
from support.command import Cli


def test_copies__are_chips_with_the_same_part_of_the_array() -> None:
    sides = {"X": 2, "Y": 8, "Z": 2}
    for count in range(4):
        for axes in itertools.combinations(sides, count):
            places = itertools.product(*(range(side) for side in sides.values()))
            parts = [tuple(place[list(sides).index(axis)] for axis in axes) for place in places]
            assert array_copies(32, math.prod(sides[axis] for axis in axes)) == parts.count(parts[0])


@pytest.mark.parametrize(("result", "phases"), [("", 2), (" -> C[B, F_X]", 1)])
def test_gather_and_reduce__send_in_the_ratio_of_the_matmul_verb(cli: Cli, result: str, phases: int) -> None:
    sizes = ["B=64", "D=28672", "F=8192", "--peak", "1P", "--from", "1TB/s"]
    ring = ["--mesh", "X8", "--network", "ring", "--link-bw", "45GB/s", "--hop", "0"]
    gather, reduce = (cli.rows("matmul", f"A[B, D_X] W[D, F]{result}", *sizes, *ring, "--strategy", way)[0] for way in ("gather", "reduce"))
    assert gather["network_s"] / reduce["network_s"] == pytest.approx(gather_over_reduce(28672, 8192, phases))


def test_decode_tensor_ways__links_and_memory_take_equal_time() -> None:
    intermediate, hidden, batch, link, memory = 16384, 4096, 32, 9e10, 8.2e11
    for matrices in (2, 3):  # each of bf16, hidden x intermediate / ways; activations of bf16 gathered once, scattered once
        ways = decode_tensor_ways(intermediate, matrices, batch, link, memory)
        assert matrices * 2 * hidden * intermediate / ways / memory == pytest.approx(2 * 2 * batch * hidden / link)
    assert decode_tensor_ways(16384, 2, 32, 1.0, 8.0) == 64  # the book's example: F 16,384, beta 8, batch 32


def test_weight_stationary__two_dimensions_pay_beyond_four_times_the_ratio_of_widths() -> None:
    for hidden, intermediate in ((18432, 73728), (8192, 28672), (4096, 4096)):
        border = stationary_2d_chips(hidden, intermediate)
        for chips in (4, 16, 64, 256):
            shapes = [2 * (hidden / x + intermediate / (chips / x)) for x in (chips ** (step / 400) for step in range(401))]
            best = stationary_2d_bytes(hidden, intermediate, chips, 1.0)
            if shapes.index(min(shapes)) not in (0, 400):  # the best shape is one of the mesh
                assert best == pytest.approx(min(shapes), rel=1e-4)
            assert (best < stationary_1d_bytes(hidden, 1.0)) == (chips > border)


def test_freed_kv__is_what_a_full_batch_frees_on_average() -> None:
    draw, batch, prompt, output = random.Random(20261127), 64, 800, 100
    left, freed, steps = [draw.randint(1, output) for _ in range(batch)], 0, 5000
    for _ in range(steps):
        left = [count - 1 for count in left]
        freed += left.count(0) * (prompt + output)
        left = [count or output for count in left]
    assert freed / steps == pytest.approx(freed_kv_bytes(batch, prompt, output, 1.0), rel=0.02)


def test_one_way_ring__every_link_carries_what_passes_it() -> None:
    for members in (2, 3, 8, 16):
        load = [0] * members
        for start, hops in itertools.product(range(members), range(1, members)):
            for hop in range(hops):
                load[(start + hop) % members] += 1  # each part is 1 / members of a chip's bytes
        assert set(load) == {one_way_exchange_share(members) * members}
        assert torus_gather_share(members, 1) == (members - 1) / members
    assert one_way_exchange_share(1024) / axis_exchange_share(1024, 1, 1) == pytest.approx(4, rel=2e-3)


def test_bubbles__over_compute_and_over_wall_time_are_told_apart() -> None:
    for stages, batches in itertools.product((2, 4, 8), (4, 16, 64)):
        slots = batches + stages - 1  # of the pipeline, each as long as one micro-batch on a stage
        bubble = one_forward_one_backward_bubble(stages, batches)
        assert bubble == pytest.approx((slots - batches) / batches)
        assert wall_time_share(bubble) == pytest.approx((slots - batches) / slots)
    assert "over compute time" in str(one_forward_one_backward_bubble.__doc__)
    assert "over wall time" in str(wall_time_share.__doc__)


def test_small_laws__agree_with_what_is_known() -> None:
    assert kv_bytes_per_token(80, 8, 128, 2.0) == of_model(model("llama-3.1-70b"))
    assert 15e9 + backward_flop_per_token(15e9) == 3 * 15e9
    assert decode_mfu_of_prices(5.0, 0.5) == 0.1
