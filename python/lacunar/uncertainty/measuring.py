"""`value_of_measuring`: what each missing entry of new rows would tell about the target, by a shrunk model of other rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from lacunar._random import fixed_seed, generator
from lacunar.encode import TableEncoder
from lacunar.lowrank import GaussianRegressor
from lacunar.observed import Observed
from lacunar.observed.door import check_target

_Floats = NDArray[np.float64]

_MANY = 20  # different whole numbers, more than which are no classes
_SHRINKAGE = 0.15  # of the covariance, in units of the rows


def value_of_measuring(
    X: Any, y: Any, rows: Any, *, cost: Any = None, n: int = 1, n_bags: int = 1, random_state: Any = None
) -> _Floats:
    """Expected fall of the variance of the target if a missing entry of a row were measured.

    `GaussianRegressor.value_of_measuring` of a model whose covariance is shrunk by 15 % of the rows, since an unshrunk one overrates entries below some
    hundred rows, or of `n_bags` such models of samples of the rows with replacement, averaged.

    Parameters
    ----------
    X : array-like with NaN, frame or Observed, shape (n_rows, d)
        Rows to learn from.
    y : array-like of shape (n_rows,) or (n_rows, targets)
        Numbers, or classes (text, truth values, at most 20 different whole numbers that are not floats): then the variance is that of the indicators of the classes, summed (their Gini index falls by it).
    rows : array-like with NaN, frame or Observed, shape (m, d)
        Rows of which something is to be measured.
    cost : array-like of shape (d,), optional
        Above 0: values are divided by it.
    n : int, default=1
        Entries to buy for a row, by a greedy plan: see `GaussianRegressor.value_of_measuring`.
    n_bags : int, default=1
        1 takes the rows themselves.
    random_state : int, RandomState or None, default=None
        Draws the samples. None is a fixed draw.

    Returns
    -------
    value : ndarray of shape (m, d)
        0 where the entry is known. In squared units of y; for classes and several targets in shares of their variances.

    Raises
    ------
    ValueError
        If `n_bags` is below 1, or a table or target is not as above.

    See Also
    --------
    lacunar.lowrank.GaussianRegressor : One model, and its exact value.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.uncertainty import value_of_measuring
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X @ [3.0, 1.0, 0.0]
    >>> value_of_measuring(X, y, [[np.nan, np.nan, 1.0]]).round()
    array([[7., 1., 0.]])
    """
    if not isinstance(n_bags, Integral) or n_bags < 1:
        raise ValueError(f"n_bags must be a whole number of at least 1; got {n_bags!r}. Pass 1.")
    table, asked = _numbers(X, rows)
    target = _targets(y)
    check_consistent_length(table, target)
    rng = generator(fixed_seed(random_state))
    shrinkage = max(_SHRINKAGE * len(target), 0.4)
    total = 0.0
    for _ in range(int(n_bags)):
        drawn = rng.integers(len(target), size=len(target)) if n_bags > 1 else np.arange(len(target))
        model = GaussianRegressor(shrinkage=shrinkage, tol=1e-3).fit(table[drawn], target[drawn])
        total = total + model.value_of_measuring(asked, cost=cost, n=n)
    made: _Floats = np.asarray(total) / n_bags
    return made


def _targets(y: Any) -> _Floats:
    """Numbers as they are, classes as indicators of all but one of two."""
    target = check_target(y, multi_output=True)
    several = target.ndim == 2 and target.shape[1] > 1
    if several or target.dtype.kind == "f" or (target.dtype.kind in "iu" and len(np.unique(target)) > _MANY):
        return check_target(y, y_numeric=True, multi_output=True).astype(np.float64)
    classes, code = np.unique(target, return_inverse=True)
    made = np.eye(len(classes))[code.ravel()]
    return made[:, :1] if len(classes) == 2 else made


def _numbers(X: Any, rows: Any) -> tuple[_Floats, _Floats]:
    """Both tables as arrays with NaN; frames with columns that are not numbers by the codes of the first."""
    if hasattr(X, "columns") and not isinstance(X, Observed):
        encoder = TableEncoder().fit(X)
        return encoder.transform(X), encoder.transform(rows)
    both = [part.to_dense() if isinstance(part, Observed) else np.asarray(part, dtype=np.float64) for part in (X, rows)]
    return both[0], both[1]
