"""The workers of a Dask cluster as an executor: no graph, one task a chunk. The cluster runs already; nothing here starts one."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from headway.core.errors import BadValue, HeadwayError, MissingExtra
from headway.core.progress import tell
from headway.report.words import number_of
from headway.study import manifest, worker
from headway.study.run import Workers

CONNECT_S = 15


def workers(address: str) -> Workers:
    """Workers of the cluster whose scheduler has this address; HeadwayError where none answers, or one is another headway."""
    try:
        import distributed
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise MissingExtra("--cluster", "cluster") from None
    if not re.fullmatch(r"\w+://\S+:\d+", address):
        raise BadValue("--cluster", address, "the address that `dask scheduler` prints, such as tcp://10.0.0.5:8786")
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # one line says it when the cluster has gone
    place = f"the cluster at {address}"
    try:
        client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise HeadwayError(f"--cluster {address}: no scheduler answers there ({str(error)[:80]}); start one: dask scheduler") from None
    count = _check(client, place)
    tell(f"dashboard: {client.dashboard_link}")

    @contextmanager
    def open_executor() -> Iterator[Executor]:
        with client.get_executor(pure=False, retries=0) as executor:
            yield executor

    return Workers(open_executor, count, f"{number_of(count, 'worker')} of {place}", (KilledWorker,), client.close)


def _check(client: object, place: str) -> int:
    """Turns that the workers offer; HeadwayError where a worker lacks headway or has another one."""
    try:
        builds = client.run(manifest.build)  # type: ignore[attr-defined]
    except Exception as error:
        raise HeadwayError(f"{place}: a worker cannot run headway ({' '.join(str(error).split())[:160]}); install it there") from None
    if not builds:
        raise HeadwayError(f"{place} has no worker; start some: dask worker {place.rpartition(' ')[2]}")
    for name, build in builds.items():
        if build != manifest.build():
            raise worker.WrongWorker(f"worker {name} has {build}, this command {manifest.build()}: install the same on both")
    return len(builds)
