"""Questions: a frozen record per verb. Its flags, help, Python function, JSON Schema, printed command and file follow from its fields.

A field holds what a person writes: a text with its unit, a list, True of a switch; or an object that has a name (a model, a machine). It
becomes a number only where it is read (`core/schema.py: read`). A question is declared in the package that answers it:

    class Serve(Question):
        verb, answered_by = "serve", "headway.answers.serve"
        groups = (FlagGroup(Load, "load"), FlagGroup(Layout, "layout"))
        model: Annotated[Any, MODELS]
        on: Annotated[Any, MACHINES]
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast, dataclass_transform

from headway.core import schema
from headway.core.errors import BadValue, HeadwayError, UnknownName, check_known, nearest
from headway.core.schema import Field

MODELS = Field(kind="model", place="1", help="catalogue name, config.json or Hugging Face id; several with commas")
MACHINES = Field(kind="machine", word="MACHINE", help="gb200-nvl72, 8xh100-sxm, ...; several with commas")
SWITCH = "switch"
SHIPPED = Field(kind=SWITCH, help="price sheets that ship, not those that headway update wrote for you")
OBJECT = "object"  # of a Python call alone: no word stands for it
OF_FACTS = ("set", "catalog", "attention", "kv_share")  # edits of a machine or a model


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a question as its class declares it, until the class is made."""

    field: Field
    default: Any


REQUIRED = dataclasses.MISSING  # default of a field without which there is no question


def declared(field: Field, *, default: Any = None, rare: bool = False) -> Any:
    """A field of a question or of a record of flags; a subject of one word or more must be given."""
    default = REQUIRED if default is None and field.place in ("1", "+") else default
    return Declared(dataclasses.replace(field, rare=True) if rare else field, default)


def field(unit: str = "", help: str = "", *, default: Any = None, **settings: Any) -> Any:
    """A field of a question or of a record of flags: the settings are those of `core/schema.py: Field`."""
    return declared(Field(unit, help, **settings), default=default)


def _make(cls: type, kinds: dict[str, Any]) -> None:
    """Make a class with these fields, and those that it declares, a frozen dataclass."""
    for name, value in list(vars(cls).items()):
        if isinstance(value, Declared):
            kinds[name] = Annotated[Any, value.field]
            if value.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    cls.__annotations__ = kinds
    dataclass(frozen=True, kw_only=True)(cls)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class FlagRecord:
    """Base of a record that is nothing but flags: its defaults are those of the question. Of any other record they are its own affair."""

    def __init_subclass__(cls) -> None:
        _make(cls, {})


class SpelledRecord(FlagRecord):
    """Base of a record of flags that make up the one text of another field."""

    leading: ClassVar[tuple[str, ...]] = ()  # each of which begins such a text: beside one, a flag that the verb has too is the record's

    @staticmethod
    def spelled(parts: Mapping[str, str]) -> str:
        """The text that these values make up."""
        raise NotImplementedError


class Edits(FlagRecord):
    """What if: facts of machines and models changed, and how a model is read."""

    set = field(kind="edit", word="KEY=VALUE", takes="again", help="edit a fact: chip.hbm_bw=10TB/s (repeatable)", default=())
    catalog = field(kind="folder", word="DIR", takes="again", help="a folder of your own chips, systems and models", default=())
    attention = field(kind="word", word="KIND", help="override: dense, window:4k, topk:2k, sqrt:L0 (quality not modelled)", rare=True)
    kv_share = field(kind="number", word="N", help="override: N neighbouring layers share one KV cache (quality not modelled)", rare=True)
    strict = field(kind=SWITCH, help="a key of config.json that no reader knows is an error, not a note", default=False)
    as_ = field(kind="word", word="KIND", help="read config.json as dense, moe or mla, whatever its model_type")
    key = field(kind="secret", word="KEY=VALUE", takes="again", help="a key of config.json by hand (repeatable)", default=())
    embedding = field(kind="word", word="FORMAT", help="format of embedding and head (default as stored)")


