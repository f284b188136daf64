"""Tables to try things on: the experiments of the papers, holes for complete tables, public sets."""

from lacunar.datasets._biclustered import make_biclustered, make_side_graph
from lacunar.datasets._default import load_breast_panels
from lacunar.datasets._holes import make_block_holes

__all__ = ["load_breast_panels", "make_biclustered", "make_block_holes", "make_side_graph"]
