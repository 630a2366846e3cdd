"""`headway law`: every law by its name with its own example's numbers, what it takes, questions backwards, and wrong input."""

from __future__ import annotations

import math
import typing
from typing import Any

import pytest

import headway as hw
from headway.core.equation import input_units, unit_of
from headway.core.formula import REGISTRY
from headway.core.law_index import LawPlace, place, places
from headway.core.law_values import arguments_of, typed
from headway.core.trace import Law, record
from headway.hardware.fact import fact
from headway.performance.law_chain import chain, givers
from headway.report.law import example_calls
from support.command import Cli
from support.package import MODULES

LAWS = {law.name: law for law in REGISTRY.values() if law.run.__module__.startswith("headway.laws")}


def words_of(law: Law, inputs: dict[str, Any]) -> list[str]:
    """A call of a law as it is typed."""
    hints = typing.get_type_hints(law.run, include_extras=True)
    return ["law", law.name, *(f"{name}={typed(value, hints[name])}" for name, value in inputs.items())]


def mismatch(cli: Cli, law: Law, inputs: dict[str, Any], result: Any) -> str:
    """What is wrong with the answer to the example of a law; empty where nothing is."""
    answer = cli(*words_of(law, inputs), "-o", "json")
    if answer.status:
        return f"{law.name}: {answer.err}"
    got, expected = answer.rows[0]["result"], float(result)
    same = got is None if math.isinf(expected) else math.isclose(got, expected, rel_tol=1e-12)
    return "" if same else f"{law.name}: {got} instead of {expected}"


def test_law__every_law_gives_the_numbers_of_its_example(cli: Cli) -> None:
    assert len(MODULES) > 250
    silent = [name for name, law in LAWS.items() if not example_calls(law)]
    assert silent == []
    calls = [(law, inputs, result) for law in LAWS.values() for inputs, result in example_calls(law)]
    assert [text for call in calls if (text := mismatch(cli, *call))] == []


def test_law_index__knows_every_law_of_the_registry() -> None:
    assert {law.full_name for law in places()} == {f"{law.module}.{law.name}" for law in LAWS.values()}


def test_law_index__shared_name_lists_both() -> None:
    laws = (LawPlace("span_s", "step.parts"), LawPlace("span_s", "training.step"))
    with pytest.raises(hw.HeadwayError, match=r"several laws are named 'span-s': write step\.parts\.span_s or training\.step\.span_s"):
        place("span-s", laws)
    assert place("training.step.span_s", laws) == laws[1]


def test_law__alone_shows_equation_units_source_and_example(cli: Cli) -> None:
    (row,) = cli.rows("law hardware_ratio")
    assert row["equation"] == "weight_byte * peak_flops / (MULTIPLY_ADD * mem_bw)"
    assert [(part["argument"], part["takes"]) for part in row["arguments"]] == [
        ("weight_byte", "byte"), ("peak_flops", "flop/s"), ("mem_bw", "byte/s"),
    ]  # fmt: skip
    assert row["unit"] == "token" and "Scaling Book" in row["source"]
    assert cli.rows(*row["example"].split()[1:])[0]["result"] == pytest.approx(295.34, rel=1e-4)


def test_law__lists_ranges_and_facts_are_axes(cli: Cli) -> None:
    rows = cli.rows("law hardware_ratio weight_byte=1,2 peak_flops=h100.peak_bf16 mem_bw=1TB/s..4TB/s*2")
    assert [(row["weight_byte"], row["mem_bw"]) for row in rows] == [(byte, bw * 1e12) for byte in (1, 2) for bw in (1, 2, 4)]
    assert [row["result"] for row in rows] == [
        pytest.approx(row["weight_byte"] * 989.4e12 / (2 * row["mem_bw"]), rel=1e-12) for row in rows
    ]
    (row,) = cli.rows("law batch_kv_s batch=2 context=1k kv_bytes_per_token=deepseek-v3.kv_bytes_per_token mem_bw=8*h100.hbm_bw")
    assert row["result"] == pytest.approx(2 * 1000 * 70272 / (8 * 3.35e12), rel=1e-12)


