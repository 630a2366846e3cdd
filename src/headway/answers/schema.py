"""`headway schema VERB`: the JSON Schema of its questions and answers."""

from __future__ import annotations

import json

from headway.answers.questions import SchemaOf
from headway.core.listing import Listing
from headway.core.question import question_of
from headway.core.question_schema import of_answer, of_question
from headway.report import output


def run(args: SchemaOf) -> output.Answer:
    """Answer with one document, which pages, assistants and editors read."""
    question = question_of(args.of)
    document = {"question": of_question(question), "answer": of_answer(args.of)}
    rows = [{"field": name, "about": flag.field.help, "unit": flag.field.unit} for name, flag in question.flags().items()]
    headline = f"{len(rows)} fields of a question of `{args.of}`; -o json prints their JSON Schema."
    return output.Answer(Listing(rows), output.Summary(headline), document=json.dumps(document, indent=2) + "\n")
