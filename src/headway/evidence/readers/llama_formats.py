"""The five formats of llama-bench's output as the same records: JSON, JSON lines, CSV, SQL and Markdown."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from headway.errors import BadFile
from headway.evidence.readers.files import json_records
from headway.evidence.readers.record import RecordLine

# Markdown's short column names, by the fields they stand for.
_COLUMNS = {"model": "model_type", "backend": "backends", "ngl": "n_gpu_layers", "threads": "n_threads", "sm": "split_mode",
            "fa": "flash_attn", "nkvo": "no_kv_offload", "embd": "embeddings", "dev": "devices", "ts": "tensor_split",
            "ot": "tensor_buft_overrides", "mmap": "use_mmap"}  # fmt: skip
_TEST = re.compile(r"(?:pp\s*(\d+))?\s*\+?\s*(?:tg\s*(\d+))?\s*(?:@\s*d(\d+))?", re.IGNORECASE)
_INSERT = re.compile(r"INSERT INTO\s+\w+\s*\(([^)]*)\)\s*VALUES\s*\((.*)\)\s*;?\s*$", re.IGNORECASE)
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_DEVICE = re.compile(r"^\s*Device \d+: ([^,\n]+),", re.MULTILINE)  # what CUDA and ROCm print as they start
_BUILD = re.compile(r"^build: \w+ \((\d+)\)", re.MULTILINE)


def records(text: str, path: str | Path) -> Iterator[RecordLine]:
    """Each test, with its line; the format is told by the text itself. BadFile where it is none of the five."""
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
    """Rows of each table; GPUs from the lines that came before, where they were kept."""
    build = _BUILD.search(text)
    shared = {"gpu_info": ", ".join(_DEVICE.findall(text)), "build_number": build[1] if build else ""}
    columns: list[str] = []
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.lstrip().startswith("|") else []
        if not cells or not cells[0].strip("-: "):
            continue
        if cells[0] == "model":
            columns = [_COLUMNS.get(cell, cell) for cell in cells]
        elif columns and len(cells) == len(columns):
            yield _tabled(dict(zip(columns, cells, strict=True)), shared, number)
        elif columns:
            yield RecordLine(line=number, record=None, why=f"{len(cells)} cells under {len(columns)} column names")


def _tabled(row: dict[str, str], shared: dict[str, str], number: int) -> RecordLine:
    """A row of a Markdown table with `test` and `t/s` taken apart."""
    test = _TEST.fullmatch(row.get("test", ""))
    if test is None or not any(test.groups()):
        return RecordLine(
            line=number, record=None, why=f"test: got {row.get('test', '')!r}; wants one such as pp512, tg128 or tg128 @ d512"
        )
    prompt, generated, depth = (part or "0" for part in test.groups())
    rate = re.split(r"\s*(?:±|\+/-|Â±)", row.get("t/s", ""))[0].strip()
    return RecordLine(line=number, record=shared | row | {"n_prompt": prompt, "n_gen": generated, "n_depth": depth, "avg_ts": rate})


def _csv(lines: list[str], header: int, path: str | Path) -> Iterator[RecordLine]:
    try:
        columns = next(csv.reader([lines[header]]))
        for number, line in enumerate(lines[header + 1 :], header + 2):
            if not line.strip():
                continue
            cells = next(csv.reader([line]))
            if len(cells) == len(columns):
                yield RecordLine(line=number, record=dict(zip(columns, cells, strict=True)))
            else:
                yield RecordLine(line=number, record=None, why=f"{len(cells)} cells under {len(columns)} column names")
    except csv.Error as error:
        raise BadFile(path, f"is not CSV ({error})") from None


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
