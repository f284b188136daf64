"""Directions that predict labels, added to a subspace where they lower the error on held-out labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.lowrank.drawn import DrawnRows, folds_of
from lacunar.lowrank.em import Fit, Progress, fit_em
from lacunar.lowrank.hidden import RELAX
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.parts import RowParts
from lacunar.lowrank.regression import Labelled, latent_labelled
from lacunar.lowrank.ridge import Alpha, LabelFit, fit_labels
from lacunar.observed import Observed
from lacunar.observed.memory import mark_private

LABEL_WEIGHT = 0.1  # lambda_1 of (5) with which labels choose directions, in standard deviations of y
LABEL_STEPS = 10  # of EM at most, from the subspace without labels
_FOLDS = 5
_SURE = 0.5  # standard errors by which labels gain
_FEW = 20  # labelled rows, from which on there are folds


class Labels(NamedTuple):
    """How labels are fitted: ridge, their standard deviations (targets,), and threads."""

    alpha: Alpha
    scale: Floats
    n_jobs: int | None

    @property
    def weights(self) -> Floats:
        """Factors (targets,) of labels that are further columns."""
        weights: Floats = 1 / (np.sqrt(LABEL_WEIGHT) * self.scale)
        return weights

    def fit(self, rows: RowParts, model: LowRankGaussian) -> LabelFit:
        """Label weights on latent coordinates of parts (rows, labels)."""
        fit = fit_labels(rows.map(latent_labelled, model, self.n_jobs), self.alpha, 0.0)
        return fit._replace(intercept=np.nan_to_num(fit.intercept))


# -- a fit with labels ------------------------------------------------------------------------------------------------


def append_labels(part: Labelled, weights: Floats) -> Observed:
    """Rows with the known labels, times `weights` (targets,), as further columns: (5) is the factorisation of that
    table.
    """
    rows, y = part
    known = ~np.isnan(y)
    counts = known.sum(axis=1)
    indptr = rows.indptr + np.append(0, np.cumsum(counts))
    at_rows, targets = np.nonzero(known)
    first = indptr[1:] - counts  # where the labels of a row begin: behind its entries
    places = first[at_rows] + np.arange(len(at_rows)) - (np.cumsum(counts) - counts)[at_rows]
    entries = np.ones(indptr[-1], dtype=bool)
    entries[places] = False
    indices, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    indices[entries], values[entries] = rows.indices, rows.values
    indices[places], values[places] = rows.shape[1] + targets, (weights * y)[known]
    shape = (len(y), rows.shape[1] + y.shape[1])
    return Observed._trusted(mark_private(indptr), mark_private(indices), mark_private(values), shape)


def with_label_columns(fit: Fit, weights: Floats) -> LowRankGaussian:
    """The model that EM over `append_labels` begins with: the labels of `fit`, times `weights` (targets,), are further
    columns.
    """
    model, k, targets = fit.model, len(fit.model.components), len(weights)
    labels = np.zeros((targets, k)) if fit.weights is None else weights[:, None] * fit.weights.T[:targets]
    basis, mean = np.vstack([model.basis, labels]), np.concatenate([model.mean, np.zeros(targets)])
    return LowRankGaussian(mean, basis.T, model.ridge, model.noise)


def without_label_columns(model: LowRankGaussian, targets: int) -> LowRankGaussian:
    """The model without its last columns, which are labels."""
    D = len(model.mean) - targets
    return model._replace(mean=model.mean[:D], components=np.ascontiguousarray(model.basis[:D]).T)


def supervised_start(rows: RowParts, plain: Fit, labels: Labels) -> LowRankGaussian:
    """A model with label columns: the `plain` one and, for each target, one more direction, along which entries vary
    with the residuals of that target.
    """
    fit = labels.fit(rows, plain.model)
    start = with_label_columns(plain._replace(weights=fit.weights), labels.weights)
    products, squares, size, n = rows.total(_residual_products, plain.model, fit, labels.n_jobs)
    deviation = np.sqrt(size / np.maximum(n, 1))  # of residuals (targets,)
    slopes = products / np.maximum(squares, 1e-300) * deviation
    further = np.vstack([slopes, np.diag(labels.weights * deviation)])
    k = min(len(deviation), len(plain.model.components), len(slopes) - len(plain.model.components))
    left, sizes, _ = np.linalg.svd(further, full_matrices=False)
    basis = np.ascontiguousarray(np.column_stack([start.basis, (left * sizes)[:, :k]]))
    return start._replace(components=basis.T)


def _residual_products(
    part: Labelled, model: LowRankGaussian, fit: LabelFit, n_jobs: int | None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Sums by column and target (D, targets) of residuals of entries times those of labels, and of the squares of the
    latter; and these, and numbers, by target.
    """
    rows, y = part[:2]
    latent, _ = latent_labelled((rows, y), model, n_jobs)
    residual = np.nan_to_num(y - latent @ fit.weights - fit.intercept)
    at, columns = rows.row_numbers, rows.indices
    entries = rows.values - model.mean[columns] - np.einsum("ek,ek->e", latent[at], model.basis[columns])
    D = rows.shape[1]
    table = sp.csr_array((entries, columns, rows.indptr), shape=rows.shape)
    seen = sp.csr_array((np.ones(rows.nnz), columns, rows.indptr), shape=rows.shape)
    squares = residual**2
    products, sizes = (np.asarray(m.T @ r).reshape(D, -1) for m, r in ((table, residual), (seen, squares)))
    return products, sizes, squares.sum(axis=0), np.sum(~np.isnan(y), axis=0, dtype=np.float64)


