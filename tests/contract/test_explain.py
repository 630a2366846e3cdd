"""Every number of every verb explains itself: each leaf has an origin, and the tree evaluated again gives the number."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.core.columns import unit as unit_of_column
from headway.core.equation import equation_of, unit_of, unit_of_operation
from headway.core.explain import to_json, to_text
from headway.core.formula import anonymous, leaves, replay
from headway.core.quantity import KINDS, Sourced, is_literal, known, user_input
from headway.core.trace import OPERATIONS, Call, Traced, record
from headway.evidence.claims import claim
from headway.evidence.claims import explain as explain_claim
from headway.evidence.claims.rows import computable
from headway.models.config import model
from headway.models.describe import about_model
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.serve import SERVE
from support.cases import STEP_MODELS, Point, drawn, fitted_numbers
from support.each import for_each

AT_CONTEXT = (("batch", 48), ("context", 9000))
REQUESTS = (("batch", 48), ("prompt", 9000), ("output", 1000))
WIDE = Layout(tp=2, cp=2, pp=2)
FITTED_NUMBERS = fitted_numbers()
LINKS = {place for place in FITTED_NUMBERS if place.startswith("collective.")}
POINTS = [
    Point("llama-3.1-70b", "8xh100-sxm", WIDE, AT_CONTEXT),
    Point("llama-3.1-70b", "8xh100-sxm", WIDE, REQUESTS),
    Point("deepseek-v3", "gb200-nvl72", Layout(tp=2, ep=18, dp=9, pp=2, replicas=2), REQUESTS, assumed=(("price_metric", "rental_3yr"),)),
    Point("deepseek-v3.2", "8xh200-sxm", Layout(ep=8, dp=8), AT_CONTEXT, formats=(("weights", "fp8"), ("kv", "fp8"))),
    Point("deepseek-v4-flash", "8xh200-sxm", Layout(tp=8, ep=4), REQUESTS),
    Point("mistral-7b-v0.1", "h100", load=REQUESTS),
    Point("gpt-oss-120b", "8xmi300x", Layout(tp=2, ep=4, dp=2), AT_CONTEXT),
    Point("qwen3-next-80b-a3b", "16xh100-sxm", Layout(tp=2, dp=8, ep=16), REQUESTS),
    Point("ai21-jamba-1.5-mini", "8xh100-sxm", Layout(tp=4), AT_CONTEXT),
    Point("mamba2-2.7b", "tpu-v5p-4x4x4", load=REQUESTS),
    *(drawn(seed) for seed in range(2000, 2006)),
]


def honest(tree: Any, printed: float) -> None:
    """Every leaf of a tree has an origin; evaluated again, the tree gives the printed value."""
    assert anonymous(tree) == []
    assert float(replay(tree)) == pytest.approx(printed, rel=1e-12, abs=0)
    for path, leaf in distinct_leaves(tree):
        assert leaf.kind in KINDS, path
        assert leaf.source.strip(), path
        assert leaf.name.strip(), path


def distinct_leaves(tree: Any) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    for path, leaf in leaves(tree):
        if id(leaf) not in seen:
            seen.add(id(leaf))
            yield path, leaf


def numeric(row: dict[str, Any]) -> list[str]:
    return [key for key, value in row.items() if isinstance(value, int | float)]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.id)
def test_serve__every_number_has_an_honest_tree(point: Point) -> None:
    table = point.table()
    row = table.row(0)
    keys = numeric(row)
    assert len(keys) >= (50 if row["tpot_s"] is not None and row["usd_per_mtok_out"] is not None else 35)
    for key in keys:
        tree = table.explain(key)
        honest(tree, float(row[key]))


def test_explain__row_in_the_middle_of_a_grid() -> None:
    point = Point("deepseek-v3", "gb200-nvl72", Layout(tp=2, ep=36, dp=36), (("batch", 1), ("context", 1)))
    table = point.but(batch=[1, 100, 4000], context=[1000, 50_000]).table()
    for number in range(len(table)):
        row = table.row(number)
        honest(table.explain("step_s", number), row["step_s"])
        honest(table.explain("kv_bytes_chip", number), row["kv_bytes_chip"])


def test_explain__row_of_a_sorted_and_filtered_table() -> None:
    table = Point("llama-3.1-8b", "h100").but(batch=[1, 8, 64, 100_000], context=8000).table().where("fits").sort("tok_per_s_chip", True)
    for number in range(len(table)):
        honest(table.explain("decode_tok_per_s", number), table.row(number)["decode_tok_per_s"])


def kinds_of(point: Point) -> dict[str, dict[str, Any]]:
    found = [leaf for _, leaf in distinct_leaves(point.table().explain("step_s"))]
    return {kind: {leaf.name: leaf for leaf in found if leaf.kind == kind} for kind in KINDS}


@pytest.mark.parametrize("overlap", ["fitted", "operators"])
def test_explain__leaves_of_every_kind(overlap: str) -> None:
    """A step rests on the config, the datasheet, what the user asked and what was fitted or named defaults, and says so."""
    by_kind = {kind: leaves.keys() for kind, leaves in kinds_of(POINTS[0].assuming(overlap=overlap)).items()}
    assert {f"llama-3.1-70b.{key}" for key in ("hidden_size", "num_attention_heads", "intermediate_size")} <= by_kind["config"]
    assert {"h100_sxm.hbm_bw", "h100_sxm.peak_bf16", "h100_sxm.scale_up_bw"} <= by_kind["datasheet"]
    assert {"batch", "context", "tp", "cp", "pp"} <= by_kind["input"]
    fitted = {(place.partition(".")[0], place.rpartition(".")[2]) for place in by_kind["fitted"]}
    assert {("collective", "alpha"), ("collective", "eff_network")} <= fitted
    if overlap == "fitted":
        assert {
            ("gemm", "compute"),
            ("gemm", "memory"),
            ("decode", "block_bytes"),
            ("elementwise", "t0_s"),
            ("engine", "step_overhead_s"),
        } <= fitted
        assert not {"eff_compute", "eff_memory", "t0"} & by_kind["default"]
    else:
        assert {"eff_compute", "eff_memory", "t0"} <= by_kind["default"] and by_kind["fitted"] <= {*LINKS}


@pytest.mark.parametrize("point", POINTS[:10], ids=lambda point: point.id)
def test_explain__fitted_leaf_names_its_file_and_meaning(point: Point) -> None:
    found = kinds_of(point)["fitted"]
    assert len(found) > 10
    for name, leaf in found.items():
        value = FITTED_NUMBERS[name]
        assert leaf.source == f"data/efficiency.toml, fitted; docs/accuracy.md: {value['meaning']}" and value["meaning"]
        assert float(leaf) == value["value"] and leaf.unit == value["unit"]


@pytest.mark.parametrize("overlap", STEP_MODELS)
@pytest.mark.parametrize("engine", ["none", "vllm", "llamacpp"])
def test_explain__every_step_model_and_engine_replays(overlap: str, engine: str) -> None:
    for point in POINTS[1:6]:
        table = point.assuming(overlap=overlap, engine=engine).table()
        for key in ("step_s", "ttft_s", "tpot_s", "overhead_s", "kv_s"):
            if table.row(0)[key] is not None:
                honest(table.explain(key), table.row(0)[key])


def test_explain__edited_fact_is_a_user_input() -> None:
    from headway.hardware.edit import edit
    from headway.hardware.system import system

    point = Point("llama-3.1-8b", edit(system("h100"), "chip.hbm_bw", "10TB/s"))
    found = {leaf.name: leaf for _, leaf in distinct_leaves(point.table().explain("weights_s"))}
    assert found["chip.hbm_bw"].kind == "input"
    assert found["chip.hbm_bw"] == 10e12


def test_explain__tree_prints_as_text_and_json() -> None:
    table = POINTS[2].table()
    for key in ("tpot_s", "usd_per_mtok_out", "fits"):
        tree = table.explain(key)
        text = to_text(tree, key)
        assert text.startswith(key)
        assert len(text.splitlines()) > 20
        found = json.loads(json.dumps(to_json(tree), allow_nan=False))
        assert found["value"] == float(tree)
        assert found["unit"] == unit_of_column(key)


@for_each([key for key, column in SERVE.items() if column.unit not in ("", "bool")])
def test_columns__unit_equals_that_of_the_law(key: str) -> None:
    table = POINTS[1].table()
    if table.row(0)[key] is None:  # a column that this row does not need
        return
    tree = table.explain(key)
    assert unit_of(tree) == unit_of_column(key)


@pytest.fixture(scope="module")
def planned() -> Any:
    from headway.serving.plan.plan import plan

    return plan("qwen3-30b-a3b", "8xh100-sxm", Load(prompt=4000, output=500), ttft="2s", tpot="50ms", current="tp=4 batch=16")


@pytest.mark.parametrize("kind", ["best", "frontier", "elasticity", "current"])
def test_plan__every_number_has_an_honest_tree(planned: Any, kind: str) -> None:
    rows = planned.rows()
    number = max(index for index, row in enumerate(rows) if row["kind"] == kind)
    keys = numeric(rows[number])
    assert len(keys) >= 50
    assert ("elasticity" in keys) == (kind == "elasticity")
    assert ("gain" in keys) == (kind == "current")
    for key in keys:
        honest(planned.explain(key, number), float(rows[number][key]))


# -- what is known of a model ---------------------------------------------------------------------------------------------------

KINDS_OF_MODEL = (
    "llama-3.1-70b", "deepseek-v3", "deepseek-v3.2", "deepseek-v4-pro", "gpt-oss-20b", "llama-4-maverick-17b-128e", "mistral-7b-v0.1",
    "qwen3-next-80b-a3b", "ai21-jamba-1.5-large", "minimax-m1-80k", "mamba2-2.7b", "gpt2", "palm-540b", "glam-64b-64e", "switch-base-128",
)  # fmt: skip


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_show_model__every_number_has_an_honest_tree(name: str) -> None:
    context = user_input(20_000, "context", "token")
    plain = about_model(model(name), context)
    with record():
        recorded = about_model(model(name), context)
    count = 0
    for (path, tree), (_, value) in zip(numbers(recorded), numbers(plain), strict=True):
        count += 1
        assert isinstance(tree, Traced | Sourced) or is_literal(tree), path
        if math.isfinite(float(value)):
            honest(tree, float(value))
    assert count > 15


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        for key, item in value.items():
            yield from numbers(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from numbers(item, f"{path}[{index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


# -- trend, lecture -------------------------------------------------------------------------------------------------------------


def test_trend__every_number_has_an_honest_tree() -> None:
    from headway.hardware.trend import trend_chips

    with record():
        recorded = trend_chips()
    plain = trend_chips()
    assert len(plain) > 50
    for new, old in zip(recorded, plain, strict=True):
        for field in dataclasses.fields(old):
            tree, value = getattr(new, field.name), getattr(old, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                assert isinstance(tree, Traced | Sourced), f"{old.chip}.{field.name}"
                honest(tree, float(value))


@cache
def printed(name: str) -> dict[str, float]:
    return {part.name: part.recomputed for part in claim(name)[0].parts}


@pytest.mark.parametrize("name", sorted(computable()))
def test_claim__every_number_has_an_honest_tree(name: str) -> None:
    parts = explain_claim(name)
    assert parts.keys() == printed(name).keys()
    for part, tree in parts.items():
        if math.isfinite(float(tree)):
            honest(tree, printed(name)[part])
        else:
            assert anonymous(tree) == []


ASKED = (
    "serve deepseek-v3 --on gb200-nvl72 --ep 72 --dp 72 --batch 4608 --prompt 8k --output 1k",
    "plan llama-3.1-8b --on h100 --prompt 1k --output 100",
    "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 8k --for batch --so-that step_s=20ms",
    "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 64 --for context --so-that compute_s=kv_s",
    "show model deepseek-v3.2",
    "show chip h100",
    "show system gb200-nvl72",
    "trend chips --where chip=h100_sxm",
    "lecture RB-08",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", ASKED)
def test_explain__every_printed_number_has_a_tree(command: str) -> None:
    row = answer(command)["rows"][0]
    keys = numeric({key: value for key, value in row.items() if not isinstance(value, bool)})
    assert len(keys) > 3
    trees = answer(f"{command} --explain {','.join(keys)}")["explain"]
    assert trees.keys() == set(keys)
    for key in keys:
        assert trees[key]["value"] == pytest.approx(row[key], rel=1e-12), key
        assert all(leaf["kind"] in KINDS or isinstance(leaf["value"], bool) for leaf in json_leaves(trees[key])), key
        assert all(leaf["source"] for leaf in json_leaves(trees[key]) if not isinstance(leaf["value"], bool)), key


def answer(command: str) -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*command.split(), "-o", "json"]) == 0
    return json.loads(out.getvalue())


def json_leaves(node: Any) -> Iterator[dict[str, Any]]:
    """Every leaf of a tree as JSON has it."""
    if isinstance(node, list):
        for item in node:
            yield from json_leaves(item)
    elif isinstance(node, dict) and "kind" in node and "name" in node:
        yield node
    elif isinstance(node, dict):
        for item in node.get("inputs", node if "value" not in node else {}).values():
            yield from json_leaves(item)


# -- the walk itself ------------------------------------------------------------------------------------------------------------


def test_anonymous__finds_numbers_without_a_source() -> None:
    """Arithmetic of facts is recorded; a bare number in it, or one that Python's own functions made, is an anonymous leaf."""
    from headway.laws.roofline.balance import drain_s

    capacity, bandwidth = known(80e9, "hbm", "byte", "datasheet", "a source"), known(3.35e12, "bw", "byte/s", "datasheet", "a source")
    chips = known(8, "chips", "", "input", "a source")
    with record():
        honest_tree, bare = drain_s(capacity * chips, bandwidth + bandwidth), drain_s(capacity * 3, bandwidth)
        hidden = drain_s(abs(capacity), bandwidth)
    assert anonymous(honest_tree) == []
    assert float(replay(honest_tree)) == float(honest_tree) == 640e9 / 6.7e12
    assert anonymous(bare) == ["/drain_s.capacity/multiply.second"]
    assert anonymous(hidden) == ["/drain_s.capacity"]
    with record():
        halved = 1 - drain_s(capacity * 0.5, 2 * bandwidth)
    assert anonymous(halved) == []


