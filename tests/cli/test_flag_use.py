"""Flags that would be ignored are refused with the reason: never looked at, empty, or without effect on any number."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

import headway as hw
from headway import QUESTIONS as VERBS
from headway.cli.main import parser_of
from headway.core.errors import BadValue
from support.command import Cli
from support.each import for_each

DENSE = "serve llama-3.1-8b --on h200 --context 4k --batch 4"
SIM = "sim llama-3.1-8b --on h200 --prompt 500 --output 50 --requests 20 --loop plain"
EDITS = ["--set chip.hbm_bw=1TB/s", "--attention window:4k", "--kv-share 4"]
EDITED_BY_NONE = [
    "list models",
    "list chips",
    "list sheets",
    "trend chips",
    "price --case deepseek-day6",
    "lecture RB-10",
    "feistel",
]


def refused(cli: Cli, command: str) -> str:
    answer = cli(command)
    assert (answer.status, answer.out) == (2, ""), answer
    assert answer.err.count("\n") == 1
    return answer.err


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("command", EDITED_BY_NONE)
def test_edits__of_nothing_are_refused(cli: Cli, command: str, edit: str) -> None:
    assert edit.split()[0] in refused(cli, f"{command} {edit}")


@pytest.mark.parametrize(
    "command",
    [
        "show chip h200 --context 5", "show model llama-3.1-8b --set chip.hbm_bw=1TB/s", f"{SIM} --users 4 --arrivals even",
        f"{SIM} --rate 2 --reload cost", f"{SIM} --rate 2 --routing least-loaded", f"{DENSE} --hit-rate 0.9",
        f"{SIM} --users 4 --replicas 2 --routing least-loaded", f"{SIM} --users 4 --policy disaggregated --routing least-loaded",
        f"{SIM} --rate 2 --policy disaggregated --replicas 2 --routing least-loaded",
        f"{SIM} --rate 2 --policy disaggregated --prefill-replicas 2 --routing round-robin",
        f"{SIM} --rate 2 --policy disaggregated --prefill-replicas 2 --routing ROUND-ROBIN",
    ],
)  # fmt: skip
def test_flags__of_other_questions_are_refused(cli: Cli, command: str) -> None:
    assert command.split()[-2] in refused(cli, command)


@pytest.mark.parametrize(
    "flag",
    ["--imbalance 3", "--dispatch-bytes 2", "--state-bytes 4", "--alpha-exchange 1us", "--alpha-out 1us", "--alpha-hop 2us",
     "--eff-in-switch 0.5"],
)  # fmt: skip
def test_assumptions__without_effect_are_refused_and_with_effect_are_not(cli: Cli, flag: str) -> None:
    assert "changes no number" in refused(cli, f"{DENSE} {flag}")
    several = {
        "--state-bytes": "serve qwen3-next-80b-a3b --on 2xh200 --tp 2 --context 4k --batch 4",
        "--alpha-hop": "serve llama-3.1-70b --on 16xtpu-v5p --tp 8 --context 4k --batch 4",
        "--eff-in-switch": "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 4k --batch 64",
        "--alpha-out": "serve deepseek-v3 --on 32xh100-sxm --tp 16 --ep 16 --context 4k --batch 64",
    }
    routed = "serve deepseek-v3 --on 8xh200 --dp 8 --ep 8 --context 4k --batch 64"
    assert cli(f"{several.get(flag.split()[0], routed)} {flag}").status == 0


@pytest.mark.parametrize("flag", ["--imbalance 3", "--state-bytes 4", "--alpha-exchange 1us", "--alpha-hop 2us"])
def test_assumptions__without_effect_on_any_layout_are_refused_in_a_search_and_a_simulation(cli: Cli, flag: str) -> None:
    load = "--on 2xh200 --prompt 500 --output 50"
    for command in (f"plan llama-3.1-8b {load}", f"plan llama-3.1-8b {load} --rate 2 --no-check", f"{SIM} --rate 2"):
        assert "changes no number" in refused(cli, f"{command} {flag}")
    model = {"--alpha-hop": "llama-3.1-8b --on 16xtpu-v5p", "--state-bytes": "qwen3-next-80b-a3b --on 2xh200"}
    routed = model.get(flag.split()[0], "qwen3-30b-a3b --on 2xh200")
    assert cli(f"plan {routed} --prompt 500 --output 50 {flag}").status == 0


@pytest.mark.parametrize(
    "command",
    [
        "price llama-3.1-8b --on h200 --prompt 4k --output 1k", "speed llama-3.1-8b --on h200 --prompt 4k --output 1k",
        "cache llama-3.1-8b --on h200 --reuse 0.5 --hold 1h",
        "solve serve llama-3.1-8b --on 8xh200 --prompt 4k --output 100 --batch 8 --for tp --so-that tpot_s=5ms",
    ],
)  # fmt: skip
def test_assumptions__without_effect_are_refused_wherever_layouts_are_searched(cli: Cli, command: str) -> None:
    assert "changes no number" in refused(cli, f"{command} --imbalance 3")
    assert cli(f"{command} --eff-memory 0.7").status == 0
    if command.startswith(("price", "speed")):
        assert cli(f"{command} --hit-rate 0.5").status == 0


def test_plan__an_assumption_of_layouts_that_lose_counts(cli: Cli) -> None:
    """The best layout of a small model is one chip, but the search weighed others."""
    assert cli("plan llama-3.1-8b --on 8xh200 --prompt 500 --output 50 --alpha 2us").status == 0
    assert cli("plan llama-3.1-8b --on h200 --prompt 500 --output 50 --rate 2 --no-check --alpha 2us").status == 0


@pytest.mark.parametrize(
    "flag", ["--imbalance 2", "--imbalance 2,3", "--sync 20us", "--eff-recurrence 0.3", "--hidden-ep 0.3"]
)
def test_train__a_value_that_changes_no_layout_is_refused(cli: Cli, flag: str) -> None:
    run = "--tokens 1T --seq 8k --global-batch 4M"
    assert "changes no number" in refused(cli, f"train llama-3.1-8b --on 64xh100-sxm {run} {flag}")
    assert "does not divide" in refused(cli, f"train llama-3.1-8b --on 64xh100-sxm {run} {flag} --tp 3")
    model = {"--eff-recurrence": "ai21-jamba-1.5-mini"}.get(flag.split()[0], "qwen3-30b-a3b")
    beside = "--mtbf 50000h" if "restart" in flag else ""
    assert cli(f"train {model} --on 64xh100-sxm {run} {flag} {beside}").status == 0


def test_default__typed_out_is_no_mistake(cli: Cli) -> None:
    assert cli(f"{DENSE} --activation-bytes 2").status == 0
    assert cli("train llama-3.1-8b --on 64xh100-sxm --dropout 0 --captured 0").status == 0


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("serve llama-3.1-8b --on h100-sxm --context 4k", "--set chip.hbm_bw=3.35TB/s"),
        ("serve llama-3.1-8b --on 8xh100-sxm --tp 8 --context 4k", "--set system.scale_out_bw=10GB/s"),
        ("serve llama-3.1-8b --on h200 --context 4k", "--attention dense"), ("serve llama-3.1-8b --on h200 --context 4k", "--kv-share 1"),
        ("serve llama-3.1-8b --on h200 --context 4k", "--key num_hidden_layers=32"),
        ("serve llama-3.1-8b --on h200 --context 4k", "--embedding bf16"),
        ("plan llama-3.1-8b --on 8xh100-sxm --prompt 500 --output 50 --tp 1 --pp 1", "--set system.scale_out_bw=10GB/s"),
        ("plan llama-3.1-8b --on h100-sxm --prompt 500 --output 50", "--alpha 37us"),
        ("price llama-3.1-8b --on h100-sxm --prompt 500 --output 50", "--alpha 37us"),
        (f"{SIM} --users 4", "--set system.scale_out_bw=10GB/s"),
        ("train llama-3.1-8b --on 8xh100-sxm", "--set system.scale_out_bw=10GB/s"),
        ("price --memory-share gb200-nvl72", "--set chip.hbm_bw=3TB/s"), ("capacity deepseek-v3 --on 8xh200 --context 8k", "--weights fp8"),
        ("collective all-gather 1GB --mesh X8 --on 8xh100", "--out-bw 3GB/s"),
    ],
)  # fmt: skip
def test_value__that_happens_to_change_nothing_is_answered_with_a_note(cli: Cli, command: str, value: str) -> None:
    plain, answer = cli.json(command), cli.json(f"{command} {value}")
    numbers = [{key: row[key] for key in before if key != "wall_s"} for row, before in zip(answer["rows"], plain["rows"], strict=True)]
    assert numbers == [{key: value for key, value in row.items() if key != "wall_s"} for row in plain["rows"]]
    assert any(note.startswith(f"no effect: {value}") for note in answer["notes"]), answer["notes"]


@pytest.mark.parametrize(
    "values",
    ["--tp 1 --pp 1 --cp 1 --dp 1 --replicas 1", "--weights bf16 --kv bf16 --compute bf16", "--overlap fitted --communication exposed",
     "--engine other --hbm-utilization 0.9 --fixed 1 --accept-length 1 --draft-cost 0 --activation-bytes 2 --alpha-hop 1us",
     "--price-metric rental_on_demand", "--batch 4"],
)  # fmt: skip
def test_default__typed_out_is_legal_and_the_same_answer(cli: Cli, values: str) -> None:
    command = DENSE.replace(" --batch 4", "") if "--batch" in values else DENSE
    assert cli.rows(f"{command} {values}") == cli.rows(DENSE)


@pytest.mark.parametrize("factor", [0.5, 1, 2])
def test_sweep__through_the_catalogue_s_own_value(cli: Cli, factor: float) -> None:
    assert cli(f"serve llama-3.1-8b --on h100-sxm --context 4k --set chip.hbm_bw={3.35 * factor}TB/s").status == 0


@pytest.mark.parametrize("flag", ["--as dense", "--strict", "--key num_hidden_layers=12"])
@pytest.mark.parametrize("numbers", ["--hidden 4096 --layers 32", "--params 8B --layers 32 --kv-bytes 100kB"])
@for_each(
    ["serve --on h200", "plan --on h200 --prompt 500 --output 50", "sim --on h200 --prompt 500 --output 50 --rate 2 --requests 20",
     "price --on h200",
     "speed --on h200 --prompt 500 --output 50", "train --on 8xh200", "capacity --on h200", "show model"]
)  # fmt: skip
def test_config_flags__of_a_model_by_numbers_are_refused(command: str, cli: Cli, numbers: str, flag: str) -> None:
    verb, _, rest = command.partition(" ")
    words = f"{command} {numbers}" if rest == "model" else f"{verb} {numbers} {rest}"
    assert flag.split()[0] in refused(cli, f"{words} {flag}")


@pytest.mark.parametrize(("flag", "wrong"), [("--plot-width 700", "--plot-width abc"), ("--plot-theme dark", "--plot-theme pink")])
def test_picture_flags__without_a_picture_are_refused_and_a_wrong_value_first(cli: Cli, flag: str, wrong: str) -> None:
    assert "--plot FILE" in refused(cli, f"{DENSE} {flag}")
    assert "--plot FILE" not in refused(cli, f"{DENSE} {wrong}")


def test_cache__flags_of_the_estimate_are_refused_where_nothing_is_estimated(cli: Cli) -> None:
    sizes = "cache llama-3.1-8b --on 8xh200 --rate 2 --hit-rate 0.5"
    for flag in ("--price-metric nonsense", "--tp 2", "--mfu 0.4", "--engine vllm", "--weights fp8", "--embedding fp8", "--imbalance 2"):
        assert flag.split()[0] in refused(cli, f"{sizes} {flag}")
    assert "number" in refused(cli, f"{sizes} --tp abc")


def test_grid__an_assumption_that_counts_somewhere_counts(cli: Cli) -> None:
    assert cli("serve llama-3.1-8b,qwen3-30b-a3b --on h200 --context 4k --batch 4,64 --imbalance 2").status == 0


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_empty_values__are_errors_in_every_verb(cli: Cli, verb: str) -> None:
    """Every flag of every verb, from the verb's own declarations: an unset variable of a script is never taken as `not given`."""
    flags = [flag.spellings[-1] for flag in parser_for(verb).flags.values() if flag.spellings and not flag.field.is_switch]
    assert flags
    words = ["solve", "serve"] if verb == "solve" else [verb]
    for flag in flags:
        for words_of in ([f"{flag}="], [flag, ""]):
            answer = cli(*words, *words_of)
            assert answer.status == 2 and f"{flag}: got ''" in answer.err, (flag, answer.err)


