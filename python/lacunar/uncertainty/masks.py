"""Base of the conformal wrappers: reads tables, finds their masks, makes copies with more entries missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    check_is_fitted,
    has_fit_parameter,
)

from lacunar._log import warn_user
from lacunar._typing import Bools, Floats, Ints
from lacunar.encode import Remarks, TableEncoder
from lacunar.observed import Observed
from lacunar.observed.columns import fit_columns, scale_columns
from lacunar.observed.contract import refuse_no_table
from lacunar.observed.door import TakesMissing, as_array, as_observed, validate_X
from lacunar.observed.names import columns_by_name
from lacunar.observed.numbers import as_frame, numbers_of
from lacunar.observed.rules import Anything, Flag, Instance, Number, Optional, Rule, trial_rows
from lacunar.uncertainty.conformal import ConformalScores, rows_needed

_COPIES = 3  # of every row, with more entries hidden
_LARGEST_SHARE = 0.9  # of the entries that a copy hides


def readable_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as an array with NaN, or as a frame of pandas where columns are not numbers, or where the model inside knows
    columns by name; its width and names are checked.
    """
    named = not reset and hasattr(estimator.estimator_, "feature_names_in_")
    came = _in_pandas(columns_by_name(estimator, X, reset=reset), always=named)
    X = _text_in_pandas(came, always=not reset and estimator.has_text_)
    if reset:
        estimator.has_text_ = X is not came
    if hasattr(X, "columns") and hasattr(X, "isna") and (named or any(dtype.kind not in "biuf" for dtype in X.dtypes)):
        _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, X, reset=reset)
        return X
    return validate_X(estimator, X, reset=reset).to_dense().astype(np.float64)