OPERATIONS_TO_RECORD = (
    (lambda a, b: a * b / (b + b) - a**b, "a * b / (b + b) - a ** b"),
    (lambda a, b: -(a - (b - a)), "-(a - (b - a))"),
    (lambda a, b: a / (b / a) / b, "a / (b / a) / b"),
    (lambda a, b: (a * b) ** b + sum([a, b]), "(a * b) ** b + (a + b)"),
    (lambda a, b: np.maximum(a * b, b) * np.minimum(b, a / b), "max(a * b, b) * min(b, a / b)"),
    (lambda a, b: (a**b) ** a, "(a ** b) ** a"),
)


@pytest.mark.parametrize(("compute", "text"), OPERATIONS_TO_RECORD, ids=[text for _, text in OPERATIONS_TO_RECORD])
def test_record__arithmetic_reads_and_replays_as_it_was_computed(compute: Callable[[Any, Any], Any], text: str) -> None:
    first, second = known(7.0, "x.a", "", "input", "a source"), known(2, "x.b", "", "input", "a source")
    with record():
        value = compute(first, second)
    assert equation_of(value.step) == text
    plain = compute(7.0, 2)
    assert float(value) == float(replay(value)) == plain
    assert eval(text, {"a": 7.0, "b": 2, "max": max, "min": min}) == plain
    assert anonymous(value) == []


