"""`PETRELS`: recursive least squares for every column, or one correlation for all."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._factor import PerColumnRls, SharedRls, Tracker, forgetting
from lacunar.tracking._base import SubspaceTracker

LARGEST_RANK = 64


class PETRELS(SubspaceTracker):
    """Follow a subspace along a stream of partially observed rows by recursive least squares.

    Every row is coded in the subspace so far by ridge regression on its observed entries, and the rows of the basis that
    belong to those entries take one exact least-squares step, older rows being forgotten ([1]_).

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the subspace, 1 to 64. None: the rows of `init` where it is an array, else 10, or one less than there are
        columns where these are fewer than 11.
    forget : "auto", "window" or float, default="auto"
        What a step multiplies the past by. "auto" is 1 - 3 / (age + 20) within [.9, .998], with age set back to 0 and a tenth kept when a
        fast average of the residuals exceeds three times a slow one: it follows abrupt changes. "window" is 1 - 3 / (t + 300),
        which forgets wrong beginnings and then averages. A number in (0, 1] is that, 1 forgets nothing.
    state : {"per-row", "shared"}, default="per-row"
        An inverse correlation (k, k) for every column, as in [1]_, or one for all of them scaled by how often a column was seen:
        less exact where columns differ in how they are missing, at D k instead of D k^2 / 2 numbers and a third of the time.
    ridge : "auto" or float, default="auto"
        Ridge on codes. "auto" is noise over signal, learned along the stream, with `state="shared"`, and 1e-3 of the mean
        square of an entry with `state="per-row"`.
    delta : float, default=10.0
        What the inverse correlations start from, in units of the inverse mean square of a code.
    precision : {"float64", "float32"}, default="float64"
        Of the stored inverse correlations of `state="per-row"`; arithmetic is float64. Worth it when D k^2 numbers are more
        than the cache.
    init : {"svd", "random"} or array of shape (n_components, D), default="svd"
        Where to start: singular vectors of the first rows given, filled with zeros; a random subspace; or a basis.
    max_passes : int, default=1
        Passes of `fit`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
        Threads of `transform`. Following is sequential by nature.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Orthonormal rows that span the subspace.
    residual_ : float
        Running mean of the relative residuals that rows had before their own steps.
    n_samples_seen_ : int
    n_singular_ : int
        Rows with too few entries for a code of their own without rescue.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (D,)

    Notes
    -----
    A row of o entries costs O(o k^2 + k^3), whatever D is: forgetting is applied to a column when it is next seen, and its
    growth there is limited. Updates are symmetric to the last bit; others grow as forget^-t.

    References
    ----------
    .. [1] Y. Chi, Y. C. Eldar, R. Calderbank, "PETRELS: Parallel Subspace Estimation and Tracking by Recursive Least
       Squares from Partial Observations", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.tracking import PETRELS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> tracker = PETRELS(2, random_state=0).fit(X)
    >>> bool(tracker.residual_ < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceTracker._parameter_constraints,
        "forget": [StrOptions({"auto", "window"}), Interval(Real, 0, 1, closed="right")],
        "state": [StrOptions({"per-row", "shared"})],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "precision": [StrOptions({"float64", "float32"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        forget: float | Literal["auto", "window"] = "auto",
        state: Literal["per-row", "shared"] = "per-row",
        ridge: float | Literal["auto"] = "auto",
        delta: float = 10.0,
        precision: Literal["float64", "float32"] = "float64",
        init: Any = "svd",
        max_passes: int = 1,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.forget = forget
        self.state = state
        self.ridge = ridge
        self.delta = delta
        self.precision = precision
        self.init = init
        self.max_passes = max_passes
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def _tracker_class(self) -> type[Tracker]:  # type: ignore[override]
        return SharedRls if self.state == "shared" else PerColumnRls

    def _start(self, basis: NDArray[np.float64]) -> Tracker:
        if basis.shape[1] > LARGEST_RANK:
            raise ValueError(
                f"n_components must be at most {LARGEST_RANK} for a stream; got {basis.shape[1]}. Use fewer, or a batch "
                "method such as SLRMRegressor or POPCA."
            )
        keep = forgetting(self.forget)
        if self.state == "shared":
            automatic = self.ridge == "auto"
            first = 1e-3 if automatic else float(self.ridge)
            return SharedRls(basis, delta=self.delta, ridge=first, automatic=automatic, **keep)
        ridge = 1e-3 if self.ridge == "auto" else float(self.ridge)
        return PerColumnRls(basis, precision=self.precision, delta=self.delta, ridge=ridge, **keep)

    def _ridge(self, tracker: Tracker) -> float:
        return tracker.ridge() if isinstance(tracker, SharedRls) else float(tracker.options["ridge"])
