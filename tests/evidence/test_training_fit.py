"""The fit of training: numbers that made rows are found again, no source decides its own prediction, intervals hold what they say."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from headway.cli.main import main
from headway.core import catalog
from headway.evidence.fit.result import free_places, read_efficiency, values_at
from headway.evidence.fit.statistics import ClassFold, cluster_weights, t_factor
from headway.evidence.training import refit as report
from headway.evidence.training.crossval import Cause, constant_mfu, covered, halves, measured_mfu, widths
from headway.evidence.training.fit import TrainingProblem, errors, fit, influence, numbers, speeds, table, training_problem
from headway.evidence.training.refit import TrainingRefit, blind, refit
from headway.evidence.training.row import read_training_rows
from headway.evidence.training.setup import TrainingSetup
from headway.performance.achieved import sections
from headway.training.achieved import FILE, training_efficiencies
from support.paths import DATA, SOURCE

pytestmark = pytest.mark.slow

ROWS = DATA / "training_rows.csv"
SHIPPED = SOURCE / "data" / FILE


@cache
def setups() -> tuple[TrainingSetup, ...]:
    made = [(row, blind(row)) for row in read_training_rows(ROWS)[0]]
    return tuple(replace(one, row=row) for row, one in made if isinstance(one, TrainingSetup))


@cache
def asked() -> TrainingProblem:
    return training_problem(setups(), training_efficiencies())


@cache
def refitted() -> TrainingRefit:
    return refit(ROWS, "headway fit --training training_rows.csv", "2026-11-21")


def cause_of(classes: list[str], routed: list[bool] | None = None, open_: list[bool] | None = None) -> Cause:
    none = [False] * len(classes)
    rows = np.arange(len(classes)).astype(str)
    return Cause(
        routed=np.array(routed or none), open=np.array(open_ or none), unread=np.array(none), clusters=rows, kinds=np.array(classes)
    )


def folds_of(error: list[float], classes: list[str], far: list[float] | None = None) -> list[ClassFold]:
    """Folds by source and by model of equal errors, and one by chip of errors `far`."""
    found = [ClassFold(kind=kind, labels=np.array(classes), error=np.array(error), hidden=np.array(error)) for kind in ("source", "model")]
    if far:
        found.append(ClassFold(kind="chip", labels=np.array(classes), error=np.array(far), hidden=np.array(far)))
    return found


# -- the fit ----------------------------------------------------------------------------------------------------------------------------


def test_training_fit__recovers_the_numbers_behind_the_rows() -> None:
    every = numbers()
    free = free_places(every)
    true = values_at(every, dict(zip(free, np.random.default_rng(1).normal(0, 0.7, len(free)).tolist(), strict=True)))
    made = speeds(asked(), table(true, asked().base))
    found = fit(replace(asked(), measured=made), every)
    miss = errors(replace(asked(), measured=made), table(found.values, asked().base))
    assert np.median(np.abs(miss)) < 0.02
    assert found.values["training.ampere.bf16", "compute"] == pytest.approx(true["training.ampere.bf16", "compute"], rel=0.08)


def test_training_fit__stays_at_the_priors_if_rows_agree() -> None:
    every = numbers()
    believed = values_at(every, {})
    found = fit(replace(asked(), measured=speeds(asked(), table(believed, asked().base))), every)
    assert found.values == pytest.approx(believed, rel=1e-3)


def test_training_fit__family_error_includes_the_general_error() -> None:
    every = numbers()
    moved = influence(every)
    place = {(one.section, one.key): index for index, one in enumerate(every)}
    parent, child = place["training.other.bf16", "compute"], place["training.hopper.bf16", "compute"]
    assert np.count_nonzero(moved[parent]) == 1 and np.count_nonzero(moved[child]) == 2
    found = fit(asked(), every).error
    assert found["training.other.bf16", "hidden_cp"] == 0  # fixed: no row decides it
    assert all(found[one.section, one.key] > 0 for one in every if one.spread)


# -- hygiene ----------------------------------------------------------------------------------------------------------------------------


def test_training_fit__no_source_decides_its_own_prediction() -> None:
    """What a source measured, made ten times faster, leaves the predictions of its rows as they were."""
    every, source = numbers(), "levanter"
    own = asked().sources == source
    told = replace(asked(), measured=np.where(own, 10 * asked().measured, asked().measured))
    predicted = []
    for one in (asked(), told):
        found = table(fit(one, every, ~own).values, one.base)
        predicted.append(speeds(one, found)[own])
    assert predicted[0] == pytest.approx(predicted[1], rel=1e-12)


def test_mfu__constant_model_takes_other_sources() -> None:
    found, reached = constant_mfu(asked()), measured_mfu(asked())
    levanter = asked().sources == "levanter"
    tpu = (asked().sources == "maxtext") & np.array(["tpu" in one.case.system.chip.name for one in asked().setups])
    assert found[levanter] == pytest.approx(np.full(levanter.sum(), found[levanter][0]))
    assert reached[tpu].min() <= found[levanter][0] <= reached[tpu].max()


def test_source_weights__each_source_counts_equally() -> None:
    weight = cluster_weights(np.array(["a", "a", "a", "b"]))
    assert weight[:3].sum() == pytest.approx(weight[3])


# -- intervals --------------------------------------------------------------------------------------------------------------------------


def test_training_interval__normal_residuals() -> None:
    random = np.random.default_rng(0)
    classes = [str(number % 40) for number in range(4000)]
    folds, cause = folds_of(list(random.normal(0, 0.1, 4000)), classes), cause_of(classes)
    assert widths(folds, cause)["spread"] == pytest.approx(0.1645 * t_factor(40), rel=0.04)
    assert covered(folds[0], folds, cause).mean() == pytest.approx(0.9, abs=0.02)


def test_training_interval__few_kinds_are_wide() -> None:
    """Student's t, 90 % two-sided, over 1.645: 2.132 with 5 kinds, 6.314 with 2."""
    assert [t_factor(kinds) * 1.64485 for kinds in (5, 2)] == pytest.approx([2.132, 6.314], rel=1e-3)


