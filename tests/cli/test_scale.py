"""`headway scale` as a user meets it: answers, axes, explanations, figures, and wrong input in one line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.cli.main import main
from headway.core import columns
from headway.core.formula import anonymous, replay
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.core.trace import Traced
from headway.core.units import parse
from headway.training.scaling.compute import quality_curve
from headway.training.scaling.fits import fit
from headway.training.scaling.inputs import Uncertainty
from headway.training.scaling.scale import explained, question, rows
from support.command import Cli

KINDS = {
    "split": "--flop 1e25",
    "of a size": "--active 70B",
    "of tokens": "--tokens 1.4T",
    "repeated": "--flop 1e22 --tokens-unique 25B --law muennighoff",
    "given": "--active 8B --tokens 15T --months 2 --rl 0.1",
    "given by compute": "--flop 1e24 --tokens 2T --weight-bits 8 --post-bits 4",
    "life": "--active 100B --serve 50M/s --months 2 --rl 0.67",
    "life, chosen": "--active 100B --served 200T --tokens 150T --tokens-unique 30T",
    "quality": "--quality 70B --served 10T --kappa 1",
    "experts": "--moe --active 30B --experts 64..512*2",
    "experts of a total": "--moe --active 37B --total 671B --per-token 8",
}
WRONG = {
    "": "--flop 1e25",
    "--flop 0": "above",
    "--flop nan": "finite",
    "--active 100B --tokens 0": "above 1",
    "--active 100B --tokens -5": "above 1",
    "--active 1B --tokens 1T --flop 1e22": "two of them",
    "--moe --active 30B --total 10B": "got '30B'; wants at most the total, 10B",
    "--moe --active 30B": "--experts",
    "--moe --experts 8": "--active 30B",
    "--moe --active 1B --experts 8 --per-token 9": "at most the experts",
    "--flop 1e25 --law epok": "did you mean epoch",
    "--moe --active 1B --experts 8 --law s-bse": "did you mean s-base",
    "--flop 1e25 --law hoffmann-printed": "--law hoffmann",
    "--active 100B --serve 50M/s": "--months",
    "--serve 50M/s --months 2": "--active 100B",
    "--active 1B --serve 1M/s --served 1T": "one of them",
    "--quality 70B": "--served",
    "--active 7B --tokens-unique 1T": "--active 9B --tokens 900B",
    "--flop 1e25 --set chip.hbm=1": "scale has neither",
    "--flop 1e25 --draws 100,200": "one value",
    "--flop 1e20..1e29*1.01": "at most 1000",
    "--flop 1e25 --explain beyond": "numbers",
}


@pytest.mark.parametrize("kind", KINDS)
def test_scale__every_answer_keeps_the_contract(kind: str, cli: Cli) -> None:
    found = cli.json("scale", *KINDS[kind].split())
    assert found["rows"] and {"headway", "command", "columns", "rows", "notes"} <= found.keys()
    for key, about in found["columns"].items():
        assert about["doc"], key
    for row in found["rows"]:
        assert all(math.isfinite(value) and value >= 0 for value in row.values() if isinstance(value, float)), row
        for key in row:
            if key.endswith("_lo") and row[key] is not None:
                end = row[key.removesuffix("_lo") + "_hi"]
                assert end is None or row[key] <= end  # none where no size reaches the loss by more than 5 % of the draws


@pytest.mark.parametrize("kind", KINDS)
def test_scale__every_number_replays(kind: str) -> None:
    """The tree of each number ends in facts and flags alone, and gives the number again."""
    
    from headway.core import schema
    from headway.core.question import from_words
    from headway.training.scaling.inputs import RECORDS

    args: Any = from_words(["scale", *KINDS[kind].split()])
    flags = {key: value for record in RECORDS for key, value in schema.read(args, record).items()}
    asked = question(flags, defaults(Uncertainty), args.law, "all", args.moe)
    for row in rows(asked):
        for key, value in row.plain.items():
            if isinstance(value, float):
                tree = explained(asked, row, key)
                assert float(tree) == pytest.approx(value, rel=1e-12), key
                if isinstance(tree, Traced):
                    assert anonymous(tree) == [], key
                    assert float(replay(tree)) == pytest.approx(value, rel=1e-12), key


def test_scale__first_line_is_the_answer(cli: Cli) -> None:
    life, *notes = cli("scale", *KINDS["life"].split(), "--verbose").text.splitlines()
    assert "train on between 22T and 1.25P tokens, 47.3x Chinchilla by epoch; the simple rule costs 5.2% more" in life
    assert "note: over Chinchilla: 23.2x (outliers) .. 127x (hoffmann) over 6 laws" in notes
    assert "note: the simple rule, training = serving, says 222T tokens, 111x Chinchilla" in notes
    split, *notes = cli("scale", "--flop", "1e25", "--verbose").text.splitlines()
    # Ends of an interval wider than tenfold are said instead of its middle, which the columns keep.
    assert "between 34.4B and 2.63T parameters" in split and "between 635B and 48.4T tokens" in split
    assert any(note.endswith("149B (hoffmann) .. 599B (outliers) over 6 laws") for note in notes)
    experts, *notes = cli("scale", "--moe", "--active", "370M", "--experts", "64").text.splitlines()
    assert "1.4B dense, 3.79x, by s-base-refit" in experts and "note: 6 of 7 laws were fitted there" in notes
    assert "with 1 expert are worth" in cli("scale", "--moe", "--active", "1B", "--experts", "1").text


def test_over_training__worked_example_spans_17_to_87(cli: Cli) -> None:
    flags = ["--active", "100B", "--served", "200T,260T", "--kappa", "1,3", "--law", "epoch,hoffmann", "--beside", "none"]
    times = [row["over_training"] for row in cli.json("scale", *flags)["rows"]]
    assert (round(min(times)), round(max(times))) == (17, 87)


def test_scale__lists_are_axes_and_rows_equal_single_points(cli: Cli) -> None:
    many = cli.json("scale", "--flop", "1e20..1e26*10", "--law", "epoch,huber", "--beside", "none")["rows"]
    assert [row["law"] for row in many] == ["epoch", "huber"] * 7
    (one,) = cli.json("scale", "--flop", "1e23", "--beside", "none")["rows"]
    (same,) = (row for row in many if row["flop"] == pytest.approx(1e23) and row["law"] == "epoch")
    assert same["active"] == pytest.approx(one["active"], rel=1e-12)
    assert same["active_lo"] == pytest.approx(one["active_lo"], rel=1e-12)
    grid = cli.json("scale", "--moe", "--active", "100M,1B", "--experts", "8..512*4", "--law", "s-base")["rows"]
    assert [(row["active"], row["experts"]) for row in grid] == [(n, e) for n in (1e8, 1e9) for e in (8, 32, 128, 512)]


def test_in_range__note_outside_the_fitted_range(cli: Cli) -> None:
    near = cli.json("scale", "--active", "1B", "--tokens", "20B", "--beside", "none")
    assert near["rows"][0]["in_range"] is True and not any("outside" in note for note in near["notes"])
    far = cli.json("scale", "--flop", "1e25")
    assert all(row["in_range"] is False and row["beyond"] for row in far["rows"] if row["kind"] in ("law", "beside"))
    assert any("outside what was fitted: epoch" in note for note in far["notes"])
    experts = cli.json("scale", "--moe", "--active", "370M,30B", "--experts", "64,1024")["rows"]
    inside = {(row["active"], row["experts"]) for row in experts if row["in_range"]}
    assert inside == {(370e6, 64)}
    assert all(row["in_range"] is None for row in experts if row["law"] == "ling")


def test_scale__notes_cover_only_the_laws_shown(cli: Cli) -> None:
    def starts(law: str) -> list[str]:
        return [note.split("'")[0] for note in cli.json("scale", "--moe", "--active", "1B", "--experts", "64", "--law", law)["notes"]]

    assert starts("s-base")[:-1] == ["Clark"] and starts("ling")[:-1] == ["Ling"] and starts("hash,ling")[:2] == ["Clark", "Ling"]


def test_loss__rounded_fit_gives_a_loss_and_no_split(cli: Cli) -> None:
    (row,) = cli.json("scale", "--active", "70B", "--tokens", "1.4T", "--law", "hoffmann-printed", "--beside", "none")["rows"]
    assert row["loss"] == pytest.approx(1.69 + 406.4 / 70e9**0.34 + 410.7 / 1.4e12**0.28, rel=1e-12)
    assert row["over_law"] is None and row["served_exact"] is None and "hoffmann has them all" in row["why"]


def test_served_exact__null_for_too_little_training(cli: Cli) -> None:
    (row,) = cli.json("scale", "--active", "70B", "--tokens", "100B", "--beside", "none")["rows"]
    assert row["served_exact"] is None and "none justifies it" in row["why"]
    assert row["served_rule"] > 0


def test_rule_regret__null_where_the_rule_cannot_reach_the_loss(cli: Cli) -> None:
    (row,) = cli.json("scale", "--quality", "70B", "--served", "100B", "--beside", "none")["rows"]
    assert row["rule_regret"] is None and "whatever the size" in row["why"]
    assert row["active"] < 70e9 < row["active"] * 1.15


def test_rule__says_why_wherever_no_size_that_was_seen_reaches_the_loss(cli: Cli) -> None:
    """Once 333T parameters on 33.3B tokens; of every law, where there is a size its loss is the one that is sought."""
    reached = 0
    for kappa in np.geomspace(0.3, 4, 25):
        for row in cli.json("scale", "--quality", "7B", "--served", "100B", "--kappa", repr(float(kappa)), "--beside", "all")["rows"]:
            if row["rule_active"] is None:
                assert row["rule_regret"] is None and row.get("rule_regret_hi") is None
                assert "any fit saw" in row["why"] or "whatever the size" in row["why"]
                continue
            by = fit(row["law"]).by
            loss = by.irreducible + by.a * row["rule_active"] ** -by.alpha + by.b * row["rule_tokens"] ** -by.beta
            assert loss == pytest.approx(row["loss"], rel=1e-9)
            assert row["rule_tokens"] / row["rule_active"] >= 0.04  # the least of Chinchilla's points
            reached += 1
    assert reached > 50


def test_simple_rule__of_fewer_tokens_a_parameter_than_any_fit_saw_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "--active", "100B", "--served", "1B", "--kappa", "1", "--beside", "none"]) == 0
    assert "fewer a parameter than any fit saw" in capsys.readouterr().out


def test_scale__unused_flags_are_named_in_a_note(cli: Cli) -> None:
    notes = cli.json("scale", "--flop", "1e25", "--months", "2", "--kappa", "3")["notes"]
    assert any(note == "not used in this question: --months, --kappa" for note in notes)


def test_seed__fixes_the_interval(cli: Cli) -> None:
    ends = [cli.json("scale", "--flop", "1e25", "--seed", seed)["rows"][0]["active_lo"] for seed in ("0", "0", "1")]
    assert ends[0] == ends[1] != ends[2]


@pytest.mark.parametrize("flags", WRONG)
def test_scale__wrong_input_is_one_line_with_what_would_work(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", *flags.split()]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and WRONG[flags] in said


@pytest.mark.parametrize("kind", ["split", "life", "experts", "quality"])
def test_scale__plot_for_every_question(kind: str, tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("vl_convert")
    assert cli("scale", *KINDS[kind].split(), "--plot", str(tmp_path / "figure.png")).status == 0
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_columns__units_of_scale() -> None:
    assert columns.unit("tokens_worth") == "token" and columns.unit("flop") == "flop" and columns.unit("serve_exact") == "token/s"


def test_columns__keys_shared_with_train_mention_train() -> None:
    for key in ("step_s", "step_hi_s", "compute_s", "bound", "dp", "kind"):
        assert "train" in columns.doc(key), key


def test_scale__library_equals_command_line(cli: Cli) -> None:
    import headway as hw

    found = hw.scale(active=100e9, served=["200T", 260e12], kappa=3, months=None, beside="none")
    same = cli.json("scale", "--active", "100B", "--served", "200T,260T", "--kappa", "3", "--beside", "none")
    assert found.rows() == same["rows"] and found.notes == same["notes"] and found.answer == same["answer"]
    assert found.explain("over_training", 1).value == found[1]["over_training"]
    for wrong in ({"flopp": 1}, {"flop": True}, {"flop": -1.0}, {"flop": 1e25, "law": "epok"}):
        with pytest.raises(hw.HeadwayError):
            hw.scale(**wrong)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ("--serve 50M/s --months 2", ("76% of 50M tok/s", "kappa 3.33")),
        ("--serve 50M/s --months 2 --utilisation 1", ("kappa 3.33",)),
        ("--serve 50M/s --months 2 --utilisation 0.5 --kappa 1", ("50% of 50M tok/s",)),
        ("--served 200T --serve-mfu 0.5", ("kappa 2",)),
        ("--served 200T --deployed 0.5 --kappa 1", ("deployed with 50%",)),
    ],
)
def test_life__what_moves_the_headline_is_in_the_sentence(flags: str, said: tuple[str, ...], cli: Cli) -> None:
    """The served tokens times whatever stands in the brackets: 263T at full rate, 200T at the default share, which is not silent."""
    answer = cli.json(f"scale --active 100B {flags}")
    inside = answer["answer"].partition("served (")[2].partition("):")[0]
    assert tuple(inside.split(", ")) == said and len(answer["answer"].split()) <= 30
    noted = any(note.startswith("assumed, as in the lecture") for note in answer["notes"])
    assert noted == ("kappa 3.33" in said)


LIVES = ("--active 100B --serve 50M/s --months 2", "--active 30B --served 20T --rl 0.5", "--active 400B --served 3T --kappa 1")


@pytest.mark.parametrize("flags", LIVES)
def test_life__headline_help_and_picture_have_one_number(flags: str, cli: Cli, tmp_path: Path) -> None:
    """The regret of the simple rule: in the sentence, as the saving of the change that would help, and where the picture marks it."""
    answer = cli.json(f"scale {flags} --beside none")
    row = answer["rows"][0]
    regret = row["rule_regret"]
    assert f"the simple rule costs {regret:.1%} more" in answer["answer"]
    assert f"{1 - 1 / (1 + regret):.1%} cheaper" in answer["helps"][0]["effect"]
    path = tmp_path / "scale.svg"
    cli(f"scale {flags} --beside none --plot {path}")
    assert f"costs {1 + regret:.2f} times" in path.read_text()
    words = flags.replace("--", "").split()
    units_of = {"active": "", "serve": "token/s", "served": "token"}
    inputs = {key: user_input(parse(value, units_of.get(key, "")), key) for key, value in zip(words[::2], words[1::2], strict=True)}
    curve = quality_curve("epoch", inputs)
    at_rule = float(np.interp(np.log(curve.rule_tokens), np.log(curve.tokens), curve.over_cheapest))
    assert at_rule == pytest.approx(1 + regret, rel=2e-3)
    assert curve.best_tokens == pytest.approx(row["rule_cheapest_tokens"], rel=1e-9)
