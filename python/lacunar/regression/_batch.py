"""The solvers of `SLRMRegressor` that see all rows at once, wherever the rows are: EM and alternating least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context, clone

from lacunar._random import generator
from lacunar.lowrank.parts import Parts
from lacunar.observed.columns import ColumnScale
from lacunar.observed.door import adopt_columns, agree_targets
from lacunar.regression._rows import facts_of, labels_seen, opened, ready, rows_of
from lacunar.regression._solvers import fit_batch

_Floats = NDArray[np.float64]


class BatchFits:
    """Methods on the parameters of `SLRMRegressor`."""

    solver: str
    alpha: Any
    l1_ratio: float
    ridge: Any
    tol: float
    center: bool
    clip: float | None
    random_state: Any
    n_jobs: int | None
    center_: _Floats
    scale_: _Floats
    observed_columns_: NDArray[np.bool_]
    _check_rank: Any
    _fit_columns: Any
    _adopt_over: Any
    _lam1: Any
    _passes: Any
    _printed: bool
    _progress: Any

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_parts(self, parts: Any) -> Any:
        """Fit to rows in parts that may lie on other machines; only sums over the rows of a part leave it.

        Parameters
        ----------
        parts : object with methods map, each and total
            Of pairs (X, y) as in `fit`. `map(step, *given)` gives parts made by `step(part, *given)`, `each` a list of what it
            makes of every part, `total` the sums of the tuples it makes. `lacunar.distributed.fit_slrm` passes parts that are Dask's.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Solvers other than "em" and "als", which go through rows in an order; parts with other columns or targets.
        """
        if self.solver not in ("em", "als") or self._printed:
            way = "options='paper'" if self._printed else repr(self.solver)
            raise ValueError(
                f"solver must be 'em' or 'als' for rows in parts; got {way}, which learns from one row after the other. Use "
                "solver='em'."
            )
        return self._fit_parts(parts)

    def _fit_parts(self, parts: Parts) -> Any:
        tables = parts.map(opened, clone(self))
        columns, targets = zip(*tables.each(facts_of), strict=True)
        d, self.one_target_ = self._check_rank(adopt_columns(self, list(columns))), agree_targets(list(targets))
        self._fit_columns(tables.map(rows_of))
        known, total = tables.total(labels_seen)
        self.labelled_, self.label_mean_ = known > 0, total / np.maximum(known, 1)
        scale = ColumnScale(self.center_, self.scale_, self.observed_columns_)
        table = tables.map(ready, scale, self.clip, self.label_mean_)
        del tables  # the rows as they came are not needed again
        found = fit_batch(
            table,
            d,
            solver=self.solver,
            lam1=self._lam1(),
            ridge=None if self.ridge == "auto" else float(self.ridge),
            max_iter=self._passes(),
            tol=self.tol,
            mean=self.center,
            rng=generator(self.random_state),
            n_jobs=self.n_jobs,
            progress=self._progress(),
        )
        self._adopt_over(found, table, self.alpha, self.l1_ratio)
        return self