def parser_for(verb: str) -> Any:
    return parser_of([verb, "serve"] if verb == "solve" else [verb])


@for_each(sorted(VERBS))
def test_repeated_flags__are_errors_in_every_verb(verb: str) -> None:
    """Every flag that is no list, in every spelling and mixture of spellings; one that may be repeated, with the same key or value."""
    parser = parser_for(verb)
    for flag in parser.flags.values():
        if not flag.spellings or flag.field.takes == "words again" or flag.field.kind == "credential":  # headers differ
            continue
        keyed, is_list = flag.field.word.startswith("KEY="), flag.field.takes == "again"
        values = [None] if flag.field.is_switch else ["k=4", "k=64"] if keyed else ["4", "4" if is_list else "64"]
        spellings = [way for spelling in flag.spellings for value in values for way in one_flag(spelling, value)]
        for first, second in itertools.product(spellings, repeat=2):
            with pytest.raises(BadValue, match="once") as error:
                parser.read([*first, *second])
            assert any(str(error.value).startswith(spelling) for spelling in flag.spellings)


def one_flag(spelling: str, value: str | None) -> list[list[str]]:
    """The ways to type one flag: alone, with its value beside it, joined by =, or of a short one joined without."""
    if value is None:
        return [[spelling]]
    joined = [] if spelling.startswith("--") else [[f"{spelling}{value}"]]
    return [[spelling, value], [f"{spelling}={value}"], *joined]


