"""`PrintedPOPCA`: Algorithm 1 of Gonen et al. (2016) to the letter."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from lacunar import _moments
from lacunar._lock import changes
from lacunar._moments import Sums
from lacunar._state import all_or_nothing
from lacunar.lowrank.model import LowRankGaussian, SubspaceModel
from lacunar.lowrank.moments import added, dense_spectrum, pair_sums
from lacunar.observed import Observed
from lacunar.observed.batches import RowBatches
from lacunar.observed.columns import standardised
from lacunar.observed.rules import COUNT, Number, Parts, Rule, Sometimes, floats


class PrintedPOPCA(RowBatches, SubspaceModel):
    """Algorithm 1 of [1]_: the top k eigenvectors of the second moment that is unbiased where
    entries are seen independently.

    `lacunar.lowrank.POPCA` centres, divides by what was seen, and refines the subspace: a fraction
    of the error.

    Parameters
    ----------
    k : int, default=2
        Dimension of the subspace.
    r : float or None, default=None
        Entries that a row shows on average: each of d is seen with probability p = r / d,
        independently. None is the mean of the rows.

    Attributes
    ----------
    components_ : ndarray of shape (k, d)
        Orthonormal rows, largest eigenvalue first, entry of largest modulus positive.
    explained_variance_ : ndarray of shape (k,)
        Eigenvalues, at least 0.
    second_moment_ : ndarray of shape (d, d)
        Equation (4): sums of products over m p^2, of squares over m p. It may have negative
        eigenvalues.
    state_ : dict
        Sums over the rows so far, from which `partial_fit` goes on.
    n_samples_seen_, n_features_in_ : int
        Numbers of rows learned from and of columns of X.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`: infinite entries; k or r above the number of columns, another
        number of columns than before. The model is as it was.

    See Also
    --------
    lacunar.lowrank.POPCA : To find the subspace of a table of your own.
    popca_sample_bound : Rows that this algorithm needs.

    Notes
    -----
    O(o^2) time for a row of o entries, O(d^3) for the eigenvectors, 16 d^2 bytes. `transform` and
    `impute` fit a row by least squares to its observed entries, which is the projection of [1]_ for
    a complete row.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, section 2.1 and Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.subspace import PrintedPOPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 1)) @ np.ones((1, 6)) + 0.1 * rng.normal(size=(4000, 6))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> np.round(PrintedPOPCA(1, 3).fit(X).components_, 1)
    array([[0.4, 0.4, 0.4, 0.4, 0.4, 0.4]])
    """

    _written: ClassVar[tuple[str, ...]] = ("state_",)
    _schema: ClassVar[dict[str, Rule]] = {
        "state_": Sometimes(
            Parts(
                {
                    **dict.fromkeys(("S", "N"), floats("d", "d")),
                    "A": floats("nothing", "nothing"),
                    "nn": Number(low=0),
                    **dict.fromkeys(("paired", "m"), Number(whole=True, low=0)),
                }
            )
        ),
        "components_": floats("k", "d"),
        "explained_variance_": floats("k", low=0),
        "second_moment_": floats("d", "d"),
        "n_samples_seen_": COUNT,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "k": [Interval(Integral, 1, None, closed="left")],
        "r": [Interval(Real, 0, None, closed="neither"), None],
    }
    sparse_missing = "absent"
    n_jobs = None

    def __init__(self, k: int = 2, r: float | None = None) -> None:
        self.k = k
        self.r = r

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> PrintedPOPCA:
        """Take the eigenvectors of equation (4).

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        y : ignored

        Returns
        -------
        self
        """
        return self._add(X, None)

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> PrintedPOPCA:
        """Go on with further rows: the estimates of Algorithm 1 add up, row by row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Any number of rows; how they are split makes no difference but rounding.
        y : ignored

        Returns
        -------
        self
        """
        return self._add(X, vars(self).get("state_"))

    def _add(self, X: Any, before: dict[str, Any] | None) -> PrintedPOPCA:
        """Rows beside those of the sums before, if there are any, and the eigenvectors of all."""
        rows = self._check_rows(X, reset=before is None)
        d = rows.shape[1]
        if self.k > d or (self.r is not None and self.r > d):
            raise ValueError(
                f"k and r must be at most the number of columns, {d}; got {self.k} and {self.r}. Lower them."
            )
        sums = pair_sums(rows, np.zeros(d), cross=False)
        sums = sums if before is None else added(Sums(**before), sums)
        self.state_ = sums._asdict()
        if self.r is None:
            self.second_moment_ = _moments.second_moment(sums, "global")
        else:
            self.second_moment_ = _moments.second_moment(sums, "known", p=np.asarray(self.r / d))
        spectrum = dense_spectrum(self.second_moment_, self.k)
        self.components_, self.explained_variance_ = spectrum.vectors, np.maximum(spectrum.values, 0.0)
        self.n_samples_seen_ = sums.m
        return self

    def _gaussian(self) -> LowRankGaussian:
        return LowRankGaussian(np.zeros(self.components_.shape[1]), self.components_, 0.0)

    def _standardised(self, rows: Observed) -> Observed:
        return standardised(rows, np.zeros(rows.shape[1]))

    def _in_units(self, rows: Any) -> Any:
        return rows
