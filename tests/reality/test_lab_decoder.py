"""The lab's decoder against a plain reference, token by token and number by number, and as headway's own model."""

import dataclasses
import math

import numpy as np
import pytest

from headway.laws.collectives.expert_parallel import distinct_experts
from headway.models import totals
from headway.reality.lab.decoder import Decoder, random_decoder
from headway.reality.lab.shape import LabShape, model_of

TINY = LabShape(layers=2, hidden=12, heads=4, kv_heads=2, head_dim=6, experts=5, per_token=2, expert_width=7, shared_width=9, vocab=11)
SHAPES = {
    "routed and shared": TINY,
    "dense": dataclasses.replace(TINY, experts=0),
    "routed alone": dataclasses.replace(TINY, shared_width=0),
    "one KV head": dataclasses.replace(TINY, kv_heads=1),
}


def reference(decoder: Decoder, tokens: list[int]) -> tuple[np.ndarray, list[set[int]]]:
    """Scores of the next token after each token, and the experts each layer used: the whole sequence at once, in plain loops, no cache."""
    s = decoder.shape
    rows = [decoder.embedding[token].astype(float) for token in tokens]
    used: list[set[int]] = []

    def norm(row, scale):
        return row / math.sqrt(float(row @ row) / len(row) + 1e-6) * scale

    def mlp(row, inwards, outwards):
        half = inwards.shape[1] // 2
        gate, up = row @ inwards[:, :half], row @ inwards[:, half:]
        return np.array([g / (1 + math.exp(-g)) * u for g, u in zip(gate, up, strict=True)]) @ outwards

    def turn(head, position):
        pairs, turned = s.head_dim // 2, np.empty(s.head_dim)
        for pair in range(pairs):
            z = complex(head[pair], head[pair + pairs]) * np.exp(1j * position * 10_000.0 ** (-pair / pairs))
            turned[pair], turned[pair + pairs] = z.real, z.imag
        return turned

    for layer in decoder.layers:
        keys, values, after = [], [], []
        for position, row in enumerate(rows):
            parts = (norm(row, layer.attention_norm) @ layer.query_key_value).reshape(-1, s.head_dim)
            keys.append([turn(head, position) for head in parts[s.heads : s.heads + s.kv_heads]])
            values.append(parts[s.heads + s.kv_heads :])
            mixed = []
            for head in range(s.heads):
                place, query = head // (s.heads // s.kv_heads), turn(parts[head], position)
                weights = np.exp([query @ key[place] / math.sqrt(s.head_dim) for key in keys])
                mixed.append(sum(w * value[place] for w, value in zip(weights / weights.sum(), values, strict=True)))
            after.append(row + np.concatenate(mixed) @ layer.output)
        used.append(set())
        rows = []
        for row in after:
            inputs, out = norm(row, layer.expert_norm), row
            if s.shared_width:
                out = out + mlp(inputs, layer.shared_in, layer.shared_out)
            if s.experts:
                scores = inputs @ layer.router
                best = sorted(range(s.experts), key=lambda e: -scores[e])[: s.per_token]
                share = np.exp(scores[best]) / np.exp(scores[best]).sum()
                used[-1] |= set(best)
                out = out + sum(w * mlp(inputs, layer.experts_in[e], layer.experts_out[e]) for w, e in zip(share, best, strict=True))
            rows.append(out)
    return np.array([norm(row, decoder.norm) @ decoder.head for row in rows]), used


@pytest.mark.parametrize("name", SHAPES)
def test_prompt_and_decode_equal_the_reference(name):
    shape = SHAPES[name]
    decoder = random_decoder(shape, seed=3, form=np.float64)
    prompts = np.random.default_rng(4).integers(shape.vocab, size=(3, 9))
    expected = [reference(decoder, list(prompt)) for prompt in prompts]
    whole = decoder.step(prompts, decoder.cache(3, 9))
    assert np.allclose(whole.logits, [scores[-1] for scores, _ in expected], atol=1e-10)
    one_by_one, parts = decoder.cache(3, 9), decoder.cache(3, 9)
    for place in range(9):
        step = decoder.step(prompts[:, place : place + 1], one_by_one)
        assert np.allclose(step.logits, [scores[place] for scores, _ in expected], atol=1e-10)
    for part in (prompts[:, :4], prompts[:, 4:5], prompts[:, 5:]):  # a prompt in chunks
        chunked = decoder.step(part, parts)
    assert np.allclose(chunked.logits, whole.logits, atol=1e-10)
    assert np.allclose(one_by_one.keys, parts.keys, atol=1e-10)
    if shape.experts:
        union = [len(set.union(*(used[layer] for _, used in expected))) for layer in range(shape.layers)]
        assert list(whole.experts_touched) == union


def test_sequences_of_unlike_lengths_share_a_step():
    decoder = random_decoder(TINY, seed=3, form=np.float64)
    prompts = [[1, 2, 3, 4, 5], [6, 7]]
    cache = decoder.cache(2, 8)
    for row, prompt in enumerate(prompts):
        alone = decoder.cache(1, 8)
        decoder.step(np.array([prompt]), alone)
        cache.keys[:, row], cache.values[:, row], cache.lengths[row] = alone.keys[:, 0], alone.values[:, 0], len(prompt)
    step = decoder.step(np.array([[9], [10]]), cache)
    assert np.allclose(step.logits, [reference(decoder, [*prompt, new])[0][-1] for prompt, new in zip(prompts, (9, 10), strict=True)])


def test_float32_stays_float32_and_near():
    wide, narrow = (random_decoder(TINY, seed=5, form=form) for form in (np.float64, np.float32))
    prompt = np.arange(8).reshape(1, 8)
    scores = narrow.step(prompt, narrow.cache(1, 8)).logits
    assert scores.dtype == np.float32
    assert np.allclose(scores, wide.step(prompt, wide.cache(1, 8)).logits, atol=1e-3)


@pytest.mark.parametrize("name", SHAPES)
def test_as_a_model_it_has_its_bytes(name):
    shape = SHAPES[name]
    decoder, model = random_decoder(shape), model_of(shape)
    assert decoder.bytes == 4 * int(totals.total_params(model))
    cache = decoder.cache(3, 10)
    assert cache.keys.nbytes + cache.values.nbytes == 30 * float(totals.kv_bytes_per_token(model, 4))


def test_experts_touched_follow_the_law():
    shape = dataclasses.replace(TINY, hidden=64, experts=64, per_token=4, vocab=4000, layers=4)
    decoder = random_decoder(shape, seed=1)
    for batch in (1, 16, 64):
        draw, counts = np.random.default_rng(batch), []
        for _ in range(20):
            counts += decoder.step(draw.integers(shape.vocab, size=(batch, 1)), decoder.cache(batch, 1)).experts_touched
        assert np.mean(counts) == pytest.approx(float(distinct_experts(64, 4, batch)), rel=0.02)
