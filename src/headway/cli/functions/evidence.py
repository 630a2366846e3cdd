"""`score` and `predict` as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from headway.cli.functions.call import call
from headway.report.result import Result

if TYPE_CHECKING:
    from headway.cli.functions.flags import File
    from headway.cli.functions.verb_flags import PredictFlags, ScoreFlags


def score(rows: File | None = None, **flags: Unpack[ScoreFlags]) -> Result:
    """Measured runs beside predictions: `headway score`. `rows` is a table of runs; `vllm=`, `aiperf=` and others your benchmark."""
    return call("score", [rows], flags)


def predict(rows: File, **flags: Unpack[PredictFlags]) -> Result:
    """TTFT, TPOT and tokens/s of a table of runs, each with floor and interval: `headway predict`."""
    return call("predict", [rows], flags)
