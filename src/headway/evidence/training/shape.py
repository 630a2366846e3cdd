"""Model of a training row: a catalogue model by name, or a plain decoder of the row's shape and size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.errors import UnknownName
from headway.core.quantity import known
from headway.evidence.rows.names import model_name
from headway.evidence.training.row import TrainingRow
from headway.models.attention.grouped_query import Attention
from headway.models.config import model as find_model
from headway.models.model import Block, Dense, Model, MoE, StoredPrecision
from headway.models.totals import total_params

VOCABULARY = 50_304  # GPT-2's, padded
HEAD = 128
ASPECT = 128  # default hidden over layers of a plain decoder
NEAR = 0.15  # largest relative difference of a size from the catalogue's: longer position tables, another vocabulary
TWO_BYTES = StoredPrecision(mixer="bf16", ffn="bf16", expert="bf16", embedding="bf16")
PLAIN = "read as a plain decoder"  # flag of a named model whose structure is not known
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]?")
_CUT = re.compile(r"(.+?)[-_ ]?(\d{1,3})[-_ ]?layers?", re.IGNORECASE)
_DESCRIPTION = re.compile(r"(gpt|mpt|moe|dense|maxtext|opt|llama|bloom)[-_ ]?\d?[-_. ]?\d", re.IGNORECASE)  # plain decoders
_EXPERTS = re.compile(r"(\d+)e-top-?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShapedModel:
    """A model, with flags for the assumptions about it."""

    model: Model
    flags: tuple[str, ...]


def shaped(row: TrainingRow) -> ShapedModel | str:
    """Model of a row, or the reason why there is none."""
    catalog_model = _catalog_model(row)
    if catalog_model is not None:
        return ShapedModel(catalog_model, ())
    cut_model = _cut_model(row)
    if cut_model is not None:
        return ShapedModel(cut_model, ())
    if row.params is None and (row.layers is None or row.hidden is None):
        return "the model is not in the catalogue and the row states neither its parameters nor its layers and width"
    layers, hidden, flags = _width(row)
    return ShapedModel(_plain(row, layers, hidden), (*flags, *_unread(row)))


def _unread(row: TrainingRow) -> tuple[str, ...]:
    """Flag of a row whose name is no description of a plain decoder."""
    if _DESCRIPTION.match(row.model):
        return ()
    return (f"{PLAIN}: {row.model} is not in the catalogue",)


def is_unread(flags: Sequence[str]) -> bool:
    """Whether a model is read as a plain decoder although its name says more."""
    return any(flag.startswith(PLAIN) for flag in flags)


def _catalog_model(row: TrainingRow) -> Model | None:
    """Catalogue model of the row's name, if its shape and size agree with the row; else None."""
    try:
        model = find_model(model_name(_bare(row.model)))
    except UnknownName:
        return None
    layers = sum(int(block.count) for block in model.blocks)
    if (row.layers and row.layers != layers) or (row.hidden and row.hidden != model.hidden):
        return None
    return model if row.params is None or abs(float(total_params(model)) / row.params - 1) < NEAR else None


def _bare(name: str) -> str:
    """Name without brackets, which qualify the run.

    >>> _bare("DeepSeek V3 (w/o MTP)"), _bare("Qwen3_30B_a3B")
    ('DeepSeek V3', 'Qwen3_30B_a3B')
    """
    return _BRACKETS.sub("", name).strip()


def _cut_model(row: TrainingRow) -> Model | None:
    """Catalogue model cut to the layers that its name states ("DeepSeek-V3-12layers"); None if the name states none.

    Of two kinds of layer the row's parameters say which remain: all of the first kind that fit, as they lead, or none.
    """
    match = _CUT.fullmatch(_bare(row.model))
    if match is None:
        return None
    try:
        model = find_model(model_name(match[1]))
    except UnknownName:
        return None
    layers, options = int(match[2]), []
    if not 0 < layers <= sum(int(block.count) for block in model.blocks):
        return None
    for skipped in range(len(model.blocks)):
        blocks, remaining = [], layers
        for block in model.blocks[skipped:]:
            count = min(remaining, int(block.count))
            remaining -= count
            if count:
                blocks.append(replace(block, count=known(count, f"{row.id}.layers", "", "input", "the name of the row's model")))
        if not remaining:
            options.append(replace(model, blocks=tuple(blocks)))
    if not row.params or len(options) < 2:
        return options[0] if options else None
    return min(options, key=lambda option: abs(float(total_params(option)) - float(row.params or 0)))


