"""`--explain` for people: the equation with its numbers first, then as many levels as asked for; and as a diagram."""

from __future__ import annotations

import re

import pytest

from support.command import Cli

STEP = "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --prompt 1k --output 100 --batch 8"


def tree(cli: Cli, key: str, *flags: str) -> list[str]:
    lines = cli(*STEP.split(), "--explain", key, *flags).text.splitlines()
    return lines[next(number for number, line in enumerate(lines) if line.startswith(f"{key} = ")) :]


def test_first_line__is_the_equation_with_its_numbers(cli: Cli) -> None:
    """Cost of a token by hand: price x chips x time of a token / batch, times a million."""
    first, second, third = tree(cli, "usd_per_mtok_out")[:3]
    match = re.fullmatch(r"usd_per_mtok_out = \$([\d.]+)/h \* (\d+) \* ([\d.]+) ms / \(1 \* 1 \* 1\) \* 1M = \$([\d.]+)", first)
    assert match, first
    price, chips, milliseconds, result = map(float, match.groups())
    assert price / 3600 * chips * milliseconds / 1000 * 1e6 == pytest.approx(result, rel=5e-3)
    assert second == f"usd_per_mtok_out = ${result:g}" and third.startswith("  | price * chips * step")


def test_depth__folds_and_says_how_to_unfold(cli: Cli) -> None:
    lengths = [len(tree(cli, "tpot_s", "--depth", depth)) for depth in ("1", "2", "3", "all")]
    assert lengths == sorted(set(lengths)) and lengths[2] < 120 < lengths[3]
    assert tree(cli, "tpot_s") == tree(cli, "tpot_s", "--depth", "3")
    folded = [line for line in tree(cli, "tpot_s", "--depth", "1") if "--depth 2" in line]
    assert folded and max((len(line) - len(line.lstrip())) // 2 for line in tree(cli, "tpot_s", "--depth", "1")) <= 1
    for line in folded:  # what is folded is in the whole tree, with the same number
        assert line.partition("   (")[0].strip() in [line.partition("   (")[0].strip() for line in tree(cli, "tpot_s", "--depth", "all")]


def test_branches__that_were_not_taken_are_folded(cli: Cli) -> None:
    lines = tree(cli, "tpot_s")
    assert any("seats = " in line and "(not taken" in line for line in lines)
    assert not any("(not taken" in line for line in tree(cli, "tpot_s", "--depth", "all"))


@pytest.mark.parametrize(
    "flags", [["--depth", "2"], ["--explain", "tpot_s", "--depth", "0"], ["--explain", "tpot_s", "--depth", "two"], ["-o", "mermaid"]]
)
def test_wrong_input__is_one_line(cli: Cli, flags: list[str]) -> None:
    answer = cli(*STEP.split(), *flags)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_mermaid__every_arrow_joins_numbers_of_the_diagram(cli: Cli) -> None:
    lines = cli(f"{STEP} --explain tpot_s,usd_per_mtok_out -o mermaid").text.strip().split("\n\n")
    assert len(lines) == 2
    for diagram in lines:
        first, *rest = diagram.splitlines()
        assert first == "flowchart BT"
        nodes = {match[1] for line in rest if (match := re.fullmatch(r"    (n\d+)(\[.*\]|\(\[.*\]\))", line))}
        arrows = [match.groups() for line in rest if (match := re.fullmatch(r"    (n\d+) --> (n\d+)", line))]
        assert len(nodes) + len(arrows) == len(rest) and {end for arrow in arrows for end in arrow} == nodes
        assert {start for start, _ in arrows} == nodes - {"n0"}  # all lead to the number
