"""Hardware and models as public tables spell them, as catalogue names: spellings first, then the name without what says no size.

A name that is only nearly one of the catalogue is not taken: another size is another thing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from headway.catalog import Catalog, fold
from headway.chip import chip
from headway.errors import UnknownName
from headway.hfconfig import catalogue_index, spellings
from headway.system import system

NEAR = 0.12  # a capacity in a name and the datasheet's may differ so much: GB or GiB, usable or all
_COUNT_AND_CHIP = re.compile(r"(\d+)\s*[x×*]\s*(?=[a-z])(.+)|(.+?)\s*[\s(_-]?[x×*](\d+)\)?", re.IGNORECASE)
_SLICE = re.compile(r"(.+)-(\d{1,5})")
CORES = ("tpu_v3", "tpu_v4", "tpu_v5p")  # whose slices are named by cores, two to a chip (docs.cloud.google.com/tpu)
_VENDOR = re.compile(r"^(nvidia|amd|intel|apple|google|aws|amazon|habana|meta|geforce|radeon|instinct|tesla|quadro|cloud)-(?=.)")
_MEMORY = re.compile(r"-?\b(\d+)-?gi?b?\b")
_FORM = re.compile(
    r"-(sxm\d?|oam|hbm\d?e?|hgx|dgx|gpu|accelerator|generation|edition|card|chip|soc|desktop|nvlink|nvl\d+)\b|\b(hgx|dgx|gpu)-"
)
# Apple sells chips of one name with fewer GPU cores; these have a slower memory too, so they are other chips.
_SLOWER = re.compile(r"m3-max.*\b30\b|m4-max.*\b32\b")
_CORES = re.compile(r"-?\b\d+-?cores?(-gpu|-cpu)?\b")
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]?")
# What the end of a model's name may say that changes neither its shape nor its size.
_ENDS = re.compile(
    r"[-.:](instruct|chat|hf|it|base|pt|sft|dpo|rl|preview|thinking|reasoning|nonthinking|exp|latest|turbo|online|offline|text|mtp|"
    r"kv|kvcache|fp8|fp4|nvfp4|mxfp4|mxfp8|bf16|fp16|f16|fp8kv|dynamic|static|block|ptpc|e4m3|e5m2|w\d+a\d+(kv\d+)?|int\d|[248]bit|\d+bit|g\d+|"
    r"awq|gptq|gguf|ggml|exl2|mlx|bnb|nf4|marlin|autoround|autofp8|quantized|quant|quark|modelopt|trtllm|tp\d+|unsloth|"
    r"i?q\d([-_](0|1|k|xs|s|m|l|xl|xxs|nl))*|q\d+f\d+([-_]\d)?|v?\d{4,8}|v\d(\.\d)?|\d+k)$"
)  # fmt: skip
_STARTS = re.compile(
    r"^(meta|nvidia|neuralmagic|redhatai|unsloth|thebloke|bartowski|amd|intel|google|microsoft|mistral-ai|deepseek-ai)-(?=.)"
)


@dataclass(frozen=True, slots=True)
class Hardware:
    """A chip of the catalogue, how many of them the name itself counts, and whether it says how cards are linked."""

    chip: str
    count: int | None = None
    link: str = ""  # nvlink or pcie, where the name says so


@functools.cache
def hardware(name: str, catalog: Catalog) -> Hardware:
    """The chip that a hardware name means; UnknownName when none.

    >>> from headway.catalog import default_catalog
    >>> hardware("8xH100-SXM5-80GB", default_catalog()), hardware("NVIDIA GeForce RTX 4090 24GB", default_catalog())
    (Hardware(chip='h100_sxm', count=8, link=''), Hardware(chip='rtx4090', count=None, link=''))
    """
    match = None if catalog.find("chips", name) else _COUNT_AND_CHIP.fullmatch(name.strip())
    if match:
        count, rest = (match[1], match[2]) if match[1] else (match[4], match[3])
        chip_name = _chip(rest, catalog) if len(count) < 8 else None
        if chip_name is not None and int(count):
            return Hardware(chip_name, int(count), _link(name))
    plain = _chip(name, catalog)
    if plain is not None:
        return Hardware(plain, None, _link(name))
    slice_match = _SLICE.fullmatch(fold(name))
    chip_name = _chip(slice_match[1], catalog) if slice_match else None
    if slice_match and chip_name is not None and chip_name.startswith("tpu"):
        return Hardware(chip_name, max(1, int(slice_match[2]) // (2 if chip_name in CORES else 1)))
    system_name = catalog.find("systems", name)
    if system_name is not None:
        machine = system(name, catalog)
        return Hardware(machine.chip.name, int(machine.chips))
    raise UnknownName("chip", name, catalog.names("chips"), "`headway list chips` shows all")


def _link(name: str) -> str:
    text = fold(name)
    if re.search(r"pcie-linked|(no|without|w/o)-nvlink", text):
        return "pcie"
    return "nvlink" if re.search(r"nvl", text) else ""


def _chip(name: str, catalog: Catalog) -> str | None:
    """The first form of a name that the catalogue knows, whose memory is what the name says."""
    if _SLOWER.search(fold(name)):
        return None
    size = _MEMORY.search(fold(name))
    for form in dict.fromkeys(_hardware_forms(fold(name))):
        path = catalog.find("chips", form) or _path_without_hyphens(form, catalog)
        if path is None:
            continue
        known_whole = form == fold(name)
        if known_whole or size is None or _holds(chip(path.stem, catalog).hbm, int(size[1])):
            return path.stem
    return None


def _holds(memory: float | None, stated_gb: int) -> bool:
    return memory is None or abs(float(memory) / 1e9 - stated_gb) <= NEAR * stated_gb


def _hardware_forms(text: str) -> Iterator[str]:
    """A name, then without its vendor, brackets, memory and form factor, one after the other."""
    yield text
    shorter = text
    while (cut := _VENDOR.sub("", shorter)) != shorter:
        shorter = cut
        yield shorter
    for pattern in (_BRACKETS, _CORES, _MEMORY, _FORM, _FORM, _FORM):
        shorter = pattern.sub("", shorter, count=1).strip("-")
        yield shorter


def _path_without_hyphens(form: str, catalog: Catalog):
    name = _closed_chips(catalog).get(_closed(form))
    return catalog.find("chips", name) if name else None


@functools.cache
def _closed_chips(catalog: Catalog) -> dict[str, str]:
    names = {name: name for name in catalog.files("chips")} | catalog.aliases("chips")
    return _unambiguous((name, target) for name, target in names.items())


def _closed(text: str) -> str:
    """A name without what people put between its parts."""
    return re.sub(r"[\s_:-]", "", text)


def _unambiguous(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Closed spellings that mean one thing."""
    meant: dict[str, set[str]] = {}
    for name, target in pairs:
        meant.setdefault(_closed(name), set()).add(target)
    return {name: next(iter(targets)) for name, targets in meant.items() if len(targets) == 1}


