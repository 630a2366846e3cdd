"""The model that is asked for is the model that answers, also where another has its shapes."""

from __future__ import annotations

from headway.core.catalog import lines
from headway.models.config import model
from support.command import Cli


def test_checkpoints__answer_under_the_name_that_is_asked_for() -> None:
    """`speed kimi-k2.6` once answered for kimi-k2.5, whose shapes it has."""
    names = [line["name"] for line in lines("checkpoints.csv") if "/" not in line["name"]]  # of an id several spellings
    others = [name for name in names if model(name).name.lower() != name.lower()]
    assert len(names) > 300 and others == []


def test_speed__names_the_checkpoint_in_its_sentence_and_rows(cli: Cli) -> None:
    found = cli.json("speed", "kimi-k2.6", "--on", "16xh200-sxm", "--tp", "16")
    assert found["answer"].startswith("kimi-k2.6 on 16xh200-sxm")
    assert {row["model"] for row in found["rows"] if row.get("model")} <= {"kimi-k2.6"}
