"""A stretch over which a condition holds exactly is one solution, at its first edge."""

from __future__ import annotations

import random

import numpy as np
import pytest

from headway.core.table import Axis, Table
from headway.serving.solve import SolveInput, solve
from support.command import Cli

SEED = 20261125


@pytest.mark.parametrize("draw", range(40))
def test_flat_stretch__first_edge_of_a_drawn_ramp(draw: int) -> None:
    rng = random.Random(SEED + draw)
    edge, slope = rng.uniform(2, 900), rng.choice((-3.0, 0.5, 7.0))

    def at(values: object) -> Table:
        x = np.asarray(values, float)
        return Table((Axis("context", x),), {"step_s": slope * np.maximum(edge - x, 0.0)})

    found = solve(at, SolveInput(name="context", low=1, high=1000, unit=""), "step_s=0")
    crossings = [row["solution"] for row in found.table.rows() if row["is"] == "crossing"]
    assert crossings == [pytest.approx(edge, rel=1e-6)]


@pytest.mark.parametrize("draw", range(20))
def test_flat_stretch__first_edge_of_a_count_that_is_scanned_sparsely(draw: int) -> None:
    rng = random.Random(SEED + draw)
    edge, values = rng.randint(2, 3000), tuple(float(number) for number in range(1, 4097))

    def at(numbers: object) -> Table:
        x = np.asarray(numbers, float)
        return Table((Axis("chips", x),), {"step_s": np.maximum(edge - x, 0.0)})

    found = solve(at, SolveInput(name="chips", low=1, high=4096, is_count=True, only=values, unit="", points=12), "step_s=0")
    assert min(row["solution"] for row in found.table.rows() if row["step_s"] == 0) == edge
    assert {row["solution"] for row in found.table.rows()} <= {edge - 1, edge}


def test_room_of_a_machine__ends_where_it_is_full(cli: Cli) -> None:
    (full,) = [row for row in cli.rows("solve capacity llama-3.1-70b --on 8xh100-sxm --for context --so-that room_bytes=0")
               if row["is"] == "crossing"]  # fmt: skip
    rows = [cli.rows(f"capacity llama-3.1-70b --on 8xh100-sxm --context {int(full['context']) + step}")[0] for step in (-1, 0)]
    assert rows[0]["room_bytes"] > 0 and rows[1]["room_bytes"] == 0
