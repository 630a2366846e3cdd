"""Arithmetic in values against Python's own, over exact fractions with units; hostile texts; facts by name; what the command prints."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

import pytest

import headway as hw
from headway.core.errors import BadValue, HeadwayError
from headway.core.units import parse
from support.command import Cli

SEED, EXPRESSIONS = 20261127, 200
UNITS = {  # unit of the project -> words that a person types, each in SI; of a rate, what comes before its last slash
    "": {"": 1, "k": 1000, "Ki": 1024, "M": 10**6, "%": Fraction(1, 100)},
    "byte": {"B": 1, "kB": 10**3, "GB": 10**9, "GiB": 2**30, "Gbit": Fraction(10**9, 8)},
    "s": {"s": 1, "ms": Fraction(1, 1000), "us": Fraction(1, 10**6), "min": 60, "h": 3600},
    "flop": {"GFLOP": 10**9, "TFLOP": 10**12},
    "USD": {"$": 1, "k$": 1000},
    "byte/s": {"GB/s": 10**9, "TB/s": 10**12, "GiB/min": Fraction(2**30, 60)},
    "flop/s": {"TFLOPS": 10**12, "GFLOP/s": 10**9},
    "USD/s": {"$/h": Fraction(1, 3600)},
    "1/s": {"/s": 1, "k/h": Fraction(1000, 3600)},
}
PRODUCTS = [("byte", "byte/s", "s"), ("flop", "flop/s", "s"), ("USD", "USD/s", "s"), ("", "1/s", "s"), ("byte/s", "byte", "1/s")]
SUM, PRODUCT, SIGNED, POWER, ATOM = range(5)


@dataclass(frozen=True)
class Measure:
    """A fraction with a unit, for Python's own parser and operators."""

    value: Fraction
    powers: tuple[tuple[str, int], ...] = ()

    def times(self, right: Measure, way: int) -> Measure:
        powers = dict(self.powers)
        for part, power in right.powers:
            powers[part] = powers.get(part, 0) + way * power
        return Measure(self.value * right.value**way, tuple(sorted((part, power) for part, power in powers.items() if power)))

    def __mul__(self, right: Measure) -> Measure:
        return self.times(right, 1)

    def __truediv__(self, right: Measure) -> Measure:
        return self.times(right, -1)

    def __add__(self, right: Measure) -> Measure:
        assert self.powers == right.powers
        return Measure(self.value + right.value, self.powers)

    def __sub__(self, right: Measure) -> Measure:
        return self + -right

    def __neg__(self) -> Measure:
        return Measure(-self.value, self.powers)

    def __pow__(self, right: Measure) -> Measure:
        assert not right.powers
        return Measure(self.value ** int(right.value), tuple((part, power * int(right.value)) for part, power in self.powers))


def measure(number: str, factor: Fraction | int, unit: str) -> Measure:
    above, *below = unit.split("/")
    powers = {part: 1 for part in [above] if part not in ("", "1")} | dict.fromkeys(below, -1)
    return Measure(Fraction(number) * Fraction(factor), tuple(sorted(powers.items())))


