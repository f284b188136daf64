"""`ClassGaussians`: the rows of every class as a Gaussian, and what measuring a missing entry would tell of the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lacunar._products import row_product
from lacunar._random import generator
from lacunar._typing import Bools, Floats, Ints
from lacunar.lowrank.gaussian import Gaussian, check_prices, conditionals, fit_gaussian
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns, scaled_rows
from lacunar.observed.door import TakesMissing
from lacunar.observed.rules import COLUMNS, Array, Number, Rule, floats

_MAX_ITER, _TOL = 60, 1e-3  # of EM
_ENTRIES_JUDGED = 20_000  # of rows that choose between covariances
_FEWEST_ADDED = 0.4  # rows of independent columns
_NODES = 10  # of a Gauss-Hermite rule for the expectation over one entry
_LEAST = 1e-12  # nats, below which a value is rounding
_COMPLETIONS = 16  # of a row by the entries that a plan buys
_NUMBERS = 2**21  # held at once


class Covariances(NamedTuple):
    """How far covariances are shrunk, in rows' worth of what is added.

    `to_independent` is a share of the rows: independent columns are added to the covariance that all classes share.
    `to_shared` is a number of rows: that covariance is added to the one of each class; infinite where all share it.
    """

    to_independent: float
    to_shared: float


# Of two that do equally well the earlier one is taken: the first is for small or awkward tables.
CANDIDATES = (
    Covariances(0.15, np.inf),
    Covariances(0.01, np.inf),
    Covariances(0.01, 100.0),
    Covariances(0.01, 20.0),
)


class ClassMixture(NamedTuple):
    """Log probabilities of the classes of m rows, and of their d entries the mean and variance given each class."""

    log_chances: Floats  # (m, c)
    mean: Floats  # (m, d, c)
    variance: Floats  # (m, d, c); 0 where the entry is known

    def take(self, rows: Any) -> ClassMixture:
        return ClassMixture(*(array[rows] for array in self))


class ClassGaussians(TakesMissing):
    """Linear or quadratic discriminants of rows with missing entries: a Gaussian a class, by EM, its covariance shrunk to one that all classes share.

    How far is chosen by the log loss of rows that are left out, with further entries hidden.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **COLUMNS,
        "log_shares_": floats("classes", high=0),
        "class_means_": floats("classes", "d"),
        "class_covariances_": Array("f", ("covariances", "d", "d")),
        "to_shared_": Number(low=0, finite=False),
    }

    def fit(self, X: Observed, labels: Ints) -> Self:
        """Learn from rows (n, d) and the numbers (n,) of their classes."""
        self.n_features_in_ = X.shape[1]
        columns = fit_columns(X, np.ones(X.shape[0]), standardize=True)
        self.mean_, self.scale_, self.observed_columns_ = columns[:3]
        Z = scale_columns(X, columns).to_dense()
        shares = np.bincount(labels) + 0.5
        self.log_shares_ = np.log(shares / shares.sum())
        to_independent, self.to_shared_ = _chosen(Z, labels, self.log_shares_)
        gaussians = _of_classes(Z, labels, _shared(Z, labels, len(shares), to_independent), self.to_shared_)
        self.class_means_ = np.stack([gaussian.mean for gaussian in gaussians])
        of_one = gaussians[:1] if np.isinf(self.to_shared_) else gaussians
        self.class_covariances_ = np.stack([gaussian.covariance for gaussian in of_one])
        return self

    def gaussians(self) -> list[Gaussian]:
        """The classes' means (d,) and covariances (d, d) of standardised columns."""
        shape = len(self.class_means_), *self.class_covariances_.shape[1:]
        of_classes = np.broadcast_to(self.class_covariances_, shape)
        return [Gaussian(*parts) for parts in zip(self.class_means_, of_classes, strict=True)]

    def log_proba(self, X: Any) -> Floats:
        """Log probabilities of the classes (m, c)."""
        return _mixture(self._standardised(X), self.gaussians(), self.log_shares_).log_chances

    def value_of_measuring(self, X: Any, *, cost: Any = None, n: int = 1) -> Floats:
        """Expected information about the class, in nats, by measuring an entry, over its price: (m, d), 0 where it is known.

        `n` as in `GaussianRegressor.value_of_measuring`: of the plan's first n - 1 columns the values at the time they were bought.
        """
        price, Z = check_prices(cost, self.n_features_in_), self._standardised(X)
        rows = max(_NUMBERS // (Z.shape[1] * len(self.class_means_) * (_COMPLETIONS if n > 1 else 1)), 1)
        blocks = [self._planned(Z[first : first + rows], price, n) for first in range(0, len(Z), rows)]
        return np.vstack(blocks) if blocks else np.zeros(Z.shape)

    def _standardised(self, X: Any) -> Floats:
        return scaled_rows(self, X, ColumnScale(self.mean_, self.scale_, self.observed_columns_)).to_dense()

    def _planned(self, Z: Floats, price: Floats, n: int) -> Floats:
        """Values of rows (m, d) over prices, after the first n - 1 entries of a greedy plan, whose results are drawn."""
        m, d = Z.shape
        values, bought, copies = np.zeros((m, d)), np.zeros((m, d), dtype=bool), 1
        gaussians = self.gaussians()
        rng = generator(0)  # the same draws for every row: an answer must not depend on the rows beside it
        for n_left in range(min(n, d) - 1, -1, -1):
            mixture = _mixture(Z, gaussians, self.log_shares_)
            gains = information(mixture, np.isnan(Z)).reshape(copies, m, d).mean(axis=0) / price
            values = np.where(bought, values, gains)
            if not n_left:
                break
            best = np.where(bought, -1.0, gains).argmax(axis=1)
            bought[np.arange(m), best] = True
            if copies == 1:
                copies, Z = _COMPLETIONS, np.tile(Z, (_COMPLETIONS, 1))
                mixture = mixture.take(np.tile(np.arange(m), copies))
            draws = np.repeat(rng.random(copies), m), np.repeat(rng.standard_normal(copies), m)
            _complete(Z, np.tile(best, copies), mixture, *draws)
        return values


def _complete(Z: Floats, columns: Ints, mixture: ClassMixture, share: Floats, deviate: Floats) -> None:
    """Fill an entry of every row by what is drawn of its mixture: a class by a share, its value by a standard normal deviate."""
    rows = np.arange(len(Z))
    up_to = np.cumsum(np.exp(mixture.log_chances), axis=1)
    label = np.minimum((share[:, None] > up_to).sum(axis=1), up_to.shape[1] - 1)
    mean, variance = mixture.mean[rows, columns, label], mixture.variance[rows, columns, label]
    missing = np.isnan(Z[rows, columns])
    Z[rows[missing], columns[missing]] = (mean + deviate * np.sqrt(variance))[missing]


# -- learning ---------------------------------------------------------------------------------------------------------


def _of_classes(Z: Floats, labels: Ints, shared: list[Gaussian], rows: float) -> list[Gaussian]:
    """A Gaussian for every class, of standardised rows (n, d): its own covariance, with so many rows of the shared one added."""
    if np.isinf(rows):
        return shared
    own = []
    for k, model in enumerate(shared):
        of_class = Z[labels == k]
        learned = fit_gaussian(of_class, model, rows, _MAX_ITER, _TOL, model.covariance)[0] if len(of_class) else model
        own.append(learned)
    return own


def _shared(Z: Floats, labels: Ints, n_classes: int, share: float) -> list[Gaussian]:
    """Gaussians of one covariance: the joint Gaussian of columns and indicators of the classes, given the indicators.

    Independent rows, as a share of the rows, are added to the joint covariance.
    """
    d, shrinkage = Z.shape[1], max(share * len(Z), _FEWEST_ADDED)
    indicators = np.eye(n_classes)[:, 1:]
    of_rows = indicators[labels]
    scale = np.where((of_rows != of_rows[:1]).any(axis=0), of_rows.std(axis=0), 1.0)
    indicators = (indicators - of_rows.mean(axis=0)) / scale
    joint = np.column_stack([Z, indicators[labels]])
    start = Gaussian(np.zeros(joint.shape[1]), np.eye(joint.shape[1]))
    mean, covariance = fit_gaussian(joint, start, shrinkage, _MAX_ITER, _TOL)[0]
    by_class = np.linalg.solve(covariance[d:, d:], covariance[d:, :d])
    shared = covariance[:d, :d] - covariance[:d, d:] @ by_class
    shared = (shared + shared.T) / 2
    return [Gaussian(mean[:d] + (row - mean[d:]) @ by_class, shared) for row in indicators]


def _chosen(Z: Floats, labels: Ints, log_shares: Floats) -> Covariances:
    """The candidate whose Gaussians of one half of the rows give the other half, with further entries hidden, the least log loss."""
    rng = generator(0)
    order = rng.permutation(len(Z))[: _ENTRIES_JUDGED // Z.shape[1]]
    order = order[np.argsort(labels[order], kind="stable")]
    Z, labels = Z[order], labels[order]
    hidden = np.where(rng.random(Z.shape) < rng.random((len(Z), 1)), np.nan, Z)
    halves = np.arange(len(Z)) % 2
    losses = [
        _losses(Z[halves != half], labels[halves != half], hidden[halves == half], labels[halves == half], log_shares)
        for half in (0, 1)
        if len(Z) > 3
    ]
    return CANDIDATES[int(np.sum(losses, axis=0).argmin())] if losses else CANDIDATES[0]


def _losses(Z: Floats, labels: Ints, test: Floats, truth: Ints, log_shares: Floats) -> Floats:
    """Log losses of test rows, summed, by every candidate (candidates,)."""
    losses, shares = np.zeros(len(CANDIDATES)), {candidate.to_independent for candidate in CANDIDATES}
    shared = {share: _shared(Z, labels, len(log_shares), share) for share in shares}
    for number, candidate in enumerate(CANDIDATES):
        gaussians = _of_classes(Z, labels, shared[candidate.to_independent], candidate.to_shared)
        logs = _mixture(test, gaussians, log_shares).log_chances
        losses[number] = -logs[np.arange(len(truth)), truth].sum()
    return losses


# -- answers ----------------------------------------------------------------------------------------------------------


def _mixture(Z: Floats, gaussians: list[Gaussian], log_shares: Floats) -> ClassMixture:
    """Chances of the classes and, given each, means and variances of missing entries, of standardised rows (m, d)."""
    (m, d), c, missing = Z.shape, len(gaussians), np.isnan(Z)
    logs, mean, variance = np.tile(log_shares, (m, 1)), np.zeros((m, d, c)), np.zeros((m, d, c))
    for k, model in enumerate(gaussians):
        deviation = np.where(missing, 0.0, Z - model.mean)
        log_volume = np.full(m, np.linalg.slogdet(model.covariance)[1])
        for group in conditionals(Z, model):
            rows, columns = group.rows[:, None], group.columns[group.own]
            mean[rows, columns, k] = group.mean
            variance[rows, columns, k] = np.einsum("njj->nj", group.covariance)[group.own]
            deviation[rows, columns] = group.mean - model.mean[columns]
            log_volume[group.rows] -= np.linalg.slogdet(group.covariance)[1][group.own]
        # The quadratic form of the observed entries is that of the whole row, completed by its conditional mean.
        distance = (row_product(deviation, np.linalg.inv(model.covariance)) * deviation).sum(axis=1)
        logs[:, k] -= 0.5 * (distance + log_volume)
    logs -= logs.max(axis=1, keepdims=True)
    return ClassMixture(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)), mean, variance)


