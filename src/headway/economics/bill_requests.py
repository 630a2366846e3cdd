"""Requests to bill: lengths, and the prompt tokens that a cache with a given time to live would hold.

Shared prefixes follow from a trace's block ids, or from its conversations and the tokens with which all prompts begin. A provider's
cache is limited by time alone: each use restarts a prefix's time to live. A request finds whatever earlier requests cached, however
recent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from headway.core.errors import BadValue
from headway.simulation.hit_rates import idle_after, idle_before, leading
from headway.simulation.traffic.requests import NO_CONVERSATION, Traffic

FIRST, LAST, RECORDED, ANY = "shared first", "shared last", "as recorded", "any"  # place of the tokens that all prompts share


class PrefixReuse(Protocol):
    """Prefix reuse between prompts, by request in order of arrival."""

    @property
    def layouts(self) -> tuple[str, ...]: ...
    def marked(self, layout: str) -> Any:
        """Leading tokens of each prompt that the sender marks for caching."""
        ...

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        """Leading tokens of each prompt that the cache holds on arrival."""
        ...

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        """Cached tokens integrated over time, in token-seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledRequests:
    """Requests sorted by prompt length, so that each context tier is a contiguous slice."""

    source: str
    prompt: Any  # tokens, ascending
    output: Any  # tokens
    arrival: Any  # seconds from the first request
    order: Any  # index of each request in order of arrival
    sharing: PrefixReuse
    lengths: bool = True  # False if only totals are known, so that context tiers do not apply

    def cached(self, ttl_s: float, layout: str, least: float) -> tuple[Any, Any]:
        """Tokens read and tokens written of each prompt; a prefix below `least` tokens is not cached."""
        marked, hits = self.sharing.marked(layout), self.sharing.hit_tokens(ttl_s, layout)
        marked = np.where(marked < least, 0, marked)
        hits = np.minimum(np.where(hits < least, 0, hits), marked)
        return hits[self.order], (marked - hits)[self.order]


def requests_of(traffic: Traffic, source: str, shared: int = 0) -> BilledRequests:
    """Requests of traffic; without block ids, every prompt begins with `shared` common tokens."""
    if not len(traffic):
        raise BadValue("--requests", source, "at least one request")
    if len(traffic.blocks) and shared:
        raise BadValue("--shared", shared, "requests without block ids, which say themselves what is shared")
    if shared > traffic.prompt.max():
        raise BadValue("--shared", shared, f"at most the longest prompt's {traffic.prompt.max()} tokens, of which it is a part")
    sharing: PrefixReuse = BlockPrefixes(traffic) if len(traffic.blocks) else ConversationPrefixes(traffic, shared)
    order = np.argsort(traffic.prompt, kind="stable")
    return BilledRequests(
        source=source, prompt=traffic.prompt[order], output=traffic.output[order],
        arrival=traffic.arrival[order], order=order, sharing=sharing,
    )  # fmt: skip


class BlockPrefixes:
    """Prefix reuse in a trace whose prompts are lists of block ids."""

    layouts = (RECORDED,)

    def __init__(self, traffic: Traffic) -> None:
        self.traffic = traffic
        self.request = np.repeat(np.arange(len(traffic)), np.diff(traffic.block_start))

    @cached_property
    def before(self) -> Any:
        """Seconds since the last use of each block; inf at its first use."""
        return idle_before(self.traffic.blocks, self.request, self.traffic.arrival)

    @cached_property
    def after(self) -> Any:
        """Seconds until the next use of each block; inf at its last use."""
        return idle_after(self.traffic.blocks, self.request, self.traffic.arrival)

    def marked(self, layout: str) -> Any:
        return self._tokens(np.diff(self.traffic.block_start))

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        return self._tokens(leading(self.before <= ttl_s, self.traffic.block_start))

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        return float(np.minimum(self.after, ttl_s).sum()) * self.traffic.block_tokens

    def _tokens(self, blocks: Any) -> Any:
        """Tokens in leading blocks of each prompt; its last block may be partly filled."""
        return np.minimum(blocks * self.traffic.block_tokens, self.traffic.prompt)


