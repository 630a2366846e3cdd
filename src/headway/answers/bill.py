"""`headway bill --sheet claude-opus,gemini-3.1-pro --requests trace.csv --cache 5min,1h,none`: cost of requests by billing option."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headway.answers import arguments
from headway.core import schema, units
from headway.core.columns import Column
from headway.core.errors import BadValue, UnknownName
from headway.core.listing import Listing, clean, computed
from headway.core.notes import note
from headway.core.progress import expect, tick
from headway.core.question import Question
from headway.core.trace import record
from headway.economics.bill import AUTOMATIC, PRICED, BillCalculator, compare, modes_of, requests_of, requests_of_totals, ttls_of, ways_of
from headway.economics.questions import Bill
from headway.economics.sheets.catalogue import newest, read
from headway.economics.sheets.catalogue import sheets as catalogue_sheets
from headway.economics.sheets.tables import table_notes
from headway.laws.economics.cost import whole_reads
from headway.report import output, price
from headway.report.words import sentence
from headway.simulation.traffic.distributions import parse_arrivals, parse_lengths
from headway.simulation.traffic.generate import ConversationTurns, generate, generate_conversations, parse_turns
from headway.simulation.traffic.read import read_trace
from headway.simulation.traffic.requests import LONGEST

if TYPE_CHECKING:
    from headway.core.listing import Rows

VIEW = ("provider", "model", "as_of", "mode", "cache", "prompt_layout", "usd", "over_cheapest", "saved_share", "usd_input", "usd_cached",
        "usd_written", "usd_output", "usd_storage", "cached_share", "reads_per_write", "speed_ratio", "why")  # fmt: skip
KEYS = ("provider", "model", "as_of", "mode", "cache", "prompt_layout")  # columns that identify a row
ALL_SHEETS = "all"
NONE = ("none", "off", "no")
NARROW = ("model", "mode", "cache", "usd", "over_cheapest")  # columns that a narrow table keeps
MOST_HELPS = 3
MOST_SAID = 6  # most sheets with a separate line
MOST_FLAGS = 10
USUAL_MINIMUM = 4096  # tokens: the longest prefix that a provider of the catalogue still does not cache
PROGRESS_LABEL = "bills computed"
OWN_COLUMNS = {  # columns with a meaning specific to this verb
    "fits": Column("bool", "whether every request is within the context that the sheet states"),
    "ranked": Column(
        "bool", "whether the sheet states every rate that these requests need; others come last, with the most that they cost"
    ),
    "why": Column("", "why it does not fit or is not ranked, or empty"),
}
UNRATED = "states no rate for cached tokens"


def run(args: Bill) -> output.Answer:
    """Answer with a row per billing option, cheapest first."""
    sheets, requests = sheets_of(args), requests_billed(args)
    biller, options = _billing_options(args, sheets, requests)
    note(*_minimum_notes(options, requests))
    comparisons, rows = _comparisons(biller, options)
    first_row = _row(next(comparison for comparison in comparisons if comparison.bill.way is options[0]), None)
    listing = Listing(rows, tree=lambda row, key: _tree(biller, options, row, key))
    flags = [f"{sheet.provider}/{sheet.model} ({sheet.as_of}): {flag}" for sheet in sheets for flag in sheet.flags]
    hint = f"{len(flags)} remarks on these sheets are not shown: headway list sheets -o csv has them"
    note(*(flags if len(flags) <= MOST_FLAGS else [hint]))
    return output.Answer(
        listing, describe=lambda table: _words(table, first_row, len(requests.prompt), requests.lengths),
        pictures={"modes": lambda rows, view: price.bills(list(rows), view)}, columns=OWN_COLUMNS,
    )  # fmt: skip


def sheets_of(args: Question) -> list[Any]:
    """Price sheets named on the command line, without repeats."""
    catalog, sheets = arguments.catalog(args), []
    for name in arguments.split(args.sheet, "--sheet"):
        if name.lower() == ALL_SHEETS:
            sheets += newest(catalogue_sheets(catalog))
            continue
        source = read(name, catalog)
        sheets += source.sheets
        note(*source.notes)
    note(*table_notes(sheets))
    return list(dict.fromkeys(sheets))


def _billing_options(args: Bill, sheets: Sequence[Any], requests: Any) -> tuple[Any, list[Any]]:
    """Billing options that are requested and sold; notes say which are not sold."""
    options = options_sold(args, sheets, requests)
    if any(way.sheet.hours for way in options):
        first = "the first request comes" if requests.lengths else "the totals are computed as if all came"
        note(f"prices by the hour, of the standard mode alone: {first} at {args.start} UTC (--start)")
    if not requests.lengths and any(way.sheet.tiers for way in options):
        note("context tiers are left out: the lengths of the requests are not known")
    return BillCalculator(requests=requests, start_s=start_s(args.start)), options


def options_sold(args: Question, sheets: Sequence[Any], requests: Any) -> list[Any]:
    """Billing options of the modes and caches of a question that these sheets sell."""
    modes, ttls = _names(args.mode), _ttls(args.cache)
    known = sorted({mode for sheet in sheets for mode in modes_of(sheet)})
    for mode in modes:
        if mode not in known:
            raise UnknownName("mode", mode, known, f"these sheets sell {', '.join(known)}")
    options = [way for sheet in sheets for way in ways_of(sheet, modes, ttls, requests.sharing.layouts)]
    if not options:
        sold = [f"{sheet.model}: {', '.join(modes_of(sheet))}, caches {_times(ttls_of(sheet.rates)) or NONE[0]}" for sheet in sheets[:3]]
        raise BadValue("--cache", args.cache or args.mode, "something that is sold: " + "; ".join(sold))
    note(*_unsold_notes(sheets, ttls), *(_cache_assumptions(options) if requests.lengths else []))
    return options


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip().lower() for part in text.split(","))) if text else ()
    if not all(names):
        raise BadValue("--mode", text, "names with a comma between, such as standard,batch")
    return () if names == (ALL_SHEETS,) else names


def _ttls(text: str) -> tuple[float | None, ...]:
    """Cache TTLs in seconds; None: no cache."""
    ttls: list[float | None] = []
    for part in text.split(",") if text else ():
        if part.strip().lower() in NONE:
            ttls.append(None)
            continue
        seconds = units.parse(part, "s", "--cache")
        if seconds <= 0 or part.strip().replace(".", "").isdigit():
            raise BadValue("--cache", part, "a time to live with its unit, such as 5min or 1h, or none")
        ttls.append(seconds)
    return tuple(dict.fromkeys(ttls))


def _unsold_notes(sheets: Sequence[Any], ttls: Sequence[float | None]) -> list[str]:
    """Notes on requested cache TTLs that a sheet does not sell."""
    notes, unrated = [], []
    for sheet in sheets:
        sold = ttls_of(sheet.rates)
        missing = [ttl for ttl in ttls if ttl is not None and ttl not in sold]
        if not sold and (missing or not ttls):
            unrated.append(f"{sheet.provider}/{sheet.model} ({sheet.as_of})")
        elif missing and sheet.rates.cache_writes:
            notes.append(f"{sheet.provider}/{sheet.model} sells {_times(sold)}, not {_times(missing)}: left out")
    if unrated:
        names = ", ".join(unrated[:3]) + (f" and {len(unrated) - 3} more" if len(unrated) > 3 else "")
        remedy = 'cache_read = "1x" in a sheet of your own says that none are cheaper'
        verb = UNRATED if len(unrated) == 1 else UNRATED.replace("states", "state")
        notes.insert(0, f"{names} {verb}: computed without a cache ({remedy})")
    return notes


def _minimum_notes(options: Sequence[Any], requests: Any) -> list[str]:
    """Notes on the shortest prefix that a provider caches: where it leaves prompts out, and where the sheet states none."""
    if not requests.lengths:
        return []
    cached = {f"{way.sheet.provider}/{way.sheet.model}": way for way in options if way.ttl_s is not None}
    shortest = {name: int(min(requests.sharing.marked(way.layout))) for name, way in cached.items()}
    least = {name: way.sheet.min_prefix for name, way in cached.items()}
    notes = [
        f"{name} caches no prefix below {least[name]:,.0f} tokens, by its documentation; these begin at {shortest[name]:,}"
        for name in cached if least[name] and 0 < shortest[name] < least[name]
    ]  # fmt: skip
    unstated = [name for name in cached if least[name] is None and 0 < shortest[name] < USUAL_MINIMUM]
    if unstated:
        names = ", ".join(unstated[:3]) + (f" and {len(unstated) - 3} more" if len(unstated) > 3 else "")
        notes.append(f"assumed: a prefix of any length is cached by {names}; others cache from 512 to 4,096 tokens (min_prefix of a sheet)")
    return notes


def _cache_assumptions(options: Sequence[Any]) -> list[str]:
    """Notes on caches whose TTL comes from the user or a default, not from the sheet."""
    automatic = dict.fromkeys(f"{way.sheet.provider}/{way.sheet.model}" for way in options if way.caching == AUTOMATIC)
    unstated = dict.fromkeys(
        f"{way.sheet.provider}/{way.sheet.model}"
        for way in options
        if way.caching == PRICED and any(write_rate.ttl_s is None for write_rate in way.sheet.rates.cache_writes)
    )
    automatic_note = "caching is automatic, for how long is not stated: taken as the column cache says"
    notes = [f"{', '.join(automatic)}: {automatic_note}"] if automatic else []
    return notes + [f"{', '.join(unstated)}: the default cache's time to live is not stated: taken as 5min"] * bool(unstated)


def _times(ttls: Sequence[float]) -> str:
    return ", ".join(_ttl(ttl) for ttl in ttls)


def _ttl(seconds: float | None) -> str:
    """TTL in the notation of --cache."""
    if seconds is None:
        return NONE[0]
    for factor, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= factor and seconds % factor == 0:
            return f"{seconds / factor:g}{unit}"
    return f"{seconds:g}s"


# -- rows -----------------------------------------------------------------------------------------------------------------------


def _comparisons(biller: Any, options: Sequence[Any]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Comparisons of all bills, cheapest first, and their rows."""
    bills = []
    expect(len(options))
    for way in options:
        bills.append(biller.bill(way))
        tick(1)
    comparisons = compare(bills)
    return comparisons, [_row(comparison, comparisons[0]) for comparison in comparisons]


