"""Measured files with one cell spoiled: each kind of file, what reads it, and the verdict on the answer.

A line with a spoiled cell is told and left out, so that the answer is that of the file without the line; a cell that nothing reads changes
nothing. Whatever the cell holds, there is an answer without NaN or one clear line.
"""

from __future__ import annotations

import json
import random
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from support.command import Answer
from support.paths import TESTS

DATA = TESTS / "data"
LIMIT_S = 60  # of one command: far above any, so that what hangs is told
# No number of any quantity, in a text and in JSON.
SPOILED = (
    "nan",
    "NaN",
    "inf",
    "-inf",
    "Infinity",
    "-Infinity",
    "-100",
    "-1e-9",
    "1e300",
    "-1e300",
    "1e15",
    "x",
    "12 apples",
    "true",
    "[1]",
    "1_000",
    "0x10",
    "--",
    "¼",
    "é",
    "1e400",
    "1" * 400,
)
SPOILED_JSON = (
    float("nan"),
    float("inf"),
    -float("inf"),
    -100,
    -1e-9,
    1e300,
    10**400,
    1e16,
    "x",
    "12 apples",
    True,
    [1],
    {"a": 1},
    "nan",
    "-1",
    [[[]]],
)
# What may be a number, or stand for none: an answer or a line, and no more is asked.
DOUBTFUL = ("", "\x00", "0", "0.0", "1", "1e-9", "1e6", "999999999", '"', '"a', "1,2", "1.5")
DOUBTFUL_JSON = ("", 0, 1, 1e-9, 1e6, None, 1.5, 999999999, "7")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """A kind of measured file: its lines of records below the head, the columns that are read as numbers, and the command."""

    name: str
    file: str
    head: str
    lines: tuple[str, ...]
    read: tuple[str, ...]  # columns, or dotted keys
    argv: tuple[str, ...]  # with {file}
    beside: dict[str, str] = field(default_factory=dict)  # other files, each with its text
    tail: str = ""
    joint: str = "\n"
    rows_alone: bool = False  # the sentence counts lines

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of a table; empty for JSON."""
        last = self.head.rstrip("\n").rpartition("\n")[2]
        return () if self.lines[0].lstrip().startswith("{") else tuple(name.strip().strip('"') for name in last.split(","))

    def text(self, lines: Sequence[str]) -> str:
        """A file of these lines."""
        return self.head + self.joint.join(lines) + self.tail


def _table(path: Path, most: int = 60) -> tuple[str, tuple[str, ...]]:
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    return head + "\n", tuple(lines[:most])


def _json_lines(path: Path) -> tuple[str, ...]:
    text = path.read_text(encoding="utf-8")
    entries = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in text.splitlines() if _is_json(line)]
    return tuple(json.dumps(entry) for entry in entries)


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


RUN = ("--on", "1xh100-sxm", "--model", "llama-3.1-8b")
MEASURED_HEAD = (
    "id,model,hardware,n_chips,engine,weight_precision,tp,mode,isl,osl,batch_or_concurrency,ttft_ms,tpot_ms,output_tok_s_total,notes\n"
)
MEASURED = tuple(
    f"r{at},llama-3.1-8b,h100-sxm,1,vllm,{'fp8' if at % 2 else 'bf16'},1,serving_concurrency,{500 * (at + 1)},{100 + at},{2 ** (at % 5)},"
    f"{40 + 9 * at},{8 + at},{90 * 2 ** (at % 5)},one"
    for at in range(8)
)
MEASURED_READ = ("n_chips", "tp", "isl", "osl", "batch_or_concurrency")


def _guidellm() -> tuple[str, ...]:
    means = {
        "prompt_token_count": 1000.0,
        "output_token_count": 101.0,
        "time_to_first_token_ms": 120.0,
        "inter_token_latency_ms": 10.0,
        "request_latency": 1.12,
        "requests_per_second": 50.0,
    }
    metrics = {key: {"successful": {"mean": value}} for key, value in means.items()}
    loads = ({"type_": "concurrent", "streams": 56}, {"type_": "constant", "rate": 50.0}, {"type_": "concurrent", "streams": 8})
    return tuple(json.dumps({"config": {"strategy": load}, "metrics": metrics}) for load in loads)


def _aiperf() -> tuple[str, ...]:
    run = json.loads((DATA / "readers/aiperf/qwen-chat-concurrency16/profile_export_aiperf.json").read_text(encoding="utf-8"))
    runs = []
    for users in (16, 15, 17):
        run["input_config"]["loadgen"]["concurrency"] = users
        runs.append(json.dumps(run))
    return tuple(runs)


def _traces() -> Iterator[tuple[str, str, str, tuple[str, ...], tuple[str, ...]]]:
    """Name, file, head, lines and columns read of a trace in each format."""
    count = 60
    shape = [(at, 300 + 37 * at % 900, 20 + 7 * at % 50) for at in range(count)]
    yield ("plain", "t.csv", "arrival_s,prompt,output\n", tuple(f"{at},{p},{o}" for at, p, o in shape), ("arrival_s", "prompt", "output"))
    yield (
        "vidur",
        "t.csv",
        "arrived_at,num_prefill_tokens,num_decode_tokens\n",
        tuple(f"{at},{p},{o}" for at, p, o in shape),
        ("arrived_at", "num_prefill_tokens", "num_decode_tokens"),
    )
    yield (
        "azure",
        "t.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n",
        tuple(f"2023-11-16 18:15:{at:02d}.68,{p},{o}" for at, p, o in shape),
        ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    )
    yield (
        "burstgpt",
        "t.csv",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
        tuple(f"{at},m,{p},{o},9,c" for at, p, o in shape),
        ("Timestamp", "Request tokens", "Response tokens"),
    )
    yield (
        "mooncake",
        "t.jsonl",
        "",
        tuple(json.dumps({"timestamp": 1000 * at, "input_length": p, "output_length": o, "hash_ids": [at]}) for at, p, o in shape),
        ("timestamp", "input_length", "output_length"),
    )


def kinds() -> list[FileKind]:
    """Every kind of measured file, each with a command that reads it."""
    head, lines = _table(DATA / "readers/requests.csv", 96)
    columns = head.strip().split(",")
    records = tuple(json.dumps(dict(zip(columns, map(float, line.split(",")), strict=True))) for line in lines)
    requests = FileKind(
        name="requests", file="r.csv", head=head, lines=lines, read=tuple(columns), argv=("score", "--requests", "{file}", *RUN)
    )
    training_head, training = _table(DATA / "training_rows.csv", 12)
    training = tuple(line for line in training if '"' not in line.rpartition(',"')[0])
    sold_head, sold = _table(DATA / "open_models_sold.csv")
    sizes_head, sizes = _table(DATA / "open_models_sizes.csv")
    llama_head, llama = _table(DATA / "readers/llama_bench.csv")
    vllm = _json_lines(DATA / "readers/vllm_appended.jsonl")
    prices = ("input_usd_per_mtok", "output_usd_per_mtok")
    vllm_read = (
        "completed",
        "total_input_tokens",
        "total_output_tokens",
        "mean_ttft_ms",
        "mean_tpot_ms",
        "output_throughput",
        "request_throughput",
        "max_concurrency",
        "median_itl_ms",
        "failed",
    )
    result = [
        requests,
        FileKind(name="requests jsonl", file="r.jsonl", head="", lines=records, read=tuple(columns), argv=requests.argv),
        FileKind(
            name="score",
            file="m.csv",
            head=MEASURED_HEAD,
            lines=MEASURED,
            read=(*MEASURED_READ, "ttft_ms", "tpot_ms", "output_tok_s_total"),
            argv=("score", "{file}"),
        ),
        FileKind(
            name="score each",
            file="m.csv",
            head=MEASURED_HEAD,
            lines=MEASURED,
            read=(*MEASURED_READ, "ttft_ms", "tpot_ms", "output_tok_s_total"),
            argv=("score", "{file}", "--each"),
            rows_alone=True,
        ),
        FileKind(
            name="calibrate",
            file="m.csv",
            head=MEASURED_HEAD,
            lines=MEASURED,
            read=(*MEASURED_READ, "ttft_ms", "tpot_ms", "output_tok_s_total"),
            argv=("calibrate", "{file}"),
        ),
        FileKind(
            name="predict",
            file="m.csv",
            head=MEASURED_HEAD,
            lines=MEASURED,
            read=MEASURED_READ,
            argv=("predict", "{file}"),
            rows_alone=True,
        ),
        FileKind(
            name="predict training",
            file="t.csv",
            head=training_head,
            lines=training,
            read=("n_params_total", "layers", "seq_len", "n_chips", "tp", "pp", "global_batch", "micro_batch"),
            argv=("predict", "{file}", "--training"),
            rows_alone=True,
        ),
        FileKind(name="vllm", file="v.jsonl", head="", lines=vllm, read=vllm_read, argv=("score", "--vllm", "{file}", *RUN)),
        FileKind(
            name="guidellm",
            file="g.json",
            head='{"args": {"model": "llama-3.1-8b"}, "benchmarks": [',
            lines=_guidellm(),
            tail="]}",
            joint=",",
            read=tuple(
                f"metrics.{key}.successful.mean"
                for key in (
                    "prompt_token_count",
                    "output_token_count",
                    "time_to_first_token_ms",
                    "inter_token_latency_ms",
                    "request_latency",
                    "requests_per_second",
                )
            ),
            argv=("score", "--guidellm", "{file}", *RUN[:2]),
        ),
        FileKind(
            name="aiperf",
            file="a.json",
            head="",
            lines=_aiperf(),
            read=tuple(
                f"{key}.avg"
                for key in (
                    "request_throughput",
                    "request_latency",
                    "time_to_first_token",
                    "inter_token_latency",
                    "output_token_throughput",
                    "output_sequence_length",
                    "input_sequence_length",
                )
            ),
            argv=("score", "--aiperf", "{file}", *RUN[:2]),
        ),
        FileKind(
            name="trtllm-bench",
            file="t.json",
            head="[",
            lines=3 * _json_lines(DATA / "readers/trtllm_bench.json"),
            tail="]",
            joint=",\n",
            read=(
                *(f"request_info.avg_{name}" for name in ("num_concurrent_requests", "input_length", "output_length")),
                *(f"streaming_metrics.avg_{name}_ms" for name in ("tpot", "ttft")),
            ),
            argv=("score", "--trtllm-bench", "{file}", "--on", "8xh100-sxm"),
        ),
        FileKind(
            name="inferencex",
            file="i.json",
            head="[",
            lines=_json_lines(DATA / "readers/inferencex.json"),
            tail="]",
            joint=",\n",
            read=("conc", "isl", "osl", "mean_tpot", "mean_ttft"),
            argv=("score", "--inferencex", "{file}"),
        ),
        FileKind(
            name="llama-bench csv",
            file="l.csv",
            head=llama_head,
            lines=llama,
            read=("n_prompt", "n_gen", "avg_ns"),
            argv=("score", "--llama-bench", "{file}"),
        ),
        FileKind(
            name="llama-bench jsonl",
            file="l.jsonl",
            head="",
            lines=_json_lines(DATA / "readers/llama_bench.jsonl"),
            read=("n_prompt", "n_gen", "avg_ns"),
            argv=("score", "--llama-bench", "{file}"),
        ),
        FileKind(
            name="prices",
            file="p.csv",
            head=sold_head,
            lines=sold,
            read=prices,
            argv=("price", "--score", "{file}", "--truth", "{beside}"),
            beside={"s.csv": sizes_head + "\n".join(sizes)},
        ),
        FileKind(
            name="sizes",
            file="s.csv",
            head=sizes_head,
            lines=sizes,
            read=("active_params_b", "total_params_b"),
            argv=("price", "--score", "{beside}", "--truth", "{file}"),
            beside={"p.csv": sold_head + "\n".join(sold)},
        ),
    ]
    for name, file, head, lines, read in _traces():
        for verb, argv in {
            "bill": ("bill", "--requests", "{file}", "--sheet", "claude-opus-4.6"),
            "cache": ("cache", "--workload", "{file}", "--ttl", "1min"),
            "sim": ("sim", "llama-3.1-8b", "--on", "1xh100-sxm", "--trace", "{file}", "--sensitivity", "0"),
        }.items():
            if verb != "cache" or name == "mooncake":
                result.append(FileKind(name=f"{name} trace, {verb}", file=file, head=head, lines=lines, read=read, argv=argv))
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoiled:
    """A case: a kind of file, the line and the column whose cell is replaced, and the value there."""

    kind: FileKind
    line: int
    column: str
    value: Any
    certain: bool  # no reading of the cell is a number of its column

    def __str__(self) -> str:
        return f"{self.kind.name}: record {self.line}, {self.column} = {str(self.value)[:40]!r}"

    def text(self) -> str:
        """The file with the cell."""
        lines = list(self.kind.lines)
        if self.kind.columns:
            cells = lines[self.line].split(",")
            cells[self.kind.columns.index(self.column)] = str(self.value)
            lines[self.line] = ",".join(cells)
        else:
            lines[self.line] = json.dumps(_replaced(json.loads(lines[self.line]), self.column.split("."), self.value))
        return self.kind.text(lines)


def _replaced(record: dict[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    inner = _replaced(record.get(keys[0]) or {}, keys[1:], value) if len(keys) > 1 else value
    return record | {keys[0]: inner}


def draw(rng: random.Random, kind: FileKind) -> Spoiled:
    """A case of a kind: nearly always a cell that is read, and a value that no number of its column has."""
    certain = rng.random() < 0.8
    table = bool(kind.columns)
    values: Sequence[Any] = (SPOILED if certain else DOUBTFUL) if table else (SPOILED_JSON if certain else DOUBTFUL_JSON)
    return Spoiled(kind=kind, line=rng.randrange(len(kind.lines)), column=rng.choice(kind.read), value=rng.choice(values), certain=certain)


def run(kind: FileKind, text: str, folder: Path) -> tuple[Answer, str]:
    """Answer of the command on a file of this text, and why it is none, such as a traceback."""
    (folder / kind.file).write_text(text, encoding="utf-8", newline="")
    for name, content in kind.beside.items():
        (folder / name).write_text(content, encoding="utf-8")
    beside = next((str(folder / name) for name in kind.beside), "")
    argv = [word.format(file=folder / kind.file, beside=beside) for word in kind.argv] + ["-o", "json"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return _bounded(lambda: Answer.of(argv)), ""
        except BaseException as error:  # whatever escapes is what is looked for
            if isinstance(error, KeyboardInterrupt):
                raise
            return Answer(-1, "", ""), f"{type(error).__name__}: {error}"


def _bounded(ask: Callable[[], Answer]) -> Answer:
    """The answer, or TimeoutError after LIMIT_S."""

    def late(_: int, __: FrameType | None) -> None:
        raise TimeoutError(f"more than {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S)
    try:
        return ask()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


NO_NUMBER = re.compile(r"(?<![\w.])[+-]?(nan|inf)(inity)?(?![\w-])", re.IGNORECASE)
OF_PLACE = ("line", "id", "wall_s")  # keys that name where a row stood, or how long it took


def essence(kind: FileKind, answer: Answer) -> Any:
    """What an answer says, without notes, places of lines, and lines that have no answer."""
    document = json.loads(answer.out)
    rows = [
        {key: value for key, value in row.items() if key not in OF_PLACE}
        for row in document["rows"]
        if not str(row.get("why") or "").startswith("line")
    ]
    said = [] if kind.rows_alone else [document.get(key) for key in ("answer", "binds", "helps")]
    stem = re.escape(Path(kind.file).stem)
    return re.sub(rf"\b{stem}-\d+", "ID", json.dumps([rows, said]))


class Judge:
    """Verdicts on cases; answers of the sound file and of the file without each line are asked once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[tuple[str, int], tuple[Answer, str]] = {}

    def without(self, kind: FileKind, line: int) -> tuple[Answer, str]:
        """Answer of the file without a line."""
        key = kind.name, line
        if key not in self.known:
            self.known[key] = run(kind, kind.text([text for at, text in enumerate(kind.lines) if at != line]), self.folder)
        return self.known[key]

    def verdict(self, case: Spoiled) -> str:
        """What is wrong with the answer of a case; "" if nothing is."""
        answer, why = run(case.kind, case.text(), self.folder)
        if why:
            return why
        wrong = _unclear(answer)
        if wrong or not case.certain:
            return wrong
        other, _ = self.without(case.kind, case.line)
        if other.status == 2:
            return "" if answer.status == 2 else "answers, though no good line is left"
        if answer.status == 2:
            return f"refuses the whole file: {answer.err.strip()}"
        if essence(case.kind, answer) != essence(case.kind, other):
            return "is not the answer of the file without the line"
        return "" if str(case.line + 1 + case.kind.head.count("\n")) in answer.out else "does not tell the line"


def _unclear(answer: Answer) -> str:
    """What is wrong with an answer by itself."""
    if answer.status == 2:
        return "" if re.fullmatch(r"headway: [^\n]{10,700}\n", answer.err) else f"is no clear line: {answer.err!r:.200}"
    if answer.status != 0 or answer.err:
        return f"status {answer.status}, {answer.err!r:.200}"
    try:
        document = json.loads(answer.out, parse_constant=_refuse)
    except ValueError as error:
        return str(error)
    said = NO_NUMBER.search(json.dumps([document.get(key) for key in ("answer", "binds", "helps")]))
    return f"prints {said[0]!r}" if said else ""


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} in the answer")
