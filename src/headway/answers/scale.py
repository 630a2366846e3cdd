"""`headway scale --flop 1e25`, `--active 100B --serve 50M/s --months 2 --rl 0.67`, `--moe --active 30B --experts 64..512*2`."""

from __future__ import annotations

from typing import Any

from headway.core import schema
from headway.core.errors import BadValue
from headway.report import output, scale
from headway.training.questions import Scale
from headway.training.scaling.inputs import RECORDS, Budget, FewBits, ReinforcementLearning, Routing, ServedTokens, Uncertainty
from headway.training.scaling.scale import listing, question

GROUPS = {
    Budget: "budget: one is split best, two of compute, size and tokens give the third",
    ServedTokens: "serving: what a model is over-trained for",
    ReinforcementLearning: "reinforcement learning",
    Routing: "experts",
    FewBits: "formats of few bits (a soft law)",
}


def run(args: Scale) -> output.Answer:
    """Answer with a row per law and point, laws with a result first."""
    inputs: dict[str, Any] = {}
    for record in RECORDS:
        values = schema.read(args, record)
        inputs |= values
    request = question(inputs, _doubt(args), args.law, args.beside.strip().lower(), args.moe)
    return output.Answer(
        listing(request),
        describe=lambda rows: scale.words(request, list(rows)),
        pictures=scale.pictures(request),
        most=200,
    )


def _doubt(args: Scale) -> Uncertainty:
    values = schema.read(args, Uncertainty)
    for name, value in values.items():
        if isinstance(value, tuple):
            raise BadValue(schema.flag(name), getattr(args, name), "one value")
    return schema.defaults(Uncertainty, values)
