"""The network: collectives against counted links and bytes, exchanges against drawn routings and published kernels, placement."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.errors import MissingFact
from headway.core.formula import anonymous, replay
from headway.core.quantity import known
from headway.core.schema import defaults
from headway.core.trace import Traced, record
from headway.hardware.system import system
from headway.laws.collectives.cost import collective_term_s, collectives_floor_s, collectives_s, two_batch_step_s
from headway.laws.collectives.expert_parallel import exchange_bytes, places_hit, wire_bytes_per_token
from headway.laws.collectives.topology import group_domains, ring_out, ring_up
from headway.laws.step.coefficients import CollectiveTerm
from headway.performance.achieved import with_links
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import (
    NEAREST,
    ChipGroup,
    Fabric,
    LinkCosts,
    MessageTraffic,
    RoutedLayer,
    all_reduce_term,
    all_to_all_term,
    axes,
    exchange_term,
    fabric,
    gather_term,
    group,
    link_costs,
    need_scale_out,
    network_terms,
)
from headway.performance.layout import Layout

MESSAGE = 1.0  # of one byte: a slope times a bandwidth is then a share of the message


def n(value: float, unit: str = "") -> Any:
    return known(value, "test", unit, "constant", "a test")


FREE = LinkCosts(up=0.0, out=0.0, exchange_up=0.0, exchange_out=0.0, efficiency=1.0, in_switch=1.0, exchange=1.0, beyond=1.0)
COSTLY = LinkCosts(up=3e-6, out=10e-6, exchange_up=11e-6, exchange_out=24e-6, efficiency=0.8, in_switch=0.5, exchange=0.8, beyond=0.8)
FP8 = wire_bytes_per_token(7168, 1, 4, 128)
BF16 = 7168 * 2.0
DEEPSEEK = RoutedLayer(layers=n(58), experts=n(256), active=n(8), dispatch=n(FP8, "byte/token"), groups=n(8), groups_chosen=n(4))
EIGHT_OF_256 = replace(DEEPSEEK, groups=n(1), groups_chosen=n(1))


def switch(domain: int, up: float = 450e9, out: float = 50e9, in_switch: bool = False) -> Fabric:
    return Fabric(kind="switch", domain=domain, up=up, exchange=up, out=out, in_switch=in_switch)


def mesh(domain: int) -> Fabric:
    return Fabric(kind="mesh", domain=domain, up=448e9, exchange=448e9, out=50e9)


def torus(sides: tuple[int, ...], wraps: tuple[int, ...]) -> Fabric:
    return Fabric(kind="torus", domain=math.prod(sides), up=1.0, exchange=1.0, out=1.0, sides=sides, wraps=wraps)


FABRICS = (switch(72), switch(8), switch(8, in_switch=True), mesh(8), torus((4, 4, 8), (1, 1, 1)), torus((4, 8), (0, 0)))
SIZES = (2, 4, 8, 16, 32)


def least(term: CollectiveTerm) -> float:
    return float(term.floor)


# Where a group sits


@pytest.mark.parametrize("members, stride, domain", list(itertools.product((1, 2, 4, 8, 16, 18), (1, 2, 4, 8, 16), (8, 72))))
def test_group_domains__equals_counted_domains(members: int, stride: int, domain: int) -> None:
    if domain % stride and stride % domain:
        return  # a group that starts elsewhere straddles one domain more: the placement of a whole replica avoids it
    assert float(group_domains(members, stride, domain)) == len({chip * stride // domain for chip in range(members)})


@pytest.mark.parametrize("sides", [(4, 4, 8), (2, 4, 4), (4, 8), (16, 16)])
def test_torus__block_holds_its_group(sides: tuple[int, ...]) -> None:
    whole = math.prod(sides)
    powers = [2**power for power in range(whole.bit_length())]
    for members, stride in itertools.product(powers, powers):
        if members * stride > whole:
            continue
        chips = [coordinates(member * stride, sides) for member in range(members)]
        counted = [len({chip[axis] for chip in chips}) for axis in range(len(sides))]
        assert [float(axis.extent) for axis in axes(torus(sides, (1,) * len(sides)), members, stride)] == counted


def coordinates(chip: int, sides: tuple[int, ...]) -> tuple[int, ...]:
    found = []
    for side in sides:
        found.append(chip % side)
        chip //= side
    return tuple(found)


# All-to-all on a torus: every message routed axis by axis over its shortest way, every link counted

Link = tuple[tuple[int, ...], int, int]


def busiest_link(sides: tuple[int, ...], wraps: tuple[int, ...], members: int, stride: int) -> float:
    """Load of the busiest link when all groups of the torus exchange at once, each chip holding one unit."""
    loads: dict[Link, float] = {}
    whole = math.prod(sides)
    starts = [chip for chip in range(whole) if (chip // stride) % members == 0]
    for start in starts:
        chips = [coordinates(start + member * stride, sides) for member in range(members)]
        for source, target in itertools.product(chips, chips):
            at = list(source)
            for axis, side in enumerate(sides):
                for direction, share, hops in ways(at[axis], target[axis], side, wraps[axis]):
                    here = list(at)
                    for _ in range(hops):
                        link = (tuple(here), axis, direction)
                        loads[link] = loads.get(link, 0.0) + share / members
                        here[axis] = (here[axis] + direction) % side
                at[axis] = target[axis]
    return max(loads.values(), default=0.0)


def ways(start: int, end: int, side: int, wraps: int) -> list[tuple[int, float, int]]:
    """(direction, share of the message, hops): the shorter way round, both where they are equal."""
    up, down = (end - start) % side, (start - end) % side
    if start == end:
        return []
    if not wraps:
        return [(1, 1.0, end - start)] if end > start else [(-1, 1.0, start - end)]
    if up == down:
        return [(1, 0.5, up), (-1, 0.5, down)]
    return [(1, 1.0, up)] if up < down else [(-1, 1.0, down)]


TORI = [
    ((8,), (1,), 8, 1), ((5,), (1,), 5, 1), ((7,), (0,), 7, 1), ((4,), (0,), 4, 1),
    ((4, 4), (1, 1), 16, 1), ((4, 8), (1, 1), 32, 1), ((4, 8), (0, 0), 32, 1), ((4, 4), (0, 0), 8, 1),
    ((4, 4, 4), (1, 1, 1), 64, 1), ((2, 4, 4), (0, 1, 1), 32, 1),
    ((4, 4), (1, 1), 4, 1), ((4, 4), (1, 1), 4, 4), ((8, 4), (1, 1), 4, 2), ((8, 2), (0, 0), 4, 2), ((4, 4, 4), (1, 1, 1), 8, 8),
]  # fmt: skip


@pytest.mark.parametrize("sides, wraps, members, stride", TORI)
def test_all_to_all__busiest_link_of_a_torus(sides: tuple[int, ...], wraps: tuple[int, ...], members: int, stride: int) -> None:
    joined = torus(sides, wraps)
    slope = least(all_to_all_term(joined, group(joined, members, stride), MESSAGE, FREE))
    assert slope == pytest.approx(busiest_link(sides, wraps, members, stride))


def test_all_to_all__even_ring_is_an_eighth_of_its_side() -> None:
    for side in (4, 8, 16):
        joined = torus((side,), (1,))
        assert least(all_to_all_term(joined, group(joined, side, 1), MESSAGE, FREE)) == pytest.approx(side / 8)


# Switches and meshes: bytes counted chip by chip


@pytest.mark.parametrize("members, domain", [(8, 8), (16, 8), (32, 8), (6, 3)])
def test_all_to_all__two_levels_equal_counted_bytes(members: int, domain: int) -> None:
    inside = sum(1 for other in range(1, members) if other < domain) / members
    beyond = sum(1 for other in range(members) if other >= domain) / members
    joined = switch(domain)
    slope = least(all_to_all_term(joined, group(joined, members, 1), MESSAGE, FREE))
    assert slope == pytest.approx(max(inside / 450e9, beyond / 50e9))


@pytest.mark.parametrize("inside, domains", [(8, 1), (8, 2), (4, 4), (2, 3)])
def test_all_gather__rings_per_rail_equal_counted_bytes(inside: int, domains: int) -> None:
    """Ring r visits each domain from chip r on, and crosses from the last chip it visits."""
    members = inside * domains
    up, out = [0.0] * members, [0.0] * members
    part = (members - 1) / members / inside  # each of `inside` rings carries that share of the message over each of its hops
    for rail in range(inside):
        walk = [domain * inside + (rail + step) % inside for domain in range(domains) for step in range(inside)]
        for chip, following in zip(walk, walk[1:] + walk[:1], strict=True):
            level = up if chip // inside == following // inside else out
            level[chip] += part
    assert max(up) == pytest.approx(float(ring_up(members, inside, domains)))
    assert max(out) == pytest.approx(float(ring_out(members, inside, domains)))


def test_all_gather__mesh_pair_has_one_link_and_full_group_all() -> None:
    joined = mesh(8)
    pair, whole = (least(gather_term(joined, group(joined, size, 1), MESSAGE, FREE)) for size in (2, 8))
    assert pair == pytest.approx(0.5 / 64e9)
    assert whole == pytest.approx(7 / 8 / 448e9)


@pytest.mark.parametrize("joined", [one for one in FABRICS if not one.in_switch])
@pytest.mark.parametrize("members", SIZES)
def test_all_reduce__twice_an_all_gather(joined: Fabric, members: int) -> None:
    who = group(joined, members, 1)
    whole, half = least(all_reduce_term(joined, who, MESSAGE, FREE)), least(gather_term(joined, who, MESSAGE, FREE))
    assert whole == pytest.approx(min(2 * half, whole)) and whole >= half
    assert whole == pytest.approx(2 * half) or members == 2  # two chips swap the message in one shot


def test_all_reduce__in_switch_sum_sends_each_message_once() -> None:
    plain, summing = switch(8), switch(8, in_switch=True)
    who = group(plain, 8, 1)
    assert least(all_reduce_term(plain, who, MESSAGE, FREE)) * 450e9 == pytest.approx(1.75)
    assert least(all_reduce_term(summing, who, MESSAGE, FREE)) * 450e9 == pytest.approx(1.0)


def test_all_reduce__hierarchical_beats_flat_across_scale_out() -> None:
    """16 chips on two servers: along the rails 2*(1/2)/8 of the message leaves a chip, in a flat exchange 2*8/16."""
    joined = switch(8)
    assert least(all_reduce_term(joined, group(joined, 16, 1), MESSAGE, FREE)) == pytest.approx(max(1.75 / 450e9, 0.125 / 50e9))


# Limits


def time(term: CollectiveTerm, tokens: float) -> float:
    return float(collective_term_s(term, tokens))


@pytest.mark.parametrize("joined", FABRICS)
@pytest.mark.parametrize("every", [all_reduce_term, gather_term, all_to_all_term])
def test_collectives__one_chip_sends_nothing(joined: Fabric, every: Any) -> None:
    assert time(every(joined, group(joined, 1, 1), MESSAGE, COSTLY), 1e9) == 0


@pytest.mark.parametrize("joined", FABRICS)
@pytest.mark.parametrize("every", [all_reduce_term, gather_term, all_to_all_term])
@pytest.mark.parametrize("members", SIZES)
def test_collectives__alpha_for_short_and_bytes_for_long_messages(joined: Fabric, every: Any, members: int) -> None:
    term = every(joined, group(joined, members, 1), MESSAGE, COSTLY)
    assert time(term, 0) == pytest.approx(min(float(line.alpha) for line in term.lines)) and time(term, 0) >= 1e-6
    assert time(term, 1e18) == pytest.approx(min(float(line.slope) for line in term.lines) * 1e18, rel=1e-4)
    assert least(term) <= min(float(line.slope) for line in term.lines)
    times = [time(term, tokens) for tokens in np.geomspace(1, 1e12, 30)]
    assert all(low <= high for low, high in itertools.pairwise(times))


@given(st.sampled_from(FABRICS), st.sampled_from(SIZES), st.floats(1.1, 10))
@settings(max_examples=60)
def test_collectives__faster_links_and_lower_alpha_are_never_slower(joined: Fabric, members: int, factor: float) -> None:
    faster = replace(joined, up=joined.up * factor, exchange=joined.exchange * factor, out=joined.out * factor)
    quicker = replace(COSTLY, up=COSTLY.up / factor, out=COSTLY.out / factor)
    for every in (all_reduce_term, gather_term, all_to_all_term):
        who = group(joined, members, 1)
        for tokens in (1e3, 1e6, 1e9):
            base = time(every(joined, who, MESSAGE, COSTLY), tokens)
            assert time(every(faster, who, MESSAGE, COSTLY), tokens) <= base * (1 + 1e-12)
            assert time(every(joined, who, MESSAGE, quicker), tokens) <= base * (1 + 1e-12)


@pytest.mark.parametrize("joined", FABRICS)
def test_all_reduce__no_algorithm_line_is_dominated(joined: Fabric) -> None:
    lines = all_reduce_term(joined, group(joined, 8, 1), MESSAGE, COSTLY).lines
    for one, other in itertools.permutations(lines, 2):
        assert one.alpha < other.alpha or one.slope < other.slope


# Exchanges of experts


def test_exchange_bytes__moe_11_to_the_microsecond() -> None:
    sent = exchange_bytes(2400 / 64, 8, 7168.0, 2 * 7168.0)
    assert sent == pytest.approx(6.45e6, rel=1e-3)
    assert round(sent / 900e9 * 1e6, 1) == 7.2
    assert round(58 * sent / 900e9 * 1e3, 2) == 0.42
    assert [round(58 * sent / rate * 1e3, 1) for rate in (100e9, 50e9)] == [3.7, 7.5]


def test_exchange_term__moe_11_less_the_local_share() -> None:
    """Without scales, one copy per expert, 1/64 of them at home: 63/64 of 7.2 us; fewer where chips share a token."""
    joined, layout = switch(72, up=900e9), Layout(dp=64, ep=64)
    free = EIGHT_OF_256
    exchange = exchange_term(joined, layout, free, 1.5 * 7168.0, COSTLY)
    per_expert = slope_at(exchange, 22e-6) * COSTLY.efficiency * 37.5
    assert per_expert * 1e6 == pytest.approx(7.168 * 63 / 64)
    assert least(exchange) * 37.5 * 1e6 == pytest.approx(7.168 * 63 / 64 * 7.675 / 8, rel=1e-3)


def slope_at(term: CollectiveTerm, alpha: float) -> float:
    """The slope of the line with that alpha: one copy per expert costs two exchanges' latencies."""
    return next(float(line.slope) for line in term.lines if float(line.alpha) == pytest.approx(alpha))


