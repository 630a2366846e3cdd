"""Decoders of GPT's kind without embedding, and their memory under a layout and a recipe: what the published tables count."""

from __future__ import annotations

from typing import Any

from headway.core.quantity import known
from headway.core.schema import defaults
from headway.models.attention.grouped_query import Attention
from headway.models.model import Block, Dense, Model, StoredPrecision
from headway.training.memory import Memory, memory
from headway.training.pipeline import Placement, TrainingCase, TrainingMachine, placement
from headway.training.recipe import Optimizer, Recipe, TrainingLayout, TrainingReach, optimizer
from headway.training.work import TrainingWork, training_work

GIB = 2**30
HALVES = StoredPrecision(mixer="bf16", ffn="bf16", expert="bf16", embedding="bf16")
NOTHING: Any = None  # of a case: neither memory nor the exchange of parameters asks for it
GPT: dict[str, Any] = {"dropout": 1, "fused_attention": 0, "schedule": "1f1b"}  # as Korthikanti et al. count it


def number(value: float, name: str) -> Any:
    return known(value, name, "", "input", "a test's decoder")


def decoder(layers: int, hidden: int, heads: int, vocab: int = 1) -> Model:
    """A GPT of 12 h^2 parameters a layer, its table as good as none."""
    width, head = number(hidden, "hidden"), number(hidden // heads, "head_dim")
    attention = Attention(hidden=width, heads=number(heads, "heads"), kv_heads=number(heads, "kv_heads"), head_dim=head, value_dim=head)
    ffn = Dense(hidden=width, intermediate=number(4 * hidden, "intermediate"), matrices=number(2, "matrices"))
    block = Block(attention=attention, ffn=ffn, count=number(layers, "layers"))
    table = number(vocab, "vocab")
    return Model(name="gpt", family="gpt", hidden=width, vocab=table, embedding_dim=width, tied=True, blocks=(block,), precision=HALVES)


def held(model: Model, recipe: dict[str, Any], tokens: int = 2048, count: int = 512, states: str = "adam", **ways: Any) -> Memory:
    """Memory of the fullest chip; `tokens` are one sequence."""
    asked, layout = defaults(Recipe, {**GPT, **recipe}), defaults(TrainingLayout, {"zero": 0, **ways})
    work = training_work(model, asked, number(tokens, "seq"))
    return memory(on_stages(work, asked, optimizer(states), layout, number(count, "micro_batches")))


def on_stages(
    work: TrainingWork, recipe: Recipe, states: Optimizer, layout: TrainingLayout, count: Any, machine: TrainingMachine = NOTHING
) -> Placement:
    """A layout with so many micro-batches a step, without what allocators and contexts take."""
    efficiency = TrainingReach(fragmentation=0, fixed=0)
    case = TrainingCase(
        work=work, system=NOTHING, machine=machine, recipe=recipe, optimizer=states, efficiency=efficiency, batch=NOTHING
    )
    return placement(case, layout, count)
