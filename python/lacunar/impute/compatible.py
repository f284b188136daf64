"""Chained equations that agree with the regression that follows (Bartlett, Seaman, White and Carpenter 2015).

A column is proposed by its own model given the other covariates, learned from all completed rows, and each row takes one of several
proposals, or keeps its value, by the likelihood of its outcome under the regression, whose parameters are drawn in every sweep. Taking
one of independent proposals and the present value by their weights leaves the posterior as it is (Andrieu, Lee and Vihola 2018). Of
levels, all are weighed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lacunar._typing import Floats
from lacunar.impute.chained import Chain, Parameters, Plan, Target, level_chances, normal_values

_PROPOSALS = 20  # of a number, besides its present value
_ROUNDS = 2  # of every column in a sweep, as models that are learned from completed rows settle later


class CompatibleChain(Chain):
    """A chain whose draws agree with a regression."""

    def __init__(self, plan: Plan, observed: Floats, rng: np.random.Generator) -> None:
        super().__init__(plan, observed, rng)
        self._everyone = np.flatnonzero(plan.weight) if plan.weight is not None else np.arange(plan.n_rows)
        assert plan.regression is not None
        self._regression, self._outcome = plan.regression, plan.regression.places
        self._model = plan.regression.of(self.columns, plan.weight)

    def sweep(self, keep: bool = False) -> dict[int, Parameters]:
        """Some rounds of `Chain`, with the parameters of the regression drawn before each; they are of use to this table alone."""
        for _ in range(_ROUNDS):
            A = self._regression.design(self.columns)
            self._centre, self._scale = A.mean(axis=0), np.maximum(A.std(axis=0), 1e-300)
            self._base, self._coef = self._model.draw((A - self._centre) / self._scale, self.rng)
            super().sweep()
        return {}

    def _learn(self, target: Target, without: Floats) -> Parameters:
        """From all completed rows: those where a column is observed may have been selected by the outcome."""
        if target.place in self._outcome:
            return {}
        everyone = replace(
            target,
            observed=self._everyone,
            values=self.columns[target.place][self._everyone],
            missing=np.empty(0, dtype=np.intp),
        )
        return super()._learn(everyone, without[:0])

    def _drawn(self, target: Target, rows: Floats, parameters: Parameters) -> Floats:
        columns = {place: column[target.missing] for place, column in self.columns.items()}
        if target.place in self._outcome:
            values = self._model.outcomes(self._scores(columns), self.rng)
            return target.rounded(np.clip(values, target.low, target.high))
        if target.is_number:
            mean = rows @ parameters["drawn"][0]
            proposals = normal_values(target, np.tile(mean, _PROPOSALS), float(parameters["sigma"][0]), self.rng)
            candidates = np.vstack([columns[target.place], proposals.reshape(_PROPOSALS, -1)])
            weights = np.zeros_like(candidates)
        else:
            weights = np.log(np.maximum(level_chances(target, rows, parameters).T, 1e-300))
            candidates = np.tile(np.arange(float(target.levels))[:, None], len(rows))
        with np.errstate(invalid="ignore", over="ignore"):
            scores = self._scores(columns | {target.place: candidates})
            weights = weights + self._model.log_likelihood(scores, target.missing)
        weights[~np.isfinite(weights)] = -np.inf  # where a formula has no value, as the logarithm of a negative number
        picks = (weights + self.rng.gumbel(size=weights.shape)).argmax(axis=0)
        return np.asarray(candidates[picks, np.arange(len(rows))])

    def _scores(self, columns: dict[int, Floats]) -> Floats:
        """Linear predictors of rows from their columns, of which one may be (k, m)."""
        scores, first = np.asarray(self._base), 0
        for term in self._regression.terms:
            design = term.design(columns)
            own = slice(first, first + design.shape[-1])
            scores = scores + (design - self._centre[own]) / self._scale[own] @ self._coef[own]
            first = own.stop
        return scores
