"""JSON Schema of questions and answers: what pages, assistants and question files read."""

from __future__ import annotations

from typing import Any

from headway.core.question import Question, QuestionField

DRAFT = "https://json-schema.org/draft/2020-12/schema"
NUMBER = ("number", "count", "lengths")  # kinds whose texts may be plain numbers
TEXT: dict[str, Any] = {"type": "string"}


def of_question(question: type[Question]) -> dict[str, Any]:
    """Schema of a question as a file holds it: its verb, and each of its fields as text, number, list or switch."""
    flags = {name: flag for name, flag in question.flags().items() if flag.field.kind != "object"}
    properties = {"verb": {"const": question.verb, "description": "what is asked"}}
    return {
        "$schema": DRAFT, "title": f"headway {question.verb}", "description": question.__doc__ or "", "type": "object",
        "properties": properties | {name: any_of(flag) for name, flag in flags.items()},
        "required": ["verb", *(name for name, flag in flags.items() if flag.is_required)], "additionalProperties": False,
    }  # fmt: skip


def any_of(flag: QuestionField) -> dict[str, Any]:
    """Schema of a field that takes one value or a list of them."""
    schema = property_of(flag)
    if flag.field.is_switch:
        return schema
    about = {key: schema[key] for key in ("description", "unit") if key in schema}
    item = {key: value for key, value in schema.items() if key not in about}
    item = {"anyOf": [item, TEXT]} if "enum" in item else item  # a list of choices with commas is a text too
    if flag.is_list and item.get("type") == "array":
        item = item["items"]
    mapping = [{"type": "object"}] if flag.field.kind in ("edit", "pairs", "text", "secret") else []
    return {**about, "anyOf": [item, {"type": "array", "items": item, "minItems": 1}, *mapping]}


def property_of(flag: QuestionField) -> dict[str, Any]:
    """Schema of a field with one value; of one that may be repeated, with a list."""
    field, about = flag.field, {"description": flag.field.help} | ({"unit": flag.field.unit} if flag.field.unit else {})
    if field.is_switch:
        return {"type": "boolean", **about}
    text: dict[str, Any] = {"type": ["string", "number"] if field.is_number or field.kind in NUMBER else "string"}
    if field.choices:
        text["enum"] = [choice for choice in field.choices if choice]
    if field.truths:
        text = {"type": ["string", "boolean"], "enum": [*text["enum"], True, False]}
    return {"type": "array", "items": text, **about} if flag.is_list else text | about


def of_answer(verb: str) -> dict[str, Any]:
    """Schema of what `-o json` writes: the same of every verb; the columns of its rows are in `columns`."""
    texts = {"type": "array", "items": TEXT}
    column = {"type": "object", "properties": {"unit": TEXT, "doc": TEXT}, "required": ["unit", "doc"], "additionalProperties": False}
    change = {"type": "object", "properties": {"change": TEXT, "effect": TEXT, "gain": {"type": ["number", "null"]}}}
    properties = {
        "headway": {**TEXT, "description": "version"},
        "command": {**texts, "description": "what was asked, word by word"},
        "answer": {**TEXT, "description": "one sentence"},
        "binds": {"type": ["string", "null"], "description": "what limits the answer"},
        "helps": {"type": "array", "items": change | {"required": ["change", "effect"]}, "description": "what would help, the best first"},
        "launch": {**texts, "description": "command lines that realise it"},
        "checked": {"type": ["object", "null"], "description": "what was simulated to check it, and the verdict"},
        "columns": {"type": "object", "additionalProperties": column, "description": "unit and meaning of each column"},
        "facts": {"type": "object", "description": "files of the user's that moved it: calibration profiles, each with its hash"},
        "rows": {"type": "array", "items": {"type": "object"}, "description": "values in SI; null where one does not apply"},
        "notes": {**texts, "description": "what was assumed"},
        "explain": {"type": "object", "description": "trees of equations by column, where --explain asks"},
    }  # fmt: skip
    required = [name for name in properties if name not in ("facts", "explain")]
    return {"$schema": DRAFT, "title": f"answer of headway {verb}", "type": "object", "properties": properties, "required": required,
            "additionalProperties": False}  # fmt: skip