class Writer:
    """Expressions of a unit, each as a person types it, as Python has it, and how tightly its outermost sign binds."""

    def __init__(self, seed: int) -> None:
        self.draw, self.leaves = random.Random(seed), dict[str, Measure]()

    def expression(self, unit: str, depth: int) -> tuple[str, str, int]:
        kind = self.draw.choice(["sum", "times", "over", "unit", "power", "sign"]) if depth else "leaf"
        if kind == "sum":
            (a, b), sign = (self.expression(unit, depth - 1) for _ in range(2)), self.draw.choice("+-")
            return self.joined(a, sign, b, SUM, PRODUCT)
        if kind in ("times", "over"):
            first, second = self.expression(unit, depth - 1), self.expression("", depth - 1)
            return self.joined(first, "*" if kind == "times" else "/", second, PRODUCT, SIGNED)
        if kind == "unit":
            for product, first, second in self.draw.sample(PRODUCTS, len(PRODUCTS)):
                if product == unit:
                    return self.joined(self.expression(first, depth - 1), "*", self.expression(second, depth - 1), PRODUCT, SIGNED)
                if first == unit:
                    return self.joined(self.expression(product, depth - 1), "/", self.expression(second, depth - 1), PRODUCT, SIGNED)
        if kind == "power" and not unit:
            first, sign = self.expression("", 0), self.draw.choice(["**", "^"])
            return self.joined(first, sign, (text := str(self.draw.randint(0, 3)), self.leaf(measure(text, 1, "")), ATOM), POWER, SIGNED)
        if kind == "sign":
            text, code, rank = self.expression(unit, depth - 1)
            return (f"-{text}", f"-{code}", SIGNED) if rank >= SIGNED else (f"-({text})", f"-({code})", SIGNED)
        return self.quantity(unit)

    def quantity(self, unit: str) -> tuple[str, str, int]:
        number = self.draw.choice([str(self.draw.randint(1, 99)), f"{self.draw.uniform(0.1, 50):.2f}", f"{self.draw.randint(1, 9)}e2"])
        word, factor = self.draw.choice(list(UNITS[unit].items()))
        text = f"${number}{word[1:]}" if word.startswith("$") else number + self.draw.choice(["", " "]) * word.isalpha() + word
        return text, self.leaf(measure(number, factor, unit)), PRODUCT if "/" in word else ATOM

    def leaf(self, of: Measure) -> str:
        self.leaves[name := f"n{len(self.leaves)}"] = of
        return name

    def joined(self, a: tuple[str, str, int], sign: str, b: tuple[str, str, int], rank: int, right: int) -> tuple[str, str, int]:
        space = self.draw.choice(["", " "]) if sign not in "+-" else " "
        left, left_code = a[:2] if a[2] >= (rank + 1 if rank == POWER else rank) else (f"({a[0]})", f"({a[1]})")
        other, code = b[:2] if b[2] >= right else (f"({b[0]})", f"({b[1]})")
        return f"{left}{space}{sign}{space}{other}", f"{left_code} {sign.replace('^', '**')} {code}", rank


def drawn() -> list[tuple[str, str, Fraction | None]]:
    """Texts with their units and what Python makes of them, None where it divides by nothing."""
    writer, cases = Writer(SEED), list[tuple[str, str, Fraction | None]]()
    while len(cases) < EXPRESSIONS:
        unit = writer.draw.choice(list(UNITS))
        text, code, _ = writer.expression(unit, writer.draw.choice([1, 2, 3]))
        try:
            result = eval(code, dict(writer.leaves)).value
        except ZeroDivisionError:
            result = None
        if len(text) <= 200 and " " in code:
            cases.append((text, unit, result))
    return cases


def test_expressions__are_what_python_makes_of_them() -> None:
    wrong = []
    for text, unit, result in drawn():
        if result is None or (result == 0 and not unit):
            continue
        got = parse(text, unit)
        if not math.isclose(got, float(result), rel_tol=1e-12, abs_tol=1e-20):
            wrong.append((text, unit, got, float(result)))
    assert wrong == []


def test_expressions__of_another_unit_are_refused() -> None:
    refused = [text for text, unit, result in drawn() if unit not in ("", "1/s") and result is not None]
    for text in refused:
        with pytest.raises(BadValue):
            parse(text, "W")
    assert len(refused) > EXPRESSIONS / 2


