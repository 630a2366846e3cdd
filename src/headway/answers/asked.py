"""A question to its result; and the verbs as functions of Python, whose keywords are the fields of their questions."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.answers import calibrations
from headway.core import schema
from headway.core.catalog import own_folders
from headway.core.errors import BadValue, HeadwayError
from headway.core.notes import Notebook, noted
from headway.core.question import FlagGroup, Question, name_of, question_of, refuse_idle
from headway.performance.calibration import in_force
from headway.report import output
from headway.report.output import Answer
from headway.report.result import Result

MOST_AGAIN = 200  # rows of a quick answer that is computed again
CALIBRATION = "calibration"  # the flag of verbs that go by the user's own runs
MACHINE = "system"  # a machine may be given by this name too, as the first functions had it


def answered(question: Question) -> tuple[Answer, Notebook]:
    """The answer of a question, and the notes on its models and machines; a field that says nothing in it is refused."""
    with noted() as book, own_folders(question.catalog):
        refuse_idle(question)
        answer = calibrated(question)
        if any(question.flags()[name].spellings for name in question.entries()):
            answer.notes = [*answer.notes, *_notes_without(question, answer, list(book.texts))]
    return answer, book


def calibrated(question: Question) -> Answer:
    """The answer of a question by the user's own runs, where there are any that apply; what it says later goes by them too."""
    flag = question.flags().get(CALIBRATION)
    if flag is None or flag.field.takes == "again" or CALIBRATION in question.idle():  # again: a page's, which it hands on as typed
        return question.answer()
    profiles = calibrations.in_force(question)
    if not profiles:
        return question.answer()
    with in_force.using(profiles) as force:
        answer = question.answer()
    if not force.uses:
        calibrations.refuse_idle(question)
        return answer
    answer.facts = {"calibration": [{"name": profile.name, "hash": profile.content} for profile in force.applied()]}
    answer.notes = [*filter(None, [force.note(), force.age_note()]), *answer.notes]
    if answer.rows.tree is not None:
        answer.rows = dataclasses.replace(answer.rows, tree=in_force.within(profiles, answer.rows.tree))
    answer.describe = answer.describe and in_force.within(profiles, answer.describe)
    answer.pictures = {name: in_force.within(profiles, picture) for name, picture in answer.pictures.items()}
    answer.documents = {name: in_force.within(profiles, document) for name, document in answer.documents.items()}
    return answer


def _notes_without(question: Question, answer: Any, texts: Sequence[str]) -> list[str]:
    """Notes on given values without which the answer is the same: the question is asked again without each of its `probes`.

    `texts` are the notes that were taken on the way to the answer.
    """
    probes = question.entries() if question.probes is None else question.probes
    if not probes or any(getattr(question, name) for name in question.slow_with):
        return []
    notes, flags, rows = [], question.flags(), list(answer.rows)
    for name, value in question.entries().items() if len(rows) <= MOST_AGAIN else ():
        flag = flags[name]
        if name in ("strict", "catalog", "shipped", CALIBRATION) or flag.is_required or not flag.spellings or name not in probes:
            continue
        for text in value if flag.field.takes == "again" else (value,):
            rest = tuple(item for item in value if item != text) if flag.field.takes == "again" else flag.default
            label = flag.word if flag.field.is_switch else f"{flag.word} {text if isinstance(text, str) else name_of(text[-1])}"
            with contextlib.suppress(HeadwayError), noted() as book:  # of what needs the flag
                plain = calibrated(question.replace(**{name: rest}))
                same_notes = (_beyond_defaults(book.texts), plain.notes) == (_beyond_defaults(texts), answer.notes)
                if list(plain.rows) == rows and same_notes and plain.document == answer.document:
                    notes.append(f"no effect: {label} changes no number of this answer")
    return notes


def _beyond_defaults(texts: Sequence[str]) -> list[str]:
    """Notes that say more than which value stands for what was left out, as the value's own word on the command line does."""
    return [text for text in texts if not text.startswith("by default ")]


