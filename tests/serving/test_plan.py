"""The planner against brute force, against arithmetic on its parts, and against limits."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from headway.core.errors import HeadwayError, IllegalLayout
from headway.core.formula import anonymous, replay
from headway.core.schema import defaults
from headway.hardware.edit import edit
from headway.hardware.system import System, system
from headway.models.config import from_data
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.layout import NAMES, Layout, illegal, shape
from headway.performance.workload import Load
from headway.serving.plan import choice, space
from headway.serving.plan.plan import LayoutPlan
from headway.serving.plan.search import PLAIN_WITHIN
from headway.serving.plan.sensitivity import INPUTS, parse
from headway.serving.serve import SERVE, checked_load, deployment, serve
from support.cases import FLAT, STEP_MODELS
from support.one_pool import plan

CHAT = Load(prompt=8000, output=1000)
PROBLEMS = 20


# -- brute force ----------------------------------------------------------------------------------------------------------------


def small_model(rng: random.Random) -> Model:
    """A dense or mixture model of a few layers, in the keys of a config.json."""
    heads = rng.choice((4, 6, 8))
    data: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": heads * 64,
        "intermediate_size": rng.choice((512, 1024, 3000)), "num_hidden_layers": rng.choice((3, 4, 7)), "num_attention_heads": heads,
        "num_key_value_heads": rng.choice((1, 2, heads)),
        "vocab_size": 4000, "rms_norm_eps": 1e-5, "max_position_embeddings": 65536, "tie_word_embeddings": False,
        "torch_dtype": "bfloat16", "hidden_act": "silu", "head_dim": 64,
    }  # fmt: skip
    if rng.random() < 0.5:
        experts = rng.choice((4, 6))
        data |= {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": experts, "num_experts_per_tok": 2}
    elif rng.random() < 0.5:
        data |= {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": 700}
    return from_data(data, "small", "test")


def small_system(rng: random.Random, model: Model, load: Load) -> System:
    """One to eight chips, in one or two domains, with memory for some dozens of sequences at most."""
    chips = rng.choice((1, 2, 3, 4, 5, 6, 8))
    found = system(f"{chips}x{rng.choice(('h100-sxm', 'h200-sxm', 'a100-sxm-80'))}")
    if chips > 3 and rng.random() < 0.4:
        found = edit(found, "system.scale_up_domain", rng.randint(2, chips))
    one = serve(model, found, batch=1, prompt=load.prompt, output=load.output).row(0)
    usable = one["weights_bytes_chip"] * rng.uniform(0.3, 1.3) + one["kv_bytes_chip"] * rng.uniform(0.0, 9.0)
    return edit(edit(found, "chip.hbm", usable / 0.9), "chip.price", 1e-3)


def every_layout(model: Model, machine: System) -> list[Layout]:
    """Every legal layout whose replicas the domains hold or take whole, tp inside one, fewer replicas than that among them."""
    chips, domain = int(machine.chips), int(machine.scale_up_domain)
    domains = [domain] * (chips // domain) + ([chips % domain] if chips % domain else [])
    what = shape(deployment(model, machine, Layout(), checked_load(context=1)).work.blocks)
    found = []
    for tp, dp, pp in itertools.product(range(1, domain + 1), range(1, chips + 1), range(1, chips + 1)):
        taken = tp * dp * pp
        held = sum(size // taken for size in domains) if taken <= domain else 0 if taken % domain else chips // domain // (taken // domain)
        for ep, replicas in itertools.product(range(1, tp * dp + 1), range(1, held + 1)):
            layout = Layout(tp=tp, ep=ep, dp=dp, pp=pp, replicas=replicas)
            if not illegal(layout, what) and (what.experts or dp == 1):  # without experts dp is a number of copies
                found.append(layout)
    return found


def everything(
    model: Model, machine: System, load: Load, kvs: tuple[str, ...], taken: Assumptions, near: tuple[int, ...] = ()
) -> dict[str, Any]:
    """All layouts at batches up to beyond what memory holds, each to 64 and then every few per cent, by `serve`: flat arrays by column."""
    layouts = every_layout(model, machine)
    parts: dict[str, list[Any]] = {}
    for kv in kvs:
        what = {"prompt": load.prompt, "output": load.output, "precision": Precision(kv=kv), "assumptions": taken}
        most = 64
        while serve(model, machine, layouts, batch=[most], **what)["fits"].any():
            most *= 2
        users = np.unique(np.concatenate((np.arange(1, min(most, 64) + 1), np.geomspace(1, most, 120).round(), near))).astype(int)
        table = serve(model, machine, layouts, batch=users, **what)
        for key in ("fits", "ttft_s", "tpot_s", "tok_per_s_chip", "tok_per_s_user", "usd_per_mtok_in", "usd_per_mtok_out"):
            parts.setdefault(key, []).append(table[key].ravel())
    found = {key: np.concatenate(values) for key, values in parts.items()}
    found["usd"] = (load.prompt * found["usd_per_mtok_in"] + load.output * found["usd_per_mtok_out"]) / 1e6
    return found


def cost_of(row: dict[str, Any]) -> float:
    return (row["prompt"] * row["usd_per_mtok_in"] + row["output"] * row["usd_per_mtok_out"]) / 1e6


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_plan__no_layout_and_no_users_beat_it(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layout at up to 180 numbers of users: without the rule of the plainest layout to 0.1 %, with it to its 3 %."""
    if part % 2:
        monkeypatch.setattr(choice, "PLAIN_WITHIN", 0.0)
    near, feasible = (0.001 if part % 2 else PLAIN_WITHIN), 0
    for seed in range(part, PROBLEMS, 4):
        rng = random.Random(seed)
        load = Load(prompt=rng.choice((100, 1000, 5000)), output=rng.choice((50, 500)))
        model = small_model(rng)
        machine = small_system(rng, model, load)
        kvs = ("bf16", "fp8") if machine.chip.peak_fp8 is not None else ("bf16",)
        taken = defaults(Assumptions, {"overlap": rng.choice(STEP_MODELS)})
        every = everything(model, machine, load, kvs, taken)
        objective = rng.choice(("cost", "cost", "throughput", "speed"))
        limits = {}
        for key in ("ttft", "tpot"):
            fitting = every[f"{key}_s"][every["fits"]]
            if rng.random() < 0.6 and fitting.size:
                limits[key] = float(np.quantile(fitting, rng.choice((0.02, 0.3, 0.7)))) * rng.choice((0.98, 1.0001))
        good = every["fits"] & (every["ttft_s"] <= limits.get("ttft", np.inf)) & (every["tpot_s"] <= limits.get("tpot", np.inf))
        answer = plan(model, machine, load, **limits, objective=objective, assumptions=taken, elasticities=False)
        best = answer.table.row(0)
        users = int(best["batch"])
        every = everything(model, machine, load, kvs, taken, (max(users - 1, 1), users, users + 1))
        good = every["fits"] & (every["ttft_s"] <= limits.get("ttft", np.inf)) & (every["tpot_s"] <= limits.get("tpot", np.inf))
        assert bool(answer.infeasible) == (not good.any()), (seed, answer.infeasible)
        assert best["fits"] == good.any() and bool(best["why"]) == (not good.any())
        if good.any():
            feasible += 1
            mine = {"cost": cost_of(best), "throughput": best["tok_per_s_chip"], "speed": best["tok_per_s_user"]}[objective]
            column = {"cost": "usd", "throughput": "tok_per_s_chip", "speed": "tok_per_s_user"}[objective]
            truth = every[column][good].min() if objective == "cost" else every[column][good].max()
            worse = mine / truth if objective == "cost" else truth / mine
            assert 1 - 1e-9 <= worse <= 1 + (1e-9 if objective == "speed" else near), (seed, objective, worse, best)
            assert answer.answer["value"] == pytest.approx(mine, rel=1e-9)
            assert best["ttft_s"] <= limits.get("ttft", np.inf) and best["tpot_s"] <= limits.get("tpot", np.inf)
    assert feasible > 2  # the problems are not all hopeless


