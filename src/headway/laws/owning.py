"""What a chip costs by the hour to those who own it: capital, upkeep, power and building; and the part of that which is memory."""

from __future__ import annotations

from headway.formula import formula
from headway.units import Byte, Number, PerSecond, Second, Usd, UsdPerByte, UsdPerJoule, UsdPerSecond, UsdPerWatt, Watt

TCO = "total cost of owning: capital and its overhead over life, upkeep, all-in power, the building over its own life"


@formula(source=TCO + "; host, network and storage as a factor on the chip")
def with_cluster(capex: Usd, overhead: Number) -> Usd:
    """What a chip costs with its share of host, network and storage.

    >>> with_cluster(25000, 1.3)  # H100 SXM
    32500.0
    """
    return capex * overhead


@formula(source=TCO)
def capital_usd(capital: Usd, life: Second) -> UsdPerSecond:
    """A straight line over the time for which the machine is used.

    >>> round(capital_usd(32500, 5 * 365.25 * 86400) * 3600, 3)  # H100 SXM over 5 years, USD/h
    0.742
    """
    return capital / life


@formula(source=TCO)
def upkeep_usd(capex: Usd, opex: PerSecond) -> UsdPerSecond:
    """Staff, repair and spares as a share of the chip's price a year.

    >>> round(upkeep_usd(25000, 0.08 / (365.25 * 86400)) * 3600, 3)  # H100 SXM, USD/h
    0.228
    """
    return capex * opex


@formula(source=TCO)
def power_usd(power: Watt, electricity: UsdPerJoule) -> UsdPerSecond:
    """What the power of a chip costs, its share of host, network and cooling in it.

    >>> round(power_usd(1730, 0.07 / 3.6e6) * 3600, 3)  # H100 SXM, USD/h
    0.121
    """
    return power * electricity


@formula(source=TCO)
def building_usd(power: Watt, building: UsdPerWatt, life: Second) -> UsdPerSecond:
    """What the share of a data centre costs that this power takes.

    >>> round(building_usd(1730, 12, 15 * 365.25 * 86400) * 3600, 3)  # H100 SXM, USD/h
    0.158
    """
    return power * building / life


@formula(source="definition")
def usd_share(part: UsdPerSecond, total_rate: UsdPerSecond) -> Number:
    """The share of what is paid by the hour that is one part of it.

    >>> round(usd_share(0.121, 1.30), 3)  # power of an H100 that is owned
    0.093
    """
    return part / total_rate


@formula(source="definition")
def memory_usd(size: Byte, price: UsdPerByte) -> Usd:
    """What so much memory costs.

    >>> round(memory_usd(80e9, 12e-9))  # HBM3 of an H100 at the high end
    960
    """
    return size * price


@formula(source="definition")
def memory_share(memory: Usd, price: Usd) -> Number:
    """The share of a chip's or a system's price that is memory.

    >>> round(memory_share(960, 25000), 3)  # HBM3 of an H100
    0.038
    """
    return memory / price
