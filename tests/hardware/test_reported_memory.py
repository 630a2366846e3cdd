"""Bytes of a card as its driver reports them: facts, the rule where none is known, and sizes that the user gives."""

from __future__ import annotations

import statistics

import pytest

from headway.core.formula import anonymous
from headway.core.trace import record
from headway.hardware.chip import Chip, chip, reported_memory, reported_shares
from headway.hardware.describe import about_chip, list_chips
from headway.hardware.edit import edit
from headway.hardware.system import system
from support.each import for_each

GIB = 2**30
# As start logs and nvidia-smi print them: vllm-project/vllm#10927 and #10517, noonghunna/club-3090#769, ggml-org/llama.cpp#22319,
# sgl-project/sglang#3196.
LOGGED = {
    "h100_sxm": 84932975820, "rtx3090": 25318844661, "rtx5090": 34190917632, "rtx3090_ti": 25757220864,
    "rtx_pro_6000_ws": 102640910336, "rtx4090": 25756172288, "h200_sxm": 150754820096,
}  # fmt: skip
LARGEST_ERROR = {"hbm": 0.008, "gddr": 0.036, "gddr-ecc": 0.001}


def shares() -> dict[str, dict[str, float]]:
    """Share of the datasheet's size, read as GiB, that the driver reports, by kind of memory and card."""
    by_kind: dict[str, dict[str, float]] = {}
    for card in list_chips():
        if card.hbm_reported is not None:
            by_kind.setdefault(card.memory, {})[card.name] = card.hbm_reported / (card.hbm / 1e9 * GIB)
    return by_kind


@pytest.mark.parametrize("name", LOGGED)
def test_reported_memory__is_what_logs_print(name: str) -> None:
    assert reported_memory(chip(name)) == pytest.approx(LOGGED[name], rel=0.01)


def test_shares__are_medians_of_cards_and_hold_for_a_card_left_out() -> None:
    known = shares()
    assert set(known) == set(reported_shares())
    for kind, cards in known.items():
        assert float(reported_shares()[kind]) == pytest.approx(statistics.median(cards.values()), abs=5e-5), kind
        if len(cards) > 1:
            rest = {name: [share for card, share in cards.items() if card != name] for name in cards}
            left_out = {name: statistics.median(rest[name]) / share - 1 for name, share in cards.items()}
            worst = max(left_out, key=lambda name: abs(left_out[name]))
            assert abs(left_out[worst]) < LARGEST_ERROR[kind], (kind, worst, left_out[worst])


@for_each([card for card in list_chips() if card.hbm is not None], name=lambda card: card.name)
def test_reported_memory__lies_near_the_datasheet_in_gib(card: Chip) -> None:
    assert card.memory == "sram" or 0.93 < reported_memory(card) / (card.hbm / 1e9 * GIB) <= 1.0


def test_reported_memory__by_rule_says_so() -> None:
    card = chip("l20")
    assert card.hbm_reported is None
    entry = next(entry for entry in about_chip(card) if entry.key == "hbm_reported")
    assert entry.kind == "derived" and entry.source.startswith("rule") and entry.value == reported_memory(card)
    with record():
        assert not anonymous(reported_memory(card))


def test_reported_memory__of_a_size_that_the_user_gives_is_that_size() -> None:
    machine = system("8xh100-sxm")
    assert reported_memory(edit(machine, "chip.hbm", "100GB").chip) == 100e9
    assert reported_memory(edit(machine, "chip.hbm_reported", "75GiB").chip) == 75 * GIB
    both = edit(edit(machine, "chip.hbm_reported", "75GiB"), "chip.hbm", "100GB")
    assert reported_memory(both.chip) == 75 * GIB
    assert reported_memory(edit(machine, "chip.hbm_bw", "5TB/s").chip) == reported_memory(machine.chip)


@pytest.mark.parametrize(("text", "size"), [
    ("8x(peak_bf16=1P hbm_bw=8TB/s hbm=192GB)", 192e9),
    ("8x(like=h100-sxm hbm=96GB)", 96e9),
    ("8x(like=h100-sxm hbm_bw=5TB/s)", LOGGED["h100_sxm"]),
])  # fmt: skip
def test_reported_memory__of_a_chip_by_numbers(text: str, size: float) -> None:
    assert reported_memory(system(text).chip) == pytest.approx(size, rel=1e-3)
