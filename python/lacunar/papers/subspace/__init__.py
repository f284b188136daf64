"""Subspace learning: POPCA and MBEG as printed, the bounds and the synthetic tables of Gonen et al. (2016)."""

__all__: list[str] = []
