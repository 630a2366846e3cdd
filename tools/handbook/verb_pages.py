"""Reference: a page for each verb from its question's declaration, and the keys of answers from data/columns.csv."""

from __future__ import annotations

import csv
import dataclasses
from importlib.resources import files

from headway import QUESTIONS
from headway.core.question import QuestionField, question_of


def pages() -> dict[str, str]:
    """Every verb, and the columns of answers."""
    verbs = list(QUESTIONS)
    index = [
        "# Verbs",
        "Each verb is a command, a function and a question of a file; what it takes is declared once.",
        "",
        "| verb | answers |",
        "|---|---|",
    ]
    index += [f"| [`{verb}`]({verb}.md) | {QUESTIONS[verb][1]} |" for verb in verbs]
    return (
        {"reference/verb/index.md": "\n".join(index) + "\n"}
        | {f"reference/verb/{verb}.md": verb_page(verb) for verb in verbs}
        | {"reference/columns.md": columns()}
    )


def verb_page(verb: str) -> str:
    """Words, flags, units, defaults and pictures of a verb."""
    question = question_of(verb)
    parts = [f"# headway {verb}", (question.__doc__ or QUESTIONS[verb][1]).partition("\n\n")[0]]
    if question.example:
        parts.append(f"```console\n$ headway {question.example}\n```")
    if question.modes:
        parts.append(
            "\n".join(["| words | answers |", "|---|---|", *(f"| `{words or verb}` | {cell(says)} |" for words, says in question.modes)])
        )
    groups: dict[str, list[QuestionField]] = {}
    for flag in question.flags().values():
        if flag.field.kind != "object":
            groups.setdefault("Words" if flag.field.place else flag.group or "Flags", []).append(flag)
    for title, flags in groups.items():
        lines = ["| " + ("word" if title == "Words" else "flag") + " | about | unit | default |", "|---|---|---|---|", *map(line, flags)]
        parts.append(f"## {heading(title)}\n\n" + "\n".join(lines))
    if question.pictures:
        parts.append(
            "## Pictures\n\n| `--picture` | shows |\n|---|---|\n"
            + "\n".join(f"| `{name}` | {cell(shows)} |" for name, shows in question.pictures)
        )
    return "\n\n".join(parts) + "\n"


def heading(title: str) -> str:
    """The title of a group of flags without its remark."""
    return title[0].upper() + title[1:].partition(":")[0].partition(" (")[0]


def line(flag: QuestionField) -> str:
    """A flag as a row."""
    names = ", ".join(f"`{name}`" for name in flag.spellings) or f"`{flag.field.word or flag.name}`"
    choices = f": {', '.join(f'`{choice}`' for choice in flag.field.choices if choice)}" if flag.field.choices else ""
    default = "required" if flag.is_required else "" if flag.usual in (None, (), "", False, dataclasses.MISSING) else f"`{flag.usual}`"
    return f"| {names} | {cell(flag.field.help + choices)} | {flag.field.unit} | {default} |"


def columns() -> str:
    """Keys of the rows of answers."""
    with (files("headway") / "data" / "columns.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    parts = ["# Keys of answers", "What `-o json` and `-o csv` name each value of a row; times in seconds, sizes in bytes, money in USD."]
    for table in dict.fromkeys(row["table"] for row in rows):
        head = [f"## {table.replace('_', ' ')}", "", "| key | meaning | unit |", "|---|---|---|"]
        parts.append(
            "\n".join([*head, *(f"| `{row['key']}` | {cell(row['doc'])} | {row['unit']} |" for row in rows if row["table"] == table)])
        )
    return "\n\n".join(parts) + "\n"


def cell(text: str) -> str:
    """Text in a cell of a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
