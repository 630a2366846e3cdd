"""Words about serving: speed and cost of a point or a grid, what its machine costs, what binds a point, and the nearest measured rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.hardware.chip_price import MARKET
from headway.performance.nearest import nearest
from headway.report.words import number_of, sentence, timed, value
from headway.serving.serve import AT_RISK, runs, time_key, tokens_key

MOST_TOLD = 3
METRICS = {
    "rental_on_demand": "on-demand", "rental_1yr": "1-year rental", "rental_3yr": "3-year rental", "rental_cloud_list": "cloud list",
    "rental_flex_start": "flex-start rental", "rental_spot": "spot",
    "tco_owning_hyperscaler": "hyperscaler's own", "tco_owning_neocloud": "neocloud's own",
}  # fmt: skip
MOST_NAMES = 2  # machines that a clause names
TOKENS = {"tok_per_s_chip": " per chip", "decode_tok_per_s": ""}  # of a rate, what it is of
NAMES = {"served TPOT": "TPOT", "throughput": "throughput", "decode": "decode step", "prefill": "prefill"}
HOW = {"disagg": ", disaggregated", "serving_unloaded": ", unloaded", "static": ", static batch", "decode_e2e": ", end to end"}


def nearest_measured(model: Any, chip: Any, engine: str) -> str:
    """Sentence on the nearest measured rows: their number, their subject and the median error of their predictions."""
    from headway.evidence.rows.names import family

    entries = nearest(chip, model, family(engine))
    if not entries:
        return f"nearest measured: none within range of {model.name} on {chip.name}"
    text = "; ".join(map(_entry_text, entries[:MOST_TOLD]))
    rest = sum(entry.rows for entry in entries[MOST_TOLD:])
    more = f"; {rest} rows more" if rest else ""
    fit_note = "" if all(entry.cross_validated for entry in entries) else " (by a fit that has seen them)"
    return f"nearest measured: {text}{more}{fit_note}"


def _entry_text(entry: Any) -> str:
    rows = f"{entry.rows} row{'s' if entry.rows > 1 else ''} of {entry.engine if entry.engine != 'other' else 'another engine'}"
    how = HOW.get(entry.kind, "")
    return f"{rows} on {entry.chip}, {entry.model_class} class{how}: median {NAMES[entry.measure]} error {100 * entry.median_error:.0f} %"


DEFINED = "TTFT and TPOT are means at this load, as vLLM's `bench serve` defines them: prefill of other requests counts."
TTFT = ("ttft_s", "ttft_floor_s", "ttft_lo_s~ttft_hi_s")
STEP_VIEW = ("step_s", "step_floor_s", "step_lo_s~step_hi_s", *TTFT, "tok_per_s_user", "decode_tok_per_s")
TPOT = ("tpot_s", "tpot_floor_s", "tpot_lo_s~tpot_hi_s")
REQUEST_VIEW = (*TTFT, *TPOT, "tok_per_s_user", "tok_per_s_chip", "usd_per_mtok_in", "usd_per_mtok_out")
PARTS = ("compute_s", "weights_s", "kv_s", "network_s", "overhead_s", "transfer_s", "draft_s")
PART_NAMES = {"draft_s": "drafting", "kv_s": "KV cache"}
WHAT = ("model", "system", "replicas", "tp", "ep", "dp", "pp", "cp", "weights", "kv", "compute", "rate", "batch", "context", "prompt",
        "output")  # fmt: skip
TEXTS = ("model", "system", "weights", "kv", "compute", "overlap", "price_metric")
FIRST = ("kind", "batch", "layout", "is", "solution")  # columns that a narrow table keeps
LAST = ("tpot_s", "step_s", "ttft_s", "usd_per_mtok_out", "tok_per_s_chip", "tok_per_s_user", "decode_tok_per_s", "bound", "why")


def is_request(row: Mapping[str, Any]) -> bool:
    """Whether a row is about whole requests (prompt and output) and not about one step at a context."""
    return row.get("prompt") is not None


def layout(row: Mapping[str, Any]) -> str:
    """Layout of a row, without degrees of 1."""
    degrees = [f"{key}={row[key]}" for key in ("tp", "ep", "dp", "pp", "cp") if row.get(key, 1) != 1] or ["tp=1"]
    return " ".join(degrees + ([f"replicas={row['replicas']}"] if row.get("replicas", 1) != 1 else []))


def formats(row: Mapping[str, Any]) -> str:
    """Number formats of a row."""
    return f"{row['weights']} weights, {row['kv']} KV, {row['compute']} compute"


def work(row: Mapping[str, Any]) -> str:
    """Load of a row."""
    keys = ("batch", "context") if row.get("prompt") is None else ("batch", "prompt", "output")
    return ", ".join(f"{key} {value(row, key)}" for key in keys)


def bound(row: Mapping[str, Any]) -> str:
    """Clause on what binds a point."""
    return f"{row['bound']} {'bind' if row['bound'] == 'weights' else 'binds'}"


def where(row: Mapping[str, Any]) -> str:
    """Subject of a sentence about a point: model, machine, layout, load."""
    load = f"batch {value(row, 'batch')}" if row.get("rate") is None else requests_per_s(row, "rate")
    load += "" if is_request(row) else f", context {value(row, 'context')}"
    return f"{row['model']} on {row['system']} with {layout(row)}, {load}"


def requests_per_s(row: Mapping[str, Any], key: str) -> str:
    """A rate in words."""
    return value(row, key).replace("/s", " requests/s")


def cost(row: Mapping[str, Any]) -> str:
    """Clause on the cost of output; empty where no price is known."""
    return "" if row.get("usd_per_mtok_out") is None else f"{value(row, 'usd_per_mtok_out')} per Mtok out"


def point(row: Mapping[str, Any], unpriced: str = "") -> str:
    """Sentence about a point: its TPOT or step with interval and floor, TTFT, cost; `unpriced`: clause on a machine without a price."""
    if not row["fits"]:
        return sentence(f"{row['model']} on {row['system']} with {layout(row)} does not fit", f": {row['why']}")
    if not is_request(row):
        per_user = f", {value(row, 'tok_per_s_user')} per user"
        return sentence(f"{where(row)}: a decode step takes {timed(row, 'step')}", per_user, f"; {bound(row)}")
    if (row.get("utilisation") or 0.0) >= 1:
        carried = f": it finishes {requests_per_s(row, 'capacity_req_per_s')} with every seat taken"
        return sentence(f"{row['model']} on {row['system']} with {layout(row)} does not carry {requests_per_s(row, 'rate')}", carried)
    tpot = "no TPOT (an answer of one token)" if row["tpot_s"] is None else f"TPOT {timed(row, 'tpot')}"
    price = f", {cost(row)}" if cost(row) else "" if unpriced else ", no price known"
    return sentence(f"{where(row)}: {tpot}", f", TTFT {value(row, 'ttft_s')}", price, f"; {bound(row)}", last=unpriced)


def binds(row: Mapping[str, Any]) -> str:
    """What binds a point: the parts of its step, the largest first, and the memory of the fullest chip."""
    handed = row.get("prefill_chips") is not None  # then the transfer is a cache's, and of no step
    parts = sorted((row.get(key) or 0.0, key) for key in PARTS if key != "transfer_s" or not handed)[::-1]
    step_parts = ", ".join(f"{PART_NAMES.get(key, key.removesuffix('_s'))} {value(row, key)}" for size, key in parts if size)
    of_step = "a step, if it fitted, would be" if row["bound"] == "capacity" else "a step is"
    memory = f"weights {value(row, 'weights_bytes_chip')} and KV cache {value(row, 'kv_bytes_chip')}"
    name = PART_NAMES.get(row["bound"] + "_s", row["bound"])
    return f"{name}; {of_step} {step_parts}; the fullest chip holds {memory} of {value(row, 'hbm_bytes_chip')} usable."


def drafting(row: Mapping[str, Any]) -> list[str]:
    """Line on speculation: what drafts, what it saves here, and of how many users it saves nothing."""
    if not row.get("draft_tokens"):
        return []
    share, users = row["draft_saving"], row.get("draft_users")
    token = "TPOT" if is_request(row) else "a token"
    effect = "" if share is None else f"; {token} takes {abs(share):.0%} {'less' if share >= 0 else 'more'} time"
    until = "" if users is None else f"; it saves none from {int(users):,} users of a replica on" if users > 1 else "; it never saves time"
    drafts = f"{number_of(row['draft_tokens'], 'draft')} a step" + (f" by {row['drafter']}" if row["drafter"] else "")
    return [f"speculation: {drafts}, {row['step_tokens']:.3g} tokens a step{effect}{until}"]


def at_risk(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The note on rows that fit but take nearly all of a chip."""
    tight = sum(str(row.get("why") or "").startswith(AT_RISK) for row in rows)
    return [f"{number_of(tight, 'row')} at risk: a driver, a display or fragments may need what is left of the card"] if tight else []


