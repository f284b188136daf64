"""`PrintedMBEG`: Algorithms 2 and 3 of Gonen et al. (2016) to the letter."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from lacunar._eigen import leading_eigenvectors
from lacunar._log import warn_user
from lacunar._random import generator, generator_at, state_of
from lacunar._typing import Floats
from lacunar.active.acquisition import Acquisition, ActiveSubspace, Ints, second_moment, subspace_of
from lacunar.active.mbeg import add_estimates, draw_pairs, project_logs, turn_pairs
from lacunar.observed.rules import Number, Rule, floats
from lacunar.papers.subspace.theory import least_rows


class PrintedMBEG(Acquisition):
    """Matrix Bandit Exponentiated Gradient, Algorithm 2 of [1]_: pairs drawn by a weight matrix
    that learns after every row.

    `lacunar.active.MBEG` takes longer steps, renews its weights every so many rows, and needs no
    number of rows in advance; `lacunar.active.ActivePOPCA` needs fewer rows than either in every
    case that we measured.

    Parameters
    ----------
    d : int
        Attributes of a row.
    k : int, default=2
        Dimension of the subspace.
    r : int, default=2
        Even: r / 2 pairs of attributes a row, drawn with replacement, so that a request may have
        fewer attributes.
    m : int
        Rows planned.
    eta : float or None, default=None
        Step. None is sqrt(r log d / (2 m (d + r))).
    alpha : float or None, default=None
        Share of uniform pairs, in (0, 1]. None is eta d^2, at most 1/2, with a warning when cut: no
        guarantee then.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.

    Attributes
    ----------
    n_asked_, n_told_ : int
        Numbers of requests asked, and of those told.
    spent_ : float
        Attributes that were seen.
    pending_ : dict
        Requests not told yet.

    Raises
    ------
    ValueError
        In `ask`, `tell` and `run`: an odd r, r or k above d, infinite values, a request that is not
        pending.

    Warns
    -----
    UserWarning
        Where alpha of the printed step is above 1/2, so that it is cut and Theorem 7 does not hold.

    See Also
    --------
    lacunar.active.MBEG : Steps that learn faster, without a number of rows in advance.
    mbeg_sample_bound : Rows that this algorithm needs.

    Notes
    -----
    The result is a projection drawn by Algorithm 3, the same at every call, as the theorem wants;
    the average of the weight matrices is `weights_` of the result. Second moments: nothing is
    centred, and the theorem wants |x| <= 1. A pair with a refused attribute is left out, the row's
    estimate being the mean of its other pairs. O(d^3) a row. Theorem 7 asks for m >= 2 d^4 r log d
    / (d + r).

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Algorithms 2 and 3, Theorem 7.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.subspace import PrintedMBEG
    >>> rng = np.random.default_rng(0)
    >>> def oracle(indices):
    ...     return (rng.choice([-1.0, 1.0]) * np.array([0.6, 0.8, 0.0]))[indices]
    >>> PrintedMBEG(3, 1, m=2000, random_state=0).run(oracle, 2000).result().components_.shape
    (1, 3)
    """

    _written: ClassVar[tuple[str, ...]] = (*Acquisition._written, "potential_")
    _schema: ClassVar[dict[str, Rule]] = {
        **Acquisition._schema,
        "share_": Number(low=0, high=1),
        **dict.fromkeys(("W_", "potential_", "W_sum_"), floats("attributes", "attributes")),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "d": [Interval(Integral, 2, None, closed="left")],
        "k": [Interval(Integral, 1, None, closed="left")],
        "r": [Integral],
        "m": [Interval(Integral, 1, None, closed="left")],
        "eta": [Interval(Real, 0, None, closed="neither"), None],
        "alpha": [Interval(Real, 0, 1, closed="right"), None],
        "random_state": ["random_state"],
    }
    costs = None

    def __init__(
        self,
        d: int,
        k: int = 2,
        *,
        r: int = 2,
        m: int,
        eta: float | None = None,
        alpha: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.k = k
        self.r = r
        self.m = m
        self.eta = eta
        self.alpha = alpha
        self.random_state = random_state

    # The same sizes in the words of acquisition, which has attributes for them.
    @property
    def n_features(self) -> int:  # type: ignore[override]
        """d."""
        return self.d

    @property
    def n_components(self) -> int:  # type: ignore[override]
        """k."""
        return self.k

    @property
    def n_observed(self) -> int:  # type: ignore[override]
        """r."""
        return self.r

    def _check_sizes(self) -> None:
        if self.r < 2 or self.r % 2 or self.r > self.d or self.k > self.d:
            raise ValueError(
                f"r must be even and at least 2, and r and k at most d={self.d}; got r={self.r} and k={self.k}. Change them."
            )

    def _begin(self) -> None:
        d, k = self.d, self.k
        rng = generator_at(self.rng_)
        self.output_rng_ = state_of(generator(int(rng.integers(2**31 - 1))))
        self.rng_ = state_of(rng)
        self.share_ = self._share()
        self.W_ = np.eye(d) * (k / d)
        self.potential_ = np.eye(d) * np.log(k / d)  # log W plus the steps since
        self.W_sum_ = np.zeros((d, d))

    def _step(self) -> float:
        if self.eta is not None:
            return float(self.eta)
        return float(np.sqrt(self.r * np.log(self.d) / (2 * self.m * (self.d + self.r))))

    def _share(self) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        alpha = self._step() * self.d**2
        if alpha > 0.5:
            least = math.ceil(least_rows(self.d, self.r))
            warn_user(
                f"alpha = eta d^2 must be at most 1/2; m={self.m} gives {alpha:.3g}, cut to 1/2: Theorem 7 does not hold. It needs "
                f"m >= {least}; or use ActivePOPCA.",
            )
        return min(alpha, 0.5)

    def _rows_in_force(self) -> int:
        return 1

    def _laws(self) -> tuple[Floats, Floats]:
        """Strong and weak law (d,) of an attribute: diag(W) / k and uniform."""
        weight = np.maximum(np.diag(self.W_), 0)
        return weight / weight.sum(), np.ones(self.d) / self.d

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
        """Attributes (n, r) of pairs of equation (7), and the probabilities (n, r / 2) of the pairs."""
        laws = self._laws()
        return turn_pairs(*draw_pairs(laws, self.share_, rng, (n, self.r // 2)), laws, self.share_, rng)

    def _tables(self) -> dict[str, Floats]:
        return {**self.state_, "potential": self.potential_}

    def _add(self, tables: dict[str, Floats], drawn: Ints, probability: Floats, values: Floats) -> None:
        add_estimates(tables["potential"], drawn, probability, values, "half", self._step())
        super()._add(tables, drawn, probability, values)

    def _renew_when_due(self) -> None:
        """Equation (6), in logarithms throughout: O(d^3)."""
        self.W_sum_ = self.W_sum_ + self.W_
        logs, V = np.linalg.eigh(self.potential_)
        logs = project_logs(logs, self.k)
        self.W_ = (V * np.exp(logs)) @ V.T
        self.potential_ = (V * logs) @ V.T

    def _found(self) -> ActiveSubspace:
        average = self.W_sum_ / self.n_told_
        lam, V = (part[..., ::-1] for part in leading_eigenvectors(average))
        terms = decompose(np.clip(lam, 0, 1) * (self.k / np.clip(lam, 0, 1).sum()), self.k)
        chosen = generator_at(self.output_rng_).choice(len(terms), p=[beta for beta, _ in terms])
        basis = V[:, terms[chosen][1]]
        return subspace_of(second_moment(self.state_), np.zeros(self.d), basis, self.n_told_, average)


def decompose(lam: Floats, k: int) -> list[tuple[float, Ints]]:
    """Algorithm 3: eigenvalues 0 <= lam <= 1 with sum k as a mixture of at most d sets of k eigenvectors.

    Returns
    -------
    list of (beta, members)
        beta > 0 sum to 1; members (k,) are positions in `lam`. sum of beta over the sets of a position is its lam.
    """
    weights, terms = lam / k, []
    total = 1.0
    for _ in range(2 * len(lam)):
        members = np.argsort(-weights, kind="stable")[:k]
        remainder = np.delete(weights, members)
        beta = min(float(weights[members].min()) * k, total - k * float(remainder.max(initial=0.0)))
        if beta <= 1e-15:  # rounding left only crumbs
            break
        terms.append((beta, members))
        weights[members] -= beta / k
        weights = np.maximum(weights, 0.0)
        total -= beta
        if total <= 1e-12:
            break
    mass = sum(beta for beta, _ in terms)
    return [(beta / mass, members) for beta, members in terms]
