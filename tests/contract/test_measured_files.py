"""Every measured file: a spoiled cell is told with its line and changes nothing else. `make fuzz` asks thousands of cases."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.file_fuzz import FileKind, Judge, Spoiled, draw, kinds

pytestmark = pytest.mark.usefixtures("proposals_once")

KINDS = {kind.name: kind for kind in kinds()}
QUICK = [name for name in KINDS if not name.endswith("sim") and name not in ("prices", "sizes")]
NAN = {True: "nan", False: float("nan")}  # by whether the file is a table


def spoiled(kind: FileKind, column: str) -> Spoiled:
    """A case of a NaN in one column."""
    return Spoiled(kind=kind, line=len(kind.lines) // 2, column=column, value=NAN[bool(kind.columns)], certain=True)


@pytest.mark.parametrize("name", QUICK)
def test_measured_file__a_nan_in_any_column_is_told_and_left_out(name: str, tmp_path: Path) -> None:
    judge, kind = Judge(tmp_path), KINDS[name]
    verdicts = {column: judge.verdict(spoiled(kind, column)) for column in kind.read}
    assert {column: verdict for column, verdict in verdicts.items() if verdict} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_measured_file__drawn_cells_are_told_and_left_out(name: str, tmp_path: Path) -> None:
    judge, rng = Judge(tmp_path), random.Random(name)
    cases = [draw(rng, KINDS[name]) for _ in range(2)]
    verdicts = {str(case): judge.verdict(case) for case in cases}
    assert {case: verdict for case, verdict in verdicts.items() if verdict} == {}
