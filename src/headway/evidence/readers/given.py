"""What a benchmark's file does not say and the command line does: the machine, the layout, the number formats."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.errors import BadValue, HeadwayError, clip
from headway.evidence.readers.record import Unusable

_COUNT_AND_NAME = re.compile(r"\s*(\d{1,7})\s*[xX*×]\s*(\S.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFields:
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
class RunMachine:
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
    match = _COUNT_AND_NAME.fullmatch(text)
    if not match or not int(match[1]):
        return text.strip(), None
    name, count = machine(match[2])
    return name, int(match[1]) * (count or 1)


def place(user_input: RunFields, run_place: RunMachine, what: str) -> RunMachine:
    """The machine and layout of a run: what is given, then what its file says; `what` names the file's kind."""
    hardware = user_input.hardware or run_place.hardware
    if not hardware:
        raise BadValue("--on", "nothing", f"the chips that ran it, such as 8xh100-sxm: {what} does not name them")
    tp, ep, pp, dp = (
        user_input.tp or run_place.tp,
        user_input.ep or run_place.ep,
        user_input.pp or run_place.pp,
        user_input.dp or run_place.dp,
    )
    final_place = RunMachine(hardware=hardware, chips=user_input.chips or run_place.chips, tp=tp, ep=ep, pp=pp, dp=dp)
    try:
        return replace(final_place, chips=_layout_chips(final_place))
    except BadValue as error:  # one run's own layout is that run's trouble, a layout given is everyone's
        raise (Unusable(str(error)) if run_place.tp or run_place.pp or run_place.dp else error) from None


def _layout_chips(at: RunMachine) -> int | None:
    """The chips a layout uses, which must be those of the machine: idle chips and copies are not guessed."""
    if at.tp is None:
        return at.chips or _system_chips(at.hardware)
    ranks = at.dp or 1
    chips = at.tp * (at.pp or 1) * ranks
    shared = {chips, chips // ranks} if (at.ep or 1) > 1 else {chips}  # attention ranks may count within tp, as SGLang's --dp does
    if at.chips is None or at.chips in shared:
        return at.chips or chips
    copies = f", or add --dp {at.chips // chips}" if at.chips % chips == 0 else ""
    raise BadValue("--on", f"{at.chips} chips", f"the tp x pp x dp = {chips} chips of the layout: --on {chips}x{at.hardware}{copies}")


def _system_chips(hardware: str) -> int | None:
    """The chips of a machine named without a number: a rack or a server by its name, one chip by its own."""
    from headway.system import system

    try:
        return int(system(hardware).chips)
    except HeadwayError:  # an unknown name is told where the row is predicted, with the nearest ones
        return None


def one_model(user_input: RunFields, model_names: Iterable[str], what: str) -> None:
    """`--model` names one model, so a file that names several must do without."""
    names = sorted(set(model_names) - {""})
    if user_input.model and len(names) > 1:
        raise BadValue("--model", user_input.model, f"no value, because {what} names {len(names)} models: {clip(', '.join(names))}")


def model(user_input: RunFields, file_model: str, what: str) -> str:
    """The model's name: as given, else as the file has it."""
    if user_input.model or file_model:
        return user_input.model or file_model
    raise BadValue("--model", "nothing", f"the model that was measured: {what} does not name it")