def _width(row: TrainingRow) -> tuple[int, int, tuple[str, ...]]:
    """Layers and width of a row: as stated, else from 12 h^2 parameters per layer; with flags."""
    active = row.active or row.params or 0.0
    if row.layers and row.hidden:
        return row.layers, row.hidden, ()
    if row.layers:
        return row.layers, _rounded((active / (12 * row.layers)) ** 0.5), ("width not stated: that of 12 h^2 parameters a layer",)
    if row.hidden:
        return max(1, round(active / (12 * row.hidden**2))), row.hidden, ("layers not stated: those of 12 h^2 parameters a layer",)
    layers = max(2, round((active / (12 * ASPECT**2)) ** (1 / 3)))
    return layers, _rounded((active / (12 * layers)) ** 0.5), (f"shape not stated: {layers} layers, {ASPECT} times as wide",)


def _rounded(width: float) -> int:
    return max(HEAD, HEAD * round(width / HEAD))


def _plain(row: TrainingRow, layers: int, hidden: int) -> Model:
    """Plain decoder of this shape; the FFN width is chosen to match the row's parameters."""

    def number(value: float, what: str) -> Any:
        return known(value, f"{row.id}.{what}", "", "input", "the row's shape and size")

    heads = row.heads if row.heads and hidden % row.heads == 0 else max(1, hidden // HEAD)
    width = number(hidden, "hidden")
    attention = Attention(hidden=width, heads=number(heads, "heads"), kv_heads=number(heads, "heads"),
                          head_dim=number(hidden // heads, "head_dim"), value_dim=number(hidden // heads, "head_dim"))  # fmt: skip
    active, total = row.active or row.params, row.params or row.active
    per_layer = (active - VOCABULARY * hidden) / layers - 4 * hidden**2 if active else 8 * hidden**2
    inner = max(1, round(max(per_layer, hidden**2) / (2 * hidden)))
    ffn: Any = Dense(hidden=width, intermediate=number(inner, "intermediate"), matrices=number(2, "matrices"))
    if active and total and total > 1.05 * active:
        ffn = _routed(row, layers, width, inner, total - active, number)
    block = Block(count=number(layers, "layers"), attention=attention, ffn=ffn)
    return Model(
        name=row.model, family="plain", vocab=number(VOCABULARY, "vocab"), hidden=width, embedding_dim=width, tied=True, blocks=(block,),
        precision=TWO_BYTES,
    )  # fmt: skip


def _routed(row: TrainingRow, layers: int, width: Any, inner: int, idle: float, number: Any) -> MoE:
    """MoE layer whose inactive experts account for the `idle` parameters; experts from the model's name, else 2 of 8."""
    match = _EXPERTS.search(row.model)
    experts, per_token = (int(match[1]), int(match[2])) if match else (8, 2)
    per_token = min(per_token, experts - 1) or 1
    expert_width = max(1, round(idle / (layers * (experts - per_token)) / (2 * float(width))))
    rest = max(inner - per_token * expert_width, 0)
    return MoE(
        hidden=width, experts=number(experts, "experts"), per_token=number(per_token, "experts_per_token"),
        intermediate=number(expert_width, "expert_intermediate"), matrices=number(2, "matrices"),
        shared_experts=1 if rest else 0, shared_intermediate=number(rest, "shared_intermediate") if rest else 0,
        shared_matrices=number(2, "matrices") if rest else 0,
    )  # fmt: skip
