"""Every page for keyboard, screen reader and weak eyes: names, headings, landmarks, contrast, focus, a table under each chart."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from headway.web import pages
from support.web_server import Visit, small

pytestmark = pytest.mark.slow  # a browser: minutes

VIEWS = [small(page["name"], view["name"]) for page in pages.document() for view in page.get("view", ())]
BOARD = ["/blackboard", "/blackboard?claim=RB-10", "/blackboard?chapter=3", "/blackboard?chapter=7"]
ROLES = {"button", "link", "textbox", "combobox", "checkbox", "slider", "menuitem", "spinbutton", "listbox", "switch", "searchbox", "image"}
REGIONS = ("navigation", "complementary", "region", "form")
LEVELS = "(all) => all.filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"
LEAST, LEAST_LARGE = 4.5, 3.0  # WCAG 2: contrast of text, and of large text
MOST_STOPS = 60

# Every text that is seen, with its colour over what lies behind it; pictures have a test of their own (tests/report).
PALE_TEXTS = """([least, leastLarge]) => {
    const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = (colour) => {
        probe.clearRect(0, 0, 1, 1); probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
    const light = (rgb) => {
        const [r, g, b] = rgb.map((part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
        const layers = [];
        for (let at = node; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
        return layers.reduce((under, layer) => over(layer, under), [255, 255, 255]);
    };
    const faded = (node) => node ? Number(getComputedStyle(node).opacity) * faded(node.parentElement) : 1;
    const contrast = (node, colour) => {
        const under = behind(node), [r, g, b, a] = rgba(colour);
        const [high, low] = [light(over([r, g, b, a * faded(node)], under)), light(under)].sort((x, y) => y - x);
        return (high + 0.05) / (low + 0.05);
    };
    const pale = new Set();
    const look = (node, colour, text) => {
        const style = getComputedStyle(node), size = parseFloat(style.fontSize);
        const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const ratio = contrast(node, colour);
        const name = `${node.tagName}.${node.className} "${text.slice(0, 30)}"`;
        if (ratio < (isLarge ? leastLarge : least)) pale.add(`${name} ${ratio.toFixed(2)}`);
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
        if (!text || node.closest('svg, script, datalist, option') || !node.checkVisibility()) continue;
        look(node, getComputedStyle(node).color, text);
    }
    for (const field of document.querySelectorAll('input, select')) {
        if (!field.checkVisibility() || ['range', 'checkbox'].includes(field.type)) continue;
        look(field, getComputedStyle(field).color, field.value);
        if (field.placeholder && !field.value) {
            const hint = getComputedStyle(field, '::placeholder');
            const [r, g, b, a] = rgba(hint.color);
            look(field, `rgba(${r}, ${g}, ${b}, ${a * Number(hint.opacity)})`, field.placeholder);
        }
    }
    for (const text of document.querySelectorAll('.moving-paper .paper-text')) {
        const style = getComputedStyle(text);
        if (contrast(text.closest('svg'), style.fill) < least) pale.add(`drawing "${text.textContent.slice(0, 30)}"`);
    }
    return [...pale];
}"""

BROKEN = "() => axe.run().then(({violations}) => violations.map(({id, nodes}) => [id, nodes.length, nodes[0].html.slice(0, 120)]))"

# What has the focus: where it stands in the document, and whether one sees that it has it.
FOCUS = """(last) => {
    const node = document.activeElement;
    if (!node || node === document.body) return null;
    const style = getComputedStyle(node), box = node.getBoundingClientRect();
    const isOn = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.width > 0;
    const follows = !window.lastFocus || Boolean(window.lastFocus.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING);
    window.lastFocus = node;
    return {
        name: `${node.tagName} ${node.getAttribute('aria-label') ?? node.textContent.trim().slice(0, 30)}`, isOn, follows,
        outline: style.outlineStyle === 'none' ? 0 : parseFloat(style.outlineWidth),
    };
}"""


def opened(visit: Visit, path: str) -> Any:
    """A page with its answer, or what asks for one."""
    page = visit.open(path)
    page.wait_for_selector("#answer:not(:empty)", timeout=90_000)
    page.wait_for_timeout(600)
    return page


@pytest.mark.parametrize("path", [*VIEWS, *BOARD])
def test_page__reads_well_aloud_and_stands_out_from_its_paper(visit: Visit, path: str) -> None:
    page = opened(visit, path)
    check_tree(visit.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"])
    check_headings(page.eval_on_selector_all("h1, h2, h3, h4, h5, h6", LEVELS))
    check_charts(page, on_board="blackboard" in path)
    assert page.locator("#answer").get_attribute("role") == "status"  # spoken when it changes
    page.eval_on_selector_all("details", "(all) => all.forEach((one) => { one.open = true; })")
    check_texts(page)
    check_rules(page)


@pytest.mark.parametrize("claim", ["RB-08", "RB-10"])
@pytest.mark.parametrize("width", [360, 1600])
def test_claim__opens_every_fold_in_silence(browser: Any, address: str, claim: str, width: int) -> None:
    window = Visit(browser, address, viewport={"width": width, "height": 900})
    page = opened(window, f"/blackboard?claim={claim}")
    page.locator(".claim-detail details").first.wait_for()
    folds = page.locator("details:not([open]) > summary")
    while folds.count():
        folds.first.click()
        page.wait_for_timeout(200)
    inputs = page.get_by_role("region", name=f"Inputs of {claim}")
    assert inputs.get_by_role("columnheader").count() == 3
    assert window.said == []
    window.close()


def check_rules(page: Any) -> None:
    """No rule of axe-core is broken; those that it leaves to an eye are not counted."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-core is not installed")
    page.evaluate((Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    broken = page.evaluate(BROKEN)
    assert broken == []


def check_tree(tree: list[Any]) -> None:
    """Every control, picture and region has a name, and there is one main part, one head and one foot."""
    nodes = [(node.get("role", {}).get("value"), node.get("name", {}).get("value")) for node in tree if not node.get("ignored")]
    roles = [role for role, _ in nodes]
    assert sum(role in ROLES for role in roles) > 8
    assert [role for role, name in nodes if role in (*ROLES, *REGIONS) and not name] == []
    assert [roles.count(landmark) for landmark in ("main", "banner", "contentinfo")] == [1, 1, 1]


def check_headings(levels: list[int]) -> None:
    """Headings begin at one, and go down one level at a time."""
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels)), levels


def check_charts(page: Any, on_board: bool) -> None:
    """Each chart has words in its place, and a table."""
    charts = page.locator(".picture .drawing:has(svg)").all()
    assert all(len(chart.get_attribute("aria-label") or "") > 20 for chart in charts)
    if charts and not on_board:
        assert page.locator(".numbers table tbody tr").count() > 0
    for stage in page.locator(".stage:has(.picture .drawing svg)").all():
        assert stage.locator("details.numbers-of table tbody tr").count() > 1


def check_texts(page: Any) -> None:
    """Every text is seen on its paper, light or dark, which is a matter of style alone."""
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.wait_for_timeout(300)
        assert page.evaluate(PALE_TEXTS, [LEAST, LEAST_LARGE]) == [], theme


def test_tree_of_a_number__stands_out_from_its_paper(visit: Visit) -> None:
    page = opened(visit, "/plan?view=serve")
    page.locator("td .number", has_text="ms").first.click()
    page.locator("#tree details").first.wait_for()
    check_texts(page)


@pytest.mark.parametrize("path", ["/plan?view=serve", "/compare?view=chip", "/runs?view=calibrate", "/blackboard?claim=RB-10"])
@pytest.mark.parametrize("width", [360, 1280])
def test_keyboard__goes_through_all_in_order_and_is_seen(browser: Any, address: str, path: str, width: int) -> None:
    window = Visit(browser, address, viewport={"width": width, "height": 900})
    page = opened(window, path)
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    if "claim=" in path:  # it opens at the claim, and so do its stops: from its top all of them must come in order
        page.locator("a").first.focus()
        page.keyboard.press("Shift+Tab")
    stops = []
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop is None:
            break
        stops.append(stop)
    assert len(stops) > 15
    assert stops[0]["name"] == "A To the page"  # the way past the navigation
    assert [stop["name"] for stop in stops if not stop["follows"]] == []
    assert [stop["name"] for stop in stops if not stop["isOn"] or stop["outline"] < 2] == []
    window.close()
