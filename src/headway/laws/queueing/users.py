"""Parts of a closed loop: N users, each sends the next request when its answer is complete; served in steps.

Prompts arrive spread over the loop, or synchronised: when a run starts, and for good where an engine runs prompts before decode and
all outputs have one length (all prompts are prefilled before any decodes, so all requests finish and return together).
"""

from __future__ import annotations

import numpy as np

from headway.core.formula import formula
from headway.core.units import ONE_TOKEN, Number, PerSecond, Same, Second, Token

LEAST_BUDGET: Number = 1 / 8  # share of a step's tokens that prompts get however many sequences decode
REGULAR: Number = 2.3
LEAST: Number = 1e-12  # makes 0 / 0 a zero
FEW: Number = 1e-6  # prompts per step below which a prompt is alone
CHUNKED = "chunked prefill: Agrawal et al. 2024 (Sarathi-Serve, arXiv:2403.02310)"


@formula(source=CHUNKED)
def chunk_budget(budget: Token, decoding: Number, chunked_prefill: Number) -> Token:
    """Prompt tokens per step: with chunked prefill (`chunked_prefill` = 1) each decoding sequence takes one token of the budget.

    >>> float(chunk_budget(8192, 192, 1)), float(chunk_budget(8192, 192, 0))
    (8000.0, 8192.0)
    """
    return np.maximum(budget - chunked_prefill * decoding * ONE_TOKEN, budget * LEAST_BUDGET)


@formula(source=CHUNKED)
def prompt_chunks(prompt: Token, chunk: Token) -> Number:
    """Steps that one prompt is split into.

    >>> float(prompt_chunks(8000, 2048))
    4.0
    """
    return np.ceil(prompt / chunk)


@formula(source="definition")
def packed_tokens(prompt: Token, chunk: Token, sequences: Number) -> Token:
    """Prompt tokens per step while prompts queue: the budget, or all queued prompts if they are fewer.

    >>> float(packed_tokens(1000, 8192, 128)), float(packed_tokens(1000, 8192, 4))
    (8192.0, 4000.0)
    """
    return np.minimum(chunk, sequences * prompt)


@formula(source="definition: each data-parallel rank has its own budget, and a prompt is on one rank")
def rank_budget(chunk: Token, sequences: Number, ranks: Number) -> Token:
    """Prompt tokens of a replica's step, where fewer sequences than ranks leave some idle.

    >>> float(rank_budget(65536, 2, 8)), float(rank_budget(65536, 64, 8))
    (16384.0, 65536.0)
    """
    return chunk * np.minimum(sequences / ranks, 1)


@formula(source="K prompts at once, served k per step: the j-th step's wait j steps; mean of j over K/k steps")
def together_s(sequences: Number, packed: Second, at_once: Number) -> Second:
    """Mean TTFT of prompts that arrive all together, of which so many are prefilled at once; `packed`: time per prompt.

    >>> round(float(together_s(128, 0.05, 8)), 3), float(together_s(1, 0.05, 1)), float(together_s(8, 10.0, 8))
    (3.4, 0.05, 80.0)
    """
    return (sequences + np.maximum(at_once, 1)) / 2 * packed


@formula(source="arrival theorem: in a closed loop of N a user meets the N - 1 others; PASTA: Poisson arrivals meet the mean")
def others_in_service(sequences: Number, closed: Number) -> Number:
    """Other requests in service from the view of one request; `closed` is 1 for a loop of users and 0 for Poisson arrivals.

    >>> float(others_in_service(8, 1)), float(others_in_service(0.5, 1)), float(others_in_service(0.5, 0))
    (7.0, 0.0, 0.5)
    """
    return np.maximum(sequences - closed, 0)


@formula(source="definition: a single user has nobody to come together with")
def synchronised_with_others(synchronised_share: Number, other_users: Number) -> Number:
    """Share of requests whose prompts arrive together with those of other users.

    >>> float(synchronised_with_others(0.9, 63)), float(synchronised_with_others(0.9, 0))
    (0.9, 0.0)
    """
    return synchronised_share * np.minimum(other_users, 1)


