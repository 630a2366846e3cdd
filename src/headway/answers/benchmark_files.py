"""A benchmark's output as measured rows, with what the command line says of the runs: for `score` and `calibrate`."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from headway.answers import arguments
from headway.core import units
from headway.core.errors import BadValue
from headway.core.question import Question
from headway.evidence.questions import TOOLS
from headway.evidence.readers.files import RunFields, machine
from headway.evidence.rows.names import hardware as hardware_name

TEXTS = ("model", "engine", "engine_version", "weights", "kv")
DEGREES = ("tp", "ep", "pp", "dp", "max_num_seqs")
LENGTHS = ("prompt", "output")


def refuse_facts(args: Question) -> None:
    """Raise BadValue for a fact of a run beside a table."""
    name = next((name for name in ("on", *TEXTS, "eager", *DEGREES, *LENGTHS) if getattr(args, name)), "")
    if name:
        value = "on" if name == "eager" else getattr(args, name)
        raise BadValue("--" + name.replace("_", "-"), value, "no value with a table, whose rows say it themselves")


def read_benchmark(tool: str, path: str, args: Question) -> tuple[list[Any], list[Any]]:
    """The measured rows of a benchmark's output, and its records without one; `tool` is the flag of its reader."""
    reader: Any = importlib.import_module(f"headway.evidence.readers.{TOOLS[tool][0]}")
    rows, bad = reader.read(path, run_fields(args))
    return [dataclasses.replace(row, eager=1) for row in rows] if args.eager else rows, bad


def run_fields(args: Question) -> RunFields:
    """What the command line says of runs."""
    hardware, chips = machine(args.on)
    if hardware:
        hardware_name(hardware, arguments.catalog(args))  # an unknown machine is an input error, not a row without a prediction
    degrees: dict[str, Any] = {name: _whole_number(getattr(args, name), name) for name in DEGREES}
    lengths: dict[str, Any] = {name: _whole_number(getattr(args, name), name) for name in LENGTHS}
    texts: dict[str, Any] = {name: getattr(args, name) for name in TEXTS}
    return RunFields(hardware=hardware, chips=chips, **degrees, **lengths, **texts)


def _whole_number(text: str | None, name: str) -> int | None:
    if not text:
        return None
    flag = "--" + name.replace("_", "-")
    value = units.parse(text, "token", flag)
    if value < 1 or value != int(value) or value > 1e12:
        raise BadValue(flag, text, "a whole number of at least 1")
    return int(value)
