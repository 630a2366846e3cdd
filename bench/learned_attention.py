"""Recall of models trained under sparse patterns, beside patterns imposed on a dense model: python bench/learned_attention.py [SEED].

Needs torch. Two layers of one head learn to recall one of 32 facts (a key of 64 with an answer of 16, one token each) from the question
that comes last: 600 steps of 128 contexts for each pattern, so that the model may adapt to it.
"""

import math
import sys

import torch
from torch.nn import Embedding, Linear, Module, ModuleList
from torch.nn.functional import cross_entropy, layer_norm, pad

KEYS, ANSWERS, FACTS, WIDTH = 64, 16, 32, 32
STEPS, BATCH, RATE, WARM, ASKED = 600, 128, 1e-2, 50, 4000
HIDDEN = -1e9


def contexts(count, draw):
    """Facts of distinct keys, a question for one, the right answer, and how far back it stands."""
    keys = torch.rand(count, KEYS, generator=draw).argsort(1)[:, :FACTS]
    answers = torch.randint(ANSWERS, (count, FACTS), generator=draw)
    places, rows = torch.randint(FACTS, (count,), generator=draw), torch.arange(count)
    return keys, answers, keys[rows, places], answers[rows, places], FACTS - places


def window(tokens):
    """The last tokens, the query's own among them."""
    return lambda scores, past: past & (past.cumsum(-1) > past.sum(-1, keepdim=True) - tokens)


def topk(count):
    """The tokens with the best scores of attention itself."""
    return lambda scores, past: past & (scores >= scores.topk(count, -1)[0][..., -1:])


def blocks(size, count):
    """The blocks with the best mean score, which is the score of their mean key."""

    def seen(scores, past):
        spare = -scores.shape[-1] % size
        known = torch.where(past, scores, 0.0)
        means = pad(known, (0, spare)).unflatten(-1, (-1, size)).mean(-1)
        begun = pad(past, (0, spare)).unflatten(-1, (-1, size)).any(-1)
        means = means.masked_fill(~begun, HIDDEN)
        best = torch.zeros_like(means, dtype=torch.bool).scatter(-1, means.topk(count, -1)[1], True)
        return past & best.repeat_interleave(size, -1)[..., : scores.shape[-1]]

    return seen


PATTERNS = {
    "dense": lambda scores, past: past, "window of 8": window(8), "best 4": topk(4), "best 1": topk(1),
    "4 blocks of 4": blocks(4, 4), "1 block of 4": blocks(4, 1),
}  # fmt: skip


class Recaller(Module):
    """Two layers of attention with one head."""

    def __init__(self):
        super().__init__()
        self.key, self.answer, self.question = Embedding(KEYS, WIDTH), Embedding(ANSWERS, WIDTH), Embedding(KEYS, WIDTH)
        self.layers = ModuleList(ModuleList(Linear(WIDTH, WIDTH, bias=False) for _ in range(4)) for _ in range(2))
        self.out = Linear(WIDTH, ANSWERS)

    def forward(self, keys, answers, question, seen):
        x = torch.cat((self.key(keys) + self.answer(answers), self.question(question)[:, None]), 1)
        past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril().expand(len(x), -1, -1)
        for query, key, value, output in self.layers:
            h = layer_norm(x, (WIDTH,))
            scores = (query(h) @ key(h).mT / math.sqrt(WIDTH)).masked_fill(~past, HIDDEN)
            x = x + output(scores.masked_fill(~seen(scores, past), HIDDEN).softmax(-1) @ value(h))
        return self.out(x[:, -1])


def trained(seen, seed):
    """A model that learned under a pattern."""
    torch.manual_seed(seed)
    draw, model = torch.Generator().manual_seed(seed), Recaller()
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * min(1, step / WARM) * (1 - step / STEPS)
        keys, answers, question, right, _ = contexts(BATCH, draw)
        loss = cross_entropy(model(keys, answers, question, seen), right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@torch.no_grad()
def recall(model, seen, seed):
    """Share of questions answered, and those of facts that the window holds and does not."""
    keys, answers, question, right, back = contexts(ASKED, torch.Generator().manual_seed(seed + 1))
    good = (model(keys, answers, question, seen).argmax(-1) == right).float()
    return f"{good.mean():.3f} (of facts at most 7 back {good[back < 8].mean():.3f}, beyond {good[back >= 8].mean():.3f})"


def main(seed):
    torch.set_num_threads(1)
    dense = None
    for name, seen in PATTERNS.items():
        model = trained(seen, seed)
        dense = dense or model
        print(f"{name}: trained under it {recall(model, seen, seed)}; imposed on the dense model {recall(dense, seen, seed)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
