"""The question of `measure`: what is measured on this machine, and where it goes."""

from __future__ import annotations

from headway.core.question import Question, field
from headway.reality.measure.run import DEVICES

OF_DECODE = ("record", "prediction")
SWITCH = "switch"


class Measure(Question):
    """This machine measured: matmul rate by format and rows, bandwidth past the caches, calls, links, as a chip of every verb."""

    verb, answered_by = "measure", "headway.answers.measure"
    example = "measure --quick --threads 1"
    no_page = "it loads this machine for minutes, and a page beside it would spoil the times; run `headway measure` at a terminal"
    modes = (
        ("", "what this machine reaches, as a chip of yours with --save NAME"),
        ("--decode", "steps and prompts of small decoders, predicted from the measured machine alone, then measured"),
    )
    pictures = (
        ("roofline", "measured matmuls under the roof of measured peak and bandwidth"),
        ("points", "measured against predicted times of --decode"),
    )
    subjects = ()
    edits = ("catalog",)
    no_edits = "a verb about a machine of the catalogue or a model; measure is about this machine"
    progress = "times measured"
    save = field(kind="word", word="NAME", help="keep it under this name: serve, plan, fits and others then take --on NAME", default="")
    threads = field(word="N", integer=True, low=1, open_low=False, high=4096, help="threads of the library (default: all cores it may use)")
    device = field(choices=DEVICES, help="processor, or card by torch (default: a card where torch sees one)")
    quick = field(kind=SWITCH, help="fewer sizes and rounds", default=False)
    limit_memory = field("byte", word="BYTES", low=1, open_low=False, help="memory that it may take (default: a quarter of this machine's)")
    decode = field(kind=SWITCH, help="predict steps of small decoders from the measured machine, then measure them", default=False)
    record = field(kind="word", word="NAME", help="with --decode: start from what --save kept, in place of measuring", default="")
    prediction = field(
        kind="output", word="FILE.json", help="with --decode: where the prediction goes before the first step is measured",
        default="measure-decode.json",
    )  # fmt: skip

    def idle(self) -> dict[str, str]:
        """What belongs to decoding alone, and what a saved machine settles."""
        if not self.decode:
            return dict.fromkeys(OF_DECODE, "--decode")
        return dict.fromkeys(("save", "device", "threads"), "no --record beside it: the saved machine says it") if self.record else {}