def information(mixture: ClassMixture, missing: Bools) -> Floats:
    """Mutual information (m, d) of the class and each missing entry, in nats; 0 where the entry is known."""
    values, (rows, columns) = np.zeros(missing.shape), np.nonzero(missing)
    parts = [_entry_information(*part) for part in _entries(mixture, rows, columns)]
    values[rows, columns] = np.concatenate([np.zeros(0), *parts])
    return values


def _entries(mixture: ClassMixture, rows: Ints, columns: Ints) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Log chances, means and standard deviations (entries, c), as many entries at a time as memory allows."""
    c = mixture.log_chances.shape[1]
    step = max(_NUMBERS // (_NODES * c * c), 1)
    for first in range(0, len(rows), step):
        row, column = rows[first : first + step], columns[first : first + step]
        yield mixture.log_chances[row], mixture.mean[row, column], np.sqrt(mixture.variance[row, column])


def _entry_information(log_chances: Floats, mean: Floats, deviation: Floats) -> Floats:
    """E log p(x | class) / p(x) (entries,) over mixtures (entries, c) of one number, by Gauss and Hermite's rule for every component."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    deviation = np.maximum(deviation, 1e-9)
    at = mean[:, :, None] + deviation[:, :, None] * nodes  # (entries, c, nodes)
    log_weight = log_chances - np.log(deviation)
    exponent = (at[:, :, :, None] - mean[:, None, None, :]) / deviation[:, None, None, :]
    exponent *= exponent
    exponent *= -0.5
    exponent += log_weight[:, None, None, :]
    mixed = np.log(np.maximum(np.exp(exponent, out=exponent).sum(axis=3), 1e-300))
    own = -0.5 * nodes**2 - np.log(deviation)[:, :, None]
    gains = np.einsum("nc,ncq,q->n", np.exp(log_chances), own - mixed, weights / weights.sum())
    return np.where(gains > _LEAST, gains, 0.0)
