"""Claims on where KV is kept: what holding and loading cost, which tier drains in which time (KT)."""

from __future__ import annotations

from typing import Any

from headway.laws.balance import compute_s_per_token
from headway.laws.cache_bill import held_bytes
from headway.laws.cache_fees import fee_markup, kv_bytes_paid_for, longer_by, storage_fee, write_premium
from headway.laws.compare import relative
from headway.laws.context_cost import crossing_hold_s, kv_holding_usd
from headway.laws.drain import drain_s
from headway.laws.money import cached_token_s
from headway.laws.reload import break_even_hold_s, path_usd, per_mtok, token_time_usd
from headway.laws.tiers import balanced_hold_s, cheaper_below_from_s, chip_holding_usd, holding_usd
from headway.ledger.register import Parts, recomputes
from headway.quantity import known

NO_COST = known(0.0, "loading and writing", "USD/token", "constant", "left out, as in the lecture")


def _recompute(i: Any) -> Any:
    """What computing a token again costs."""
    return token_time_usd(compute_s_per_token(i.active, i.peak), i.chip_price)


def _held(i: Any, holding: Any) -> Any:
    """What holding a token's KV for a time costs, by the million."""
    return per_mtok(storage_fee(kv_holding_usd(i.kv_bytes, holding), i.hold))


@recomputes("KT-01")
def rematerialise(i: Any) -> Parts:
    """Computing a token again."""
    return {"retrieve": per_mtok(_recompute(i))}


@recomputes("KT-02")
def hold_in_hbm(i: Any) -> Parts:
    """An hour of a token's KV in HBM."""
    return {"hold for 1 h": _held(i, chip_holding_usd(i.chip_price, i.hbm))}


@recomputes("KT-03")
def hold_in_ddr(i: Any) -> Parts:
    """An hour of a token's KV in a server's DDR, and reading it while the memory alone is paid for."""
    holding = holding_usd(i.price, i.overhead, i.life)
    return {
        "hold for 1 h": _held(i, holding),
        "retrieve": per_mtok(token_time_usd(cached_token_s(i.kv_bytes, i.bandwidth), path_usd(holding, i.size))),
    }


@recomputes("KT-04")
def down_the_hierarchy(i: Any) -> Parts:
    """Each tier's cost of holding over the next one's, and the next one's cost of reading over its own."""
    hbm = chip_holding_usd(i.chip_price, i.hbm)
    ddr, flash, disk = (holding_usd(price, i.overhead, i.life) for price in (i.ddr_price, i.tlc_price, i.disk_price))

    def read(holding: Any, size: Any, bandwidth: Any) -> Any:
        return token_time_usd(cached_token_s(i.kv_bytes, bandwidth), path_usd(holding, size))

    loads = [read(ddr, i.ddr, i.ddr_bw), read(flash, i.tlc, i.tlc_bw), read(disk, i.disk, i.disk_bw)]
    return {
        "hold, HBM over DDR": relative(hbm, ddr),
        "hold, DDR over flash": relative(ddr, flash),
        "hold, flash over disk": relative(flash, disk),
        "retrieve, flash over DDR": relative(loads[1], loads[0]),
        "retrieve, disk over flash": relative(loads[2], loads[1]),
        "retrieve, computing again over disk": relative(_recompute(i), loads[2]),
    }


@recomputes("KT-05")
def balanced_hold(i: Any) -> Parts:
    """The hold at which a device's share used to hold equals its share used to read."""
    hold = balanced_hold_s(i.size, i.bandwidth, i.one)
    kv = held_bytes(i.tokens, i.kv_bytes)
    reading = relative(drain_s(kv, i.bandwidth), hold)
    return {
        "share to read over share to hold": relative(reading, relative(kv, i.size)),
        "hold, one read": hold,
        "hold, three reads": balanced_hold_s(i.size, i.bandwidth, i.three),
    }


@recomputes("KT-06")
def drain_of_hbm(i: Any) -> Parts:
    """Drain time of HBM."""
    return {"H100": drain_s(i.h100, i.h100_bw), "B200": drain_s(i.b200, i.b200_bw), "B300": drain_s(i.b300, i.b300_bw),
            "Rubin": drain_s(i.rubin, i.rubin_bw)}  # fmt: skip


@recomputes("KT-07")
def drain_of_ddr(i: Any) -> Parts:
    """Drain time of host memory."""
    channels, links = drain_s(i.ddr, i.ddr_bw), drain_s(i.ddr, i.pcie_bw)
    return {"Grace": drain_s(i.grace, i.grace_bw), "2 TB, its channels": channels, "2 TB over PCIe": links}


@recomputes("KT-08")
def drain_of_flash(i: Any) -> Parts:
    """Drain time of NVMe drives."""
    return {
        "TLC 3.84 TB, 7 GB/s": drain_s(i.small, i.slow_bw),
        "TLC 30.72 TB, 7 GB/s": drain_s(i.large, i.slow_bw),
        "QLC 122.88 TB, 7 GB/s": drain_s(i.qlc, i.slow_bw),
        "TLC 3.84 TB, 14 GB/s": drain_s(i.small, i.fast_bw),
        "TLC 30.72 TB, 14 GB/s": drain_s(i.large, i.fast_bw),
    }


@recomputes("KT-09")
def drain_of_disk(i: Any) -> Parts:
    """Drain time of disks."""
    return {"20 TB": drain_s(i.size, i.bandwidth), "4 TB": drain_s(i.old_size, i.old_bandwidth)}


@recomputes("KT-10")
def tiers_from_ttl(i: Any) -> Parts:
    """Times to live over drain times, and from which hold on a tier needs less money in devices than the one above it."""
    flash, disk = balanced_hold_s(i.tlc, i.tlc_bw, i.one), balanced_hold_s(i.disk, i.disk_bw, i.one)
    return {
        "5 min over flash's drain": relative(i.short, flash),
        "1 h over disk's drain": relative(i.long, disk),
        "1 h over flash's drain": relative(i.long, flash),
        "flash costs less than DDR from": cheaper_below_from_s(i.ddr_price, i.tlc_price, flash),
        "disk costs less than flash from": cheaper_below_from_s(i.tlc_price, i.disk_price, disk),
    }


@recomputes("KT-11")
def price_of_time_to_live(i: Any) -> Parts:
    """KV that the longer time to live would pay for in HBM, and the shorter one's premium over what the lecture's KV costs there."""
    holding = chip_holding_usd(i.chip_price, i.hbm)
    longer = kv_bytes_paid_for(write_premium(i.write_1h, i.write_5min), longer_by(i.long, i.short), holding)
    premium = write_premium(i.write_5min, i.input)
    held = storage_fee(kv_holding_usd(i.kv_bytes, holding), i.short)
    return {
        "KV that 55 more minutes pay for": longer,
        "5 min of the lecture's KV": per_mtok(held),
        "premium of 5 min": per_mtok(premium),
        "premium over cost": fee_markup(kv_bytes_paid_for(premium, i.short, holding), i.kv_bytes),
    }


@recomputes("KT-12")
def break_even_of_hbm(i: Any) -> Parts:
    """The hold up to which HBM costs less than computing again: by the identity, and directly."""
    holding = chip_holding_usd(i.chip_price, i.hbm)
    direct = break_even_hold_s(i.one, _recompute(i), NO_COST, NO_COST, i.kv_bytes, holding)
    identity = crossing_hold_s(i.crossing, i.drain)
    return {
        "crossing x 20 ms": identity,
        "crossing x 15 ms": crossing_hold_s(i.crossing, i.shorter_drain),
        "directly": direct,
        "directly over the identity": relative(direct, identity),
    }
