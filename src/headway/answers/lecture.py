"""`headway lecture`: chapters, a chapter, a claim, a search, other inputs, disputed points, flashcards; and the picture of a claim."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import show
from headway.core import schema
from headway.core.columns import Column
from headway.core.errors import BadValue, HeadwayError, UnknownName
from headway.core.listing import Listing, clean, computed, format_value, place_of
from headway.core.quantity import known
from headway.core.question import from_words
from headway.evidence import claims as ledger
from headway.evidence.claims.claim import BOUND, PREDICTION, Claim, claims
from headway.evidence.claims.rows import ClaimRow
from headway.evidence.claims.second_verdict import SecondVerdicts, second_verdicts
from headway.evidence.lecture import chapters as lecture
from headway.evidence.lecture import inputs, quiz, search
from headway.evidence.lecture.card import board_curves
from headway.evidence.lecture.chapters import claim_rows, disputed_points
from headway.evidence.questions import Lecture
from headway.laws.queueing import departures
from headway.report import feistel, layout_pictures, lecture_pictures, output, sim, train
from headway.report import lecture as words
from headway.report.lecture import paragraph
from headway.simulation import timetable

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.evidence.lecture.quiz import Deck, QuizCard
    from headway.report.pictures.frame import Picture, View

FIGURES = ("recomputed", "today", "stated", "reference")
VIEW = ("id", "says", "stated", "recomputed", "unit", "verdict", "measured_here", "cause", "note")
NEVER = "never"  # where a figure with the reader's inputs is infinite
CODE = re.compile(r"[A-Za-z]{2,3}-?\d+")
CHAPTER = re.compile(r"\d{1,2}|\+")


def run(args: Lecture) -> output.Answer:
    """Answer with the page that was asked for."""
    text = " ".join(args.what).strip()
    if args.model or args.on or args.bridge:
        return show.card(args, args.model)
    if args.with_:
        return other_inputs(text, args.with_)
    if args.what[:1] == ("quiz",) or args.forget:
        return dealt(args)
    if args.disputed:
        return _disputed()
    measurements = second_verdicts(args.measured)
    is_group = text.upper() in {claim.group for claim in claims().values()}
    if args.find is not None or not (not text or is_group or CHAPTER.fullmatch(text) or CODE.fullmatch(text)):
        result = search.find(text if args.find is None else args.find)
        rows = [row for match in result.claims for row in ledger.claim(match.claim_id)]
        page = words.search_page(result, rows, measurements)
        return output.Answer(_listing(rows, measurements), describe=lambda _: page, describes_none=True, most=1000)
    return _chapter(text, measurements) if CHAPTER.fullmatch(text) else _claims(text, measurements)


def _claims(text: str, measurements: SecondVerdicts) -> output.Answer:
    """All claims under the table of chapters, a group, or one claim, which has a picture."""
    rows = ledger.claim(text) if text else ledger.rows()

    def describe(table: Rows) -> output.Summary:
        return words.front_page(rows, measurements) if not text and len(table) == len(rows) else _counts(list(table), measurements)

    pictures = {"claim": lambda table, view: draw(list(table), view)} if len(rows) == 1 else {}
    return output.Answer(_listing(rows, measurements), describe=describe, describes_none=True, pictures=pictures, most=1000)


def _chapter(label: str, measurements: SecondVerdicts) -> output.Answer:
    page = lecture.chapter(label)
    by_id = {row.id: row for row in ledger.rows()}
    rows = [by_id[claim_id] for claim_id in page.claim_ids()]

    def describe(table: Rows) -> output.Summary:
        return words.chapter_page(page, rows, measurements) if len(table) == len(rows) else _counts(list(table), measurements)

    return output.Answer(_listing(rows, measurements), describe=describe, describes_none=True, most=1000)


def _disputed() -> output.Answer:
    fields = ("id", "stated", "recomputed", "unit", "verdict")
    rows = [
        {"topic": point.topic, "versions": list(point.versions), "right": point.right, "reason": point.reason,
         "claims": [{key: getattr(row, key) for key in fields} | words.claim_fields(row.id) for row in claim_rows(point)]}
        for point in disputed_points()
    ]  # fmt: skip
    return output.Answer(Listing(rows), words.disputed_page(disputed_points()), most=100)


def _listing(rows: Sequence[ClaimRow], measurements: SecondVerdicts) -> Listing:
    return Listing(
        [clean(dataclasses.asdict(row)) | words.claim_fields(row.id) | words.here_fields(row.id, measurements) for row in rows], tree=_tree
    )


def _counts(rows: list[dict[str, Any]], measurements: SecondVerdicts) -> output.Summary:
    """One claim in full, or the count of verdicts above a table."""
    if len(rows) == 1:
        return words.claim_page(rows[0])
    verdicts = [row["verdict"] for row in rows]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    titles = ", ".join(f"{group}: {title}" for group, title in dict.fromkeys((row["group"], claims()[row["id"]].title) for row in rows))
    headline = f"{len(rows)} claims of the lecture: {counts}" if rows else "no claim of the lecture is left"
    view = [key for key in VIEW if rows and key in rows[0]]
    people = [
        {key: row[key] for key in view} | ({"recomputed": words.interval(row["parts"])} if row["basis"] in (BOUND, PREDICTION) else {})
        for row in rows
    ]
    after = [titles, *words.counts_here([row["id"] for row in rows], measurements)] if rows else []
    return output.Summary(headline, view, after, Listing(people))


def _tree(row: Mapping[str, Any], key: str) -> Any:
    """Formula tree of a claim's figure: of the first part that decides the verdict."""
    if key not in FIGURES or row[key] is None:
        raise BadValue("--explain", key, "a figure that the claim has: " + ", ".join(FIGURES))
    if key in ("stated", "reference"):
        return known(row[key], f"{row['id']} as {key}", row["unit"], "claim", row["source"])
    parts = ledger.explain(row["id"], today=key == "today")
    names = [part["name"] for part in row["parts"] if part[key] == row[key]]
    return parts[names[0] if names else next(iter(parts))]


