"""An engine's log of its start as a run of a profile: columns that say what started, and what it observed of its deployment's room."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.catalog import Catalog, default_catalog
from headway.evidence.calibration.runs import FiledRow, LeftOutRow, UsedRun
from headway.evidence.readers.engine_log import EngineLog
from headway.evidence.readers.files import RunFields, RunMachine, Unusable, model, place
from headway.evidence.rows.row import BadRow
from headway.evidence.rows.tasks import SetupKey, find
from headway.laws.serving.room import logged_kv_bytes
from headway.performance.achieved import EAGER, efficiencies, platform
from headway.performance.assumptions import UTILIZATION
from headway.performance.calibration.factors import PARAMETERS
from headway.performance.calibration.in_force import ROOM
from headway.performance.calibration.key import run_key
from headway.performance.calibration.observation import Observation
from headway.performance.calibration.profile import CalibrationRun
from headway.performance.calibration.start import SEATS, SHARE
from headway.performance.nearest import ENGINES
from headway.performance.room import room_on_chip

LOG = "engine_log"  # mode of its row
WHAT = "a log of an engine's start"
Cells = Mapping[str, str | float]


def cells_of(log: EngineLog, user_input: RunFields) -> dict[str, str | float]:
    """Columns of a log's row: the names of measured rows where there is one; what nobody says is left out."""
    at = place(user_input, RunMachine(hardware="", tp=log.tp, pp=log.pp, dp=log.dp, ep=log.ep), WHAT)
    cells: dict[str, Any] = {
        "model": model(user_input, log.model, WHAT), "hardware": at.hardware, "mode": LOG, "n_chips": at.chips, "tp": at.tp, "pp": at.pp,
        "dp": at.dp, "ep": at.ep, "engine": log.engine, "engine_version": user_input.engine_version or log.version,
        "weight_precision": user_input.weights or log.weights, "kv_precision": user_input.kv or log.kv, "date": log.month,
        "eager": int(log.eager) or None, "max_num_seqs": user_input.max_num_seqs or log.sequences, "share_of_card": log.utilization,
        "context_len": log.context, "sequences_that_fit": log.fitting,
    }  # fmt: skip
    return {name: value for name, value in cells.items() if value not in (None, "")}


def observed_start(cells: Cells, run: str, month: str, catalog: Catalog | None = None) -> tuple[Observation, ...]:
    """What a log's row says of its deployment, beside the laws; Unusable, with the reason, where they have no room for it."""
    resolution = find(_setup_key(cells), catalog or default_catalog())
    if isinstance(resolution, str):
        raise Unusable(resolution)
    setup, table = resolution.setup, efficiencies(resolution.setup.system.chip)
    engine, chip, version = ENGINES[setup.engine], setup.system.chip, str(cells.get("engine_version", ""))
    key = run_key(setup.model, setup.system, setup.layout, setup.formats, engine, version)
    share, most = float(cells.get("share_of_card", UTILIZATION)), cells.get("max_num_seqs")
    room = room_on_chip(
        setup.work, chip, setup.layout, setup.compiled, engine, share, table, eager=EAGER in setup.older
    )  # with the defaults of the engine, as every verb has it
    if not room.kv > 0:
        raise Unusable("by the laws the weights leave no room for KV cache: its machine, layout or formats are other than said")
    sequence = 1 / replace(room, kv=1.0).sequences(float(cells["context_len"]), setup.layout.cp)  # bytes of a chip for each
    ratios = {ROOM: logged_kv_bytes(float(cells["sequences_that_fit"]), sequence) / room.kv, SHARE: share / UTILIZATION}
    ratios |= {} if most is None else {SEATS: float(most) / table.engine(engine, platform(chip), "max_sequences")}
    none = (0.0,) * len(PARAMETERS)
    return tuple(
        Observation(run=run, key=key, month=month, quantity=name, slopes=none, excess=math.log(ratio)) for name, ratio in ratios.items()
    )


def _setup_key(cells: Cells) -> SetupKey:
    """What the setup of a log's row is found by."""

    def text(name: str) -> str:
        return str(cells.get(name, ""))

    def count(name: str) -> int | None:
        return int(cells[name]) if name in cells else None

    return SetupKey(
        model=text("model"), hardware=text("hardware"), chips=count("n_chips"), tp=count("tp"), ep=count("ep"), pp=count("pp"),
        dp=count("dp"), engine=text("engine"), engine_version=text("engine_version"), eager=bool(cells.get("eager")), date=text("date"),
        weights=text("weight_precision"), kv=text("kv_precision"), load="given", split=False, benchmark="",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A log's start as a row."""

    id: str
    cells: Cells
    line: int = 1


def is_log(run: CalibrationRun) -> bool:
    """Whether a run of a profile is a log of a start."""
    return ("mode", LOG) in run.cells


def row_of(run: CalibrationRun) -> LogRow:
    """The row of a log that a profile keeps."""
    return LogRow(id=run.id, cells=dict(run.cells))


def used_logs(filed: Sequence[FiledRow], name: str, catalog: Catalog) -> tuple[list[UsedRun], list[LeftOutRow]]:
    """The runs of logs for a profile of this name, and those that are left out."""
    runs, bad, today = [], [], datetime.date.today().isoformat()
    for file in filed:
        row, date = file.row, file.date or str(file.row.cells.get("date", "")) or today
        try:
            observations = observed_start(row.cells, f"{name}:{row.id}", date, catalog)
        except Unusable as error:
            bad.append(LeftOutRow(file=file.file, row=BadRow(line=row.line, id=row.id, why=str(error))))
            continue
        cells = tuple(row.cells.items())
        run = CalibrationRun(id=row.id, file=file.file, hash=file.hash, date=date, cells=cells, observations=observations)
        runs.append(UsedRun(run=run, task=None, without=()))
    return runs, bad
