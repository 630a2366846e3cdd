"""`headway find WORDS`: the laws, claims, verbs, models, chips, worked problems and pages that answer, each with a command that runs."""

from __future__ import annotations

from headway.answers.questions import Find
from headway.core import schema, search
from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing
from headway.report import find as words
from headway.report import output

COLUMNS = {
    "kind": Column("", "law, claim, chapter, verb, command, problem, docs, model, chip or rack"),
    "name": Column("", "its name"),
    "says": Column("", "what it says, in a sentence"),
    "command": Column("", "a command that shows it, with numbers filled in"),
    "share": Column("", "share of the question's words, by their weight, that it answers"),
}
CHAPTER = {"section": "chapter"}


def run(args: Find) -> output.Answer:
    """Answer with the best pages of the index."""
    text = " ".join(args.words).strip()
    if not text:
        raise BadValue("words", "nothing", 'what you look for, such as headway find "critical batch size"')
    most = int(schema.scalar(str(args.most), args.flags()["most"].field, "--most"))
    rows = [
        {"kind": CHAPTER.get(page.kind, page.kind), "name": page.name, "says": page.says, "command": page.command,
         "share": round(match.share, 3)}
        for match in search.best(text, most) for page in (match.page,)
    ]  # fmt: skip
    return output.Answer(Listing(rows), describe=words.describe, describes_none=True, columns=COLUMNS, most=len(rows) or 1)
