"""Launch flags of `plan`: the commands that realise the best layout, for both pools of a split deployment, and their manifests."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.core.errors import BadFile, BadValue, IllegalCombination, UnknownName
from headway.core.files import write_whole
from headway.hardware.links import chips_per_host
from headway.models.config import model as model_of
from headway.models.precision import Precision
from headway.performance.layout import Layout
from headway.serving.launch import kubernetes
from headway.serving.launch.launch import launch
from headway.simulation.questions import Plan

if TYPE_CHECKING:
    from headway.models.model import Model

KINDS = ("k8s",)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LaunchScript:
    """Command lines, notes on them, and a manifest for standard output."""

    lines: Sequence[str] = ()
    notes: Sequence[str] = ()
    document: str = ""


def search_input(args: Plan) -> dict[str, Any]:
    """What the search of a plan is told about the launch: the engine that must express the layout, and the chips of its hosts."""
    if args.chips_per_host is not None and not args.launch:
        raise BadValue("--chips-per-host", _chips_per_host(args.chips_per_host), "--launch ENGINE beside it: it is about the command line")
    host = None if args.chips_per_host is None else _chips_per_host(args.chips_per_host)
    return {"launch": args.launch or "", "chips_per_host": host}


def launched(args: Plan, plan: Any) -> LaunchScript:
    """Launch lines with notes, or the reason why the engine cannot run the layout."""
    _check(args)
    if not args.launch:
        return LaunchScript()
    if plan.fails:
        return LaunchScript(notes=["launch: nothing to launch, no layout meets every limit"])
    pools = _pools(args, plan)
    failures = [pool.unsupported for pool in pools if pool.unsupported]
    if failures:
        return LaunchScript(notes=[f"launch: {why}" for why in dict.fromkeys(failures)])
    lines = [line for pool in pools for line in pool.lines]
    notes = list(dict.fromkeys(f"launch: {_of_pool(pool, note)}" for pool in pools for note in pool.notes))
    return _with_manifest(args, plan, LaunchScript(lines=lines, notes=notes))


def _check(args: Plan) -> None:
    if not args.manifest:
        return
    if args.manifest[0] not in KINDS:
        raise UnknownName("kind of manifest", args.manifest[0], KINDS, "k8s")
    if len(args.manifest) > 2:
        raise BadValue("--manifest", " ".join(args.manifest), "k8s and at most one file, after the model: --manifest k8s FILE")
    if not args.launch:
        raise IllegalCombination("--manifest", args.manifest[0], "--launch vllm, sglang or trtllm beside it")


def _of_pool(pool: Any, note: str) -> str:
    """A note with the name of its pool, where it depends on the pool."""
    differs = " hosts: " in note or "REPLICA=" in note or " counts for each" in note
    return f"{pool.role} pool: {note}" if pool.role and differs else note


def _pools(args: Plan, plan: Any, manifest: bool = False) -> list[Any]:
    """Launches of the pools, prefill first; for a manifest those of one replica that listens on every address."""
    best, row = plan.best, plan.table.row(0)
    precision = Precision(weights=row["weights"] if args.weights else "", kv=row["kv"], compute=row["compute"] if args.compute else "")
    host = _chips_per_host(args.chips_per_host) if args.chips_per_host else chips_per_host(best.case.system)
    launches = []
    for role, layout in (("prefill", best.prefill), ("decode" if best.prefill else "", best.case.layout)):
        if layout is None:
            continue
        pool = launch(
            args.launch, best.case.model, dataclasses.replace(layout, replicas=1) if manifest else layout, precision, best.case.load,
            memory=best.case.assumptions.hbm_utilization, chips_per_host=host, checkpoint=_checkpoint(args, best.case.model),
            sequences=_sequences(best, layout, role), role=role, exposed=manifest,
        )  # fmt: skip
        launches.append(dataclasses.replace(pool, replicas=int(layout.replicas)))
    return launches


def _sequences(best: Any, layout: Layout, role: str) -> int | None:
    """Sequences that one replica must admit: its users, or at a rate as many as fit; None for a prefill pool."""
    if role == "prefill":
        return None
    load = best.case.load
    if load.rate is None:
        return math.ceil(load.batch)
    case = best.case.at(layout, load)
    return max(1, int(case.server(case.compiled()).seats(load.prompt, load.output)))


def _checkpoint(args: Plan, model: Model) -> str:
    """The model as the user named it."""
    if not isinstance(args.model, str):
        return ""
    models = [part.strip() for part in args.model.split(",")]
    if len(models) == 1 or args.model.lstrip().startswith("("):
        return args.model.strip()
    return next((part for part in models if model_of(part, args.catalog or ()).name == model.name), "")


def _chips_per_host(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise BadValue("--chips-per-host", text, "a whole number of chips, such as 4 or 8") from None


def _with_manifest(args: Plan, plan: Any, script: LaunchScript) -> LaunchScript:
    """The script with its manifest as the document, or in the file that was named."""
    if not args.manifest:
        return script

    query, pools = plan.best.case, _pools(args, plan, manifest=True)
    text = kubernetes.manifests(pools, query.model.name, query.system.chip.vendor)
    notes = [f"launch: {note}" for note in kubernetes.notes(pools)]
    if len(args.manifest) == 1:
        head = "".join(f"# {note.removeprefix('launch: ')}\n" for note in notes)
        return dataclasses.replace(script, document=head + text)
    try:
        write_whole(args.manifest[1], text)
    except OSError as error:
        raise BadFile(args.manifest[1], f"cannot be written ({error.strerror})") from None
    return dataclasses.replace(script, notes=[f"launch: manifests are in {args.manifest[1]}", *script.notes, *notes])
