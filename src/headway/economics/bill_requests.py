"""The requests that a bill is for: how long each is, and how much of its prompt a cache of a time to live would have.

What requests share is known from a trace's block ids, or from its conversations and what all prompts begin with. A cache of a provider
has no limit but time: each use begins a prefix's time to live anew. A request finds what any before it asked to be kept, however little
before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from headway.core.errors import BadValue
from headway.sim.hit_rates import idle_after, idle_before, leading
from headway.sim.traffic.requests import NO_CONVERSATION, Traffic

FIRST, LAST, RECORDED, ANY = "shared first", "shared last", "as recorded", "any"  # where a prompt has what it shares with all others


class PrefixReuse(Protocol):
    """What prompts have in common, by request in the order of arrival."""

    @property
    def layouts(self) -> tuple[str, ...]: ...
    def marked(self, layout: str) -> Any:
        """Leading tokens of each prompt that its sender asks to be cached."""
        ...

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        """Leading tokens of each prompt that the cache has."""
        ...

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        """Tokens kept, over time: token-seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests by rising prompt, so that those of a context tier stand together."""

    source: str
    prompt: Any  # tokens, rising
    output: Any  # tokens
    arrival: Any  # seconds from the first
    order: Any  # the place of each in the order of arrival
    sharing: PrefixReuse
    lengths: bool = True  # false where only totals are known: no context tier can be told

    def cached(self, ttl_s: float, layout: str, least: float) -> tuple[Any, Any]:
        """Tokens found and tokens written of each prompt; a prefix below `least` tokens is not cached."""
        marked, hits = self.sharing.marked(layout), self.sharing.hit_tokens(ttl_s, layout)
        marked = np.where(marked < least, 0, marked)
        hits = np.minimum(np.where(hits < least, 0, hits), marked)
        return hits[self.order], (marked - hits)[self.order]


def requests_of(traffic: Traffic, source: str, shared: int = 0) -> Requests:
    """Requests of traffic, every prompt of which begins with the same `shared` tokens where its blocks do not say."""
    if not len(traffic):
        raise BadValue("--requests", source, "at least one request")
    if len(traffic.blocks) and shared:
        raise BadValue("--shared", shared, "requests without block ids, which say themselves what is shared")
    if shared > traffic.prompt.max():
        raise BadValue("--shared", shared, f"at most the longest prompt's {traffic.prompt.max()} tokens, of which it is a part")
    sharing: PrefixReuse = BlockPrefixes(traffic) if len(traffic.blocks) else ConversationPrefixes(traffic, shared)
    order = np.argsort(traffic.prompt, kind="stable")
    return Requests(
        source=source, prompt=traffic.prompt[order], output=traffic.output[order],
        arrival=traffic.arrival[order], order=order, sharing=sharing,
    )  # fmt: skip


class BlockPrefixes:
    """A trace whose prompts are lists of block ids."""

    layouts = (RECORDED,)

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.request = np.repeat(np.arange(len(traffic)), np.diff(traffic.block_start))

    @cached_property
    def before(self) -> Any:
        """Seconds that each block lay unused."""
        return idle_before(self.traffic.blocks, self.request, self.traffic.arrival)

    @cached_property
    def after(self) -> Any:
        """Seconds until each block is used again."""
        return idle_after(self.traffic.blocks, self.request, self.traffic.arrival)

    def marked(self, layout: str) -> Any:
        return self._tokens(np.diff(self.traffic.block_start))

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        return self._tokens(leading(self.before <= ttl_s, self.traffic.block_start))

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        return float(np.minimum(self.after, ttl_s).sum()) * self.traffic.block_tokens

    def _tokens(self, blocks: Any) -> Any:
        """A prompt's last block may be part full."""
        return np.minimum(blocks * self.traffic.block_tokens, self.traffic.prompt)


class ConversationPrefixes:
    """Prompts that begin with what all share, or with their conversation's last prompt."""

    def __init__(self, traffic: Traffic, shared: int) -> None:
        self.prompt, self.arrival = traffic.prompt, traffic.arrival
        self.shared = np.minimum(shared, self.prompt)
        self.talks = traffic.conversation != NO_CONVERSATION
        order = np.lexsort((np.arange(len(traffic)), traffic.conversation))
        later, earlier = order[1:], order[:-1]
        turn = (traffic.conversation[later] == traffic.conversation[earlier]) & self.talks[later]
        later, earlier = later[turn], earlier[turn]
        self.last = np.zeros(len(traffic), np.int64)  # the prompt of the turn before
        self.last[later] = self.prompt[earlier]
        self.before, self.after = (np.full(len(traffic), np.inf) for _ in range(2))  # seconds to the turns beside this
        self.before[later] = self.after[earlier] = self.arrival[later] - self.arrival[earlier]
        gaps = np.diff(self.arrival)
        self.before_any, self.after_any = np.append(np.inf, gaps), np.append(gaps, np.inf)

    @property
    def layouts(self) -> tuple[str, ...]:
        return (FIRST, LAST) if self.shared.any() and self.talks.any() else (FIRST,)

    def marked(self, layout: str) -> Any:
        """All of a conversation's prompt, for its next turn begins with it; else what all share."""
        if layout == LAST:
            return np.where(self.talks, self.prompt - self.shared, 0)
        return np.where(self.talks, self.prompt, self.shared)

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        """The longer of the last turn's prompt and what all share, where their time has not run out."""
        if layout == LAST:  # what is shared stood behind the last turn's question, and is no part of this prompt's beginning
            return np.where(self.before <= ttl_s, np.minimum(np.maximum(self.last - self.shared, 0), self.prompt), 0)
        previous_turn = np.where(self.before <= ttl_s, np.minimum(self.last, self.prompt), 0)
        return np.maximum(previous_turn, np.where(self.before_any <= ttl_s, self.shared, 0))

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        """What all share is held once; of each conversation what it has beyond that."""
        per_conversation = np.where(self.talks, self.prompt - self.shared, 0) * np.minimum(self.after, ttl_s)
        common = 0.0 if layout == LAST else self.shared * np.minimum(self.after_any, ttl_s)
        return float(np.sum(per_conversation + common))


class RequestTotals:
    """Totals of which it is known how much was found; where nothing was, nothing was asked to be kept."""

    layouts = (RECORDED,)

    def __init__(self, prompt: float, hits: float) -> None:
        self.prompt, self.hit = np.array([int(prompt)]), np.array([int(hits)])

    def marked(self, layout: str) -> Any:
        return np.where(self.hit > 0, self.prompt, 0)

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        return self.hit

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        return 0.0


def requests_of_totals(prompt: float, hits: float, output: float, source: str) -> Requests:
    """A day's totals as one line: prompt tokens, those of them that were found, and output tokens."""
    if not 0 <= hits <= prompt:
        raise BadValue("--tokens", f"cached={hits:g}", f"cached tokens among the input's {prompt:g}")
    zero = np.zeros(1, np.int64)
    return Requests(
        source=source, prompt=np.array([int(prompt)]), output=np.array([int(output)]), arrival=zero.astype(float), order=zero,
        sharing=RequestTotals(prompt, hits), lengths=False,
    )  # fmt: skip
