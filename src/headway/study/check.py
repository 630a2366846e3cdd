"""Wrong values of a study, told before anything runs: in the verb's own words, with the place in the file."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.errors import BadValue, HeadwayError
from headway.core.notes import noted
from headway.core.question import Question, refuse_idle
from headway.core.question_files import catalogue_files, hash_of, paths_of
from headway.models import hub
from headway.study.file import Study
from headway.study.grid import QuestionBlock

MOST_MEMBERS = 2000  # of an axis of numbers alone; a longer one was read as a range


def checked(study: Study) -> dict[str, str]:
    """Files on which the questions depend, by path, each with its SHA-256; HeadwayError for a value that its verb refuses."""
    paths, names, folders = set[Any](), set[tuple[Any, ...]](), set[tuple[str, ...]]()
    for block in study.blocks:
        for place, make in _questions(block):
            try:
                question = make()
                _check(question, names)
            except HeadwayError as error:
                raise HeadwayError(f"{place}: {error}") from None
            paths.update(paths_of(question))
            paths.update(_of_hub(question))
            folders.add(tuple(question.catalog))
    for catalog in folders:
        paths.update(catalogue_files(catalog))
    return {str(path): hash_of(path) for path in sorted(paths)}


def _of_hub(question: Question) -> Iterator[Path]:
    """Files of the local Hugging Face cache by which the models of a question are read; weights apart."""
    for name, value in question.entries().items():
        for text in re.split("[,:]", value) if question.flags()[name].field.kind == "model" and isinstance(value, str) else ():
            config = hub.cached(text.strip()) if text.count("/") == 1 else None
            yield from config.parent.glob("*.json") if config else ()


def _questions(block: QuestionBlock) -> Iterator[tuple[str, Callable[[], Question]]]:
    """Questions in which each value of the block occurs, with the place of the value that is new."""
    if block.lines is not None:
        for number, line in enumerate(block.lines):
            yield f"{block.place}, line {number + 1} of its list", functools.partial(block.question, line)
        return
    first = block.differing(0)
    yield block.place, functools.partial(block.question, first)
    for name, axis in block.axes.items():
        for member in axis[1:] if any(isinstance(member, str) for member in axis) else axis[1:MOST_MEMBERS]:
            yield f"{block.place}.grid.{name}", functools.partial(block.question, first | {name: member})


def _check(question: Question, names: set[tuple[Any, ...]]) -> None:
    """Raise HeadwayError for a field that the question does not use, a number that is none, a name that nobody knows."""
    with noted():
        refuse_idle(question)
        for name, value in question.entries().items():
            flag = question.flags()[name]
            if flag.field.kind in ("output", "act"):
                raise BadValue(name, "a file to write", "no such field: the answers of a study go into its folder")
            if flag.field.is_number and isinstance(value, str):
                schema.axis(value, flag.field, flag.word)
            edits = tuple((key, str(getattr(question, key))) for key in question.edits)
            subject = (flag.field.kind, str(value), *edits)
            if flag.field.kind not in ("model", "machine") or flag.field.place == "?" or not isinstance(value, str) or subject in names:
                continue
            names.add(subject)
            if name == "model":
                arguments.models(question)
            elif name == "on" and value != "here":
                arguments.systems(question)
