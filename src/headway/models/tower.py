"""A vision tower: the encoder that turns the patches of an image into tokens of the prompt, and its projector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.core.quantity import known

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
        from headway.laws.step.parts import tower_params

        return tower_params(self.encoder_params, self.projector_params, self.table_params)

    @property
    def bytes(self) -> Any:
        """Bytes of its weights."""
        from headway.laws.step.parts import tower_bytes

        return tower_bytes(self.params, BYTES)
