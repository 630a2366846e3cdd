"""`headway calibrate FILE... --advise`: which run of each deployment to make next, how much it narrows, and the commands that make it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.columns import Column
from headway.core.errors import BadValue
from headway.core.listing import Listing
from headway.evidence.calibration.advise import LOOPED, QUANTITY_OF, Advice, advise
from headway.evidence.calibration.load_generators import RunLoad, commands
from headway.evidence.rows.run_keys import task_key
from headway.evidence.rows.tasks import Task
from headway.performance.calibration.key import RunKey
from headway.performance.calibration.observation import Observation, id_of
from headway.report import calibration, output
from headway.report.words import sentence

NOUNS = {"tpot": "TPOT", "ttft": "TTFT", "rate": "throughput"}
COLUMNS = {
    "deployment": Column("", "what is to be measured: model, chips, engine, layout, formats, version, mode"),
    "place": Column("", "which run to make first, second and so on"),
    "users": Column("count", "users at a time; null where all requests come at once"),
    "prompt": Column("token", "tokens of a prompt"),
    "output": Column("token", "tokens of an answer"),
    "half": Column("", "half of the 90 % interval as a share, over the loads that the deployment may have, with the runs that there are"),
    "half_after": Column("", "the same after this run too"),
    "command": Column("", "a command that makes the run"),
}
ORDER = "loads by how little is known there: the fewest users first, then the most, then between"
VIEW = ("users", "prompt", "output", "half", "half_after")


def answer(tasks: Sequence[Task], observations: Sequence[Observation], of: str) -> output.Answer:
    """The runs that could be made of each deployment, best first; `of` as --for has it."""
    by_key: dict[RunKey, list[Task]] = {}
    for task in tasks:
        by_key.setdefault(task_key(task), []).append(task)
    if not by_key:
        raise BadValue("--advise", "on", "rows of runs of a server, measured or not, which can be predicted")
    rows, launch = list[dict[str, Any]](), list[str]()
    month = max((observation.month for observation in observations), default="")  # as if the next run were made beside the newest
    for key, runs in by_key.items():
        quantity = QUANTITY_OF[of] if runs[-1].kind in LOOPED else "rate"
        advised = advise(runs[-1], observations, quantity, month, [run for run in runs if run.row.id in _measured(observations)])
        rows += [_row(key, place, advice) for place, advice in enumerate(advised, 1)]
        launch += commands(_load(advised[0])) if advised else ()
    if not rows:
        raise BadValue("--advise", "on", "a load that no run was made at: every one that is worth a run has one")
    first, quantity = rows[0], QUANTITY_OF[of]
    at = "all requests at once" if first["users"] is None else f"{first['users']:,} user{'s' if first['users'] > 1 else ''}"
    narrow = f"{calibration.plus_minus(first['half'])} -> {calibration.plus_minus(first['half_after'])}"
    noun = NOUNS[quantity if first["users"] is not None else "rate"]
    view = (*(("deployment",) if len(by_key) > 1 else ()), *VIEW)
    headline = sentence(f"next run: {at}, {first['prompt']:,} + {first['output']:,} tokens: {noun} {narrow}")
    words = output.Summary(headline, view, remarks=[ORDER] if first["users"] is not None else [], first=VIEW)
    return output.Answer(Listing(rows, always=tuple(rows[0])), words, columns=COLUMNS, launch=launch)


def _measured(observations: Sequence[Observation]) -> set[str]:
    """Ids of runs that were measured."""
    return {id_of(observation.run) for observation in observations}


def _load(advice: Advice) -> RunLoad:
    task = advice.task
    users = int(task.concurrency) if task.kind in LOOPED and task.concurrency else None
    return RunLoad(model=task.row.model, prompt=round(task.prompt or 0), output=round(task.output or 1), users=users)


def _row(key: RunKey, place: int, advice: Advice) -> dict[str, Any]:
    load = _load(advice)
    return {
        "deployment": calibration.name_of(key), "place": place, "users": load.users, "prompt": load.prompt, "output": load.output,
        "half": advice.before - 1, "half_after": advice.after - 1, "command": commands(load)[0],
    }  # fmt: skip
