"""Clients that keep the server waiting: each kind ends, and none keeps others out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from support.web_server import web_server

httpx = pytest.importorskip("httpx", reason="httpx is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="the extra web is not installed")

from headway.web import app as web_app  # noqa: E402
from headway.web.guard import Guard  # noqa: E402

GET = b"GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: localhost:1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
LARGE = b"x" * 4_000_000
JSON = {"content-type": "application/json"}
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short times and few connections."""
    for name, value in {"HEAD_S": 0.4, "BODY_S": 0.4, "UNREAD_S": 0.6, "LOOK_S": 0.05, "MOST_CONNECTIONS": 12}.items():
        monkeypatch.setattr(web_app, name, value)
    monkeypatch.setattr("headway.web.guard.BODY_S", 0.3)


def played(play: Callable[[int], Awaitable[None]]) -> None:
    """Run against a server of these connections, whose app answers `/` shortly and `/large` with megabytes."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": LARGE if scope["path"] == "/large" else b"here"})

    async def run() -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(
            Guard(app, ("localhost",), 1), http=web_app.Connection, ws="none", lifespan="off", log_level="critical",
            timeout_keep_alive=9,
        )  # fmt: skip
        server = uvicorn.Server(config)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            async with asyncio.timeout(30):
                await play(sock.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            await task
            await asyncio.sleep(0.05)  # closed connections end in the next turns of the loop

    asyncio.run(run())


async def ended(client: Client, trickle: bytes = b"") -> bytes:
    """What a client reads until the server ends the connection, while it sends on byte by byte."""

    async def send_on() -> None:
        for byte in trickle:
            client[1].write(bytes([byte]))
            await asyncio.sleep(0.05)

    sending = asyncio.create_task(send_on())
    try:
        return await client[0].read()
    except ConnectionError:
        return b""
    finally:
        sending.cancel()
        client[1].close()


@pytest.mark.usefixtures("limits")
def test_every_client_that_keeps_the_server_waiting__is_left() -> None:
    async def play(port: int) -> None:
        async def opened(first: bytes) -> Client:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            return reader, writer

        silent, half, trickling = [await opened(first) for first in (b"", GET[:-2], b"")]
        idle, half_after_an_answer = await opened(GET), await opened(GET + GET[:-2])
        half_body, unread_body = await opened(POST % 900 + b"{"), await opened(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        replies = await asyncio.gather(
            ended(silent), ended(half), ended(trickling, GET[:-2] + b"X: y" * 999), ended(idle), ended(half_after_an_answer),
            ended(half_body, b" " * 999), ended(unread_body),
        )  # fmt: skip
        assert replies[:3] == [b"", b"", b""]
        assert b"here" in replies[3] and b"here" in replies[4]
        assert b" 408 " in replies[5] and b" 421 " in replies[6]

    played(play)


@pytest.mark.usefixtures("limits")
def test_a_client_that_never_reads__is_left_and_one_that_reads_slowly_is_not() -> None:
    async def play(port: int) -> None:
        def connected() -> socket.socket:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", port))
            sock.sendall(GET.replace(b"/ ", b"/large ") * 3)
            return sock

        def read(sock: socket.socket, pause_s: float) -> int:
            size = 0
            try:
                while data := sock.recv(1 << 20):
                    size += len(data)
                    time.sleep(pause_s)
            except ConnectionError:
                return -1
            return size

        never, slow = await asyncio.to_thread(connected), await asyncio.to_thread(connected)
        assert await asyncio.to_thread(read, slow, 0.0) > 3 * len(LARGE)
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(read, never, 0.0) < 3 * len(LARGE)
        never.close(), slow.close()

    played(play)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("first", [b"", GET[:-2], POST % 900 + b"{", GET], ids=["silent", "half a head", "half a body", "idle"])
def test_many_connections__give_way_to_a_new_one(first: bytes) -> None:
    async def play(port: int) -> None:
        crowd = []
        for _ in range(3 * web_app.MOST_CONNECTIONS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            crowd.append((reader, writer))
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET)
            assert b" 200 " in await reader.readuntil(b"here")
            writer.close()
        for _, writer in crowd:
            writer.close()

    played(play)


GOOD: dict[str, Any] = {"verb": "serve", "words": ["llama-3.1-8b"], "flags": {"on": "h100-sxm", "batch": "1,2"}, "parts": ["answer"]}
SLOW: dict[str, Any] = {"verb": "serve", "words": ["deepseek-v3"], "parts": ["answer", "table", "pictures"],
        "flags": {"on": "8xh200-sxm", "batch": "1..60", "context": ",".join(f"{number}k" for number in range(1, 66))}}  # fmt: skip


def test_half_open_and_greedy_connections_at_once__keep_nobody_out() -> None:
    """140 that send half a head and 14 that ask slow questions, some a new one each time: others are answered, most within two seconds."""
    over, answers, numbers = threading.Event(), Counter[int](), count(10)

    def repeat(address: str, reconnects: bool, varies: bool) -> None:
        while not over.is_set():
            with contextlib.suppress(httpx.TransportError), httpx.Client(base_url=address, timeout=60) as client:
                while not over.is_set():
                    flags = SLOW["flags"] | {"batch": f"1..{next(numbers)}"} if varies else SLOW["flags"]
                    answers[client.post("/api/ask", content=json.dumps(SLOW | {"flags": flags}), headers=JSON).status_code] += 1
                    if reconnects:
                        break

    with web_server() as address, contextlib.ExitStack() as opened:
        host, _, port = address.removeprefix("http://").partition(":")

        def asked(batch: int) -> Any:
            question = GOOD | {"flags": GOOD["flags"] | {"batch": f"1,{batch}"}}
            return httpx.post(f"{address}/api/ask", content=json.dumps(question), headers=JSON, timeout=20)

        assert httpx.post(f"{address}/api/ask", content=json.dumps(GOOD), headers=JSON, timeout=20).status_code == 200
        for _ in range(140):
            opened.enter_context(socket.create_connection((host, int(port)))).sendall(b"GET / HTTP/1.1\r\nHost: ")
        greedy = [threading.Thread(target=repeat, args=(address, number % 2 == 0, number % 4 < 2)) for number in range(14)]
        for thread in greedy:
            thread.start()
        try:
            waits = []
            for number in range(12):
                answered = [httpx.get(f"{address}/", timeout=20), asked(2 + number)]
                assert [answer.status_code for answer in answered] == [200, 200]
                waits.append(sum(answer.elapsed.total_seconds() for answer in answered))
            assert statistics.median(waits) < 2.0, waits  # one pause of a busy machine is none of the server's
        finally:
            over.set()
    for thread in greedy:
        thread.join(60)
