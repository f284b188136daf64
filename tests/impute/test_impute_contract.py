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


@pytest.mark.parametrize("imputer", [Imputer(), MultipleImputer(1, sweeps=1)])
def test_a_number_that_may_mean_missing_is_named(imputer):
    X = np.random.default_rng(0).integers(20, 80, size=(100, 2)).astype(float)
    X[::9, 1], X[0, 0] = -99, np.nan
    with pytest.warns(UserWarning, match="number for what is missing: 'x1' holds -99 in 12 rows"):
        imputer.fit(X)
