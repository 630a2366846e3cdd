"""Card and bridge of three models on three machines: each factor by hand, their product the machine's own figure."""

from __future__ import annotations

import dataclasses
import functools
import math

import pytest

from headway.core.formula import anonymous, replay
from headway.core.trace import record
from headway.evidence.lecture import card
from headway.evidence.lecture.card import LectureCase, lecture_case
from headway.hardware.system import system
from headway.laws.step.step import compute_s, network_s, step_s, weights_s
from headway.models.config import model
from headway.models.precision import Precision
from reference import lecture_bridge as reference
from reference.lecture_bridge import MACHINES, MODELS, PAIRS
from support.command import Cli

CONTEXT = 8192


@functools.cache
def case_of(name: str, machine: str) -> LectureCase:
    with record():
        return lecture_case(model(name), system(machine), Precision())


@functools.cache
def walks(name: str, machine: str) -> dict[str, list[card.BridgeStage]]:
    with record():
        stages = card.stages(case_of(name, machine))
    return {
        quantity: [stage for stage in stages if stage.quantity == quantity]
        for quantity in dict.fromkeys(stage.quantity for stage in stages)
    }


def shares_of(case: LectureCase) -> reference.Shares:
    """What the walk takes from the fit: shares of peaks and fixed times, nothing else."""
    step = case.fitted.step
    names = [field.name for field in dataclasses.fields(reference.Shares) if field.name not in ("imbalance", "skew")]
    skew = float(step.experts[0].skew) if step.experts else 0.0
    return reference.Shares(imbalance=float(step.imbalance), skew=skew, **{name: float(getattr(step.achieved, name)) for name in names})


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_bridge__each_factor_by_hand(name: str, machine: str) -> None:
    """Every stage of every walk from dimensions and datasheets alone, and so every factor; norms' own weights are not counted by hand."""
    case = case_of(name, machine)
    terms, batch = case.fitted.step, float(case.batch)
    hand = reference.walks(name, machine, shares_of(case), batch, CONTEXT, float(network_s(terms, batch)))
    assert hand.keys() == walks(name, machine).keys()
    for quantity, walk in walks(name, machine).items():
        assert [stage.name for stage in walk] == list(hand[quantity]), quantity
        before = None
        for stage in walk:
            assert float(stage.value) == pytest.approx(hand[quantity][stage.name], rel=5e-4), (quantity, stage.name)
            if before is not None:
                factor = hand[quantity][stage.name] / hand[quantity][before]
                assert float(stage.factor) == pytest.approx(factor, rel=5e-4), (quantity, stage.name)
            before = stage.name


def test_bridge__hand_made_walks_can_fail() -> None:
    """A wrong dimension, share or format moves the hand-made figures by more than the tolerance."""
    case = case_of("deepseek-v3", "gb200-nvl72")
    shares = shares_of(case)
    right = reference.HandMachine("deepseek-v3", "gb200-nvl72")
    worse = dataclasses.replace(shares, decode_memory=shares.decode_memory * 1.02)
    assert right.memory_s(worse, 5544, CONTEXT) < right.memory_s(shares, 5544, CONTEXT) * 0.995
    assert right.knee(dataclasses.replace(shares, activation=math.inf), CONTEXT) > 1.01 * right.knee(shares, CONTEXT)


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_bridge__product_is_the_machines_own_figure(name: str, machine: str) -> None:
    """The last figures against the step law itself, which knows nothing of the walk."""
    case = case_of(name, machine)
    for walk in walks(name, machine).values():
        product = float(walk[0].value) * math.prod(float(stage.factor) for stage in walk[1:])
        assert product == pytest.approx(float(walk[-1].value), rel=1e-12)
    terms, ranks = case.fitted.step, float(case.layout.dp)
    knee = float(walks(name, machine)[card.BALANCED][-1].value)
    tokens = ranks * 4096  # whole sequences on each rank
    per_sequence = float(compute_s(terms, tokens, tokens * CONTEXT)) / tokens
    assert knee * per_sequence == pytest.approx(float(weights_s(terms, tokens)), rel=1e-12)
    step = float(walks(name, machine)[card.STEP][-1].value)
    batch = float(case.batch)
    assert step == pytest.approx(float(step_s(terms, batch, batch * CONTEXT, 0.0, 0.0)), rel=1e-12)


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_bridge__crossing_of_kv_and_compute(name: str, machine: str) -> None:
    """At the last context KV reads take as long as compute, by the fitted coefficients; before it the lecture's form by hand."""
    case, walk = case_of(name, machine), walks(name, machine).get(card.CROSSING)
    assert walk is not None
    d, (_, bandwidth, _, fp8, bf16) = MODELS[name], MACHINES[machine]
    peak = fp8 if d["byte"] == 1.0 else bf16
    stages = {stage.name: float(stage.value) for stage in walk}
    assert stages["ratio and format"] == pytest.approx(2 * d["active"] / peak * bandwidth / d["kv"], rel=2e-3)
    assert stages["KV per token"] == pytest.approx(200e3 * d["active"] / 100e9 * (100e9 / 300 / 200e3) / d["kv"], rel=2e-3)
    if "fitted rates" in stages:
        context, ranks, terms = stages["fitted rates"], float(case.layout.dp), case.fitted.step
        reads = context * sum(float(span.read) for span in terms.spans) / float(terms.achieved.decode_memory)
        assert float(compute_s(terms, ranks, ranks * context)) == pytest.approx(reads, rel=1e-9)


