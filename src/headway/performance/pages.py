"""What a sequence occupies on the fullest chip as an engine lays its caches out: vLLM, SGLang, TensorRT-LLM; exact elsewhere.

The arithmetic is in laws/step/pages.py, block sizes and shares of pools in data/engines/caches.toml.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.core import catalog
from headway.core.quantity import known
from headway.core.schema import Field
from headway.core.units import Token
from headway.laws.arithmetic import sum_over_blocks
from headway.laws.step import pages as laws
from headway.performance.compile import LayerCache, LayoutBytes

UNITS = {"alignment": "byte", "block": "token", "packed_block": "token"}
NONE = known(0, "none", "", "constant", "nothing beyond them")
ANY = known(0.0, "any length", "token", "constant", "as few as the sequence has")
ENDLESS = known(float("inf"), "no limit", "token", "constant", "as many as the sequence has")
ONE_TOKEN = known(1, "one token", "token", "constant", "no blocks")
ONE_MORE = known(1, "one block", "", "constant", "a window may begin within a block")
ONE_STATE = known(1, "one block", "token", "constant", "a state, whatever the length")
NO_BYTES = known(0.0, "nothing", "byte", "constant", "no slots are set aside")
NO_CELL = known(0.0, "nothing", "byte/token", "constant", "the architecture has no such part")

PageTerm = tuple[Any, Any, Any, Any, Any]  # bytes of a block, its tokens, the fewest and the most tokens held, blocks beyond them


@dataclass(frozen=True, slots=True, kw_only=True)
class PagedCache:
    """Caches of a layout in an engine's blocks, on the fullest chip before cp and stages."""

    pages: tuple[PageTerm, ...]
    slots: Any = NO_BYTES  # bytes of the room that slots of requests take, whatever the sequences


@functools.cache
def cache_facts(engine: str) -> dict[str, Any]:
    """Block sizes and shares of an engine, each with its source."""
    path = catalog.PACKAGED / "engines" / "caches.toml"
    document = catalog.read(path)
    fields = {key: Field(UNITS.get(key, ""), open_low=False) for key in catalog.table(document, engine, path)}
    return {key: catalog.number(document[engine][key], q, f"{engine}.{key}", document["sources"], path) for key, q in fields.items()}