def _row(comparison: Any, cheapest: Any) -> dict[str, Any]:
    """Row of a bill."""
    bill, way = comparison.bill, comparison.bill.way
    row: dict[str, Any] = {
        "provider": way.sheet.provider, "model": way.sheet.model, "as_of": way.sheet.as_of, "mode": way.mode, "cache": _ttl(way.ttl_s),
        "caching": way.caching, "prompt_layout": way.layout,
    }  # fmt: skip
    row |= {key: getattr(bill, key) for key in BILLED} | {"over_cheapest": comparison.over_cheapest, "saved_share": comparison.saved_share}
    long = f"{bill.too_long} of {bill.requests} requests are longer than its {units.show(way.sheet.context_limit, 'token')} context"
    why = [long] * bool(bill.too_long) + [f"{UNRATED}: costs at most this"] * (not bill.ranked)
    return clean(row | {"fits": not bill.too_long, "ranked": bill.ranked, "why": "; ".join(why) or None})


BILLED = ("requests", "prompt_tokens", "cached_tokens", "written_tokens", "output_tokens", "cached_share", "usd_input", "usd_cached",
          "usd_written", "usd_output", "usd_storage", "usd", "usd_each", "break_even_reads", "reads_per_write", "speed_ratio",
          "too_long")  # fmt: skip