def test_record__ints_stay_ints_and_laws_record_no_arithmetic_of_their_own() -> None:
    from headway.laws.roofline.balance import drain_s

    layers, heads = known(61, "layers", "", "config", "a source"), known(2**60 + 1, "heads", "", "config", "a source")
    with record():
        product, drain = layers * heads, drain_s(layers, heads)
    assert product == 61 * (2**60 + 1) and isinstance(product, int)
    assert not drain.step.is_operation and set(drain.step.inputs) == {"capacity", "mem_bw"}
    assert type(layers * heads) is int and type(layers / 2) is float  # outside: plain numbers


@pytest.mark.parametrize(
    ("name", "units", "expected"),
    [("multiply", ["byte/s", "s"], "byte"), ("divide", ["byte", "byte/token"], "token"), ("divide", ["", "s"], "1/s"),
     ("add", ["", "USD"], "USD"), ("multiply", ["token", "token"], "token^2"), ("divide", ["USD/s", "token/s"], "USD/token")],
)  # fmt: skip
def test_unit_of_operation__is_that_of_its_operands(name: str, units: list[str], expected: str) -> None:
    assert unit_of_operation(Call(OPERATIONS[name], {}, 0.0), units) == expected


def test_replay__runs_the_laws_again() -> None:
    tree = POINTS[0].table().explain("weights_s")
    before = replay(tree)
    leaf = next(leaf for _, leaf in leaves(tree) if leaf.name == "h100_sxm.hbm_bw")
    memo = {id(leaf): leaf * 2}
    assert replay(tree, memo) == pytest.approx(before / 2, rel=1e-12)
