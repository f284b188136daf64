"""Streams of labelled rows: what a classifier adds to `StreamFits`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from lacunar.karma._solve import one_vs_rest
from lacunar.karma._stream import StreamFits, StreamScore, can_stream
from lacunar.observed import Observed
from lacunar.observed.door import validate_X_y


class ClassifierStream(StreamFits):
    """`partial_fit`, `fit_batches` and `score_stream` of `KarmaClassifier`."""

    class_weight: Any
    classes_: NDArray[Any]

    def _own_loss(self) -> str:
        """The squared loss is the paper's for numbers only; labels have the hinge (section 5)."""
        return "hinge" if self.options == "paper" and self.loss == "squared" else self.loss

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on with Algorithm 1 on a batch of rows, once each and in order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (k,), default=None
            All labels; required in the first call.
        sample_weight : array-like of shape (n,), default=None
            Factors of the loss, >= 0.

        Returns
        -------
        self
            The first batch fixes column scales, count scale and trace. After an error the model is as before the call;
            an interrupt keeps the last full block.
        """
        self._learn(X, y, classes, sample_weight)
        return self

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def fit_batches(self, batches: Iterable[Any], *, classes: ArrayLike) -> Self:
        """Fit in one pass over batches; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of (X, y) or (X, y, sample_weight)
            As in `partial_fit`.
        classes : array-like of shape (k,)
            All labels.

        Returns
        -------
        self
            After an error, of the iterable too, the model is that of the batches before it; where there is none, as before
            the call.
        """
        self._fit_batches(batches, classes)
        return self

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def score_stream(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        regret: bool = False,
    ) -> StreamScore:
        """`partial_fit`, with the predictions made before each row was learned.

        Parameters
        ----------
        X, y, classes, sample_weight
            As in `partial_fit`.
        regret : bool, default=False
            Also solve the batch problem on these rows (gamma 1, 2 or 3) and compare with its mean loss.

        Returns
        -------
        score : StreamScore
            n_rows, mistakes, loss, regret, values.
        """
        return self._score_stream(X, y, classes, sample_weight, regret)

    def _read_batch(self, X: Any, y: Any, *, reset: bool) -> tuple[Observed, NDArray[Any]]:
        table, target = validate_X_y(self, X, y, reset=reset, sparse_missing=self.sparse_missing)
        check_classification_targets(target)
        return table, target

    def _first_targets(self, target: NDArray[Any], classes: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        if classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: all labels that may come.")
        self.classes_ = np.unique(np.asarray(classes))
        return self._targets(target)

    def _targets(self, target: NDArray[Any]) -> NDArray[np.float64]:
        new = np.flatnonzero(~np.isin(target, self.classes_))
        if len(new):
            raise ValueError(
                f"y must hold the labels of the first call; got {target[new[0]]!r} in row {new[0]}. Name all labels in "
                "classes= of the first partial_fit, or fit again."
            )
        return one_vs_rest(np.searchsorted(self.classes_, target), max(len(self.classes_), 2))

    def _balance(self, target: NDArray[Any]) -> Any:
        codes = np.searchsorted(self.classes_, target)
        weight = self.class_weight if isinstance(self.class_weight, dict) else {}
        return np.array([float(weight.get(label, 1.0)) for label in self.classes_])[codes]

    def _check_same_classes(self, classes: Any) -> None:
        if not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_}; got {np.unique(np.asarray(classes))}. Leave it out."
            )

    def _count_mistakes(self, values: NDArray[np.float64], targets: NDArray[np.float64]) -> int:
        if values.shape[1] == 1:
            return int(np.count_nonzero((values > 0) != (targets > 0)))
        return int(np.count_nonzero(values.argmax(axis=1) != targets.argmax(axis=1)))
