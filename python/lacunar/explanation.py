"""`Explanation`: what each value of a row adds to a prediction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._answers import ColumnTable
from lacunar._typing import Floats
from lacunar.observed.door import is_missing

__all__ = ["Explanation"]

_SHOWN = 12  # features in `repr`


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """What each value of a row adds to a prediction: Shapley values, of the game in which an entry
    is shown or hidden.

    `explain` of `LacunarClassifier`, `LacunarRegressor` and `GaussianRegressor` makes it. The base
    is what the model predicts of a row of which nothing is known; base and values of a row sum to
    its prediction. An entry that is missing adds 0 to that sum; what its absence tells is in
    `absences`, which are no part of the sum.

    Parameters
    ----------
    values : ndarray of shape (m, d) or (m, d, outputs)
        What each entry adds. Several targets, and more than two classes, are outputs.
    base_values : ndarray of shape (m,) or (m, outputs)
        Predictions of a row with nothing observed.
    data : ndarray of shape (m, d)
        The rows as they came: numbers, or objects where a frame holds other things.
    feature_names : list of str
        Of the d columns.
    output_names : list of str or None
        Of the outputs; of a classifier its classes, also where there are two and the values are
        those of the second.
    standard_errors : ndarray of the shape of values
        Of values that are sampled; 0 where they are exact.
    absences : ndarray of the shape of values
        Of entries that are missing the prediction less that of the same row with what the low-rank
        model expects in their place, one at a time: no part of the sum. 0 where the entry is there,
        and under a Gaussian, for which an absence says nothing.

    See Also
    --------
    lacunar.plotting.WaterfallDisplay : One row.
    lacunar.plotting.BeeswarmDisplay : Many rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import GaussianRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> explanation = GaussianRegressor().fit(X, X @ [2.0, 1.0, 0.0]).explain([[1.0, np.nan, 3.0]])
    >>> explanation.summary()["feature"][0]
    'x0'
    >>> float(explanation.values[0, 1])
    0.0
    """

    values: Floats
    base_values: Floats
    data: NDArray[Any]
    feature_names: list[str]
    output_names: list[str] | None
    standard_errors: Floats
    absences: Floats

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """Some of the rows: a number, a slice, or an array of numbers or truth values."""
        chosen = np.atleast_1d(np.arange(len(self))[rows])
        parts = ("values", "base_values", "data", "standard_errors", "absences")
        return replace(self, **{name: getattr(self, name)[chosen] for name in parts})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The values."""
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def predictions(self) -> Floats:
        """Base and values, summed: ndarray of the shape of `base_values`."""
        return np.asarray(self.base_values + self.values.sum(axis=1))

    def output(self, output: Any) -> Explanation:
        """The explanation of one output.

        Parameters
        ----------
        output : str or int
            Its name, or its number.

        Returns
        -------
        explanation : Explanation
            With values of shape (m, d). This one where there is one output alone.
        """
        names = self.output_names or []
        if self.values.ndim == 2:
            return self
        place = names.index(str(output)) if str(output) in names else output
        if not isinstance(place, (int, np.integer)) or not -len(names) <= place < len(names):
            raise ValueError(f"output must be one of {names} or its number; got {output!r}. Choose one of them.")
        return replace(
            self,
            values=self.values[:, :, place],
            base_values=self.base_values[:, place],
            standard_errors=self.standard_errors[:, :, place],
            absences=self.absences[:, :, place],
            output_names=[names[place]],
        )

    def table(self) -> ColumnTable:
        """Every value of every row.

        Returns
        -------
        table : dict of columns
            "row", "output" (where there are several), "feature", "data", "value", "standard_error"
            and "absence".
        """
        m, d, outputs = (*self.values.shape, 1)[:3]
        row, feature, output = (places.ravel() for places in np.indices((m, d, outputs)))
        columns = {
            "row": row,
            "output": [str(name) for name in np.asarray(self.output_names, dtype=object)[output]]
            if self.values.ndim == 3
            else None,
            "feature": [self.feature_names[j] for j in feature],
            "data": self.data[row, feature],
            "value": self.values.ravel(),
            "standard_error": self.standard_errors.ravel(),
            "absence": self.absences.ravel(),
        }
        return ColumnTable({name: column for name, column in columns.items() if column is not None})

    def to_frame(self) -> Any:
        """`table` as a frame.

        Returns
        -------
        frame : pandas.DataFrame
            A row for every row, feature and output.
        """
        return self.table().to_frame()

    def summary(self) -> ColumnTable:
        """The features, those first that move predictions most.

        Returns
        -------
        table : dict of columns
            "feature"; "mean_abs", the mean of the values' sizes, or one such column for every
            output; "missing", the share of the rows that lack it.
        """
        sizes = np.abs(self.values).mean(axis=0).reshape(len(self.feature_names), -1)
        order = np.argsort(-sizes.sum(axis=1), kind="stable")
        names = ["mean_abs"] if self.values.ndim == 2 else [f"mean_abs {name}" for name in self.output_names or ()]
        return ColumnTable(
            {
                "feature": [self.feature_names[j] for j in order],
                **dict(zip(names, sizes[order].T, strict=True)),
                "missing": missing_cells(self.data).mean(axis=0)[order],
            }
        )

    def to_shap(self) -> Any:
        """The same as `shap` has it, for its plots.

        Returns
        -------
        explanation : shap.Explanation

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            shap = import_module("shap")
        except ImportError:
            raise ImportError("to_shap needs shap, which is not installed: pip install shap") from None
        return shap.Explanation(
            values=self.values,
            base_values=self.base_values,
            data=self.data,
            feature_names=self.feature_names,
            output_names=self.output_names if self.values.ndim == 3 else None,
        )

    def __repr__(self) -> str:
        m, d = self.values.shape[:2]
        first = f"Explanation of {m} row{'s' * (m != 1)} by {d} features"
        if m != 1 or self.values.ndim == 3:
            shown: ColumnTable = self.summary()
        else:
            first += f": {self.base_values[0]:.4g} (nothing known) to {self.predictions[0]:.4g}"
            order = np.argsort(-np.abs(self.values[0]) - np.abs(self.absences[0]), kind="stable")
            columns = self.table()
            shown = ColumnTable(
                {
                    name: [columns[name][j] for j in order]
                    for name in ("feature", "data", "value", "standard_error", "absence")
                }
            )
        head = ColumnTable({name: column[:_SHOWN] for name, column in shown.items()})
        return f"{first}\n{head!r}" + (f"\n... {d - _SHOWN} more features" if d > _SHOWN else "")


def missing_cells(data: NDArray[Any]) -> NDArray[np.bool_]:
    """Which cells (m, d) are missing: NaN among numbers, None, NaN and the like among objects."""
    if data.dtype.kind == "f":
        return np.asarray(np.isnan(data))
    return np.array([[is_missing(cell) for cell in row] for row in data], dtype=bool).reshape(data.shape)


def named_outputs(names: Iterable[Any] | None, n: int) -> list[str]:
    """Names of n outputs as text: those given, or their numbers."""
    return [str(name) for name in (range(n) if names is None else names)]
