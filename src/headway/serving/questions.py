"""Questions that serving answers: `serve`, `fits`, and `solve`, which asks another verb again and again."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import MISSING, replace
from typing import Annotated, Any, ClassVar

from headway.core.errors import UnknownName
from headway.core.question import MODELS, REQUIRED, FlagGroup, FlagRecord, Question, declared, field, question_of
from headway.core.schema import Field
from headway.hardware.chip_price import TypedPrice
from headway.models.by_numbers import BY_NUMBERS
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.flag import OWN_RUNS
from headway.performance.layout import Layout
from headway.performance.workload import MOST, Load

DISAGGREGATION = ("auto", "only", "never")
DISAGGREGATE = Field(
    choices=DISAGGREGATION,
    truths=("only", "never"),
    help="pools apart for prefill and decode: auto weighs them against one pool (default auto), the flag alone means only",
)
PER_STAGE = "sequences that a pipeline stage works on at a time, in place of --batch: pp times as many are in flight"


class Serve(Question):
    """Latency, throughput, memory and cost of given layouts, over a grid of inputs."""

    verb, answered_by = "serve", "headway.answers.serve"
    example = "serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 1..256*2 --prompt 4k --output 600"
    broadcasts = ("batch", "rate", "context", "prompt", "output")
    refresh = "at once"
    pictures = (
        ("batch", "latency and cost against batch: floor, knee, asymptotes, memory end"),
        ("context", "latency and cost against context: window and memory end"),
        ("roofline", "operators of the model under the machine's roofline"),
        ("memory", "what fills a chip"),
        ("stages", "weights and KV per chip by pipeline stages"),
        ("pipeline", "micro-batches that decode through the stages"),
        ("drafts", "speed-up by drafts and TPOT against users, and where drafts stop paying"),
        ("grid", "times and cost along the inputs that vary"),
    )
    groups = (
        FlagGroup(Load, "load: every number may be a list 1,2,4 or a range 1..512*2, 0..10+2"),
        FlagGroup(Layout, "layout", is_brief=True),
        FlagGroup(Precision, "number formats", is_brief=True),
        FlagGroup(Assumptions, "assumptions (example defaults)", is_brief=True),
        FlagGroup(TypedPrice, "cost (or --price-metric NAME)"),
        OWN_RUNS,
        BY_NUMBERS,
    )
    model = declared(MODELS)
    on = field(kind="machine", word="MACHINE", help="gb200-nvl72, 8xh100-sxm, h200, ...; several with commas", default=REQUIRED)
    batch_per_stage = field(word="N", integer=True, low=1, open_low=False, high=MOST, help=PER_STAGE)
    layouts = field(kind="object", help="layouts of a Python call, in place of degrees", default=())


class Fits(Question):
    """Which open models and formats run on a machine for one user, the largest that keeps the pace first."""

    verb, answered_by = "fits", "headway.answers.fits"
    probes = ("set", "kv", "hbm_utilization", "offload")  # of many models, each answer takes seconds
    example = "fits --on 2xrtx3090 --context 8k"
    refresh = "on release"
    subjects = ("model",)
    edits = ("set", "catalog", "strict")
    pictures = (
        ("models", "decode speed of each model, with its interval, by its size"),
    )
    groups = (
        FlagGroup(Precision, "number formats (default: those that people share for the engine)", only=("weights", "kv"), is_brief=True),
        OWN_RUNS,
    )
    model = field(kind="model", place="?", help="models with commas: a row for each format (default: every recent open model)", default="")
    on = field(kind="machine", word="MACHINE|here", help="rtx3090, 2xrtx3090, ...; here: this machine, by its platform", default="here")
    context = field("token", integer=True, low=1, open_low=False, high=MOST, help="tokens of the conversation", default=8000)
    pace = field("token/s", help="tokens per second that a reader wants: each model in its widest format that keeps it", default=10)
    engine = field(choices=("llamacpp", "vllm", "sglang", "trtllm"), help="engine (default llamacpp)", default="llamacpp")
    offload = field(choices=("none", "experts"), help="where experts lie: on the cards, or in the host's memory; left out: either")
    hbm_utilization = field(high=1, help="share of a card's memory that is filled (default: as its engine leaves it)")
    since = field(kind="word", word="YYYY-MM", help="oldest release of a model that is listed (default: the newest two years)", default="")

    def idle(self) -> dict[str, str]:
        """The choice among models, where they are named."""
        return {"since": "no model named beside it: it chooses among all", "pace": ""} if self.model else {}


class Sought(FlagRecord):
    """What is sought: an input, so that an output has a value."""

    for_ = field(kind="text", word="INPUT", help="batch, context, tp, eff_memory, chip.hbm_bw ...", default=REQUIRED)
    so_that = field(kind="text", word="OUTPUT=VALUE", help="tpot_s=20ms, or compute_s=kv_s", default=REQUIRED)


OF_SOLVE = ("for_", "so_that", "find")  # of a verb that has a search of its own: in `solve` they are this one's
# No number of theirs follows from an input, or the answer says itself where both sides are equal.
SKIPPED = (
    "solve", "ask", "schema", "list", "find", "show", "trend", "fit", "lecture", "predict", "score", "calibrate", "new", "fits",
    "breakeven", "sweep", "update", "probe", "lab", "measure", "web", "mcp",
)  # fmt: skip


class Solve(Question):
    """The input at which an output of another verb reaches a value; its further fields are that verb's."""

    verb, answered_by = "solve", "headway.answers.solve"
    example = "solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 8k --for batch --so-that step_s=20ms"
    refresh = "on release"
    pictures = (
        ("crossing", "the curve and where it crosses the value"),
    )
    groups = (FlagGroup(Sought, "question"),)
    subjects = ("of", "model", "on")
    target: ClassVar[type[Question]] = Question
    of = field(kind="word", word="VERB", place="1", help="serve, or any verb that prints numbers: its flags follow")
    where = field(kind="text", word="CONDITION", help="of another verb: solve for the first row for which it holds")

    @classmethod
    def of_words(cls, words: Sequence[str]) -> type[Question]:
        """The question about the verb that the words name first; about serve where they name none."""
        name = next((word for word in words if not word.startswith("-")), "serve")
        if name not in solvable() and words and not words[0].startswith("-"):
            raise UnknownName("verb to solve", name, solvable(), "one of " + ", ".join(solvable()))
        return _about(name if name in solvable() else "serve")

    def question(self, **changes: Any) -> Question:
        """The question of the other verb, with some values changed."""
        known = self.target.flags()
        values = {name: value for name, value in self.entries().items() if name in known and name not in (*OF_SOLVE, "where")}
        return self.target.from_values(values | changes)


def solvable() -> list[str]:
    """Verbs that can be solved."""
    from headway import QUESTIONS

    return [verb for verb in QUESTIONS if verb not in SKIPPED]


@functools.cache
def _about(verb: str) -> type[Question]:
    """The question about another verb."""
    target = question_of(verb)
    flags_of = {name: flag for name, flag in target.flags().items() if not flag.group and name not in OF_SOLVE}
    kinds = {
        **{name: Solve.__annotations__[name] for name in ("of", "where")},
        **{name: Annotated[Any, flag.field] for name, flag in flags_of.items()},
    }
    rest = [replace(group, skip=(*group.skip, *OF_SOLVE)) for group in target.groups if group.record is not Sought]
    usual = {name: flag.default for name, flag in flags_of.items() if flag.default is not MISSING}
    name = f"Solve{target.__name__}"
    groups, probes = (*rest, *Solve.groups), None if verb == "serve" else ()  # others are asked many times
    return type(name, (Solve,), {"__annotations__": kinds, **usual, "groups": groups, "target": target, "probes": probes})