@dataclass(frozen=True, slots=True)
class FlagGroup:
    """Fields of a record as flags under one title of the help."""

    record: type
    title: str
    skip: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()  # set by a search unless the user does, so that help names no default
    into: str = ""  # the field whose text these make up together, as a SpelledRecord says
    is_brief: bool = False  # named in one line of a long everyday help, and told by --help-all

    @property
    def speller(self) -> type[SpelledRecord]:
        """The record of a group that makes up a text."""
        return cast("type[SpelledRecord]", self.record)

    def flags(self) -> Iterator[QuestionField]:
        """Its fields, as flags of a question."""
        for name, (field, usual) in schema.fields(self.record).items():
            if name not in self.skip and (not self.only or name in self.only):
                default = usual if issubclass(self.record, FlagRecord) else None
                yield QuestionField(name, field, default, usual, self.title, name in self.searched, self.into, self.is_brief)


WHAT_IF = FlagGroup(Edits, "what if", is_brief=True)


@dataclass(frozen=True, slots=True)
class QuestionField:
    """A field of a question."""

    name: str
    field: Field
    default: Any = None  # of the question; MISSING where it must be given
    usual: Any = None  # what then holds, which help states
    group: str = ""
    is_searched: bool = False
    into: str = ""
    is_brief: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """What the command line takes: none of a subject."""
        return () if self.field.place or self.field.kind == OBJECT else self.field.spellings or (schema.flag(self.name),)

    @property
    def word(self) -> str:
        """The flag as messages name it; of a subject its name."""
        return self.name if self.field.place else (self.field.spellings or (schema.flag(self.name),))[0]

    @property
    def is_required(self) -> bool:
        """Whether the question is none without it."""
        return self.default is dataclasses.MISSING

    @property
    def is_list(self) -> bool:
        """Whether it holds several texts."""
        return bool(self.field.takes) or self.field.place in ("*", "+")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Question:
    """Base of every question; a subclass declares fields of its own and groups of fields that other records declare."""

    verb: ClassVar[str] = ""
    answered_by: ClassVar[str] = ""  # the module whose `run` answers it
    example: ClassVar[str] = ""
    modes: ClassVar[Sequence[tuple[str, str]]] = ()  # of a verb that answers several: the words of each, and what it answers
    groups: ClassVar[tuple[FlagGroup, ...]] = ()
    pictures: ClassVar[Sequence[tuple[str, str]]] = ()  # that answers may draw: the name of each, the default first, and what it shows
    broadcasts: ClassVar[tuple[str, ...]] = ()  # numbers of which a list is one call over arrays, so that a sweep asks it so
    refresh: ClassVar[str] = ""  # whether a page asks it "at once", as a slider moves, or "on release"; empty: no page does
    no_page: ClassVar[str] = ""  # why no page asks it, and what to do instead
    probes: ClassVar[Sequence[str] | None] = ()  # fields without which it is asked again, to say which change nothing; None: all
    slow_with: ClassVar[tuple[str, ...]] = ()  # fields beside which that would take long
    subjects: ClassVar[tuple[str, ...]] = ("model", "on")  # positional arguments of its function
    edits: ClassVar[tuple[str, ...]] = tuple(schema.fields(Edits))  # those that say something
    no_edits: ClassVar[str] = ""  # what the others want, where that is not the usual sentence
    documents: ClassVar[tuple[str, ...]] = ()  # formats of files that the answer may be written as, beside those of every answer
    progress: ClassVar[str] = "layouts evaluated"  # what the progress bar counts
    patience_s: ClassVar[float] = 1.0  # before it appears

    def __init_subclass__(cls) -> None:
        kinds = {name: kind for name, kind in vars(cls).get("__annotations__", {}).items() if not str(kind).startswith("ClassVar")}
        fields = dict.fromkeys((*cls._declared, *kinds, *(name for name, value in vars(cls).items() if isinstance(value, Declared))))
        for group in (*cls.groups, WHAT_IF):
            for flag in () if group.into else group.flags():
                if flag.name not in fields:
                    kinds[flag.name] = Annotated[Any, flag.field]
                    setattr(cls, flag.name, flag.default)
        _make(cls, kinds)
        cls._declared = tuple(fields)

    _declared: ClassVar[tuple[str, ...]] = ()
    _order: ClassVar[tuple[str, ...]] = ()  # in which an instance was given its values

    if TYPE_CHECKING:  # the fields of groups are there when the class is made
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

        def __getattr__(self, name: str) -> Any: ...

    # -- declarations -----------------------------------------------------------------------------------------------------------

    @classmethod
    def of_words(cls, words: Sequence[str]) -> type[Question]:
        """The question that a command line asks: this one, unless its flags depend on its words."""
        return cls

    @classmethod
    def flags(cls) -> dict[str, QuestionField]:
        """Its fields by name, in the order of the help: its own, then those of each group."""
        return dict(_flags(cls))

    @classmethod
    def leading(cls) -> dict[str, QuestionField]:
        """Its subjects: words that need no flag."""
        return {name: flag for name, flag in cls.flags().items() if flag.field.place}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """The question with these values, each as a person writes it or a number in SI; an error names what would work."""
        flags, texts, gathered = cls.flags(), {}, dict[str, dict[str, str]]()
        for name, value in values.items():
            flag = flags.get(name)
            if flag is None:
                raise UnknownName(f"argument of {cls.verb}", name, flags)
            if value is None or value is flag.default:
                continue
            text = as_written(flag, value)
            if flag.into:
                gathered.setdefault(flag.into, {})[name] = text
            elif text is not False:
                texts[name] = text
        for name, parts in gathered.items():
            if name in texts:
                raise BadValue(schema.flag(next(iter(parts))), next(iter(parts.values())), f"no {name} beside it: it describes one")
            group = next(group for group in cls.groups if group.into == name)
            texts[name] = group.speller.spelled(parts)
        missing = [flag.word for name, flag in flags.items() if flag.is_required and name not in texts]
        if missing:
            raise Incomplete(cls.verb, missing)
        question = cls(**texts)
        object.__setattr__(question, "_order", tuple(texts))
        return question

    def meant(self) -> Question:
        """The question that it stands for: itself, unless it is kept in a file."""
        return self

    def check_printed(self, printed: Any) -> None:
        """Raise BadValue where it cannot be printed or drawn as asked (`report/printed.py`)."""

    # -- a question -------------------------------------------------------------------------------------------------------------

    def entries(self) -> dict[str, Any]:
        """What it says beyond its defaults, by name."""
        flags = self.flags()
        names = dict.fromkeys((*self._order, *(name for name, flag in flags.items() if not flag.into)))
        return {name: value for name in names if (value := getattr(self, name)) != flags[name].default}

    def replace(self, **changes: Any) -> Self:
        """The question with other values."""
        return dataclasses.replace(self, **changes)

    def without(self, name: str) -> Self:
        """The question without one of its values."""
        return self.replace(**{name: self.flags()[name].default})

    def idle(self) -> Mapping[str, str]:
        """Fields that say nothing in this question, whatever their value, each with what it wants: given, they are refused."""
        return {}

    def files(self) -> dict[str, str]:
        """Every file that it depends on, with the SHA-256 of its content: with them it can be asked again elsewhere."""
        from headway.core.question_files import files_of

        return files_of(self)

    def command(self) -> list[str]:
        """The words that ask it on the command line."""
        flags, values = self.flags(), self.entries()
        words = [self.verb]
        words_of = (flags[name] for name in values if flags[name].field.kind != OBJECT)
        for flag in sorted(words_of, key=lambda flag: not flag.field.place):
            for text in texts_of(values[flag.name]) if flag.is_list else (values[flag.name],):
                words += _words(flag, text)
        return concealed(self, words)

    def answer(self) -> Any:
        """Its rows, with the words and pictures that go with them."""
        return importlib.import_module(self.answered_by).run(self)

    def first(self) -> Any:
        """Its answer where only the first row is read, which some verbs find sooner; None where this one does not."""
        first = getattr(importlib.import_module(self.answered_by), "first", None)
        return first and first(self)


