"""Write estimates.json again: `python tests/contract/replay/regenerate.py`, after a change of a law that is meant to change numbers.

A refactor must not need it. Read the diff before committing it: it is the effect of the change on 40 machines. A new point is one more
entry in `POINTS`; one that is drawn at random is an entry in `SEEDS`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "src")]

from headway.performance.layout import Layout  # noqa: E402
from support.cases import IDEAL, Point, drawn  # noqa: E402

AT_CONTEXT = (("batch", 48), ("context", 9000))
REQUESTS = (("batch", 96), ("prompt", 8192), ("output", 1024))
POINTS = [
    Point("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), AT_CONTEXT),
    Point("llama-3.1-70b", "8xh100-sxm", Layout(tp=8), REQUESTS),
    Point("llama-3.1-70b", "8xh100-sxm", Layout(tp=2, pp=2, replicas=2), REQUESTS, formats=(("weights", "fp8"), ("kv", "fp8"))),
    Point("llama-3.1-405b", "16xh100-sxm", Layout(tp=8, pp=2), REQUESTS),
    Point("deepseek-v3", "gb200-nvl72", Layout(ep=72, dp=72), (("batch", 4608), ("prompt", 8192), ("output", 1024))),
    Point("deepseek-v3", "gb200-nvl72", Layout(tp=4, dp=16, ep=64), AT_CONTEXT),
    Point("deepseek-v3", "gb200-nvl72", Layout(tp=2, ep=18, dp=9, pp=2, replicas=2), REQUESTS),
    Point("deepseek-v3.2", "8xb200", Layout(dp=8, ep=8), (("batch", 64), ("context", 100_000))),
    Point("deepseek-v4-pro", "8xb300", Layout(tp=8, ep=8), REQUESTS),
    Point("gpt-oss-120b", "h100", load=REQUESTS),
    Point("gpt-oss-120b", "8xmi300x", Layout(tp=2, ep=4, dp=2), AT_CONTEXT),
    Point("mixtral-8x7b-v0.1", "h200", load=AT_CONTEXT, assumed=tuple(IDEAL.items())),
    Point("mistral-7b-v0.1", "a100-sxm-80", load=(("batch", 8), ("context", 20_000)), assumed=(("overlap", "serial"),)),
    Point("llama-4-maverick-17b-128e", "8xh200-sxm", Layout(tp=8, ep=8), (("batch", 32), ("context", 200_000))),
    Point("qwen3-next-80b-a3b", "16xh100-sxm", Layout(tp=2, dp=8, ep=16), REQUESTS),
    Point("ai21-jamba-1.5-large", "8xh100-sxm", Layout(tp=8), REQUESTS),
    Point("mamba2-2.7b", "tpu-v5e", load=REQUESTS),
    Point("palm-540b", "tpu-v4-4x4x4", Layout(tp=16, cp=4), AT_CONTEXT, formats=(("weights", "int8"),)),
    Point("gpt2", "rtx-4090", load=(("batch", 1), ("prompt", 100), ("output", 100))),
    Point("llama-3.1-8b", "h100", load=(("batch", 100_000), ("context", 100_000))),
]
SEEDS = range(3000, 3020)


def estimates() -> dict[str, dict[str, Any]]:
    """Each point's row, by the point's name."""
    return {point.full_id: point.row() for point in (*POINTS, *(drawn(seed) for seed in SEEDS))}


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in estimates().items()]
    (HERE / "estimates.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