def test_law__facts_of_a_model_have_their_unit(cli: Cli) -> None:
    """Llama-2-7B: 32 layers x 2 x 32 heads x 128 x 2 bytes."""
    answer = cli("law times value=llama-2-7b.kv_bytes_per_token factor=4096")
    assert "2.147 GB/token" in answer.out
    (row,) = cli.rows("law capacity_context capacity=80GB weight_bytes=0 batch=1 kv_bytes_per_token=llama-2-7b.kv_bytes_per_token")
    assert row["result"] == pytest.approx(80e9 / (32 * 2 * 32 * 128 * 2))
    refused = cli("law divided value=50GB parts=llama-2-7b.kv_bytes_per_token")
    assert "wants a plain number, and llama-2-7b.kv_bytes_per_token is in byte/token" in refused.err
    units = {"total_params": "", "max_context": "token", "kv_read_bytes_per_token": "byte/token", "state_bytes_per_sequence": "byte"}
    with record():
        assert {key: unit_of(fact(f"jamba-1.5-large.{key}")) for key in units} == units


def test_law__amounts_and_counts_of_groups_have_a_least_value(cli: Cli) -> None:
    """A count of sequences is not negative; a group has one member; a coefficient and a correlation may be negative."""
    for values in ("batch_compute_s batch=-4 active_params=1 peak_flops=1", "one_way_exchange_share members=0",
                   "wall_time_share stages=0 micro_batches=4", "freed_kv_bytes batch=-64 prompt=1 output=1 kv_bytes_per_token=1",
                   "array_copies chips=4 shards=8", "array_copies chips=4 shards=10/3",
                   "decode_mfu_of_prices price_ratio=0.1 prefill_mfu=0.6",
                   "stationary_2d_bytes hidden=18432 intermediate=73728 chips=4 element=2",
                   "wall_time_share stages=4 batch=64 sequence=4096 dp=2 micro_batch=1"):  # fmt: skip
        answer = cli(f"law {values}")
        assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), values
    assert cli.rows("law magnitude value=-3")[0]["result"] == 3
    for chips, notes in ((4, 0), (4.5, 1)):  # 32 and 36 chips of 8 shards
        document = cli.json(f"law array_copies shards=8 --for chips --so-that {chips}")
        assert document["rows"][0]["solution"] == pytest.approx(8 * chips) and len(document["notes"]) == notes
    with pytest.raises(hw.HeadwayError, match="shards: got '0'; wants 1 or more"):
        hw.law("array_copies", chips=4, shards=0)
    with pytest.raises(hw.HeadwayError, match="wants chips % shards == 0"):
        hw.law("array_copies", chips=[4, 16], shards=8)


def test_law__explanation_has_a_source_for_each_leaf(cli: Cli) -> None:
    document = cli.json("law hardware_ratio weight_byte=2 peak_flops=h100.peak_bf16 mem_bw=8*h100.hbm_bw --explain result")
    inputs = document["explain"]["result"]["inputs"]
    assert (inputs["weight_byte"]["kind"], inputs["peak_flops"]["kind"]) == ("input", "datasheet")
    assert inputs["mem_bw"]["equation"] == "factor * hbm_bw" and inputs["mem_bw"]["unit"] == "byte/s"
    assert inputs["mem_bw"]["inputs"]["hbm_bw"]["name"] == "h100_sxm.hbm_bw"


def test_law__solved_argument_gives_the_result(cli: Cli) -> None:
    (row,) = cli.rows("law hardware_ratio weight_byte=2 peak_flops=989.4TFLOPS --for mem_bw --so-that 250")
    assert row["solution"] == pytest.approx(989.4e12 / 250, rel=1e-9)
    assert row["result"] == pytest.approx(250, rel=1e-9)
    answer = cli("law smooth_max a=1 b=2 norm=3 --for nothing --so-that 1")
    assert answer.status == 2