def cache_in_pages(compiled: LayoutBytes, engine: str, in_flight: Token) -> PagedCache:
    """The blocks of a layout under an engine while a step of `in_flight` tokens of a sequence may run; elsewhere whole tokens."""
    build = BUILDERS.get(engine)
    if build is not None and compiled.caches:
        return build(_Kinds.of(compiled.caches), in_flight)
    exact = tuple((per_token * ONE_TOKEN, ONE_TOKEN, ANY, cap, NONE) for per_token, cap in compiled.stores)
    return PagedCache(pages=(*exact, (compiled.state_bytes, ONE_STATE, ONE_STATE, ONE_STATE, NONE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kinds:
    """Caches of all layers by what decides their blocks."""

    full: tuple[LayerCache, ...]
    windows: tuple[LayerCache, ...]
    forming: tuple[LayerCache, ...]  # what compressors hold of entries to come
    states: tuple[LayerCache, ...]

    @classmethod
    def of(cls, caches: tuple[LayerCache, ...]) -> _Kinds:
        special = ("forming", "state")
        plain = [cache for cache in caches if cache.what not in special]
        return cls(
            full=tuple(cache for cache in plain if np.isinf(float(cache.cap_tokens))),
            windows=tuple(cache for cache in plain if not np.isinf(float(cache.cap_tokens))),
            forming=tuple(cache for cache in caches if cache.what == "forming"),
            states=tuple(cache for cache in caches if cache.what == "state"),
        )


def _summed(caches: tuple[LayerCache, ...]) -> Any:
    """Bytes per token of caches of all their layers."""
    return sum_over_blocks(tuple(cache.layers for cache in caches), tuple(cache.cell for cache in caches)) if caches else NO_CELL


def _page(cache: LayerCache, block: Token) -> Any:
    """Bytes of a block of a cache in all its layers."""
    return laws.page_bytes(_summed((cache,)), block)


def _vllm(kinds: _Kinds, in_flight: Token) -> PagedCache:
    facts = cache_facts("vllm")
    if kinds.forming:
        return _packed(kinds, facts, in_flight * facts["batches_in_flight"])
    if kinds.windows or kinds.states:
        return _grouped(kinds, facts, in_flight * facts["batches_in_flight"])
    return PagedCache(pages=((laws.page_bytes(_summed(kinds.full), facts["block"]), facts["block"], ANY, ENDLESS, NONE),))


def _grouped(kinds: _Kinds, facts: dict[str, Any], in_flight: Token) -> PagedCache:
    """Kinds of layers with equal pages: smaller cells take more tokens a page, attention takes pages as large as a state."""
    attention, block = (*kinds.full, *kinds.windows), facts["block"]
    widest = laws.widest_cell(tuple(cache.cell for cache in attention)) if attention else None
    if kinds.states and attention:
        block = laws.state_block_tokens(laws.pool_block_bytes(tuple(cache.cell for cache in kinds.states)), widest, block)
    page = laws.pool_block_bytes(tuple(cache.cell for cache in kinds.states)) if widest is None else laws.page_bytes(widest, block)
    group = laws.layers_per_group(tuple(cache.layers for cache in (*attention, *kinds.states)))

    def pages(cache: LayerCache) -> Any:
        return laws.groups_bytes(laws.group_count(cache.layers, group), group, page)

    def tokens(cache: LayerCache) -> Any:
        return block * laws.whole_ratio(widest, cache.cell)

    terms = [(pages(cache), tokens(cache), ANY, ENDLESS, NONE) for cache in kinds.full]
    terms += [(pages(cache), tokens(cache), ANY, laws.held_tokens(cache.cap_tokens, in_flight), ONE_MORE) for cache in kinds.windows]
    terms += [(pages(cache) * facts["state_blocks"], ONE_STATE, ONE_STATE, ONE_STATE, NONE) for cache in kinds.states]
    return PagedCache(pages=tuple(terms))


def _packed(kinds: _Kinds, facts: dict[str, Any], in_flight: Token) -> PagedCache:
    """Compressed entries, index keys, windows and what compressors hold, in blocks of the widest group."""
    block, alignment = facts["packed_block"], facts["alignment"]
    entries = tuple(laws.aligned_page(cache.cell, block, alignment) for cache in kinds.full)
    entry = laws.pool_block_bytes(entries)
    by_cap: dict[tuple[str, float], list[LayerCache]] = {}
    for cache in (*kinds.windows, *kinds.forming):
        by_cap.setdefault((cache.what, float(cache.cap_tokens)), []).append(cache)
    buckets = []
    for caches in by_cap.values():
        tokens = laws.matching_tokens(entry, laws.widest_cell(tuple(cache.cell for cache in caches)))
        buckets.append((caches, tokens, tuple(laws.aligned_page(cache.cell, tokens, alignment) for cache in caches)))
    mixed = [caches[0].layers for caches, _, _ in buckets if len(caches) > 1]
    counts = tuple(caches[0].layers for caches, _, _ in buckets)
    group = laws.least_padding(counts, max(mixed)) if mixed else max(counts)
    widths = [sum_over_blocks(tuple(cache.layers for cache in kinds.full), entries)]
    splits = []
    for caches, _, page_sizes in buckets:
        split = laws.group_count(caches[0].layers, group)
        per_group = laws.group_count(caches[0].layers, split)
        widths.append(sum_over_blocks(tuple(per_group for _ in caches), page_sizes))
        splits.append(split)
    size = laws.pool_block_bytes(tuple(widths))
    terms = [(size, block, ANY, ENDLESS, NONE)]
    for split, (caches, tokens, _) in zip(splits, buckets, strict=True):
        terms.append((size * split, tokens, ANY, laws.held_tokens(caches[0].cap_tokens, in_flight), ONE_MORE))
    return PagedCache(pages=tuple(terms))


def _sglang(kinds: _Kinds, in_flight: Token) -> PagedCache:
    facts = cache_facts("sglang")
    if kinds.forming:
        return _ringed(kinds, facts)
    block, least, cell = facts["block"], ANY, _summed(kinds.full)
    if kinds.windows and kinds.full:
        cell = laws.shared_cell(cell, _summed(kinds.windows), facts["window_share"])
        least = laws.least_tokens(_widest_window(kinds), block, facts["window_share"])
    elif kinds.windows:
        return PagedCache(pages=tuple((_page(cache, block), block, ANY, cache.cap_tokens, NONE) for cache in kinds.windows))
    state = [cache.cell * cache.layers for cache in kinds.states]
    if kinds.states and not kinds.full:
        return PagedCache(pages=tuple((size, ONE_STATE, ONE_STATE, ONE_STATE, NONE) for size in state))
    if kinds.states:
        least = laws.larger_tokens(least, laws.state_tokens(sum(state), cell, facts["state_share"]))
        cell = laws.divided_cell(cell, facts["state_share"])
    return PagedCache(pages=((laws.page_bytes(cell, block), block, least, ENDLESS, NONE),))


def _widest_window(kinds: _Kinds) -> Any:
    return max((cache.cap_tokens for cache in kinds.windows), key=float)


def _ringed(kinds: _Kinds, facts: dict[str, Any]) -> PagedCache:
    """Compressed entries by token, windows in a pool of a share of the tokens, with rings of rows for what compressors hold."""
    block, share, window = facts["packed_block"], facts["packed_share"], _widest_window(kinds)

    def padded(cache: LayerCache) -> Any:
        page = laws.aligned_page(cache.cell, block, facts["alignment"])
        return cache.cell if cache.what == "index" else laws.mean_cell(page, block)

    full = sum_over_blocks(tuple(cache.layers for cache in kinds.full), tuple(padded(cache) for cache in kinds.full))
    short = [cache for cache in kinds.forming if cache.cap_tokens < window]
    rows = [cache for cache in kinds.forming if cache.cap_tokens >= window]
    cells = [padded(cache) for cache in kinds.windows] + [laws.ring_cell(cache.cell, cache.cap_tokens, block) for cache in short]
    windows = sum_over_blocks(tuple(cache.layers for cache in (*kinds.windows, *short)), tuple(cells))
    slots = laws.slot_bytes(_summed(tuple(rows)), rows[0].cap_tokens, facts["request_slots"]) if rows else NO_BYTES
    cell = laws.shared_cell(full, windows, share)
    return PagedCache(pages=((laws.page_bytes(cell, block), block, laws.least_tokens(window, block, share), ENDLESS, NONE),), slots=slots)


def _trtllm(kinds: _Kinds, in_flight: Token) -> PagedCache:
    """Blocks of each cache by itself; a window's begin anywhere within one."""
    block = cache_facts("trtllm")["block"]
    terms = [(_page(cache, block), block, ANY, ENDLESS, NONE) for cache in kinds.full]
    terms += [(_page(cache, block), block, ANY, cache.cap_tokens, ONE_MORE) for cache in (*kinds.windows, *kinds.forming)]
    terms += [(cache.cell * cache.layers, ONE_STATE, ONE_STATE, ONE_STATE, NONE) for cache in kinds.states]
    return PagedCache(pages=tuple(terms))


BUILDERS: dict[str, Callable[[_Kinds, Token], PagedCache]] = {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm}