INPUT_COLUMNS = {
    "figure": Column("", "figure of the claim"),
    "value": Column("", "the figure with the user's inputs, in the row's unit"),
    "lecture_inputs": Column("", "the same figure with the claim's own inputs"),
    "over_lecture": Column("", "value over the figure with the claim's own inputs"),
}


def other_inputs(text: str, changes: Sequence[str]) -> output.Answer:
    """Answer with the claim's figures for every combination of changed inputs."""
    claim = claims().get(text.upper())
    if claim is None:
        raise UnknownName("claim", text, {key.lower(): key for key in claims()}, "--with changes the inputs of one claim, such as RB-10")
    cases = inputs.cases(claim, changes)
    before, names = inputs.lecture_figures(claim), inputs.figure_names(claim, cases)
    rows, values = [], []
    for case in cases:
        for name, value in inputs.figures(claim, case).items():
            rows.append({
                **case.labels, "id": claim.id, "figure": names[name], "value": float(value), "lecture_inputs": before[name],
                "over_lecture": float(value) / before[name] if before[name] and math.isfinite(value) else None,
                "unit": claim.units.get(name, claim.unit),
            })  # fmt: skip
            values.append(value)

    def tree(row: Mapping[str, Any], key: str) -> Any:
        if key != "value":
            raise BadValue("--explain", key, "the column value")
        return computed(values[place_of(row, rows)], key)

    units = {name: claim.inputs[name].unit if name in claim.inputs else "" for case in cases for name in case.labels}
    changed = {row["figure"] for row in rows if row["value"] != row["lecture_inputs"]}
    people = [
        {name: format_value(row[name], unit) for name, unit in units.items()}
        | {"figure": row["figure"], "with_yours": NEVER if math.isinf(row["value"]) else format_value(row["value"], row["unit"]),
           "with_the_lecture's": format_value(row["lecture_inputs"], row["unit"]), "over_lecture": row["over_lecture"]}
        for row in [row for row in rows if row["figure"] in changed] or rows
    ]  # fmt: skip
    are_numbered = any(re.search(r"\d", name) for name, words in names.items() if words == name and words in changed)
    notes = ["numbers in the names of figures are those of the lecture's inputs"] if are_numbered else []
    if any(math.isinf(row["value"]) for row in rows):
        notes.append(f"{NEVER}: no finite figure solves the equation, as where what has to grow does not")
    idle = inputs.idle_inputs(claim, cases)
    notes += [f"no effect: {name}={cases[0].labels[name]} leaves every figure as it is" for name in idle]
    columns = INPUT_COLUMNS | {name: Column(unit, "input that the user gave") for name, unit in units.items()}
    with_yours, before_text = people[0]["with_yours"], people[0]["with_the_lecture's"]
    about = f"{claim.id}, {lecture.statement(claim.id)}: {people[0]['figure']}"
    headline = f"{about} is {with_yours} with your inputs, {before_text} with the lecture's."
    known_inputs = ", ".join(f"{name}={format_value(value, value.unit)}" for name, value in claim.inputs.items())
    after = [f"inputs of the claim: {known_inputs}", f"Next: headway lecture {claim.id} (where each input is from)"]
    view = (*units, "figure", "with_yours", "with_the_lecture's", "over_lecture")
    pictures = {"inputs": lambda table, view: lecture_pictures.curve(claim, list(table), view)}
    return output.Answer(
        Listing(rows, tree=tree), output.Summary(headline, view, after, Listing(people)), notes=notes, columns=columns, most=200,
        pictures=pictures,
    )  # fmt: skip


