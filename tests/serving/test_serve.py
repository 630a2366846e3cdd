"""`serve`: the contract's keys, a grid that equals its points, formats, prices, and what is said when something does not fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import headway as hw
from headway.core import columns
from headway.core.errors import BadValue, HeadwayError, IllegalLayout, MissingFact, UnknownName
from headway.performance.layout import Layout
from headway.serving.serve import serve
from support.cases import Point, drawn
from support.command import Cli

AT_CONTEXT = ("step_s", "ttft_s", "compute_s", "weights_s", "kv_s", "network_s", "overhead_s", "tok_per_s_user", "decode_tok_per_s")
OF_REQUESTS = ("tpot_s", "tok_per_s", "usd_per_mtok_in", "usd_per_mtok_cached", "usd_per_mtok_out")
LLAMA = Point("llama-3.1-70b", "8xh100-sxm", Layout(tp=8))
CONTRACT = """
    kind model system chips chips_idle replicas tp ep dp pp cp weights kv compute batch concurrency context prompt output
    step_s step_floor_s step_lo_s step_hi_s ttft_s ttft_floor_s ttft_lo_s ttft_hi_s tpot_s tpot_floor_s tpot_lo_s tpot_hi_s
    compute_s weights_s kv_s network_s overhead_s bound
    tok_per_s_user tok_per_s tok_per_s_lo tok_per_s_hi decode_tok_per_s decode_tok_per_s_lo decode_tok_per_s_hi
    tok_per_s_chip tok_per_s_chip_lo tok_per_s_chip_hi
    usd_per_mtok_in usd_per_mtok_in_lo usd_per_mtok_in_hi usd_per_mtok_cached usd_per_mtok_cached_lo usd_per_mtok_cached_hi
    usd_per_mtok_out usd_per_mtok_out_lo usd_per_mtok_out_hi
    fits why weights_bytes_chip kv_bytes_chip hbm_bytes_chip
