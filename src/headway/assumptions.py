"""What an estimate takes for granted until it is measured: efficiencies, fixed costs, the spread, the price. All named, all editable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.laws.coefficients import OVERLAPS
from headway.schema import Q

UNFITTED = "unfitted: one stated default pair and one stated spread, until efficiencies are fitted to measurements"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Named defaults; none is fitted yet."""

    overlap: Annotated[str, Q(choices=tuple(OVERLAPS), help="what overlaps: full (the roofline), operators or serial")] = "operators"
    eff_compute: Annotated[Any, Q(high=1, help="share of peak FLOP/s that matrix multiplications reach; unfitted")] = 0.7
    eff_memory: Annotated[Any, Q(high=1, help="share of HBM bandwidth reached; unfitted")] = 0.8
    eff_network: Annotated[Any, Q(high=1, help="share of link bandwidth that collectives reach; unfitted")] = 0.8
    t0: Annotated[Any, Q("s", open_low=False, help="fixed cost of a kernel; unfitted")] = 3e-6
    alpha: Annotated[Any, Q("s", open_low=False, help="latency of one collective; unfitted")] = 5e-6
    spread: Annotated[Any, Q(low=1, open_low=False, high=100, help="interval: expected / spread to expected * spread; unfitted")] = 1.6
    hbm_utilization: Annotated[Any, Q(high=1, help="share of HBM for weights and KV cache, as in vLLM's gpu_memory_utilization")] = 0.9
    activation_bytes: Annotated[Any, Q("byte", help="bytes per element of an activation on the wire")] = 2
    state_bytes: Annotated[Any, Q("byte", help="bytes per element of recurrent state")] = 2
    price_metric: Annotated[str, Q(help="which price of a chip: rental_3yr, rental_on_demand, tco_owning_hyperscaler, ...")] = "rental_3yr"
