"""A measured machine as a chip: what it reached as the facts of its file, and the shares of them in a file of efficiencies of its own.

The two are apart, as for every chip: chips/NAME.toml says what the machine is, efficiency/NAME.toml what kinds of kernels reach of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.core.errors import BadFile
from headway.core.files import save as write
from headway.core.quantity import known
from headway.core.user_file import CATALOGUE, text_of
from headway.hardware.chip import Chip, chip_toml
from headway.performance import achieved
from headway.performance.achieved import Efficiencies
from headway.reality.measure.rates import MachineRates
from headway.reality.measure.record import MachineRecord, of_dict

MARK = "measured on "  # that the notes of such a chip begin with
PEAK_OF = {"float8": "peak_fp8", "int8": "peak_int8"}  # fact by the format that was multiplied, beside the main one
ONES: tuple[str, ...] = ("compute_factor", "memory_factor", "attention_factor", "expert_factor", "weight_only_factor", "launch_factor")
ZEROS: tuple[str, ...] = ("prompt_launch_s", "prompt_routed_s", "prompt_latent_s")  # of a card's host
QUANTITIES = ("decode", "prefill", "tpot", "ttft", "offline")


def chip_of(record: MachineRecord, rates: MachineRates, name: str) -> Chip:
    """The chip whose file is written."""
    place = f"{record.library} on {record.threads} thread{'s' * (record.threads > 1)}"

    def fact(value: float, key: str, unit: str, what: str, kind: str = "measured") -> Any:
        return known(value, f"{name}.{key}", unit, kind, f"measured here: {what}, {place}", record.date)

    peaks = {}
    for form in (form for form in record.formats() if form in PEAK_OF or form == record.main):
        best, key = record.peak(form), PEAK_OF.get(form, "peak_bf16")
        converted = "" if best.element <= 2 else ", which 16-bit weights are converted to"
        if best.native:
            peaks[key] = fact(best.flop_per_s, key, "flop/s", f"{form} matmul of {best.rows} rows{converted}")
    memory = fact(float(record.memory), "hbm", "byte", "memory as the platform reports it", "reported")
    bandwidth = fact(rates.bandwidth, "hbm_bw", "byte/s", f"{record.read().kind} of {record.read().bytes:,} bytes")
    shared = {"memory": "shared", "host_dram_bw": bandwidth} if not record.cards else {}
    links = {link.target: link for link in record.links}
    joined = {"scale_up_domain": known(max(1, record.cards), f"{name}.scale_up_domain", "", "reported", "this machine", record.date)}
    if "card" in links:
        joined["host_link_bw"] = fact(links["card"].bytes_per_s, "host_link_bw", "byte/s", "a copy from pinned memory")
    if "peer" in links:
        joined["scale_up_bw"] = joined["peer_bw"] = fact(links["peer"].bytes_per_s, "peer_bw", "byte/s", "a copy from card to card")
    notes = f"{MARK}{record.date}: {record.device}, {place} of {record.cores} cores, spread {record.spread:.0%}"
    topology = "pcie" if record.cards else "none"
    return Chip(name=name, topology=topology, notes=notes, hbm=memory, hbm_reported=memory, hbm_bw=bandwidth, **peaks, **shared, **joined)


def sections_of(rates: MachineRates) -> dict[str, dict[str, float]]:
    """Numbers by section, as a file of efficiencies has them. What the machine reached counts once: an engine's factors on it are 1."""
    gemm = {
        "t0_s": rates.call_s, "compute": 1.0, "memory": rates.memory, "activation": rates.activation, "norm": rates.norm,
        "packing": rates.packing,
    }  # fmt: skip
    decode = {"t0_s": rates.decode_t0_s, "compute": 1.0, "memory": rates.decode_memory, "block_bytes": rates.block_s * rates.bandwidth}
    prefill = {"t0_s": rates.prefill_t0_s, "compute": rates.prefill_compute, "pad_tokens": rates.prefill_pad}
    experts = {key: value for key, value in gemm.items() if key != "packing"} | {"t0_s": rates.routing_s + rates.expert_s}
    return {
        "gemm.other.bf16": gemm,
        "moe.other.bf16": experts | {"memory": rates.memory / (1 + rates.packing / 2)},
        "decode.other.bf16": decode,
        "mla_decode.other.bf16": decode,
        "prefill.other.bf16": prefill | {"narrow": 0.0},
        "mla_prefill.other.bf16": prefill,
        "elementwise.other.bf16": {"t0_s": rates.vector_t0_s, "memory": rates.vector_memory},
        "engine.other": dict.fromkeys(ONES, 1.0) | dict.fromkeys(ZEROS, 0.0),
        "remainder.weights.bf16": {"decode": 1.0, "prompt": 1.0},
        "interval.other": dict.fromkeys(QUANTITIES, rates.half) | {"unlike": 1.0},
    }


def efficiencies_of(sections: Mapping[str, Mapping[str, float]], date: str) -> Efficiencies:
    """The numbers as the step law takes them, before they are a file; what they do not state is as it ships."""
    units = {key: "s" if key.endswith("_s") else "" for numbers in sections.values() for key in numbers}
    table = {
        section: {key: known(value, f"{section}.{key}", units[key], "measured", "measured here", date) for key, value in numbers.items()}
        for section, numbers in sections.items()
    }
    return achieved.over(achieved.efficiencies(), table)


def efficiency_toml(record: MachineRecord, sections: Mapping[str, Mapping[str, float]]) -> str:
    """The file of efficiencies of a measured chip."""
    head = "# Numbers of the step law for one machine, by `headway measure`: shares of what chips/ of the same name says.\n"
    about = f'source = {json.dumps(f"measured here, {record.library}")}, date = {json.dumps(record.date)}, kind = "measured"'
    lines = []
    for section, numbers in sections.items():
        lines.append(f"\n[{section}]")
        for key, value in numbers.items():
            unit = "byte" if key.endswith("_bytes") else "token" if key.endswith("_tokens") else "s" if key.endswith("_s") else ""
            lines.append(f"{key} = {{ value = {float(value)!r}, unit = {json.dumps(unit)}, {about} }}")
    return head + "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFiles:
    """Where a measured machine is kept: the chip, its efficiencies, and the record that both follow from."""

    chip: Path
    efficiency: Path
    record: Path


def files_of(folder: Path, name: str) -> MeasuredFiles:
    """The files of a name in a catalogue folder."""
    efficiency = folder / "efficiency"
    return MeasuredFiles(chip=folder / "chips" / f"{name}.toml", efficiency=efficiency / f"{name}.toml", record=efficiency / f"{name}.json")


def save(record: MachineRecord, rates: MachineRates, name: str, folder: Path) -> MeasuredFiles:
    """Write a machine into a catalogue folder; what nobody measured is never written over."""
    files = files_of(folder, name)
    if files.chip.exists() and MARK not in text_of(files.chip, CATALOGUE):
        raise BadFile(files.chip, "exists and was not measured; it was left as it is: --save another name")
    texts = {
        files.chip: chip_toml(chip_of(record, rates, name), ""),
        files.efficiency: efficiency_toml(record, sections_of(rates)),
        files.record: json.dumps(record.as_dict(), indent=1) + "\n",
    }
    for path, text in texts.items():
        write(path, text, makes_folder=True)
    achieved.laid.cache_clear()
    return files


def saved_record(path: Path) -> MachineRecord:
    """The record that a file keeps."""
    try:
        return of_dict(json.loads(text_of(path, CATALOGUE)))
    except (ValueError, TypeError, KeyError) as error:
        raise BadFile(path, f"is no record of `headway measure --save` ({error})") from None
