"""MBEG: the matrix exponentiated gradient with bandit feedback, as published and in a form that can be run."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._eigen import leading_eigenvectors
from lacunar._random import generator, generator_at, state_of
from lacunar.active.acquisition import Acquisition, ActiveSubspace, Floats, Ints, leading, second_moment, subspace_of
from lacunar.observed.rules import COUNT, Number, Rule, floats

_PRINTED = {"eta": "theory", "alpha": "theory", "lazy": False, "pairs": "half", "output": "sampled"}
_ANYTIME = 10.0  # times the step of the theorem for the rows so far


class MBEG(Acquisition):
    """Matrix Bandit Exponentiated Gradient, Algorithm 2 of the paper: pairs drawn by a weight matrix that learns.

    `MBEG(d, k, r, horizon=m, options="paper")` is the algorithm as printed. The defaults change what can be changed without
    losing the unbiased estimate (8).

    Parameters
    ----------
    n_features, n_components : int
        d and k; k defaults to 2.
    n_observed : int, default=2
        r, even: r / 2 pairs of attributes a row, drawn with replacement, so that a request may have fewer attributes.
    pairs : {"half", "all"}, default="half"
        "half": the r / 2 pairs that were drawn, as in the paper. "all": the r (r - 1) / 2 pairs of the r attributes, each divided
        by how often it is expected (Hansen and Hurwitz), equally unbiased and less noisy for r > 2.
    eta : {"anytime", "theory"} or float, default="anytime"
        Step. "theory": sqrt(r log d / (2 m (d + r))), m the `horizon`. "anytime": 10 times that for the rows so far.
    alpha : "theory" or float in (0, 1], default=0.3
        Share of uniform pairs. "theory": eta d^2, at most 1/2 (with a warning when cut: no guarantee then).
    lazy : bool, default=True
        True: W = projection of exp(eta sum of C_i) (dual averaging: the same bound), renewed every `refresh` rows. False:
        equation (6) after every row, an eigendecomposition each.
    refresh : int, default=64
        Rows between renewals of the lazy form. The estimate divides by the probability that was used: no bias.
    output : {"topk", "erm", "sampled"}, default="topk"
        "topk": leading eigenvectors of the averaged W. "sampled": a projection drawn by Algorithm 3, as the theorem
        wants. "erm": PCA of the second moment of all that was told. The average itself is `weights_` of the result.
    horizon : int or None, default=None
        m, rows planned; needed by "theory" and `options="paper"`.
    options : {"paper"}, default=None
        "paper" is Algorithm 2 as printed: it sets `eta="theory"`, `alpha="theory"`, `lazy=False`, `pairs="half"`, `output="sampled"`,
        and refuses costs.
    costs : array-like of shape (d,) or None, default=None
        Cost of looking at each attribute; `spent_` adds up what was paid. Both laws that pairs are drawn from are tilted by 1 / sqrt(cost), which the estimate allows for. Equal costs are equation
        (7); Theorem 7 is about these.
    random_state : int, RandomState or None, default=None

    Notes
    -----
    Second moments: nothing is centred, and the theorem wants |x| <= 1. A pair with a refused attribute is left out, the row's
    estimate being the mean of its other pairs. Literal: O(d^3) a row; lazy: O(r + d^3 / refresh). Theorem 7 asks for
    m >= 2 d^4 r log d / (d + r). `ActivePOPCA` needs fewer rows in every case we measured. Source: Gonen, Rosenbaum, Eldar and
    Shalev-Shwartz, "Subspace Learning with Partial Information", Algorithms 2 and 3, Theorem 7.

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
    _held: ClassVar[dict[str, Rule]] = {
        **Acquisition._held,
        "renewed_at_": COUNT,
        "share_": Number(low=0, high=1),
        **dict.fromkeys(("W_", "potential_", "W_sum_"), floats("attributes", "attributes")),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Acquisition._parameter_constraints,
        "eta": [StrOptions({"anytime", "theory"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"theory"}), Interval(Real, 0, 1, closed="right")],
        "lazy": ["boolean"],
        "refresh": [Interval(Integral, 1, None, closed="left")],
        "pairs": [StrOptions({"half", "all"})],
        "output": [StrOptions({"topk", "erm", "sampled"})],
        "horizon": [Interval(Integral, 1, None, closed="left"), None],
        "options": [StrOptions({"paper"}), None],
    }

    def __init__(
        self,
        n_features: int,
        n_components: int = 2,
        n_observed: int = 2,
        *,
        pairs: str = "half",
        eta: Any = "anytime",
        alpha: Any = 0.3,
        lazy: bool = True,
        refresh: int = 64,
        output: str = "topk",
        horizon: int | None = None,
        options: str | None = None,
        costs: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_features = n_features
        self.n_components = n_components
        self.n_observed = n_observed
        self.pairs = pairs
        self.eta = eta
        self.alpha = alpha
        self.lazy = lazy
        self.refresh = refresh
        self.output = output
        self.horizon = horizon
        self.options = options
        self.costs = costs
        self.random_state = random_state

    def _effective(self, name: str) -> Any:
        """A parameter, as printed or as it is."""
        return _PRINTED[name] if self.options == "paper" else getattr(self, name)

    def _check(self) -> None:
        if self.n_observed % 2:
            raise ValueError(
                f"n_observed must be even: MBEG draws pairs; got {self.n_observed}. Use {self.n_observed - 1}, or ActivePOPCA for any."
            )
        if "theory" in (self._effective("eta"), self._effective("alpha")) and self.horizon is None:
            raise ValueError("horizon must be the number of rows planned for 'theory'; got None. Pass horizon=m.")
        if self.options == "paper" and self.costs is not None:
            raise ValueError("costs must be None as printed; got others. Leave out options='paper'.")

    def _begin(self) -> None:
        d, k = self.n_features, self.n_components
        rng = generator_at(self.rng_)
        self.output_rng_ = state_of(generator(int(rng.integers(2**31 - 1))))
        self.rng_ = state_of(rng)
        self.share_ = self._share()
        self.W_ = np.eye(d) * (k / d)
        # Literal: log W plus the steps since; lazy: the plain sum of the estimates.
        self.potential_ = np.zeros((d, d)) if self._effective("lazy") else np.eye(d) * np.log(k / d)
        self.W_sum_, self.renewed_at_ = np.zeros((d, d)), 0

    def _share(self) -> float:
        if self._effective("alpha") != "theory":
            return float(self._effective("alpha"))
        wanted = self._theory(self.horizon) * self.n_features**2
        if wanted > 0.5:
            d, r = self.n_features, self.n_observed
            least = math.ceil(_least_rows(d, r))
            warnings.warn(
                f"alpha = eta d^2 must be at most 1/2; horizon={self.horizon} gives {wanted:.3g}, cut to 1/2: Theorem 7 does "
                f"not hold. It needs horizon >= {least}; or use ActivePOPCA.",
                UserWarning,
                stacklevel=5,
            )
        return min(wanted, 0.5)

    def _theory(self, m: int | None) -> float:
        assert m is not None
        d, r = self.n_features, self.n_observed
        return float(np.sqrt(r * np.log(d) / (2 * m * (d + r))))

    def _step(self) -> float:
        """eta for the rows told so far."""
        if self._effective("eta") == "theory":
            return self._theory(self.horizon)
        if self._effective("eta") == "anytime":
            return _ANYTIME * self._theory(max(self.n_told_, 1))
        return float(self._effective("eta"))

    def _rows_in_force(self) -> int:
        return self.renewed_at_ + self.refresh - self.n_told_ if self._effective("lazy") else 1

    def _laws(self) -> tuple[Floats, Floats]:
        """Strong and weak law (d,) of an attribute: diag(W) / k and uniform, tilted by 1 / sqrt(cost)."""
        tilt = 1 / np.sqrt(self.costs_)
        weight = np.maximum(np.diag(self.W_), 0) * tilt
        return weight / weight.sum(), tilt / tilt.sum()

    def _draw(self, rng: np.random.Generator, n: int) -> tuple[Ints, Floats]:
        """Attributes (n, r): pairs of equation (7), a mixture: both weak, or one strong and one weak in either order.

        With probabilities (n, r / 2) of the pairs; or with how often each of the r (r - 1) / 2 pairs is expected among all ordered
        pairs of a row, its h = r / 2 strong draws of the law f and as many weak ones of the law u:
        h (h - 1) f_s f_q + h h (f_s u_q + u_s f_q) + h (h - 1) u_s u_q.
        """
        h = self.n_observed // 2
        strong, weak = self._laws()
        s = np.where(rng.random((n, h)) < self.share_, _drawn_by(weak, rng, (n, h)), _drawn_by(strong, rng, (n, h)))
        q = _drawn_by(weak, rng, (n, h))
        if self._effective("pairs") == "all":
            mixed = (1 - self.share_) * strong + self.share_ * weak
            drawn = np.concatenate([s, q], axis=1)
            one, two = (drawn[:, side] for side in np.triu_indices(self.n_observed, 1))
            expected = h * (h - 1) * (mixed[one] * mixed[two] + weak[one] * weak[two])
            return drawn, expected + h * h * (mixed[one] * weak[two] + weak[one] * mixed[two])
        swap = rng.random((n, h)) < 0.5
        s, q = np.where(swap, q, s), np.where(swap, s, q)
        once = (strong[s] * weak[q] + weak[s] * strong[q]) / 2
        return np.stack([s, q], axis=2).reshape(n, -1), (1 - self.share_) * once + self.share_ * weak[s] * weak[q]

    def _learn(self, drawn: Ints, probability: Floats, values: Floats) -> None:
        """Equation (8), averaged over the pairs of a row, or the sum over all pairs by what is expected: O(r^2) a row."""
        r, every = drawn.shape[1], self._effective("pairs") == "all"
        one, two = np.triu_indices(r, 1) if every else (np.arange(0, r, 2), np.arange(1, r, 2))
        products = values[:, one] * values[:, two]
        told = ~np.isnan(products)
        share = (len(one) if every else 0.5) / np.maximum(told.sum(axis=1, keepdims=True), 1)
        part = np.where(told, products, 0.0) * share / probability
        if not self._effective("lazy"):
            self.n_told_ += 1  # the step of row i is that of i rows
            part = part * self._step()
            self.n_told_ -= 1
        np.add.at(self.potential_, (drawn[:, one], drawn[:, two]), part)
        np.add.at(self.potential_, (drawn[:, two], drawn[:, one]), part)

    def _sums(self) -> list[Floats]:
        return [*super()._sums(), self.potential_]

    def _told(self) -> None:
        if self._rows_in_force() <= 0 or not self._effective("lazy"):
            self._renew()

    def _renew(self) -> None:
        """Equation (6), in logarithms throughout: O(d^3)."""
        self.W_sum_ = self.W_sum_ + (self.n_told_ - self.renewed_at_) * self.W_
        self.renewed_at_ = self.n_told_
        logs, V = np.linalg.eigh(self._step() * self.potential_ if self._effective("lazy") else self.potential_)
        logs = project_logs(logs, self.n_components)
        self.W_ = (V * np.exp(logs)) @ V.T
        if not self._effective("lazy"):
            self.potential_ = (V * logs) @ V.T

    def _found(self) -> ActiveSubspace:
        k, C = self.n_components, second_moment(self.state_)
        average = (self.W_sum_ + (self.n_told_ - self.renewed_at_) * self.W_) / self.n_told_
        if self._effective("output") == "erm":
            basis = leading(C, k)
        elif self._effective("output") == "sampled":
            lam, V = (part[..., ::-1] for part in leading_eigenvectors(average))
            terms = decompose(np.clip(lam, 0, 1) * (k / np.clip(lam, 0, 1).sum()), k)
            chosen = generator_at(self.output_rng_).choice(len(terms), p=[beta for beta, _ in terms])
            basis = V[:, terms[chosen][1]]
        else:
            basis = leading(average, k)
        return subspace_of(C, np.zeros(self.n_features), basis, self.n_told_, average)


def _drawn_by(law: Floats, rng: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Attributes of a law (d,), with replacement. O(log d) each."""
    sums = np.cumsum(law)
    made: Ints = np.minimum(np.searchsorted(sums, rng.random(shape) * sums[-1], side="right"), len(law) - 1)
    return made


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


def decompose(lam: Floats, k: int) -> list[tuple[float, Ints]]:
    """Algorithm 3: eigenvalues 0 <= lam <= 1 with sum k as a mixture of at most d sets of k eigenvectors.

    Returns
    -------
    list of (beta, members)
        beta > 0 sum to 1; members (k,) are positions in `lam`. sum of beta over the sets of a position is its lam.
    """
    left, terms = lam / k, []
    total = 1.0
    for _ in range(2 * len(lam)):
        members = np.argsort(-left, kind="stable")[:k]
        rest = np.delete(left, members)
        beta = min(float(left[members].min()) * k, total - k * float(rest.max(initial=0.0)))
        if beta <= 1e-15:  # rounding left only crumbs
            break
        terms.append((beta, members))
        left[members] -= beta / k
        left = np.maximum(left, 0.0)
        total -= beta
        if total <= 1e-12:
            break
    mass = sum(beta for beta, _ in terms)
    return [(beta / mass, members) for beta, members in terms]


def _least_rows(d: int, r: int) -> float:
    return 2 * d**4 * r / (d + r) * math.log(d)
