"""`MaskConformalClassifier`: sets of classes whose coverage does not depend on how much a row lacks."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context, clone
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats, Ints
from lacunar.encode import TableEncoder
from lacunar.karma import KarmaClassifier
from lacunar.observed.door import ScoreMixin, check_classes, read_target, require_y
from lacunar.observed.ids import read_groups
from lacunar.observed.rules import LABELS, Rule
from lacunar.uncertainty.conformal import CONDITIONS, Condition, check_level, warn_of_rare
from lacunar.uncertainty.masks import (
    MaskConformal,
    answers_of,
    count_missing,
    encoder_of,
    fit_with_groups,
    group_folds,
    readable_rows,
    rows_of,
    with_copies,
)


@whole_answers
class MaskConformalClassifier(ScoreMixin, ClassifierMixin, MaskConformal):
    """Sets of classes around any classifier with probabilities that takes missing values.

    A set holds the classes whose probability is at least 1 - q, q a quantile of 1 - p(class of the
    row) out of fold over rows that lack about as many entries.

    Parameters
    ----------
    estimator : estimator or None, default=None
        With `fit`, `predict` and `predict_proba`, taking missing values. None is
        `KarmaClassifier()`, which reads text, categories and dates as the numbers that
        `lacunar.encode.TableEncoder` makes of them.
    level : float, default=0.9
        Coverage asked for.
    condition : {"missing", "class", "auto"}, default="missing"
        Of which rows a share of `level` is to have its class in the set: of those that lack about
        as many entries, whatever their class, or also of those of every single class. With
        "missing" a rare class may be covered far less than the others. With "auto" every class with
        rows enough for the level is covered so, and those with fewer together.
    masks : {"natural", "any"}, default="natural"
        Whether rows to predict lack entries as the training rows do, or whatever they may: then
        three more copies of every row, with a random share of its entries hidden, count too. With
        "natural" they count where fewer than a hundred rows lack about as many entries.
    cv : int, default=5
        Stratified folds.
    random_state : int, RandomState or None, default=None
        Draws folds and masks. None is a fixed draw.

    Attributes
    ----------
    estimator_ : estimator
        Fitted to all rows.
    has_text_ : bool
        Whether X was an array with text, which the estimator gets as a frame, as new rows are.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    scores_ : ConformalScores
        Of rows and of copies, in arrays of shape (N,): `scores_`, 1 - p of the row's own class out
        of fold; `n_missing_`, numbers of missing entries; `copied_`, whether it is a copy;
        `labels_`, places of the rows' classes in `classes_`.
    n_features_in_ : int
        Number of columns of X.

    Notes
    -----
    Coverage is measured, in the page on uncertainty, and not guaranteed. Costs `cv` + 1 fits.

    With `condition="class"` a class is in the set if its probability is at least 1 - q, q the
    quantile among the rows of that class alone [2]_ that lack about as many entries; among all of
    its rows where those are too few, for the class goes first. A class of n rows with ceil(level (n
    + 1)) > n, eight rows or fewer at level .9, is in every set. With "missing" and "auto" a warning
    names such classes.

    References
    ----------
    .. [1] M. Sadinle, J. Lei, L. Wasserman, "Least ambiguous set-valued classifiers with bounded
       error levels", 2019.
    .. [2] V. Vovk, D. Lindsay, I. Nouretdinov, A. Gammerman, "Mondrian confidence machine", 2003.
    .. [3] R. J. Tibshirani, R. F. Barber, E. J. Candes, A. Ramdas, "Conformal prediction under
       covariate shift", 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.uncertainty import MaskConformalClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(X[:, 0] > 0, "yes", "no")
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> MaskConformalClassifier().fit(X, y).predict_set([[2.0, 0.0], [np.nan, 0.0]])
    array([[False,  True],
           [ True,  True]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **MaskConformal._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "condition": [StrOptions(set(CONDITIONS))],
    }
    _schema: ClassVar[dict[str, Rule]] = {
        **MaskConformal._schema,
        "classes_": LABELS,
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        level: float = 0.9,
        condition: Condition = "missing",
        masks: Literal["natural", "any"] = "natural",
        cv: int = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.level = level
        self.condition = condition
        self.masks = masks
        self.cv = cv
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    @all_or_nothing
    def fit(self, X: Any, y: Any, groups: Any = None, likelihood_ratio: Any = None) -> MaskConformalClassifier:
        """Fit the estimator, to all rows and without each fold.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            A frame with columns that are not numbers goes to the estimator as it is.
        y : array-like of shape (n,)
        groups : array-like of shape (n,), default=None
            To which person, place or batch a row belongs, as numbers or text: folds leave out whole
            groups, so that sets are those of rows of new groups. An estimator whose `fit` takes
            groups is told of them.
        likelihood_ratio : array-like of shape (n,), default=None
            How much denser rows to predict are than training rows at each training row, up to a
            factor: scores weigh so (Tibshirani et al. 2019). For a known shift of the columns; the
            estimator is fitted as without it.

        Returns
        -------
        self
        """
        require_y(self, y, "Pass one for every row.")
        rows = readable_rows(self, X, reset=True)
        target = read_target(y).values
        check_classes(target)
        check_consistent_length(rows, target)
        self.classes_, y_encoded = np.unique(target, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have 2 classes or more; got 1 class, {self.classes_.tolist()[0]!r}. Give rows of another."
            )
        groups = read_groups(groups, len(target), np.arange(len(target)))
        weights = self._read_ratios(likelihood_ratio, len(target))
        rng = generator(fixed_seed(self.random_state))
        model = _default_of(rows) if self.estimator is None else self.estimator
        self.estimator_ = fit_with_groups(clone(model), rows, target, groups)
        tables = with_copies(rows, rng)
        scores = np.empty((len(tables), len(target)))
        splits = self._folds(y_encoded, groups, rng)
        for outside in splits:
            inside = ~np.isin(np.arange(len(target)), outside)
            one = fit_with_groups(
                clone(model), _safe_indexing(rows, inside), target[inside], None if groups is None else groups[inside]
            )
            at = np.searchsorted(one.classes_, target[outside])
            known = one.classes_[np.minimum(at, len(one.classes_) - 1)] == target[outside]
            for t, table in enumerate(tables):
                with rows_of(table, inside):
                    part = _safe_indexing(table, outside)
                    proba = answers_of(one.predict_proba(part), part, "probabilities")
                own = proba[np.arange(len(outside)), np.where(known, at, 0)]
                scores[t, outside] = 1 - np.where(known, own, 0.0)
        self.scores_ = self._scores_of(scores.ravel(), tables, weights, np.tile(y_encoded, len(tables)))
        return self

    def _folds(self, y_encoded: NDArray[Any], groups: Ints | None, rng: np.random.Generator) -> list[NDArray[Any]]:
        """Folds of whole groups; without groups stratified, at random where the smallest class has fewer rows."""
        if groups is not None:
            fold = group_folds(groups, len(groups), self.cv, rng)
            return [np.flatnonzero(fold == k) for k in range(self.cv)]
        if np.bincount(y_encoded).min() >= self.cv:
            split = StratifiedKFold(self.cv, shuffle=True, random_state=int(rng.integers(2**31)))
            return [outside for _, outside in split.split(y_encoded, y_encoded)]
        return np.array_split(rng.permutation(len(y_encoded)), min(self.cv, len(y_encoded)))

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the estimator fitted to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        p : ndarray of shape (m, n_classes)
        """
        check_is_fitted(self, "estimator_")
        rows = readable_rows(self, X, reset=False)
        return answers_of(self.estimator_.predict_proba(rows), rows, "probabilities")

    def predict_set(self, X: Any, level: float | None = None, likelihood_ratio: Any = None) -> NDArray[np.bool_]:
        """Which classes are in the sets; the most probable class always is.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
        level : float or None, default=None
            Coverage asked for, between 0 and 1; None is that of the constructor.
        likelihood_ratio : array-like of shape (m,), default=None
            The same of these rows, in the units of `fit`; None is the mean of the training rows'
            ratios.

        Returns
        -------
        sets : ndarray of bool of shape (m, n_classes)
            Columns in the order of `classes_`.
        """
        check_is_fitted(self, "estimator_")
        coverage = check_level(self.level if level is None else level)
        rows = readable_rows(self, X, reset=False)
        proba = answers_of(self.estimator_.predict_proba(rows), rows, "probabilities")
        own = self._own_ratios(likelihood_ratio, len(proba))
        if self.condition != "class":
            warn_of_rare(self.classes_, self.scores_.class_rows(len(self.classes_)), coverage)
        sets: NDArray[np.bool_] = proba >= 1 - self._score_quantiles(rows, coverage, own)
        sets[np.arange(len(proba)), np.argmax(proba, axis=1)] = True
        return sets

    def _score_quantiles(self, rows: Any, level: float, own: Floats | None) -> Floats:
        """Quantiles of the scores that `condition` asks for, (m, 1) or (m, n_classes)."""
        n_missing = count_missing(rows)
        if self.condition == "missing":
            return self.scores_.near(n_missing, level, own=own)[:, None]
        return self.scores_.conditional(self.condition, n_missing, level, len(self.classes_), own)


def _default_of(rows: Any) -> Any:
    """The estimator of rows that bring none: they may hold columns that are no numbers."""
    return KarmaClassifier() if encoder_of(rows) is None else make_pipeline(TableEncoder(), KarmaClassifier())
