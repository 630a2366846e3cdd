"""`headway lab [EXPERIMENT]`: the experiments by chapter; one of them predicted, then measured; trains as a server."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import json
import os
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

from headway.core import columns, schema
from headway.core.cores import cores
from headway.core.errors import INTERRUPTED, BadFile, BadValue
from headway.core.files import check_output, save
from headway.core.listing import Listing, clean, computed, place_of
from headway.core.notes import note
from headway.core.progress import draft
from headway.core.units import parse, show
from headway.evidence.lecture.chapters import chapter_of, statement
from headway.reality import here, threads
from headway.reality.lab import experiment as frame
from headway.reality.lab.catalogue import EXPERIMENTS, TRAINS, experiment
from headway.reality.lab.experiment import Experiment, LabRun, LabSetup, Noise
from headway.reality.lab.questions import Lab
from headway.reality.lab.shape import SIZES, LabShape
from headway.reality.lab.train_setup import TrainSetup
from headway.report import output
from headway.report.lab import trains as train_words
from headway.report.lab import words

PORT = 8000
SERVED_CONTEXT = 8192  # tokens, which are bytes: prompts of a thousand words fit
SERVED_BYTES = 1e9  # of all seats' cache, past which the context is shorter unless --context says otherwise
PROGRAM = 2e8  # bytes of the process that measures, beside what it measures
FREE = 0.5  # a core that must be free beside the threads


def run(args: Lab) -> output.Answer:
    """Answer with a row for each experiment, or for each point of one."""
    if not args.experiment:
        return _table_of_contents()
    subject = experiment(args.experiment)
    setup = _setup(args, subject)
    _check_memory(args, subject, setup)
    if args.serve:
        return _served(cast("TrainSetup", setup), _number(args, "port", PORT))
    if args.save:
        check_output(args.save, "--save", args.replace_, "nothing was measured")
    computer, load = here.host(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    about = {"date": datetime.date.today().isoformat(), "machine": computer.processor or "a processor without a name",
             "noise": Noise(load=load, cores=cores())}  # fmt: skip
    if "threads" not in args.idle():
        note(f"{show(setup.threads, '')} thread{'s' * (setup.threads > 1)} of the library that multiplies, on {cores()} cores: --threads")
    keep = functools.partial(_keep, args.save)
    lab_run = frame.run(subject, setup, about, keep, follow=lambda lab_run: draft(lambda: _answer(lab_run)))
    lab_run.noise = dataclasses.replace(lab_run.noise, reasons=tuple(_reasons(lab_run)))
    answer = _answer(lab_run)
    try:
        _keep(args.save, lab_run.document())
    except BadFile as error:  # the points stay on the screen
        note(f"the points were not kept: {error}")
        answer.status = answer.status or 1
    else:
        if args.save:
            note(f"{args.save} keeps predictions, points, date and machine")
    return answer


def _table_of_contents() -> output.Answer:
    """The experiments in the lecture's order."""
    rows = []
    for entry in EXPERIMENTS.values():
        page = chapter_of(entry.claims[0])
        rows.append({"experiment": entry.name, "chapter": page.label, "about": entry.title, "runs": entry.runs,
                     "claims": [f"{claim} ({statement(claim)})" for claim in entry.claims],
                     "command": f"headway lab {entry.name}"})  # fmt: skip
    rows.sort(key=lambda row: row["chapter"])
    return output.Answer(Listing(rows), words.contents(rows), columns=columns.table("lab"))


# -- a setup ----------------------------------------------------------------------------------------------------------------------


def _setup(args: Lab, subject: Experiment) -> LabSetup:
    """The experiment's usual setup, with the flags that name its fields."""
    usual = subject.setup
    values: dict[str, Any] = {field.name: _value(args, field.name, getattr(usual, field.name)) for field in dataclasses.fields(usual)}
    setup = dataclasses.replace(usual, **values)
    return _of_server(args, cast("TrainSetup", setup)) if args.serve else subject.code.fitted(setup)


def _value(args: Lab, name: str, usual: Any) -> Any:
    """A field of a setup from the flag of its name, or the experiment's own."""
    if isinstance(usual, LabShape):
        shape = LabShape(**{size: _number(args, size, getattr(usual, size)) for size in SIZES})
        shape.check()
        return shape
    text = getattr(args, name)
    if text is None or (name == "step" and not text):
        return usual
    if isinstance(usual, bool):
        return text
    if name == "step":
        return _step(text)
    if isinstance(usual, tuple):
        flag = args.flags()[name]
        return tuple(map(int if flag.field.integer else float, schema.several(schema.axis(str(text), flag.field, flag.word)[0])))
    return text if isinstance(usual, str) else _number(args, name, usual)