class ConversationPrefixes:
    """Prefix reuse of prompts that begin with tokens shared by all, or with their conversation's last prompt."""

    def __init__(self, traffic: Traffic, shared: int) -> None:
        self.prompt, self.arrival = traffic.prompt, traffic.arrival
        self.shared = np.minimum(shared, self.prompt)
        self.talks = traffic.conversation != NO_CONVERSATION
        order = np.lexsort((np.arange(len(traffic)), traffic.conversation))
        later, earlier = order[1:], order[:-1]
        turn = (traffic.conversation[later] == traffic.conversation[earlier]) & self.talks[later]
        later, earlier = later[turn], earlier[turn]
        self.last = np.zeros(len(traffic), np.int64)  # prompt tokens of the previous turn
        self.last[later] = self.prompt[earlier]
        self.before, self.after = (np.full(len(traffic), np.inf) for _ in range(2))  # seconds to the previous and next turn
        self.before[later] = self.after[earlier] = self.arrival[later] - self.arrival[earlier]
        gaps = np.diff(self.arrival)
        self.before_any, self.after_any = np.append(np.inf, gaps), np.append(gaps, np.inf)

    @property
    def layouts(self) -> tuple[str, ...]:
        return (FIRST, LAST) if self.shared.any() and self.talks.any() else (FIRST,)

    def marked(self, layout: str) -> Any:
        """Tokens to cache: the whole prompt in a conversation, since its next turn begins with it, else the shared tokens."""
        if layout == LAST:
            return np.where(self.talks, self.prompt - self.shared, 0)
        return np.where(self.talks, self.prompt, self.shared)

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        """Tokens read: the longer of the last turn's prompt and the shared tokens, if their time has not run out."""
        if layout == LAST:  # shared tokens ended the last turn's prompt, so they are not in this prefix
            return np.where(self.before <= ttl_s, np.minimum(np.maximum(self.last - self.shared, 0), self.prompt), 0)
        previous_turn = np.where(self.before <= ttl_s, np.minimum(self.last, self.prompt), 0)
        return np.maximum(previous_turn, np.where(self.before_any <= ttl_s, self.shared, 0))

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        """Token-seconds: the shared tokens once, and for each conversation its further tokens."""
        per_conversation = np.where(self.talks, self.prompt - self.shared, 0) * np.minimum(self.after, ttl_s)
        common = 0.0 if layout == LAST else self.shared * np.minimum(self.after_any, ttl_s)
        return float(np.sum(per_conversation + common))


class RequestTotals:
    """Prefix reuse of totals with a known number of hits; without hits nothing is marked for caching."""

    layouts = (RECORDED,)

    def __init__(self, prompt: float, hits: float) -> None:
        self.prompt, self.hit = np.array([int(prompt)]), np.array([int(hits)])

    def marked(self, layout: str) -> Any:
        return np.where(self.hit > 0, self.prompt, 0)

    def hit_tokens(self, ttl_s: float, layout: str) -> Any:
        return self.hit

    def token_seconds(self, ttl_s: float, layout: str) -> float:
        return 0.0


def requests_of_totals(prompt: float, hits: float, output: float, source: str) -> BilledRequests:
    """Totals as a single request: prompt tokens, cached tokens among them, and output tokens."""
    if not 0 <= hits <= prompt:
        raise BadValue("--tokens", f"cached={hits:g}", f"cached tokens among the input's {prompt:g}")
    zero = np.zeros(1, np.int64)
    return BilledRequests(
        source=source, prompt=np.array([int(prompt)]), output=np.array([int(output)]), arrival=zero.astype(float), order=zero,
        sharing=RequestTotals(prompt, hits), lengths=False,
    )  # fmt: skip
