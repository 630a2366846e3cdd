"""Every contract quantity of one deployment at a load: the one path from a layout and a load to the numbers of a row.

`serve` calls it on grids, `plan` on candidates, `explain` on one point with the recorder on. Glue: the arithmetic is in laws/, what a
request meets is in performance/request.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headway.core.quantity import known
from headway.core.units import Byte, Number, Second, Token, UsdPerMtok
from headway.hardware.chip_price import PriceQuote
from headway.hardware.system import System
from headway.laws.calibration import by_own_runs, run_half
from headway.laws.collectives.library import linked_factor
from headway.laws.economics.cost import (
    cached_token_s,
    end_factor,
    full_load_usd,
    hour_usd,
    log_even_quantile,
    lower_end,
    month_usd,
    upper_end,
    usd_per_mtok_cached,
    usd_per_mtok_in,
    usd_per_mtok_out,
)
from headway.laws.queueing.closed_loop import LoopTimes, token_times
from headway.laws.serving.replicas import answer_token_s, between_s, cached_load_s, prompt_taken_s, share_beside_loads, utilisation
from headway.laws.serving.request import (
    decode_tok_per_s,
    e2e_s,
    interval_low,
    middle_context,
    rate_high,
    time_saved_share,
    user_tok_per_s,
)
from headway.laws.serving.room import memory_share, room_tokens
from headway.laws.step.layer_terms import idle_chips
from headway.laws.step.memory import (
    fits,
    fits_chips,
    fits_hbm,
    kv_bytes_chip,
    rank_sequence_limit,
    resident_sequences,
    sequence_bytes,
)
from headway.laws.step.step import (
    compute_s,
    drafts_s,
    expert_transfer_s,
    kv_s,
    network_s,
    overhead_s,
    step_floor_s,
    step_s,
    weights_s,
)
from headway.models.model import Model
from headway.models.precision import Precision
from headway.models.work import ModelWork, work_of
from headway.performance import request
from headway.performance.achieved import dense_part, efficiencies, form_of
from headway.performance.assumptions import Assumptions
from headway.performance.calibration.factors import calibrated_scheduling, calibrated_step
from headway.performance.calibration.in_force import Calibrations
from headway.performance.calibration.key import RunKey, run_key
from headway.performance.calibration.start import LoggedStart, start_in_force, started_room
from headway.performance.calibration.uptake import RunWidth, Uptake, uptake
from headway.performance.compile import StepModel, compile_drafts, compile_layout, copies
from headway.performance.drafts import Drafts, drafts_of
from headway.performance.formats import Formats, resolve
from headway.performance.intervals import spread
from headway.performance.layout import Layout
from headway.performance.nearest import QuestionSubject, subject
from headway.performance.request import (
    NO_SHARE,
    NO_TIME,
    NO_WORK,
    PLAIN,
    SINGLE,
    MemoryRoom,
    Requests,
    Server,
    ideal_scheduling,
    scheduling,
    transfer_link,
)
from headway.performance.room import Room, room_on_chip
from headway.performance.transport import link_ends, measured
from headway.performance.workload import Load

NO_DRAFTS = known(0, "draft_tokens", "", "constant", "a step without drafts")
ONE_RANK = known(1, "one rank", "", "constant", "a single prompt is prefilled by one data-parallel rank")
LOW = known(0.05, "5 % point", "", "constant", "lower end of a 90 % interval")
HIGH = known(0.95, "95 % point", "", "constant", "upper end of a 90 % interval")
SURE = known(1, "links as measured", "", "constant", "what a link takes adds nothing to an interval")
ONE_LANE = known(1, "prompts at once", "", "constant", "the share of the replica is counted already")

ONE_CHIP = Layout()

Ends = tuple[Any, Any]  # factors on a time, towards faster and towards slower


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A quantity with its 90 % interval, and a time with its floor."""

    expected: Any
    low: Any
    high: Any
    floor: Any = None

    def apply(self, law: Callable[[Any], Any]) -> Estimate:
        """What a law makes of it that grows with it, without a floor."""
        return Estimate(expected=law(self.expected), low=law(self.low), high=law(self.high))

    def invert(self, law: Callable[[Any], Any]) -> Estimate:
        """What a law makes of it that falls as it grows: each end follows from the other end."""
        return Estimate(expected=law(self.expected), low=law(self.high), high=law(self.low))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A model on a machine in one layout at a load, all looked up and checked; degrees and loads are scalars or arrays."""

    model: Model
    work: ModelWork
    system: System
    layout: Layout
    load: Load
    assumptions: Assumptions
    formats: Formats
    price: PriceQuote | None
    notes: tuple[str, ...] = ()
    drafts: Drafts | None = None
    calibration: Calibrations | None = None  # runs of the user's own; None without

    def at(self, layout: Layout, load: Load) -> Deployment:
        """The deployment in a layout at a load; data-parallel ranks that are copies of the model count as replicas."""
        layout, batch = copies(layout, load.batch, self.work.blocks)
        return replace(self, layout=layout, load=load if batch is load.batch else replace(load, batch=batch))

    def in_formats(self, precision: Precision) -> Deployment:
        """The deployment with its model, and what drafts for it, in these formats."""
        formats = resolve(self.work, self.system.chip, precision)
        return replace(self, formats=formats, drafts=drafts_of(self.model, self.system.chip, precision, self.assumptions))

    def replayed(self, layout: Layout, load: Load) -> Deployment:
        """The same, with the work of its model counted again, for a recorder that is on."""
        drafts = None if self.drafts is None else self.drafts.with_counts()
        return replace(self.at(layout, load), work=work_of(self.model, self.work.expert_load), drafts=drafts)

    def compiled(self) -> StepModel:
        """Its step model; a context without a request is prefilled as one prompt."""
        prompt = self.load.context if self.load.prompt is None else self.load.prompt
        compiled = compile_layout(self.work, self.system, self.layout, self.assumptions, self.formats, prompt=prompt)
        compiled, runs = compile_drafts(compiled, self.system, self.layout, self.assumptions, self.drafts), self.own_runs()
        if runs is None or self.calibration is None:
            return compiled
        self.calibration.tell(runs.runs)
        return replace(compiled, step=calibrated_step(compiled.step, runs.factors))

    def own_runs(self) -> Uptake | None:
        """What the user's own runs say of it; None where they say nothing."""
        if self.calibration is None:
            return None
        return uptake(self.calibration, self.run_key(), self.layout)

    def widths(self, compiled: StepModel, quantities: Callable[[Server], Mapping[str, Any]]) -> Mapping[str, RunWidth]:
        """How wide the user's own runs leave the interval of each quantity of its server; none where they say nothing."""
        runs = self.own_runs()
        return {} if runs is None else runs.widths(self.server(compiled), quantities)

    def room(self, compiled: StepModel, tokens: Token = None, sequences: Number = None) -> Room:
        """What its engine leaves of a chip for weights and KV cache; the step models that are not fitted have no engine."""
        chip, case, start = self.system.chip, self.assumptions, self.start()
        engine = case.engine if case.overlap == "fitted" else "none"

        def room_at(share: Number) -> Room:
            return room_on_chip(
                self.work, chip, self.layout, compiled, engine, share, efficiencies(chip), tokens, sequences, case.eager
            )

        return started_room(room_at, start, case.hbm_utilization)

    def start(self) -> LoggedStart | None:
        """What logs of its engine's start say of it; None where the user has none."""
        return start_in_force(self.calibration, self.run_key(), self.layout)

    def server(self, compiled: StepModel) -> Server:
        """Its step, memory, engine and speculation, as requests meet them."""
        assumptions, chip = self.assumptions, self.system.chip
        rules = scheduling(assumptions.engine, chip, efficiencies(chip)) if assumptions.overlap == "fitted" else ideal_scheduling()
        room = self.room(compiled)
        server = Server(
            step=compiled.step,
            room=MemoryRoom(
                weights=compiled.weights_bytes, usable=room.usable, card=room.reported, stores=compiled.stores,
                state=compiled.state_bytes, pages=room.pages, stage=compiled.stage,
            ),
            scheduling=rules, replicas=self.layout.replicas, chips=self.system.chips, instance=compiled.chips, tp=self.layout.tp,
            link=transfer_link(self.system), accept_length=PLAIN if self.drafts is None else self.drafts.length(),
        )  # fmt: skip
        runs, start = self.own_runs(), self.start()
        if start is not None:
            rules = replace(rules, max_sequences=by_own_runs(rules.max_sequences, start.seats))
            server = replace(server, scheduling=rules)
        return server if runs is None else replace(
            server, scheduling=calibrated_scheduling(rules, runs.factors), first_token_factor=runs.factors.first
        )  # fmt: skip

    def requests(self) -> Requests:
        """The requests of its load."""
        usual = self.assumptions
        return Requests(prompt=self.load.prompt, output=self.load.output, spread=usual.length_cv, hit_rate=usual.hit_rate)

    def subject(self) -> QuestionSubject:
        """What measured rows may be like."""
        form = form_of(self.formats, dense_part(self.formats, self.work.blocks)[0])
        return subject(self.model, self.system.chip, self.assumptions.engine, form, self.layout)

    def run_key(self) -> RunKey:
        """As which its runs are filed, in whatever layout."""
        return run_key(self.model, self.system, ONE_CHIP, self.formats, self.assumptions.engine)

    def factors(
        self, quantity: str, links: Ends, seat_share: Number = None, queued: Number = None, width: RunWidth | None = None
    ) -> Ends:
        """Factors on a time at the ends of its 90 % interval: wider by the share of seats taken; of a TTFT, by that of others.

        `width` is what the user's own runs leave of it.
        """
        about, (faster, slower) = self.subject(), links
        fast = linked_factor(spread(about, self.assumptions, quantity, self.system.chip, queued=queued), faster)
        slow = linked_factor(spread(about, self.assumptions, quantity, self.system.chip, seat_share, queued), slower)
        return self._narrowed(fast, width), self._narrowed(slow, width)

    def _narrowed(self, half: Any, width: RunWidth | None) -> Any:
        """Half of an interval as the user's own runs leave it, which is told; one that the user states stays."""
        if width is None or self.calibration is None or self.assumptions.spread is not None:
            return half
        narrow = run_half(half, width.scatter)
        self.calibration.tell(width.runs, width.quantity, half=narrow, usual=half)
        return narrow

    def steps_half(self, quantity: str, compiled: StepModel) -> Any:
        """Half of the interval of the steps behind a latency, of decodes in every seat ("tpot") or of a prompt ("prefill")."""
        requests = self.requests()

        def steps(server: Server) -> dict[str, Any]:
            if quantity == "prefill":
                return {quantity: request.prompt_s(server, requests, SINGLE, step_s)}
            return {quantity: request.decode_s(server, requests, server.seats(requests.prompt, requests.output), step_s)}

        half = spread(self.subject(), self.assumptions, quantity, self.system.chip)
        return self._narrowed(half, self.widths(compiled, steps).get(quantity))

    def timed(
        self, expected: Second, floor: Second, quantity: str, links: Ends, seat_share: Number = None, queued: Number = None,
        width: RunWidth | None = None,
    ) -> Estimate:  # fmt: skip
        """A time with its interval, of which nothing is below the floor."""
        fast, slow = self.factors(quantity, links, seat_share, queued, width)
        return Estimate(expected=expected, floor=floor, low=interval_low(expected, floor, fast), high=expected * slow)

    def links(self, compiled: StepModel, batch: Number, token: Second) -> Ends:
        """Factors on the time of a token for links that were not measured; none where the user or a flat model states the interval."""
        if self.assumptions.spread is not None or self.assumptions.overlap != "fitted":
            return SURE, SURE
        return link_ends(network_s(compiled.step, batch), token, measured(self.system, self.layout.tp, self.layout.cp))

    def step(self, compiled: StepModel, batch: Number, context: Token) -> Estimate:
        """One decode step."""
        tokens = batch * context
        expected, floor = (law(compiled.step, batch, tokens, NO_WORK, NO_WORK) for law in (step_s, step_floor_s))
        widths = self.widths(compiled, lambda server: {"decode": step_s(server.step, batch, tokens, NO_WORK, NO_WORK)})
        return self.timed(expected, floor, "decode", self.links(compiled, batch, expected), width=widths.get("decode"))


def columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a served point: the one place where an estimate becomes columns, `ttft` becomes `ttft_s`, `ttft_floor_s`, `ttft_lo_s`."""
    row: dict[str, Any] = {}
    for key, value in values.items():
        if not isinstance(value, Estimate):
            row[key] = value
            continue
        unit = "" if value.floor is None else "_s"  # only times have a floor
        ends = {"": value.expected, "_floor": value.floor, "_lo": value.low, "_hi": value.high}
        row |= {f"{key}{end}{unit}": number for end, number in ends.items() if number is not None}
    return row


def estimate(case: Deployment) -> dict[str, Any]:
    """Contract key -> value, each at its own rank; None where a quantity does not apply."""
    compiled = case.compiled()
    values = columns(_decode_step(case, compiled) if case.load.prompt is None else _request(case, compiled))
    return values | _drafting(case, compiled, values) if case.drafts or case.assumptions.draft else values


def _drafting(case: Deployment, compiled: StepModel, values: Mapping[str, Any]) -> dict[str, Any]:
    """What speculation does: tokens of a step, the time of its drafts, what they save, and of how many users they save nothing."""
    drafts, load = case.drafts, case.load
    if drafts is None:
        return {"draft_tokens": NO_DRAFTS, "step_tokens": PLAIN, "draft_s": NO_TIME, "draft_saving": NO_SHARE}
    bare = replace(case, drafts=None)
    without, server = bare.compiled(), case.server(compiled)
    batch, context = load.batch if load.rate is None else values["decoding"], values["context"]
    result = {
        "draft_tokens": drafts.tokens, "step_tokens": server.accept_length,
        "draft_s": drafts_s(compiled.step, batch, batch * context, NO_WORK, NO_WORK),
    }  # fmt: skip
    if load.prompt is None:
        token = token_times(server.accept_length)(batch, batch * context, values["step_s"])
        plain_step = step_s(without.step, batch, batch * context, NO_WORK, NO_WORK)
        return result | {"draft_saving": time_saved_share(token, plain_step)}
    requests, alone = case.requests(), bare.server(without)
    saving = time_saved_share(values["tpot_s"], _runs(bare, requests)(alone).tpot)
    return result | {"draft_saving": saving, "draft_users": request.paying_users(server, alone, requests)}


def throughput(case: Deployment) -> dict[str, Any]:
    """Chips used, TPOT and time between requests of a deployment at its load: what an objective needs of `estimate`, without its floors."""
    compiled = case.compiled()
    server, requests = case.server(compiled), case.requests()
    expected = _runs(case, requests)(server)
    rate = expected.rate if case.load.rate is None else np.minimum(expected.rate, request.capacity(server, requests))
    return {**chips_of(case, compiled), "tpot_s": expected.tpot, "request_s": between_s(rate)}


def _runs(case: Deployment, requests: Requests) -> Callable[..., LoopTimes]:
    """The load as a function of the server: a closed loop of `batch` users per replica, or arrivals at `rate`."""
    load = case.load
    if load.rate is None:
        return functools.partial(request.closed_loop, requests=requests, users=load.batch)
    return functools.partial(request.open_loop, requests=requests, rate=load.rate / case.layout.replicas)


def chips_of(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    """Chips paid for, used and idle."""
    chips, chips_used = case.system.chips, compiled.chips * case.layout.replicas
    return {"chips": chips, "chips_idle": idle_chips(chips, chips_used), "chips_used": chips_used}


def _decode_step(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    """Quantities of decode steps at one context, and of the prefill of as many tokens; no whole request."""
    load, context = case.load, case.load.context
    step = case.step(compiled, load.batch, context)
    server = case.server(compiled)
    per_token = token_times(server.accept_length)  # of steps that may yield several tokens
    token, slow, fast = (per_token(load.batch, load.batch * context, time) for time in (step.expected, step.high, step.low))
    rates = Estimate(expected=token, low=fast, high=slow).invert(lambda time: decode_tok_per_s(load.batch, time, case.layout.replicas))
    alone = replace(case, load=replace(load, prompt=context, output=SINGLE))
    requests = alone.requests()
    least = request.unloaded_ttft_s(server.ideal(), requests, step_floor_s)
    widths = case.widths(compiled, lambda server: {"ttft": request.unloaded_ttft_s(server, requests, step_s)})
    links = case.links(compiled, load.batch, step.expected)
    first = case.timed(request.unloaded_ttft_s(server, requests, step_s), least, "ttft", links, width=widths.get("ttft"))
    return {
        **chips_of(case, compiled), "context": context, "concurrency": load.batch * case.layout.replicas, "step": step, "ttft": first,
        "ttft_unloaded_s": first.expected, **step_parts(compiled, load.batch, context),
        "decode_tok_per_s": rates, "tok_per_s_chip": rates.apply(lambda rate: rate / case.system.chips),
        "tok_per_s_user": user_tok_per_s(token), **memory_of(case, compiled, load.batch),
    }  # fmt: skip


def _request(case: Deployment, compiled: StepModel) -> dict[str, Any]:
    """Quantities of requests at a load, expected and at the floor: by the engine's scheduling, and by a scheduler without overhead."""
    load, replicas = case.load, case.layout.replicas
    server, requests, runs = case.server(compiled), case.requests(), _runs(case, case.requests())
    plain = server if case.calibration is None else replace(case, calibration=None).server(compiled)  # no run moves a floor
    perfect = plain.ideal()
    expected, engine_floor, ideal = runs(server), runs(plain, law=step_floor_s), runs(perfect, law=step_floor_s)
    widths = case.widths(compiled, lambda server: _interval_quantities(runs(server)))
    context = middle_context(load.prompt, load.output)
    links = case.links(compiled, load.batch if load.rate is None else expected.decoding, expected.tpot)
    if load.rate is None:  # users who wait for their answers: their share of the seats, and the KV cache of them all
        batch = in_flight = load.batch
        capacity = expected.rate
        seat_share = np.minimum(load.batch / np.maximum(server.seats(load.prompt, load.output), SINGLE), 1)
        fast, slow = case.factors("tpot", links, seat_share, width=widths.get("rate"))
        fastest = rate_high(expected.rate, np.maximum(engine_floor.rate, ideal.rate), fast)
        rates = Estimate(expected=expected.rate, low=expected.rate / slow, high=fastest)
    else:  # arrivals, of which are completed as many as the replica can carry
        batch, in_flight, seat_share = expected.decoding, expected.in_service, None
        capacity = request.capacity(server, requests)
        carried = np.minimum(expected.rate, capacity)
        rates = Estimate(expected=carried, low=carried, high=carried)
    alone = request.unloaded_ttft_s(server, requests, step_s)
    queued = 1 - np.minimum(alone / expected.ttft, 1)
    ttft = case.timed(expected.ttft, request.unloaded_ttft_s(perfect, requests, step_floor_s), "ttft", links, seat_share, queued,
                      widths.get("ttft"))  # fmt: skip
    tpot = case.timed(expected.tpot, np.minimum(engine_floor.tpot, ideal.tpot), "tpot", links, seat_share, width=widths.get("tpot"))
    decode = case.timed(expected.decode, engine_floor.decode, "decode", links, width=widths.get("decode"))
    tokens = rates.apply(lambda rate: rate * replicas * load.output)
    values = {
        **chips_of(case, compiled), "context": context, "concurrency": in_flight * replicas, "decoding": expected.decoding,
        "step": case.step(compiled, batch, context), **step_parts(compiled, batch, context), "ttft": ttft, "tpot": tpot,
        "tpot_decode_s": expected.decode, "ttft_unloaded_s": alone, "e2e_s": e2e_s(ttft.expected, tpot.expected, load.output),
        "tok_per_s_user": user_tok_per_s(tpot.expected),
        "decode_tok_per_s": decode.invert(lambda time: decode_tok_per_s(batch, time, replicas)),
        "request_s": between_s(rates.expected), "tok_per_s": tokens, "tok_per_s_chip": tokens.apply(lambda rate: rate / case.system.chips),
        "capacity_req_per_s": capacity * replicas, **memory_of(case, compiled, in_flight),
    }  # fmt: skip
    if load.rate is not None:
        values |= {"rate": load.rate, "utilisation": utilisation(load.rate, values["capacity_req_per_s"])}
    return values | _money(case, compiled, expected, rates.invert(between_s), values.get("utilisation"))


