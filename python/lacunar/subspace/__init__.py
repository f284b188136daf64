"""Principal components of tables with holes."""

from lacunar.subspace._popca import POPCA

__all__ = ["POPCA"]
