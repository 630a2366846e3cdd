"""The flag of every verb whose numbers runs of one's own can move: which calibration profiles it goes by."""

from __future__ import annotations

from headway.core.question import FlagGroup, FlagRecord, field


class CalibrationChoice(FlagRecord):
    """Profiles of `headway calibrate`, by name."""

    calibration = field(
        kind="word", word="NAME,...|none", help="profiles of your own runs to go by, or none (default: all that apply)"
    )


OWN_RUNS = FlagGroup(CalibrationChoice, "your own runs", is_brief=True)
