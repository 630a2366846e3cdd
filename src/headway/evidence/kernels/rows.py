"""Measured kernels: the sound rows of each table, with measured seconds and work as seconds at the datasheet peak."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from headway.core import user_file
from headway.core.errors import BadFile, MissingExtra
from headway.hardware.chip import chip
from headway.laws.step.parts import SCAN_CHUNK
from headway.performance.expert_kernels import BACKENDS, SPREAD_OUT, selected

FAMILY = (("a100", "ampere"), ("a800", "ampere"), ("h100", "hopper"), ("h200", "hopper"), ("h800", "hopper"), ("h20", "hopper"),
          ("b200", "blackwell"), ("b300", "blackwell"))  # fmt: skip
Column = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRows:
    """Rows of one class and dtype; the columns are arrays of equal length."""

    chip: Column
    shape: Column  # code of the shape: errors correlate within a shape
    seconds: Column
    work: tuple[Column, ...]  # arguments of the class's law, in seconds at peak

    def __len__(self) -> int:
        return len(self.seconds)

    def where(self, keep: Column) -> KernelRows:
        """Rows where `keep` is true."""
        return replace(
            self, chip=self.chip[keep], shape=self.shape[keep], seconds=self.seconds[keep], work=tuple(column[keep] for column in self.work)
        )


@dataclass(frozen=True, slots=True)
class KernelTable:
    """A measured table, as columns."""

    columns: dict[str, Column]
    origin: object = "measured kernels"

    def __getattr__(self, name: str) -> Column:
        if name not in self.columns:
            raise BadFile(self.origin, f"has no column {name}, only {', '.join(self.columns)}")
        return self.columns[name]

    def where(self, keep: Column) -> KernelTable:
        """Rows where `keep` is true."""
        return KernelTable({name: column[keep] for name, column in self.columns.items()}, self.origin)


def table(folder: Path, name: str) -> KernelTable:
    """Table `name` of the folder (parquet), with text columns as numpy strings."""
    try:
        from pyarrow import ArrowException, BufferReader, parquet
    except ImportError as error:
        raise MissingExtra("parquet files", "table") from error
    path = folder / f"{name}.parquet"
    data = user_file.data_of(path, user_file.KERNELS)
    try:
        read = parquet.read_table(BufferReader(data))
    except (ArrowException, OSError, ValueError):
        raise BadFile(path, "cannot be read as a parquet table") from None
    columns = {}
    for column in read.column_names:
        values = read.column(column).combine_chunks().to_numpy(zero_copy_only=False)
        columns[column] = values.astype(str) if values.dtype == object else values
    return KernelTable(columns, path)


def family(name: str) -> str:
    """Family of a measured chip; "other" for the rest."""
    return next((value for start, value in FAMILY if name.startswith(start)), "other")


def per_chip(names: Column, fact: str) -> Column:
    """Datasheet value of each row's chip."""
    known, place = np.unique(names, return_inverse=True)
    return np.array([float(getattr(chip(str(name)), fact) or np.nan) for name in known])[place]


def fastest(rows: KernelTable, keys: tuple[str, ...]) -> KernelTable:
    """Rows of the fastest backend of each case, which show the hardware and not one library."""
    codes = shape_codes(*(getattr(rows, key) for key in keys))
    order = np.lexsort((rows.latency_s, codes))
    first = np.concatenate([[True], codes[order][1:] != codes[order][:-1]])
    return rows.where(order[first])


def thinned(rows: KernelRows, most: int, seed: int = 4) -> KernelRows:
    """At most `most` rows per chip, drawn with a fixed seed."""
    keep = np.zeros(len(rows), bool)
    rng = np.random.default_rng(seed)
    for name in np.unique(rows.chip):
        indices = np.flatnonzero(rows.chip == name)
        keep[indices if len(indices) <= most else rng.choice(indices, most, replace=False)] = True
    return rows.where(keep)


