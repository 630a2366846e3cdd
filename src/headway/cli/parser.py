"""The command line of a question: its words read into the record, its help written from the declarations."""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from headway.core import schema, spellings, units
from headway.core.errors import BadValue, HeadwayError, nearest
from headway.core.question import WHAT_IF, Question, QuestionField, completed
from headway.report.printed import PRINTED, Printed

SHOWN_UNITS = ("s", "1/s", "byte", "byte/s")  # units of which help gives an example
STATED_DEFAULT = re.compile(r"\(default [^()]*\)")
HELP_ALL = "--help-all"
MOST_LINES, WIDTH = 60, 140  # of an everyday help


class Usage(HeadwayError):
    """Error of a command line that cannot be parsed."""


class Parser(argparse.ArgumentParser):
    """argparse without exits: a wrong command line raises a one-line error that names the nearest flags."""

    def __init__(self, question: type[Question], sentence: str) -> None:
        super().__init__(prog=f"headway {question.verb}", description=sentence, allow_abbrev=False, formatter_class=_Help)
        self.question = question
        self.add_argument(HELP_ALL, action=_HelpAll, help="show every flag")
        groups: dict[str, Any] = {"": self}
        flags = question.flags()
        printing = {flag.name: flag for flag in PRINTED.flags()}
        last = {name: flag for name, flag in flags.items() if flag.group == WHAT_IF.title or flag.into}  # after what is printed
        order = [flag for name, flag in flags.items() if name not in last and name not in printing]
        self.flags = {flag.name: flag for flag in (*order, *printing.values(), *sorted(last.values(), key=lambda flag: bool(flag.into)))}
        for flag in self.flags.values():
            if flag.group not in groups:
                groups[flag.group] = self.add_argument_group(flag.group)
            self._add(groups[flag.group], flag)
        self.spelled = {spelling: flag for flag in self.flags.values() for spelling in flag.spellings}

    def _add(self, group: Any, flag: QuestionField) -> None:
        """One flag or subject."""
        if flag.field.kind == "object":
            return
        field, settings = flag.field, dict[str, Any](default=argparse.SUPPRESS)
        about = pictures_of(self.question) if flag.name == "picture" else help_of(flag)
        if self._is_refused(flag):
            about = argparse.SUPPRESS  # it is refused, with the reason
        if field.place:
            if field.place in "?*+":
                settings["nargs"] = field.place
            group.add_argument(flag.name, metavar=word_of(flag) or None, help=about or None, **settings)
            return
        if field.is_switch:
            settings["action"] = "store_true"
        else:
            words = tuple(field.word.split()) if field.takes == "words" else word_of(flag)
            settings["metavar"] = words
            if field.takes:
                settings["action"] = {"words": "store", "again": "append", "words again": "extend"}[field.takes]
            if "words" in field.takes:
                settings["nargs"] = "+"
        group.add_argument(*flag.spellings, dest=flag.name, required=flag.is_required, help=about, **settings)

    # -- help -------------------------------------------------------------------------------------------------------------------

    def format_help(self) -> str:
        """Help text with everyday flags, an example, and the flags left out: the rare ones, and of a long page what all verbs take."""
        hidden = {flag.name for flag in self.flags.values() if flag.field.rare}
        groups: dict[str, list[QuestionField]] = {}
        for flag in self.flags.values():
            if flag.is_brief and flag.name not in hidden and not self._is_refused(flag):
                groups.setdefault(flag.group, []).append(flag)
        text, brief = self._without(hidden), dict[str, list[str]]()
        for title, flags in reversed(groups.items()):
            if len(text.splitlines()) + sum(_brief_line(group).count("\n") + 1 for group in brief.items()) < MOST_LINES:
                break
            hidden |= {flag.name for flag in flags}
            text, brief = self._without(hidden), {title: [flag.spellings[0] for flag in flags], **brief}
        more = [flag for flag in self.flags.values() if flag.field.rare and not self._is_refused(flag)]
        more_line = f"{len(more)} more flags: {self.prog} {HELP_ALL}" if more else f"all flags: {self.prog} {HELP_ALL}" if brief else ""
        return text + "".join(f"{line}\n" for line in (*map(_brief_line, brief.items()), more_line) if line)

    def _is_refused(self, flag: QuestionField) -> bool:
        """Whether the verb takes no such edit; help does not name it."""
        return flag.group == WHAT_IF.title and flag.name not in self.question.edits

    def _without(self, names: set[str]) -> str:
        """Help text without these flags."""
        hidden = {action: action.help for action in self._actions if action.dest in names}
        try:
            for action in hidden:
                action.help = argparse.SUPPRESS
            return self.every_flag()
        finally:
            for action, text in hidden.items():
                action.help = text

    def every_flag(self) -> str:
        """Help text with every flag."""
        self.usage, self.epilog = self._usage(), f"example: headway {self.question.example}" if self.question.example else ""
        return super().format_help()

    def _usage(self) -> str:
        """Subjects and flags without which the verb does not run, or a line for each of its modes."""
        verb, modes = self.question.verb, self.question.modes
        if modes:
            width = max(len(words) for words, _ in modes) + len(verb)
            return "\n       ".join(f"{f'headway {verb} {words}':{width + 11}}{sentence}" for words, sentence in modes)
        words = []
        for flag in self.flags.values():
            if flag.field.place:
                name = word_of(flag) or flag.name
                name = name if "|" in name else name.upper()
                words.append(f"[{name}]" if flag.field.place == "?" else name)
            elif flag.is_required:
                words += [flag.spellings[-1], word_of(flag)]
        return " ".join(["headway", verb, *words, "[flags]"])

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message}; see {self.prog} --help")

    # -- reading ----------------------------------------------------------------------------------------------------------------

    def read(self, argv: Sequence[str]) -> tuple[Question, Printed]:
        """The question, and how its answer is printed; an error names what would work."""
        if any(word == "--" or word.endswith("=--") for word in argv):  # argparse would drop the word and give the flag an empty list
            raise Usage(f"do not know what to do with '--'; see {self.prog} --help")
        words = completed(_joined(argv), self.spelled)
        self._check_typed(words)
        words = self._by_numbers(words)
        values, extra = self.parse_known_args(words)
        typed = vars(values)
        spare = next((flag.name for flag in self.flags.values() if flag.field.place == "*" and flag.field.kind == "pairs"), "")
        if extra and spare and not any(word.startswith("-") for word in extra):  # key=value after a flag
            typed[spare], extra = [*typed.get(spare, ()), *extra], []
        if extra:
            self._refuse_unknown(extra[0])
        printing = {flag.name for flag in PRINTED.flags()}
        typed |= {name: tuple(value) for name, value in typed.items() if isinstance(value, list)}
        printed = {name: value for name, value in typed.items() if name in printing}
        order = dict.fromkeys((*self.question.leading(), *(flag.name for flag, _, _ in self._typed(words))))
        values_of = {name: typed[name] for name in order if name in typed and name not in printing}
        if "where" in self.question.flags():  # which chooses among the rows of the other verb
            values_of["where"] = printed.pop("where", None)
        return self.question.from_values(values_of).meant(), Printed(**printed)

    def _typed(self, words: Sequence[str]) -> Iterator[tuple[QuestionField, str, str | None]]:
        """Each flag of a command line, as it is spelled, and its value where it takes one."""
        for place, word in enumerate(words):
            spelling, equals, value = word.partition("=")
            flag = self.spelled.get(spelling) if word.startswith("-") else None
            if flag is None and re.match(r"-[a-z]", word):  # -ojson
                spelling, equals, value = word[:2], "=", word[2:]
                flag = self.spelled.get(spelling)
            if flag is None:
                continue
            after = words[place + 1] if place + 1 < len(words) else None
            yield flag, spelling, value if equals else None if flag.field.is_switch else after

    def _check_typed(self, words: Sequence[str]) -> None:
        """Raise an error for an empty value, as of a variable that a script never set, and for a flag or key that stands twice."""
        earlier: dict[str, str | None] = {}
        typed = list(self._typed(words))
        for flag, spelling, value in typed:
            if value is not None and not value.strip() and not flag.field.is_switch:
                raise BadValue(spelling, value, "a value, or the flag left out")
        for flag, spelling, value in typed:
            name, what = flag.name, spelling
            if flag.field.takes == "words again" or flag.field.kind == "credential":
                continue  # several words, whose reader knows what a key is
            if flag.field.takes == "again":
                key = (value or "").partition("=")[0].strip() if flag.field.word.startswith("KEY=") else value or ""
                name = what = f"{spelling} {key.replace('-', '_') if flag.name == 'set' else key}"
            if name in earlier:
                both = "it twice" if value is None else f"{earlier[name]} and {value}"
                hint = f"; several values have commas: {spelling} 1,2" if flag.field.is_number else ""
                raise BadValue(what, both, f"the flag once{hint}")
            earlier[name] = value

    def _by_numbers(self, argv: Sequence[str]) -> list[str]:
        """The words of a command without the flags of a model by numbers, whose one word takes the model's place."""
        group = next((group for group in self.question.groups if group.into), None)
        if group is None:
            return list(argv)
        all_flags = {flag.spellings[0]: flag.name for flag in group.flags()}
        flags = {spelling: name for spelling, name in all_flags.items() if self.flags[name].into}
        leads = [schema.flag(name) for name in group.speller.leading]
        if any(word.partition("=")[0] in leads for word in argv):
            flags = all_flags  # beside --params or --hidden, a flag that the verb has too is the model's
        parts, rest, queue = dict[str, str](), list[str](), list(argv)
        while queue:
            word = queue.pop(0)
            spelling, equals, value = word.partition("=")
            if spelling not in flags:
                rest.append(word)
                continue
            if not equals:
                if not queue or queue[0].startswith("--"):
                    raise HeadwayError(f"argument {spelling}: expected one argument")
                value = queue.pop(0)
            parts[flags[spelling]] = value
        if not parts:
            return rest
        place = list(self.question.leading()).index(group.into)
        if len(rest) > place and not rest[place].startswith("-"):
            typed_name = rest[place]
            raise HeadwayError(f"{schema.flag(next(iter(parts)))} describes a model by numbers: leave out {typed_name!r}, or write "
                               f"{typed_name}:12layers for fewer layers")  # fmt: skip
        return [*rest[:place], group.speller.spelled(parts), *rest[place:]]

    def _refuse_unknown(self, word: str) -> NoReturn:
        unknown = word.partition("=")[0]
        if not unknown.startswith("-"):
            if any(flag.field.kind == "credential" for flag in self.flags.values()):  # a header without its quotes
                raise Usage(f"a word too many, which is not printed here: --header wants one, in quotes; see {self.prog} --help")
            raise Usage(f"do not know what to do with {word!r}; see {self.prog} --help")
        flags = [flag for action in self._actions for flag in action.option_strings]
        near = nearest(unknown, flags) or [flag for flag in flags if flag.startswith(unknown)]
        offer = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Usage(f"no flag {unknown!r}{offer} See {self.prog} --help")


