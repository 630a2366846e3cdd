"""The process that measures an experiment, or that serves: its library has the threads that it was started with."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping
from typing import Any, cast

from headway.reality import threads
from headway.reality.lab import trains
from headway.reality.lab.catalogue import experiment
from headway.reality.lab.clock import REAL
from headway.reality.lab.platform import Platform
from headway.reality.lab.server import TrainServer
from headway.reality.lab.train_setup import TrainSetup

REPORT_S = 0.5  # how often a server says its counts


def job(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a request asks: a calibration, a measurement, or a server."""
    entry = experiment(request["experiment"])
    setup = type(entry.setup).of_document(request["setup"])
    if request["job"] == "measure":
        return entry.code.measure(setup, request["plan"], lambda point: threads.say(part=point))
    if request["job"] == "calibrate":
        return importlib.import_module(entry.module).calibration(setup)
    return serve(cast("TrainSetup", setup), request["port"])


def serve(setup: TrainSetup, port: int) -> dict[str, Any]:
    """Trains over HTTP, on this machine alone, until this process is ended."""
    platform = Platform(setup.limit, setup.every, trains.work(setup, REAL), REAL)
    server = TrainServer(platform=platform, context=setup.context, vocab=setup.shape.vocab)
    listener = server.listen("127.0.0.1", port)
    for work in (listener.serve_forever, server.run):
        threading.Thread(target=work, daemon=True).start()
    threads.say(part={"port": listener.server_address[1]})
    try:
        while not server.stopped.wait(REPORT_S):
            counts = server.counts
            threads.say(part={"requests": counts.requests, "tokens": counts.tokens, "departures": counts.departures})
    except (KeyboardInterrupt, BrokenPipeError):
        server.stopped.set()
    return {}


if __name__ == "__main__":
    threads.answer(job)
