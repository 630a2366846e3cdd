"""What each schedule keeps in flight, against the schedule played block by block; and parameters that memory, traffic and update share."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest

from headway.core.schema import defaults
from headway.hardware.system import system
from headway.models.config import model
from headway.performance.assumptions import Assumptions
from headway.performance.collectives import fabric, gather_term, link_costs
from headway.training import dualpipe, step_time, timeline
from headway.training.estimate import estimate
from headway.training.pipeline import TrainingMachine, copies, dense_params, expert_params, in_flight, most_params, stage
from headway.training.recipe import Optimizer, Recipe, TrainingLayout, TrainingRun, optimizer
from headway.training.run import case_of
from headway.training.step_time import param_exchange_s, update
from headway.training.train import TrainingQuestion, cases
from headway.training.work import training_work
from support.training_cases import decoder, held, number, on_stages

SEED = 20261126
SCHEDULES = ("gpipe", "1f1b", "zb-h1", "zb-h2", "interleaved", "dualpipe")
DRAWS = 100  # of each schedule


def drawn_pipelines(schedule: str) -> list[tuple[int, int, int]]:
    """Stages, micro-batches, chunks that the schedule can run."""
    dice = random.Random(f"{SEED} {schedule}")
    found = []
    while len(found) < DRAWS:
        pp, chunks = dice.randint(2, 12), dice.randint(2, 5) if schedule == "interleaved" else 1
        count = dice.randint(1, 40)
        if schedule == "interleaved":
            count = pp * dice.randint(1, 4)
        if schedule == "zb-h2":
            count = 2 * pp - 1 + dice.randint(0, 20)
        if schedule == "dualpipe":
            pp, count = 2 * dice.randint(1, 6), 0
            count = 2 * pp + 2 * dice.randint(0, 10)
        found.append((pp, count, chunks))
    return found


def most_alive(turns: list[list[tuple[str, int]]]) -> list[int]:
    """Most micro-batches alive at once in each lane (a direction), from a forward to the last block of its backward pass."""
    flat = [task for turn in turns for task in turn]
    lanes = {lane for _, lane in flat}
    alive, waiting, most = dict.fromkeys(lanes, 0), [], dict.fromkeys(lanes, 0)
    together = 0
    for turn in turns:
        for kind, lane in turn:
            alive[lane] += kind == "F"
        together = max(together, sum(alive.values()))
        most = {lane: max(most[lane], alive[lane]) for lane in lanes}
        for kind, lane in turn:
            if kind == "I":
                waiting.append(lane)
            if kind == "B":
                alive[lane] -= 1
            if kind == "W":
                alive[waiting.pop(0)] -= 1
    assert not any(alive.values())  # every micro-batch went both ways
    return [together, *(most[lane] for lane in sorted(lanes))]


def played(schedule: str, place: int, pp: int, count: int, chunks: int) -> list[int]:
    if schedule == "dualpipe":
        return most_alive([list(turn) for turn in dualpipe._order(place, pp, count)])
    if schedule == "interleaved":
        return most_alive([[(kind, 0)] for kind, _ in timeline._interleaved_order(place, pp, count, chunks)])
    queue = timeline.order(schedule, place, pp, count)
    split = any(kind == "W" for kind, _ in queue)
    return most_alive([[("I" if split and kind == "B" else kind, 0)] for kind, _ in queue])


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_in_flight__is_what_the_played_schedule_keeps_on_every_stage(schedule: str) -> None:
    for pp, count, chunks in drawn_pipelines(schedule):
        layout = defaults(TrainingLayout, {"pp": pp, "vpp": chunks})
        for place in range(pp):
            alive = played(schedule, place, pp, count, chunks)
            law = float(in_flight(schedule, layout, count, place)) * chunks
            if schedule == "dualpipe":  # the other direction sees the chip from its other end
                law += float(in_flight(schedule, layout, count, pp - 1 - place))
            assert law == pytest.approx(alive[0]), (SEED, pp, count, chunks, place)


def test_dualpipe__parts_its_micro_batches_as_played() -> None:
    for pp, count, _ in drawn_pipelines("dualpipe"):
        alive = played("dualpipe", 0, pp, count, 1)
        layout = defaults(TrainingLayout, {"pp": pp})
        assert alive[1:] == [float(in_flight("dualpipe", layout, count, place)) for place in (0, pp - 1)], (SEED, pp, count)


@pytest.mark.parametrize("schedule", [*SCHEDULES, "zb-v"])
def test_memory__is_that_of_the_fullest_of_all_stages(schedule: str) -> None:
    """Activations, states and logits added up stage by stage, for a decoder with a wide table; embedding and head at the ends."""
    hidden, heads, vocab, count = 512, 8, 60_000, 24
    for pp, layers in ((2, 12), (4, 11), (4, 8), (8, 22), (6, 12)):
        shape = dataclasses.replace(decoder(layers, hidden, heads, vocab=vocab), tied=False)
        chunks = 2 if schedule == "interleaved" and -layers % (2 * pp) < 4 else 1  # no stage without layers
        found = held(shape, {"schedule": schedule, "dropout": 0}, tokens=256, count=count, pp=pp, vpp=chunks)
        assert float(found.total) == pytest.approx(max(by_stages(schedule, pp, layers, chunks, hidden, heads, vocab, count)), rel=2e-3)


def by_stages(schedule: str, pp: int, layers: int, chunks: int, hidden: int, heads: int, vocab: int, count: int) -> list[float]:
    """Bytes of each chip from the number of layers of each stage, and what the played schedule keeps there."""
    full = chunks * -(-layers // (pp * chunks))
    spare = full * pp - layers
    of_stage = [full] * pp
    of_stage[0] -= spare // 2
    of_stage[-1] -= spare - spare // 2
    state, token_bytes = 18, hidden * (32 + 5 * heads * 256 / hidden * 0.8)  # without dropout: 8 h and 24 h; two copies of scores
    table, logits = vocab * hidden * state, 256 * (2 * hidden * 2 + vocab * 6)
    chips = []
    for place in range(pp):
        mine, ends, kept_logits = of_stage[place], (place == 0) + (place == pp - 1), float(place == pp - 1)
        if schedule == "dualpipe":
            there = pp - 1 - place
            _, *lanes = played(schedule, place, pp, count, 1)
            near, far = lanes if place < pp / 2 else reversed(lanes)
            mine, far_layers = of_stage[place], of_stage[there]
            kept = mine * (near if place < pp / 2 else far) + far_layers * (far if place < pp / 2 else near)
            mine, ends, kept_logits = mine + far_layers, 2 * (place in (0, pp - 1)), float(place in (0, pp - 1))
        elif schedule == "zb-v":
            mine, ends, kept_logits = full - spare * (place == 0), 2 * (place == 0), float(place == 0)
            kept = mine * min(pp, count)
        else:
            how = "1f1b" if schedule == "interleaved" and chunks == 1 else schedule
            kept = mine * played(how, place, pp, count, chunks)[0] / chunks
            kept_logits *= count if schedule == "gpipe" else 1
        chips.append(mine * 12 * hidden**2 * state + kept * 256 * token_bytes + ends * table + kept_logits * logits)
    return chips


# -- parameters -------------------------------------------------------------------------------------------------------------------


class Sent:
    """Parameters of each message that the exchange of parameters hands to the network, in the order of its groups."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.params: list[float] = []

        def noted(fabric: Any, peers: Any, message: Any, costs: Any, count: Any) -> Any:
            self.params.append(float(message))
            return gather_term(fabric, peers, message, costs, count)

        monkeypatch.setattr(step_time, "gather_term", noted)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama-3.2-1b", "qwen3-30b-a3b", "deepseek-v2-lite"])
