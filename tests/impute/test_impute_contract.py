"""scikit-learn's checks of the imputers, which take any dense table."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from lacunar.impute import Imputer, MultipleImputer
from lacunar.observed import Observed


@pytest.mark.filterwarnings(
    "ignore:no entry is observed|text of more|.*sweeps have not settled|columns give one another"
)
@parametrize_with_checks([Imputer(), MultipleImputer(2, sweeps=2)])
def test_sklearn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("imputer", [Imputer(), MultipleImputer()])
@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix, Observed.from_dense])
def test_sparse_tables_are_refused(imputer, make):
    with pytest.raises(TypeError, match="dense"):
        imputer.fit(make(np.eye(3)))
