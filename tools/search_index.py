"""Writes src/headway/data/search/index.json: what `headway find`, `law --find` and `lecture QUESTION` search.

python tools/search_index.py writes it; --check exits 1 where it is not what laws, claims, verbs, catalogue and docs say by now.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import re
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import headway
from headway import laws
from headway.cli.main import GROUPS, parsed
from headway.core.errors import clip
from headway.core.formula import REGISTRY
from headway.core.listing import clean
from headway.core.question import question_of
from headway.core.search import IndexPage, bag, phrase
from headway.core.units import show
from headway.evidence.claims.claim import claims
from headway.evidence.lecture.chapters import chapters
from headway.hardware.describe import list_chips, list_systems
from headway.models.describe import list_models
from headway.report.law import description

SOURCE = Path(headway.__file__).parent
DOCS = SOURCE.parent.parent / "docs"
INDEX = SOURCE / "data" / "search" / "index.json"
ALIASES: dict[str, dict[str, str]] = tomllib.loads((SOURCE / "data" / "search" / "aliases.toml").read_text(encoding="utf-8"))
NOT_SEARCHED = ("where", "decisions", "adding", "commands", "worked_problems")  # about the code, or searched line by line
NAME, ALIAS, SENTENCE, REST, SMALL = 3.0, 2.0, 1.5, 0.7, 0.3  # weights of the parts of a page
MOST_SAYS = 160
MOST_COMMAND = 250  # letters; a law of records alone shows its arguments
CHIP_WORDS = "GPU chip accelerator specification facts memory bandwidth HBM peak FLOP/s links power price"
MODEL_WORDS = "model parameters layers attention experts context window length KV cache bytes per token architecture config size"
SYSTEM_WORDS = "rack node pod system chips scale-up domain bandwidth power topology"


def index() -> str:
    """The whole file: a line for each page."""
    rows = [[page.kind, page.name, page.says, page.command, page.counts, page.phrases, *filter(None, [page.section])] for page in pages()]
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def pages() -> list[IndexPage]:
    """Every page, by kind and in the order of its source."""
    by_kind = (law_pages(), lecture_pages(), verb_pages(), command_pages(), problem_pages(), doc_pages(), catalogue_pages())
    return [page for kind in by_kind for page in kind]


def page(kind: str, name: str, says: str, command: str, texts: Iterable[tuple[str, float]], section: str = "") -> IndexPage:
    """A page of weighted texts, with the aliases of its name."""
    alias = ALIASES.get(kind, {}).get(name, "")
    says = " ".join(says.split())
    phrases = "|".join(dict.fromkeys(filter(None, map(phrase, [words(name), says, *alias.split(";")]))))
    return IndexPage(kind, name, clip(says, MOST_SAYS), command, bag([*texts, (alias, ALIAS)]), phrases, section)


# -- laws -----------------------------------------------------------------------------------------------------------------------


def law_pages() -> Iterator[IndexPage]:
    """Laws, by module and name, each with the inputs of its doctest."""
    for module in pkgutil.walk_packages(laws.__path__, "headway.laws."):
        importlib.import_module(module.name)
    for name, law in sorted(REGISTRY.items(), key=lambda item: (item[1].module, item[0])):
        doc = (inspect.getdoc(law.run) or "").partition("\n\n")[0]
        arguments = " ".join(inspect.signature(law.run).parameters)
        texts = [(words(law.name), NAME), (doc, SENTENCE), (f"{law.source} {words(law.module)}", SMALL), (words(arguments), SMALL)]
        example = description(law)["example"]
        yield page("law", name, doc, example if example and len(example) <= MOST_COMMAND else f"headway law {name}", texts)


def words(name: str) -> str:
    """A name as words."""
    return re.sub(r"[_.]+", " ", name)


# -- the lecture ----------------------------------------------------------------------------------------------------------------


def lecture_pages() -> Iterator[IndexPage]:
    """Chapters, their sections and claims."""
    for chapter in chapters():
        command = f"headway lecture {chapter.label}"
        texts = ((chapter.title, 2.0), (chapter.says, 1.0), (", ".join(chapter.words), 1.5))
        yield page("chapter", chapter.label, f"{chapter.title}: {chapter.says}", command, texts, chapter.label)
        for place, section in enumerate(chapter.sections):
            at, prose = f"{chapter.label}.{place}", ((section.title, 2.0), (section.text, 1.0))
            yield page("section", chapter.label, f"{chapter.title}: {section.title}", command, prose, at)
            for claim_id, statement in section.statements.items():
                claim = claims()[claim_id]
                details = (claim.claim, 1.0), (claim.note, 0.7), (claim.stated_text, 0.7), (section.title, 0.7), (claim.title, 0.5)
                yield page("claim", claim_id, statement, f"headway lecture {claim_id}", ((statement, 2.0), *details), at)


# -- verbs ----------------------------------------------------------------------------------------------------------------------


def verb_pages() -> Iterator[IndexPage]:
    """Verbs: sentence, modes and flags, with the example of their help."""
    for verb, (_, sentence) in headway.QUESTIONS.items():
        question = question_of(verb)
        modes = ", ".join(text for _, text in question.modes)
        flags = " ".join(dict.fromkeys(f"{words(name)} {flag.field.help}" for name, flag in question.flags().items()))
        group = " ".join(name for name, verbs in GROUPS.items() if verb in verbs)
        small = " ".join(sorted(bag([(flags, 1.0)])))  # each stem once
        texts = ((verb, NAME), (sentence, SENTENCE), (f"{question.__doc__} {modes}", REST), (f"{group} {small}", SMALL))
        yield page("verb", verb, sentence, f"headway {question.example}", texts)


def command_pages() -> Iterator[IndexPage]:
    """Commands of docs/commands.md, each with what its line says and the title above."""
    title = ""
    for line in (DOCS / "commands.md").read_text(encoding="utf-8").splitlines():
        title = line.lstrip("# ") if line.startswith("## ") else title
        for command in (f"headway {part.strip()}" for part in line.split("headway ")[1:] if line.startswith("headway ")):
            command, _, comment = command.partition("#")
            command = command.strip(" \u00b7")
            verb = command.split()[1]
            if "|" not in command and comment and verb in headway.QUESTIONS and _reads(command):
                texts = ((comment, ALIAS), (headway.QUESTIONS[verb][1], REST), (f"{verb} {title}", REST))
                yield page("command", verb, comment.strip(), command, texts)


def _reads(command: str) -> bool:
    """Whether a command can be read."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            parsed(shlex.split(command)[1:])
        except (Exception, SystemExit):
            return False
    return True


