"""The user's own layout beside the best one: the gain, and which part of a request's chip time it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.candidates import domain_of
from headway.errors import BadValue, UnknownName
from headway.estimate import estimate
from headway.goal import Goal
from headway.laws.money import chip_seconds_per_request
from headway.laws.planning import gain_of_less, gain_of_more, replicas_held
from headway.laws.serving import prefill_lanes, request_s
from headway.laws.shard import replica_chips
from headway.layout import NAMES, UNASKED, Layout, check, shape
from headway.pick import Choice
from headway.precision import Precision
from headway.quantity import default, known, user_input
from headway.schema import fields, scalar
from headway.search import compile_candidates
from headway.serve import ServeRequest, case_of
from headway.workload import Load

PARTS = {"compute_s": "arithmetic", "weights_s": "reading weights", "kv_s": "reading the KV cache", "network_s": "collectives",
         "overhead_s": "fixed overhead"}  # fmt: skip
NO_PREFILL = known(0.0, "no prefill", "s", "constant", "a decode part alone")


def parse(text: str) -> dict[str, Any]:
    """`tp=8 batch=64` (commas or spaces between) as values by name.

    >>> parse("tp=8 batch=64")
    {'tp': 8, 'batch': 64}
    """
    known_keys = {name: q for record in (Layout, Precision) for name, (q, _) in fields(record).items()}
    known_keys["batch"] = fields(Load)["batch"][0]
    values: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise BadValue("--current", word, 'KEY=VALUE pairs, such as "tp=8 batch=64"')
        if key not in known_keys:
            raise UnknownName("key of --current", key, known_keys, "one of " + ", ".join(known_keys))
        values[key] = scalar(value, known_keys[key], key)
    if "batch" not in values:
        raise BadValue("--current", text, 'a batch, such as "tp=8 batch=64"')
    return values


def placed(query: ServeRequest, user_values: Mapping[str, Any]) -> Choice:
    """The user's layout: ways not given are 1, replicas as many as the machine holds."""
    degrees = {name: user_values.get(name, UNASKED[name]) for name in NAMES}
    if "replicas" not in user_values:
        chips = replica_chips(degrees["tp"], degrees["cp"], degrees["dp"], degrees["pp"])
        replicas = max(int(replicas_held(int(query.system.chips), domain_of(query.system), chips)), 1)
        degrees["replicas"] = default(replicas, "replicas", "", "as many as the machine holds")
    degrees = {name: value if hasattr(value, "kind") else user_input(int(value), name) for name, value in degrees.items()}
    layout = check(Layout(**degrees), shape(query.work.blocks))
    batch = user_values["batch"] if hasattr(user_values["batch"], "kind") else user_input(int(user_values["batch"]), "batch")
    return Choice(query=query, layout=layout, load=Load(batch=batch, prompt=query.load.prompt, output=query.load.output))


def gain(best: Any, current: Any, goal: Goal) -> Any:
    """How many times better the best is."""
    return (gain_of_more if goal.more else gain_of_less)(current, best)


def cause(best: Choice, current: Choice) -> str:
    """Which part of a request's chip time differs most, in words."""
    mine, theirs = _parts(current), _parts(best)
    word = max(mine, key=lambda key: mine[key] - theirs[key])
    if mine[word] <= theirs[word]:
        return "no part of a request's chip time is larger than at the best layout"
    share = f"{mine[word]:.3g} chip-seconds per request against {theirs[word]:.3g}"
    ranks = f"batch {int(current.load.batch)} on {_size(current)} against {int(best.load.batch)} on {_size(best)}"
    return f"{word}: {share} ({ranks})"


def _size(pick: Choice) -> str:
    count = int(replica_chips(*(int(getattr(pick.layout, name)) for name in ("tp", "cp", "dp", "pp"))))
    return f"{count} chip{'s' if count > 1 else ''} per replica"


def _parts(pick: Choice) -> dict[str, float]:
    query, layout, load = pick.query, pick.layout, pick.load
    estimates, w = estimate(case_of(query, layout, load)), compile_candidates(query, layout, 1)
    lanes, chips = prefill_lanes(layout.dp, layout.pp), query.system.chips
    parts = {
        word: float(chip_seconds_per_request(chips, request_s(load.batch, load.output, estimates[key], NO_PREFILL, lanes), layout.replicas))
        for key, word in PARTS.items()
    }
    prefill = request_s(load.batch, load.output, NO_PREFILL, w.prefill, lanes)
    return parts | {"prefill": float(chip_seconds_per_request(chips, prefill, layout.replicas))}
