"""The walk from the board to a machine in plain arithmetic: dimensions of published configurations, datasheets, shares of peaks.

No law of the package is called. Of the fit only its shares and fixed costs are used (`Shares`), and at peak not even those.
"""

from __future__ import annotations

import dataclasses
import math

# Per model, from its published configuration: layers, products of a layer's matmuls over all layers, parameters outside the routed
# experts and of one expert, FLOP of attention per token attended to, KV heads, bytes of the cache per token in bf16.
MODELS = {
    "deepseek-v3": {
        "hidden": 7168, "layers": 61, "routed_layers": 58, "experts": 256, "used": 8, "expert": 3 * 7168 * 2048, "head": 129_280 * 7168,
        "byte": 1.0, "matmuls": 61 * 5 + 3 * 2 + 58 * 3, "kv_heads": 1,
        "dense": 61 * (7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168)
        + 3 * 3 * 7168 * 18_432 + 58 * (3 * 7168 * 2048 + 7168 * 256),
        "score_flop": 61 * 2 * 128 * (576 + 512), "total": 671.0e9, "active": 37.55e9, "kv": 61 * 576 * 2,
    },
    "llama-3.1-70b": {
        "hidden": 8192, "layers": 80, "routed_layers": 0, "experts": 0, "used": 0, "expert": 0, "head": 128_256 * 8192,
        "byte": 2.0, "matmuls": 80 * 4, "kv_heads": 8,
        "dense": 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28_672), "score_flop": 80 * 4 * 64 * 128,
        "total": 70.55e9, "active": 70.55e9, "kv": 80 * 2 * 8 * 128 * 2,
    },
    "mixtral-8x7b": {
        "hidden": 4096, "layers": 32, "routed_layers": 32, "experts": 8, "used": 2, "expert": 3 * 4096 * 14_336, "head": 32_000 * 4096,
        "byte": 2.0, "matmuls": 32 * 3, "kv_heads": 8,
        "dense": 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 4096 * 8), "score_flop": 32 * 4 * 32 * 128,
        "total": 46.70e9, "active": 12.88e9, "kv": 32 * 2 * 8 * 128 * 2,
    },
}  # fmt: skip
# Chips, bandwidth and HBM of one, peak in fp8 and in bf16, from the datasheets.
MACHINES = {
    "gb200-nvl72": (72, 8e12, 186e9, 5e15, 2.5e15),
    "8xh100-sxm": (8, 3.35e12, 80e9, 1978.9e12, 989.4e12),
    "8xh200-sxm": (8, 4.8e12, 141e9, 1978.9e12, 989.4e12),
}
PAIRS = [(name, machine) for name in MODELS for machine in MACHINES]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shares:
    """Shares of datasheet peaks that kernels reach, and fixed times; all 1 and 0: the peaks themselves, activations not counted."""

    compute: float = 1.0
    memory: float = 1.0
    activation: float = math.inf
    expert_compute: float = 1.0
    expert_memory: float = 1.0
    expert_activation: float = math.inf
    decode_compute: float = 1.0
    decode_memory: float = 1.0
    elementwise: float = math.inf
    norm: float = math.inf
    expert_norm: float = math.inf
    block: float = 0.0
    stream: float = 0.0
    fixed: float = 0.0
    expert_fixed: float = 0.0
    imbalance: float = 1.0
    skew: float = math.nan  # of the router; without one every expert is read
    sequence: float = 0.0


PEAK = Shares()