@formula(source="chance that answers which began in one step end in one, where their lengths scatter by so many steps: 1 / (1 + steps)")
def kept_in_step(number: Number, spread: Number, output: Token) -> Number:
    """What is left of a number of prompts that come together because answers of one length end together.

    >>> float(kept_in_step(0.9, 0.0, 1000)), round(float(kept_in_step(0.9, 0.064, 1000)), 4)
    (0.9, 0.0138)
    """
    return number / (1 + spread * output / ONE_TOKEN)


@formula(source="counting: each user of a closed loop sends one of the run's first requests, all at once")
def first_round(users: Number, requests: Number) -> Number:
    """Share of a run's requests that come at once at its start.

    >>> float(first_round(64, 640)), float(first_round(64, 32))
    (0.1, 1.0)
    """
    return np.minimum(users / requests, 1)


@formula(source="a run's first prompts come together; later ones where answers of one length end together")
def run_synchronised_share(start_share: Number, prompts_first: Number, spread: Number, output: Token) -> Number:
    """Share of a run's prompts that come all at once; `prompts_first` is 1 where all prompts go before any decode, so all march in step.

    >>> float(run_synchronised_share(0.1, 1, 0.0, 1000)), round(float(run_synchronised_share(0.1, 1, 0.064, 1000)), 3)
    (1.0, 0.114)
    """
    return start_share + (1 - start_share) * kept_in_step(prompts_first, spread, output)


@formula(
    source="one user's cycle counted in steps: answers advance by steps, however long prompts make them, so prompts queue by steps too"
)
def cycle_steps(output: Token, chunks: Number, accept_length: Number) -> Number:
    """Steps between two prompts of one user when nothing queues: decode steps of the output and prefill steps of the prompt.

    >>> cycle_steps(1000, 1, 1), cycle_steps(1001, 1, 2)
    (1000.0, 501.0)
    """
    return (output / ONE_TOKEN - 1) / accept_length + chunks


@formula(
    source="M/D/1 in a closed loop: w = service * load / (2 (1 - load)), load = A / (Z + w), solved for w; users who keep their order "
    "but for the spread of their cycles queue no more than those displaced: REGULAR fits a simulation of the queue"
)
def queued_before(other_users: Number, service: Same, cycle: Same, chunks: Number, spread: Number) -> Same:
    """Queue before a user's prompt, in steps or seconds: 0 without other users, A - Z where their work A exceeds the cycle Z.

    >>> float(queued_before(0, 0.5, 255, 1, 0.06)), round(float(queued_before(1023, 1.0, 255, 1, 0.06)))
    (0.0, 768)
    """
    # A one-step prompt shares no step in progress: it waits there for concurrent prompts only.
    load, over = other_users * service, other_users * service - cycle
    random = service * load * (1 - (1 - np.minimum(load / cycle, 1)) / chunks) / 2
    regular = REGULAR * service * spread * cycle
    begun = random * regular / np.maximum(np.sqrt(random * random + regular * regular), LEAST * service * service)
    return (over + np.sqrt(over * over + 4 * begun)) / 2


@formula(source="definition")
def prompts_per_step(other_users: Number, cycle: Number, queued: Number) -> Number:
    """Mean prompts of other users that begin per step.

    >>> prompts_per_step(127, 250, 4)
    0.5
    """
    return other_users / (cycle + queued)


@formula(source="offered load of Poisson arrivals, Little's law: prompts in progress where each has a lane of its own")
def prompt_load(rate: PerSecond, chunks: Number, step: Second) -> Number:
    """Mean prompts in progress of arrivals at `rate`, each prefilled in `chunks` steps.

    >>> prompt_load(1.0, 2, 0.5)
    1.0
    """
    return rate * chunks * step


@formula(source="Little's law m = rate chunks step(m), of steps that each further prompt lengthens alike, up to full ones")
def shared_load(rate: PerSecond, chunks: Number, step: Second, full_step: Second, most: Number) -> Number:
    """Mean prompts in progress where they share steps: more come during the longer steps of several prompts.

    >>> [float(shared_load(rate, 2, 0.25, longest, 4.0)) for rate, longest in ((1.0, 0.25), (1.0, 0.55), (4.0, 0.55))]
    [0.5, 0.625, 4.0]
    """
    longer = np.maximum(full_step - step, 0 * step) / np.maximum(most - 1, FEW)
    return np.minimum(rate * chunks * step / np.maximum(1 - rate * chunks * longer, FEW), np.maximum(most, 1))


