"""`headway fits`: public figures of home machines, the same numbers as serve's, the rule of one row a model, and refusals."""

from __future__ import annotations

import csv
import statistics
from typing import Any

import pytest

from support.command import Answer, Cli
from support.paths import DATA

FIGURES = list(csv.DictReader((DATA / "home_machines.csv").read_text().splitlines()))


def words_of(row: dict[str, str]) -> str:
    offload = "" if row["offload"] == "none" else " --offload experts"
    return f"fits {row['model']} --on {row['machine']} --weights {row['weights']}{offload} --context {row['context'] or 256}"


def test_fits__public_figures_of_home_machines(cli: Cli) -> None:
    """Decode within 20 % in the median of ten figures, listed before the first answer (tests/data/home_machines.csv)."""
    assert len(FIGURES) == 10 and len({row["url"].split("/")[2:5][-1] for row in FIGURES}) >= 3
    page, errors = (DATA.parents[1] / "docs" / "fits.md").read_text(), []
    for row in FIGURES:
        answer = next(entry for entry in cli.rows(words_of(row)) if entry["offload"] == row["offload"])
        assert answer["fits"], row
        speed, low, high = (f"{answer[f'tok_per_s_user{end}']:.3g}" for end in ("", "_lo", "_hi"))
        published = float(row["tok_per_s"])
        printed = f"| {published:g} | {speed} ({low} .. {high}) | {answer['tok_per_s_user'] / published - 1:+.0%} |"
        assert printed in page, f"docs/fits.md has no line with {printed}"
        errors.append(abs(answer["tok_per_s_user"] / published - 1))
    assert statistics.median(errors) <= 0.20, [f"{error:.0%}" for error in errors]


@pytest.mark.parametrize(
    ("fits", "serve"),
    [
        ("llama-3.1-8b --on rtx3090 --weights q4_k_m", "llama-3.1-8b --on rtx3090 --weights q4_k_m"),
        ("qwen3-30b-a3b --on 2xrtx3090 --weights q8_0 --offload none", "qwen3-30b-a3b --on 2xrtx3090 --weights q8_0 --pp 2"),
        (
            "gpt-oss-120b --on rtx3090 --offload experts",
            "gpt-oss-120b --on rtx3090 --weights mxfp4_moe --offload experts --set chip.host_link_bw=89.6GB/s",
        ),
    ],
)
def test_fits__equals_serve(fits: str, serve: str, cli: Cli) -> None:
    (row,), (point,) = cli.rows(f"fits {fits} --context 4k"), cli.rows(f"serve {serve} --context 4k --engine llamacpp")
    assert row["step_s"] == pytest.approx(point["step_s"], rel=1e-12) and row["step_hi_s"] == pytest.approx(point["step_hi_s"], rel=1e-12)
    assert row["tok_per_s_user"] == pytest.approx(point["tok_per_s_user"], rel=1e-12) and row["fits"] == point["fits"]


def test_fits__room_is_the_longest_context_that_fits(cli: Cli) -> None:
    (row,) = cli.rows("fits qwen2.5-32b --on rtx3090 --weights q4_k_m")
    room = int(row["largest_context"])
    at, beyond = (cli.rows(f"fits qwen2.5-32b --on rtx3090 --weights q4_k_m --context {context}")[0] for context in (room, room + 1))
    assert at["fits"] and not beyond["fits"] and "usable" in beyond["why"] and beyond["tok_per_s_user"] is None


@pytest.fixture(scope="module")
def card() -> list[dict[str, Any]]:
    return Answer.of(["fits", "--on", "rtx3090", "--since", "2026-01", "-o", "json"]).rows


def test_fits__one_row_a_model_the_largest_that_keeps_the_pace_first(card: list[dict[str, Any]]) -> None:
    names = [row["model"] for row in card]
    assert len(names) == len(set(names)) > 5 and all(row["fits"] for row in card)
    fast = [row for row in card if row["tok_per_s_user"] >= 10]
    sizes = [row["total_params"] for row in fast]
    assert card[: len(fast)] == fast and sizes == sorted(sizes, reverse=True)
    assert all(row["released"] >= "2026-01" for row in card)


def test_fits__the_widest_format_that_keeps_the_pace(card: list[dict[str, Any]], cli: Cli) -> None:
    """What the row of a model says is the first of its formats that does, in the order in which they are tried."""
    row = next(row for row in card if row["model"] == "qwen3.5-27b" or row["offload"] == "none")
    ways = cli.rows(f"fits {row['model']} --on rtx3090")
    first = next(way for way in ways if way["fits"] and way["tok_per_s_user"] >= 10)
    assert (first["weights"], first["offload"]) == (row["weights"], row["offload"])


def test_fits__more_memory_runs_no_model_less(card: list[dict[str, Any]], cli: Cli) -> None:
    larger = {row["model"] for row in cli.rows("fits --on rtx3090 --since 2026-01 --set chip.hbm_reported=60GiB")}
    assert {row["model"] for row in card} <= larger


def test_fits__a_host_with_less_memory_runs_fewer_experts(cli: Cli) -> None:
    (row,) = cli.rows("fits gpt-oss-120b --on rtx3090 --offload experts --set chip.host_dram=32GB")
    assert not row["fits"] and "of memory of the host" in row["why"]


def test_fits__this_machine(cli: Cli) -> None:
    answer = cli("fits", "qwen3-0.6b")
    assert answer.status == 0 and "this machine:" in cli("fits", "qwen3-0.6b", "--verbose").out


@pytest.mark.parametrize(
    ("words", "wants"),
    [
        ("fits --on rtx3090,rtx4090", "one machine"),
        ("fits --on rtx3090 --since 2031-01", "of the newest model"),
        ("fits --on rtx3090 --since May", "2025-01"),
        ("fits llama-3.1-8b --on rtx3090 --since 2024-01", "no model named"),
        ("fits llama-3.1-8b --on rtx3090 --pace 5", "pace"),
        ("fits llama-3.1-8b --on rtx3090 --context 4k,8k", "context"),
        ("fits no-such-model --on rtx3090", "no-such-model"),
        ("fits --on no-such-card", "no-such-card"),
        ("fits llama-3.1-8b --on rtx3090 --offload experts", "routed experts"),
    ],
)
def test_fits__wrong_input_is_one_line(words: str, wants: str, cli: Cli) -> None:
    answer = cli(*words.split())
    assert answer.status == 2 and wants in answer.err and len(answer.err.strip().splitlines()) == 1
