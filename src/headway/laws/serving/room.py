"""What an engine leaves for weights and KV cache on a chip: bytes that the driver reports, less what its start-up sets aside.

vLLM measures a run of the largest step and subtracts its peak, the engine's buffers and its CUDA graphs from a share of the card.
SGLang takes a share of what is free before the weights, and the rest of it must hold steps and graphs. TensorRT-LLM takes a share of
what is free after weights and such a run. On the fullest chip, in bytes.
"""

from __future__ import annotations

import functools

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Byte, BytePerToken, Number, Token

VLLM = "vLLM 0.33.0 (PyPI wheel), "
SGLANG = "SGLang 0.5.23 (PyPI wheel), "
TRTLLM = "TensorRT-LLM, tensorrt_llm/_torch/pyexecutor/_util.py: "


@formula(source="a matmul's inputs and outputs have parameters / width elements; the residual, its norm and the output lie beside them")
def layer_elements(hidden: Number, mixer_params: Number, ffn_params: Number) -> Number:
    """Elements per token that the widest part of a layer holds at once on a chip (Llama-3.1-8B: its FFN of 3 x 14,336).

    >>> float(layer_elements(4096, 41.9e6, 176160768))
    55296.0
    """
    return 3 * hidden + np.maximum(mixer_params, ffn_params) / hidden


@formula(source="the largest part is alive alone")
def widest_elements(parts: tuple[Number, ...]) -> Number:
    """Elements per token of the widest of several kinds of layers.

    >>> float(widest_elements((55296.0, 10240.0)))
    55296.0
    """
    return functools.reduce(np.maximum, parts)


@formula(source=VLLM + "model_executor/layers/fused_moe/experts/triton_moe.py, workspace_shapes: kept from the first step on")
def expert_elements(active: Number, hidden: Number, inner: Number, up: Number, tp: Number) -> Number:
    """Elements per token of its copies for the routed experts, before and behind each of their two matmuls (Qwen3-30B-A3B).

    >>> float(expert_elements(8, 2048, 768, 1536, 1))
    32768.0
    """
    return active * (np.maximum(inner / tp, hidden) + np.maximum(up / tp, hidden))


@formula(source=VLLM + "v1/sample: logits in 16 bits, in fp32, their probabilities and noise; every tensor-parallel chip has them all")
def logits_bytes(sequences: Number, vocab: Number, logit: Byte) -> Byte:
    """Bytes of the logits of the sequences of a step while tokens are drawn from them (Llama-3.1-8B, 1,024 sequences).

    >>> round(float(logits_bytes(1024, 128256, 14)) / 1e9, 3)
    1.839
    """
    return sequences * vocab * logit


@formula(source=VLLM + "v1/worker/gpu_model_runner.py, profile_run: layers first, then tokens are drawn beside the last hidden states")
def peak_activation_bytes(
    tokens: Number, element: Byte, layer: Number, expert: Number, hidden: Number, logits: Byte
) -> Byte:
    """Peak bytes of a step of so many tokens: the experts' copies, and the larger of a layer and the logits (Qwen3-30B-A3B).

    >>> round(float(peak_activation_bytes(8192, 2, 10240, 32768, 2048, 2.178e9)) / 2**30, 2)
    2.56
    """
    return tokens * element * expert + np.maximum(tokens * element * layer, tokens * element * hidden + logits)


@formula(source=VLLM + "config/vllm.py, _set_cudagraph_sizes: 1, 2, 4, every 8 below 256, every 16 from there")
def captured_sizes(largest: Number) -> Number:
    """Batch sizes for which graphs are captured, up to the largest.

    >>> float(captured_sizes(512)), float(captured_sizes(256)), float(captured_sizes(8))
    (51.0, 35.0, 4.0)
    """
    return 3 + np.floor(np.minimum(largest, 248) / 8) + np.floor(np.maximum(largest - 240, 0) / 16)


@formula(source="a graph's nodes take memory of the driver: by layer of the stage, size and kind of graph")
def graph_bytes_chip(graph: Byte, layers: Number, sizes: Number, kinds: Number, stage_share: Number) -> Byte:
    """Bytes of the CUDA graphs of a stage's layers (Llama-3.1-8B, 51 sizes of two kinds: 0.91 GiB logged).

    >>> round(float(graph_bytes_chip(0.3e6, 32, 51, 2, 1)) / 2**30, 2)
    0.91
    """
    return graph * layers * stage_share * sizes * kinds


