"""One guard for every file that a user names: nothing else in the package opens, reads or decodes one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.source import files, module_name, tree_of

GUARD = "core.user_file"
READERS = {
    "open", "read_text", "read_bytes", "read_parquet", "fdopen", "loadtxt", "genfromtxt", "fromfile", "memmap",
    "getlines", "FileIO", "GzipFile",
}  # fmt: skip
LOADERS = {("json", "load"), ("tomllib", "load"), ("pickle", "load"), ("np", "load"), ("csv", "DictReader"), ("yaml", "load"),
           ("parquet", "read_table"), ("pd", "read_csv")}  # fmt: skip
# Places that read what ships with the package, what this process itself wrote, or a stream that is no file; each with the reason.
EXCUSED = {
    "core.files": "a draft, opened to write",
    "core.law_index": "the package's own source",
    "simulation.compiled": "the package's own source, for a digest",
    "performance.nearest": "DictReader of a text that ships",
    "evidence.serving.class_means": "DictReader of a text that ships",
    "evidence.claims.claim": "data/claims",
    "evidence.lecture.chapters": "data/lecture",
    "evidence.kernels.rows": "pyarrow decodes bytes that the guard read",
    "economics.sheets.table": "DictReader of a text that the guard read",
    "core.catalog": "a table that ships",
    "web.app": "pages that ship", "core.code_store": "code that this program kept, in a folder nobody else writes",
    "web.server": "webbrowser.open", "web.worker": "the null device of a worker",
    "cli.main": "the null device, when the reader of the output has gone",
    "answers.new": "a new file, opened to write", "study.lock": "a new file, opened to write",
    "core.cores": "files of the system, which nobody names",
}  # fmt: skip


def calls(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Line, function and what precedes it of every call that may read a file, texts of the package's data apart."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        is_reader = name in READERS or (owner, name) in LOADERS
        if is_reader and "files('headway')" not in owner:
            yield node.lineno, name, owner


def test_package__reads_files_of_users_through_the_guard_alone() -> None:
    offenders = [
        f"{module_name(path)}:{line} {owner}.{name}"
        for path in files()
        if module_name(path) not in {GUARD, *EXCUSED}
        for line, name, owner in calls(tree_of(path))
    ]
    assert offenders == [], "read it with core/user_file.py, which refuses devices, pipes and files too large"


def test_excuses__are_needed() -> None:
    found = {module_name(path) for path in files() if any(calls(tree_of(path)))}
    assert set(EXCUSED) - found == set()
