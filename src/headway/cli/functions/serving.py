"""`plan`, `serve`, `sim`, `solve`, `speed` and `capacity` as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from headway.cli.functions.call import call
from headway.core.errors import BadValue
from headway.report.result import Result

if TYPE_CHECKING:
    from headway.cli.functions.flags import Machine, Subject
    from headway.cli.functions.verb_flags import CapacityFlags, PlanFlags, ServeFlags, SimFlags, SpeedFlags
    from headway.models.precision import Precision
    from headway.performance.assumptions import Assumptions
    from headway.performance.layout import Layout
    from headway.performance.workload import SLO, Load


def plan(model: Subject | None = None, system: Machine | None = None, load: Load | None = None, slo: SLO | None = None, *,
         precision: Precision | None = None, assumptions: Assumptions | None = None, **flags: Unpack[PlanFlags]) -> Result:  # fmt: skip
    """The best layout, batch and cost for a load and its latency limits: `headway plan`.

    >>> best = plan("llama-3.1-8b", "8xh100-sxm", prompt="1k", output=300, tpot="20ms")
    >>> best[0]["kind"], best[0]["fits"], best.columns["tpot_s"].unit
    ('best', True, 's')
    """
    return call("plan", [model], with_machine(flags, system), (load, slo, precision, assumptions))


def serve(model: Subject | None = None, system: Machine | None = None, layouts: Layout | Sequence[Layout] | None = None, *,
          load: Load | None = None, precision: Precision | None = None, assumptions: Assumptions | None = None,
          **flags: Unpack[ServeFlags]) -> Result:  # fmt: skip
    """Latency, throughput, cost and memory of given layouts, over a grid: `headway serve`.

    >>> rows = serve("llama-3.1-8b", "h100", batch=[1, 64], prompt="1k", output=300).rows()
    >>> [row["batch"] for row in rows], rows[0]["tpot_s"] < rows[1]["tpot_s"]
    ([1, 64], True)
    """
    several = [] if layouts is None else list(layouts) if isinstance(layouts, Sequence) else [layouts]
    alone = several if len(several) == 1 else []
    return call("serve", [model], with_machine(flags, system), (load, precision, assumptions, *alone), [] if alone else several)


def sim(model: Subject | None = None, system: Machine | None = None, layout: Layout | None = None, *, slo: SLO | None = None,
        precision: Precision | None = None, assumptions: Assumptions | None = None, **flags: Unpack[SimFlags]) -> Result:  # fmt: skip
    """Percentiles, goodput and capacity under a trace or drawn traffic: `headway sim`; `plan=` plays a plan, a result or a file.

    >>> run = sim("llama-3.1-8b", "h100", rate="2/s", prompt="1k", output=100, requests=200)
    >>> run[0]["stable"], run[0]["p99_ttft_s"] >= run[0]["p50_ttft_s"]
    (True, True)
    """
    return call("sim", [model], with_machine(flags, system), (layout, slo, precision, assumptions))


def solve(verb: str, model: Subject | None = None, system: Machine | None = None, *, for_: str, so_that: str, **flags: Any) -> Result:
    """The input at which an output of a verb reaches a value: `headway solve`; further keywords are those of the verb.

    >>> rows = solve("serve", "llama-3.1-8b", "h100", context="8k", for_="batch", so_that="step_s=20ms").rows()
    >>> [row["is"] for row in rows]
    ['below', 'crossing', 'above']
    """
    return call("solve", [verb, model], {**with_machine(flags, system), "for_": for_, "so_that": so_that})


def speed(model: Subject | None = None, system: Machine | None = None, **flags: Unpack[SpeedFlags]) -> Result:
    """Price of fast and slow tiers against their speed: `headway speed`."""
    return call("speed", [model], with_machine(flags, system))


def capacity(model: Subject | None = None, system: Machine | None = None, **flags: Unpack[CapacityFlags]) -> Result:
    """What fits on a machine before any layout: `headway capacity`."""
    return call("capacity", [model], with_machine(flags, system))


def with_machine(flags: Any, system: Machine | None) -> dict[str, Any]:
    """Keywords with the machine under the name of its flag, `on`."""
    if system is not None and flags.get("on") is not None:
        raise BadValue("on", flags["on"], "no `on` beside a machine that is given first")
    return dict(flags) if system is None else {"on": system, **flags}
