"""One subject a file: at most 600 lines, functions of at most 60 lines of code; a short private function needs a second user."""

from __future__ import annotations

import ast

from support.source import files, module_name, text_of, tree_of

MOST_LINES = 600  # of a file
MOST_FUNCTION_LINES = 60  # of code


def test_files__are_short() -> None:
    lengths = {module_name(path): len(text_of(path).splitlines()) for path in files()}
    too_long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES}
    assert too_long == {}, f"move a subject into a file of its own: at most {MOST_LINES} lines a file"


def test_functions__are_short() -> None:
    offenders = []
    for path in files():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                lines = node.end_lineno - node.lineno + 1
                offenders += [f"{module_name(path)}.{node.name}: {lines} lines"] if lines > MOST_FUNCTION_LINES else []
    assert offenders == [], f"give a step of it a function and a name: at most {MOST_FUNCTION_LINES} lines a function"