@pytest.mark.parametrize(("name", "machine"), PAIRS)
def test_card__by_hand(name: str, machine: str) -> None:
    case = case_of(name, machine)
    with record():
        figures = {entry.name: entry for entry in card.figures(case)}
    d, (chips, bandwidth, hbm, fp8, bf16) = MODELS[name], MACHINES[machine]
    peak = fp8 if d["byte"] == 1.0 else bf16
    batch, weights = float(case.batch), d["byte"] * d["total"]
    balanced = d["byte"] * peak / 2 / bandwidth * d["total"] / d["active"]
    hand = {
        "hardware ratio": d["byte"] * peak / 2 / bandwidth,
        "sparsity, total / active": d["total"] / d["active"],
        "balanced batch": balanced,
        "double the balanced batch": 2 * balanced,
        "triple the balanced batch": 3 * balanced,
        "floor of a step: weights": weights / chips / bandwidth,
        "drain time of HBM": hbm / bandwidth,
        "KV cache per token": d["kv"],
        "context where KV reads equal weight reads": weights / batch / d["kv"],
        "context where KV reads equal compute": 2 * d["active"] / peak * bandwidth / d["kv"],
        "longest context": max(chips * hbm - weights, 0) / batch / d["kv"],
        "scale-up domains that hold the weights": math.ceil(weights / chips / hbm),
    }
    for key, value in hand.items():
        assert float(figures[key].value) == pytest.approx(value, rel=2e-3), key
    step = float(figures["step there, expected"].value)
    assert float(figures["tokens/s of the machine"].value) == pytest.approx(batch / step, rel=1e-12)
    assert float(figures["share of a large service"].value) == pytest.approx(batch / step / (1.3e15 / (365.25 / 12 * 86_400)), rel=2e-4)
    assert float(figures["step there, at peak rates"].value) <= step
    experts = figures["experts on the fullest chip"].value
    assert (experts is None) == (not d["experts"]) and (experts is None or float(experts) == max(math.ceil(d["experts"] / chips), 1))


def test_card_and_bridge__figures_have_origins_and_replay() -> None:
    with record():
        case = lecture_case(model("deepseek-v3"), system("gb200-nvl72"), Precision())
        values = [entry.value for entry in card.figures(case)] + [stage.value for stage in card.stages(case)]
    for value in values:
        assert anonymous(value) == []
        assert float(replay(value)) == pytest.approx(float(value), rel=1e-12)


def test_card__command_line(cli: Cli) -> None:
    text = cli("lecture", "--model", "deepseek-v3", "--on", "gb200-nvl72").text
    assert text.startswith("deepseek-v3 on gb200-nvl72 balances at 5,580 sequences; the lecture's 2,400 takes a sparsity of 8")
    assert cli("show", "model", "deepseek-v3", "--on", "gb200-nvl72").text == text
    rows = cli.rows("lecture", "--model", "deepseek-v3", "--on", "gb200-nvl72", "--batch", "2304", "--context", "4k", "--kv", "fp8")
    step = next(row for row in rows if row["figure"] == "step there, expected")
    (serve,) = cli.rows("serve", "deepseek-v3", "--on", "gb200-nvl72", "--ep", "72", "--batch", "2304", "--context", "4k", "--kv", "fp8")
    assert (step["here"], step["lecture"]) == (pytest.approx(serve["step_s"], rel=1e-12), 0.02)
    assert "balanced_batch" in cli("lecture", "--model", "deepseek-v3", "--on", "gb200-nvl72", "--where", "figure = 'balanced batch'",
                                   "--explain", "here").text  # fmt: skip


def test_bridge__command_line(cli: Cli) -> None:
    text = cli("lecture", "--model", "deepseek-v3", "--on", "gb200-nvl72", "--bridge").text
    assert text.startswith("From the board's 2,400 sequences to ")
    assert "Fitted rates move the knee down, while the lecture doubles or triples the batch in practice." in text
    assert cli("show", "model", "deepseek-v3", "--on", "gb200-nvl72", "--bridge").text == text


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("lecture --model deepseek-v3", "--on"), ("lecture --on gb200-nvl72", "--model"), ("lecture --bridge", "--model"),
        ("lecture --model nope --on gb200-nvl72", "nope"), ("lecture --model deepseek-v3 --on nope", "nope"),
        ("lecture --model deepseek-v3,gpt-oss-20b --on gb200-nvl72", "one model"), ("lecture RB-10 --batch 8", "--model"),
        ("lecture --model deepseek-v3 --on gb200-nvl72 --batch 0", "--batch"), ("show chip h100-sxm --on gb200-nvl72", "show model"),
        ("lecture --model deepseek-v3 --on gb200-nvl72 --kv nope", "nope"), ("show model gpt-oss-20b --batch 8", "--on"),
    ],
)  # fmt: skip
def test_card__wrong_input_is_one_line(command: str, says: str, cli: Cli) -> None:
    status, out, err = cli(command)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err
