"""Side information: what is known of the rows and columns of a matrix before any of its entries.

`_state` what an engine reads; `_base` and `_descriptors`, `_features` what users write; `_dense`, `_factor`, `_mixed` the
states; `_graph`, `_graph_input`, `_graph_state`, `_laplacian`, `_sparse_inverse`, `_spectral` graphs; `_functions` kernels of points, `_definite` their check; `_table`, `_read_table` features; `_checks` the door;
`_restore` states from files.
"""

from lacunar.completion._side._base import SideInformation
from lacunar.completion._side._descriptors import Identity, Kernel, KernelFunction, Mix
from lacunar.completion._side._features import Features
from lacunar.completion._side._graph import Graph
from lacunar.completion._side._restore import restore
from lacunar.completion._side._state import SideState

__all__ = [
    "Features",
    "Graph",
    "Identity",
    "Kernel",
    "KernelFunction",
    "Mix",
    "SideInformation",
    "SideState",
    "restore",
]