@formula(source="PASTA: an arriving prompt meets the mean of those in progress, and shares the steps that they have left")
def prompts_met(load: Number, chunks: Number, most: Number, regularity: Number) -> Number:
    """Other prompts that share the steps of an arriving prompt; a step has room for `most`.

    Prompts of many chunks overlap as in a shared processor: `load` of them. A prompt of a single chunk shares its step only with
    those that arrived in the same step before it, which is one with prompts for a share `load` of the time. `regularity` of the
    arrivals: 1 at random.

    >>> [round(float(prompts_met(0.4, chunks, most, 1.0)), 3) for chunks, most in ((1.0, 8.0), (1e6, 8.0), (4.0, 1.0))]
    [0.16, 0.4, 0.0]
    """
    shared = regularity * load * np.minimum(1 - (1 - load) / chunks, 1)
    return np.minimum(shared, np.maximum(most - 1, 0))


@formula(source="utilisation law: `prompts` share each of the steps")
def prefill_share(rate: PerSecond, chunks: Number, step: Second, prompts: Number) -> Number:
    """Share of the time in steps with prompts.

    >>> float(prefill_share(1.0, 2, 0.5, 2.0))
    0.5
    """
    return np.minimum(rate * chunks * step / prompts, 1)


@formula(source="renewal: half of what is in progress when a request arrives: a step with prompts, or a whole prompt that fills the steps")
def residual_s(share: Number, prompt_step: Second, service: Second, decode_step: Second, busy: Number, regularity: Number) -> Second:
    """Mean time until the next prompt can start; `service`: time of a prompt while prompts queue, `regularity`: 1 for random arrivals.

    >>> round(float(residual_s(0.5, 0.4, 0.1, 0.02, 1.0, 1.0)), 3), float(residual_s(0.5, 0.4, 1.0, 0.0, 1.0, 1.0))
    (0.105, 0.25)
    """
    return regularity * share * np.maximum(prompt_step, service) / 2 + (1 - share) * busy * decode_step / 2


@formula(source="Kraemer and Langenbach-Belz 1976, 8th ITC: GI/D/1 with Erlang interarrival times, over M/D/1")
def regularity(utilisation: Number, in_turn: Number) -> Number:
    """Wait of arrivals that are dealt in turn to `in_turn` replicas, over the wait of those that come to each at random.

    >>> float(regularity(0.5, 1)), round(float(regularity(0.5, 4)), 4), round(float(regularity(0.9, 4)), 4)
    (1.0, 0.0558, 0.2116)
    """
    scatter = 1 / in_turn
    busy = np.clip(utilisation, FEW, 1)
    return scatter * np.exp(-2 * (1 - busy) * (1 - scatter) ** 2 / (3 * busy * scatter))


@formula(source="Pollaczek and Khinchine: wait = residual / (1 - load), and the load is rate times the service of a prompt")
def random_wait_s(residual: Second, rate: PerSecond, service: Second) -> Second:
    """Wait before the prefill of requests that arrive at random (M/D/1 where one prompt fills the steps).

    >>> round(float(random_wait_s(0.25, 0.5, 1.0)), 3), round(float(random_wait_s(0.4, 0.8, 1.0)), 3)
    (0.5, 2.0)
    """
    return residual / np.maximum(1 - rate * service, FEW)


@formula(source="Poisson counts, given that there is one: m / (1 - exp(-m)); those that came along on top; a step has room for `most`")
def prompts_in_progress(load: Number, concurrent_prompts: Number, most: Number) -> Number:
    """Prompts that share a prefill step, the observed one included.

    >>> round(float(prompts_in_progress(1e-9, 0, 8)), 3)
    1.0
    >>> round(float(prompts_in_progress(1.0, 1, 8)), 3), float(prompts_in_progress(80.0, 0, 8))
    (2.582, 8.0)
    """
    least = np.maximum(load, FEW)
    return np.maximum(np.minimum(least / (1 - np.exp(-least)) + concurrent_prompts, most), 1)


