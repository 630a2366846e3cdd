"""What a request in service meets: its prompt in chunks beside decodes, and the prompts of others between its own tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.laws.queueing.loop import EVEN, HALF, NO_TIME, NO_WORK, SINGLE, Loop, StepTime, TokenTime, step_yields_token
from headway.laws.queueing.users import (
    busy_share,
    chunk_budget,
    cycle_steps,
    decoding_at_once,
    decoding_beside,
    looped_tpot_s,
    looped_ttft_s,
    open_between_s,
    others_in_service,
    packed_tokens,
    prefill_share,
    prompt_added_s,
    prompt_chunks,
    prompt_load,
    prompts_beside,
    prompts_in_progress,
    prompts_met,
    prompts_per_step,
    queued_before,
    random_wait_s,
    regularity,
    residual_s,
    sharing_budget,
    steady_between_s,
    steady_s,
    step_room,
    synchronised_with_others,
    together_between_s,
    together_s,
    users_not_queued,
)
from headway.laws.serving.request import middle_context, pipelined_s, tpot_s


def request_times(
    step: StepTime, loop: Loop, served: Any, decoding: Any, token: TokenTime = step_yields_token, *, whole_answer: bool = False
) -> tuple[Any, Any, Any, Any]:
    """TTFT in service, TPOT, TPOT of decode steps alone, and a prompt's time, while `decoding` of `served` requests decode.

    `whole_answer`: decode steps are averaged over the growing context of an answer, else taken at its middle.
    """
    other_users = others_in_service(served, loop.closed)
    together = synchronised_with_others(loop.synchronised_share, other_users)
    batch, busy = decoding_at_once(decoding, served, together), busy_share(served, loop.closed)
    prompts = _prompts(loop, served, other_users, sharing_budget(batch, other_users))
    decode_batch = decoding_at_once(decoding_beside(decoding, served, loop.closed), served, together)
    contexts = (middle_context(loop.prompt, loop.output),)
    if whole_answer:
        contexts = (loop.prompt, *contexts, loop.prompt + loop.output)
    decodes = [(decode_batch, decode_batch * context, NO_WORK, NO_WORK, SINGLE) for context in contexts]
    beside = batch * (loop.chunked_prefill * busy)
    steps, alone, full, *further = _steps(step, served + decoding, decodes, *_prompt_steps(loop, prompts, beside))
    decode = tpot_s(*steps) if whole_answer else steps[0]
    per_token = token(decode_batch, decodes[len(decodes) // 2][1], decode)
    if loop.closed:
        steady, added = _in_turn(loop, prompts, alone, full, further, decode, busy)
    else:
        steady, added = _at_random(step, loop, prompts, alone, full, beside, decode, busy)
    packed = full * loop.prefill / prompts.packed
    ttft = looped_ttft_s(loop.request_overhead_s, together, together_s(served, packed, loop.prefill, prompts.packed), steady[0])
    between = together_between_s(served, packed, loop.prefill, prompts.packed)
    return ttft, looped_tpot_s(per_token, together, between, steady[1], loop.output), per_token, added


StepLoad = tuple[Any, Any, Any, Any, Any]  # the arguments of a StepTime


def _steps(step: StepTime, like: Any, decodes: list[StepLoad], *prompts: StepLoad) -> tuple[Any, ...]:
    """Times of decode steps, as a list, and of each step with prompts: of many replicas in one evaluation, of one step by step.

    `like` has the shape of the replicas.
    """
    loads = [*decodes, *prompts]
    shape = np.broadcast_shapes(np.shape(like), *(np.shape(value) for load in loads for value in load))
    if not shape:
        seconds = [step(*load) for load in loads]
    else:
        columns = np.empty((5, len(loads), *shape))
        for row, load in enumerate(loads):
            for column, value in enumerate(load):
                columns[column, row] = value
        seconds = list(step(*columns))
    return (seconds[: len(decodes)], *seconds[len(decodes) :])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """Prompts of a replica as its steps meet them."""

    chunks: Any  # steps of one prompt
    tokens: Any  # of one prompt in one step
    pairs: Any
    largest: Any  # tokens of its largest chunk
    steps: Any  # of the whole replica per prompt while prompts queue
    queued: Any  # steps that a prompt waits for prompts before it
    beside: Any  # other prompts prefilled with a prompt
    arriving: Any  # prompts of others that begin per step
    most: Any  # prompts for which a step has room
    packed: Any  # prompt tokens of a step while prompts queue
    other_users: Any
    not_queued: Any  # other users whose prompts are not among those queued before


def _prompts(loop: Loop, served: Any, other_users: Any, beside: Any) -> _Prompts:
    chunk = chunk_budget(loop.step_budget_tokens, beside, loop.chunked_prefill)
    lane = chunk / loop.lanes
    chunks = prompt_chunks(loop.prefill, lane)
    tokens, steps = loop.prefill / chunks, loop.prefill / chunk
    cycle = cycle_steps(loop.output, chunks, loop.accept_length)
    queued = queued_before(other_users, steps, cycle, chunks, loop.spread) * loop.chunked_prefill
    arriving, room = prompts_per_step(other_users, cycle, queued), step_room(chunk, loop.prefill, chunks)
    not_queued = users_not_queued(other_users, queued, steps)
    return _Prompts(
        chunks=chunks, tokens=tokens, pairs=loop.pairs / chunks, largest=packed_tokens(loop.prefill, lane, SINGLE),
        steps=steps, queued=queued, other_users=other_users, not_queued=not_queued,
        beside=prompts_beside(loop.chunked_prefill, arriving, room, chunks, loop.concurrent_prompts, not_queued),
        arriving=arriving, most=chunk / tokens, packed=packed_tokens(loop.prefill, chunk, served),
    )  # fmt: skip


def _prompt_steps(loop: Loop, p: _Prompts, beside: Any) -> list[StepLoad]:
    """Steps with one chunk of one prompt, with queued prompts, and in a closed loop with all prompts that share one; then the longest."""
    kv_tokens = beside * middle_context(loop.prompt, loop.output)
    of_prompt = p.packed / loop.prefill
    # While synchronised prompts are prefilled, on average half of the sequences decode.
    full = (beside / HALF, kv_tokens / HALF, p.packed, loop.pairs * of_prompt, p.packed / p.tokens)
    alone = (beside, kv_tokens, p.tokens, p.pairs, SINGLE)
    if not loop.closed:
        return [alone, full]
    return [alone, full, _shared(p, beside, kv_tokens, _sharing(loop, p, p.arriving * p.chunks)), *_longest(loop, p, alone)]


def _sharing(loop: Loop, p: _Prompts, load: Any) -> Any:
    """Prompts that share a step while one is prefilled, itself included."""
    return prompts_in_progress(load, np.minimum(loop.concurrent_prompts, p.not_queued), p.most)


def _shared(p: _Prompts, beside: Any, kv_tokens: Any, prompts: Any) -> StepLoad:
    return beside, kv_tokens, p.tokens * prompts, p.pairs * prompts, prompts


def _longest(loop: Loop, p: _Prompts, chunk: StepLoad) -> list[StepLoad]:
    """The step with the largest chunk of the prompts of a step, where pipeline stages wait for it."""
    if not np.any(loop.pp > 1):
        return []
    beside, kv_tokens, _, _, prompts = chunk
    pairs = loop.pairs * (p.largest / loop.prefill)
    return [(beside, kv_tokens, p.largest * prompts, pairs * prompts, prompts)]


def _in_turn(loop: Loop, p: _Prompts, alone: Any, full: Any, further: list[Any], decode: Any, busy: Any) -> tuple[tuple[Any, Any], Any]:
    """Users in a loop, one by one: TTFT, the time that others' prompts add to an answer, and what one prompt adds."""
    shared, longest = further[0], further[-1] if len(further) > 1 else alone
    prompts = _sharing(loop, p, p.arriving * p.chunks)
    added = prompt_added_s(shared, decode, loop.chunked_prefill, p.chunks, prompts)
    prefill = pipelined_s(alone, p.chunks, longest, loop.pp, loop.pipeline_overlap_share)
    ttft = steady_s(prefill, p.beside, added, full * p.queued, decode, busy)
    return (ttft, steady_between_s(p.other_users, p.beside, p.queued, p.steps, added)), added


