"""The parser every verb uses: no abbreviations, the common tail, and errors of one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from headway.errors import HeadwayError, UnknownName, nearest

FORMATS = ("text", "md", "csv", "json", "parquet")


class Usage(HeadwayError):
    """A command line that cannot be read."""


class Parser(argparse.ArgumentParser):
    """argparse without its exits: a wrong command line is an error of one line that names the nearest flags."""

    def __init__(self, verb: str, sentence: str) -> None:
        usage = f"headway {verb} WHAT ... [flags]"
        super().__init__(prog=f"headway {verb}", usage=usage, description=sentence, allow_abbrev=False, formatter_class=_Help)

    def format_help(self) -> str:
        """The help; its first line names a subject only where the verb takes one."""
        if all(action.option_strings for action in self._actions):
            self.usage = f"{self.prog} [flags]"
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}; see {self.prog} --help")

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments, or an error that names what would work."""
        if any(word == "--" or word.endswith("=--") for word in argv):  # argparse would drop it and leave a flag an empty list
            raise Usage(f"do not know what to do with '--'; see {self.prog} --help")
        known, extra = self.parse_known_args(_joined(argv))
        if extra:
            flags = [flag for action in self._actions for flag in action.option_strings]
            unknown_flag = extra[0].partition("=")[0]
            if unknown_flag.startswith("-"):
                near = nearest(unknown_flag, flags) or [flag for flag in flags if flag.startswith(unknown_flag)]
                offer = f"; did you mean {' or '.join(near)}?" if near else ""
                raise Usage(f"no flag {unknown_flag!r}{offer} See {self.prog} --help")
            raise Usage(f"do not know what to do with {extra[0]!r}; see {self.prog} --help")
        return known


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=140)


def _joined(argv: Sequence[str]) -> list[str]:
    """`--batch -4` as `--batch=-4`: what follows a long flag with one dash is its value, not a flag."""
    words: list[str] = []
    for word in argv:
        value = word.startswith("-") and not word.startswith("--") and word not in ("-o", "-h") and not word.startswith("-o=")
        if value and words and words[-1].startswith("--") and "=" not in words[-1]:
            words[-1] += "=" + word
        else:
            words.append(word)
    return words


def add_tail(parser: Parser) -> None:
    """The flags of every verb."""
    tail = parser.add_argument_group("output, everywhere")
    tail.add_argument("-o", "--format", default="text", metavar="|".join(FORMATS), help="how to print the answer (default text)")
    tail.add_argument("--plot", metavar="FILE", help="draw it to FILE.png, FILE.svg or FILE.html")
    tail.add_argument("--where", metavar="CONDITION", help="keep the rows for which it holds, such as 'tpot_s <= 20ms and tp = 8'")
    tail.add_argument("--sort", metavar="KEY", help="order by a column; -KEY for the largest first")
    tail.add_argument("--explain", metavar="KEY", action="append", help="the tree of equations behind this column of the first row")
    edits = parser.add_argument_group("what if")
    edits.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="edit a fact: chip.hbm_bw=10TB/s (repeatable)")
    edits.add_argument("--catalog", metavar="DIR", action="append", default=[], help="a folder of your own chips, systems and models")
    edits.add_argument("--attention", metavar="KIND", help="override: dense, window:4k, topk:2k, sqrt:L0 (quality not modelled)")
    edits.add_argument("--kv-share", metavar="N", help="override: N neighbouring layers share one KV cache (quality not modelled)")


def check_tail(args: Any) -> None:
    """What can be wrong about the tail before any work is done."""
    if args.format not in FORMATS:
        raise UnknownName("output format", args.format, FORMATS, "one of " + ", ".join(FORMATS))
    if args.plot:
        from headway.figures import check_path

        check_path(args.plot)