@formula(source="definition: what prompts add to a step, shared by the prompts in it")
def prompt_added_s(step: Second, decode_step: Second, chunked_prefill: Number, chunks: Number, prompts: Number) -> Second:
    """Time that one prompt adds to those who decode: all its steps, each with `prompts` prompts, less the decode step where they share it.

    >>> round(float(prompt_added_s(0.5, 0.02, 1, 2, 4)), 3), float(prompt_added_s(0.5, 0.02, 0, 2, 4))
    (0.24, 0.25)
    """
    return chunks * (step - chunked_prefill * decode_step) / prompts


@formula(source="definition")
def step_room(chunk: Token, prompt: Token, chunks: Number) -> Number:
    """Prompts that fit in a step next to one prompt's chunk.

    >>> float(step_room(8192, 1024, 1)), float(step_room(2048, 8192, 4))
    (7.0, 0.0)
    """
    return np.maximum(chunk / prompt - 1 / chunks, 0)


@formula(source="definition; `concurrent_prompts` are those that came along: answers of one length that ended in one step end so again")
def prompts_beside(
    chunked_prefill: Number, arriving: Number, room: Number, chunks: Number, concurrent_prompts: Number, other_users: Number
) -> Number:
    """Other users' prompts prefilled with a prompt: begun in the step in progress, in its own steps, or arrived with it.

    >>> float(prompts_beside(1, 0.5, 7, 1, 0.5, 63))
    1.5
    """
    return np.minimum(chunked_prefill * arriving + np.minimum(arriving, room) * chunks + concurrent_prompts, other_users)


@formula(source="definition: a prompt of each other user is prefilled before one's own or beside it, never both")
def users_not_queued(other_users: Number, queued: Same, prompt_steps: Same) -> Number:
    """Other users whose prompts are not among those queued before.

    >>> float(users_not_queued(63, 2.0, 0.5)), float(users_not_queued(63, 100.0, 0.5))
    (59.0, 0.0)
    """
    return np.maximum(other_users - queued / prompt_steps, 0)


@formula(source="renewal: half a decode step is in progress when a prompt comes, and all of the prompts begun with it")
def steady_s(prompt_s: Second, beside: Number, added: Second, queue: Second, decode_step: Second, busy: Number) -> Second:
    """Mean TTFT of prompts spread over the loop: prompt, concurrent prompts, queue, step in progress.

    >>> round(float(steady_s(0.25, 0.2, 0.23, 0.05, 0.020, 0.9)), 3)
    0.355
    """
    return prompt_s + beside * added + queue + busy * decode_step / 2


@formula(source="definition: data-parallel ranks prefill prompts of their own at once, a single rank as many as fill a step")
def prompts_at_once(packed: Token, prompt: Token, sequences: Number, ranks: Number) -> Number:
    """Prompts that begin and end together where all come at once (8 long prompts on one rank and on 8).

    >>> float(prompts_at_once(8192, 1e6, 8, 1)), float(prompts_at_once(65536, 1e6, 8, 8)), float(prompts_at_once(8192, 1024, 64, 1))
    (1.0, 8.0, 8.0)
    """
    return np.maximum(packed / prompt, np.minimum(sequences, ranks))


@formula(source="definition: on ranks of their own others' prompts only lengthen the steps that a prompt shares with them")
def beside_added_s(added: Second, shared: Second, alone: Second, chunks: Number, prompts: Number, ranks: Number) -> Second:
    """Time that one other prompt adds to a prompt that it is prefilled beside: all of its own on the same rank, less on another.

    >>> float(beside_added_s(0.24, 0.5, 0.4, 2, 4, 1)), round(float(beside_added_s(0.24, 0.5, 0.4, 2, 4, 8)), 3)
    (0.24, 0.067)
    """
    longer = chunks * np.maximum(shared - alone, 0 * alone) / np.maximum(prompts - 1, FEW)
    return np.where(ranks > 1, np.minimum(longer, added), added)


@formula(source="in a loop each other user's prompt is prefilled once in a cycle: while one decodes, unless before the first token")
def steady_between_s(other_users: Number, beside: Number, queued: Same, prompt_steps: Same, added: Second) -> Second:
    """Time that other users' prefill adds to a user's decode when prompts are spread over the loop.

    >>> float(steady_between_s(99, 1, 2, 0.25, 0.05))
    4.5
    """
    return np.maximum(other_users - beside - queued / prompt_steps, 0) * added


