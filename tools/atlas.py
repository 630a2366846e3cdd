"""Writes the open atlas out of a sweep's folder: one row a plan as Parquet, and one page that filters and plots them without a server.

python tools/atlas.py docs/atlas/atlas.toml FOLDER docs/atlas, after `headway sweep docs/atlas/atlas.toml --into FOLDER`; `make atlas` does
both.
A sweep that has not ended gives the part that is there, and the page says how many plans that is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet

import headway
from headway.core.listing import cell
from headway.study import file, manifest, store
from headway.study.grid import QuestionBlock, question_with

LOADS = ("chat", "documents", "agent")  # of the blocks of the file, in its order
NUMBERS = {  # column of the table: what stands above it, and the ends of its interval
    "chips": ("chips", ""), "ttft_s": ("TTFT", "ttft_lo_s~ttft_hi_s"), "tpot_s": ("TPOT", "tpot_lo_s~tpot_hi_s"),
    "tok_per_s_user": ("speed of a user", ""), "usd_per_mtok_out": ("$/Mtok out", "usd_per_mtok_out_lo~usd_per_mtok_out_hi"),
    "usd_per_month": ("$/month", ""),
}  # fmt: skip
LAYOUT = ("tp", "ep", "dp", "pp", "replicas")
KEPT = (
    "system", "chips", "nodes", *LAYOUT, "weights", "kv", "concurrency", "utilisation", "ttft_s", "ttft_lo_s", "ttft_hi_s", "tpot_s",
    "tpot_lo_s",
    "tpot_hi_s", "tok_per_s_user", "usd_per_mtok_out", "usd_per_mtok_out_lo", "usd_per_mtok_out_hi", "usd_per_hour", "usd_per_month",
    "bound", "why",
)  # fmt: skip
UNCHECKED = {"ttft": "ttft_p95", "tpot": "tpot_p95", "no_check": ""}  # what the command that checks a plan says instead
STYLE = """
.atlas .controls { margin-top: 1.4rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 11.5rem), 1fr)); align-items: end; }
.atlas .field.switch { padding-bottom: 0.4rem; }
.atlas .picture { margin-top: 1.6rem; }
.atlas svg { width: 100%; height: auto; display: block; }
.atlas svg text { font: 12px var(--sans); fill: var(--muted); }
.atlas svg text.name { fill: var(--ink); }
.atlas .grid { stroke: var(--grid); }
.atlas circle { fill: var(--muted); fill-opacity: 0.45; cursor: pointer; }
.atlas circle.best { fill: var(--t1); fill-opacity: 1; }
.atlas circle.here { stroke: var(--ink); stroke-width: 2.5; }
.atlas .edge { fill: none; stroke: var(--t1); stroke-width: 1.5; }
.atlas th button { border: 0; padding: 0; background: none; color: inherit; font: inherit; }
.atlas th button:hover { color: var(--accent); }
.atlas td, .atlas th { padding-right: 0.6rem; }
.atlas td .quiet { display: block; font-size: 0.74rem; }
.atlas td button { padding: 0.1rem 0.5rem; text-align: left; }
.atlas td.facts { white-space: normal; max-width: 46rem; padding: 0.6rem 0 1rem; }
.atlas td.facts p { margin: 0.3rem 0; max-width: min(46rem, 86vw); }
.atlas td.facts .launch { max-width: min(46rem, 86vw); margin: 0.4rem 0; }
.atlas td.why { white-space: normal; min-width: 18rem; color: var(--muted); }
"""


def plans(study: file.Study, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for each plan that is there, in the order of the questions: the best layout, or the reason why none is."""
    firsts: dict[int, dict[str, Any]] = {}
    for row in store.table({"plan": sorted((folder / "plan").glob(f"*{store.SUFFIX}"))}, False).to_pylist():
        firsts.setdefault(row["question"], row)
    for number, block in enumerate(study.blocks):
        for place, question in enumerate(block.numbers):
            if question in firsts:
                row = firsts[question]
                values = block.differing(place)
                yield {
                    "question": question, "load": LOADS[number], "model": str(values["model"]), "on": str(values["on"]),
                    **{key: row.get(key) for key in KEPT}, "why": row.get("why") or row.get("error"),
                    "command": command(block, values), "check": command(block, values, UNCHECKED),
                }  # fmt: skip


