"""What a replay or a simulation asked of each tier: hits, traffic, wear, and the bill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.core.errors import BadValue
from headway.hardware.memory_tier import holding_of, wear_of
from headway.laws import tiers as wear
from headway.simulation.kv_pools import EVICTED, EXPIRED, POOL, READS, STORED, WRITES, CachePools
from headway.simulation.prefix_tiers import SimulatedTier, own_tiers


@dataclass(frozen=True, slots=True, kw_only=True)
class TierUse:
    """One tier over a span of time, all replicas together; money is None where a price or a rating is not known."""

    name: str
    hits: int  # blocks that prompts found here
    stored_bytes: float  # at the end
    written_bytes: float
    read_bytes: float  # taken up from here
    evicted: int  # blocks that made room
    expired: int  # blocks nobody used in time
    read_share: float  # of the time that the devices can read; above 1 it is more than they can
    write_share: float
    holding_usd: float | None  # for the whole tier, full or not
    wear_usd: float | None
    worn_out_s: float | None  # until the devices are worn out at this rate of writing


def tier_use(
    tiers: Sequence[SimulatedTier], pools: CachePools, hits: Sequence[int], *, block_bytes: float, span_s: float, replicas: int = 1
) -> tuple[TierUse, ...]:
    """What was asked of each tier in `span_s` seconds, by the counts that pools made by `pools_of` have kept."""
    if not span_s > 0 or len(hits) != len(tiers):
        raise BadValue("tiers", f"{span_s} s, hits {list(hits)}", f"a span above 0 s and hits of each of the {len(tiers)} tiers")
    replica_tiers = own_tiers(tiers)
    uses = []
    for depth, (tier, hit) in enumerate(zip(tiers, hits, strict=True)):
        shared = depth >= replica_tiers
        rows = (
            [replica_tiers * replicas + depth - replica_tiers]
            if shared
            else [replica * replica_tiers + depth for replica in range(replicas)]
        )
        uses.append(_use(tier, pools.pool.reshape(-1, POOL)[rows].sum(axis=0), int(hit), block_bytes, span_s, len(rows)))
    return tuple(uses)


def _use(tier: SimulatedTier, row: Any, hits: int, block_bytes: float, span_s: float, copies: int) -> TierUse:
    written_bytes, read_bytes = float(row[WRITES]) * block_bytes, float(row[READS]) * block_bytes
    holding, worn = holding_of(tier.device), wear_of(tier.device)
    return TierUse(
        name=tier.name,
        hits=hits,
        stored_bytes=float(row[STORED]) * block_bytes,
        written_bytes=written_bytes,
        read_bytes=read_bytes,
        evicted=int(row[EVICTED]),
        expired=int(row[EXPIRED]),
        read_share=read_bytes / span_s / (copies * tier.read_bw),
        write_share=written_bytes / span_s / (copies * tier.write_bw),
        holding_usd=None if holding is None else float(holding * (copies * tier.capacity)) * span_s,
        wear_usd=None if worn is None else worn * written_bytes,
        worn_out_s=_worn_out_s(tier, written_bytes / span_s, copies),
    )


def _worn_out_s(tier: SimulatedTier, written_per_s: float, copies: int) -> float | None:
    device = tier.device
    if device.drive_writes is None or device.rated_life is None or not written_per_s > 0:
        return None
    endurance_bytes = wear.endurance(copies * tier.devices * device.need("capacity"), device.drive_writes, device.rated_life)
    return float(wear.worn_out_s(endurance_bytes, written_per_s))
