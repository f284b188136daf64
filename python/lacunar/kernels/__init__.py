"""The KARMA kernel on observed entries (Hazan, Livni, Mansour 2015, Theorem 4), as plain functions.

`_form` one kernel and its constants, `_gram` the calls of the core, `_public` the function of any table, `_paper` the
definitions written out.
"""

from lacunar.kernels._form import KernelForm, series
from lacunar.kernels._gram import compute_grams, pair_sums
from lacunar.kernels._paper import karma_embedding, karma_kernel_sum
from lacunar.kernels._public import karma_kernel

__all__ = [
    "KernelForm",
    "compute_grams",
    "karma_embedding",
    "karma_kernel",
    "karma_kernel_sum",
    "pair_sums",
    "series",
]
