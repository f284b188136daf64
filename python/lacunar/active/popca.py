"""Active POPCA: PCA of the covariance of rows whose attributes were chosen, uniformly or by what is known."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._typing import Floats
from lacunar.active.acquisition import (
    Acquisition,
    ActiveSubspace,
    Ints,
    covariance,
    leading,
    means,
    second_moment,
    subspace_of,
)
from lacunar.observed.rules import COUNT, Rule, floats

_DRAWS = 10_000  # of one attribute, before a law is taken for one that never gives another


class ActivePOPCA(Acquisition):
    """The leading subspace of rows of which only `n_observed` attributes can be looked at, chosen
    row by row.

    Parameters
    ----------
    n_features : int
        d, attributes a row has.
    n_components : int, default=2
        k, dimension of the subspace.
    n_observed : int, default=2
        r, attributes looked at in a row, at least 2. If the total m r is given, larger r is better:
        r (r-1) / 2 pairs a row. Where rows can be bought whole, buy them: `n_observed=n_features`
        and m r / d rows cost as much as m rows of r attributes and missed least in every case we
        measured. Choosing attributes is for rows of which no more than r can be looked at.
    strategy : {"adaptive", "uniform", "uniform-with-replacement"}, default="adaptive"
        "adaptive": the draws of a row alternate between attributes of high leverage in the current
        subspace and attributes of high spread, never twice the same. Uniform until `warmup` rows
        are told. The uniform ones are the paper's section 3, the second with the right inclusion
        probabilities (its footnote 2).
    normalisers : {"pairwise", "design"}, default="pairwise"
        What sums are divided by: "pairwise" by joint counts. "design" by the inclusion
        probabilities, pi_i = r / d and pi_ij = r (r-1) / (d (d-1)) without replacement, pi_i = 1 -
        (1 - 1/d)^r and pi_ij = 1 - 2 (1 - 1/d)^r + (1 - 2/d)^r with: exactly unbiased for the
        second moment, noisier; uniform strategies only, no centring, no refusals.
    center : bool, default=True
        Decompose the covariance; False: the second moment, as in the paper. Ignored by
        normalisers="design".
    alpha : float in (0, 1], default=0.2
        Share of uniform draws among adaptive ones.
    growth : float > 1, default=1.25
        The distribution is renewed when so many times the rows have been told.
    warmup : int or None, default=None
        Uniform rows at the beginning; None: 4 d.
    pseudo_count : float >= 0, default=2
        Added to joint counts off the diagonal (normalisers="pairwise").
    costs : array-like of shape (d,) or None, default=None
        Cost of looking at each attribute. Adaptive draws are made in proportion to 1 / sqrt(cost)
        (Neyman's allocation); `spent_` adds up what was paid.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.

    Attributes
    ----------
    n_asked_, n_told_ : int
        Numbers of requests asked, and of those told.
    spent_ : float
        What the attributes told so far cost.
    pending_ : dict
        Requests not told yet.

    Notes
    -----
    Memory 3 d^2; a row costs O(r^2), a renewal O(d^3), about log(m) / log(growth) times. Source:
    Gonen, Rosenbaum, Eldar and Shalev-Shwartz, "Subspace Learning with Partial Information",
    section 3; the adaptive rule is ours and without proof.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.active import ActivePOPCA
    >>> rng = np.random.default_rng(0)
    >>> def oracle(indices):
    ...     row = rng.normal() * np.array([3.0, 3.0, 0.0, 0.0]) + 0.1 * rng.normal(size=4)
    ...     return row[indices]
    >>> sampler = ActivePOPCA(4, 1, random_state=0).run(oracle, 300)
    >>> request = sampler.ask()[0]
    >>> sampler.tell(request, oracle(request.indices))
    >>> np.round(sampler.result().components_, 1) + 0.0
    array([[0.7, 0.7, 0. , 0. ]])
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **Acquisition._schema,
        "renew_at_": COUNT,
        "laws_": floats(2, "attributes", low=0),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Acquisition._parameter_constraints,
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "strategy": [StrOptions({"adaptive", "uniform", "uniform-with-replacement"})],
        "normalisers": [StrOptions({"pairwise", "design"})],
        "center": ["boolean"],
        "growth": [Interval(Real, 1, None, closed="neither")],
        "warmup": [Interval(Integral, 0, None, closed="left"), None],
        "pseudo_count": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_features: int,
        n_components: int = 2,
        n_observed: int = 2,
        *,
        strategy: str = "adaptive",
        normalisers: str = "pairwise",
        center: bool = True,
        alpha: float = 0.2,
        growth: float = 1.25,
        warmup: int | None = None,
        pseudo_count: float = 2.0,
        costs: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.n_components = n_components
        self.n_observed = n_observed
        self.strategy = strategy
        self.normalisers = normalisers
        self.center = center
        self.alpha = alpha
        self.growth = growth
        self.warmup = warmup
        self.pseudo_count = pseudo_count
        self.costs = costs
        self.random_state = random_state

    def _check(self) -> None:
        if self.strategy == "adaptive" and self.normalisers == "design":
            raise ValueError(
                "normalisers must be 'pairwise' with strategy='adaptive', whose inclusion probabilities are not known in advance; "
                "got normalisers='design'. Use strategy='uniform'."
            )

    def _begin(self) -> None:
        d = self.n_features
        self.renew_at_ = 4 * d if self.warmup is None else int(self.warmup)
        self.laws_ = np.full((2, d), 1.0 / d)

    def _rows_in_force(self) -> int:
        return self.renew_at_ - self.n_told_ if self.strategy == "adaptive" else 1 << 30

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
        d, r = self.n_features, self.n_observed
        none = np.empty((n, 0))
        if self.strategy == "uniform-with-replacement":
            return rng.integers(d, size=(n, r)), none
        if r == d:
            return np.tile(np.arange(d), (n, 1)), none
        drawn = np.empty((n, r), dtype=np.int64)
        sums = np.cumsum(self.laws_, axis=1)
        for slot in range(r):  # strong, weak, strong ...; what the row already has is drawn again
            law, again = sums[slot % 2], np.arange(n)
            for _ in range(_DRAWS):
                attributes = np.searchsorted(law, rng.random(len(again)) * law[-1], side="right")
                drawn[again, slot] = np.minimum(attributes, d - 1)
                again = again[(drawn[again, :slot] == drawn[again, slot, None]).any(axis=1)]
                if not len(again):
                    break
            else:
                raise ValueError(
                    f"n_observed must be at most the number of attributes with a chance to be drawn; got {r}. Raise alpha or lower n_observed."
                )
        return drawn, none

    def _add(self, tables: dict[str, Floats], drawn: Ints, probability: Floats, values: Floats) -> None:
        if self.normalisers == "design" and np.isnan(values).any():
            raise ValueError(
                "values must all be given with normalisers='design', whose inclusion probabilities know of no refusal; got NaN. "
                "Use normalisers='pairwise'."
            )
        super()._add(tables, drawn, probability, values)

    def _renew_when_due(self) -> None:
        if self.strategy == "adaptive" and self.n_told_ >= self.renew_at_:
            self.laws_ = self._laws()
            self.renew_at_ = max(self.n_told_ + 1, int(self.n_told_ * self.growth))

    def _laws(self) -> Floats:
        """Strong: leverage in the current subspace. Weak: spread. (2, d), each mixed with alpha of uniform."""
        C = self._estimate()
        leverage = np.sum(leading(C, self.n_components) ** 2, axis=1)
        laws = np.stack([leverage, np.sqrt(np.maximum(np.diag(C), 0))])
        laws += np.where(laws.sum(axis=1, keepdims=True) > 0, 0.0, 1.0)
        laws /= np.sqrt(self.costs_)
        uniform = 1 / np.sqrt(self.costs_)
        mixed: Floats = (1 - self.alpha) * laws / laws.sum(axis=1, keepdims=True) + self.alpha * uniform / uniform.sum()
        return mixed

    def _estimate(self) -> Floats:
        if self.normalisers == "pairwise":
            estimate = covariance if self.center else second_moment
            return estimate(self.state_, self.pseudo_count)
        d, r = self.n_features, self.n_observed
        if self.strategy == "uniform":
            return designed_moment(self.state_, self.n_told_, r / d, r * (r - 1) / (d * (d - 1)))
        missed, both_missed = (1 - 1 / d) ** r, (1 - 2 / d) ** r
        return designed_moment(self.state_, self.n_told_, 1 - missed, 1 - 2 * missed + both_missed)

    def _found(self) -> ActiveSubspace:
        C = self._estimate()
        centred = self.center and self.normalisers == "pairwise"
        mean = means(self.state_) if centred else np.zeros(self.n_features)
        return subspace_of(C, mean, leading(C, self.n_components), self.n_told_)


def designed_moment(tables: dict[str, Floats], m: int, single: float, pair: float) -> Floats:
    """Horvitz-Thompson: S_ij / (m pi_ij), S_ii / (m pi_i); unbiased for inclusion probabilities known in advance."""
    moment = tables["S"] / (max(m, 1) * pair)
    np.fill_diagonal(moment, np.diag(tables["S"]) / (max(m, 1) * single))
    return moment
