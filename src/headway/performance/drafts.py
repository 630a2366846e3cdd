"""Speculation of a deployment: what drafts, how many tokens, and how many of them are accepted.

`--draft` states it; `--accept-length` alone is the short form, of which a note says what it assumes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core import catalog, units
from headway.core.errors import BadValue, IllegalCombination
from headway.core.quantity import known, user_input
from headway.hardware.chip import Chip
from headway.laws.serving.request import acceptance_of_length, accepted_length
from headway.models import drafter
from headway.models.config import model as find_model
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.totals import total_params
from headway.models.work import ModelWork, work_of
from headway.performance.assumptions import Assumptions
from headway.performance.formats import Formats, resolve

MOST = 64  # drafts of a sequence in a step
SHARES = "a share from 0 to 1, or one for each draft with commas, such as 0.85,0.8,0.75"
WHAT = "mtp, eagle, eagle:VOCABULARY such as eagle:32k, or a model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafts:
    """What drafts for a model, and what becomes of its drafts."""

    name: str
    kind: str  # mtp, eagle or model; "" where the user states the cost alone
    tokens: Any  # drafts of a sequence in a step
    acceptance: tuple[Any, ...]  # of each place, if those before are accepted
    model: Model | None  # None: the drafts cost `shares`
    work: ModelWork | None
    formats: Formats | None
    shares: tuple[Any, ...]  # of a decode step, which drafting takes; empty: `model` drafts
    first_pass: Any  # of the engine's own work in a step, by the pass over the new tokens
    further_pass: Any  # and by each later one
    wait_of_states: Any  # of the host in each step, for a model with recurrent states
    stated_length: Any = None  # of the short form
    notes: tuple[str, ...] = ()

    def with_counts(self) -> Drafts:
        """The same with the work of its model counted again, for a recorder that is on."""
        return self if self.model is None else replace(self, work=_work(self.kind, self.model))

    def length(self) -> Any:
        """Mean tokens of a step."""
        return accepted_length(self.acceptance) if self.stated_length is None else self.stated_length


@functools.cache
def _facts() -> Mapping[str, Mapping[str, Any]]:
    document = catalog.read(catalog.PACKAGED / "drafts.toml")
    sources = document.pop("sources")
    return {
        section: {
            key: known(row["value"], f"{section}.{key}", row["unit"], row["kind"], f"drafts.toml: {sources[row['source']]}", row["date"])
            for key, row in rows.items()
        }
        for section, rows in document.items()
    }  # fmt: skip


def drafts_of(model: Model, chip: Chip, precision: Precision, assumptions: Assumptions) -> Drafts | None:
    """The speculation of a model on a chip; None without any. BadValue or IllegalCombination for what cannot be."""
    _check_together(assumptions)
    if not assumptions.draft:
        return _short_form(model, chip, precision, assumptions)
    if assumptions.draft_tokens is not None and assumptions.draft_tokens == 0:
        return None
    kind, head = _drafting(model, assumptions.draft)
    tokens, notes = _tokens(model, kind, assumptions)
    acceptance, more = _acceptance(assumptions.acceptance, int(tokens))
    return _drafts(kind, head, chip, precision, assumptions, tokens=tokens, acceptance=acceptance, notes=(*notes, *more))


def _check_together(assumptions: Assumptions) -> None:
    """Refuse flags that need or exclude each other."""
    if not assumptions.draft:
        for flag, value in (("--draft-tokens", assumptions.draft_tokens), ("--acceptance", assumptions.acceptance)):
            if value not in (None, ""):
                raise IllegalCombination(flag, str(value), "--draft beside it: mtp, eagle or a model")
    elif assumptions.accept_length != 1:
        wants = "no --draft beside it: it is the short form; --acceptance says how many drafts are accepted"
        raise IllegalCombination("--accept-length", f"{float(assumptions.accept_length):g}", wants)
    elif assumptions.draft_cost is not None:
        wants = "no --draft beside it: what drafts is timed; it goes with --accept-length"
        raise IllegalCombination("--draft-cost", f"{float(assumptions.draft_cost):g}", wants)


def _short_form(model: Model, chip: Chip, precision: Precision, assumptions: Assumptions) -> Drafts | None:
    """Speculation by the mean tokens of a step alone: the fewest drafts of which not all must be accepted, each place alike."""
    length, share = assumptions.accept_length, assumptions.draft_cost
    if length == 1 and not share:
        return None
    count = math.floor(float(length)) if length > 1 else 0
    tokens = known(count, "draft_tokens", "", "default", "of --accept-length: the fewest drafts of which not all must be accepted")
    acceptance = (acceptance_of_length(length, tokens),) * count
    alike = f"{count} draft{'s' * (count != 1)} a step, each accepted with {float(acceptance[0]):.3g}" if count else "no drafts"
    if share is not None:
        note = f"speculation: assumed of --accept-length: {alike}; drafting takes {float(share):.3g} of a step (--draft-cost)"
        return _drafts("", None, chip, precision, assumptions, tokens=tokens, acceptance=acceptance, notes=(note,), stated_length=length)
    kind, head = ("mtp", drafter.prediction_head(model)) if model.prediction_layers else ("eagle", _eagle(model, None))
    note = f"speculation: assumed of --accept-length: {alike}, by {head.name}; --draft says it"
    return _drafts(kind, head, chip, precision, assumptions, tokens=tokens, acceptance=acceptance, notes=(note,), stated_length=length)


def _drafts(kind: str, head: Model | None, chip: Chip, precision: Precision, assumptions: Assumptions, **rest: Any) -> Drafts:
    """The record, with formats and what the engine does for each pass."""
    work, formats = None, None
    if head is not None:
        work = _work(kind, head)
        formats = resolve(work, chip, precision if kind == "mtp" else Precision(kv=precision.kv))
    engine = assumptions.engine if assumptions.engine in _facts()["first_pass"] else "other"
    return Drafts(
        name="" if head is None else head.name, kind=kind, model=head, work=work, formats=formats,
        shares=() if assumptions.draft_cost is None else (assumptions.draft_cost,),
        **{key: _facts()[key][engine] for key in ("first_pass", "further_pass", "wait_of_states")}, **rest,
    )  # fmt: skip


def _work(kind: str, head: Model) -> ModelWork:
    return work_of(head) if kind == "model" else drafter.head_work(head, shares_output=kind == "mtp")


def _drafting(model: Model, text: str) -> tuple[str, Model]:
    """Kind and model of what drafts, as the user names it."""
    name, _, size = text.strip().partition(":")
    if name.lower() == "mtp" and not size:
        return "mtp", drafter.prediction_head(model)
    if name.lower() == "eagle":
        return "eagle", _eagle(model, size or None)
    smaller = find_model(text)
    if float(total_params(smaller)) >= float(total_params(model)):
        sizes = f"{units.show(float(total_params(smaller)))} parameters, {model.name} {units.show(float(total_params(model)))}"
        raise BadValue("--draft", text, f"a model smaller than {model.name}: it has {sizes}")
    if int(smaller.vocab) != int(model.vocab):
        sizes = f"it has {int(smaller.vocab):,} tokens, {model.name} {int(model.vocab):,}"
        raise BadValue("--draft", text, f"a model of the same vocabulary: {sizes}")
    return "model", smaller


def _eagle(model: Model, size: str | None) -> Model:
    """An EAGLE head with a vocabulary of its own, at most the model's."""
    facts = _facts()["head"]
    if size is None:
        vocabulary = min(facts["vocabulary"], model.vocab)
    else:
        count = units.parse(size, "", "--draft eagle")
        if count < 1 or count != int(count) or count > model.vocab:
            raise BadValue("--draft", f"eagle:{size}", f"a whole number of tokens, at most the {int(model.vocab):,} of {model.name}")
        vocabulary = user_input(int(count), "vocabulary of the EAGLE head")
    return drafter.eagle_head(model, vocabulary, facts["ffn_of_mixture"])


