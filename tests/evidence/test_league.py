"""The league of predictors on five rows: figures by hand, tools that are not here, and rows whose measured cells nobody sees."""

from __future__ import annotations

import csv
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.tools import tool

HEAD = "id,model,hardware,n_chips,engine,mode,tp,isl,osl,context_len,batch_or_concurrency,tpot_ms,reliability,date"
ROWS = [  # an id, the measured TPOT, reliability, month
    ("a", 8.0, "A", "2026-01"), ("b", 10.0, "A", "2026-02"), ("c", 12.5, "B", "2026-03"),
    ("d", 20.0, "A", "2026-04"), ("e", 10.0, "C", "2026-04"),
]  # fmt: skip
PREDICTED = """id,tpot_ms,tpot_ms_lo,tpot_ms_hi,why
a,10,9,11,
b,10,9,11,
c,10,9,13,
d,,,,no table for it
e,10,9,11,
"""
BLIND = """import csv, sys
for line in csv.DictReader(open(sys.argv[1])):
    assert line["model"] and not line["tpot_ms"], line
print("id,tpot_ms")
"""


@pytest.fixture(scope="module")
def league() -> ModuleType:
    return tool("league", "bench")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    setup = "Qwen/Qwen3-32B,H100-SXM-80GB,1,vLLM,decode_step,1,1000,100,1000,8"
    lines = [f"{name},{setup},{tpot},{grade},{date}" for name, tpot, grade, date in ROWS]
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    return path


def test_league__figures_are_those_by_hand(league: ModuleType, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(PREDICTED)
    mine = league.ask("mine", f"cat {shlex.quote(str(tmp_path / 'mine.csv'))}", rows)
    members = list(league.points(league.read_rows(rows)[0]))
    assert [point.id + point.quarter for point in members] == ["a2026-Q1", "b2026-Q1", "c2026-Q1", "d2026-Q2"]  # e is of grade C
    # |10/8 - 1|, 0 and |10/12.5 - 1| are 25, 0 and 20 %: their median is 20, their 90th percentile 20 + 0.8 x 5; 8 lies outside 9 .. 11
    assert league.figures(members, mine) == ("3", "1", "20.0%", "24%", "67%")
    cluster = "vLLM x h100_sxm x qwen3-32b"
    assert list(league.by(members, [mine], "quarter", "cluster", "measure")) == [
        ["2026-Q2", cluster, "decode", "mine", "0", "1", "-", "-", "-"],
        ["2026-Q1", cluster, "decode", "mine", "3", "0", "20.0%", "24%", "67%"],
    ]  # fmt: skip
    assert list(league.unable(members, mine)) == [["mine", "1", "no table for it"]]


def test_league__page_names_every_tool_and_headway_is_one(league: ModuleType, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "blind.py").write_text(BLIND)
    (tmp_path / "gone.py").write_text("import sys\nsys.exit('no such module' and 69)\n")
    argv = [str(rows), "--into", str(tmp_path / "league.md"), "--least", "1"]
    for name in ("blind", "gone"):
        argv += ["--tool", f"{name}={sys.executable} {tmp_path / name}.py {{rows}}"]
    with pytest.raises(SystemExit, match="blind: wrote no CSV with a column id"):
        league.main(argv)  # it saw no measured cell, or it would have failed by its assertion, and has no line
    (tmp_path / "blind.py").write_text(BLIND + 'print("a,9")\n')
    league.main(argv)
    page = (tmp_path / "league.md").read_text()
    assert "Not here: gone (not installed)." in page and "4 rows, 4 measurements" in page
    assert "| decode | blind | 1 | 0 | 12.5% | 12% | none given |" in page  # |9/8 - 1|, asked of one row


def test_league__rows_for_tools_keep_their_conditions(league: ModuleType, rows: Path, tmp_path: Path) -> None:
    with league.without_measurements([str(rows)], tmp_path / "thin.csv", 2).open() as file:
        lines = list(csv.DictReader(file))
    assert [(line["id"], line["isl"], line["tpot_ms"]) for line in lines] == [("a", "1000", ""), ("c", "1000", ""), ("e", "1000", "")]
