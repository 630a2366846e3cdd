"""Points on which published summaries of the lecture disagree or err, each with the right version and the claims that show it."""

from __future__ import annotations

import dataclasses
import functools

from headway.evidence.claims.rows import ClaimRow, claim
from headway.evidence.lecture.chapters import document


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DisputedPoint:
    """A point that summaries dispute."""

    topic: str
    versions: tuple[str, ...]
    right: str
    reason: str
    claim_ids: tuple[str, ...]


@functools.cache
def disputed_points() -> tuple[DisputedPoint, ...]:
    """All disputed points, in the order of the lecture's check."""
    return tuple(
        DisputedPoint(
            topic=entry["topic"],
            versions=tuple(entry["versions"]),
            right=entry["right"],
            reason=entry["why"],
            claim_ids=tuple(entry["claims"]),
        )
        for entry in document("disputed")["point"]
    )


def claim_rows(point: DisputedPoint) -> list[ClaimRow]:
    """Rows of the claims that show a point."""
    return [row for claim_id in point.claim_ids for row in claim(claim_id)]
