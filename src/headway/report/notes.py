"""Which notes come first: those that this answer owes to what was typed, before those that hold for every answer of its kind."""

from __future__ import annotations

from collections.abc import Sequence

# Beginnings of notes by weight, the heaviest first; a note that begins with none of them stands between the two groups.
HEAVY = ("by default ", "--where ", "no price", "dropped as illegal", "launch: ", "overloaded", "unfitted: ", "nothing meets")
LIGHT = (
    "TTFT",
    "nearest measured",
    "prefix hits are in HBM",
    "KV cache formats searched",
    "latencies leave out",
    "scheduler of engine",
    "multi-token prediction layers are left out",
    "intervals: ",
    "searched ",
    "dropped 0 layouts",
    "dropped ",
    "fitted: ",
)


def by_weight(notes: Sequence[str]) -> list[str]:
    """Notes with those that move this answer first; otherwise in the order in which they came."""
    return sorted(notes, key=_weight)


def _weight(note: str) -> int:
    if note.startswith(HEAVY):
        return 0
    place = next((place for place, start in enumerate(LIGHT) if note.startswith(start) or f": {start}" in note), None)
    return 1 if place is None else 2 + place
