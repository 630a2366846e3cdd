"""A streamed answer of an OpenAI server: when each event with text came, how many tokens it says there were, and whether it ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from headway.reality.probe.http import HttpAnswer, ProbeFault, ProbeTarget, exchange, fault_of, lines

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
MORE = {"ignore_eos": True, "stream_options": {"include_usage": True}}
LIMITS = ("max_tokens", "max_completion_tokens")
LINGER_S = 2.0  # that a stream may stay open after its last token
SPARE = 1  # events beyond the tokens that were asked for, such as a last piece of a letter
MOST_USAGE = 1e7  # tokens of a request, from which a count is no count


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRequest:
    """A request that was answered; times are seconds of the loop's clock, one of each event that held text."""

    start: float
    times: tuple[float, ...]
    prompt_tokens: int | None  # as the server counts them
    output_tokens: int
    is_counted: bool  # whether the server counted the output; else each event is taken as a token
    is_ended: bool  # whether the server ended the stream
    is_warm_up: bool = False

    @property
    def ttft_s(self) -> float:
        """Time to first token."""
        return self.times[0] - self.start

    @property
    def e2e_s(self) -> float:
        """The whole time."""
        return self.times[-1] - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How requests are put: the path, the model's name, the fields beyond OpenAI's oldest, and the name of the most tokens."""

    path: str = COMPLETIONS
    model: str = ""
    more: tuple[str, ...] = tuple(MORE)
    limit: str = LIMITS[0]

    def body(self, prompt: str, output: int) -> bytes:
        """A request for an answer of so many tokens."""
        question = {"prompt": prompt} if self.path == COMPLETIONS else {"messages": [{"role": "user", "content": prompt}]}
        more = {name: MORE[name] for name in self.more}
        model = {"model": self.model} if self.model else {}
        return json.dumps(model | question | {self.limit: output, "stream": True, "temperature": 1.0} | more).encode()


    def less(self, words: str) -> Protocol | None:
        """The same for a server that refuses it with these words: without the field that they name, else the first; None at the end.

        >>> Protocol().less("unknown field: stream_options").more
        ('ignore_eos',)
        """
        if LIMITS[1] in words and self.limit != LIMITS[1]:
            return replace(self, limit=LIMITS[1])
        refused = [name for name in self.more if name in words] or self.more[:1]
        return replace(self, more=tuple(name for name in self.more if name not in refused)) if refused else None


class _Events:
    """What a stream has said so far."""

    def __init__(self, start: float, most: int) -> None:
        self.start, self.most = start, most
        self.times: list[float] = []
        self.usage: tuple[int, int] | None = None
        self.is_finished = self.is_done = False

    @property
    def is_complete(self) -> bool:
        """Whether no more tokens are due."""
        return self.is_finished or len(self.times) >= self.most

    def take(self, target: ProbeTarget, line: bytes, now: float) -> None:
        """Read a line of the stream."""
        if not line.startswith(b"data:"):
            if line.strip() and not line.startswith((b":", b"event", b"id", b"retry")):
                raise ProbeFault("sends a stream that is no stream of events")
            return
        text = line[5:].strip()
        if text == b"[DONE]":
            self.is_done = True
            return
        try:
            event: Any = json.loads(text)
        except (ValueError, RecursionError):
            raise ProbeFault("sends an event that is no JSON") from None
        if not isinstance(event, Mapping):
            raise ProbeFault("sends an event that is no object")
        if event.get("error"):
            error = event["error"]
            words = target.words(error.get("message", error) if isinstance(error, dict) else error)
            raise ProbeFault(f"reports an error in the stream: {words}")
        self._count(event.get("usage"))
        choices = event.get("choices")
        for choice in choices[:1] if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                self._text(choice, now)

    def _text(self, choice: Mapping[str, Any], now: float) -> None:
        delta = choice.get("delta")
        texts = [delta.get(key) for key in ("content", "reasoning_content", "reasoning")] if isinstance(delta, Mapping) else []
        if any(isinstance(part, str) and part for part in (choice.get("text"), *texts)):
            self.times.append(now)
        if choice.get("finish_reason"):
            self.is_finished = True
        if len(self.times) > self.most + SPARE:
            raise ProbeFault(f"sends more than the {self.most} tokens that were asked for: it ignores max_tokens")

    def _count(self, usage: Any) -> None:
        if not isinstance(usage, Mapping):
            return
        counts = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")]
        if not all(isinstance(count, int) and not isinstance(count, bool) and 0 <= count < MOST_USAGE for count in counts):
            raise ProbeFault("counts tokens that cannot be")
        self.usage = (counts[0], counts[1])  # type: ignore[assignment]


async def streamed(target: ProbeTarget, protocol: Protocol, prompt: str, output: int, *, is_warm_up: bool = False) -> StreamedRequest:
    """Send a request and read its stream to the end; ProbeFault where that does not come."""
    async with exchange(target, "POST", protocol.path, protocol.body(prompt, output)) as answer:
        if answer.status != 200:
            raise await fault_of(target, answer)
        kind = answer.headers.get("content-type", "text/event-stream").partition(";")[0].strip().lower()
        if kind == "application/json":
            raise ProbeFault("answers in one piece: it does not stream")
        if kind != "text/event-stream":
            raise ProbeFault(f"answers with {target.words(kind)}, not with a stream of events")
        events = _Events(answer.start, output)
        await _read(target, answer, events)
    if not events.times:
        raise ProbeFault("ends a stream without a token")
    if events.usage is not None and events.usage[1] > output + SPARE:
        raise ProbeFault(f"counts {events.usage[1]:,} output tokens where {output} were asked for: it ignores max_tokens")
    has_counts = events.usage is not None and events.usage[1] > 0
    return StreamedRequest(
        start=events.start, times=tuple(events.times), prompt_tokens=events.usage[0] if events.usage else None,
        output_tokens=events.usage[1] if events.usage and has_counts else len(events.times), is_counted=has_counts,
        is_ended=events.is_done or events.is_finished, is_warm_up=is_warm_up,
    )  # fmt: skip


async def _read(target: ProbeTarget, answer: HttpAnswer, events: _Events) -> None:
    """Read events until the stream ends: each token within the silence that is allowed, the end soon after the last of them."""
    clock = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(target.silence_s) as patience:
            async for line in lines(answer):
                before = len(events.times), events.is_complete
                events.take(target, line, clock())
                if events.is_done:
                    return
                if before != (len(events.times), events.is_complete):
                    patience.reschedule(clock() + (min(LINGER_S, target.silence_s) if events.is_complete else target.silence_s))
    except TimeoutError:
        if not events.is_complete:
            raise
    if not events.is_complete:
        raise ProbeFault(f"ends a stream after {len(events.times)} of {events.most} tokens, without saying that it is finished")
