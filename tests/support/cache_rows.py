"""The rows of `headway cache`, as records."""

from __future__ import annotations

from typing import Any

from headway.cli.main import parsed


def listing(*argv: str) -> Any:
    """The rows of a command."""
    question, _ = parsed(["cache", *argv])
    return question.answer().rows
