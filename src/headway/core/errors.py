"""Errors of wrong input, one line each: the input, and what would work.

An infeasible layout is no error (it is a row with `fits` false and a reason); errors are for input that has no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def nearest(name: str, known: Iterable[str], count: int = 3, likeness: float = 0.5) -> list[str]:
    """The known names closest to `name`, best first."""
    import difflib

    return difflib.get_close_matches(name.lower(), list(known), count, likeness)


def clip(value: object, size: int = 60) -> str:
    """`value` as one short line, so that no input can flood a message."""
    text = " ".join(str(value).split())
    return text if len(text) <= size else text[: size - 3] + "..."


def printable(text: str) -> str:
    """`text` with each control character but line ends as people write it: a name from a file must not steer the terminal.

    >>> printable("a" + chr(27) + "[31m")
    'a\\\\x1b[31m'
    """
    return text if text.isprintable() else "".join(part if part.isprintable() or part in "\n\t" else repr(part)[1:-1] for part in text)


class HeadwayError(Exception):
    """Base of every error a user can cause; `str()` is the line to show."""


class UnknownName(HeadwayError, LookupError):
    """A model, chip, system, key or flag that does not exist; offers the nearest ones that do."""

    def __init__(self, what: str, name: object, known: Iterable[str], hint: str = "") -> None:
        near = nearest(str(name), known)
        offer = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(f"no {what} named {clip(name)!r}{offer}{'; ' + hint if hint else ''}")


def check_known(what: str, name: str, known: Collection[str]) -> None:
    """Raise UnknownName, which lists the known names, unless `name` is one of them."""
    if name not in known:
        raise UnknownName(what, name, known, "one of " + ", ".join(known))


class BadValue(HeadwayError, ValueError):
    """A value that its field does not accept."""

    def __init__(self, field: str, value: object, wants: str) -> None:
        super().__init__(f"{field}: got {clip(value)!r}; wants {wants}")


class IllegalCombination(BadValue):
    """Values legal each alone that cannot go together; a list drops such combinations with a note, a single one is an error."""


def drop_note(errors: Sequence[HeadwayError], count: int, subject: str) -> list[str]:
    """A note on the combinations that were dropped from `count`; none if none were."""
    return [f"dropped {len(errors)} of {count} {subject}, such as {errors[0]}"] if errors else []


class MissingFact(HeadwayError, LookupError):
    """A fact the catalogue leaves blank because no public source was found."""

    def __init__(self, subject: str, field: str, hint: str) -> None:
        verb = "are" if " and " in field else "is"
        super().__init__(f"{subject}: {field} {verb} not known (no public figure in the catalogue); {hint}")


class UnsupportedModel(HeadwayError, ValueError):
    """A config.json with an unsupported architecture, which is never guessed."""

    def __init__(self, field: str, value: object, hint: str) -> None:
        super().__init__(f"config.json: {field} = {clip(value)!r} is not covered; {hint}")


INTERRUPTED = 130  # exit status where the user stopped a command, whatever it could still tell


class BadFile(HeadwayError, ValueError):
    """A file that cannot be read in its expected format."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(f"{clip(path, 120)}: {why}")


class IllegalLayout(HeadwayError, ValueError):
    """A layout that breaks a rule of the model or of the machine."""

    def __init__(self, layout: object, why: str) -> None:
        super().__init__(f"layout {clip(layout)}: {why}")


class MissingExtra(HeadwayError, ImportError):
    """A feature whose optional package is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional package, headway[{extra}]: pip install 'headway[{extra}]'")
