"""`MBEG`: the matrix exponentiated gradient with bandit feedback, in a form that needs no number of rows in advance."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._random import generator_at, state_of
from lacunar._typing import Floats
from lacunar.active.acquisition import Acquisition, ActiveSubspace, Ints, leading, second_moment, subspace_of
from lacunar.observed.rules import COUNT, Rule, floats

_ANYTIME = 10.0  # times the step of the theorem for the rows so far


class MBEG(Acquisition):
    """Matrix Bandit Exponentiated Gradient: pairs drawn by a weight matrix that learns.

    Algorithm 2 of the paper, changed where it can be without losing the unbiased estimate (8); as
    printed, with the bound of Theorem 7, it is `lacunar.papers.subspace.PrintedMBEG`. No theorem
    covers the longer steps of the default. To find a subspace call `ActivePOPCA`, which misses
    several times less at the same price; if it is MBEG, then with `pairs="all"` from four
    attributes a row on.

    Parameters
    ----------
    n_features, n_components : int
        d and k; k defaults to 2.
    n_observed : int, default=2
        r, even: r / 2 pairs of attributes a row, drawn with replacement, so that a request may have
        fewer attributes.
    pairs : {"half", "all"}, default="half"
        "half": the r / 2 pairs that were drawn, as in the paper. "all": the r (r - 1) / 2 pairs of
        the r attributes, each divided by how often it is expected (Hansen and Hurwitz), equally
        unbiased and less noisy for r > 2.
    eta : "anytime" or float, default="anytime"
        Step. "anytime" is ten times sqrt(r log d / (2 m (d + r))), the step of the theorem, for the
        m rows so far.
    alpha : float in (0, 1], default=0.3
        Share of uniform pairs.
    refresh : int, default=64
        Rows between renewals of W, the projection of exp(eta sum of C_i): dual averaging. The
        estimate divides by the probability that was used: no bias.
    costs : array-like of shape (d,) or None, default=None
        Cost of looking at each attribute; `spent_` adds up what was paid. Both laws that pairs are
        drawn from are tilted by 1 / sqrt(cost), which the estimate allows for. Equal costs are
        equation (7); Theorem 7 is about these.
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
    Second moments: nothing is centred. The result are the leading eigenvectors of the average of W,
    which is `weights_` of the result. A pair with a refused attribute is left out, the row's
    estimate being the mean of its other pairs. O(r + d^3 / refresh) a row. Source: Gonen,
    Rosenbaum, Eldar and Shalev-Shwartz, "Subspace Learning with Partial Information", Algorithm 2,
    Theorem 7.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.active import MBEG
    >>> rng = np.random.default_rng(0)
    >>> def oracle(indices):
    ...     return (rng.choice([-1.0, 1.0]) * np.array([0.6, 0.8, 0.0, 0.0]))[indices]
    >>> np.round(MBEG(4, 1, random_state=0).run(oracle, 2000).result().components_, 1) + 0.0
    array([[0.6, 0.8, 0. , 0. ]])
    """

    _written: ClassVar[tuple[str, ...]] = (*Acquisition._written, "potential_")
    _schema: ClassVar[dict[str, Rule]] = {
        **Acquisition._schema,
        "renewed_at_": COUNT,
        **dict.fromkeys(("W_", "potential_", "W_sum_"), floats("attributes", "attributes")),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Acquisition._parameter_constraints,
        "pairs": [StrOptions({"half", "all"})],
        "eta": [StrOptions({"anytime"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, 1, closed="right")],
        "refresh": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_features: int,
        n_components: int = 2,
        n_observed: int = 2,
        *,
        pairs: Literal["half", "all"] = "half",
        eta: float | Literal["anytime"] = "anytime",
        alpha: float = 0.3,
        refresh: int = 64,
        costs: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.n_components = n_components
        self.n_observed = n_observed
        self.pairs = pairs
        self.eta = eta
        self.alpha = alpha
        self.refresh = refresh
        self.costs = costs
        self.random_state = random_state

    def _check(self) -> None:
        if self.n_observed % 2:
            raise ValueError(
                f"n_observed must be even: MBEG draws pairs; got {self.n_observed}. Use {self.n_observed - 1}, or ActivePOPCA for any."
            )

    def _begin(self) -> None:
        d, k = self.n_features, self.n_components
        rng = generator_at(self.rng_)
        rng.integers(2**31 - 1)  # what a draw of the result took: answers to the same random_state stay
        self.rng_ = state_of(rng)
        self.W_, self.potential_ = np.eye(d) * (k / d), np.zeros((d, d))  # the second is the sum of the estimates
        self.W_sum_, self.renewed_at_ = np.zeros((d, d)), 0

    def _step(self) -> float:
        """eta for the rows told so far."""
        if self.eta != "anytime":
            return float(self.eta)
        d, r = self.n_features, self.n_observed
        return _ANYTIME * float(np.sqrt(r * np.log(d) / (2 * max(self.n_told_, 1) * (d + r))))

    def _rows_in_force(self) -> int:
        return self.renewed_at_ + self.refresh - self.n_told_

    def _laws(self) -> tuple[Floats, Floats]:
        """Strong and weak law (d,) of an attribute: diag(W) / k and uniform, tilted by 1 / sqrt(cost)."""
        tilt = 1 / np.sqrt(self.costs_)
        weight = np.maximum(np.diag(self.W_), 0) * tilt
        return weight / weight.sum(), tilt / tilt.sum()

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
        """Attributes (n, r) of pairs of equation (7), with probabilities (n, r / 2) of the pairs.

        Or with how often each of the r (r - 1) / 2 pairs is expected among all ordered pairs of a row, its h = r / 2 strong draws of
        the law f and as many weak ones of the law u: h (h - 1) f_s f_q + h h (f_s u_q + u_s f_q) + h (h - 1) u_s u_q.
        """
        h, share, laws = self.n_observed // 2, float(self.alpha), self._laws()
        s, q = draw_pairs(laws, share, rng, (n, h))
        if self.pairs == "half":
            return turn_pairs(s, q, laws, share, rng)
        strong, weak = laws
        mixed = (1 - share) * strong + share * weak
        drawn = np.concatenate([s, q], axis=1)
        one, two = (drawn[:, side] for side in np.triu_indices(self.n_observed, 1))
        expected = h * (h - 1) * (mixed[one] * mixed[two] + weak[one] * weak[two])
        return drawn, expected + h * h * (mixed[one] * weak[two] + weak[one] * mixed[two])

    def _tables(self) -> dict[str, Floats]:
        return {**self.state_, "potential": self.potential_}

    def _add(self, tables: dict[str, Floats], drawn: Ints, probability: Floats, values: Floats) -> None:
        add_estimates(tables["potential"], drawn, probability, values, self.pairs)
        super()._add(tables, drawn, probability, values)

    def _renew_when_due(self) -> None:
        if self._rows_in_force() <= 0:
            self._renew()

    def _renew(self) -> None:
        """Equation (6) of all estimates so far, in logarithms throughout: O(d^3)."""
        self.W_sum_ = self.W_sum_ + (self.n_told_ - self.renewed_at_) * self.W_
        self.renewed_at_ = self.n_told_
        logs, V = np.linalg.eigh(self._step() * self.potential_)
        self.W_ = (V * np.exp(project_logs(logs, self.n_components))) @ V.T

    def _found(self) -> ActiveSubspace:
        average = (self.W_sum_ + (self.n_told_ - self.renewed_at_) * self.W_) / self.n_told_
        C, mean = second_moment(self.state_), np.zeros(self.n_features)
        return subspace_of(C, mean, leading(average, self.n_components), self.n_told_, average)


def draw_pairs(
    laws: tuple[Floats, Floats], share: float, rng: np.random.Generator, shape: tuple[int, int]
) -> tuple[Ints, Ints]:
    """Two attributes each of pairs of this shape: of the strong law (of the weak one for a `share`), and of the weak law."""
    strong, weak = laws
    s = np.where(rng.random(shape) < share, _drawn_by(weak, rng, shape), _drawn_by(strong, rng, shape))
    return s, _drawn_by(weak, rng, shape)


def turn_pairs(
    s: Ints, q: Ints, laws: tuple[Floats, Floats], share: float, rng: np.random.Generator
) -> tuple[Ints, Floats]:
    """Pairs (n, h), turned with probability 1/2, as attributes (n, 2 h), and the probabilities (n, h) that equation (7) gives them."""
    strong, weak = laws
    turned = rng.random(s.shape) < 0.5
    s, q = np.where(turned, q, s), np.where(turned, s, q)
    once = (strong[s] * weak[q] + weak[s] * strong[q]) / 2
    return np.stack([s, q], axis=2).reshape(len(s), -1), (1 - share) * once + share * weak[s] * weak[q]


def add_estimates(
    total: Floats, drawn: Ints, probability: Floats, values: Floats, pairs: str, step: float = 1.0
) -> None:
    """Add `step` times equation (8) of rows to a total (d, d): attributes (n, r) and their values, NaN where refused. O(r^2) a row.

    The mean over the "half" pairs of a row by their probabilities, or the sum over "all" by how often they are expected.
    """
    r = drawn.shape[1]
    one, two = np.triu_indices(r, 1) if pairs == "all" else (np.arange(0, r, 2), np.arange(1, r, 2))
    products = values[:, one] * values[:, two]
    seen = ~np.isnan(products)
    share = (len(one) if pairs == "all" else 0.5) / np.maximum(seen.sum(axis=1, keepdims=True), 1)
    part = np.where(seen, products, 0.0) * share / probability * step
    np.add.at(total, (drawn[:, one], drawn[:, two]), part)
    np.add.at(total, (drawn[:, two], drawn[:, one]), part)


def _drawn_by(law: Floats, rng: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Attributes of a law (d,), with replacement. O(log d) each."""
    sums = np.cumsum(law)
    drawn: Ints = np.minimum(np.searchsorted(sums, rng.random(shape) * sums[-1], side="right"), len(law) - 1)
    return drawn


def project_logs(logs: Floats, k: int) -> Floats:
    """Logs of the eigenvalues min(c mu, 1) that sum to k: the projection onto {0 <= lam <= 1, tr = k}, from log mu (d,).

    The t largest are capped, t the smallest with c_t mu_{t+1} <= 1, c_t = (k - t) / sum of the rest. O(d log d), no
    overflow for any size of `logs`. Source: Warmuth and Kuzmin (2008), Tsuda et al. (2005); Algorithm 2 of the paper.
    """
    if k >= len(logs):
        return np.zeros_like(logs)
    ordered = np.sort(logs)[::-1]
    tails = np.logaddexp.accumulate(ordered[::-1])[::-1]
    scales = np.log(k - np.arange(k)) - tails[:k]
    capped = int(np.argmax(scales + ordered[:k] <= 1e-12))  # true for some t <= k - 1: the last has (k - t) = 1
    projected: Floats = np.minimum(scales[capped] + logs, 0.0)
    return projected