@formula(source="definition")
def workspace_bytes(context: Byte, buffers: Byte, graphs: Byte, slots: Byte, padding: Byte) -> Byte:
    """Bytes of the process's context, of buffers for collectives, of graphs, of slots for requests, and of what rounding adds to weights.

    >>> round(workspace_bytes(0.51, 2.1, 0.91, 0.0, 0.18), 2)
    3.7
    """
    return context + buffers + graphs + slots + padding


@formula(source="as it says")
def usable_share(reported: Byte, utilization: Number) -> Byte:
    """Bytes of the card that may be used at all.

    >>> round(usable_share(79.1 * 2**30, 0.9) / 2**30, 2)
    71.19
    """
    return reported * utilization


@formula(source="llama.cpp: --fit-target leaves 1,024 MiB of each card; src/llama-model.cpp keeps the input layer's table on the host")
def llamacpp_share(reported: Byte, margin: Byte, embedding: Byte) -> Number:
    """Share of its cards that llama.cpp fills, counted with an embedding table that lies in the host's memory (gpt-oss-20b on 12 GiB).

    >>> round(float(llamacpp_share(12282 * 2**20, 1024 * 2**20, 615e6)), 3)
    0.964
    """
    return np.minimum((reported - margin + embedding) / reported, 1)


@formula(source=VLLM + "v1/worker/gpu_worker.py, determine_available_memory")
def vllm_usable(reported: Byte, utilization: Number, activations: Byte, workspace: Byte) -> Byte:
    """Bytes for weights and KV cache under vLLM: the share of the card, less peak activations, buffers and graphs.

    >>> round(float(vllm_usable(79.19, 0.95, 1.89, 0.25)) - 14.99, 2)
    58.1
    """
    return np.maximum(reported * utilization - activations - workspace, 0 * reported)


@formula(source=SGLANG + "srt/mem_cache/kv_cache_configurator.py, _profile_available_bytes; srt/distributed/bootstrap.py")
def sglang_usable(reported: Byte, fraction: Number, context: Byte, buffers: Byte, slots: Byte) -> Byte:
    """Bytes for weights and KV cache under SGLang: the static share of what is free before the weights, less slots of requests.

    >>> round(float(sglang_usable(79.1, 0.9, 0.51, 2.1, 0.0)), 2)
    68.84
    """
    return np.maximum((reported - context - buffers) * fraction - slots, 0 * reported)


@formula(source=TRTLLM + "free_gpu_memory_fraction of the memory beside the peak of a run of prompts")
def trtllm_usable(reported: Byte, fraction: Number, weights: Byte, activations: Byte, workspace: Byte) -> Byte:
    """Bytes for weights and KV cache under TensorRT-LLM: the weights, and the share of what they and a run of prompts leave.

    >>> round(float(trtllm_usable(139.81, 0.85, 84.0, 4.0, 3.46)), 2)
    125.1
    """
    return weights + np.maximum(reported - weights - activations - workspace, 0 * reported) * fraction


@formula(source="vLLM 0.33.0 (PyPI wheel), v1/core/kv_cache_planning.py: groups of layers draw blocks of one pool, all as large")
def block_bytes_chip(blocks: tuple[Byte, ...], stage_share: Number, cp: Number) -> Byte:
    """Bytes of the largest block on the fullest chip.

    >>> float(block_bytes_chip((655360.0,), 1, 1))
    655360.0
    """
    return functools.reduce(np.maximum, blocks) * stage_share / cp


@formula(source="engines hold whole blocks of tokens")
def whole_blocks(room: Byte, block: Byte, reported: Byte) -> Byte:
    """Bytes of the blocks that fit; all of the room where a cache does not grow by blocks.

    >>> float(whole_blocks(1000.0, 300.0, 8000.0)), round(float(whole_blocks(1000.0, 0.0, 8000.0)), 6)
    (900.0, 1000.0)
    """
    size = np.maximum(block, 1e-12 * reported)
    return np.floor(room / size) * size


@formula(source="definition")
def block_rest(room: Byte, kv: Byte) -> Byte:
    """Bytes less than a block, which hold no cache.

    >>> block_rest(1000.0, 900.0)
    100.0
    """
    return room - kv