"""


def test_serve_row__has_every_contract_column() -> None:
    row = LLAMA.but(context=None, prompt=1000, output=1000).row()
    assert set(CONTRACT.split()) <= row.keys()
    for key in row:
        column = columns.column(key)
        assert column.doc, key
    assert row["kind"] == "point"
    assert [key for key in CONTRACT.split() if row[key] is None] == []


def test_context__alone_leaves_request_columns_and_costs_null() -> None:
    row = LLAMA.but(batch=8, context=4000).row()
    assert [row[key] for key in OF_REQUESTS] == [None] * len(OF_REQUESTS)
    assert row["prompt"] is None and row["output"] is None
    assert all(row[key] > 0 for key in AT_CONTEXT)
    assert row["context"] == 4000


TPOT = ("tpot_s", "tpot_floor_s", "tpot_lo_s", "tpot_hi_s", "tpot_decode_s", "tok_per_s_user")


def test_tpot__null_for_answers_of_one_token() -> None:
    """vLLM divides by the tokens after the first: a grid has null in those cells alone, and E2E is TTFT."""
    one, two = LLAMA.but(context=None, prompt=1000, output=np.array([1, 2])).table().rows()
    assert [one[key] for key in TPOT] == [None] * len(TPOT) and all(two[key] > 0 for key in TPOT)
    assert one["e2e_s"] == one["ttft_s"] == two["ttft_s"]
    alone = LLAMA.but(context=None, prompt=1000, output=1).row()
    assert alone.keys() == one.keys()
    for key, value in one.items():  # of a grid numpy computes powers, of a point Python: the last digit may differ
        assert alone[key] == (pytest.approx(value, rel=1e-14) if isinstance(value, float) else value), key


@pytest.mark.parametrize(
    "command",
    ["plan llama-3.1-8b --on h200 --prompt 500 --output 1 --tpot 10ms", "speed llama-3.1-8b --on 8xh200 --prompt 500 --output 1",
     "plan llama-3.1-8b --on h200 --prompt 500 --output 1 --objective latency",
     "plan llama-3.1-8b --on 2xh200 --prompt 500 --output 1 --disaggregate only",
     "sim llama-3.1-8b --on h200 --prompt 500 --output 1 --rate 1 --requests 10 --tpot 10ms",
     "sim llama-3.1-8b --on h200 --prompt 500 --output 1 --find rate --requests 10 --so-that p99_tpot_s=1s"],
)  # fmt: skip
def test_tpot__limit_is_refused_where_an_answer_has_one_token(cli: Cli, command: str) -> None:
    answer = cli(*command.split())
    assert answer.status == 2 and answer.err.count("\n") == 1 and "at least 2 tokens" in answer.err


def test_tpot__answers_of_one_token_are_dropped_from_a_list_of_plans_with_a_limit(cli: Cli) -> None:
    answer = cli("plan", "llama-3.1-8b", "--on", "h200", "--prompt", "500", "--output", "1,100", "--tpot", "10ms", "-o", "json")
    assert {row["output"] for row in answer.rows} == {100}
    assert any("dropped 1 of 2" in note and "at least 2 tokens" in note for note in answer.notes)


@pytest.mark.parametrize("verb", ["serve", "plan", "price"])
def test_tpot__answers_of_one_token_are_described_without_it(cli: Cli, verb: str) -> None:
    answer = cli(verb, "llama-3.1-8b", "--on", "h200", "--prompt", "500", "--output", "1")
    assert answer.status == 0 and "None" not in answer.out and "nan" not in answer.out
    assert verb == "price" or "no TPOT (an answer of one token)" in answer.out


def test_serve_row__context_is_halfway_through_the_answer() -> None:
    point = LLAMA.but(batch=8, context=None, prompt=4000, output=1000)
    row, middle = point.row(), LLAMA.but(batch=8, context=4500).row()
    assert row["context"] == 4500
    assert row["step_s"] == middle["step_s"]
    assert row["kv_bytes_chip"] == LLAMA.but(batch=8, context=5000).row()["kv_bytes_chip"]  # room for its last token
    assert row["ttft_unloaded_s"] == LLAMA.but(batch=1, context=4000).row()["ttft_s"]  # a request alone waits for its prompt alone
    assert row["ttft_s"] > row["ttft_unloaded_s"]


def test_tpot__mean_step_over_growing_context() -> None:
    """Of one user: what others' prompts add is no part of it."""
    point = LLAMA.but(batch=1)
    contexts = np.linspace(8000, 108_000, 1001)
    steps = np.asarray(point.but(context=list(contexts)).table()["step_s"]).ravel()
    mean = (steps[0] / 2 + steps[1:-1].sum() + steps[-1] / 2) / 1000
    assert point.but(context=None, prompt=8000, output=100_000).row()["tpot_s"] == pytest.approx(mean, rel=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_serve__grid_equals_its_points(seed: int) -> None:
    point = drawn(seed, requests=bool(seed % 2))
    axes: dict[str, Any] = {"batch": [1, 17, 300], **{key: [5, 12_345] for key in dict(point.load) if key != "batch"}}
    layouts = [point.layout, Layout(), Layout(replicas=2)]
    table = serve(point.model, point.system, layouts, **axes, precision=hw.Precision(**dict(point.formats)))
    rows = table.rows()
    assert len(rows) == 3 * math.prod(len(values) for values in axes.values())
    for row in rows:
        ways = Layout(**{key: row[key] for key in ("tp", "ep", "dp", "pp", "cp", "replicas")})
        load = {key: row[key] for key in axes}
        one = serve(point.model, point.system, ways, **load, precision=hw.Precision(**dict(point.formats))).row(0)
        assert {key: value for key, value in row.items() if value != one[key] and value != pytest.approx(one[key], rel=1e-13)} == {}


def test_serve_rows__layout_first_and_last_axis_fastest() -> None:
    table = serve("llama-3.1-8b", "8xh100-sxm", [Layout(tp=2), Layout(tp=4)], batch=[1, 2], context=[10, 20, 30])
    seen = [(row["tp"], row["batch"], row["context"]) for row in table.rows()]
    assert seen == [(tp, batch, context) for tp in (2, 4) for batch in (1, 2) for context in (10, 20, 30)]


# -- sharding -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "sequences"), [(1, 1), (72, 1), (73, 2), (144, 2), (145, 3)])
def test_kv_bytes_chip__fullest_rank_has_whole_sequences(batch: int, sequences: int) -> None:
    row = Point("deepseek-v3", "gb200-nvl72", Layout(dp=72, ep=72)).but(batch=batch, context=1000).row()
    assert row["kv_bytes_chip"] == sequences * 1000 * 70272


def test_weights_bytes_chip__fullest_chip_has_whole_experts() -> None:
    """256 experts over 72 chips: four on the fullest, the same as over 64."""
    rows = [Point("deepseek-v3", "gb200-nvl72", Layout(dp=ways, ep=ways)).but(batch=72 * 64).row() for ways in (64, 72)]
    assert rows[0]["weights_bytes_chip"] == rows[1]["weights_bytes_chip"]


def test_kv_heads__replicated_when_tp_exceeds_their_number() -> None:
    """Llama-3.1-70B has 8 KV heads: tensor parallel 16 keeps one whole head on each chip."""
    eight, sixteen = (Point("llama-3.1-70b", "16xh100-sxm", Layout(tp=tp)).but(context=1000).row() for tp in (8, 16))
    assert eight["kv_bytes_chip"] == sixteen["kv_bytes_chip"]
    copied = 80 * 2 * 8192 * 128 * 2  # the key and value projections of one head, which half as many chips would share
    assert sixteen["weights_bytes_chip"] == pytest.approx((eight["weights_bytes_chip"] + copied) / 2, rel=1e-3)


def test_context_parallel__divides_kv_and_not_weights() -> None:
    one, four = (Point("llama-3.1-8b", "8xh100-sxm", Layout(cp=cp)).but(context=100_000).row() for cp in (1, 4))
    assert four["kv_bytes_chip"] == one["kv_bytes_chip"] / 4
    assert four["weights_bytes_chip"] == one["weights_bytes_chip"]


def test_replicas__multiply_rates_only() -> None:
    point = Point("llama-3.1-8b", "8xh100-sxm").but(batch=32, context=None, prompt=1000, output=100)
    one, four = point.row(), Point("llama-3.1-8b", "8xh100-sxm", Layout(replicas=4), point.load).row()
    assert four["tok_per_s"] == pytest.approx(4 * one["tok_per_s"], rel=1e-12)
    assert four["concurrency"] == 4 * one["concurrency"]
    for key in ("tpot_s", "ttft_s", "step_s", "kv_bytes_chip", "weights_bytes_chip"):
        assert four[key] == one[key]
    assert (one["chips_idle"], four["chips_idle"]) == (7, 4)


# -- formats --------------------------------------------------------------------------------------------------------------------


def formatted(system: str, **formats: str) -> Any:
    return serve("llama-3.1-8b", system, batch=4, context=1000, precision=hw.Precision(**formats))


def test_precision__narrow_formats_are_smaller_and_faster() -> None:
    wide, narrow, kv = (formatted("h100", **formats).row(0) for formats in ({}, {"weights": "fp8"}, {"kv": "fp8"}))
    assert (wide["weights"], wide["kv"], wide["compute"]) == ("bf16", "bf16", "bf16")
    assert (narrow["weights"], narrow["kv"], narrow["compute"]) == ("fp8", "bf16", "fp8")
    blocks = 32 * (4096 * 128 * (32 + 32 + 8 + 8) + 3 * 4096 * 14336)  # table and head stay as the checkpoint has them
    assert wide["weights_bytes_chip"] - narrow["weights_bytes_chip"] == blocks
    assert kv["kv_bytes_chip"] == wide["kv_bytes_chip"] / 2
    assert narrow["compute_s"] < wide["compute_s"]


def test_precision__unsupported_format_computes_in_a_wider_one_with_a_note() -> None:
    table = formatted("a100-sxm-80", weights="fp8")
    assert table.row(0)["weights"] == "fp8"
    assert table.row(0)["compute"] == "bf16"
    assert any("no fp8 peak" in note and "bf16" in note for note in table.notes)
    assert not any("no fp8 peak" in note for note in formatted("h100", weights="fp8").notes)


# -- prices ---------------------------------------------------------------------------------------------------------------------


def test_cost__null_with_a_note_for_a_chip_without_a_price() -> None:
    table = serve("llama-3.1-8b", "apple-m2-ultra", batch=1, prompt=100, output=100)
    row = table.row(0)
    assert [row[key] for key in row if key.startswith("usd")] == [None] * 12
    assert row["tok_per_s"] > 0
    assert any("has no price in the catalogue" in note for note in table.notes)


def test_cost__note_gives_the_price_and_its_metric() -> None:
    assert any("rental_on_demand" in note and "$3.55/h" in note for note in LLAMA.but(context=None, prompt=100, output=100).table().notes)


# -- what does not fit ----------------------------------------------------------------------------------------------------------


def test_fits__reason_names_the_first_failing_limit_and_the_amount() -> None:
    chips = Point("llama-3.1-8b", "h100", Layout(tp=2)).row()
    weights = Point("llama-3.1-405b", "h100").row()
    cache = Point("llama-3.1-8b", "h100").but(batch=1000, context=100_000).row()
    assert [row["fits"] for row in (chips, weights, cache)] == [False] * 3
    assert [row["bound"] for row in (chips, weights, cache)] == ["capacity"] * 3
    assert chips["why"] == "needs 2 chips, the system has 1"
    assert weights["why"] == "weights need 811.7 GB on the fullest chip, 743 over usable 69.16"
    assert "at most 4 sequences per rank fit" in cache["why"]  # (73.55 - 16.06) / 13.1 GB
    assert all(row["step_s"] > 0 for row in (chips, weights, cache))


def test_fits__reason_without_the_amount_in_a_large_table() -> None:
    table = serve("llama-3.1-8b", "h100", batch=list(range(1, 101)), context=[1000 * n for n in range(1, 31)])
    reasons = {row["why"] for row in table.rows()}
    assert reasons == {"", "weights and KV cache exceed the usable HBM of the fullest chip"}
    assert all((row["why"] == "") == row["fits"] for row in table.rows())


def test_bound__largest_part_of_a_step() -> None:
    parts = ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s")
    table = LLAMA.but(batch=[1, 8, 64, 160], context=[1, 1000, 8000]).table()
    for row in table.rows():
        assert row["bound"] == (max(parts, key=lambda key: row[key]).removesuffix("_s") if row["fits"] else "capacity")
    assert {row["bound"] for row in table.rows()} >= {"weights", "kv"}


# -- wrong input ----------------------------------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {"model": "llama-3.1-8b", "system": "h100", "batch": 1, "context": 1000}


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"model": "llama-3.1-8"}, UnknownName, "llama-3.1-8b"),
        ({"system": "h10"}, UnknownName, "h100"),
        ({"context": None}, BadValue, "--context, or both --prompt and --output"),
        ({"context": None, "prompt": 10}, BadValue, "both --prompt and --output"),
        ({"prompt": 10, "output": 10}, BadValue, "not both"),
        ({"batch": 0}, BadValue, "above 0"),
        ({"batch": -3}, BadValue, "above 0"),
        ({"batch": math.nan}, BadValue, "finite"),
        ({"context": math.inf}, BadValue, "finite"),
        ({"batch": []}, BadValue, "one list"),
        ({"batch": [[1, 2]]}, BadValue, "one list"),
        ({"batch": [1, 0]}, BadValue, "above 0"),
        ({"batch": 1e13}, BadValue, "at most"),
        ({"batch": list(range(1, 10_001)), "context": list(range(1, 10_001))}, BadValue, "points"),
        ({"layouts": Layout(tp=3)}, IllegalLayout, "divisors"),
        ({"layouts": Layout(tp=0)}, BadValue, "tp"),
        ({"layouts": Layout(tp=1.5)}, BadValue, "whole"),
        ({"layouts": Layout(ep=2)}, IllegalLayout, "experts"),
        ({"layouts": Layout(pp=33)}, IllegalLayout, "32 layers"),
        ({"system": "cerebras-wse3", "context": None, "prompt": 100, "output": 10}, MissingFact, "peak_bf16 is not known"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_serve__bad_input_is_a_typed_one_line_error(wrong: dict[str, Any], error: type[HeadwayError], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        serve(**{**GOOD, **wrong})
    assert "\n" not in str(caught.value)


def test_public_names__are_exported_and_serve_a_grid() -> None:
    assert set(hw.__all__) >= {"model", "system", "serve", "plan", "Layout", "Load", "Precision", "Assumptions"}
    found = hw.serve(hw.model("deepseek-v3"), hw.system("gb200-nvl72"), hw.Layout(ep=72, dp=72), batch=[64, 512, 4096], context=8192)
    assert len(found) == 3


def test_table__prints_the_chosen_columns(capsys: pytest.CaptureFixture[str]) -> None:
    LLAMA.but(batch=[1, 64]).table().table(["batch", "step_s"])
    out = capsys.readouterr().out
    assert "batch" in out and "64" in out and "ms" in out
