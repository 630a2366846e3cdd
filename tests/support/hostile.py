"""Ways in which a server misbehaves, each with words of the one line that a probe says of it."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable

from support.fake_server import CHUNKED, HEAD, KEY, Asked, Behaviour, FakeServer, event, whole

KINDS: dict[str, tuple[Behaviour, str]] = {}
LONG = b"x" * 70_000


def kind(words: str) -> Callable[[Behaviour], Behaviour]:
    """Register a behaviour under its name."""

    def register(behaviour: Behaviour) -> Behaviour:
        KINDS[behaviour.__name__] = (behaviour, words)
        return behaviour

    return register


def fixed(name: str, answer: bytes, words: str) -> None:
    """A behaviour that always sends the same bytes."""

    async def behaviour(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
        await server.say(writer, answer)

    KINDS[name] = (behaviour, words)


fixed("redirect", whole(b"", "302 Found", more="Location: http://evil.example/v1?key=1\r\n"), "redirects to http://evil.example/v1, which")
fixed("unauthorized", whole({"error": {"message": f"no key {KEY}"}}, "401 Unauthorized"), "--api-key-env")
fixed("rate_limit_for_long", whole({}, "429 Too Many Requests", more="Retry-After: 3600\r\n"), "asks to wait 3600 s")
fixed("server_error", whole({"error": {"message": "CUDA\x1b[31m out of memory"}}, "500 Internal Server Error"), "status 500")
fixed("bad_gateway_page", whole(b"<html>Bad gateway</html>", "502 Bad Gateway", "text/html"), "status 502")
fixed("no_such_path", whole({"detail": "Not Found"}, "404 Not Found"), "status 404")
fixed("web_page", whole(b"<html>hello</html>", kind="text/html"), "answers with text/html")
fixed("no_stream", whole({"choices": [{"text": "hello"}]}), "does not stream")
fixed("compressed", HEAD.replace(b"Connection", b"Content-Encoding: gzip\r\nConnection") + gzip.compress(event("a")), "compressed")
fixed("no_json", HEAD + b"data: {broken\n\n", "no JSON")
fixed("deep_json", HEAD + b"data: " + b"[" * 200_000 + b"\n\n", "no JSON")
fixed("no_object", HEAD + b"data: 17\n\n", "no object")
fixed("no_events", HEAD + b"\x00\x01\x02 hello\n", "no stream of events")
fixed("nothing_in_it", HEAD + b"data: [DONE]\n\n", "without a token")
fixed("error_in_stream", HEAD + event("a") + b'data: {"error": {"message": "engine died"}}\n\n', "engine died")
fixed("no_http", b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "does not speak HTTP")
fixed("large_headers", b"HTTP/1.1 200 OK\r\n" + (b"X: %s\r\n" % LONG[:9000]) * 20 + b"\r\n", "headers of more")
fixed("long_header", b"HTTP/1.1 200 OK\r\nX: " + LONG * 2 + b"\r\n\r\n", "headers of more")
fixed("interim_for_ever", b"HTTP/1.1 100 Continue\r\n\r\n" * 50, "status 1xx")
fixed("bad_chunk", CHUNKED + b"zz\r\n" + event("a"), "chunk without a size")
fixed("short_chunk", CHUNKED + b"3\r\n" + event("a"), "longer than its size")
fixed("endless_chunk", CHUNKED + b"ffffff\r\n" + event("a"), "in the middle of an answer")


def counts(prompt: object, output: object) -> bytes:
    """A stream of one token with these counts."""
    return HEAD + event("a") + event(finish=True, usage={"prompt_tokens": prompt, "completion_tokens": output})


fixed("impossible_usage", counts(-5, "many"), "cannot be")
fixed("boundless_usage", counts(9, 10**6), "ignores max_tokens")
fixed("boundless_prompt", counts(10**6, 1), "tokens in a prompt")


@kind("sends nothing for")
async def silent(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


@kind("sends nothing for")
async def trickles_headers(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, *[bytes([letter]) for letter in b"HTTP/1.1 200 OK and so on"] * 20, pause=0.05)


@kind("sends nothing for")
async def comments_for_ever(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, HEAD, *[b": still alive\n\n"] * 400, pause=0.02)


@kind("sends nothing for")
async def stops_midway(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, HEAD, server.event("a"))
    await asyncio.sleep(30)


@kind("without saying that it is finished")
async def dies_midway(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, HEAD, server.event("a"), server.event("b"))


@kind("breaks the connection")
async def resets(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, HEAD, server.event("a"))
    sock = writer.get_extra_info("socket")
    sock.setsockopt(1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # SO_LINGER of no time: the close is a reset
    writer.transport.abort()


@kind("ignores max_tokens")
async def ignores_max_tokens(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, HEAD)
    for _ in range(100_000):
        await server.say(writer, server.event("a"), pause=0.001)


@kind("a line of more than")
async def long_line(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, HEAD, b"data: ", *[LONG] * 1000)


@kind("status 400")
async def refuses_every_form(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await server.say(writer, whole({"message": "prompt too long", "echo": json.dumps(asked.headers)}, "400 Bad Request"))


@kind("status 500")
async def repeats_the_key(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    text = " ".join(value for name, value in asked.headers.items() if name in ("authorization", "x-team"))
    await server.say(writer, whole({"error": {"message": f"cannot read {text} {text[7:]}"}}, "500 Oops"))


@kind("limits its load")
async def limits_after_some(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    if server.requests > 8:
        await server.say(writer, whole({}, "429 Too Many Requests", more="Retry-After: 0\r\n"))
    else:
        await answers(server, asked, writer)


@kind("cannot be reached")
async def is_gone_after_some(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    await answers(server, asked, writer)
    if server.requests == 8:
        asyncio.get_running_loop().call_soon(server.close)


async def answers(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A well-behaved answer, at once."""
    events = [server.event("a") for _ in range(asked.wants)]
    usage = {"prompt_tokens": asked.tokens, "completion_tokens": asked.wants}
    await server.say(writer, HEAD, *events, event(finish=True, usage=usage), b"data: [DONE]\n\n", pause=0.001)


async def never_ends(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """All tokens, and then an open connection."""
    await server.say(writer, HEAD, *[server.event("a") for _ in range(asked.wants)])
    await asyncio.sleep(30)


async def several_tokens(server: FakeServer, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Four tokens in an event, counted at the end."""
    events = [event("a b c d") for _ in range(asked.wants // 4)]
    server.tokens_out += asked.wants
    usage = {"prompt_tokens": asked.tokens, "completion_tokens": asked.wants // 4 * 4}
    await server.say(writer, HEAD, *events, event(finish=True, usage=usage), b"data: [DONE]\n\n", pause=0.004)
