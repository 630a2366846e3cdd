"""A winner and its Helps against the rows that their own commands print: what a sentence names is the best of its table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import pytest

from headway.core.listing import format_value
from support.command import Answer

ALONE = ("tp", "pp", "dp", "ep", "replicas", "weights", "kv", "compute", "batch", "rate", "context", "prompt", "output")


def with_flags(words: Sequence[str], flags: Sequence[str]) -> list[str]:
    """A command with some flags replaced or added; --set is added."""
    words = list(words)
    for name, value in zip(flags[::2], flags[1::2], strict=True):
        if name in words and name != "--set":
            words[words.index(name) + 1] = value
        else:
            words += [name, value]
    return words


def is_running(row: dict[str, Any]) -> bool:
    return row["fits"] and (row.get("utilisation") or 0.0) < 1


def told(row: dict[str, Any]) -> list[str]:
    """The time and the cost or rate of a row, as a Help states them."""
    time = row["tpot_s"] if row.get("tpot_s") is not None else row["step_s"]
    if row.get("usd_per_mtok_out") is not None:
        return [format_value(time, "s"), format_value(row["usd_per_mtok_out"], "USD/Mtok")]
    rate = row["tok_per_s_chip"] if row.get("prompt") is not None else row["decode_tok_per_s"]
    return [format_value(time, "s"), format_value(rate, "token/s")]


def worth(row: dict[str, Any]) -> float:
    """Speed of a user times tokens for the money, or tokens per second without a price."""
    time = row["tpot_s"] if row.get("tpot_s") is not None else row["step_s"]
    rate = row["tok_per_s_chip"] if row.get("prompt") is not None else row["decode_tok_per_s"]
    return 1 / time * (1 / row["usd_per_mtok_out"] if row.get("usd_per_mtok_out") is not None else rate)


def checked_serve(words: list[str], row: dict[str, Any], helps: list[dict[str, Any]]) -> int:
    """Compare each Help of a point with the row that its command prints; how many there were."""
    for change in helps:
        after = Answer.of([*with_flags(words, shlex.split(change["change"])), "-o", "json"]).json["rows"][0]
        assert is_running(after), change
        assert all(text in change["effect"] for text in told(after)), (words, change, told(after))
        if is_running(row):
            assert worth(after) > worth(row), (words, change)
            assert change["gain"] == pytest.approx(worth(after) / worth(row) - 1, rel=1e-9)
    return len(helps)


def checked_winner(command: str, answer: dict[str, Any]) -> int:
    """Compare the sentence of a swept question with its table, and the winner's Helps with their commands; how many Helps there were."""
    rows = [row for row in answer["rows"] if is_running(row)]
    if not rows:
        assert "none of" in answer["answer"], command
        return 0
    priced = [row for row in rows if row.get("usd_per_mtok_out") is not None]
    best = min(priced, key=lambda row: row["usd_per_mtok_out"]) if priced else max(
        rows, key=lambda row: row["tok_per_s_chip"] if row.get("prompt") is not None else row["decode_tok_per_s"])  # fmt: skip
    fastest = min(rows, key=lambda row: row["tpot_s"] if row.get("tpot_s") is not None else row["step_s"])
    assert f"({'TPOT' if fastest.get('tpot_s') else 'step'} {told(fastest)[0]})" in answer["answer"]
    assert re.search(rf"(cheapest|come from) [^(]*\({re.escape(told(best)[1])}", answer["answer"]), (answer["answer"], told(best))
    words = shlex.split(command)
    pins = {f"--{name}": str(best[name]) for name in ALONE if f"--{name}" in words and best.get(name) is not None}
    flags = [word for pair in (pins | {"--on": best["system"]}).items() for word in pair]
    return checked_serve(with_flags(words, flags), best, answer["helps"])