def grid(table: Any, varying: list[str], unpriced: str = "") -> tuple[str, Mapping[str, Any]]:
    """Sentence about many points, and the row of the point that is named last; `unpriced`: clause on machines without a price."""
    first = table.row(0)
    keys = [key for key in ("model", "system") if key not in varying]
    start = f"{' on '.join(str(first[key]) for key in keys)}: " if keys else ""
    time = "step_s" if not is_request(first) or all(value is None for value in table.values("tpot_s")) else "tpot_s"
    loads = [share or 0.0 for share in table.values("utilisation")]
    running = table.take([place for place, (fits, load) in enumerate(zip(table.values("fits"), loads, strict=True)) if fits and load < 1])
    if not len(running):
        return sentence(f"{start}none of {number_of(len(table), 'point')} {_why_none(table)}"), first
    cheapest, tokens = running.best("usd_per_mtok_out"), tokens_key(first)
    key, name = ("usd_per_mtok_out", "cheapest") if len(cheapest) else (tokens, f"most tokens{TOKENS[tokens]} come from")
    best_row = (cheapest if len(cheapest) else running.best(key, True)).row(0)
    fit = int(table["fits"].sum())
    fitting = f"all {number_of(len(table), 'point')} fit" if fit == len(table) else f"{fit:,} of {number_of(len(table), 'point')} fit"
    over = sum(share >= 1 for share in loads)
    fitting += f", {over:,} of them overloaded" if over else ""
    fast_row, unit = running.best(time).row(0), "per Mtok out" if len(cheapest) else ""
    fast = f"fastest is {setting(fast_row, varying)} ({'TPOT' if time == 'tpot_s' else 'step'} {value(fast_row, time)})"
    best = f"{name} {setting(best_row, varying)} ({f'{value(best_row, key)} {unit}'.strip()})"
    return sentence(f"{start}{fitting}; {fast}", f", {best}", last=unpriced), best_row


