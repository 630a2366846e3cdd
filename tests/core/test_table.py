"""Table against plain loops over the same numbers, and its memory."""

from __future__ import annotations

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import HeadwayError, UnknownName
from headway.core.quantity import user_input as typed
from headway.core.table import Axis, Labels, Table, from_rows


def small() -> Table:
    """Two layouts by three batches; columns of every rank."""
    return Table(
        axes=(Axis("layout", ("tp=1", "tp=8")), Axis("batch", (1, 8, 64))),
        columns={
            "model": "llama",
            "tp": np.array([[1], [8]]),
            "batch": np.array([1, 8, 64]),
            "context": typed(8192, "context", "token"),
            "step_s": np.array([[0.03, 0.02, 0.05], [0.01, np.nan, 0.02]]),
            "usd_per_mtok_out": np.array([[9.0, 2.0, 0.5], [8.0, 1.5, 0.7]]),
            "bound": Labels(np.array([[0, 0, 1], [0, -1, 1]]), ("weights", "kv")),
            "ttft_s": None,
            "fits": np.array([[True, True, False], [True, True, True]]),
        },
    )


def test_table__rows_are_plain_values_in_c_order() -> None:
    rows = small().rows()
    assert [(row["tp"], row["batch"]) for row in rows] == [(tp, batch) for tp in (1, 8) for batch in (1, 8, 64)]
    assert rows[4]["step_s"] is None
    assert rows[4]["bound"] is None
    assert rows[2]["bound"] == "kv"
    assert {type(value) for row in rows for value in row.values()} == {str, int, float, bool, type(None)}
    assert all(json.loads(json.dumps(row, allow_nan=False)) == row for row in rows)


def test_table__column_is_a_view() -> None:
    table = small()
    assert table.shape == (2, 3)
    assert table["tp"].shape == (2, 3)
    assert table["tp"].strides[1] == 0
    assert np.shares_memory(table["step_s"], table.columns["step_s"])
    assert np.isnan(table["ttft_s"]).all()
    with pytest.raises(UnknownName, match="step_s"):
        table["steps"]


def test_table__take_where_sort_compose() -> None:
    table = small().where("fits").sort("step_s", descending=True)
    assert table["step_s"].tolist()[:4] == [0.03, 0.02, 0.02, 0.01]
    assert math.isnan(table["step_s"][-1])  # null last in either order
    assert table.take([0, 3]).sort("batch").rows() == table.take([0, 3]).rows()
    assert [row["bound"] for row in small().sort("bound").rows()] == ["kv", "kv", "weights", "weights", "weights", None]
    assert not small().where("tp = 3").rows()


def test_table__best_leaves_out_rows_that_do_not_fit() -> None:
    table = small()
    assert table.best("usd_per_mtok_out").rows()[0]["usd_per_mtok_out"] == 0.7  # 0.5 does not fit
    assert table.best("step_s", maximise=True).rows()[0]["step_s"] == 0.03
    assert len(table.where("step_s > 1s").best("step_s")) == 0
    with pytest.raises(HeadwayError):
        table.best("model")


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.booleans()), max_size=25))
def test_pareto__equals_brute_force(points: list[tuple[int, int, bool]]) -> None:
    rows = [{"x": float(x), "y": float(y), "fits": fits} for x, y, fits in points]
    if not rows:
        return
    found = {(row["x"], row["y"]) for row in from_rows(rows).pareto("x", "y", maximise=("y",))}
    fitting = {(row["x"], row["y"]) for row in rows if row["fits"]}
    want = {(x, y) for x, y in fitting if not any((a <= x and b >= y and (a, b) != (x, y)) for a, b in fitting)}
    assert found == want


def test_table__concat_keeps_rows_and_nulls() -> None:
    other = Table((Axis("row", (0,)),), {"model": "other", "tp": 2, "step_s": 0.5, "extra": "x"}, notes=("b",))
    joined = small().concat(other)
    assert len(joined) == 7
    assert joined.rows()[:6] == [{**row, "extra": None} for row in small()]
    last = joined.rows()[6]
    assert (last["model"], last["tp"], last["step_s"], last["extra"], last["batch"], last["fits"]) == ("other", 2, 0.5, "x", None, None)
    assert small().concat(small()).columns["model"] == "llama"  # equal constants stay one
    assert joined.notes == ("b",)


def test_explain__row_survives_sort_where_and_concat() -> None:
    def tree(name: str):
        return lambda row, key: (name, row, key)

    import dataclasses

    first, second = (dataclasses.replace(small(), tree=tree(name)) for name in "ab")
    joined = first.concat(second)
    assert joined.explain("step_s", 7) == ("b", 1, "step_s")
    assert joined.sort("step_s", descending=True).explain("step_s", 0) == ("a", 2, "step_s")
    assert second.where("batch = 64 and tp = 8").explain("step_s") == ("b", 5, "step_s")
    with pytest.raises(HeadwayError):
        small().explain("step_s")


def test_from_rows__round_trips() -> None:
    rows = [
        {"a": 1, "b": "x", "c": None, "d": True, "e": {"k": 1}, "f": 1.5},
        {"a": 2, "b": None, "c": None, "d": False, "e": [1], "f": None},
    ]
    assert from_rows(rows).rows() == rows


def test_table__prints_as_text_and_html(capsys: pytest.CaptureFixture[str]) -> None:
    small().table(["tp", "batch", "step_s", "bound"])
    out = capsys.readouterr().out
    assert out.split()[:4] == ["tp", "batch", "step", "bound"]
    assert "30 ms" in out
    assert "weights" in out
    html = small()._repr_html_()
    assert html.count("<tr>") == 7
    assert "30 ms" in html


def test_table__memory_of_a_million_points_is_that_of_its_columns() -> None:
    side = 1000
    columns = {f"c{index}": np.arange(side, dtype=float) for index in range(50)} | {"full": np.zeros((side, side))}
    table = Table((Axis("a", range(side)), Axis("b", range(side))), columns)
    tracemalloc.start()
    assert float(table["c7"].max()) == side - 1
    table.best("c3")
    table.sort("full").take(range(10)).rows()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # 50 full columns would be 400 MB
