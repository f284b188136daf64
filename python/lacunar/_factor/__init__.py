"""Low-rank factors of partially observed tables: codes of rows, EM, ALS. Private: shared by the families that need them."""

from lacunar._factor._codes import LARGEST_CORE_RANK, Codes, row_codes, transposed
from lacunar._factor._fit import Factors, first_basis, fit_als, fit_em
from lacunar._factor._sums import gram_product
from lacunar._factor._trackers import Grouse, NotFiniteError, PerColumnRls, SharedRls, Tracker, forgetting

__all__ = [
    "LARGEST_CORE_RANK",
    "Codes",
    "Factors",
    "Grouse",
    "NotFiniteError",
    "PerColumnRls",
    "SharedRls",
    "Tracker",
    "first_basis",
    "fit_als",
    "fit_em",
    "forgetting",
    "gram_product",
    "row_codes",
    "transposed",
]
