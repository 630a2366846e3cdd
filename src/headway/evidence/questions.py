"""Questions about measured runs, a running server and the lecture: `score`, `calibrate`, `probe`, `predict`, `fit`, `lecture`, `show`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headway.core import schema
from headway.core.question import Edits, FlagGroup, FlagRecord, Question, declared, field
from headway.core.schema import Field
from headway.models.by_numbers import BY_NUMBERS
from headway.performance.calibration.flag import OWN_RUNS
from headway.performance.workload import MOST
from headway.reality.probe.address import server_address
from headway.reality.probe.budget import ProbeBudget

ABOUT_RUNS = "CSV of measured rows: columns as for `predict`, and ttft_ms, tpot_ms, output_tok_s_total or tok_s_per_chip"
EACH_ROW = "no value here, because each row names its own machine and model: use `serve`"
NO_FACTS = {"set": EACH_ROW.replace("use `serve`", "use --catalog DIR with your own chip, or `serve`")}


def _file(help: str, kind: str = "file", word: str = "FILE") -> Field:
    return Field(kind=kind, word=word, help=help)


# flag -> its reader in evidence/readers, and its declaration
TOOLS = {
    "vllm": ("vllm_bench", _file("the JSON that `vllm bench serve --save-result` (or SGLang's bench_serving) wrote")),
    "aiperf": ("aiperf", _file("AIPerf's artifact folder", "folder", "DIR")),
    "guidellm": ("guidellm", _file("GuideLLM's benchmarks.json")),
    "trtllm_bench": ("trtllm_bench", _file("the report that trtllm-bench --report_json wrote")),
    "llama_bench": ("llama_bench", _file("llama-bench's output: json, jsonl, csv, md or sql")),
    "inferencex": ("inferencex", _file("InferenceX's agg_*.json")),
    "requests": (
        "requests",
        _file("CSV or JSON lines, one request each: start, ttft, e2e (or end, or tpot), prompt_tokens, output_tokens"),
    ),
}
BenchmarkFiles = type("BenchmarkFiles", (FlagRecord,), {name: declared(field) for name, (_, field) in TOOLS.items()})


def _unsaid(kind: str, name: str) -> Field:
    return Field(kind=kind, word="NAME", help=f"{name}, where it is not said")


def _unsaid_count(name: str) -> Field:
    return Field(word="N", integer=True, low=1, open_low=False, high=1e12, help=f"{name}, where it is not said")


class UnsaidFacts(FlagRecord):
    """Facts of a run that its benchmark's output does not state."""

    on = field(kind="machine", word="MACHINE", help="the chips that ran it: 8xh100-sxm, 2xrtx4090, gb200-nvl72", default="")
    model = declared(_unsaid("model", "model"), default="")
    engine = declared(_unsaid("word", "engine"), default="")
    engine_version = declared(_unsaid("word", "engine version"), default="")
    eager = field(kind="switch", help="it ran without CUDA graphs (vLLM's --enforce-eager), which no file says", default=False)
    weights = declared(_unsaid("word", "weights"), default="")
    kv = declared(_unsaid("word", "kv"), default="")
    tp = declared(_unsaid_count("tp"))
    ep = declared(_unsaid_count("ep"))
    pp = declared(_unsaid_count("pp"))
    dp = declared(_unsaid_count("dp"))
    max_num_seqs = declared(_unsaid_count("most sequences of one data-parallel rank (vLLM: --max-num-seqs)"))
    prompt = declared(_unsaid_count("prompt"))
    output = declared(_unsaid_count("output"))


class Score(Question):
    """Measured runs or your own benchmark beside predictions, with what binds."""

    verb, answered_by = "score", "headway.answers.score"
    probes, slow_with = ("prompt", "output", "ep", "engine_version"), ("rows",)  # what the file may say itself
    example = "score --vllm bench.json --on 8xh100-sxm --tp 8"
    refresh = "on release"
    pictures = (
        ("parity", "predicted against measured"),
        ("parts", "where a run stands: parts of the measured time, floor"),
    )
    groups = (
        FlagGroup(BenchmarkFiles, "your own benchmark output, instead of a table"),
        FlagGroup(UnsaidFacts, "what a benchmark's output does not say"),
        OWN_RUNS,
    )
    subjects = ("rows",)
    edits = ("catalog",)
    no_edits = EACH_ROW
    rows = field(kind="file", word="MEASURED.csv", place="?", help=ABOUT_RUNS)
    each = field(kind="switch", help="every measurement beside its prediction instead of groups", default=False)

    def idle(self) -> dict[str, str]:
        """The switch of a table, beside a benchmark's file, of which every run stands alone."""
        is_file = any(getattr(self, name) for name in TOOLS)
        batch = {"max_num_seqs": "a file of a server: llama-bench runs one sequence"} if self.llama_bench else {}
        return {"each": ""} | NO_FACTS | batch if is_file else NO_FACTS