def test_frontier__at_a_rate_each_layout_once() -> None:
    """At a rate the users of a replica follow, so points of one layout that could take more or fewer users are one row."""
    answer = plan("llama-3.1-70b", "8xh200-sxm", Load(prompt=4000, output=300, rate=2.0), tpot=0.05, elasticities=False)
    front = [tuple(row[name] for name in (*NAMES, "chips", "kv")) for row in answer.rows() if row["kind"] == "frontier"]
    assert len(front) == len(set(front)) > 2


def test_frontier__dominated_by_no_candidate() -> None:
    for seed in range(8):
        rng = random.Random(1000 + seed)
        load = Load(prompt=1000, output=200)
        model = small_model(rng)
        machine = edit(small_system(rng, model, load), "chip.hbm", 30e9)
        answer = plan(model, machine, load, batch=tuple(range(1, 41)), kv="bf16", elasticities=False)
        front = [row for row in answer.rows() if row["kind"] == "frontier"]
        table = serve(model, machine, every_layout(model, machine), batch=range(1, 41), prompt=1000, output=200)
        every = {key: table[key].ravel() for key in ("tok_per_s_user", "usd_per_mtok_in", "usd_per_mtok_out", "fits")}
        usd = (1000 * every["usd_per_mtok_in"] + 200 * every["usd_per_mtok_out"]) / 1e6
        assert 1 <= len(front) <= 12 and every["fits"].all()
        for row in front:
            faster = every["tok_per_s_user"] >= row["tok_per_s_user"] * (1 + 1e-9)
            cheaper = usd <= cost_of(row) * (1 - 2e-9)
            assert not (faster & cheaper).any(), row
        assert front[0]["tok_per_s_user"] == pytest.approx(every["tok_per_s_user"].max(), rel=1e-9)
        assert cost_of(front[-1]) == pytest.approx(usd.min(), rel=1e-6)


