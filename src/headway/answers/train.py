"""`headway train MODEL --on MACHINE --tokens 15T --seq 8k --global-batch 16M`: best layouts, time and cost of a training run."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema, units
from headway.core.errors import BadValue, HeadwayError
from headway.core.listing import cell, format_value
from headway.hardware.chip_price import MARKET
from headway.report import output, serving, train
from headway.report.train import share
from headway.report.words import MOST_WORDS, count, interval, sentence
from headway.training.helps import TrainingHelp, helps
from headway.training.questions import Train, TrainingGoal
from headway.training.recipe import BINARY_FLAGS, Failures, Recipe, TrainingLayout, TrainingReach, binary_text
from headway.training.sizing import missed_by
from headway.training.train import LADDER, OVER, RECORDS, TIMES, TrainingQuestion, answers, cases, listing, sample, swept
from headway.training.train import PARTS as MEMORY

if TYPE_CHECKING:
    from headway.core.listing import Rows
    from headway.training.search import TrainingRequest

SAME = 0.001  # of two costs that a reader cannot tell apart
TENTH = 0.1  # of a value that equals a fitted default, to see whether it counts
MOST_VALUES = 1000  # of one flag
MOST_TRIED = 20  # combinations of a list at which a value is tried
DEGREES = ("tp", "cp", "pp", "vpp", "ep", "dp")
VIEW = ("kind", "model", "system", "chips", "seq", "global_batch", *DEGREES, "micro_batch", "zero", "recompute", "schedule", "step_s",
        "step_lo_s~step_hi_s", "tokens_per_s_chip", "mfu", "memory_bytes_chip", "run_s", "run_usd", "confidence", "bound", "fits",
        "why")  # fmt: skip
SEARCHED = ("recompute", "schedule")  # of a recipe
DAY, GWH = 86400.0, 3.6e12
NARROW = ("kind", "chips", *DEGREES, "recompute", "step_s", "mfu", "run_s", "run_usd", "confidence", "memory_bytes_chip", "why")


def run(args: Train) -> output.Answer:
    """Answer with the best layouts, and days, cost and energy of the run."""
    records = {}
    args, notes = _binary(args)
    for record in (*RECORDS, TrainingLayout):
        records[record] = schema.read(args, record, most=MOST_VALUES)
    layout = records.pop(TrainingLayout)
    goal = schema.read(args, TrainingGoal)
    limits = {name: goal.get(name) for name in ("deadline", "budget", "confidence")}
    request = TrainingQuestion(records=records, layout=layout, objective=args.objective, price_metric=args.price_metric, **limits)
    models, systems = arguments.models(args), [system for system, _ in arguments.systems(args)]
    run_cases = cases(models, systems, request)
    _refuse_idle(args, request, lambda trial: [sample(case) for case in cases(models, systems, trial)[:MOST_TRIED]])
    trained = answers(run_cases)
    changes = functools.cache(lambda: helps(*trained[0]) if len(trained) == 1 else [])  # searched where somebody reads them
    answer_rows = listing(trained, notes)
    idle = _idle_notes(args, request, next(iter(answer_rows))) if len(run_cases) == 1 else []
    subjects = [name for name, members in (("model", models), ("system", systems)) if len(members) > 1]
    axes = [*subjects, *(name for _, name in swept(run_cases))]
    return output.Answer(
        answer_rows, notes=idle, describe=functools.partial(_describe, axes=axes, goal=trained[0][0], changes=changes),
        pictures=train.pictures(), most=100,
    )  # fmt: skip


def _idle_notes(args: Train, question: TrainingQuestion, best: Mapping[str, Any]) -> list[str]:
    """Notes on typed values without which the best layout has the same numbers: they count in other layouts, or not at all."""
    pinned = dataclasses.replace(question, layout={name: best[name] for name in schema.fields(TrainingLayout)})

    def rows(trial: TrainingQuestion, trial_args: Any = args) -> Any:
        systems = [system for system, _ in arguments.systems(trial_args)]
        return [sample(case) for case in cases(arguments.models(trial_args), systems, trial)]

    trials = {}
    for record in (Recipe, Failures, TrainingReach):
        values, marks = question.records[record], schema.fields(record)
        for name in (name for name in values if name != "recompute" and values[name] != marks[name][1]):
            rest = {key: value for key, value in values.items() if key != name}
            trials[f"{schema.flag(name)} {getattr(args, name)}"] = (
                dataclasses.replace(pinned, records={**question.records, record: rest}), args)  # fmt: skip
    if args.price_metric != MARKET:
        trials[f"--price-metric {args.price_metric}"] = (dataclasses.replace(pinned, price_metric=MARKET), args)
    for flag, text, plain in arguments.typed_edits(args):
        trials[f"{flag} {text}"] = (pinned, args.replace(**plain))
    notes = []
    for text, trial in trials.items():
        with contextlib.suppress(HeadwayError):  # of what cannot be computed without it
            if rows(*trial) == rows(pinned):
                notes.append(f"no effect: {text} changes no number of the best layout")
    return notes


def _refuse_idle(args: Train, question: TrainingQuestion, rows: Callable[[TrainingQuestion], Any]) -> None:
    """Raise an error for a value that changes no number of any layout, nor would a tenth of it; a default typed out is no mistake."""
    for record in (Recipe, Failures, TrainingReach):
        values, marks = question.records[record], schema.fields(record)
        for name, value in values.items():
            follows = record is Recipe and marks[name][1] is None and (marks[name][0].integer or marks[name][0].choices)
            if follows or value == marks[name][1] or name == "recompute":  # which is searched
                continue
            rest, own_rows = {key: values[key] for key in values if key != name}, rows(question)
            trials = [rest] if isinstance(value, str | tuple) else [rest, rest | {name: TENTH * value}]
            plain_rows = [rows(dataclasses.replace(question, records={**question.records, record: trial})) for trial in trials]
            if all(own_rows) and all(case in plain for case in own_rows for plain in plain_rows):
                flag = schema.flag(name)
                if record is Failures and "mtbf" not in values:
                    raise BadValue(flag, getattr(args, name), "--mtbf beside it, such as 51000h of a chip: nothing fails without")
                raise BadValue(flag, getattr(args, name), f"no {flag}: it changes no number of {args.model} on {args.on} in any layout")


def _binary(args: Train) -> tuple[Any, tuple[str, ...]]:
    """The question with k and M of sequence lengths and token batches as the field writes them, powers of 1024; a note on what changed."""
    typed = {name: text for name in BINARY_FLAGS if isinstance(text := getattr(args, name), str)}
    binary = {name: words for name, text in typed.items() if (words := binary_text(text)) != text}
    changed = [f"{schema.flag(name)} {typed[name]} is {text}" for name, text in binary.items()]
    note = f"{', '.join(changed)}: k and M of sequences and batches are powers of 1024 (8k = 8,192)"
    return args.replace(**binary), (note,) if changed else ()


# -- words ----------------------------------------------------------------------------------------------------------------------


def _describe(rows: Rows, axes: Sequence[str], goal: TrainingRequest, changes: Callable[[], Sequence[TrainingHelp]]) -> output.Summary:
    """Summary of the best layout, or of the best of several points with the swept inputs `axes` first."""
    row_list = list(rows)
    best, place = (row_list[0], "") if not axes else _winner(row_list, axes, goal)
    after = "" if axes else _next(row_list)
    remarks = [line for line in (_ladder(row_list), _memory(best), _hides(best), after or _speed(best), _undisturbed(best)) if line]
    view, narrow = ([*axes, *(key for key in keys if key not in axes)] for keys in (VIEW, NARROW))
    useful = [train.help_words(change, best) for change in changes()]
    headline = _headline(best, place, goal, next((change for change in changes() if change.saves), None))
    return output.Summary(headline, view, binds=_binds(best), remarks=remarks, helps=useful, first=narrow)


def _winner(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], goal: TrainingRequest) -> tuple[Mapping[str, Any], str]:
    """The best point by the objective, with words on it and, of a question of speed, on the cheapest run."""
    running = [row for row in rows if row["fits"]]
    if not running:
        return rows[0], f"none of {len(rows)} points fits; the first, {serving.setting(rows[0], axes)}: "
    keeping = [row for row in running if row["kind"] != OVER] or running
    values = {"step": lambda row: row["step_s"] / row["global_batch"] / row["goodput"], "chips": lambda row: row["chips"],
              "cost": lambda row: row["run_usd"] / row["tokens"]}  # fmt: skip
    values["late"] = lambda row: missed_by(goal, row["run_s"], row["run_usd"])
    best = min(keeping, key=values["late" if keeping[0]["kind"] == OVER else goal.objective])
    setting, is_over = serving.setting(best, axes), best["kind"] == OVER
    if is_over:
        return best, f"none of {len(rows)} points keeps the limits; nearest, {setting}: "
    word = {"step": "fastest", "chips": "fewest chips", "cost": "cheapest"}[goal.objective]
    words = f"{word} of {len(rows)} points is {setting}"
    priced = [row for row in keeping if row.get("run_usd") is not None]
    cheapest = min(priced, key=values["cost"], default=None)
    if goal.objective == "step" and cheapest is not None and values["cost"](cheapest) < (1 - SAME) * values["cost"](best):
        words += f", cheapest {serving.setting(cheapest, axes)} ({cell('run_usd', cheapest)})"
    return best, f"{words}; {'the fastest' if goal.objective == 'step' else 'it'}: "


def _headline(best: Mapping[str, Any], place: str, goal: TrainingRequest, rescue: TrainingHelp | None) -> str:
    """Sentence on the best layout: whether it fits and keeps the limits, its step, and the run."""
    where = f"{place}{best['model']} on {best['system']}"
    layout = " ".join(f"{name}={best[name]}" for name in DEGREES if best[name] != 1) or "one copy per chip"
    if not best["fits"]:
        return sentence(f"{where}: no layout fits", f"; nearest {layout}, {best['why']}")
    mfu, by = f" at {best['mfu']:.1%} MFU", f" with {layout}"
    if best.get("run_s") is None:
        ends = interval(best["step_lo_s"], best["step_hi_s"], "s")
        return sentence(f"{where}: a step takes {cell('step_s', best)} (90 %: {ends}){mfu}", by)
    if best["run_s"] < DAY:
        days = f"{cell('run_s', best)} (90 %: {interval(best['run_lo_s'], best['run_hi_s'], 's')})"
    else:
        days = f"{best['run_s'] / DAY:,.1f} days (90 %: {best['run_lo_s'] / DAY:,.1f} .. {best['run_hi_s'] / DAY:,.1f})"
    money = f" and {cell('run_usd', best)}" if best.get("run_usd") is not None else ""
    tokens, step = (units.show(best[key], "token") for key in ("tokens", "global_batch"))
    sure = "" if best.get("confidence") is None else f"(chance {share(best['confidence'])})"
    if best["kind"] == OVER:
        would = f"; {rescue.change.words} ({rescue.change.flags}) would keep it" if rescue is not None else ""
        shorter = f"; {rescue.change.flags} keeps it" if rescue is not None else ""
        first = f"{where} {best['why']} {sure}: {tokens} tokens take {days}"
        if rescue is not None:
            return sentence(first, money, would if count(first + money + would) <= MOST_WORDS else shorter)
        return sentence(first, money, mfu, by)
    if sure:
        return sentence(f"{where}: {tokens} tokens take {days}{money}, within {_limits(goal)} {sure}", mfu, by)
    return sentence(f"{where}: {tokens} tokens in steps of {step} take {days}{money}", mfu, by)


def _limits(goal: TrainingRequest) -> str:
    limits = ((goal.deadline, "s"), (goal.budget, "USD"))
    return " and ".join(units.show(limit, unit) for limit, unit in limits if limit is not None)


def _ladder(rows: Sequence[Mapping[str, Any]]) -> str:
    """Line on the counts of chips around the answer, each with its chance."""
    steps = [row for row in rows if row["kind"] == LADDER and row.get("confidence") is not None]
    if not steps or rows[0]["kind"] != "best":
        return ""
    counts = sorted([rows[0], *steps], key=lambda row: row["chips"])
    return "chance by chips: " + ", ".join(f"{row['chips']:,} {share(row['confidence'])}" for row in counts)


def _undisturbed(best: Mapping[str, Any]) -> str:
    """What a long run without failures leaves out."""
    if best.get("run_s") is None or best["run_s"] < DAY or best.get("goodput") not in (None, 1):
        return ""
    return "with today's software, without failures and downtime; --mtbf 51000h counts failures at the rate of Llama 3's run"


def _binds(best: Mapping[str, Any]) -> str:
    """What binds a step, and the parts of its time, the largest first."""
    shares = sorted(((best[f"{name}_s"] / best["step_s"], name) for name in TIMES if best[f"{name}_s"] is not None), reverse=True)
    parts = ", ".join(f"{name} {share:.0%}" for share, name in shares if share >= 0.005)
    return f"{best['bound']}; a step is {parts}"


def _memory(best: Mapping[str, Any]) -> str:
    sizes = sorted(((best[f"{name}_bytes_chip"], name) for name in MEMORY), reverse=True)
    text = ", ".join(f"{name} {format_value(size, 'byte')}" for size, name in sizes if size > 0.005 * best["memory_bytes_chip"])
    return f"memory of the fullest chip {cell('memory_bytes_chip', best)}: {text}"


def _hides(best: Mapping[str, Any]) -> str:
    """Line on the work per chip that would hide the layout's communication, all rates at peak."""
    parts = []
    if best["tokens_to_hide"] is not None:
        parts.append(f"the exchange of parameters hides behind {best['tokens_to_hide']:,.0f} tokens a chip and micro-batch"
                    f" (this layout has {best['micro_tokens']:,.0f})")  # fmt: skip
    if best["tp_paid"] is not None and best["tp"] > 1:
        parts.append(f"tp pays up to {best['tp_paid']:.1f} ways ({best['tp']})")
    if best["expert_width_to_hide"] is not None:
        parts.append(f"experts hide their own exchange from a width of {best['expert_width_to_hide']:,.0f}")
    return "at every peak: " + "; ".join(parts) if parts else ""


def _speed(best: Mapping[str, Any]) -> str:
    """Note on the speed per chip, energy and goodput of a layout."""
    parts = [f"{best['tokens_per_s_chip']:,.0f} tokens/s per chip, recompute {best['recompute']}"]
    if best.get("energy_j") is not None:
        gwh = best["energy_j"] / GWH
        amount = f"{gwh:,.1f} GWh" if best["energy_j"] > GWH else f"{gwh * 1000:,.1f} MWh"
        parts.append(f"{amount} of chips at their design power")
    if best["goodput"] < 1:
        parts.append(f"goodput {best['goodput']:.1%}")
    return "; ".join(parts)


def _next(rows: Sequence[Mapping[str, Any]]) -> str:
    """Note on the speed per chip, energy and goodput of the best layout, and on the next best."""
    best = rows[0]
    parts = [_speed(best)]
    if len(rows) > 1 and rows[1]["kind"] in ("next", OVER) and rows[1]["fits"]:
        after = rows[1]
        why = f" ({after['why']})" if after["why"].startswith("plainer") else ""
        parts.append(f"the next layout is {after['step_s'] / best['step_s'] - 1:.1%} slower{why}")
    return "; ".join(parts)
