"""Reader of `llama-bench -o json|jsonl|csv|sql|md`: a record per test, a prompt (pp) or a generation (tg), at batch 1.

Format: ggml-org/llama.cpp, tools/llama-bench/llama-bench.cpp (`test::get_fields`, the printers) and its README; names of GGUF types from
src/llama-model-loader.cpp, `llama_model_ftype_name`. `avg_ts` and `avg_ns` are means over repetitions. Markdown omits the GPU and
the file's name: give --on and --model. Values follow the rules of files.py in every format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from headway.core.csv_text import csv_header, csv_lines, refuse_twins, width_error
from headway.core.errors import BadFile, UnknownName, clip
from headway.core.measured import LAYERS, LENGTH, RUN_TIME, USER_TOKEN_RATE
from headway.evidence.readers import files
from headway.evidence.readers.files import Record, RecordLine, RunFields, RunMachine, Unusable, json_records, model, one_model, place
from headway.evidence.rows import names
from headway.evidence.rows.row import BadRow, MeasuredRow
from headway.models.config import model as find_model

# Short column names of the Markdown table, for each field.
_COLUMNS = {"model": "model_type", "backend": "backends", "ngl": "n_gpu_layers", "threads": "n_threads", "sm": "split_mode",
            "fa": "flash_attn", "nkvo": "no_kv_offload", "embd": "embeddings", "dev": "devices", "ts": "tensor_split",
            "ot": "tensor_buft_overrides", "mmap": "use_mmap"}  # fmt: skip
_TEST = re.compile(r"(?:pp\s*(\d+))?\s*\+?\s*(?:tg\s*(\d+))?\s*(?:@\s*d(\d+))?", re.IGNORECASE)
_INSERT = re.compile(r"INSERT INTO\s+\w+\s*\(([^)]*)\)\s*VALUES\s*\((.*)\)\s*;?\s*$", re.IGNORECASE)
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_DEVICE = re.compile(r"^\s*Device \d+: ([^,\n]+),", re.MULTILINE)  # printed by CUDA and ROCm at start
_BUILD = re.compile(r"^build: \w+ \((\d+)\)", re.MULTILINE)


def records(text: str, path: str | Path) -> Iterator[RecordLine]:
    """Tests of a text, each with its line; the format is detected. BadFile if it is none of the five."""
    lines = text.splitlines()
    if any(re.match(r"\|\s*model\s*\|", line) for line in lines):
        return _markdown(lines, text)
    if any(line.lstrip().upper().startswith("INSERT INTO") for line in lines):
        return _sql(lines)
    header = next((at for at, line in enumerate(lines) if "n_prompt" in line and "n_gen" in line), None)
    if header is not None and re.match(r'"?\w+"?,', lines[header]):
        return _csv(lines, header, path)
    if re.search(r"^\s*[\[{]", text, re.MULTILINE):
        return json_records(text, path)
    raise BadFile(path, "is no output of llama-bench: neither JSON, CSV, SQL nor a Markdown table")


def _markdown(lines: list[str], text: str) -> Iterator[RecordLine]:
    """Rows of each Markdown table, `test` and `t/s` split into fields; GPUs from the log lines before the table, if present."""
    build = _BUILD.search(text)
    shared = {"gpu_info": ", ".join(_DEVICE.findall(text)), "build_number": build[1] if build else ""}
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if not cells or not cells[0].strip("-: "):
            continue
        if cells[0] == "model":
            columns = [_COLUMNS.get(cell, cell) for cell in cells]
        elif columns and len(cells) != len(columns):
            yield RecordLine(line=number, record=None, why=f"{len(cells)} cells under {len(columns)} column names")
        elif columns:
            row = dict(zip(columns, cells, strict=True))
            test = _TEST.fullmatch(row.get("test", ""))
            if test is None or not any(test.groups()):
                why = f"test: got {row.get('test', '')!r}; wants one such as pp512, tg128 or tg128 @ d512"
                yield RecordLine(line=number, record=None, why=why)
                continue
            counts = dict(zip(("n_prompt", "n_gen", "n_depth"), (part or "0" for part in test.groups()), strict=True))
            rate = re.split(r"\s*(?:±|\+/-|Â±)", row.get("t/s", ""))[0].strip()
            yield RecordLine(line=number, record=shared | row | counts | {"avg_ts": rate})


def _csv(lines: list[str], header: int, path: str | Path) -> Iterator[RecordLine]:
    rows = csv_lines("\n".join(lines[header:]))
    columns = csv_header(rows, path)
    refuse_twins(columns, path)
    for number, cells, why in rows:
        wrong = why or width_error(cells, len(columns))
        yield RecordLine(line=header + number, record=None if wrong else dict(zip(columns, cells, strict=False)), why=wrong)


def _sql(lines: list[str]) -> Iterator[RecordLine]:
    for number, line in enumerate(lines, 1):
        if not line.lstrip().upper().startswith("INSERT INTO"):
            continue
        parts = _INSERT.search(line)
        columns = [name.strip() for name in parts[1].split(",")] if parts else []
        values = _QUOTED.findall(parts[2]) if parts else []
        if parts and len(columns) == len(values):
            yield RecordLine(line=number, record=dict(zip(columns, values, strict=True)))
        else:
            yield RecordLine(line=number, record=None, why="is no whole INSERT of llama-bench")


WHAT = "this output of llama-bench"
SOURCE = "llama-bench"
_DESCRIBED = re.compile(r"(.+?)\s+(?:mostly |all )?((?:I?Q\d|TQ\d|MXFP4|NVFP4|BF16|F16|F32)\w*.*)", re.IGNORECASE)
_SIZES = {"small": "s", "medium": "m", "large": "l"}
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_QUANTISED = re.compile(r"[-_.](?:UD-)?(?:I?Q\d|TQ\d|MXFP4|NVFP4|BF16|F16|F32)\w*$", re.IGNORECASE)
LATENT = ("deepseek2",)  # architectures whose cache is one latent vector
_NO_GPU = ("CPU", "BLAS", "ZenDNN")


def read(path: str | Path, user_input: RunFields) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Measured row of each test in a file, and the tests without a row with the reason; BadFile or BadValue if unreadable."""
    entries = list(records(files.text_of(path), path))
    one_model(user_input, (_stem(entry.record) or files.text(entry.record, "model_type") for entry in entries if entry.record), WHAT)
    return files.rows_of(path, entries, lambda test, line, name: _row(test, line, name, user_input))


