"""A language model: blocks of equal layers, each with a mixer (attention or a recurrence) and a feed-forward part.

Every number is a Sourced, which carries where it came from, or a literal 0, 1 or 2. The kinds of mixer are in attention/.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known
from headway.laws.step import parts
from headway.models.attention import Mixer

PIXELS = 1024  # side of the image whose tokens are assumed where a tower takes any size
BYTES = known(2, "bytes of a tower's weight", "byte", "constant", "towers are kept in 16 bits, whatever the decoder's format")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tower:
    """Shapes of a tower; every number is a Sourced."""

    kind: str  # model_type of its config
    encoder_params: Any  # used by every patch
    projector_params: Any  # used by every token that the decoder gets
    table_params: Any  # positions and the like: no matmul
    hidden: Any
    full_layers: Any  # layers in which every patch attends to the whole image
    window_layers: Any
    window: Any  # patches of a window or a tile
    patches_per_token: Any
    image_tokens: Any  # of an image of its fixed size, else of a square of PIXELS

    @property
    def params(self) -> Any:
        """All parameters of the tower and its projector."""
        return parts.tower_params(self.encoder_params, self.projector_params, self.table_params)

    @property
    def bytes(self) -> Any:
        """Bytes of its weights."""
        return parts.tower_bytes(self.params, BYTES)


DTYPES = (
    "fp32", "bf16", "fp16", "fp8", "mxfp8", "int8", "int4", "int4_g128", "int4_g64", "int4_g32", "fp4", "mxfp4", "nvfp4", "nf4",
    "nf4_double",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """A parameter that no matrix product uses (norm, bias, scale): its size is the product of `dims`."""

    name: str
    dims: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """One feed-forward network that every token uses; 3 matrices where it is gated, else 2."""

    hidden: Any
    intermediate: Any
    matrices: Any
    biases: Any = 0  # 1 where each matrix has a bias


@dataclass(frozen=True, slots=True, kw_only=True)
class MoE:
    """Routed experts, of which each token uses a few, beside what every token uses."""

    hidden: Any
    experts: Any
    per_token: Any
    intermediate: Any  # of one routed expert
    matrices: Any
    biases: Any = 0  # 1 where each expert matrix has a bias
    clamped: Any = 0  # 1 where the inputs of the experts' activation function are clamped
    shared_experts: Any = 0
    shared_intermediate: Any = 0  # of one shared expert
    shared_matrices: Any = 0
    shared_gates: Any = 0  # 1 where a learned gate scales the shared expert
    latent: Any = 0  # width at which the routed experts work, where it is not `hidden`: projections lead to it and back
    groups: Any = 1  # groups into which the router divides the experts
    groups_chosen: Any = 1  # groups that the experts of one token lie in at most (node-limited routing)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFeedForward:
    """A layer that is a mixer alone (Mamba)."""


FeedForward = Dense | MoE | NoFeedForward


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`count` layers that look alike."""

    count: Any
    attention: Mixer
    ffn: FeedForward
    vectors: tuple[Vector, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPrecision:
    """The data type of each part of the checkpoint, and of a recurrent state, one of DTYPES."""

    mixer: str
    ffn: str
    expert: str
    embedding: str
    head: str = ""  # "": as the embedding, unless weights are chosen whose files have another
    scale_block: int = 0  # weights along each side of a square that shares a scale in fp8; 0: no squares
    state: str = "bf16"  # of a recurrence; engines keep that of the cache unless the config names another


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A decoder: embedding, blocks, head. Multi-token prediction is left out, and `notes` says so; models/drafter.py has its layer."""

    name: str
    family: str
    vocab: Any
    hidden: Any
    embedding_dim: Any  # width of the embedding table; equal to `hidden` in all but a few models, which project between the two
    tied: bool  # the head is the embedding table
    blocks: tuple[Block, ...]
    precision: StoredPrecision
    max_context: Any | None = None
    vectors: tuple[Vector, ...] = ()  # final norm, learned positions, ...
    prediction_layers: Any | None = None  # of multi-token prediction, as the config states them; None: it does not
    tower: Tower | None = None  # vision tower and its projector, where its kind is known: in no count of the decoder
    notes: tuple[str, ...] = ()
    origin: str = ""  # where a catalogue entry was taken from, and when; "" for what a user brought
    source: str = ""


def grouped(layers: list[Block]) -> tuple[Block, ...]:
    """Equal layers counted together, in the order in which each kind first appears."""
    counts: dict[Block, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    return tuple(
        Block(
            count=known(count, f"layers of kind {index + 1}", "", "derived", "layers of the config that look alike, counted"),
            attention=layer.attention, ffn=layer.ffn, vectors=layer.vectors,
        )
        for index, (layer, count) in enumerate(counts.items())
    )