def _of_server(args: Lab, setup: TrainSetup) -> TrainSetup:
    """A server's sequences are longer, as far as the cache of all seats allows."""
    if args.context is not None:
        return setup
    setup = dataclasses.replace(setup, context=SERVED_CONTEXT)
    need = TRAINS.code.memory(setup)
    if need <= SERVED_BYTES:
        return setup
    return dataclasses.replace(setup, context=max(TrainSetup().context, int(SERVED_CONTEXT * SERVED_BYTES / need)))


def _number(args: Lab, name: str, usual: Any) -> Any:
    """A plain number of a flag, or the experiment's own."""
    value, flag = getattr(args, name), args.flags()[name]
    if value is None:
        return usual
    number = schema.scalar(str(value), flag.field, flag.word)
    return int(number) if flag.field.integer or flag.field.unit in ("token", "byte") else float(number)


def _step(text: str) -> tuple[float, float]:
    base, plus, slope = text.partition("+")
    if not plus or not all(re.fullmatch(r"(\d+\.?\d*|\.\d+) ?[mun]?s", part.strip()) for part in (base, slope)):
        raise BadValue("--step", text, "BASE+SLOPE with their units, such as 2ms+0.5ms")
    return float(parse(base, "s")), float(parse(slope, "s"))


def _check_memory(args: Lab, subject: Experiment, setup: LabSetup) -> None:
    need = PROGRAM + subject.code.memory(setup)
    limit = _number(args, "limit_memory", None)
    if limit is not None and need > limit:
        raise BadValue("--limit-memory", args.limit_memory, f"about {show(need, 'byte')}, which this decoder and its cache take")


# -- a run ------------------------------------------------------------------------------------------------------------------------


def _keep(path: str, document: Mapping[str, Any]) -> None:
    if path:
        save(path, json.dumps(clean(document), indent=1) + "\n")


def _reasons(lab_run: LabRun) -> list[str]:
    """Why the machine was not quiet."""
    noise = lab_run.noise
    busy = noise.load > noise.cores - lab_run.setup.threads + FREE
    reasons = [f"a load of {noise.load:.1f} on {noise.cores} cores before it began"] if busy else []
    return [*reasons, *lab_run.experiment.code.noise(lab_run.setup, lab_run.facts)]


def _answer(lab_run: LabRun) -> output.Answer:
    entry = lab_run.experiment
    rows = [
        {"experiment": entry.name, "quantity": prediction.quantity, "claim": prediction.claim,
         "axis": prediction.axis or entry.axis, "at": prediction.at,
         "unit": prediction.unit, "predicted": prediction.value, "predicted_lo": prediction.low, "predicted_hi": prediction.high,
         "measured": point.value if (point := lab_run.points.get(place)) else None, "spread": point.spread if point else None,
         "inside": lab_run.is_inside(place)}
        for place, prediction in enumerate(lab_run.predictions)
    ]  # fmt: skip
    plain = clean(rows)

    def tree(row: Mapping[str, Any], key: str) -> Any:
        return computed(rows[place_of(row, plain)][key], key)

    return output.Answer(
        Listing(plain, tree=tree), describe=lambda table: words.described(lab_run, list(table)), describes_none=True,
        pictures={"points": lambda table, view: words.drawing(lab_run, list(table), view)}, most=200,
        columns=columns.table("lab"), status=INTERRUPTED if lab_run.interrupted else 0,
    )  # fmt: skip


# -- a server ---------------------------------------------------------------------------------------------------------------------


def _served(setup: TrainSetup, port: int) -> output.Answer:
    """Serve until interrupted."""
    counts: dict[str, Any] = {}

    def hear(part: Mapping[str, Any]) -> None:
        if "port" in part:
            sys.stderr.write(f"{train_words.serving(setup, part['port'])}\n")
        counts.update(part)

    request = {"experiment": "trains", "job": "serve", "setup": dataclasses.asdict(setup), "port": port}
    with contextlib.suppress(KeyboardInterrupt):
        threads.in_child(frame.CHILD, request, setup.threads, hear)
    return output.Answer(Listing([]), output.Summary(train_words.served(counts)))
