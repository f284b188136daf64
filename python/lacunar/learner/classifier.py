"""`LacunarClassifier`: the answer to "I have a table with missing values and labels"."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.utils import check_consistent_length
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._answers import ColumnTable
from lacunar._log import warn_user
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats, Ints
from lacunar.explanation import named_outputs
from lacunar.karma.base import class_weights
from lacunar.learner.base import LacunarBase, Part, Table, Target, report
from lacunar.learner.ensemble import Ensemble
from lacunar.learner.information import ClassInformation
from lacunar.learner.kept import KeptRows
from lacunar.learner.views import TrainingSet, View
from lacunar.observed.cells import listed
from lacunar.observed.door import (
    ScoreMixin,
    SparseMissing,
    check_classes,
    plain_target,
    read_target,
    refuse_masked,
    refuse_uncounted,
    require_y,
    warn_if_unlabelled,
)
from lacunar.observed.ids import read_groups
from lacunar.observed.rules import LABELS, Instance, Optional, Rule, floats
from lacunar.uncertainty.conformal import (
    Condition,
    ConformalScores,
    check_condition,
    check_level,
    drawn_to,
    warn_of_rare,
)
from lacunar.uncertainty.shift import ExtraMissingProbabilities, Lacking, log_softmax

_OFFSETS = np.linspace(-6.0, 6.0, 121)  # log odds by which a class may be preferred
_ROWS_TO_WARN = 50
_FEWEST_ROWS_TO_SOFTEN = 10


@whole_answers
class LacunarClassifier(ScoreMixin, ClassifierMixin, LacunarBase):
    """Predict the class of rows with missing values: you choose nothing and fill nothing in.

    `fit` trains five kinds of learners on the table as it is and pools them by how well they
    predict rows that they have not seen. Columns may be numbers, text, categories or dates.

    - `fit(X, y)`, with `groups` where rows belong to persons, places or batches;
    - `predict_proba(X)` gives the probability of each class, `predict(X)` the class;
    - `explain(X)` says what each value and each gap of a row adds to its prediction.

    Parameters
    ----------
    members : "auto" or list of str, default="auto"
        Of "logistic", "gaussian", "kernels", "boosting" and "forest".
    cv : int, splitter, iterable of splits or None, default=None
        How rows are held out, such as TimeSeriesSplit for rows in the order of time.
    scoring : str or callable, default="accuracy"
        What `predict` is to be good at, such as "balanced_accuracy" for a rare class.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, in training and in probabilities; rows of a class of weight 0 are
        left out.
    time_limit : float, default=None
        Seconds that `fit` may take, roughly: members learn less, or are left out.
    memory_limit : float, default=None
        MiB that members may take beyond the data, roughly; None is all rows.
    sparse_missing : {"absent", "nan"}, default="absent"
        What is missing in a sparse matrix: entries it does not store, or stored NaN.
    random_state : int, RandomState or None, default=None
        Folds, trees and subsamples; None is seed 0.
    n_jobs : int, default=None
        Threads. Answers do not depend on it.
    verbose : bool or int, default=False
        A line for every member.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Labels in sorted order.
    weights_ : ndarray of shape (members,)
        Exponents of the members' probabilities in the pool.
    members_ : list of str
        Members that were trained.
    report_ : dict of lists
        Columns "member", "score" (accuracy out of fold), "weight", "seconds", "rows" (that the
        member learned from), "tested" (rows that weigh the members), "folds" (of these rows; 0
        where the member is judged out of bag), "completed" (what stands for a missing entry inside
        the member; empty where it reads the entry as missing): it prints as a table, and
        `report_.to_frame()` is a frame. Where `time_limit` cost something, "shortened" says what,
        and members that were left out have a row. Of more than 20,000 rows members of a weight
        below .02 are dropped, and have a row of weight 0.
    out_of_fold_ : ndarray of shape (labelled rows, c)
        Probabilities of the training rows by members that had not seen them; NaN of rows that `cv`
        never tests, and of more than 20,000 rows in all but the held-out parts.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Infinite numbers, no known label, members that are none of these, weights that are negative
        or all zero, text that reads in two ways, a frame without any column of `fit` or with two of
        one name.

    Warns
    -----
    UserWarning
        A column names groups of like rows, or neighbouring rows are alike, and neither `groups` nor
        a splitter says so (from 100 rows on); `time_limit` has shortened members; a member fails
        and is left out, or one that was named has nothing to learn from; a class is never
        predicted; rows to predict lack other entries than the training rows did (compared where
        there are 50 rows or more of both: shares missing, columns missing together, and observed
        values where others are missing); a column of text that tells nothing of the target is left
        out; words in a column of numbers or dates are missing, and categories that `fit` never saw;
        a frame lacks columns, or has others.

    See Also
    --------
    LacunarRegressor : The same for numbers.
    lacunar.karma.KarmaClassifierCV : The kernels alone, with exact leave-one-out values.

    Notes
    -----
    Members are kernel machines over observed entries, a low-rank Gaussian with ridge regression,
    gradient boosting, extremely randomised trees and logistic regression.
    Trees and KARMA's kernels read a missing entry as missing; logistic regression
    reads the mean of its column beside a flag, and the Gaussian and radial kernels read rows that
    are completed by a model of the training rows, which sees no target, or by column means, mostly
    beside flags. A column that more than 99 of 100 training rows show is completed for all members
    where a row lacks it.

    `members`: "auto" is all of them that the table allows. Of more than 20,000 rows it is
    "logistic" and "boosting", and "kernels" where the latent coordinates of the low-rank model
    help boosting to predict; the others take part there if they are named.

    `cv`: a number of folds, three or below 400 rows five where it is None, of whole groups where
    `fit` is told of `groups`; GroupKFold, StratifiedGroupKFold or LeaveOneGroupOut; TimeSeriesSplit
    for rows in the order of time, which are then judged by earlier rows alone; or pairs (rows to
    train on, rows to test on). All members share it. No row may be tested twice, and some may never
    be. Of more than 20,000 rows a number or None stands for held-out parts of a tenth of the rows,
    20,000 at most, on which members are weighed. Boosting is the mean of three models of up to
    45,000 other rows each, of more than 90,000 rows of two models of a half each: together they
    learn from every row. Kernels of at most 3,000 independent rows are tested on some 24 parts of
    these folds.

    `scoring`: as in `sklearn.model_selection.cross_val_score`; thresholds between classes are tuned
    to it on out-of-fold probabilities. Nothing is tuned for "accuracy", for which the likeliest
    class is the best answer, and for scores of probabilities.

    `time_limit`: members share the seconds, and a share that is too short for all of a member pays
    for fewer trees, iterations, landmarks, penalties or rows; a member for which nothing is left is
    left out, but one is always trained. A warning and `report_` say what was shortened. A limit
    half again as long as members take at most on a core of today, by the size of the table, limits
    nothing: answers are those without one, and a slower or busy machine may exceed it.
    `memory_limit`: of more rows than fit members learn from a sample, and a warning says of how
    many.

    p(y | row) is proportional to exp(sum of w_m log p_m(y | row)), where p_m is a member's
    calibrated probability, and w >= 0 minimises the out-of-fold log loss, shrunk to equal
    weights by 1 + 400/n. All members but trees read a column that is skewed or has long tails
    as it is and as normal scores. Kernels: Hazan, Livni and Mansour, ICML 2015; Gaussian: the
    latent model of Ganti and Willett, 2015, by EM. Rows whose label is missing (NaN, None)
    teach the low-rank Gaussian. O(n^2 d) up to 2,000 rows, O(n (1500 + d) d) to 20,000. Of more
    rows boosting learns from all (700 trees a model at most, until 100 of them gain nothing on a
    held-out part), logistic regression from as many as have 1e7 inputs, the kernels from
    10,000; where latent coordinates help boosting they are columns of it, and they and their
    products inputs of logistic regression. Columns and the low-rank model are learned from
    40,000 rows at most, means of the target by category from all.

    Boosting of fewer than 5,000 rows, 100 columns at most and one output compares small, usual and
    symmetric trees by the rows held out. All nodes of a level of a symmetric tree share a split, so
    that rules of several columns are found of which no column tells alone.

    Probabilities of a row with a category that `fit` never saw are means over the categories that
    it saw (32 of them where there are more), each counted once. Of a column with more than 40
    categories the mean of the target by category may stand for the category: from rows of other
    folds, shrunk as random effects are. Trees may have means by pair, or by three, of categories
    whose levels together tell more than each alone. Of text with as many different values truncated
    singular vectors of the TF-IDF of character n-grams may be columns. Each is taken where a ridge
    regression on it tells something of what boosting leaves out of fold.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import LacunarClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6))
    >>> y = np.where(X[:, 0] > 0, "high", "low")
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = LacunarClassifier(members=["logistic", "gaussian", "kernels"]).fit(X[:150], y[:150])
    >>> bool(model.score(X[150:], y[150:]) > 0.8)
    True
    >>> model.predict_proba(X[150:]).shape
    (50, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **LacunarBase._parameter_constraints,
        "scoring": [StrOptions(set(get_scorer_names())), callable],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _of_labels = True
    _schema: ClassVar[dict[str, Rule]] = {
        **LacunarBase._schema,
        "classes_": LABELS,
        "ensemble_": Instance(Ensemble),
        "offsets_": floats("c"),
        "target_variance_": Optional(Instance(ClassInformation)),
        "kept_": Optional(Instance(KeptRows)),
        "extra_missing_": Optional(Instance(ExtraMissingProbabilities)),
        "scores_": Instance(ConformalScores),
        "out_of_fold_": Instance(np.ndarray),
    }

    def __init__(
        self,
        *,
        members: str | Sequence[str] = "auto",
        cv: Any = None,
        scoring: str = "accuracy",
        class_weight: str | dict[Any, float] | None = None,
        time_limit: float | None = None,
        memory_limit: float | None = None,
        sparse_missing: SparseMissing = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.members = members
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train the members and their pool.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow), array with NaN, sparse matrix or Observed, shape (n, d)
            Numbers, booleans, categories, text and dates; missing entries are NaN, None or NA.
        y : array-like of shape (n,)
            Labels; NaN, None or NA where unknown, of which a warning says how many there are.
            Classes keep the type of the labels.
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows.
        groups : array-like of shape (n,), default=None
            To which person, place or batch a row belongs, as numbers or text: folds are of whole
            groups, so that scores, weights, probabilities and intervals are those of rows of new
            groups. `cv` may be a splitter that reads them, such as GroupKFold.

        Returns
        -------
        self : LacunarClassifier
        """
        deadline = self._deadline()
        require_y(self, y, "Pass one label a row.")
        table = Table.of(X)
        labels, known = read_target(y, unknown="some")
        check_consistent_length(table.X, labels)
        check_classes(labels, known)
        weight, ignored = self._weight(sample_weight, len(labels)), self._ignored(labels[known])
        if ignored:
            weight = np.where(np.isin(labels, ignored), 0.0, 1.0 if weight is None else weight)
        warn_if_unlabelled(known)
        refuse_uncounted(known, weight, "sample_weight times class_weight")
        if weight is not None:
            table = table._replace(counted=np.flatnonzero(weight))
        rows = table.counted[known[table.counted]]
        self.classes_, y_encoded = np.unique(labels[rows], return_inverse=True)
        target = self._target(
            y_encoded, self._class_weighted(weight, rows, y_encoded, ignored), read_groups(groups, len(labels), rows)
        )
        self._check_scoring(target.weight is not None)
        view, table = self._fit_table(table, weight, rows, target)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes")  # `check_classes` has said it already
            learned = self._trained(table, view, rows, target, deadline)
            self.ensemble_, logs, judged, tested = learned[:4]
            self.offsets_ = self._tuned(logs, judged)
        self.target_variance_, self.kept_ = learned.target_variance, learned.kept
        self.out_of_fold_ = np.full((len(rows), len(self.classes_)), np.nan)
        self.out_of_fold_[tested] = np.exp(logs)
        scores = 1.0 - np.exp(logs[np.arange(judged.n), judged.labels])
        n_missing, t = judged.view.n_missing, judged.view.T.shape[1]
        self.scores_ = ConformalScores().fit(scores, n_missing, t, labels=judged.labels)
        self.extra_missing_ = self._extra_missing(learned.after, logs[learned.rows_after])
        self._warn_of_classes(logs, judged)
        assert judged.labels is not None
        one_hot = judged.labels[:, None] == np.arange(len(self.classes_))
        self._warn_of_dependence(table, rows[tested], judged, one_hot - np.exp(logs))
        return self

    def _fit_target_variance(self, training: TrainingSet) -> ClassInformation:
        """How sure of their classes rows are, and what entries tell of them."""
        assert training.posterior is not None
        assert training.labels is not None
        value = ClassInformation().fit(training.posterior, training.view.Z, training.Y)
        return value.fit_latent(training.posterior.latent(training.view.Z), training.labels)

    def _parts(self) -> list[Part]:
        if self.posterior_ is None or self.target_variance_ is None or self.kept_ is None:
            return []
        return [Part(self.posterior_, self.ensemble_, self.target_variance_, self.kept_)]

    def _extra_missing(self, training: TrainingSet, logs: Floats) -> ExtraMissingProbabilities | None:
        """How much less sure rows are that lack more than the training rows did; None of one class, or of few rows."""
        if len(self.classes_) < 2 or training.n < _FEWEST_ROWS_TO_SOFTEN:
            return None
        labels = np.asarray(training.labels)
        view, copied, copy_logs = self._copies(training, self.ensemble_, logs)
        rows, copies = self._lacking(training.as_came), self._lacking(view)
        weight = np.ones(training.n) if training.weight is None else training.weight
        return ExtraMissingProbabilities().fit(rows, labels, weight, copies, copied, log_softmax(copy_logs))

    def _lacking(self, view: View) -> Lacking:
        """The missingness of rows, and the mean variance of their class indicators."""
        always_seen, variances = self._lacked(view, self.target_variance_, 1)
        return Lacking(view.T, always_seen, variances.mean(axis=1), np.zeros(len(view.T)))

    def _target(self, y_encoded: Ints, weight: Floats | None, groups: Ints | None) -> Target:
        """Classes as numbers, and as the targets of least squares."""
        c = len(self.classes_)
        Y = 2.0 * (y_encoded[:, None] == np.arange(c)) - 1.0
        return Target(y_encoded, Y[:, 1:] if c == 2 else Y, c, weight, groups)

    def _ignored(self, labels: NDArray[Any]) -> list[Any]:
        """Classes of the labels that `class_weight` gives no weight: their rows are as if they were not there."""
        weights = self.class_weight if isinstance(self.class_weight, dict) else {}
        return [label for label in np.unique(labels).tolist() if weights.get(label) == 0]

    def _class_weighted(
        self, weight: Floats | None, rows: Ints, y_encoded: Ints, ignored: Sequence[Any]
    ) -> Floats | None:
        """Weights of the labelled rows times those of their classes, of which none is ignored."""
        of_rows = None if weight is None else weight[rows]
        of_classes = self.class_weight
        if of_classes is None:
            return of_rows
        if isinstance(of_classes, dict):
            of_classes = {label: value for label, value in of_classes.items() if label not in ignored}
        of_rows = np.ones(len(rows)) if of_rows is None else of_rows
        return of_rows * class_weights(of_classes, self.classes_, y_encoded, of_rows)

    def _check_scoring(self, weighted: bool) -> None:
        """ValueError for a named score that does not fit the classes, by a trial on three rows of each."""
        c = len(self.classes_)
        if c > 1 and isinstance(self.scoring, str) and self.scoring != "accuracy":
            labels = np.repeat(np.arange(c), 3)
            self._score_of(np.eye(c)[labels], labels, np.ones(3 * c) if weighted else None)

    def _score_of(self, logs: Floats, y_encoded: Ints, weight: Floats | None) -> float:
        """`scoring` of log probabilities (n, c) of rows of these classes."""
        extra = {} if weight is None else {"sample_weight": weight}
        answer = _Answer(self.classes_).with_values(logs)
        try:
            return float(get_scorer(self.scoring)(answer, None, self.classes_[y_encoded], **extra))
        except ValueError as error:
            if callable(self.scoring):
                raise
            raise ValueError(
                f"scoring must be a score of these classes; got {self.scoring!r}: {error}. Pass 'f1_macro' or "
                "'balanced_accuracy', or make a score of your own with sklearn.metrics.make_scorer."
            ) from None

    def _tuned(self, logs: Floats, training: TrainingSet) -> Floats:
        """Offsets of the classes' log probabilities with which `predict` scores best out of fold."""
        offsets, y_encoded, weight = np.zeros(len(self.classes_)), training.labels, training.weight
        assert y_encoded is not None
        if self.scoring == "accuracy" or len(self.classes_) < 2:
            return offsets
        if self.scoring == "balanced_accuracy":  # of which the optimum is known: divide by the shares of the classes
            shares = np.bincount(y_encoded, weights=weight, minlength=len(offsets))
            offsets = -np.log(np.maximum(shares / shares.sum(), 1e-12))
            return np.asarray(offsets - offsets.mean())

        def value(candidate: Floats) -> float:
            return self._score_of(logs + candidate, y_encoded, weight)

        best = value(offsets)
        for k in range(len(offsets) if len(offsets) > 2 else 1):
            top = max((value(_moved(offsets, k, step)), -abs(step), step) for step in _OFFSETS)
            if top[0] > best + 1e-12:
                best, offsets = top[0], _moved(offsets, k, top[2])
        return offsets

    def _warn_of_classes(self, logs: Floats, training: TrainingSet) -> None:
        y_encoded = training.labels
        assert y_encoded is not None
        if len(y_encoded) < _ROWS_TO_WARN or len(self.classes_) < 2 or self.class_weight is not None:
            return
        predicted = np.unique((logs + self.offsets_).argmax(axis=1))
        never = self.classes_[np.setdiff1d(np.unique(y_encoded), predicted)].tolist()
        if never:
            warn_user(
                f"no row is predicted out of fold as {'class' if len(never) == 1 else 'classes'} {listed(map(repr, never), 5)}: "
                f"scoring={self.scoring!r} gains nothing by it. Use scoring='balanced_accuracy', or decide by predict_proba.",
            )

    # -- answers --------------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of every row that is best for `scoring`.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        check_is_fitted(self)
        labels: NDArray[Any] = self.classes_[(self._logs(X) + self.offsets_).argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities of the classes.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)

        Returns
        -------
        probabilities : ndarray of shape (m, c)

        Notes
        -----
        Rows that lack more, or other columns, than nearly all training rows have probabilities
        nearer to the shares of the classes, by the log loss of copies of training rows with further
        entries hidden.
        """
        chances = np.exp(self._logs(X))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)

        Returns
        -------
        logs : ndarray of shape (m, c)
        """
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Log odds of the second class, or log probabilities of more classes, moved by what
        `scoring` prefers: `predict` goes by them.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, c)
        """
        values = self._logs(X) + self.offsets_
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    def _logs(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._in_batches(X, self._logs_of)

    def _logs_of(self, view: View) -> Floats:
        """Log probabilities of rows as they came."""
        logs, extra = self._predicted(self.ensemble_, view), self.extra_missing_
        return logs if extra is None else extra.softened(self._lacking(view), logs)

    def predict_set(self, X: Any, level: float = 0.9, *, condition: Condition = "missing") -> NDArray[np.bool_]:
        """Sets of classes that hold for what a row lacks: of rows that lack about as many entries a
        share of `level` has its class in the set.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
        level : float, default=0.9
            Coverage asked for.
        condition : {"missing", "class", "auto"}, default="missing"
            Of which rows a share of `level` is to have its class in the set: of those that lack
            about as many entries, whatever their class, or also of those of every single class.
            With "missing" a rare class may be covered far less than the others. With "auto" every
            class with rows enough for the level is covered so, and those with fewer together.

        Returns
        -------
        sets : ndarray of bool of shape (m, c)
            Which classes are in the set; the likeliest always is.

        Notes
        -----
        Classes whose probability is at least 1 - q, q a quantile of 1 - p(class of the row) out of
        fold (Sadinle, Lei and Wasserman 2019) among rows that lack about as many entries: measured,
        not guaranteed. Rows that lack more, or other columns, than nearly all training rows have
        the quantile of copies of training rows with further entries hidden. With
        `condition="class"` every class has a quantile of its own, among its own rows (Vovk,
        Lindsay, Nouretdinov and Gammerman 2003) that lack about as many entries, or among all of
        its rows where those are too few. A class of n rows with ceil(level (n + 1)) > n, eight rows
        or fewer at level .9, is in every set; with "missing" and "auto" a warning names such
        classes.
        """
        level = check_level(level)
        check_condition(condition)
        check_is_fitted(self)
        if condition != "class":
            warn_of_rare(self.classes_, self.scores_.class_rows(len(self.classes_)), level)

        def within(view: View) -> Floats:
            chances = np.exp(self._logs_of(view))
            least = np.minimum(1.0 - self._score_quantiles(view, level, condition), chances.max(axis=1)[:, None])
            return np.asarray(chances >= least, dtype=np.float64)

        return self._in_batches(X, within).astype(bool)

    def _score_quantiles(self, view: View, level: float, condition: Condition) -> Floats:
        """Quantiles of 1 - p(class of the row) out of fold among the rows of a condition, (m, 1) or (m, c); of rows that lack more, among copies."""
        usual = self._quantiles_of(self.scores_, self._with_always_seen(view), level, condition)
        extra = self.extra_missing_
        if extra is None:
            return usual
        unseen, novelty = (
            self._quantiles_of(extra.copy_scores_, view, level, condition),
            extra.novelty(self._lacking(view)),
        )
        return drawn_to(usual, unseen, np.broadcast_to(novelty[:, None], usual.shape))

    def _quantiles_of(self, scores: ConformalScores, view: View, level: float, condition: Condition) -> Floats:
        return scores.conditional(condition, view.n_missing, level, len(self.classes_))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """`scoring` of the predictions.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
        y : array-like of shape (m,)
            Labels.
        sample_weight : array-like of shape (m,), default=None

        Returns
        -------
        score : float
        """
        if self.scoring == "accuracy":
            return float(super().score(X, y, sample_weight))
        extra = {} if sample_weight is None else {"sample_weight": refuse_masked(sample_weight, "sample_weight")}
        return float(get_scorer(self.scoring)(self, X, plain_target(y), **extra))

    def _explained(self, view: View) -> Floats:
        """Probabilities (m, c), for two classes that of the second."""
        chances = np.exp(self._logs_of(view))
        chances /= chances.sum(axis=1, keepdims=True)
        return chances[:, 1:] if len(self.classes_) == 2 else chances

    def _explained_names(self) -> tuple[list[str], bool]:
        return named_outputs(self.classes_, len(self.classes_)), len(self.classes_) == 2

    def _loss(self, y: Any) -> Callable[[View], float]:
        y_encoded = self._encoded_labels(y)

        def loss(view: View) -> float:
            logs = self._logs_of(view)
            return -float(logs[np.arange(len(y_encoded)), y_encoded].mean())

        return loss

    def _encoded_labels(self, y: Any) -> Ints:
        labels = read_target(y).values
        unknown = np.flatnonzero(~np.isin(labels, self.classes_))
        if unknown.size:
            raise ValueError(
                f"y must hold labels that fit has seen ({self.classes_[:5]}...); got {labels.tolist()[unknown[0]]!r} in row {unknown[0]}. Leave such rows out."
            )
        return np.searchsorted(self.classes_, labels)

    def _try(self, view: View) -> None:
        logs = self._logs_of(view)
        if logs.shape != (len(view.Z), len(self.classes_)):
            raise ValueError(f"log probabilities of {len(self.classes_)} classes are of shape {logs.shape}")

    @property
    def members_(self) -> list[str]:
        """Members that were trained."""
        return list(self.ensemble_.names_)

    @property
    def weights_(self) -> Floats:
        """Exponents of the members' probabilities in the pool."""
        return self.ensemble_.weights()

    @property
    def report_(self) -> ColumnTable:
        """Members and what is said of them, as columns."""
        return report([self.ensemble_])


def _moved(offsets: Floats, k: int, step: float) -> Floats:
    moved = offsets.copy()
    moved[k] += step
    return moved


class _Answer(ClassifierMixin, BaseEstimator):
    """A stand-in estimator that returns given predictions to a scorer."""

    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes
        self.classes_ = classes

    def with_values(self, logs: Floats) -> _Answer:
        self.values_ = logs
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[self.values_.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        return np.exp(log_softmax(self.values_))

    def decision_function(self, X: Any) -> Floats:
        return self.values_[:, 1] - self.values_[:, 0] if self.values_.shape[1] == 2 else self.values_
