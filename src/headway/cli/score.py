"""`headway score FILE`: measured runs beside their predictions, the errors by group; or a user's own benchmark output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway import output
from headway.cli import measured, own
from headway.columns import Column
from headway.errors import BadValue
from headway.listing import Listing

TOOLS = {"vllm": "vllm_bench", "aiperf": "aiperf", "llama_bench": "llama_bench", "inferencex": "inferencex"}  # flag -> reader
HELP = {"vllm": "the JSON that `vllm bench serve --save-result` (or SGLang's bench_serving) wrote", "aiperf": "AIPerf's artifact folder",
        "llama_bench": "llama-bench's output: json, jsonl, csv, md or sql", "inferencex": "InferenceX's agg_*.json"}  # fmt: skip
TEXTS = ("model", "engine", "engine_version", "weights", "kv")
DEGREES = ("tp", "ep", "pp", "dp")
LENGTHS = ("prompt", "output")
MOST_WORST = 3  # of each measure
MOST_BAD = 10
WHAT_FILE = "CSV of measured rows: columns as for `predict`, and ttft_ms, tpot_ms, output_tok_s_total or tok_s_per_chip"
KEYS = {
    "by": Column("", "what the rows are grouped by; worst: one of the largest misses"),
    "group": Column("", "the group; of a worst miss, the row's id"),
    "measure": Column("", "what was measured"),
    "n": Column("", "measurements"),
    "median_error": Column("", "median of |predicted / measured - 1|"),
    "p90_log_ratio": Column("", "90th percentile of |ln(predicted / measured)|"),
    "bias_log_ratio": Column("", "median of ln(predicted / measured)"),
    "coverage": Column("", "share of the measurements within the 90 % interval"),
    "below_floor": Column("", "share of the measurements faster than the floor"),
    "interval_ratio": Column("", "median of the interval's upper end over its lower end"),
}
VIEW = tuple(KEYS)
FIT_NOTE = "errors are those of the shipped fit, which may have seen these rows: docs/accuracy.md has the cross-validated ones"


def add_flags(parser: Any) -> None:
    """A table, or the output of a benchmark and what it does not say."""
    parser.add_argument("rows", nargs="?", metavar="MEASURED.csv", help=WHAT_FILE)
    parser.add_argument("--each", action="store_true", help="every measurement beside its prediction instead of groups")
    tools = parser.add_argument_group("your own benchmark output, instead of a table")
    for name in TOOLS:
        tools.add_argument("--" + name.replace("_", "-"), metavar="DIR" if name == "aiperf" else "FILE", help=HELP[name])
    setup = parser.add_argument_group("what a benchmark's output does not say")
    setup.add_argument("--on", default="", metavar="MACHINE", help="the chips that ran it: 8xh100-sxm, 2xrtx4090, gb200-nvl72")
    for name in TEXTS:
        setup.add_argument(
            "--" + name.replace("_", "-"), default="", metavar="NAME", help=f"{name.replace('_', ' ')}, where it is not said"
        )
    for name in (*DEGREES, *LENGTHS):
        setup.add_argument(f"--{name}", metavar="N", help=f"{name}, where it is not said")


def run(args: Any) -> output.Answer:
    """Groups with their errors, or every measurement."""
    from headway.evidence.score import score

    measured.no_edits(args)
    tool = _tool(args)
    rows, bad = _rows(args, tool)
    read = measured.predicted(rows, bad, args)
    if tool or args.each:
        return own.answer(read, binds=bool(tool))
    result = score(read.tasks, read.predictions)
    listing = Listing([*map(_group, result.groups), *own.worst(result.residuals, MOST_WORST)], always=VIEW)
    notes = _left_out(result, read.bad)
    return output.Answer(
        listing, notes=notes, describe=lambda table: _words(table, result), figure=lambda _: _figure(result.residuals),
        columns=KEYS | own.KEYS, most=400,
    )  # fmt: skip


def _tool(args: Any) -> str:
    """Which benchmark's output was given; "" for a table."""
    tools = [name for name in TOOLS if getattr(args, name)]
    if len(tools) + bool(args.rows) != 1:
        input_text = ", ".join(["a table"] * bool(args.rows) + ["--" + name.replace("_", "-") for name in tools]) or "nothing"
        raise BadValue("score", input_text, "one of MEASURED.csv, --vllm FILE, --aiperf DIR, --llama-bench FILE, --inferencex FILE")
    return tools[0] if tools else ""


