"""`headway sweep FILE.toml`: the questions of a file into a folder, by whoever is to answer them."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from headway.core import schema
from headway.core.cores import cores
from headway.core.errors import INTERRUPTED, BadValue
from headway.core.progress import tell
from headway.report import output
from headway.study import check, columns, file, lock, manifest, pool
from headway.study.file import Study
from headway.study.lock import Shard
from headway.study.questions import Sweep
from headway.study.run import Workers
from headway.study.sweeping import Sweeping
from headway.study.travel import luggage


def run(args: Sweep) -> output.Answer:
    """Answer with a row for each verb of the file."""
    return answer(file.read(args.file), args)


def answer(study: Study, args: Sweep) -> output.Answer:
    """Answer a study into its folder."""
    columns.arrow()
    shard, chunk_s = _shard(args), None if args.chunk is None else float(_number(args, "chunk"))
    folder, files = folder_of(study, args), check.checked(study)
    record = manifest.read(folder)
    if record is not None:
        manifest.check(folder, record, study.digest, files)
    with _workers(args) as workers:
        bags = luggage(files) if args.cluster else None
        sweeping = Sweeping(study=study, folder=folder, shard=shard, workers=workers, files=files, luggage=bags, chunk_s=chunk_s)
        if args.dry_run:
            return sweeping.dry_answer(record or sweeping.planned())
        with lock.hold(folder, shard):
            record = sweeping.begun()
            tell(sweeping.estimate(record))
            try:
                sweeping.run(record)
            except KeyboardInterrupt:
                return sweeping.report(record, status=INTERRUPTED)
            return sweeping.finished(record)


def folder_of(study: Study, args: Sweep) -> Path:
    """Where the answers go."""
    return Path(args.into or f"{study.name}.sweep")


def _number(args: Sweep, name: str) -> float:
    return schema.scalar(str(getattr(args, name)), args.flags()[name].field, schema.flag(name))


def _shard(args: Sweep) -> Shard:
    """The share of --shard."""
    if args.shard is None:
        return lock.ALL
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", args.shard)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise BadValue("--shard", args.shard, "I/N with I from 1 to N, such as 1/2")
    return Shard(int(match[1]), int(match[2]))


def _workers(args: Sweep) -> Workers:
    """Processes of this machine, or the workers of a cluster."""
    if args.cluster:
        from headway.study import dask_cluster

        return dask_cluster.workers(args.cluster)
    count = int(_number(args, "processes")) if args.processes is not None else cores()
    return Workers(functools.partial(pool.processes, count), count, "1 process" if count == 1 else f"{count} processes")