def result(
    question: Question, where: str | None = None, sort: str | None = None, command: Sequence[str] = (), format: str = ""
) -> Result:
    """The result of a question, its rows chosen and ordered, or a file in a format of its own; `command` is what was typed."""
    answer, book = answered(question)
    if format in answer.documents:
        answer.document = answer.documents[format]()
    borrowed = "; ".join(book.borrowed)
    output.settle(answer, book, borrowed, where, sort)
    return Result(answer, ["headway", *book.as_read(command or question.command())], borrowed)


# -- functions of Python --------------------------------------------------------------------------------------------------------


def asking(question: type[Question]) -> Callable[..., Result]:
    """The function that asks a question: its subjects first, its fields as keywords, a Load or a Layout in place of its fields."""

    def ask(*subjects: Any, **keywords: Any) -> Result:
        return result(question_of_call(question, subjects, keywords))

    ask.__name__ = ask.__qualname__ = question.verb
    ask.__doc__ = f"{question.__doc__}\n\n    As `headway {question.example}` does."
    ask.__signature__ = signature(question)  # type: ignore[attr-defined]
    return ask


def signature(question: type[Question]) -> inspect.Signature:
    """Subjects by place, every other field and every record by its name."""
    flags = question.flags()
    names: dict[str, None] = dict.fromkeys((*([MACHINE] if "on" in flags else []), *records_of(question.groups), *flags))
    leads = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in question.subjects]
    rest = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in names if name not in question.subjects]
    return inspect.Signature([*leads, *rest], return_annotation=Result)


def records_of(groups: Sequence[FlagGroup]) -> dict[str, type]:
    """Public records that may stand in place of their fields, by the names of their keywords."""
    from headway import __all__ as public

    return {group.record.__name__.lower(): group.record for group in groups if group.record.__name__ in public}


def question_of_call(question: type[Question], subjects: Sequence[Any], keywords: Mapping[str, Any]) -> Question:
    """The question of a call."""
    question = question.of_words([str(value) for value in subjects[:1] if isinstance(value, str)])
    values, names, of_record = dict[str, Any](), list(question.subjects), dict[str, str]()
    for place, value in enumerate(subjects):
        if _is_record(question, value):
            _take(values, value, of_record)
        elif _is_layouts(value):
            values["layouts"] = value
        elif names:
            name = names.pop(0)
            if value is not None:
                values[name] = value
        else:
            raise BadValue(f"argument {place + 1}", value, f"at most {len(question.subjects)} subjects before keywords")
    for keyword, value in keywords.items():
        name = "on" if keyword == MACHINE and MACHINE not in question.flags() and "on" in question.flags() else keyword
        if _is_record(question, value):
            _take(values, value, of_record)
        elif _is_layouts(value):
            values["layouts"] = value
        elif value is not None:
            if name in values:
                first = f"the {of_record[name]} that has it" if name in of_record else "what is given first"
                raise BadValue(name, value, f"no `{keyword}` beside {first}")
            values[name] = value
    return question.from_values(values)


def _is_record(question: type[Question], value: Any) -> bool:
    return any(isinstance(value, group.record) for group in question.groups)


def _is_layouts(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(dataclasses.is_dataclass(item) and hasattr(item, "tp") for item in value)


def _take(values: dict[str, Any], record: Any, of_record: dict[str, str]) -> None:
    """Add the fields of a record that differ from their defaults."""
    for name, (_, default) in schema.fields(type(record)).items():
        value = getattr(record, name)
        if value is None or (isinstance(value, str | int | float) and value == default):
            continue
        if name in values:
            raise BadValue(name, values[name], f"no {name} beside the {type(record).__name__} that has it")
        values[name], of_record[name] = value, type(record).__name__


def __getattr__(name: str) -> Any:
    """The function of a verb, by its name."""
    from headway import QUESTIONS

    if name not in QUESTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return asking(question_of(name))
