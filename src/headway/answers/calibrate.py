"""`headway calibrate FILE...`: the user's own runs as a profile, and what they change, by deployment."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headway import __version__
from headway.answers import advice, arguments
from headway.answers.benchmark_files import read_benchmark, refuse_facts, run_fields
from headway.answers.calibrations import stale
from headway.core.catalog import Catalog, user_folder
from headway.core.errors import BadFile, BadValue, clip
from headway.core.files import save
from headway.core.listing import Listing
from headway.core.notes import note
from headway.core.question import Question
from headway.core.question_files import hash_of
from headway.core.user_file import PROFILE as PROFILE_FILE
from headway.core.user_file import text_of as text_of_file
from headway.evidence.calibration.contradictions import contradictions
from headway.evidence.calibration.deployments import DeploymentOfRuns, deployments
from headway.evidence.calibration.engine_logs import LogRow, cells_of
from headway.evidence.calibration.filed import filed_rows, used_runs, with_predictions
from headway.evidence.calibration.runs import FiledRow, LeftOutRow, UsedRun
from headway.evidence.questions import Calibrate
from headway.evidence.readers import engine_log
from headway.evidence.readers.aiperf import exports
from headway.evidence.readers.kinds import PROFILE, TABLE, tool_of
from headway.evidence.rows.row import BadRow, MeasuredRow, left_out, read_rows
from headway.evidence.rows.tasks import Task, tasks
from headway.evidence.training.row import read_training_rows
from headway.performance.calibration.facts import facts_hash
from headway.performance.calibration.profile import KIND, Profile, checked_name, read_profile, text_of
from headway.report import calibration, output, prediction_pictures

if TYPE_CHECKING:
    from headway.report.pictures.frame import Picture, View

UNNAMED = "runs"  # name of a profile that is not kept
BY_IT = "serve, plan, predict and others then go by these runs"


def run(args: Calibrate) -> output.Answer:
    """Answer with a row per deployment; writes the profile with --save."""
    if not (args.rows or args.log):
        raise BadValue("FILE", "nothing", "the files of your runs, or --log with what an engine logged at its start")
    name = checked_name(args.save) if args.save else UNNAMED
    path = _place(args, name) if args.save else None
    where = arguments.catalog(args)
    filed, bad = _read(args)
    runs, silent = used_runs(filed, name, where)
    if args.advise:
        return _advice(args, filed, runs)
    if not runs:
        raise _unusable(args, [*bad, *silent])
    runs = with_predictions(runs, where)
    if path is not None:
        save(path, _profile(name, runs, where), makes_folder=True)
    answer = _answer(deployments(runs), [*bad, *silent], path)
    answer.pictures = {"parity": lambda _, view: _picture(runs, view)}
    answer.documents = {"toml": lambda: _profile(name, runs, where)}
    if path:
        answer.words = replace(
            answer.words, remarks=[f"written: {path}, {calibration.count_of(len(runs))}; {BY_IT}", *answer.words.remarks]
        )
    return answer


def _picture(runs: Sequence[UsedRun], view: View) -> Picture:
    """The runs, predicted without and with them."""
    are_held_out = any(run.by_others for run in runs)
    pairs = [pair for run in runs for pair in zip(run.without, run.by_others if are_held_out else run.by_runs, strict=True)]
    before, after = zip(*pairs, strict=True) if pairs else ((), ())
    return prediction_pictures.by_own_runs(before, after, view, are_held_out)


def _advice(args: Calibrate, filed: Sequence[FiledRow], runs: Sequence[UsedRun]) -> output.Answer:
    """Which run to make next, of deployments of which some or none were measured."""
    planned = tasks([row.row for row in filed if isinstance(row.row, MeasuredRow)], arguments.catalog(args))
    observations = [observation for run in runs for observation in run.run.observations]
    return advice.answer([task for task in planned if isinstance(task, Task)], observations, args.for_)


def profile_answer(args: Question) -> output.Answer:
    """Answer on a profile of the catalogue: a row per deployment, by its runs as they are predicted now."""
    where = arguments.catalog(args)
    path = where.path(KIND, args.name)
    profile = read_profile(path)
    why = stale(profile, where)
    filed, bad = filed_rows(profile, path.name)
    runs, silent = used_runs(filed, profile.name, where)
    if not runs:
        raise BadFile(path, "holds no run that is predicted now")
    answer = _answer(deployments(with_predictions(runs, where)), [*bad, *silent], path)
    state = [f"what its runs say is made anew when it is used: {why}"] if why else []
    answer.notes = [*state, *calibration.run_notes(profile.runs), *answer.notes]
    answer.documents = {"toml": lambda: text_of_file(path, PROFILE_FILE)}
    return answer


def _answer(records: Sequence[DeploymentOfRuns], bad: Sequence[LeftOutRow], path: Path | None) -> output.Answer:
    rows = [calibration.row(record, None if path is None else str(path)) for record in records]
    runs_of_each = [[used_run.run for used_run in record.runs] for record in records]
    notes = [calibration.contradiction_note(contradiction) for runs in runs_of_each for contradiction in contradictions(runs)]
    notes += calibration.age_notes([run for runs in runs_of_each for run in runs], datetime.date.today().isoformat())
    for file in dict.fromkeys(line.file for line in bad):
        notes += left_out(file, [line.row for line in bad if line.file == file])
    helps = [] if path else [output.Help(change="--save NAME", effect=f"keeps the profile: {BY_IT}")]
    are_held_out = any(quantity.ratio_by_others for record in records for quantity in record.quantities)
    view = (*(("deployment", "runs") if len(records) > 1 else ()), *calibration.CHANGE[: 4 if are_held_out else 3])
    words = output.Summary(
        calibration.headline(records), view, people=calibration.people(records), helps=helps,
        remarks=[f"before and after: {calibration.ABOUT}", *([calibration.HELD_OUT] if are_held_out else [])],
        first=("deployment", *calibration.CHANGE),
    )  # fmt: skip
    return output.Answer(Listing(rows, always=tuple(rows[0])), words, columns=calibration.COLUMNS, notes=notes, most=400)


def _unusable(args: Calibrate, bad: Sequence[LeftOutRow]) -> BadFile:
    """That no row can be used, with the first reason."""
    if not bad:
        return BadFile((*args.rows, *args.log)[0], "holds no run")
    more = f" (and {len(bad) - 1:,} more lines)" if len(bad) > 1 else ""
    return BadFile(bad[0].file, f"holds no run that can be used; line {bad[0].row.line}: {bad[0].row.why}{more}")


# -- files that are read ------------------------------------------------------------------------------------------------------------


def _read(args: Calibrate) -> tuple[list[FiledRow], list[LeftOutRow]]:
    """Rows of all files, each with the hash of its file; a file that is given twice is read once."""
    kinds, bad = _kinds(args.rows)
    if not args.log and set(kinds.values()) <= {TABLE, PROFILE}:
        refuse_facts(args)
    filed: list[FiledRow] = []
    known: dict[str, str] = {}
    for file, tool in kinds.items():
        digest = _hash(file)
        if digest in known:
            bad.append(_no_row(file, f"is the same as {known[digest]}"))
            continue
        known[digest] = file
        try:
            rows, lines = _rows(file, tool, digest, args)
        except BadFile as error:
            if len(args.rows) == 1:
                raise
            rows, lines = [], [_no_row(file, str(error))]
        first = {(entry.row.id, entry.hash) for entry in filed}  # a profile may hold the runs of a file beside it
        filed += [entry for entry in rows if (entry.row.id, entry.hash) not in first]
        bad += lines
    filed += [FiledRow(row=_log_row(file, args), file=Path(file).name, hash=_hash(file)) for file in dict.fromkeys(args.log)]
    return _apart(filed), bad


def _kinds(names: Sequence[str]) -> tuple[dict[str, str], list[LeftOutRow]]:
    """The reader of each file; one among others that none reads is left out, but one that is not there is a slip."""
    kinds, bad = {}, []
    for file in dict.fromkeys(names):
        try:
            kinds[file] = _kind(file)
        except BadFile as error:
            if len(names) == 1 or not Path(file).exists():
                raise
            bad.append(_no_row(file, str(error)))
    return kinds, bad


def _no_row(file: str, why: str) -> LeftOutRow:
    """A file that gives no row."""
    return LeftOutRow(file=file, row=BadRow(line=1, id="", why=why.removeprefix(f"{clip(file, 120)}: ")))


def _log_row(file: str, args: Calibrate) -> LogRow:
    """The row of a log, and notes on what it says in another way."""
    log = engine_log.read(file)
    note(*(f"{log.name}: {text}" for text in log.notes))
    return LogRow(id=Path(file).stem, cells=cells_of(log, run_fields(args)))


def _rows(file: str, tool: str, digest: str, args: Calibrate) -> tuple[list[FiledRow], list[LeftOutRow]]:
    """Rows of a file, and its lines that are none."""
    if tool == PROFILE:
        return filed_rows(read_profile(Path(file)), file)
    if args.training and tool != TABLE:
        raise BadValue("--training", "on", f"a table of training runs: {clip(file)} is the output of a benchmark of serving")
    rows, faults = read_benchmark(tool, file, args) if tool != TABLE else read_training_rows(file) if args.training else read_rows(file)
    return [FiledRow(row=row, file=Path(file).name, hash=digest) for row in rows], [LeftOutRow(file=file, row=row) for row in faults]


def _kind(file: str) -> str:
    """Reader of a file, which is read more than once."""
    if Path(file).exists() and not (Path(file).is_file() or Path(file).is_dir()):
        raise BadFile(file, "is no file that can be read twice; save it first: a profile keeps the hash of each file")
    return tool_of(file)


def _hash(file: str) -> str:
    """Hash of a file's content; of a folder that of its summaries."""
    path = Path(file)
    if not path.is_dir():
        return hash_of(path)
    return hashlib.sha256("".join(map(hash_of, exports(path))).encode()).hexdigest()


