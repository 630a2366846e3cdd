"""Measured serving rows, predictions of them and what is fitted on them."""
