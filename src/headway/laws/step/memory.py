"""Memory on the fullest chip in bytes: weights, KV cache, and whether both fit."""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import Byte, BytePerToken, Number, Token, Truth

CLAIMS = "Pope 2026 lecture, claims "
GRANULE: Byte = 2.0 * 2**20
LARGE: Byte = 10.0 * 2**20


@formula(source=CLAIMS + "PP-10: stages hold embedding at one end and head at the other")
def end_bytes(embedding: Byte, head: Byte, vectors: Byte, pp: Number) -> Byte:
    """Bytes of a chip's shares of embedding and head, both on one chip only without a pipeline, and of vectors.

    >>> float(end_bytes(0.5e9, 0.5e9, 0.0, 1)) / 1e9, float(end_bytes(0.5e9, 0.5e9, 0.0, 2)) / 1e9
    (1.0, 0.5)
    """
    return np.where(pp == 1, embedding + head, np.maximum(embedding, head)) + vectors


@formula(source=CLAIMS + "PP-10: c = N_t/(E*P)")
def weights_bytes_chip(dense: Byte, routed: Byte, ends: Byte, stage_share: Number) -> Byte:
    """Bytes of weights on the fullest chip: dense and routed layers of its stage, and embedding or head.

    >>> round(weights_bytes_chip(17.25e9, 0.0, 4.2e9 / 8, 1.0) / 1e9, 3)
    17.775
    """
    return (dense + routed) * stage_share + ends


@formula(source="PyTorch, c10/cuda/CUDACachingAllocator.h: from 10 MiB on (kMinLargeAlloc) in whole 2 MiB (kRoundLarge)")
def allocator_padding(matrix: Byte) -> Byte:
    """Bytes by which the memory that a matrix gets exceeds it (Qwen2.5-14B over two chips, query, key and value: 35 MiB).

    >>> float(allocator_padding(35 * 2**20)) / 2**20, float(allocator_padding(3 * 2**20))
    (1.0, 0.0)
    """
    return np.where(matrix >= LARGE, np.ceil(matrix / GRANULE) * GRANULE - matrix, 0 * matrix)


@formula(source=CLAIMS + "PP-10; a window keeps no more than itself")
def sequence_bytes(stores: tuple[tuple[BytePerToken, Token], ...], state: Byte, context: Token) -> Byte:
    """Bytes of cache and state of one sequence on the fullest chip.

    >>> float(sequence_bytes(((40960.0, np.inf), (1024.0, 128.0)), 0.0, 1000.0))
    41091072.0
    """
    return sum((per_token * np.minimum(context, cap) for per_token, cap in stores), start=state)


@formula(source="vLLM, vllm/model_executor/layers/mamba/abstract.py: num_speculative_blocks, a state for each draft beside the last one")
def kept_states(state: Byte, queries: Number) -> Byte:
    """Bytes of recurrent state of a sequence whose step computes so many tokens: one after each, until it is known which are accepted.

    >>> kept_states(33e6, 2)
    66000000.0
    """
    return state * queries


@formula(source="definition")
def held_together(model: Byte, drafter: Byte) -> Byte:
    """Bytes of a model and of what drafts for it on the same chip.

    >>> held_together(70e9, 2e9)
    72000000000.0
    """
    return model + drafter


@formula(source="definition: what drafts follows the last layer")
def on_last_stage(size: Byte, drafter_share: Number, stage_share: Number) -> Byte:
    """Bytes of a drafter's cache in terms of a model's, of which the fullest pipeline stage has `stage_share`.

    >>> float(on_last_stage(4096.0, 1.0, 0.25))
    16384.0
    """
    return size * drafter_share / stage_share


@formula(source=CLAIMS + "PP-10: a rank holds whole sequences; a stage holds its layers of every sequence of its rank")
def resident_sequences(sequences: Number, dp: Number) -> Number:
    """Sequences whose cache lies on the fullest data-parallel rank, however many pipeline stages share its layers.

    >>> float(resident_sequences(100, 72)), float(resident_sequences(0.5, 1))
    (2.0, 0.5)
    """
    return np.where(dp == 1, sequences, np.ceil(sequences / dp))


@formula(source=CLAIMS + "PP-10, PP-11: KV per chip is b*L*kappa/E, whatever the pipeline depth at b per stage")
def kv_bytes_chip(sequences: Number, sequence_bytes: Byte, stage_share: Number, cp: Number) -> Byte:
    """Bytes of KV cache and state on the fullest chip.

    >>> kv_bytes_chip(64, 0.32e9, 1.0, 1) / 1e9
    20.48
    """
    return sequences * sequence_bytes * stage_share / cp


@formula(source=CLAIMS + "CW-07: W + B*L*kappa <= C")
def fits_hbm(weights: Byte, kv: Byte, usable: Byte) -> Truth:
    """Whether weights and KV fit on the fullest chip.

    >>> bool(fits_hbm(17.6e9, 20.5e9, 72e9))
    True
    """
    return weights + kv <= usable


@formula(source=CLAIMS + "CW-07 solved for the batch")
def rank_sequence_limit(usable: Byte, weights: Byte, sequence_bytes: Byte, stage_share: Number, cp: Number) -> Number:
    """Sequences whose KV cache fits after the weights on the fullest chip; infinite when a sequence needs no cache.

    >>> int(rank_sequence_limit(72e9, 17.6e9, 0.32e9, 1.0, 1))
    170
    """
    room = np.maximum(usable - weights, 0 * usable)
    chip_sequence_bytes = sequence_bytes * stage_share / cp
    return np.where(chip_sequence_bytes > 0 * usable, room / np.maximum(chip_sequence_bytes, 1e-300 * usable), np.inf)


@formula(source="definition")
def fits_host(experts: Byte, memory: Byte) -> Truth:
    """Whether the experts of a chip fit in its share of the host's memory.

    >>> bool(fits_host(300e9, 240e9))
    False
    """
    return experts <= memory


@formula(source=CLAIMS + "PP-10: a host holds the experts of each of its chips' layers")
def host_bytes_chip(routed: Byte, stage_share: Number) -> Byte:
    """Bytes of routed experts that the host's memory holds for the fullest chip.

    >>> host_bytes_chip(654e9, 1.0) / 1e9
    654.0
    """
    return routed * stage_share


@formula(source="definition")
def fits_chips(needed_chips: Number, chips: Number) -> Truth:
    """Whether the system has the chips that the replicas need.

    >>> bool(fits_chips(16, 8))
    False
    """
    return needed_chips <= chips


@formula(source="definition")
def fits(memory: Truth, chips: Truth) -> Truth:
    """Whether a layout can run: memory and number of chips both suffice.

    >>> bool(fits(True, False))
    False
    """
    return np.logical_and(memory, chips)