ABOUT_OWN_RUNS = "measured runs: any file that `score` reads, a table of columns as there, or a profile to write anew or to add to"


ADVISED = ("tpot_s", "ttft_s", "tok_per_s")  # what a run is to tell


class Calibrate(Question):
    """Your own runs as a profile, by which predictions on your machine go; what they change, by deployment."""

    verb, answered_by = "calibrate", "headway.answers.calibrate"
    probes, slow_with = ("prompt", "output", "ep", "engine_version", "max_num_seqs"), ("save", "advise")  # what the file may say itself
    example = "calibrate bench.json --on 8xh100-sxm --tp 8 --engine vllm"
    refresh = "on release"
    documents = ("toml",)
    groups = (FlagGroup(UnsaidFacts, "what a benchmark's output does not say"),)
    pictures = (("parity", "measured against predicted, before and after"),)
    subjects = ("rows",)
    edits = ("catalog",)
    no_edits = EACH_ROW
    rows = field(kind="file", word="FILE", place="*", help=ABOUT_OWN_RUNS, default=())
    log = field(kind="file", word="FILE", takes="again", help="what vLLM or SGLang logged at its start: its room for KV cache", default=())
    training = field(kind="switch", help="the rows are training runs: at least id, model, hardware", default=False)
    advise = field(kind="switch", help="instead: which run to make next, how much it narrows, and the commands that make it", default=False)
    for_ = field(choices=ADVISED, help="with --advise: what is to be known best", default=ADVISED[0])
    save = field(kind="output", word="NAME", help="keep the profile under this name: serve, plan, predict and others then go by it")
    into = field(kind="folder", word="DIR", help="where it goes, in DIR/calibrations (default your own folder, ~/.config/headway)")
    replace_ = field(kind="switch", help="write over a profile of this name", default=False)

    def idle(self) -> dict[str, str]:
        """Facts of a machine; where the profile goes, if none is kept."""
        unsaved = {} if self.save else dict.fromkeys(("into", "replace_"), "--save NAME")
        if not self.advise:
            return NO_FACTS | unsaved | {"for_": "--advise"}
        saving = dict.fromkeys(("save", "into", "replace_"), "a question without --advise, which keeps no profile")
        return NO_FACTS | saving | {"training": "runs of a server: training has one load"}


def _lengths(word: str, default: str, high: float, help: str) -> Any:
    return field("token" if word == "token" else "", word=word, integer=True, low=1, open_low=False, high=high, help=help, default=default)


