"""TensorRT-LLM: `trtllm-serve` and an options file. Attention is all tensor parallel or all data parallel; its tp counts both."""

from __future__ import annotations

from headway.serving.launch.needs import DTYPES, FlagNames, LaunchRequest, context_why, copies_why, kv_why, limits, offload_why, weights_why

NAMES = FlagNames(
    sequences="--max_batch_size", tokens="--max_num_tokens", length="--max_seq_len", memory="--kv_cache_free_gpu_memory_fraction",
    host="--host", port="--port", first_port=8000,
)  # fmt: skip
CACHE = {"bf16": "auto", "fp8": "fp8", "fp4": "nvfp4"}
TYPES = {"mtp": "MTP", "eagle": "Eagle3", "model": "DraftTarget"}
FRACTION = 0.9  # KV cache share of the memory that weights leave free: the server's default


def layout_why(request: LaunchRequest) -> str:
    """Why TensorRT-LLM cannot express a layout, or ""."""
    if request.layout.dp > 1 and request.layout.tp > 1:
        return (
            f"attention is tensor parallel or data parallel over all {request.stage_chips} chips, "
            f"not tp={request.layout.tp} and dp={request.layout.dp} together"
        )
    return context_why(request, "TensorRT-LLM") or copies_why(request, "TensorRT-LLM")


def format_why(request: LaunchRequest) -> str:
    """Why TensorRT-LLM cannot serve these formats, or ""."""
    hosted = offload_why(request, "TensorRT-LLM", "has no flag for it")
    return hosted or weights_why(request, tuple(DTYPES)) or kv_why(request, CACHE)


def hosts(request: LaunchRequest) -> int:
    """Hosts of one replica."""
    return request.hosts


def write(request: LaunchRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Command lines and notes for TensorRT-LLM."""
    words = ["trtllm-serve", request.model, f"--tp_size {request.stage_chips}"]
    if request.hosts > 1:
        words = ["trtllm-llmapi-launch", *words, f"--gpus_per_node {request.chips // request.hosts}"]
    if request.layout.pp > 1:
        words.append(f"--pp_size {request.layout.pp}")
    if request.layout.ep > 1:
        words.append(f"--ep_size {request.layout.ep}")
    micro_batch = None if request.per_rank is None else -(-request.per_rank // request.layout.pp)  # of one rank in one stage
    words += limits(request, NAMES, micro_batch)
    options = _options(request)
    if not options:
        return (" ".join(words),), _notes(request)
    text = "\\n".join(options)
    name = f"trtllm-{request.role}.yaml" if request.role else "trtllm.yaml"
    return (f"printf '{text}\\n' > {name}", " ".join([*words, f"--extra_llm_api_options {name}"])), _notes(request)


def _options(request: LaunchRequest) -> list[str]:
    """Lines of the options file, for settings without a flag."""
    lines = []
    if request.precision.weights:
        lines.append(f"dtype: {DTYPES[request.precision.weights]}")
    if request.layout.dp > 1:
        lines.append("enable_attention_dp: true")
    if request.spare:
        slots = request.needs.shape.experts + request.spare
        lines += ["moe_config:", "  load_balancer:", f"    num_slots: {slots}", "    layer_updates_per_iter: 1"]
    if CACHE.get(request.precision.kv, "auto") != "auto":
        # kv_cache_config in the file may replace that of the command line, so the memory share is repeated here
        share = request.memory or FRACTION
        lines += ["kv_cache_config:", f"  dtype: {CACHE[request.precision.kv]}", f"  free_gpu_memory_fraction: {share:g}"]
    if request.eager:
        lines.append("cuda_graph_config: null")
    if request.role == "prefill":
        lines.append("disable_overlap_scheduler: true")  # context servers do not support the overlap
    if request.role:
        lines += ["cache_transceiver_config:", "  backend: NIXL"]
        lines += [f"  max_tokens_in_buffer: {request.length}"] if request.length else []
    if request.speculation is not None:
        drafts = request.speculation
        lines += ["speculative_config:", f"  decoding_type: {TYPES[drafts.kind]}", f"  max_draft_len: {drafts.tokens}"]
        model = "'$DRAFT'" if drafts.model == "$DRAFT" else drafts.model  # the shell's variable stands outside its quotes
        lines += [f"  speculative_model: {model}"] if model else []
    return lines


def _notes(request: LaunchRequest) -> tuple[str, ...]:
    notes = []
    if request.hosts > 1:
        notes.append(
            f"{request.hosts} hosts: start it under srun or mpirun with {request.chips} tasks, {request.chips // request.hosts} a host"
        )
    if request.layout.dp > 1:
        attention = "with enable_attention_dp each of those chips runs attention for its own requests"
        notes.append(f"--tp_size is dp = {request.layout.dp}: {attention}")
    if request.batch and (request.layout.dp > 1 or request.layout.pp > 1):
        notes.append("--max_batch_size counts for each attention rank and pipeline micro-batch")
    if request.spare:
        notes.append(
            f"TensorRT-LLM holds as many experts on every chip: {request.spare} copies fill the last ones, moved by load as it runs"
        )
    if request.role == "decode":
        notes.append("trtllm-serve disaggregated -c FILE pairs the pools; FILE lists context_servers and generation_servers by url")
    if request.precision.kv == "fp4":
        notes.append("an nvfp4 KV cache needs a checkpoint calibrated for it")
    return tuple(notes)
