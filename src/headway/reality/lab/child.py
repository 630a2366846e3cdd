"""The process that measures an experiment, or that serves: its library has the threads that it was started with."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from headway.reality import threads
from headway.reality.lab import trains
from headway.reality.lab.catalogue import experiment
from headway.reality.lab.clock import REAL
from headway.reality.lab.experiment import LabSetup
from headway.reality.lab.platform import Platform
from headway.reality.lab.server import TrainServer
from headway.reality.lab.shape import LabShape

REPORT_S = 0.5  # how often a server says its counts


def job(request: Mapping[str, Any]) -> dict[str, Any]:
    """What a request asks: a calibration, a measurement, or a server."""
    setup = LabSetup(**{**request["setup"], "shape": LabShape(**request["setup"]["shape"])})
    if request["job"] == "measure":
        return experiment(request["experiment"]).code.measure(setup, request["plan"], lambda point: threads.say(part=point))
    return trains.sleeps(setup) if request["job"] == "sleeps" else serve(setup, request["port"])


def serve(setup: LabSetup, port: int) -> dict[str, Any]:
    """Trains over HTTP, on this machine alone, until this process is ended."""
    platform = Platform(setup.limit, setup.interval, trains.work(setup, REAL), REAL)
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
