"""This machine as its platform tells: words of tools and files, and the chip of the catalogue that they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from headway.core.catalog import open_catalog
from headway.core.errors import BadValue
from headway.core.notes import noted
from headway.reality.here import CPU_FILE, LIMIT_FILES, MEMORY_FILE, Host, catalogue_name, host, machine, words

WHERE = open_catalog(())
LINUX = {CPU_FILE: "processor\t: 0\nmodel name\t: AMD Ryzen 9 7950X 16-Core Processor\n", MEMORY_FILE: "MemTotal:       65536000 kB\n"}
CARD = {"Card Series": "Radeon RX 7900 XTX", "Card Model": "0x744c", "VRAM Total Memory (B)": "25753026560"}
ROCM = json.dumps({"card0": CARD, "system": {"Driver": "6"}})
VRAM = {"type": "GDDR6", "size": {"value": 16304, "unit": "MB"}}
AMD_SMI = json.dumps([{"gpu": 0, "asic": {"market_name": "AMD Radeon RX 9070 XT"}, "vram": VRAM}])
XPU = json.dumps({"device_list": [{"device_id": 0, "device_name": "Intel(R) Arc(TM) A770 Graphics", "device_type": "GPU"}]})


def platform(tools: Mapping[str, str], system: Mapping[str, str] = LINUX) -> tuple[Callable[[Sequence[str]], str], Callable[[str], str]]:
    return lambda command: tools.get(command[0], ""), lambda path: system.get(path, "")


def described(tools: Mapping[str, str], system: Mapping[str, str] = LINUX) -> Host:
    return host(*platform(tools, system))


def test_host__two_cards_of_nvidia() -> None:
    computer = described({"nvidia-smi": "NVIDIA GeForce RTX 3090, 24576\nNVIDIA GeForce RTX 3090, 24576\n"})
    system = machine(computer, WHERE)
    assert system.name == "2xrtx3090" and float(system.chip.hbm_reported) == 24576 * 2**20
    assert float(system.chip.host_dram) == pytest.approx(65536000 * 1024 / 2)
    assert "2 x NVIDIA GeForce RTX 3090" in words(computer) and "Ryzen 9 7950X" in words(computer)


@pytest.mark.parametrize(
    ("tools", "name", "memory"),
    [
        ({"rocm-smi": "WARNING: low power\n" + ROCM}, "rx-7900-xtx", 25753026560),
        ({"amd-smi": AMD_SMI}, "rx-9070-xt", 16304 * 2**20),
        ({"amd-smi": json.dumps({"gpu_data": json.loads(AMD_SMI)})}, "rx-9070-xt", 16304 * 2**20),
        ({"xpu-smi": XPU}, "arc-a770-16", None),
    ],
)
def test_host__cards_by_the_tools_of_their_vendors(tools: dict[str, str], name: str, memory: float | None) -> None:
    system = machine(described(tools), WHERE)
    assert system.name == name and (memory is None or float(system.chip.hbm_reported) == memory)


def test_host__a_chip_that_shares_its_hosts_memory_has_all_of_it() -> None:
    """A DGX Spark's driver reports no memory; a Mac tells its own by sysctl, and has neither /proc nor a vendor's tool."""
    spark = machine(described({"nvidia-smi": "NVIDIA GB10, [N/A]\n"}), WHERE)
    mac = machine(described({"sysctl": "Apple M4 Pro\n25769803776\n"}, {}), WHERE)
    assert (spark.name, float(spark.chip.hbm)) == ("dgx-spark-gb10", 65536000 * 1024)
    assert (mac.name, float(mac.chip.hbm)) == ("apple-m4-pro", 25769803776)


def test_host__processor_without_a_card() -> None:
    with noted() as book:
        system = machine(described({}), WHERE)
    assert system.name == "desktop-cpu-ddr5" and float(system.chip.hbm) == 65536000 * 1024
    assert any("two channels of DDR5" in text for text in book.texts)


def test_host__a_container_has_what_it_may_take() -> None:
    for path in LIMIT_FILES:
        assert described({}, LINUX | {path: "8589934592\n"}).memory == 2**33
    assert described({}, LINUX | {LIMIT_FILES[0]: "max\n"}).memory == 65536000 * 1024
    assert described({}, LINUX | {LIMIT_FILES[1]: "9223372036854771712\n"}).memory == 65536000 * 1024  # without a limit


def test_host__cards_of_two_kinds_count_as_the_larger_kind() -> None:
    with noted() as book:
        system = machine(described({"nvidia-smi": "NVIDIA GeForce RTX 3060, 12288\nNVIDIA GeForce RTX 3090, 24576\n"}), WHERE)
    assert system.name == "rtx3090" and any("RTX 3060 left out" in text for text in book.texts)


def test_host__an_integrated_unit_stands_back_behind_its_processor() -> None:
    strix = LINUX | {CPU_FILE: "model name\t: AMD RYZEN AI MAX+ 395 w/ Radeon 8060S\n"}
    cards = json.dumps({"card0": {"Card Series": "AMD Radeon 8060S Graphics", "VRAM Total Memory (B)": "536870912"}})
    with noted() as book:
        assert machine(described({"rocm-smi": cards}, strix), WHERE).name == "ryzen-ai-max-395"
    assert not book.texts


def test_host__a_card_that_nobody_knows_is_left_out_aloud() -> None:
    epyc = LINUX | {CPU_FILE: "model name\t: AMD EPYC 9654 96-Core Processor\n"}
    with noted() as book:
        assert machine(described({"nvidia-smi": "NVIDIA GeForce GTX 1060, 6144\n"}, epyc), WHERE).name == "epyc-9654"
    assert any("GTX 1060 is no chip of the catalogue and is left out" in text for text in book.texts)


def test_host__what_nobody_knows_is_one_line() -> None:
    with pytest.raises(BadValue, match="describe it"):
        machine(described({"nvidia-smi": "NVIDIA GeForce GTX 1060, 6144\n"}), WHERE)
    with pytest.raises(BadValue, match="name yours"):
        machine(described({}, {}), WHERE)
    assert described({"rocm-smi": "{not json", "xpu-smi": "[]"}).cards == ()


@pytest.mark.parametrize(
    ("text", "size", "chip"),
    [
        ("NVIDIA GeForce RTX 3060", 12, "rtx3060-12"), ("NVIDIA GeForce RTX 4060 Ti", 16, "rtx4060-ti-16"),
        ("NVIDIA GeForce RTX 3080", 10, "rtx3080-10"), ("NVIDIA H100 80GB HBM3", 80, "h100-sxm"), ("NVIDIA GB10", 0, "dgx-spark-gb10"),
        ("NVIDIA RTX 6000 Ada Generation", 48, "rtx6000-ada"), ("Tesla T4", 15, "t4"), ("AMD Instinct MI300X", 192, "mi300x"),
        ("AMD EPYC 9654 96-Core Processor", 0, "epyc-9654"), ("AMD EPYC", 0, ""), ("13th Gen Intel(R) Core(TM) i9-13900K", 0, ""),
        ("Intel(R) Xeon(R) Platinum 8480+", 0, "xeon-8480p-amx"), ("", 0, ""),
    ],
)  # fmt: skip
def test_catalogue_name__as_tools_and_platforms_write_it(text: str, size: int, chip: str) -> None:
    assert catalogue_name(text, size * 2**30, WHERE) == chip
