"""Images of a request: the work of the vision tower on each chunk of a prompt, and the tokens that they take of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from headway.core.errors import BadValue, IllegalCombination
from headway.core.units import Token
from headway.hardware.chip import Chip
from headway.laws.step.coefficients import ImageTerm
from headway.laws.step.parts import image_flop, image_s_per_token
from headway.models.model import Tower
from headway.models.work import ModelWork
from headway.performance.achieved import family
from headway.performance.assumptions import Assumptions
from headway.performance.layout import Layout
from headway.performance.splits import splits

KNOWN_TOWER = "a model whose vision tower is known, such as qwen2.5-vl-7b; without --images the tokens of images are part of --prompt"


def image_terms(work: ModelWork, chip: Chip, layout: Layout, assumptions: Assumptions, prompt: Token) -> tuple[ImageTerm, ...]:
    """The images of prompts of so many tokens as a term of the step; none without --images."""
    if not assumptions.images or prompt is None:
        return ()
    tower, tokens = _tower(work, assumptions), image_tokens(work, assumptions)
    if np.any(assumptions.images * tokens > prompt):
        what = f"{float(assumptions.images):g} of {int(tokens)} tokens"
        raise IllegalCombination("--images", what, f"a --prompt that holds them; one of {int(np.min(prompt))} tokens does not")
    towers = splits(assumptions.engine, family(chip)).degree("vision_tower", "tp", layout)
    flop = image_flop(
        tower.encoder_params, tower.projector_params, tower.hidden, tower.full_layers, tower.window_layers, tower.window,
        tokens * tower.patches_per_token, tokens,
    )  # fmt: skip
    return (ImageTerm(compute=image_s_per_token(flop, assumptions.images, prompt, chip.need("peak_bf16"), towers)),)


def image_tokens(work: ModelWork, assumptions: Assumptions) -> Any:
    """Tokens of an image: as the user says, else the model's own number."""
    return _tower(work, assumptions).image_tokens if assumptions.image_tokens is None else assumptions.image_tokens


def image_notes(work: ModelWork, assumptions: Assumptions) -> list[str]:
    """What is assumed of the images of a request."""
    if not assumptions.images:
        return []
    tokens = int(image_tokens(work, assumptions))
    default_note = " (--image-tokens says another number)" if assumptions.image_tokens is None else ""
    text = f"{float(assumptions.images):g} images of {tokens:,} tokens{default_note}"
    return [f"{text} are part of the prompt; the vision tower runs on each chunk of it in proportion"]


def _tower(work: ModelWork, assumptions: Assumptions) -> Tower:
    images = f"{float(assumptions.images):g}"
    if work.tower is None:
        raise BadValue("--images", images, KNOWN_TOWER)
    if not work.tower.image_tokens:
        raise BadValue("--images", images, f"a model that reads images as tokens of its prompt, which {work.name} does not")
    return work.tower