@formula(source="what is left of the whole by its parts")
def left_bytes_chip(reported: Byte, usable: Byte, activations: Byte, workspace: Byte) -> Byte:
    """Bytes that the share of the card leaves to no one: below zero, steps and graphs need more than it leaves them (SGLang).

    >>> round(left_bytes_chip(79.19, 73.09, 1.89, 0.25), 2)
    3.96
    """
    return reported - usable - activations - workspace


@formula(source="definition")
def memory_share(weights: Byte, kv: Byte, activations: Byte, workspace: Byte, reported: Byte) -> Number:
    """Share of the card that weights, a load's KV cache, steps and graphs take.

    >>> memory_share(70.0, 5.0, 2.0, 1.0, 80.0)
    0.975
    """
    return (weights + kv + activations + workspace) / reported


@formula(source="definition; tokens of the sequences of one length that fit, as vLLM counts them")
def room_tokens(sequences: Number, context: Token, dp: Number) -> Token:
    """Tokens of KV cache of a replica, all its ranks of attention.

    >>> float(room_tokens(58.11, 8192.0, 1))
    476037.0
    """
    return np.floor(sequences * context) * dp


@formula(source=SGLANG + "srt/arg_groups/memory_hook.py: 512 MiB, 1.5 MiB a token, 2 MiB a captured sequence, 1 GiB for 8 chips")
def static_fraction(reported: Byte, tokens: Number, captured: Number, chips: Number, sequence: Byte, least: Byte) -> Number:
    """The share that SGLang takes where none is named; `sequence`: bytes of a captured one, `least`: what a large card keeps (H100).

    >>> round(float(static_fraction(81559.0, 8192, 256, 1, 2.0, 10240.0)), 3)
    0.835
    """
    return 1 - np.maximum((256 + 0.75 * tokens + captured + 64 * chips) * sequence, least) / reported


@formula(source="an engine's log of its start: KV room is linear in the sequences of one length that fit")
def logged_kv_bytes(sequences: Number, sequence: Byte) -> Byte:
    """KV bytes of a chip on which so many sequences fit, as the engine counted them (Llama-3.1-8B, 58.11 of 8,192 tokens).

    >>> round(float(logged_kv_bytes(58.107, 1.074e9)) / 2**30, 1)
    58.1
    """
    return sequences * sequence


@formula(source="definition: a start sets aside what its log says, whatever share of the card the engine has")
def kv_bytes_beyond(kv: Byte, factor: Number) -> Byte:
    """KV bytes of a chip beyond those of the laws, by a log that found so many times their room; below zero where it found less.

    >>> kv_bytes_beyond(40e9, 1.25), kv_bytes_beyond(40e9, 0.75)
    (10000000000.0, -10000000000.0)
    """
    return kv * (factor - 1)


@formula(source="definition")
def share_of_start(usual: Number, factor: Number) -> Number:
    """Share of the card that an engine was started with, by its log.

    >>> round(share_of_start(0.9, 1.0555556), 3)
    0.95
    """
    return usual * factor


@formula(source="definition")
def left_beside(unused: Byte, beyond: Byte) -> Byte:
    """Bytes that the share of the card leaves to no one, less those that a log found for KV cache.

    >>> left_beside(8e9, 2e9)
    6000000000.0
    """
    return unused - beyond


@formula(source="definition")
def with_bytes_beyond(room: Byte, beyond: Byte) -> Byte:
    """A room with the bytes that a log found beyond it; none is negative.

    >>> float(with_bytes_beyond(40e9, 2e9))
    42000000000.0
    """
    return np.maximum(room + beyond, 0 * room)


@formula(source="Little's law: of B answers of O tokens, B / O end in a step, each with prompt and answer in the cache")
def freed_kv_bytes(batch: Number, prompt: Token, output: Token, kv_bytes_per_token: BytePerToken) -> Byte:
    """KV cache that a full batch frees per step, which the next prompts may take: requests that end times what each holds.

    >>> round(freed_kv_bytes(64, 8000, 1000, 327680.0) / 1e6, 1)  # Llama-3.1-70B, bf16
    188.7
    """
    return batch / output * (prompt + output) * kv_bytes_per_token * ONE_TOKEN
