"""One basis for every machine of a comparison at equal power: at the wall where that is known of all, else the chips' TDP."""

from __future__ import annotations

import itertools

import pytest

from headway.core.catalog import default_catalog
from headway.hardware.compare import CHIP_ALONE, WALL, watts_of
from headway.hardware.system import system
from support.command import Cli

NAMES = sorted(name for name in default_catalog().files("systems") if system(name).power is not None)


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_and_as_many_of_its_chips__draw_the_same(name: str) -> None:
    machine = system(name)
    parts = system(f"{int(machine.chips)}x{machine.chip.name}")
    (watts, of_parts), basis = watts_of([machine, parts], default_catalog())
    assert basis == WALL and float(watts) == float(of_parts) == float(machine.power / machine.chips)
    assert machine.chip.tdp is None or float(watts) > 0.8 * float(machine.chip.tdp)


def test_no_pair__is_compared_on_two_bases() -> None:
    machines = [system(name) for name in (*NAMES, "8xrtx4090", "8xa100-sxm", "8xl40s", "4xh200-sxm")]
    for pair in itertools.permutations(machines, 2):
        watts, basis = watts_of(pair, default_catalog())
        known = [machine.chip.tdp if basis == CHIP_ALONE else watts_of([machine], default_catalog())[0][0] for machine in pair]
        assert watts == known


def test_compare__says_its_basis_and_an_edited_power_is_the_chip_s(cli: Cli) -> None:
    by_name, by_parts = (cli.json(f"compare gb200-nvl72,{machine} --per watt") for machine in ("hgx-h200", "8xh200-sxm"))
    ratios = [document["rows"][1]["hbm_bw_ratio"] for document in (by_name, by_parts)]
    assert ratios[0] == pytest.approx(ratios[1], rel=1e-12) == pytest.approx(4.8 / 8 / (10.2 / 8) * (120 / 72), rel=0.01)
    assert any("at the wall" in note for note in by_parts["notes"])
    assert any("TDP" in note for note in cli.json("compare gb200-nvl72,8xrtx4090 --per watt")["notes"])
