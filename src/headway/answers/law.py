"""`headway law NAME key=value ...`: one law by name, with units, lists, ranges and facts; its equation and arguments; a search."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from headway.answers import arguments
from headway.core import law_index, search, units
from headway.core.columns import Column
from headway.core.errors import BadValue, UnknownName
from headway.core.law_values import assignments, unit_of
from headway.core.listing import Listing, clean, computed, place_of
from headway.core.quantity import user_input
from headway.performance.law import hints_of, read
from headway.performance.questions import LawQuestion
from headway.report import law as words
from headway.report import law_picture, output
from headway.serving.solve import Condition, SolveInput, solve
from headway.training.scaling.fits import DEFAULT, fit

MOST_MATCHES = 40


def run(args: LawQuestion) -> output.Answer:
    """Answer with the law's results, the law itself, or the laws that a search met."""
    if args.find is not None:
        if args.law or args.values:
            raise BadValue("--find", args.find, 'words in quotes and no law, such as --find "drain time"')
        return _search(args.find)
    if not args.law:
        raise BadValue("law", "no name", f"a law, such as hardware_ratio; {law_index.HINT}")
    if bool(args.for_) != bool(args.so_that):
        raise BadValue("--for" if args.so_that else "--so-that", "nothing", "both --for KEY and --so-that VALUE")
    law = law_index.load(args.law)
    if args.for_:
        return _solved(law, args)
    if args.values:
        return _results(law, args)
    row = words.description(law)
    return output.Answer(Listing([row]), words.about(row), columns=words.ABOUT)


def _search(text: str) -> output.Answer:
    matches = [match.page for match in search.near_best(text, "law")]
    if not matches:
        raise UnknownName("law about", text, [place.name for place in law_index.places()], "fewer or other words, or `headway list laws`")
    rows = [{"name": page.name, "law": page.says, "command": page.command} for page in matches]
    texts = {"name": "name of the law", "law": "the law in a sentence", "command": "a command with numbers for it"}
    headline = f"{len(rows)} law{'s' if len(rows) > 1 else ''} about {text!r}, the nearest first."
    columns = {name: Column("", doc) for name, doc in texts.items()}
    return output.Answer(Listing(rows), output.Summary(headline, ("name", "law")), columns=columns, most=MOST_MATCHES)


def _call(law: Any, args: LawQuestion, absent: str = "") -> Any:
    texts = dict(assignments([word for word in args.values if word.partition("=")[0].replace("-", "_") != absent], law.name))
    texts, note = _with_published(law, texts, absent)
    call = read(law, texts, arguments.catalog(args), absent, args.zip)
    return dataclasses.replace(call, notes=(*call.notes, *note))