@pytest.mark.parametrize(
    "command",
    [
        f"{DENSE} --set chip.hbm_bw=1TB/s --set chip.hbm-bw=2TB/s", f"{DENSE} -o json --format csv", f"{DENSE} --context=8k",
        "serve --hidden 4096 --hidden 8192 --layers 8 --on h200",
        "show model llama-3.1-8b --key num_hidden_layers=2 --key num_hidden_layers=4",
        "serve llama-3.1-8b --on 64x(hbm=80GB,hbm=90GB,hbm_bw=3TB/s,peak_bf16=1P) --context 4k",
        "law hardware_ratio mem_bw=1TB/s mem_bw=2TB/s",
        "bill --sheet claude-opus --tokens input=1M,input=2M,output=1k", "price --sheet claude-opus --assume active=1B,active=2B",
        f"{SIM} --find rate --so-that p99_ttft_s=1s,p99_ttft_s=2s", f"{SIM} --rate 2 --prefix-cache ddr:1GB,ddr:2GB",
        "matmul A[B,4096]W[4096,64] B=1 --peak 1P --from 1TB/s B=2",
        "solve serve llama-3.1-8b --on h200 --for batch --for context --so-that fits=1",
    ],
)  # fmt: skip
def test_keys__given_twice_are_errors(cli: Cli, command: str) -> None:
    assert re.search(r"once|twice", refused(cli, command))


