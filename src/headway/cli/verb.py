"""Shared parts of all verbs: the parser with one-line errors, common flags, the progress bar, and output of the answer."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from headway.cli import flag_use, help
from headway.cli.numbered import add_model_flags, numbered
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError, UnknownName, nearest
from headway.core.progress import watched
from headway.report import complete, output
from headway.report.pictures import names

if TYPE_CHECKING:
    from headway.report.pictures.frame import View


class Usage(HeadwayError):
    """Error of a command line that cannot be parsed."""


class Parser(argparse.ArgumentParser):
    """argparse without exits: a wrong command line raises a one-line error that names the nearest flags."""

    def __init__(self, verb: str, sentence: str) -> None:
        super().__init__(prog=f"headway {verb}", description=sentence, allow_abbrev=False, formatter_class=_Help)
        self.verb = verb
        self.add_argument("--help-all", action=help.HelpAll, help="show every flag")

    modes: Sequence[tuple[str, str]] = ()  # subjects and flags of each question of a verb that answers several, and what it answers
    words: str = ""  # the argument that takes any number of key=value words, before or after flags

    def format_help(self) -> str:
        """Help text with everyday flags, an example, and the number of flags left out."""
        with help.everyday(self) as hidden:
            return self._help_text() + (f"{hidden} more flags: {self.prog} --help-all\n" if hidden else "")

    def print_every_flag(self) -> None:
        """Print the help with every flag."""
        self._print_message(self._help_text(), sys.stdout)

    def _help_text(self) -> str:
        self.usage, self.epilog = help.usage(self, self.verb), help.example(self.verb)
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}; see {self.prog} --help")

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parsed arguments; raises an error that names what would work."""
        if any(word == "--" or word.endswith("=--") for word in argv):  # argparse would drop the word and give the flag an empty list
            raise Usage(f"do not know what to do with '--'; see {self.prog} --help")
        flag_use.refuse_empty(self, _joined(argv))
        flag_use.refuse_repeated(self, _joined(argv))
        words = numbered(self, _joined(argv))
        known, extra = self.parse_known_args(words, flag_use.Arguments())
        if extra and self.words and not any(word.startswith("-") for word in extra):  # key=value after a flag
            setattr(known, self.words, [*getattr(known, self.words), *extra])
            extra = []
        if extra:
            flags = [flag for action in self._actions for flag in action.option_strings]
            unknown_flag = extra[0].partition("=")[0]
            if unknown_flag.startswith("-"):
                near = nearest(unknown_flag, flags) or [flag for flag in flags if flag.startswith(unknown_flag)]
                offer = f"; did you mean {' or '.join(near)}?" if near else ""
                raise Usage(f"no flag {unknown_flag!r}{offer} See {self.prog} --help")
            raise Usage(f"do not know what to do with {extra[0]!r}; see {self.prog} --help")
        flag_use.start(known, self, words)
        known.remarks, known.borrowed = [], []  # what was assumed of models, for the notes; costs of hypothetical chips, for the sentence
        return known


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=140)


def _joined(argv: Sequence[str]) -> list[str]:
    """Words with `--batch -4` joined to `--batch=-4`: a word with one dash after a long flag is its value."""
    words: list[str] = []
    for word in argv:
        value = word.startswith("-") and not word.startswith("--") and word not in ("-o", "-h") and not word.startswith("-o=")
        if value and words and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1] += "=" + word
        else:
            words.append(word)
    return words


def add_tail(parser: Parser) -> None:
    """Flags common to all verbs."""
    tail = parser.add_argument_group("output, everywhere")
    tail.add_argument("-o", "--format", default="text", metavar="|".join(output.FORMATS), help="how to print the answer (default text)")
    tail.add_argument("--plot", metavar="FILE", help="draw it to FILE.png, FILE.svg or FILE.html")
    tail.add_argument("--picture", metavar="NAME", default="", help=names.help_text(parser.verb))
    tail.add_argument("--plot-width", metavar="PX", default="760", help="width of the picture in px, 320 to 1200 (default 760)")
    tail.add_argument("--plot-theme", metavar="light|dark", default="light", help="colours of the picture (default light)")
    tail.add_argument("--where", metavar="CONDITION", help="keep the rows for which it holds, such as 'tpot_s <= 20ms and tp = 8'")
    tail.add_argument("--sort", metavar="KEY", help="order by a column; -KEY for the largest first")
    tail.add_argument("--explain", metavar="KEY", action="append", help="the tree of equations behind this column of the first row")
    tail.add_argument("--depth", metavar="N", help="levels of that tree (default 3; all)")
    tail.add_argument("--verbose", action="store_true", help="print every note, not only the first five")
    edits = parser.add_argument_group("what if")
    edits.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="edit a fact: chip.hbm_bw=10TB/s (repeatable)")
    edits.add_argument("--catalog", metavar="DIR", action="append", default=[], help="a folder of your own chips, systems and models")
    edits.add_argument("--attention", metavar="KIND", help="override: dense, window:4k, topk:2k, sqrt:L0 (quality not modelled)")
    edits.add_argument("--kv-share", metavar="N", help="override: N neighbouring layers share one KV cache (quality not modelled)")
    add_model_flags(parser, edits)


