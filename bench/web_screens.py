"""The screens of docs/web.md, taken in a real Chromium: .venv/bin/python bench/web_screens.py"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCREENS = {
    "plan": ("/plan", 1200, 1000, "light", "#answer"),
    "blackboard": ("/blackboard?claim=RB-10", 1200, 900, "light", ".stage:has(.open)"),
    "traffic": ("/traffic", 1200, 900, "dark", "#answer"),
    "phone": ("/plan?view=serve", 360, 780, "light", ".pictures"),
}


def main() -> None:
    """Take each screen at the scale of the page."""
    from playwright.sync_api import sync_playwright

    folder = ROOT / "docs" / "screens"
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "headway", "web", "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server, sync_playwright() as driver:
        found = re.search(r"http://[\d.]+:\d+", server.stderr.readline() if server.stderr else "")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        for name, (path, width, height, theme, subject) in SCREENS.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
            page.goto((found[0] if found else "") + path)
            page.wait_for_selector("body[data-ready]", timeout=120_000)
            page.wait_for_timeout(1500)
            if name in ("blackboard", "phone"):
                page.locator(subject).first.evaluate("(node) => node.scrollIntoView()")
            page.screenshot(path=str(folder / f"{name}.png"))
            page.close()
        browser.close()
        server.terminate()


if __name__ == "__main__":
    main()
