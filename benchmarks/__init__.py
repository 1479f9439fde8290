"""Measurements, side by side in one run: ours against a peer, or one way of working against another.

Absolute times belong to a machine; what is worth keeping are the ratios. Nothing imports this package and no test
depends on a time. ``benchmarks/README.md`` has the tables and what follows from them.
"""
