"""tools/handbook: every page has a place, every law is drawn, the link check finds what is broken, and the site builds offline."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from headway.core import law_index
from support.paths import ROOT
from support.picture_browser import executable

FOLDER = ROOT / "tools" / "handbook"


@pytest.fixture
def handbook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program, with the modules beside it."""
    monkeypatch.syspath_prepend(FOLDER)
    return _module("handbook_main", FOLDER / "__main__.py")


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_navigation__names_each_page_of_docs_and_each_verb(handbook: ModuleType) -> None:
    pages = handbook.written() | handbook.verb_pages.pages() | handbook.decision_pages.pages(ROOT)
    pages |= {"math/step.md": "# Step", "lecture/1.md": "# One", "lecture/live.md": "# Under the hand"}
    pages |= {f"reference/{name}.md": "# A list" for name in handbook.list_pages.LISTS}
    nav = handbook.navigation(pages)
    text = str(nav)
    assert handbook.overview(nav, pages).count("\n- [") == str(nav).count(".md'") + 1  # and the atlas
    assert all(f"'{path.name}'" in text for path in (ROOT / "docs").glob("*.md") if path.name != "decisions.md")
    with pytest.raises(SystemExit, match="lost_page"):
        handbook.navigation(pages | {"lost_page.md": "# Lost"})


def test_decisions__keep_every_number_once(handbook: ModuleType) -> None:
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    made = "".join(handbook.decision_pages.pages(ROOT).values())
    numbers = [line.partition(".")[0] for line in text.splitlines() if line.partition(".")[0].isdigit()]
    assert len(numbers) > 150
    assert all(made.count(f'id="d{number}"') == 1 for number in numbers)


def test_laws__each_is_drawn_as_well_formed_mathml(handbook: ModuleType) -> None:
    pages = handbook.law_pages.pages()
    assert sum(text.count("\n### ") for text in pages.values()) == len(law_index.places())
    ridge = pages["math/roofline.md"].partition("### hardware_ratio")[2].partition("### ")[0]
    assert "[RB-10](../lecture/1.md)" in ridge and "295.3 token" in ridge
    equations = [line for text in pages.values() for line in text.splitlines() if line.startswith("<math")]
    assert len(equations) > 600
    for equation in equations:
        ElementTree.fromstring(equation.replace("&#160;", " "))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a / (b * c)", "a / (b * c)"),
        ("(a + b) * c", "( a + b ) * c"),
        ("a - (b - c)", "a - ( b - c )"),
        ("a ** b", "a ^ b"),
        ("-(a + b)", "- ( a + b )"),
    ],
)
def test_mathml__brackets_what_the_order_of_operations_needs(handbook: ModuleType, text: str, shown: str) -> None:
    def told(element: ElementTree.Element) -> str:
        parts = [told(child) for child in element]
        if element.tag == "mfrac":
            return f"{parts[0]} / ({parts[1]})" if " " in parts[1] else " / ".join(parts)
        return " ^ ".join(parts) if element.tag == "msup" else " ".join([*filter(None, [element.text]), *parts])

    drawing = handbook.law_pages.equation("x", text)
    assert told(ElementTree.fromstring(drawing)).replace("·", "*").replace("−", "-") == f"x = {shown}"


def test_links__finds_a_lost_page_a_lost_anchor_and_what_is_fetched(handbook: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<p id="here"><a href="b.html#there">b</a> <a href="https://example.org">out</a>')
    (tmp_path / "b.html").write_text(
        '<a href="c.html">c</a> <a href="a.html#gone">a</a> <a href="a.html#here">a</a>'
        '<script src="https://cdn.example/x.js"></script> <img src="no.png">'
    )
    assert handbook.link_check.broken(tmp_path) == [
        "a.html: b.html#there", "b.html: c.html", "b.html: a.html#gone", "b.html: fetches https://cdn.example/x.js", "b.html: no.png",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("zensical") is None, reason="zensical is not installed: pip install headway[dev]")
def test_site__builds_without_a_broken_link(tmp_path: Path) -> None:
    run = subprocess.run([sys.executable, str(FOLDER), str(tmp_path), "4"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert "0 broken links" in run.stdout
    assert (tmp_path / "site" / "llms.txt").is_file()
    searched(tmp_path / "site" / "index.html")


def searched(page: Path) -> None:
    """The site opened from its folder finds a law by name, and asks the network for nothing."""
    if not executable():
        pytest.skip("no chromium on the path")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable())
        view = browser.new_page()
        elsewhere: list[str] = []
        view.on("request", lambda request: elsewhere.append(request.url) if request.url.startswith("http") else None)
        view.goto(page.as_uri())
        view.locator(".md-search__button").first.click()
        view.locator("input[placeholder=Search]").first.fill("hardware_ratio")
        view.locator("a", has_text="hardware_ratio").first.wait_for(timeout=60_000)
        browser.close()
    assert elsewhere == []
