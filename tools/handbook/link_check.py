"""Links of a built site: every page, anchor and file that a page names is there, and nothing is fetched from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHES = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src"}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids, self.links, self.fetched = {""}, list[str](), list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids.update(value for value in (values.get("id"), values.get("name")) if value)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        address = values.get(FETCHES.get(tag, ""))
        if address and not (tag == "link" and values.get("rel") in ("canonical", "prev", "next")):
            self.fetched.append(address)


def broken(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and each file that a page fetches from elsewhere."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    faults = []
    for path, page in pages.items():
        where = path.relative_to(site)
        for address in (*page.links, *page.fetched):
            parts = urlsplit(address)
            if parts.scheme in ("data", "mailto"):
                continue
            if parts.scheme or parts.netloc:
                if address in page.fetched:
                    faults.append(f"{where}: fetches {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            known = pages[target].ids if target in pages else {parts.fragment}
            if not target.exists() or unquote(parts.fragment) not in known:
                faults.append(f"{where}: {address}")
    return faults