def _interval_quantities(times: LoopTimes) -> dict[str, Any]:
    """Quantities of requests that have intervals, as widths name them."""
    return {"ttft": times.ttft, "tpot": times.tpot, "decode": times.decode, "rate": times.rate}


def step_parts(compiled: StepModel, batch: Number, context: Token) -> dict[str, Any]:
    """What a decode step takes its time for."""
    c, tokens = compiled.step, batch * context
    return {
        "compute_s": compute_s(c, batch, tokens), "weights_s": weights_s(c, batch), "kv_s": kv_s(c, batch, tokens),
        "network_s": network_s(c, batch), "overhead_s": overhead_s(c, batch, tokens),
        "transfer_s": expert_transfer_s(c, batch) if c.transfers else None,
    }  # fmt: skip


def memory_of(case: Deployment, compiled: StepModel, batch: Number) -> dict[str, Any]:
    """Memory of the fullest chip: users of a closed loop at their last token; arrivals as they are on average, and one that must fit.

    An engine admits arrivals while they fit, so that more of them wait and none overflows.
    """

    def kv_bytes(sequences: Number, size: Byte) -> Any:
        return kv_bytes_chip(resident_sequences(sequences, layout.dp), size, compiled.stage, layout.cp)

    load, layout, room = case.load, case.layout, case.room(compiled)
    longest = load.prompt + load.output if load.prompt is not None else load.context
    sequence_size = room.sequence_bytes(longest)
    if load.rate is None:
        kv = needed = kv_bytes(batch, sequence_size)
    else:
        needed = kv_bytes(SINGLE, sequence_size)
        kv = kv_bytes(batch, room.sequence_bytes(middle_context(load.prompt, load.output)))
    concurrency = room.sequences(longest, layout.cp)
    holds = fits(fits_hbm(compiled.weights_bytes, needed, room.usable), compiled.host_room(case.system.chip))
    return {
        "weights_bytes_chip": compiled.weights_bytes, "kv_bytes_chip": kv, "hbm_bytes_chip": room.usable,
        "host_bytes_chip": compiled.host_bytes,
        "fits": fits(holds, fits_chips(compiled.chips * layout.replicas, case.system.chips)),
        "sequence_limit": rank_sequence_limit(room.usable, compiled.weights_bytes, sequence_size, compiled.stage, layout.cp),
        "kv_room_bytes_chip": room.kv, "kv_room_tokens": room_tokens(concurrency, longest, layout.dp),
        "max_concurrency": concurrency * layout.dp, "activation_bytes_chip": room.activations, "workspace_bytes_chip": room.workspace,
        "left_bytes_chip": room.beyond, "block_rest_bytes_chip": room.rest, "memory_bytes_chip": room.reported,
        "memory_share": memory_share(room.weights, kv, room.activations, room.workspace, room.reported),
    }  # fmt: skip


