"""Hostile requests to a running server: a clear 4xx or 503 each, never a stopped server, memory flat; clients that leave, many at once."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import HeadwayError
from headway.web import guard
from headway.web.desk import SLOTS
from headway.web.question import asked_by, flags_of, question
from support.web_server import web_server

httpx = pytest.importorskip("httpx", reason="httpx is not installed")

JSON = {"content-type": "application/json"}
GOOD = {"verb": "serve", "words": ["llama-3.1-8b"], "flags": {"on": "h100-sxm", "batch": "1,2"}, "parts": ["answer"]}
SLOW = {"verb": "sim", "words": ["llama-3.1-70b"], "client": "one",
        "flags": {"on": "8xh100-sxm", "tp": "4", "rate": "1..12+0.5", "prompt": "2k", "output": "300", "requests": "20000",
            "loop": "plain"}}  # fmt: skip
CLEAR = {400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 503}
# Values of any flag that would read, write or fetch something, were they taken.
FILES = ("/etc/passwd", "../../etc/passwd", "~/.ssh/id_rsa", "file:///etc/passwd", "C:\\windows\\win.ini", "x.csv", "./config.json",
         "http://example.com/x.json", "someone/some-model", "trace:/etc/passwd", "$(id)", "`id`", ";id", "a\x00b")  # fmt: skip
READS_OR_WRITES = ("catalog", "plot", "trace", "timeline", "plan", "expert-load", "workload", "out", "from", "report", "truth", "score",
                   "vllm", "guidellm", "aiperf", "llama-bench", "inferencex", "manifest", "training", "summary", "format", "plot-width",
                   "plot-theme", "picture", "explain", "forget", "help", "verbose")  # fmt: skip


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a server that only this file attacks."""
    with web_server() as where:
        yield where


def asked(**changes: Any) -> bytes:
    return json.dumps(GOOD | changes).encode()


def bodies() -> Iterator[bytes]:
    """Bodies that are no question, or not one that a page may ask."""
    yield from (b"", b"{", b"[]", b"null", b"7", b'"x"', b"{}", b'{"verb": NaN}', b'{"verb": 1e999}', 
                b'{"width": -Infinity, "verb": "serve"}',
                b"\xff\xfe{", "{}".encode("utf-16"), b"[" * 50_000, b'{"a":' * 5_000, b'{"verb": ' + b"9" * 60_000 + b"}")  # fmt: skip
    for verb in ("fit", "new", "web", "mcp", "predict", "__import__", "../plan", "", 7, None, [], {"a": 1}, "serve; id", "serve\n"):
        yield asked(verb=verb)
    for words in ("x", ["--plot=x.png"], ["-o"], [7], [["x"]], ["x"] * 99, {"a": 1}, *([name] for name in FILES)):
        yield asked(words=words)
    for flags in ([], "x", {"on": 7}, {"on": ["h100"]}, {"on": {"a": 1}}, {"nothing": "1"}, {"on": "h" * 9999}, {"on": "\x1b[2J"}):
        yield asked(flags=flags)
    for name in READS_OR_WRITES:
        yield from (asked(flags=GOOD["flags"] | {name: value}) for value in ("/etc/passwd", "json", ["x"]))
    for part in ({"width": 10**9}, {"width": "760"}, {"theme": "x"}, {"axes": {"x": [1, "2"]}}, {"axes": {"z": [1, 2]}}, {"parts": ["x"]},
                 {"explain": {"row": -1, "key": "x"}}, {"explain": 7}, {"upload": {"tool": "vllm", "name": "x.json", "text": "{}"}},
                 {"picture": "../x"}, {"more": 1}, {"kind": "shell"}, {"kind": "grade", "card": -1}, {"kind": "claim", "id": "../x"},
                 {"kind": "drawing", "name": "__init__"}, {"kind": "chapter", "chapter": ["1"]}, {"kind": "cards",
                     "seed": 10**12}):  # fmt: skip
        yield asked(**part)
    for points in ("1..1000000", "1..1e30*1.0000001", ",".join(["1"] * 190)):
        yield asked(flags={"on": "h100-sxm", "batch": points, "context": "1..1000000", "prompt": points})