def shape_codes(*columns: Column) -> Column:
    """Integer code of each distinct combination of the columns."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, place = np.unique(column, return_inverse=True)
        codes = codes * len(values) + place
    return np.unique(codes, return_inverse=True)[1]


ELEMENT = {  # bytes per weight
    "bf16": 2.0, "fp8": 1.0, "fp8_tensor": 1.0, "nvfp4": 4.5 / 8, "mxfp4": 4.25 / 8, "mxfp4_a8": 4.25 / 8, "weight_only": 4.25 / 8,
}  # fmt: skip
PEAK = {
    "bf16": "peak_bf16", "fp8": "peak_fp8", "fp8_tensor": "peak_fp8", "nvfp4": "peak_fp4", "mxfp4": "peak_bf16", "mxfp4_a8": "peak_fp4",
    "weight_only": "peak_bf16",
}  # fmt: skip
EXPERT_LABELS = {
    "bf16": ("bfloat16",), "fp8": ("fp8_block",),  # the format in which checkpoints of experts are published,
    "fp8_tensor": ("fp8",),  # and that of their conversion after training
    "nvfp4": ("nvfp4",), "mxfp4": ("w4a16_mxfp4",), "mxfp4_a8": ("w4a8_mxfp4_mxfp8",), "weight_only": ("int4_wo",),
}  # fmt: skip
DOUBTFUL = 1 | 2 | 4 | 8  # flags: above a peak, or repeats that disagree
MOST_M = 16384
LEAST_WIDTH = 256  # least width of an expert on a rank: narrower experts test the splitting and are not served
WIDENED = "weight_only"  # weights of 4 bits, arithmetic in 16: Marlin's, which is as old as the A100's other kernels and still runs
OLD = "a100_sxm_80"  # measured with engines a year older than the others, without a tuned kernel for experts
MOST_GROUP = 64  # query heads that share a KV head
SMALL = 2e6  # bytes that any memory reads in less than a microsecond
TILE, PROCESSORS = 128, 128  # queries per attention tile; processors (SMs) of these chips, roughly
LATENT, ROPE, HEAD = 512, 64, 128  # dimensions of DeepSeek's multi-head latent attention


def gemm(folder: Path, dtype: str) -> KernelRows:
    """GEMMs of the sizes of served models; work: compute, weights, activations."""
    labels = {"bf16": ("bfloat16",), "fp8": ("fp8", "fp8_block"), "nvfp4": ("nvfp4",), "weight_only": ("int4_wo", "int8_wo")}[dtype]
    rows = table(folder, "gemm")
    eager = (rows.backend == "vidur") | ((rows.backend == "vllm") & (rows.dtype == "fp8_block"))
    sound = np.isin(rows.dtype, labels) & ~eager & ((rows.flag & DOUBTFUL) == 0)
    rows = rows.where(sound & (rows.m <= MOST_M) & (rows.n >= 1024) & (rows.k >= 1024))
    keys = ("chip", "m", "n", "k") + (("dtype",) if dtype == "weight_only" else ())
    rows = fastest(rows, keys)
    m, n, k = (column.astype(float) for column in (rows.m, rows.n, rows.k))
    element = np.where(rows.dtype == "int8_wo", 1.0, ELEMENT[dtype])
    peak, bandwidth = per_chip(rows.chip, PEAK[dtype]), per_chip(rows.chip, "hbm_bw")
    work = (2 * m * n * k / peak, element * n * k / bandwidth, 2 * (m * k + m * n) / bandwidth)
    return KernelRows(chip=rows.chip, shape=shape_codes(rows.chip, rows.n, rows.k), seconds=rows.latency_s, work=work)


def moe(folder: Path, dtype: str) -> KernelRows:
    """Gated routed experts of a layer on one rank, with balanced routing; work: compute, weights, activations.

    `dtype` is a format, and after a point the backend whose kernels count: else those of the fastest backend of each case.
    Each token is read and written once; each pair of token and expert is gathered, multiplied and scattered.
    """
    form, _, backend = dtype.partition(".")
    rows = table(folder, "moe")
    sound = np.isin(rows.dtype, EXPERT_LABELS[form]) & ((rows.flag & DOUBTFUL) == 0)
    if backend == SPREAD_OUT:
        sound &= (rows.kernel == "deepepmoe") & (rows.distribution == "uniform")
    else:
        sound &= (rows.level == "fused_moe") & (rows.distribution == "balanced") & ((rows.backend == backend) | (not backend))
        sound &= _selected(rows, form)
    rows = rows.where(sound & (rows.n_mats == 3) & (rows.inter >= LEAST_WIDTH * rows.tp) & ((rows.chip != OLD) | (form == WIDENED)))
    rows = fastest(rows, ("chip", "hidden", "inter", "n_experts", "topk", "tp", "ep", "tokens"))
    hidden, inter, tokens = rows.hidden.astype(float), rows.inter / rows.tp, rows.tokens.astype(float)
    pairs, experts_per_rank = tokens * rows.topk / rows.ep, rows.n_experts / rows.ep
    active = np.minimum(experts_per_rank, np.maximum(pairs, 1.0))
    peak, bandwidth = per_chip(rows.chip, PEAK[form]), per_chip(rows.chip, "hbm_bw")
    matrices = 3 * hidden * inter
    own_tokens = tokens / rows.ep if backend == SPREAD_OUT else tokens  # a rank's own, which the exchange has brought
    activation_bytes = (pairs * (2 * hidden + 3 * inter) + 2 * own_tokens * hidden) * 2
    work = (2 * pairs * matrices / peak, active * matrices * ELEMENT[form] / bandwidth, activation_bytes / bandwidth)
    codes = shape_codes(rows.chip, rows.hidden, rows.inter, rows.n_experts, rows.topk, rows.tp, rows.ep)
    return KernelRows(chip=rows.chip, shape=codes, seconds=rows.latency_s, work=work)


def _selected(rows: KernelTable, form: str) -> Column:
    """Whether each row's kernel is one that its backend selects for the format on the row's chip, and no fall-back."""
    keep = np.zeros(len(rows.chip), bool)
    for name in np.unique(rows.chip):
        for backend in BACKENDS:
            choice = selected(backend, family(str(name)), form)
            measured = (rows.chip == name) & (rows.backend == backend) & (choice.measured == f"{form}.{backend}")
            keep |= measured & (np.char.find(rows.kernel, choice.kernel) >= 0) & ((rows.ep == 1) | (not choice.without_spread))
    return keep


def decode(folder: Path, dtype: str) -> KernelRows:
    """Decode attention; work: compute, KV read, and (sequence, KV head) pairs over the bandwidth."""
    rows = table(folder, "attention_decode")
    kv = {"bf16": "bfloat16", "fp8": "fp8"}[dtype]
    size = 2.0 * rows.batch * rows.kv_len * rows.n_kv_heads * rows.head_dim * ELEMENT[dtype]
    aliased = (rows.chip == OLD) & (rows.backend == "trtllm") & (size > 100e6)
    odd = (rows.head_dim == 192) | ((rows.backend == "trtllm") & (rows.n_heads == rows.n_kv_heads))
    sound = (rows.kv_dtype == kv) & (rows.window == 0) & ((rows.flag & (DOUBTFUL & ~2)) == 0) & ~aliased & ~odd
    group = rows.n_heads / rows.n_kv_heads
    sound &= (group <= MOST_GROUP) & (group >= (2 if dtype == "fp8" else 1))
    rows = rows.where(sound & _head(rows) & (rows.kv_len >= 128) & _cold(rows, size))
    rows = fastest(rows, ("chip", "n_heads", "n_kv_heads", "head_dim", "kv_len", "batch"))
    peak, bandwidth = per_chip(rows.chip, "peak_bf16"), per_chip(rows.chip, "hbm_bw")
    attended = rows.batch.astype(float) * rows.kv_len * rows.head_dim
    blocks = rows.batch * rows.n_kv_heads / bandwidth
    work = (4 * attended * rows.n_heads / peak, 2 * attended * rows.n_kv_heads * ELEMENT[dtype] / bandwidth, blocks)
    codes = shape_codes(rows.chip, rows.n_heads, rows.n_kv_heads, rows.head_dim)
    return KernelRows(chip=rows.chip, shape=codes, seconds=rows.latency_s, work=work)


def _head(rows: KernelTable) -> Column:
    return (rows.head_dim >= 64) & (rows.head_dim <= 256)


def _cold(rows: KernelTable, size: Column) -> Column:
    """Whether KV of `size` bytes comes from HBM, as in an engine, although a benchmark rereads the same KV.

    Sizes that fit in the last-level cache are excluded, except those below SMALL.
    """
    return (size < SMALL) | (size > 1.5 * per_chip(rows.chip, "sram"))


def _fills(rows: KernelTable) -> Column:
    """Whether prompts and heads give each processor a tile of queries; a smaller grid leaves processors idle."""
    return 1.0 * rows.isl * rows.batch * rows.n_heads >= TILE * PROCESSORS


def mla_decode(folder: Path, dtype: str) -> KernelRows:
    """Latent attention of decode (absorbed form); work: compute, the latent read once, and sequences over the bandwidth."""
    rows = table(folder, "mla_decode")
    kv = {"bf16": "bfloat16", "fp8": "fp8"}[dtype]
    sound = (rows.level == "kernel") & (rows.kv_dtype == kv) & (rows.backend != "vllm") & ((rows.flag & (DOUBTFUL & ~2)) == 0)
    cold = _cold(rows, 1.0 * rows.batch * rows.kv_len * (LATENT + ROPE) * ELEMENT[dtype])
    rows = fastest(rows.where(sound & cold & (rows.chip != OLD) & (rows.kv_len >= 128)), ("chip", "n_heads", "kv_len", "batch"))
    peak, bandwidth = per_chip(rows.chip, "peak_bf16"), per_chip(rows.chip, "hbm_bw")
    attended = rows.batch.astype(float) * rows.kv_len
    work = (
        2 * attended * rows.n_heads * (2 * LATENT + ROPE) / peak,
        attended * (LATENT + ROPE) * ELEMENT[dtype] / bandwidth,
        rows.batch / bandwidth,
    )
    return KernelRows(chip=rows.chip, shape=shape_codes(rows.chip, rows.n_heads, rows.batch), seconds=rows.latency_s, work=work)


def prefill(folder: Path, dtype: str) -> KernelRows:
    """Causal attention of whole prompts; work: query-key pairs, an extra token per query, and narrowness of the heads."""
    rows = table(folder, "attention_prefill")
    label = {"bf16": "bfloat16", "fp8": "fp8"}[dtype]
    sound = (rows.dtype == label) & (rows.kv_dtype == label) & (rows.window == 0) & ((rows.flag & DOUBTFUL) == 0)
    slow = (rows.head_dim == 256) & (rows.backend == "sglang") & (dtype == "fp8")
    rows = rows.where(sound & ~slow & _head(rows) & (rows.isl >= 64) & _fills(rows))
    rows = fastest(rows, ("chip", "n_heads", "n_kv_heads", "head_dim", "isl", "batch"))
    flop = 4.0 * rows.batch * rows.n_heads * rows.head_dim / per_chip(rows.chip, "peak_bf16")
    work = (flop * rows.isl * (rows.isl + 1.0) / 2, flop * rows.isl, np.maximum(HEAD / rows.head_dim, 1.0))
    codes = shape_codes(rows.chip, rows.n_heads, rows.n_kv_heads, rows.head_dim)
    return KernelRows(chip=rows.chip, shape=codes, seconds=rows.latency_s, work=work)


def mla_prefill(folder: Path, dtype: str) -> KernelRows:
    """Latent attention of prompts, expanded to heads; work: query-key pairs, and an extra token per query."""
    rows = table(folder, "mla_prefill")
    sound = (rows.level == "kernel") & (rows.kv_dtype == {"bf16": "bfloat16", "fp8": "fp8"}[dtype]) & ((rows.flag & DOUBTFUL) == 0)
    rows = fastest(
        rows.where(sound & (rows.backend != "vllm") & (rows.chip != OLD) & (rows.isl >= 64) & _fills(rows)),
        ("chip", "n_heads", "isl", "batch"),
    )
    flop = 2.0 * rows.batch * rows.n_heads * (HEAD + ROPE + HEAD) / per_chip(rows.chip, "peak_bf16")
    work = (flop * rows.isl * (rows.isl + 1.0) / 2, flop * rows.isl)
    return KernelRows(chip=rows.chip, shape=shape_codes(rows.chip, rows.n_heads, rows.batch), seconds=rows.latency_s, work=work)


def scan(folder: Path, dtype: str) -> KernelRows:
    """Scans of whole prompts by the gated delta rule; work: chunks of a sequence, and chunks of all heads of all sequences.

    `dtype` is bf16, and after a point the backend whose kernels count: else those of the fastest backend of each case.
    """
    backend = dtype.partition(".")[2]
    rows = table(folder, "linear_attention")
    sound = (
        (np.char.find(rows.kernel, "chunk_gated_delta_rule") == 0)
        & ((rows.flag & DOUBTFUL) == 0)
        & ((rows.backend == backend) | (not backend))
    )
    rows = fastest(rows.where(sound & (rows.seq_len >= SCAN_CHUNK)), ("chip", "num_k_heads", "num_v_heads", "seq_len", "batch"))
    chunks = rows.seq_len / SCAN_CHUNK
    codes = shape_codes(rows.chip, rows.num_k_heads, rows.num_v_heads)
    return KernelRows(chip=rows.chip, shape=codes, seconds=rows.latency_s, work=(chunks, chunks * rows.batch * rows.num_v_heads))


def elementwise(folder: Path, dtype: str) -> KernelRows:
    """Elementwise kernels (norms, activations, residuals, casts); work: bytes at peak."""
    rows = table(folder, "elementwise")
    unfused = (rows.backend == "sglang") | (rows.op == "norm")
    eager = (rows.backend == "vidur") & (rows.latency_s < 10e-6)  # resolution of a microsecond, launch included
    rows = rows.where(~unfused & ~eager & ((rows.flag & (4 | 8)) == 0) & (dtype == "bf16"))
    rows = fastest(rows, ("chip", "op", "rows", "cols"))
    work = (rows.bytes / per_chip(rows.chip, "hbm_bw"),)
    return KernelRows(chip=rows.chip, shape=shape_codes(rows.chip, rows.op, rows.cols), seconds=rows.latency_s, work=work)
