"""What is known of a model, as one record to print; and the list of models, which reads no model at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.formula import Traced
from headway.model import Attention, Block, CompressedAttention, Dense, LatentAttention, Model, MoE
from headway.quantity import Known, given, number
from headway.schema import Q


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """One row: the numbers of a model, and its parts as nested objects."""

    name: Annotated[str, Q(help="model, by its catalogue name or file")]
    family: Annotated[str, Q(help="family of the architecture")]
    total_params: Annotated[Any, Q(help="all parameters of the text decoder, a tied embedding once")]
    active_params: Annotated[Any, Q(help="parameters that one token uses, the input embedding included")]
    matmul_params: Annotated[Any, Q(help="parameters that one token is multiplied with: head included, embedding look-up not")]
    sparsity: Annotated[Any, Q(help="total over active parameters")]
    layers: Annotated[Any, Q(help="layers")]
    hidden: Annotated[Any, Q(help="width of the residual stream")]
    vocab: Annotated[Any, Q(help="rows of the embedding")]
    max_context: Annotated[Any, Q("token", "longest context that the config names")]
    kv_bytes_per_token: Annotated[
        Any, Q("byte/token", "cache that one more token adds far beyond every window, 2-byte elements, index keys apart")
    ]
    index_bytes_per_token: Annotated[Any, Q("byte/token", "index keys that one more token adds, 2-byte elements")]
    context: Annotated[Any, Q("token", "context at which kv_read_bytes_per_token is taken")]
    kv_read_bytes_per_token: Annotated[Any, Q("byte/token", "cache read for one decoded token at `context`, index included, divided by it")]
    state_bytes_per_sequence: Annotated[Any, Q("byte", "recurrent and convolution state, and DeepSeek-V4's window; 2-byte elements")]
    params: Annotated[dict[str, Any], Q(help="parameters by part")]
    precision: Annotated[dict[str, str], Q(help="number format of each part of the checkpoint")]
    blocks: Annotated[list[dict[str, Any]], Q(help="layers that look alike, with their attention and feed-forward part")]
    notes: Annotated[list[str], Q(help="remarks")]
    source: Annotated[str, Q(help="where the config comes from")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One model of the catalogue."""

    name: str
    family: str
    total_params: int
    active_params: int
    hf_id: str


def list_models() -> tuple[Listed, ...]:
    """Every model of the catalogue, by name; instant, since the counts are in the index."""
    from headway.hfconfig import catalogue_index

    return tuple(
        Listed(
            name=row["name"],
            family=row["family"],
            total_params=int(row["total_params"]),
            active_params=int(row["active_params"]),
            hf_id=row["hf_id"],
        )
        for row in catalogue_index()
    )


def about_model(model: Model, context: Any = 8192) -> About:
    """Everything that follows from a model alone."""
    from headway import whole_model as whole
    from headway.laws import kv, params

    at = context if isinstance(context, Known) else given(context, "context", "token")
    total, active = whole.total_params(model), whole.active_params(model)
    return About(
        name=model.name,
        family=model.family,
        total_params=_shown(total),
        active_params=_shown(active),
        matmul_params=_shown(whole.matmul_params(model)),
        sparsity=_shown(params.sparsity(total, active)),
        layers=_shown(whole.layers(model)),
        hidden=model.hidden,
        vocab=model.vocab,
        max_context=model.max_context,
        kv_bytes_per_token=_shown(whole.kv_bytes_per_token(model)),
        index_bytes_per_token=_shown(whole.index_bytes_per_token(model)),
        context=at,
        kv_read_bytes_per_token=_shown(kv.bytes_per_context_token(whole.kv_read_bytes(model, at), at)),
        state_bytes_per_sequence=_shown(whole.state_bytes_per_sequence(model)),
        params={name: _shown(value) for name, value in whole.params_by_part(model).items()},
        precision={part: getattr(model.precision, part) for part in ("mixer", "ffn", "expert", "embedding")},
        blocks=[_block(block) for block in model.blocks],
        notes=list(model.notes),
        source=model.source,
    )


def _shown(value: Any) -> Any:
    """A count as an int; a recorded value stays what it is, so that it can explain itself."""
    return value if isinstance(value, Traced | Known) else number(float(value))


def _block(block: Block) -> dict[str, Any]:
    mixer, ffn = block.attention, block.ffn
    found: dict[str, Any] = {"layers": block.count, "attention": type(mixer).__name__}
    if isinstance(mixer, Attention | LatentAttention):
        found["look_back"] = mixer.look.name
    if isinstance(mixer, CompressedAttention):
        found["compress_ratio"] = mixer.ratio
    names = (
        "heads",
        "kv_heads",
        "head_dim",
        "query_rank",
        "kv_rank",
        "nope_dim",
        "rope_dim",
        "value_dim",
        "key_heads",
        "value_heads",
        "key_dim",
    )
    names += ("window", "state", "inner", "groups", "kernel", "kv_share")
    found |= {name: getattr(mixer, name) for name in names if isinstance(getattr(mixer, name, None), Known)}
    if isinstance(mixer, Attention | LatentAttention) and mixer.look.name != "dense":
        found["look_back_tokens"] = min(mixer.look.cap_tokens, mixer.look.sqrt_tokens)
    found["ffn"] = type(ffn).__name__
    if isinstance(ffn, Dense | MoE):
        found["intermediate"] = ffn.intermediate
    if isinstance(ffn, MoE):
        found |= {"experts": ffn.experts, "experts_per_token": ffn.per_token, "shared_experts": ffn.shared_experts}
    return found
