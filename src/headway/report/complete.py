"""An answer before it is written: its notes gathered, its rows chosen, its sentence made."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from headway import QUESTIONS
from headway.core.errors import BadValue, UnknownName
from headway.core.notes import Notebook
from headway.core.question import question_of
from headway.core.units import plain
from headway.report.output import Answer, Summary
from headway.report.pictures import frame
from headway.report.words import NO_ROW, number_of, with_clause

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View


def settle(answer: Answer, book: Notebook, borrowed: str = "", where: str | None = None, sort: str | None = None) -> None:
    """Apply `--where` and `--sort`, and give the answer every note once.

    Notes are what was said on the way, its own, those of its rows, what was assumed of models, the rows left out, and costs that
    hypothetical chips borrow.
    """
    answer.notes = list(dict.fromkeys([*book.texts, *answer.notes, *answer.rows.notes, *book.remarks]))
    choose_rows(answer, where, sort)
    answer.notes = [*answer.notes, borrowed] if borrowed else answer.notes


def choose_rows(answer: Answer, where: str | None = None, sort: str | None = None) -> None:
    """Apply `--where` and `--sort` to the rows; a note says how many are left."""
    if where:
        total = len(answer.rows)
        answer.rows = answer.rows.where(where)
        if len(answer.rows) < total:
            answer.notes = [*answer.notes, f"--where kept {len(answer.rows)} of {total} rows"]
    if sort:
        answer.rows = answer.rows.sort(sort.lstrip("-").replace("-", "_"), sort.startswith("-"))


def describe(answer: Answer, borrowed: str = "") -> None:
    """Make the text around the table, for the rows that are left; an answer without a sentence counts its rows."""
    if answer.describe:
        answer.words = answer.describe(answer.rows) if len(answer.rows) or answer.describes_none else Summary(NO_ROW)
    if not answer.words.headline:
        answer.words = dataclasses.replace(answer.words, headline=f"{number_of(len(answer.rows), 'row')}.")
    if borrowed and answer.words.headline:
        answer.words = dataclasses.replace(answer.words, headline=with_clause(answer.words.headline, borrowed))
    words = answer.words  # with every number as a person writes it, whatever formatted it
    answer.words = dataclasses.replace(
        words, headline=plain(words.headline), after=[*map(plain, words.after)], binds=plain(words.binds),
        remarks=[*map(plain, words.remarks)],
        helps=[dataclasses.replace(change, change=plain(change.change), effect=plain(change.effect)) for change in words.helps],
    )  # fmt: skip
    answer.notes = [*map(plain, answer.notes)]


def draw(answer: Answer, view: View | None = None, name: str = "") -> Picture:
    """The picture that `--plot` writes: the answer's own, or the one of its pictures that is named."""
    if not answer.pictures:
        verbs = ", ".join(verb for verb in QUESTIONS if question_of(verb).pictures)
        raise BadValue("--plot", "an answer without a picture", f"a verb that draws: {verbs}")
    if name and name not in answer.pictures:
        raise UnknownName("picture", name, answer.pictures, "one of " + ", ".join(answer.pictures))
    default = answer.default_picture(answer.rows) if answer.default_picture else next(iter(answer.pictures))
    return answer.pictures[name or default](answer.rows, view or frame.View())