# -- the space ------------------------------------------------------------------------------------------------------------------


def test_space__every_legal_layout_and_no_other() -> None:
    machine = system("gb200-nvl72")
    what = shape(deployment("deepseek-v3", machine, Layout(), checked_load(context=1)).work.blocks)
    found = space.space(what, machine, {})
    names = ("tp", "ep", "dp", "pp")
    mine = set(zip(*(getattr(found.layouts, name).ravel().tolist() for name in names), strict=True))
    truth = set()
    for tp, dp in itertools.product(range(1, 73), repeat=2):
        for pp in range(1, 72 // (tp * dp) + 1):
            truth |= {(tp, ep, dp, pp) for ep in range(1, tp * dp + 1) if not illegal(Layout(tp=tp, ep=ep, dp=dp, pp=pp), what)}
    assert mine == truth and len(mine) >= 400
    chips = np.prod([getattr(found.layouts, name) for name in ("tp", "dp", "pp")], axis=0)
    assert (chips * found.layouts.replicas <= 72).all() and (chips * (found.layouts.replicas + 1) > 72).all()


def test_plan__replica_stays_in_one_domain_or_takes_whole_domains() -> None:
    answer = plan("llama-3.1-70b", "20xh100-sxm", CHAT, ttft="5s", elasticities=False)
    for row in answer.rows():
        chips = row["tp"] * row["dp"] * row["pp"]
        assert row["tp"] <= 8 and (chips <= 8 or chips == 16)
        assert row["replicas"] <= (2 * (8 // chips) + 4 // chips if chips <= 8 else 1)
        assert row["chips"] == 20 and row["chips_idle"] == 20 - row["replicas"] * chips


def test_plan__searches_many_candidates() -> None:
    answer = plan("deepseek-v3", "gb200-nvl72", CHAT, ttft="2s", tpot="50ms", elasticities=False)
    counted = next(note for note in answer.notes if note.startswith("searched"))
    layouts, points = (int(word) for word in counted.split() if word.isdigit())
    assert layouts >= 2500 and points >= 15_000  # those within the TTFT limit at their load


def test_plan__answers_for_a_very_large_domain() -> None:
    answer = plan("qwen3-235b-a22b", edit(system("tpu-v7-pod"), "chip.price", 1e-3), CHAT, elasticities=False)
    assert not answer.infeasible and any("domain of" in note for note in answer.notes)


# -- elasticities ---------------------------------------------------------------------------------------------------------------


def helps(answer: LayoutPlan) -> dict[str, dict[str, Any]]:
    return {row["input"]: row for row in answer.rows() if row["kind"] == "elasticity"}


def same_place(rows: dict[str, dict[str, Any]], best: dict[str, Any]) -> bool:
    return all(row[key] == best[key] for row in rows.values() for key in ("tp", "ep", "dp", "pp", "replicas", "batch", "kv"))


@pytest.mark.parametrize("overlap", ["fitted", "operators"])
@pytest.mark.parametrize("objective", ["cost", "throughput", "speed"])
@pytest.mark.parametrize(
    ("name", "machine"), [("deepseek-v3", "gb200-nvl72"), ("llama-3.1-70b", "8xh100-sxm"), ("gpt-oss-120b", "4xh200-sxm")]
)
def test_elasticity__sign_of_each_input(name: str, machine: str, objective: str, overlap: str) -> None:
    taken = defaults(Assumptions, {"overlap": overlap})
    rows = helps(plan(name, machine, CHAT, ttft="4s", tpot="60ms", objective=objective, assumptions=taken))
    assert set(rows) == {"chip.hbm_bw", "chip.peak", "chip.hbm", "system.scale_up_bw", "fixed", "alpha"}
    for key, row in rows.items():
        assert row["elasticity"] * (-1 if key in ("fixed", "alpha") else 1) >= -1e-9, key
    assert max(abs(row["elasticity"]) for row in rows.values()) > 0.05  # none below 0 but what is better with less


@pytest.mark.parametrize("overlap", STEP_MODELS)
def test_elasticity__one_row_per_input(overlap: str) -> None:
    """On a machine of two domains, whose network between them an input is as well."""
    answer = plan("llama-3.1-405b", "16xh100-sxm", CHAT, ways={"tp": 8, "pp": 2}, assumptions=defaults(Assumptions, {"overlap": overlap}))
    rows = helps(answer)
    assert set(rows) == set(INPUTS)
    assert rows["system.scale_out_bw"]["elasticity"] >= 0 and rows["fixed"]["elasticity"] < 0
    for number, row in enumerate(answer.rows()):
        if row["kind"] == "elasticity":
            tree = answer.explain("elasticity", number)
            assert anonymous(tree) == [] and float(replay(tree)) == pytest.approx(row["elasticity"], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("overlap", STEP_MODELS)
def test_elasticity__sums_to_one_for_a_fixed_layout(overlap: str) -> None:
    """Every time is work over a rate, or a fixed cost, or alpha: scaling them all by 1 % scales the cost by 1 %."""
    taken = defaults(Assumptions, {"overlap": overlap, "engine": "none"})  # an engine's work for each sequence is no such time
    answer = plan("llama-3.1-70b", "8xh100-sxm", CHAT, batch=32, ways={"tp": 8, "pp": 1}, kv="bf16", assumptions=taken)
    rows = helps(answer)
    assert same_place(rows, answer.table.row(0)) and rows["chip.hbm"]["elasticity"] == 0
    rates = sum(rows[key]["elasticity"] for key in ("chip.hbm_bw", "chip.peak", "system.scale_up_bw"))
    assert rates - rows["fixed"]["elasticity"] - rows["alpha"]["elasticity"] == pytest.approx(1.0, abs=0.006)


def test_elasticity__share_of_tpot_when_nothing_overlaps() -> None:
    """With nothing overlapped and almost no prompt, each part's share of TPOT is its input's elasticity."""
    taken = defaults(Assumptions, {"overlap": "serial"})
    answer = plan("llama-3.1-70b", "8xh100-sxm", Load(prompt=1, output=20_000), batch=64, ways={"tp": 8}, kv="bf16", assumptions=taken)
    best, rows = answer.table.row(0), helps(answer)
    assert same_place(rows, best)
    parts = {"chip.hbm_bw": best["weights_s"] + best["kv_s"], "chip.peak": best["compute_s"], "fixed": best["overhead_s"]}
    for key, seconds in parts.items():
        share = seconds / best["tpot_s"]
        factor = 1.01 if key == "fixed" else 1 / 1.01
        exact = -math.log(1 - share + share * factor) / math.log(1.01)
        assert rows[key]["elasticity"] == pytest.approx(exact, rel=0.01), key


def test_elasticity__only_the_binding_input_when_operators_overlap() -> None:
    """A small batch reads weights and KV and computes in their shadow: FLOP/s helps prefill alone, and that is a sliver here."""
    taken = defaults(Assumptions, FLAT)
    answer = plan("llama-3.1-70b", "8xh100-sxm", Load(prompt=1, output=20_000), batch=8, ways={"tp": 8}, kv="bf16", assumptions=taken)
    best, rows = answer.table.row(0), helps(answer)
    assert same_place(rows, best) and best["compute_s"] > 0.02 * best["tpot_s"]
    share = (best["weights_s"] + best["kv_s"]) / best["tpot_s"]
    assert rows["chip.hbm_bw"]["elasticity"] == pytest.approx(share, rel=0.01)
    assert rows["chip.peak"]["elasticity"] == pytest.approx(0, abs=1e-3)


def test_elasticity__hbm_is_positive_where_memory_binds() -> None:
    rows = helps(plan("llama-3.1-70b", "4xh100-sxm", CHAT))
    assert rows["chip.hbm"]["elasticity"] > 0.05 and rows["chip.hbm"]["batch"] > 0


# -- answers --------------------------------------------------------------------------------------------------------------------


def test_plan_rows__contract_columns_and_best_first() -> None:
    answer = plan("llama-3.1-70b", "8xh100-sxm", CHAT, tpot="50ms", current="tp=8 batch=64")
    rows = answer.rows()
    assert {*SERVE, "input", "elasticity"} <= rows[0].keys()
    assert [kind for kind, _ in itertools.groupby(row["kind"] for row in rows)] == ["best", "frontier", "elasticity", "current"]
    assert all(row["fits"] and row["why"] == "" for row in rows[:2])
    assert rows[0]["tpot_s"] > rows[0]["tpot_decode_s"]


def test_explain__every_number_of_every_plan_row() -> None:
    answer = plan("deepseek-v3", "gb200-nvl72", CHAT, ttft="2s", tpot="50ms", current="tp=8 batch=64")
    rows = answer.rows()
    texts = {"kind", "model", "system", "weights", "kv", "compute", "bound", "why", "input", "cause", "fits"}
    for number in (0, 1, *(index for index, row in enumerate(rows) if row["kind"] in ("elasticity", "current"))):
        for key, value in rows[number].items():
            if key in texts or value is None:
                continue
            tree = answer.explain(key, number)
            assert anonymous(tree) == [], (number, key)
            assert float(tree) == pytest.approx(value, rel=1e-12), (number, key)
            assert float(replay(tree)) == pytest.approx(value, rel=1e-12), (number, key)


def test_explain__column_absent_from_a_row_is_an_error() -> None:
    answer = plan("llama-3.1-70b", "8xh100-sxm", CHAT, elasticities=False)
    with pytest.raises(HeadwayError, match="kind = elasticity"):
        answer.explain("elasticity")


def test_plan_rows__equal_serve_at_the_same_point() -> None:
    best = plan("gpt-oss-120b", "8xh100-sxm", CHAT, tpot="30ms").table.row(0)
    ways = Layout(**{name: best[name] for name in ("tp", "ep", "dp", "pp", "cp", "replicas")})
    load = {"batch": best["batch"], "prompt": 8000, "output": 1000}
    again = serve("gpt-oss-120b", "8xh100-sxm", ways, **load, precision=Precision(kv=best["kv"])).row(0)
    differ = {key for key in SERVE if key != "kind" and again[key] != best[key]}
    assert not {key for key in differ if isinstance(best[key], str) or best[key] != pytest.approx(again[key], rel=1e-12)}


@pytest.mark.parametrize(
    ("name", "machine", "limits", "words"),
    [
        ("deepseek-v3", "4xh100-sxm", {}, "weights need"),
        ("llama-3.1-8b", "1xh100-sxm", {"ttft": "10ms"}, "TTFT is"),
        ("llama-3.1-8b", "1xh100-sxm", {"tpot": "2ms"}, "TPOT at batch 1 is"),
    ],
)
def test_infeasible__names_the_failing_limit_and_the_amount(name: str, machine: str, limits: dict[str, Any], words: str) -> None:
    answer = plan(name, machine, CHAT, **limits)
    best = answer.table.row(0)
    assert answer.infeasible.startswith(words) and best["why"] == answer.infeasible and best["fits"] is False
    assert any(word in answer.infeasible for word in ("limit", "usable"))


def test_infeasible__weights_fit_and_the_kv_cache_does_not() -> None:
    answer = plan("llama-3.1-8b", edit(system("1xh100-sxm"), "chip.hbm", 24e9), Load(prompt=100_000, output=1000))
    assert "KV cache" in answer.infeasible


def test_infeasible__pinned_layout_beyond_the_domain() -> None:
    answer = plan("llama-3.1-70b", "16xh100-sxm", CHAT, ways={"tp": 16})
    assert "one scale-up domain of 16xh100-sxm has 8" in answer.infeasible
    answer = plan("llama-3.1-70b", "16xh100-sxm", CHAT, ways={"tp": 8, "replicas": 3})
    assert "3 replicas need at least 24 chips" in answer.infeasible


def test_pinned_layout__respected_and_illegal_values_noted() -> None:
    answer = plan("llama-3.1-70b", "8xh100-sxm", CHAT, ways={"tp": (2, 3, 4), "pp": 1}, batch=(4, 8))
    assert any("dropped 1 of 3 values as illegal" in note for note in answer.notes)
    assert all(row["tp"] in (2, 4) and row["pp"] == 1 and row["batch"] in (4, 8) for row in answer.rows())
    with pytest.raises(IllegalLayout, match="does not divide"):
        plan("llama-3.1-70b", "8xh100-sxm", CHAT, ways={"tp": 3})


def test_plan__cheapest_machine_within_the_limits_first() -> None:
    machines = ["8xh100-sxm", "8xh200-sxm", "1xh100-sxm"]
    answer = plan("llama-3.1-70b", machines, CHAT, ttft="2s", tpot="50ms", elasticities=False)
    best = [row for row in answer.rows() if row["kind"] == "best"]
    alone = {name: plan("llama-3.1-70b", name, CHAT, ttft="2s", tpot="50ms", elasticities=False).table.row(0) for name in machines}
    assert [row["fits"] for row in best] == [True, True, False] and best[2]["system"].startswith("h100")
    assert cost_of(best[0]) <= cost_of(best[1])
    assert cost_of(best[0]) == pytest.approx(min(cost_of(alone[name]) for name in machines[:2]), rel=1e-12)


def test_plan__machine_without_a_price_last_with_a_note() -> None:
    bare = edit(system("8xh100-sxm"), "chip.hbm_bw", 4e12)
    import dataclasses

    bare = dataclasses.replace(bare, name="no-price", chip=dataclasses.replace(bare.chip, costs=(), price=None))
    answer = plan("llama-3.1-70b", [bare, "8xh100-sxm"], CHAT, elasticities=False)
    best = [row for row in answer.rows() if row["kind"] == "best"]
    assert best[1]["system"] == "no-price" and best[1]["usd_per_mtok_out"] is None
    assert any("chip-seconds per request" in note for note in answer.notes)


def test_current_layout__gain_and_its_cause() -> None:
    answer = plan("llama-3.1-70b", "8xh100-sxm", CHAT, current="tp=8 batch=4", kv="bf16", elasticities=False)
    own = answer.rows()[-1]
    assert own["kind"] == "current" and own["batch"] == 4 and own["tp"] == 8
    assert own["gain"] == pytest.approx(cost_of(own) / cost_of(answer.table.row(0)), rel=1e-9) and own["gain"] > 1
    assert own["cause"].startswith("reading weights")
    # chip-seconds of a request: tokens of its answer over tokens per second and chip
    gap = own["output"] / own["tok_per_s_chip"] - answer.table.row(0)["output"] / answer.table.row(0)["tok_per_s_chip"]
    assert f"; the gap of {gap:.2g} is reading weights +" in own["cause"]
    parts = [float(word) for word in own["cause"].partition(" is ")[2].replace(",", "").split() if word[0] in "+-"]
    assert sum(parts) == pytest.approx(gap, rel=0.05)  # each printed to two digits, those below 1 % left out
    best = answer.table.row(0)
    text = " ".join(f"{key}={best[key]}" for key in ("tp", "pp", "replicas", "batch", "kv"))
    again = plan("llama-3.1-70b", "8xh100-sxm", CHAT, current=text, kv="bf16", elasticities=False).rows()[-1]
    assert again["gain"] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("text", ["", "tp=8", "tp=8 batch=x", "batch=0", "tp batch=4", "width=3 batch=4", "batch=-1"])
def test_current_layout__bad_text_is_an_error(text: str) -> None:
    with pytest.raises(HeadwayError):
        parse(text)


@pytest.mark.parametrize(
    "asked",
    [
        {"objective": "joy"}, {"ttft": -1.0}, {"tpot": "5GB"}, {"tpot": math.nan}, {"kv": "fp9"}, {"batch": 0}, {"ways": {"xp": 2}},
        {"ways": {"tp": 0}}, {"current": "tp=7 batch=4"}, {"weights": "fp7"},
    ],
)  # fmt: skip
def test_plan__bad_input_is_a_one_line_error(asked: dict[str, Any]) -> None:
    with pytest.raises(HeadwayError) as raised:
        plan("llama-3.1-70b", "8xh100-sxm", CHAT, **asked)
    assert "\n" not in str(raised.value)


def test_pinned_layout__illegal_is_an_error_and_too_large_does_not_fit() -> None:
    with pytest.raises(IllegalLayout, match="does not divide"):
        plan("deepseek-v3", "8xh200-sxm", CHAT, ways={"ep": 7, "tp": 2, "dp": 1})
    answer = plan("deepseek-v3", "8xh200-sxm", CHAT, ways={"ep": 7, "tp": 2})
    assert "needs 14 chips per replica" in answer.infeasible and not answer.table.row(0)["fits"]
