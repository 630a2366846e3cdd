"""The golden answers: what every verb said before the code was renamed and moved, and whether it says so still.

`python tests/contract/golden/golden.py` writes stored/ again and prints what changed; `--check` compares alone and exits 1 on a difference;
`--inputs` writes the files that the commands read. A command is one more line of commands.txt.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "src")]
    from support.environment import settle

    settle()

from contract.golden import golden_inputs  # noqa: E402
from contract.golden.golden_answers import answer, commands, entries, verb_of  # noqa: E402
from contract.golden.golden_compare import differences, listed  # noqa: E402

STORED = HERE / "stored"
FITTED_FILE = "fitted_numbers"
FITTED = (
    "efficiency.toml", "evidence.csv", "inversion.toml", "engines/sglang.toml", "engines/trtllm.toml", "engines/vllm.toml",
    "training/efficiency.toml", "training/optimizers.toml", "scaling/dense.toml", "scaling/exponents.toml", "scaling/life_cycle.toml",
    "scaling/repeated.toml", "scaling/routed.toml",
)  # fmt: skip
LINEWISE = ("table", "text", "notes")


# -- storage --------------------------------------------------------------------------------------------------------------------


def stored() -> dict[str, dict[str, Any]]:
    """Command -> answer, as they were written."""
    answers: dict[str, dict[str, Any]] = {}
    for path in sorted(STORED.glob("*.json")):
        if path.stem != FITTED_FILE:
            document = json.loads(path.read_text(encoding="utf-8"))
            answers |= {line: unpacked(parts, document["units"]) for line, parts in document["answers"].items()}
    return answers


def stored_fitted() -> dict[str, list[Any]]:
    """Fitted file -> its numbers, as they were written."""
    path = STORED / f"{FITTED_FILE}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def lines_of(value: list[Any]) -> str:
    """A list in JSON, one item a line."""
    return "[\n" + ",\n".join(compact(item) for item in value) + "\n]" if value else "[]"


def compact(value: Any) -> str:
    """JSON on one line, floats with all their digits."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def packed(parts: dict[str, Any], units: dict[str, str]) -> dict[str, Any]:
    """An answer with its table by column: [name, values, unit if not the usual one], shorter where all rows are alike."""
    if "rows" not in parts:
        return parts
    rows, names = parts["rows"], list(parts["columns"])
    cells = [[row[place] for row in rows] for place in range(len(rows[0]) if rows else len(names))]
    table = []
    for name, column in zip([*names, *([""] * (len(cells) - len(names)))], cells, strict=True):
        alike = len(column) > 1 and len(set(map(compact, column))) == 1
        unit = [parts["columns"][name]] if name and parts["columns"][name] != units[name] else []
        empty = bool(column) and all(value is None for value in column)
        table.append(name if empty and not unit else [name, {"every": column[0]} if alike else column, *unit])
    others = {key: part for key, part in parts.items() if key not in ("rows", "columns")}
    return {"status": others.pop("status"), "count": len(rows), "table": table, **others}


def unpacked(parts: dict[str, Any], units: dict[str, str]) -> dict[str, Any]:
    """The answer that was packed."""
    if "table" not in parts:
        return parts
    count = parts["count"]
    table = [[column, [None] * count] if isinstance(column, str) else column for column in parts["table"]]
    cells = [[column[1]["every"]] * count if isinstance(column[1], dict) else column[1] for column in table]
    columns = {name: unit[0] if unit else units[name] for name, _, *unit in table if name}
    others = {key: part for key, part in parts.items() if key not in ("count", "table")}
    return others | {"columns": columns, "rows": [[cell[row] for cell in cells] for row in range(count)]}


def block(parts: dict[str, Any], units: dict[str, str]) -> str:
    """One answer in JSON."""
    texts = {key: lines_of(part) if key in LINEWISE else compact(part) for key, part in packed(parts, units).items()}
    return "{\n" + ",\n".join(f"{compact(key)}: {text}" for key, text in texts.items()) + "\n}"


def write(answers: dict[str, dict[str, Any]], tables: dict[str, list[Any]]) -> None:
    """One file for each verb, and one for the fitted numbers."""
    STORED.mkdir(exist_ok=True)
    for path in STORED.glob("*.json"):
        path.unlink()
    for verb in dict.fromkeys(verb_of(line) for line in answers):
        of_verb = {line: parts for line, parts in answers.items() if verb_of(line) == verb}
        units: dict[str, str] = {}
        for parts in of_verb.values():
            units = parts.get("columns", {}) | units
        blocks = ",\n".join(f"{compact(line)}: {block(parts, units)}" for line, parts in of_verb.items())
        (STORED / f"{verb}.json").write_text(f'{{"units": {compact(units)},\n"answers": {{\n{blocks}\n}}}}\n', encoding="utf-8")
    text = ",\n".join(f"{compact(name)}: {lines_of(numbers)}" for name, numbers in tables.items())
    (STORED / f"{FITTED_FILE}.json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


# -- fitted numbers -------------------------------------------------------------------------------------------------------------


def data_folder() -> Path:
    """Where the package's facts lie."""
    spec = importlib.util.find_spec("headway")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "data"


def fitted(name: str, before: list[Any] | None = None) -> list[Any]:
    """The numbers of one fitted file: where it was, or else under any name and folder if they are the same, or else of that file name."""
    folder = data_folder()
    if (folder / name).is_file():
        return entries(folder / name)
    others = sorted(folder.rglob(f"*{Path(name).suffix}"))
    same = (path for path in others if before is not None and not list(listed(name, before, entries(path))))
    path = next(same, None) or next((path for path in others if path.name == Path(name).name), None)
    return entries(path) if path else []


# -- the command ----------------------------------------------------------------------------------------------------------------


def compared() -> tuple[dict[str, list[str]], dict[str, dict[str, Any]], dict[str, list[Any]]]:
    """What differs by command and by file, the answers of today, and the fitted numbers."""
    before, tables = stored(), stored_fitted()
    answers = {line: answer(line) for line in commands()}
    numbers = {name: fitted(name, tables.get(name)) for name in FITTED}
    changes = {line: differences(before.get(line), answers.get(line)) for line in dict.fromkeys([*before, *answers])}
    changes |= {name: list(listed("numbers", tables.get(name, []), numbers[name])) for name in FITTED}
    return {name: lines for name, lines in changes.items() if lines}, answers, numbers


def main() -> int:
    """Compare, and write unless told to check; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare alone")
    parser.add_argument("--inputs", action="store_true", help="write the input files")
    args = parser.parse_args()
    if args.inputs:
        golden_inputs.write()
        return 0
    changes, answers, numbers = compared()
    for name, lines in changes.items():
        print(name)
        for line in lines:
            print(f"  {line}")
    verbs = {verb_of(line) for line in answers} - {"program"}
    print(f"golden: {len(answers)} commands, {len(verbs)} verbs, {len(numbers)} fitted files, {len(changes)} differences")
    if not args.check:
        write(answers, numbers)
        return 0
    return 1 if changes else 0


if __name__ == "__main__":
    sys.exit(main())
