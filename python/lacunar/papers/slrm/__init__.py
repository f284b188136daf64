"""SLRM: Algorithms 1 and 2, MPCR and SMPCR, the theorem and the synthetic tables of Ganti and Willett (2015)."""

__all__: list[str] = []