def _at_random(
    step: StepTime, loop: Loop, p: _Prompts, alone: Any, full: Any, beside: Any, decode: Any, busy: Any
) -> tuple[tuple[Any, Any], Any]:
    """Poisson arrivals: TTFT, the time that others' prompts add to an answer, and what one prompt adds."""
    kv_tokens = beside * middle_context(loop.prompt, loop.output)
    load, service = prompt_load(loop.rate, p.chunks, alone), full * p.steps
    regular = regularity(loop.rate * service, loop.in_turn)
    prompts = _sharing(loop, p, load)
    met = _shared(p, beside, kv_tokens, SINGLE + prompts_met(load, p.chunks, p.most, regular))
    _, shared, met_step, *longest = _steps(step, alone, [], _shared(p, beside, kv_tokens, prompts), met, *_longest(loop, p, met))
    added = prompt_added_s(shared, decode, loop.chunked_prefill, p.chunks, prompts)
    share = prefill_share(loop.rate, p.chunks, shared, prompts)
    wait = random_wait_s(residual_s(share, shared, service, decode, busy, regular), loop.rate, service)
    prefill = pipelined_s(met_step, p.chunks, (longest or [met_step])[0], loop.pp, loop.pipeline_overlap_share)
    ttft = steady_s(prefill, EVEN, NO_TIME, wait, NO_TIME, busy)
    return (ttft, open_between_s(p.other_users, loop.output, loop.accept_length, p.chunks, prompts, loop.chunked_prefill, added)), added
