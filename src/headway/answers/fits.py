"""`headway fits [MODEL,...] [--on MACHINE|here]`: which open models and formats run on a machine, with their speed and room."""

from __future__ import annotations

import functools
import re
import shlex
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema
from headway.core.errors import BadValue
from headway.core.listing import clean, remade
from headway.core.notes import note
from headway.core.quantity import default
from headway.core.units import show
from headway.models.describe import list_models, releases
from headway.models.precision import Precision
from headway.performance.assumptions import Assumptions
from headway.reality import here
from headway.report import fits as words
from headway.report import output
from headway.serving import fits
from headway.serving.questions import Fits

if TYPE_CHECKING:
    from headway.hardware.system import System

RECENT_YEARS = 2
FILLED = "llama.cpp leaves 1 GiB of a card free and keeps input embeddings in the host's memory; --hbm-utilization fills another share"
BY_PROCESSOR = (
    "experts in the host's memory are multiplied by its processor, as llama.cpp's --n-cpu-moe does: {size} read at {speed}; "
    "--set chip.host_dram=... and --set chip.host_dram_bw=... say what yours has"
)


def run(args: Fits) -> output.Answer:
    """Answer with a row for each model that fits; of models by name one for each format."""
    machine = _machine(args)
    question = _question(args, machine)
    pace = float(_number(args, "pace"))
    if args.model:
        models = arguments.models(args)
        rows, describe = fits.all_formats(models, question), words.of_formats
        if not rows:
            raise BadValue("--offload", args.offload, "a model with routed experts, and chips whose memory is not their host's")
    else:
        names, since = _names(args)
        models = [arguments.model(name, args) for name in names]
        rows, too_large = fits.best(models, question, pace)
        _tell_left_out(args, too_large, len(models))
        nowhere = f"None of the {len(models)} models released since {since} fits on {machine.name}."
        describe = functools.partial(words.of_models, pace=pace, nowhere=nowhere)
    if args.engine == fits.GGUF_ENGINE and machine.chip.memory != "shared" and args.hbm_utilization is None:
        note(FILLED)
    if any(row.offload == fits.IN_HOST for row in rows) and args.engine == fits.GGUF_ENGINE:
        hosted = fits.with_host(machine, args.engine)
        memory = show(float(hosted.chip.host_dram * machine.chips), "byte")
        note(BY_PROCESSOR.format(size=memory, speed=show(float(hosted.chip.host_link_bw), "byte/s")))
    by_name = {model.name: model for model in models}

    def again_at(place: int) -> fits.FormatFit:
        return fits.again(rows[place], by_name[rows[place].model], question)

    return output.Answer(
        remade(clean(rows), again_at), describe=describe, describes_none=not rows, pictures={"models": words.drawing}, most=1000
    )


def _machine(args: Fits) -> System:
    """The machine of --on, with its edits; "here" is asked of the platform."""
    if args.on != here.LOCAL:
        machines = arguments.systems(args)
    else:
        computer = here.host()
        note(here.words(computer))
        machines = arguments.systems(args, (here.machine(computer, arguments.catalog(args)),))
    if len(machines) > 1:
        raise BadValue("--on", args.on, "one machine, and one value of each --set: fits ranks models, compare ranks machines")
    return machines[0][0]


def _question(args: Fits, machine: System) -> fits.FitQuestion:
    formats = schema.read(args, Precision, skip=("compute",))
    if isinstance(formats.get("kv"), tuple):
        raise BadValue("--kv", args.kv, "one format of the KV cache")
    weights = schema.several(formats.pop("weights", ()))
    rest = tuple(key for key in schema.fields(Assumptions) if key != "hbm_utilization")
    values: dict[str, Any] = schema.read(args, Assumptions, skip=rest)
    return fits.FitQuestion(
        machine=machine, context=_number(args, "context"), precision=Precision(**formats),
        assumptions=schema.defaults(Assumptions, values | {"engine": args.engine}), weights=tuple(weights), offload=args.offload or "",
        is_share_stated=args.hbm_utilization is not None,
    )  # fmt: skip


def _number(args: Fits, name: str) -> Any:
    """One number of a field, with its default as what it is where nobody gave another."""
    flag, value = args.flags()[name], getattr(args, name)
    if value == flag.default:
        return default(value, name, flag.field.unit, f"default of --{name}")
    return schema.scalar(str(value), flag.field, f"--{name}")


def _names(args: Fits) -> tuple[list[str], str]:
    """Models of the catalogue with a release since a month, and that month: the one of --since, or two years before the newest."""
    dated = [entry for entry in list_models() if entry.name in releases()]
    alike = {(entry.family, entry.total_params, entry.active_params, releases()[entry.name].month): entry.name for entry in reversed(dated)}
    months = {name: month for (*_, month), name in sorted(alike.items(), key=lambda item: item[1])}  # of one model in two formats, one
    if args.since and not re.fullmatch(r"(19|20)\d\d-(0[1-9]|1[0-2])", args.since):
        raise BadValue("--since", args.since, "a month such as 2025-01")
    newest = max(months.values())
    since = args.since or f"{int(newest[:4]) - RECENT_YEARS}{newest[4:]}"
    names = [name for name, month in months.items() if month >= since]
    if not names:
        raise BadValue("--since", args.since, f"a month up to {newest}, of the newest model of the catalogue")
    older = len(months) - len(names)
    if older:
        note(f"models released since {since}; {older} older ones are left out: --since 2023-01 lists more")
    return names, since


def _tell_left_out(args: Fits, too_large: list[str], models: int) -> None:
    if too_large:
        few = ", ".join(too_large[:3])
        alone = args.replace(model=too_large[0]).without("since").without("pace")
        by_how_much = f"headway {shlex.join(alone.command())} says by how much"
        note(f"{len(too_large)} of {models} models do not fit in any of these formats, such as {few}: {by_how_much}")
