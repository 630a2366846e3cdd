"""The bar of a long search: on a terminal after a second, never in a pipe, gone when the answer comes."""

from __future__ import annotations

import io

from headway.cli import verb
from headway.core.progress import expect, tick
from headway.core.question import Question, question_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress__slow_search_on_a_terminal_shows_layouts_and_their_end() -> None:
    out = Terminal()
    with verb.bar(out, Question.progress, -1.0):
        expect(9000)
        tick(4106)
        tick(4106)
    assert "8,212 of 9,000 layouts evaluated" in out.getvalue()


def test_progress__simulation_shows_after_two_seconds() -> None:
    out, patience_s = Terminal(), question_of("sim").patience_s
    with verb.bar(out, "requests answered", patience_s):
        tick(1)
    with verb.bar(out, "requests answered", -1.0):
        tick(1)
    assert patience_s == 2.0
    assert out.getvalue().count("1 requests answered") == 1


def test_progress__quick_answer_and_pipe_show_nothing() -> None:
    quick, pipe = Terminal(), io.StringIO()
    with verb.bar(quick, Question.progress, Question.patience_s):
        tick(4106)
    with verb.bar(pipe, Question.progress, -1.0):
        tick(4106)
    assert quick.getvalue() == pipe.getvalue() == ""
    tick(1)  # nobody listens any more
