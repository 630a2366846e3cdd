"""Work in a process of its own, whose numerical libraries have a stated number of threads: they read it when they load, never later."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import IO, Any

from headway.core.errors import HeadwayError
from headway.core.progress import expect, tell, tick, watched

# OpenBLAS, OpenMP (torch, MKL and others by it), MKL, Accelerate, BLIS
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS")


def environment(threads: int, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a process whose libraries have so many threads, and which finds the same packages.

    >>> environment(3, {"HOME": "/root"})["OPENBLAS_NUM_THREADS"]
    '3'
    """
    search_path = os.pathsep.join(path for path in sys.path if path)
    return {**base, **dict.fromkeys(VARIABLES, str(threads)), "PYTHONPATH": search_path, "PYTHONIOENCODING": "utf-8"}


def in_child(module: str, request: Mapping[str, Any], threads: int, hear: Callable[[Any], None] = lambda part: None) -> dict[str, Any]:
    """What `module`, run as a program that calls `answer`, makes of a request; its progress is this process's.

    `hear` is told of each part of the answer that the program says before its end.
    """
    command = [sys.executable, "-m", module]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(threads), text=True, encoding="utf-8") as child:
        try:
            stdin, stdout, stderr = child.stdin, child.stdout, child.stderr
            if stdin is None or stdout is None or stderr is None:
                raise HeadwayError(f"{module}: no pipes to its process")
            stdin.write(json.dumps(request))
            stdin.close()
            result = _listen(stdout, hear)
            words = stderr.read().strip().splitlines()
        except BaseException:
            child.terminate()
            raise
    if result is None:
        raise HeadwayError(words[-1] if words else f"{module}: its process ended without an answer (status {child.returncode})")
    return result


def _listen(lines: IO[str], hear: Callable[[Any], None]) -> dict[str, Any] | None:
    """The answer among a child's lines, once the child has ended; its progress is passed on."""
    result = None
    for line in lines:
        message = json.loads(line)
        tick(message.get("tick", 0))
        expect(message.get("expect", 0))
        if "tell" in message:
            tell(message["tell"])
        if "part" in message:
            hear(message["part"])
        result = message.get("result", result)
    return result


def say(**message: Any) -> None:
    """The child's side: a line of JSON to whoever waits; `part` is a part of the answer."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def answer(job: Any) -> None:
    """The child's side: a request read, `job` called with it, its answer and its progress written as lines of JSON."""
    request = json.loads(sys.stdin.read())
    try:
        with watched(lambda count, announced: say(tick=count, expect=announced), lambda text: say(tell=text)):
            result = job(request)
    except HeadwayError as error:
        sys.exit(str(error))
    say(result=result)
