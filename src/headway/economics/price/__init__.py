"""From cost to price: a million tokens as intervals with what drives their width, and a published day of a service.

`terms` (chip price, utilisation, margin), `price.price`, `published_day` (data/cases).
"""
