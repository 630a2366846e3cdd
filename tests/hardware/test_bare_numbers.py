"""A number of bytes, bytes/s or FLOP/s without its unit is asked back, wherever a fact of a chip, system or memory is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.core import schema
from headway.core.catalog import declared
from headway.core.errors import HeadwayError
from headway.hardware.chip import Chip
from headway.hardware.edit import editable
from headway.hardware.memory_tier import MemoryTier
from headway.hardware.system import System, system
from support.command import command

UNITS = ("byte", "byte/s", "flop/s")
TYPED = {"byte": ("96", "192", "0.5", "1e3"), "byte/s": ("3.35", "900", "3350", "0.1"), "flop/s": ("989", "20", "1.98", "312000")}


def test_every_fact__of_such_a_unit_states_what_a_bare_number_is_at_least() -> None:
    """Also of facts that will be added."""
    records = (Chip, System, MemoryTier)
    facts = {f"{record.__name__}.{key}": q for record in records for key, q in declared(record).items() if q.unit in UNITS}
    assert len(facts) > 15
    assert [name for name, q in facts.items() if not (q.bare_least and q.usual)] == []


@pytest.mark.parametrize("key", [key for key, q in editable().items() if q.unit in UNITS])
def test_set__asks_for_the_unit_of_every_such_fact(key: str) -> None:
    q = editable()[key]
    for text in TYPED[q.unit]:
        if float(text) < q.bare_least:
            answer = command("serve", "llama-3.1-8b", "--on", "8xh100-sxm", "--batch", "1", "--context", "1k", "--set", f"{key}={text}")
            assert answer.status == 2 and f"a unit: {float(text):g} {q.unit}? write {float(text):g}" in answer.err, (key, text, answer)


@pytest.mark.parametrize("text", ["hbm=192", "hbm_bw=8", "hbm_bw=3350", "peak_bf16=989", "peak_fp8=2", "scale_up_bw=900"])
def test_chip_by_numbers__asks_for_the_unit(text: str) -> None:
    known = {"peak_bf16": "1P", "hbm_bw": "8TB/s", "hbm": "192GB"} | dict([text.split("=")])
    with pytest.raises(HeadwayError, match=r"a unit: .*\\? write"):
        system(f"8x({' '.join(f'{key}={value}' for key, value in known.items())})")


@pytest.mark.parametrize("fact", ['hbm = "96"', "hbm = 96", "hbm = { value = 96 }", 'hbm_bw = "3.35"', "peak_bf16 = 989.0"])
def test_chip_file__asks_for_the_unit(fact: str, tmp_path: Path) -> None:
    facts = {"peak_bf16": 'peak_bf16 = "989T"', "hbm": 'hbm = "96GB"', "hbm_bw": 'hbm_bw = "3TB/s"'} | {fact.split(" ")[0]: fact}
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips/mine.toml").write_text("[facts]\n" + "\n".join(facts.values()), encoding="utf-8")
    answer = command("serve", "llama-3.1-8b", "--on", "mine", "--batch", "1", "--context", "1k", "--catalog", tmp_path)
    assert answer.status == 2 and "a unit: " in answer.err and "write " in answer.err


def test_numbers_with_units_and_large_bare_ones__are_taken() -> None:
    for text in ("96GB", "1.2e12", "500MB"):
        assert schema.scalar(text, editable()["chip.hbm"], "chip.hbm") > 0
