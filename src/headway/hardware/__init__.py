"""The machine: chips, systems, memory tiers and racks as sourced facts, and what follows from them alone.

Holds        chip (a chip of the catalogue, by numbers, as a catalogue file), system (chips and what joins them, also in a part of it and
             in one host), chip_price (quotes by metric), memory_tier, edit (--set), describe, trend (chips by year, models by date), rack
             and rack_facts (cables, power, weight and what fits), fact (h100.hbm_bw by name), compare (side by side), questions (rack,
             compare, list, trend, new).
Import       chip.chip, chip.Chip, system.system, system.System, chip_price.PriceQuote, memory_tier.tier, edit.edit, rack.rack,
             trend.trend_chips.
May import   models, laws, core. Its users: performance and every package above.
Reads        data/chips (chip.py), data/systems (system.py), data/costs (chip_price.py), data/tiers (memory_tier.py), data/rack
             (rack_facts.py), and the names in data/aliases.
"""

from __future__ import annotations

from headway.core.lazy import at_first_use

__getattr__ = at_first_use(__name__)
