"""Prefill and decode on pools of their own: against brute force over whole numbers of replicas, and against limits."""

from __future__ import annotations

import dataclasses
import itertools
import random
from typing import Any

import numpy as np
import pytest

from headway.core.errors import HeadwayError
from headway.core.formula import anonymous, replay
from headway.core.quantity import user_input
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.laws.serving.replicas import decode_replicas_held, pool_request_s, replicas_held
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.plan.plan import plan
from headway.serving.pools import estimate_pools, hand_over_link
from headway.serving.serve import checked_load, deployment, serve

pytestmark = pytest.mark.slow

CHAT = Load(prompt=4000, output=1000)
EIGHTY = Assumptions(eff_network=0.8)  # of a link's bandwidth


def test_decode_replicas_held__fill_the_room_left_by_prefill() -> None:
    """Domain by domain: prefill replicas first, then as many decode replicas as the rest of each domain has room for."""
    for domain, whole, rest, a, b in itertools.product((4, 6, 8), (1, 2, 3), (0, 3), (1, 2, 3, 4), (1, 2, 3, 4)):
        for count in range(1, whole * (domain // a) + 1):
            free, left = 0, count
            for size in (*[domain] * whole, rest):
                own = min(left, size // a) if size == domain else 0
                left -= own
                free += (size - own * a) // b
            assert decode_replicas_held(count, whole * domain + rest, domain, a, b) == free, (domain, whole, rest, a, b, count)


def test_replicas_held__beyond_a_domain_take_whole_domains() -> None:
    assert replicas_held(144, 8, 32) == 4 and replicas_held(148, 8, 32) == 4 and replicas_held(16, 8, 24) == 0
    assert decode_replicas_held(2, 144, 8, 32, 16) == 5 and decode_replicas_held(3, 144, 8, 8, 16) == 7
    assert decode_replicas_held(2, 144, 8, 32, 4) == 20 and decode_replicas_held(5, 144, 8, 4, 120) == 1


def decode_packed(count: int, domain: int, whole: int, rest: int, a: int, b: int) -> int:
    """Decode replicas of `b` chips beside `count` prefill replicas of `a`: one placed after the other in a list of domains."""
    free = [domain] * whole + [rest]
    for _ in range(count):
        if a > domain:
            spanned = [at for at in range(whole) if free[at] == domain][: -(-a // domain)]
            for at in spanned:
                free[at] = 0
        else:
            free[next(at for at in range(whole) if free[at] >= a)] -= a
    if b > domain:
        return sum(chips == domain for chips in free[:whole]) // -(-b // domain)
    return sum(chips // b for chips in free)


def test_decode_replicas_held__at_and_above_a_whole_domain() -> None:
    """Replicas of one chip less than a domain, a whole domain, one chip more, and two domains."""
    for domain, whole, rest in itertools.product((3, 4, 8), (1, 2, 5), (0, 2)):
        sizes = (1, 2, domain - 1, domain, domain + 1, 2 * domain, 2 * domain + 1)
        for a, b in itertools.product(sizes, sizes):
            most = whole // -(-a // domain) if a > domain else whole * (domain // a)
            for count in range(1, most + 1):
                found = decode_replicas_held(count, whole * domain + rest, domain, a, b)
                assert found == decode_packed(count, domain, whole, rest, a, b), (domain, whole, rest, a, b, count)


def brute(model: str, machine: Any, load: Load, ttft: float, tpot: float) -> float:
    """The most requests per second within the limits of any two layouts, replicas of each, and users, one after the other."""
    chips, best = int(machine.chips), 0.0
    layouts = [Layout(tp=tp, pp=pp) for tp, pp in itertools.product((1, 2, 4), range(1, chips + 1)) if tp * pp < chips]
    users = np.arange(1, 400)
    for kv in ("bf16", "fp8"):
        case = deployment(model, machine, Layout(), checked_load(prompt=load.prompt, output=load.output), Precision(kv=kv), EIGHTY)
        for one, two in itertools.product(layouts, repeat=2):
            sizes = [int(layout.tp) * int(layout.pp) for layout in (one, two)]
            for p in range(1, (chips - sizes[1]) // sizes[0] + 1):
                decode = dataclasses.replace(two, replicas=(chips - p * sizes[0]) // sizes[1])
                asked = case.at(decode, Load(prompt=load.prompt, output=load.output, batch=users))
                found = estimate_pools(asked, dataclasses.replace(one, replicas=p), hand_over_link(machine))
                good = np.broadcast_to((found["ttft_s"] <= ttft) & (found["tpot_s"] <= tpot) & found["fits"], users.shape)
                best = max(best, float(np.max(np.where(good, found["tok_per_s"] / load.output, 0.0))))
    return best


@pytest.mark.parametrize("seed", range(3))
def test_disaggregate__pools_equal_brute_force(seed: int) -> None:
    """The search looks at one number of users for each pair, by steps at the most that decode: at most 4 % are lost by that."""
    rng = random.Random(seed)
    machine = edit(system(rng.choice(("4xh200-sxm", "5xh200-sxm", "4xb200"))), "chip.price", 1e-3)
    load = Load(prompt=rng.choice((1000, 4000, 20_000)), output=rng.choice((200, 1000)))
    ttft, tpot = rng.choice((0.7, 3.0, 20.0)), rng.choice((0.02, 0.05))
    limits = {"ttft": ttft, "tpot": tpot}
    answer = plan("qwen3-32b", machine, load, **limits, disaggregate=True, ways={"dp": 1, "ep": 1}, assumptions=EIGHTY)
    best = answer.table.row(0)
    truth = brute("qwen3-32b", machine, load, ttft, tpot)
    assert bool(truth) == (answer.fails == "")
    if truth:
        assert 0.96 * truth <= best["tok_per_s"] / best["output"] <= truth * (1 + 1e-9)
        assert best["ttft_s"] <= ttft and best["tpot_s"] <= tpot and best["fits"]
        assert best["prefill_chips"] + best["decode_chips"] + best["chips_idle"] == best["chips"]


def test_ttft__one_request_through_both_pools_by_hand() -> None:
    """Two pools of 4 chips, each with 2 of 8 KV heads of 80 layers: 2 x 2 x 80 x 128 x 2 byte a token, over 1 GB/s at 80 %."""
    machine = edit(edit(system("8xh200-sxm"), "chip.price", 1e-3), "system.scale_up_bw", 1e9)
    ways = {"tp": 4, "dp": 1, "ep": 1, "pp": 1}
    pinned: dict[str, Any] = {"disaggregate": True, "ways": ways, "kv": "bf16", "assumptions": EIGHTY, "batch": 1}
    best = plan("llama-3.1-70b", machine, CHAT, **pinned).table.row(0)
    alone = serve("llama-3.1-70b", machine, Layout(tp=4), batch=1, prompt=4000, output=1000, precision=Precision(kv="bf16"),
                  assumptions=EIGHTY).row(0)  # fmt: skip
    transfer = 2 * 2 * 80 * 128 * 2 * 4000 / 0.8e9
    assert best["transfer_s"] == pytest.approx(transfer, rel=1e-12)
    assert best["ttft_s"] == pytest.approx(alone["ttft_s"] + transfer, rel=1e-12)
    assert best["e2e_s"] == pytest.approx(alone["ttft_s"] + transfer + 999 * best["tpot_s"], rel=1e-12)
    for share, feasible in ((1 - 1e-6, False), (1 + 1e-6, True)):
        assert plan("llama-3.1-70b", machine, CHAT, ttft=share * (alone["ttft_s"] + transfer), **pinned).table.row(0)["fits"] == feasible


def test_disaggregate__two_pools_over_many_domains() -> None:
    machine = edit(system("18x8xh800-sxm"), "chip.price", 1e-3)
    answer = plan("deepseek-v3", machine, CHAT, tpot="50ms", ttft="3s", disaggregate=True)
    best, *front = (row for row in answer.rows() if row["kind"] != "elasticity")
    assert answer.fails == "" and best["kind"] == "best" and {row["kind"] for row in front} == {"frontier"}
    prefill = best["prefill_tp"] * best["prefill_dp"] * best["prefill_pp"] * best["prefill_replicas"]
    decode = best["tp"] * best["dp"] * best["pp"] * best["replicas"]
    assert (prefill, decode) == (best["prefill_chips"], best["decode_chips"]) and prefill + decode + best["chips_idle"] == 144
    assert best["tpot_decode_s"] == best["tpot_s"] <= 0.05 and best["ttft_s"] <= 3
    assert best["transfer_s"] > 0 and any("than" in note and "pool" in note for note in answer.notes)
    total = (4000 * best["usd_per_mtok_in"] + 1000 * best["usd_per_mtok_out"]) / 1e6
    assert total == pytest.approx(1e-3 * 144 / best["capacity_req_per_s"], rel=1e-9)
    assert answer.answer["value"] == pytest.approx(total, rel=1e-9)
    speeds = [row["tok_per_s_user"] for row in front]
    assert speeds == sorted(speeds, reverse=True)


def test_space__contains_the_published_deepseek_units() -> None:
    """DeepSeek-V3: prefill over 32 chips (EP32), decode over 144 (EP144), nodes of 8 (arXiv:2412.19437, section 3.4)."""
    machine = edit(system("22x8xh800-sxm"), "chip.price", 1e-3)
    decode = plan("deepseek-v3", machine, CHAT, ways={"tp": 1, "dp": 144, "ep": 144, "pp": 1}, tpot_decode="50ms", elasticities=False)
    assert decode.fails == "" and decode.table.row(0)["tpot_decode_s"] <= 0.05
    prefill = plan("deepseek-v3", machine, CHAT, ways={"tp": 4, "dp": 8, "ep": 32, "pp": 1}, elasticities=False, disaggregate="never")
    assert prefill.fails == "" and prefill.table.row(0)["replicas"] == 5


def test_pool_request_s__ranks_send_at_once() -> None:
    """Eight ranks that take 160 ms each for a prompt's KV hand over one in 20 ms: it binds over 10 ms of work, not over 50 ms."""
    assert pool_request_s(0.010, 0.160, 8) == pytest.approx(0.020)
    assert pool_request_s(0.050, 0.160, 8) == 0.050


def test_transfer_s__zero_over_an_infinite_link() -> None:
    machine = edit(system("8xh200-sxm"), "chip.price", 1e-3)
    slow, fast = (dataclasses.replace(machine, scale_up_bw=user_input(bandwidth, "scale_up_bw", "byte/s")) for bandwidth in (4e11, 1e25))
    rows = [plan("llama-3.1-70b", one, CHAT, tpot="50ms", disaggregate=True).table.row(0) for one in (slow, fast)]
    assert rows[1]["transfer_s"] < 1e-12 < rows[0]["transfer_s"]
    alone = serve("llama-3.1-70b", fast, Layout(tp=rows[1]["prefill_tp"], pp=rows[1]["prefill_pp"]), batch=1, prompt=4000, output=1000,
                  precision=Precision(kv=rows[1]["kv"])).row(0)  # fmt: skip
    assert rows[1]["ttft_unloaded_s"] == pytest.approx(alone["ttft_unloaded_s"], rel=1e-9)
    assert rows[1]["capacity_req_per_s"] >= 0.99 * rows[0]["capacity_req_per_s"]  # which whole users make a little less even


def test_transfer_s__slow_link_lowers_the_rate_and_raises_ttft() -> None:
    machine = dataclasses.replace(edit(system("16xh200-sxm"), "chip.price", 1e-3))
    fast = plan("llama-3.1-70b", machine, CHAT, disaggregate=True).table.row(0)
    slow = plan("llama-3.1-70b", edit(machine, "system.scale_out_bw", 1e8), CHAT, disaggregate=True).table.row(0)
    assert slow["transfer_s"] > 20 * fast["transfer_s"] and slow["capacity_req_per_s"] < fast["capacity_req_per_s"]


def test_disaggregate__rate_sizes_both_pools() -> None:
    load = Load(prompt=4000, output=1000, rate=20.0)
    best = plan("llama-3.1-70b", "h200-sxm", load, tpot="50ms", disaggregate=True).table.row(0)
    assert best["fits"] and 0.5 < best["utilisation"] <= 1 and best["chips"] >= best["prefill_chips"] + best["decode_chips"]
    over = plan("llama-3.1-70b", "8xh200-sxm", load, tpot="50ms", disaggregate=True)
    assert over.fails and not over.table.row(0)["fits"]
    with pytest.raises(HeadwayError, match="replicas"):
        plan("llama-3.1-70b", "8xh200-sxm", CHAT, disaggregate=True, ways={"replicas": 2})


def test_explain__every_number_of_two_pools() -> None:
    answer = plan("deepseek-v3", "4xgb200-nvl72", Load(prompt=4000, output=1000, rate=100.0), tpot="50ms", disaggregate=True)
    texts = {"kind", "model", "system", "weights", "kv", "compute", "bound", "why", "input", "cause", "fits"}
    for key, value in answer.table.row(0).items():
        if key in texts or value is None:
            continue
        tree = answer.explain(key)
        assert anonymous(tree) == [], key
        assert float(tree) == pytest.approx(value, rel=1e-12) and float(replay(tree)) == pytest.approx(value, rel=1e-12), key


def test_disaggregate__answer_repeats() -> None:
    one, two = (plan("gpt-oss-120b", "8xh200-sxm", CHAT, tpot="20ms", e2e="15s", disaggregate=True).rows() for _ in range(2))
    assert one == two and one[0]["e2e_s"] <= 15
