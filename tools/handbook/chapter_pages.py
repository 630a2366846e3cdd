"""The lecture: a page for each chapter, with its prose, a picture for each section and every claim beside its verdict."""

from __future__ import annotations

from pathlib import Path

import headway
from headway.evidence import claims as ledger
from headway.evidence.claims.rows import ClaimRow
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture.chapters import Chapter, Section
from headway.web.stored_pages import page_names

THEMES, WIDTH = ("light", "dark"), 480  # px: legible on a phone as on a desk


def live(labels: list[str]) -> str:
    """The page that leads to the chapters with sliders."""
    titles = {page.label: name(page) for page in lecture.chapters()}
    links = "\n".join(f"- [{titles[label]}](live/{file})" for label, file in page_names(labels).items())
    says = "The lecture's chapters with sliders; their answers were computed ahead, so that no server is asked."
    return f"# Under the hand\n\n{says}\n\n{links}\n"


def name(page: Chapter) -> str:
    """The title of a chapter with its number."""
    return page.title if page.number == lecture.EXTRA else f"{page.label}. {page.title}"


def pages(out: Path, labels: list[str]) -> dict[str, str]:
    """The chapters, and their pictures drawn into `out`/lecture; those of the labels, all without, lead to their sliders."""
    (out / "lecture").mkdir(parents=True, exist_ok=True)
    rows = ledger.rows()
    by_id = {row.id: row for row in rows}
    files = page_names(labels)
    return {f"lecture/{page.number}.md": chapter(page, rows, by_id, out, files.get(page.label)) for page in lecture.chapters()}


def chapter(page: Chapter, rows: list[ClaimRow], by_id: dict[str, ClaimRow], out: Path, file: str | None) -> str:
    """One chapter."""
    agree, differ, unsettled = lecture.verdict_counts(rows, page)
    parts = [f"# {name(page)}", f"{page.says[0].upper()}{page.says[1:]}.",
             ("" if page.number == lecture.EXTRA else f"From {page.time} of the lecture. ")
        + f"Claims: {agree} agree, {differ} differ, {unsettled} open."
             + (f" [The same with sliders](live/{file})." if file else ""),
             f"```console\n$ headway lecture {page.label}\n```"]  # fmt: skip
    for section in page.sections:
        parts += [f"## {section.title}", section.text, *picture(section, out), table(section, by_id)]
    parts.append("Try next:\n\n```console\n" + "\n".join(f"$ {command}" for command in page.commands) + "\n```")
    return "\n\n".join(parts) + "\n"


def picture(section: Section, out: Path) -> list[str]:
    """The picture of the first claim of a section that has one, below the command that draws it."""
    for claim in section.statements:
        file = claim.lower()
        try:
            result = headway.command(f"lecture {claim}")
            for theme in THEMES:
                result.plot(str(out / "lecture" / f"{file}-{theme}.svg"), width=WIDTH, theme=theme)
        except headway.HeadwayError:
            continue
        about = section.statements[claim]
        images = "\n".join(f"![{about}]({file}-{theme}.svg#only-{theme})" for theme in THEMES)
        return [f"```console\n$ headway lecture {claim} --plot {file}.svg\n```", images]
    return []


def table(section: Section, by_id: dict[str, ClaimRow]) -> str:
    """The claims of a section: what was stated, what the laws give, the verdict."""
    lines = ["| claim | says | lecture | recomputed | verdict |", "|---|---|---|---|---|"]
    for claim, says in section.statements.items():
        row = by_id[claim]
        verdict = row.verdict + (f" ({row.cause})" if row.cause and row.cause != row.verdict else "")
        cells = (f"`{claim}`", says, lecture.lecture_text(row), lecture.recomputed_text(row), verdict)
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("*", "\\*") for cell in cells) + " |")
    return "\n".join(lines)
