"""Trains as a server: OpenAI's protocol over HTTP, tokens as they come, metrics under the names of vLLM.

A byte of a prompt is a token, and a token of the answer a word without meaning. For measuring on this machine, not for the open net.
"""

from __future__ import annotations

import json
import math
import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headway.core.errors import HeadwayError
from headway.reality.lab.platform import Passenger, Platform, TrainRun

MODEL = "lab-trains"
MOST_BYTES = 2**20  # of a request's body
USUAL_TOKENS = 16  # that a request wants, as vLLM assumes
POLL_S = 0.5  # how often a handler looks whether the server still runs
SILENCE_S = 60.0  # that a connection may say nothing, so that it holds no thread for ever
PATHS = {"/v1/completions": "text_completion", "/v1/chat/completions": "chat.completion"}


class BadRequest(Exception):
    """A request that the server refuses, in one line."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What the metrics count."""

    prompt_tokens: int = 0
    tokens: int = 0
    requests: int = 0
    departures: int = 0
    step_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class TrainServer:
    """The platform, and the requests that come to it over HTTP."""

    platform: Platform
    context: int  # tokens that a sequence may have
    vocab: int
    counts: Counts = field(default_factory=Counts)
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Departures until it is stopped."""
        self.platform.run(lambda now: (), self._count)

    def _count(self, train: TrainRun) -> bool:
        self.counts.departures += 1
        self.counts.tokens += train.riders
        self.counts.step_s += train.seconds if train.riders else 0.0
        return not self.stopped.is_set()

    def listen(self, host: str, port: int) -> ThreadingHTTPServer:
        """An HTTP server that is bound, and whose `serve_forever` answers."""
        handler = type("LabHandler", (Handler,), {"server_of_trains": self})
        try:
            return Listener((host, port), handler)
        except OSError as error:
            raise HeadwayError(f"cannot listen at {host}:{port}: {error.strerror or error}; --port chooses another") from None

    def metrics(self) -> str:
        """The counts as Prometheus reads them."""
        riders, waiting = len(self.platform.riders), len(self.platform.waiting)
        label = f'{{model_name="{MODEL}"}}'
        lines = {
            "vllm:num_requests_running": ("gauge", riders), "vllm:num_requests_waiting": ("gauge", waiting),
            "vllm:kv_cache_usage_perc": ("gauge", riders / self.platform.seats), "vllm:num_preemptions_total": ("counter", 0),
            "vllm:prompt_tokens_total": ("counter", self.counts.prompt_tokens),
            "vllm:generation_tokens_total": ("counter", self.counts.tokens),
            "vllm:request_success_total": ("counter", self.counts.requests),
            "lab:departures_total": ("counter", self.counts.departures), "lab:step_seconds_total": ("counter", self.counts.step_s),
        }  # fmt: skip
        return "".join(f"# TYPE {name} {kind}\n{name}{label} {value}\n" for name, (kind, value) in lines.items())

    def tokens_of(self, request: dict[str, Any], is_gone: Callable[[], bool]) -> Iterator[int]:
        """The tokens of a request as trains bring them, until the client is gone."""
        prompt = prompt_of(request)
        numbers = [request[key] for key in ("max_tokens", "max_completion_tokens") if request.get(key) is not None]
        wants = numbers[0] if numbers else USUAL_TOKENS
        if not isinstance(wants, int) or isinstance(wants, bool) or wants < 1:
            raise BadRequest("max_tokens wants a whole number from 1 on")
        if len(prompt) + wants > self.context:
            raise BadRequest(f"this model's maximum context length is {self.context} tokens: {len(prompt)} of the prompt, {wants} wanted")
        return self._ride(tuple(token % self.vocab for token in prompt), wants, is_gone)

    def _ride(self, prompt: tuple[int, ...], wants: int, is_gone: Callable[[], bool]) -> Iterator[int]:
        arrivals: queue.SimpleQueue[int] = queue.SimpleQueue()
        passenger = Passenger(arrival=self.platform.clock.now(), prompt=prompt, tokens=wants, tell=arrivals.put)
        self.counts.prompt_tokens += len(prompt)
        self.platform.enter([passenger])
        try:
            for _ in range(wants):
                yield self._next(arrivals, is_gone)
            self.counts.requests += 1
        finally:
            passenger.cancelled = math.isnan(passenger.end)  # who hangs up frees the seat

    def _next(self, arrivals: queue.SimpleQueue[int], is_gone: Callable[[], bool]) -> int:
        while not self.stopped.is_set() and not is_gone():
            try:
                return arrivals.get(timeout=POLL_S)
            except queue.Empty:
                continue
        raise ConnectionAbortedError


def prompt_of(request: dict[str, Any]) -> list[int]:
    """Tokens of a request's prompt: its bytes, or the numbers that it gives."""
    prompt = request.get("prompt")
    if isinstance(messages := request.get("messages"), list):
        prompt = "\n".join(str(message.get("content", "")) for message in messages if isinstance(message, dict))
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return prompt
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str) or not prompt:
        raise BadRequest("wants a prompt: one text, a list of tokens, or messages")
    try:
        return list(prompt.encode())
    except UnicodeEncodeError:
        raise BadRequest("wants a prompt in Unicode, without half a surrogate pair") from None


