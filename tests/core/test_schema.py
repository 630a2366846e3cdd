"""The grammar of numbers, lists and ranges, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.cli.parser import Parser
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.notes import noted
from headway.core.quantity import Sourced
from headway.core.question import FlagGroup, Question
from headway.core.schema import MOST, Field, axis, scalar

COUNT = Field(integer=True)
TOKENS = Field("token", integer=True)
TIME = Field("s")


@pytest.mark.parametrize(
    ("text", "q", "want"),
    [
        ("8", COUNT, 8),
        ("8k", TOKENS, 8000),
        ("8Ki", TOKENS, 8192),
        ("20 ms", TIME, 0.02),
        ("1,2,4", COUNT, (1, 2, 4)),
        ("1..4", COUNT, (1, 2, 3, 4)),
        ("1..512*2", COUNT, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)),
        ("1..100*10", COUNT, (1, 10, 100)),
        ("1..5*2", COUNT, (1, 2, 4, 5)),  # the end is always a member
        ("1..100+30", COUNT, (1, 31, 61, 91, 100)),
        ("1,2,8..64*2", COUNT, (1, 2, 8, 16, 32, 64)),
        ("4,1..4", COUNT, (4, 1, 2, 3)),  # in the order given, each once
        ("1k..4k+1k", TOKENS, (1000, 2000, 3000, 4000)),
        ("1k..1e+4*10", TOKENS, (1000, 10000)),
        ("10ms..1s*10", TIME, (0.01, 0.1, 1.0)),
        ("7..7", COUNT, (7,)),
        ("1..20*1.5", COUNT, (1, 2, 3, 5, 8, 11, 17, 20)),  # 3.375 -> 3, 5.06 -> 5, ...
    ],
)
def test_axis__text_to_values_in_si(text: str, q: Field, want: Any) -> None:
    found, notes = axis(text, q, "--batch")
    assert found == pytest.approx(want, rel=1e-12)
    assert notes == ()
    for value in found if isinstance(found, tuple) else (found,):
        assert isinstance(value, Sourced)
        assert (value.kind, value.name, value.unit) == ("input", "batch", q.unit)
        assert isinstance(value, int) == q.integer


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("0", COUNT), ("-4", COUNT), ("nan", COUNT), ("inf", TIME), ("-inf", TIME), ("2.5", COUNT), ("", COUNT), ("1,,2", COUNT),
        ("x", COUNT), ("3GB", TOKENS), ("3s", COUNT), ("3parsec", TIME), ("5..1", COUNT), ("1..", COUNT), ("..4", COUNT),
        ("0..8*2", COUNT), ("1..8*1", COUNT), ("1..8*0.5", COUNT), ("1..8+0", COUNT), ("1..8+-1", COUNT), ("1..1e12", COUNT),
        ("1..2*1.0000000001", TIME), ("-3,-2", COUNT), ("1e999", COUNT), ("1..nan", COUNT), ("1..inf*2", TIME), ("9" * 200, COUNT),
        ("٣", COUNT),
    ],
)  # fmt: skip
def test_axis__bad_value_is_one_line_with_the_flag(text: str, q: Field) -> None:
    with pytest.raises(BadValue) as error:
        axis(text, q, "--batch")
    assert str(error.value).startswith("--batch")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


def test_axis__illegal_members_are_dropped_and_counted() -> None:
    found, notes = axis("0..10+2", COUNT, "--tp")
    assert found == (2, 4, 6, 8, 10)
    assert notes == ("--tp: dropped 1 of 6 values that are not a whole number above 0: 0",)
    found, notes = axis("0.5,1,1.5,2", COUNT, "--tp")
    assert found == (1, 2)
    assert notes[0].startswith("--tp: dropped 2 of 4 values")
    assert "0.5, 1.5" in notes[0]


@pytest.mark.slow
def test_field__limits() -> None:
    share = Field(high=1)
    assert scalar("1", share, "eff") == 1
    assert scalar("80%", share, "eff") == pytest.approx(0.8)
    with pytest.raises(BadValue, match="above 0 and at most 1"):
        scalar("1.01", share, "eff")
    assert scalar("0", Field("s", open_low=False), "t0") == 0
    with pytest.raises(BadValue, match="at least 1"):
        scalar("0", Field(integer=True, low=1, open_low=False), "tp")
    assert len(axis(f"1..{MOST}", COUNT, "batch")[0]) == MOST


def test_price__bare_number_is_per_hour() -> None:
    assert scalar("3.6", Field("USD/s", bare="USD/h"), "price") == pytest.approx(0.001)
    assert scalar("$3.6/h", Field("USD/s", bare="USD/h"), "price") == pytest.approx(0.001)
    with pytest.raises(BadValue):
        scalar("3.6", Field("USD/s"), "price")


def test_field__choices() -> None:
    q = Field(choices=("", "bf16", "fp8"))
    assert axis("FP8", q, "--kv") == ("fp8", ())
    assert axis("fp8,bf16", q, "--kv") == (("fp8", "bf16"), ())
    with pytest.raises(UnknownName, match="fp8"):
        axis("fp9", q, "--kv")


@dataclass(frozen=True)
class Example:
    """A record as the project declares them."""

    tp: Annotated[int, Field(help="tensor parallel ways", integer=True)] = 1
    hbm_share: Annotated[float, Field(high=1, help="100 % is all")] = 0.9
    kv: Annotated[str, Field(choices=("", "fp8"))] = ""
    plain: int = 3


class ExampleQuestion(Question):
    """A question as the project declares them."""

    verb = "test"
    groups = (FlagGroup(Example, "an example"),)


def test_question__flags_from_a_record() -> None:
    assert list(schema.fields(Example)) == ["tp", "hbm_share", "kv"]
    parser = Parser(ExampleQuestion, "a test")
    assert "100 % is all (default 0.9)" in parser.format_help()
    question, _ = parser.read(["--tp", "1,2", "--hbm-share", "0.5"])
    assert question.command() == ["test", "--tp", "1,2", "--hbm-share", "0.5"]
    with noted() as book:
        values = schema.read(question, Example)
    assert values == {"tp": (1, 2), "hbm_share": 0.5}
    assert book.texts == []
    filled = schema.defaults(Example, {"tp": 4})
    assert (filled.tp, filled.hbm_share, filled.hbm_share.kind) == (4, 0.9, "default")


@settings(max_examples=300)
@given(st.text(alphabet="0123456789.,*+-ekMGTBi% smnaif$/", max_size=14))
def test_axis__any_text_gives_legal_values_or_one_line(text: str) -> None:
    for q in (COUNT, TIME, Field(high=1)):
        try:
            found, notes = axis(text, q, "x")
        except HeadwayError as error:
            assert "\n" not in str(error)
            continue
        values = found if isinstance(found, tuple) else (found,)
        assert values
        assert all(math.isfinite(value) and q.illegal(value) == "" for value in values)
        assert len(set(values)) == len(values)
        assert bool(notes) <= (len(values) >= 1)


@settings(max_examples=200)
@given(st.integers(1, 10**6), st.integers(0, 10**4), st.integers(1, 500))
def test_axis__added_range_equals_python_range_and_its_end(low: int, extent: int, step: int) -> None:
    found, _ = axis(f"{low}..{low + extent}+{step}", COUNT, "x")
    want = list(range(low, low + extent + 1, step))
    assert list(found) == want + ([low + extent] if want[-1] != low + extent else [])


@settings(max_examples=200)
@given(st.integers(1, 1000), st.integers(2, 10), st.integers(0, 12))
def test_axis__multiplied_range_is_exact_powers(low: int, factor: int, count: int) -> None:
    if low * factor**count > 1e15:
        return
    found, _ = axis(f"{low}..{low * factor**count}*{factor}", COUNT, "x")
    assert list(found) == [low * factor**index for index in range(count + 1)]
