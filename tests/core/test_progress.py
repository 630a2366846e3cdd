"""The bar of a long search: on a terminal after a second, never in a pipe, gone when the answer comes."""

from __future__ import annotations

import io

import pytest

from headway.cli import sim, verb
from headway.core.progress import expect, tick


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress__slow_search_on_a_terminal_shows_layouts_and_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "PATIENCE_S", -1.0)
    out = Terminal()
    with verb.bar(out):
        expect(9000)
        tick(4106)
        tick(4106)
    assert "8,212 of 9,000 layouts evaluated" in out.getvalue()


def test_progress__simulation_shows_after_two_seconds() -> None:
    out = Terminal()
    with verb.bar(out, "requests answered", sim.PATIENCE_S):
        tick(1)
    with verb.bar(out, "requests answered", -1.0):
        tick(1)
    assert sim.PATIENCE_S == 2.0
    assert out.getvalue().count("1 requests answered") == 1


def test_progress__quick_answer_and_pipe_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quick, pipe = Terminal(), io.StringIO()
    with verb.bar(quick):
        tick(4106)
    monkeypatch.setattr(verb, "PATIENCE_S", -1.0)
    with verb.bar(pipe):
        tick(4106)
    assert quick.getvalue() == pipe.getvalue() == ""
    tick(1)  # nobody listens any more