def _tokens(model: Model, kind: str, assumptions: Assumptions) -> tuple[Any, list[str]]:
    """Drafts of a sequence in a step: the user's, or of an MTP head as many as it has layers."""
    if assumptions.draft_tokens is not None:
        return assumptions.draft_tokens, []
    layers = model.prediction_layers
    if kind != "mtp" or layers is None:
        raise IllegalCombination("--draft", assumptions.draft, "--draft-tokens K beside it: how many tokens it drafts in a step")
    note = f"speculation: {int(layers)} draft{'s' * (int(layers) != 1)} a step, as many as the config has MTP layers, as vLLM's default"
    return layers, [f"{note} (--draft-tokens)"]


def _acceptance(text: Any, count: int) -> tuple[tuple[Any, ...], list[str]]:
    """Acceptance of each place: one number stands for every place."""
    if text in ("", None):
        value = _facts()["head"]["acceptance"]
        note = f"speculation: assumed: {float(value):.3g} of the drafts of each place are accepted if those before are (--acceptance)"
        return (value,) * count, [note]
    shares = shares_of(text)
    if len(shares) == 1:
        return shares * count, []
    if len(shares) != count:
        raise BadValue("--acceptance", text, f"one number, or {count} with commas: one for each draft")
    return shares, []


def shares_of(text: Any) -> tuple[Any, ...]:
    """Shares as the user typed them."""
    parts = str(text).split(",") if not isinstance(text, list | tuple) else text
    try:
        values = [float(part) for part in parts]
    except (TypeError, ValueError):
        raise BadValue("--acceptance", text, SHARES) from None
    if not all(0 <= value <= 1 for value in values):
        raise BadValue("--acceptance", text, SHARES)
    return tuple(user_input(value, f"acceptance {place}") for place, value in enumerate(values, start=1))


def choices(assumptions: Assumptions, counts: Sequence[Any]) -> list[Assumptions]:
    """The assumptions with each number of drafts of which a search takes the best; as they are without any."""
    if not counts:
        return [assumptions]
    fixed = {"draft": assumptions.draft, "acceptance": assumptions.acceptance}
    return [
        replace(assumptions, draft_tokens=member["draft_tokens"], acceptance=member["acceptance"])
        for member in members([fixed | {"draft_tokens": count} for count in counts])
    ]


def check_counts(values: Sequence[Mapping[str, Any]]) -> None:
    """Refuse drafts of which no member of a list has any."""
    counts = [int(value["draft_tokens"]) for value in values if value.get("draft") and value.get("draft_tokens") is not None]
    if counts and not any(counts):
        raise BadValue("--draft-tokens", "0", f"1 to {MOST} drafts a step beside --draft; 0 stands in a list such as 0..5, for none")


def members(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Assumptions of each member of a list of --draft-tokens, whose list of acceptances goes as far as its drafts; 0: no drafts."""
    counts = [int(value["draft_tokens"]) for value in values if value.get("draft_tokens") is not None]
    most = max(counts, default=0)
    several = len(set(counts)) > 1
    result = []
    for value in values:
        member, text = dict(value), value.get("acceptance")
        if several and text and value.get("draft") and len(shares := str(text).split(",")) > 1:
            if len(shares) != most:
                raise BadValue("--acceptance", text, f"one number, or {most} with commas: one for each draft")
            member["acceptance"] = ",".join(shares[: int(value["draft_tokens"])])
        result.append(member)
    return result
