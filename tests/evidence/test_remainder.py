"""What the laws leave: factors are found, shrunk, refused and held within limits; they move no floor; and what is left is listed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import headway as hw
from headway.core import catalog
from headway.evidence.fit.result import read_efficiency
from headway.evidence.rows.row import read_rows
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.serving.class_means import KEYS, LEAST_ROWS, LIMITS, ClassMean, shipped
from headway.evidence.serving.engine_fit import FITTED_QUANTITIES, at_rest, cluster, is_fitted, measured
from headway.evidence.serving.predict import RATES, predict, width_key
from headway.evidence.serving.remainder import Leftovers, Remainder, differ, fit_remainders
from headway.laws.step.remainder import LEAST, MOST
from headway.performance.achieved import efficiencies, laid

DOCS = Path(__file__).parents[2] / "docs" / "remainder.md"
NUMBERS = [line for line in read_efficiency(catalog.PACKAGED / "efficiency.toml") if line.section.startswith("remainder.")]
MOST_NUMBERS = 30  # of the last factor, and of what replaced a fall-back kernel


def left(clusters: Sequence[tuple[str, str, float]], rows: int = 10) -> Leftovers:
    """Decode rows of (cluster, weights, error), each with an engine and a chip of its own; a decode factor moves all of each."""
    names = [cluster for cluster, _, _ in clusters for _ in range(rows)]
    count = len(names)
    return Leftovers(
        quantity=np.full(count, "decode"), error=np.repeat([error for _, _, error in clusters], rows), decode=np.ones(count),
        prompt=np.zeros(count), scatter=np.full(count, 0.1), cluster=np.array(names),
        weights=np.repeat([weights for _, weights, _ in clusters], rows), engine=np.array(names), chip=np.array(names),
    )  # fmt: skip


EVEN = [(f"m{index}|h100|vLLM|{source}", "bf16", 0.0) for index in range(8) for source in "ab"]


def test_factor__mean_of_clusters_shrunk_by_their_number() -> None:
    """n / (n + 1) of the mean where clusters scatter as factors do: two of three, eight of nine; rows of a cluster add nothing."""
    few, many, dense = (
        fit_remainders(left([*EVEN, *((f"g{index}|h{index}|vLLM|s{index}", "mxfp4", 0.06) for index in range(count))], rows))
        for count, rows in ((2, 10), (8, 10), (2, 100))
    )
    assert [(one.kind, one.name, one.part) for one in many] == [("weights", "mxfp4", "decode")]
    assert few[0].log == pytest.approx(-0.06 * 2 / 3, rel=0.1)  # farther ones count a little less
    assert many[0].log == pytest.approx(-0.06 * 8 / 9, rel=0.05)
    assert dense[0].log == pytest.approx(few[0].log, rel=1e-9)
    assert (few[0].clusters, few[0].rows, many[0].clusters, dense[0].rows) == (2, 20, 8, 200)


def test_factor__refused_for_clusters_that_differ_in_one_thing() -> None:
    same = [("g|h100|vLLM|a", "mxfp4", 0.3), ("g|h200|vLLM|a", "mxfp4", 0.3)]
    assert fit_remainders(left([*EVEN, *same])) == ()
    assert not differ(name for name, _, _ in same)


def test_factor__refused_within_its_error() -> None:
    apart = [(f"g{index}|h{index}|vLLM|s{index}", "mxfp4", error) for index, error in enumerate((0.2, -0.15))]
    assert fit_remainders(left([*EVEN, *apart])) == ()


def test_factor__held_within_limits() -> None:
    far = Remainder(kind="weights", name="mxfp4", part="decode", log=-2.0, error=0.1, clusters=5, rows=50)
    assert (far.value, Remainder(kind="engine", name="vllm", part="prompt", log=2.0, error=0.1, clusters=5, rows=50).value) == (LEAST, MOST)
    assert far.line().meaning == "measured runs of MXFP4 weights take 0.70 of the laws' time for steps without prompts: 5 clusters, 50 rows"


def test_shipped_factors__few_single_kinds_and_named() -> None:
    assert len(NUMBERS) <= MOST_NUMBERS
    for number in NUMBERS:
        assert number.section.split(".")[1] in ("weights", "engine", "chip")
        assert LEAST <= number.value <= MOST
        assert number.error > 0
        assert re.search(rf"take {number.value:.2f} of the laws' time .*: \d+ clusters, {number.rows} rows", number.meaning)


# -- in an answer -----------------------------------------------------------------------------------------------------------------


FACTORS = """
[remainder.weights.bf16]
decode = { value = 0.7 }
prompt = { value = 1.3 }
"""
GRID = {"batch": [1, 16, 64], "prompt": 2048, "output": 256}


def served(**more: object) -> list[dict]:
    return hw.serve("llama-3.1-8b", "h100-sxm", **{**GRID, **more}).rows()


@pytest.fixture
def strong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Factors far from 1 in a catalogue folder."""
    (tmp_path / "efficiency.toml").write_text(FACTORS, encoding="utf-8")
    monkeypatch.setenv("HEADWAY_CATALOG", str(tmp_path))
    catalog.default_catalog.cache_clear()
    yield
    monkeypatch.undo()
    catalog.default_catalog.cache_clear()


