"""SGLang: `python -m sglang.launch_server`. Its tp counts every chip of a stage; attention data and context parallelism divide it."""

from __future__ import annotations

from headway.launch.ask import Ask, context_why, expert_why, heads_why, kv_why, port, weights_why

PORT, INIT_PORT = 30000, 20000
CACHE = {"bf16": "bf16", "fp8": "fp8_e4m3", "fp4": "nvfp4"}
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
ONLINE = {"fp8": "fp8", "fp4": "nvfp4_online", "nvfp4": "nvfp4_online"}


def layout_why(asked: Ask) -> str:
    """Why SGLang cannot express a layout, or ""."""
    if _copies(asked) and asked.hosts > 1:
        return f"the {asked.dp} data-parallel copies of a dense model must share one host"
    return heads_why(asked, asked.tp * asked.cp) or expert_why(asked) or context_why(asked)


def format_why(asked: Ask) -> str:
    """Why SGLang cannot make these formats, or ""."""
    return weights_why(asked, (*DTYPES, *ONLINE)) or kv_why(asked, CACHE)


def write(asked: Ask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines and notes."""
    words = ["python -m sglang.launch_server", f"--model-path {asked.model}", *_ways(asked), *_limits(asked), *_formats(asked)]
    if asked.hosts > 1:
        words.append(f"--nnodes {asked.hosts} --node-rank $NODE --dist-init-addr $HEAD:{INIT_PORT}")
    return (" ".join(words),), _notes(asked)


def _copies(asked: Ask) -> bool:
    """A dense model has nothing to share between data-parallel ranks: they are whole copies."""
    return asked.dp > 1 and not asked.needs.shape.experts


def _ways(asked: Ask) -> list[str]:
    words = [f"--tp-size {asked.tp * asked.cp if _copies(asked) else asked.ways}"]
    if asked.pp > 1:
        words.append(f"--pp-size {asked.pp}")
    if asked.dp > 1:
        words.append(f"--{'dp-size' if _copies(asked) else 'attn-dp-size'} {asked.dp}")
    if asked.cp > 1:
        words.append(f"--dcp-size {asked.cp}")
    if asked.ep > 1:
        words.append(f"--ep-size {asked.ep}")
        if asked.spare:
            words.append(f"--ep-num-redundant-experts {asked.spare}")
    if asked.dp > 1 and asked.tp * asked.cp == 1 and asked.needs.widths and asked.needs.dense:
        words.append("--moe-dense-tp-size 1")
    return words


def _limits(asked: Ask) -> list[str]:
    words = []
    if asked.batch:
        words.append(f"--max-running-requests {asked.per_rank if _copies(asked) else asked.batch}")
    if asked.length:
        words.append(f"--context-length {asked.length}")
    if asked.memory:
        words.append(f"--mem-fraction-static {asked.memory:g}")
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


def _notes(asked: Ask) -> tuple[str, ...]:
    notes = []
    if asked.hosts > 1:
        notes.append(f"{asked.hosts} hosts: run it on each as NODE=0..{asked.hosts - 1}; $HEAD is the address of host 0")
    if not _copies(asked) and asked.ways > asked.tp:
        notes.append(f"--tp-size is tp*cp*dp = {asked.ways}: attention data and context parallelism divide it")
    if asked.cp > 1:
        notes.append(f"SGLang also splits the projections over the {asked.cp} context-parallel chips")
    if asked.dp > 1 and asked.ep == asked.ways:
        notes.append("every rank gathers all tokens by default; --moe-a2a-backend deepep sends each where it is needed")
    if asked.ep > 1 and asked.spare:
        notes.append(f"SGLang holds as many experts on every chip: {asked.spare} copies fill the last ones")
    return tuple(notes)