def _with_published(law: Any, texts: dict[str, str], absent: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The arguments, with the coefficients of a published fit in place of those of a scaling law that were left out, and a note."""
    missing = [key for key in COEFFICIENTS if key in hints_of(law) and key not in texts and key != absent]
    if not missing or "power_laws" not in law.run.__module__:
        return texts, ()
    published = {key: f"{float(getattr(fit(DEFAULT).by, key)):g}" for key in missing}
    words = " ".join(f"{key}={text}" for key, text in published.items())
    return texts | published, (f"{words}: {fit(DEFAULT).name}'s fit ({fit(DEFAULT).by.alpha.source}); typed ones take their place",)


def _results(law: Any, args: LawQuestion) -> output.Answer:
    call = _call(law, args)
    points = call.points()
    results, defined, undefined = [], [], []
    for point in points:
        try:
            inputs = call.completed(point)
            call.check(inputs)
            results.append(call.result(inputs))
            defined.append(inputs)
        except BadValue as error:
            undefined.append(error)
    if not results:
        raise undefined[0]
    notes = [*call.notes, *([f"dropped {len(undefined)} of {len(points)} points, such as {undefined[0]}"] if undefined else [])]
    rows = [
        {"law": law.name, **{key: words.plain(value) for key, value in point.items()}, "result": clean(words.number(result))}
        for point, result in zip(defined, results, strict=True)
    ]
    traced = [{**point, "result": result} for point, result in zip(defined, results, strict=True)]

    def near(name: str, values: Sequence[float]) -> Any:
        return _table(law, call, name)(values).rows()

    listing = Listing(rows, tuple(notes), lambda row, key: computed(traced[place_of(row, rows)].get(key), key))
    return output.Answer(
        listing, describe=lambda rows: words.results(law, call, rows), columns=words.columns(law, call),
        pictures={"values": lambda rows, view: law_picture.along(law, call, list(rows), near, view)},
    )  # fmt: skip


# -- backwards ------------------------------------------------------------------------------------------------------------------

# Search range of an argument by its unit; of any other unit the last.
RANGES = {
    "": (1e-6, 1e18), "token": (1e-3, 1e18), "byte": (1e-3, 1e21), "byte/s": (1.0, 1e21), "flop": (1.0, 1e30), "flop/s": (1e3, 1e24),
    "s": (1e-12, 1e12), "USD": (1e-9, 1e15), "bool": (0.0, 1.0), "*": (1e-15, 1e24),
}  # fmt: skip
SCAN = 600
COEFFICIENTS = ("a", "b", "alpha", "beta", "irreducible")  # of Chinchilla's law, by which published fits differ


def _solved(law: Any, args: LawQuestion) -> output.Answer:
    """Answer with the values of an argument at which the law has a result."""
    name, _, span = args.for_.partition("=")
    name = name.strip().replace("-", "_")
    call = _call(law, args, name)
    hints = call.hints()
    if len(call.points()) > 1:
        raise BadValue("--for", args.for_, "one value for every other argument")
    unit = unit_of(hints[name])
    if unit is None:
        raise BadValue("--for", name, "an argument that is a number")
    range_texts = [span, *(word.partition("=")[2] for word in args.values if word.partition("=")[0].replace("-", "_") == name)]
    low, high = _range(next((text for text in range_texts if text), ""), unit, name)
    target = units.parse(args.so_that.rpartition("=")[2], call.unit(), f"--so-that {law.name}")
    sought = SolveInput(name=name, low=low, high=high, unit=unit, points=SCAN)
    solution = solve(_table(law, call, name), sought, Condition("result", args.so_that, target))
    table: Any = solution.table
    rows = [{key: value for key, value in row.items() if value is not None} for row in table]

    def solved_cell(row: Mapping[str, Any], key: str) -> Any:
        return computed(table.tree(place_of(row, rows), key) if key == "result" else row[key], key)

    listing = Listing(rows, (*call.notes, *_unmet(call, name, rows)), tree=solved_cell)
    headline = words.crossing(law, name, unit, rows) if solution.crossings else solution.sentence.replace("result", law.name)
    columns = words.columns(law, call) | {name: words.argument(law, name, unit)} | words.SOLVED
    return output.Answer(listing, words.solved(law, call, rows, headline), columns=columns)


def _unmet(call: Any, name: str, rows: list[dict[str, Any]]) -> list[str]:
    """What the law needs and a solution does not meet: the search itself looks everywhere."""
    texts = []
    for value in (float(f"{row['solution']:.9g}") for row in rows if row.get("solution") is not None):
        try:
            call.check(call.completed({**call.points()[0], name: value}))
        except BadValue as error:
            texts.append(str(error))
    return texts


def _range(text: str, unit: str, name: str) -> tuple[float, float]:
    if not text:
        return RANGES.get(unit, RANGES["*"])
    ends = [units.parse(part, "" if unit == "*" else unit, name) for part in text.split("..")]
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise BadValue(f"--for {name}", text, "a range such as 1..512")
    return ends[0], ends[1]


def _table(law: Any, call: Any, name: str) -> Any:
    """Function from values of an argument to a table of the law's results."""
    point, unit = call.points()[0], call.unit(name)

    def result(value: float) -> Any:
        try:
            return call.result(call.completed({**point, name: user_input(value, name, unit)}))
        except BadValue:
            return math.nan

    return words.table_of(law, point, name, result)
