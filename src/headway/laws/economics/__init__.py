"""Laws of money: from the price of a chip to the price of a token, cache bills, price sheets read backwards, tiers of speed.

`cost` (ownership, cost per Mtok, margin, prefix caches, tiers of speed), `inversion`, `breakeven` (API or machines).
Used by economics and by the claims of evidence.
"""
