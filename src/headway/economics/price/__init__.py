"""From cost to price: a million tokens as intervals with what drives their width, and a published day of a service.

`price.price` (its terms with the question), `published_day` (data/cases).
"""