@functools.cache
def model_name(name: str) -> str:
    """The catalogue name of the model that a name means; UnknownName when none.

    >>> model_name("nvidia/Llama-3.1-8B-Instruct-FP8"), model_name("qwen2.5:32b-instruct-q4_K_M")
    ('llama-3.1-8b', 'qwen2.5-32b')
    """
    files = spellings()
    for form in dict.fromkeys(_model_forms(fold(name))):
        file = files.get(form) or _closed_models().get(_closed(form))
        if file is not None:
            return _name_of(file)
    known = [row["name"] for row in catalogue_index()]
    raise UnknownName("model", name, known, "`headway list models` shows all")


@functools.cache
def _closed_models() -> dict[str, str]:
    return _unambiguous(iter(spellings().items()))


@functools.cache
def _names() -> dict[str, str]:
    return {row["file"]: row["name"] for row in catalogue_index()}


def _name_of(file: str) -> str:
    return _names()[file]


def _model_forms(text: str) -> Iterator[str]:
    """A name, then without its publisher, then with one end after another taken off, then without a maker's name in front."""
    yield text
    bare = text.rpartition("/")[2]
    for start in (bare, _STARTS.sub("", bare), _BRACKETS.sub("", bare).strip("-"), bare.removesuffix(".gguf"), bare.replace(":", "-")):
        form = start
        yield form
        while (shorter := _ENDS.sub("", form)) != form:
            form = shorter
            yield form
            yield _STARTS.sub("", form)