def _apart(filed: Sequence[FiledRow]) -> list[FiledRow]:
    """Rows whose ids are told apart by their files, where two files have one."""
    homes: dict[str, set[str]] = {}
    for entry in filed:
        homes.setdefault(entry.row.id, set()).add(entry.hash)
    shared = {name for name, hashes in homes.items() if len(hashes) > 1}
    return [
        replace(entry, row=replace(entry.row, id=f"{entry.row.id}@{entry.hash[:8]}")) if entry.row.id in shared else entry
        for entry in filed
    ]


# -- the file that is written -------------------------------------------------------------------------------------------------------


def _place(args: Calibrate, name: str) -> Path:
    """The profile's file, or why it cannot be written."""
    home = Path(args.into) if args.into else user_folder()
    if home is None:
        raise BadValue("--into", "nothing", "a folder for the profile: there is no home folder here")
    path = home / KIND / f"{name}.toml"
    if path.exists() and not args.replace_:
        raise BadFile(path, "exists; it was left as it is: --replace writes over it, or --save another name")
    return path


def _profile(name: str, all_runs: Sequence[UsedRun], where: Catalog) -> str:
    """The file of a profile of runs."""
    runs = tuple(used_run.run for used_run in all_runs)
    return text_of(Profile(name=name, runs=runs, headway=__version__, facts=facts_hash(where, {run.key for run in runs})))