def fit_supervised(
    rows: RowParts, start: LowRankGaussian, labels: Labels, progress: Progress | None = None, **options: Any
) -> tuple[Fit, LowRankGaussian]:
    """EM over rows whose labels are further columns: the model of the columns alone, and the one with labels."""
    tables = rows.map(append_labels, labels.weights)
    rng = generator(0)  # a start is there: nothing is drawn
    fit = fit_em(
        tables, len(start.components), rng=rng, mean=True, start=start, relax=RELAX,
        n_jobs=labels.n_jobs, progress=progress, **options,
    )  # fmt: skip
    return fit._replace(model=without_label_columns(fit.model, len(labels.scale))), fit.model


# -- what held-out labels say -----------------------------------------------------------------------------------------


def labels_gain(sample: RowParts, plain: Fit, labels: Labels, **options: Any) -> bool:
    """Whether a supervised fit to `DrawnRows` predicts labels of held-out rows better than the `plain` one, by more
    than half a standard error.
    """
    if has_few_labels(sample):
        return False
    sums = np.zeros(3)
    for fold in range(_FOLDS):
        train = sample.map(without_fold, fold, _FOLDS)
        start = supervised_start(train, plain, labels)
        models = [plain.model, fit_supervised(train, start, labels, **options)[0].model]
        fits = [labels.fit(train, model) for model in models]
        sums += sample.total(_paired, fold, models, fits, labels)[0]
    n, loss, square = sums
    return bool(loss < 0 and loss**2 > _SURE**2 * max(square - loss**2 / n, 0.0))


def has_few_labels(rows: RowParts) -> bool:
    """Whether so few rows of parts have a label that none say what labels gain."""
    return bool(rows.total(_labelled_rows)[0] < _FEW)


def _labelled_rows(part: Labelled | DrawnRows) -> tuple[int]:
    return (int((~np.isnan(part[1])).any(axis=1).sum()),)


def without_fold(part: DrawnRows, fold: int, k: int) -> Labelled:
    """Rows, and labels that are NaN in a fold of k."""
    labels = np.where((folds_of(part.keys, k) == fold)[:, None], np.nan, part.labels)
    return part.rows, labels


def fold_errors(part: DrawnRows, fold: int, k: int, model: LowRankGaussian, fit: LabelFit, labels: Labels) -> Floats:
    """Squared errors (m,) on the rows of a fold with a label, in units of the labels' variances, summed over targets."""
    mine = np.flatnonzero((folds_of(part.keys, k) == fold) & (~np.isnan(part.labels)).any(axis=1))
    latent, y = latent_labelled((part.rows[mine], part.labels[mine]), model, labels.n_jobs)
    errors: Floats = np.nansum(((y - latent @ fit.weights - fit.intercept) / labels.scale) ** 2, axis=1)
    return errors


def _paired(
    part: DrawnRows, fold: int, models: list[LowRankGaussian], fits: list[LabelFit], labels: Labels
) -> tuple[Floats]:
    """Number of rows, and the sum of differences of errors, second model less first, and of their squares."""
    first, second = (fold_errors(part, fold, _FOLDS, m, f, labels) for m, f in zip(models, fits, strict=True))
    return (np.array([len(first), np.sum(second - first), np.sum((second - first) ** 2)]),)


def _n_columns(part: DrawnRows) -> int:
    return part.rows.shape[1]


def _fold_error(part: DrawnRows, k: int, model: LowRankGaussian, fit: LabelFit, labels: Labels) -> tuple[float]:
    """Sum of the errors on the first fold of k."""
    return (float(fold_errors(part, 0, k, model, fit, labels).sum()),)


class LabelJudge:
    """Decides after every step of EM whether to stop: once held-out labels of a sample are predicted no better."""

    _gain, _patience, _halves = 1e-4, 2, 2

    def __init__(self, sample: RowParts, labels: Labels) -> None:
        self._sample, self._labels = sample, labels
        self._columns = sample.each(_n_columns)[0]
        self._train = sample.map(without_fold, 0, self._halves)
        self._least, self._idle = np.inf, 0
        self.able = not has_few_labels(sample)

    def __call__(self, model: LowRankGaussian) -> bool:
        """Whether to stop at this model, which may have label columns."""
        if not self.able:
            return False
        model = without_label_columns(model, model.components.shape[1] - self._columns)
        fit = self._labels.fit(self._train, model)
        error = float(self._sample.total(_fold_error, self._halves, model, fit, self._labels)[0])
        self._idle = 0 if error < (1 - self._gain) * self._least else self._idle + 1
        self._least = min(self._least, error)
        return self._idle >= self._patience
