"""A verb called from Python: its keywords become the words of its command line, its answer a Result."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.cli import main
from headway.core import schema
from headway.core.errors import BadValue, UnknownName
from headway.report import complete
from headway.report.result import Result

# Of a Result: where(), sort(), plot(), ...
TAIL = ("where", "sort", "plot", "picture", "plot_width", "plot_theme", "format", "explain", "depth", "verbose", "help", "help_all")


def call(verb: str, subjects: Sequence[Any] = (), flags: Mapping[str, Any] | None = None, records: Iterable[Any] = (),
         layouts: Sequence[Any] = ()) -> Result:  # fmt: skip
    """The result of a verb: positional `subjects`, keywords named as its flags, and fields of `records` as further keywords."""
    words = _Words()
    argv = [verb, *(words.text(subject) for subject in subjects if subject is not None)]
    _, parser = main.parser_of(argv)
    for name, value in _merged(flags or {}, records).items():
        argv += words.flag(parser, verb, name, value)
    return _run(argv, words, layouts)


def command(text: str) -> Result:
    """The result of a command line, such as `speed deepseek-v3 --on gb200-nvl72 --prompt 8k --output 1k`.

    Every verb can be asked so. `--where`, `--sort` and `--plot` apply; `-o`, `--explain` and `--verbose` are methods of the result.
    """
    argv = shlex.split(text)
    argv = argv[1:] if argv[:1] == ["headway"] else argv
    if not argv:
        raise BadValue("command", text, "a verb and its flags, such as `list models`")
    return _run(argv, _Words(), ())


def _run(argv: list[str], words: _Words, layouts: Sequence[Any]) -> Result:
    from headway.cli.verb import answered, check_tail

    try:
        module, args = main.parsed(argv)
    except SystemExit:  # argparse has printed the help
        raise BadValue("command", " ".join(argv), "a command that answers; this one prints help") from None
    check_tail(args)
    args.objects, args.layouts = words.objects, layouts
    answer = answered(module, args, argv[0])
    borrowed = "; ".join(args.borrowed)
    complete.settle(answer, args.remarks, borrowed, args.where, args.sort)
    result = Result(answer, ["headway", *words.readable(argv)], borrowed)
    if args.plot:
        result.plot(args.plot)
    return result


def _merged(flags: Mapping[str, Any], records: Iterable[Any]) -> dict[str, Any]:
    """Keywords that have a value, and the fields of records that differ from their defaults; a name given twice is an error."""
    merged = {name: value for name, value in flags.items() if value is not None}
    for record in records:
        for name, (_, default) in schema.fields(type(record)).items() if record is not None else ():
            value = getattr(record, name)
            if value is None or (isinstance(value, str | int | float) and value == default):
                continue
            if name in merged:
                raise BadValue(name, merged[name], f"no {name} beside the {type(record).__name__} that has it")
            merged[name] = value
    return merged


class _Words:
    """Words of a command line from Python values; objects that no word can name get one, `@0`, that stands for them."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def flag(self, parser: Any, verb: str, name: str, value: Any) -> list[str]:
        """The words of one keyword."""
        flag = "--" + name.strip("_").replace("_", "-")
        action = parser._option_string_actions.get(flag)
        if action is None or action.dest in TAIL:
            known = [key[2:].replace("-", "_") for key, option in parser._option_string_actions.items() if option.dest not in TAIL]
            raise UnknownName(f"argument of {verb}", name, known)
        if action.nargs == 0:
            return _switch(flag, value)
        if isinstance(value, bool):
            value = _choice(flag, value, action)
        if hasattr(value, "__len__") and not len(value):
            raise BadValue(flag, value, "at least one value")
        if type(action).__name__ == "_AppendAction":
            items = [f"{key}={self.text(item)}" for key, item in value.items()] if isinstance(value, Mapping) else _several(value)
            return [word for item in items for word in self._valued(flag, item)]
        return self._valued(flag, value)

    def _valued(self, flag: str, value: Any) -> list[str]:
        """A flag and its value: two words, or one where the value would be read as a flag."""
        text = self.text(value)
        return [f"{flag}={text}"] if text.startswith("-") else [flag, text]

    def text(self, value: Any) -> str:
        """One value as a word: texts as they are, numbers in full, lists joined by commas, `key=value` of a mapping."""
        if isinstance(value, str):
            return value
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if isinstance(value, Mapping):
            return " ".join(f"{key}={self.text(item)}" for key, item in value.items())
        value = value.tolist() if hasattr(value, "tolist") else value
        if isinstance(value, int | float):
            return repr(int(value)) if isinstance(value, int) and not isinstance(value, bool) else repr(value)
        if isinstance(value, list | tuple | range | set | frozenset):
            if any(isinstance(item, list | tuple) for item in value):
                raise BadValue("argument", value, "one list, not a list of lists")
            return ",".join(map(self.text, value))
        if _is_subject(value):
            word = f"@{len(self.objects)}"
            self.objects[word] = value
            return word
        raise BadValue("argument", value, f"a number, a text, a list of them, a model or a machine, not {type(value).__name__}")

    def readable(self, argv: Sequence[str]) -> list[str]:
        """The words as people read them: objects by their names."""
        return [",".join(_name(self.objects.get(part), part) for part in word.split(",")) for word in argv]


def _is_subject(value: Any) -> bool:
    """Whether an object can stand where a command has a name: a model, a machine, the result of a plan."""
    from headway.hardware.system import System
    from headway.models.model import Model

    return isinstance(value, Model | System | Result)


def _name(value: Any, word: str) -> str:
    return word if value is None else str(getattr(value, "name", type(value).__name__))


def _several(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _choice(flag: str, value: bool, action: Any) -> str:
    """The word of True or False for a flag of on and off, or of 1 and 0."""
    if "on|off" in str(action.metavar):
        return "on" if value else "off"
    field = getattr(action, "field", None)
    if field is None or not field.integer or field.high != 1:
        raise BadValue(flag, value, "a number or a text")
    return str(int(value))


def _switch(flag: str, value: Any) -> list[str]:
    """The word of a flag that takes no value."""
    if not isinstance(value, bool):
        raise BadValue(flag, value, "True or False")
    return [flag] if value else []
