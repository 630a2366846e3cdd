"""How fast a model runs on a machine in one layout: the step, and the request built on it.

Holds        layout (tp, cp, dp, ep, pp, and what engines split), splits (what a layout divides and what it copies), workload (load and
             limits), assumptions, formats, achieved (fitted numbers and the rates that follow), expert_kernels
             (whose kernels of routed experts run), unpacking (weights that chips unpack by the arithmetic they multiply with), transport
             (what messages cost by kind of link), collectives (the network of a system, and what a step sends over it),
             compile (model x machine x layout to a step
             model), drafts (speculation: what drafts, and how many drafts are accepted), offload (experts in the host's memory), pages
             (a sequence in an engine's blocks), padding (of weights), room (what an engine leaves of a chip's memory), images (of a
             request), nearest (measured rows near a question, how unlike them it is), calibration/ (what runs of one's own
             say), intervals (half of one, as a factor), request (a
             compiled layout with its engine: TTFT, TPOT and capacity at a load), estimate (every quantity of a row, money of each kind of
             token), law (any law by name, with facts), law_chain (laws that give what another lacks), mesh (arrays over it,
             collectives), product (sharded matrix products), capacity (what fits, split evenly), questions (law, matmul,
             collective, capacity).
Import       layout.Layout, workload.Load, workload.SLO, assumptions.Assumptions, formats.resolve, achieved.efficiencies,
             compile.compile_layout, compile.StepModel, estimate.Deployment, estimate.estimate.
May import   hardware, models, laws, core. Its users: serving, training, simulation, economics, evidence and above.
Reads        data/efficiency.toml and data/families.toml (achieved.py), data/evidence.csv (nearest.py), data/engines/caches.toml
             (pages.py), splits.csv and kernels.csv (splits.py), experts.csv (expert_kernels.py), data/drafts.toml (drafts.py),
             data/start_up.toml (room.py), data/links.toml (transport.py).
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
