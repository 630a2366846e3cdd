"""vLLM: `vllm serve`. Expert parallelism spans all tensor- and data-parallel chips or none."""

from __future__ import annotations

import math

from headway.serving.launch.needs import (
    DTYPES,
    FlagNames,
    LaunchRequest,
    Speculation,
    context_why,
    copies_why,
    formats,
    kv_why,
    limits,
    port,
    weights_why,
)

VOCAB_BLOCK = 64  # DEFAULT_VOCAB_PADDING_SIZE of vllm/model_executor/layers/vocab_parallel_embedding.py
GIB = 2**30
RPC_PORT, SIDE_PORT = 13345, 5600
NAMES = FlagNames(
    sequences="--max-num-seqs", tokens="--max-num-batched-tokens", length="--max-model-len", memory="--gpu-memory-utilization",
    host="--host", port="--port", first_port=8000,
)  # fmt: skip
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}
CACHE = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "fp8",
    "int8": "int8_per_token_head",
    "int4": "int4_per_token_head",
    "fp4": "nvfp4",
}
ONLINE = {
    "fp8": "fp8_per_tensor",
    "int8": "int8_per_channel_weight_only",
    "fp4": "nvfp4_per_token",
    "nvfp4": "nvfp4_per_token",
}


def layout_why(request: LaunchRequest) -> str:
    """Why vLLM cannot express a layout, or ""."""
    if request.layout.ep not in (1, request.stage_chips):
        return f"expert parallelism is off (ep=1) or over all tp*cp*dp = {request.stage_chips} chips, not {request.layout.ep}"
    vocab, tp = request.needs.vocab, request.layout.tp
    padded = -(-vocab // VOCAB_BLOCK) * VOCAB_BLOCK
    split = f"tp {tp} does not divide the vocabulary of {vocab}, padded to {padded}" if padded % tp else ""
    return context_why(request, "vLLM") or copies_why(request, "vLLM") or split


def format_why(request: LaunchRequest) -> str:
    """Why vLLM cannot serve these formats, or ""."""
    return weights_why(request, (*DTYPES, *ONLINE)) or kv_why(request, CACHE)


def hosts(request: LaunchRequest) -> int:
    """Hosts of one replica: whole data-parallel ranks on each, where a rank fits a host."""
    rank = request.layout.tp * request.layout.pp
    if request.hosts == 1 or request.host is None:
        return 1
    return request.hosts if rank > request.host else request.layout.dp // _ranks_per_host(request, rank)


def write(request: LaunchRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Command lines and notes for vLLM."""
    words = ["vllm serve", request.model, f"--tensor-parallel-size {request.layout.tp}"]
    if request.layout.pp > 1:
        words.append(f"--pipeline-parallel-size {request.layout.pp}")
    if request.layout.dp > 1:
        words.append(f"--data-parallel-size {request.layout.dp}")
    if request.layout.ep > 1:
        words.append("--enable-expert-parallel")
    words += limits(request, NAMES, request.per_rank) + formats(request, ONLINE, CACHE)
    if request.host_bytes is not None:
        words.append(f"--offload-backend uva --cpu-offload-gb {math.ceil(request.host_bytes / GIB)} --cpu-offload-params experts")
    if request.eager:
        words.append("--enforce-eager")
    if request.speculation is not None:
        words.append(_speculation(request.speculation))
    if request.role:  # hand a prompt's KV cache from the prefill pool to the decode pool
        words.append(f"""--kv-transfer-config '{{"kv_connector":"NixlConnector","kv_role":"{ROLES[request.role]}"}}'""")
        side = port(request, SIDE_PORT, request.layout.dp)  # for each data-parallel rank of each replica
        words[0] = f"VLLM_NIXL_SIDE_CHANNEL_HOST=$HOST VLLM_NIXL_SIDE_CHANNEL_PORT={side} {words[0]}"
    return _hosts(request, " ".join(words)), _notes(request)


METHODS = {"mtp": "mtp", "eagle": "eagle3", "model": "draft_model"}


def _speculation(drafts: Speculation) -> str:
    """The flag of speculation, whose value is JSON; a variable stands outside the quotes."""
    name = f"'{drafts.model}'" if drafts.model.startswith("$") else drafts.model.strip("'")
    model = f'"model":"{name}",' if drafts.model else ""
    return f"""--speculative-config '{{"method":"{METHODS[drafts.kind]}",{model}"num_speculative_tokens":{drafts.tokens}}}'"""


def _hosts(request: LaunchRequest, line: str) -> tuple[str, ...]:
    """The command line, or a line for the first host and a line for each further host, numbered $NODE."""
    rank = request.layout.tp * request.layout.pp
    if request.hosts == 1 or request.host is None:
        return (line,)
    if rank > request.host:
        if request.layout.dp > 1:
            return (f"VLLM_RAY_DP_PACK_STRATEGY=span {line} --data-parallel-backend ray --distributed-executor-backend ray",)
        across = f"{line} --nnodes {request.hosts} --master-addr $HEAD"
        return (f"{across} --node-rank 0", f"{across} --node-rank $NODE --headless")
    local = _ranks_per_host(request, rank)
    across = f"{line} --data-parallel-size-local {local} --data-parallel-address $HEAD --data-parallel-rpc-port {RPC_PORT}"
    return (across, f"{across} --headless --data-parallel-start-rank $(({local} * NODE))")


def _ranks_per_host(request: LaunchRequest, rank: int) -> int:
    """Most data-parallel ranks per host, equal on every host."""
    most = (request.host or rank) // rank
    return max(count for count in range(1, most + 1) if request.layout.dp % count == 0)


def _notes(request: LaunchRequest) -> tuple[str, ...]:
    notes = []
    rank = request.layout.tp * request.layout.pp
    if request.hosts > 1 and request.host:
        if rank > request.host and request.layout.dp > 1:
            notes.append(f"a data-parallel rank spans hosts: start it on a Ray cluster of {request.hosts} hosts")
        else:
            count = hosts(request)
            notes.append(f"{count} hosts: the first line on host 0, of address $HEAD, the second on hosts NODE=1..{count - 1}")
    if request.layout.dp > 1 and request.batch:
        notes.append(f"--max-num-seqs counts for each of the {request.layout.dp} data-parallel ranks")
    if request.layout.dp > 1 and request.layout.ep > 1:
        notes.append("every rank gathers all tokens by default; --all2all-backend deepep_low_latency sends each where it is needed")
    if request.role:
        notes.append("$HOST is the address of the host; prompts go to the prefill pool first, by a router such as vllm-router")
    if request.precision.kv in ("int8", "int4", "fp4"):
        notes.append(f"not every attention backend reads a {CACHE[request.precision.kv]} KV cache")
    return tuple(notes)
