"""The question of `lab`: which experiment runs here, how long, on which decoder."""

from __future__ import annotations

from headway.core.question import FlagGroup, FlagRecord, Question, field
from headway.reality.lab.catalogue import EXPERIMENTS
from headway.reality.lab.shape import SIZES, LabShape

MEASURED = ("quick", "save", "requests")  # that say nothing where trains are served
OF_RUNS = frozenset({"limit_memory", "save", "replace_"})  # of every experiment
OF_SERVER = frozenset({"serve", "port"})  # of the trains


class TrainFlags(FlagRecord):
    """Trains."""

    every = field("s", help="interval of departures (default 20 ms)", bare_most=1.0, low=1e-3, open_low=False, high=10.0)
    limit = field(word="N", integer=True, low=1, open_low=False, high=4096, help="seats of a train, which limit the batch (default 16)")
    requests = field(word="N", integer=True, low=100, open_low=False, high=1_000_000, help="requests of each load (default 2,000)")
    step = field(kind="text", word="BASE+SLOPE", help="a step that sleeps, such as 2ms+0.5ms: base and each rider (default: the decoder's)")
    serve = field(kind="act", help="serve the trains over HTTP on this machine, in OpenAI's protocol, until stopped", default=False)
    port = field(word="N", integer=True, low=0, high=65535, open_low=False, help="port of --serve, 0 for a free one (default 8000)")


class TierFlags(FlagRecord):
    """Tiers of a cache."""

    ttl = field("s", bare="s", help="times to live in memory, file and slow file (default 1min,5min,1h)", low=1e-3, high=1e9)
    pause = field("s", bare="s", help="mean pauses of conversations, each as likely (default 1min,30min)", low=1e-3, high=1e9)
    throttle = field("byte/s", help="rate of the slow file (default 100 MB/s)", low=1e6, open_low=False, high=1e9)
    machine_price = field("USD/s", bare="USD/h", word="USD/h", help="what this machine costs (default $0.05/h, assumed)", high=10.0)


class RackFlags(FlagRecord):
    """Racks."""

    sequences = field(word="N", integer=True, low=2, open_low=False, high=4096, help="sequences of each worker (default 64)")
    slower = field(word="TIMES", low=1, open_low=False, high=1000, help="times that the link between racks is slower (default 8)")


class AttentionFlags(FlagRecord):
    """Attention."""

    patterns = field(kind="text", word="A,B", help="patterns (default dense,window:1k,topk:128,topk:1k,sqrt:64)")
    index_width = field(word="N", integer=True, low=1, high=128, open_low=False, help="numbers of top-k's index key (default 16 of 128)")
    noise = field(low=0, open_low=False, high=0.9, help="share of a query that is noise, not its fact's key (default 0.36)")


class ReversibleFlags(FlagRecord):
    """The reversible stack."""

    width = field(word="N", integer=True, low=64, open_low=False, high=8192, help="width of the streams that are timed (default 1,024)")
    library = field(choices=("numpy", "torch"), help="what runs the stack (default torch, or numpy where torch is not installed)")


class Lab(Question):
    """The lecture running on this machine: experiments with a small real decoder, each beside what was predicted of it."""

    verb, answered_by = "lab", "headway.answers.lab"
    example = "lab"
    pictures = (("points", "measured points over the predicted curve, with its interval"),)
    modes = (
        ("", "the experiments by chapter, and the claims that they test"),
        ("batch", "a routed decoder at batches from 1 to 1,024: step, cost of a token, experts touched, the knee"),
        ("rack", "worker processes as chips, in two racks: experts over them, then stages; bytes and time by hop, idle shares"),
        ("trains", "random arrivals and a departure every interval: waits, seats taken, the longest response"),
        ("reversible", "residual layers trained plain, checkpointed and reversible: memory by depth, time, errors; a cipher of them"),
        ("trains --serve", "the same trains as a server that speaks OpenAI's protocol"),
        ("tiers", "a KV cache in memory, file and slow file: found, loaded, made again, held, what it would have to ask"),
        ("attention", "dense, window, top-k and square-root attention: step, bytes, recall of a planted fact by context"),
    )
    groups = (
        FlagGroup(TrainFlags, "trains"),
        FlagGroup(TierFlags, "tiers", is_brief=True),
        FlagGroup(RackFlags, "racks", is_brief=True),
        FlagGroup(AttentionFlags, "attention", is_brief=True),
        FlagGroup(ReversibleFlags, "reversible", is_brief=True),
        FlagGroup(LabShape, "decoder", searched=SIZES),
    )
    subjects = ("experiment",)
    refresh = "on release"
    edits = ()
    no_edits = "a verb about a machine or a model; lab measures this machine, with a decoder of its own"
    progress = "points measured"
    experiment = field(choices=tuple(EXPERIMENTS), place="?", help="its name; none: a list of them")
    batch = field(integer=True, low=1, open_low=False, high=65536, help="batches of `lab batch` (default 1..1024*2)")
    quick = field(kind="switch", help="fewer points and rounds: under 20 s", default=False)
    seed = field(integer=True, open_low=False, high=2**31, help="seed of weights, arrivals and tokens (default 0)")
    threads = field(word="N", integer=True, low=1, open_low=False, high=1024, help="threads of the library that multiplies (default 1)")
    context = field(
        "token",
        integer=True,
        low=8,
        open_low=False,
        high=100_000,
        help="tokens of a sequence, of attention several (default 64; of --serve 8,192)",
    )
    limit_memory = field("byte", word="BYTES", low=1, open_low=False, help="refuse what would take more, before it begins")
    save = field(kind="output", word="FILE.json", help="keep predictions, points, date and machine; written before the first point")
    replace_ = field(kind="switch", help="write over that file", default=False)

    def idle(self) -> dict[str, str]:
        """What is of other experiments, or of any where none is named; what a server does not do."""
        unsaved = {} if self.save else {"replace_": "--save FILE.json"}
        if not self.experiment:
            return dict.fromkeys(OF_RUNS, f"headway lab {' or '.join(EXPERIMENTS)}") | _elsewhere("")
        if self.experiment != "trains":
            return unsaved | _elsewhere(self.experiment)
        served = "headway lab trains --serve"
        idle = dict.fromkeys(MEASURED, "no --serve beside it") if self.serve else {"port": served, "context": served}
        if self.requests and not self.serve:
            idle["quick"] = "no --requests beside it: fewer of them is all that it does to trains"
        if self.step:
            idle |= dict.fromkeys((*SIZES, "threads", *["seed"] * self.serve), "no --step beside it: a step that sleeps has no decoder")
        return unsaved | _elsewhere("trains") | idle


def _readers() -> list[tuple[str, tuple[str, ...]]]:
    """Every flag that some experiment reads, with the experiments that do."""
    reads = {name: entry.flags | OF_SERVER if name == "trains" else entry.flags for name, entry in EXPERIMENTS.items()}
    names = sorted(set().union(*reads.values()))
    return [(flag, tuple(name for name, flags in reads.items() if flag in flags)) for flag in names]


def _elsewhere(experiment: str) -> dict[str, str]:
    """Flags that an experiment does not read, with those that do."""
    return {flag: f"headway lab {' or '.join(names)}" for flag, names in _readers() if experiment not in names}
