"""One exchange over HTTP/1.1, every line, size and time of it bounded: the server on the other side may do anything.

A connection is opened for each request and closed after it. No redirect is followed, no proxy is used, nothing is unpacked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from headway.core.errors import clip, printable
from headway.reality.probe.address import Credentials, ServerAddress, is_loopback

MOST_LINE = 1 << 20  # bytes of a line of an answer
MOST_HEAD = 1 << 16  # bytes of all headers
MOST_BODY = 1 << 22  # bytes of an answer that is read in one piece
MOST_INTERIM = 5  # answers of status 1xx before the real one
PIECE = 1 << 16
MOST_WORDS = 120  # letters of a server's own words in a message


class ProbeFault(Exception):
    """What a server did that ends a request; `status` where it answered at all, `retry_s` where it says when to come again."""

    def __init__(self, text: str, status: int = 0, retry_s: float | None = None) -> None:
        super().__init__(text)
        self.status, self.retry_s = status, retry_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTarget:
    """Where requests go, what goes with each, and how long the server may be silent."""

    address: ServerAddress
    secrets: Credentials
    silence_s: float

    def words(self, text: object) -> str:
        """Words of the server's, as they may be printed: short, on one line, without keys and control characters."""
        return printable(clip(self.secrets.hidden(str(text)), MOST_WORDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """Status and headers of an answer, when its request went, and its body to be read."""

    status: int
    headers: Mapping[str, str]
    start: float
    body: AsyncIterator[bytes]


@asynccontextmanager
async def exchange(target: ProbeTarget, method: str, path: str, body: bytes = b"") -> AsyncIterator[HttpAnswer]:
    """An answer with its body still to come; ProbeFault for what is no HTTP. `start` is after the connection is open."""
    address = target.address
    secure = ssl.create_default_context() if address.secure else None
    try:
        async with asyncio.timeout(target.silence_s):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=secure, limit=MOST_HEAD, ssl_handshake_timeout=target.silence_s if secure else None
            )
    except ssl.SSLCertVerificationError as error:
        raise ProbeFault(f"its certificate is not trusted ({target.words(error.verify_message)}); nothing was sent") from None
    except (OSError, TimeoutError) as error:
        raise ProbeFault(f"cannot be reached ({target.words(getattr(error, 'strerror', '') or 'no answer')})") from None
    try:
        if address.is_local and not is_loopback((writer.get_extra_info("peername") or [""])[0]):
            raise ProbeFault(f"{address.host} is no address of this machine; nothing was sent")
        writer.write(_head(target, method, path, body) + body)
        async with asyncio.timeout(target.silence_s):
            await writer.drain()
            start = asyncio.get_running_loop().time()
            status, headers = await _status(reader)
        yield HttpAnswer(status=status, headers=headers, start=start, body=_body(reader, headers))
    except TimeoutError:
        raise ProbeFault(f"sends nothing for {target.silence_s:g} s") from None
    except asyncio.IncompleteReadError:
        raise ProbeFault("closes the connection in the middle of an answer") from None
    except asyncio.LimitOverrunError:
        raise ProbeFault(f"sends headers of more than {MOST_HEAD:,} bytes") from None
    except OSError as error:
        raise ProbeFault(f"breaks the connection ({target.words(error.strerror or type(error).__name__)})") from None
    finally:
        writer.transport.abort()


def _head(target: ProbeTarget, method: str, path: str, body: bytes) -> bytes:
    address = target.address
    lines = [f"{method} {address.path}{path} HTTP/1.1", f"Host: {address.text.split('//')[1].partition('/')[0]}",
             "User-Agent: headway-probe", "Accept: text/event-stream, application/json, text/plain", "Accept-Encoding: identity",
             "Connection: close"]  # fmt: skip
    lines += [f"Content-Type: application/json\r\nContent-Length: {len(body)}"] if body else []
    lines += [f"{name}: {value}" for name, value in target.secrets.headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _status(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    for _ in range(MOST_INTERIM):
        parts = (await reader.readuntil(b"\n")).split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit() or len(parts[1]) != 3:
            raise ProbeFault("does not speak HTTP/1.1")
        headers, size = {}, 0
        while (line := (await reader.readuntil(b"\n")).strip()) != b"":
            size += len(line)
            if size > MOST_HEAD:
                raise ProbeFault(f"sends headers of more than {MOST_HEAD:,} bytes")
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if int(parts[1]) >= 200:
            return int(parts[1]), headers
    raise ProbeFault(f"sends more than {MOST_INTERIM} answers of status 1xx")


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    """The body in pieces as they come."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise ProbeFault("sends a compressed body, which was not asked for")
    if "chunked" in headers.get("transfer-encoding", "").lower():
        while True:
            text = (await reader.readuntil(b"\n")).partition(b";")[0].strip()
            try:
                size = int(text, 16) if len(text) <= 8 else -1
            except ValueError:
                size = -1
            if size < 0:
                raise ProbeFault("sends a chunk without a size")
            if size == 0:
                return
            async for piece in _exactly(reader, size):
                yield piece
            if (await reader.readexactly(2)).strip():
                raise ProbeFault("sends a chunk that is longer than its size")
    length = headers.get("content-length", "")
    if length.isdigit() and len(length) < 16:
        async for piece in _exactly(reader, int(length)):
            yield piece
        return
    while piece := await reader.read(PIECE):
        yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await reader.read(min(size, PIECE))
        if not piece:
            raise ProbeFault("closes the connection in the middle of an answer")
        size -= len(piece)
        yield piece


async def lines(answer: HttpAnswer) -> AsyncIterator[bytes]:
    """The lines of a body, each of at most MOST_LINE bytes."""
    buffer = b""
    async for piece in answer.body:
        *complete, buffer = (buffer + piece).split(b"\n")
        for line in complete:
            yield line
        if len(buffer) > MOST_LINE:
            raise ProbeFault(f"sends a line of more than {MOST_LINE:,} bytes")
    if buffer:
        yield buffer


async def in_one_piece(target: ProbeTarget, answer: HttpAnswer, most: int = MOST_BODY) -> bytes:
    """The body in one piece."""
    pieces, size = [], 0
    async with asyncio.timeout(target.silence_s):
        async for piece in answer.body:
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise ProbeFault(f"sends an answer of more than {most:,} bytes")
    return b"".join(pieces)


async def get(target: ProbeTarget, path: str) -> bytes:
    """What a path answers; ProbeFault where it answers nothing."""
    async with exchange(target, "GET", path) as answer:
        if answer.status != 200:
            raise await fault_of(target, answer)
        return await in_one_piece(target, answer)


async def fault_of(target: ProbeTarget, answer: HttpAnswer) -> ProbeFault:
    """What an answer other than 200 says, in one line."""
    status = answer.status
    if 300 <= status < 400:
        place = target.words(answer.headers.get("location", "nowhere").partition("?")[0])
        return ProbeFault(f"redirects to {place}, which was not followed: probe the address itself", status)
    try:
        message = target.words(_message(await in_one_piece(target, answer, PIECE)))
    except (ProbeFault, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
        message = ""
    why = f" ({message})" if message else ""
    if status in (401, 403):
        return ProbeFault(f"refuses with status {status}{why}: --api-key-env names the variable that holds its key", status)
    if status == 429 or (status == 503 and "retry-after" in answer.headers):
        wait = answer.headers.get("retry-after", "")
        retry = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 8 else None
        when = f", and asks to wait {retry:g} s" if retry is not None else ""
        return ProbeFault(f"limits its load with status {status}{when}{why}", status, retry)
    return ProbeFault(f"answers with status {status}{why}", status)


def _message(body: bytes) -> str:
    """What an error's body says."""
    text = body.decode("utf-8", "replace")
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return "" if "<" in text[:200] else text
    value = value.get("error", value) if isinstance(value, dict) else value
    value = next((value[key] for key in ("message", "detail") if key in value), value) if isinstance(value, dict) else value
    return value if isinstance(value, str) else json.dumps(value)
