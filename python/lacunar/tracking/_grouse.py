"""`GROUSE`: gradient steps on the manifold of subspaces."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from lacunar._factor import Grouse, Tracker
from lacunar.tracking._base import SubspaceTracker
from lacunar.tracking._petrels import LARGEST_RANK


class GROUSE(SubspaceTracker):
    """Follow a subspace along a stream of partially observed rows by rank-one rotations.

    Every row is coded in the subspace so far, and the subspace is turned towards what it left over ([1]_). The greedy step
    re-converges fast after a change but keeps a floor of noise; a smaller `damping` trades one for the other.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension of the subspace, 1 to 64. None: the rows of `init` where it is an array, else 10, or one less than there are
        columns where these are fewer than 11.
    damping : float, default=1.0
        Factor of the greedy step's angle, in (0, 1].
    ridge : float, default=1e-3
        Ridge on codes.
    init : {"svd", "random"} or array of shape (n_components, D), default="svd"
        Where to start: singular vectors of the first rows given, filled with zeros; a random subspace; or a basis.
    max_passes : int, default=1
        Passes of `fit`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
        Threads of `transform`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, D)
        Orthonormal rows that span the subspace.
    residual_ : float
        Running mean of the relative residuals that rows had before their own steps.
    n_samples_seen_, n_singular_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (D,)

    Notes
    -----
    The rotation is kept as a small matrix beside the basis, so that a row of o entries costs O(o k^2 + k^3), whatever D is.

    References
    ----------
    .. [1] L. Balzano, R. Nowak, B. Recht, "Online Identification and Tracking of Subspaces from Highly Incomplete
       Information", 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.tracking import GROUSE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> bool(GROUSE(2, ridge=0, random_state=0).fit(X).residual_ < 1e-3)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceTracker._parameter_constraints,
        "damping": [Interval(Real, 0, 1, closed="right")],
    }
    _tracker_class = Grouse

    def __init__(
        self,
        n_components: int | None = None,
        *,
        damping: float = 1.0,
        ridge: float = 1e-3,
        init: Any = "svd",
        max_passes: int = 1,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.damping = damping
        self.ridge = ridge
        self.init = init
        self.max_passes = max_passes
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _start(self, basis: NDArray[np.float64]) -> Tracker:
        if basis.shape[1] > LARGEST_RANK:
            raise ValueError(
                f"n_components must be at most {LARGEST_RANK} for a stream; got {basis.shape[1]}. Use fewer, or a batch "
                "method such as SLRMRegressor or POPCA."
            )
        return Grouse(basis, damping=float(self.damping), ridge=float(self.ridge))
