"""Shapley values of the learner's predictions; an entry outside a coalition is hidden, and members read it as missing."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from lacunar._random import fixed_seed
from lacunar._typing import Floats, Ints
from lacunar.explanation import Explanation
from lacunar.learner.importance import filled
from lacunar.learner.views import TableViews, View
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.lowrank.shapley import antithetic_ranks, set_weights
from lacunar.observed.door import SparseMissing, cells_of, column_names

_COPIES = 10_000  # rows with hidden entries that are predicted at once


class Explains:
    """Mixin with `explain`, for learners that predict from views."""

    views_: TableViews
    n_features_in_: int
    sparse_missing: SparseMissing
    posterior_: LowRankPosterior | None
    _in_batches: Callable[[Any, Callable[[View], Floats]], Floats]

    def _explained(self, view: View) -> Floats:
        """Predictions (m, q) of rows as they came."""
        raise NotImplementedError

    def _explained_names(self) -> tuple[list[str] | None, bool]:
        """Names of the outputs, and whether there is one alone, which values have no axis for."""
        raise NotImplementedError

    def explain(self, X: Any, *, n_permutations: int = 10, random_state: Any = None) -> Explanation:
        """What each value adds to a prediction: Shapley values, over which entries of the row are
        shown and which are hidden.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (m, d)
            Rows.
        n_permutations : int, default=10
            Orders in which the entries of a row are shown, half of them the reverses of the others:
            an even number of at least 4. More have smaller standard errors, by their square root.
        random_state : int, RandomState or None, default=None
            Draws them, the same for all rows; None is seed 0.

        Returns
        -------
        explanation : Explanation
            `values` of shape (m, d), or (m, d, outputs) of more than two classes and of several
            targets, in units of the predicted number or as probabilities: of two classes that of
            the second, otherwise of each. With `base_values`, the prediction of a row with nothing
            observed, they sum to `predict` or `predict_proba`. A missing entry adds 0 to that sum;
            what its absence tells is in `absences`, which are no part of the sum.

        Notes
        -----
        The game is v(S) = prediction of the row with the entries outside S missing (Shapley 1953;
        Strumbelj and Kononenko 2014): a model that reads gaps needs no other rows to fill them.
        What an entry adds is what it adds over being missing. Sampled by permutations and their
        reverses, n_permutations (k - 1) predictions of a row that shows k entries; where all 2^k
        sets are fewer, these: exact.
        """
        check_is_fitted(self)
        if not isinstance(n_permutations, Integral) or n_permutations < 4 or n_permutations % 2:
            raise ValueError(f"n_permutations must be an even number of at least 4; got {n_permutations!r}. Pass 10.")
        ranks = antithetic_ranks(int(n_permutations) // 2, self.n_features_in_, fixed_seed(random_state))
        complete = None if self.posterior_ is None else self.posterior_.complete
        answers = self._in_batches(X, lambda view: Hiding(self.views_, self._explained, ranks, complete).answer(view))
        names, alone = self._explained_names()
        outputs = 0 if alone else slice(None)
        return Explanation(
            answers[:, 0, :-1, outputs],
            answers[:, 0, -1, outputs],
            cells_of(self, X, self.sparse_missing),
            column_names(self),
            names,
            answers[:, 1, :-1, outputs],
            answers[:, 2, :-1, outputs],
        )


class Hiding:
    """Shapley values of predictions; the players are the columns that a row shows."""

    def __init__(
        self,
        views: TableViews,
        predict: Callable[[View], Floats],
        ranks: Ints,
        complete: Callable[[Floats], Floats] | None,
    ) -> None:
        self.views, self.predict, self.ranks, self.complete = views, predict, ranks, complete  # ranks (permutations, d)

    def answer(self, view: View) -> Floats:
        """Values, their standard errors and what absences add (m, 3, d + 1, q), the last of the columns for the base."""
        shown = self._shown(view)
        (m, d), nothing = shown.shape, np.ones((1, view.T.shape[1]), dtype=bool)
        base = self.predict(self.views.with_hidden(view.take(np.zeros(1, dtype=np.intp)), nothing))
        full, counts = self.predict(view), shown.sum(axis=1)
        answer = np.zeros((m, 3, d + 1, base.shape[1]))
        answer[:, 0, -1] = base
        for k in np.unique(counts[counts > 0]).tolist():  # as int: 2^k may exceed 64 bits
            rows = np.flatnonzero(counts == k)
            n_copies = min(2**k, len(self.ranks) * (k - 1) + 2)
            for first in range(0, len(rows), max(_COPIES // n_copies, 1)):
                part = rows[first : first + max(_COPIES // n_copies, 1)]
                columns = np.nonzero(shown[part])[1].reshape(len(part), k)
                values = self._exact if n_copies == 2**k else self._sampled
                of_columns = values(view.take(part), columns, base, full[part])  # (2, rows, k, q)
                answer[part[:, None], :2, columns] = of_columns.transpose(1, 2, 0, 3)
        self._add_absences(answer, view, full, ~shown)
        return answer

    def _add_absences(self, answer: Floats, view: View, full: Floats, missing: NDArray[np.bool_]) -> None:
        """What it adds that an entry is missing: the prediction less that of the row with what the low-rank model expects there."""
        learned = np.isin(np.arange(missing.shape[1]), self.views.source_)
        rows, columns = np.nonzero(missing & learned)
        if not rows.size:
            return
        # Where there is no low-rank model an entry is expected to be the mean of its column.
        whole = filled(self.views, view, self.complete or np.nan_to_num)
        for first in range(0, len(rows), _COPIES):
            row, column = rows[first : first + _COPIES], columns[first : first + _COPIES]
            shown = self.views.source_ == column[:, None]
            copies = View(
                np.where(shown[:, self.views.places_], whole.Z[row], view.Z[row]),
                np.where(shown, whole.T[row], view.T[row]),
            )
            answer[row, 2, column] = full[row] - self.predict(self.views.with_pairs(copies))

    def _shown(self, view: View) -> NDArray[np.bool_]:
        """Which columns of the table each row shows (m, d); a column may be several of T."""
        shown = np.zeros((len(view.T), self.ranks.shape[1]), dtype=bool)
        own = self.views.of_one_
        rows, places = np.nonzero(~np.isnan(view.T[:, own]))
        shown[rows, self.views.source_[own[places]]] = True
        return shown

    def _of_sets(self, view: View, columns: Ints, sets: NDArray[np.bool_]) -> Floats:
        """Predictions (n, sets, q) of rows that show some of their columns (n, k), by sets (n or 1, sets, k)."""
        n, n_sets = len(columns), sets.shape[1]
        visible = np.zeros((n, n_sets, self.ranks.shape[1]), dtype=bool)
        np.put_along_axis(visible, np.broadcast_to(columns[:, None], (n, n_sets, columns.shape[1])), sets, axis=2)
        hidden = ~visible.reshape(n * n_sets, -1)[:, self.views.source_]
        copies = self.views.with_hidden(view.take(np.repeat(np.arange(n), n_sets)), hidden)
        return self.predict(copies).reshape(n, n_sets, -1)

    def _exact(self, view: View, columns: Ints, base: Floats, full: Floats) -> Floats:
        k = columns.shape[1]
        sets = (np.arange(1, 2**k - 1)[:, None] >> np.arange(k) & 1).astype(bool)
        between = self._of_sets(view, columns, sets[None]) if k > 1 else np.zeros((len(full), 0, full.shape[1]))
        nothing = np.broadcast_to(base, (len(full), 1, base.shape[1]))
        values = np.einsum("ks,nsq->nkq", set_weights(k), np.concatenate([nothing, between, full[:, None]], axis=1))
        return np.stack([values, np.zeros_like(values)])

    def _sampled(self, view: View, columns: Ints, base: Floats, full: Floats) -> Floats:
        (n, k), permutations = columns.shape, len(self.ranks)
        order = np.argsort(self.ranks[:, columns], axis=2)  # (permutations, n, k)
        place = np.argsort(order, axis=2).transpose(1, 0, 2)  # (n, permutations, k): when each column is shown
        sets = place[:, :, None] < np.arange(1, k)[:, None]  # (n, permutations, k - 1, k)
        path = np.empty((n, permutations, k + 1, full.shape[1]))
        path[:, :, 0], path[:, :, -1] = base, full[:, None]
        path[:, :, 1:-1] = self._of_sets(view, columns, sets.reshape(n, -1, k)).reshape(n, permutations, k - 1, -1)
        added = np.take_along_axis(np.diff(path, axis=2), place[..., None], axis=2)
        of_pairs = added.reshape(n, permutations // 2, 2, k, -1).mean(axis=2)
        errors = of_pairs.std(axis=1, ddof=1) / np.sqrt(of_pairs.shape[1])
        return np.stack([of_pairs.mean(axis=1), errors])
