"""MBEG: the matrix exponentiated gradient with bandit feedback, as published and in a form that can be run."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._random import generator, resumed, state_of
from lacunar.active._acquisition import Acquisition
from lacunar.active._entropy import decompose, project_logs
from lacunar.active._result import ActiveSubspace, leading, subspace_of
from lacunar.active._tables import Floats, Ints, second_moment

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
    budget : int, default=2
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
    output : {"topk", "erm", "sampled", "average"}, default="topk"
        "topk": leading eigenvectors of the averaged W. "sampled": a projection drawn by Algorithm 3, as the theorem
        wants. "erm": PCA of the second moment of all that was told. "average": as "topk" and `weights_` is meant.
    horizon : int or None, default=None
        m, rows planned; needed by "theory" and `options="paper"`.
    options : {"paper"}, default=None
        "paper" is Algorithm 2 as printed: it sets `eta="theory"`, `alpha="theory"`, `lazy=False`, `pairs="half"`, `output="sampled"`,
        and refuses costs.
    costs, random_state : see `ActivePOPCA`
        Both laws that pairs are drawn from are tilted by 1 / sqrt(cost), which the estimate allows for. Equal costs are equation
        (7); Theorem 7 is about these.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Acquisition._parameter_constraints,
        "eta": [StrOptions({"anytime", "theory"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"theory"}), Interval(Real, 0, 1, closed="right")],
        "lazy": ["boolean"],
        "refresh": [Interval(Integral, 1, None, closed="left")],
        "pairs": [StrOptions({"half", "all"})],
        "output": [StrOptions({"topk", "erm", "sampled", "average"})],
        "horizon": [Interval(Integral, 1, None, closed="left"), None],
        "options": [StrOptions({"paper"}), None],
    }

    def __init__(
        self,
        n_features: int,
        n_components: int = 2,
        budget: int = 2,
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
        self.budget = budget
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

    def _how(self, name: str) -> Any:
        """A parameter, as printed or as it is."""
        return _PRINTED[name] if self.options == "paper" else getattr(self, name)

    def _check(self) -> None:
        if self.budget % 2:
            raise ValueError(
                f"budget must be even: MBEG draws pairs; got {self.budget}. Use {self.budget - 1}, or ActivePOPCA for any."
            )
        if "theory" in (self._how("eta"), self._how("alpha")) and self.horizon is None:
            raise ValueError("horizon must be the number of rows planned for 'theory'; got None. Pass horizon=m.")
        if self.options == "paper" and self.costs is not None:
            raise ValueError("costs must be None as printed; got others. Leave out options='paper'.")

    def _begin(self) -> None:
        d, k = self.n_features, self.n_components
        rng = resumed(self.rng_)
        self.output_rng_ = state_of(generator(int(rng.integers(2**31 - 1))))
        self.rng_ = state_of(rng)
        self.share_ = self._share()
        self.W_ = np.eye(d) * (k / d)
        # Literal: log W plus the steps since; lazy: the plain sum of the estimates.
        self.potential_ = np.zeros((d, d)) if self._how("lazy") else np.eye(d) * np.log(k / d)
        self.W_sum_, self.renewed_at_ = np.zeros((d, d)), 0

    def _share(self) -> float:
        if self._how("alpha") != "theory":
            return float(self._how("alpha"))
        wanted = self._theory(self.horizon) * self.n_features**2
        if wanted > 0.5:
            d, r = self.n_features, self.budget
            least = int(np.ceil(2 * d**4 * r * np.log(d) / (d + r)))
            warnings.warn(
                f"alpha = eta d^2 must be at most 1/2; horizon={self.horizon} gives {wanted:.3g}, cut to 1/2: Theorem 7 does "
                f"not hold. It needs horizon >= {least}; or use ActivePOPCA.",
                UserWarning,
                stacklevel=5,
            )
        return min(wanted, 0.5)

    def _theory(self, m: int | None) -> float:
        assert m is not None
        d, r = self.n_features, self.budget
        return float(np.sqrt(r * np.log(d) / (2 * m * (d + r))))

    def _step(self) -> float:
        """eta for the rows told so far."""
        if self._how("eta") == "theory":
            return self._theory(self.horizon)
        if self._how("eta") == "anytime":
            return _ANYTIME * self._theory(max(self.n_told_, 1))
        return float(self._how("eta"))

    def _learned(self) -> list[Floats]:
        return [self.W_, self.potential_, self.W_sum_]

    def _rows_in_force(self) -> int:
        return self.renewed_at_ + self.refresh - self.n_told_ if self._how("lazy") else 1

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
        h = self.budget // 2
        strong, weak = self._laws()
        s = np.where(rng.random((n, h)) < self.share_, _drawn_by(weak, rng, (n, h)), _drawn_by(strong, rng, (n, h)))
        q = _drawn_by(weak, rng, (n, h))
        if self._how("pairs") == "all":
            mixed = (1 - self.share_) * strong + self.share_ * weak
            drawn = np.concatenate([s, q], axis=1)
            one, two = (drawn[:, side] for side in np.triu_indices(self.budget, 1))
            expected = h * (h - 1) * (mixed[one] * mixed[two] + weak[one] * weak[two])
            return drawn, expected + h * h * (mixed[one] * weak[two] + weak[one] * mixed[two])
        swap = rng.random((n, h)) < 0.5
        s, q = np.where(swap, q, s), np.where(swap, s, q)
        once = (strong[s] * weak[q] + weak[s] * strong[q]) / 2
        return np.stack([s, q], axis=2).reshape(n, -1), (1 - self.share_) * once + self.share_ * weak[s] * weak[q]

    def _learn(self, drawn: Ints, probability: Floats, values: Floats) -> None:
        """Equation (8), averaged over the pairs of a row, or the sum over all pairs by what is expected: O(r^2) a row."""
        r = drawn.shape[1]
        one, two = np.triu_indices(r, 1) if self._how("pairs") == "all" else (np.arange(0, r, 2), np.arange(1, r, 2))
        products = values[:, one] * values[:, two]
        told = ~np.isnan(products)
        share = (len(one) if self._how("pairs") == "all" else 0.5) / np.maximum(told.sum(axis=1, keepdims=True), 1)
        part = np.where(told, products, 0.0) * share / probability
        if not self._how("lazy"):
            self.n_told_ += 1  # the step of row i is that of i rows
            part = part * self._step()
            self.n_told_ -= 1
        np.add.at(self.potential_, (drawn[:, one], drawn[:, two]), part)
        np.add.at(self.potential_, (drawn[:, two], drawn[:, one]), part)

    def _sums(self) -> list[Floats]:
        return [*super()._sums(), self.potential_]

    def _told(self) -> None:
        if self._rows_in_force() <= 0 or not self._how("lazy"):
            self._renew()

    def _renew(self) -> None:
        """Equation (6), in logarithms throughout: O(d^3)."""
        self.W_sum_ = self.W_sum_ + (self.n_told_ - self.renewed_at_) * self.W_
        self.renewed_at_ = self.n_told_
        logs, V = np.linalg.eigh(self._step() * self.potential_ if self._how("lazy") else self.potential_)
        logs = project_logs(logs, self.n_components)
        self.W_ = (V * np.exp(logs)) @ V.T
        if not self._how("lazy"):
            self.potential_ = (V * logs) @ V.T

    def result(self) -> ActiveSubspace:
        """The subspace found so far, by `output`; `weights_` is the averaged W. The same at every call. O(d^3).

        Returns
        -------
        result : ActiveSubspace
            A copy: what is told later does not change it.

        Raises
        ------
        ValueError
            When nothing was told.
        """
        if not getattr(self, "n_told_", 0):
            raise ValueError("result() needs rows; got none told. Call run(), or ask() and tell(), first.")
        k, C = self.n_components, second_moment(self.tables_)
        average = (self.W_sum_ + (self.n_told_ - self.renewed_at_) * self.W_) / self.n_told_
        if self._how("output") == "erm":
            basis = leading(C, k)
        elif self._how("output") == "sampled":
            lam, V = np.linalg.eigh(average)
            terms = decompose(np.clip(lam, 0, 1) * (k / np.clip(lam, 0, 1).sum()), k)
            chosen = resumed(self.output_rng_).choice(len(terms), p=[beta for beta, _ in terms])
            basis = V[:, terms[chosen][1]]
        else:
            basis = leading(average, k)
        return subspace_of(C, np.zeros(self.n_features), basis, self.n_told_, average)


def _drawn_by(law: Floats, rng: np.random.Generator, shape: tuple[int, int]) -> Ints:
    """Attributes of a law (d,), with replacement. O(log d) each."""
    sums = np.cumsum(law)
    made: Ints = np.minimum(np.searchsorted(sums, rng.random(shape) * sums[-1], side="right"), len(law) - 1)
    return made
