"""This machine as its platform describes it: processor, memory and cards, and the machine of the catalogue that they are.

Linux tells of itself in /proc, macOS by sysctl; cards by their vendors' tools, where those are installed. Nothing is measured.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headway.core.catalog import Catalog, fold
from headway.core.cores import Reader, read_system
from headway.core.errors import BadValue
from headway.core.notes import note
from headway.core.quantity import known
from headway.core.units import show
from headway.hardware.chip import Chip
from headway.hardware.system import System, system

LOCAL = "here"
GENERIC_CPU = "desktop_cpu_ddr5"  # two channels of DDR5-5600
PATIENCE_S = 10.0  # that a vendor's tool may take
CPU_FILE, MEMORY_FILE = "/proc/cpuinfo", "/proc/meminfo"
LIMIT_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container, by both kinds of cgroups
NVIDIA = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
AMD = (
    ("amd-smi", "static", "--asic", "--vram", "--json"),
    ("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"),
)
INTEL = ("xpu-smi", "discovery", "-j")
APPLE = ("sysctl", "-n", "machdep.cpu.brand_string", "hw.memsize")
NAME_KEYS = ("market_name", "Card Series", "Card series", "Card Model", "Device Name", "device_name")
VENDOR_WORDS = re.compile(r"\((?:R|TM|C)\)|\b(?:NVIDIA|AMD|Intel|GeForce|Tesla|Graphics|GPU|Radeon)\b|\bw/.*$|\d+-Core.*$", re.IGNORECASE)
MIB = 2**20
UNITS = {"MB": MIB, "GB": 2**30, "B": 1}  # of amd-smi, whose MB are MiB
APPLE_SHARE = (
    "macOS leaves the GPU about two thirds of up to 36 GB of memory and three quarters of more: --hbm-utilization 0.67 counts on that, "
    "sysctl iogpu.wired_limit_mb gives it more"
)

Tool = Callable[[Sequence[str]], str]  # what a command writes; "" where it is not there or fails


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A card under the name that its vendor's tool gives it."""

    name: str
    memory: int  # bytes as its driver reports them; 0 where the tool does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine as its platform describes it."""

    processor: str
    memory: int  # bytes; 0 where it is not known
    cards: tuple[Card, ...]


def run(command: Sequence[str]) -> str:
    """What a tool of the platform writes; "" where it is not installed, fails or takes too long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""


def host(tool: Tool = run, read: Reader = read_system) -> Host:
    """This machine, asked of the platform and of the tools of the cards' vendors."""
    words = read(CPU_FILE)
    if words:
        match = re.search(r"^model name\s*:\s*(.+)$", words, re.MULTILINE)
        processor, memory = match[1].strip() if match else "", _memory(read)
    else:
        processor, _, size = tool(APPLE).strip().partition("\n")
        memory = int(size) if size.strip().isdigit() else 0
    cards = tuple(_nvidia(tool(NVIDIA))) or _amd(tool) or tuple(_named_cards(tool(INTEL)))
    return Host(processor=processor, memory=memory, cards=cards)


def _memory(read: Reader) -> int:
    """Bytes of the host's memory; of a container, what it may take of them."""
    match = re.search(r"^MemTotal:\s*(\d+) kB", read(MEMORY_FILE), re.MULTILINE)
    total, limit = int(match[1]) * 1024 if match else 0, next((text for path in LIMIT_FILES if (text := read(path).strip())), "")
    return min(total, int(limit)) if limit.isdigit() and total else total


def _nvidia(text: str) -> Iterator[Card]:
    for line in text.splitlines():
        name, _, size = line.rpartition(",")
        if name.strip():
            yield Card(name=name.strip(), memory=int(size) * MIB if size.strip().isdigit() else 0)  # [N/A] of a DGX Spark


def _amd(tool: Tool) -> tuple[Card, ...]:
    return next((cards for command in AMD if (cards := tuple(_named_cards(tool(command))))), ())


def _named_cards(text: str) -> Iterator[Card]:
    """Cards of a tool that writes JSON, wherever in it they stand: its keys were renamed from version to version."""
    document: Any = None
    for start in re.finditer(r"[\[{]", text):  # a warning may stand before it, with brackets of its own
        try:
            document, _ = json.JSONDecoder().raw_decode(text[start.start() :])
        except ValueError:
            continue
        break
    for entry in _entries(document):
        flat = entry | next((value for key, value in entry.items() if key == "asic" and isinstance(value, dict)), {})
        name = next((str(flat[key]) for key in NAME_KEYS if isinstance(flat.get(key), str) and not flat[key].startswith("0x")), "")
        if name:
            yield Card(name=name, memory=_vram(flat))


def _entries(document: Any) -> Iterator[dict[str, Any]]:
    """The outermost objects that name a card."""
    if isinstance(document, dict):
        if "asic" in document or any(key in document for key in NAME_KEYS):
            yield document
            return
        document = list(document.values())
    for value in document if isinstance(document, list) else ():
        yield from _entries(value)


