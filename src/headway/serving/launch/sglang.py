"""SGLang: `python -m sglang.launch_server`. Its tp counts every chip of a stage; attention data parallelism divides it."""

from __future__ import annotations

from dataclasses import replace

from headway.serving.launch.needs import (
    DTYPES,
    FlagNames,
    LaunchRequest,
    Speculation,
    context_why,
    formats,
    kv_why,
    limits,
    offload_why,
    port,
    weights_why,
)

INIT_PORT, BOOTSTRAP_PORT = 20000, 8998
NAMES = FlagNames(
    sequences="--max-running-requests", tokens="--chunked-prefill-size", length="--context-length", memory="--mem-fraction-static",
    host="--host", port="--port", first_port=30000,
)  # fmt: skip
CACHE = {"bf16": "bf16", "fp8": "fp8_e4m3", "fp4": "nvfp4"}
ONLINE = {"fp8": "fp8", "fp4": "nvfp4_online", "nvfp4": "nvfp4_online"}


def layout_why(request: LaunchRequest) -> str:
    """Why SGLang cannot express a layout, or ""."""
    return context_why(request, "SGLang")


def format_why(request: LaunchRequest) -> str:
    """Why SGLang cannot serve these formats, or ""."""
    hosted = offload_why(request, "SGLang", "moves whole layers")
    return hosted or weights_why(request, (*DTYPES, *ONLINE)) or kv_why(request, CACHE)


def hosts(request: LaunchRequest) -> int:
    """Hosts of one replica."""
    return request.hosts


def write(request: LaunchRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Command lines and notes for SGLang."""
    layout = request.layout
    words = ["python3 -m sglang.launch_server", f"--model-path {request.model}", f"--tp-size {request.stage_chips}"]
    if layout.pp > 1:
        words.append(f"--pp-size {layout.pp}")
    if layout.dp > 1:
        words.append(f"--attn-dp-size {layout.dp}")
    if layout.ep > 1:
        words.append(f"--ep-size {layout.ep}")
        if request.spare:
            words.append(f"--ep-num-redundant-experts {request.spare}")
    if layout.dp > 1 and layout.tp == 1 and request.needs.shape.experts and request.needs.dense:
        words.append("--moe-dense-tp-size 1")
    words += limits(request, NAMES, request.batch) + formats(request, ONLINE, CACHE)
    if request.eager:
        words.append("--disable-decode-cuda-graph --disable-prefill-cuda-graph")
    if request.speculation is not None:
        words.append(_speculation(request.speculation))
    if request.role:  # hand a prompt's KV cache from the prefill pool to the decode pool
        words.append(f"--disaggregation-mode {request.role} --disaggregation-transfer-backend nixl")
    if request.role == "prefill":
        words.append(f"--disaggregation-bootstrap-port {port(replace(request, role=''), BOOTSTRAP_PORT)}")
    if request.hosts > 1:
        words.append(f"--nnodes {request.hosts} --node-rank $NODE --dist-init-addr $HEAD:{INIT_PORT}")
    return (" ".join(words),), _notes(request)


ALGORITHMS = {"mtp": "EAGLE", "eagle": "EAGLE3", "model": "STANDALONE"}


def _speculation(drafts: Speculation) -> str:
    """The flags of speculation: one chain of drafts, each step of which yields one; the token before them is verified too."""
    model = f" --speculative-draft-model-path {drafts.model}" if drafts.model else ""
    counts = f"--speculative-num-steps {drafts.tokens} --speculative-eagle-topk 1 --speculative-num-draft-tokens {drafts.tokens + 1}"
    return f"--speculative-algorithm {ALGORITHMS[drafts.kind]}{model} {counts}"


def _notes(request: LaunchRequest) -> tuple[str, ...]:
    notes = []
    if request.hosts > 1:
        notes.append(f"{request.hosts} hosts: run it on each as NODE=0..{request.hosts - 1}; $HEAD is the address of host 0")
    if request.stage_chips > request.layout.tp:
        notes.append(f"--tp-size is tp*dp = {request.stage_chips}: attention data parallelism divides it")
    if request.layout.dp > 1 and request.layout.ep == request.stage_chips:
        notes.append("every rank gathers all tokens by default; --moe-a2a-backend deepep sends each where it is needed")
    if request.role == "decode":
        notes.append("python3 -m sglang_router.launch_router --pd-disaggregation --prefill URL --decode URL pairs the pools")
    if request.layout.ep > 1 and request.spare:
        notes.append(f"SGLang holds as many experts on every chip: {request.spare} copies fill the last ones")
    return tuple(notes)
