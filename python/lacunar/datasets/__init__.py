"""Tables to try things on, and holes to put into complete ones."""

from lacunar.datasets._default import load_breast_panels
from lacunar.datasets._holes import make_block_holes

__all__ = ["load_breast_panels", "make_block_holes"]
