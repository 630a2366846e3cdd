"""`serve --batch-per-stage`: the work of a stage stays, whatever pp; and flags that are one thing under two names."""

from __future__ import annotations

import pytest

from support.command import Cli

SERVE = "serve llama-3.1-70b --on 8xh100-sxm --tp 1 --context 8k --overlap full"


def test_batch_per_stage__keeps_the_work_of_a_stage(cli: Cli) -> None:
    document = cli.json(f"{SERVE} --pp 4,8 --batch-per-stage 4,8")
    rows = {(row["pp"], row["batch"]): row for row in document["rows"]}
    assert set(rows) == {(4, 16), (4, 32), (8, 32), (8, 64)}
    assert any(note.startswith("batch counts the sequences in flight") for note in document["notes"])
    # claim PP-11: KV per chip is invariant in pp, since layers per stage fall as sequences in flight rise; weights halve
    assert rows[8, 32]["kv_bytes_chip"] == pytest.approx(rows[4, 16]["kv_bytes_chip"], rel=1e-9)
    assert rows[8, 32]["weights_bytes_chip"] < 0.6 * rows[4, 16]["weights_bytes_chip"]
    assert rows[8, 32] == cli.rows(f"{SERVE} --pp 8 --batch 32")[0]


def test_serve__says_that_pp_changes_the_work_of_a_stage(cli: Cli) -> None:
    assert any("--batch-per-stage" in note for note in cli.json(f"{SERVE} --pp 4,8 --batch 16").get("notes", []))
    assert not any("--batch-per-stage" in note for note in cli.json(f"{SERVE} --pp 8 --batch 16")["notes"])


def test_batch_per_stage__stands_alone(cli: Cli) -> None:
    answer = cli(f"{SERVE} --pp 4 --batch 8 --batch-per-stage 4")
    assert answer.status == 2 and "no --batch beside it" in answer.err


def test_hit_rate__has_one_meaning_under_both_spellings(cli: Cli) -> None:
    serve = "serve llama-3.1-8b --on h100-sxm --batch 8 --prompt 2k --output 100"
    assert cli.rows(f"{serve} --hit 0.5") == cli.rows(f"{serve} --hit-rate 0.5")
    price = "price llama-3.1-8b --on h100-sxm --prompt 2k --output 100"
    assert cli.rows(f"{price} --hit 0.5") == cli.rows(f"{price} --hit-rate 0.5")


def test_scale__simple_rule_prints_its_own_shares(cli: Cli) -> None:
    """Without RL the rule spends half on training, half on serving, as the lecture says; with eta x RL tokens a third part."""
    (row,) = cli.rows("scale --active 100B --serve 50M/s --months 2 --beside none")
    assert (row["rule_share_train"], row["rule_share_serve"]) == pytest.approx((0.5, 0.5))
    (row,) = cli.rows("scale --active 100B --serve 50M/s --months 2 --rl 0.67 --beside none")
    parts = [row[f"rule_share_{key}"] for key in ("train", "rl", "serve")]
    assert sum(parts) == pytest.approx(1) and parts[0] == parts[2] and parts[1] / parts[0] == pytest.approx(0.67 * row["eta"])


def test_cache__default_tiers_hold_cxl(cli: Cli) -> None:
    rows = cli.rows("cache llama-3.1-70b --on 8xh100-sxm --hold 5min")
    assert any("cxl" in str(row).lower() for row in rows)


def test_memory_share__names_its_claim(cli: Cli) -> None:
    assert any("FS-09" in note for note in cli.json("price --memory-share gb200-nvl72")["notes"])