def test_places_hit__distinct_chips_of_moe_12() -> None:
    assert float(places_hit(64, 256, 8, 1, 1)) == pytest.approx(7.58, rel=0.02)
    assert float(places_hit(64, 2**30, 32, 1, 1)) == pytest.approx(25.3, rel=0.01)  # choices at random, 32 over 64


@pytest.mark.parametrize("places, groups, chosen", [(8, 8, 4), (16, 8, 4), (64, 8, 4), (4, 8, 4), (64, 1, 1), (256, 1, 1), (8, 1, 1)])
def test_places_hit__matches_sampled_routings(places: int, groups: int, chosen: int) -> None:
    draw, total, rounds = random.Random(7), 0, 4000
    for _ in range(rounds):
        pool = [group * (256 // groups) + expert for group in draw.sample(range(groups), chosen) for expert in range(256 // groups)]
        total += len({expert * places // 256 for expert in draw.sample(pool, 8)})
    assert float(places_hit(places, 256, 8, groups, chosen)) == pytest.approx(total / rounds, rel=0.025)


# DeepEP's own table (github.com/deepseek-ai/DeepEP docs/legacy.md, read 2026-11-21): low-latency kernels, 128 tokens a chip, 7168 wide,
# top-8, fp8 dispatch, bf16 combine, servers of 8 H800 with 400 Gb/s each. us.
DEEPEP = {16: (118, 195), 32: (155, 273), 64: (173, 314), 128: (192, 369), 256: (194, 360)}


@pytest.mark.parametrize("ep", DEEPEP)
def test_exchange_term__one_copy_per_expert_matches_deepep(ep: int) -> None:
    joined = switch(8, up=200e9)
    for vector, published in zip((FP8, BF16), DEEPEP[ep], strict=True):
        term = exchange_term(joined, Layout(dp=ep, ep=ep), EIGHT_OF_256, vector, COSTLY)
        one_way = 24e-6 + slope_at(term, 48e-6) / 2 * 128
        assert one_way * 1e6 == pytest.approx(published, rel=0.12)


def test_exchange_term__slowdown_over_several_racks() -> None:
    """MOE-08: with a copy per expert, R racks take ratio*(1-1/R) as long as one; a router's limit then helps."""
    for racks, slower in ((2, 4.0), (3, 16 / 3), (4, 6.0), (8, 7.0)):
        joined = switch(64, up=400e9, out=50e9)
        chips = 64 * racks
        one = exchange_term(joined, Layout(dp=64, ep=64), replace(EIGHT_OF_256, experts=n(64)), FP8, COSTLY)
        many = exchange_term(joined, Layout(dp=chips, ep=chips), replace(EIGHT_OF_256, experts=n(chips)), FP8, COSTLY)
        single, direct = slope_at(one, 22e-6) * 64 / 63, slope_at(many, 48e-6)
        assert direct / single == pytest.approx(slower)
        assert least(many) < direct * COSTLY.efficiency  # one copy per rack


def test_exchange_term__zero_within_one_tensor_parallel_rank() -> None:
    for joined in FABRICS:
        traffic = MessageTraffic(layers=n(58), sublayers=n(116), routed=(DEEPSEEK,), depth=n(1.0), vector=BF16)
        assert len(network_terms(traffic, joined, Layout(tp=8, ep=8), COSTLY)) == 1
        both = Layout(tp=np.array([8, 1]), dp=np.array([1, 8]), ep=np.array([8, 8]))
        _, exchange = network_terms(traffic, joined, both, COSTLY)
        assert collective_term_s(exchange, 64.0)[0] == exchange.floor[0] == 0
        assert collective_term_s(exchange, 64.0)[1] > exchange.floor[1] > 0


# A whole layout

TRAFFIC = MessageTraffic(
    layers=n(61), sublayers=n(122), routed=(DEEPSEEK,), depth=n(1.0), vector=n(BF16, "byte/token"),
)  # fmt: skip
LAYOUTS = [
    Layout(), Layout(tp=8, ep=8), Layout(dp=64, ep=64), Layout(tp=2, dp=8, ep=16, pp=4), Layout(cp=4, tp=4, dp=2, ep=32), Layout(pp=16),
]  # fmt: skip


@pytest.mark.parametrize("joined", FABRICS)
def test_collectives_s__stacked_layouts_equal_single_layouts(joined: Fabric) -> None:
    names = ("tp", "ep", "dp", "pp", "cp")
    stacked = Layout(**{name: np.array([getattr(layout, name) for layout in LAYOUTS]) for name in names})
    tokens = 37.0
    for how in (collectives_s, collectives_floor_s):
        together = how(network_terms(TRAFFIC, joined, stacked, COSTLY), tokens)
        alone = [float(how(network_terms(TRAFFIC, joined, layout, COSTLY), tokens)) for layout in LAYOUTS]
        assert np.asarray(together) == pytest.approx(alone, rel=1e-12)
        assert alone[0] == 0


@pytest.mark.parametrize("joined", FABRICS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_collectives_floor_s__equals_time_without_fixed_costs_at_peak(joined: Fabric, layout: Layout) -> None:
    for tokens in (1.0, 64.0, 8192.0):
        floor = float(collectives_floor_s(network_terms(TRAFFIC, joined, layout, COSTLY), tokens))
        assert float(collectives_s(network_terms(TRAFFIC, joined, layout, FREE), tokens)) == pytest.approx(floor, rel=1e-12)
        assert float(collectives_s(network_terms(TRAFFIC, joined, layout, COSTLY), tokens)) >= floor


def test_pp__stages_in_one_rack_hop_over_its_switch() -> None:
    rack, servers = switch(72), switch(8)
    for joined, alpha, rate in ((rack, COSTLY.up, 450e9), (servers, COSTLY.out, 50e9)):
        hops = network_terms(TRAFFIC, joined, Layout(tp=8, pp=4), COSTLY)[-1]
        assert float(hops.lines[0].alpha) == pytest.approx(3 * alpha)
        assert float(hops.floor) == pytest.approx(3 * BF16 / 8 / rate)


def test_collectives_s__every_leaf_has_an_origin_and_replays() -> None:
    for name in ("4xgb200-nvl72", "8xh100-sxm", "mi300x-node", "tpu-v5p-4x4x8", "tpu-8i-pod", "trn3-ultraserver-gen2"):
        one = system(name)
        ways = {"tp": n(2), "ep": n(4), "dp": n(2), "pp": n(2), "cp": n(1)}
        with record():
            terms = network_terms(TRAFFIC, fabric(one), Layout(**ways), link_costs(one, with_links(defaults(Assumptions), one.chip)))
            whole = collectives_s(terms, n(64.0, "token"))
        assert isinstance(whole, Traced)
        assert anonymous(whole) == []
        assert replay(whole) == pytest.approx(float(whole), rel=1e-12)


@pytest.mark.parametrize("name", ["8xh100-sxm", "gb200-nvl72", "mi300x-node", "gaudi3-node", "tpu-v5e-pod", "8xtpu-v4", "tpu-8i-pod"])
def test_fabric__links_of_a_system(name: str) -> None:
    joined = fabric(system(name))
    assert joined.kind == NEAREST[system(name).topology][0]
    assert math.prod(int(side) for side in joined.sides) == (joined.domain if joined.kind == "torus" else 1)


def test_fabric__wrap_around_links_of_a_tpu_slice() -> None:
    assert [int(wrap) for wrap in fabric(system("tpu-v5p-4x4x8")).wraps] == [1, 1, 1]
    assert [int(wrap) for wrap in fabric(system("tpu-v5p-2x2x4")).wraps] == [0, 0, 1]
    assert [int(wrap) for wrap in fabric(system("tpu-v5e-4x8")).wraps] == [0, 0]
    assert [int(wrap) for wrap in fabric(system("tpu-v5e-pod")).wraps] == [1, 1]


def test_need_scale_out__missing_rate_fails_only_across_domains() -> None:
    unknown = Fabric(kind="switch", domain=8, up=450e9, exchange=450e9, out=float("inf"), out_is_missing=True)
    need_scale_out(unknown, Layout(tp=8), "test")
    with pytest.raises(MissingFact, match="scale_out_bw"):
        need_scale_out(unknown, Layout(tp=8, pp=2), "test")


def test_two_batch_step_s__hides_the_smaller_part_but_one_layer() -> None:
    assert float(two_batch_step_s(10.0, 4.0, 50)) == pytest.approx(20 + 4 / 50)
    assert float(two_batch_step_s(4.0, 10.0, 50)) == pytest.approx(20 + 4 / 50)
    # Worth it only where the network costs more than reading the weights again: 20 + 2 against 11 + 8.
    assert float(two_batch_step_s(10.0, 4.0, 50)) > 11.0 + 8.0


def test_group__spread_evenly_over_its_domains() -> None:
    who = group(switch(72), 100, 1)
    assert (float(who.domains), float(who.inside)) == (2, 50) and isinstance(who, ChipGroup)
