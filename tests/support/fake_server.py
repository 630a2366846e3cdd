"""A server of OpenAI's protocol on this machine: well-behaved, with a stated step law, or hostile in one of many ways.

It counts what it was asked and what it sent, so that a test need not believe the client.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
KEY = "sk-very-secret-0123456789"  # that tests send, and that a hostile server repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def tokens(self) -> int:
        """Tokens of its prompt: words, and one that no word is."""
        text = self.body.get("prompt") or self.body.get("messages", [{}])[0].get("content", "")
        return len(text.split()) + 1

    @property
    def wants(self) -> int:
        """Tokens that it wants."""
        return int(self.body.get("max_tokens") or self.body.get("max_completion_tokens", 16))


@dataclass(slots=True, eq=False)
class Rider:
    """A request in service."""

    asked: Asked
    writer: asyncio.StreamWriter
    sent: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLaw:
    """Seconds of a step: fixed, of each request, of each token of context, of each token of a prompt that boards."""

    fixed: float = 0.004
    request: float = 0.0
    token: float = 0.0
    prefill: float = 0.0


Behaviour = Callable[["FakeServer", Asked, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True, kw_only=True, eq=False)
class FakeServer:
    """A server of its own thread. `behaviour` answers POSTs; without one they ride on steps of `law`, at most `seats` at once."""

    law: StepLaw = field(default_factory=StepLaw)
    seats: int = 1000
    interval: float = 0.0  # between departures; 0: a step begins when the last has ended
    behaviour: Behaviour | None = None
    metrics: bool = False
    usage: bool = True
    models: list[Any] = field(default_factory=lambda: ["fake-model"])
    requests: int = 0  # that were to generate
    tokens_in: int = 0
    tokens_out: int = 0
    last: float = 0.0  # moment at which something was asked or sent
    begin: float = 0.0
    seen: list[Asked] = field(default_factory=list)
    url: str = ""
    waiting: list[Rider] = field(default_factory=list)
    riders: list[Rider] = field(default_factory=list)
    close: Callable[[], None] = lambda: None  # stops listening

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        """Listen until it is stopped."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self.close, engine = server.close, asyncio.create_task(self._engine())
        ready.set()
        await stop.wait()
        engine.cancel()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split()
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
            asked = Asked(method=method, path=path, headers=headers, body=body)
            self.seen.append(asked)
            self.last, self.begin = asyncio.get_running_loop().time(), self.begin or asyncio.get_running_loop().time()
            await self._answer(asked, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "GET":
            if asked.path == "/v1/models":
                writer.write(whole({"data": [{"id": name} for name in self.models]}))
            elif asked.path == "/metrics" and self.metrics:
                text = f'vllm:num_requests_running{{m="x"}} {len(self.riders)}\nvllm:num_requests_waiting {len(self.waiting)}\n'
                writer.write(whole(text.encode(), kind="text/plain"))
            else:
                writer.write(whole({"error": "nothing here"}, status="404 Not Found"))
            return
        self.requests += 1
        self.tokens_in += asked.tokens
        if self.behaviour is not None:
            await self.behaviour(self, asked, writer)
            return
        rider = Rider(asked, writer)
        writer.write(HEAD)
        self.waiting.append(rider)
        await rider.ended.wait()

    async def _engine(self) -> None:
        """Steps, one after another or one an interval."""
        clock = asyncio.get_running_loop().time
        departure = end = clock()
        while True:
            departure = max(departure + self.interval, end)
            await asyncio.sleep(max(departure - clock(), 0))
            boarding = self.waiting[: self.seats - len(self.riders)]
            del self.waiting[: len(boarding)]
            self.riders += boarding
            if not self.riders:
                await asyncio.sleep(0 if self.interval else 0.001)
                end = departure if self.interval else clock()
                continue
            context = sum(rider.asked.tokens + rider.sent for rider in self.riders)
            prompts = sum(rider.asked.tokens for rider in boarding)
            law = self.law
            end = departure + law.fixed + law.request * len(self.riders) + law.token * context + law.prefill * prompts
            await asyncio.sleep(max(end - clock(), 0))
            for rider in self.riders:
                self._token(rider)
            self.riders = [rider for rider in self.riders if not rider.ended.is_set()]

    def _token(self, rider: Rider) -> None:
        rider.sent += 1
        rider.writer.write(self.event(" tok"))
        if rider.writer.is_closing():
            rider.ended.set()
        elif rider.sent >= rider.asked.wants:
            counts = {"prompt_tokens": rider.asked.tokens, "completion_tokens": rider.sent}
            rider.writer.write(event(finish=True, usage=counts if self.usage else None) + b"data: [DONE]\n\n")
            rider.ended.set()

    def event(self, text: str) -> bytes:
        """A token's event, counted."""
        self.tokens_out += 1
        self.last = asyncio.get_running_loop().time()
        return event(text)

    async def say(self, writer: asyncio.StreamWriter, *pieces: bytes, pause: float = 0.0) -> None:
        """Send pieces, each at once."""
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)


def event(text: str = "", finish: bool = False, usage: Any = None) -> bytes:
    """An event of the stream."""
    choice = {"index": 0, "text": text, "delta": {"content": text}, "finish_reason": "length" if finish else None}
    return b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n"


def whole(body: Any, status: str = "200 OK", kind: str = "application/json", more: str = "") -> bytes:
    """An answer in one piece."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{more}\r\n".encode() + data


@contextmanager
def running(server: FakeServer) -> Iterator[FakeServer]:
    """A server while it listens."""
    ready, loop, stop = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(ready, stop),), daemon=True)
    thread.start()
    ready.wait(5)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
        loop.close()