class Probe(Question):
    """A running server, measured gently within a budget: its step, its limits, its departures; then calibrated."""

    verb, answered_by = "probe", "headway.answers.probe"
    example = "probe http://127.0.0.1:8000 --budget 300s --dry-run"
    no_page = "it sends requests to a server of yours; `headway probe URL --dry-run` tells each, and the page runs reads what it measured"
    groups = (
        FlagGroup(ProbeBudget, "budget, which is never exceeded"),
        FlagGroup(UnsaidFacts, "what the server does not say, so that its figures are predicted", skip=("prompt", "output", "eager")),
    )
    pictures = (("load", "latency and rate by concurrency"),)
    progress = "requests answered"
    subjects = ("url",)
    edits = ("catalog",)
    no_edits = EACH_ROW
    url = field(kind="secret", word="URL", place="1", help="the server: http://127.0.0.1:8000, or https://HOST with --yes-remote")
    dry_run = field(kind="switch", help="print the budget and every stage, and send nothing", default=False)
    prompt = _lengths("token", "128,1024", MOST, "lengths of prompts, two for the slope by context (default 128,1024)")
    output = _lengths("token", "64", 1e5, "tokens of an answer, a quarter more or less (default 64)")
    concurrency = _lengths("N", "1..32*2", 1024, "requests at once, rising (default 1..32*2)")
    silence = field("s", word="TIME", help="longest that the server may send nothing (default 60s)", high=3600, default="60s")
    seed = field(kind="count", word="N", help="seed of prompts and pauses (default: the time, so that no cache knows them)")
    served_model = field(kind="secret", word="NAME", help="model that is asked for (default the first of /v1/models)")
    api_key_env = field(kind="secret", word="NAME", help="environment variable that holds the key, which is printed and stored nowhere")
    header = field(kind="credential", word="'K: V'", takes="again", help="a header of every request; its value is hidden", default=())
    yes_remote = field(kind="switch", help="the server may be on another machine", default=False)
    out = field(kind="output", word="FILE", help="file of the runs, for score and calibrate (default probe.json)", default="probe.json")
    replace_ = field(kind="switch", help="write over that file", default=False)

    def idle(self) -> dict[str, str]:
        """What only a remote server wants, what only a prediction wants, and what sends nothing writes."""
        local = {"yes_remote": "a server elsewhere: this one is local"} if server_address(self.url).is_local else {}
        facts = [name for name in schema.fields(UnsaidFacts) if name not in ("on", "prompt", "output", "eager")]
        unsaid = {} if self.on else dict.fromkeys((*facts, "catalog"), "--on MACHINE")
        unsent = dict.fromkeys(("seed", "replace_"), "a probe that sends, without --dry-run") if self.dry_run else {}
        return NO_FACTS | local | unsaid | unsent


class Predict(Question):
    """Predictions for a table of runs, each with floor and 90 % interval, a row per line of the file."""

    verb, answered_by = "predict", "headway.answers.predict"
    example = "predict rows.csv -o csv"
    refresh = "on release"
    groups = (OWN_RUNS,)
    subjects = ("rows",)
    edits = ("catalog",)
    no_edits = EACH_ROW
    rows = field(kind="file", word="ROWS.csv", place="1", help="CSV whose first line names columns: at least id, model, hardware, mode")
    training = field(kind="switch", help="the rows are training runs: at least id, model, hardware", default=False)

    def idle(self) -> dict[str, str]:
        """Facts of a machine."""
        return NO_FACTS


class Fit(Question):
    """Efficiencies fitted to your own measurements, with their errors; the files that a catalogue folder uses."""

    verb, answered_by = "fit", "headway.answers.fit"
    example = "fit --from kernels/ --from measured.csv --out DIR"
    no_page = "it reads and writes folders; the page runs calibrates by runs that you drop"
    subjects = ("from_",)
    from_ = field(
        kind="file",
        word="PATH",
        takes="again",
        help="a folder of measured kernels (parquet) or a CSV of measured runs; may be given several times",
        default=(),
    )
    training = field(kind="file", word="ROWS.csv", help="instead: measured training runs, for what training reaches")
    folds = field(kind="switch", help="instead of numbers: leave clusters of runs out, for widths and evidence.csv", default=False)
    seed = field(kind="count", word="N", help="draw the folds by this (default 40)", default="40")
    out = field(kind="folder", word="FOLDER", help="where efficiency.toml and evidence.csv go; a catalogue folder uses them", default=".")
    report = field(kind="output", word="PAGE.md", help="page between whose markers error tables go; with --folds of runs, and a picture")
    summary = field(kind="output", word="PAGE.md", help="with --folds: page between whose markers the few lines about it go")

    def idle(self) -> dict[str, str]:
        """The seed is of the folds."""
        return {} if self.folds else {"seed": "--folds"}


class LectureCard(FlagRecord):
    """A model on a machine, beside the lecture's figures."""

    on = field(kind="machine", word="MACHINE", help="machine of the card: gb200-nvl72, 8xh100-sxm")
    bridge = field(kind="switch", help="from the board's figures to the machine's, factor by factor", default=False)
    batch = field(word="N", integer=True, high=1e7, help="batch of the card's step (default the balanced batch, or what fits)")
    weights = field(kind="word", word="FORMAT", help="format of the weights (default as in the checkpoint)")
    kv = field(kind="word", word="FORMAT", help="format of the KV cache (default bf16)")


CARD = FlagGroup(LectureCard, "card of a model on a machine")