def _in_pandas(X: Any, always: bool) -> Any:
    """A frame of polars or Arrow with columns of text, dates or categories, or any, as one of pandas; all else as it is.

    Dictionaries of Arrow alone do not count: they may hold numbers.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or hasattr(X, "isna"):
        return X
    no_numbers = {nw.String, nw.Date, nw.Datetime} | ({nw.Categorical, nw.Enum} if hasattr(X, "to_arrow") else set())
    other = always or any(dtype.base_type() in no_numbers for dtype in frame.schema.values())
    return frame.to_pandas() if other else X


def _text_in_pandas(X: Any, always: bool = False) -> Any:
    """An array (n, d) with cells that are no numbers, or any, as a frame of pandas; all else as it is."""
    refuse_no_table(X)
    if hasattr(X, "columns") or sp.issparse(X) or isinstance(X, Observed):
        return X
    array = as_array(X)
    if array.ndim != 2 or not (always or array.dtype.kind in "OUST"):
        return X
    if any(isinstance(cell, dict | list | tuple | np.ndarray) for cell in array.flat):  # which nothing reads
        return X
    with suppress(ImportError):  # without pandas the array is refused below
        import pandas as pd

        return pd.DataFrame(array) if always or not _are_numbers(array) else X
    return X


def _are_numbers(array: NDArray[Any]) -> bool:
    try:
        numbers_of(array)
    except (TypeError, ValueError):
        return False
    return True


def count_missing(rows: Any) -> Floats:
    """How many entries each row lacks (n,)."""
    missing = rows.isna() if hasattr(rows, "isna") else np.isnan(rows)
    return np.asarray(missing.sum(axis=1), dtype=np.float64)


def with_hidden(rows: Any, hidden: Bools) -> Any:
    """The rows with more entries missing."""
    return rows.mask(hidden) if hasattr(rows, "mask") else np.where(hidden, np.nan, rows)


def with_copies(rows: Any, rng: np.random.Generator) -> list[Any]:
    """The rows, and copies of them that hide shares of their entries drawn between 0 and 0.9."""
    tables = [rows]
    for _ in range(_COPIES):
        share = rng.uniform(0, _LARGEST_SHARE, (len(rows), 1))
        tables.append(with_hidden(rows, rng.random(rows.shape) < share))
    return tables


def encoder_of(table: Any, **options: Any) -> TableEncoder | None:
    """An encoder that turns a frame, or an array with text, into numbers; None for tables that hold numbers."""
    table = _text_in_pandas(table)
    return None if as_frame(table) is None else TableEncoder(**options).fit(table)


def as_numbers(table: Any, encoder: TableEncoder | None, remarks: Remarks | None = None) -> Floats:
    """Numbers with NaN (n, columns). What is to be said of the rows goes to `remarks`; without them it is said at once."""
    if encoder is None:
        return as_observed(table).astype(np.float64).to_dense()
    names = getattr(encoder, "feature_names_in_", None)
    if isinstance(table, np.ndarray) and table.dtype.kind == "f" and names is not None:
        table = as_frame_of(table, names)  # names were checked where the table came in
    if remarks is not None:
        return encoder._transformed(table, remarks)
    return np.asarray(encoder.transform(table))  # also where `set_config` asks for frames


def ratios_of(likelihood_ratio: Any, n: int) -> Floats | None:
    """Likelihood ratios of n rows; None where there are none."""
    if likelihood_ratio is None:
        return None
    wish = f"likelihood_ratio must be {n} finite numbers of at least 0, one for each row of X, and some above 0"
    try:
        ratios = as_array(likelihood_ratio, "likelihood_ratio").astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{wish}; got {likelihood_ratio!r:.60}. Pass one number a row.") from error
    if ratios.shape != (n,):
        raise ValueError(f"{wish}; got an array of shape {ratios.shape}. Pass one number a row.")
    wrong = np.flatnonzero(~(np.isfinite(ratios) & (ratios >= 0)))
    if len(wrong):
        raise ValueError(f"{wish}; got {ratios[wrong[0]]} in row {wrong[0]}. Leave out rows that cannot occur.")
    if n and not ratios.any():
        raise ValueError(f"{wish}; got zeros alone. Pass densities of rows to predict over those of training rows.")
    return ratios


def fit_with_groups(model: Any, X: Any, y: Any, groups: Ints | None) -> Any:
    """Fit the model, with `groups` where there are some and its `fit` takes them."""
    return (
        model.fit(X, y, groups=groups) if groups is not None and has_fit_parameter(model, "groups") else model.fit(X, y)
    )


def answers_of(answers: Any, rows: Any, what: str) -> Floats:
    """What a given estimator says of rows (m, d), as finite numbers (m,) or (m, c)."""
    numbers = np.asarray(answers, dtype=np.float64)
    if len(numbers) != len(rows) or not np.isfinite(numbers).all():
        raise ValueError(
            f"estimator must give {what} that are finite, one for each of {len(rows)} rows; got {numbers!r:.60} of shape "
            f"{numbers.shape}. Give one that does."
        )
    return numbers.ravel() if what == "predictions" and numbers.size == len(numbers) else numbers


@contextmanager
def rows_of(table: Any, inside: Bools) -> Iterator[None]:
    """Errors about an entry far from those of the rows inside (n,) name its row in the table, not in what a fold leaves out."""
    try:
        yield
    except ValueError:
        if isinstance(table, np.ndarray):
            X = Observed.from_dense(table)
            scale_columns(X, fit_columns(X[inside], np.ones(int(inside.sum())), standardize=True))
        raise


def group_folds(groups: Ints | None, n: int, n_folds: int, rng: np.random.Generator) -> Ints:
    """The fold (n,) in which each of n rows is left out, drawn. Groups stay whole: the largest goes first, each into the
    smallest fold.
    """
    if groups is None:
        return rng.permutation(n) % n_folds
    sizes = np.bincount(groups)
    if len(sizes) < n_folds:
        raise ValueError(
            f"groups must hold at least cv={n_folds} different groups, for a fold leaves out whole groups; got "
            f"{len(sizes)}. Lower cv."
        )
    drawn = rng.permutation(len(sizes))
    fold_sizes, fold_of = np.zeros(n_folds), np.empty(len(sizes), dtype=np.intp)
    for group in drawn[np.argsort(-sizes[drawn], kind="stable")]:
        fold_of[group] = np.argmin(fold_sizes)
        fold_sizes[fold_of[group]] += sizes[group]
    return fold_of[groups]


class MaskConformal(MetaEstimatorMixin, TakesMissing):
    """A fitted estimator, and scores out of fold of rows and copies with how many entries each of them lacks."""

    level: float
    masks: Literal["natural", "any"]

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "level": [Interval(Real, 0, 1, closed="neither")],
        "masks": [StrOptions({"natural", "any"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        "estimator_": Anything(),
        "has_text_": Flag(),
        "scores_": Instance(ConformalScores),
        "mean_ratio_": Optional(Number(low=0, above=True)),
    }

    def _read_ratios(self, likelihood_ratio: Any, n: int) -> Floats | None:
        """Ratios of the training rows over their mean, which `mean_ratio_` stores; None where there are none."""
        ratios = ratios_of(likelihood_ratio, n)
        self.mean_ratio_ = None
        if ratios is None:
            return None
        exponent = np.frexp(ratios.max())[1]  # sums of large ratios overflow, squares of small ones vanish
        ratios = np.ldexp(ratios, -exponent)
        self.mean_ratio_ = float(np.ldexp(ratios.mean(), exponent))
        ratios = np.asarray(ratios / ratios.mean())
        effective = n / float(np.mean(ratios**2))  # (sum w)^2 / sum w^2, since they sum to n
        if effective < rows_needed(self.level):
            warn_user(
                f"likelihood_ratio must spread over rows enough for level={self.level:g}, which needs "
                f"{rows_needed(self.level)}; the {n} rows count as {effective:.1f}, and coverage may be far off. Fit to "
                "rows that are more like those to predict."
            )
        return ratios

    def _own_ratios(self, likelihood_ratio: Any, n: int) -> Floats | None:
        """Ratios of rows to predict in the same units, 1 where they are not known."""
        ratios = ratios_of(likelihood_ratio, n)
        if self.mean_ratio_ is None:
            if ratios is not None:
                raise ValueError(
                    "likelihood_ratio of rows to predict needs those of the training rows; fit was told of none. Pass "
                    "likelihood_ratio to fit, too."
                )
            return None
        return np.ones(n) if ratios is None else ratios / self.mean_ratio_

    def _scores_of(
        self, scores: Floats, tables: list[Any], weights: Floats | None, labels: Ints | None = None
    ) -> ConformalScores:
        """Scores of the rows of the tables, of which all but the first are copies."""
        n_missing = np.concatenate([count_missing(table) for table in tables])
        copied = np.arange(len(n_missing)) >= len(tables[0])
        return ConformalScores().fit(
            scores,
            n_missing,
            tables[0].shape[1],
            labels=labels,
            copied=copied,
            copies_count=self.masks == "any",
            weights=None if weights is None else np.tile(weights, len(tables)),
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the estimator fitted to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,)
        """
        check_is_fitted(self, "estimator_")
        predictions: NDArray[Any] = self.estimator_.predict(readable_rows(self, X, reset=False))
        return predictions

    def _trial_rows(self) -> list[Any]:
        """Tables of one row that the estimator reads. Text comes to this class in frames only, so they are frames."""
        if "estimator_" not in vars(self):
            return []
        return self._as_frames(trial_rows(self.estimator_))

    def _as_frames(self, tables: list[Any]) -> list[Any]:
        return [as_frame_of(rows, getattr(self, "feature_names_in_", None)) for rows in tables]


def as_frame_of(rows: Any, names: NDArray[Any] | None) -> Any:
    """Rows (m, d) as a frame of pandas with names, where it is installed."""
    if isinstance(rows, Observed):
        return rows
    try:
        import pandas as pd
    except ImportError:
        return rows
    return pd.DataFrame(rows, columns=names).infer_objects()
