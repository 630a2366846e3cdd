"""The first sentence of every command of README and docs with its words, and how many tables and notes follow: the longest first."""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from contract.golden.golden_answers import INPUTS
from headway.cli.main import main
from support.documented import commands


def answer(words):
    """A command's answer in JSON and as text; None where it has no sentence."""
    texts = []
    for how in ("json", "text"):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = main([*words, "-o", how])
        if status:
            return None
        texts.append(out.getvalue())
    with contextlib.suppress(ValueError):
        return json.loads(texts[0]), texts[1]
    return None


if __name__ == "__main__":
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(INPUTS, Path(folder, "inputs"))
        os.chdir(folder)
        for command in dict.fromkeys(" ".join(map(str, words)) for words in commands()):
            result = answer(command.split())
            if result:
                document, text = result
                notes = sum(line.startswith("note: ") for line in text.splitlines())
                rows.append((len(document["answer"].split()), text.count("───\n") or text.count("━\n"), notes, command, document["answer"]))
        os.chdir("/")
    for words, tables, notes, command, sentence in sorted(rows, reverse=True):
        print(f"{words:3} words, {tables} table, {notes} notes | headway {command}\n    {sentence}")
    longest, most = max(row[0] for row in rows), max(row[2] for row in rows)
    print(f"{len(rows)} commands: at most {longest} words (30 asked), {max(row[1] for row in rows)} table, {most} notes (5 asked)")
