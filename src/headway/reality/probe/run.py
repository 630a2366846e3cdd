"""A probe as it runs: every request reserved in the budget before it is sent, the first fault of the server the end of it.

The requests run in a thread of their own, so that a notebook's loop is due alone and Ctrl-C keeps what was measured.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headway.core.errors import HeadwayError, clip, printable
from headway.core.progress import expect, tick
from headway.reality.probe.budget import Limits, Spending
from headway.reality.probe.http import ProbeFault, ProbeTarget
from headway.reality.probe.metrics import ServerLoad, server_load, server_models
from headway.reality.probe.prompts import Prompts
from headway.reality.probe.schedule import LOAD, SPARSE, UNEVEN, WARM_UP, ProbeStage
from headway.reality.probe.stream import CHAT, SPARE, Protocol, StreamedRequest, streamed

MOST_RETRIES, MOST_RETRY_S = 2, 30.0  # of a server that limits its load, in the whole probe
SPARSE_PAUSE = 1.5  # mean pause between sparse requests, in times of one
POLL_S = 0.5  # between looks at the server's own counts
GRACE_S = 2.0  # that the thread may take to close its connections


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRun:
    """A stage as it went; `loads` are the server's own counts meanwhile."""

    stage: ProbeStage
    requests: tuple[StreamedRequest, ...]
    seconds: float
    failed: int = 0
    loads: tuple[ServerLoad, ...] = ()


@dataclass(slots=True, kw_only=True)
class ProbeRun:
    """What was measured so far, and why it ended."""

    protocol: Protocol = field(default_factory=Protocol)
    models: list[str] = field(default_factory=list)
    stages: list[StageRun] = field(default_factory=list)
    before: ServerLoad | None = None
    fault: str = ""  # of the server, which ended the probe
    stopped: str = ""  # why it ended before its schedule
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    def of_kind(self, kind: str) -> list[StageRun]:
        """Its stages of a kind that hold a request."""
        return [run for run in self.stages if run.stage.kind == kind and run.requests]


class _Stop(Exception):
    """The probe ends here, for this reason."""


class _Pause(Exception):
    """The server asks all to wait so many seconds; the stage is begun anew."""


