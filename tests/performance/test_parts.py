"""A part of a machine is that machine's part: N chips by name and N chips of the usual box have the same links, in every verb."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

import headway as hw
from headway.core.catalog import default_catalog
from headway.core.errors import HeadwayError
from headway.core.quantity import known
from headway.core.schema import defaults, fields
from headway.evidence.rows.tasks import SetupKey, find
from headway.hardware.chip import Chip, chip
from headway.hardware.describe import about_system
from headway.hardware.edit import edit
from headway.hardware.rack import racks
from headway.hardware.system import MESHES, System, domain_bandwidth, pair_bandwidth, system
from headway.laws.collectives.cost import collective_term_s
from headway.laws.collectives.topology import sides_within
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import (
    RoutedLayer,
    all_reduce_term,
    all_to_all_term,
    exchange_term,
    fabric,
    gather_term,
    group,
    link_costs,
    torus_sides,
)
from headway.performance.layout import Layout
from headway.serving.pools import hand_over_link
from support.each import for_each

SIZES = (2, 4)
SCATTER = fields(Assumptions)["length_cv"][1]  # typed out: a note on what is assumed asks each question twice
SAME = ("tpot_s", "ttft_s", "tpot_floor_s", "ttft_floor_s", "step_s", "network_s", "tok_per_s", "tpot_decode_s", "capacity_req_per_s")


def kinds() -> list[Chip]:
    """Every chip of the catalogue whose usual box has more than two chips and known links."""
    names = sorted({path.stem for path in default_catalog().files("chips").values()})
    return [one for one in map(chip, names) if one.scale_up_domain is not None and one.scale_up_domain > 2 and one.scale_up_bw is not None]


KINDS = kinds()
PARTS = [(one.name, size, f"{int(one.scale_up_domain)}x{one.name}") for one in KINDS for size in SIZES if size < one.scale_up_domain]
PARTS += [(name, size, name) for name in sorted({path.stem for path in default_catalog().files("systems").values()}) for size in SIZES]


def n(value: float, unit: str = "") -> Any:
    return known(value, "test", unit, "constant", "a test")


def part_of(machine: str, size: int) -> System:
    """That many chips of a machine, by their own name."""
    return system(f"{size}x{system(machine).chip.name}")


def rows(machine: str, size: int) -> list[dict[str, Any]]:
    return hw.serve("llama-3.1-8b", on=machine, tp=size, batch=[1, 64], prompt=1000, output=200, length_cv=SCATTER).rows()


@for_each(PARTS)
def test_serve__part_by_both_names(case: tuple[str, int, str]) -> None:
    """For every kind of chip and of system."""
    _, size, box = case
    if system(box).scale_up_bw is None:
        return
    for alone, inside in zip(rows(part_of(box, size).name, size), rows(box, size), strict=True):
        for key in SAME:
            assert alone[key] == pytest.approx(inside[key], rel=1e-9), key


ROUTED = RoutedLayer(layers=n(58), experts=n(256), active=n(8), dispatch=n(7168.0, "byte/token"))


@for_each(PARTS)
def test_collectives__part_by_both_names(case: tuple[str, int, str]) -> None:
    """The terms of serve, predict, score, sim, plan and train, for every kind of chip and of system."""
    _, size, box = case
    if system(box).scale_up_bw is None:
        return
    costs = link_costs(system(box), defaults(Assumptions))
    pairs = []
    for machine in (part_of(box, size), system(box)):
        joined = fabric(machine, size)
        peers = group(joined, size, 1)
        terms = [every(joined, peers, 1e4, costs) for every in (all_reduce_term, gather_term, all_to_all_term)]
        terms.append(exchange_term(joined, Layout(dp=n(size), ep=n(size)), ROUTED, 1e4, costs))
        pairs.append([float(value) for term in terms for value in (collective_term_s(term, 1.0), collective_term_s(term, 1e5), term.floor)])
    assert pairs[0] == pytest.approx(pairs[1], rel=1e-9)


def key_of(name: str, chips: int, size: int) -> SetupKey:
    return SetupKey(
        model="Llama-3.1-8B", hardware=name, chips=chips, tp=size, ep=None, pp=None, dp=chips // size, engine="vLLM", engine_version="",
        date="", weights="BF16", kv="", load="offline", split=False, benchmark="", eager=False,
    )  # fmt: skip


@for_each([case for case in PARTS if case[0] != case[2]])
def test_predict__part_by_both_names(case: tuple[str, int, str]) -> None:
    """A row of two chips and a row of the whole box in replicas of two compile to the same step."""
    name, size, box = case
    small, large = (find(key_of(name, chips, size), default_catalog()) for chips in (size, int(system(box).chips) // size * size))
    if isinstance(small, str) or isinstance(large, str):
        assert isinstance(small, str) and isinstance(large, str), (small, large)  # what the box cannot say, its part cannot either
        return
    steps = [each.setup.compiled.step for each in (small, large)]
    for alone, inside in zip(*(step.collectives for step in steps), strict=True):
        assert float(alone.floor) == pytest.approx(float(inside.floor), rel=1e-9)
        assert [float(line.slope) for line in alone.lines] == pytest.approx([float(line.slope) for line in inside.lines], rel=1e-9)


# What the links of a part are, counted


@pytest.mark.parametrize("size", range(2, 9))
def test_mesh__a_part_has_one_link_to_each_of_its_chips(size: int) -> None:
    for one in (one for one in KINDS if one.topology in MESHES and size <= one.scale_up_domain):
        link = one.scale_up_bw / (one.scale_up_domain - 1)
        machine = system(f"{size}x{one.name}")
        assert float(domain_bandwidth(machine)) == pytest.approx((size - 1) * link)
        assert float(pair_bandwidth(machine)) == pytest.approx(link)
        joined = fabric(machine)
        least = float(gather_term(joined, group(joined, size, 1), 1.0, link_costs(machine, defaults(Assumptions))).floor)
        assert least == pytest.approx(1 / size / link)  # every chip sends its share over the link to each other chip, at once


@pytest.mark.parametrize("tp, stride", [(2, 1), (2, 4), (4, 2), (8, 1)])
def test_mesh__groups_of_a_layout_have_the_links_between_their_members(tp: int, stride: int) -> None:
    joined = fabric(system("8xmi300x"))
    least = float(gather_term(joined, group(joined, tp, stride), 1.0, link_costs(system("8xmi300x"), defaults(Assumptions))).floor)
    assert least == pytest.approx(1 / tp / 64e9)


def test_mesh__boxes_beyond_the_first_are_whole() -> None:
    for name, links in (("16xmi300x", 7), ("12xmi300x", 7), ("8xmi300x", 7), ("2xmi300x", 1)):
        assert float(domain_bandwidth(system(name))) == pytest.approx(links * 64e9)


def test_switch__a_part_has_all_links_of_a_chip() -> None:
    for name in ("2xh100-sxm", "4xgb200", "2xl4", "2xh100-nvl"):
        assert domain_bandwidth(system(name)) == system(name).scale_up_bw == pair_bandwidth(system(name))


@pytest.mark.parametrize("name", ["tpu-v5e", "tpu-v5p", "tpu-v6e", "trainium1", "trainium2", "inferentia2"])
@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_torus__a_part_is_the_most_even_block_of_its_box(name: str, size: int) -> None:
    one = chip(name)
    if size >= one.scale_up_domain:
        return
    box = tuple(map(int, torus_sides(system(f"{int(one.scale_up_domain)}x{name}"))))
    sides = tuple(map(int, torus_sides(system(f"{size}x{name}"))))
    fitting = [
        block for block in itertools.product(range(1, size + 1), repeat=len(box))
        if math.prod(block) == size and all(side <= most for side, most in zip(sorted(block), sorted(box), strict=True))
    ]  # fmt: skip
    if not fitting:
        assert sides == box
    else:
        assert max(sides) == min(max(block) for block in fitting) and math.prod(sides) == size
    closed = [bool(wrap) for wrap in fabric(system(f"{size}x{name}")).wraps]
    if not name.startswith("tpu"):
        assert closed == [side > 2 and side in box for side in sides]  # a line is no ring because its box is one


def test_sides_within__arrays_of_replicas_equal_each_alone() -> None:
    import numpy as np

    machine = system("256xtpu-v5e")
    chips = np.array([1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 512.0])
    together = fabric(machine, chips)
    for index, count in enumerate(chips):
        alone = fabric(machine, n(count))
        assert [float(side[index]) for side in together.sides] == [float(side) for side in alone.sides]
        assert [float(wrap[index]) for wrap in together.wraps] == [float(wrap) for wrap in alone.wraps]
    assert sides_within(7, (16, 16)) == (1, 7) and sides_within(34, (4, 4, 4)) == (4, 4, 4)


# Edits, and verbs about the machine itself


def test_edit__a_value_that_the_part_has_already_changes_nothing() -> None:
    same = {"chip.scale_up_bw": "448GB/s", "chip.scale_up_domain": "8", "system.scale_up_domain": "2", "system.chips": "2"}
    for key, value in same.items():
        assert float(domain_bandwidth(edit(system("2xmi300x"), key, value))) == pytest.approx(64e9), key
    assert float(domain_bandwidth(edit(system("8xmi300x"), "system.chips", "2"))) == pytest.approx(64e9)
    assert float(domain_bandwidth(edit(system("2xh200-nvl"), "chip.scale_up_domain", "2"))) == pytest.approx(450e9)  # a two-way bridge


def test_machine_verbs__show_the_links_of_the_part(cli: Any) -> None:
    assert cli("compare", "2xmi300x,8xmi300x", "-o", "json").rows[0]["scale_up_bw"] == pytest.approx(64e9)
    shown = {entry.key: entry.value for entry in about_system(system("2xmi300x"))}
    assert shown["domain_bw"] == pytest.approx(64e9)
    assert "domain_bw" not in {entry.key for name in ("8xmi300x", "2xh100-sxm") for entry in about_system(system(name))}
    assert float(hand_over_link(system("8xmi300x"))) == float(hand_over_link(system("2xmi300x"))) == pytest.approx(64e9)
    by_box, by_part = racks("mi300x-node", [4])[0], racks("4xmi300x", [4])[0]
    assert by_box.domain_bisection == pytest.approx(4 * 64e9) and by_part.domain_bisection == by_box.domain_bisection
    assert by_box.alltoall_s == by_part.alltoall_s


def test_collective__part_by_both_names(cli: Any) -> None:
    for operation in ("all-reduce", "all-gather", "all-to-all"):
        small, large = (
            cli("collective", operation, "1GB", "--on", name, "--mesh", "X2", "-o", "json").rows[0] for name in ("2xmi300x", "8xmi300x")
        )
        assert small["time_s"] == pytest.approx(large["time_s"], rel=1e-9)
    flags = ("--mesh", "X2", "--from", "0", "--to", "1", "-o", "json")
    sent = [cli("collective", "send", "1GB", "--on", name, *flags).rows[0] for name in ("2xmi300x", "8xmi300x")]
    assert sent[0]["time_s"] == pytest.approx(sent[1]["time_s"], rel=1e-9) and sent[0]["transfer_s"] == pytest.approx(1e9 / 64e9)


def test_kinds__no_kind_is_left_out() -> None:
    refused = []
    for one in KINDS:
        try:
            fabric(system(f"2x{one.name}"))
        except HeadwayError:
            refused.append(one.name)
    assert not refused and {one.topology for one in KINDS} >= {"mesh", "bridge", "hybrid", "switch", "pcie", "ring", "torus2d", "torus3d"}
