"""What `KarmaClassifierCV` and `KarmaRegressorCV` share: the search, its report, the refitted models."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar.karma._auto import gram_bytes
from lacunar.karma._engine import EngineFits
from lacunar.karma._expand import expand, fit_expansion
from lacunar.karma._kernel_form import KernelOptions
from lacunar.karma._map import has_map
from lacunar.karma._search import SearchData, best_kernels, composed, kernel_grid, kernel_params, results_table, search
from lacunar.karma._splits import make_splits, search_rows
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns
from lacunar.observed.door import validate_X
from lacunar.observed.rules import (
    COLUMNS,
    COUNT,
    LABELS,
    Array,
    Instance,
    Items,
    Number,
    Rule,
    Word,
    check_parts,
    floats,
)

_Floats = NDArray[np.float64]
_MEMORY = 2**31  # memory_limit of the models that are refitted
_AUTO_AVERAGE = 5  # models of options="auto"
DEFAULT_CS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


class KarmaSearch(BaseEstimator):  # type: ignore[misc]
    """Search over kernels and C; `estimators_` are the models fitted to all rows with the best of them."""

    _held: ClassVar[dict[str, Rule]] = {
        **{name: Number(finite=False) for name in ("best_score_", "zero_imputation_score_")},
        "classes_": LABELS,
        "best_index_": COUNT,
        "n_iter_": COUNT,
        "columns_": Items(Array("fb", ("d",)), 3),
        "chosen_": Items(Instance(dict), "models"),
        "estimators_": Items(Instance(EngineFits), "models"),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gammas": ["array-like"],
        "Cs": ["array-like"],
        "indicators": ["array-like"],
        "normalize": ["array-like"],
        "scale": [StrOptions({"mean", "raw"}), Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "constant": ["boolean"],
        "cv": [
            StrOptions({"loo", "holdout"}),
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split", "get_n_splits"]),
            "array-like",
        ],
        "max_search_rows": [Interval(Integral, 1, None, closed="left")],
        "options": [StrOptions({"auto"}), None],
        "average": [Interval(Integral, 1, None, closed="left")],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    gammas: Any
    Cs: Any
    indicators: Any
    normalize: Any
    scale: Any
    standardize: bool
    constant: bool
    cv: Any
    max_search_rows: int
    average: int
    options: str | None
    sparse_missing: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    expansions_: dict[str, Any]

    def _search(
        self, X: Observed, y: NDArray[Any], targets: _Floats, weight: _Floats, loss_weight: _Floats, codes: Any
    ) -> list[tuple[KernelOptions, float]]:
        """Score the grid, fill the report, return the best kernels with their C."""
        Cs = self._values_of_C()
        kept = search_rows(np.flatnonzero(weight), codes, self.max_search_rows, self.random_state)
        columns = fit_columns(X[kept], weight[kept], standardize=self.standardize)
        rows = scale_columns(X[kept], columns)
        splits = make_splits(self.cv, y, codes, kept, self.random_state)
        labels = (targets[kept], weight[kept], loss_weight[kept], splits)
        n_rows = int(np.count_nonzero(weight))
        grid = self._grid(None, n_rows)
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": int(self.verbose)}
        scores = [search(SearchData(rows, *labels), grid, Cs, **options)]
        self._fit_expansions(X, weight)
        for kind in self.expansions_:
            more = self._grid(kind, n_rows)
            scores.append(search(SearchData(self._table_of(X[kept], kind), *labels), more, Cs, **options))
            grid = grid + more
        chosen = self._report(grid, Cs, np.concatenate(scores))
        kinds = {options.expand for options, _ in chosen}
        self.expansions_ = {kind: fitted for kind, fitted in self.expansions_.items() if kind in kinds}
        return chosen

    def _grid(self, kind: str | None, n_rows: int) -> list[KernelOptions]:
        """Kernels on one table. Where the Gram of all rows does not fit, only those that a weight table can hold."""
        grid = kernel_grid(self.gammas, self.indicators, self.normalize, self.scale, self.constant, kind)
        if self.options == "auto":
            grid += composed(grid)
        return grid if gram_bytes(n_rows) <= _MEMORY else [options for options in grid if has_map(options)]

    def _fit_expansions(self, X: Observed, weight: _Floats) -> None:
        """Columns and expansions of all rows: a subsample is searched with those the models will use."""
        self.expansions_ = {}
        if self.options != "auto":
            return
        used = np.flatnonzero(weight)
        columns = fit_columns(X[used], weight[used], standardize=self.standardize)
        self.columns_: list[Any] = list(columns)
        rows = scale_columns(X[used], columns)
        found = {kind: fit_expansion(rows, kind) for kind in ("gaussian", "levels")}
        self.expansions_ = {kind: fitted for kind, fitted in found.items() if fitted is not None}

    def _table_of(self, X: Observed, kind: str | None) -> Observed:
        """The table a model on `kind` reads."""
        if kind is None:
            return X
        return expand(scale_columns(X, ColumnScale(*self.columns_)), self.expansions_[kind])

    def _check_loaded(self) -> None:
        """Expansions of this many columns, and a model for every choice that reads its table and says its classes."""
        if "estimators_" not in vars(self):
            return
        d, widths = self.n_features_in_, dict[str | None, int]({None: 1})
        for kind, fitted in self.expansions_.items():
            rules: dict[str, Rule] = {
                "kind": Word(("gaussian", "levels")),
                "points": floats("d", "m"),
                "maps": floats("d", "m", "m"),
            }
            check_parts(fitted, rules, f"expansions_[{kind!r}]", {"d": d})
            widths[kind] = fitted["points"].shape[1] + 1
        if len(widths) > 1:
            check_parts(dict(zip(COLUMNS, self.columns_, strict=True)), COLUMNS, "columns_", {"d": d})
        for chosen, model in zip(self.chosen_, self.estimators_, strict=True):
            wanted = d * widths.get(chosen.get("expand"), 0)
            alike = np.array_equal(getattr(self, "classes_", 0), getattr(model, "classes_", 0))
            if getattr(model, "n_features_in_", None) != wanted or not alike:
                raise ValueError(
                    f"estimators_ must be of the columns and classes of the search; {model!r} is not. Fit again"
                )

    def _values_of_C(self) -> _Floats:
        Cs = np.sort(np.asarray(self.Cs, dtype=np.float64).ravel())
        if not len(Cs) or not (np.isfinite(Cs).all() and Cs[0] > 0):
            raise ValueError(
                f"Cs must be one or more finite numbers > 0; got {self.Cs!r}. Leave it out for 1e-3 to 1e3."
            )
        return Cs

    def _report(self, grid: list[KernelOptions], Cs: _Floats, scores: _Floats) -> list[tuple[KernelOptions, float]]:
        self.cv_results_ = results_table(grid, Cs, scores)
        chosen = [(grid[k], float(Cs[c])) for k, c in best_kernels(scores, self._n_models())]
        self.chosen_ = [{"gamma": o.gamma, "C": C, **kernel_params(o)} for o, C in chosen]
        if self.verbose:
            print(f"[lacunar] chosen, best first: {self.chosen_}")
        mean = self.cv_results_["mean_test_score"]
        self.best_index_ = self.cv_results_["params"].index(
            {"gamma": chosen[0][0].gamma, "C": chosen[0][1], **kernel_params(chosen[0][0])}
        )
        self.best_params_ = dict(self.cv_results_["params"][self.best_index_])
        self.best_score_ = float(mean[self.best_index_])
        imputed = (self.cv_results_["param_gamma"] == 1) & ~self.cv_results_["param_indicators"].astype(bool)
        imputed &= (self.cv_results_["param_expand"] == "None") & (self.cv_results_["param_degree"] == 1)
        self.zero_imputation_score_ = float(mean[imputed].max()) if imputed.any() else float("nan")
        return chosen

    def _n_models(self) -> int:
        return max(self.average, _AUTO_AVERAGE) if self.options == "auto" else self.average

    def _model_params(self, options: KernelOptions) -> dict[str, Any]:
        """Parameters of the refitted model that this search shares with it."""
        shared = {
            name: getattr(self, name)
            for name in ("scale", "standardize", "constant", "sparse_missing", "random_state", "n_jobs")
        }
        if options.expand is not None:  # columns are standardised before they are expanded, and not after
            shared["standardize"] = False
        return {
            "gamma": options.gamma,
            "indicators": options.indicators,
            "normalize": options.normalize,
            "degree": options.degree,
            **shared,
        }

    def _mean_of_models(self, X: Any, method: str) -> _Floats:
        """Mean over `estimators_` of a method's values."""
        check_is_fitted(self)
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        kinds = [each["expand"] for each in self.chosen_]
        tables = {kind: self._table_of(table, kind) for kind in kinds}
        each = [getattr(model, method)(tables[kind]) for model, kind in zip(self.estimators_, kinds, strict=True)]
        values: _Floats = np.mean(each, axis=0)
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
