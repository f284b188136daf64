"""KARMA: Algorithm 1, the baselines of Section 5, the theorems and synthetic tables of Hazan, Livni and Mansour (2015)."""

__all__: list[str] = []
