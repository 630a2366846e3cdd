"""Serving over time: traffic, the loop that answers it, its policies, caches and report."""
