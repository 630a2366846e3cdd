"""What a benchmark's file does not say and the command line does: the machine, the layout, the number formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.errors import BadValue, HeadwayError, clip
from headway.evidence.readers.record import Unusable

_COUNTED = re.compile(r"\s*(\d{1,7})\s*[xX*×]\s*(\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """As typed; empty or None where it was not. What is given stands above what a file says."""

    model: str = ""
    hardware: str = ""
    chips: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None
    engine: str = ""
    engine_version: str = ""
    weights: str = ""
    kv: str = ""
    prompt: float | None = None  # of tools that report tokens without telling prompt from output
    output: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run ran: so many chips of one kind, and how the model lay on them; None where nobody says."""

    hardware: str
    chips: int | None = None
    tp: int | None = None
    ep: int | None = None
    pp: int | None = None
    dp: int | None = None


def machine(text: str) -> tuple[str, int | None]:
    """The chip and the number of them that `--on` names; no number where the name has none.

    >>> machine("8xh100-sxm"), machine("2x8xh100-sxm"), machine("gb200-nvl72")
    (('h100-sxm', 8), ('h100-sxm', 16), ('gb200-nvl72', None))
    """
    counted = _COUNTED.fullmatch(text)
    if not counted or not int(counted[1]):
        return text.strip(), None
    name, each = machine(counted[2])
    return name, int(counted[1]) * (each or 1)


def place(given: Given, said: Place, what: str) -> Place:
    """The machine and layout of a run: what is given, then what its file says; `what` names the file's kind."""
    hardware = given.hardware or said.hardware
    if not hardware:
        raise BadValue("--on", "nothing", f"the chips that ran it, such as 8xh100-sxm: {what} does not name them")
    tp, ep, pp, dp = given.tp or said.tp, given.ep or said.ep, given.pp or said.pp, given.dp or said.dp
    found = Place(hardware=hardware, chips=given.chips or said.chips, tp=tp, ep=ep, pp=pp, dp=dp)
    try:
        return replace(found, chips=_counted(found))
    except BadValue as error:  # one run's own layout is that run's trouble, a layout given is everyone's
        raise (Unusable(str(error)) if said.tp or said.pp or said.dp else error) from None


def _counted(at: Place) -> int | None:
    """The chips a layout uses, which must be those of the machine: idle chips and copies are not guessed."""
    if at.tp is None:
        return at.chips or _whole(at.hardware)
    ranks = at.dp or 1
    used = at.tp * (at.pp or 1) * ranks
    shared = {used, used // ranks} if (at.ep or 1) > 1 else {used}  # attention ranks may count within tp, as SGLang's --dp does
    if at.chips is None or at.chips in shared:
        return at.chips or used
    copies = f", or add --dp {at.chips // used}" if at.chips % used == 0 else ""
    raise BadValue("--on", f"{at.chips} chips", f"the tp x pp x dp = {used} chips of the layout: --on {used}x{at.hardware}{copies}")


def _whole(hardware: str) -> int | None:
    """The chips of a machine named without a number: a rack or a server by its name, one chip by its own."""
    from headway.system import system

    try:
        return int(system(hardware).chips)
    except HeadwayError:  # an unknown name is told where the row is predicted, with the nearest ones
        return None


def one_model(given: Given, said: Iterable[str], what: str) -> None:
    """`--model` names one model, so a file that names several must do without."""
    names = sorted(set(said) - {""})
    if given.model and len(names) > 1:
        raise BadValue("--model", given.model, f"no value, because {what} names {len(names)} models: {clip(', '.join(names))}")


def model(given: Given, said: str, what: str) -> str:
    """The model's name: as given, else as the file has it."""
    if given.model or said:
        return given.model or said
    raise BadValue("--model", "nothing", f"the model that was measured: {what} does not name it")