def _vram(flat: dict[str, Any]) -> int:
    size = flat.get("vram", {}).get("size") if isinstance(flat.get("vram"), dict) else flat.get("VRAM Total Memory (B)")
    value, unit = (size.get("value"), size.get("unit", "MB")) if isinstance(size, dict) else (size, "B")
    text = str(value)
    return int(float(text) * UNITS.get(unit, 1)) if re.fullmatch(r"\d+(\.\d+)?", text) else 0


# -- the machine of the catalogue -------------------------------------------------------------------------------------------------


def machine(computer: Host, where: Catalog) -> System:
    """The host as a machine: its cards where it has some, else the processor with the host's memory."""
    names = [catalogue_name(card.name, card.memory, where) for card in computer.cards]
    known_names = [name for name in names if name]
    if not known_names:
        if computer.cards:
            _tell_unknown_card(computer, where)
        return _of_processor(computer, where)
    memory_of = {name: sum(card.memory for card, kind in zip(computer.cards, names, strict=True) if kind == name) for name in known_names}
    most = max(memory_of, key=lambda name: (memory_of[name], known_names.count(name)))
    left_out = [card.name for card, name in zip(computer.cards, names, strict=True) if name != most]
    if left_out:
        note(f"cards of one kind alone are counted: {', '.join(dict.fromkeys(left_out))} left out")
    count = names.count(most)
    cards = system(most if count == 1 else f"{count}x{most}", where)
    return replace(cards, chip=_with_host(cards.chip, computer.cards[names.index(most)], computer, count))


def _tell_unknown_card(computer: Host, where: Catalog) -> None:
    """Nothing of a unit within the processor's own package; of a card a note, or an error where the processor is not known either."""
    card, described = computer.cards[0], "--on '(name=mine hbm=24GB hbm_bw=1TB/s peak_bf16=80T)'"
    if not catalogue_name(computer.processor, computer.memory, where):
        raise BadValue("--on", LOCAL, f"a card of the catalogue, which {card.name!r} is not; describe it: {described}")
    if card.name.removeprefix("AMD ").removesuffix(" Graphics") not in computer.processor:
        note(f"{card.name} is no chip of the catalogue and is left out, so the processor alone is counted; describe the card: {described}")


def _with_host(chip: Chip, card: Card, computer: Host, count: int) -> Chip:
    """The chip with the memory that this card's driver reports, and its share of this host's."""
    if chip.memory == "shared":
        return _with_memory(chip, computer.memory)
    if card.memory:
        chip = replace(chip, hbm_reported=_reported_size(card.memory, f"{chip.name}.hbm_reported", "its driver"))
    return replace(chip, host_dram=_reported_size(computer.memory / count, "host_dram", "the platform")) if computer.memory else chip


def _of_processor(computer: Host, where: Catalog) -> System:
    name = catalogue_name(computer.processor, computer.memory, where)
    alone = system(name or GENERIC_CPU, where)
    if not computer.processor and not computer.memory:
        raise BadValue("--on", LOCAL, "a machine whose platform tells of itself (Linux, macOS, or cards); name yours, such as --on rtx3090")
    if not name:
        speed = show(alone.chip.hbm_bw, "byte/s").replace(" ", "")
        known_as = computer.processor or "this processor"
        as_of = f"arithmetic and memory as of two channels of DDR5, {speed}"
        note(f"{known_as} is no chip of the catalogue: {as_of}; headway measure --save NAME measures it, --set chip.hbm_bw=... says it")
    if alone.chip.vendor == "apple":
        note(APPLE_SHARE)
    return replace(alone, chip=_with_memory(alone.chip, computer.memory))


def _with_memory(chip: Chip, memory: float) -> Chip:
    """A chip whose memory is its host's, with that of this host."""
    if not memory:
        return chip
    size = _reported_size(memory, f"{chip.name}.hbm", "the platform")
    return replace(chip, hbm=size, hbm_reported=size)


def _reported_size(size: float, name: str, by: str) -> Any:
    return known(float(size), name, "byte", "reported", f"this machine, as {by} reports it", "now")


def catalogue_name(name: str, memory: float, where: Catalog) -> str:
    """The chip of the catalogue under a name that a platform or a tool gives it; "" where there is none.

    A card that was sold with several sizes of memory is told by its size.

    >>> from headway.core.catalog import open_catalog
    >>> catalogue_name("NVIDIA GeForce RTX 3060", 12 * 2**30, open_catalog(()))
    'rtx3060-12'
    """
    plain = " ".join(VENDOR_WORDS.sub(" ", name).split())
    size = f"-{round(memory / 2**30)}" if memory else ""
    for spelling in (name, f"{plain}{size}", plain, f"{plain.replace(' ', '')}{size}"):
        path = where.find("chips", spelling) if spelling else None
        if path is not None:
            return fold(path.stem)
    return ""


def words(computer: Host) -> str:
    """The host in a clause."""
    memory = f", {show(float(computer.memory), 'byte')} of memory" if computer.memory else ""
    names = [card.name for card in computer.cards]
    cards = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "no card that its tools name"
    return f"this machine: {computer.processor or 'a processor that the platform does not name'}{memory}; {cards}"