def test_parameters__of_memory_traffic_and_update_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn stages, schedules and ZeRO stages: weights in memory over their bytes = parameters sent = parameters updated (500 in all)."""
    machine, dice = system("64xh100-sxm"), random.Random(f"{SEED} {name}")
    plain = Optimizer(name="", meaning="", weight=1, gradient=1, states=1)
    costs, work = link_costs(machine, defaults(Assumptions)), training_work(model(name), defaults(Recipe), number(4096, "seq"))
    for _ in range(125):
        schedule, pp = dice.choice((*SCHEDULES, "zb-v")), dice.choice((1, 2, 4, 8))
        ways = {"pp": pp, "tp": dice.choice((1, 2, 4)), "dp": dice.choice((2, 4)), "zero": dice.randint(0, 3)}
        layout = defaults(TrainingLayout, ways)
        recipe = defaults(Recipe, {"schedule": schedule, "bytes_param_wire": 1, "bytes_gradient_wire": 1})
        rates = TrainingMachine(peak=1.0, wide_peak=1.0, hbm_bw=1.0, fabric=fabric(machine), costs=costs)
        at = dataclasses.replace(on_stages(work, recipe, plain, layout, 4 * pp, rates), tokens=1.0)
        part, chips = at.stage, at.chips
        dense, experts = (float(value) for value in most_params(part, chips))
        sent = Sent(monkeypatch)
        param_exchange_s(at)
        expected = [dense, dense] + ([experts, experts] if experts else [])
        assert sent.params == pytest.approx(expected), (SEED, ways, schedule)
        shares = (part.data_degree, part.expert_data_degree) if int(layout.zero) else (1, 1)
        updated = float(update(at)) / 4
        assert updated == pytest.approx(dense / float(shares[0]) + experts / float(shares[1])), (SEED, ways, schedule)
        weights = [float(dense_params(part, chip) + expert_params(part, chip)) for chip in chips]
        whole = held_weights(model(name), schedule, {**ways, "zero": 0}, 4 * pp)
        assert any(whole == pytest.approx(value) for value in weights), (SEED, ways, schedule)
        every = sum(weights[:2]) + weights[-1] * (pp - 2) if pp > 2 else sum(weights)
        assert every >= 0.99 * total_on_stages(work, layout) * float(copies(schedule, pp)) or schedule in ("dualpipe", "zb-v")


def held_weights(subject: Any, schedule: str, ways: dict[str, int], count: int) -> float:
    """Parameters of the fullest chip by its bytes of weights."""
    memory = held(subject, {"schedule": schedule, "dropout": 0, "fused_attention": 1}, tokens=4096, count=count, **ways)
    return float(memory.weights) / float(optimizer("adam").weight)


def total_on_stages(work: Any, layout: TrainingLayout) -> float:
    """Parameters of a whole pipeline of chips."""
    part = stage(work, layout, "1f1b")
    return float(part.dense + part.experts + part.embedding + part.head)


# -- parts of a step move with what they depend on --------------------------------------------------------------------------------


def test_each_part_of_a_step__moves_with_its_input_alone() -> None:
    """fp8 halves what is dispatched and nothing that tensor parallelism sends; frozen weights are neither reduced nor updated."""
    dice, layouts = random.Random(SEED), []
    for _ in range(500):
        ep = dice.choice((1, 2, 4, 8))
        degrees = {"tp": dice.choice((1, 2, 4)), "pp": dice.choice((1, 2, 4)), "dp": 8, "ep": ep, "zero": dice.choice((1, 2, 3))}
        layouts.append({**degrees, "micro_batch": 1, "cp": 1, "vpp": 1})
    columns = TrainingLayout(**{name: np.array([row[name] for row in layouts]) for name in layouts[0]})

    def times(**recipe: Any) -> Any:
        question = TrainingQuestion(records={TrainingRun: {"seq": 4096, "global_batch": 4096 * 512}, Recipe: recipe})
        case = case_of(cases([model("qwen3-30b-a3b")], [system("128xh100-sxm")], question)[0])
        reach = dataclasses.replace(case.efficiency, hidden_tp=0, hidden_dp=0, hidden_cp=0, hidden_ep=0)
        return estimate(dataclasses.replace(case, efficiency=reach), columns)

    wide, narrow, frozen = times(), times(dtype="fp8"), times(trainable=0)
    far = columns.ep > columns.tp
    share = narrow.time.ep[far] / wide.time.ep[far]
    assert ((share >= 0.75) & (share < 0.85)).all()  # of the bytes, 0.75; rounds cost the same
    assert narrow.time.tp == pytest.approx(wide.time.tp) and narrow.time.parameters == pytest.approx(wide.time.parameters)
    whole = columns.zero < 3
    assert (np.broadcast_to(frozen.time.parameters, whole.shape)[whole] == 0).all() and float(np.max(frozen.time.update)) == 0
    assert (np.broadcast_to(frozen.memory.gradients, whole.shape) == 0).all()
    assert np.broadcast_to(frozen.memory.weights, whole.shape) == pytest.approx(np.broadcast_to(wide.memory.weights, whole.shape))
