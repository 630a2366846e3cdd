"""`--launch ENGINE`: the command lines that realise a plan's best layout, as notes under its answer."""

from __future__ import annotations

from typing import Any

from headway.errors import UnknownName

HOST = 8  # chips of one server, where a scale-up domain is no larger


def add_flag(parser: Any) -> None:
    """The engine."""
    parser.add_argument("--launch", metavar="vllm|sglang|trtllm", help="also print the command line that realises the best layout")


def notes(args: Any, plan: Any) -> list[str]:
    """Launch lines, what is to know about them, or why the engine cannot: one note each; for pools, the decode pool's."""
    if not args.launch:
        return []
    from headway.launch import ENGINES

    if args.launch not in ENGINES:
        raise UnknownName("engine", args.launch, ENGINES, f"one of {', '.join(ENGINES)}")
    if plan.fails:
        return ["launch: nothing to launch, no layout meets every limit"]
    return _lines(args, plan)


def _lines(args: Any, plan: Any) -> list[str]:
    from headway.launch import launch
    from headway.precision import Precision

    best, row = plan.best, plan.table.row(0)
    precision = Precision(weights=row["weights"] if args.weights else "", kv=row["kv"], compute=row["compute"] if args.compute else "")
    domain = best.query.system.scale_up_domain
    host = int(domain) if domain is not None and domain <= HOST else None
    memory = best.query.assumptions.hbm_utilization
    script = launch(args.launch, best.query.model, best.layout, precision, best.load, memory=memory, chips_per_host=host)
    pool = ["launch: for the decode pool alone; engines pair pools by a router of their own"] if row.get("prefill_replicas") else []
    if script.unsupported:
        return [*pool, f"launch: {script.unsupported}"]
    return [*pool, *(f"launch: {line}" for line in script.lines), *(f"launch: {note}" for note in script.notes)]
