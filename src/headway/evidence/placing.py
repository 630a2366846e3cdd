"""Where a row does not say how its model lies on its chips: stated rules, each a flag on the prediction (docs/measured_rows.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.layout import Layout

ROOM = 2 / 3  # weights may take so much of the usable memory, so that the rest holds a cache worth batching for
ATTENTION_DP_SINCE = (0, 20)  # of TensorRT-LLM, whose recipes for MoE throughput turn it on (docs: attention data parallelism)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
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
class Placed:
    """A layout of one instance of the engine, how many instances, on how many chips, and what was inferred."""

    layout: Layout
    replicas: int
    chips: int
    flags: tuple[str, ...]


def place(said: Stated, holds: Callable[[int, int], bool], divides: Callable[[int], bool], domain: int) -> Placed | str:
    """The layout of a row, or why there is none.

    `holds(tp, pp)`: weights leave room for a cache; `divides(tp)`: tp divides the heads; `domain`: chips on fast links.
    """
    flags: list[str] = []
    chips = said.chips or _counted(said, flags)
    room = max(1, chips // 2) if said.split else chips  # one worker leaves chips for the other kind
    pp = said.pp or _stages(said, room, flags)
    tp, dp, ep = said.tp or _ways(said, room // pp, pp, holds, divides, domain, flags), said.dp or 1, said.ep or 1
    if said.engine == "llama.cpp" and not divides(tp):
        tp, pp = 1, pp * tp
        flags.append(f"llama.cpp's split of rows over {pp} chips taken as one of layers: heads do not divide")
    if said.tp is None and said.pp is None and not holds(tp, pp):
        pp = next((pp << power for power in range(1, 8) if tp * (pp << power) * dp <= room and holds(tp, pp << power)), pp)
        flags += [f"pp not stated: {pp}, as the weights need more than {tp} chips"] if pp > 1 and said.engine != "llama.cpp" else []
    if not said.moe and ep > 1:
        flags.append(f"ep {ep} left out: the model has no experts")
        ep = 1
    inside = ep > 1 and dp > 1
    if inside and tp * dp * pp > chips >= tp * pp and tp % dp == 0:
        tp //= dp
        flags.append(f"tp counted the data parallel ranks too: tp {tp} within each of {dp}")
    if _attention_dp(said, tp):
        tp, dp, ep, inside = 1, tp, tp, True
        flags.append("ep and dp not stated: attention data parallel and experts over all ranks, as TensorRT-LLM's throughput recipes")
    elif said.moe and said.ep is None and tp > 1:
        flags.append("ep not stated: experts are split as everything else, by tp")
    each = tp * pp * (dp if inside else 1)
    if each > chips - said.split:
        return _lacks(each, chips)
    replicas = 1 if said.split else chips // each
    if said.split:
        flags.append("chips of prefill and of decode are not told apart: tp, ep and dp are one decode worker's")
    elif not inside and dp > 1 and dp != replicas:
        flags.append(f"dp {dp} of {chips} chips with tp {tp}, pp {pp}: taken as {replicas} replicas")
    elif replicas * each != chips:
        flags.append(f"{chips - replicas * each} of {chips} chips idle")
    return Placed(layout=Layout(tp=tp, ep=ep, dp=dp if inside else 1, pp=pp), replicas=replicas, chips=chips, flags=tuple(flags))


def _lacks(each: int, chips: int) -> str:
    if each > chips:
        return f"the layout needs {each} chips, the row has {chips}"
    return "a decode worker takes every chip of the row: none is left for prefill"


def _counted(said: Stated, flags: list[str]) -> int:
    worker = (said.tp or 1) * (said.pp or 1) * (said.dp or 1)
    chips = 2 * worker if said.split else worker
    flags.append(f"chips not stated: {chips}, " + ("a decode worker and as many for prefill" if said.split else "what the layout needs"))
    return chips


def _stages(said: Stated, chips: int, flags: list[str]) -> int:
    """llama.cpp splits layers over the chips unless told otherwise; other engines have one stage."""
    if said.engine == "llama.cpp" and chips > 1 and said.tp in (None, 1) and not said.dp:
        flags.append(f"layout not stated: llama.cpp splits the layers over {chips} chips")
        return chips
    return 1


def _ways(
    said: Stated, chips: int, pp: int, holds: Callable[[int, int], bool], divides: Callable[[int], bool], domain: int, flags: list[str]
) -> int:
    """Tensor parallel ways where they are not stated: powers of two that divide the heads, inside a domain.

    A saturated server runs copies on the fewest chips that hold the weights with room for a cache; one with a given load spreads
    one instance over all chips.
    """
    most = max(1, min(chips // (said.dp or 1), domain))
    ways = [1 << power for power in range(most.bit_length()) if 1 << power <= most and divides(1 << power)] or [1]
    if said.load == "saturated":
        taken = next((tp for tp in ways if holds(tp, pp)), ways[-1])
        why = "the fewest chips that hold the weights with room for a cache"
    else:
        taken, why = ways[-1], "one instance over the chips of a domain"
    if chips > 1 or taken > 1:
        flags.append(f"tp not stated: {taken}, {why}")
    return taken


def _attention_dp(said: Stated, tp: int) -> bool:
    """TensorRT-LLM's offline throughput of MoE models runs attention data parallel where the row leaves both ep and dp open."""
    unsaid = said.ep is None and said.dp is None and tp > 1
    recent = said.version is not None and said.version >= ATTENTION_DP_SINCE
    return said.moe and unsaid and said.load == "saturated" and said.engine == "TensorRT-LLM" and recent
