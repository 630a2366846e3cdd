"""`rack` and `compare` as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from headway.cli.functions.call import call
from headway.report.result import Result

if TYPE_CHECKING:
    from headway.cli.functions.flags import Number
    from headway.cli.functions.verb_flags import CompareFlags, RackFlags


def racks(system: str | None = None, chips: Number | None = None, **flags: Unpack[RackFlags]) -> Result:
    """Cables, power, weight and bandwidth of scale-up domains of any size: `headway rack`.

    >>> [int(row["star_cables"]) for row in racks("gb200-nvl72", [72, 144, 576])]
    [5184, 10368, 41472]
    """
    return call("rack", [system], flags if chips is None else {"chips": chips, **flags})


def compare(names: Sequence[str], **flags: Unpack[CompareFlags]) -> Result:
    """Machines or models side by side, the first as the reference: `headway compare`."""
    return call("compare", [names], flags)