def test_law__search_finds_laws_by_words(cli: Cli) -> None:
    assert "drain_s" in [row["name"] for row in cli.rows("law", "--find", "read a whole memory")]
    assert cli("law", "--find", "zebra crossing").status == 2


def test_law__python_call_takes_numbers_texts_and_arrays() -> None:
    assert hw.law("hardware_ratio", weight_byte=2, peak_flops="h100.peak_bf16", mem_bw=3.35e12) == pytest.approx(295.34, rel=1e-4)
    ratios = hw.law("hardware_ratio", weight_byte=2, peak_flops=1e15, mem_bw=[1e12, 2e12])
    assert list(ratios) == [1000, 500]


POOL = "kv_bytes_per_token=100k mem_bw=16*810GB/s total_params=30G active_params=30G weight_byte=1 peak_flops=16*197T"


def test_law__what_is_missing_is_computed_by_laws_that_give_it(cli: Cli) -> None:
    """The Scaling Book's 30B model on a v5e 4x4 (chapter 7): about 2.5 ms at batch 4 and 21 ms at 256."""
    document = cli.json(f"law kv_apart_step_s batch=4,256 context=8192 {POOL}")
    for row, batch in zip(document["rows"], (4, 256), strict=True):
        kv, weights, compute = batch * 8192 * 100e3 / 12.96e12, 30e9 / 12.96e12, 2 * batch * 30e9 / (16 * 197e12)
        assert (row["kv_s"], row["weights_s"], row["compute_s"]) == pytest.approx((kv, weights, compute), rel=1e-12)
        assert row["result"] == pytest.approx(kv + max(weights, compute), rel=1e-12)
    assert [round(row["result"] * 1e3, 1) for row in document["rows"]] == [2.6, 21.1]
    assert "kv_s computed by batch_kv_s from batch, context, kv_bytes_per_token, mem_bw" in document["notes"]
    (row,) = cli.rows(f"law kv_apart_step_s context=8192 {POOL} --for batch --so-that 20ms")
    assert row["solution"] * (8192 * 100e3 / 12.96e12 + 2 * 30e9 / (16 * 197e12)) == pytest.approx(20e-3, rel=1e-6)
    sizes = dict(total_params=30e9, active_params=30e9, weight_byte=1, peak_flops="16*197T", mem_bw="16*810GB/s")
    with pytest.warns(UserWarning, match="kv_s computed by batch_kv_s from batch, context"):
        steps = hw.law("kv_apart_step_s", batch=[4, 256], context=8192, kv_bytes_per_token="100k", **sizes)
    assert list(steps) == pytest.approx([row["result"] for row in document["rows"]], rel=1e-12)


def test_law__explanation_of_a_chain_goes_to_what_was_typed(cli: Cli) -> None:
    document = cli.json(f"law kv_apart_step_s batch=4 context=8192 {POOL} --explain result --depth all")
    inputs = document["explain"]["result"]["inputs"]
    assert inputs["kv_s"]["inputs"]["context"]["kind"] == "input"
    assert inputs["compute_s"]["inputs"]["tokens"]["inputs"]["batch"]["value"] == 4


def test_law__of_several_that_give_an_argument_one_is_chosen(cli: Cli) -> None:
    pool = f"tokens=4 batch=4 context=8192 {POOL}"
    answer = cli(f"law machine_s_per_token {pool}")
    assert answer.status == 2 and answer.err.count("\n") == 1
    assert all(f"step_s={name}" in answer.err for name in ("overlapped_step_s", "serial_step_s", "kv_apart_step_s"))
    (serial,), (apart,) = (cli.rows(f"law machine_s_per_token {pool} step_s={name}") for name in ("serial_step_s", "kv_apart_step_s"))
    assert serial["result"] == pytest.approx((serial["kv_s"] + serial["weights_s"] + serial["compute_s"]) / 4)
    assert apart["result"] == pytest.approx((apart["kv_s"] + max(apart["weights_s"], apart["compute_s"])) / 4)


