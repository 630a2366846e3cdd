"""vLLM: `vllm serve`. Experts lie on all tensor- and data-parallel chips or on none; context parallelism re-uses tensor-parallel chips."""

from __future__ import annotations

from headway.launch.ask import Ask, context_why, copies_why, expert_why, heads_why, kv_why, port, weights_why

PORT, RPC_PORT = 8000, 13345
CACHE = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp8": "fp8",
    "int8": "int8_per_token_head",
    "int4": "int4_per_token_head",
    "fp4": "nvfp4",
}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
ONLINE = {
    "fp8": "fp8_per_tensor",
    "int8": "int8_per_channel_weight_only",
    "fp4": "nvfp4_per_token",
    "nvfp4": "nvfp4_per_token",
}


def layout_why(asked: Ask) -> str:
    """Why vLLM cannot express a layout, or ""."""
    if asked.ep not in (1, asked.ways):
        return f"expert parallelism is off (ep=1) or over all tp*cp*dp = {asked.ways} chips, not {asked.ep}"
    return heads_why(asked, asked.tp * asked.cp) or expert_why(asked) or copies_why(asked, "vLLM") or context_why(asked)


def format_why(asked: Ask) -> str:
    """Why vLLM cannot make these formats, or ""."""
    return weights_why(asked, (*DTYPES, *ONLINE)) or kv_why(asked, CACHE)


def write(asked: Ask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines and notes."""
    words = ["vllm serve", asked.model, f"--tensor-parallel-size {asked.tp * asked.cp}"]
    if asked.pp > 1:
        words.append(f"--pipeline-parallel-size {asked.pp}")
    if asked.dp > 1:
        words.append(f"--data-parallel-size {asked.dp}")
    if asked.ep > 1:
        words.append("--enable-expert-parallel")
    if asked.cp > 1:
        words.append(f"--decode-context-parallel-size {asked.cp}")
    line = " ".join(words + _limits(asked) + _formats(asked))
    return _hosts(asked, line), _notes(asked)


def _limits(asked: Ask) -> list[str]:
    words = []
    if asked.per_rank:
        words.append(f"--max-num-seqs {asked.per_rank}")
    if asked.length:
        words.append(f"--max-model-len {asked.length}")
    if asked.memory:
        words.append(f"--gpu-memory-utilization {asked.memory:g}")
    if asked.replicas > 1:
        words.append(f"--port {port(asked, PORT)}")
    return words


def _formats(asked: Ask) -> list[str]:
    words = []
    if asked.weights in DTYPES:
        words.append(f"--dtype {DTYPES[asked.weights]}")
    elif asked.weights:
        words.append(f"--quantization {ONLINE[asked.weights]}")
    if asked.kv:
        words.append(f"--kv-cache-dtype {CACHE[asked.kv]}")
    return words


def _hosts(asked: Ask, line: str) -> tuple[str, ...]:
    """The line, or one for the first host and one for each other host, of number $NODE."""
    rank = asked.tp * asked.cp * asked.pp
    if asked.hosts == 1 or asked.host is None:
        return (line,)
    if rank > asked.host:
        if asked.dp > 1:
            return (f"VLLM_RAY_DP_PACK_STRATEGY=span {line} --data-parallel-backend ray --distributed-executor-backend ray",)
        across = f"{line} --nnodes {asked.hosts} --master-addr $HEAD"
        return (f"{across} --node-rank 0", f"{across} --node-rank $NODE --headless")
    local = _ranks_per_host(asked, rank)
    across = f"{line} --data-parallel-size-local {local} --data-parallel-address $HEAD --data-parallel-rpc-port {RPC_PORT}"
    return (across, f"{across} --headless --data-parallel-start-rank $(({local} * NODE))")


def _ranks_per_host(asked: Ask, rank: int) -> int:
    """The most data-parallel ranks that one host holds, equal on every host."""
    most = (asked.host or rank) // rank
    return max(count for count in range(1, most + 1) if asked.dp % count == 0)


def _notes(asked: Ask) -> tuple[str, ...]:
    notes = []
    rank = asked.tp * asked.cp * asked.pp
    if asked.hosts > 1 and asked.host:
        if rank > asked.host and asked.dp > 1:
            notes.append(f"a data-parallel rank spans hosts: start it on a Ray cluster of {asked.hosts} hosts")
        else:
            hosts = asked.hosts if rank > asked.host else asked.dp // _ranks_per_host(asked, rank)
            notes.append(f"{hosts} hosts: the first line on host 0, of address $HEAD, the second on hosts NODE=1..{hosts - 1}")
    if asked.dp > 1 and asked.batch:
        notes.append(f"--max-num-seqs counts for each of the {asked.dp} data-parallel ranks")
    if asked.cp > 1:
        notes.append(f"--tensor-parallel-size is tp*cp: vLLM also splits the projections over the {asked.cp} context-parallel chips")
    if asked.dp > 1 and asked.ep > 1:
        notes.append("every rank gathers all tokens by default; --all2all-backend deepep_low_latency sends each where it is needed")
    if asked.kv in ("int8", "int4", "fp4"):
        notes.append(f"not every attention backend reads a {CACHE[asked.kv]} KV cache")
    return tuple(notes)
