"""What every verb does with its answer: filter, sort, explain, draw, print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway import output


def finish(answer: output.Answer, args: Any, command: Sequence[str]) -> None:
    """Apply the common tail to an answer and print it."""
    notes = [*answer.notes, *(note for note in answer.rows.notes if note not in answer.notes)]
    total = len(answer.rows)
    if args.where:
        answer.rows = answer.rows.where(args.where)
        if len(answer.rows) < total:
            notes.append(f"--where kept {len(answer.rows)} of {total} rows")
    if args.sort:
        answer.rows = answer.rows.sort(args.sort.lstrip("-").replace("-", "_"), args.sort.startswith("-"))
    answer.notes = notes
    keys = [key.strip().replace("-", "_") for text in args.explain or () for key in text.split(",")]
    if keys and len(answer.rows):
        answer.trees = {key: answer.rows.explain(key) for key in keys}
    if answer.describe and args.format in ("text", "md"):
        answer.words = answer.describe(answer.rows)
    if args.plot:
        from headway import figures

        figures.save(answer.figure(answer.rows) if answer.figure else figures.listing(answer.rows), args.plot)
    output.write(answer, args.format, command)