def question_of(verb: str) -> type[Question]:
    """The question of a verb."""
    from headway import QUESTIONS

    check_known("verb", verb, QUESTIONS)
    module, _, name = QUESTIONS[verb][0].partition(":")
    return getattr(importlib.import_module(f"headway.{module}"), name)


def from_words(words: Sequence[str]) -> Question:
    """The question of a whole command, such as a saved answer holds: what says how it was printed is left out."""
    question = question_of(words[0]).of_words(words[1:])
    flags, places = question.flags(), list(question.leading())
    spelled = {spelling: flag for flag in flags.values() for spelling in flag.spellings}
    values, queue = dict[str, Any](), completed(words[1:], spelled)
    while queue:
        word = queue.pop(0)
        spelling, equals, value = word.partition("=")
        flag = spelled.get(spelling)
        if flag is None and not word.startswith("-") and places:
            flag, equals, value = flags[places[0]], "=", word
            places = places if flag.is_list else places[1:]
        if flag is None:
            takes = word.startswith("-") and word != "--verbose" and not equals
            del queue[: takes and bool(queue) and not queue[0].startswith("-")]
            continue
        if flag.field.is_switch:
            values[flag.name] = True
            continue
        several = [value if equals else queue.pop(0)] if equals or queue else [""]
        while "words" in flag.field.takes and queue and not queue[0].startswith("-"):
            several.append(queue.pop(0))
        values[flag.name] = (*values.get(flag.name, ()), *several) if flag.is_list else several[0]
    return question.from_values(values)


