"""Every block of the pages that a reader could run is run by a test, or its fence says why it is not."""

from __future__ import annotations

import re
from pathlib import Path

from headway import QUESTIONS
from headway.core.question import question_of
from headway.report.printed import PRINTED
from support.documented import ELSEWHERE, Block, blocks, pages, runs
from support.each import for_each
from support.paths import ROOT, SOURCE

FOLLOWED = ("console", "python")  # of pages whose own tests follow them
PYTHON = ("README.md", "questions.md", *ELSEWHERE)  # pages whose Python runs: test_python_pages.py, test_question.py, test_adding.py
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OTHERS_FLAGS = (  # of engines, benchmarks, pip and dask, and of programs of bench/
    "--append-result", "--array", "--cpus-per-task", "--fit-target", "--gpu-memory-utilization", "--help", "--help-all",
    "--kv-cache-dtype", "--max-model-len", "--max-num-batched-tokens", "--n-cpu-moe", "--nthreads", "--nworkers",
    "--overlap-moe-expert-parallel-comm", "--pulse", "--quantization", "--save-detailed", "--save-result", "--spec", "--split-mode",
    "--tensor-parallel-size", "--tool", "--upgrade",
)  # fmt: skip
FOLDERS = "bench|docs|tests|tools|core|data|evidence|hardware|laws|models|performance|reality|report|serving|simulation|web"
FILE = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[\w/-]+\.(?:csv|json|md|py|toml))(?![\w*])")
SHELL = re.compile(r"^(\$ )?(make|pip|git|srun|python3?|\.venv\S*) ", re.MULTILINE)


def is_run(page: Path, block: Block) -> bool | None:
    """Whether a test runs all of a block; None of what nobody runs: an answer, a file."""
    if block.language == "python":
        return page.name in PYTHON
    if block.lines and page.name in ELSEWHERE:
        return block.language in FOLLOWED
    return all(map(runs, block.lines)) if block.lines else False if SHELL.search(block.text) else None


@for_each(pages(), name=lambda page: page.name)
def test_pages__a_block_runs_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        assert bool(block.why) == (is_run(page, block) is False), block.text


def test_pages__most_blocks_run() -> None:
    verdicts = [is_run(page, block) for page in pages() for block in blocks(page)]
    assert verdicts.count(True) > 200 and verdicts.count(False) < 30


def test_pages__name_flags_and_files_that_are_there() -> None:
    flags = {spelling for verb in QUESTIONS for flag in question_of(verb).flags().values() for spelling in flag.spellings}
    flags |= {spelling for flag in PRINTED.flags() for spelling in flag.spellings} | set(OTHERS_FLAGS)
    for page in (*pages(), ROOT / "CONVENTIONS.md"):
        text = page.read_text(encoding="utf-8")
        assert set(FLAG.findall(text)) <= flags, page
        if page.name != "adding.md":  # whose files its reader makes
            absent = [name for name in FILE.findall(text) if not ((ROOT / name).is_file() or (SOURCE / name).is_file())]
            assert absent == [], page


def test_conventions__fences_are_whole() -> None:
    """A fence that the pattern does not read would hide its block."""
    for page in (*pages(), ROOT / "CONVENTIONS.md"):
        text = page.read_text(encoding="utf-8")
        assert len(re.findall(r"^```", text, re.MULTILINE)) == 2 * len(blocks(page)), page
