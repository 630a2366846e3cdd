"""The columns of `speed`, `price` and `bill`, and of price sheets by date: the unit and the sentence of each."""

from __future__ import annotations

from headway.core.columns import Column

_SPEED = {
    "speed_multiple": Column("", "speed of one user over the standard rung's; of an offer, as advertised over its own standard tier"),
    "price_multiple": Column("", "chip time (so cost) per request over the standard rung's; of an offer, price over the standard tier's"),
    "speed_bought": Column("", "per cent of speed that one per cent of price buys, coming from the next slower rung"),
    "decode_price_multiple": Column("", "chip time of an output token over the standard rung's, prefill left out"),
    "batch_ratio": Column("", "sequences per chip on the standard rung over those on this one"),
    "batch_ratio_identity": Column("", "the same from price in proportion to t / B: decode_price_multiple x speed_multiple"),
    "batch_ratio_of_price": Column("", "what price_multiple x speed_multiple imply: all an outsider sees, prefill taken for decode"),
    "ladder_price_multiple": Column("", "price multiple of the ladder at the offer's speed multiple, between two rungs"),
    "ladder_speed_multiple": Column("", "speed multiple of the ladder at the offer's price multiple, between two rungs"),
    "ladder_batch_ratio": Column("", "batch_ratio of the ladder at the offer's speed multiple, between two rungs"),
    "offer_over_ladder": Column("", "the offer's price multiple over the ladder's at its speed"),
    "standing": Column("", "the offer beside the ladder: above or below it, faster or cheaper than any rung, or of unpublished speed"),
    "offer": Column("", "the offer's name in the catalogue"),
    "provider": Column("", "who sells it, or who measured it"),
    "tier": Column("", "the tier as its provider calls it"),
    "basis": Column("", "price of an offer, or cost that others measured"),
    "date": Column("", "when the offer was made or read"),
    "about": Column("", "what the multiples are taken from"),
}
_TOKENS = {"in": "fresh input", "cached": "cached input", "out": "output"}
_ENDS = {"": ", middle", "_lo": ", least", "_hi": ", most"}
_PRICE = {
    f"{stem}_{kind}{end}": Column("USD/Mtok", f"{words} of a million tokens of {token_kind}{more}")
    for stem, words in (("cost", "cost, idle hours counted,"), ("price", "price: cost over 1 - margin,"))
    for kind, token_kind in _TOKENS.items()
    for end, more in (
        ("", ", every input in its middle"),
        ("_lo", ", lower end of the 90 % interval"),
        ("_hi", ", upper end of the 90 % interval"),
        ("_least", ", every input at its better end"),
        ("_most", ", every input at its worse end"),
    )
} | {
    **{f"chip_price{end}": Column("USD/s", f"price of a chip{more}") for end, more in _ENDS.items()},
    **{f"utilisation{end}": Column("", f"share of paid hours that do useful work{more}") for end, more in _ENDS.items() if end},
    **{f"margin{end}": Column("", f"share of the price that is not cost{more}") for end, more in _ENDS.items()},
    "width_estimate": Column("", "share of the width of price_out's interval that the estimate of the times is behind"),
    "width_chip_price": Column("", "the same of the price of a chip"),
    "width_utilisation": Column("", "the same of utilisation"),
    "width_margin": Column("", "the same of the margin"),
    "driver": Column("", "the input behind most of that width"),
    "prefill_share": Column("", "share of a request's cost that its prompt is, cached part included"),
    "decode_share": Column("", "share of a request's cost that its output is"),
    "usd_charged": Column("USD", "what the list price brings for a request"),
    **{f"sheet_{kind}": Column("USD/Mtok", f"list price of {token_kind}") for kind, token_kind in _TOKENS.items()},
    "sheet_margin": Column("", "margin that the list price leaves over the cost"),
    "sheet_margin_lo": Column("", "the same with the costs at their upper ends"),
    "sheet_margin_hi": Column("", "the same with the costs at their lower ends"),
    **{f"power_share{end}": Column("", f"share of the price of a chip by the hour that is power{more}")
       for end, more in (("", ""), ("_lo", ", where a chip is dear"), ("_hi", ", where a chip is cheap"))},
    "memory_share_lo": Column("", "share of what a chip costs to buy that its HBM is, low end"),
    "memory_share_hi": Column("", "share of what a chip costs to buy that its HBM is, high end"),
    **{f"own_{part}": Column("USD/s", f"{part} of a chip that is owned") for part in ("capital", "upkeep", "power", "building")},
}  # fmt: skip
_BILL = {
    "as_of": Column("", "date of the price sheet"),
    "mode": Column("", "standard, batch, flex, fast, ..., as the provider sells it"),
    "cache": Column("", "time to live of cached prefixes, or none"),
    "caching": Column("", "off; priced: writes have a rate; automatic: what is not found pays the input rate"),
    "prompt_layout": Column("", "where a prompt has what it shares with all others; as recorded where a trace's blocks say"),
    "prompt_tokens": Column("token", "all prompt tokens"),
    "cached_tokens": Column("token", "prompt tokens read from the cache"),
    "written_tokens": Column("token", "prompt tokens written to the cache"),
    "output_tokens": Column("token", "all output tokens"),
    "cached_share": Column("", "share of the prompt tokens that is read from the cache"),
    "usd_input": Column("USD", "paid for prompt tokens at the input rate"),
    "usd_cached": Column("USD", "paid for prompt tokens read from the cache"),
    "usd_written": Column("USD", "paid for prompt tokens written to the cache"),
    "usd_output": Column("USD", "paid for output tokens"),
    "usd_storage": Column("USD", "paid for keeping prefixes, where the provider asks for that"),
    "usd": Column("USD", "paid in all"),
    "usd_each": Column("USD", "the same for one request"),
    "over_cheapest": Column("", "times what the cheapest way costs"),
    "saved_share": Column("", "share of what the same mode costs without a cache that the cache saves; below 0 it costs more"),
    "break_even_reads": Column("", "reads within the time to live from which on writing a prefix has paid"),
    "reads_per_write": Column("", "how often a written token is read here"),
    "speed_ratio": Column("", "output speed of one user over the standard mode's, as advertised"),
    "too_long": Column("", "requests beyond the context that the sheet states"),
}
_HISTORY = {
    "input_rate": Column("USD/token", "input rate of the standard mode and the shortest context tier"),
    "output_rate": Column("USD/token", "output rate of the same"),
    "cached_rate": Column("USD/token", "rate of reading a cached token"),
    "steps": Column("token", "prompt lengths above which the whole request is re-priced"),
    "modes": Column("", "other modes that are sold"),
    "flags": Column("", "what is odd about the sheet"),
    "line": Column("", "line of models: the model's name without its version"),
    "changed": Column("", "what changed against the sheet before in the same line of models"),
    "input_usd_per_mtok": Column("USD/Mtok", "input rate"),
    "output_usd_per_mtok": Column("USD/Mtok", "output rate"),
    "cached_usd_per_mtok": Column("USD/Mtok", "rate of reading a cached token"),
    "output_multiple": Column("", "output rate over the input rate"),
    "cached_multiple": Column("", "rate of reading a cached token over the input rate"),
    "write_multiple": Column("", "rate of writing to the cache for the shortest time sold, over the input rate"),
    "write_long_multiple": Column("", "the same for the longest time sold, where there are several"),
    "step_above": Column("token", "prompt length above which the whole request is re-priced; the first step of several"),
    "step_input_multiple": Column("", "input rate above it over the one below"),
    "step_output_multiple": Column("", "output rate above it over the one below"),
    "fast_multiple": Column("", "output rate of the fastest mode sold over the standard one"),
    "fast_speed_multiple": Column("", "its speed over the standard mode's, as advertised"),
    "slow_multiple": Column("", "output rate of the cheapest mode sold over the standard one"),
    "hours_multiple": Column("", "output rate of peak hours over the usual one; of off-peak hours where the usual ones are the peak"),
    "context_limit": Column("token", "longest context sold"),
}
COLUMNS: dict[str, Column] = _SPEED | _PRICE | _BILL | _HISTORY