def hostile() -> list[str]:
    draw, texts = random.Random(SEED + 1), ["", " ", "()", "(", ")", "*", "1*", "*1", "1//2", "1 2", "2(3)", "(1)(2)", "1+", "--", "nan*2"]
    texts += ["9**9**9", "9^9^9", "10**65", "10**64**2", "2**-65", "(10**64)*(10**64)", "1/0", "1/(2-2)", "0**0", "0**-1", "(-1)**0.5"]
    texts += [f"{'(' * depth}1{')' * depth}" for depth in (21, 50, 99, 500, 20_000)] + ["(" * depth + "1" for depth in (1, 30, 5000)]
    texts += [
        "-" * 5000 + "1",
        "1+" * 3000 + "1",
        "2**" * 60 + "2",
        "9" * 100_000 + "*2",
        "1e999*2",
        "1e-999*1",
        "2e99**3",
        "((1.1**64)**64)**64",
    ]
    names = ["__import__('os')", "os.system*2", "open('x')*1", "().__class__*1", "a.__class__*2", "lambda: 1*1", "f'{1*2}'", "x:=1*2"]
    texts += [
        *names,
        "abs(2)*3",
        "max(1,2)*3",
        "1 if 1*1 else 2",
        "[1]*9",
        "{1}*2",
        "'a'*9",
        "1<<99*9",
        "7%2*1",
        "~1*2",
        "1and 2*1",
        "e**9",
    ]
    texts += [
        "٣*2",
        "２*2",
        "3×2",
        "3÷2",
        "2**½",
        "1‒1*2",
        "1\u200b*2",
        "1\x00*2",
        "1\n;2*2\x1b[31m",
        "π*2",
        "∞*2",
        "1_*2",
        "1__0*2",
        "0x10*2",
    ]
    texts += ["1GB+2s", "1s-2", "5+3GB", "2GB*3GB", "2s**2", "1/s/s", "2**1s", "2**(1GB/1GB/1s)", "2*3 bananas", "h100.hbm+h100.hbm_bw"]
    texts += ["nosuch.hbm*2", "h100.nosuch*2", "h100.*2", ".hbm*2", "h100..hbm*2", "../etc.hbm*2", "h100.name*2", "h100.hbm.hbm*2"]
    while len(texts) < 200:
        length = draw.randint(2, 60)
        texts.append(
            "".join(
                draw.choice(["9", "1.5", "**", "*", "/", "(", ")", "GB", "s", "k", " ", "$", "_", ".", "x", "9e9", "'", ","])
                for _ in range(length)
            )
        )
    return texts


def test_hostile_texts__are_refused_in_one_line_each() -> None:
    texts = hostile()
    for text in texts:
        for unit in ("", "byte"):
            try:
                assert math.isfinite(parse(text, unit)), text  # of a drawn soup that means something
            except HeadwayError as error:
                assert len(str(error)) < 400 and str(error).isprintable(), text
    assert len(texts) == 200


@pytest.mark.parametrize(
    "text", [*hostile()[:15], "9**9**9", "1/0", "1GB+2s", "5+3GB", "__import__('os')", "٣*2", "2**-65", "h100.hbm+h100.hbm_bw"]
)
def test_hostile_texts__have_no_value(text: str) -> None:
    with pytest.raises(HeadwayError):
        parse(text, "byte")


@pytest.mark.parametrize(
    ("text", "unit", "si"),
    [
        ("5/s", "1/s", 5), ("10/2", "", 5), ("10/2/s", "1/s", 5), ("3*5/s", "1/s", 15), ("1GB/2/s", "byte/s", 5e8), ("2k^2", "", 4e6),
        ("2*70B", "", 140e9), ("2*70B", "byte", 140), ("44800*459T", "flop/s", 44800 * 459e12), ("6*70B*15T", "flop", 6.3e24),
        ("2*25M/s", "token/s", 50e6), ("2*4k", "token", 8000), ("1.1*10", "", 11), ("-2**2", "", -4), ("2**-1", "", 0.5),
        ("2**3**2", "", 512),
        ("140GB/(3.35TB/s)", "s", 140 / 3350), ("(1+2)GB", "byte", 3e9),
        ("2*$0.02/GB/month", "USD/byte/s", 0.04 / 1e9 / (365.25 / 12 * 86400)),
        ("$3*2/Mtok", "USD/Mtok", 6), ("2*20ms", "ms", 40), ("2*$0.08/kWh", "USD/W/s", 0.16 / 3.6e6), ("2*3GFLOPs", "flop/s", 6e9),
    ],
)  # fmt: skip
def test_words__bind_as_the_grammar_says(text: str, unit: str, si: float) -> None:
    assert parse(text, unit) == pytest.approx(si, rel=1e-14)


