"""An argument that a law lacks and another law gives, from the same pool of names: which law, and in what order."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from headway.core import equation, law_index
from headway.core.errors import BadValue, HeadwayError
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


@dataclasses.dataclass(frozen=True, slots=True)
class LawGap:
    """An argument that nothing gives, and what each law that would give it lacks, in words; `near`: of laws with some of what they need."""

    argument: str
    near: tuple[str, ...]
    far: tuple[str, ...]

    def nearest(self) -> str:
        """What would close the gap."""
        return self.near[0] if self.near else f"{self.argument}=..."


class SeveralLaws(HeadwayError):
    """An argument that several laws give."""

    def __init__(self, what: str, argument: str, names: Collection[str]) -> None:
        choices = " or ".join(f"{argument}={name}" for name in names)
        super().__init__(f"{what}: {' and '.join(names)} give {argument} from these arguments; write {choices}, or a number")


def chain(law: Law, names: Collection[str], choices: Mapping[str, str]) -> tuple[tuple[LawStep, ...], tuple[LawGap, ...]]:
    """The laws that give what `law` lacks beside `names`, each after those that it needs, and the gaps that remain.

    Equal names mean the same within one package of laws alone, so an argument is given by a law of that package, by its name or as it
    declares (`@formula(gives=...)`), elsewhere only where that declares the package too; both in one unit, and no name of the chain in
    two. `choices` has the law that the user names for an argument, whatever it is called.
    """
    search = _Search(choices, {})
    steps, gaps = search.steps(law, frozenset(names), (law.name,), equation.input_units(law))
    for argument in search.doubts.keys() & steps.keys() if not gaps else ():
        raise SeveralLaws(law.name, argument, search.doubts[argument])
    return tuple(LawStep(argument, giver) for argument, giver in steps.items()), gaps


@dataclasses.dataclass(frozen=True, slots=True)
class _Search:
    choices: Mapping[str, str]
    doubts: dict[str, tuple[str, ...]]  # laws among which the user must choose, by argument

    def steps(
        self, law: Law, pool: frozenset[str], path: tuple[str, ...], units: Mapping[str, str]
    ) -> tuple[dict[str, Law], tuple[LawGap, ...]]:
        """The law of each argument that is not in the pool; a law needs nothing of the `path` to it; `units` are of all names so far."""
        steps: dict[str, Law] = {}
        gaps: list[LawGap] = []
        for argument in (name for name in arguments_of(law) if name not in pool):
            if argument in steps:
                continue
            options: list[tuple[Law, dict[str, Law]]] = []
            near: dict[str, list[str]] = {}  # what is lacking -> the laws that lack it
            far: dict[str, list[str]] = {}
            for giver in self._givers(law, argument):
                if giver.name in path:
                    continue
                clash = self._clash(giver, argument, units)
                if clash:
                    far[f"{clash} in another unit than here"] = [giver.name]
                    continue
                needed, lacks = self.steps(giver, pool | steps.keys(), (*path, giver.name), {**units, **equation.input_units(giver)})
                options += [] if lacks else [(giver, needed)]
                is_near = any(gap.near for gap in lacks) or len(lacks) < len(arguments_of(giver))
                (near if is_near else far).setdefault(" ".join(gap.nearest() for gap in lacks), []).append(giver.name)
            if not options:
                gaps.append(LawGap(argument, _routes(argument, near), _routes(argument, far)))
                continue
            if len(options) > 1:
                self.doubts[argument] = tuple(giver.name for giver, _ in options)
            giver, needed = options[0]
            steps |= {**needed, argument: giver}
            for part in steps.values():
                units = {**units, **equation.input_units(part)}
        return steps, tuple(gaps)

    def _givers(self, law: Law, argument: str) -> list[Law]:
        """Laws that may give an argument, or the one that the user names."""
        if argument not in self.choices:
            return givers(law, argument)
        giver, unit = law_index.load(self.choices[argument]), equation.input_units(law).get(argument)
        if unit not in ("*", equation.unit(giver)):
            wants = f"a law that gives {unit or 'a plain number'}; {giver.name} gives {equation.unit(giver) or 'a plain number'}"
            raise BadValue(argument, self.choices[argument], wants)
        return [giver]

    def _clash(self, giver: Law, argument: str, units: Mapping[str, str]) -> str:
        """A name of a law that is in another unit elsewhere in the chain, "" without; an error if the user names the law."""
        marks = equation.input_units(giver)
        names = [name for name in arguments_of(giver) if "*" not in (marks.get(name, "*"), units.get(name, "*"))]
        clash = next((name for name in names if marks[name] != units[name]), "")
        if clash and argument in self.choices:
            in_units = [f"{mark[clash] or 'a plain number'} {place}" for mark, place in ((marks, f"in {giver.name}"), (units, "beside it"))]
            raise BadValue(argument, giver.name, f"a number: {clash} is {' and '.join(in_units)}")
        return clash


def _routes(argument: str, lacks: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    return tuple(f"{words} (for {argument} by {' or '.join(laws)})" for words, laws in lacks.items())


def givers(law: Law, argument: str) -> list[Law]:
    """Laws that give an argument of a law by their declaration, in its unit."""
    unit = equation.input_units(law).get(argument)
    laws = [law_index.load(place.full_name) for place in law_index.givers(argument, law.module.partition(".")[0])]
    return [giver for giver in laws if unit not in (None, "*") and equation.unit(giver) == unit]