class _Probe:
    """One probe on its loop."""

    def __init__(self, target: ProbeTarget, plan: Sequence[ProbeStage], spending: Spending, seed: int, result: ProbeRun) -> None:
        self.target, self.plan, self.spending, self.result = target, plan, spending, result
        self.prompts, self.draw = Prompts(seed), random.Random(seed + 1)
        self.retries = MOST_RETRIES
        self.fixed = bool(result.protocol.model)

    async def run(self) -> None:
        """Every stage in turn."""
        result = self.result
        try:
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + self.spending.deadline - self.spending.start):
                await self._look()
                for stage in self.plan:
                    await self._until_done(stage)
        except ProbeFault as fault:
            result.fault = f"the server {fault}"
        except TimeoutError:
            result.stopped = f"--budget of {self.spending.most.seconds:g} s is spent"
        except _Stop as reason:
            result.stopped = str(reason)
        except asyncio.CancelledError:
            result.interrupted = True

    async def _look(self) -> None:
        """What the server says of itself before it is asked anything."""
        result = self.result
        result.before = await server_load(self.target)
        try:
            result.models = await server_models(self.target)
        except ProbeFault as fault:
            if fault.status in (0, 401, 403) or 300 <= fault.status < 400 or (fault.status == 200 and not self.fixed):
                raise
        if not self.fixed and result.models:
            result.protocol = replace(result.protocol, model=result.models[0])

    def _may_begin(self, stage: ProbeStage) -> None:
        """Raise _Stop where the rest of the budget does not hold a stage, or by the last of its length likely not its time."""
        lacking = self.spending.lacks(stage.most_in, stage.output, stage.requests)
        before = [run.seconds for run in self.result.stages if run.stage.kind == stage.kind and run.stage.prompt == stage.prompt]
        if not lacking and before and self.spending.seconds + 1.1 * before[-1] > self.spending.most.seconds:
            lacking = "--budget"
        if lacking:
            about = f"{stage.concurrency} at once with prompts of {stage.prompt} tokens"
            raise _Stop(f"the rest of {lacking} does not hold the next stage, {about}")

    async def _until_done(self, stage: ProbeStage) -> None:
        """A stage, anew after each wait that the server asks for: what a load measures while some of it waits is no load's."""
        while True:
            self._may_begin(stage)
            try:
                return await self._stage(stage)
            except _Pause as pause:
                await asyncio.sleep(pause.args[0])

    async def _stage(self, stage: ProbeStage) -> None:
        """Users who each send a request when the last is answered; whatever ends it, its answers are kept."""
        answered, loads, clock = list[StreamedRequest](), list[ServerLoad](), asyncio.get_running_loop().time
        due, begin = stage.requests, clock()
        expect(stage.requests)

        async def user() -> None:
            nonlocal due
            while due > 0:
                due -= 1
                answered.append(await self._send(stage))
                tick(1)
                if stage.kind == SPARSE:
                    await asyncio.sleep(self.draw.expovariate(1 / (SPARSE_PAUSE * answered[-1].e2e_s)))

        async def look() -> None:
            while self.result.before is not None:
                load = await server_load(self.target)
                if load is not None:
                    loads.append(load)
                await asyncio.sleep(POLL_S)

        tasks = [asyncio.create_task(user()) for _ in range(stage.concurrency)]
        watcher = asyncio.create_task(look())
        is_kept = True
        try:
            await asyncio.gather(*tasks)
        except _Pause:
            is_kept = False
            raise
        finally:
            for task in (*tasks, watcher):
                task.cancel()
            await asyncio.gather(*tasks, watcher, return_exceptions=True)
            failed = sum(not task.cancelled() and isinstance(task.exception(), ProbeFault) for task in tasks)
            run = StageRun(stage=stage, requests=tuple(answered), seconds=clock() - begin, failed=failed, loads=tuple(loads))
            self.result.stages += [run] * is_kept

    async def _send(self, stage: ProbeStage) -> StreamedRequest:
        """One request within the budget; a server that limits its load is waited for, as it says and seldom."""
        output = round(stage.output * (1 + (stage.kind == LOAD) * self.draw.uniform(-UNEVEN, UNEVEN)))
        while True:
            text = self.prompts.text(self.prompts.words(stage.prompt))
            most = self.prompts.most_tokens(text)
            reserved = output + SPARE
            lacking = self.spending.lacks(most, reserved)
            if lacking:
                raise _Stop(f"{lacking} is spent")
            self.spending.reserve(most, reserved)
            try:
                answer = await streamed(self.target, self.result.protocol, text, output, is_warm_up=stage.kind == WARM_UP)
            except ProbeFault as fault:
                if not self._may_again(fault, stage):
                    raise
                continue
            if answer.prompt_tokens is not None and answer.prompt_tokens > most:
                raise ProbeFault(f"counts {answer.prompt_tokens:,} tokens in a prompt of {len(text.encode()):,} bytes")
            if answer.prompt_tokens:
                self.prompts.learn(text, answer.prompt_tokens)
            self.spending.settle(most - (answer.prompt_tokens or most), reserved - answer.output_tokens)
            return answer

    def _may_again(self, fault: ProbeFault, stage: ProbeStage) -> bool:
        """Whether a request may be put in another way, while the first ones show what the server takes; _Pause for a wait."""
        if fault.retry_s is not None and self.retries and fault.retry_s <= MOST_RETRY_S:
            self.retries -= 1
            self.result.notes.append(f"the server {fault}; probe waited for it, and began the stage anew")
            raise _Pause(fault.retry_s)
        protocol = self.result.protocol
        if stage.kind != WARM_UP:
            return False
        if fault.status in (404, 405) and protocol.path != CHAT:
            self.result.protocol = replace(protocol, path=CHAT)
            return True
        less = protocol.less(str(fault)) if fault.status in (400, 422) else None
        self.result.protocol = less or protocol
        return less is not None


def run(target: ProbeTarget, plan: Sequence[ProbeStage], most: Limits, seed: int, model: str = "") -> tuple[ProbeRun, Spending]:
    """Run a schedule; what was measured, whatever ended it, and what was spent."""
    result, spending = ProbeRun(protocol=Protocol(model=model)), Spending(most)
    probe, faults = _Probe(target, plan, spending, seed, result), list[BaseException]()
    loop = asyncio.new_event_loop()
    task = loop.create_task(probe.run())

    def work() -> None:
        try:
            loop.run_until_complete(task)
        except BaseException as error:
            faults.append(error)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        while thread.is_alive() and spending.seconds < most.seconds + GRACE_S:
            thread.join(0.1)
    except KeyboardInterrupt:
        result.interrupted = True
        with contextlib.suppress(KeyboardInterrupt, RuntimeError):  # a second one; the loop may be closed by now
            loop.call_soon_threadsafe(task.cancel)
            thread.join(GRACE_S)
    if faults and not isinstance(faults[0], asyncio.CancelledError):
        raise faults[0] if isinstance(faults[0], HeadwayError) else HeadwayError(f"probe: {printable(clip(faults[0]))}") from faults[0]
    return result, spending