# -- the picture of a claim -----------------------------------------------------------------------------------------------------

BOARD = ("RB-01", "RB-04", "RB-05", "RB-06", "RB-07", "RB-10", "RB-27")  # about time and cost against batch
CONTEXT = ("CW", "AP")  # groups about cost against context
STEP = 1.5  # the lecture's price above its step, over the price below
ARRIVALS = 7  # seed of the requests of a timetable


def draw(rows: list[Mapping[str, Any]], view: View) -> Picture:
    """The picture of a claim, drawn from its own inputs.

    A few claims have a scene of their own; those about batch or context have the lecture's curves; the others a curve along the input that
    moves their figures, and where no input moves most of them, the figures beside each other.
    """
    if len(rows) != 1:
        raise BadValue("--plot", f"{len(rows)} claims", "one claim, such as headway lecture RB-10 --plot claim.png")
    claim = claims()[rows[0]["id"]]
    if claim.id in SCENES:
        return SCENES[claim.id](claim, view)
    if claim.id in BOARD:
        prices = claims()["RB-21"].inputs
        case = board_curves({**claim.inputs, "chips": prices["chips"], "chip_price": prices["chip_price"]})
        subject = {"model": f"claim {claim.id}", "system": "the lecture's rack"}
        return layout_pictures.batch(case, subject, "KV cache left out, as on the board", view)
    if claim.group in CONTEXT and "crossing" in claim.inputs:
        knee = float(claim.inputs["crossing"])
        about = f"claim {claim.id}: dense attention reads the whole cache, square-root attention less; price as in the lecture"
        return lecture_pictures.price_context(knee, STEP, view, about)
    if inputs.is_curve(claim):
        name = inputs.axis(claim)
        return output.draw(other_inputs(claim.id, [f"{name}={inputs.span(claim, name)}"]), view, "inputs")
    return lecture_pictures.figures(rows[0], view)