def _rows(args: Any, tool: str) -> tuple[list[Any], list[Any]]:
    from headway.evidence.read_rows import read_rows

    flags = [name for name in ("on", *TEXTS, *DEGREES, *LENGTHS) if getattr(args, name)]
    if not tool:
        if flags:
            raise BadValue(
                "--" + flags[0].replace("_", "-"), getattr(args, flags[0]), "no value with a table, whose rows say it themselves"
            )
        return read_rows(args.rows)
    import importlib

    from headway.catalog import default_catalog
    from headway.evidence.names import hardware as named
    from headway.evidence.readers.given import RunFields, machine

    hardware, chips = machine(args.on)
    if hardware:
        named(hardware, default_catalog())  # a machine that is wrong is wrong input, not a row that cannot be predicted
    degrees: dict[str, Any] = {name: _whole_number(getattr(args, name), name) for name in DEGREES}
    lengths: dict[str, Any] = {name: _whole_number(getattr(args, name), name) for name in LENGTHS}
    texts: dict[str, Any] = {name: getattr(args, name) for name in TEXTS}
    reader: Any = importlib.import_module(f"headway.evidence.readers.{TOOLS[tool]}")
    return reader.read(getattr(args, tool), RunFields(hardware=hardware, chips=chips, **degrees, **lengths, **texts))


def _whole_number(text: str | None, name: str) -> int | None:
    from headway import units

    if not text:
        return None
    value = units.parse(text, "token", f"--{name}")
    if value < 1 or value != int(value) or value > 1e12:
        raise BadValue(f"--{name}", text, "a whole number of at least 1")
    return int(value)


def _group(group: Any) -> dict[str, Any]:
    s = group.stats
    return {
        "by": group.by, "group": group.name, "measure": group.measure, "n": s.n, "median_error": s.median_error, "p90_log_ratio": s.p90_log,
        "bias_log_ratio": s.bias, "coverage": s.coverage, "below_floor": s.below_floor, "interval_ratio": s.width,
    }  # fmt: skip


def _left_out(result: Any, bad: Sequence[Any]) -> list[str]:
    notes = [FIT_NOTE] if result.residuals else []
    if result.unpredicted:
        notes.append(f"without a prediction: {measured.reasons_with_lines(result.unpredicted)}")
    if result.unscored:
        notes.append(f"left out: {result.unscored} rows of reliability C")
    if result.unmeasured:
        notes.append(f"left out: {result.unmeasured} rows that state no measurement of what is predicted")
    return notes + [f"no row: {measured.at_line(bad_row.line, bad_row.why)}" for bad_row in bad[:MOST_BAD]] + own.more(bad, MOST_BAD)


def _words(table: Any, result: Any) -> output.Summary:
    """The errors in one sentence, the table, the worst rows."""
    rows = list(table)
    groups = [row for row in rows if row["by"] != "worst"]
    people = Listing([{key: _cell(key, row[key]) for key in VIEW} for row in groups])
    lines = [own.sentence(row) for row in rows if row["by"] == "worst"]
    return output.Summary(_headline(result), VIEW, ["worst rows:", *lines] if lines else [], people)


def _cell(key: str, value: Any) -> Any:
    return _percent(value) if key in ("median_error", "coverage", "below_floor") else value


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 100 else f"{100 * share:.3g}%"  # a mistaken unit makes an error of many digits


def _headline(result: Any) -> str:
    if not result.residuals:
        return "No row could be scored."
    groups = [group for group in result.groups if group.by == "all"]
    errors = ", ".join(f"{group.measure} by {_percent(group.stats.median_error)} ({group.stats.n:,})" for group in groups)
    covered = sum(group.stats.coverage * group.stats.n for group in groups) / len(result.residuals)
    intervals = f"the 90 % intervals hold {covered:.0%} of the {len(result.residuals):,} measurements"
    return f"{result.rows:,} rows scored; median error: {errors}; {intervals}."


def _figure(residuals: Any) -> dict[str, Any]:
    from headway import figures

    return figures.parity(residuals, "served TPOT")