def headers() -> Iterator[dict[str, str]]:
    """Headers of somebody else's page."""
    for host in ("evil.example", "127.0.0.1", "localhost:1", "127.0.0.1.evil.example:80", "", "127.0.0.1:80@evil.example"):
        yield JSON | {"host": host}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1", "file://"):
        yield JSON | {"origin": origin}
    yield from (JSON | {"sec-fetch-site": site} for site in ("cross-site", "same-site"))
    yield from ({"content-type": kind} for kind in ("text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data"))


def paths() -> Iterator[str]:
    """Paths that name no route."""
    yield from ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/etc/passwd", "/api",
        "/api/verb/fit",
                "/api/verb/..%2f..", "/static/app.py", "/static/", "/.git/config", "/api/verb/" + "x" * 3000, "/%00",
                    "/static/index.html%00.js")  # fmt: skip


def memory(process: int) -> tuple[int, list[int]]:
    """Bytes that a process holds, and those of each of its workers."""
    server, workers = 0, []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            held = int((place / "statm").read_text().split()[1]) * 4096
        except (OSError, IndexError):
            continue
        if int(place.name) == process:
            server = held
        elif int(fields[1]) == process:
            workers.append(held)
    return server, workers


def listener_of(address: str) -> int:
    """The process that listens at an address; 0 where the system does not say."""
    port = f":{int(address.rpartition(':')[2]):04X}"
    try:
        inode = next(line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if line.split()[1].endswith(port))
    except (OSError, StopIteration):
        return 0
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink().as_posix() == f"socket:[{inode}]":
                return int(link.parts[2])
        except OSError:
            continue
    return 0


def test_hostile_requests__get_a_clear_refusal(address: str) -> None:
    counts: Counter[int] = Counter()
    with httpx.Client(base_url=address, timeout=60) as client:

        def sent(method: str, path: str, **how: Any) -> None:
            try:
                response = client.request(method, path, **how)
            except (httpx.RemoteProtocolError, httpx.ReadError):  # the server hung up on what was no HTTP: a reset if bytes were unread
                counts[400] += 1
                return
            assert response.status_code in CLEAR, (method, path, str(how)[:300], response.status_code, response.text[:300])
            assert response.headers["content-security-policy"] == guard.POLICY
            counts[response.status_code] += 1

        everything = list(bodies())
        for body in everything:
            sent("POST", "/api/ask", content=body, headers=JSON)
            sent("POST", "/api/run", content=body, headers=JSON)
        for wrong in headers():
            sent("POST", "/api/ask", content=asked(), headers=wrong)
            sent("POST", "/api/run", content=asked(client="x"), headers=wrong)
            if set(wrong) != {"content-type"}:
                sent("GET", "/api/pages", headers={name: value for name, value in wrong.items() if name != "content-type"})
        for path in paths():
            sent("GET", path)
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            sent(method, "/api/ask", headers=JSON)
        sent("POST", "/api/ask", content=b" " * 5_000_000, headers=JSON)
        sent("POST", "/api/ask", content=(b" " * 4096 for _ in range(2000)), headers=JSON)
        for _ in range(3):
            for body in random.Random(1).sample(everything, 60):
                sent("POST", "/api/ask", content=body, headers=JSON)
        assert client.post("/api/ask", content=asked(), headers=JSON).status_code == 200
    print(f"{sum(counts.values())} hostile requests: {dict(sorted(counts.items()))}")
    assert sum(counts.values()) >= 500


def test_two_hundred_at_once__are_answered_or_told_to_come_again(address: str) -> None:
    async def burst() -> Counter[int]:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as client:

            async def one(number: int) -> int:
                document = GOOD | {"client": f"c{number}"} if number % 2 else GOOD
                path = "/api/run" if number % 2 else "/api/ask"
                try:
                    return (await client.post(path, content=json.dumps(document), headers=JSON)).status_code
                except httpx.TransportError:
                    return 503

            return Counter(await asyncio.gather(*(one(number) for number in range(200))))

    counts = asyncio.run(burst())
    print(f"200 at once: {dict(counts)}")
    assert set(counts) <= {200, 503} and counts[200] > 0
    assert httpx.post(f"{address}/api/ask", content=asked(), headers=JSON, timeout=60).status_code == 200


