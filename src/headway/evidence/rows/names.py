"""Engines, hardware and models of public tables, mapped from their spellings to families, catalogue names and classes.

A near match with a catalogue name is refused: another size is another model or chip.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from headway.core.catalog import Catalog, fold
from headway.core.errors import UnknownName
from headway.hardware.chip import chip
from headway.hardware.system import system
from headway.models.config import catalogue_index, spellings

_SPELLINGS = (
    ("TensorRT-LLM", r"tensorrt|trt|\bnim\b|triton"),
    ("SGLang", r"sglang|sgl\b"),
    ("llama.cpp", r"llama\.?-?_?cpp|ollama|lm-?studio|llama-?bench|gguf|koboldcpp|llamafile|ggml"),
    ("vLLM", r"vllm|atom\b|dynamo.*vllm"),
    ("native", r"\bmlc|exllama"),  # compiled ahead, for one user: no interpreter launches their kernels
)


@functools.cache
def family(engine: str) -> str:
    """Family of an engine's name.

    >>> family("TRT-LLM v1.0"), family("ollama"), family("vllm-rocm 0.6"), family("MLC-LLM"), family("MLX")
    ('TensorRT-LLM', 'llama.cpp', 'vLLM', 'native', 'other')
    """
    text = engine.lower()
    inner = re.search(r"dynamo[\s\-_(+/]*(trt\w*|tensorrt\S*|vllm|sglang)", text)
    text = inner[1] if inner else text
    return next((name for name, pattern in _SPELLINGS if re.search(pattern, text)), "other")


@functools.cache
def version(text: str) -> tuple[int, int] | None:
    """Major and minor of a version; None if it does not start with them.

    >>> version("1.0.0rc3"), version("v0.17"), version("commit 3f2")
    ((1, 0), (0, 17), None)
    """
    match = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", text.strip().lower())
    return (int(match[1]), int(match[2])) if match else None


GRAPHS_SINCE = (0, 3)  # vLLM with CUDA graphs: release notes of v0.2.6 (December 2023) and later
AHEAD_SINCE = (0, 14)  # vLLM where the host prepares a step during the previous step, by default: release notes of v0.14.0 (January 2026)


@functools.cache
def older(engine: str, text: str, date: str = "") -> tuple[str, ...]:
    """Overheads of an old engine version that later versions removed; judged by date where the version is not stated.

    "eager": kernels are launched separately, without CUDA graphs; "early": by a host that takes longer for each; "waiting": the host
    prepares a step after the previous step.

    >>> older("vLLM", "2023-10"), older("vLLM", "0.6.3"), older("vLLM", "", "2025-10-29"), older("vLLM", "0.19.0")
    (('eager', 'early', 'waiting'), ('waiting',), ('waiting',), ())
    """
    if engine != "vLLM":
        return ()
    release, day = version(text), text.strip() or date.strip()
    is_date = bool(re.match(r"20\d\d(-|$)", day))
    return tuple(
        name
        for name, since, month in (
            ("eager", GRAPHS_SINCE, "2024-01"), ("early", GRAPHS_SINCE, "2024-01"), ("waiting", AHEAD_SINCE, "2026-01"),
        )
        if (release < since if release else is_date and day[:7] < month)
    )


NEWEST = 2026.25  # the newest engines and kernels measured: spring of 2026


@functools.cache
def years_before(date: str) -> float:
    """Years from a date (year first) to the newest engines that were measured; 0 without a date.

    >>> years_before("2025-04"), years_before(""), years_before("2026-08")
    (1.0, 0.0, 0.0)
    """
    match = re.match(r"(20\d\d)(?:-(\d\d))?", date.strip())
    return max(NEWEST - int(match[1]) - (int(match[2]) - 1 if match[2] else 6) / 12, 0.0) if match else 0.0


NEAR = 0.12  # largest relative difference of the capacity in a name from the datasheet's: GB or GiB, usable or all
_COUNT_AND_CHIP = re.compile(r"(\d+)\s*[x×*]\s*(?=[a-z])(.+)|(.+?)\s*[\s(_-]?[x×*](\d+)\)?", re.IGNORECASE)
_SLICE = re.compile(r"(.+)-(\d{1,5})")
CORES = ("tpu_v3", "tpu_v4", "tpu_v5p")  # chips whose slices are named by cores, two per chip (docs.cloud.google.com/tpu)
_VENDOR = re.compile(r"^(nvidia|amd|intel|apple|google|aws|amazon|habana|meta|geforce|radeon|instinct|tesla|quadro|cloud)-(?=.)")
_MEMORY = re.compile(r"-?\b(\d+)-?gi?b?\b")
_FORM = re.compile(
    r"-(class|sxm\d?|oam|hbm\d?e?|hgx|dgx|gpu|accelerator|generation|edition|card|chip|soc|desktop|nvlink|nvl\d+)\b|\b(hgx|dgx|gpu)-"
)
# Apple sells chips under one name with fewer GPU cores; their memory is slower too, so they count as other chips.
_SLOWER = re.compile(r"m3-max.*\b30\b|m4-max.*\b32\b")
_CORES = re.compile(r"-?\b\d+-?cores?(-gpu|-cpu)?\b")
_BRACKETS = re.compile(r"\s*[(\[][^)\]]*[)\]]?")
# Endings of model names that change neither shape nor size.
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
    """Catalogue chip that a hardware name means, with the count and the link that the name states."""

    chip: str
    count: int | None = None
    link: str = ""  # nvlink or pcie, if the name states it


@functools.cache
def hardware(name: str, catalog: Catalog) -> Hardware:
    """Chip that a hardware name means; raises UnknownName if there is none.

    >>> from headway.core.catalog import default_catalog
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
    """First form of a name that is in the catalogue, also without hyphens, with the memory that the name states."""
    if _SLOWER.search(fold(name)):
        return None
    size = _MEMORY.search(fold(name))
    for form in dict.fromkeys(_hardware_forms(fold(name))):
        closed = _closed_chips(catalog).get(_closed(form))
        path = catalog.find("chips", form) or (catalog.find("chips", closed) if closed else None)
        if path is None:
            continue
        memory = None if form == fold(name) or size is None else chip(path.stem, catalog).hbm
        if memory is None or size is None or abs(float(memory) / 1e9 - int(size[1])) <= NEAR * int(size[1]):
            return path.stem
    return None


