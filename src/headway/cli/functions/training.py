"""`train` and `scale` as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from headway.cli.functions.call import call
from headway.cli.functions.serving import with_machine
from headway.report.result import Result

if TYPE_CHECKING:
    from headway.cli.functions.flags import Machine, Subject
    from headway.cli.functions.verb_flags import ScaleFlags, TrainFlags


def train(model: Subject | None = None, system: Machine | None = None, **flags: Unpack[TrainFlags]) -> Result:
    """Layout, step time, memory, MFU, days and cost of a training run: `headway train`."""
    return call("train", [model], with_machine(flags, system))


def scale(**flags: Unpack[ScaleFlags]) -> Result:
    """How far to over-train, from scaling laws and the tokens to be served: `headway scale`.

    >>> round(scale(flop=5.76e23, beside="none")[0]["active"] / 1e9)
    72
    """
    return call("scale", [], flags)