def _brief_line(group: tuple[str, list[str]]) -> str:
    """A group's title and its flags, without what they say."""
    title, names = group
    return textwrap.fill(f"{title}: {', '.join(names)}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)


class _HelpAll(argparse.Action):
    """`--help-all`: prints the help with every flag and ends the command, as `--help` does."""

    def __init__(self, option_strings: Any, dest: str, **settings: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=settings.get("help"))

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Print every flag."""
        parser._print_message(parser.every_flag(), sys.stdout)
        parser.exit()


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=WIDTH)


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


def word_of(flag: QuestionField) -> str:
    """What help calls the value of a flag."""
    field, usual = flag.field, flag.usual
    if field.word:
        return field.word
    if field.choices:
        return "|".join(choice for choice in field.choices if choice)
    is_name = isinstance(usual, str) and not usual.replace(".", "").isdigit()
    return "" if field.place else "NAME" if is_name else field.bare or field.unit or "N"


def help_of(flag: QuestionField) -> str:
    """Sentence of a flag, with its default or an example where the sentence has none."""
    field, usual = flag.field, None if flag.is_searched else flag.usual
    if field.word or field.place or field.is_switch or (field.choices and flag.default == flag.usual is not None):
        return field.help.replace("%", "%%")
    has_default = usual != "" and isinstance(usual, str | int | float)  # the sentence explains other defaults
    default = f" (default {usual if isinstance(usual, str | bool) else units.show(usual, field.unit, 6)})" if has_default else ""
    example = f" (such as {spellings.EXAMPLE[field.unit]})" if not has_default and not field.bare and field.unit in SHOWN_UNITS else ""
    about = STATED_DEFAULT.sub("(default: searched)", field.help) if flag.is_searched else field.help
    return (about + default + example).replace("%", "%%")


def pictures_of(question: type[Question]) -> str:
    """Sentence of `--picture`."""
    names = "; ".join(f"{name} ({sentence})" for name, sentence in question.pictures)
    return "what to draw: " + "; ".join(filter(None, [names, "X,Y: one column of the rows against another"]))
