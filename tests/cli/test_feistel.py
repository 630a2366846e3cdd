"""`headway feistel`: each demonstration answers, explains its figures, and refuses what does not belong to it."""

from __future__ import annotations

import pytest

from headway.reality.ciphers.catalogue import published_vectors
from support.command import Cli


def test_feistel__vectors_all_agree(cli: Cli) -> None:
    rows = cli.rows("feistel")
    assert len(rows) == len(published_vectors()) and all(row["agrees"] and row["result"] == row["encrypted"] for row in rows)
    assert {row["cipher"] for row in cli.rows("feistel vectors --cipher tea,des")} == {"TEA", "DES"}


def test_feistel__avalanche_by_round(cli: Cli) -> None:
    rows = cli.rows("feistel avalanche --cipher des --rounds 1..16 --trials 500")
    assert [row["rounds"] for row in rows] == list(range(1, 17))
    assert rows[0]["changed_share"] < 0.1 and rows[-1]["changed_share"] == pytest.approx(0.5, rel=0.05)
    assert rows[-1]["sensitivity"] == pytest.approx(32, rel=0.05) and 0.8 < rows[-1]["network_sensitivity"] < 1.25


def test_feistel__rounds_beyond_the_cipher(cli: Cli) -> None:
    document = cli.json("feistel avalanche --cipher des,simon32 --rounds 8..24+8 --trials 10")
    assert [(row["cipher"], row["rounds"]) for row in document["rows"]] == [
        ("DES", 8),
        ("DES", 16),
        *(("SIMON32/64", n) for n in (8, 16, 24)),
    ]
    assert "rounds: dropped 1 of 3 values above the 16 of DES" in document["notes"]


def test_feistel__differential_beside_gradient(cli: Cli) -> None:
    document = cli.json("feistel differential --rounds 2 --pairs 16384 --explain probability,weight_bits,right_gradient_share")
    (row,) = document["rows"]
    assert row["weight_bits"] == pytest.approx(2, abs=0.1) and row["right_gradient_share"] < row["right_random_share"]
    assert set(document["explain"]) == {"probability", "weight_bits", "right_gradient_share"}


def test_feistel__coupling_exact_in_whole_numbers(cli: Cli) -> None:
    rows = cli.rows("feistel coupling --layers 8")
    assert [row["number_format"] for row in rows if row["inversion_error"] == 0] == ["fixed64"]


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("feistel rounds", "one of vectors, avalanche"), ("feistel --cipher aes", "one of des, tea"),
        ("feistel differential --cipher des", "simon32"), ("feistel vectors --rounds 3", "headway feistel avalanche or differential"),
        ("feistel avalanche --cipher-key xyz", "hexadecimal digits"),
        ("feistel avalanche --cipher-key 11223344556677889", "at most 16 hexadecimal"),
        ("feistel avalanche --rounds 40", "at most 32 for SIMON32/64"), ("feistel avalanche --trials 1,2", "one value"),
        ("feistel coupling --layers 0", "at least 1"), ("feistel --set chip.hbm=1GB", "feistel has neither"),
    ],
)  # fmt: skip
def test_feistel__wrong_input_is_one_line(command: str, wanted: str, cli: Cli) -> None:
    answer = cli(command)
    assert answer.status == 2 and answer.out == "" and wanted in answer.err and answer.err.count("\n") == 1
