"""`SLRMRegressorCV`: n_components, lam1 and alpha by folds over rows, one factorisation for all values of alpha."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from lacunar._log import say
from lacunar._random import fixed_seed, generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.lowrank.em import Fit
from lacunar.lowrank.hidden import RELAX, STEPS, TOL, hide, marked, sampled_rows, squared_errors
from lacunar.lowrank.parts import InMemory, fit_columns_over
from lacunar.lowrank.regression import Labelled, SubspaceRegression, carried_rank, latent_labelled
from lacunar.lowrank.ridge import Alpha, LabelFit, fit_labels
from lacunar.lowrank.slrm import SLRMRegressor
from lacunar.lowrank.supervised import LABEL_STEPS, fit_supervised, has_few_labels, supervised_start
from lacunar.observed import Observed

Weight = float | Literal["auto", "inf"]  # lam1


def _listed(values: Any) -> list[Any]:
    """A parameter as the list of its values."""
    return [values] if np.ndim(values) == 0 else list(values)


def _splitter(cv: Any, units: int, over: str, seed: int) -> Iterator[NDArray[np.intp]]:
    """Test parts of folds over `units` rows or cells; cells are shuffled, since neighbours share a row."""
    from sklearn.model_selection import KFold, check_cv

    if isinstance(cv, Integral):
        chosen = KFold(min(int(cv), units), shuffle=over == "cells", random_state=seed if over == "cells" else None)
    else:
        chosen = check_cv(cv)
    return (test for _, test in chosen.split(np.zeros((units, 1))))


class _Subspace(NamedTuple):
    """A fitted subspace and the latent coordinates (n, d) of all rows in it."""

    fit: Fit
    latent: Floats

    def labels(self, labels: Floats, alpha: Alpha) -> LabelFit:
        """Weights of centred labels (n, targets): those that the factorisation learned, or a ridge on the latent
        coordinates.
        """
        if alpha == "auto" and self.fit.weights is not None:
            return LabelFit(self.fit.weights, np.zeros(labels.shape[1]))
        fit = fit_labels((self.latent, labels), alpha, 0.0)
        return fit._replace(intercept=np.nan_to_num(fit.intercept))


class _ShortFits:
    """Fits one rank for every lam1 by a few over-relaxed steps of EM on a sample of the rows, and a last step on all
    rows.

    Such fits rank the candidates as fits to convergence do. The subspace of lam1="inf", which ignores the labels, is
    fitted once, and every other lam1 starts from it.
    """

    def __init__(
        self, model: SLRMRegressor, weights: list[Weight], sample: NDArray[np.intp] | None, start: Fit | None = None
    ) -> None:
        self.model, self._weights, self._sample, self._start = model, weights, sample, start
        self._unlabelled: _Subspace | None = None

    @property
    def unlabelled(self) -> Fit | None:
        """The fit of lam1="inf", or None before it was made."""
        return None if self._unlabelled is None else self._unlabelled.fit

    def subspaces(self, part: Labelled) -> Iterator[_Subspace]:
        """The subspace of every lam1 in turn, fitted to standardised rows and centred labels."""
        for lam1 in self._weights:
            start = self.without_labels(part)
            if lam1 == "auto" and not has_few_labels(InMemory(part)):
                yield self._with_directions(part, start.fit)
            elif lam1 == "auto" or np.isinf(float(lam1)):
                yield start
            else:
                weights = start.labels(part[1], "auto").weights
                yield self._fitted(part, lam1, LABEL_STEPS, start.fit._replace(weights=weights))

    def _with_directions(self, part: Labelled, unlabelled: Fit) -> _Subspace:
        """The `unlabelled` subspace with the directions that lam1="auto" adds for the labels, whether they gain or not:
        the folds compare it with lam1="inf".
        """
        model, labels = self.model, self.model._labels()
        chosen = InMemory(part if self._sample is None else (part[0][self._sample], part[1][self._sample]))
        options: dict[str, Any] = {"max_iter": min(model.max_iter, LABEL_STEPS), "tol": max(model.tol, TOL)}
        fit, joint = fit_supervised(chosen, supervised_start(chosen, unlabelled, labels), labels, **options)
        if self._sample is not None:
            fit = fit_supervised(InMemory(part), joint, labels, max_iter=1, tol=model.tol)[0]
        fit = fit.rotated()
        return _Subspace(fit, latent_labelled(part, fit.model, model.n_jobs)[0])

    def without_labels(self, part: Labelled) -> _Subspace:
        if self._unlabelled is None:
            self._unlabelled = self._fitted(part, "inf", STEPS, self._start)
        return self._unlabelled

    def _fitted(self, part: Labelled, lam1: Weight, steps: int, start: Fit | None) -> _Subspace:
        model, rows = copy(self.model).set_params(lam1=lam1), part[0]
        model.set_params(max_iter=min(model.max_iter, steps), tol=max(model.tol, TOL))
        sample = part if self._sample is None else (rows[self._sample], part[1][self._sample])
        fit = model._fit_subspace(sample, RELAX, start)
        if self._sample is not None:
            fit = model.set_params(max_iter=1)._fit_subspace(part, start=fit)
        return _Subspace(fit, latent_labelled(part, fit.model, model.n_jobs)[0])


def _scaled_fits(
    model: SLRMRegressor, weights: list[Weight], sample: NDArray[np.intp] | None, checked: Labelled
) -> _ShortFits:
    """Short fits of the `checked` rows in the units that suit the model of all of them, as in `SLRMRegressor.fit`; the
    model keeps these.
    """
    part, short_fits = model._begin(*checked), _ShortFits(model, weights, sample)
    if model.standardize:
        model._one_scale = model._find_one_scale(short_fits.without_labels(part).fit.model, part)
    return _ShortFits(model, weights, sample) if model._one_scale else short_fits


def _fitted_to_all(model: SLRMRegressor, rows: Observed, y: Floats, start: Fit | None) -> SLRMRegressor:
    """The chosen model fitted to all rows and labels.

    A model with labels in its factorisation takes the short fit that the folds scored, since EM to convergence may end
    at another model. One of lam1="inf" is fitted by `SLRMRegressor.fit`, or goes on from `start` by a few steps of EM.
    """
    joint = model.lam1 == "auto" or np.isfinite(float(model.lam1))
    if start is None and not joint:
        model.fit(rows, y)
        return model
    table = model._begin(rows, y)
    if joint:
        ((fit, _),) = _ShortFits(copy(model).set_params(lam1="inf"), [model.lam1], None, start).subspaces(table)
    else:
        model.set_params(max_iter=min(model.max_iter, STEPS))
        fit = model._fit_subspace(table, RELAX, start)
    model._store(fit, table, model.alpha)
    return model


def _label_scores(
    short_fits: _ShortFits, rows: Observed, labels: Floats, test: NDArray[np.intp], alphas: list[Alpha]
) -> Floats:
    """Negative mean squared errors (lam1, alpha) on the labels of `test`, which the fit to all rows does not see."""
    hidden = np.flatnonzero((~np.isnan(labels)).any(axis=1))[test]
    visible = labels.copy()
    visible[hidden] = np.nan  # rows without their labels still help to fit the subspace
    part = short_fits.model._begin(rows, visible)
    centred = labels[hidden] - short_fits.model.label_mean_
    fits = [
        [(space.latent[hidden], space.labels(part[1], alpha)) for alpha in alphas]
        for space in short_fits.subspaces(part)
    ]
    return np.array(
        [[-np.nanmean((latent @ fit.weights + fit.intercept - centred) ** 2) for latent, fit in line] for line in fits]
    )


def _cell_scores(short_fits: _ShortFits, rows: Observed, labels: Floats, test: NDArray[np.intp]) -> Floats:
    """Negative mean squared errors (lam1,) of the hidden cells `test`, in standard deviations of their columns."""
    hidden = marked(test, rows.nnz)
    part = short_fits.model._begin(hide(rows, hidden), labels)
    mean, scale = short_fits.model.mean_, short_fits.model.scale_
    own = fit_columns_over(hide(rows, hidden), None)[0].scale if short_fits.model._one_scale else scale
    in_deviations = (scale / own)[rows.indices[hidden]] ** 2
    standard = rows.with_values((rows.values - mean[rows.indices]) / scale[rows.indices])
    errors = (
        squared_errors(space.latent, space.fit.model.basis, standard, hidden, space.fit.model.mean)
        for space in short_fits.subspaces(part)
    )
    return np.array([-np.mean(in_deviations * squares) for squares in errors])


@whole_answers
class SLRMRegressorCV(SubspaceRegression):
    """SLRM with the dimension, the weight of labels and the penalty chosen by cross-validation.

    Parameters
    ----------
    n_components : sequence of int, default=(2, 5, 10, 20)
        Dimensions to try, up to the number of columns and what `SLRMRegressor` takes by default
        where columns have few entries; where all are larger, that alone.
    lam1 : sequence of "inf", "auto" or float, default=("inf", "auto")
        Weights of the entries against the label, in standard deviations of y, to try. "auto" adds
        the directions that `SLRMRegressor` adds where labels gain.
    alpha : sequence of "auto" or float, default=("auto",)
        Ridges on w to try: all of them on the latent coordinates of one factorisation.
    over : {"rows", "cells"}, default="rows"
        What is held out: the labels of rows, or observed cells of X, whose imputations are scored
        in standard deviations of their columns. Cells choose the dimension without any label, and
        need no label to be known.
    cv : int, splitter or iterable, default=5
        Folds over rows, or over the observed cells in row order. Rows without a label are in every
        training part.
    max_iter : int, default=100
        Most steps of every fit.
    tol : float, default=1e-4
        Relative change of the basis at which a fit stops.
    standardize : bool, default=True
        As in `SLRMRegressor`.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Draws folds of cells and the start of every fit. None is a fixed draw.
    n_jobs : int, default=None
        Threads: None is one, -1 all processors that this process may use.
    verbose : int, default=0
        1 says how far the search is.

    Attributes
    ----------
    best_params_ : dict
        The parameters that were chosen, by name.
    best_score_ : float
        Negative mean squared error over folds.
    cv_results_ : dict of arrays
        One row a combination, in scikit-learn's keys.
    components_, coef_, feature_coef_, intercept_, sigma2_, ridge_ and the rest
        Attributes of the `SLRMRegressor` that is fitted to all rows with `best_params_`.

    Notes
    -----
    Of each dimension one factorisation with lam1="inf", which all folds over rows share, or for
    cells one a fold, by 25 long steps of EM at most; one a fold for every other lam1, which starts
    there and takes 10. In tables with more than 2,000 observed entries a column (and 30,000 in all)
    these see a sample of the rows, and then all rows in a last step; the final model goes on from
    there by 25 long steps at most. In smaller tables it is that of `SLRMRegressor` for lam1="inf",
    and takes the steps of the folds on all rows for another: steps that are few shrink what labels
    tell.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import SLRMRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(200, 3))
    >>> X = a @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(200, 12))
    >>> X[rng.random(X.shape) < 0.4] = np.nan
    >>> model = SLRMRegressorCV([1, 3], lam1=["inf"], cv=3, random_state=0).fit(X, a[:, 0])
    >>> model.best_params_["n_components"]
    3
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "n_components": ["array-like", Interval(Integral, 1, None, closed="left")],
        "lam1": ["array-like", StrOptions({"auto", "inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": ["array-like", StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "over": [StrOptions({"rows", "cells"})],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"]), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | Sequence[int] = (2, 5, 10, 20),
        *,
        lam1: Weight | Sequence[Weight] = ("inf", "auto"),
        alpha: Alpha | Sequence[Alpha] = ("auto",),
        over: Literal["rows", "cells"] = "rows",
        cv: Any = 5,
        max_iter: int = 100,
        tol: float = 1e-4,
        standardize: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.lam1 = lam1
        self.alpha = alpha
        self.over = over
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.standardize = standardize
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> SLRMRegressorCV:
        """Search, then fit to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.

        Returns
        -------
        self : SLRMRegressorCV
        """
        rows = self._check_rows(X, reset=True)
        labels, single = self._check_labels(y, rows)
        ranks = self._ranks(rows)
        weights, alphas = _listed(self.lam1), _listed(self.alpha)
        seeds = generator(fixed_seed(self.random_state)).integers(2**31 - 1, size=3)
        known = np.any(~np.isnan(labels), axis=1)
        units = rows.nnz if self.over == "cells" else int(known.sum())
        if units < 2:
            raise ValueError(
                f"y must have at least two known labels to search with; got n_samples={units}. Use SLRMRegressor, or "
                "over='cells'."
            )
        folds = list(_splitter(self.cv, units, self.over, int(seeds[1])))
        sample = sampled_rows(rows, generator(int(seeds[2])), known)
        scores = np.empty((len(ranks), len(weights), len(alphas), len(folds)))
        starts: dict[int, Fit | None] = {}
        one_scale: dict[int, bool] = {}
        for r, rank in enumerate(ranks):
            model = self._model(rank, "inf", "auto", int(seeds[0]))
            short_fits = _scaled_fits(model, weights, sample, (rows, labels))
            one_scale[rank] = bool(model._one_scale)
            for f, test in enumerate(folds):
                if self.over == "cells":  # folds hide other cells, so that each needs its own subspace of lam1="inf"
                    short_fits = _ShortFits(model, weights, sample)
                    scores[r, :, :, f] = _cell_scores(short_fits, rows, labels, test)[:, None]
                else:
                    scores[r, :, :, f] = _label_scores(short_fits, rows, labels, test, alphas)
            starts[rank] = None if sample is None else short_fits.unlabelled
            for lam1, scored in zip(weights, scores[r], strict=True):
                say(self.verbose, "n_components=%d lam1=%s: score %.4g", rank, lam1, scored.mean(axis=1).max())
        self._report(list(product(ranks, weights)), scores)
        best = self.best_params_
        model = self._model(
            best["n_components"], best["lam1"], best["alpha"], int(seeds[0]), one_scale[best["n_components"]]
        )
        model = _fitted_to_all(model, rows, labels[:, 0] if single else labels, starts[best["n_components"]])
        for name, value in vars(model).items():
            if name.endswith("_"):
                setattr(self, name, value)
        return self

    def _ranks(self, rows: Observed) -> list[int]:
        """The dimensions to try: those that rows carry, or the largest of these."""
        listed = [int(k) for k in _listed(self.n_components)]
        if not listed or min(listed) < 1:
            raise ValueError(f"n_components must hold dimensions of at least 1; got {listed}. Add one.")
        most = min(rows.shape[1], carried_rank(np.bincount(rows.indices).astype(np.float64)))
        return [k for k in listed if k <= most] or [most]

    def _model(self, rank: int, lam1: Weight, alpha: Alpha, seed: int, one_scale: bool | None = None) -> SLRMRegressor:
        options = {name: getattr(self, name) for name in ("max_iter", "tol", "standardize", "n_jobs")}
        model = SLRMRegressor(rank, lam1=lam1, alpha=alpha, random_state=seed, **options)
        model._one_scale = one_scale
        return model

    def _report(self, grid: list[tuple[int, Weight]], scores: Floats) -> None:
        from scipy.stats import rankdata

        params = [{"n_components": k, "lam1": lam1, "alpha": a} for (k, lam1), a in product(grid, _listed(self.alpha))]
        flat = scores.reshape(len(params), -1)
        mean = flat.mean(axis=1)
        self.cv_results_ = {
            **{f"param_{name}": np.array([str(p[name]) for p in params]) for name in ("n_components", "lam1", "alpha")},
            "params": params,
            **{f"split{k}_test_score": flat[:, k].copy() for k in range(flat.shape[1])},
            "mean_test_score": mean,
            "std_test_score": flat.std(axis=1),
            "rank_test_score": rankdata(-mean, method="min").astype(np.int32),
        }
        self.best_index_ = int(mean.argmax())
        self.best_params_, self.best_score_ = dict(params[self.best_index_]), float(mean[self.best_index_])
