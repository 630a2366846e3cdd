"""Column names that are slips: a table may have columns of its own, but none that is nearly, or means, one that is read."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path

from headway.core.errors import BadFile

NEAR = 0.85  # of difflib's ratio, from which a name is a misspelling
# Names under which other verbs and tools know the columns of measured rows.
MEANT = {
    "weights": "weight_precision", "quantization": "weight_precision", "kv": "kv_precision", "kv_cache_dtype": "kv_precision",
    "prompt": "isl", "input_len": "isl", "output": "osl", "output_len": "osl", "context": "context_len", "batch": "batch_or_concurrency",
    "concurrency": "batch_or_concurrency", "users": "batch_or_concurrency", "chips": "n_chips", "gpus": "n_chips", "num_gpus": "n_chips",
    "chip": "hardware", "gpu": "hardware", "machine": "hardware", "seq": "seq_len",
}  # fmt: skip


def refuse_slips(path: str | Path, header: Sequence[str], known: Collection[str]) -> None:
    """Raise BadFile for a column that stands for a known one which is not there: its values would be taken as not stated."""
    absent = [name for name in known if name not in header]
    for name in header:
        if not name or name in known:
            continue
        plain = name.lower().replace(" ", "_").replace("-", "_")
        meant = MEANT.get(plain) or next(iter(difflib.get_close_matches(plain, absent, 1, NEAR)), "")
        if meant in absent:
            raise BadFile(path, f"column {name!r} is not read; did you mean {meant}? A column of your own needs a name less like it")