def completed(words: Sequence[str], spelled: Mapping[str, QuestionField]) -> list[str]:
    """The words of a command, a choice that may stand bare with its value: `--disaggregate` becomes `--disaggregate=only`."""
    with_values = list(words)
    for place, word in enumerate(words):
        field = spelled[word].field if word in spelled else None
        if field is None or not field.truths:
            continue
        after = words[place + 1] if place + 1 < len(words) else "--"
        if after.startswith("-") or (after and not nearest(after, field.choices)):  # an empty value or a slip of a choice is a value
            with_values[place] = f"{word}={field.truths[0]}"
    return with_values


class Incomplete(HeadwayError):
    """A question that lacks what it is about."""

    def __init__(self, verb: str, missing: Sequence[str]) -> None:
        super().__init__(f"the following arguments are required: {', '.join(missing)}; see headway {verb} --help")


@functools.cache
def _flags(question: type[Question]) -> dict[str, QuestionField]:
    flags = {
        name: QuestionField(name, field, default, default)
        for name, (field, default) in schema.fields(question).items()
        if name in question._declared
    }
    for group in (*question.groups, WHAT_IF):
        flags |= {flag.name: flag for flag in group.flags() if flag.name not in flags}  # of two with one name, the first is meant
    return flags


# -- values as a person writes them ---------------------------------------------------------------------------------------------


def as_written(flag: QuestionField, value: Any) -> Any:
    """A value of a field as a person writes it; an object stays what it is."""
    if flag.field.kind == OBJECT:
        return tuple(value) if isinstance(value, list | tuple) else (value,)
    if flag.field.is_switch:
        if not isinstance(value, bool):
            raise BadValue(flag.word, value, "True or False")
        return value
    if isinstance(value, bool):
        value = _choice(flag, value)
    if hasattr(value, "__len__") and not len(value):
        raise BadValue(flag.word, value, "a value, or the flag left out" if isinstance(value, str) else "at least one value")
    if flag.is_list:
        items = [f"{key}={text(item, flag.word)}" for key, item in value.items()] if isinstance(value, Mapping) else _items(value)
        return tuple(text(item, flag.word) for item in items)
    return text(value, flag.word)


