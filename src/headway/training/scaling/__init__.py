"""Scaling laws put to use: what compute buys, how far to over-train, what experts are worth."""
