"""The experiment `attention`: recall and bytes against brute force, against published forms and limits; nothing here asks a clock."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from headway.core.errors import BadValue
from headway.laws.architecture.recall import index_recall
from headway.models.variants import look_of
from headway.reality.lab import attention, facts
from headway.reality.lab.attention_setup import AttentionSetup
from headway.reality.lab.catalogue import ATTENTION

SETUP = attention.fitted(AttentionSetup(quick=True))
WAYS = (attention.RUN, attention.INDEX, "topk:128", "topk:1k", "sqrt:64")
CALIBRATION = {"times": [{"way": way, "cached": 400, "bytes": 1_000_000, "seconds": 2e-4, "fixed": 1e-4} for way in WAYS]}


@pytest.fixture(scope="module")
def store() -> facts.FactStore:
    return facts.planted(4096, facts.learned_index(16, 0.36, 1, lessons=0), 2)


@pytest.mark.parametrize(("width", "block", "picked", "context"), [(16, 1, 32, 512), (4, 1, 8, 256), (64, 8, 6, 512), (128, 16, 14, 1024)])
def test_an_index_finds_the_key_as_often_as_ranking_every_key_does(width, block, picked, context):
    draw, asked, correlation = np.random.default_rng(3), 4000, 0.8
    found = 0
    for _ in range(4):
        keys = draw.standard_normal((context, width))
        places = draw.integers(context, size=asked // 4)
        queries = correlation * keys[places] + (1 - correlation**2) ** 0.5 * draw.standard_normal((asked // 4, width))
        scores = queries @ keys.reshape(-1, block, width).sum(axis=1).T
        better = (scores > scores[np.arange(len(places)), places // block][:, None]).sum(axis=1)
        found += int((better < picked).sum())
    law = float(index_recall(correlation, width, block, picked * block / context))
    assert found / asked == pytest.approx(law, abs=0.01 + 3 * (law * (1 - law) / asked) ** 0.5)


def test_limits_of_recall():
    shares = np.array([0.01, 0.2, 0.7])
    assert index_recall(0.0, 16, 1, shares) == pytest.approx(shares)  # a query that resembles nothing finds by chance
    assert float(index_recall(1.0, 1e4, 1, 1e-6)) == pytest.approx(1.0)
    kept = [float(index_recall(0.8, 16, 1, 128 / context)) for context in (256, 1024, 4096, 65536)]
    assert kept == sorted(kept, reverse=True) and kept[0] > 0.99 and kept[-1] < 0.7


def test_attention_of_a_pattern_is_plain_attention_over_what_it_reads(store: facts.FactStore):
    query = np.random.default_rng(5).standard_normal(facts.WIDTH).astype(np.float32)
    keys, values = store.keys[1, :1024].astype(float), store.values[1, :1024].astype(float)

    def plain(places: Any) -> Any:
        weights = np.exp(2 * keys[places] @ query / np.linalg.norm(query))
        return weights / weights.sum() @ values[places]

    index = store.index_keys[1, :1024] @ (query @ store.index.query)
    means = keys.reshape(64, 16, -1).mean(axis=1) @ query
    blocks = np.isin(np.arange(1024) // 16, np.argsort(means)[-14:])
    expected = {"dense": slice(None), "window:100": slice(924, None), "topk:40": np.argsort(index)[-40:], "sqrt:64": blocks}
    for text, places in expected.items():
        assert facts.reader_of(store, look_of(text), 1024).read(1, query) == pytest.approx(plain(places), abs=1e-5), text


def test_a_step_reads_the_bytes_that_headways_own_attention_says(store: facts.FactStore):
    points = {(point.quantity, point.at): point for point in attention.predict(dataclasses.replace(SETUP, context=(4096,)), CALIBRATION)}
    for text, look in attention.looks(SETUP).items():
        reader = facts.reader_of(store, look, 4096)
        for layer in range(facts.LAYERS):
            reader.read(layer, store.keys[0, 0])
        point = points[f"bytes read, {text}", 4096]
        assert reader.bytes == float(point.value) == point.low == point.high
    token = facts.LAYERS * 2 * facts.WIDTH * 4
    index = facts.LAYERS * 4096 * 16 * 4
    expected = {"dense": 4096 * token, "window:1k": 1000 * token, "topk:128": 128 * token + index, "sqrt:64": 512 * token}
    assert all(float(points[f"bytes read, {text}", 4096].value) == size for text, size in expected.items())


def test_intervals_say_something():
    points = list(attention.predict(attention.fitted(AttentionSetup()), CALIBRATION))
    assert len(points) == 45 and {point.claim for point in points} == set(ATTENTION.claims)
    assert all(point.low <= point.value <= point.high <= 2 * point.low * (1 + 1e-9) for point in points)


def test_recall_lies_inside_what_was_predicted_of_it():
    setup = attention.fitted(AttentionSetup(quick=True, patterns="dense,window:100,sqrt:16", context=(144, 1024)))
    times = {"times": [entry | {"way": way} for entry in CALIBRATION["times"][:1] for way in (attention.RUN, "sqrt:16")]}
    plan = [point.plain() for point in attention.predict(setup, times)]
    heard: dict[int, Any] = {}
    report = attention.measure(setup, plan, lambda part: heard.update({int(part[0]): part[1]}))
    recalls = [place for place, point in enumerate(plan) if point["quantity"].startswith("recall")]
    inside = [plan[place]["low"] <= heard[place] <= plan[place]["high"] for place in recalls]
    assert len(heard) == len(plan) and sum(inside) >= len(inside) - 1
    answered, asked = report["answered_of"]["dense at 1024"]
    far = next(place for place in recalls if (plan[place]["quantity"], plan[place]["at"]) == ("recall, window:100", 1024))
    assert answered / asked > 0.99 and heard[far] < 0.2


def test_an_index_learns_what_the_law_allows_and_no_more():
    index, untaught = (facts.learned_index(16, 0.36, 4, lessons=lessons) for lessons in (500, 0))
    draw = np.random.default_rng(6)
    keys = draw.standard_normal((2048, facts.WIDTH), np.float32)
    queries = facts.noisy(keys, draw, 0.36)

    def found(by: facts.Index) -> float:
        scores = (queries @ by.query) @ (keys @ by.key).T
        return float(((scores > np.diag(scores)[:, None]).sum(axis=1) < 64).mean())

    law = float(index_recall(0.8, 16, 1, 64 / 2048))
    assert found(untaught) < 0.2 and law - 0.05 < found(index) < law + 0.02


def test_what_no_law_speaks_of_is_refused():
    refused: list[dict[str, Any]] = [{"context": (1000,)}, {"patterns": "sqrt:60"}, {"patterns": "dense,foo"}]
    for values in refused:
        with pytest.raises(BadValue, match=f"--{next(iter(values))}"):
            attention.fitted(AttentionSetup(**values))
    assert attention.fitted(AttentionSetup(context=(1000, 300), patterns="dense")).context == (300, 1000)
