"""An argument that a law lacks and another law gives, from the same pool of names: which law, and in what order."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from headway.core import equation, law_index
from headway.core.errors import HeadwayError
from headway.core.law_values import arguments_of
from headway.core.trace import Law


@dataclasses.dataclass(frozen=True, slots=True)
class LawStep:
    """An argument and the law that gives it."""

    argument: str
    law: Law

    def words(self) -> str:
        """How the argument is computed."""
        return f"{self.argument} computed by {self.law.name} from {', '.join(arguments_of(self.law))}"


class SeveralLaws(HeadwayError):
    """An argument that several laws give."""

    def __init__(self, what: str, argument: str, names: Collection[str]) -> None:
        choices = " or ".join(f"{argument}={name}" for name in names)
        super().__init__(f"{what}: {' and '.join(names)} give {argument} from these arguments; write {choices}, or a number")


def chain(law: Law, names: Collection[str], choices: Mapping[str, str]) -> tuple[LawStep, ...]:
    """The laws that give what `law` lacks beside `names`, each after those that it needs; none where something is missing.

    An argument is given by a law of its name, or by one that declares it (`@formula(gives=...)`), if both are in one unit; `choices` has
    the law that the user names for an argument, whatever it is called.
    """
    doubts: dict[str, tuple[str, ...]] = {}
    steps = _steps(law, frozenset(names), choices, (law.name,), doubts) or {}
    for argument in doubts.keys() & steps.keys():
        raise SeveralLaws(law.name, argument, doubts[argument])
    return tuple(LawStep(argument, giver) for argument, giver in steps.items())


def _steps(
    law: Law, pool: frozenset[str], choices: Mapping[str, str], path: tuple[str, ...], doubts: dict[str, tuple[str, ...]]
) -> dict[str, Law] | None:
    """The law of each argument that is not in the pool, None where none gives one; a law needs nothing of the `path` to it."""
    steps: dict[str, Law] = {}
    for argument in (name for name in arguments_of(law) if name not in pool):
        if argument in steps:
            continue
        options = []
        for giver in [law_index.load(choices[argument])] if argument in choices else givers(law, argument):
            if giver.name not in path:
                needed = _steps(giver, pool | steps.keys(), choices, (*path, giver.name), doubts)
                options += [(giver, needed)] if needed is not None else []
        if not options:
            return None
        if len(options) > 1:
            doubts[argument] = tuple(giver.name for giver, _ in options)
        giver, needed = options[0]
        steps |= {**needed, argument: giver}
    return steps


def givers(law: Law, argument: str) -> list[Law]:
    """Laws that give an argument of a law, in its unit."""
    unit = equation.input_units(law).get(argument)
    laws = [law_index.load(place.full_name) for place in law_index.givers(argument)]
    return [giver for giver in laws if unit not in (None, "*") and equation.unit(giver) == unit]
