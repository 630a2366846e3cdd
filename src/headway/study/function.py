"""`headway.sweep(...)`: the verb as a function of Python, whose result reads the answers from their folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.core.errors import MissingExtra, UnknownName
from headway.core.question import Question, refuse_idle
from headway.core.table import from_rows
from headway.report.output import Answer
from headway.report.result import Result
from headway.study import file, store, verb
from headway.study.questions import Sweep

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

QuestionLike = Mapping[str, Any] | Question


class SweepResult(Result):
    """What a sweep came to: its own rows count, by verb; `to_arrow`, `to_pandas` and `to_polars` read the answers of one verb or of all."""

    def __init__(self, answer: Answer, command: Sequence[str], folder: Path) -> None:
        super().__init__(answer, command)
        self.folder = folder

    @property
    def status(self) -> int:
        """Exit status of the command: 3 where questions have no answer."""
        return self._answer.status

    def answers(self, verb: str = "") -> Result:
        """The rows of a verb, or of all, as a result of their own: `where`, `sort`, `plot(picture="batch,tpot_s")`."""
        return Result(Answer(from_rows(self.to_arrow(verb).to_pylist())), self.command)

    def to_arrow(self, verb: str = "") -> pyarrow.Table:
        """Rows of a verb, in the order of the questions; without one those of all, a column `verb` first."""
        verbs = [row["verb"] for row in self]
        if verb and verb not in verbs:
            raise UnknownName("verb of this sweep", verb, verbs, "one of " + ", ".join(verbs))
        return store.table({name: sorted((self.folder / name).glob(f"*{store.SUFFIX}")) for name in verbs if verb in ("", name)}, not verb)

    def to_pandas(self, verb: str = "") -> pandas.DataFrame:
        """A data frame of pandas."""
        try:
            import pandas  # noqa: F401 -- pyarrow needs it, and would say so in words of its own
        except ImportError:
            raise MissingExtra("to_pandas()", "frames") from None
        return self.to_arrow(verb).to_pandas()

    def to_polars(self, verb: str = "") -> polars.DataFrame:
        """A data frame of polars."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("to_polars()", "frames") from None
        return polars.DataFrame(self.to_arrow(verb))


def sweep(
    questions: str | os.PathLike[str] | Sequence[QuestionLike], *, into: str | os.PathLike[str] | None = None, processes: int | None = None,
    shard: str | None = None, cluster: str | None = None, chunk: float | str | None = None, dry_run: bool = False,
) -> SweepResult:  # fmt: skip
    """Many questions: a file, as `headway sweep study.toml` reads it, or mappings such as `{"verb": "plan", "model": ..., "on": ...}`.

    `into` is the folder of the answers, which a second call with the same questions goes on with; a list without one has a new folder.
    """
    is_file = isinstance(questions, str | os.PathLike)
    study = file.read(os.fspath(questions)) if is_file else file.of_list(list(questions))
    folder = into if into is not None or is_file else tempfile.mkdtemp(prefix="headway-sweep-")
    values = {"processes": processes, "shard": shard, "cluster": cluster, "chunk": chunk, "dry_run": dry_run}
    args = Sweep.from_values({"file": os.fspath(questions) if is_file else study.name, "into": folder} | values)
    refuse_idle(args)
    return SweepResult(verb.answer(study, args), ["headway", *args.command()], verb.folder_of(study, args))
