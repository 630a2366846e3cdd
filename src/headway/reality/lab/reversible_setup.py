"""What the user may choose of `lab reversible`."""

from __future__ import annotations

from dataclasses import dataclass

from headway.reality.lab.experiment import LabSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversibleSetup(LabSetup):
    """Width of the stack that is timed, and the library that runs it; none: torch where it is installed, else numpy."""

    width: int = 1024
    library: str = ""
