"""Questions that training answers: `train` and `scale`."""

from __future__ import annotations

from headway.core import schema
from headway.core.question import MODELS, REQUIRED, FlagGroup, FlagRecord, Question, declared, field
from headway.hardware.chip_price import MARKET, WHICH
from headway.models.by_numbers import BY_NUMBERS
from headway.performance.calibration.flag import OWN_RUNS
from headway.training.recipe import OBJECTIVES, Failures, Recipe, TrainingLayout, TrainingReach, TrainingRun
from headway.training.scaling.inputs import Budget, FewBits, ReinforcementLearning, Routing, ServedTokens, Uncertainty


class TrainingGoal(FlagRecord):
    """What the layout is best for."""

    objective = field(choices=OBJECTIVES, help="shortest step (default), fewest chips (default under --deadline) or lowest cost")
    deadline = field("s", word="TIME", help="the run ends within this time, such as 60d; a bare chip leaves their count open")
    budget = field("USD", bare="USD", word="USD", help="the run costs at most this, such as 5MUSD; without --deadline the fastest run")
    confidence = field(
        word="SHARE", low=0.5, open_low=False, high=0.999, help="chance, given the model's error, that both are kept (default 0.8)"
    )
    price_metric = field(kind="word", word="NAME", help=f"which price of a chip: {WHICH}", default=MARKET)


class Train(Question):
    """Best layouts of a training run: step time, memory, MFU, days, cost and energy."""

    verb, answered_by = "train", "headway.answers.train"
    example = "train llama-3.1-405b --on 16384xh100-sxm --tokens 15T --seq 8k --global-batch 16M"
    refresh = "on release"
    pictures = (
        ("layouts", "step time and memory of layouts, by part"),
        ("pipeline", "micro-batches over the stages of a pipeline, by schedule"),
    )
    groups = (
        FlagGroup(TrainingRun, "run"),
        FlagGroup(TrainingLayout, "layout: searched unless pinned to a value or a list", searched=tuple(schema.fields(TrainingLayout))),
        FlagGroup(Recipe, "recipe (recompute and interleaving are searched unless given)", searched=("recompute", "schedule")),
        FlagGroup(Failures, "failures"),
        FlagGroup(TrainingReach, "what training reaches, instead of the fitted numbers"),
        FlagGroup(TrainingGoal, "question"),
        OWN_RUNS,
        BY_NUMBERS,
    )
    edits = ("set", "catalog", "attention", "kv_share", "strict", "as_", "key")
    no_edits = "a verb that serves: training keeps embedding and head in 16 bits"
    model = declared(MODELS)
    on = field(kind="machine", word="MACHINE", help="16384xh100-sxm, 2048xh800, ...; several with commas", default=REQUIRED)


class ScalingLaws(FlagRecord):
    """Which laws answer."""

    law = field(kind="word", word="NAME", help="the law that answers (default epoch; of experts: all); several with commas")
    beside = field(kind="word", word="NAMES", help="laws shown beside it: all (default), none, or names", default="all")


class Scale(Question):
    """How far to over-train: a row per law and point, laws with a result first."""

    verb, answered_by = "scale", "headway.answers.scale"
    example = "scale --active 100B --serve 50M/s --months 2"
    refresh = "at once"
    pictures = (
        ("overtraining", "cost of a model of equal quality against its training tokens"),
        ("laws", "each law's answer"),
    )
    groups = (
        FlagGroup(Budget, "budget: one is split best, two of compute, size and tokens give the third"),
        FlagGroup(ServedTokens, "serving: what a model is over-trained for"),
        FlagGroup(ReinforcementLearning, "reinforcement learning"),
        FlagGroup(Routing, "experts"),
        FlagGroup(FewBits, "formats of few bits (a soft law)"),
        FlagGroup(ScalingLaws, "laws"),
        FlagGroup(Uncertainty, "errors of the coefficients"),
    )
    subjects = ()
    edits = ()
    no_edits = "a verb about a machine or a model; scale has neither"
    moe = field(kind="switch", help="what experts are worth, by every routed law", default=False)