def test_training_interval__open_layouts_add_their_own_variance() -> None:
    classes = [str(number) for number in range(200)]
    errors_of, open_ = [0.1] * 100 + [0.3] * 100, [False] * 100 + [True] * 100
    found = widths(folds_of(errors_of, classes), cause_of(classes, open_=open_))
    assert found["open_layout"] == pytest.approx((0.3**2 - 0.1**2) ** 0.5)
    assert widths(folds_of(errors_of, classes), cause_of(classes, open_=[not one for one in open_]))["open_layout"] == 0


def test_training_interval__new_chip_is_what_its_fold_has_beyond_the_others() -> None:
    classes = [str(number) for number in range(100)]
    folds, cause = folds_of([0.1] * 100, classes, far=[0.25] * 100), cause_of(classes)
    found = widths(folds, cause)
    assert found["new_chip"] == pytest.approx((0.25**2 - 0.1**2) ** 0.5)
    assert halves(cause, found, ["new_chip"])[0] > halves(cause, found)[0]


def test_training_interval__outlying_class_is_not_covered() -> None:
    classes = [str(number // 5) for number in range(100)] + ["far"] * 5
    folds = folds_of([0.05] * 100 + [0.9] * 5, classes)
    assert not covered(folds[0], folds, cause_of(classes))[-5:].any()


# -- what ships -------------------------------------------------------------------------------------------------------------------------


def test_training_numbers__shipped_with_error_rows_and_meaning() -> None:
    shipped = {(one.section, one.key): one for one in read_efficiency(SHIPPED)}
    for one in numbers():
        line = shipped[one.section, one.key]
        assert (line.error > 0) == (one.spread > 0) and (line.rows > 0) == (one.spread > 0) and line.meaning, line
    for key in ("spread", "spread_routed", "spread_memory", "open_layout", "new_chip", "new_format", "new_structure", "new_year"):
        assert shipped["training.other.bf16", key].value >= 1, key
    assert {"fragmentation", "fixed"} <= {key for _, key in shipped}


def test_training_validation__beats_a_constant_mfu() -> None:
    found = refitted().validation
    ours, flat, constant = (report.misses_of(one) for one in (found.speed, found.flat, found.constant))
    assert ours.median < 0.15 and ours.p90 < 0.45
    assert ours.median < min(flat.median, constant.median) and ours.p90 < min(flat.p90, constant.p90)
    assert report.misses(found.memory.error, found.memory.sources).median < 0.1  # each source equal


def test_fit__writes_numbers_and_its_part_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.evidence.training.refit.refit", lambda *_: refitted())
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- training accuracy: generated, do not edit -->\nold\n<!-- training accuracy: end -->\nafter\n")
    assert main(["fit", "--training", str(ROWS), "--out", str(tmp_path), "--report", str(page), "-o", "json"]) == 0
    written = tmp_path / "training" / "efficiency.toml"
    assert sections(catalog.read(written), written).keys() == sections(catalog.read(SHIPPED), SHIPPED).keys()
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "\nold\n" not in text
    assert "| all |" in text and "Training: folds" in text and "an MFU of 40% everywhere" in text
    capsys.readouterr()


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--training", "no.csv"], "cannot be read"),
        (["--training", str(ROWS), "--from", str(ROWS)], "a fit of its own"),
        (["--training", str(ROWS), "--report", str(ROWS)], "has no part between"),
        ([], "--training ROWS.csv"),
    ],
)
def test_fit__wrong_input_is_one_line(args: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["fit", "--out", str(tmp_path), *args]) == 2
    told = capsys.readouterr().err
    assert why in told and len(told.strip().splitlines()) == 1


def test_fit__too_few_rows_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    few = tmp_path / "few.csv"
    few.write_text("\n".join(ROWS.read_text().splitlines()[:10]) + "\n")
    assert main(["fit", "--training", str(few), "--out", str(tmp_path)]) == 2
    assert "fewer than 50 rows of 3 sources" in capsys.readouterr().err
