"""FILE.toml as a study: blocks of questions, each a verb with its fields, a grid of those that vary, or a list in a file of its own."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway import ACTS, QUESTIONS
from headway.core import schema, user_file
from headway.core.csv_text import csv_header, csv_lines, refuse_twins, width_error
from headway.core.errors import BadFile, BadValue, HeadwayError, MissingExtra, UnknownName, clip
from headway.core.question import Question, QuestionField, question_of
from headway.study.grid import QuestionBlock, grid
from headway.training.recipe import BINARY_FLAGS, binary_text

NO_ANSWER = (*ACTS, "sweep", "lecture", "calibrate", "fit", "update", "measure")  # what they do, or ask a person, is no row of a study
TRUTHS = {"true": True, "false": False}  # of a switch in a CSV list
MOST_QUESTIONS = 100_000_000
WANTS = 'a study: [[questions]] with verb = "plan" and its fields, those that vary under [questions.grid]'
LISTS = user_file.FileKind("a list of questions", 256 * user_file.MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """The questions of a file, in its order."""

    name: str
    blocks: tuple[QuestionBlock, ...]
    digest: str  # of all that it says

    def __len__(self) -> int:
        return sum(map(len, self.blocks))


def read(path: str) -> Study:
    """The study of a file."""
    data = user_file.toml_of(user_file.text_of(path, user_file.QUESTION), path)
    unknown = [key for key in data if key not in ("common", "questions")]
    tables = data.get("questions")
    if unknown or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables) or not tables:
        raise BadFile(path, (f"has {clip(unknown[0])!r}" if unknown else "has no [[questions]]") + f"; wants {WANTS}")
    common = data.get("common", {})
    if not isinstance(common, dict):
        raise BadFile(path, "[common] wants a table, not a list or a value")
    blocks, first = list[QuestionBlock](), 0
    for number, table in enumerate(tables, 1):
        place = f"questions[{number}]"
        try:
            block = _block(place, table, common, first, Path(path).parent)
        except HeadwayError as error:
            raise BadFile(path, str(error) if str(error).startswith(place) else f"{place}: {error}") from None
        blocks.append(block)
        first += len(block)
    fields = {name for block in blocks for name in question_of(block.verb).flags()}
    for name in common:
        if name not in fields:
            raise BadFile(path, str(UnknownName("field of any verb here, under [common],", name, fields)))
    return Study(name=Path(path).stem, blocks=tuple(blocks), digest=digest_of(blocks))


def digest_of(blocks: Sequence[QuestionBlock]) -> str:
    """SHA-256 of what blocks ask."""
    digest = hashlib.sha256()
    for block in blocks:
        entries = [block.verb, dict(block.values), {name: list(axis) for name, axis in block.axes.items()}, list(block.lines or ())]
        digest.update(json.dumps(entries, default=str).encode())
    return digest.hexdigest()


def of_list(questions: Sequence[Any]) -> Study:
    """The study of a Python list: mappings with their verb, or questions; one block a verb, each question numbered by its place."""
    by_verb: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for number, item in enumerate(questions):
        values = {"verb": item.verb, **item.entries()} if isinstance(item, Question) else item
        if not isinstance(values, Mapping):
            raise BadValue(f"questions[{number}]", item, 'a mapping such as {"verb": "plan", "model": "llama-3.1-8b", "on": "h100-sxm"}')
        by_verb.setdefault(str(values.get("verb", "")), []).append((number, {key: values[key] for key in values if key != "verb"}))
    if not by_verb:
        raise BadValue("questions", questions, "at least one question")
    for verb, items in by_verb.items():
        check_verb(verb, f"questions[{items[0][0]}]")
    blocks = [
        QuestionBlock(place="questions", verb=verb, values={}, axes={}, lines=[line for _, line in items], numbers=[n for n, _ in items])
        for verb, items in by_verb.items()
    ]
    return Study(name="questions", blocks=tuple(blocks), digest=digest_of(blocks))


def check_verb(verb: Any, place: str) -> None:
    """Raise an error for a verb that no study can ask."""
    verbs = [name for name in QUESTIONS if name not in NO_ANSWER]
    if verb in NO_ANSWER:
        raise BadValue(f"{place}.verb", verb, f"a verb that answers: {', '.join(verbs)}")
    if verb not in verbs:
        raise UnknownName(f"verb of {place}", verb or "", verbs, "one of " + ", ".join(verbs))


def _block(place: str, table: Mapping[str, Any], common: Mapping[str, Any], first: int, folder: Path) -> QuestionBlock:
    """The block of one table."""
    verb = str(table.get("verb", ""))
    check_verb(verb, place)
    axes, source = table.get("grid", {}), table.get("list")
    if not isinstance(axes, dict):
        raise BadValue(f"{place}.grid", axes, 'a table: [questions.grid], then on = ["h100-sxm", "h200"]')
    if axes and source is not None:
        raise BadValue(f"{place}.list", source, "no grid beside it: a list has every value that varies")
    fields = {name: value for name, value in table.items() if name not in ("verb", "grid", "list")}
    flags = question_of(verb).of_words([str(fields["of"])] if "of" in fields else []).flags()
    for name in (*fields, *axes):
        check_field(flags, name, verb)
    twice = [name for name in fields if name in axes]
    if twice:
        raise BadValue(f"{place}.{twice[0]}", fields[twice[0]], "it once: it is an axis of the grid too")
    values = {name: value for name, value in common.items() if name in flags and name not in axes} | fields
    if source is None:
        members = {name: _members(f"{place}.grid.{name}", verb, flags[name], axis) for name, axis in axes.items()}
        return _sized(place, grid(place, verb, values, members, first))
    lines = _lines(folder / str(source))
    for name in dict.fromkeys(key for line in lines for key in line):
        check_field(flags, name, verb)
        if flags[name].field.is_switch:
            lines = [{**line, name: TRUTHS.get(str(line[name]).lower(), line[name])} if name in line else line for line in lines]
    return QuestionBlock(place=place, verb=verb, values=values, axes={}, lines=lines, numbers=range(first, first + len(lines)))


def check_field(flags: Mapping[str, QuestionField], name: str, verb: str) -> None:
    """Raise an error for a name that is no field of a verb."""
    if name not in flags:
        raise UnknownName(f"field of {verb}", name, flags)


def _sized(place: str, block: QuestionBlock) -> QuestionBlock:
    if len(block) > MOST_QUESTIONS:
        sizes = " x ".join(f"{len(axis):,}" for axis in block.axes.values())
        raise BadValue(f"{place}.grid", f"{sizes} = {len(block):,} questions", f"at most {MOST_QUESTIONS:,}: fewer values an axis")
    return block


def _members(place: str, verb: str, flag: QuestionField, axis: Any) -> Sequence[Any]:
    """Members of an axis: of a list each, of a range of numbers such as "1..64*2" each."""
    if isinstance(axis, str) and flag.field.is_number and (".." in axis or "," in axis):
        is_binary = flag.name in BINARY_FLAGS and verb == "train"  # as the verb itself reads it
        members, notes = schema.axis(binary_text(axis) if is_binary else axis, flag.field, place)
        if notes:
            raise BadValue(place, axis, "legal values alone: " + notes[0])
        return [member.real for member in schema.several(members)]
    if not isinstance(axis, list):
        raise BadValue(place, axis, "a list of values, or a range of numbers such as 1..64*2")
    if not axis:
        raise BadValue(place, axis, "at least one value")
    texts = [json.dumps(member, default=str) for member in axis]
    if len(set(texts)) < len(texts):
        again = next(member for member, text in zip(axis, texts, strict=True) if texts.count(text) > 1)
        raise BadValue(place, again, "each value once")
    return axis


def _lines(path: Path) -> list[dict[str, Any]]:
    """The questions of a list: CSV with a header, JSON by lines or Parquet; an empty cell leaves its field out."""
    kind = path.suffix.lower()
    if kind == ".parquet":
        try:
            from pyarrow import ArrowException, parquet
        except ImportError:
            raise MissingExtra("a list in Parquet", "table") from None
        data = io.BytesIO(user_file.data_of(path, LISTS))
        try:
            lines = parquet.ParquetFile(data).read().to_pylist()
        except (ArrowException, OSError) as error:
            raise BadFile(path, f"is no whole file of Parquet ({clip(error)})") from None
    elif kind in (".jsonl", ".ndjson"):
        texts = user_file.text_of(path, LISTS).splitlines()
        lines = [user_file.json_of(text, f"{path}: line {number}", LISTS, False) for number, text in enumerate(texts, 1) if text.strip()]
    elif kind == ".csv":
        lines = _csv(path)
    else:
        raise BadFile(path, "wants a list of questions that ends in .csv, .jsonl or .parquet")
    if not lines or not all(isinstance(line, dict) for line in lines):
        raise BadFile(path, "wants a question a line, below a header of field names in CSV")
    return [{key.strip().replace("-", "_"): value for key, value in line.items() if value not in (None, "")} for line in lines]


def _csv(path: Path) -> list[dict[str, Any]]:
    rows = csv_lines(user_file.text_of(path, LISTS))
    names = csv_header(rows, path)
    refuse_twins(names, path)
    lines = []
    for number, cells, why in rows:
        why = why or width_error(cells, len(names))
        if why:
            raise BadFile(path, f"line {number}: {why}")
        lines.append({name: cell.strip() for name, cell in zip(names, cells, strict=False)})
    return lines
