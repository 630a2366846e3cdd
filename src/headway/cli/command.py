"""A command line as a result of Python."""

from __future__ import annotations

import shlex

from headway.answers import asked
from headway.cli import main
from headway.core.errors import BadValue
from headway.report.result import Result


def command(text: str) -> Result:
    """The result of a command line, such as `speed deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k`.

    Every verb can be asked so. `--where`, `--sort` and `--plot` apply; `-o`, `--explain` and `--verbose` are methods of the result.
    """
    argv = shlex.split(text)
    argv = argv[1:] if argv[:1] == ["headway"] else argv
    if not argv:
        raise BadValue("command", text, "a verb and its flags, such as `list models`")
    try:
        question, printed = main.parsed(argv)
    except SystemExit:  # argparse has printed the help
        raise BadValue("command", " ".join(argv), "a command that answers; this one prints help") from None
    printed.check(question)
    result = asked.result(question, printed.where, printed.sort, argv, printed.format)
    if printed.plot:
        view = printed.view()
        result.plot(printed.plot, picture=printed.picture, width=view.width, theme=view.theme)
    return result