class Show(Question):
    """One model, chip or system: its facts, their sources, and values derived from them; or a calibration: its runs, what they say."""

    verb, answered_by = "show", "headway.answers.show"
    probes = None
    example = "show model deepseek-v3"
    refresh = "at once"
    groups = (CARD, replace(BY_NUMBERS, into="name"))
    subjects = ("what", "name")
    documents = ("toml",)
    what = field(choices=("model", "chip", "system", "calibration"), place="1")
    name = field(kind="subject", place="1", help="a catalogue name, a file, or N x chip")
    context = field(
        "token",
        word="token",
        integer=True,
        low=1,
        open_low=False,
        high=MOST,
        help="context that KV read per token is taken at (default 8192)",
        default="8192",
    )

    def idle(self) -> dict[str, str]:
        """What is of a model alone, or of its card alone."""
        if self.what == "model":
            return {} if self.on or self.bridge else {"set": "", **dict.fromkeys(("batch", "weights", "kv"), "show model with --on")}
        card = dict.fromkeys(("batch", "weights", "kv"), "show model with --on")
        return card | {name: "" for name in ("context", *schema.fields(Edits)) if name not in ("set", "catalog")}


class Flashcards(FlagRecord):
    """A round of questions."""

    cards = field(kind="count", word="N", help="cards of a round, at most 50 (default 10)", default="10")
    seed = field(kind="count", word="N", help="draw the same cards again")
    forget = field(kind="act", help="delete the record of past answers", default=False)


class Lecture(Question):
    """The lecture behind headway: chapters, a claim with your inputs, your model beside it, flashcards."""

    verb, answered_by = "lecture", "headway.answers.lecture"
    probes, slow_with = None, ("what",)
    example = "lecture RB-10"
    refresh = "at once"
    pictures = (
        ("claim", "the picture of the claim"),
        ("inputs", "figures of a claim along an input (--with NAME=RANGE)"),
    )
    modes = (
        ("", "the chapters: what agrees, what differs, what is open"),
        ('CHAPTER|ID|"QUESTION"', "a chapter, a claim, or the passage that answers a question"),
        ("ID --with NAME=VALUE ...", "a claim with other inputs"),
        ("--model M --on MACHINE [--bridge]", "the card of a model beside the lecture's figures"),
        ("--disputed", "points on which published summaries disagree"),
        ("quiz [CHAPTER]", "flashcards"),
    )
    groups = (CARD, FlagGroup(Flashcards, "flashcards (lecture quiz)"))
    subjects = ("what",)
    what = field(
        kind="text",
        word="CHAPTER|ID|GROUP|QUESTION",
        place="*",
        help='3, RB-10, RB, "why does fast mode cost 6x?", or quiz [CHAPTER]',
        default=(),
    )
    find = field(kind="text", word="TEXT", help="claims and chapters that hold these words or words of their concepts")
    disputed = field(kind="switch", help="points on which published summaries disagree, and who is right", default=False)
    with_ = field(
        kind="pairs",
        word="NAME=VALUE",
        takes="words again",
        help="a claim with other inputs: total=1T active=32B, lists and ranges, model=NAME, chip=NAME, system=NAME",
        default=(),
    )
    measured = field(kind="file", word="FILE|FOLDER", takes="again", help="runs of lab --save: a second verdict, measured here", default=())
    model = field(kind="model", word="NAME", help="card of a model on a machine, beside the lecture's figures; with --on")
    context = field("token", word="token", integer=True, low=1, open_low=False, high=MOST, help="context of the card's step (default 8192)")

    def idle(self) -> dict[str, str]:
        """What is of another of its pages: of the card, of a round of flashcards, of a search."""
        if self.model or self.on or self.bridge:
            return dict.fromkeys(("find", "disputed", "with_", "measured", "cards", "seed", "forget"), "")
        of_card = [name for name in schema.fields(Edits) if name != "catalog"]
        idle = dict.fromkeys((*of_card, "batch", "context", "weights", "kv"), "lecture --model M --on X") | {"catalog": ""}
        is_quiz = self.what[:1] == ("quiz",) or self.forget
        if is_quiz or self.disputed or self.with_:
            idle["measured"] = "a claim, a group, a chapter, or nothing"
        return idle if is_quiz else idle | {"cards": "", "seed": ""}
