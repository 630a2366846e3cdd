"""Blocks in which engines keep caches: what a sequence occupies where pages are whole, pools are shared and windows wait for running steps.

vLLM gives all layers blocks of one pool: layers lie in groups, each with its own table of blocks, and a block is as large as the widest
group. SGLang has a pool for windows, or for states, of a fixed share beside the pool of the other layers. Before cp and stages, on a chip.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerToken, Number, Token

VLLM = "vLLM 0.33.0 (PyPI wheel), v1/"
SGLANG = "SGLang 0.5.23 (PyPI wheel), srt/model_executor/pool_configurator.py, "
HALF_AS_MANY = 1.5  # a kind of layer with fewer times the layers of the smallest makes a group of its own size


@formula(source="engines hold whole blocks; a window holds one more, since it may begin within a block")
def paged_sequence_bytes(pages: tuple[tuple[Byte, Token, Token, Token, Number], ...], context: Token) -> Byte:
    """Bytes that a sequence occupies: each group's block, its tokens, the fewest and the most tokens it holds, blocks beyond them.

    >>> float(paged_sequence_bytes(((2 * 2**20, 16, 0.0, np.inf, 0),), 8200)) / 2**20  # Llama-3.1-8B in blocks of 16
    1026.0
    """
    return sum(block * (np.ceil(np.clip(context, least, most) / tokens) + beyond) for block, tokens, least, most, beyond in pages)


@formula(source=VLLM + "kv_cache_interface.py, _apply_alignment_padding")
def aligned_page(cell: BytePerToken, tokens: Token, alignment: Byte) -> Byte:
    """Bytes of a layer's page of so many tokens, rounded up to the alignment (DeepSeek-V4: an entry of 584 bytes per 4 tokens).

    >>> float(aligned_page(146.0, 256, 576))
    37440.0
    """
    return np.ceil(cell * tokens / alignment) * alignment


@formula(source="vLLM 0.33.0 (PyPI wheel), models/deepseek_v4/compressor.py: states share tensors with pages of entries, so pages match")
def matching_tokens(page: Byte, cell: BytePerToken) -> Token:
    """Tokens of a window's page that is at most as large as a page of entries, a power of two (DeepSeek-V4: 64 of its window).

    >>> float(matching_tokens(37440.0, 584.0)), float(matching_tokens(37440.0, 8192.0)), float(matching_tokens(37440.0, 4096.0))
    (64.0, 4.0, 8.0)
    """
    return ONE_TOKEN * 2 ** np.floor(np.log2(page / cell / ONE_TOKEN))


@formula(source=VLLM + "core/kv_cache_planning.py, _approximate_gcd")
def least_padding(counts: tuple[Number, ...], least: Number) -> Number:
    """Layers in a group that leave the fewest places empty when kinds of so many layers are split; the larger of equals.

    >>> least_padding((43, 21, 20), 21)  # DeepSeek-V4-Flash: windows, and compressors of two ratios
    22
    """
    sizes = range(int(least), max(int(max(counts)), int(least)) + 1)
    return min(sizes, key=lambda size: (sum(-int(count) % size for count in counts), -size))


@formula(source=VLLM + "core/kv_cache_planning.py, _get_kv_cache_groups_uniform_page_size")
def layers_per_group(counts: tuple[Number, ...]) -> Number:
    """Layers of a group where all pages are equal: those of the rarest kind, or of the commonest where it has less than half as many more.

    >>> layers_per_group((10, 52)), layers_per_group((12, 13))  # Gemma-3-27B; gpt-oss-20b with a draft
    (10, 13)
    """
    rarest, commonest = min(counts), max(counts)
    return commonest if commonest < HALF_AS_MANY * rarest else rarest


@formula(source="definition: the last group is filled up")
def group_count(layers: Number, per_group: Number) -> Number:
    """Groups of a kind of layer.

    >>> group_count(52, 10)
    6
    """
    return math.ceil(layers / per_group)


@formula(source=VLLM + "core/kv_cache_planning.py, get_kv_cache_config_from_groups: all groups draw blocks from one pool")
def pool_block_bytes(groups: tuple[Byte, ...]) -> Byte:
    """Bytes of a block of the pool, the widest group's pages; or of a page, the widest layer's.

    >>> float(pool_block_bytes((1002240.0, 823680.0)))
    1002240.0
    """
    return functools.reduce(np.maximum, groups)


@formula(source=VLLM + "core/kv_cache_planning.py, unify_kv_cache_spec_page_size: the largest page is every layer's")
def widest_cell(cells: tuple[BytePerToken, ...]) -> BytePerToken:
    """Bytes of a token of the layer that keeps most of it.

    >>> float(widest_cell((2048.0, 4096.0)))
    4096.0
    """
    return functools.reduce(np.maximum, cells)


@formula(source="definition")
def page_bytes(cell: BytePerToken, tokens: Token) -> Byte:
    """Bytes of a page of so many tokens.

    >>> page_bytes(4096.0, 16)
    65536.0
    """
    return cell * tokens


@formula(source="definition: groups are filled up")
def groups_bytes(groups: Number, per_group: Number, page: Byte) -> Byte:
    """Bytes of one block of each group of a kind of layer (Gemma-3-27B's windows: 6 groups of 10 layers).

    >>> groups_bytes(6, 10, 131072.0)
    7864320.0
    """
    return groups * per_group * page


@formula(source="vLLM 0.33.0 (PyPI wheel), platforms/interface.py: attention takes a block whose page holds a layer's state")
def state_block_tokens(state: Byte, cell: BytePerToken, block: Token) -> Token:
    """Tokens of a block whose page of an attention layer is at least a recurrent layer's state (Qwen3.5-27B: 784).

    >>> float(state_block_tokens(3194880.0, 4096.0, 16))
    784.0
    """
    return block * np.maximum(np.ceil(state / (cell * block)), 1)


@formula(source=VLLM + "kv_cache_interface.py, SlidingWindowSpec: tokens of steps that run are freed when the steps are done")
def held_tokens(window: Token, in_flight: Token) -> Token:
    """Most tokens that a window's layers hold for a sequence: the window but for the newest token, and those of steps that run.

    >>> held_tokens(128, 8192)
    8319.0
    """
    return window - ONE_TOKEN + in_flight


@formula(source=SGLANG + "HybridSWAPoolConfigurator, DSV4PoolConfigurator")
def shared_cell(full: BytePerToken, window: BytePerToken, share: Number) -> BytePerToken:
    """Bytes per token of the full pool, with the pool of windows that has a share of its tokens (gpt-oss-120b, one chip).

    >>> shared_cell(36864.0, 36864.0, 0.8)
    66355.2
    """
    return full + share * window


@formula(source=SGLANG + "validate_swa_pool_size")
def least_tokens(window: Token, page: Token, share: Number) -> Token:
    """Tokens of the full pool that come with a window and its page in the pool of windows.

    >>> float(least_tokens(128, 256, 0.1))
    3840.0
    """
    return (window + page) / share


@formula(source="SGLang 0.5.23 (PyPI wheel), srt/mem_cache/kv_cache_configurator.py: states take share / (1 + share) of the room")
def divided_cell(cell: BytePerToken, share: Number) -> BytePerToken:
    """Bytes of room per token of the KV pool, with the states' part of the room.

    >>> divided_cell(65536.0, 0.9)
    124518.4
    """
    return cell * (1 + share)


@formula(source="SGLang 0.5.23 (PyPI wheel), srt/mem_cache/kv_cache_configurator.py: states take share / (1 + share) of the room")
def state_tokens(state: Byte, cell: BytePerToken, share: Number) -> Token:
    """Tokens of the KV pool that come with the state of one sequence.

    >>> state_tokens(156893184.0, 65536.0, 0.9)
    2660.0
    """
    return state / (share * cell)


@formula(source=SGLANG + "_get_c128_state_fixed_bytes")
def slot_bytes(cells: BytePerToken, tokens: Token, slots: Number) -> Byte:
    """Bytes set aside for requests that may come: a ring of so many tokens for each, and one more (DeepSeek-V4-Flash on a chip).

    >>> round(slot_bytes(20 * 4096.0, 128, 2048) / 1e9, 2)
    21.49
    """
    return cells * tokens * (slots + 1)


@formula(source=VLLM + "core/kv_cache_planning.py, unify_kv_cache_spec_page_size: a smaller cell takes more tokens a page, whole times")
def whole_ratio(widest: BytePerToken, cell: BytePerToken) -> Number:
    """Blocks of tokens of a smaller cell that share the page of the widest.

    >>> float(whole_ratio(4096.0, 1024.0)), float(whole_ratio(4096.0, 3000.0))
    (4.0, 1.0)
    """
    return np.floor(widest / cell)


@formula(source="definition")
def mean_cell(page: Byte, tokens: Token) -> BytePerToken:
    """Bytes per token of a page.

    >>> mean_cell(37440.0, 256)
    146.25
    """
    return page / tokens


@formula(source=SGLANG + "_get_bytes_per_swa_token: a ring of rows for each page of windows")
def ring_cell(cell: BytePerToken, rows: Token, page: Token) -> BytePerToken:
    """Bytes per token of the pool of windows that a compressor's rows take, of which a page has one ring.

    >>> ring_cell(10240.0, 8, 256)
    320.0
    """
    return cell * rows / page


@formula(source="definition")
def larger_tokens(first: Token, second: Token) -> Token:
    """The larger of two lengths.

    >>> float(larger_tokens(0.0, 2660.0))
    2660.0
    """
    return np.maximum(first, second)
