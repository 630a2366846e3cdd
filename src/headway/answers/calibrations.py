"""The calibration profiles that an answer goes by: those that --calibration names, or all there are; made anew where they are stale."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway import __version__
from headway.answers import arguments, sim_plan
from headway.core.catalog import Catalog, fold
from headway.core.errors import BadFile, BadValue, clip
from headway.core.notes import note
from headway.core.question import Question
from headway.evidence.calibration import filed
from headway.performance.calibration import facts
from headway.performance.calibration.profile import KIND, Profile, profiles, read_profile
from headway.simulation.questions import Simulate

NONE = "none"  # of --calibration: laws and the world's runs alone
IDLE_NONE = "no effect: --calibration none changes no number of this answer: there is no profile"
MOST_NAMED = 3  # runs that a note names


def in_force(question: Question) -> tuple[Profile, ...]:
    """The profiles of a question's catalogue, chosen by its `calibration` where it has one: NAME[,NAME], none, or None for all."""
    if isinstance(question, Simulate) and question.plan:  # whose folders and profiles the plan's file names
        question = sim_plan.played(question, sim_plan.read_plan(question.plan))
    where, names = arguments.catalog(question), _names(getattr(question, "calibration", None))
    if names == [NONE]:
        if not where.files(KIND):
            note(IDLE_NONE)
        return ()
    return tuple(current(profile, where) for profile in profiles(where, names))


def _names(text: str | None) -> list[str] | None:
    """The profiles that --calibration names; None for all."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadValue("--calibration", text, "names of profiles with commas between, or none")
    if NONE in names and len(names) > 1:
        raise BadValue("--calibration", text, "none alone, or names of profiles")
    return names


def current(profile: Profile, where: Catalog) -> Profile:
    """A profile under this version of headway, its facts and fits: made anew from its runs after another, with a note."""
    why = stale(profile, where)
    if not why:
        return profile
    anew, lost = _remade(profile, where)
    note(f"calibration {profile.name} was made anew from its runs: {why}", *_lost(profile.name, lost))
    return anew


def stale(profile: Profile, where: Catalog) -> str:
    """Why what a profile's runs say must be made anew; "" where it need not be."""
    if profile.headway != __version__:
        return f"headway is {__version__}, and {profile.headway} wrote it"
    if profile.is_edited:
        return "its file was edited since headway wrote it"
    return "" if profile.facts == facts.facts_hash(where, profile.deployments) else "facts or fits have changed since it was written"


@functools.lru_cache(maxsize=16)
def _remade(profile: Profile, where: Catalog) -> tuple[Profile, tuple[str, ...]]:
    """A profile made anew, and the ids of runs that are no longer predicted."""
    anew, lost = filed.remade(profile, where)
    return anew, tuple(row.row.id for row in lost)


def _lost(name: str, lost: Sequence[str]) -> list[str]:
    """A note on the runs that say nothing any more."""
    more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    text = f"{', '.join(lost[:MOST_NAMED])}{more}"
    return [f"calibration {name}: left out, since they are not predicted now: {text}"] if lost else []


# -- the profiles that there are ------------------------------------------------------------------------------------------------------

CURRENT = "current"


def rows_of(where: Catalog) -> list[dict[str, Any]]:
    """A row for each profile of a catalogue; one that cannot be read says why."""
    return [_row(name, path, where) for name, path in sorted(where.files(KIND).items())]


def _row(name: str, path: Path, where: Catalog) -> dict[str, Any]:
    """The row of a profile."""
    try:
        profile = read_profile(path)
    except BadFile as error:
        none = dict.fromkeys(("runs", "deployments", "first", "last", "of"))
        return {"name": name, **none, "state": str(error).removeprefix(f"{clip(path, 120)}: "), "file": str(path)}
    dates = sorted(run.date for run in profile.runs)
    subjects = dict.fromkeys(f"{key.model} on {fold(key.chip)}" for key in profile.deployments)
    why = stale(profile, where)
    return {
        "name": name, "runs": len(profile.runs), "deployments": len(profile.deployments), "first": dates[0], "last": dates[-1],
        "of": ", ".join(subjects), "state": f"made anew when used: {why}" if why else CURRENT, "file": str(path),
    }  # fmt: skip


def refuse_idle(question: Question) -> None:
    """Raise BadValue for profiles by name none of whose runs say anything in this question."""
    if question.calibration is not None:
        wants = "a profile of runs of this model or chip, under the same engine; `headway list calibrations` shows all"
        raise BadValue("--calibration", question.calibration, wants)
