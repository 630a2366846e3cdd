"""`headway VERB ...`: finds the verb, reads its flags, prints its answer. Heavy imports happen only when needed."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from headway import QUESTIONS, __version__
from headway.cli import parser
from headway.cli import verb as runner
from headway.core.errors import HeadwayError

if TYPE_CHECKING:
    from headway.core.question import Question
    from headway.report.printed import Printed

GROUPS = {
    "Serve": ("plan", "serve", "fits", "sim", "score", "solve"),
    "Train": ("train", "scale"),
    "Money": ("price", "speed", "cache", "bill", "breakeven"),
    "Envelope": ("law", "matmul", "collective", "capacity", "compare"),
    "Keep": ("sweep", "ask", "schema"),
    "Look": ("find", "show", "list", "update", "new", "rack", "trend", "lecture", "lab", "feistel"),
    "Check": ("probe", "predict", "calibrate", "fit"),
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
        return _fail(str(error), 2)


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        grouped = [verb for verbs in GROUPS.values() for verb in verbs]
        groups = {**GROUPS, "More": tuple(verb for verb in QUESTIONS if verb not in grouped)}
        places = ((group if not place else "", verb) for group, verbs in groups.items() for place, verb in enumerate(verbs))
        lines = "\n".join(f"{group:8}  {verb:11}{QUESTIONS[verb][1]}" for group, verb in places)  # the first of a group names it
        sys.stdout.write(USAGE.format(verbs=lines))
        return 0
    if argv[0] in ("--version", "-V"):
        sys.stdout.write(f"headway {__version__}\n")
        return 0
    try:
        question, printed = parsed(argv)
    except SystemExit:  # argparse has printed the help
        return 0
    from headway.answers.asked import answered
    from headway.core.question import concealed

    printed.check(question)
    with runner.bar(sys.stderr, question.progress, question.patience_s):
        answer, book = answered(question)
    runner.finish(answer, book, printed, ["headway", *concealed(question, argv)])
    return answer.status


def parsed(argv: list[str]) -> tuple[Question, Printed]:
    """The question of a command and how its answer is printed; SystemExit after its help."""
    return parser_of(argv).read(argv[1:])


def parser_of(argv: list[str]) -> parser.Parser:
    """The parser of a command: of its verb, and of what its words ask."""
    from headway.core.question import question_of

    return _parser(question_of(argv[0]).of_words(argv[1:]), QUESTIONS[argv[0]][1])


@functools.lru_cache(maxsize=64)
def _parser(question: type[Question], sentence: str) -> parser.Parser:
    """A process that answers many commands makes each parser once."""
    return parser.Parser(question, sentence)


def guarded(argv: Sequence[str]) -> int:
    """Run `main` for a terminal: a closed pipe, interrupt, full disk or bug prints at most one line, no traceback."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 -- as long as the process
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
        try:
            sys.stdout.flush()
        except OSError:
            _drop_output()
        return _fail(f"cannot write the answer: {error.strerror or error}", 2)
    except MemoryError:
        return _fail("this grid does not fit in memory: ask for fewer values", 2)
    except Exception as error:
        if os.environ.get("HEADWAY_DEBUG"):
            raise
        return _fail(f"internal error, please report it ({type(error).__name__}: {error}); HEADWAY_DEBUG=1 shows where", 1)


def _drop_output() -> None:
    """Redirect output to the null device: its buffer has no reader or no disk space, and Python's flush at exit must not fail again."""
    with contextlib.suppress(OSError):  # a stream without a file has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(line: str, status: int) -> int:
    sys.stderr.write(f"headway: {' '.join(line.split())}\n")
    return status
