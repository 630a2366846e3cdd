"""The rows of `headway cache`, as records."""

from __future__ import annotations

from typing import Any

from headway.cli import cache
from headway.cli.verb import Parser, add_tail


def listing(*argv: str) -> Any:
    """The rows of a command."""
    parser = Parser("cache", "")
    cache.add_flags(parser)
    add_tail(parser)
    return cache.run(parser.read(list(argv))).rows
