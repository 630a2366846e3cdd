"""The page's own times in a real Chromium: start to usable page, each page's first words and whole answer, slider to painted curve over 50
moves with the CPU time that a move takes of the page, the server and its workers, bytes of its files.

    .venv/bin/python bench/bench_web.py

Targets on a quiet machine: first page within 2 s of the command, first words of a page within 2 s, slider to curve 50 ms in the median and
120 ms at the 95th percentile, own files 500 kB. Exits with 1 beyond twice a time. The load of the machine stands beside the figures; the
CPU time of a move depends on it less. Bytecode is cached, as an installed package has it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "src" / "headway" / "web" / "static"
MOVES = 50
CURVES = {
    "Blackboard, claim RB-10": ("/blackboard?claim=RB-10", ".stage:has([data-claim=RB-10].open) input[type=range]"),
    "Blackboard, step against batch": ("/blackboard?chapter=1", ".stage input[type=range]"),
    "Plan, its layout over all batches": (
        "/plan?v=1&view=plan&w=llama-3.1-8b&on=h100-sxm&prompt=2k&output=300&tpot=30ms&chip-price=2", "input[data-slider=prompt]"),
    "Plan, a layout tried": ("/plan?view=serve", "input[data-slider=context]"),
}  # fmt: skip
MOVE = """async ([selector, moves]) => {
    const range = document.querySelector(selector);
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const painted = () => new Promise((resolve) => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = resolve;
        channel.port2.postMessage(0);
    }));
    const drawn = async (before) => { while (window.headway.redraws.count === before) await wait(1); };
    const times = [];
    const most = Number(range.max);
    for (let place = 0; place <= moves; place += 1) {
        const before = window.headway.redraws.count;
        range.value = String(Math.round(most * (0.25 + 0.5 * place / moves)));
        const start = performance.now();
        range.dispatchEvent(new Event('input', {bubbles: true}));
        await drawn(before);
        await painted();
        if (place) times.push(performance.now() - start);
        await wait(30);
    }
    return times;
}"""


SEEN = """
window.seen = {};
const note = (what) => { window.seen[what] ??= performance.now() / 1000; };
new MutationObserver(() => {
    const answer = document.querySelector('.answer');
    const has = (selector) => document.querySelector(selector)?.textContent.trim();
    if (has('.work') || has('#answer') || has('.doors') || has('.chapter-head')) note('first');
    if (has('.doors') || document.querySelector('.chapter svg') || (has('#answer') && answer?.ariaBusy === 'false')) note('whole');
}).observe(document, {childList: true, subtree: true, attributes: true});
"""


def openings(browser: Any, address: str) -> bool:
    """Print when each page shows its first words and its whole answer; whether one shows its first too late."""
    from headway.web import pages

    late = False
    views = [f"/{entry['name']}?view={view['name']}" for entry in pages.document() for view in entry.get("view", ())]
    for path in ["/start", "/blackboard", *views]:
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        page.add_init_script(SEEN)
        page.goto(address + path, wait_until="commit")
        page.locator(".doors, .chapter svg, .progress .begin, .drop, [aria-busy=false] #answer:not(:empty)").first.wait_for(timeout=120_000)
        page.wait_for_timeout(50)
        seen = page.evaluate("() => window.seen")
        print(f"{path}: first words {seen['first']:.2f} s (target 2), whole answer {seen.get('whole', 0):.1f} s")
        late |= seen["first"] > 4
        context.close()
    return late


@contextlib.contextmanager
def opened(page: Any, folder: str) -> Iterator[tuple[str, int, float]]:
    """A server whose first page is answered: its address, its process, and the seconds since its command."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONPYCACHEPREFIX": folder}
    start = time.perf_counter()
    command = [sys.executable, "-m", "headway", "web", "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        address = re.search(r"http://\S+?:\d+", server.stderr.readline())[0]  # type: ignore[union-attr, index]
        page.goto(f"{address}/plan?view=serve")
        page.wait_for_selector("[aria-busy=false] #answer:not(:empty)", timeout=120_000)
        yield address, server.pid, time.perf_counter() - start
    finally:
        server.terminate()
        server.wait()


def cpu_ms(protocol: Any, server: int) -> dict[str, float]:
    """CPU time so far: of the page's main thread, and where the system tells, of the server and of its workers, those that ended too."""
    metrics = {entry["name"]: entry["value"] for entry in protocol.send("Performance.getMetrics")["metrics"]}
    taken, children = {"page": metrics["TaskDuration"] * 1e3}, Path(f"/proc/{server}/task/{server}/children")
    if not children.exists():
        return taken
    of_server, *of_workers = ([int(word) for word in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]]
                              for process in (server, *children.read_text().split()))  # fmt: skip
    ticks = {"server": sum(of_server[:2]), "workers": sum(of_server[2:]) + sum(sum(worker[:2]) for worker in of_workers)}
    return taken | {name: count * 1e3 / os.sysconf("SC_CLK_TCK") for name, count in ticks.items()}


def moves(page: Any, address: str, server: int) -> bool:
    """Print what the moves of each slider take; whether one takes too long."""
    late, protocol = False, page.context.new_cdp_session(page)
    protocol.send("Performance.enable", {"timeDomain": "threadTicks"})
    for name, (path, selector) in CURVES.items():
        page.goto(address + path)
        page.wait_for_selector(selector, state="visible", timeout=120_000)
        page.wait_for_selector("[aria-busy=false] #answer:not(:empty), .stage svg", timeout=120_000)
        page.locator(selector).first.scroll_into_view_if_needed()
        page.wait_for_timeout(1500)
        before = cpu_ms(protocol, server)
        times = sorted(page.evaluate(MOVE, [selector, MOVES]))
        after = cpu_ms(protocol, server)
        middle, high = statistics.median(times), times[int(len(times) * 0.95)]
        print(f"{name}: slider to painted curve {middle:.0f} ms median, {high:.0f} ms p95 over {len(times)} moves (targets 50, 120)")
        taken = [f"{key} {(after[key] - before[key]) / (MOVES + 1):.1f} ms" for key in after]
        print(f"    CPU time of a move: {', '.join(taken)}; load {os.getloadavg()[0]:.1f}")
        late |= middle > 100 or high > 240
    return late


def main() -> int:
    """Measure and print; 1 where a time is beyond twice its target."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        with opened(page, folder):
            pass  # bytecode, and what draws pictures, are made once
        with opened(page, folder) as (address, server, first):
            print(f"command to answered page with its curve: {first:.2f} s (target 2)")
            late = first > 4
            late |= openings(browser, address)
            late |= moves(page, address, server)
        browser.close()
    size = sum(path.stat().st_size for path in STATIC.iterdir())
    print(f"own files: {size / 1000:.0f} kB (target 500); load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(late or size > 500_000)


if __name__ == "__main__":
    sys.exit(main())
