"""The grammar of --where, against the same conditions written in Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import HeadwayError, UnknownName
from headway.core.filter import parse
from headway.core.table import Axis, Labels, Table

ROWS = [
    {"tp": 8, "tpot_s": 0.015, "bound": "weights", "fits": True, "model": "llama-3.1-70b", "ttft_s": None, "hbm": 80e9},
    {"tp": 4, "tpot_s": 0.030, "bound": "kv", "fits": False, "model": "deepseek-v3", "ttft_s": 1.5, "hbm": 141e9},
    {"tp": 1, "tpot_s": None, "bound": None, "fits": True, "model": "gpt-oss-20b", "ttft_s": 0.2, "hbm": None},
]


def kept(text: str) -> list[int]:
    condition = parse(text)
    return [number for number, row in enumerate(ROWS) if condition.row(row)]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("tp = 8", [0]), ("tp == 8", [0]), ("tp!=8", [1, 2]), ("tp>=4", [0, 1]), ("tpot_s <= 20ms", [0]), ("tpot_s <= 20 ms", [0]),
        ("tpot-s < 0.02", [0]), ("bound = KV", [1]), ('model = "deepseek_v3"', [1]), ("fits", [0, 2]), ("not fits", [1]),
        ("fits = no", [1]),
        ("tp = 8 or tp = 1 and bound = kv", [0]), ("(tp = 8 or tp = 4) and bound = kv", [1]), ("not (tp = 8 or tp = 4)", [2]),
        ("not not fits", [0, 2]), ("tp in 1, 4", [1, 2]), ("model in deepseek-v3, gpt-oss-20b and fits", [2]), ("hbm > 100 GB", [1]),
        ("ttft_s < 10s", [1, 2]), ("ttft_s != 1.5s", [0, 2]), ("tp=8 AND fits", [0]),
    ],
)  # fmt: skip
def test_where__conditions_select_rows(text: str, want: list[int]) -> None:
    assert kept(text) == want


@pytest.mark.parametrize(
    "text",
    ["", "tp", "tp >", "> 3", "tp = 8 tp = 4", "(tp = 8", "tp = 8)", "tp = 3GB", "tpot_s < 3GB", "fits = maybe", "and", "tp in",
     "tp = 8 and", "nope = 3", "__import__('os')", "tp = (1).__class__", "tp = 8; x",
     "(" * 200 + "fits" + ")" * 200, "fits and " * 2000 + "fits"],
)  # fmt: skip
def test_where__bad_condition_is_one_line(text: str) -> None:
    with pytest.raises(HeadwayError) as error:
        kept(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_where__unknown_column_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="tpot_s"):
        kept("tpot < 20ms")


def table() -> Table:
    """Three tp by four batches."""
    return Table(
        axes=(Axis("tp", (1, 2, 4)), Axis("batch", (1, 2, 3, 4))),
        columns={
            "tp": np.array([[1], [2], [4]]),
            "batch": np.arange(1, 5),
            "step_s": np.arange(12).reshape(3, 4) / 100,
            "bound": Labels(np.array([[0], [1], [-1]]), ("weights", "kv")),
            "model": "llama",
            "ttft_s": None,
            "fits": np.array([[True], [True], [False]]),
        },
    )


WORDS = st.sampled_from(
    ["tp = 2", "batch >= 3", "step_s < 55ms", "bound = kv", "bound != kv", "model = llama", "fits", "ttft_s < 1s", "tp in 1, 4"]
)
CONDITIONS = st.recursive(
    WORDS,
    lambda part: st.one_of(
        st.builds("not ({})".format, part), st.builds("({}) and ({})".format, part, part), st.builds("{} or {}".format, part, part)
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(CONDITIONS)
def test_where__table_equals_row_by_row(text: str) -> None:
    condition = parse(text)
    assert table().where(text).rows() == [row for row in table() if condition.row(row)]