def _money(case: Deployment, compiled: StepModel, expected: LoopTimes, between: Estimate, busy: Number) -> dict[str, Any]:
    """Cost per million tokens of each kind, which together pay for the machine; `between` is the time between finished requests.

    A request's share of the machine is divided among its tokens in the proportions of the times that they take alone. The prompt's part
    grows and shrinks with the time between requests. A cached prefix is loaded over the link to the host, or HBM where none is published.
    """
    price, load, layout, chips = case.price, case.load, case.layout, case.system.chips
    if price is None:
        return {}
    fresh, _ = request.prefilled(load.prompt, case.assumptions.hit_rate)
    reload = cached_token_load_s(case, compiled)
    prompt_time = prompt_taken_s(between.expected, expected.prompt, expected.decode, expected.decoding, load.output)
    cached = cached_load_s(load.prompt - fresh, reload, layout.dp)

    def fresh_usd(time: Second) -> Any:
        part = prompt_time * end_factor(time, between.expected) * share_beside_loads(time, cached)
        return usd_per_mtok_in(price.value, chips, part, fresh, ONE_LANE, layout.replicas)

    def cached_usd(time: Second) -> Any:
        return usd_per_mtok_cached(price.value, chips, reload * share_beside_loads(time, cached), layout.dp, layout.replicas)

    def answer_usd(time: Second) -> Any:
        answer = answer_token_s(time, prompt_time * end_factor(time, between.expected), load.output)
        return usd_per_mtok_out(price.value, chips, answer * share_beside_loads(time, cached), ONE_LANE, layout.replicas)

    out = between.apply(answer_usd)
    return {
        "usd_per_mtok_in": cost_range(between.apply(fresh_usd), price), "usd_per_mtok_cached": cost_range(between.apply(cached_usd), price),
        "usd_per_mtok_out": cost_range(out, price), **machine_usd(price, chips, out.expected, busy),
    }  # fmt: skip


