"""What was measured on this machine: times of matmuls, streams, calls, attention and links, and under which conditions.

A record goes through JSON unchanged, so that a process of its own can measure, and a file keep what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from headway.reality.measure.timing import QUIET

READ, MATVEC, COPY = "read", "matvec", "copy"  # streams: one buffer read; weights read by a matvec; read and written
OPERATION, MATMUL, LAUNCH = "operation", "matmul", "launch"  # calls: a small elementwise operation, a small matmul, a card's kernel
MAIN = ("float32", "bfloat16", "float16")
# Residual and norm; rotary positions; the activation of a gated MLP; tokens sorted by their experts and back.
NORM, ROTATION, GATE, ROUTING = "norm", "rotation", "gate", "routing"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulTime:
    """`rows` activations times one matrix of weights that no cache holds."""

    format: str
    native: bool  # whether the library multiplies in this format, rather than converting it or looping over elements
    rows: int
    inner: int
    columns: int
    element: int  # bytes of a weight
    seconds: float
    spread: float

    @property
    def flop_per_s(self) -> float:
        """Rate of arithmetic, a multiply-add counting 2."""
        return 2.0 * self.rows * self.inner * self.columns / self.seconds

    @property
    def weights_per_s(self) -> float:
        """Bytes of weights read a second."""
        return float(self.inner) * self.columns * self.element / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTime:
    """A buffer larger than the caches, read, or read and written."""

    kind: str
    bytes: int  # that cross the memory bus, both ways together
    seconds: float
    spread: float

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth."""
        return self.bytes / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTime:
    """A call with next to no work in it."""

    kind: str
    seconds: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTime:
    """What stands between the matmuls of a layer, of `rows` tokens."""

    kind: str  # NORM, ROTATION, GATE, ROUTING
    rows: int
    width: int
    seconds: float
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionTime:
    """Attention of one layer: of `queries` new tokens of each sequence to `context` tokens of its cache."""

    sequences: int
    queries: int
    context: int
    heads: int
    kv_heads: int
    head: int  # elements
    element: int
    seconds: float
    spread: float

    @property
    def bytes(self) -> float:
        """Bytes of keys and values."""
        return 2.0 * self.sequences * self.context * self.kv_heads * self.head * self.element

    @property
    def flop(self) -> float:
        """Scores and values, without a mask."""
        return 4.0 * self.sequences * self.queries * self.context * self.heads * self.head


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTime:
    """A buffer moved from one device to another."""

    origin: str
    target: str
    bytes: int
    seconds: float
    spread: float

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth, one direction."""
        return self.bytes / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRecord:
    """One device of this machine, as measured."""

    device: str  # the processor, or a card
    library: str  # that multiplied: numpy or torch, with its version
    date: str
    cores: int  # that the process may use
    threads: int  # of the library
    share: float = 1.0  # of a core that it had while it was measured by its own processor time; 1 by the wall's clock
    memory: int  # bytes
    cards: int = 0  # of the device's kind; 0: a processor
    matmuls: tuple[MatmulTime, ...] = ()
    streams: tuple[StreamTime, ...] = ()
    calls: tuple[CallTime, ...] = ()
    vectors: tuple[VectorTime, ...] = ()
    attentions: tuple[AttentionTime, ...] = ()
    links: tuple[LinkTime, ...] = ()

    # -- the figures that everything follows from -------------------------------------------------------------------------------

    def formats(self) -> tuple[str, ...]:
        """Number formats, in the order of measurement."""
        return tuple(dict.fromkeys(time.format for time in self.matmuls))

    @property
    def main(self) -> str:
        """The format of at most 32 bits in which the device multiplies fastest, 8-bit ones apart."""
        names = [time for time in self.matmuls if time.native and time.format in MAIN]
        return max(names, key=lambda time: time.flop_per_s).format

    def peak(self, format: str = "") -> MatmulTime:
        """The matmul of the highest rate, of a format or of the main one."""
        name = format or self.main
        return max((time for time in self.matmuls if time.format == name), key=lambda time: time.flop_per_s)

    def read(self) -> StreamTime:
        """The stream that reads fastest: what a decode step does with its weights."""
        return max((stream for stream in self.streams if stream.kind in (READ, MATVEC)), key=lambda stream: stream.bytes_per_s)

    def copy(self) -> StreamTime | None:
        """What a copy reaches, reads and writes together."""
        return next((stream for stream in self.streams if stream.kind == COPY), None)

    def call_s(self, kind: str) -> float:
        """Seconds of a call with next to no work in it."""
        return next(call.seconds for call in self.calls if call.kind == kind)

    @property
    def spread(self) -> float:
        """The largest scatter of the three figures that a chip is made of: peak, reads, calls."""
        return max(self.peak().spread, self.read().spread, *(call.spread for call in self.calls))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing else took the machine's time."""
        return self.spread <= QUIET and self.share >= 1 - QUIET

    @property
    def ridge(self) -> float:
        """FLOP per byte at which arithmetic and reads take equal time."""
        return self.peak().flop_per_s / self.read().bytes_per_s

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON holds it."""
        return asdict(self)


PARTS = {
    "matmuls": MatmulTime, "streams": StreamTime, "calls": CallTime, "vectors": VectorTime, "attentions": AttentionTime, "links": LinkTime,
}  # fmt: skip


def of_dict(document: Mapping[str, Any]) -> MachineRecord:
    """A record from what `as_dict` wrote."""
    parts = {name: tuple(part(**entry) for entry in document.get(name, ())) for name, part in PARTS.items()}
    return MachineRecord(**{**document, **parts})
