"""The site: `python tools/handbook [FOLDER [CHAPTERS]]` gathers pages, builds them offline and checks every link; `make site` runs it.

Pages are README, the files of docs/ and what the modules beside this one make from declarations. FOLDER (default build) gets pages/,
the Markdown, and site/, which a browser opens from its folder. CHAPTERS of the lecture have sliders, all unless told: most of the time.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import chapter_pages
import decision_pages
import law_pages
import link_check
import list_pages
import verb_pages

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MOVED = {
    "README.md": "index.md",
    "CONVENTIONS.md": "conventions.md",
    "src/headway/data/README.md": "data.md",
    "docs/decisions.md": "decisions/index.md",
}
Nav = list[dict[str, "str | Nav"]]
COPIED = ("docs/pictures/", "docs/screens/", "docs/atlas/")  # folders of files that the site has too
SHORT = re.compile(r"(?<!</span>)<code>(?=[^<\n]{1,24}</code>)")  # within a line; `--rate` is not parted at its dashes
LINK = re.compile(r"(!?)\[([^\]\n]+)\]\(([^)\s]+)\)")


def written() -> dict[str, str]:
    """Pages that people wrote, by their place in the site, with links that lead there."""
    sources = [ROOT / "README.md", ROOT / "CONVENTIONS.md", ROOT / "src/headway/data/README.md", *sorted((ROOT / "docs").glob("*.md"))]
    places = {str(path.relative_to(ROOT)): MOVED.get(str(path.relative_to(ROOT)), path.name) for path in sources}

    def linked(text: str, path: Path) -> str:
        def renewed(match: re.Match[str]) -> str:
            mark, label, address = match.groups()
            name, _, anchor = address.partition("#")
            if "://" in address or not name:
                return match[0]
            target = (path.parent / name).resolve()
            source = str(target.relative_to(ROOT)) if target.is_relative_to(ROOT) else name
            if source in places:
                return f"{mark}[{label}]({places[source]}{'#' + anchor if anchor else ''})"
            is_copied = source.startswith(COPIED) or mark
            if is_copied:
                return f"{mark}[{label}]({target.relative_to(ROOT / 'docs')})"
            return f"`{source}`" if label in source else f"{label} (`{source}`)"

        return LINK.sub(renewed, text)

    return {
        places[str(path.relative_to(ROOT))]: linked(path.read_text(encoding="utf-8"), path)
        for path in sources
        if path.name != "decisions.md"
    }


def live(source: Path, labels: list[str]) -> dict[str, str]:
    """The lecture's pages with their sliders, which `headway web --static` writes beside the chapters."""
    words = ["web", "lecture", *labels, "--static", str(source / "lecture" / "live")]
    subprocess.run([sys.executable, "-m", "headway", *words], check=True, stdout=subprocess.DEVNULL)
    return {"lecture/live.md": chapter_pages.live(labels)}


def navigation(pages: dict[str, str]) -> Nav:
    """The parts of nav.toml with their pages, by title; a page that it does not name is an error."""
    parts = tomllib.loads((HERE / "nav.toml").read_text(encoding="utf-8"))
    named = {page for part in parts.values() for page in part.values() if not page.endswith("/")}

    def members(part: dict[str, str]) -> Nav:
        listed: Nav = []
        for title, page in part.items():
            made: Nav = [{heading(pages[name]): name} for name in pages if name.startswith(page) and name not in named]
            listed += [{title: page}] if not page.endswith("/") else made if title == "*" else [{title: made}]
        return listed

    nav: Nav = [{title: members(part)} for title, part in parts.items()]
    text = json.dumps(nav)
    lost = [page for page in pages if f'"{page}"' not in text]
    absent = [page for page in named if page not in pages and page.endswith(".md")]
    if lost or absent:
        raise SystemExit(f"nav.toml: no place for {lost}, no page {absent}")
    return nav


def overview(nav: Nav, pages: dict[str, str]) -> str:
    """llms.txt: the pages as Markdown, each in a line, by part."""
    lines = ["# headway", "", "> How many machines a language model needs, how fast it answers, what it costs and why."]

    def add(members: Nav) -> None:
        for member in members:
            for title, page in member.items():
                if isinstance(page, str):
                    about = first_sentence(pages.get(page, ""))
                    lines.append(f"- [{title}]({page}){': ' + about if about else ''}")
                else:
                    lines.extend(("", f"## {title}", ""))
                    add(page)

    add(nav)
    return "\n".join(lines) + "\n"


def heading(text: str) -> str:
    """The title of a page."""
    return text.partition("\n")[0].lstrip("# ")


def first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph."""
    paragraphs = [part for part in text.split("\n\n")[1:4] if part[:1].isalnum()]
    return re.split(r"(?<=\.)\s", " ".join(paragraphs[0].split()))[0] if paragraphs else ""


def main() -> None:
    """Gather, build, check; print what there is."""
    begin = time.perf_counter()
    out = (Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build").resolve()
    source, site = out / "pages", out / "site"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    pages = written() | live(source, sys.argv[2:]) | law_pages.pages() | chapter_pages.pages(source, sys.argv[2:])
    pages |= verb_pages.pages() | list_pages.pages() | decision_pages.pages(ROOT)
    nav = navigation(pages)
    for name, text in (pages | {"llms.txt": overview(nav, pages)}).items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text, encoding="utf-8")
    for folder in filter(Path.is_dir, (ROOT / name for name in COPIED)):
        shutil.copytree(folder, source / folder.name)
    for picture in (ROOT / "docs").glob("*.png"):
        shutil.copy(picture, source)
    shutil.copy(HERE / "extra.css", source)
    shutil.copy(HERE / "frame_worker.js", source / "iframe-worker.js")
    settings = (HERE / "zensical.toml").read_text(encoding="utf-8")
    (out / "zensical.toml").write_text(settings.replace("[project]\n", f"[project]\nnav = {toml(nav)}\n", 1), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", str(out / "zensical.toml")], check=True, cwd=out
    )
    for name in pages:
        shutil.copy(source / name, site / name)
    for page in ((site / name).with_suffix(".html") for name in pages):
        page.write_text(SHORT.sub('<code class="whole">', page.read_text(encoding="utf-8")), encoding="utf-8")
    faults = link_check.broken(site)
    print("\n".join(faults))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) / 1e6
    print(f"{len(pages)} pages, {size:.1f} MB, {time.perf_counter() - begin:.0f} s, {len(faults)} broken links: {site / 'index.html'}")
    sys.exit(bool(faults))


def toml(value: object) -> str:
    """A list of tables and texts as TOML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


if __name__ == "__main__":
    main()
