"""The embedded table of `lacunar compare`: scikit-learn's breast cancer measurements, with panels missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from lacunar.datasets._panels import hide_blocks


def load_breast_panels(
    *, share_observed: float = 0.5, random_state: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.str_], list[str]]:
    """Wisconsin diagnostic breast cancer, 569 x 30, whose three panels of ten columns are seen or missed together.

    The panels are mean, standard error and worst value of the same ten measurements, so one says much about another:
    real structure under artificial holes.

    Parameters
    ----------
    share_observed : float, default=0.5
        Probability that a row has a panel, given that it has at least one.
    random_state : int, default=0

    Returns
    -------
    X : ndarray of shape (569, 30)
        NaN where missing.
    y : ndarray of shape (569,)
        "benign" or "malignant".
    names : list of str

    Examples
    --------
    >>> from lacunar.datasets import load_breast_panels
    >>> load_breast_panels()[0].shape
    (569, 30)
    """
    data = load_breast_cancer()
    panels = [range(10), range(10, 20), range(20, 30)]
    X = hide_blocks(data.data, panels, share_observed, random_state=random_state).data
    return X, data.target_names[data.target], [str(name) for name in data.feature_names]
