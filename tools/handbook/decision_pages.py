"""Decisions by subject: docs/decisions.md, one list, as a page for each subject."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ITEM = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", re.MULTILINE | re.DOTALL)


def pages(root: Path) -> dict[str, str]:
    """A page for each subject, each decision under its number, which links and code name."""
    text = (root / "docs" / "decisions.md").read_text(encoding="utf-8")
    items = {int(number): " ".join(said.split()) for number, said in ITEM.findall(text)}
    subjects = {title: numbers(line) for title, line in tomllib.loads((HERE / "decisions.toml").read_text(encoding="utf-8")).items()}
    named = {number for members in subjects.values() for number in members}
    subjects["Latest"] = [number for number in items if number not in named]
    page_of = {number: slug(title) for title, members in reversed(subjects.items()) for number in members}

    def linked(said: str) -> str:
        said = re.sub(r"\]\((\w+\.md)", r"](../\1", said)
        return re.sub(r"\((\d+)\)", lambda match: reference(int(match[1])), said)

    def reference(number: int) -> str:
        return f"([{number}]({page_of[number]}.md#d{number}))" if number in page_of else f"({number})"

    index = ["# Decisions by subject", "What was chosen where the design left room, and why. Each keeps its number.", ""]
    made = {}
    for title, members in subjects.items():
        present = [number for number in members if number in items and page_of[number] == slug(title)]
        if present:
            index.append(f"- [{title}]({slug(title)}.md): {len(present)}")
            body = (f'<a id="d{number}"></a>**{number}.** {linked(items[number])}' for number in present)
            made[f"decisions/{slug(title)}.md"] = f"# {title}\n\n" + "\n\n".join(body) + "\n"
    return {"decisions/index.md": "\n".join(index) + "\n"} | made


def numbers(line: str) -> list[int]:
    """The numbers of a line such as "3-5 9"."""
    spans = [[int(end) for end in part.split("-")] for part in line.split()]
    return [number for span in spans for number in range(span[0], span[-1] + 1)]


def slug(title: str) -> str:
    """The file name of a title."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")
