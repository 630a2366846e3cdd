"""docs/adding.md, followed: the files of each section are written in a scratch copy, and its command answers as the page says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from headway.models import attention
from headway.models.attention import ConvolvedRecurrence, Mixer, SoftmaxAttention
from support.paths import ROOT, SOURCE

PAGE = ROOT / "docs" / "adding.md"
MOST_LINES = 10  # of one block; blank lines and imports not counted
FENCE = re.compile(r"```(\w+)\n(.*?)\n```", re.DOTALL)
TARGET = re.compile(r"`([\w./-]+\.(?:toml|json|csv|py))`(?:, in `(\w+)`)?")
SECTIONS = {
    "A chip", "A system", "A model of a known family", "An attention kind", "A law", "A verb", "A price sheet", "A measured source",
    "The output of a benchmark tool",
}  # fmt: skip
ON_ITS_CHIP = {"A system", "A verb"}  # sections whose commands name the chip of the page
MIXERS = (Mixer, SoftmaxAttention, ConvolvedRecurrence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block with the paragraph above it."""

    language: str
    text: str
    above: str


def sections() -> dict[str, list[Block]]:
    """The fenced blocks of each section of the page."""
    blocks: dict[str, list[Block]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        blocks[title], end = [], 0
        for fence in FENCE.finditer(body):
            above = " ".join(body[end : fence.start()].strip().split("\n\n")[-1].split())
            blocks[title].append(Block(language=fence[1], text=fence[2], above=above))
            end = fence.end()
    return blocks


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package and an empty catalogue folder DIR."""
    folder = tmp_path_factory.mktemp("adding")
    shutil.copytree(SOURCE, folder / "src" / "headway", ignore=shutil.ignore_patterns("data", "__pycache__"))
    data = folder / "src" / "headway" / "data"
    data.mkdir()
    for path in (SOURCE / "data").iterdir():
        (data / path.name).symlink_to(path)
    (data / "columns.csv").unlink()
    shutil.copy(SOURCE / "data" / "columns.csv", data)
    (folder / "DIR").mkdir()
    return folder


def write(block: Block, folder: Path) -> None:
    """Do what the paragraph above a block says: a new file, lines at the end of a file, or lines of a dictionary or tuple in it."""
    place, target = TARGET.findall(block.above)[-1]
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if target:
        opening = re.compile(rf"^{target}\b[^=\n]*= *[{{(\[]", re.MULTILINE)
        text, count = opening.subn(lambda match: f"{match[0]}\n{block.text}\n", path.read_text(encoding="utf-8"), count=1)
        assert count == 1, f"{place} has no {target}"
        path.write_text(text, encoding="utf-8")
    elif block.above.startswith("Append"):
        blank = "" if path.suffix == ".csv" else "\n\n"
        path.write_text(f"{path.read_text(encoding='utf-8')}{blank}{block.text}\n", encoding="utf-8")
    else:
        assert not path.exists(), f"{place} is there already"
        path.write_text(block.text + "\n", encoding="utf-8")


def run(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A command with the copy of the package, in the folder that holds DIR."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY")}
    environment |= {"PYTHONPATH": str(folder / "src"), "XDG_CONFIG_HOME": str(folder / "config")}
    return subprocess.run([sys.executable, *argv], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def headway(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line of headway with the copy of the package."""
    return run(["-m", "headway", *shlex.split(command)], folder)


@pytest.fixture(scope="module")
def followed() -> set[str]:
    """The sections that have been written into the copy."""
    return set()


def line_count(block: Block) -> int:
    """Lines of a block that say something: no blank ones, no imports."""
    return sum(bool(line.strip()) and not line.strip().startswith(("import ", "from ")) for line in block.text.splitlines())


def test_adding__page_has_every_subject_in_ten_lines() -> None:
    blocks = sections()
    assert set(blocks) == SECTIONS
    lengths = {title: max(map(line_count, parts)) for title, parts in blocks.items()}
    assert {title: lines for title, lines in lengths.items() if lines > MOST_LINES} == {}
    assert [title for title, parts in blocks.items() if not any(block.language == "console" for block in parts)] == []


@pytest.mark.parametrize("title", sorted(SECTIONS))
def test_adding__answers_as_the_page_says(title: str, scratch: Path, followed: set[str]) -> None:
    follow(title, scratch, followed)
    for block in sections()[title]:
        if block.language == "console":
            command, _, beginning = block.text.partition("\n")
            is_error = beginning.startswith("headway: ")
            process = headway(command.removeprefix("$ headway "), scratch)
            assert process.returncode == (2 if is_error else 0), process.stderr
            said = process.stderr if is_error else process.stdout
            assert said.startswith(beginning), said[:400]


def follow(title: str, folder: Path, followed: set[str]) -> None:
    """Write the files of a section, once."""
    if title not in followed:
        for chip_title in ("A chip",) if title in ON_ITS_CHIP else ():
            follow(chip_title, folder, followed)
        for block in sections()[title]:
            if block.language != "console":
                write(block, folder)
        followed.add(title)


def test_adding__example_of_the_law_holds(scratch: Path, followed: set[str]) -> None:
    follow("A law", scratch, followed)
    process = run(["-m", "doctest", "src/headway/laws/serving/request.py"], scratch)
    assert process.returncode == 0, process.stdout


def test_adding__keys_of_the_verb_are_declared(scratch: Path, followed: set[str]) -> None:
    follow("A verb", scratch, followed)
    columns = json.loads(headway("evacuate zeta-1 --catalog DIR -o json", scratch).stdout)["columns"]
    assert columns["evacuation_s"]["unit"] == "s"
    assert [key for key, column in columns.items() if not column["doc"]] == []


def test_adding__verb_refuses_what_it_does_not_serve(scratch: Path, followed: set[str]) -> None:
    follow("A verb", scratch, followed)
    for flags in ("--kv-share 2", "--plot a.svg", "--explain chip"):
        process = headway(f"evacuate zeta-1 --catalog DIR {flags}", scratch)
        assert process.returncode == 2 and process.stderr.startswith(f"headway: {flags.split()[0]}"), f"{flags}: {process.stderr}"


def test_adding__attention_kind_prints_its_field_and_looks_back_as_asked(scratch: Path, followed: set[str]) -> None:
    follow("An attention kind", scratch, followed)
    plain, near = (
        json.loads(headway(f"show model strided-8b --catalog DIR -o json {flags}", scratch).stdout)["rows"][0]
        for flags in ("", "--attention window:1k")
    )
    assert plain["blocks"][0]["stride"] == 16
    assert near["kv_bytes_per_token"] == 0 < near["kv_read_bytes_per_token"] < plain["kv_read_bytes_per_token"]


def test_adding__page_and_package_name_what_each_kind_leaves_open() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## An attention kind")[2].partition("\n## ")[0]
    for text in (page, attention.__doc__ or ""):
        for kind in MIXERS:
            names = {kind.__name__, *kind.__abstractmethods__} - ({"params"} if kind is SoftmaxAttention else set())
            assert [name for name in sorted(names) if name not in text] == []
    assert (ROOT / "tests" / "models" / "test_published_counts.py").is_file() and "SUMMARY_FIELDS" in page
