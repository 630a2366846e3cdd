"""Second verdict of claims: what the experiments of `headway lab` measured on some machine, read from the files that --save wrote."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile
from headway.core.user_file import LAB_RUN, json_of, text_of
from headway.evidence.claims.rows import AGREES, DIFFERS
from headway.reality.lab.catalogue import EXPERIMENTS
from headway.reality.lab.experiment import hash_of

SHARE = 0.75  # of a claim's points that lie inside where it agrees
NO_VERDICT = "no verdict"
NEEDS = {"claim": str, "low": int | float, "high": int | float}
MEASURED = ("measured", "spread")  # of a point, which its hash leaves out


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRun:
    """What one run measured of a claim."""

    experiment: str
    file: str
    machine: str
    date: str
    sha256: str  # of its predictions
    inside: int
    points: int  # that were measured
    why_none: str  # why it gives no verdict; "" where it gives one


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SecondVerdict:
    """A claim by all runs that test it: those on a quiet machine decide together."""

    verdict: str
    inside: int
    points: int
    runs: tuple[ClaimRun, ...]


SecondVerdicts = Mapping[str, SecondVerdict]  # by claim


def second_verdicts(paths: Sequence[str]) -> SecondVerdicts:
    """Verdicts by claim, of saved runs and of folders of them."""
    runs: dict[str, list[ClaimRun]] = {}
    for file in {file.resolve(): file for path in paths for file in _files(Path(path))}.values():  # one that is named twice counts once
        for claim_id, run in _of_file(file):
            runs.setdefault(claim_id, []).append(run)
    return {claim_id: _joint(tuple(of_claim)) for claim_id, of_claim in runs.items()}


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return (path,)
    files = sorted(path.glob("*.json"))
    if not files:
        raise BadFile(path, f"holds no file *.json; wants {LAB_RUN.what}")
    return files


def _of_file(path: Path) -> Iterator[tuple[str, ClaimRun]]:
    """Each claim of a run with what was measured of it; BadFile where its predictions are not those that were hashed."""
    document = json_of(text_of(path, LAB_RUN), path, LAB_RUN)
    if not isinstance(document, dict) or document.get("experiment") not in EXPERIMENTS or not isinstance(document.get("points"), list):
        raise BadFile(path, f"wants {LAB_RUN.what}")
    points, sha256 = [_checked(point, path) for point in document["points"]], document.get("predictions_sha256")
    if hash_of([{key: value for key, value in point.items() if key not in MEASURED} for point in points]) != sha256:
        raise BadFile(path, f"its predictions are not those that were hashed before anything was measured (sha256 {str(sha256)[:16]}): "
                            "it was edited; measure again")  # fmt: skip
    about = {"experiment": document["experiment"], "file": path.name, "machine": str(document.get("machine", "")),
             "date": str(document.get("date", "")), "sha256": str(sha256)}  # fmt: skip
    noise = document.get("noise", {})
    reasons = ["it was interrupted"] * bool(document.get("interrupted")) + list(noise.get("reasons", ()) if isinstance(noise, dict) else ())
    for claim_id in dict.fromkeys(point["claim"] for point in points if point["claim"]):
        inside = [
            point["low"] <= point["measured"] <= point["high"] for point in points
            if point["claim"] == claim_id and isinstance(point.get("measured"), int | float)
        ]  # fmt: skip
        why = "; ".join(reasons) or ("" if inside else "no point of it was measured")
        yield claim_id, ClaimRun(**about, inside=sum(inside), points=len(inside), why_none=why)


def _checked(point: Any, path: Path) -> dict[str, Any]:
    """A point that has what a verdict needs."""
    if not isinstance(point, dict) or not all(isinstance(point.get(name), kind) for name, kind in NEEDS.items()):
        raise BadFile(path, f"wants {LAB_RUN.what}: a point without {', '.join(NEEDS)}")
    return point


def _joint(runs: tuple[ClaimRun, ...]) -> SecondVerdict:
    """At least 3 of 4 points of the runs on a quiet machine lie inside, or not; without such a run there is no verdict."""
    quiet = [run for run in runs if not run.why_none]
    inside, points = (sum(getattr(run, name) for run in quiet or runs) for name in ("inside", "points"))
    verdict = NO_VERDICT if not quiet else AGREES if inside >= SHARE * points else DIFFERS
    return SecondVerdict(verdict=verdict, inside=inside, points=points, runs=runs)
