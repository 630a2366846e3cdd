"""Speculation as a row states it: what drafts, how many tokens a step, and how many are accepted; by the law of `serve --draft`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from headway.core.errors import BadValue, HeadwayError, IllegalCombination
from headway.core.quantity import user_input
from headway.core.schema import defaults
from headway.evidence.rows.row import MeasuredRow
from headway.hardware.chip import Chip
from headway.laws.serving.request import acceptance_of_length
from headway.models.model import Model
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.drafts import Drafts, drafts_of
from headway.performance.nearest import ENGINES


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedDrafts:
    """Speculation of a row: cells as the row has them, None or "" where not."""

    draft: str = ""
    tokens: int | None = None
    acceptance: str = ""
    accept_length: float | None = None


class UnclearDrafts(HeadwayError):
    """Error of a row whose speculation contradicts itself; its text names the columns."""


NO_DRAFTS = StatedDrafts()


def stated_drafts(row: MeasuredRow) -> StatedDrafts:
    """Speculation of a row."""
    if not row.draft and row.draft_tokens is None and not row.acceptance and row.accept_length is None:
        return NO_DRAFTS
    return StatedDrafts(draft=row.draft, tokens=row.draft_tokens, acceptance=row.acceptance, accept_length=row.accept_length)


def with_method(speculation: StatedDrafts, model: Model) -> StatedDrafts:
    """What a row states, with the model's own head, else an EAGLE head, where it states drafts and their yield but not what drafts."""
    if speculation.draft or speculation.tokens is None or speculation.accept_length is None:
        return speculation
    return replace(speculation, draft="mtp" if model.prediction_layers else "eagle")


def assumptions_of(speculation: StatedDrafts, engine: str, eager: bool) -> Assumptions:
    """Assumptions of a server of this engine with what a row states of its speculation.

    A published acceptance is the mean tokens of a step: every place alike accepts as many as give it.
    """
    acceptance, length = speculation.acceptance, speculation.accept_length
    if speculation.draft and length is not None:
        if acceptance:
            raise UnclearDrafts("acceptance and accept_length: both are stated, and each follows from the other")
        if speculation.tokens is None:
            raise UnclearDrafts("draft_tokens: missing; accept_length with draft needs how many tokens are drafted in a step")
        acceptance = f"{float(acceptance_of_length(length, speculation.tokens)):.6g}"
    if length is not None and speculation.tokens is not None and length > speculation.tokens + 1:
        raise UnclearDrafts(f"accept_length: {length:g} tokens of a step, of {speculation.tokens} drafts at most {speculation.tokens + 1}")
    values = {"draft": speculation.draft, "draft_tokens": speculation.tokens, "acceptance": acceptance}
    if length is not None and not speculation.draft:
        values = {"accept_length": user_input(length, "accept_length"), "acceptance": acceptance}
    return defaults(Assumptions, {"engine": ENGINES[engine], "eager": eager} | values)


def row_drafts(model: Model, chip: Chip, precision: Precision, assumptions: Assumptions) -> Drafts | None:
    """What drafts for a row; UnclearDrafts, by the names of columns, for what cannot be."""
    try:
        drafts = drafts_of(model, chip, precision, assumptions)
    except (BadValue, IllegalCombination) as error:
        raise UnclearDrafts(_by_columns(str(error))) from None
    return drafts and replace(drafts, notes=tuple(_by_columns(note).replace("; ", ", ") for note in drafts.notes))


def _by_columns(text: str) -> str:
    """A text with the names of columns in place of those of flags."""
    return re.sub(r"--([a-z-]+)", lambda flag: flag[1].replace("-", "_"), text)
