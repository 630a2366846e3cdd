"""Cells of tables of prices and sizes: a spoiled one is told with its line and left out; tables from which nothing follows are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headway.core.errors import BadFile
from headway.economics.inversion.calibration import calibrated, read_examples
from headway.economics.inversion.priors import priors
from support.paths import TESTS

SOLD, SIZES = TESTS / "data/open_models_sold.csv", TESTS / "data/open_models_sizes.csv"
SPOILED = ("nan", "inf", "-inf", "-1", "0", "1e300", "1e-300", "1e9", "x", "1_0", "true", "[1]", "1e400")


def spoiled(source: Path, path: Path, line: int, column: str, value: str | None) -> Path:
    """The table with one cell replaced, or without the line."""
    lines = source.read_text(encoding="utf-8").splitlines()
    if value is None:
        del lines[line]
    else:
        cells = lines[line].split(",")
        cells[lines[0].split(",").index(column)] = value
        lines[line] = ",".join(cells)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("value", SPOILED)
def test_examples__are_those_without_the_line_of_a_spoiled_cell(value: str, tmp_path: Path) -> None:
    for line in (1, 4, 9):
        for column in ("input_usd_per_mtok", "output_usd_per_mtok"):
            notes: list[str] = []
            with_cell = read_examples(spoiled(SOLD, tmp_path / "a.csv", line, column, value), SIZES, notes)
            assert with_cell == read_examples(spoiled(SOLD, tmp_path / "b.csv", line, column, None), SIZES)
            assert len(notes) == 1 and notes[0].startswith(f"a.csv line {line + 1}: {column}: got ")
        for column in ("active_params_b", "total_params_b"):
            notes = []
            with_cell = read_examples(SOLD, spoiled(SIZES, tmp_path / "a.csv", line, column, value), notes)
            assert with_cell == read_examples(SOLD, spoiled(SIZES, tmp_path / "b.csv", line, column, None))
            assert len(notes) == 1 and notes[0].startswith(f"a.csv line {line + 1}: ")


def table(path: Path, prices: list[tuple[float, float]], sizes: list[tuple[float, float]]) -> tuple[Path, Path]:
    """Tables of models m0, m1, ... of a family each."""
    sold, truth = path / "p.csv", path / "s.csv"
    lines = [f"m{at},{price[0]},{price[1]}" for at, price in enumerate(prices)]
    sold.write_text("model,input_usd_per_mtok,output_usd_per_mtok\n" + "\n".join(lines), encoding="utf-8")
    lines = [f"m{at},{active},{total}" for at, (active, total) in enumerate(sizes)]
    truth.write_text("model,active_params_b,total_params_b\n" + "\n".join(lines), encoding="utf-8")
    return sold, truth


def test_tables__from_which_nothing_follows_are_refused_by_name(tmp_path: Path) -> None:
    sizes = [(7.0, 7.0), (70.0, 70.0), (13.0, 13.0), (30.0, 30.0)]
    for prices in ([(1.0, 2.0)] * 4, [(1.0, 2.0)] * 3 + [(2.0, 4.0)], [(1.0, 2.0)] * 2):
        with pytest.raises(BadFile, match=r"different prices|at least 3 families"):
            read_examples(*table(tmp_path, prices, sizes))


def test_calibration__of_dense_models_alone_keeps_the_sparsity_assumed(tmp_path: Path) -> None:
    tables = table(tmp_path, [(0.1, 0.2), (0.9, 1.1), (0.2, 0.3), (0.4, 0.9)], [(7.0, 7.0), (70.0, 70.0), (13.0, 13.0), (30.0, 30.0)])
    with np.errstate(all="raise"):
        basis = calibrated(priors(), read_examples(*tables))
    assert basis.sparsity_spread == priors().sparsity_spread and basis.sparsity_middle == pytest.approx(priors().sparsity_middle)
    assert basis.dense_share == pytest.approx(1.0)
