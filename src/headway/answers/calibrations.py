"""The calibration profiles that an answer goes by: those that --calibration names, or all of the catalogue's."""

from __future__ import annotations

from headway.answers import arguments
from headway.core.errors import BadValue
from headway.core.question import Question
from headway.performance.calibration.profile import Profile, profiles

NONE = "none"  # of --calibration: laws and the world's runs alone


def in_force(question: Question) -> tuple[Profile, ...]:
    """The profiles of a question's catalogue, chosen by its `calibration` where it has one: NAME[,NAME], none, or None for all."""
    text = getattr(question, "calibration", None)
    if text is None:
        return profiles(arguments.catalog(question))
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise BadValue("--calibration", text, "names of profiles with commas between, or none")
    if NONE in names and len(names) > 1:
        raise BadValue("--calibration", text, "none alone, or names of profiles")
    return () if names == [NONE] else profiles(arguments.catalog(question), names)
