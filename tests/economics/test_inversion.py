"""Price sheets read backwards: published sizes and KV, sheets made by the cost laws themselves, limits, and what must not be answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.core.errors import HeadwayError
from headway.core.formula import anonymous, replay
from headway.core.trace import Traced, record
from headway.economics.inversion.answer import Inversion, QuantityRow, invert, row, tree
from headway.economics.inversion.calibration import (
    CONSTANT,
    FITTED_PRIORS,
    LINE,
    OURS,
    STATED_MARKUP,
    by_laws,
    calibrated,
    fitted_lines,
    fitted_priors,
    left_out,
    read_examples,
    scores,
)
from headway.economics.inversion.features import features
from headway.economics.inversion.ladders import FITTED_LADDERS, fitted_ladders, ladder_score, ladders
from headway.economics.inversion.priors import AssumedIntervals, draw, markup, priors, read_assumed, reference, reference_log_cost
from headway.economics.sheets.catalogue import sheet
from headway.economics.sheets.sheet import ContextTier, Mode, PriceSheet, Rates
from headway.evidence.pages import PART
from headway.laws.economics.inversion import kv_at_knee, kv_joint
from reference.served_cost import fitted
from support.paths import DATA, ROOT

pytestmark = pytest.mark.slow

SOLD, SIZES = DATA / "open_models_sold.csv", DATA / "open_models_sizes.csv"
MTOK = 1e6
GEMINI = sheet("gemini-3.1-pro")
ROUND = replace(GEMINI, context_limit=1e6)  # the window as tiers.md takes it; the price page has 1,048,576


def made(inp: float, out: float, **more: Any) -> PriceSheet:
    """A sheet with rates in USD/Mtok."""
    return PriceSheet(
        provider="made", model="m", as_of="2026-11-20", source="a test", rates=Rates(input=inp / MTOK, output=out / MTOK), **more
    )


def laddered(inp: float, out: float, tiers: dict[float, float], limit: float) -> PriceSheet:
    """A sheet whose output rises by context."""
    steps = tuple(ContextTier(above=above, rates=Rates(input=inp / MTOK, output=dear / MTOK)) for above, dear in tiers.items())
    return made(inp, out, tiers=steps, context_limit=limit)


def one(given: PriceSheet, assume: str = "") -> Inversion:
    return invert([given], read_assumed(assume))[0]


def width(found: QuantityRow) -> float:
    return found.hi / found.lo


# -- models of known size ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told() -> Any:
    return left_out(read_examples(SOLD, SIZES))


def test_inversion__active_parameters_of_known_models(told: Any) -> None:
    by = {(each.method, each.size): each for each in scores(told)}
    ours, constant, line = (by[method, "active"] for method in (OURS, CONSTANT, LINE))
    assert ours.models == 42
    assert ours.over_constant <= 0.75 and ours.width <= 9
    assert 0.8 <= ours.coverage <= 0.97 and 0.8 <= by[OURS, "total"].coverage <= 0.97  # of the 90 % that they say
    assert ours.width < constant.width / 2 and constant.over_constant == 1
    assert line.over_constant < ours.over_constant, "docs/prices.md says that a regression is the better point"
    assert by[OURS, "total"].over_constant <= 0.75 and by[OURS, "total"].over_constant < by[LINE, "total"].over_constant


def test_inversion__models_that_came_after_the_laws(told: Any) -> None:
    examples = read_examples(SOLD, SIZES)
    earlier, later = ([each for each in examples if (each.priced < "2026-11-26") == early] for early in (True, False))
    assert (len(earlier), len(later)) == (27, 15)
    unseen = list(by_laws(OURS, calibrated(priors(), earlier), later))
    shares = {size: sum(each.holds for each in unseen if each.size == size) / len(later) for size in ("active", "total")}
    assert shares == pytest.approx({"active": 0.93, "total": 0.73}, abs=0.005), "docs/prices.md says how they were told before"
    bias = [np.exp(np.mean([np.log(each.value / each.truth) for each in estimates])) for estimates in (
        [each for each in unseen if each.size == "total"],
        [each for each in told if each.size == "total" and each.method == OURS],
    )]  # fmt: skip
    assert bias == pytest.approx([2.08, 1.30], abs=0.05)


def test_inversion__stated_markup_beats_a_constant(told: Any) -> None:
    by = {each.method: each for each in scores(told) if each.size == "active"}
    assert by[STATED_MARKUP].over_constant < 0.8


def test_inversion__no_method_sees_its_own_family(told: Any) -> None:
    examples = read_examples(SOLD, SIZES)
    moved = [each if each.family != "llama-3.1-405b" else _larger(each) for each in examples]
    again = left_out(moved, families=["llama-3.1-405b"])
    for method in (OURS, STATED_MARKUP, CONSTANT, LINE):
        before, after = (
            next(
                each.value for each in found if each.method == method and each.size == "active" and each.example.family == "llama-3.1-405b"
            )
            for found in (told, again)
        )
        assert after == before


def _larger(example: Any) -> Any:
    import dataclasses

    return dataclasses.replace(example, active=example.active * 3, total=example.total * 3)


def test_priors__shipped_equal_fitted() -> None:
    found, basis = fitted_priors(read_examples(SOLD, SIZES)), priors()
    assert {name: float(getattr(basis, name)) for name in FITTED_PRIORS} == pytest.approx(found, rel=2e-3)
    lines = fitted_lines(read_examples(SOLD, SIZES))
    assert {name: float(getattr(basis, name)) for name in lines} == pytest.approx(lines, rel=2e-3)
    assert {name: float(getattr(basis, name)) for name in FITTED_LADDERS} == pytest.approx(fitted_ladders(), rel=2e-3)


def test_priors__efficiencies_equal_the_step_model() -> None:
    found, basis = fitted(), priors()
    assert found.models > 100 and found.mfu_spread < 0.25 and found.decode_spread < 0.25
    for name in ("dense_mfu", "sparse_exponent", "eff_memory", "eff_compute", "step_fixed"):
        assert getattr(found, name) == pytest.approx(float(getattr(basis, name)), rel=0.1), name


def test_markup__stated_priors_agree_with_prices() -> None:
    basis = priors()
    found = markup(draw(basis, AssumedIntervals(), 4096), basis)
    assert 2.0 < float(basis.markup_input) < 8.0  # 3.2 from chip price, idle hours and margin alone; DeepSeek's own day has 4.0 on misses
    assert found.middle[:2] == pytest.approx([1.437, 0.592], abs=0.03)


@pytest.mark.parametrize("one_model", [each.model for each in read_examples(SOLD, SIZES)][::6])
def test_kv__not_identified_by_a_flat_sheet(one_model: str) -> None:
    example = next(each for each in read_examples(SOLD, SIZES) if each.model == one_model)
    for assume in ("", f"active={example.active},total={example.total}", "chip=h100-sxm,price=2,margin=0.5,utilisation=0.5"):
        found = row(one(made(example.input * MTOK, example.output * MTOK), assume), "kv")
        assert found.verdict == "not identified" and "ladder" in found.why
        assert found.lo is not None and width(found) > 10


def test_kv__of_a_ladder_is_bounded_and_holds_the_published() -> None:
    found = ladders()
    score = ladder_score(found)
    assert len({each.ladder.family for each in found}) == 6 and 0.8 <= score.coverage <= 0.97
    assert {each.verdict for each in found} == {"bounded"}, "no ladder identifies KV: open models lie on both sides of its slope"


# -- sheets made by the laws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("active", "sparsity"), [(8e9, 1.0), (70e9, 1.0), (5e9, 23.0), (37e9, 18.0), (100e9, 15.0)])
def test_inversion__round_trip_of_active_parameters(active: float, sparsity: float) -> None:
    basis = priors()
    cost = np.exp(reference_log_cost(basis, reference(), active, sparsity))
    found = one(made(cost[0] * float(basis.markup_input) * MTOK, cost[1] * float(basis.markup_output) * MTOK))
    size = row(found, "active")
    assert size.lo < active < size.hi and size.verdict == "identified"
    assert row(found, "total").lo < active * sparsity * 1.001 and row(found, "total").hi > active * sparsity


@pytest.mark.parametrize("kv", [5e3, 30e3, 150e3])
def test_kv__round_trip_of_a_ladder(kv: float) -> None:
    basis = priors()
    cost = np.exp(reference_log_cost(basis, reference(), 37e9, 18.0, kv))
    base = cost[1] * float(basis.markup_output) * MTOK
    rise = cost[2] * MTOK  # per token of context, at the cost of busy chips
    tiers = {32e3: base + rise * 64e3, 128e3: base + rise * 176e3}
    found = row(one(laddered(cost[0] * float(basis.markup_input) * MTOK, base, tiers, 256e3)), "kv")
    assert found.lo < kv < found.hi and found.hi / found.lo < found.prior_hi / found.prior_lo / 4 and found.driven_by == "context ladder"


def test_inversion__active_rises_with_price_and_kv_with_the_ladder() -> None:
    sizes = [row(one(made(price, 4 * price)), "active").value for price in (0.1, 0.3, 1, 3, 10)]
    assert sizes == sorted(sizes) and sizes[-1] > 10 * sizes[0]
    caches = [row(one(laddered(1, 5, {200e3: top}, 1e6)), "kv").value for top in (6, 8, 12, 20)]
    assert caches == sorted(caches) and caches[-1] > 4 * caches[0]


def test_sparsity__rises_with_output_over_input_price() -> None:
    ratios = [row(one(made(0.3, 0.3 * ratio)), "sparsity").value for ratio in (1, 2, 4, 8)]
    assert ratios == sorted(ratios)


# -- what is assumed --------------------------------------------------------------------------------------------------------------


def test_assume__stated_values_are_used() -> None:
    found = one(ROUND, "active=100B,chip=tpu-v7,price=5.40,margin=0.5")
    assert (row(found, "active").lo, row(found, "active").hi, row(found, "active").verdict) == (100e9, 100e9, "assumed")
    assert row(found, "margin").value == pytest.approx(0.5)
    assert row(found, "kv_slope").value == pytest.approx(59040, rel=1e-4)  # tiers.md: 59 KB at $5.40 on TPU v7


def test_kv_slope__at_another_chip_price() -> None:
    assert row(one(ROUND, "chip=tpu-v7,price=1.60"), "kv_slope").value == pytest.approx(199e3, rel=0.01)


def test_inversion__active_falls_with_margin() -> None:
    sizes = [row(one(made(1, 4), f"margin={margin}"), "active").value for margin in (0, 0.4, 0.8)]
    assert sizes == sorted(sizes, reverse=True)


def test_assume__more_facts_narrow_the_interval() -> None:
    before, after = (width(row(one(GEMINI, text), "active")) for text in ("", "chip=tpu-v7,price=5,margin=0.5,utilisation=0.5,mfu=0.2"))
    assert after < before


def test_inversion__one_host_is_wider_than_a_median() -> None:
    assert width(row(one(made(1, 4), "hosts=1"), "active")) > 1.2 * width(row(one(made(1, 4)), "active"))


def test_kv_knee__closed_form_of_the_lecture() -> None:
    chip = reference()
    compute = 2 * 100e9 / float(chip.peak)
    knee = row(one(GEMINI, "active=100B,chip=h100-sxm"), "kv_knee")
    assert knee.value == pytest.approx(kv_at_knee(compute, float(chip.chip.hbm_bw), 200e3), rel=1e-9)
    assert knee.value == pytest.approx(1667, rel=0.02) and knee.kind == "lower bound"
    at = {context: kv_joint(1667 * 200e3 / context, 1.5, 5.0) for context in (200e3, 500e3, 1e6)}
    assert list(at.values()) == pytest.approx([4168, 1667, 834], rel=1e-3)  # claim AP-13


def test_inversion__fast_mode_bounds_the_batch() -> None:
    fast = Mode(name="fast", rates=Rates(input=30 / MTOK, output=150 / MTOK), speed_ratio=20.0)
    assert row(one(made(5, 25, modes=(fast,))), "batch").lo >= 120
    assert row(one(made(5, 25)), "batch").lo < 120


# -- contradictions, wrong input ----------------------------------------------------------------------------------------------------


def said(found: Inversion) -> str:
    return "\n".join(each.why for each in found.rows if each.kind == "contradiction")


def test_inversion__contradictions_are_stated() -> None:
    assert all(text in said(one(GEMINI)) for text in ("step and ratio", "the step is not a knee", "input x2, output x1.5"))
    assert "rises faster" in said(one(laddered(1, 5, {200e3: 200}, 300e3)))
    assert "spreads more" in said(one(made(0.1, 50))) and "spreads less" in said(one(made(10, 0.1)))
    assert said(one(made(1, 3))) == ""


def test_inversion__free_tokens_identify_nothing() -> None:
    assert features(made(0, 0)) is None
    assert {each.verdict for each in one(made(0, 0)).rows} == {"not identified"}


@pytest.mark.parametrize(
    "text",
    [
        "margin=2",
        "active=0",
        "foo=1",
        "active",
        "chip=h1000",
        "active=1,active=2",
        "active=5..1",
        "active=100B,total=50B",
        "kv=-1",
        "batch=nan",
    ],
)
def test_assume__wrong_input(text: str) -> None:
    with pytest.raises(HeadwayError):
        one(GEMINI, text)


def test_inversion__same_alone_repeated_and_among_many() -> None:
    sheets = [made(price, 4 * price) for price in (0.1, 0.5, 2.0)] + [GEMINI]
    first, again = invert(sheets), invert(sheets)
    assert first == again
    many = invert(sheets * 8)
    for each, other in zip(first, many[:4], strict=True):
        for name in ("active", "total", "kv"):
            assert row(other, name).value == pytest.approx(row(each, name).value, rel=0.2)


# -- explanation and faces ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantity", ["active", "total", "kv", "active_line", "total_line", "kv_slope", "kv_knee", "kv_joint", "margin"])
def test_explain__every_value_of_an_inversion(quantity: str) -> None:
    found = one(GEMINI)
    with record():
        value = tree(found, priors(), quantity)
    assert anonymous(value) == []
    assert float(replay(value)) == pytest.approx(float(row(found, quantity).value), rel=1e-12)
    assert isinstance(value, Traced) == (quantity != "margin")


def test_price__inversion_of_a_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", "--sheet", "gemini-3.1-pro", "-o", "json", "--explain", "kv"]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = {each["quantity"]: each for each in answer["rows"]}
    assert rows["kv"]["unit"] == "byte/token" and rows["kv"]["level"] == 0.9 and rows["kv"]["driven_by"] == "context ladder"
    assert rows["utilisation"]["verdict"] == "not identified" and rows["utilisation"]["why"]
    assert answer["explain"]["kv"]["equation"].startswith("kv_slope_bound * eff_memory / ") and answer["columns"]["value"]["doc"]
    assert main(["price", "--sheet", "claude-opus"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("claude-opus") and "not identified: MFU, KV, batch" in text and "what would narrow it" in text
    assert "claude-opus is no model of its own: this is claude-opus-5.5" in text and "a straight line on both prices alone says" in text


def test_price_score__summary_and_report_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- prices: generated, do not edit -->\n<!-- prices: end -->\nafter\n", encoding="utf-8")
    assert main(["price", "--score", str(SOLD), "--truth", str(SIZES), "--report", str(page)]) == 0
    assert "42 models" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before") and text.endswith("after\n") and "| cost laws | active | 42 |" in text
    own = ROOT / "docs" / "prices.md"
    assert PART in own.read_text(encoding="utf-8")
    methods = text.split("-->")[1].split("\n\n")[1]
    assert methods in own.read_text(encoding="utf-8"), "docs/prices.md is not what headway price --score gives"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--sheet", "nosuch"], ["--sheet", "claude-opus", "--explain", "nosuch"], ["--score", "nosuch.csv", "--truth", "nosuch.csv"],
        ["--score", str(SOLD)], ["--score", str(SIZES), "--truth", str(SIZES)], ["--sheet", "claude-opus", "--history", "anthropic"],
        ["--sheet", "claude-opus", "--assume", "margin=half"],
    ],
)  # fmt: skip
def test_inversion__wrong_input_is_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["price", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("inward", "outward"), [(1e-10, 1e-10), (1e-8, 1e-8), (2e-8, 3e-8)])
def test_inversion__extreme_rates_identify_no_machine(inward: float, outward: float) -> None:
    from headway.economics.inversion.answer import invert
    from headway.economics.sheets.sheet import PriceSheet, Rates

    sheet = PriceSheet(provider="x", model="m", as_of="2026-11-20", source="made up", rates=Rates(input=inward, output=outward))
    [one] = invert([sheet])
    verdicts = {each.quantity: each.verdict for each in one.rows if each.kind == "quantity"}
    assert {verdicts[name] for name in ("margin", "utilisation", "chip_price", "kv")} == {"not identified"}
    if inward < 1e-9:
        assert set(verdicts.values()) == {"not identified"}
