"""Grids of `serve`: several models and machines in one command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.answers.serve import grid_of
from headway.cli.main import parsed
from support.command import Cli

LOAD = "--on 8xh100-sxm --tp 8 --batch 8 --context 4k"


@pytest.mark.parametrize("picture", ["--picture batch", "--picture roofline", "--picture stages", ""])
def test_picture__is_of_the_row_that_where_kept(cli: Cli, tmp_path: Path, picture: str) -> None:
    """Of two models the second is kept: the picture is that of a command with the second alone."""
    drawn = f"{LOAD} {picture} --plot"
    cli(f"serve llama-3.1-8b,llama-3.1-70b {drawn} {tmp_path}/kept.svg --where model=llama-3.1-70b")
    cli(f"serve llama-3.1-70b {drawn} {tmp_path}/alone.svg")
    kept, alone = (re.sub(r"clip\d+", "clip", (tmp_path / f"{name}.svg").read_text()) for name in ("kept", "alone"))
    assert kept == alone


def test_case_of__tells_edited_machines_and_assumptions_apart() -> None:
    args, _ = parsed(["serve", "llama-3.1-8b", *["--on", "h100,h200", "--context", "4k", "--hbm-utilization", "0.8,0.9", "--batch", "1,2"]])
    grid = grid_of(args)
    cases = grid.cases()
    assert len(cases) == 4
    for case in cases:
        row = {"model": case.model.name, "system": case.system.name, **case.labels, "batch": 2}
        assert grid.case_of(row) is not None and grid.case_of(row) == case
        assert float(case.complete_assumptions().hbm_utilization) == float(row["hbm_utilization"])
