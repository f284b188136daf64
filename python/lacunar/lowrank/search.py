"""`SLRMRegressorCV`: n_components, lam1 and alpha by folds over rows, one factorisation for all values of alpha."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from lacunar._log import say
from lacunar._random import fixed_seed, generator
from lacunar._snapshot import all_or_nothing
from lacunar.lowrank.hidden import RELAX, STEPS, TOL, hide, squared_errors
from lacunar.lowrank.labels import fit_labels
from lacunar.lowrank.parts import Whole
from lacunar.lowrank.regression import Subspace, SubspaceRegression
from lacunar.lowrank.slrm import SLRMRegressor
from lacunar.observed import Observed

_Floats = NDArray[np.float64]


def _listed(values: Any) -> list[Any]:
    return [values] if np.ndim(values) == 0 else list(values)


def _splitter(cv: Any, units: int, over: str, seed: int) -> Iterator[NDArray[np.intp]]:
    """Test parts of folds over `units` rows or cells; cells are shuffled, since neighbours share a row."""
    from sklearn.model_selection import KFold, check_cv

    if isinstance(cv, Integral):
        chosen = KFold(min(int(cv), units), shuffle=over == "cells", random_state=seed if over == "cells" else None)
    else:
        chosen = check_cv(cv)
    return (test for _, test in chosen.split(np.zeros((units, 1))))


class SLRMRegressorCV(SubspaceRegression):
    """SLRM with the dimension, the weight of labels and the penalty chosen by cross-validation.

    Parameters
    ----------
    n_components : sequence of int, default=(2, 5, 10, 20)
        Dimensions to try; those beyond the number of columns are left out.
    lam1 : sequence of "inf" or float, default=("inf", 1.0)
        Weights of the entries against the label to try.
    alpha : sequence of "auto" or float, default=("auto",)
        Penalties on w to try: all of them on the codes of one factorisation.
    solver : {"em", "als"}, default="em"
    over : {"rows", "cells"}, default="rows"
        What is held out: the labels of rows, or observed cells of X, whose imputations are scored in standard deviations of
        their columns. Cells choose the dimension without any label, and need no label to be known.
    cv : int, splitter or iterable, default=5
        Folds over rows, or over the observed cells in row order. Rows without a label are in every training part.
    max_iter : int, default=100
    tol : float, default=1e-4
    gate : float or None, default=None
    standardize : bool, default=True
    clip : float or None, default=8.0
    sparse_missing : {"absent", "nan"}, default="absent"
    random_state : int, RandomState or None, default=None
        Draws folds of cells and the start of every fit. None is a fixed draw.
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        Negative mean squared error over folds.
    cv_results_ : dict of arrays
        One row a combination, in scikit-learn's keys.
    components_, coef_, feature_coef_, intercept_, sigma2_, ridge_ and the rest
        Attributes of the `SLRMRegressor` that is fitted to all rows with `best_params_`.

    Notes
    -----
    Of each dimension one factorisation with lam1="inf", which all folds over rows share, and one a fold for every other lam1 or for cells, of 25 long
    steps of EM at most; see `SLRMRegressor` for the cost of one.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import SLRMRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(200, 3))
    >>> X = a @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(size=(200, 12))
    >>> X[rng.random(X.shape) < 0.4] = np.nan
    >>> SLRMRegressorCV([1, 3], lam1=["inf"], cv=3, random_state=0).fit(X, a[:, 0]).best_params_["n_components"]
    3
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "n_components": ["array-like", Interval(Integral, 1, None, closed="left")],
        "lam1": ["array-like", StrOptions({"inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": ["array-like", StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"em", "als"})],
        "over": [StrOptions({"rows", "cells"})],
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split", "get_n_splits"]), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: Any = (2, 5, 10, 20),
        *,
        lam1: Any = ("inf", 1.0),
        alpha: Any = ("auto",),
        solver: Literal["em", "als"] = "em",
        over: Literal["rows", "cells"] = "rows",
        cv: Any = 5,
        max_iter: int = 100,
        tol: float = 1e-4,
        gate: float | None = None,
        standardize: bool = True,
        clip: float | None = 8.0,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.lam1 = lam1
        self.alpha = alpha
        self.solver = solver
        self.over = over
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.gate = gate
        self.standardize = standardize
        self.clip = clip
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
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
        ranks = [int(k) for k in _listed(self.n_components) if k <= rows.shape[1]]
        if not ranks or min(ranks) < 1:
            raise ValueError(
                f"n_components must hold dimensions from 1 to the number of columns, {rows.shape[1]}; got "
                f"{_listed(self.n_components)}. Add a smaller one."
            )
        grid, alphas = list(product(ranks, _listed(self.lam1))), _listed(self.alpha)
        seeds = generator(fixed_seed(self.random_state)).integers(2**31 - 1, size=2)
        units = rows.nnz if self.over == "cells" else int((~np.isnan(labels)).any(axis=1).sum())
        if units < 2:
            raise ValueError(
                f"y must have at least two known labels to search with; got n_samples={units}. Use SLRMRegressor, or "
                "over='cells'."
            )
        folds = list(_splitter(self.cv, units, self.over, int(seeds[1])))
        scores = np.empty((len(grid), len(alphas), len(folds)))
        score = self._score_cells if self.over == "cells" else self._score_rows
        for g, (rank, lam1) in enumerate(grid):
            subspace = None
            for f, test in enumerate(folds):
                model = self._judged(rank, lam1, int(seeds[0]))
                scores[g, :, f], subspace = score(rows, labels, test, model, alphas, subspace)
            say(self.verbose, "n_components=%d lam1=%s: score %.4g", rank, lam1, scores[g].mean(axis=1).max())
        self._report(grid, scores)
        best = self.best_params_
        model = self._model(best["n_components"], best["lam1"], best["alpha"], int(seeds[0]))
        model.fit(rows, labels[:, 0] if single else labels)
        for name, value in vars(model).items():
            if name.endswith("_") and name not in ("n_features_in_",):
                setattr(self, name, value)
        return self

    def _model(self, rank: int, lam1: Any, alpha: Any, seed: int) -> SLRMRegressor:
        shared = ("solver", "max_iter", "tol", "gate", "standardize", "clip", "n_jobs")
        options = {name: getattr(self, name) for name in shared}
        return SLRMRegressor(rank, lam1=lam1, alpha=alpha, random_state=seed, **options)

    def _judged(self, rank: int, lam1: Any, seed: int) -> SLRMRegressor:
        """A model to be scored: a few long steps of EM order dimensions and weights as its limit does."""
        model = self._model(rank, lam1, "auto", seed)
        if self.solver == "em":
            model.set_params(max_iter=min(self.max_iter, STEPS), tol=max(self.tol, TOL))
        return model

    def _score_rows(
        self,
        rows: Observed,
        labels: _Floats,
        test: NDArray[np.intp],
        model: SLRMRegressor,
        alphas: list[Any],
        subspace: Subspace | None,
    ) -> tuple[list[float], Subspace | None]:
        """Negative mean squared errors on the labels of `test`, hidden from a fit to all rows; every alpha on its codes.

        `subspace` is the one of these rows that an earlier fold returned: where labels do not tell about it (lam1="inf"), all folds share it.
        """
        hidden = np.flatnonzero((~np.isnan(labels)).any(axis=1))[test]
        visible = labels.copy()
        visible[hidden] = np.nan  # the rows stay, without their labels: they tell about the subspace
        table = model._ready_parts(Whole((rows, visible)))
        subspace = subspace or model._fit_subspace(table, RELAX)
        model._adopt(subspace, table, model.alpha, model.l1_ratio)
        codes, made = model.transform(rows) / model.sizes_, []
        for alpha in alphas:
            if alpha == "auto":
                predicted = model.intercept_ + codes @ model._weights()
            else:
                fit = fit_labels(Whole((codes, visible - model.label_mean_)), float(alpha), 0.0)
                predicted = model.label_mean_ + fit.intercept + codes @ fit.weights
            made.append(-float(np.nanmean(np.square(predicted - labels)[hidden])))
        return made, subspace if model.lam1 == "inf" else None

    def _score_cells(
        self,
        rows: Observed,
        labels: _Floats,
        test: NDArray[np.intp],
        model: SLRMRegressor,
        alphas: list[Any],
        subspace: Subspace | None,
    ) -> tuple[list[float], Subspace | None]:
        """Negative mean squared error, in standard deviations, of hidden cells; the same for every alpha. No fold shares another's `subspace`."""
        hidden = np.zeros(rows.nnz, dtype=bool)
        hidden[test] = True
        visible = hide(rows, hidden)
        table = model._ready_parts(Whole((visible, labels)))
        model._adopt(model._fit_subspace(table, RELAX), table, model.alpha, model.l1_ratio)
        standard = rows.with_values((rows.values - model.mean_[rows.indices]) / model.scale_[rows.indices])
        errors = squared_errors(model.transform(visible), model.components_.T, standard, hidden)
        return [-float(np.mean(errors))] * len(alphas), None

    def _report(self, grid: list[tuple[int, Any]], scores: _Floats) -> None:
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