def test_law__python_call_names_a_law_as_the_command_does(cli: Cli) -> None:
    terms = {"compute_s": 1e-3, "weights_s": 2e-3, "kv_s": 4e-3}
    with pytest.warns(UserWarning, match="step_s computed by serial_step_s from compute_s, weights_s, kv_s"):
        assert hw.law("machine_s_per_token", tokens=4, step_s="serial_step_s", **terms) == pytest.approx(7e-3 / 4)
    with pytest.raises(hw.HeadwayError, match="wants one of overlapped_step_s, serial_step_s, kv_apart_step_s or a quantity in s"):
        hw.law("machine_s_per_token", tokens=4, step_s="serial", **terms)


# arguments that share the name of a law or of what it gives, and mean something else
ELSEWHERE = {
    "tokens_per_param": "params=8G batch=64", "chinchilla_params": "batch=64 a=1 b=1 alpha=1 beta=1", "data_loss": "batch=64 b=1 beta=1",
    "aligned_page": "cell=1 batch=64 alignment=1", "usd_per_mtok_of": "cost=1 batch=64",
    "params_at_ratio": "flop=1 weight_byte=2 peak_flops=1 mem_bw=1", "serving_price": "active_params=1 compute_s=1 step_s=2",
    "reversible_bytes_chip": "streams=16384 at_hand=139264 batch=16Mi sequence=8192 dp=128 micro_batch=1",
    "served_tokens": "rate=1 time=1 deployed=1 capacity=2", "engine_s": "compute_s=1 weights_s=1 kv_s=1",
}  # fmt: skip


@pytest.mark.parametrize(("name", "values"), ELSEWHERE.items())
def test_law__equal_names_of_other_packages_are_not_composed(cli: Cli, name: str, values: str) -> None:
    answer = cli(f"law {name} {values}")
    assert (answer.status, answer.err.count("\n")) == (2, 1) and ("needs" in answer.err or f"no argument of {name}" in answer.err)


def test_law_chain__no_name_has_two_units_and_no_package_lends_another_what_it_does_not_declare() -> None:
    """Brute force: each law with all that a possible giver needs."""
    pairs = 0
    for law in LAWS.values():
        takes = input_units(law)
        for argument in arguments_of(law):
            for giver in givers(law, argument):
                here, there = law.module.partition(".")[0], giver.module.partition(".")[0]
                assert here == there or f"{here}.{argument}" in giver.gives.split()
                needed = input_units(giver)
                clash = [name for name in arguments_of(giver) if needed.get(name) != takes.get(name, needed.get(name))]
                steps, gaps = chain(law, {*arguments_of(law), *arguments_of(giver)} - {argument}, {argument: giver.name})
                assert not clash and not gaps and {step.argument: step.law for step in steps}[argument] == giver
                pairs += 1
    assert pairs > 60
    with pytest.raises(hw.HeadwayError, match="rate is 1/s in utilisation and token/s beside it"):
        chain(LAWS["served_tokens"], {"rate", "capacity", "time", "deployed"}, {"utilisation": "utilisation"})


def test_law__cache_of_a_model_of_equal_layers_is_composed_across_packages(cli: Cli) -> None:
    (row,) = cli.rows("law capacity_batch capacity=80GB weight_bytes=16GB context=1k layers=80 kv_heads=8 head_dim=128 element_bytes=2")
    assert row["result"] == pytest.approx((80e9 - 16e9) / (1000 * 80 * 2 * 8 * 128 * 2))


