"""What is known of a model, as one record to print; and the list of models, which reads no model at all."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

from headway.core.catalog import lines
from headway.core.quantity import Sourced, known, number, user_input
from headway.core.schema import Field
from headway.core.trace import Traced
from headway.core.units import Token
from headway.laws.architecture import params
from headway.models import config, totals
from headway.models.model import Block, Dense, Model, MoE


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """One row: the numbers of a model, and its parts as nested objects."""

    name: Annotated[str, Field(help="model, by its catalogue name or file")]
    family: Annotated[str, Field(help="family of the architecture")]
    total_params: Annotated[Any, Field(help="all parameters of the text decoder, a tied embedding once")]
    active_params: Annotated[Any, Field(help="parameters that one token uses, the input embedding included")]
    tower_params: Annotated[Any, Field(help="parameters of a vision tower and its projector, counted apart")]
    matmul_params: Annotated[Any, Field(help="parameters that one token is multiplied with: head included, embedding look-up not")]
    sparsity: Annotated[Any, Field(help="total over active parameters")]
    layers: Annotated[Any, Field(help="layers")]
    hidden: Annotated[Any, Field(help="width of the residual stream")]
    vocab: Annotated[Any, Field(help="rows of the embedding")]
    max_context: Annotated[Any, Field("token", "longest context that the config names")]
    kv_bytes_per_token: Annotated[
        Any, Field("byte/token", "cache that one more token adds far beyond every window, 2-byte elements, index keys apart")
    ]
    index_bytes_per_token: Annotated[Any, Field("byte/token", "index keys that one more token adds, 2-byte elements")]
    cache_bytes_per_token: Annotated[Any, Field("byte/token", "both, index keys as engines keep them: 132 bytes a layer of DeepSeek's")]
    context: Annotated[Any, Field("token", "context at which kv_read_bytes_per_token is taken")]
    kv_read_bytes_per_token: Annotated[
        Any, Field("byte/token", "cache read for one decoded token at `context`, index included, divided by it")
    ]
    state_bytes_per_sequence: Annotated[Any, Field("byte", "recurrent and convolution state, and DeepSeek-V4's window; 2-byte elements")]
    params: Annotated[dict[str, Any], Field(help="parameters by part")]
    precision: Annotated[dict[str, str], Field(help="number format of each part of the checkpoint")]
    blocks: Annotated[list[dict[str, Any]], Field(help="layers that look alike, with their attention and feed-forward part")]
    notes: Annotated[list[str], Field(help="remarks")]
    source: Annotated[str, Field(help="where the config comes from")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model of the catalogue."""

    name: str
    family: str
    total_params: int
    active_params: int
    hf_id: str


def list_models() -> tuple[ModelEntry, ...]:
    """Every model of the catalogue, by name; instant, since the counts are in the index."""
    counts = ("total_params", "active_params")
    return tuple(
        ModelEntry(name=row["name"], family=row["family"], hf_id=row["hf_id"], **{key: int(row[key]) for key in counts})
        for row in config.catalogue_index()
    )


def about_model(model: Model, context: Token = 8192) -> ModelSummary:
    """Everything that follows from a model alone."""
    at = context if isinstance(context, Sourced) else user_input(context, "context", "token")
    total, active = totals.total_params(model), totals.active_params(model)
    return ModelSummary(
        name=model.name, family=model.family, total_params=_plain_count(total), active_params=_plain_count(active),
        tower_params=None if model.tower is None else model.tower.params, matmul_params=_plain_count(totals.matmul_params(model)),
        sparsity=_plain_count(params.sparsity(total, active)), layers=_plain_count(totals.layers(model)), hidden=model.hidden,
        vocab=model.vocab, max_context=model.max_context, kv_bytes_per_token=_plain_count(totals.kv_bytes_per_token(model)),
        index_bytes_per_token=_plain_count(totals.wide_index_bytes_per_token(model)),
        cache_bytes_per_token=_plain_count(totals.cache_bytes_per_token(model)), context=at,
        kv_read_bytes_per_token=_plain_count(totals.kv_read_bytes(model, at) / at),
        state_bytes_per_sequence=_plain_count(totals.state_bytes_per_sequence(model)),
        params={name: _plain_count(value) for name, value in totals.params_by_part(model).items()},
        precision={part: getattr(model.precision, part) for part in ("mixer", "ffn", "expert", "embedding")},
        blocks=[_block(block) for block in model.blocks], notes=list(model.notes), source=model.origin or model.source,
    )  # fmt: skip


def _plain_count(value: Any) -> Any:
    """A count as an int; a recorded value stays what it is, so that it can explain itself."""
    return value if isinstance(value, Traced | Sourced) else number(float(value))


def _block(block: Block) -> dict[str, Any]:
    mixer, ffn = block.attention, block.ffn
    row: dict[str, Any] = {"layers": block.count, "attention": type(mixer).__name__, **mixer.summary()}
    row["ffn"] = type(ffn).__name__
    if isinstance(ffn, Dense | MoE):
        row["intermediate"] = ffn.intermediate
    if isinstance(ffn, MoE):
        row |= {"experts": ffn.experts, "experts_per_token": ffn.per_token, "shared_experts": ffn.shared_experts}
    return row


# -- when the catalogue's models were released, and on how many tokens they were trained, where that is public ------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A model's release: month as YYYY-MM; training tokens are None where their number is not public."""

    name: str
    month: str
    year: Any
    training_tokens: Any
    source: str
    status: str  # of the training tokens: checked, or unverified where written from memory of the source


@functools.cache
def releases() -> dict[str, Release]:
    """Releases by catalogue name; a model whose date is not known has none.

    >>> release = releases()["llama-3.1-405b"]
    >>> release.month, float(release.training_tokens)
    ('2024-07', 15600000000000.0)
    """
    return {row["name"]: _release(row) for row in lines("model_releases.csv")}


def _release(row: dict[str, str]) -> Release:
    name, month, source = row["name"], row["released"], row["source"]
    about = source if row["status"] == "checked" else f"{source} (unverified)"
    tokens = (
        known(float(row["training_tokens"]), f"{name}.training_tokens", "token", "datasheet", about, month)
        if row["training_tokens"]
        else None
    )
    year = known(int(month[:4]), f"{name}.year", "", "datasheet", source, month)
    return Release(name=name, month=month, year=year, training_tokens=tokens, source=source, status=row["status"])