def test_facts__have_the_names_that_show_prints(cli: Cli) -> None:
    for kind, subject, unit_count in (("chip", "h100-sxm", 10), ("system", "gb200-nvl72", 2), ("model", "deepseek-v3", 5)):
        document = cli.json(f"show {kind} {subject}")
        row, columns = document["rows"][0], document["columns"]
        facts = {key: value for key, value in row.items() if isinstance(value, int | float) and not isinstance(value, bool)}
        read = {}
        for key, number in facts.items():
            unit = columns.get(key, {}).get("unit", "")
            try:
                read[key] = parse(f"2*{subject}.{key}", unit) / 2 - number
            except HeadwayError:
                continue  # of a price that the market makes, or what is no fact
        assert len(read) >= unit_count and set(read.values()) == {0.0}, (subject, facts.keys() - read.keys())
    assert parse("8*h100.hbm/(2*h100.hbm_bw)", "s") == pytest.approx(4 * hw.chip("h100").hbm / hw.chip("h100").hbm_bw)


def test_facts__of_own_files_are_read_and_no_file_needs_itself(cli: Cli, tmp_path: pytest.TempPathFactory) -> None:
    folder = tmp_path / "chips"  # type: ignore[operator]
    folder.mkdir()
    (folder / "twin.toml").write_text('name = "twin"\n[facts]\npeak_bf16 = "2*459T"\nhbm = "2*48GB"\nhbm_bw = "2*h100.hbm_bw"\n')
    (folder / "loop.toml").write_text('name = "loop"\n[facts]\npeak_bf16 = "459T"\nhbm = "2*loop.hbm"\nhbm_bw = "1TB/s"\n')
    (row,) = cli.rows(f"law drain_s capacity=2*twin.hbm mem_bw=twin.hbm_bw --catalog {tmp_path}")
    assert row["result"] == pytest.approx(192e9 / 6.7e12) if row["mem_bw"] else None
    answer = cli(f"law drain_s capacity=loop.hbm mem_bw=1TB/s --catalog {tmp_path}")
    assert answer.status == 2 and answer.err.count("\n") == 1 and "a file names no fact" in answer.err


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("law hardware_ratio weight_byte=1*2 peak_flops=8*h100.peak_bf16 mem_bw=32*1.2TB/s",
         "law hardware_ratio weight_byte=2 peak_flops=7.9152PFLOP/s mem_bw=38.4TB/s"),
        ("law drain_s capacity=h100.hbm mem_bw=1..2TB/s*2", "law drain_s capacity=h100.hbm mem_bw=1..2TB/s*2"),
        ("serve llama-3.1-8b --on h100-sxm --batch 2*2..8*2*2,3*5 --context 1024*8 --set chip.hbm_bw=2*h100.hbm_bw --chip-price 2*1.5",
         "serve llama-3.1-8b --on h100-sxm --batch 4..8*4,15 --context 8192 --set chip.hbm_bw=6.7TB/s --chip-price 3"),
        ("matmul A[B,D]W[D,F] --peak 2*197T --from 1/3*2.46TB/s B=240 D=8*1024 F=4*8192",
         "matmul A[B,D]W[D,F] --peak 3.94e14 --from 820GB/s B=240 D=8192 F=32768"),
    ],
)  # fmt: skip
def test_command__shows_the_number_that_was_read(cli: Cli, typed: str, printed: str) -> None:

    document = cli.json(typed)
    assert document["command"][1 : 1 + len(printed.split())] == printed.split()
    again = cli.json(*printed.split())
    assert again["rows"] == document["rows"] and again["answer"] == document["answer"]