def _row(test: Record, line: int, name: str, user_input: RunFields) -> MeasuredRow:
    prompt, generated = files.number(test, "n_prompt", LENGTH) or 0.0, files.number(test, "n_gen", LENGTH) or 0.0
    depth = files.number(test, "n_depth", LENGTH) or 0.0
    _refuse(test, prompt, generated, depth)
    at = place(user_input, _run_place(test, user_input), WHAT)
    rate = _rate(test, prompt + generated)
    described = _DESCRIBED.fullmatch(files.text(test, "model_type"))
    model_name = _model(test, described[1] if described else files.text(test, "model_type"), user_input)
    _refuse_offload(test, model_name)
    build = files.count(test, "build_number")
    decode = generated > 0
    return files.measured_row(
        user_input, at, line=line, id=name, model=model_name, mode="decode_step" if decode else "prefill", engine="llama.cpp",
        engine_version=f"b{build}" if build else "", month=files.month(test, "test_time"),
        weights=_format(described[2]) if described else "",
        kv=files.text(test, "type_k") or "f16", prompt=depth if decode else prompt, output=generated,
        context=depth + generated / 2 if decode else None, concurrency=1.0, ttft_s=None if decode else prompt / rate,
        tpot_s=1 / rate if decode else None, output_tok_per_s=rate if decode else None, input_tok_per_s=None if decode else rate,
        source=SOURCE, reliability="A", roofline="yes",
    )  # fmt: skip


def _refuse(test: Record, prompt: float, generated: float, depth: float) -> None:
    """Raise Unusable for tests whose measurement does not fit a row."""
    if not prompt and not generated:
        raise Unusable("n_prompt and n_gen: missing or 0, so no test of llama-bench")
    if prompt and generated:
        raise Unusable(f"pp{prompt:g}+tg{generated:g}: one time for a prompt and a generation, which are two quantities")
    if prompt and depth:
        raise Unusable(f"pp{prompt:g} @ d{depth:g}: a prompt behind a filled cache, and a row's prompt begins with an empty one")
    keys, values = files.text(test, "type_k") or "f16", files.text(test, "type_v") or "f16"
    is_latent = files.text(test, "model_type").startswith(LATENT)  # whose cache is the keys alone
    if keys != values and not is_latent:
        raise Unusable(f"keys in {keys} and values in {values}: a row has one format for both")
    for key, what in (("embeddings", "an embedding run"), ("no_kv_offload", "the KV cache was in the host's memory")):
        if files.flag(test, key):
            raise Unusable(f"{key}: {what}")
    if files.number(test, "n_cpu_moe", LAYERS):
        raise Unusable("n_cpu_moe: experts were in the host's memory")
    if files.text(test, "tensor_buft_overrides") not in ("", "none"):
        raise Unusable("tensor_buft_overrides: tensors were placed by hand")
    if any("RPC" in part for part in _backends(test)):
        raise Unusable("backends: RPC servers, whose network is not told")


