"""One published measurement of serving, in SI, and the CSV reader; a malformed row is reported with its line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headway.core.measured import CHIP_TOKEN_RATE, DEGREE, LENGTH, REQUEST_RATE, TOKEN_RATE, TPOT, TTFT, USERS
from headway.evidence.rows.csv_file import BadRow, NumberColumn, RowFormat, read_csv

MODES = ("decode_step", "prefill", "serving_concurrency", "offline_throughput", "disagg")


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLog:
    """When each request of a run was sent, in seconds from the first, and its lengths in tokens; in the order of sending."""

    arrival: tuple[float, ...]
    prompt: tuple[int, ...]
    output: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One measured row; None or "" for what it does not state. Times in seconds, rates in tokens per second."""

    line: int
    id: str
    model: str
    hardware: str
    mode: str
    config: str = ""  # path of the model's config.json
    chips: int | None = None
    engine: str = ""
    engine_version: str = ""
    date: str = ""  # as in the source, year first
    month: str = ""  # of the measurement, or in which the engine's version appeared; year first
    weights: str = ""
    kv: str = ""
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None
    prompt: float | None = None
    output: float | None = None
    context: float | None = None  # mean KV length during decode
    concurrency: float | None = None  # batch or users, over all chips
    ttft_s: float | None = None
    tpot_s: float | None = None
    output_tok_per_s: float | None = None  # sum over all chips
    input_tok_per_s: float | None = None  # sum over all chips
    tok_per_s_chip: float | None = None  # output tokens; input tokens for a prefill row
    source: str = ""
    reliability: str = ""
    roofline: str = ""
    request_rate: float | None = None  # offered requests per second; None in a closed loop
    requests: float | None = None  # of the run
    prefill_workers: int | None = None  # of a disaggregated row; in both kinds of worker dp is attention data parallelism
    prefill_tp: int | None = None
    prefill_ep: int | None = None
    prefill_dp: int | None = None
    decode_workers: int | None = None
    decode_tp: int | None = None
    decode_ep: int | None = None
    decode_dp: int | None = None
    itl_s: float | None = None  # median time between tokens: a step without prompts, while most steps have none
    decoding: float | None = None  # sequences that decoded at once, over all chips: mean over the run, as its times say
    log: RequestLog | None = None  # requests of the run, where the file has them


NEEDED = ("id", "model", "hardware", "mode")
TEXTS = {"id": "id", "model": "model", "hardware": "hardware", "mode": "mode", "engine": "engine", "engine_version": "engine_version",
         "weight_precision": "weights", "kv_precision": "kv", "source_key": "source", "reliability": "reliability",
         "roofline": "roofline", "source_date": "date", "date": "month", "config": "config"}  # fmt: skip
POOLS = tuple(f"{pool}_{what}" for pool in ("prefill", "decode") for what in ("workers", "tp", "ep", "dp"))
NUMBERS = (
    NumberColumn(header="n_chips", field="chips", q=DEGREE),
    *(NumberColumn(header=name, field=name, q=DEGREE) for name in ("tp", "ep", "pp", "dp", *POOLS)),
    NumberColumn(header="isl", field="prompt", q=LENGTH),
    NumberColumn(header="osl", field="output", q=LENGTH),
    NumberColumn(header="context_len", field="context", q=LENGTH),
    NumberColumn(header="batch_or_concurrency", field="concurrency", q=USERS),
    NumberColumn(header="output_tok_s_total", field="output_tok_per_s", q=TOKEN_RATE),
    NumberColumn(header="input_tok_s_total", field="input_tok_per_s", q=TOKEN_RATE),
    NumberColumn(header="tok_s_per_chip", field="tok_per_s_chip", q=CHIP_TOKEN_RATE),
    NumberColumn(header="rate_req_s", field="request_rate", q=REQUEST_RATE),
    NumberColumn(header="ttft_ms", field="ttft_s", q=TTFT, scale=1e-3),
    NumberColumn(header="tpot_ms", field="tpot_s", q=TPOT, scale=1e-3),
)  # fmt: skip
MEASURED = ("ttft_s", "tpot_s", "output_tok_per_s", "input_tok_per_s", "tok_per_s_chip")


def read_rows(path: str | Path, measured: bool = True) -> tuple[list[MeasuredRow], list[BadRow]]:
    """Rows of a CSV file (`measured`: with measured values), and its malformed lines; BadFile if the file cannot be read."""
    return read_csv(path, MeasuredRow, _columns(measured))


def _columns(measured: bool) -> RowFormat:
    """Columns of measured rows; without measured values those columns are known and not read."""
    skipped = () if measured else MEASURED
    return RowFormat(what="measured rows", needed=NEEDED, texts=TEXTS, numbers=NUMBERS, choices={"mode": MODES}, skipped=skipped)
