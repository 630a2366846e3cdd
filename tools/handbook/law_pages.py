"""The math: a page for each subject of laws, with the equation, units, example and source that each law declares."""

from __future__ import annotations

import html
from typing import Any

from mathml import equation

from headway.core import law_index
from headway.core.equation import inputs
from headway.core.trace import Traced
from headway.evidence import claims as ledger
from headway.evidence.claims.rows import computable
from headway.evidence.lecture.chapters import chapter_of
from headway.report.law import description

TITLES = {
    "architecture": "Attention, KV cache and parameters", "roofline": "Rooflines", "step": "One step of a model",
    "collectives": "Collectives",
    "queueing": "Queues and closed loops", "serving": "Serving", "training": "Training", "scaling": "Scaling laws",
    "economics": "Cost and prices",
    "tiers": "Memory tiers", "rack": "Racks", "card": "Memory of a card", "calibration": "Calibration", "coupling": "Couplings",
    "sample": "Samples", "arithmetic": "Arithmetic",
}  # fmt: skip


def pages() -> dict[str, str]:
    """A page for each package of laws, a section for each module."""
    made, used = {}, claims_of()
    subjects: dict[str, list[law_index.LawPlace]] = {}
    for place in law_index.places():
        subjects.setdefault(place.package, []).append(place)
    for package in sorted(subjects, key=lambda name: list(TITLES).index(name) if name in TITLES else len(TITLES)):
        title = TITLES.get(package, package.capitalize())
        parts = [f"# {title}", f"{len(subjects[package])} laws, each as its source declares it; `headway law NAME` computes any of them."]
        module = ""
        for place in subjects[package]:
            if place.module != module:
                module = place.module
                parts.append(f"## {module.partition('.')[2].replace('_', ' ').capitalize() or title}")
            parts.append(section(description(law_index.load(place.full_name)), used.get(place.full_name, [])))
        made[f"math/{package}.md"] = "\n\n".join(parts) + "\n"
    return made


def claims_of() -> dict[str, list[str]]:
    """Claims of the lecture that are recomputed by each law, by its full name."""
    used: dict[str, list[str]] = {}
    for claim in computable():
        names: set[str] = set()
        parts = ledger.explain(claim)
        walk(list(parts.values()), names, set())
        for name in names:
            used.setdefault(name, []).append(claim)
    return used


def walk(value: Any, names: set[str], visited: set[int]) -> None:
    """Full names of the laws of a figure's tree."""
    if isinstance(value, tuple | list):
        for item in value:
            walk(item, names, visited)
    elif isinstance(value, Traced) and id(value.step) not in visited:
        visited.add(id(value.step))
        if not value.step.is_operation:
            names.add(f"{value.step.law.module}.{value.step.law.name}")
        walk(list(inputs(value.step).values()), names, visited)


def section(row: dict[str, Any], claim_ids: list[str]) -> str:
    """One law: its sentence, equation, arguments, example, source and the claims that rest on it."""
    unit = f" [{row['unit']}]" if row["unit"] else ""
    takes = ", ".join(f"`{item['argument']}`" + (f" [{item['takes']}]" if item["takes"] else "") for item in row["arguments"])
    lines = [f"### {row['name']}", escaped(row["law"])]
    if row["equation"]:
        lines.append(equation(row["name"], row["equation"]))
    lines.append(f"Result{unit}; takes {takes}.")
    if row["example"]:
        lines.append(f"`{row['example']}` gives {row['example_result']}.")
    lines.append(f"Source: {escaped(row['source'])}.")
    if claim_ids:
        named = ", ".join(f"[{claim}](../lecture/{chapter_of(claim).number}.md)" for claim in claim_ids)
        lines.append(f"Claims of the lecture that it recomputes: {named}.")
    return "\n\n".join(lines)


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return html.escape(text, quote=False).replace("*", "\\*").replace("_", "\\_")