def _hardware_forms(text: str) -> Iterator[str]:
    """Forms of a hardware name: as written, then without vendor, brackets, memory and form factor in turn."""
    yield text
    shorter = text
    while (cut := _VENDOR.sub("", shorter)) != shorter:
        shorter = cut
        yield shorter
    for pattern in (_BRACKETS, _CORES, _MEMORY, _FORM, _FORM, _FORM):
        shorter = pattern.sub("", shorter, count=1).strip("-")
        yield shorter


@functools.cache
def _closed_chips(catalog: Catalog) -> dict[str, str]:
    names = {name: name for name in catalog.files("chips")} | catalog.aliases("chips")
    return _unambiguous((name, target) for name, target in names.items())


def _closed(text: str) -> str:
    """A name without the separators between its parts."""
    return re.sub(r"[\s_:-]", "", text)


def _unambiguous(pairs: Iterator[tuple[str, str]]) -> dict[str, str]:
    """Spellings without separators that have one meaning only."""
    meant: dict[str, set[str]] = {}
    for name, target in pairs:
        meant.setdefault(_closed(name), set()).add(target)
    return {name: next(iter(targets)) for name, targets in meant.items() if len(targets) == 1}


@functools.cache
def model_name(name: str) -> str:
    """Catalogue name of the model that a name means; raises UnknownName if there is none.

    >>> model_name("nvidia/Llama-3.1-8B-Instruct-FP8"), model_name("qwen2.5:32b-instruct-q4_K_M")
    ('llama-3.1-8b', 'qwen2.5-32b')
    """
    files = spellings()
    for form in dict.fromkeys(_model_forms(fold(name))):
        file = files.get(form) or _closed_models().get(_closed(form))
        if file is not None:
            return _names()[file]
    known = [row["name"] for row in catalogue_index()]
    raise UnknownName("model", name, known, "`headway list models` shows all")


@functools.cache
def _closed_models() -> dict[str, str]:
    return _unambiguous(iter(spellings().items()))


@functools.cache
def _names() -> dict[str, str]:
    return {row["file"]: row["name"] for row in catalogue_index()}


def _model_forms(text: str) -> Iterator[str]:
    """Forms of a model name: as written, without publisher, with endings removed in turn, without the maker's name in front."""
    yield text
    bare = text.rpartition("/")[2]
    for start in (bare, _STARTS.sub("", bare), _BRACKETS.sub("", bare).strip("-"), bare.removesuffix(".gguf"), bare.replace(":", "-")):
        form = start
        yield form
        while (shorter := _ENDS.sub("", form)) != form:
            form = shorter
            yield form
            yield _STARTS.sub("", form)