def command(block: QuestionBlock, differing: Mapping[str, Any], instead: Mapping[str, str] | None = None) -> str:
    """The command line of one question, with other names for some of its fields, or without them."""
    values = {(instead or {}).get(name, name): value for name, value in {**block.values, **differing}.items()}
    return shlex.join(["headway", *question_with(block.verb, {name: value for name, value in values.items() if name}).command()])


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A plan as the page has it: every text as headway prints it, and the numbers that it sorts and draws by."""
    layout = " ".join(f"{name}={row[name]:g}" for name in LAYOUT if row[name] and (row[name] > 1 or name == "tp"))
    keys = ("load", "model", "on", "why", "command", "check", "bound")
    texts = {key: [cell(key, row), _interval(ends, row)] for key, (_, ends) in NUMBERS.items()}
    number = {key: row[key] for key in NUMBERS}
    return {key: row[key] for key in keys} | {"format": f"{row['weights']}, KV {row['kv']}", "layout": layout, "texts": texts, "n": number}


def _interval(ends: str, row: Mapping[str, Any]) -> str:
    """The ends of a number, or nothing where it has none: one price, no layout."""
    low, _, high = ends.partition("~")
    return cell(ends, row) if ends and row[low] is not None and row[low] < row[high] else ""


def about(study: file.Study, record: manifest.Manifest, count: int) -> dict[str, Any]:
    """What the page says of itself: what is there, by which headway and catalogue, and what the loads ask."""
    loads = {}
    for name, block in zip(LOADS, study.blocks, strict=False):
        v = block.values
        hits = f", {float(v['hit_rate']):.0%} of the prompt in the prefix cache" if "hit_rate" in v else ""
        limits = ", ".join(f"mean {limit.upper()} at most {v[limit]}" for limit in ("ttft", "tpot") if limit in v)
        loads[name] = f"{v['prompt']} tokens in, {v['output']} out, {v['rate']}{hits}; {limits}"
    part = "" if count == len(study) else f" of {len(study):,} that the sweep asks; the others are not computed yet"
    return {"count": f"{count:,} plans{part}", "made": f"catalogue of {record.day}, {record.build}", "loads": loads,
            "heads": {key: head for key, (head, _) in NUMBERS.items()}}  # fmt: skip


def page(rows: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The page: its data, its style and its script in one file, under a policy that lets nothing else in."""
    here = Path(__file__)
    style = (Path(headway.__file__).parent / "web" / "static" / "style.css").read_text(encoding="utf-8") + STYLE
    script = here.with_suffix(".js").read_text(encoding="utf-8")
    data = json.dumps({**facts, "rows": [shown(row) for row in rows]}, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    body = here.with_suffix(".html").read_text(encoding="utf-8")
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The open atlas of headway</title><style>{style}</style>"
        + body.replace("{count}", escape(facts["count"])).replace("{made}", escape(facts["made"]))
        + f'<script type="application/json" id="data">{data}</script><script>{script}</script></html>\n'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write(path: str, folder: Path, into: Path) -> str:
    """Write atlas.parquet and index.html of a sweep's folder, and say what they have."""
    study, record = file.read(path), manifest.read(folder)
    if record is None:
        raise SystemExit(f"{folder}: no sweep; headway sweep {path} --into {folder} makes it")
    rows = list(plans(study, folder))
    facts = about(study, record, len(rows))
    origin = {"headway.atlas": json.dumps({"day": record.day, "build": str(record.build)})}
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata(origin)
    parquet.write_table(table, into / "atlas.parquet", compression="zstd")
    (into / "index.html").write_text(page(rows, facts), encoding="utf-8")
    sizes = ", ".join(f"{name} {(into / name).stat().st_size:,} bytes" for name in ("atlas.parquet", "index.html"))
    return f"{facts['count']}; {sum(row['why'] is None for row in rows):,} keep their limits; {sizes}"


if __name__ == "__main__":
    print(write(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
