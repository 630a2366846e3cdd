"""The lab's server over real sockets: OpenAI's protocol, streams, metrics, refusals."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from headway.reality.lab.clock import RealClock
from headway.reality.lab.platform import Platform
from headway.reality.lab.server import MODEL, TrainServer
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
