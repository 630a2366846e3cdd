"""A calibration profile: measured runs by deployment and what they say, kept as DIR/calibrations/NAME.toml.

The runs are what counts: each with the columns of its row, the hash of the file that it came from, and its date. Its observations follow
from them under one version of headway, its facts and fits, and are made anew under another (answers/calibrations.py).

    format = 1
    headway = "0.1.0"
    facts = "9f2c..."    # hash of the facts and fits that the observations rest on
    content = "51ab..."  # hash of all else in the file: an edited file is told

    [[deployments]]
    model = "llama-3.1-70b"
    runs = [
        { id = "bench-1", file = "bench.json", hash = "77d0...", date = "2026-11-20", row = { ... }, observations = [ ... ] },
    ]
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core import user_file
from headway.core.catalog import Catalog, fold
from headway.core.errors import BadFile, BadValue
from headway.performance.calibration.factors import PARAMETERS
from headway.performance.calibration.key import MODES, RunKey
from headway.performance.calibration.observation import Observation

KIND = "calibrations"  # of a catalogue
FORMAT = 1
HEAD = "# A calibration profile of headway: `headway show calibration {name}` prints it, `headway calibrate` writes it.\n"
CONTENT = re.compile(r'^content = "\w*"\n', re.MULTILINE)
NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,60}")
Cell = str | float  # of a row's column
AGAIN = "write it anew with `headway calibrate FILE... --save NAME --replace`"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRun:
    """A measured run of a profile, and what it says of its deployment."""

    id: str
    file: str  # that it was read from
    hash: str  # SHA-256 of that file
    date: str  # of the run, year first; "" where nobody says
    cells: tuple[tuple[str, Cell], ...]  # columns of its row, each with what it holds
    observations: tuple[Observation, ...] = ()

    @property
    def key(self) -> RunKey:
        """Its deployment."""
        return self.observations[0].key


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Runs under a name, and the version of headway, its facts and fits that their observations rest on."""

    name: str
    runs: tuple[CalibrationRun, ...]
    headway: str
    facts: str
    content: str = ""  # hash of the file, by which answers name its state
    is_edited: bool = False  # since headway wrote it

    @property
    def observations(self) -> tuple[Observation, ...]:
        """What all its runs say."""
        return tuple(observation for run in self.runs for observation in run.observations)

    @property
    def deployments(self) -> dict[RunKey, list[CalibrationRun]]:
        """Its runs by deployment, in file order."""
        by_key: dict[RunKey, list[CalibrationRun]] = {}
        for run in self.runs:
            by_key.setdefault(run.key, []).append(run)
        return by_key


def checked_name(text: str, word: str = "--save") -> str:
    """The name of a profile, or BadValue: it is a file's name and no path."""
    name = fold(text)
    if not NAME.fullmatch(name):
        raise BadValue(word, text, "a name of letters, digits and dashes, such as mine; --into DIR says where")
    if name == "none":
        raise BadValue(word, text, "another name: --calibration none means no profile")
    return name


# -- the file ---------------------------------------------------------------------------------------------------------------------


def text_of(profile: Profile) -> str:
    """The file of a profile; a reader gets the same profile."""
    lines = [f"format = {FORMAT}", f"headway = {_value(profile.headway)}", f"facts = {_value(profile.facts)}"]
    for key, runs in profile.deployments.items():
        lines += ["", "[[deployments]]", *(f"{name} = {_value(value)}" for name, value in dataclasses.asdict(key).items())]
        lines += ["runs = [", *(f"    {_value(_entry(run))}," for run in runs), "]"]
    body = HEAD.format(name=profile.name) + "\n".join(lines) + "\n"
    at = body.index("\n", body.index("\nfacts = ") + 1) + 1
    return f'{body[:at]}content = "{_hash(body)}"\n{body[at:]}'


def _entry(run: CalibrationRun) -> dict[str, Any]:
    """A run as a table of the file."""
    observations = [
        {"quantity": item.quantity, "excess": item.excess, "slopes": item.slopes} | ({"aged": item.aged} if item.aged else {})
        for item in run.observations
    ]
    about = {"id": run.id, "file": run.file, "hash": run.hash, "date": run.date}
    return about | {"row": dict(run.cells), "observations": observations}


