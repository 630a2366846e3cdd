"""`headway VERB ...`: finds the verb, reads its flags, prints its answer. Heavy imports happen only when needed."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from headway import __version__
from headway.core.errors import HeadwayError, UnknownName

# verb -> (module, sentence)
VERBS = {
    "plan": ("headway.cli.plan", "the best layout, batch and precision for a model on machines, under latency limits"),
    "serve": ("headway.cli.serve", "time, rate, cost and memory of serving, over grids of any numeric argument"),
    "sim": ("headway.cli.sim", "what traffic meets: queues, latencies by percentile, goodput, occupancy, distance to saturation"),
    "speed": ("headway.cli.speed", "the ladder of fast and slow tiers: price against speed, the batch behind each, what is sold"),
    "price": ("headway.cli.price", "what tokens cost and sell for, as intervals; a published day; the share of memory"),
    "cache": ("headway.cli.cache", "where a KV cache should live: tiers by criterion, sizes, fees, hit rate and bill of a trace"),
    "bill": ("headway.cli.bill", "what requests cost under price sheets, by mode, cache and layout; which cache pays"),
    "train": ("headway.cli.train", "a training run: layout, memory, step time, MFU, days, cost"),
    "scale": ("headway.cli.scale", "scaling laws: compute split best, how far to over-train for what is served, what experts are worth"),
    "solve": ("headway.cli.solve", "the input at which an output has a value, or two outputs are equal"),
    "law": ("headway.cli.law", "one law by name: its equation and arguments, its result for numbers, lists, ranges and facts"),
    "matmul": ("headway.cli.matmul", "a matrix product by shape and sharding: FLOP, bytes, time, what binds, the collectives it needs"),
    "collective": ("headway.cli.collective", "time of a collective or a message over axes of a torus, ring or switch"),
    "capacity": ("headway.cli.capacity", "what fits on a machine before any layout: chips, largest batch and context, room"),
    "compare": ("headway.cli.compare", "machines or models side by side: ratios to the first, per chip, per dollar, per watt"),
    "predict": ("headway.cli.predict", "what each row of a table of runs should measure, with floor and 90 % interval"),
    "score": ("headway.cli.score", "measured runs beside their predictions: the error by source, chip, model, engine; your own benchmark"),
    "show": ("headway.cli.show", "one model, chip or system: its facts and what follows from them"),
    "list": ("headway.cli.list", "models, chips, systems, tiers of memory, price sheets, laws or sources"),
    "trend": ("headway.cli.trend", "how chips changed by generation: FLOP/byte, drain time, HBM per FLOP, latency floor, longest context"),
    "rack": ("headway.cli.rack", "a scale-up domain of any size: cables, switches, power, weight, network, what fits; domains by year"),
    "fit": ("headway.cli.fit", "the efficiencies fitted again, to measured kernels and runs, with their errors"),
    "lecture": ("headway.cli.lecture", "the lecture's claims, recomputed"),
}
USAGE = """headway: the math of training and serving large language models

usage: headway VERB ...

{verbs}

  headway plan deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k --ttft 2s --tpot 50ms
  headway serve llama-3.1-70b --on 8xh100-sxm --tp 8 --batch 1..4096*2 --context 1k,8k,128k
  headway solve serve llama-3.1-70b --on 8xh100-sxm --tp 8 --context 8k --for batch --so-that tpot_s=20ms

headway VERB --help lists the flags of a verb; headway --version prints the version.
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
        sys.stdout.write(USAGE.format(verbs="\n".join(f"  {verb:11}{sentence}" for verb, (_, sentence) in VERBS.items())))
        return 0
    if argv[0] in ("--version", "-V"):
        sys.stdout.write(f"headway {__version__}\n")
        return 0
    if argv[0] not in VERBS:
        raise UnknownName("verb", argv[0], VERBS, "one of " + ", ".join(VERBS))
    module_name, sentence = VERBS[argv[0]]
    module: Any = importlib.import_module(module_name)
    from headway.cli.verb import Parser, add_tail, check_tail

    parser = Parser(argv[0], sentence)
    flags_of = getattr(module, "add_flags_of", None)  # a verb about another verb has that one's flags
    if flags_of:
        flags_of(parser, argv[1:])
    else:
        module.add_flags(parser)
    add_tail(parser)
    try:
        args = parser.read(argv[1:])
    except SystemExit:  # argparse has printed the help
        return 0
    check_tail(args)
    from headway.cli.verb import bar, finish

    with bar(label=getattr(module, "PROGRESS_LABEL", "layouts weighed"), patience=getattr(module, "PATIENCE_S", None)):
        answer = module.run(args)
    finish(answer, args, ["headway", *argv])
    return answer.status


def entry() -> None:
    """Console script: runs `guarded` and exits with its status."""
    sys.exit(guarded(sys.argv[1:]))


def guarded(argv: Sequence[str]) -> int:
    """Run `main` for a terminal: a closed pipe, interrupt, full disk or bug prints at most one line, no traceback."""
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


if __name__ == "__main__":
    entry()
