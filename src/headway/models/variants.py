"""What if a model looked back otherwise, or layers shared one KV: an edited model, with its quality not modelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from headway.core import units
from headway.core.errors import BadValue
from headway.core.quantity import user_input
from headway.core.schema import Field, scalar
from headway.models.attention import AttentionPattern, Mixer
from headway.models.model import Block, Model

WANTS = "dense, window:TOKENS, topk:TOKENS or sqrt:TOKENS, such as window:4k"
QUALITY = "quality not modelled"


def override(model: Model, attention: str | None = None, kv_share: Any = None) -> Model:
    """`model` with either edit, or both."""
    edited = with_attention(model, attention) if attention else model
    return with_kv_share(edited, kv_share) if kv_share else edited


def with_attention(model: Model, kind: str) -> Model:
    """Every softmax attention layer of `model` looks back as `kind` says: dense, window:4k, topk:2k, sqrt:16k."""
    look = look_of(kind)
    blocks = _edited(model, lambda mixer: mixer.with_pattern(look), "attention", kind)
    extra = "; picking the tokens is free but for an indexer that the model has" if look.name in ("topk", "sqrt") else ""
    return replace(model, blocks=blocks, notes=(*model.notes, f"attention overridden to {kind}: {QUALITY}{extra}"))


def with_kv_share(model: Model, layers: Any) -> Model:
    """Groups of `layers` neighbouring layers keep one KV between them; each still reads it."""
    field = Field(integer=True, low=1, open_low=False, high=1000)
    count = scalar(layers, field, "--kv-share") if isinstance(layers, str) else layers
    if isinstance(count, bool) or not isinstance(count, int | float) or count != count // 1 or not 1 <= count <= 1000:
        raise BadValue("kv_share", layers, "how many layers share one KV, a whole number from 1 to 1000")
    share = user_input(int(count), "kv_share")

    def sharing(mixer: Mixer) -> Mixer:
        if mixer.kv_share_refusal:
            raise BadValue("kv_share", layers, f"a model that keeps keys and values; {model.name} {mixer.kv_share_refusal}")
        return mixer.with_kv_share(share)

    blocks = _edited(model, sharing, "kv_share", layers)
    return replace(model, blocks=blocks, notes=(*model.notes, f"one KV shared by {int(count)} layers: {QUALITY}"))


def look_of(kind: str) -> AttentionPattern:
    """The pattern of an `--attention`."""
    name, _, size = kind.strip().partition(":")
    if name == "dense" and not size:
        return AttentionPattern()
    if name not in ("window", "topk", "sqrt") or not size:
        raise BadValue("attention", kind, WANTS)
    tokens = units.parse(size, "token", "attention")
    if tokens < 1:
        raise BadValue("attention", kind, f"at least one token ({WANTS})")
    limit = user_input(tokens, f"attention {name}", "token")
    if name == "window":
        return AttentionPattern(name=name, cap_tokens=limit, kept_tokens=limit)
    return AttentionPattern(name=name, cap_tokens=limit) if name == "topk" else AttentionPattern(name=name, sqrt_tokens=limit)


def _edited(model: Model, edit: Callable[[Mixer], Mixer], field: str, value: object) -> tuple[Block, ...]:
    """The blocks with edited mixers; an error where no layer has softmax attention, or a kind of attention ignores the edit."""
    blocks = tuple(replace(block, attention=edit(block.attention)) for block in model.blocks)
    for block in model.blocks:
        if _ignores(block.attention, field):
            raise BadValue(field, value, f"layers that it applies to; those of kind {type(block.attention).__name__} ignore it")
    if not any(block.attention.softmax for block in blocks):
        raise BadValue(field, value, f"a model with softmax attention; {model.name} has none")
    return blocks


SHORT, LONG = user_input(1, "tried"), user_input(2, "tried")


def _ignores(mixer: Mixer, field: str) -> bool:
    """Whether a kind of softmax attention answers the same however far it looks back, or however many layers share its cache."""
    if not mixer.softmax or not mixer.spans() or (field == "kv_share" and mixer.kv_share_refusal):
        return False

    def answers(size: Any) -> Any:
        look = AttentionPattern(name="window", cap_tokens=size, kept_tokens=size)
        edited = mixer.with_kv_share(size) if field == "kv_share" else mixer.with_pattern(look)
        return edited.params(), edited.stores(), edited.spans()

    return answers(SHORT) == answers(LONG)
