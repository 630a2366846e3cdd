"""A chip as the text of a catalogue file: one that reads back to the same chip, and one to fill in. The format is in docs/chips.md."""

from __future__ import annotations

import json

from headway.core import catalog as facts
from headway.core.quantity import Sourced
from headway.hardware.chip import TOPOLOGIES, Chip

HEAD = "# A chip of headway: save as DIR/chips/{name}.toml and give --catalog DIR. The format is in docs/chips.md.\n"
EXAMPLES = {
    "year": "2026", "peak_bf16": "1 PFLOP/s", "peak_fp16": "2 PFLOP/s", "peak_fp8": "2 PFLOP/s", "peak_fp4": "4 PFLOP/s",
    "peak_int8": "2 POPS",
    "hbm": "192 GB", "hbm_bw": "8 TB/s", "sram": "100 MB", "tdp": "1000 W", "scale_up_bw": "900 GB/s", "scale_up_domain": "64",
    "scale_out_bw": "50 GB/s", "host_dram_bw": "100 GB/s", "host_link_bw": "64 GB/s", "price": "$3/h",
}  # fmt: skip


def chip_toml(chip: Chip, like: str) -> str:
    """The catalogue file of a chip: its facts in SI, each with source, date and kind; `like` is the chip whose fitted costs it has."""
    lines = [HEAD.format(name=chip.name.replace("-", "_")), f"vendor = {_text(chip.vendor)}", f"topology = {_text(chip.topology)}"]
    lines += [f"{key} = {_text(value)}" for key, value in (("scale_up_kind", chip.scale_up_kind), ("notes", chip.notes)) if value]
    if like:
        lines.append(f"like = {_text(like)}  # whose fitted costs it has, under any name")
    lines += ["", "[facts]"]
    for key in facts.declared(Chip):
        fact = getattr(chip, key)
        if isinstance(fact, Sourced):
            number = repr(int(fact)) if isinstance(fact, int) else repr(float(fact))  # type: ignore[arg-type]
            about = f"source = {_text(fact.source)}, date = {_text(fact.date)}, kind = {_text(fact.kind)}"
            unit = "USD/s" if key == "price" else fact.unit
            lines.append(f"{key} = {{ value = {number}, unit = {_text(unit)}, {about} }}")
    return "\n".join(lines) + "\n"


def empty_toml(name: str) -> str:
    """A catalogue file to fill in: every fact with its sentence and an example, none of them set."""
    fields = facts.declared(Chip)
    lines = [HEAD.format(name=name), 'vendor = ""', f'topology = "switch"  # one of {", ".join(TOPOLOGIES)}']
    lines += [
        '# like = "h100_sxm"  # a measured chip whose fitted costs stand in; without it those of all measured chips do',
        "",
        "[facts]",
    ]
    lines.append("# Needed: a peak, hbm and hbm_bw. Remove the # of a line that you fill in; leave out what you do not know.")
    lines.append('# A bare number is in SI (a price in USD/h). Or { value = 8, unit = "TB/s", source = "datasheet", date = "2026-01" }')
    width = max(map(len, (f'# {key} = "{EXAMPLES[key]}"' for key in fields)))
    lines += [f"{f'# {key} = {_text(EXAMPLES[key])}':{width}}  # {q.help} [{q.unit or 'count'}]" for key, q in fields.items()]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """Text in quotes, as TOML writes it."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
