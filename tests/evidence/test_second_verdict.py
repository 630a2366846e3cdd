"""The second verdict of claims, from files of saved runs that are written by hand here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import BadFile
from headway.evidence.claims.second_verdict import second_verdicts
from support.command import Cli

POINTS = [("step", "RB-06", 1.0, 2.0), ("step", "RB-06", 2.0, 2.0), ("step", "RB-06", 4.0, 2.0), ("step", "RB-06", 8.0, 2.0),
          ("knee", "RB-10", 1.0, 2.0), ("no claim", "", 1.0, 2.0)]  # fmt: skip


def saved(path: Path, values: list[float | None], reasons: tuple[str, ...] = (), **edits: Any) -> str:
    """A run as `lab --save` writes it: every interval from 1 to 3, the hash over what was predicted alone."""
    points = [
        {"quantity": quantity, "claim": claim, "unit": "s", "at": at, "value": value, "low": 1.0, "high": 3.0}
        for quantity, claim, at, value in POINTS
    ]
    sha256 = hashlib.sha256(json.dumps(points, sort_keys=True).encode()).hexdigest()
    measured = [point | ({} if value is None else {"measured": value, "spread": 0.0}) for point, value in zip(points, values, strict=True)]
    document = {"experiment": "batch", "date": "2026-11-27", "machine": "a machine", "setup": {}, "predictions_sha256": sha256,
                "calibration": {}, "noise": {"load": 0.0, "cores": 2, "reasons": reasons}, "facts": {}, "interrupted": False,
                "points": measured}  # fmt: skip
    path.write_text(json.dumps(document | edits))
    return str(path)


@pytest.mark.parametrize(("values", "verdict", "inside"), [
    ((2, 2, 2, 2), "agrees", 4), ((2, 2, 3, 9), "agrees", 3), ((2, 1, 9, 9), "differs", 2), ((0.5, None, None, 2), "differs", 1),
])  # fmt: skip
def test_three_of_four_points_inside_agree(tmp_path: Path, values, verdict, inside):
    second = second_verdicts([saved(tmp_path / "run.json", [*values, 2, 2])])
    assert set(second) == {"RB-06", "RB-10"}
    assert (second["RB-06"].verdict, second["RB-06"].inside) == (verdict, inside)
    assert second["RB-06"].points == sum(value is not None for value in values)


def test_a_noisy_or_interrupted_run_gives_no_verdict_and_a_quiet_one_beside_it_decides(tmp_path: Path):
    noisy = saved(tmp_path / "noisy.json", [9] * 6, ("a load of 3.0 on 2 cores before it began",))
    stopped = saved(tmp_path / "stopped.json", [2, None, None, None, None, None], interrupted=True)
    second = second_verdicts([noisy, stopped])
    assert [second[claim].verdict for claim in ("RB-06", "RB-10")] == ["no verdict"] * 2
    assert "load of 3.0" in second["RB-06"].runs[0].why_none and "interrupted" in second["RB-06"].runs[1].why_none
    saved(tmp_path / "quiet.json", [2] * 6)
    joint = second_verdicts([str(tmp_path)])["RB-06"]
    assert (joint.verdict, joint.inside, joint.points, len(joint.runs)) == ("agrees", 4, 4, 3)


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path):
    path = saved(tmp_path / "run.json", [2] * 6)
    assert len(second_verdicts([path, str(tmp_path), path])["RB-06"].runs) == 1


@pytest.mark.parametrize("key", ["value", "low", "high", "at", "claim"])
def test_predictions_that_were_edited_are_refused(tmp_path: Path, cli: Cli, key):
    path = tmp_path / "run.json"
    saved(path, [9] * 6)
    document = json.loads(path.read_text())
    document["points"][0][key] = "RB-10" if key == "claim" else 100.0
    path.write_text(json.dumps(document))
    answer = cli("lecture", "RB-06", "--measured", str(path))
    assert (answer.status, answer.err.count("\n")) == (2, 1) and "edited" in answer.err


@pytest.mark.parametrize("text", ["[]", "{}", '{"experiment": "batch", "points": [1]}', '{"experiment": "other", "points": []}', "no JSON",
                                  '{"experiment": "batch", "points": [{"quantity": "a", "claim": "b", "unit": ""}]}'])  # fmt: skip
def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path, text):
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(BadFile, match="lab"):
        second_verdicts([str(path)])


def test_a_folder_without_runs_is_refused(tmp_path: Path):
    with pytest.raises(BadFile, match="lab"):
        second_verdicts([str(tmp_path)])


def test_every_page_of_claims_says_what_was_measured(tmp_path: Path, cli: Cli):
    flag = ("--measured", saved(tmp_path / "run.json", [2, 2, 2, 9, 9, 2]))
    for page in ((), ("1",), ("RB",)):
        assert "RB-06 agrees" in cli("lecture", *page, *flag).text and "RB-10 differs" in cli("lecture", *page, *flag).text
    page = cli("lecture", "RB-06", *flag).text
    assert "measured here: agrees, 3 of 4 points" in page and "a machine, 2026-11-27" in page
    assert "none of these" in cli("lecture", "6", *flag).text and "none of these" in cli("lecture", "AP-15", *flag).text
    (row,) = cli.rows("lecture", "RB-10", *flag)
    assert (row["measured_here"], row["inside_here"], row["points_here"]) == ("differs", 0, 1) and row["runs_here"][0]["file"] == "run.json"
    assert "measured_here" not in cli.rows("lecture", "RB-10")[0]
    assert [row["id"] for row in cli.rows("lecture", *flag, "--where", "measured_here=agrees")] == ["RB-06"]


@pytest.mark.parametrize("words", [("quiz",), ("--disputed",), ("RB-10", "--with", "total=1T"), ("--model", "x", "--on", "8xh200")])
def test_pages_without_claims_refuse_it(tmp_path: Path, cli: Cli, words):
    answer = cli("lecture", *words, "--measured", saved(tmp_path / "run.json", [2] * 6))
    assert (answer.status, answer.err.count("\n")) == (2, 1) and "--measured" in answer.err
