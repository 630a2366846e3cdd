"""The lab's server over real sockets: OpenAI's protocol, streams, metrics, refusals."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from headway.reality.lab.clock import RealClock
from headway.reality.lab.platform import Platform
from headway.reality.lab.server import MODEL, Handler, TrainServer
from headway.reality.lab.train_work import StatedStep


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    clock = RealClock()
    trains = TrainServer(platform=Platform(4, 0.001, StatedStep(0.0002, 0.0, clock, 100), clock), context=64, vocab=100)
    server = trains.listen("127.0.0.1", 0)
    threads = [threading.Thread(target=work, daemon=True) for work in (trains.run, server.serve_forever)]
    for thread in threads:
        thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    trains.stopped.set()
    for thread in threads:
        thread.join(10)
    server.server_close()


def post(url: str, **request: Any) -> str:
    data = json.dumps(request).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=20) as answer:
        return answer.read().decode()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def events(text: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_completion_at_once(address):
    answer = json.loads(post(f"{address}/v1/completions", model=MODEL, prompt="hello", max_tokens=7))
    assert answer["usage"] == {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    assert len(answer["choices"][0]["text"].split()) == 7 and answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(("path", "asked", "text"), [
    ("completions", {"prompt": [1, 2, 3]}, lambda choice: choice["text"]),
    ("chat/completions", {"messages": [{"role": "user", "content": "abc"}]}, lambda choice: choice["delta"]["content"]),
])  # fmt: skip
def test_a_stream_has_an_event_for_each_token_and_the_usage_last(address, path, asked, text):
    parts = events(post(f"{address}/v1/{path}", stream=True, max_tokens=5, stream_options={"include_usage": True}, **asked))
    assert [bool(text(part["choices"][0])) for part in parts[:-1]] == [True] * 5 + [False]
    assert parts[-2]["choices"][0]["finish_reason"] == "length"
    assert parts[-1]["usage"]["completion_tokens"] == 5 and parts[-1]["usage"]["prompt_tokens"] == 3


def test_models_and_metrics(address):
    assert json.loads(get(f"{address}/v1/models"))["data"][0]["id"] == MODEL
    before, after = (metric(get(f"{address}/metrics")) for _ in (post(f"{address}/v1/completions", prompt="a", max_tokens=3), ""))
    assert before["vllm:num_requests_running"] == after["vllm:num_requests_waiting"] == 0
    assert after["vllm:generation_tokens_total"] >= 3


def metric(text: str) -> dict[str, float]:
    return {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.parametrize(("path", "asked", "status", "word"), [
    ("completions", {"prompt": "a" * 60, "max_tokens": 5}, 400, "maximum context length is 64"),
    ("completions", {"prompt": ""}, 400, "prompt"),
    ("completions", {"prompt": "a", "max_tokens": 0}, 400, "max_tokens"),
    ("completions", {"prompt": "a", "model": "gpt"}, 404, MODEL),
    ("embeddings", {"prompt": "a"}, 404, "/v1/completions"),
])  # fmt: skip
def test_refusals_are_one_line(address, path, asked, status, word):
    with pytest.raises(urllib.error.HTTPError) as refusal:
        post(f"{address}/v1/{path}", **asked)
    message = json.loads(refusal.value.read())["error"]["message"]
    assert refusal.value.code == status and word in message and "\n" not in message


def test_more_requests_than_seats_all_get_their_tokens(address):
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(post(f"{address}/v1/completions", prompt="a", max_tokens=6))) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [json.loads(text)["usage"]["completion_tokens"] for text in texts] == [6] * 9


@pytest.mark.parametrize(("length", "body"), [
    (None, b'{"prompt": "\\ud800"}'), ("\u00b2", b""), ("9" * 5000, b""), (None, b'{"prompt": ' + b"[" * 200_000),
])  # fmt: skip
def test_what_is_no_request_gets_400(address, length, body):
    with connected(address) as line:
        line.sendall(head(length or str(len(body))) + body)
        assert line.recv(100).startswith(b"HTTP/1.1 400")


def connected(address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=20)


def head(length: str) -> bytes:
    return f"POST /v1/completions HTTP/1.1\r\nHost: lab\r\nContent-Length: {length}\r\n\r\n".encode("latin-1")


def test_who_hangs_up_frees_the_seat_without_a_stream():
    clock = RealClock()
    trains = TrainServer(platform=Platform(1, 0.01, StatedStep(0.0, 0.0, clock, 100), clock), context=100_000, vocab=100)
    server = trains.listen("127.0.0.1", 0)
    for work in (trains.run, server.serve_forever):
        threading.Thread(target=work, daemon=True).start()
    body = b'{"prompt": "a", "max_tokens": 90000}'
    with connected(f":{server.server_address[1]}") as line:
        line.sendall(head(str(len(body))) + body)
        await_riders(trains, 1)
    await_riders(trains, 0)
    server.shutdown()
    trains.stopped.set()
    server.server_close()


def await_riders(trains: TrainServer, riders: int) -> None:
    pause = threading.Event()
    assert any(len(trains.platform.riders) == riders or pause.wait(0.005) for _ in range(2000))


def test_clients_that_come_together_find_room_in_the_queue():
    clock = RealClock()
    trains = TrainServer(platform=Platform(1, 0.01, StatedStep(0.0, 0.0, clock, 100), clock), context=64, vocab=100)
    with trains.listen("127.0.0.1", 0) as server, contextlib.ExitStack() as lines:  # nobody takes them from the queue
        for _ in range(100):
            lines.enter_context(socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=0.8))


def test_the_silent_are_let_go(address, monkeypatch):
    monkeypatch.setattr(Handler, "timeout", 0.1)
    with connected(address) as idle, connected(address) as short:
        short.sendall(head("20") + b"{")
        assert idle.recv(100) == short.recv(100) == b""