def _timetable(claim: Claim, view: View) -> Picture:
    """The small train of the claim: its seats, its load, its beat."""
    beat, seats, load = (float(claim.inputs[name]) for name in ("step_s", "few_seats", "few_load"))
    table = timetable.random_timetable(float(departures.train_rate(load, beat, seats)), beat, int(seats), timetable.DEPARTURES, ARRIVALS)
    wait = inputs.lecture_figures(claim)["mean wait, 4 seats 80 % full"]
    title = f"A train leaves every {format_value(beat, 's')}, full or not: {load:.0%} of the seats are asked for, the mean wait is " \
            f"{format_value(wait, 's')}"  # fmt: skip
    subtitle = f"claim {claim.id}: {seats:g} seats, requests drawn at random, first come, first served"
    return sim.timetable(table.departures, table.boardings, beat, view, title=title, subtitle=subtitle)


def _decoding(claim: Claim, view: View) -> Picture:
    stages = int(claim.inputs["stages"])
    return layout_pictures.pipeline(stages, view, f"claim {claim.id}: the lecture's {stages} stages")


def _bubbles(claim: Claim, view: View) -> Picture:
    stages, count = int(claim.inputs["stages"]), int(claim.inputs["few"])
    return train.pipeline(stages, count, view, f"claim {claim.id}")


def _coupling(claim: Claim, view: View) -> Picture:
    numbers = {"x": float(claim.inputs["x"]), "y": float(claim.inputs["y"]), "z": inputs.lecture_figures(claim)["z"]}
    return feistel.step(view, numbers)


def _avalanche(claim: Claim, view: View) -> Picture:
    rounds, flips = (int(claim.inputs[name]) for name in ("rounds", "flips"))
    return _of_command(f"feistel avalanche --cipher simon32 --rounds 1..{rounds}+1 --trials {flips}", "avalanche", view)


def _valley(claim: Claim, view: View) -> Picture:
    active, served = (float(claim.inputs[name]) for name in ("active", "served"))
    return _of_command(f"scale --active {active:g} --served {served:g}", "overtraining", view)


def _of_command(command: str, name: str, view: View) -> Picture:
    """The picture of another verb that is asked with the claim's inputs."""
    return output.draw(from_words(shlex.split(command)).answer(), view, name)


SCENES: dict[str, Callable[[Claim, Any], Picture]] = {
    "TS-05": _timetable, "PP-06": _decoding, "PP-08": _decoding, "PP-09": _decoding, "PP-07": _bubbles, "CR-01": _coupling,
    "CR-07": _avalanche, "OT-15": _valley, "OT-16": _valley, "OT-18": _valley,
}  # fmt: skip


# -- flashcards ------------------------------------------------------------------------------------------------------------------

MOST_CARDS = 50
MOST_TRIES = 3  # at a number that cannot be read
MOST_ANSWER = 10_000  # characters of a line that is typed
QUIT = ("q", "quit", "exit")
CARD_COLUMNS = {
    "card": Column("", "name of the card in the record of past answers"),
    "kind": Column("", "number, direction or sentence"),
    "question": Column("", "question, with its inputs"),
    "shown_inputs": Column("", "inputs shown with the question"),
    "answer": Column("", "the answer: a number in the row's unit, rises, falls or stays, or a sentence"),
    "answer_text": Column("", "the answer as shown"),
    "tolerance": Column("", "relative tolerance of a number; null for other kinds"),
    "derivation": Column("", "laws behind the answer, a line each"),
}