def test_a_client_that_leaves__stops_its_run_and_one_client_has_one(address: str) -> None:
    with httpx.Client(base_url=address, timeout=60) as client:
        for _ in range(6):
            with client.stream("POST", "/api/run", content=json.dumps(SLOW), headers=JSON) as run:
                assert run.status_code == 200
                lines = run.iter_lines()  # held, because to drop it is to leave
                assert '"progress"' in next(lines)
                second = httpx.post(f"{address}/api/run", content=json.dumps(SLOW), headers=JSON, timeout=60)
                assert second.status_code == 503 and second.headers["retry-after"]
            for _ in range(50):  # it left: its place is free again as soon as the server has heard of it
                again = client.post("/api/run", content=json.dumps(GOOD | {"client": "one"}), headers=JSON)
                if again.status_code == 200:
                    break
            assert again.status_code == 200 and '"answer"' in again.text


def test_a_body_that_does_not_arrive__is_not_waited_for(address: str) -> None:
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(
            f"POST /api/ask HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{{".encode()
        )
        assert b" 408 " in connection.recv(4096)


def test_memory__stays_flat(address: str) -> None:
    process = listener_of(address)
    if not process:
        pytest.skip("the system does not say how much memory a process holds")
    with httpx.Client(base_url=address, timeout=60) as client:

        def round_of_questions() -> None:
            for number in range(60):
                parts = ["answer", "table", *(["pictures"] if number % 5 == 0 else [])]  # which take most of the time
                flags = {"on": "h100-sxm", "batch": f"1..{64 + number}*1.3"}
                client.post("/api/ask", content=asked(flags=flags, parts=parts), headers=JSON)
                client.post("/api/ask", content=b'{"verb": 7}', headers=JSON)

        round_of_questions()
        server, workers = memory(process)
        round_of_questions()
        server_after, workers_after = memory(process)
    print(f"server {server / 1e6:.0f} MB, workers {workers}; after 120 more requests {server_after / 1e6:.0f} MB, {workers_after}")
    # Process by process: a worker that is started to rest, at whatever moment, is no growth, and there are never more than these.
    assert len(workers_after) <= 1 + SLOTS
    assert server_after < server * 1.1 + 10e6
    assert max(workers_after) < max(workers) * 1.1 + 10e6


def test_flags__every_one_of_every_verb_that_a_page_takes_is_no_file() -> None:
    """Whatever flag a verb has: no text that names a file passes it, unless it is one of words that the verb only compares."""
    from headway import QUESTIONS as VERBS
    from headway.web import permitted

    taken: Counter[str] = Counter()
    for verb in permitted.VERBS:
        assert verb in VERBS
        for option, flag in flags_of(asked_by(verb, ["serve"] if verb == "solve" else [])).items():
            for value in FILES:
                if permitted.kind_of(flag) is bool or not flag.spellings:
                    continue
                try:
                    question({"verb": verb, "words": ["serve"] if verb == "solve" else [], "flags": {option: value}})
                except HeadwayError:
                    continue
                taken[flag.name] += 1
                assert flag.field.kind in ("text", "word", "machine", "sheet"), flag
    assert not any(
        permitted.SHEET.fullmatch(name) for name in ("x.toml", "X.TOML", "a/b.json", "x.csv:m", "/x", "../x", "x,../y", "x.Json@2026")
    )
    assert not set(taken) & {name.replace("-", "_") for name in READS_OR_WRITES}


def test_policy__is_strict() -> None:
    assert "unsafe" not in guard.POLICY and "http" not in guard.POLICY
    assert guard.POLICY.startswith("default-src 'none'")


def test_open_to_others__the_printed_link_works_and_names_of_others_do_not() -> None:
    """Whatever addresses this machine has; a page whose name is made to point here stays out."""
    from headway.web.server import linked_host

    with web_server("--host", "0.0.0.0") as address:  # whose address is that of the printed link
        host, _, port = address.removeprefix("http://").partition(":")
        assert host == linked_host("0.0.0.0") != "0.0.0.0"
        for place in {host, "127.0.0.1"}:
            page = httpx.get(f"http://{place}:{port}/", headers={"origin": f"http://{place}:{port}"}, timeout=60)
            assert page.status_code == 200, place
            for name in ("evil.example", "0.0.0.0", "8.8.8.8", f"{place}.evil.example", "[::1]x"):
                refused = httpx.get(f"http://{place}:{port}/", headers={"host": f"{name}:{port}"}, timeout=60)
                assert refused.status_code == 421, name
            assert httpx.get(f"http://{place}:{port}/", headers={"origin": f"http://evil.example:{port}"}, timeout=60).status_code == 403
            assert httpx.get(f"http://{place}:{port}/api/pages", timeout=60).status_code == 401
