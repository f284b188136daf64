"""`missingness_report`: whether entries are missing completely at random, what their absence says, and what if they are
worse than they seem.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, mannwhitneyu, ttest_ind
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.utils.validation import check_consistent_length

from lacunar._random import fixed_seed, generator
from lacunar._threads import one_blas_thread
from lacunar._typing import Floats
from lacunar.lowrank import GaussianRegressor
from lacunar.lowrank.gaussian import Gaussian, conditionals, fit_gaussian
from lacunar.observed.door import check_numbers, read_target
from lacunar.observed.names import native_names
from lacunar.observed.numbers import as_frame
from lacunar.uncertainty.foresight import Indicators, foresights, holm, indicators_of
from lacunar.uncertainty.masks import as_numbers, encoder_of
from lacunar.uncertainty.report import MissingnessReport

_FOLDS = 5
_LEAST = 10  # observed and missing entries that a column needs for tests of its own
_STEPS, _TOLERANCE, _SHRINKAGE = 1000, 1e-7, 1e-6  # of EM for the test, which asks for the maximum of the likelihood
_ALL_CATEGORIES = 2**31  # of a column of text: none is too many here
_DELTAS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
_C = 1.0  # of the logistic regression of masks
_RIDGE = 1.0  # of the regression on completed columns


class MaskEvidence(NamedTuple):
    """For every column (d,) how well the others foresee its gaps, and how much the target differs where it has them; NaN
    where too few rows have or lack gaps.
    """

    auc: Floats
    auc_p_value: Floats
    target_shift: Floats | None
    target_p_value: Floats | None


class NumberedTable(NamedTuple):
    """A table of numbers with NaN (n, d), 1 at most, names of its columns, and the sorted levels of those that are text;
    indicators of these.
    """

    table: Floats
    names: NDArray[np.str_]
    levels: list[NDArray[Any] | None]
    indicators: Indicators


def mask_evidence(
    table: Floats,
    target: Floats | None,
    rng: np.random.Generator,
    columns: NDArray[np.bool_] | None = None,
    indicators: Indicators | None = None,
) -> MaskEvidence:
    """Evidence of the gaps of the columns (d,) that `columns` marks, or of all, from columns of numbers (n, d), indicators
    of columns of text and, where there is one, the target (n,).
    """
    missing = np.isnan(table)
    tested = _enough(missing if columns is None else missing & columns)
    levels = indicators_of(table, [None] * table.shape[1]) if indicators is None else indicators
    auc, auc_p = _mask_auc(table, levels, tested, rng)
    if target is None:
        return MaskEvidence(auc, auc_p, None, None)
    return MaskEvidence(auc, auc_p, *_target_shift(table, levels, target, tested, rng))


def missingness_report(X: Any, y: Any = None, *, deltas: Any = _DELTAS, random_state: Any = None) -> MissingnessReport:
    """Tests of why entries are missing, and of what that does to predictions.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        Categories of a frame are columns of 0 and 1, one for each of the ten commonest, and their
        places among the sorted ones; Little's test and the sensitivity curve take the places alone.
        Dates are days.
    y : array-like of shape (n,), optional
        Numbers, or two classes.
    deltas : sequence of float, default=(-2, -1, -0.5, 0, 0.5, 1, 2)
        For the sensitivity curve.
    random_state : int, RandomState or None, default=None
        Draws folds. None is a fixed draw.

    Returns
    -------
    report : MissingnessReport
        Prints as a table, shows as HTML in a notebook, and `save` writes it as a page.

    Raises
    ------
    ValueError
        If y has another length, more than one column, or three classes or more.

    Notes
    -----
    Little's test takes the maximum likelihood mean and covariance by EM: d^2 = sum_j n_j (m_j -
    mu_j) S_j^-1 (m_j - mu_j) over patterns j of observed columns, with as many degrees of freedom
    as columns observed in all patterns together, less the columns [1]_. It is of one sided use: a
    large p does not show MCAR, and nothing that is observed can show that entries are missing at
    random rather than by their own values. That is what `sensitivity` is for: pattern mixtures with
    a shift [2]_.

    References
    ----------
    .. [1] R. J. A. Little, "A test of missing completely at random for multivariate data with
       missing values", 1988.
    .. [2] R. J. A. Little, "Pattern-mixture models for multivariate incomplete data", 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.uncertainty import missingness_report
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> X[X[:, 0] + 0.5 * rng.normal(size=300) > 1, 1] = np.nan
    >>> report = missingness_report(X)
    >>> bool(report.p_value < 0.01), report.auc.round(1)
    (True, array([nan, 0.9, nan]))
    """
    table, names, levels, indicators = numbered(X)
    if not table.size:
        raise ValueError(f"X must have rows and columns; got shape {table.shape}. Pass a table of at least one row.")
    offsets = np.unique(check_numbers(np.atleast_1d(deltas), "deltas", ensure_2d=False))
    target = None if y is None else target_numbers(y)
    check_consistent_length(table, target)
    evidence = mask_evidence(table, target, generator(fixed_seed(random_state)), indicators=indicators)
    curve = None if target is None else _sensitivity(table, target, offsets)
    missing = np.isnan(table)
    patterns, rows = np.unique(missing, axis=0, return_counts=True)
    order = np.argsort(-rows, kind="stable")
    return MissingnessReport(
        *little_test(table),
        names,
        missing.mean(axis=0),
        *evidence,
        offsets,
        curve,
        patterns[order],
        rows[order],
        foresights(table, levels, indicators),
    )


def numbered(X: Any) -> NumberedTable:
    """Any table as numbers in units of their columns: of text its place among the sorted values, of a date its day."""
    encoder = encoder_of(X, categories="ordinal", max_categories=_ALL_CATEGORIES)
    table = as_numbers(X, encoder)
    levels: list[NDArray[Any] | None]
    if encoder is None:
        levels = [None] * table.shape[1]
    else:
        table, levels = table[:, np.unique(encoder.source_, return_index=True)[1]], list(encoder.categories_)
    frame = as_frame(X)
    names = native_names(frame) if frame is not None else [f"x{j}" for j in range(table.shape[1])]
    indicators = indicators_of(table, levels)
    size = np.abs(table).max(axis=0, initial=0.0, where=~np.isnan(table))
    table = np.ldexp(table, -np.frexp(size)[1])  # a power of two changes no digit: squares of large numbers overflow
    return NumberedTable(table, np.array([str(name) for name in names]), levels, indicators)


def target_numbers(y: Any) -> Floats:
    """Numbers (n,) as they are; of two classes 1 for the second."""
    target = read_target(y).values
    if target.dtype.kind in "fiub":
        return target.astype(np.float64)
    classes, code = np.unique(target, return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            f"y must be numbers or two classes; got {len(classes)} classes. Ask for one class against the others."
        )
    return code.astype(np.float64)


def little_test(table: Floats) -> tuple[float, int, float, int]:
    """Little's d^2, its degrees of freedom, p, and the number of patterns; constant columns take no part."""
    varying = table[:, _quiet(np.nanmax, table) > _quiet(np.nanmin, table)]
    varying = varying[~np.isnan(varying).all(axis=1)]
    seen = ~np.isnan(varying)
    patterns, own = np.unique(seen, axis=0, return_inverse=True)
    df = int(patterns.sum()) - varying.shape[1]
    if df <= 0:
        return 0.0, 0, float("nan"), len(patterns)
    center, scale = np.nanmean(varying, axis=0), np.nanstd(varying, axis=0)
    Z, p = (varying - center) / scale, varying.shape[1]
    model, _ = fit_gaussian(Z, Gaussian(np.zeros(p), np.eye(p)), _SHRINKAGE, _STEPS, _TOLERANCE)
    total = 0.0
    for k, pattern in enumerate(patterns):
        rows = Z[own.ravel() == k][:, pattern]
        away = rows.mean(axis=0) - model.mean[pattern]
        total += len(rows) * float(away @ np.linalg.solve(model.covariance[np.ix_(pattern, pattern)], away))
    return total, df, float(chi2.sf(total, df)), len(patterns)


