"""Claims on what a scale-up domain holds (FS)."""

from __future__ import annotations

from typing import Any

from headway.laws.capacity import bytes_beside_weights, domain_bytes
from headway.laws.memory import parameter_bytes
from headway.ledger.register import Parts, recomputes


@recomputes("FS-01")
def hopper_box(i: Any) -> Parts:
    """Eight Hoppers."""
    return {"8 H100": domain_bytes(i.chips, i.hbm)}


@recomputes("FS-02")
def blackwell_rack(i: Any) -> Parts:
    """Both Blackwell racks."""
    return {"GB200 NVL72": domain_bytes(i.chips, i.hbm), "GB300 NVL72": domain_bytes(i.chips, i.later_hbm)}


@recomputes("FS-03")
def five_trillion(i: Any) -> Parts:
    """Weights of the model by format, and what is left beside the widest."""
    wide = parameter_bytes(i.total, i.bf16)
    return {
        "left for KV beside bf16 weights": bytes_beside_weights(domain_bytes(i.chips, i.hbm), wide),
        "fp4 weights": parameter_bytes(i.total, i.fp4),
        "fp8 weights": parameter_bytes(i.total, i.fp8),
        "bf16 weights": wide,
    }
