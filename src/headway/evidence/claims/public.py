"""Claims that the lecture's own equations do not decide: figures counted from the catalogue, bounds from public facts, a prediction,
a measurement.

Of a bound the first two figures are its ends (`between`); those of a prediction are its interval.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from headway.core.quantity import default, known
from headway.economics.chip_cost import parts
from headway.economics.inversion.priors import priors
from headway.evidence.claims.claim import ClaimInputs, Parts, between, recomputes
from headway.hardware.edit import edit
from headway.hardware.system import system
from headway.laws.architecture.params import sparsity
from headway.laws.rack import cable_count, star_links
from headway.laws.roofline.balance import compute_s_per_token, mfu, sent_s
from headway.laws.roofline.batch_step import batch_compute_s, context_multiple, crossing_of_kv
from headway.laws.sample import errors_between, quantile, share_within, spread_ratio, years_of_growth
from headway.laws.scaling.power_laws import params_at_ratio
from headway.models.attention.grouped_query import Attention
from headway.models.config import catalogue_index, model
from headway.models.describe import releases
from headway.models.model import Model
from headway.models.totals import active_params, kv_bytes_per_token
from headway.performance.estimate import estimate
from headway.performance.layout import Layout
from headway.performance.workload import Load
from headway.serving.serve import deployment

PRICED = ("dgx-h100", "hgx-h200", "gb200-nvl72", "gb300-nvl72")  # machines with a public price and public sizes of all three memories
SHARES = tuple(known(share, f"quantile {share}", "", "constant", "definition") for share in (0.0, 0.25, 0.5, 0.75, 1.0))
KNEES_SINCE = 2025  # models of the lecture's own time
ONE_BYTE = default(1, "bytes per cache element", "byte", "fp8")


@functools.cache
def models() -> tuple[tuple[int, Model], ...]:
    """Every model of the catalogue, with the year of its release; 0 where that is not public."""
    dated = releases()
    return tuple((int(dated[row["name"]].year) if row["name"] in dated else 0, model(row["name"])) for row in catalogue_index())


@functools.cache
def caches() -> tuple[Any, ...]:
    """KV bytes per token and active parameter of each recent model that keeps a cache."""
    recent = (entry for at, entry in models() if at >= KNEES_SINCE)
    shares = ((entry, float(kv_bytes_per_token(entry, ONE_BYTE)) / float(active_params(entry))) for entry in recent)
    return tuple(known(share, f"KV per parameter, {entry.name}", "byte/token", "config", entry.source) for entry, share in shares if share)


def _of_heads(field: str) -> tuple[Any, ...]:
    """A count of each model's attention that has KV heads; of several kinds the largest."""
    layers = ([block.attention for block in entry.blocks if isinstance(block.attention, Attention)] for _, entry in models())
    return tuple(max(getattr(layer, field) for layer in kinds) for kinds in layers if kinds)


@recomputes("AP-07")
def heads_of_models(inputs: ClaimInputs) -> Parts:
    """Share of the catalogue's models with few KV heads, and with heads of the stated width."""
    heads, widths = _of_heads("kv_heads"), _of_heads("head_dim")
    return {
        "share of models with 1 to 8 KV heads": share_within(heads, inputs.fewest, inputs.most),
        "share of models with heads 128 wide": share_within(widths, inputs.head_width, inputs.head_width),
        "models counted": known(len(heads), "models with KV heads", "", "derived", "the catalogue"),
    }


@recomputes("CW-01")
def contexts_by_year(inputs: ClaimInputs) -> Parts:
    """Median context of the catalogue's models by year of release."""

    def median(year: int) -> Any:
        return quantile(tuple(entry.max_context for at, entry in models() if at == year and entry.max_context is not None), 0.5)

    before, then, now = map(median, (2023, 2025, 2026))
    return {
        "median of 2023 over 8 K": before / inputs.before,
        "median of 2025": then,
        "median of 2026 over that of 2025": now / then,
        "median of 2026 over 200 K": now / inputs.plateau,
    }