def check_tail(args: Any) -> None:
    """Raise an error for wrong values of the common flags, before any work is done."""
    as_file = args.format == "toml" and getattr(args, "what", "") == "chip" and hasattr(args, "name")
    if args.format not in output.FORMATS and not as_file:
        raise UnknownName("output format", args.format, output.FORMATS, "one of " + ", ".join(output.FORMATS))
    if args.format == "mermaid" and not args.explain:
        raise BadValue("-o", "mermaid", "--explain KEY beside it: the diagram is of one number")
    tree_depth(args)
    picture_flags = [(flag, value) for action, flag, value in args._typed if action.dest in ("picture", "plot_width", "plot_theme")]
    if args.plot or picture_flags:
        view(args)
    if args.plot:
        from headway.report.pictures.file import check_path

        check_path(args.plot)
    elif picture_flags:
        raise BadValue(*picture_flags[0], "--plot FILE.png beside it: nothing is drawn")


def view(args: Any) -> View:
    """Width and colours of the picture that the flags ask for."""
    from headway.report.pictures.frame import WIDTHS, View

    if args.plot_theme not in ("light", "dark"):
        raise UnknownName("theme", args.plot_theme, ("light", "dark"), "light or dark")
    width = schema.Field(integer=True, low=WIDTHS[0], open_low=False, high=WIDTHS[1])
    return View(width=int(schema.scalar(args.plot_width, width, "--plot-width")), theme=args.plot_theme)


def tree_depth(args: Any) -> int | None:
    """Levels of an explanation; None for all."""
    text = args.depth
    if text is None:
        return output.DEPTH
    if not args.explain:
        raise BadValue("--depth", text, "--explain KEY beside it")
    if text != "all" and not (text.isdecimal() and 1 <= int(text) <= 1000):
        raise BadValue("--depth", text, "a whole number of levels from 1 on, or all")
    return None if text == "all" else int(text)


FAILED = 2  # exit status of a command without an answer
PATIENCE_S = 1.0
LABEL = "layouts evaluated"


@contextmanager
def bar(stream: Any = None, label: str = LABEL, patience: float | None = None) -> Iterator[None]:
    """Show progress (layouts evaluated, or as `label` states) and its end after `patience` seconds."""
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        yield
        return
    bars: list[Any] = []
    start, total, end = time.perf_counter(), 0, 0
    after = PATIENCE_S if patience is None else patience

    def listen(count: int, more: int) -> None:
        nonlocal total, end
        total, end = total + count, end + more
        if not bars and time.perf_counter() - start > after:
            bars.append(_progress(out))
        if bars:
            of = f" of {end:,}" if end >= total else ""
            bars[0].update(0, description=f"{total:,}{of} {label}", completed=total, total=end if of else None)

    try:
        with watched(listen):
            yield
    finally:
        for progress in bars:
            progress.stop()


def _progress(out: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    progress = Progress(*columns, console=Console(file=out), transient=True)
    progress.add_task("", total=None)
    progress.start()
    return progress


def answered(module: Any, args: Any, verb: str) -> output.Answer:
    """The answer of a verb to its flags, each of which it looked at; with notes on those that changed nothing, where a verb is quick."""
    before = dict(vars(args))  # a verb may fill in its arguments
    answer = module.run(args)
    flag_use.refuse_unused(args, verb)
    if any(action.option_strings for action, _, _ in args._typed):
        from headway.cli.no_effect import quick_notes

        answer.notes = [*answer.notes, *quick_notes(verb, module, before, answer)]
    return answer


def finish(answer: output.Answer, args: Any, command: Sequence[str]) -> None:
    """Apply the common flags to an answer and print it."""
    borrowed = "; ".join(getattr(args, "borrowed", ()))
    complete.settle(answer, getattr(args, "remarks", ()), borrowed, args.where, args.sort)
    answer.verbose, answer.depth = args.verbose, tree_depth(args)
    keys = [key.strip().replace("-", "_") for text in args.explain or () for key in text.split(",")]
    if keys and len(answer.rows):
        answer.trees = {key: answer.rows.explain(key) for key in keys}
    if args.format in output.SPOKEN or answer.status == FAILED:
        complete.describe(answer, borrowed)
    if args.plot:
        complete.draw(answer, view(args), args.picture).save(args.plot)
    output.write(answer, args.format, command)
    if answer.status == FAILED and args.format not in ("text", "md"):  # a script that reads rows is told why as well
        sys.stderr.write(f"headway: {' '.join(answer.words.headline.split())}\n")