def dealt(args: Lecture) -> output.Answer:
    """Deal cards, as rows for a program or one by one for a person."""
    path = quiz.deck_path()
    if args.forget:
        success = f"Past answers are forgotten: {path} is deleted."
        text = success if quiz.forget(path) else f"There are no past answers to forget: no file {path}."
        return output.Answer(Listing([]), output.Summary(text))
    label = " ".join(args.what[1:])
    if label:
        lecture.chapter(label)
    count = int(schema.scalar(args.cards, schema.Field(integer=True, low=1, high=MOST_CARDS, open_low=False), "--cards"))
    counts = schema.Field(integer=True, open_low=False)
    seed = secrets.randbelow(10**6) if args.seed is None else int(schema.scalar(args.seed, counts, "--seed"))

    def dialogue() -> output.Answer:
        deck, today = quiz.load(path), datetime.date.today()
        return _ask(quiz.hand(label, lambda key: deck.rank(key, today), count, seed), deck, today)

    rows = []
    for card in quiz.hand(label, lambda _: 0, count, seed):
        figure = quiz.derivation(card)
        rows.append({
            "card": card.key, "chapter": card.chapter, "id": card.claim_id, "kind": card.kind, "question": card.text(),
            "shown_inputs": list(card.inputs), "answer": card.answer, "answer_text": card.answer_text, "unit": card.unit,
            "tolerance": card.tolerance if card.kind == quiz.NUMBER else None,
            "derivation": [] if figure is None else [line.strip() for line in words.law_lines(figure, card.figure, 1, set())],
        })  # fmt: skip
    return output.Answer(Listing(rows), output.Summary(f"{len(rows)} cards"), columns=CARD_COLUMNS, dialogue=dialogue)


# -- one by one -----------------------------------------------------------------------------------------------------------------


def _ask(cards: list[QuizCard], deck: Deck, today: datetime.date) -> output.Answer:
    """Ask one card after another until the end, q or the end of the input; each answer is saved at once."""
    _print(f"{len(cards)} cards; answer with a number and its unit, with rises, falls or stays, or in your own words; q ends.")
    if deck.note:
        _print(f"note: {deck.note}")
    rights = answered = 0
    for number, card in enumerate(cards, 1):
        _print("")
        _print(paragraph(f"{number}/{len(cards)}  {card.text()}"))
        verdict = _graded(card)
        if verdict is None:
            break
        answered += 1
        rights += verdict
        answer_text = "see above" if card.kind == quiz.SENTENCE else card.answer_text
        grade = "Right" if verdict else "Not quite"
        _print(paragraph(f"{grade}: {answer_text} (claim {card.claim_id}: {lecture.statement(card.claim_id)})"))
        figure = quiz.derivation(card)
        for line in words.law_lines(figure, card.figure, 1, set()) if figure is not None else ():
            _print(line)
        try:
            deck.answer(card.key, verdict, today)
        except OSError as error:
            raise HeadwayError(f"cannot write {deck.path}: {error.strerror or error}; HEADWAY_QUIZ names another file") from None
    _print("")
    misses = answered - rights
    comeback = f"; {misses} come back first next time." if misses > 1 else "; 1 comes back first next time." if misses else "."
    result = f"{rights} of {answered} right{comeback}" if answered else "No card was answered."
    due = f"{len(deck.cards)} cards have been answered so far, {deck.due(today)} are due; the record is {deck.path} (--forget deletes it)."
    return output.Answer(Listing([]), output.Summary(result, (), [due]))


def _graded(card: QuizCard) -> bool | None:
    """Whether the reader was right; None where the reader quits. A number that cannot be read is asked for again."""
    for _ in range(MOST_TRIES):
        line = _read()
        if line is None or line.lower() in QUIT:
            return None
        if card.kind == quiz.SENTENCE:
            _print(paragraph(f"Answer: {card.answer_text}"))
            _print("Did you have it? y or n")
            grade = _read()
            return None if grade is None or grade.lower() in QUIT else grade.lower() in ("y", "yes")
        try:
            return quiz.judge(card, line)
        except BadValue as error:
            _print(str(error))
    return False


def _read() -> str | None:
    """A line of the input without its end; None at the end of the input."""
    sys.stdout.write("> ")
    sys.stdout.flush()
    line = sys.stdin.readline(MOST_ANSWER)
    if not line:
        _print("")
        return None
    if not sys.stdin.isatty():
        _print(line.strip())  # a pipe does not echo
    return line.strip()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