class Listener(ThreadingHTTPServer):
    """A socket for clients that come together, as those do whom one train served: a short queue would lose them for a second."""

    request_queue_size = 1024
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a broken connection is the client's affair, and a pipe that nobody reads would fill with tracebacks."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server_of_trains: TrainServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = SILENCE_S

    def do_GET(self) -> None:
        """Models, metrics, health."""
        if self.path == "/metrics":
            self._send(HTTPStatus.OK, self.server_of_trains.metrics().encode(), "text/plain; version=0.0.4")
        elif self.path == "/v1/models":
            entry = {"id": MODEL, "object": "model", "owned_by": "headway", "max_model_len": self.server_of_trains.context}
            self._json(HTTPStatus.OK, {"object": "list", "data": [entry]})
        elif self.path == "/health":
            self._send(HTTPStatus.OK, b"", "text/plain")
        else:
            self._refuse(HTTPStatus.NOT_FOUND, f"no {self.path}: /v1/models, /v1/completions, /v1/chat/completions, /metrics, /health")

    def do_POST(self) -> None:
        """A completion, at once or as a stream."""
        try:
            request = self._body()
            if self.path not in PATHS:
                self._refuse(HTTPStatus.NOT_FOUND, f"no {self.path}: {', '.join(PATHS)}")
                return
            if request.get("model") not in (None, MODEL):
                self._refuse(HTTPStatus.NOT_FOUND, f"no model {request['model']!r}: {MODEL}")
                return
            usage = {"prompt_tokens": len(prompt_of(request))}
            tokens = self.server_of_trains.tokens_of(request, self._is_gone)
            if request.get("stream"):
                self._stream(tokens, usage, request)
            else:
                texts = [word(token) for token in tokens]
                answer = self._chunk("".join(texts), "length", is_complete=True)
                self._json(HTTPStatus.OK, answer | {"usage": with_total(usage, len(texts))})
        except BadRequest as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except OSError:  # the client has hung up or says nothing, or the server stops
            self.close_connection = True

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MOST_BYTES:
            self.close_connection = True
            raise BadRequest(f"wants a Content-Length of at most {MOST_BYTES}")
        try:
            request = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise BadRequest("wants JSON") from None
        if not isinstance(request, dict):
            raise BadRequest("wants a JSON object")
        return request

    def _is_gone(self) -> bool:
        """Whether the client has hung up: then its end can be read."""
        self.connection.settimeout(0)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            self.connection.settimeout(self.timeout)

    def _stream(self, tokens: Iterator[int], usage: dict[str, int], request: dict[str, Any]) -> None:
        """Server-sent events: one for each token, then the usage where it is wanted."""
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        count = 0
        for token in tokens:
            self._event(self._chunk(word(token), None))
            count += 1
        self._event(self._chunk("", "length"))
        options = request.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage"):
            self._event(self._chunk("", None) | {"choices": [], "usage": with_total(usage, count)})
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, document: Any) -> None:
        text = document if isinstance(document, str) else json.dumps(document)
        data = f"data: {text}\n\n".encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _chunk(self, text: str, reason: str | None, is_complete: bool = False) -> dict[str, Any]:
        kind, chat = PATHS[self.path], "chat" in self.path
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if chat:
            choice |= {"message" if is_complete else "delta": {"role": "assistant", "content": text}}
        else:
            choice |= {"text": text}
        form = kind if is_complete or not chat else f"{kind}.chunk"
        return {"id": "lab", "object": form, "created": int(time.time()), "model": MODEL, "choices": [choice]}

    def _json(self, status: HTTPStatus, document: dict[str, Any]) -> None:
        self._send(status, json.dumps(document).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        self._json(status, {"error": {"message": why, "type": "invalid_request_error", "code": int(status)}})

    def _send(self, status: HTTPStatus, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests come by the hundred."""


def word(token: int) -> str:
    """A token of the answer as text."""
    return f" t{token}"


def with_total(usage: dict[str, int], tokens: int) -> dict[str, int]:
    """The usage of a request whose answer has so many tokens."""
    return usage | {"completion_tokens": tokens, "total_tokens": usage["prompt_tokens"] + tokens}
