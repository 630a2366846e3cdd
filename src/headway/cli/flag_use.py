"""Flags that a command typed: an empty value, a repeated flag and a flag that the verb never looked at are errors, each with the reason."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any

from headway.core import schema
from headway.core.errors import BadValue

# Looked at when the answer is printed.
PRINTED = ("format", "plot", "picture", "plot_width", "plot_theme", "where", "sort", "explain", "depth", "verbose")
EDITS = ("set", "catalog", "attention", "kv_share")


class Arguments(argparse.Namespace):
    """Values of flags that remember which of them were looked at."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            object.__getattribute__(self, "__dict__").setdefault("_looked_at", set()).add(name)
        return object.__getattribute__(self, name)


def typed_actions(parser: Any, argv: Sequence[str]) -> Iterator[tuple[Any, str, str | None]]:
    """Each flag of a command line: its action, the flag as typed, and its value where it takes one."""
    words = iter(enumerate(argv))
    for place, word in words:
        flag, equals, value = word.partition("=")
        action = parser._option_string_actions.get(flag) if word.startswith("-") else None
        if action is None and re.match(r"-[a-z]", word):  # -ojson
            flag, equals, value = word[:2], "=", word[2:]
            action = parser._option_string_actions.get(flag)
        if action is None:
            continue
        if equals:
            yield action, flag, value
        elif action.nargs == 0:
            yield action, flag, None
        else:
            yield action, flag, argv[place + 1] if place + 1 < len(argv) else None


def refuse_empty(parser: Any, argv: Sequence[str]) -> None:
    """Raise an error for a flag with an empty value, such as that of a variable that a script never set."""
    for action, flag, value in typed_actions(parser, argv):
        if value is not None and not value.strip() and action.nargs != 0:
            raise BadValue(flag, value, "a value, or the flag left out")


def refuse_repeated(parser: Any, argv: Sequence[str]) -> None:
    """Raise an error for a flag that stands twice, and for a key or value that stands twice in a flag that may be repeated: of two
    values one would be ignored."""
    earlier: dict[str, str | None] = {}
    for action, flag, value in typed_actions(parser, argv):
        name, what, field = action.dest, flag, getattr(action, "field", None)
        if isinstance(action, argparse._ExtendAction):
            continue  # several words, whose reader knows what a key is
        if isinstance(action, argparse._AppendAction):
            keyed = str(action.metavar).startswith("KEY=")
            what = (value or "").partition("=")[0].strip() if keyed else value or ""
            what = f"{flag} {what.replace('-', '_') if name == 'set' else what}"
            name = what
        if name in earlier:
            both = "it twice" if value is None else f"{earlier[name]} and {value}"
            hint = f"; several values have commas: {flag} 1,2" if field is not None and not field.choices else ""
            raise BadValue(what, both, f"the flag once{hint}")
        earlier[name] = value


def start(args: Arguments, parser: Any, argv: Sequence[str]) -> None:
    """Forget what the parser itself looked at, and keep which flags were typed."""
    args._typed = list(typed_actions(parser, argv))
    args._looked_at = set()


def pass_on(args: Any) -> None:
    """Take every flag as looked at: of a verb that hands its command line to another one, which judges it."""
    if isinstance(args, Arguments):
        args._looked_at.update(action.dest for action, _, _ in args._typed)


def refuse_unused(args: Any, verb: str) -> None:
    """Raise an error for a typed flag that the verb never looked at: it would have been ignored in silence."""
    if not isinstance(args, Arguments):
        return
    for action, flag, value in args._typed:
        if action.dest not in args._looked_at and action.dest not in PRINTED:
            if value is not None and isinstance(getattr(action, "field", None), schema.Field) and action.metavar != "NAME":
                schema.axis(value, action.field, flag)  # a wrong value is the first thing to say
            why = "has no machine or model that it could edit" if action.dest in EDITS else "does not use it for this question"
            raise BadValue(flag, "the flag" if value is None else value, f"no {flag}: `{verb}` {why}")
