"""`price`, `bill` and `cache` as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from headway.cli.functions.call import call
from headway.cli.functions.serving import with_machine
from headway.report.result import Result

if TYPE_CHECKING:
    from headway.cli.functions.flags import Machine, Number, Subject
    from headway.cli.functions.verb_flags import BillFlags, CacheFlags, PriceFlags
    from headway.performance.assumptions import Assumptions
    from headway.performance.workload import Load


def price(model: Subject | None = None, system: Machine | None = None, load: Load | None = None, *,
          assumptions: Assumptions | None = None, **flags: Unpack[PriceFlags]) -> Result:  # fmt: skip
    """Cost and price per token of a model on a machine; `sheet=` reads a price list backwards: `headway price`."""
    return call("price", [model], with_machine(flags, system), (load, assumptions))


def bill(**flags: Unpack[BillFlags]) -> Result:
    """Cost of requests under API price sheets, by mode and cache: `headway bill`.

    >>> ways = bill(sheet="claude-opus", prompt="8k", shared="6k", output=500, requests=100, rate="2/min")
    >>> ways[0]["usd"] <= ways[1]["usd"]
    True
    """
    return call("bill", [], flags)


def cache(model: Subject | None = None, system: Machine | None = None, hold: Number | None = None, **flags: Unpack[CacheFlags]) -> Result:
    """Memory tier and lifetime of a KV cache; `workload=` gives the hit rates of a trace: `headway cache`."""
    return call("cache", [model], {"hold": hold, **with_machine(flags, system)} if hold is not None else with_machine(flags, system))