def test_factors__move_times_and_no_floor(strong: None, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = served()
    monkeypatch.delenv("HEADWAY_CATALOG")
    catalog.default_catalog.cache_clear()
    for one, plain in zip(moved, served(), strict=True):
        assert one["step_floor_s"] == plain["step_floor_s"]
        assert one["ttft_floor_s"] == plain["ttft_floor_s"]
        assert one["step_floor_s"] <= one["step_s"] < plain["step_s"]
        assert one["ttft_s"] > plain["ttft_s"]


def test_factors__none_without_an_engine_and_in_flat_step_models(strong: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = ({"engine": "none"}, {"overlap": "operators"}, {"overlap": "full"})
    moved = [served(**way) for way in ways]
    monkeypatch.delenv("HEADWAY_CATALOG")
    catalog.default_catalog.cache_clear()
    assert moved == [served(**way) for way in ways]


# -- what is left -----------------------------------------------------------------------------------------------------------------


def listed() -> dict[tuple[str, str, str], tuple[float, float, str]]:
    """Classes of docs/remainder.md that keep a mean: (quantity, key, class) -> mean, error, cause."""
    lines = re.findall(r"^\| (\w+) \| ([\w ]+) \| ([\w.+-]+) \| \d+ \| \d+ \| ([+-][\d.]+) \| ([\d.]+) \| (.+) \|$", DOCS.read_text(), re.M)
    return {(quantity, key, name): (float(mean), float(error), cause) for quantity, key, name, mean, error, cause in lines}


def beyond(mean: ClassMean) -> bool:
    """Beyond 0.05 (TTFT 0.15) and twice its own error."""
    return abs(mean.mean) > (0.15 if mean.quantity == "ttft" else 0.05) and abs(mean.mean) > 2 * mean.error


def test_classes__those_that_keep_a_mean_are_listed_with_their_cause() -> None:
    assert LIMITS == {"tpot": 0.05, "offline": 0.05, "decode": 0.05, "prefill": 0.05, "ttft": 0.15}
    assert LEAST_ROWS == 30
    keep = {(one.quantity, one.key, one.name): (one.mean, one.error) for one in shipped() if beyond(one)}
    assert {place: told[:2] for place, told in listed().items()} == keep
    assert all(len(cause) > 20 for _, _, cause in listed().values())


@pytest.mark.skipif("HEADWAY_MEASURED" not in os.environ, reason="HEADWAY_MEASURED names no table of measured rows")
def test_classes__means_of_the_rows_themselves() -> None:
    """By the predictions of the rows, in another loop than the fit's."""
    assert efficiencies() == laid((catalog.PACKAGED / "efficiency.toml",))
    found = [at_rest(task) for task in tasks(read_rows(os.environ["HEADWAY_MEASURED"])[0]) if isinstance(task, Task)]
    known = [task for task in found if task.row.reliability != "C" and is_fitted(task)]
    errors: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for task, made in zip(known, predict(known), strict=True):
        for name, _ in FITTED_QUANTITIES[task.kind]:
            value, quantity = measured(task, name), width_key(task.kind, name)
            if np.isfinite(value) and quantity in LIMITS:
                error = float(np.log(getattr(made, name).expected / value)) * (-1 if name in RATES else 1)
                for key, label in KEYS.items():
                    errors.setdefault((quantity, key, label(task)), {}).setdefault(cluster(task), []).append(error)
    for one in shipped():
        means = [np.mean(values) for values in errors[one.quantity, one.key, one.name].values()]
        assert len(means) == one.clusters
        assert sum(map(len, errors[one.quantity, one.key, one.name].values())) == one.rows
        assert np.mean(means) == pytest.approx(one.mean, abs=0.002), one
        assert np.std(means, ddof=1) / len(means) ** 0.5 == pytest.approx(one.error, abs=0.002), one