class HandMachine:
    """A model on a machine in its usual layout: a rank of attention on each chip, or tp=8 for the dense model."""

    def __init__(self, name: str, machine: str) -> None:
        self.model = MODELS[name]
        self.chips, self.bandwidth, self.hbm, fp8, self.bf16 = MACHINES[machine]
        self.peak = fp8 if self.model["byte"] == 1.0 else self.bf16
        self.tp = 1 if self.model["experts"] else 8
        self.ranks = self.chips // self.tp
        experts = self.model["experts"]
        self.expert_tp = max(self.chips // experts, 1) if experts else 1
        self.held = max(math.ceil(experts / self.chips), 1) / experts / self.expert_tp if experts else 0.0  # of all experts, on the fullest

    @property
    def ratio(self) -> float:
        return self.model["byte"] * self.peak / 2 / self.bandwidth

    def whole_s(self) -> tuple[float, float]:
        """One chip's time to read all weights, and its arithmetic per token, embedding left out."""
        d = self.model
        routed, used = (d["routed_layers"] * count * d["expert"] for count in (d["experts"], d["used"]))
        read = (d["byte"] * (d["dense"] + routed) + 2 * d["head"]) / self.bandwidth
        return read, 2 * (d["dense"] + used) / self.peak + 2 * d["head"] / self.bf16

    def weights_s(self, shares: Shares) -> tuple[float, float]:
        """Reads of the fullest chip: what each rank copies, and its experts."""
        d = self.model
        dense = (d["byte"] * d["dense"] + 2 * d["head"]) / self.tp / self.bandwidth / shares.memory
        routed = d["byte"] * d["routed_layers"] * d["experts"] * d["expert"] * self.held / self.bandwidth / shares.expert_memory
        return dense, routed

    def matmuls_s(self, shares: Shares) -> tuple[float, float]:
        """Arithmetic on one chip: dense, per token of its rank; routed, per token of the machine."""
        d = self.model
        dense = (2 * d["dense"] / self.peak + 2 * d["head"] / self.bf16) / self.tp / shares.compute
        return dense, 2 * d["routed_layers"] * d["used"] * d["expert"] * self.held * shares.imbalance / self.peak / shares.expert_compute

    def activations_s(self, shares: Shares) -> tuple[float, float, float]:
        """16-bit activations on one chip: of dense matmuls and of norms per token of its rank; of experts per token of the machine."""
        d = self.model
        dense = 2 * (d["matmuls"] * d["hidden"] + d["dense"] / self.tp / d["hidden"]) / self.bandwidth / shares.activation
        norms = 2 * 4 * d["hidden"] * 2 * d["layers"] / self.bandwidth / shares.elementwise
        entered = d["used"] * self.held * self.expert_tp
        elements = 2 * d["hidden"] * (entered + min(entered, 1)) + d["used"] * self.held * d["expert"] / d["hidden"]
        return dense, norms, 2 * elements * d["routed_layers"] * shares.imbalance / self.bandwidth / shares.expert_activation

    def attention_s(self, shares: Shares) -> tuple[float, float]:
        """Per sequence of a rank and token attended to: scores and values, and the read of the cache."""
        read = self.model["kv"] / self.tp / self.bandwidth / shares.decode_memory
        return self.model["score_flop"] / self.tp / self.bf16 / shares.decode_compute, read

    def stream_s(self, shares: Shares, context: float) -> float:
        """Read of the cache of one head of one sequence, at the bandwidth of one stream."""
        return self.model["kv"] / self.model["kv_heads"] / self.bandwidth * shares.stream * context

    def compute_s(self, shares: Shares, per_rank: float, context: float) -> float:
        """All arithmetic of a chip, activations included, with so many sequences on each rank."""
        (dense, routed), (vectors, norms, expert_vectors) = self.matmuls_s(shares), self.activations_s(shares)
        on_rank = dense + vectors + norms + self.attention_s(shares)[0] * context
        return per_rank * (on_rank + self.ranks * (routed + expert_vectors))

    def memory_s(self, shares: Shares, batch: float, context: float) -> float:
        """Weights and caches that a step reads, the new tokens' caches that it writes, and the fixed time of attention's blocks."""
        per_rank = batch / self.ranks
        blocks = self.model["layers"] * self.model["kv_heads"] / self.tp
        dense, routed = self.weights_s(shares)
        caches = per_rank * (self.attention_s(shares)[1] * (context + 1) + blocks * shares.block)
        return dense + routed * self.read_share(shares, batch) + caches + self.stream_s(shares, context)

    def read_share(self, shares: Shares, batch: float) -> float:
        """Share of the experts that a step reads; all of them without a skew."""
        d = self.model
        if not d["experts"] or math.isnan(shares.skew):
            return 1.0
        return 1 - (1 - d["used"] / d["experts"]) ** batch ** (1 - shares.skew)

    def knee(self, shares: Shares, context: float) -> float:
        """Batch of the machine at which arithmetic takes as long as the weights."""
        return sum(self.weights_s(shares)) / (self.compute_s(shares, 1.0, context) / self.ranks)

    def crossing(self, shares: Shares) -> float:
        """Context at which reading a cache takes as long as all arithmetic; infinite where attention's own grows as fast."""
        scores, read = self.attention_s(shares)
        return self.compute_s(shares, 1.0, 0.0) / (read - scores) if read > scores else math.inf

    def step(self, shares: Shares, batch: float, context: float, network: float) -> float:
        """A fitted step: classes of kernels one after another, and what collectives and the engine take."""
        per_rank = batch / self.ranks
        reads, products, vectors = self.weights_s(shares), self.matmuls_s(shares), self.activations_s(shares)
        dense = meet(per_rank * products[0], reads[0], shares.norm) + per_rank * (vectors[0] + vectors[1])
        routed = meet(batch * products[1], reads[1] * self.read_share(shares, batch), shares.expert_norm) + batch * vectors[2]
        scores, read = self.attention_s(shares)
        blocks = self.model["layers"] * self.model["kv_heads"] / self.tp * per_rank * shares.block
        attention = per_rank * max(scores * context, read * (context + 1)) + blocks + self.stream_s(shares, context)
        return shares.fixed + shares.expert_fixed + shares.sequence * per_rank + dense + routed + attention + network


def meet(first: float, second: float, norm: float) -> float:
    """Two limits that overlap imperfectly: their p-norm."""
    return (first**norm + second**norm) ** (1 / norm) if first or second else 0.0


def walks(name: str, machine: str, fitted: Shares, batch: float, context: float, network: float) -> dict[str, dict[str, float]]:
    """Every stage of every walk; a stage that does not exist (no crossing) is left out."""
    hand = HandMachine(name, machine)
    d = hand.model
    read, product = hand.whole_s()
    at_peak = max(hand.compute_s(PEAK, batch / hand.ranks, context), hand.memory_s(PEAK, batch, context))
    by_active = 200e3 * d["active"] / 100e9
    by_kv = by_active * (100e9 / 300 / 200e3) / d["kv"]
    crossings = {"attention's own FLOPs": hand.crossing(PEAK), "fitted rates": hand.crossing(fitted)}
    if math.isinf(crossings["attention's own FLOPs"]):
        crossings = {}
    return {
        "balanced batch": {
            "the board": 300 * 256 / 32, "this chip's ratio": hand.ratio * 8, "true sparsity": hand.ratio * d["total"] / d["active"],
            "formats and parts": read / product, "copies on ranks": hand.knee(PEAK, 0.0), "attention's own FLOPs": hand.knee(PEAK, context),
            "fitted rates": hand.knee(fitted, context),
        },
        "step": {
            "the board": d["total"] / hand.chips / hand.bandwidth, "formats and parts": read / hand.chips,
            "copies on ranks": sum(hand.weights_s(PEAK)), "caches and compute": at_peak,
            "fitted rates": hand.step(fitted, batch, context, network),
        },
        "drain": {
            "the board": 0.02, "this chip": hand.hbm / hand.bandwidth, "what a step reads": hand.memory_s(PEAK, batch, context),
            "fitted rates": hand.memory_s(fitted, batch, context),
        },
        "context where KV equals compute": {
            "the board": 200e3, "active parameters": by_active, "KV per token": by_kv,
            "ratio and format": 2 * d["active"] / hand.peak * hand.bandwidth / d["kv"],
            **{stage: value for stage, value in crossings.items() if math.isfinite(value)},
        },
    }  # fmt: skip