# -- worked problems, docs ------------------------------------------------------------------------------------------------------


def problem_pages() -> Iterator[IndexPage]:
    """Worked problems, each with its command."""
    text = (DOCS / "worked_problems.md").read_text(encoding="utf-8")
    for place, (problem, source, command) in enumerate(re.findall(r"^\*\*(.+?)\*\* (.*?)\n\n```\n(.+?)\n```", text, re.MULTILINE), 1):
        subject = command.split()[1:3]
        about = words(subject[1]) if subject[0] == "law" else headway.QUESTIONS[subject[0]][1]
        yield page("problem", str(place), problem, command, ((problem, SENTENCE), (source, SMALL), (about, REST)))


def doc_pages() -> Iterator[IndexPage]:
    """Pages of docs: title, first lines and headings, with their first command that can be read."""
    for path in sorted(DOCS.glob("*.md")):
        if path.stem in NOT_SEARCHED:
            continue
        text = path.read_text(encoding="utf-8")
        title, _, body = text.partition("\n")
        paragraphs = (part for part in body.split("\n\n") if re.match(r"\s*[`*\w]", part) and not part.lstrip().startswith("```"))
        first = re.sub(r"[*`]|\]\([^)]*\)|\[", "", next(paragraphs, ""))
        headings = ", ".join(re.findall(r"^##+ (.+)$", text, re.MULTILINE))
        commands = (line.strip(" \u00b7") for line in re.findall(r"(?:^|`)(headway [^`#\n]+)", text, re.MULTILINE))
        command = next((line for line in commands if _reads(line)), "")
        if command:
            texts = ((f"{title} {words(path.stem)}", NAME), (first, REST), (headings, REST))
            yield page("docs", f"docs/{path.name}", f"{title.lstrip('# ')}: {first}", command, texts)


# -- catalogue ------------------------------------------------------------------------------------------------------------------


def catalogue_pages() -> Iterator[IndexPage]:
    """Models, chips and racks by name and alias."""
    nicknames = {kind: dict(_aliases(kind)) for kind in ("models", "chips", "systems")}
    for model in list_models():
        total, active = show(float(model.total_params), ""), show(float(model.active_params), "")
        says = f"{total} parameters{f', {active} active' if model.total_params > model.active_params else ''}; {model.family}"
        names = nicknames["models"].get(model.name, "")
        sizes = " ".join(show(float(f"{float(params):.2g}"), "") for params in (model.total_params, model.active_params))
        maker = model.hf_id.partition("/")[0] if "/" in model.hf_id else ""
        texts = ((f"{model.name} {_apart(model.name)}", ALIAS), (names, REST), (maker, ALIAS), (f"{model.family} {sizes}", REST),
                 (f"{says} {MODEL_WORDS}", SMALL))  # fmt: skip
        yield page("model", model.name, says, f"headway show model {model.name}", texts)
    for chip in list_chips():
        facts: dict[str, Any] = clean({key: getattr(chip, key) for key in ("hbm", "hbm_bw", "peak_bf16", "tdp")})
        units = {"hbm": "byte", "hbm_bw": "byte/s", "peak_bf16": "flop/s", "tdp": "W"}
        parts = [f"{show(float(facts[key]), unit)}" for key, unit in units.items() if facts[key] is not None]
        texts = ((f"{chip.name} {_apart(chip.name)}", ALIAS), (nicknames["chips"].get(chip.name.replace("-", "_"), ""), ALIAS),
                 (chip.vendor, ALIAS), (f"{chip.year or ''} {CHIP_WORDS}", SMALL))  # fmt: skip
        yield page("chip", chip.name, f"{chip.vendor} {chip.year or ''}: {', '.join(parts)}", f"headway show chip {chip.name}", texts)
    for system in list_systems():
        says = f"{float(system.chips):g} x {system.chip.name}, {system.topology}"
        names = nicknames["systems"].get(system.name.replace("-", "_"), "")
        texts = ((f"{system.name} {_apart(system.name)}", NAME), (names, ALIAS), (f"{says} {SYSTEM_WORDS}", SMALL))
        yield page("rack", system.name, says, f"headway show system {system.name}", texts)


def _apart(name: str) -> str:
    """A name with its letters and numbers apart."""
    return " ".join(re.findall(r"[a-z]+|\d[\d.]*[a-z]?", name.lower()))


def _aliases(kind: str) -> Iterator[tuple[str, str]]:
    for line in (SOURCE / "data" / "aliases" / f"{kind}.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#") and ":" in line:
            name, _, names = line.partition(":")
            yield name.strip(), names


def run(arguments: list[str]) -> int:
    """Write the file, or compare it."""
    text = index()
    if "--check" in arguments:
        if not INDEX.is_file() or INDEX.read_text(encoding="utf-8") != text:
            print(f"{INDEX} is not what the package says by now: python tools/search_index.py writes it")
            return 1
        return 0
    INDEX.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
