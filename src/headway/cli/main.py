"""`headway VERB ...`: finds the verb, reads its flags, prints its answer. Heavy imports happen only when needed."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway import __version__
from headway.core.errors import HeadwayError, check_known

# verb -> (module, sentence)
VERBS = {
    "plan": ("headway.cli.plan", "layout, batch, cost and launch line for a load and its latency limits"),
    "serve": ("headway.cli.serve", "latency, throughput, cost and memory of a given layout, over a grid of inputs"),
    "sim": ("headway.cli.sim", "percentiles, goodput and capacity under a trace or drawn traffic"),
    "score": ("headway.cli.score", "measured runs or your own benchmark beside predictions, with what binds"),
    "solve": ("headway.cli.solve", "the input at which an output reaches a value"),
    "train": ("headway.cli.train", "layout, memory, step time, MFU, days and cost of a training run"),
    "scale": ("headway.cli.scale", "how far to over-train, from scaling laws and the tokens to be served"),
    "price": ("headway.cli.price", "cost per token of a model on a machine; --sheet: a price list read backwards"),
    "speed": ("headway.cli.speed", "price of fast and slow tiers against their speed"),
    "cache": ("headway.cli.cache", "memory tier and lifetime of a KV cache; --workload: its hit rates"),
    "bill": ("headway.cli.bill", "cost of requests under API price sheets, by mode and cache"),
    "law": ("headway.cli.law", "one law by name: its equation and arguments, its result for numbers, lists, ranges and facts"),
    "matmul": ("headway.cli.matmul", "a matrix product by shape and sharding: FLOP, bytes, time, what binds, its collectives"),
    "collective": ("headway.cli.collective", "time of a collective or a message over axes of a torus, ring or switch"),
    "capacity": ("headway.cli.capacity", "what fits on a machine before any layout: chips, largest batch and context, room"),
    "compare": ("headway.cli.compare", "machines or models side by side: ratios to the first, per chip, per dollar, per watt"),
    "show": ("headway.cli.show", "one model, chip or system: its facts and their sources"),
    "new": ("headway.cli.new", "a catalogue file of a chip of your own, to fill in"),
    "list": ("headway.cli.list", "all models, chips, systems, memory tiers, price sheets, laws or sources"),
    "rack": ("headway.cli.rack", "cables, power, weight and bandwidth of a scale-up domain of any size"),
    "trend": ("headway.cli.trend", "chips by year (FLOP/byte, drain time, latency floor) or models by year"),
    "lecture": ("headway.cli.lecture", "the lecture behind headway: chapters, claims with your inputs, your model, flashcards"),
    "feistel": ("headway.cli.feistel", "Feistel ciphers and reversible networks: vectors, avalanche, differentials, couplings undone"),
    "predict": ("headway.cli.predict", "predictions for a table of runs, each with floor and 90 % interval"),
    "fit": ("headway.cli.fit", "efficiencies fitted to your own measurements, with their errors"),
    "web": ("headway.web.verb", "the verbs as pages in a browser: a plan, the lecture's blackboard, traffic, prices"),
    "mcp": ("headway.web.mcp_verb", "the verbs as tools of an assistant, over the Model Context Protocol"),
}
GROUPS = {
    "Serve": ("plan", "serve", "sim", "score", "solve"),
    "Train": ("train", "scale"),
    "Money": ("price", "speed", "cache", "bill"),
    "Envelope": ("law", "matmul", "collective", "capacity", "compare"),
    "Look": ("show", "list", "new", "rack", "trend", "lecture", "feistel"),
    "Check": ("predict", "fit"),
    "Show": ("web", "mcp"),
}
USAGE = """headway: how fast, how much and why, for language models on chips

usage: headway VERB ...      VERB --help: everyday flags      VERB --help-all: every flag

{verbs}

  headway plan deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --ttft 2s --tpot 50ms
  headway serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 1..4096*2 --context 1k,8k,128k
  headway solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 8k --for batch --so-that step_s=20ms

headway --version prints the version.
"""


def main(argv: Sequence[str]) -> int:
    """Run a command and return the exit status; HeadwayError is caught, any other exception is a bug and propagates."""
    try:
        return _run(list(argv))
    except HeadwayError as error:
        sys.stderr.write(f"headway: {' '.join(str(error).split())}\n")
        return 2


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        sys.stdout.write(USAGE.format(verbs=_verb_lines()))
        return 0
    if argv[0] in ("--version", "-V"):
        sys.stdout.write(f"headway {__version__}\n")
        return 0
    try:
        module, args = parsed(argv)
    except SystemExit:  # argparse has printed the help
        return 0
    from headway.cli.verb import LABEL, answered, bar, check_tail, finish

    check_tail(args)
    with bar(label=getattr(module, "PROGRESS_LABEL", LABEL), patience=getattr(module, "PATIENCE_S", None)):
        answer = answered(module, args, argv[0])
    finish(answer, args, ["headway", *argv])
    return answer.status


def parsed(argv: list[str]) -> tuple[Any, Any]:
    """The module of a verb and its arguments; SystemExit after its help."""
    module, parser = parser_of(argv)
    return module, parser.read(argv[1:])


def parser_of(argv: list[str]) -> tuple[Any, Any]:
    """The module of a verb and the parser of its flags."""
    check_known("verb", argv[0], VERBS)
    module_name, sentence = VERBS[argv[0]]
    module: Any = importlib.import_module(module_name)
    from headway.cli.verb import Parser, add_tail

    parser = Parser(argv[0], sentence)
    parser.modes = getattr(module, "MODES", ())
    flags_of = getattr(module, "add_flags_of", None)  # a verb about another verb has that one's flags
    if flags_of:
        flags_of(parser, argv[1:])
    else:
        module.add_flags(parser)
    add_tail(parser)
    return module, parser


def _verb_lines() -> str:
    """The verbs by group, a line each; the first line of a group names it."""
    grouped = [verb for verbs in GROUPS.values() for verb in verbs]
    groups = {**GROUPS, "More": tuple(verb for verb in VERBS if verb not in grouped)}
    return "\n".join(
        f"{group if not place else '':8}  {verb:11}{VERBS[verb][1]}" for group, verbs in groups.items() for place, verb in enumerate(verbs)
    )


def guarded(argv: Sequence[str]) -> int:
    """Run `main` for a terminal: a closed pipe, interrupt, full disk or bug prints at most one line, no traceback."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 -- as long as the process
    if sys.stdout is None:
        return _fail("nowhere to print: standard output is closed", 2)
    try:
        status = main(argv)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop_output()
        return 0
    except KeyboardInterrupt:
        return _fail("interrupted, with nothing to show", 130)
    except OSError as error:
        _flush_or_drop_output()
        return _fail(f"cannot write the answer: {error.strerror or error}", 2)
    except MemoryError:
        return _fail("this grid does not fit in memory: ask for fewer values", 2)
    except Exception as error:
        if os.environ.get("HEADWAY_DEBUG"):
            raise
        return _fail(f"internal error, please report it ({type(error).__name__}: {error}); HEADWAY_DEBUG=1 shows where", 1)


def _flush_or_drop_output() -> None:
    """Flush the standard streams; if that fails, drop their buffers so that Python's flush at exit does not fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        _drop_output()


def _drop_output() -> None:
    """Redirect output to the null device: its buffer has no reader or no disk space."""
    with contextlib.suppress(OSError):  # a stream without a file has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(line: str, status: int) -> int:
    sys.stderr.write(f"headway: {' '.join(line.split())}\n")
    return status
