"""Whatever is typed: one clear line and exit 2, or an answer and exit 0. Never a traceback, a hang or a silent wrong number.

The command line is driven in this process. An answer counts as wrong when it holds NaN, infinity or a negative quantity, or when a
row that fits does no work, has no rate, no price, no parameters or no memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.core.schema import Field, fields, flag
from headway.hardware.edit import editable
from headway.hardware.system import system
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.formats import has_peak
from headway.performance.layout import Layout
from headway.performance.workload import SLO, Load
from support.command import Answer, changed
from support.work import bounded

pytestmark = pytest.mark.slow

BOUNDED = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
# A change may be negative, and so may a claim's figure, and what an engine's share of a card leaves where steps need more.
SIGNED = ("elasticity", "stated", "recomputed", "today", "reference", "saving", "left_bytes_chip")


def run(*argv: str) -> Answer:
    """One command, which ends; a bug is an exception and fails the test."""
    return bounded(lambda: Answer.of(argv))


def judged(*argv: str) -> tuple[int, list[dict[str, Any]]]:
    """Run a command with JSON output and judge its answer; (exit status, rows)."""
    status, out, err = run(*argv, "-o", "json")
    assert status in (0, 2), argv
    if status == 2:
        assert out == "", argv
        clear(err)
        return 2, []
    assert err == "", argv
    answer = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in the answer of {argv}"))
    for row in answer["rows"]:
        judge(row, argv)
    return 0, answer["rows"]


def clear(err: str) -> None:
    lines = err.strip().splitlines()
    assert 1 <= len(lines) <= 2, err
    assert lines[0].startswith("headway: "), err
    assert "Traceback" not in err and "Error:" not in err, err
    assert 15 <= len(err) <= 600, err
    assert err.isprintable() or "\n" in err


def judge(row: dict[str, Any], argv: Any) -> None:
    for key, value in walk(row):
        assert math.isfinite(value), (key, argv)
        assert value >= 0 or any(name in key for name in SIGNED), (key, value, argv)
    if row.get("fits") and "step_s" in row:
        done = WORK + (WORK_OF_REQUESTS if row["prompt"] is not None else [])
        single = row["prompt"] is not None and row["output"] <= 1  # an answer of one token has no time between tokens
        absent = {key for key in done if single and (key.startswith("tpot_") or key == "tok_per_s_user")}
        if not has_peak(system(row["system"]).chip):  # arithmetic decides prompts
            absent |= {key for key in done if key.startswith("ttft")}
        assert {key: row[key] for key in absent if row[key] is not None} == {}, argv
        assert {key: row[key] for key in done if key not in absent and not row[key]} == {}, argv
        assert [key for key in COSTS if row[key] == 0] == [], argv
        assert row["step_floor_s"] <= row["step_lo_s"] <= row["step_s"] <= row["step_hi_s"], argv


ENDS = ("", "_floor", "_lo", "_hi")
WORK = [f"{stem}{end}_s" for stem in ("step", "ttft") for end in ENDS] + ["compute_s", "weights_s", "kv_s", "tok_per_s_user"]
WORK += ["decode_tok_per_s", "tok_per_s_chip", "weights_bytes_chip", "kv_bytes_chip", "hbm_bytes_chip"]
WORK += ["chips", "batch", "concurrency", "context"]
WORK_OF_REQUESTS = [f"tpot{end}_s" for end in ENDS] + ["tok_per_s", "tok_per_s_lo", "tok_per_s_hi"]
COSTS = [f"usd_per_mtok_{what}{end}" for what in ("in", "cached", "out") for end in ("", "_lo", "_hi")]


def walk(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number under a row."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from walk(item, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


# -- what a person might type ---------------------------------------------------------------------------------------------------

ODD = (
    "0", "-1", "-0", "+3", "nan", "-nan", "inf", "-inf", "1e400", "1e308", "1e-400", "1e-300", "1e12", "1e13", "1e18", "9" * 400, "3.5",
    "0.5", "1_000",
    "0x10", "½", "١٢", "3e", "e3", "1.2.3", "--", "-", "=", "", " ", "\t", "\n", "\x00", "%s", "{0}", "$(id)", "'", '"', "∞", "null",
    "None", "True", "[]",
    "8k", "8Ki", "8kk", "3GB", "80GiB", "20ms", "2s", "$2/h", "3TB/s", "989TFLOPS", "8 tokens", "8k tokens", "15T", "50%", "1 2",
    "1,2,4", "1,2,", ",", "1,,2", "nan,1", "-1,1", "0,1", "1,1,1", "2.5,1", "1..8", "8..1", "1..", "..8", "..", "1..8..9", "1..8*2",
    "1..8*1", "1..8*0",
    "1..8*-2", "1..8*nan", "0..8*2", "1..8*1.5", "0..10+2", "0..10+0", "0..10+-1", "1..1e9", "1..1e18*2", "1..inf", "a..b", "1..8*2,64",
    "1..1e-9",
)  # fmt: skip
PLAIN = ("1", "2", "3", "4", "7", "8", "16", "64", "100", "1k", "8192", "1,8", "1..4")
NUMBER = st.sampled_from(ODD) | st.sampled_from(PLAIN) | st.integers(-(10**20), 10**20).map(str) | st.floats().map(repr)
NAMES = ("llama-3.1-70b", "llama-3.1-8b", "deepseek-v3", "gpt-oss-20b", "mamba2-2.7b", "qwen3-next-80b-a3b", "mistral-7b-v0.1")
ON = ("8xh100-sxm", "h100", "gb200-nvl72", "tpu-v5e", "8xb200", "2xgb200-nvl72", "a40", "cerebras-wse3", "apple-m1", "groq-lpu-v1")
WRONG = (
    "", " ", "lama-3.1-70b", "gpt-5", "8xh1000", "0xh100", "-1xh100", "1e99xh100", "8x", "x8", "h100x8", "nanxh100", "tpu-v5p-0x4x4",
    "tpu-v5p-4x4x4x4x4",
    "../..", "/", ".", "/dev/null", "/dev/zero", "/etc/passwd", "a/b", "a/b/c", "http://example.org", "\x00", "\n", "x" * 5000, "-",
    "--", "h100,", ",h100",
    "h100,,h100", "é", "'", "%", "8 x h100", "8*h100", "1.5xh100", "2x2xh100", "config.json", "missing.json", "~", "$HOME", "*", "[",
    "deepseek v3", "DEEPSEEK_V3",
)  # fmt: skip
ANY_MODEL = st.sampled_from(NAMES) | st.sampled_from(NAMES) | st.sampled_from(NAMES) | st.sampled_from(WRONG)
ANY_ON = st.sampled_from(ON) | st.sampled_from(ON) | st.sampled_from(ON) | st.sampled_from(WRONG)
FIELDS = {flag(name): q for record in (Load, Layout, Precision, Assumptions) for name, (q, _) in fields(record).items()}
WORDS = st.sampled_from(
    ("", "bf16", "fp8", "fp3", "FP8", "int4", "full", "serial", "operators", "rental_3yr", "rental", "bf16,fp8", ",", "nan", "0")
)


def legal(q: Field) -> st.SearchStrategy[str]:
    """A value that a field takes, of any size: what is legal must give a right answer, however extreme."""
    if q.choices or not (q.unit or q.help):
        return st.sampled_from(q.choices) if q.choices else WORDS
    low, high = max(q.low, 1.0 if q.integer else 1e-30), min(q.high, 1e30)
    value = st.floats(math.log10(low), math.log10(high)).map(lambda power: min(max(10**power, low), high))
    return value.map(lambda number: (str(int(number)) if q.integer else repr(number)) + (q.unit if q.unit == "USD/s" else ""))


def flagged(flag: str, *texts: str) -> st.SearchStrategy[list[str]]:
    """A flag with one of these values."""
    return st.sampled_from(texts).map(lambda text: [flag, text])


def text_for(q: Field) -> st.SearchStrategy[str]:
    """A legal value more often than not."""
    return st.one_of(legal(q), legal(q), legal(q), st.sampled_from(PLAIN), NUMBER, WORDS)


PAIR = st.sampled_from(sorted(FIELDS)).flatmap(lambda name: text_for(FIELDS[name]).map(lambda text: [name, text]))
FACT = st.sampled_from(sorted(editable())).flatmap(lambda key: text_for(editable()[key]).map(lambda text: ["--set", f"{key}={text}"]))
NO_FACT = flagged("--set", "chip.nope=1", "hbm_bw=1", "chip.=1", "", "chip", "model.hidden=1", "chip.hbm_bw", "=")
SET = st.one_of(FACT, FACT, FACT, NO_FACT)
TAIL = st.one_of(
    flagged(
        "--where", "step_s<20ms", "fits", "fits and batch>8", "batch", "step_s", "nope>1", "batch>", "batch>nan", "batch>8 and", "((",
        "batch>1)", "batch=8", "batch==8", "__import__('os')", "bound=kv", "bound=nope", "step_s<8GB", "why=''", "not fits", "", "1>0",
        "batch>1 or or", "batch>1e400", "a" * 3000, "(" * 500,
    ),
    flagged("--sort", "batch", "-batch", "nope", "", "-", "--", "why", "step_s", "-step_s", "model", "tpot_s"),
    flagged("--explain", "step_s", "nope", "", "model", "why", "fits", "tpot_s", "usd_per_mtok_out", "chips", "batch", "ttft_s,kv_s", ","),
    flagged("--attention", "dense", "window:4k", "topk:2k", "sqrt:4k", "window", "window:", "window:0", "window:-1", "nope:3", ":"),
    flagged("--catalog", "/nonexistent", "", "\x00", "/dev/null", "."),
    NUMBER.map(lambda text: ["--kv-share", text]),
    st.sampled_from(("--nope", "-x", "extra", "--tp", "--on", "---", "--batch=", "--b", "-o", "--context")).map(lambda text: [text]),
)  # fmt: skip
ODDITIES = st.lists(st.one_of(PAIR, PAIR, SET, TAIL), max_size=3).map(lambda lists: [word for words in lists for word in words])
ODD_NUMBERS = st.lists(PAIR, min_size=1, max_size=2).map(lambda pairs: [word for pair in pairs for word in pair])
GOOD_LOADS = st.sampled_from(("--context 1k", "--prompt 1k --output 100", "--prompt 1 --output 1", "--context 1e9")).map(str.split)
LOADS = st.one_of(GOOD_LOADS, GOOD_LOADS, GOOD_LOADS, st.sampled_from(("--context 8k --prompt 1", "--prompt 5", "")).map(str.split))


@BOUNDED
@given(ANY_MODEL, ANY_ON, LOADS, ODDITIES)
def test_serve__any_input_is_one_line_or_a_sound_answer(name: str, machine: str, load: list[str], odd: list[str]) -> None:
    judged("serve", name, "--on", machine, *load, *odd)


@BOUNDED
@given(st.sampled_from(NAMES), st.sampled_from(ON), GOOD_LOADS, ODD_NUMBERS, st.sampled_from(("text", "md", "csv")))
def test_serve__odd_numbers_give_one_status_in_every_format(name: str, machine: str, load: list[str], odd: list[str], form: str) -> None:
    status, _ = judged("serve", name, "--on", machine, *load, *odd)
    again, out, err = run("serve", name, "--on", machine, *load, *odd, "-o", form)
    assert again == status
    assert bool(out) != bool(err)
    assert "nan" not in out.lower()


@BOUNDED
@given(st.sampled_from(NAMES), st.sampled_from(ON), SET, SET)
def test_set__any_edited_system_is_one_line_or_a_sound_answer(name: str, machine: str, one: list[str], other: list[str]) -> None:
    judged("serve", name, "--on", machine, "--prompt", "1k", "--output", "100", *one, *other)
    judged("show", "system", machine, *one)


SLOS = st.lists(st.tuples(st.sampled_from([flag(name) for name in fields(SLO)]), NUMBER).map(list), max_size=2)


@settings(BOUNDED, max_examples=60)
@given(ANY_MODEL, ANY_ON, LOADS, SLOS, ODDITIES)
def test_plan__any_input_is_one_line_or_a_sound_answer(
    name: str, machine: str, load: list[str], slos: list[list[str]], odd: list[str]
) -> None:
    judged("plan", name, "--on", machine, *load, *(word for words in slos for word in words), *odd)


GOALS = (
    "tpot_s=20ms", "step_s=20ms", "compute_s=kv_s", "nope=1", "step_s=", "=", "", "step_s=-1s", "step_s=nan", "step_s=8GB", "fits=1",
    "why=x", "step_s=step_s",
)  # fmt: skip
GOAL = st.sampled_from(GOALS) | NUMBER.map("step_s={}".format)
FREE = ("batch", "context", "tp", "nope", "", "model", "chip.hbm_bw", "eff_compute", "prompt")


@settings(BOUNDED, max_examples=60)
@given(st.sampled_from(NAMES), st.sampled_from(ON), LOADS, st.sampled_from(FREE), GOAL, ODDITIES)
def test_solve__any_input_is_one_line_or_a_sound_answer(
    name: str, machine: str, load: list[str], free: str, goal: str, odd: list[str]
) -> None:
    judged("solve", "serve", name, "--on", machine, *load, "--for", free, "--so-that", goal, *odd)


SHOWN = st.one_of(
    st.tuples(st.just("model"), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(("chip", "system")), st.sampled_from(ON)),
    st.tuples(st.sampled_from(("model", "chip", "system", "", "nope", "models")), st.sampled_from(NAMES + ON + WRONG)),
)


@BOUNDED
@given(SHOWN, st.just([]) | TAIL | NUMBER.map(lambda text: ["--context", text]))
def test_show__any_input_is_one_line_or_a_sound_answer(what: tuple[str, str], odd: list[str]) -> None:
    status, rows = judged("show", *what, *odd)
    if status == 0 and what[0] == "model" and rows:
        assert rows[0]["total_params"] >= rows[0]["active_params"] > 0


@settings(BOUNDED, max_examples=50)
@given(
    st.sampled_from(
        ("list models", "list chips", "list systems", "list laws", "list sources", "list", "list nope", "trend chips", "trend", "trend x",
         "lecture", "lecture RB-10", "lecture XX-99", "lecture RB", "nope", "", "serve", "plan", "solve", "solve nope", "show", "servee")
    ),
    st.just([]) | TAIL,
)  # fmt: skip
def test_verbs__any_other_command_is_one_line_or_a_sound_answer(command: str, odd: list[str]) -> None:
    judged(*command.split(), *odd)


# -- config.json ----------------------------------------------------------------------------------------------------------------

CONFIGS = (
    "meta-llama--Meta-Llama-3.1-8B.json", "deepseek-ai--DeepSeek-V3.json", "deepseek-ai--DeepSeek-V4-Flash.json",
    "openai--gpt-oss-20b.json",
    "ai21labs--AI21-Jamba-1.5-Mini.json", "Qwen--Qwen3-Next-80B-A3B-Instruct.json", "mistralai--Mixtral-8x7B-v0.1.json",
    "openai-community--gpt2.json",
)  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([0, -1, 1, 2, 3, 0.5, 1e30, -1e30, 10**30, 10**400, math.nan, math.inf]),
    st.sampled_from([True, False, None, "", "many", "8", [], {}, [[]], [1, 2], ["x"], {"a": 1}]),
    st.integers(-10, 10**7),
    st.text(max_size=5),
)  # fmt: skip


@cache
def config(name: str) -> dict[str, Any]:
    return json.loads(resources.files("headway").joinpath("data/models", name).read_text(encoding="utf-8"))


@cache
def architectural(name: str) -> list[str]:
    """The keys that say something about the size of a model."""
    return sorted(key for key, value in config(name).items() if isinstance(value, int | float | list | dict) or value is None)


KEYS = st.sampled_from(("model_type", "hidden_size", "text_config", "num_hidden_layers", "architectures"))


def tried(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    status, rows = judged("show", "model", str(path))
    if status == 0:
        assert rows[0]["total_params"] >= rows[0]["active_params"] > 0
    judged("serve", str(path), "--on", "8xh200-sxm", "--context", "1k", "--batch", "4")


@BOUNDED
@given(st.data())
def test_config__wrong_values_are_one_line_or_a_sound_model(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in CONFIGS if resources.files("headway").joinpath("data/models", name).is_file()]))
    changed = dict(config(name))
    for key in data.draw(st.lists(st.sampled_from(architectural(name)), min_size=1, max_size=2)):
        if data.draw(st.integers(0, 4)):
            changed[key] = data.draw(VALUES)
        else:
            changed.pop(key, None)
    tried(tmp_path_factory.mktemp("odd") / "config.json", json.dumps(changed))


@settings(BOUNDED, max_examples=40)
@given(st.sampled_from(CONFIGS[:2]), st.floats(0, 1), st.sampled_from(("", "}", "]", "\x00", "\ud800", "{", '"', "NaN", ",,")))
def test_config__truncated_file_is_one_line(tmp_path_factory: pytest.TempPathFactory, name: str, part: float, end: str) -> None:
    text = json.dumps(config(name))
    tried(tmp_path_factory.mktemp("cut") / "config.json", text[: int(len(text) * part)] + end)


@settings(BOUNDED, max_examples=60)
@given(st.recursive(VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner)))
def test_config__any_json_is_one_line_or_a_sound_model(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    tried(tmp_path_factory.mktemp("any") / "config.json", json.dumps(value))


@pytest.mark.parametrize(
    "text",
    ["", " ", "null", "[]", "{}", "0", '"x"', "[" * 200_000, '{"a":' * 50_000, '{"model_type": "llama"}', '{"model_type": ["llama"]}',
    '{"architectures": [null]}',
     '{"model_type":"llama","hidden_size":40', '{"model_type":"llama","hidden_size":"many"}', "\ufeff{}", "NaN", '{"hidden_size": NaN}'],
    ids=lambda text: repr(text[:30]),
)  # fmt: skip
def test_config__file_without_a_config_is_one_line(tmp_path: Path, text: str) -> None:
    tried(tmp_path / "config.json", text)
    assert judged("show", "model", str(tmp_path / "config.json"))[0] == 2


def test_config__100_megabytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    assert judged("show", "model", str(path))[0] == 2


def test_config__unreadable_file_is_refused(tmp_path: Path) -> None:
    binary, folder, loop = tmp_path / "binary.json", tmp_path / "empty", tmp_path / "loop.json"
    binary.write_bytes(bytes(range(256)))
    folder.mkdir()
    loop.symlink_to(loop)
    for path in (binary, folder, loop, tmp_path / "gone.json"):
        assert judged("show", "model", str(path))[0] == 2


# -- one by one: what each of these must say ------------------------------------------------------------------------------------

BASE = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--batch", "1", "--context", "1k"]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["serve", "lama-3.1-70b", *BASE[2:]], "llama-3.1-70b"),
        ([*BASE[:3], "8xh1000", *BASE[4:]], "h100"),
        ([*BASE, "--tp", "3"], "divide"),
        ([*BASE, "--ep", "2"], "experts"),
        ([*BASE, "--pp", "81"], "80 layers"),
        (changed(BASE, "--batch", "-4"), "--batch"),
        (changed(BASE, "--batch", "nan"), "finite"),
        (changed(BASE, "--batch", "inf"), "finite"),
        (changed(BASE, "--batch", "0"), "--batch"),
        (changed(BASE, "--batch", "2.5"), "whole"),
        (changed(BASE, "--context", "3GB"), "token"),
        ([*BASE, "--weights", "fp3"], "fp8"),
        ([*BASE, "--overlap", "some"], "operators"),
        ([*BASE, "--eff-compute", "1.5"], "at most 1"),
        ([*BASE, "--nope", "3"], "--nope"),
        ([*BASE, "--explain", "step"], "step_s"),
        ([*BASE, "--where", "batchh>1"], "batch"),
        ([*BASE, "--set", "chip.hbm_bw=3GB"], "byte/s"),
        ([*BASE, "--set", "chip.hbm_bandwidth=3TB/s"], "chip.hbm_bw"),
        ([*BASE, "--prompt", "1k", "--output", "1k"], "--context"),
        (["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--output", "1k"], "--prompt"),
        (["serve", "llama-3.1-70b", "--context", "1k"], "--on"),
        (["servee"], "serve"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_errors__one_line_with_what_would_work(command: list[str], says: str) -> None:
    status, out, err = run(*command)
    assert (status, out) == (2, "")
    clear(err)
    assert says in err


LOADED = ["plan", "llama-3.1-8b", "--on", "h100-sxm"]
LENGTHS = ["--prompt", "500", "--output", "50"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([*LENGTHS, "--rate", "0"], "--rate: got '0'; wants a number above 0"),
        ([*LENGTHS, "--rate", ""], "--rate"),
        ([*LENGTHS, "--users", "0"], "--users"),
        ([*LENGTHS, "--users", "1.5"], "whole"),
        ([*LENGTHS, "--rate", "5", "--users", "3"], "one load"),
        ([*LENGTHS, "--rate", "5", "--user", "3"], "did you mean --users"),
        ([*LENGTHS, "--rate", "5", "--ttft-p96", "1s"], "did you mean --ttft-p"),
        ([*LENGTHS, "--rate", "5", "--ttft-p95", "nan"], "finite"),
        ([*LENGTHS, "--rate", "5", "--itl-p99", "50"], "did you mean 50ms"),
        ([*LENGTHS, "--rate", "5", "--tpot", "50ms", "--confidence", ""], "--confidence"),
        ([*LENGTHS, "--rate", "5", "--tpot", "50ms", "--confidence", "95"], "at most 0.999"),
        ([*LENGTHS, "--rate", "5", "--tpot", "50ms", "--hit-rate", "1.5"], "at most 1"),
        ([*LENGTHS, "--rate", "5", "--itl", "3ms", "--no-check"], "--no-check: got '--itl'"),
        ([*LENGTHS, "--confidence", "0.9"], "one load beside it"),
        ([*LENGTHS, "--trace", "{trace}"], "which has its own lengths"),
        (["--trace", ""], "--trace: got ''; wants a value"),
        (["--trace", "{no_lengths}"], "its first line is 'timestamp'"),
        (["--trace", "{trace}", "--ttft-p99", "1s"], "--trace: got '300 requests'; wants at least 500 requests for p99 TTFT"),
        (["--trace", "{trace}", "--rate", "1e9", "--ttft-p90", "1s"], "at most 4,096"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_plan__wrong_load_is_one_line(tmp_path: Path, flags: list[str], says: str) -> None:
    trace, bare = tmp_path / "trace.csv", tmp_path / "bare.csv"
    trace.write_text("arrival_s,prompt,output\n" + "".join(f"{second},500,50\n" for second in range(300)), encoding="utf-8")
    bare.write_text("timestamp\n0\n1\n2\n", encoding="utf-8")
    status, out, err = run(*LOADED, *(word.format(trace=trace, no_lengths=bare) for word in flags))
    assert (status, out) == (2, "")
    clear(err)
    assert says in err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--tpot", "1us"], "TPOT at batch 1 is"),
        (["--ttft", "1us", "--no-check"], "nearest miss"),
    ],
)
def test_plan__limits_that_no_machine_meets_are_an_answer(flags: list[str], says: str) -> None:
    """The nearest that nearly does, and what limits."""
    status, out, err = run(*LOADED, *LENGTHS, "--rate", "5", *flags)
    assert (status, err) == (0, "") and says in out.splitlines()[0] and "limit 1 us" in out.splitlines()[0]


def test_serve__model_that_does_not_fit_is_an_answer() -> None:
    status, rows = judged("serve", "llama-3.1-405b", "--on", "h100", "--context", "1k")
    assert status == 0
    assert rows[0]["fits"] is False
    assert rows[0]["bound"] == "capacity"
    assert "GB" in rows[0]["why"]
    status, rows = judged("serve", "llama-3.1-8b", "--on", "h100", "--context", "1k", "--tp", "2")
    assert status == 0
    assert "2 chips" in rows[0]["why"]


def test_serve__illegal_list_members_are_dropped_and_counted() -> None:
    asked = ["serve", "llama-3.1-70b", "--on", "8xh100-sxm", "--context", "1k", "--tp", "1,2,3,5,8", "-o", "json", "--batch"]
    assert run(*asked, "0,1,nan")[0] == 2  # NaN is no member of any list
    _, out, _ = run(*asked, "0,1")
    answer = json.loads(out)
    assert [row["tp"] for row in answer["rows"]] == [1, 2, 8]
    assert any("dropped 2 of 5 layouts" in note for note in answer["notes"])
    assert any("dropped 1 of 2 values" in note for note in answer["notes"])


def test_serve__grid_beyond_memory_is_one_line() -> None:
    status, _, err = run(*BASE[:4], "--batch", "1..20000", "--context", "1..20000")
    assert status == 2
    clear(err)
    assert "400000000 points" in err