@formula(
    source="first come first served: who arrives while a request is in service is prefilled during its decode; where prompts share steps "
    "with decodes, at most what all of its steps have room for"
)
def open_between_s(
    other_requests: Number, output: Token, accept_length: Number, chunks: Number, prompts: Number, chunked_prefill: Number, added: Second
) -> Second:
    """Time that other requests' prefill adds to a decode under Poisson arrivals; `prompts` share a step with prefill.

    >>> float(open_between_s(4, 101, 1, 4, 1.0, 1, 1.5)), float(open_between_s(80, 101, 1, 4, 1.0, 1, 1.5))
    (6.0, 37.5)
    """
    most = (output / ONE_TOKEN - 1) / accept_length * prompts / chunks
    return np.minimum(other_requests, most / np.maximum(chunked_prefill, FEW)) * added


@formula(source="definition; Poisson arrivals find an empty server with the chance exp(-mean in service)")
def busy_share(sequences: Number, closed: Number) -> Number:
    """Chance that a step is in progress when a request is sent: 0 in a loop of one user.

    >>> float(busy_share(8, 1)), round(float(busy_share(8, 0)), 4)
    (0.875, 0.9997)
    """
    return closed * (1 - 1 / np.maximum(sequences, 1)) + (1 - closed) * (1 - np.exp(-sequences))


@formula(source="definition: of all that come together every one decodes at once, of those that come one by one the mean")
def decoding_at_once(decoding: Number, sequences: Number, synchronised_share: Number) -> Number:
    """Sequences in a user's decode steps: the time average, or all in service for synchronised prompts.

    >>> decoding_at_once(100, 128, 0), decoding_at_once(100, 128, 1)
    (100, 128)
    """
    return decoding + synchronised_share * (sequences - decoding)


@formula(source="definition: a decode step that one user sees carries that user; each other decodes as often as any")
def decoding_beside(decoding: Number, sequences: Number, closed: Number) -> Number:
    """Sequences in a user's decode steps when `decoding` sequences decode on time average.

    >>> float(decoding_beside(0.25, 1, 1)), float(decoding_beside(100, 128, 1)), float(decoding_beside(128, 128, 1))
    (1.0, 100.21875, 128.0)
    """
    return decoding + 1 - closed * decoding / np.maximum(sequences, 1)


@formula(source="definition: where nobody else is in service, nobody decodes beside a prompt")
def sharing_budget(decoding: Number, other_users: Number) -> Number:
    """Decoding sequences that take tokens of the step budget from a prompt.

    >>> float(sharing_budget(100, 127)), float(sharing_budget(0.9, 0))
    (100.0, 0.0)
    """
    return decoding * np.minimum(other_users, 1)


@formula(source="of prompts that come together a user decodes, on average, while those of half the later steps are prefilled")
def together_between_s(sequences: Number, packed: Second, at_once: Number) -> Second:
    """Time that other users' prefill adds to a user's decode when prompts are synchronised; `packed`: time per prompt.

    >>> float(together_between_s(128, 0.05, 8))
    3.0
    """
    return np.maximum(sequences - np.maximum(at_once, 1), 0) / 2 * packed


@formula(source="definition; a mean over the requests that came together and those that came one by one")
def looped_tpot_s(decode_step: Second, synchronised_share: Number, burst: Second, steady: Second, output: Token) -> Second:
    """TPOT of a user in a closed loop, with prefill of other users' prompts.

    >>> round(float(looped_tpot_s(0.020, 0.1, 3.0, 4.95, 1001)), 4)
    0.0248
    """
    between = synchronised_share * burst + (1 - synchronised_share) * steady
    return decode_step + between / np.maximum(output / ONE_TOKEN - 1, 1)


@formula(source="mean over the requests that came together and those that came one by one")
def looped_ttft_s(overhead: Second, synchronised_share: Number, burst: Second, steady: Second) -> Second:
    """TTFT of a request in service: a mean over synchronised and spread prompts.

    >>> round(looped_ttft_s(0.01, 0.1, 3.4, 0.3), 2)
    0.62
    """
    return overhead + synchronised_share * burst + (1 - synchronised_share) * steady