@recomputes("AP-03")
def knees_of_models(inputs: ClaimInputs) -> Parts:
    """Context at which a model's KV reads take as long as its arithmetic: of recent models, in order."""

    in_order = (quantile(caches(), share) for share in SHARES)  # the most cache, the lowest knee
    highest, upper, median, lower, lowest = (crossing_of_kv(1, inputs.weight_byte, inputs.ratio, cache) for cache in in_order)
    return {
        "highest knee": highest, "lowest knee": lowest, "lower quartile": lower, "upper quartile": upper,
        "step over the median knee": inputs.crossing / median,
    }  # fmt: skip


@recomputes("AP-18")
def price_over_cost(inputs: ClaimInputs) -> Parts:
    """Prices of open models over their computed cost, and the spread of one model's price over hosts."""
    return {
        "output price over cost": priors().markup_output,
        "input price over cost": priors().markup_input,
        "dear host over cheap host, output": spread_ratio(priors().host_spread_output, inputs.deviations),
    }


@recomputes("CW-09")
def recall_of_sparse_attention(inputs: ClaimInputs) -> Parts:
    """Share of planted facts recalled by dense attention and by ever fewer keys, and how far these lie apart."""
    dense, mild = inputs.dense_right / inputs.dense_asked, inputs.mild_right / inputs.mild_asked
    sparse, sparser = inputs.sparse_right / inputs.sparse_asked, inputs.sparser_right / inputs.sparser_asked
    return {
        "recall, dense, 65,536 keys": dense,
        "recall, best 128 of 1,024 keys": mild,
        "recall, best 1,000 of 65,536 keys": sparse,
        "recall, best 128 of 65,536 keys": sparser,
        "standard errors from 1 key in 66 to 1 in 512": errors_between(sparse, inputs.sparse_asked, sparser, inputs.sparser_asked),
        "standard errors from dense to 1 key in 8": errors_between(dense, inputs.dense_asked, mild, inputs.mild_asked),
    }


@recomputes("CW-08")
def years_to_a_month_of_work(inputs: ClaimInputs) -> Parts:
    """Years until bandwidth alone has grown by the cost of a month's context, at the growth of each of three generations."""
    factor = context_multiple(inputs.context, inputs.crossing, inputs.dense)
    generations = (
        (inputs.h100_bw / inputs.a100_bw, inputs.hopper_years), (inputs.b200_bw / inputs.h100_bw, inputs.blackwell_years),
        (inputs.rubin_bw / inputs.b200_bw, inputs.rubin_years),
    )  # fmt: skip
    gain = inputs.rubin_bw / inputs.a100_bw / (inputs.rubin_peak / inputs.a100_peak)
    return {
        **between("years until bandwidth has grown enough", *(years_of_growth(factor, growth, years) for growth, years in generations)),
        "bandwidth's gain on arithmetic, A100 to Rubin": gain,
        "years at that gain": years_of_growth(factor, gain, inputs.hopper_years + inputs.blackwell_years + inputs.rubin_years),
    }


@recomputes("KT-13")
def tiers_of_a_rack(inputs: ClaimInputs) -> Parts:
    """Host memory and flash of a rack over its HBM."""
    hbm, memory = inputs.chips * inputs.chip_hbm, inputs.chips * inputs.chip_dram
    flash = inputs.trays * inputs.drives * inputs.drive
    return {"host memory over HBM": memory / hbm, "flash over HBM": flash / hbm, "host memory": memory, "flash": flash}


@recomputes("RK-02")
def racks_of_a_site(inputs: ClaimInputs) -> Parts:
    """Racks that the power of a site feeds, its overhead taken off."""
    return {
        **between(
            "racks",
            inputs.first_power / (inputs.rack_power * inputs.usual_overhead),
            inputs.site_power / (inputs.rack_power * inputs.best_overhead),
        ),
        "racks by the site's own count of chips": inputs.buildings * inputs.building_chips / inputs.chips,
    }


