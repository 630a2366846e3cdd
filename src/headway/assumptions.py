"""What an estimate takes for granted until it is measured: efficiencies, fixed costs, the spread, the price. All named, all editable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from headway.laws.coefficients import COMMUNICATIONS, OVERLAPS
from headway.schema import Q

UNFITTED = "unfitted: one stated default pair and one stated spread, until efficiencies are fitted to measurements"


IMBALANCE = "routed work of the busiest chip over the mean (1: balanced by copies of busy experts, as DeepSeek's EPLB does; unfitted)"
EFFICIENCIES = ("eff_compute", "eff_memory", "eff_network", "eff_in_switch")  # at 1, and
LATENCIES = ("t0", "alpha", "alpha_hop", "alpha_out", "alpha_exchange", "alpha_exchange_out")  # at 0, the floor


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Named defaults; none is fitted yet."""

    overlap: Annotated[str, Q(choices=tuple(OVERLAPS), help="what overlaps: full (the roofline), operators or serial")] = "operators"
    communication: Annotated[str, Q(choices=tuple(COMMUNICATIONS), help="collectives hide behind nothing, or the other half")] = "exposed"
    eff_compute: Annotated[Any, Q(high=1, help="share of peak FLOP/s that matrix multiplications reach; unfitted")] = 0.7
    eff_memory: Annotated[Any, Q(high=1, help="share of HBM bandwidth reached; unfitted")] = 0.8
    eff_network: Annotated[Any, Q(high=1, help="share of link bandwidth that collectives reach; unfitted")] = 0.8
    t0: Annotated[Any, Q("s", open_low=False, help="fixed cost of a kernel; unfitted")] = 3e-6
    eff_in_switch: Annotated[Any, Q(high=1, help="the same where the switch does the adding; unfitted")] = 0.5
    alpha: Annotated[Any, Q("s", open_low=False, help="latency of a round over scale-up (custom all-reduce, 8 H100: 3-4 us)")] = 3e-6
    alpha_hop: Annotated[Any, Q("s", open_low=False, help="latency of a hop on a torus (TPU: about 1 us)")] = 1e-6
    alpha_out: Annotated[Any, Q("s", open_low=False, help="latency of a round over scale-out (one RDMA message: 5-20 us)")] = 10e-6
    alpha_exchange: Annotated[Any, Q("s", open_low=False, help="latency of an exchange of experts, scale-up (DeepEP: 11 us)")] = 11e-6
    alpha_exchange_out: Annotated[Any, Q("s", open_low=False, help="the same over scale-out (DeepEP, 16-64 H100: 20-28 us)")] = 24e-6
    imbalance: Annotated[Any, Q(low=1, open_low=False, help=IMBALANCE)] = 1
    expert_load: Annotated[str, Q(help="file of tokens per expert (a JSON list, or one number a line); gives the imbalance instead")] = ""
    spread: Annotated[Any, Q(low=1, open_low=False, high=100, help="interval: expected / spread to expected * spread; unfitted")] = 1.6
    hbm_utilization: Annotated[Any, Q(high=1, help="share of HBM for weights and KV cache, as in vLLM's gpu_memory_utilization")] = 0.9
    activation_bytes: Annotated[Any, Q("byte", help="bytes per element of an activation on the wire")] = 2
    dispatch_bytes: Annotated[Any, Q("byte", help="bytes per element sent to an expert; left out, as the experts are stored")] = None
    state_bytes: Annotated[Any, Q("byte", help="bytes per element of recurrent state")] = 2
    hit_rate: Annotated[Any, Q(open_low=False, high=0.95, help="share of prompt tokens found in a prefix cache: loaded, not prefilled")] = 0
    accept_length: Annotated[Any, Q(low=1, open_low=False, high=100, help="tokens that a step yields by speculation or MTP, mean")] = 1
    draft_cost: Annotated[Any, Q(open_low=False, high=100, help="cost of the drafts of a step, as a share of the step")] = 0
    price_metric: Annotated[str, Q(help="which price of a chip: rental_3yr, rental_on_demand, tco_owning_hyperscaler, ...")] = "rental_3yr"