def cached_token_load_s(case: Deployment, compiled: StepModel) -> Any:
    """Time of a replica to load one cached token of the prompt over the link to the host, or HBM where none is published."""
    prompt, chip = case.load.prompt, case.system.chip
    prefix = sequence_bytes(compiled.stores, compiled.state_bytes, prompt)
    link = chip.host_link_bw if chip.host_link_bw is not None else chip.need("hbm_bw")
    return cached_token_s(prefix * compiled.stage / case.layout.cp / prompt, link)


def cost_range(cost: Estimate, price: PriceQuote) -> Estimate:
    """A cost with the interval of its times and that of the price of a chip, which are independent, as `headway price` takes them."""
    cheap, dear = (log_even_quantile(price.low, price.high, share) for share in (LOW, HIGH))
    return Estimate(
        expected=cost.expected,
        low=lower_end(cost.expected, (end_factor(cost.expected, cost.low), end_factor(price.value, cheap))),
        high=upper_end(cost.expected, (end_factor(cost.high, cost.expected), end_factor(dear, price.value))),
    )


def machine_usd(price: PriceQuote, chips: Number, out_usd: UsdPerMtok, busy: Number) -> dict[str, Any]:
    """Cost of the machine per hour and month, and of output at full load: that of a closed loop is its own load."""
    hour = hour_usd(price.value, chips)
    full = out_usd if busy is None else full_load_usd(out_usd, busy)
    return {"usd_per_hour": hour, "usd_per_month": month_usd(hour), "usd_per_mtok_out_full": full}