def text(value: Any, word: str) -> Any:
    """One value as a person writes it: texts as they are, numbers in full, lists with commas, `key=value` of a mapping; objects stay.

    `word` names it where it is illegal.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={text(item, word)}" for key, item in value.items())
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, int | float):
        return repr(int(value)) if isinstance(value, int) and not isinstance(value, bool) else repr(float(value))
    if isinstance(value, list | tuple | range | set | frozenset):
        if any(isinstance(item, list | tuple) for item in value):
            raise BadValue(word, value, "one list, not a list of lists")
        texts = [text(item, word) for item in value]
        return ",".join(texts) if all(isinstance(item, str) for item in texts) else tuple(texts)
    if hasattr(value, "name") or hasattr(value, "to_json"):
        return value
    raise BadValue(word, value, f"a number, a text, a list of them, a model or a machine, not {type(value).__name__}")


def name_of(value: Any) -> str:
    """The word of a value as people read it: of objects, their names."""
    return value if isinstance(value, str) else ",".join(map(name_of, value)) if isinstance(value, tuple) else _name(value)


def _name(value: Any) -> str:
    return str(getattr(value, "name", type(value).__name__))


def _items(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _choice(flag: QuestionField, value: bool) -> Any:
    """The word of True or False for a flag of on and off, of 1 and 0, or of choices that declare theirs."""
    truths = flag.field.truths or (flag.field.choices if flag.field.choices == ("on", "off") else ())
    if truths:
        return truths[not value]
    if not flag.field.integer or flag.field.high != 1:
        raise BadValue(flag.word, value, "a number or a text")
    return str(int(value))


def concealed(question: Question, words: Sequence[str]) -> list[str]:
    """The words of a command without the values of its credentials, of which the name before the colon stays."""
    flags = question.flags()
    hidden = [text for name, flag in flags.items() if flag.field.kind == "credential" for text in texts_of(getattr(question, name))]
    for text in hidden:
        words = [word.replace(text, f"{text.partition(':')[0]}: ***") for word in words]
    return [*words]


def texts_of(value: Any) -> tuple[Any, ...]:
    """The texts of a list, or the one text."""
    return value if isinstance(value, tuple) else (value,)


def _words(flag: QuestionField, value: Any) -> list[str]:
    """A flag and its value: two words, or one where the value would be read as a flag."""
    if flag.field.is_switch:
        return [flag.word]
    word = name_of(value)
    if flag.field.place:
        return [word]
    return [f"{flag.word}={word}"] if word.startswith("-") else [flag.word, word]


# -- rules ----------------------------------------------------------------------------------------------------------------------


def refuse_idle(question: Question) -> None:
    """Raise BadValue for a given field that says nothing in this question, or that says none of the choices of its declaration."""
    refuse(question, {name: question.no_edits for name in schema.fields(Edits) if name not in question.edits} | dict(question.idle()))
    for name, value in question.entries().items():
        flag = question.flags()[name]
        if flag.spellings and flag.field.choices and isinstance(value, str):
            schema.axis(value, flag.field, flag.word)


def refuse(question: Question, idle: Mapping[str, str]) -> None:
    """Raise BadValue for one of these fields if it is given: what it wants, or that the question does not use it."""
    for name, value in question.entries().items():
        if name not in idle:
            continue
        flag = question.flags()[name]
        if flag.field.is_number and isinstance(value, str):
            schema.axis(value, flag.field, flag.word)  # a wrong value is the first thing to say
        why = "has no machine or model that it could edit" if name in OF_FACTS else "does not use it for this question"
        typed = "the flag" if flag.field.is_switch else ", ".join(map(name_of, texts_of(value)))
        raise BadValue(flag.word, typed, idle[name] or f"no {flag.word}: `{question.verb}` {why}")
