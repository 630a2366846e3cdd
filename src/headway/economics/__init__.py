"""Money: what tokens cost and sell for, what a cache costs, price sheets and what they imply, bills, tiers of speed.

Holds        price/ (cost to price), chip_cost (owning a chip), sheets/ (price sheets from files), inversion/ (a sheet read backwards),
             cache/ (where a KV cache should live), bill (what requests cost), breakeven (API or machines: where both cost the
             same), compared_months (either side by volume), speed_tiers, questions (price, speed, cache, bill, breakeven).
Import       price.price.price, sheets.catalogue.sheet, sheets.sheet.PriceSheet, inversion.answer.invert, cache.problem.cache, bill.bill,
             speed_tiers.ladder, chip_cost.owned.
May import   simulation, training, serving, performance, hardware, models, laws, core. Its users: evidence, report, answers, cli.
Reads        data/sheets (sheets/catalogue.py), data/offers (speed_tiers.py), data/cases (price/published_day.py), data/inversion.toml
             (inversion/priors.py), data/known_ladders.csv (inversion/ladders.py), data/memory_of_chips.toml (chip_cost.py).
"""