@recomputes("RK-04")
def limits_of_a_rack(inputs: ClaimInputs) -> Parts:
    """How much of each limit a rack takes."""
    height = inputs.trays + inputs.switch_trays + inputs.shelves + inputs.managers
    return {
        "space: rack units in use": height / inputs.rack_units,
        "weight over what a cabinet carries": inputs.weight / inputs.cabinet_limit,
        "weight over what a floor is built for": inputs.weight / inputs.footprint / inputs.floor_limit,
        "power over what its shelves give with spares": inputs.power / (inputs.shelves * inputs.shelf_power * inputs.half),
        "cooling: power over what air takes away": inputs.power / inputs.air_limit,
        "connectors: pairs of a chip over those of its connector": inputs.links * inputs.pairs / inputs.connector_pairs,
    }


@recomputes("RK-08")
def form_or_barrier(inputs: ClaimInputs) -> Parts:
    """What NVLink joined in Hopper's generation over a Blackwell rack, and the pairs of the rack after Rubin over Blackwell's."""
    blackwell = cable_count(star_links(inputs.blackwell, inputs.links), inputs.pairs)
    ultra = cable_count(star_links(inputs.ultra, inputs.ultra_links), inputs.ultra_pairs)
    return {
        "Hopper's largest domain over Blackwell's rack": inputs.dgx_gh200 / inputs.blackwell,
        "pairs of Rubin Ultra's rack over those of GB200's": ultra / blackwell,
        "Hopper's rack over its box": inputs.nvl32 / inputs.box,
    }


@recomputes("FS-08")
def size_from_compute(inputs: ClaimInputs) -> Parts:
    """Parameters of a routed model from its training FLOP, by total over active of two models of its time."""
    active = params_at_ratio(inputs.flop, inputs.ratio)
    shapes = ((inputs.mixtral_total, inputs.mixtral_active), (inputs.glam_total, inputs.glam_active))
    ends = between("parameters if it is routed", *(active * sparsity(*shape) for shape in shapes))
    return {**ends, "active parameters": active, "weights at bf16, at least": min(ends.values()) * inputs.bf16}


@recomputes("FS-09")
def memory_of_spending(inputs: ClaimInputs) -> Parts:
    """Memory's share of capital spending if all servers were the machine where it is smallest, or the one where it is largest."""
    shares = []
    for machine in map(system, PRICED):
        sizes = {"flash": inputs.rack_flash} if machine.chip.host_dram else {"dram": inputs.box_dram, "flash": inputs.box_flash}
        shares.append(parts(machine, **sizes)[-1])
    return {
        **between(
            "memory's share of capital spending",
            *(row.share_of_machine_lo * inputs.few_servers for row in shares),
            *(row.share_of_machine_hi * inputs.many_servers for row in shares),
        ),
        "share of a server's price that half of the spending takes": inputs.half / inputs.many_servers,
    }


@recomputes("OT-13")
def tokens_of_training(inputs: ClaimInputs) -> Parts:
    """The largest published count of training tokens, and the most public text that its estimate allows."""
    return {**between("tokens", inputs.published, inputs.most_stock), "middle estimate of all public text": inputs.stock}


@recomputes("EX-02")
def prefill_of_palm(inputs: ClaimInputs) -> Parts:
    """Share of the peak that headway predicts for prompts of PaLM-540B on TPU v4, and the time of gathering its weights."""
    prompt, single = inputs.length, default(1, "prompts, and their output", "", "prompts alone")
    machine = edit(system("1xtpu-v4"), "chip.hbm", 1.5e12)  # holds what is gathered in time
    machine = replace(machine, chip=replace(machine.chip, peak_bf16=inputs.peak, hbm_bw=inputs.mem_bw))
    case = replace(deployment("palm-540b", machine, Layout(), Load(batch=single, prompt=prompt, output=single)), calibration=None)
    params = active_params(case.model)
    at_peak = prompt * compute_s_per_token(params, inputs.peak)
    values = estimate(case)
    gathered = sent_s(params * inputs.weight_byte * (1 - 1 / inputs.chips), inputs.link_bw)
    arithmetic = batch_compute_s(inputs.prompts * inputs.length / inputs.chips, params, inputs.peak)
    return {
        "prefill MFU, at least": mfu(at_peak, values["ttft_hi_s"]),
        "prefill MFU, at most": mfu(at_peak, values["ttft_lo_s"]),
        "prefill MFU, expected": mfu(at_peak, values["ttft_s"]),
        "gathering the weights over arithmetic": gathered / arithmetic,
    }