def _enough(missing: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Columns with enough observed and missing entries."""
    counts = missing.sum(axis=0)
    return np.flatnonzero(np.minimum(counts, len(missing) - counts) >= _LEAST)


def _mask_auc(
    table: Floats, indicators: Indicators, tested: NDArray[np.intp], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    missing = np.isnan(table)
    auc, p = np.full((2, table.shape[1]), np.nan)
    Z = np.where(missing, 0.0, _standardised(table))
    levels = np.nan_to_num(_standardised(indicators.table))
    for j in tested:
        others = np.arange(table.shape[1]) != j
        masks = missing[:, others & missing.any(axis=0)]
        inputs = np.column_stack([Z[:, others], masks, levels[:, indicators.source != j]])
        if not inputs.shape[1]:
            continue
        split = StratifiedKFold(_FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
        model = LogisticRegression(C=_C, max_iter=1000)
        with one_blas_thread():  # its products are small: two threads take twenty times the seconds of one
            scores = cross_val_predict(model, _turned(inputs), missing[:, j], cv=split, method="decision_function")
        test = mannwhitneyu(scores[missing[:, j]], scores[~missing[:, j]], alternative="greater")
        auc[j], p[j] = test.statistic / (missing[:, j].sum() * (~missing[:, j]).sum()), test.pvalue
    return auc, holm(p)


def _turned(inputs: Floats) -> Floats:
    """Inputs (n, q) as at most n columns, by QR: a regression with a penalty on the sum of squares predicts the same, in
    less time.
    """
    return inputs if inputs.shape[1] <= len(inputs) else np.asarray(np.linalg.qr(inputs.T)[1].T)


def _standardised(table: Floats) -> Floats:
    scale = np.where((std := _quiet(np.nanstd, table)) > 0, std, 1.0)
    return np.asarray((table - _quiet(np.nanmean, table)) / scale)


def _quiet(mean: Any, table: Floats) -> Floats:
    """`mean`, a function such as `numpy.nanmean`, of every column; 0 where a column has no observed entry."""
    seen = ~np.isnan(table).all(axis=0)
    means = np.zeros(table.shape[1])
    means[seen] = mean(table[:, seen], axis=0)
    return means


def _target_shift(
    table: Floats, indicators: Indicators, target: Floats, tested: NDArray[np.intp], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    missing = np.isnan(table)
    inputs = np.hstack([table, indicators.table])
    shift, p = np.full((2, table.shape[1]), np.nan)
    residuals = np.empty(len(target))
    model = GaussianRegressor(warm_start=True).fit(inputs, target)
    for outside in np.array_split(rng.permutation(len(target)), min(_FOLDS, len(target))):
        inside = np.setdiff1d(np.arange(len(target)), outside)
        if len(inside):
            model.fit(inputs[inside], target[inside])
        residuals[outside] = target[outside] - model.predict(inputs[outside])
    for j in tested:
        groups = residuals[missing[:, j]], residuals[~missing[:, j]]
        shift[j] = (groups[0].mean() - groups[1].mean()) / max(float(target.std()), 1e-300)
        if min(group.std() for group in groups) > 0:
            p[j] = ttest_ind(*groups, equal_var=False).pvalue
    return shift, holm(p)


def _sensitivity(table: Floats, target: Floats, deltas: Floats) -> Floats:
    """Root mean square changes (d, k), in standard deviations of y, of the predictions of a ridge regression of y on
    completed columns, where it is fitted anew with the missing entries of one column shifted by one of the deltas.
    """
    missing, Z = np.isnan(table), _standardised(table)
    y = (target - target.mean()) / max(float(target.std()), 1e-300)
    p = Z.shape[1]
    model, _ = fit_gaussian(Z, Gaussian(np.zeros(p), np.eye(p)), 0.4, 200, 1e-4)
    completed, sd = np.where(missing, 0.0, Z), np.zeros_like(Z)
    for group in conditionals(Z, model):
        at = group.rows[:, None], group.columns[group.own]
        completed[at] = group.mean
        sd[at] = np.sqrt(np.maximum(np.einsum("njj->nj", group.covariance), 0.0))[group.own]

    def predicted(rows: Floats) -> Floats:
        away = rows - rows.mean(axis=0)
        return np.asarray(away @ np.linalg.solve(away.T @ away + _RIDGE * np.eye(p), away.T @ y))

    usual, changes = predicted(completed), np.zeros((p, len(deltas)))
    for j in np.flatnonzero(missing.any(axis=0)):
        for k, delta in enumerate(deltas):
            shifted = completed.copy()
            shifted[:, j] += delta * sd[:, j]  # 0 where observed
            changes[j, k] = np.sqrt(np.mean((predicted(shifted) - usual) ** 2))
    return changes
