"""The machine: chips, systems, memory tiers and racks as sourced facts, and what follows from them alone.

Holds        chip, system (chips and what joins them), links (those of a part of a machine), chip_price (quotes by metric),
             memory_tier, edit (--set), describe, trend (chips by year), model_trend (models by date), numbers (a chip by numbers),
             chip_file (a chip as a catalogue file), rack and rack_facts, rack_capacity, rack_generations (cables, power, weight and what
             fits), fact (h100.hbm_bw by name), compare (side by side), host (chips of one server), fact_range (ranges of
             facts), questions (rack, compare, list, trend, new), columns.
Import       chip.chip, chip.Chip, system.system, system.System, chip_price.PriceQuote, memory_tier.tier, edit.edit, rack.rack,
             trend.trend_chips.
May import   models, laws, core. Its users: performance and every package above.
Reads        data/chips (chip.py), data/systems (system.py), data/costs (chip_price.py), data/tiers (memory_tier.py), data/rack
             (rack_facts.py), and the names in data/aliases.
"""
