"""A store of KV caches in three tiers: memory, a file in the page cache, a file that is synced and read and written at a stated rate.

A cache moves down a tier at the end of each time to live, by the clock of the traffic; its bytes move for real. Files have no name: the
system gives their room back whatever ends the process.
"""

from __future__ import annotations

import heapq
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Protocol, cast

import numpy as np

from headway.core.units import Byte, BytePerSecond, Second
from headway.reality.lab.clock import REAL, Clock
from headway.reality.lab.decoder import Array, KeyValueCache
from headway.reality.measure.timing import clock_of

MEMORY, FILE, SLOW = "memory", "file", "slow file"
NAMES = (MEMORY, FILE, SLOW)


class BlockTier(Protocol):
    """Where blocks of bytes lie."""

    seconds: Callable[[], Second]  # the clock by which its work counts

    def write(self, block: Array) -> Any: ...  # a handle
    def read(self, handle: Any, shape: Sequence[int]) -> Array: ...
    def drop(self, handle: Any) -> None: ...


class MemoryBlocks:
    """Blocks in memory, read in place."""

    seconds = staticmethod(clock_of(1))  # of this thread: others' work does not count

    def write(self, block: Array) -> Array:
        """A copy of its own."""
        return block.copy()

    def read(self, handle: Array, shape: Sequence[int]) -> Array:
        """The block itself, which is copied where it is used."""
        return handle

    def drop(self, handle: Array) -> None:
        """Nothing to give back but memory."""


class FileBlocks:
    """Blocks in files without names, which the system keeps in its page cache."""

    seconds = staticmethod(clock_of(1))

    def __init__(self) -> None:
        self.buffer = np.empty(0, np.float32)  # of every read, so that none waits for new pages of memory

    def write(self, block: Array) -> IO[bytes]:
        """A file of its own."""
        file = cast("IO[bytes]", tempfile.TemporaryFile(buffering=0))  # noqa: SIM115 (open as long as its block is held)
        file.write(block.data.cast("B"))
        return file

    def read(self, handle: IO[bytes], shape: Sequence[int]) -> Array:
        """The bytes of a file, until the next read."""
        if self.buffer.size < (size := math.prod(shape)):
            self.buffer = np.empty(size, np.float32)
        block = self.buffer[:size].reshape(shape)
        handle.seek(0)
        cast("Any", handle).readinto(block.data.cast("B"))
        return block

    def drop(self, handle: IO[bytes]) -> None:
        """A file without a name is gone once it is closed."""
        handle.close()


class SlowFileBlocks(FileBlocks):
    """Such files, synced, and as slow as stated: what the device does faster is slept."""

    def __init__(self, rate: BytePerSecond, clock: Clock = REAL) -> None:
        super().__init__()
        self.rate, self.clock, self.seconds = rate, clock, clock.now

    def write(self, block: Array) -> IO[bytes]:
        """Written and synced at the rate."""
        start = self.clock.now()
        file = super().write(block)
        os.fsync(file.fileno())
        self.clock.sleep_until(start + block.nbytes / self.rate)
        return file

    def read(self, handle: IO[bytes], shape: Sequence[int]) -> Array:
        """Read at the rate."""
        start = self.clock.now()
        block = super().read(handle, shape)
        self.clock.sleep_until(start + block.nbytes / self.rate)
        return block


def tiers(rate: BytePerSecond, clock: Clock = REAL) -> tuple[BlockTier, BlockTier, BlockTier]:
    """The three, fastest first."""
    return MemoryBlocks(), FileBlocks(), SlowFileBlocks(rate, clock)


@dataclass(slots=True, kw_only=True)
class StoredCache:
    """A cache that is held, and since when it lies in its tier."""

    handle: Any
    shape: tuple[int, ...]
    bytes: Byte
    tier: int
    since: Second
    start: Second  # when it was kept, from which its times to live count


@dataclass(slots=True, kw_only=True)
class TierUse:
    """What a tier did."""

    hits: int = 0
    loaded_tokens: int = 0
    load_s: Second = 0.0
    loads: list[float] = field(default_factory=list)  # seconds of a token, of each load
    written_bytes: Byte = 0.0
    held_byte_s: float = 0.0  # bytes times the traffic's seconds that they lay here


@dataclass(slots=True, kw_only=True)
class TierStore:
    """Caches by conversation; `now` is always the traffic's clock, which never goes back."""

    tiers: Sequence[BlockTier]
    lives: Sequence[Second]  # from when it was kept until it leaves each tier
    caches: dict[int, StoredCache] = field(default_factory=dict)
    due: list[tuple[Second, int, Second]] = field(default_factory=list)  # when the next move of a conversation's cache is due
    uses: list[TierUse] = field(default_factory=lambda: [TierUse() for _ in NAMES])

    def keep(self, conversation: int, cache: KeyValueCache, now: Second) -> None:
        """The cache of a conversation, in the fastest tier, in place of what was there."""
        end = int(cache.lengths[0])
        block = np.stack((cache.keys[:, 0, :, :end], cache.values[:, 0, :, :end]))
        self._leave(conversation, now)
        entry = StoredCache(handle=self.tiers[0].write(block), shape=block.shape, bytes=block.nbytes, tier=0, since=now, start=now)
        self.caches[conversation] = entry
        self.uses[0].written_bytes += entry.bytes
        heapq.heappush(self.due, (now + self.lives[0], conversation, now))

    def load(self, conversation: int, cache: KeyValueCache, now: Second) -> int | None:
        """Fill `cache` with what is held of a conversation; the tier where it lay, None where nothing is held."""
        self.age(now)
        if (entry := self.caches.get(conversation)) is None:
            return None
        tier, use = self.tiers[entry.tier], self.uses[entry.tier]
        begin = tier.seconds()
        tokens = fill(cache, tier.read(entry.handle, entry.shape))
        seconds = tier.seconds() - begin
        use.load_s, use.loads = use.load_s + seconds, [*use.loads, seconds / tokens]
        use.hits, use.loaded_tokens = use.hits + 1, use.loaded_tokens + tokens
        return entry.tier

    def age(self, now: Second) -> None:
        """Every move that is due by now, in the order of its time: a tier down, or out of the last."""
        while self.due and self.due[0][0] <= now:
            moment, conversation, start = heapq.heappop(self.due)
            entry = self.caches.get(conversation)
            if entry is None or entry.start != start:  # it was kept again since
                continue
            below = entry.tier + 1
            handle = self.tiers[below].write(self.tiers[entry.tier].read(entry.handle, entry.shape)) if below < len(self.tiers) else None
            self._leave(conversation, moment)
            if handle is not None:
                self.caches[conversation] = StoredCache(
                    handle=handle, shape=entry.shape, bytes=entry.bytes, tier=below, since=moment, start=start
                )
                self.uses[below].written_bytes += entry.bytes
                heapq.heappush(self.due, (start + self.lives[below], conversation, start))

    def _leave(self, conversation: int, now: Second) -> None:
        """Count how long a cache lay in its tier, and give its room back."""
        if (entry := self.caches.pop(conversation, None)) is not None:
            self.uses[entry.tier].held_byte_s += entry.bytes * (now - entry.since)
            self.tiers[entry.tier].drop(entry.handle)


def fill(cache: KeyValueCache, block: Array) -> int:
    """Keys and values of a block into the first sequence of a cache; their tokens."""
    tokens = block.shape[3]
    cache.keys[:, 0, :, :tokens], cache.values[:, 0, :, :tokens] = block[0], block[1]
    cache.lengths[0] = tokens
    return tokens
