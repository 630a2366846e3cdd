"""`sim --plan`: a saved plan is played as its own flags say, and its limits are judged on what was simulated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import Cli

PLAN = "plan llama-3.1-8b --on h100-sxm --rate 20 --prompt 1000 --output 100 --engine vllm --ttft 1s --tpot 30ms -o json"
SHORT = "--requests 300 --sensitivity 0 --loop plain"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    path.write_text(Cli()(PLAN).text, encoding="utf-8")
    return path


def edited(plan: Path, folder: Path, change: dict[str, Any], row: dict[str, Any] | None = None) -> Path:
    answer = json.loads(plan.read_text(encoding="utf-8")) | change
    answer["rows"][0] |= row or {}
    path = folder / "edited.json"
    path.write_text(json.dumps(answer), encoding="utf-8")
    return path


def test_plan__plays_what_its_flags_typed_by_hand_play(cli: Cli, plan: Path) -> None:
    row = json.loads(plan.read_text(encoding="utf-8"))["rows"][0]
    degrees = " ".join(f"--{name} {row[name]}" for name in ("tp", "dp", "pp", "replicas"))
    typed = cli(
        f"sim llama-3.1-8b --on {row['system']} {degrees} --rate 20 --prompt 1000 --output 100 --engine vllm --kv {row['kv']} "
        f"{SHORT} -o json"
    ).rows[0]
    played = cli(f"sim --plan {plan} {SHORT} -o json").rows[0]
    for key in ("p95_ttft_s", "p95_tpot_s", "p99_itl_s", "capacity_req_per_s", "kv_tokens", "chips", "weights", "compute"):
        assert played[key] == typed[key]


def test_plan__first_sentence_is_the_verdict(cli: Cli, plan: Path) -> None:
    text = cli(f"sim --plan {plan} {SHORT}").text
    row = cli(f"sim --plan {plan} {SHORT} -o json").rows[0]
    is_met = row["mean_ttft_s"] <= 1.0 and row["mean_tpot_s"] <= 0.03
    assert row["limits_met"] == is_met
    assert text.startswith("Every limit is met: mean TTFT") == is_met
    assert len(text.splitlines()[0].split()) <= 30
    assert 0.0 <= row["tpot_within"] <= 1.0 and row["ttft_within"] == 1.0


def test_plan__overload_breaks_every_limit(cli: Cli, plan: Path) -> None:
    answer = cli(f"sim --plan {plan} --rate 2000 {SHORT}")
    row = cli(f"sim --plan {plan} --rate 2000 {SHORT} -o json").rows[0]
    assert answer.text.startswith("Overloaded: load is ") and "no limit is met" in answer.text.splitlines()[0]
    assert row["limits_met"] is False and row["tpot_within"] is None


def test_plan__limits_hold_under_fresh_requests(cli: Cli, tmp_path: Path) -> None:
    """Prompts of others count: decode steps alone are far below the limit, and the TPOT that users see keeps it on another seed."""
    path = tmp_path / "plan.json"
    limits = "--tpot 40ms --ttft-p95 2s"
    path.write_text(cli(f"plan llama-3.1-8b --on h100-sxm --rate 60 --prompt 4k --output 150 {limits} -o json").text, encoding="utf-8")
    row = json.loads(path.read_text(encoding="utf-8"))["rows"][0]
    assert row["tpot_s"] > 1.3 * row["tpot_decode_s"]
    fresh = cli(f"sim --plan {path} --seed 11 --requests 1500 --sensitivity 0 --loop plain -o json").rows[0]
    assert fresh["limits_met"] is True
    assert row["tpot_decode_s"] < fresh["mean_tpot_s"] <= 0.04 and fresh["p95_ttft_s"] <= 2.0


def test_plan__without_a_load_its_full_batches_are_played(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(cli("plan llama-3.1-8b --on h100-sxm --prompt 1k --output 50 --batch 8 -o json").text, encoding="utf-8")
    answer = cli(f"sim --plan {path} --requests 100 --sensitivity 0 --loop plain -o json")
    assert answer.rows[0]["users"] == json.loads(path.read_text(encoding="utf-8"))["rows"][0]["concurrency"]
    assert answer.rows[0]["limits_met"] is True
    assert "has no limits" in cli(f"sim --plan {path} --requests 100 --sensitivity 0 --loop plain").text.splitlines()[0]


def test_plan__hit_rate_shortens_prefill(cli: Cli, tmp_path: Path) -> None:
    ttft = {}
    for hit in ("0", "0.9"):
        path = tmp_path / f"plan{hit}.json"
        words = "plan llama-3.1-8b --on h100-sxm --rate 2 --prompt 8k --output 20 --tp 1"
        path.write_text(cli(f"{words} --hit-rate {hit} -o json").text, encoding="utf-8")
        ttft[hit] = cli(f"sim --plan {path} --requests 60 --sensitivity 0 --loop plain -o json").rows[0]["p50_ttft_s"]
    assert ttft["0.9"] < 0.3 * ttft["0"]


@pytest.mark.parametrize(
    ("words", "wants"),
    [
        ("sim --plan {plan} llama-3.1-8b", "no --plan beside it"),
        ("sim --plan {plan} --tp 8", "--tp: got '8'; wants no --plan beside it"),
        ("sim --plan {plan} --prompt 2k", "the plan holds it"),
        ("sim --plan {plan} --engine sglang", "the plan holds it"),
        ("sim --plan {plan} --rate 1,2", "one --rate"),
        ("sim --plan absent.json", "absent.json: cannot be read"),
        ("sim", "or --plan FILE.json"),
        ("sim llama-3.1-8b --rate 1 --prompt 10 --output 10", "or --plan FILE.json"),
        ("sim llama-3.1-8b --on h100 --rate 1 --prompt 10 --output 10 --hit-rate 0.5 --prefix-cache hbm:1GB", "either a hit rate"),
    ],
)
def test_plan__wrong_words_are_one_line(cli: Cli, plan: Path, words: str, wants: str) -> None:
    answer = cli(words.format(plan=plan))
    assert answer.status == 2 and wants in answer.err and answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "row", "wants"),
    [
        ({"command": ["headway", "serve", "x"]}, None, "is an answer of `serve`"),
        ({"command": ["headway", "plan", "llama-3.1-8b", "--no-such-flag", "1"]}, None, "no longer one of `plan`"),
        ({"command": ["headway"]}, None, "cannot be read as a plan"),
        ({}, {"tp": None}, "its best row lacks"),
        ({}, {"fits": False, "why": "too big"}, "does not fit: too big"),
        ({}, {"kind": "frontier"}, "holds 0 best layouts"),
    ],
)
def test_plan__other_files_are_refused(
    cli: Cli, plan: Path, tmp_path: Path, change: dict[str, Any], row: dict[str, Any] | None, wants: str
) -> None:
    answer = cli(f"sim --plan {edited(plan, tmp_path, change, row)} {SHORT}")
    assert answer.status == 2 and wants in answer.err and answer.err.count("\n") == 1


def test_plan__every_column_has_a_sentence(cli: Cli, plan: Path) -> None:
    columns = cli(f"sim --plan {plan} {SHORT} -o json").columns
    assert all(columns[key]["doc"] for key in ("limits_met", "ttft_within", "tpot_within"))