def _value(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(int(value) if isinstance(value, int) else float(value))


def _hash(text: str) -> str:
    """Hash of a profile's file, but for the line that says it."""
    return hashlib.sha256(CONTENT.sub("", text, count=1).encode()).hexdigest()


def read_profile(path: Path) -> Profile:
    """The profile of a file, or BadFile; parsed again only where the file was changed."""
    try:
        status = path.stat()
    except OSError as error:
        raise BadFile(path, f"cannot be read ({error.strerror or error})") from None
    return _parsed(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=64)
def _parsed(path: Path, changed_ns: int, size: int) -> Profile:
    """The profile of a file in one state of it."""
    text = user_file.text_of(path, user_file.PROFILE)
    document = user_file.toml_of(text, path)
    form = document.get("format")
    if isinstance(form, int) and form > FORMAT:
        raise BadFile(path, f"is of format {form}, newer than this headway reads ({FORMAT}): update headway, or --calibration none")
    if form != FORMAT:
        raise BadFile(path, f"is no calibration profile: wants format = {FORMAT}; {AGAIN}")
    content = _hash(text)
    deployments = document.get("deployments")
    runs = [run for number, entry in enumerate(_tables(deployments, "deployments", path), 1) for run in _runs(entry, number, path)]
    if not runs:
        raise BadFile(path, f"holds no run; {AGAIN}")
    _refuse_twins(runs, path)
    return Profile(
        name=path.stem, runs=tuple(runs), headway=_text(document, "headway", path), facts=_text(document, "facts", path),
        content=content, is_edited=document.get("content") != content,
    )  # fmt: skip


def _runs(entry: Mapping[str, Any], number: int, path: Path) -> Iterator[CalibrationRun]:
    """The runs of a deployment of a file."""
    where = f"deployments {number}"
    texts = {name.name: _text(entry, name.name, path, where) for name in dataclasses.fields(RunKey) if name.name != "chips"}
    chips = entry.get("chips")
    if isinstance(chips, bool) or not isinstance(chips, int) or chips < 1 or texts["mode"] not in MODES:
        raise BadFile(path, f"{where}: wants chips, a whole number, and mode, one of {', '.join(MODES)}; {AGAIN}")
    key = RunKey(chips=chips, **texts)
    for at, run in enumerate(_tables(entry.get("runs"), f"{where}: runs", path), 1):
        yield _run(run, key, f"{where}, run {at}", path)


def _run(entry: Mapping[str, Any], key: RunKey, where: str, path: Path) -> CalibrationRun:
    """A run of a file."""
    name, file, digest, date = (_text(entry, word, path, where) for word in ("id", "file", "hash", "date"))
    cells = entry.get("row")
    if not isinstance(cells, dict) or not all(isinstance(cell, str) or _is_number(cell) for cell in cells.values()):
        raise BadFile(path, f"{where}: wants row, a table of texts and numbers; {AGAIN}")
    if cells.get("id", name) != name:
        raise BadFile(path, f"{where}: its id is {name!r}, and its row says {cells['id']!r}; wants one id")
    observations = [
        Observation(
            run=f"{path.stem}:{name}", key=key, month=date, quantity=_text(item, "quantity", path, where),
            slopes=_numbers(item.get("slopes"), where, path), excess=_numbers([item.get("excess")], where, path)[0],
            aged=_numbers([item.get("aged", 0.0)], where, path)[0],
        )
        for item in _tables(entry.get("observations"), f"{where}: observations", path)
    ]  # fmt: skip
    if not observations:
        raise BadFile(path, f"{where}: holds no observation; {AGAIN}")
    return CalibrationRun(id=name, file=file, hash=digest, date=date, cells=tuple(cells.items()), observations=tuple(observations))


def _text(entry: Mapping[str, Any], name: str, path: Path, where: str = "") -> str:
    value = entry.get(name)
    if not isinstance(value, str):
        raise BadFile(path, f"{where}{': ' if where else ''}wants {name}, a text in quotes; {AGAIN}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _numbers(values: Any, where: str, path: Path) -> tuple[float, ...]:
    if not isinstance(values, list) or not values or len(values) > len(PARAMETERS) or not all(map(_is_number, values)):
        raise BadFile(path, f"{where}: wants excess, a number, and slopes, one of each of {', '.join(PARAMETERS)}; {AGAIN}")
    return tuple(map(float, values))


def _tables(value: Any, name: str, path: Path) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise BadFile(path, f"wants {name}, a list of tables; {AGAIN}")
    return value


def _refuse_twins(runs: Sequence[CalibrationRun], path: Path) -> None:
    names = [run.id for run in runs]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            raise BadFile(path, f"has two runs of one id, {name!r}: give each an id of its own")


# -- which profiles there are -----------------------------------------------------------------------------------------------------


def profiles(catalog: Catalog, names: Sequence[str] | None = None) -> tuple[Profile, ...]:
    """The profiles of a catalogue, all or those of these names; UnknownName of one that is not there."""
    paths = catalog.files(KIND).values() if names is None else dict.fromkeys(catalog.path(KIND, name) for name in names)
    return tuple(read_profile(path) for path in paths)


def observations_of(calibrations: Sequence[Profile]) -> tuple[Observation, ...]:
    """What the runs of several profiles say; a run that two of them hold counts once."""
    runs = {(run.hash, run.id, run.cells): run for profile in reversed(calibrations) for run in profile.runs}
    return tuple(observation for run in runs.values() for observation in run.observations)
