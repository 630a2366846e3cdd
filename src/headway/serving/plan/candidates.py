"""Compiled layouts of a search as arrays: what does not depend on the load, and which of them fit."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from headway.core.progress import tick
from headway.laws.queueing.loop import Loop
from headway.laws.step.memory import fits_chips, fits_hbm, kv_bytes_chip, rank_sequence_limit, resident_sequences, sequence_bytes
from headway.laws.step.step import step_s
from headway.performance import request as request_laws
from headway.performance.compile import StepModel, compile_layout
from headway.performance.estimate import requests_of, server_of
from headway.performance.formats import Formats
from headway.performance.layout import Layout
from headway.performance.request import NO_WORK, SINGLE, Requests, Server, prefilled
from headway.serving.serve_request import ServeRequest, case_of

UNTOUCHED = 31 << 17  # doubles; C's allocator keeps freed arrays up to the largest ever freed, and gives the others' pages back each time


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Compiled layouts of one model on one machine in one set of formats: all that does not depend on the load."""

    query: ServeRequest
    layout: Layout  # arrays (n, 1)
    count: int
    compiled: StepModel
    server: Server
    requests: Requests
    loop: Loop
    ttft: Any  # of a request alone
    prefill: Any  # of a step in which every rank prefills a prompt
    sequence: Any  # bytes of one sequence on the fullest chip
    usable: Any
    limit: Any  # most sequences of one rank, all pipeline stages together

    def rows(self, keep: Any) -> Candidates:
        """The candidates at the indices `keep`."""
        keys = ("layout", "compiled", "server", "loop", "ttft", "prefill", "sequence", "limit")
        return replace(self, **{key: _rows(getattr(self, key), keep, self.count) for key in keys}, count=len(keep))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """A replica at a load, as arrays: requests in service, times of a request, and requests per second."""

    served: Any
    ttft: Any
    tpot: Any
    decode: Any  # TPOT of decode steps alone
    rate: Any


def _rows(value: Any, keep: Any, count: int) -> Any:
    if isinstance(value, np.ndarray):
        return value[keep] if value.ndim == 2 and value.shape[0] == count else value
    if is_dataclass(value) and not isinstance(value, type | Formats):
        return replace(value, **{field.name: _rows(getattr(value, field.name), keep, count) for field in fields(value)})
    return tuple(_rows(item, keep, count) for item in value) if isinstance(value, tuple) else value


def compile_candidates(query: ServeRequest, layout: Layout, count: int) -> Candidates:
    """The compiled candidates of `count` layouts."""
    tick(count)
    np.empty(UNTOUCHED)
    compiled = compile_layout(query.work, query.system, layout, query.assumptions, query.formats, prompt=query.load.prompt)
    case = case_of(query, layout, query.load)
    server, requests = server_of(case, compiled), requests_of(case)
    tokens, pairs = prefilled(query.load.prompt, query.assumptions.hit_rate)
    busy = step_s(compiled.step, NO_WORK, NO_WORK, tokens * layout.dp, pairs * layout.dp)
    sequence_size = sequence_bytes(compiled.stores, compiled.state_bytes, query.load.prompt + query.load.output)
    usable = query.system.chip.need("hbm") * query.assumptions.hbm_utilization
    return Candidates(
        query=query,
        layout=layout,
        count=count,
        compiled=compiled,
        server=server,
        requests=requests,
        loop=request_laws.loop_of(server, requests, SINGLE),
        ttft=request_laws.unloaded_ttft_s(server, requests, step_s),
        prefill=busy,
        sequence=sequence_size,
        usable=usable,
        limit=rank_sequence_limit(usable, compiled.weights_bytes, sequence_size, compiled.stage, layout.cp),
    )


def fits(w: Candidates, batch: Any) -> Any:
    """Whether weights and the KV cache of `batch` sequences fit in HBM, and the machine has the chips."""
    layout = w.layout
    kv = kv_bytes_chip(resident_sequences(batch, layout.dp), w.sequence, w.compiled.stage, layout.cp)
    chips = fits_chips(w.compiled.chips * layout.replicas, w.query.system.chips)
    return fits_hbm(w.compiled.weights_bytes, kv, w.usable) & chips