def test_keys__given_twice_in_the_user_s_own_layout_are_errors(cli: Cli) -> None:
    answer = cli("plan", "llama-3.1-8b", "--on", "h200", "--prompt", "500", "--output", "50", "--current", "tp=8 batch=4 tp=4")
    assert answer.status == 2 and "tp once" in answer.err


def test_lists__may_be_repeated(cli: Cli) -> None:
    several = cli(f"{DENSE} --set chip.hbm_bw=1TB/s --set chip.hbm=100GB --explain step_s --explain kv_s")
    assert several.status == 0 and several.out.count("= ") > 2


def test_python__ignored_keywords_are_refused() -> None:
    with pytest.raises(BadValue, match="--kv-share"):
        hw.command("trend chips --kv-share 4")
    with pytest.raises(BadValue, match="--imbalance"):
        hw.serve("llama-3.1-8b", "h200", context=4096, imbalance=3)


def test_catalogue__a_folder_of_something_else_is_a_slip(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert "is no catalogue folder" in refused(cli, f"{DENSE} --catalog {tmp_path}")
    (tmp_path / "chips").mkdir()
    assert cli(f"{DENSE} --catalog {tmp_path}").status == 0


@pytest.mark.parametrize("verb", ["price", "cache", "lecture"])
def test_help__each_question_of_a_verb_has_a_line(cli: Cli, verb: str) -> None:
    """The lines stand first, fit a terminal of 120 columns, and every flag in them is a flag of the verb."""
    parser = parser_of([verb])
    modes = parser.question.modes
    lines = cli(f"{verb} --help").text.split("\n\n")[0].splitlines()
    assert len(lines) == len(modes) and max(map(len, lines)) <= 120
    for line, (words, sentence) in zip(lines, modes, strict=True):
        assert line.removeprefix("usage: ").strip().startswith(f"headway {verb} {words}".rstrip()) and line.endswith(sentence)
        assert set(re.findall(r"--[a-z-]+", words)) <= set(parser.spelled)
