"""Which benchmark wrote a file, by what its first record holds; a table of runs is none of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection
from pathlib import Path

from headway.core.csv_text import csv_lines
from headway.core.errors import BadFile
from headway.evidence.readers import files, requests

TABLE = ""  # of runs
PROFILE = "profile"  # of calibration
# Keys of a record, all of which are there, by the flag of the reader; the first that fits reads the file.
SIGNS = (
    ("guidellm", {"benchmarks"}), ("trtllm_bench", {"request_info", "performance"}), ("llama_bench", {"n_prompt", "n_gen"}),
    ("aiperf", {"request_throughput", "request_latency"}), ("aiperf", {"metric"}), ("inferencex", {"hw", "conc"}),
    ("inferencex", {"framework", "conc"}), ("vllm", {"completed", "total_input_tokens"}), ("vllm", {"elapsed_time", "total_num_tokens"}),
    ("vllm", {"avg_latency", "latencies"}),
)  # fmt: skip
NEEDED = {"id", "model", "hardware"}  # columns of every table of runs
HEADER_LINES = 50  # among which the names of a table's columns are, below what a tool prints first
OWN_PREDICTIONS = "holds headway's own predictions, not measurements: calibrate wants what was measured"
_TABLE_OF_LLAMA_BENCH = re.compile(r"^\|\s*model\s*\||^\s*INSERT INTO\b", re.MULTILINE | re.IGNORECASE)
_RECORD = re.compile(r"\s*(?:\[\s*)?\{")


def tool_of(path: str | Path) -> str:
    """Flag of the reader of a file or folder; TABLE of a table of runs, PROFILE of a profile. BadFile of headway's own predictions."""
    if Path(path).is_dir():
        return "aiperf"
    if Path(path).suffix == ".toml":
        return PROFILE
    text = files.text_of(path)
    if _TABLE_OF_LLAMA_BENCH.search(text):
        return "llama_bench"
    lines = text.splitlines()
    begin = next((line for line in lines if _RECORD.match(line) or line.strip() == "["), None)
    if begin is not None and not _names(lines[0]) >= NEEDED:
        return _of_json(text, path)
    for line in lines[:HEADER_LINES]:
        tool = _of_keys(_names(line))
        if tool:
            return tool
    _refuse_predictions(_names(lines[0]), path)
    return TABLE


def _of_json(text: str, path: str | Path) -> str:
    """The reader of JSON records, by the first that can be decoded."""
    decoded = (entry.record for entry in itertools.islice(files.json_records(text, path), HEADER_LINES))
    record = next((record for record in decoded if record is not None), None)
    if record is None:
        raise BadFile(path, "is not JSON that can be read, or was cut off")
    if {"headway", "command", "rows"} <= record.keys():
        raise BadFile(path, OWN_PREDICTIONS)
    tool = _of_keys({key.lower() for key in record}) or ("requests" if requests.is_request(record) else "")
    if not tool:
        raise BadFile(path, "is the output of no benchmark that is known: vLLM, SGLang, AIPerf, GuideLLM, InferenceX, llama-bench, "
                            "trtllm-bench or requests one by one")  # fmt: skip
    return tool


def _of_keys(names: Collection[str]) -> str:
    """The reader of a record with these keys, or of a table with these columns; "" of none."""
    present = set(names)
    if present >= NEEDED:
        return TABLE
    known = next((tool for tool, keys in SIGNS if keys <= present), "")
    return known or ("requests" if requests.is_request(dict.fromkeys(names)) else "")


def _names(line: str) -> set[str]:
    """Columns that a line names."""
    return {cell.strip().strip('"').lower() for _, cells, _ in csv_lines(line) for cell in cells}


def _refuse_predictions(names: Collection[str], path: str | Path) -> None:
    """Raise BadFile for a table whose columns are predictions: one with both of its ends."""
    if any({f"{name}_lo", f"{name}_hi"} <= set(names) for name in names):
        raise BadFile(path, OWN_PREDICTIONS)
