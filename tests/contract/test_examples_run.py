"""The example of every --help runs, `solve` solves every verb in its list, and documented commands raise no warning."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path

import pytest

from headway import QUESTIONS as VERBS
from headway.core.question import question_of
from headway.serving.questions import solvable as verbs
from support.command import Cli
from support.documented import FILES
from support.each import for_each
from support.flag_walk import SIM
from support.paths import ROOT

EXAMPLES = {verb: question_of(verb).example for verb in VERBS}
HERE = ROOT / "tests" / "contract" / "golden"
ELSEWHERE = ("web", "fit")  # it serves until it is stopped; its folder of kernels no checkout has (tests/cli/test_fit.py)
SOLVED = {
    "plan": "llama-3.1-8b --on h200 --prompt 500 --output 50 --tp 1 --pp 1 --for tpot=10ms..30ms --so-that batch=64",
    "serve": "llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 1k --output 300 --for rate --so-that tpot_s=20ms",
    "sim": f"{SIM.removeprefix('sim ')} --sensitivity 0 --for rate=1..100 --so-that p99_ttft_s=60ms",
    "train": "llama-3.1-8b --on 16xh100-sxm --tp 2 --for tokens --so-that run_s=10d",
    "scale": "--active 100B --months 2 --for serve --so-that tokens=10T",
    "price": "llama-3.1-8b --on h200 --prompt 500 --output 50 --for utilisation --so-that usd_per_request=0.00001",
    "speed": "llama-3.1-8b --on h200 --prompt 500 --output 50 --tp 1 --pp 1 --domains 2 --for eff_memory=0.5..0.6 --so-that step_s=9ms",
    "cache": "llama-3.1-8b --on 8xh200 --hold 1h --mfu 0.4 --for reuse --so-that usd_per_mtok_gain=0",
    "bill": "--sheet claude-opus --prompt 8k --output 500 --requests 100 --rate 2/min --for shared --so-that usd=3",
    "law": "hardware_ratio weight_byte=2 mem_bw=h100.hbm_bw --for peak_flops --so-that 300",
    "matmul": "bf16[B,4096]bf16[4096,4096] --on h100 --for B --so-that compute_s=memory_s",
    "collective": "all-gather 1GB --mesh X8 --on 8xh100 --for link-bw --so-that time_s=1ms",
    "capacity": "llama-3.1-8b --on h200 --batch 4 --for context=1k..100k --so-that chips_exact=0.5",
    "compare": "h100,h200 --for chip.hbm_bw --so-that hbm_bw=2TB/s",
    "rack": "gb200-nvl72 --for chips --so-that star_cables=10000",
    "feistel": "avalanche --for rounds --so-that changed_share=0.4",
}


@pytest.mark.slow
@for_each(sorted(EXAMPLES))
def test_help__its_example_runs(verb: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert EXAMPLES[verb].split()[0] == verb
    if verb in ELSEWHERE:
        return
    monkeypatch.chdir(tmp_path)  # `new` writes a file
    words = [str(HERE / FILES[word]) if word in FILES else word for word in shlex.split(EXAMPLES[verb])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = cli(*words)
    assert (answer.status, answer.err) == (0, "") and answer.out


def test_help__every_verb_has_an_example() -> None:
    assert set(EXAMPLES) == set(VERBS)


@pytest.mark.slow
@for_each(sorted(verbs()))
def test_solve__every_verb_of_its_list_is_solved(verb: str, cli: Cli) -> None:
    """Each has an answer: a crossing, or where the output comes closest."""
    rows = cli.rows("solve", verb, *SOLVED[verb].split())
    assert rows and all(row["solution"] > 0 if "solution" in row else row["result"] for row in rows)


def test_solve__help_of_every_verb(cli: Cli) -> None:
    for verb in verbs():
        assert "--so-that" in cli("solve", verb, "--help").text


def test_solve__own_search_of_a_verb_is_no_flag(cli: Cli) -> None:
    answer = cli(f"solve {SIM} --find rate --for rate --so-that p99_ttft_s=1s")
    assert answer.status == 2 and "--find" in answer.err
