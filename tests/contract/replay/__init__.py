"""Estimates of forty machines, stored."""