def _tree(biller: Any, options: Sequence[Any], row: Mapping[str, Any], key: str) -> Any:
    """Formula tree of a cell."""
    with record():
        is_comparison, sheet_keys = key in ("over_cheapest", "saved_share"), ("provider", "model", "as_of")
        behind = [way for way in options if is_comparison or all(str(getattr(way.sheet, name)) == row[name] for name in sheet_keys)]
        for comparison in compare([biller.bill(way) for way in behind]):
            if _is_same_bill(_row(comparison, None), row):
                owner = comparison if is_comparison else comparison.bill
                return computed(getattr(owner, key, None), key)
    raise BadValue("--explain", key, "a column of numbers")


def _is_same_bill(other_row: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return all(other_row[key] == row[key] for key in KEYS)


# -- words ----------------------------------------------------------------------------------------------------------------------


def _words(rows: Rows, first_row: Mapping[str, Any], count: int, has_lengths: bool) -> output.Summary:
    """Summary: the cheapest option, the cost of the first requested option, and the cache that pays at each sheet."""
    row_list = list(rows)
    fitting = [row for row in row_list if row["fits"]]
    ranked = [row for row in row_list if row["ranked"] and (row["fits"] or not fitting)]
    least = min(ranked or fitting or row_list, key=lambda row: row["usd"])
    lengths = f"of {_lengths(least, count)}" if has_lengths else ""
    if not least["fits"]:
        clauses = (f": {_name(least)}: {least['why']}", f"; a request has {_lengths(least, count)}" if has_lengths else "")
        return output.Summary(sentence("None of these sheets serves every request", *clauses), _view(row_list))
    basis = f"for {count:,} request{'s' * (count != 1)} {lengths}" if has_lengths else "for the totals given"
    if not ranked:
        several = len({(row["provider"], row["model"], row["as_of"]) for row in row_list}) > 1
        lacking = "No sheet that serves every request states a rate for cached tokens"
        first_words = lacking if several else f"{least['provider']}/{least['model']} {UNRATED}"
        clauses = (f": without a cache {_name(least, False) if several else 'it'} costs {_usd(least['usd'])}", f" {basis}")
        return output.Summary(sentence(first_words, *clauses), _view(row_list), first=NARROW)
    basis += f" ({_usd(least['usd_each'])} each)" if has_lengths else ""
    clauses = []
    usual = [row for row in ranked if row["mode"] == "standard" and row["fits"]]
    if least["mode"] != "standard" and usual:
        clauses.append(f"; in the standard mode {_name(usual[0], False)}, {_usd(usual[0]['usd'])}")
    first = next((row for row in row_list if _is_same_bill(row, first_row)), None)
    if first is not None and first not in (least, *usual[:1]) and first["over_cheapest"]:
        clauses.append(f"; {_name(first)} costs {first['over_cheapest']:.3g} times as much")
    several = len({(row["provider"], row["model"]) for row in row_list}) > 1
    headline = sentence(f"Cheapest is {_name(least)}: {_usd(least['usd'])} {basis}", *clauses, last=_apart(row_list))
    remarks = [*_by_sheet(row_list), *(["models differ in quality, which no bill shows"] * several)]
    return output.Summary(headline, _view(row_list), helps=_helps(row_list, first), remarks=remarks, first=NARROW)


def _apart(rows: Sequence[Mapping[str, Any]]) -> str:
    """Clause on the sheets that are not ranked, for a rate that they do not state."""
    names = list(dict.fromkeys(f"{row['provider']}/{row['model']}" for row in rows if not row["ranked"]))
    return f"; not ranked, without a cached rate: {names[0] if len(names) == 1 else f'{len(names)} sheets'}" if names else ""


def _lengths(row: Mapping[str, Any], count: int) -> str:
    """Mean tokens of a request, which conversations and traces make larger than what was typed."""
    prompt, output = (units.show(row[key] / count, "token") for key in ("prompt_tokens", "output_tokens"))
    return f"{prompt} tokens in, {output} out"


def _helps(rows: Sequence[Mapping[str, Any]], first: Mapping[str, Any] | None) -> list[output.Help]:
    """Cheaper ways to buy the same model as the first request names, the cheapest first."""
    if first is None or not first["usd"]:
        return []
    same = [row for row in rows if row["fits"] and all(row[key] == first[key] for key in KEYS[:3]) and row["usd"] < first["usd"]]
    return [
        output.Help(
            change=f"{row['mode']} mode, {'no' if row['cache'] == NONE[0] else row['cache']} cache",
            effect=f"{_usd(first['usd'])} -> {_usd(row['usd'])}", gain=1 - row["usd"] / first["usd"],
        )
        for row in sorted(same, key=lambda row: row["usd"])[:MOST_HELPS]
    ]  # fmt: skip


def _view(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Columns of the table; identifying columns appear only if they vary."""
    hidden_keys = [] if len({row["prompt_layout"] for row in rows if row["cache"] != NONE[0]}) > 1 else ["prompt_layout"]
    if len({row["model"] for row in rows}) == len({(row["provider"], row["model"]) for row in rows}):
        hidden_keys.append("provider")
    return tuple(key for key in VIEW if key not in hidden_keys)


def _by_sheet(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Line per sheet, in standard mode if present: the cache that pays, and its break-even reads."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["provider"], row["model"], row["as_of"]), []).append(row)
    count = 0
    for group in groups.values():
        modes = [row["mode"] for row in group]
        mode = "standard" if "standard" in modes else modes[0]
        mode_rows = [row for row in group if row["mode"] == mode]
        if count < MOST_SAID and len(mode_rows) > 1:
            count += 1
            yield _which_pays(mode_rows)


def _which_pays(rows: Sequence[Mapping[str, Any]]) -> str:
    best = min(rows, key=lambda row: (row["usd"], row["cache"] != NONE[0]))
    plain = next((row for row in rows if row["cache"] == NONE[0]), None)
    if plain is None or (best is plain and len(rows) == 1):
        sentence = f"{best['cache']} is the cheapest cache, {_usd(best['usd'])}"
    elif best is plain:
        tried = min((row for row in rows if row is not plain), key=lambda row: row["usd"])
        sentence = f"no cache pays: {_usd(plain['usd'])} without, {_usd(tried['usd'])} with {tried['cache']}"
        sentence = f"a cache changes nothing: {_usd(plain['usd'])}" if tried["usd"] == plain["usd"] else sentence
    else:
        sentence = f"a {best['cache']} cache pays: {_usd(best['usd'])} against {_usd(plain['usd'])} without, {best['saved_share']:.1%} less"
        other_rows = [row for row in rows if row["cache"] == best["cache"] and row["prompt_layout"] != best["prompt_layout"]]
        sentence += f" ({_usd(other_rows[0]['usd'])} with what is {other_rows[0]['prompt_layout']})" if other_rows else ""
    layout = best["prompt_layout"] if best is not plain else rows[-1]["prompt_layout"]
    return "; ".join([f"{best['model']} ({best['mode']}): {sentence}", *_reads([row for row in rows if row["prompt_layout"] == layout])])


def _reads(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Break-even reads of a cache, with the reads of these requests."""
    for row in rows:
        need = row["break_even_reads"]
        if need is not None and row["reads_per_write"] is not None:
            prefix = f"a prefix written for {row['cache']} must be read {int(whole_reads(need))}x to pay ({need:.2f} on average"
            yield f"{prefix}; here {row['reads_per_write']:.2f})"


def _name(row: Mapping[str, Any], mode: bool = True) -> str:
    cache = "no cache" if row["cache"] == NONE[0] else f"{row['cache']} cache"
    layout = f", {row['prompt_layout']}" if row["prompt_layout"].startswith("shared l") else ""
    return f"{row['provider']}/{row['model']} ({row['mode'] + ', ' if mode else ''}{cache}{layout})"


def _usd(value: float) -> str:
    """Dollars in readable form."""
    return f"${value:,.0f}" if value >= 1000 else units.show(value, "USD")


REQUESTS = 10_000
GAP_S = 60.0
ARRIVALS, SEED = "poisson", "0"
MOST_TOKENS = 1e18
SAMPLE_SOURCE = "drawn from the workload given"
TOTALS = ("input", "cached", "output")
CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def requests_billed(args: Bill) -> Any:
    """The requests that are billed."""
    if args.tokens:
        alone = [
            schema.flag(key)
            for key in ("requests", "prompt", "shared", "output", "rate", "turns", "trace_block")
            if getattr(args, key) is not None
        ]
        if alone:
            raise BadValue("--tokens", f"beside {', '.join(alone)}", "totals alone")
        note("totals only: priced as short prompts, whatever their number and lengths")
        return _totals(args.tokens)
    if args.requests and not re.fullmatch(r"-?[\d.eE+_kM]+", args.requests.strip()):
        return _trace(args)
    return _described(args)


def blocked_trace(path: str, block: str | None) -> Any:
    """Trace from a file; `block` is the number of tokens per prefix id, if given."""
    if block is None:
        return read_trace(path)
    trace = read_trace(
        path, block=int(schema.scalar(block, schema.Field("token", integer=True, low=1, open_low=False, high=1e9), "--trace-block"))
    )
    if not len(trace.traffic.blocks):
        raise BadValue("--trace-block", block, f"a trace with hash_ids, which this one in {trace.format} format has not")
    return trace


def start_s(text: str) -> float:
    """Seconds since midnight of HH:MM."""
    match = CLOCK.fullmatch(text.strip())
    if not match:
        raise BadValue("--start", text, "a time of day in UTC such as 08:30")
    return 3600.0 * int(match[1]) + 60.0 * int(match[2])


def _totals(text: str) -> Any:
    totals: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = (item.strip() for item in part.partition("="))
        if not equals or key not in TOTALS:
            raise BadValue("--tokens", text, "input=608B,cached=342B,output=168B, the cached ones among the input")
        if key in totals:
            raise BadValue("--tokens", text, f"{key} once")
        totals[key] = units.parse(value, "token", f"--tokens {key}")
        if not 0 <= totals[key] <= MOST_TOKENS:
            raise BadValue(f"--tokens {key}", value, f"0 to {MOST_TOKENS:g} tokens")
    if not totals.get("input"):
        raise BadValue("--tokens", text, "at least the input's tokens")
    prompt, hits, answers = (totals.get(name, 0.0) for name in TOTALS)
    return requests_of_totals(prompt, hits, answers, "totals given by the user")


def _trace(args: Bill) -> Any:
    if args.prompt or args.output or args.turns:
        raise BadValue("--requests", args.requests, "a trace alone, which has its own lengths; --shared and --rate may stand beside it")
    if args.arrivals != ARRIVALS or args.seed != SEED:
        raise BadValue("--requests", args.requests, "a trace without --arrivals and --seed: nothing is drawn")
    trace = blocked_trace(args.requests, args.trace_block)
    traffic = trace.traffic.at_rate(_rate_of(args.rate)) if args.rate else trace.traffic
    shared = _shared(args)
    note(*trace.notes())
    if not len(traffic.blocks) and not shared and not (traffic.conversation >= 0).any():
        note("the trace does not say what prompts share, so a cache finds nothing: --shared says what all begin with")
    note(*_shorter(traffic, shared))
    return requests_of(traffic, Path(args.requests).name, shared)


def _shorter(traffic: Any, shared: int) -> list[str]:
    """Note on prompts shorter than the shared prefix."""
    count = int((traffic.prompt < shared).sum())
    text = f"{count:,} of {len(traffic):,} prompts are shorter than --shared {shared:,}: all of each is taken for the beginning of it"
    return [text] if count else []


def _described(args: Bill) -> Any:
    """Requests drawn from the distributions on the command line."""
    if args.trace_block:
        raise BadValue("--trace-block", args.trace_block, "--requests TRACE beside it")

    if not args.prompt or not args.output or not args.rate:
        wants = "--requests TRACE, or a workload: --prompt 8k --shared 6k --output 500 --rate 2/min --requests 1000 --turns 5"
        missing = [flag for flag, value in (("--output", args.output), ("--rate", args.rate)) if not value]
        raise BadValue("bill", "no requests" if not args.prompt else f"no {' and no '.join(missing)}", wants)
    rate, shared = _rate_of(args.rate), _shared(args)
    prompt, output = parse_lengths(args.prompt, "--prompt"), parse_lengths(args.output, "--output", answers=True)
    count, seed = (_whole_number(text, flag) for text, flag in ((args.requests or str(REQUESTS), "--requests"), (args.seed, "--seed")))
    arrivals = parse_arrivals(args.arrivals, rate)
    if not args.turns:
        if not shared:
            note("prompts share nothing, so a cache finds nothing: --shared and --turns say what they share")
        traffic = generate(arrivals, prompt, output, count, seed)
        note(*_shorter(traffic, shared))
        return requests_of(traffic, SAMPLE_SOURCE, shared)
    typed = parse_turns(args.turns if "," in args.turns else f"{args.turns},{GAP_S}s")
    turns = ConversationTurns(mean=typed.mean, gap=typed.gap, shared=shared, block=LONGEST)
    traffic = generate_conversations(arrivals, rate, UncachedLengths(prompt, shared), output, turns, count, seed)
    plain = dataclasses.replace(traffic, first_own=None, common=0, block_tokens=0)
    return requests_of(plain, SAMPLE_SOURCE, shared)


@dataclasses.dataclass(frozen=True, slots=True)
class UncachedLengths:
    """Length distribution of the part of prompts after the shared prefix."""

    lengths: Any
    shared: int

    def draw(self, rng: Any, count: int) -> Any:
        """Draw `count` lengths, each at least 1."""
        return (self.lengths.draw(rng, count) - self.shared).clip(1)


def _rate_of(text: str) -> float:
    return float(schema.scalar(text, schema.Field("1/s", high=1e12), "--rate"))


def _shared(args: Bill) -> int:
    return int(schema.scalar(args.shared, schema.Field("token", integer=True, open_low=False, high=1e9), "--shared")) if args.shared else 0


def _whole_number(text: str, flag: str) -> int:
    value = units.parse(text, "", flag)
    if value != int(value) or value < 0:
        raise BadValue(flag, text, "a whole number of 0 or more")
    return int(value)
