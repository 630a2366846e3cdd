"""Where a row does not say how its model lies on its chips: stated rules, each a flag on the prediction (docs/measured_rows.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.layout import Layout

ROOM = 2 / 3  # weights may take so much of the usable memory, so that the rest holds a cache worth batching for
ATTENTION_DP_SINCE = (0, 20)  # of TensorRT-LLM, whose recipes for MoE throughput turn it on (docs: attention data parallelism)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedLayout:
    """What a row says about its layout, and what the rules look at."""

    chips: int | None
    tp: int | None
    ep: int | None
    pp: int | None
    dp: int | None
    engine: str
    version: tuple[int, int] | None
    load: str  # saturated: as many requests as fit; else batch or users are given
    moe: bool
    split: bool  # one worker of several kinds: the chips do not count its copies


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedLayout:
    """A layout of one instance of the engine, how many instances, on how many chips, and what was inferred."""

    layout: Layout
    replicas: int
    chips: int
    flags: tuple[str, ...]


def place(row: StatedLayout, holds: Callable[[int, int], bool], divides: Callable[[int], bool], domain: int) -> PlacedLayout | str:
    """The layout of a row, or why there is none.

    `holds(tp, pp)`: weights leave room for a cache; `divides(tp)`: tp divides the heads; `domain`: chips on fast links.
    """
    flags: list[str] = []
    chips = row.chips or _chip_count(row, flags)
    room = max(1, chips // 2) if row.split else chips  # one worker leaves chips for the other kind
    pp = row.pp or _stages(row, room, flags)
    tp, dp, ep = row.tp or _tp_degree(row, room // pp, pp, holds, divides, domain, flags), row.dp or 1, row.ep or 1
    if row.engine == "llama.cpp" and not divides(tp):
        tp, pp = 1, pp * tp
        flags.append(f"llama.cpp's split of rows over {pp} chips taken as one of layers: heads do not divide")
    if row.tp is None and row.pp is None and not holds(tp, pp):
        pp = next((pp << power for power in range(1, 8) if tp * (pp << power) * dp <= room and holds(tp, pp << power)), pp)
        flags += [f"pp not stated: {pp}, as the weights need more than {tp} chips"] if pp > 1 and row.engine != "llama.cpp" else []
    if not row.moe and ep > 1:
        flags.append(f"ep {ep} left out: the model has no experts")
        ep = 1
    inside = ep > 1 and dp > 1
    if inside and tp * dp * pp > chips >= tp * pp and tp % dp == 0:
        tp //= dp
        flags.append(f"tp counted the data parallel ranks too: tp {tp} within each of {dp}")
    if _attention_dp(row, tp):
        tp, dp, ep, inside = 1, tp, tp, True
        flags.append("ep and dp not stated: attention data parallel and experts over all ranks, as TensorRT-LLM's throughput recipes")
    elif row.moe and row.ep is None and tp > 1:
        flags.append("ep not stated: experts are split as everything else, by tp")
    replica_chips = tp * pp * (dp if inside else 1)
    if replica_chips > chips - row.split:
        return _lacks(replica_chips, chips)
    replicas = 1 if row.split else chips // replica_chips
    if row.split:
        flags.append("chips of prefill and of decode are not told apart: tp, ep and dp are one decode worker's")
    elif not inside and dp > 1 and dp != replicas:
        flags.append(f"dp {dp} of {chips} chips with tp {tp}, pp {pp}: taken as {replicas} replicas")
    elif replicas * replica_chips != chips:
        flags.append(f"{chips - replicas * replica_chips} of {chips} chips idle")
    return PlacedLayout(layout=Layout(tp=tp, ep=ep, dp=dp if inside else 1, pp=pp), replicas=replicas, chips=chips, flags=tuple(flags))


def _lacks(replica_chips: int, chips: int) -> str:
    if replica_chips > chips:
        return f"the layout needs {replica_chips} chips, the row has {chips}"
    return "a decode worker takes every chip of the row: none is left for prefill"


def _chip_count(row: StatedLayout, flags: list[str]) -> int:
    worker = (row.tp or 1) * (row.pp or 1) * (row.dp or 1)
    chips = 2 * worker if row.split else worker
    flags.append(f"chips not stated: {chips}, " + ("a decode worker and as many for prefill" if row.split else "what the layout needs"))
    return chips


def _stages(row: StatedLayout, chips: int, flags: list[str]) -> int:
    """llama.cpp splits layers over the chips unless told otherwise; other engines have one stage."""
    if row.engine == "llama.cpp" and chips > 1 and row.tp in (None, 1) and not row.dp:
        flags.append(f"layout not stated: llama.cpp splits the layers over {chips} chips")
        return chips
    return 1


def _tp_degree(
    row: StatedLayout, chips: int, pp: int, holds: Callable[[int, int], bool], divides: Callable[[int], bool], domain: int, flags: list[str]
) -> int:
    """Tensor parallel ways where they are not stated: powers of two that divide the heads, inside a domain.

    A saturated server runs copies on the fewest chips that hold the weights with room for a cache; one with a given load spreads
    one instance over all chips.
    """
    most = max(1, min(chips // (row.dp or 1), domain))
    degrees = [1 << power for power in range(most.bit_length()) if 1 << power <= most and divides(1 << power)] or [1]
    if row.load == "saturated":
        degree = next((tp for tp in degrees if holds(tp, pp)), degrees[-1])
        why = "the fewest chips that hold the weights with room for a cache"
    else:
        degree, why = degrees[-1], "one instance over the chips of a domain"
    if chips > 1 or degree > 1:
        flags.append(f"tp not stated: {degree}, {why}")
    return degree


def _attention_dp(row: StatedLayout, tp: int) -> bool:
    """TensorRT-LLM's offline throughput of MoE models runs attention data parallel where the row leaves both ep and dp open."""
    is_open = row.ep is None and row.dp is None and tp > 1
    recent = row.version is not None and row.version >= ATTENTION_DP_SINCE
    return row.moe and is_open and row.load == "saturated" and row.engine == "TensorRT-LLM" and recent
