"""`fit_batches`: a fit in one pass over batches, the same verb for every estimator that has `partial_fit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self


def one_pass(model: Any, batches: Iterable[Any], learn: Callable[[Any], Any]) -> None:
    """Start afresh and learn batch after batch.

    An error in the first batch leaves the model as it was; a later one leaves it as after the batch before.
    """
    before, number = dict(vars(model)), 0
    for name in before:
        if (name.endswith("_") and not name.startswith("_")) or name == "_engine":  # what was learned, not how to
            del model.__dict__[name]
    try:
        for batch in batches:
            learn(batch)
            number += 1
        if not number:
            raise ValueError("batches must hold at least one batch; it was empty. Pass a fresh iterator.")
    except BaseException:
        if not number:
            model.__dict__.clear()
            model.__dict__.update(before)
        raise


def rows_of(batch: Any) -> Any:
    """X of a batch that is X, (X, y) or (X, None)."""
    return batch[0] if isinstance(batch, tuple) else batch


def labelled(batch: Any, least: int = 2, most: int = 2) -> Any:
    """A batch (X, y) or (X, y, sample_weight), or what came in its place."""
    if not isinstance(batch, tuple | list) or not least <= len(batch) <= most:
        came = f"{len(batch)} pieces" if isinstance(batch, tuple | list) else type(batch).__name__
        wish = "(X, y)" if most == 2 else "(X, y) or (X, y, sample_weight)"
        raise ValueError(
            f"batches must hold tuples {wish}; got {came}. Name the labels in read_batches(..., target=), or zip them."
        )
    return batch


class RowBatches:
    """`fit_batches` of estimators that learn from rows alone."""

    partial_fit: Any

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Fit in one pass over batches; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of X or (X, y)
            X as in `partial_fit`, y ignored: what `lacunar.observed.read_batches` yields, or any generator.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator.

        Raises
        ------
        ValueError
            No batch at all, or what `partial_fit` refuses: the model is then as after the batch before, or as before the call if
            it was the first.
        """
        one_pass(self, batches, lambda batch: self.partial_fit(rows_of(batch)))
        return self