def _why_none(table: Any) -> str:
    """Why no point of a grid runs."""
    if not table["fits"].any():
        return f"fits; the first: {table.row(0)['why']}"
    return "carries its rate: all that fit are overloaded"


def setting(row: Mapping[str, Any], varying: Sequence[str]) -> str:
    """The varied inputs of a point, as they are typed."""
    names = [str(row[key]) for key in ("model", "system") if key in varying]
    return " ".join(names + [f"{key}={value(row, key).replace(' ', '')}" for key in varying if key not in ("model", "system")])


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Effect of a change on the time and the cost of a point; of a point that cannot run, what it is then."""
    time = time_key(after if before.get("tpot_s") is None else before)
    name, key = "TPOT" if time == "tpot_s" else "step", tokens_key(after)
    judged = ("usd_per_mtok_out", " per Mtok out") if after.get("usd_per_mtok_out") is not None else (key, TOKENS[key])
    columns = [(f"{name} ", time, ""), ("", *judged)]
    arrows = [f"{first}{value(before, key)} -> {value(after, key)}{last}" for first, key, last in columns]
    return ", ".join(arrows if runs(before) else [f"{first}{value(after, key)}{last}" for first, key, last in columns])


def metric_name(metric: str) -> str:
    """A price metric in words.

    >>> metric_name("rental_on_demand"), metric_name("rental_paper_assumption")
    ('on-demand', 'rental paper assumption')
    """
    return METRICS.get(metric, metric.replace("_", " "))


def unpriced(rows: Iterable[Mapping[str, Any]], metric: str) -> str:
    """Clause on the machines of these rows that have no price by the metric; "" where all have one."""
    names = list(dict.fromkeys(row["system"] for row in rows if row.get("prompt") is not None and row.get("usd_per_hour") is None))
    if not names:
        return ""
    subject = " and ".join(names) if len(names) <= MOST_NAMES else f"{number_of(len(names), 'machine')} of these"
    return f"; {subject} {'has' if len(names) == 1 else 'have'} no {f'{metric_name(metric)} ' if metric != MARKET else ''}price"


def machine_costs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A note on the cost of each machine of these rows per hour and month, and on the chips that every row leaves idle."""
    priced = {row["system"]: row for row in rows if row.get("usd_per_hour") is not None}
    sums = {name: f"{value(row, 'usd_per_hour')}/hour, {value(row, 'usd_per_month')}/month" for name, row in priced.items()}
    texts = [f"{name} costs {text}{_idle(rows, name)}" for name, text in sums.items()]
    return ["; ".join(texts[:MOST_NAMES])] if texts else []


def _idle(rows: Sequence[Mapping[str, Any]], system: str) -> str:
    """Clause on the fewest chips of a machine that a layout of these rows leaves idle; "" where one uses them all.

    >>> _idle([{"system": "8xh200", "chips": 8, "chips_idle": 6}, {"system": "8xh200", "chips": 8, "chips_idle": 4}], "8xh200")
    ', of which at least 4 of 8 chips idle'
    """
    idle = [(int(row.get("chips_idle") or 0), int(row.get("chips") or 0)) for row in rows if row["system"] == system]
    fewest, chips = min(idle)
    several = "at least " if max(idle)[0] > fewest else ""
    return f", of which {several}{fewest} of {chips} chips idle" if fewest else ""


def load_costs(row: Mapping[str, Any]) -> list[str]:
    """A note on the cost of output at this load and at full load; none where the load is the full one."""
    if row.get("usd_per_mtok_out") is None or row.get("utilisation") is None:
        return []
    loaded_text = f"{value(row, 'usd_per_mtok_out')} per Mtok of output and {value(row, 'usd_per_mtok_in')} per Mtok of input at this load"
    return [f"{loaded_text}; output at full load: {value(row, 'usd_per_mtok_out_full')}"]
