"""Slow twins: ten plain NumPy lines from the papers' formulas, what every fast path is tested against."""