def _refuse_offload(test: Record, model_name: str) -> None:
    """Raise Unusable if some layers ran on the host; the catalogue gives the number of layers."""
    on_gpu = test.get("n_gpu_layers")
    if not _on_gpu(test) or on_gpu in (None, "") or str(on_gpu).startswith("-"):  # -1: all layers, or all that fit
        return
    offloaded = files.number(test, "n_gpu_layers", LAYERS) or 0.0
    if offloaded < 99 and offloaded < (layers := sum(int(block.count) for block in find_model(model_name).blocks)):
        raise Unusable(f"n_gpu_layers: {offloaded:g} of {layers} layers were on the GPU, the others on the host")


def _rate(test: Record, tokens: float) -> float:
    """Tokens per second: from the mean time, else the mean rate."""
    seconds = files.positive(test, RUN_TIME, "avg_ns", scale=1e-9)
    rate = files.needed(test, USER_TOKEN_RATE, "avg_ts") if seconds is None else tokens / seconds
    if not USER_TOKEN_RATE.low <= rate <= USER_TOKEN_RATE.high:
        wants = f"{USER_TOKEN_RATE.low:g} to {USER_TOKEN_RATE.high:g}"
        raise Unusable(f"avg_ns: got {clip(test['avg_ns'])}, which is {rate:.3g} tokens/s; wants {wants}")
    return rate


def _on_gpu(test: Record) -> bool:
    has_gpu = bool(files.text(test, "gpu_info")) or any(part not in ("", *_NO_GPU) for part in _backends(test))
    return has_gpu and files.text(test, "devices") != "none"


def _backends(test: Record) -> list[str]:
    return [part.strip() for part in (files.text(test, "backends") or files.text(test, "backend")).split(",")]


def _run_place(test: Record, user_input: RunFields) -> RunMachine:
    """Chips and layout of a test: split by layers (pipeline stages) or by rows (tensor parallel)."""
    cards = [card.strip() for card in re.split(r",\s|/", files.text(test, "gpu_info")) if card.strip()]
    cards = cards if _on_gpu(test) else [files.text(test, "cpu_info").removesuffix(", CPU")]
    devices = files.text(test, "devices")
    if devices not in ("", "auto", "none"):
        cards = cards[: devices.count("/") + 1] or cards
    if len(set(cards)) > 1 and not user_input.hardware:
        raise Unusable(f"gpu_info: chips of several kinds ({', '.join(sorted(set(cards)))}); --on names those that took part")
    split = files.text(test, "split_mode") or "layer"
    chips = user_input.chips or (1 if split == "none" else len(cards) or None)
    name = cards[0] if cards else ""
    if not chips or user_input.tp or user_input.pp:
        return RunMachine(hardware=name, chips=chips)
    return RunMachine(hardware=name, chips=chips, tp=chips if split == "row" else 1, pp=1 if split == "row" else chips)


def _model(test: Record, described: str, user_input: RunFields) -> str:
    """Model from the command line, else from the file's name; not from llama.cpp's description ("llama 7B" for Mistral 7B)."""
    model_name = model(user_input, _stem(test), f"{WHAT} ({described or 'a model'}: many are described so)")
    try:
        return names.model_name(model_name)
    except UnknownName as error:
        raise (error if user_input.model else Unusable(f"model_filename: {error}; or --model says what it is")) from None


def _stem(test: Record) -> str:
    """File name without folder, part number and quantisation."""
    name = PurePosixPath(files.text(test, "model_filename").replace("\\", "/")).name
    name = name[: -len(".gguf")] if name.lower().endswith(".gguf") else name
    return _QUANTISED.sub("", _SHARD.sub("", name))


def _format(described: str) -> str:
    """Short name of a file type that llama.cpp describes: "Q4_K - Medium" is gguf_q4_k_m."""
    kind, _, size = described.replace("(guessed)", "").partition(" - ")
    kind = kind.strip().lower().removesuffix(" moe")
    name = "_".join(filter(None, (kind, _SIZES.get(size.strip().lower(), ""))))
    return name if kind in ("f16", "bf16", "f32", "mxfp4", "nvfp4") else f"gguf_{name}"
