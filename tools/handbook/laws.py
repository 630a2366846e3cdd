"""The math: a page for each subject of laws, with the equation, units, example and source that each law declares."""

from __future__ import annotations

import html
from typing import Any

from mathml import equation

from headway.core import law_index
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
    made = {}
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
            parts.append(section(description(law_index.load(place.full_name))))
        made[f"math/{package}.md"] = "\n\n".join(parts) + "\n"
    return made


def section(row: dict[str, Any]) -> str:
    """One law: its sentence, equation, arguments, example and source."""
    unit = f" [{row['unit']}]" if row["unit"] else ""
    takes = ", ".join(f"`{item['argument']}`" + (f" [{item['takes']}]" if item["takes"] else "") for item in row["arguments"])
    lines = [f"### {row['name']}", escaped(row["law"])]
    if row["equation"]:
        lines.append(equation(row["name"], row["equation"]))
    lines.append(f"Result{unit}; takes {takes}.")
    if row["example"]:
        lines.append(f"`{row['example']}` gives {row['example_result']}.")
    lines.append(f"Source: {escaped(row['source'])}.")
    return "\n\n".join(lines)


def escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return html.escape(text, quote=False).replace("*", "\\*").replace("_", "\\_")
