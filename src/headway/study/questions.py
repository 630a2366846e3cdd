"""The question of `sweep`: a file of questions, where the answers go, and who answers."""

from __future__ import annotations

from headway.core.question import Question, field

NO_EDITS = "it under [common] or a question of the file: each question has its own machines and models"


class Sweep(Question):
    """Many questions of a file, answered by processes, by shards or by a Dask cluster, into a Parquet dataset of each verb."""

    verb, answered_by = "sweep", "headway.study.verb"
    example = "sweep study.toml --into study"
    no_page = "it answers a file of questions into a folder; `headway sweep FILE --dry-run` tells what all would take"
    subjects = ("file",)
    edits = ()
    no_edits = NO_EDITS
    progress = "questions answered"
    file = field(kind="file", word="FILE.toml", place="1", help="[[questions]] with their verb, fields and grid; docs/sweep.md")
    into = field(kind="output", word="DIR", help="folder of the answers (default: the name of the file, without .toml, .sweep after it)")
    processes = field(word="N", integer=True, low=1, open_low=False, high=1024, help="processes of this machine (default: one a core)")
    shard = field(kind="word", word="I/N", help="answer every N-th chunk from the I-th on: N such commands on a shared folder do all")
    cluster = field(kind="secret", word="tcp://HOST:PORT", help="scheduler of a Dask cluster whose workers answer")
    chunk = field("s", help="time that one chunk should take (default 4 s)", rare=True)
    dry_run = field(kind="switch", help="time a few questions, print what all would take, and stop", default=False)

    def idle(self) -> dict[str, str]:
        """Processes of this machine, where a cluster answers."""
        return {"processes": "no --cluster beside it: its workers answer"} if self.cluster else {}
