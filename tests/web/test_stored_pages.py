"""The lecture's pages as files: opened from a disk, without a network, their sliders show what the command answers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.cli.command import command
from headway.web import single_file, stored_pages
from support.command import Cli
from support.paths import ROOT
from support.web_server import Visit

pytest.importorskip("vl_convert", reason="the extra plot is not installed")
CHAPTER = "4"
SIDE = "section.stage .side"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chapter, written once."""
    folder = tmp_path_factory.mktemp("site")
    stored_pages.write(folder, [CHAPTER])
    return folder


@pytest.fixture
def visit(browser: Any, site: Path) -> Iterator[Visit]:
    """Its page, opened from the disk without a network; its console must stay empty."""
    window = Visit(browser, f"file://{site}", viewport={"width": 1200, "height": 900}, offline=True)
    yield window
    window.close()
    assert window.said == []
    assert window.blocked == []


def opened(visit: Visit, at: str = "") -> Any:
    """The page with a curve in its first section."""
    page = visit.open(f"/index.html{at}")
    page.locator(f"{SIDE} .command").first.wait_for()
    return page


def told(side: Any) -> str:
    """What a section says, once nothing in it belongs to other inputs."""
    side.locator(".says:not([data-stale])").wait_for()
    return side.locator(".says").inner_text()


def test_every_position__of_a_slider_shows_the_answer_of_its_command(visit: Visit) -> None:
    page = opened(visit)
    side = page.locator(SIDE).first
    sliders = side.locator("input[type=range]")
    seen = {told(side)}
    homes = [sliders.nth(place).input_value() for place in range(sliders.count())]
    for place in range(sliders.count()):
        slider = sliders.nth(place)
        for key in ("Home", "ArrowRight", "End"):
            slider.press(key)
            says, line = told(side), side.locator(".command code").first.inner_text()
            assert says == command(shlex.join(shlex.split(line)[1:])).answer
            seen.add(says)
        curve = side.locator(".command code").nth(1).inner_text()
        assert str(command(shlex.join(shlex.split(curve)[1:])).answer)  # a command that answers
        if side.locator(".alone").count():  # the others stand where they stood
            at = [sliders.nth(other).input_value() for other in range(sliders.count())]
            assert [other for other, value in enumerate(at) if value != homes[other]] == [place]
    assert len(seen) > sliders.count()


def test_claims__of_the_chapter_open_with_their_curves_and_their_numbers_unfold(visit: Visit) -> None:
    page = opened(visit)
    links = page.locator("a.claim")
    for place in range(links.count()):
        claim = links.nth(place).locator(".id").inner_text()
        links.nth(place).click()
        detail = page.locator(f"section[aria-label='Claim {claim}']")
        detail.wait_for()
        assert page.url.endswith(f"#claim={claim}")
        side = page.locator(SIDE, has=detail)
        if side.locator(".says").inner_text():
            assert told(side).startswith(claim)
    number = page.locator(".claim-detail .number").last
    number.click()
    page.locator("#tree h2 b").wait_for()


def test_what_needs_a_server__is_told_by_its_command(visit: Visit) -> None:
    page = opened(visit)
    assert page.get_by_role("button", name="Deal cards").count() == 0
    assert page.locator(".command code").last.inner_text() == f"headway web lecture {CHAPTER}"


def test_site__names_nothing_elsewhere_and_says_so_without_its_script(site: Path) -> None:
    text = (site / "index.html").read_text()
    assert not re.search(r'(?:src|href)="(?!#|data:|[\w.-]+")', text)
    assert "it did not fit" in text  # a heading of the chapter
    assert not re.search(r"^\s*(import|export) ", (site / "page.js").read_text(), re.MULTILINE)


def test_static__of_what_needs_a_server_is_refused(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_file, "script", lambda: b"")
    where = str(tmp_path / "site")
    for words, reason in {
        f"web plan llama-3.1-8b --static {where}": "lecture", f"web lecture 12 --static {where}": "chapter",
        f"web lecture 4 --static {where} --port 8000": "--port", f"web lecture --static {where} --open": "--open",
        f"web lecture 4 --static {ROOT / 'docs'}": "holds something else",
    }.items():  # fmt: skip
        answer = cli(words)
        assert (answer.status, answer.out) == (2, "") and reason in answer.err and answer.err.count("\n") == 1, (words, answer)
    assert not Path(where).exists()
