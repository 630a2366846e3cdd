"""The command line from inside: a command's exit status, what it printed and what it complained of."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from unittest import mock

from headway.cli.main import main


def _refused(token: str) -> None:
    raise AssertionError(f"{token} in JSON")


class Answer(NamedTuple):
    """What a command answered; as JSON where it was asked with `-o json`."""

    status: int
    out: str
    err: str

    @classmethod
    def of(cls, argv: Sequence[str]) -> Answer:
        """One command in this process; a bug is an exception, as everywhere in the tests."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(argv)
        return cls(status, out.getvalue(), err.getvalue())

    @property
    def json(self) -> dict[str, Any]:
        """The whole document: strict JSON, of a command that succeeded without a complaint."""
        assert (self.status, self.err) == (0, "")
        return json.loads(self.out, parse_constant=_refused)

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.json["rows"]

    @property
    def notes(self) -> list[str]:
        return self.json["notes"]

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        return self.json["columns"]

    @property
    def text(self) -> str:
        """What a command printed that succeeded."""
        assert self.status == 0, self.err
        return self.out


def unhelped() -> Any:
    """Context of plans without what would help them, each of which is another plan: for who reads no words of the answer."""
    from headway.answers import plan_helps

    return mock.patch.object(plan_helps, "helps", lambda *plans: [])


def command(*argv: Any) -> Answer:
    """One command: `command("serve", model, "--on", system)`, or a single text that is split at its spaces."""
    return Answer.of(argv[0].split() if len(argv) == 1 else [str(word) for word in argv])


def changed(argv: Sequence[str], *change: str) -> list[str]:
    """A command with some of its flags replaced, each of which it may have only once; new ones come last."""
    words = list(argv)
    for flag in (word for word in change if word.startswith("--") and word in words):
        del words[words.index(flag) : words.index(flag) + 2]
    return [*words, *change]


class Cli:
    """The fixture `cli`: `cli("serve", ...)` gives an Answer, `cli.json(...)` and `cli.rows(...)` ask for JSON."""

    def __call__(self, *argv: Any) -> Answer:
        return command(*argv)

    def json(self, *argv: Any) -> dict[str, Any]:
        """The document of a command, which succeeds."""
        words = argv[0].split() if len(argv) == 1 else argv
        return command(*words, "-o", "json").json

    def rows(self, *argv: Any) -> list[dict[str, Any]]:
        """The rows of a command, which succeeds."""
        with unhelped():
            return self.json(*argv)["rows"]
