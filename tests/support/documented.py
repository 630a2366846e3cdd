"""The commands that README, SKILL.md and the pages of docs/ print, with the files named in them replaced by those of the golden answers."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from support.paths import DATA, ROOT

FILES = {
    "./config.json": "inputs/config.json", "conv.csv": "inputs/conv.csv", "trace.csv": "inputs/talk.csv",
    "trace.jsonl": "inputs/mooncake.jsonl",
    "rows.csv": "inputs/runs.csv", "measured.csv": "inputs/measured.csv", "bench.json": "inputs/vllm_serve.json",
    "tests/data/readers/vllm_serve.json": "inputs/vllm_serve.json",
    "log.csv": "inputs/requests.csv", "question.toml": "inputs/question.toml", "study.toml": "inputs/study.toml",
    "my_prices.toml": "inputs/my_prices.toml", "my_runs.csv": "inputs/my_runs.csv", "start.log": "inputs/start.log",
    "sheets.json": "inputs/sheets.json", "[RB-10]": "RB-10",
    "models|chips|systems|laws|sources|splits": "models",
}  # fmt: skip
OTHER = {"predict --training rows.csv": "predict --training inputs/training_new.csv"}  # the same name for another kind of table
# Pages whose commands own tests follow.
ELSEWHERE = ("adding.md", "measure.md", "own_chip.md", "own_model.md", "own_runs.md", "own_trace.md", "python.md")
NEEDS_MORE = ("fit", "web", "sweep")  # whose input no fresh checkout has; that run until they are ended; that write a folder
MEASURED = ("lab ", "measure")  # which take seconds here, and whose answers are this machine's
PLAIN = ("-o", "--plot", "--explain", "--picture")  # flags that leave the words of an answer alone, with a value each


FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code of a page: its language, why it does not run here, its commands without `headway`."""

    language: str
    why: str
    lines: tuple[str, ...]
    text: str


def commands() -> list[list[str]]:
    """Every documented command, without `headway`, without the flags that change only where or how it is printed."""
    lines = dict.fromkeys(line for page in pages() if page.name not in ELSEWHERE for block in blocks(page) for line in block.lines)
    return [_argv(line) for line in lines if runs(line)]


def pages() -> list[Path]:
    """README, SKILL.md and the pages of docs/."""
    return [ROOT / "README.md", ROOT / "SKILL.md", *sorted((ROOT / "docs").glob("*.md"))]


def runs(line: str) -> bool:
    """Whether a documented command runs in the tests as it stands."""
    return line.split()[0] not in NEEDS_MORE and not line.startswith(MEASURED) and _is_alone(line)


def _is_alone(line: str) -> bool:
    """Whether a command needs no server beside it, and no experiment that ran here before."""
    return ("--measured" not in line and not line.startswith("probe")) or "--dry-run" in line


def blocks(page: Path) -> list[Block]:
    """The blocks of a page."""
    fences = FENCE.findall(re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8")))
    return [Block(language, why, tuple(_lines(text)), text) for language, why, text in fences]


def _lines(text: str) -> list[str]:
    typed = [line for line in text.splitlines() if not line.startswith(" ")]  # an indented line belongs to an answer
    parts = [part.strip().removeprefix("$ ") for line in typed for part in line.split(" · ")]
    return [re.split(r"\s+# ", part)[0].removeprefix("headway ").strip() for part in parts if part.startswith("headway ")]


def _argv(line: str) -> list[str]:
    for text, replacement in OTHER.items():
        line = line.replace(text, replacement)
    words = shlex.split(line)
    kept = [word for at, word in enumerate(words) if word not in PLAIN and (at == 0 or words[at - 1] not in PLAIN)]
    return [FILES.get(word, word) for word in kept]


def pictures() -> dict[str, list[str]]:
    """Commands that draw, in README and every page of docs/, without `--plot`, by the name of their picture's file."""
    drawn: dict[str, list[str]] = {}
    for page in pages():
        for line in (line for block in blocks(page) for line in block.lines):
            words = shlex.split(line)
            if "--plot" in words and "|" not in words[0]:
                at = words.index("--plot")
                name = words[at + 1].rpartition(".")[0]
                argv = [str(INPUTS[word]) if word in INPUTS else word for word in words[:at] + words[at + 2 :]]
                if argv not in drawn.values():
                    drawn[name if name not in drawn else f"{name}-{page.stem}"] = argv
    return drawn


INPUTS = {
    "bench.json": DATA / "readers" / "vllm_serve.json",
    "trace.jsonl": ROOT / "tests" / "contract" / "golden" / "inputs" / "mooncake.jsonl",
    "my_runs.csv": ROOT / "tests" / "contract" / "golden" / "inputs" / "my_runs.csv",
}
