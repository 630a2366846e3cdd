"""`headway measure [--save NAME] [--decode]`: this machine as it runs, and steps of small decoders predicted from that alone."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from headway.answers import arguments
from headway.core import schema
from headway.core.catalog import PACKAGED, Catalog, fold, user_folder
from headway.core.columns import Column
from headway.core.cores import cores
from headway.core.errors import BadValue, MissingExtra
from headway.core.files import save
from headway.core.listing import Listing
from headway.core.notes import note
from headway.core.progress import tell
from headway.reality import here
from headway.reality.measure import chip, decode
from headway.reality.measure.questions import Measure
from headway.reality.measure.rates import rates_of
from headway.reality.measure.record import MachineRecord
from headway.reality.measure.run import CARD, PROCESSOR, MeasureRequest, measured
from headway.report import measure as words
from headway.report import output

COLUMNS = {
    "what": Column("", "what was timed: a matmul by its number format, a stream, a call, the work between matmuls, attention, a link"),
    "rows": Column("count", "rows that a matrix is multiplied with, or tokens"),
    "columns": Column("count", "columns of the matrix"),
    "context": Column("token", "tokens of a cache that attention reads, or of a prompt"),
    "size_bytes": Column("byte", "bytes of the matrix, of the stream, or of keys and values"),
    "time_s": Column("s", "the median of its rounds"),
    "spread": Column("", "how far the median of the rounds lies above the fastest, as a share of it"),
    "flop_per_s": Column("flop/s", "rate of arithmetic, a multiply-add counting 2"),
    "bytes_per_s": Column("byte/s", "rate at which weights, a stream or a cache are read"),
    "native": Column("", "whether the library multiplies in this format; else element by element, so that engines convert first"),
}
DECODED = {
    "kind": Column("", "decode: a step of every sequence; prefill: a prompt"),
    "decoder": Column("", "which of the small decoders"),
    "batch": Column("count", "sequences of the step"),
    "context": Column("token", "tokens that each sequence attends to, or of the prompt"),
    "predicted_s": Column("s", "time by the step law, from the measured machine alone, before it was measured"),
    "measured_s": Column("s", "the median of its rounds"),
    "error": Column("", "predicted over measured, less one"),
    "spread": COLUMNS["spread"],
}


def run(args: Measure) -> output.Answer:
    """Answer with a row for each time, or for each point of --decode."""
    where = arguments.catalog(args)
    folder, name = _place(args, where) if args.save else (None, "")
    record = _saved(args, where) if args.record else _measured(args)
    rates = rates_of(record)
    files = chip.save(record, rates, name, folder) if folder else None
    if args.decode:
        return _decoded(args, decode.as_decoders_multiply(record))
    rows = words.rows(record)
    describe = functools.partial(words.describe, record, rates, files)
    return output.Answer(Listing(rows), describe=lambda table: describe(), columns=COLUMNS, pictures={
        "roofline": functools.partial(words.roofline, record, rates),
    }, most=200)  # fmt: skip


def _measured(args: Measure) -> MachineRecord:
    """This machine, now."""
    computer, allowed = here.host(), cores()
    has_torch = importlib.util.find_spec("torch") is not None
    is_of_processor = args.threads is not None or args.decode  # which a card has not
    device = args.device or (CARD if computer.cards and has_torch and not is_of_processor else PROCESSOR)
    if device == CARD and not has_torch:
        raise MissingExtra("--device card", "lab")
    if device == PROCESSOR and computer.cards and not has_torch:
        note("cards are measured by torch, which is not installed: pip install 'headway[lab]'; this is the processor alone")
    if args.decode and device == CARD:
        raise BadValue("--decode", "a card", "--device processor: the small decoders run there")
    if args.threads is not None and device == CARD:
        raise BadValue("--threads", args.threads, "--device processor: a card has no threads of a library")
    if device == CARD:
        note("kernels are launched one by one here: the chip is as slow as under --eager, and engines with CUDA graphs are faster on it")
    threads, limit = (_number(args, name) for name in ("threads", "limit_memory"))
    if args.decode and limit is not None and decode.memory_need(args.quick) > limit:
        raise BadValue("--limit-memory", args.limit_memory, f"{words.bytes_text(decode.memory_need(args.quick))} for the decoders")
    request = MeasureRequest(device=device, threads=int(threads or allowed), cores=allowed, quick=args.quick, limit_memory=limit)
    return measured(request, computer)


def _number(args: Measure, name: str) -> float | None:
    """The number of a field, None where nobody gave one."""
    value, flag = getattr(args, name), args.flags()[name]
    return None if value is None else float(schema.scalar(str(value), flag.field, flag.word))


def _place(args: Measure, where: Catalog) -> tuple[Path, str]:
    """Folder and name of the chip, or why it cannot be kept."""
    name = fold(args.save).replace("-", "_")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_.]{0,60}", name):
        raise BadValue("--save", args.save, "letters, digits and dashes, such as laptop")
    known = where.find("chips", name)
    if (known is not None and PACKAGED in known.parents) or where.find("systems", name) is not None:
        raise BadValue("--save", args.save, "a name that no chip or system of the catalogue has, such as laptop")
    home = Path(args.catalog[0]) if args.catalog else user_folder()
    if home is None:
        raise BadValue("--save", args.save, "--catalog DIR beside it: there is no home folder here")
    return home, name


def _saved(args: Measure, where: Catalog) -> MachineRecord:
    """The machine that --save kept under a name."""
    path = where.find("efficiency", args.record)
    if path is None or not path.with_suffix(".json").is_file():
        raise BadValue("--record", args.record, "a name that `headway measure --save NAME` kept")
    return chip.saved_record(path.with_suffix(".json"))


def _decoded(args: Measure, record: MachineRecord) -> output.Answer:
    """Points of the decoders: the prediction written first, then measured with the threads that the machine was measured with."""
    document = decode.prediction(record, rates_of(record), args.quick)
    path = Path(args.prediction)
    save(path, json.dumps(document, indent=1) + "\n")
    tell(f"{len(document['points'])} points predicted, before the first is measured: {path}, sha256 {document['sha256']}")
    all_results = decode.results(document, record.threads)
    rows: list[dict[str, Any]] = [
        {
            "kind": result.point.kind, "decoder": result.point.shape, "batch": result.point.batch, "context": result.point.tokens,
            "predicted_s": result.predicted_s, "measured_s": result.measured_s, "error": result.error, "spread": result.spread,
        }
        for result in all_results
    ]  # fmt: skip
    describe = functools.partial(words.describe_decode, record, all_results, str(path), document["sha256"])
    return output.Answer(
        Listing(rows), describe=lambda table: describe(), columns=DECODED, pictures={"points": functools.partial(words.points, record)},
        most=200,
    )  # fmt: skip