def test_law__lists_are_paired(cli: Cli) -> None:
    crossed = cli.rows("law batch_kv_s batch=1,2,2 context=1k,2k,3k kv_bytes_per_token=100k mem_bw=1TB/s")
    paired = cli.rows("law batch_kv_s batch=1,2,2 context=1k,2k,3k kv_bytes_per_token=100k mem_bw=1TB/s --zip")
    assert len(crossed) == 6 and [(row["batch"], row["context"]) for row in paired] == [(1, 1000), (2, 2000), (2, 3000)]
    assert [row["result"] for row in paired] == pytest.approx([1e8 / 1e12, 4e8 / 1e12, 6e8 / 1e12])


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("law mfu compute_s=-1 step_s=1", "0 or more"),
        ("law", "a law, such as hardware_ratio"),
        ("law hardware_ratoi", "did you mean hardware_ratio"),
        ("law hardware_ratio weight_byte=2", "hardware_ratio needs peak_flops=... mem_bw=..."),
        ("law hardware_ratio weight_byte=2 peak_flops=1TB/s mem_bw=1", "a quantity in flop/s, such as 989TFLOPS"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 mem_bw=1 speed=3", "no argument of hardware_ratio named 'speed'"),
        ("law hardware_ratio weight_byte=2 weight_byte=3", "weight_byte once"),
        ("law hardware_ratio weight_byte=2 peak_flops=h100.hbm mem_bw=1", "h100.hbm is in byte"),
        ("law hardware_ratio weight_byte=2 peak_flops=h100.speed mem_bw=1", "no fact of h100 named 'speed'"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 mem_bw=0", "values at which the law is defined"),
        ("law hardware_ratio weight_byte=nan peak_flops=1 mem_bw=1", "a finite number"),
        ("law batch_kv_s batch=1 context=1 kv_bytes_per_token=70kB mem_bw=1", "such as 70kB/token"),
        ("law gross_margin cost=3GB revenue=1ms", "a quantity in byte, as cost is"),
        ("law least values=3", "values in parentheses"),
        ("law collective_term_s term=3 tokens=1", "LLAMA_70B_TP8"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 --for mem_bw", "both --for KEY and --so-that VALUE"),
        ("law hardware_ratio weight_byte=2 peak_flops=1e15 --for mem_bw --so-that 20ms", "a quantity in token"),
        ("law drain_s 80GB", "key=value"),
        ("law kv_apart_step_s compute_s=1ms weights_s=1ms batch=4", "or context=... kv_bytes_per_token=... mem_bw=... (for kv_s by"),
        (f"law kv_apart_step_s batch=4 context=8k {POOL[:-18]}", "; or peak_flops=... (for compute_s by batch_compute_s)"),
        ("law mfu compute_s=1 batch=4 step_s=nosuch", "wants one of overlapped_step_s, serial_step_s, kv_apart_step_s or a quantity in s"),
        ("law mfu compute_s=1 step_s=machine_s_per_token", "a law that gives s; machine_s_per_token gives s/token"),
        ("law hardware_ratio weight_byte=2 peak_flops=1 mem_bw=1 spare=serial_step_s", "no argument of hardware_ratio named 'spare'"),
        ("law served_tokens time=1 rate=1 capacity=2 deployed=1 utilisation=utilisation", "rate is 1/s in utilisation and"),
        ("law batch_kv_s batch=1..100001 context=1..100001 kv_bytes_per_token=1 mem_bw=1 --zip", "at most 100000 points"),
        (f"law kv_apart_step_s batch=4 context=8192 {POOL} speed=3", "no argument of kv_apart_step_s named 'speed'"),
        ("law drain_s capacity=80GB,96GB mem_bw=1TB/s --zip", "two lists or more, of one length"),
        ("law drain_s capacity=1,2 mem_bw=1,2,3 --zip", "two lists or more, of one length"),
        ("law drain_s --zip", "lists of values"),
    ],
)
def test_law__wrong_input_is_one_line(cli: Cli, command: str, part: str) -> None:
    answer = cli(command)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
    assert part in answer.err


@pytest.mark.parametrize("command", [
    "price --case deepseek-day6", "price --sheet claude-opus", "trend chips",
    "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 64 --for context --so-that compute_s=kv_s",
    "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 64 --for context --so-that step_s=1ms",
])  # fmt: skip
def test_names_of_quantities__are_words_in_sentences_and_first_columns(command: str, cli: Cli) -> None:
    sentence, _, _, *rows = cli(*command.split()).text.splitlines()
    assert "_" not in sentence
    assert command.startswith("trend") or not any("_" in row.split("  ")[0] for row in rows[:12] if not row.startswith("note"))
