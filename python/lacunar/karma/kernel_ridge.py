"""Kernel ridge regression, over a Gram or through landmarks, with exact predictions of rows that are left out.

One Cholesky factorisation a penalty gives the exact leave-one-out errors and the exact predictions of any folds [1,
Section 3].

[1] R. Rifkin, R. Lippert, "Notes on Regularized Least Squares", MIT CSAIL TR-2007-025.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, lapack, solve_triangular

from lacunar._cuts import Cut, in_order, left_out
from lacunar._typing import Floats, Ints
from lacunar.kernels import KernelForm, RadialForm, RowPairSums
from lacunar.observed import Observed

Form = KernelForm | RadialForm
PairsOfTable = dict[tuple[str, bytes], RowPairSums]  # by table and rows

ABSENT = 1e-12  # what a weight of 0 counts as: such a row has a prediction and no say
RIDGE = 1e-8  # on the diagonal of the landmarks' Gram
BLOCK = 2**22  # kernel values made at once
_STORED_VALUES = 2**26  # kernel values kept while landmarks are fitted: 512 MB
_STORED_PAIRS = 2**23  # pair sums with landmarks kept for the next kernel of the same table: 96 MB
_LEAST_HALVED, _MOST_HALVED = 64, 1024  # rows of a triangle that is inverted by halves


class Rows(NamedTuple):
    """Standardised rows, and the same completed where there is a completion."""

    observed: Observed
    completed: Floats | None

    def take(self, index: Any) -> Rows:
        """The rows of an index, in its order."""
        return Rows(self.observed[index], None if self.completed is None else self.completed[index])


class Data(NamedTuple):
    """Rows to learn from, targets (n, q), weights (n,) above 0; how errors are measured: on splits, or (None)
    leave-one-out.
    """

    rows: Rows
    targets: Floats
    weight: Floats
    splits: list[Cut] | None = None

    def take(self, index: Ints) -> Data:
        """Some of the rows, by ascending numbers; splits that keep no row on a side are dropped, and leave-one-out
        stands in for none.
        """
        if len(index) == len(self.targets):
            return self
        place = np.full(len(self.targets), -1, dtype=np.intp)
        place[index] = np.arange(len(index))
        sides = [tuple(place[side][place[side] >= 0] for side in split) for split in self.splits or ()]
        splits: list[Any] = [split for split in sides if all(map(len, split))]
        return Data(self.rows.take(index), self.targets[index], self.weight[index], splits or None)

    def mean(self, without: Ints | None = None) -> Floats:
        """Weighted mean (q,) of the targets, without some rows; 0 where no others are left."""
        weight = self.weight.copy()
        if without is not None:
            weight[without] = 0.0
        if weight.sum() <= ABSENT * self.weight.sum():
            return np.zeros(self.targets.shape[1])
        return np.average(self.targets, axis=0, weights=weight)


class Solved(NamedTuple):
    """Kernel ridge regression, factorised: with G = W^(1/2) K W^(1/2) + I / (2 C) = L L^T, in the dtype of K,

    L^-1 (n, n); G^-1 W^(1/2) Y (n, q) and G^-1 W^(1/2) 1 (n, 1); the diagonal of G^-1 (n, 1).
    """

    inverse: NDArray[Any]
    beta: Floats
    ones: Floats
    diagonal: Floats
    data: Data

    @classmethod
    def of(cls, gram: NDArray[Any], data: Data, C: float) -> Solved | None:
        """Factorise for a Gram (n, n): 2 n^3 / 3 flops; None where that fails, at a C too large for the rounding of the
        Gram.
        """
        root = np.sqrt(data.weight)[:, None]
        system = np.array(gram.T, order="F")  # symmetric: no copy across the grain
        system *= root.astype(system.dtype)
        system *= root[:, 0].astype(system.dtype)
        system.flat[:: len(system) + 1] += system.dtype.type(1 / (2 * C))
        factorise, invert = lapack.get_lapack_funcs(("potrf", "trtri"), (system,))
        factor, failed = factorise(system, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        inverse = _inverted(factor, invert)
        right = (np.column_stack([data.targets, np.ones(len(root))]) * root).astype(system.dtype)
        solution = (inverse.T @ (inverse @ right)).astype(np.float64)
        diagonal = np.einsum("ij,ij->i", inverse.T, inverse.T).astype(np.float64)[:, None]
        return cls(inverse, solution[:, :-1], solution[:, -1:], diagonal, data)

    def coef(self) -> Floats:
        """Coefficients (n, q) of the targets less their mean."""
        mean = self.data.mean()
        return (self.beta - self.ones * mean) * np.sqrt(self.data.weight)[:, None]

    def left_out(self) -> Floats:
        """Exact leave-one-out predictions (n, q): those of the regression on the targets less their mean, without the
        row.
        """
        weight, targets = self.data.weight[:, None], self.data.targets
        other_weight = np.maximum(weight.sum() - weight, ABSENT)
        mean = (weight * targets).sum(axis=0) - weight * targets
        mean = np.where(other_weight > ABSENT * weight.sum(), mean / other_weight, 0.0)
        predicted: Floats = targets - (self.beta - self.ones * mean) / (self.diagonal * np.sqrt(weight))
        return predicted

    def held_out(self, missing: Ints) -> Floats:
        """Exact predictions (missing, q) of some rows without them: the residuals are (G^-1)_FF^-1 (G^-1 Y)_F."""
        part = self.inverse[:, missing]
        beta = (self.beta - self.ones * self.data.mean(missing))[missing]
        residual = np.linalg.solve((part.T @ part).astype(np.float64), beta)
        return np.asarray(self.data.targets[missing] - residual / np.sqrt(self.data.weight[missing])[:, None])


def _inverted(lower: NDArray[Any], invert: Callable[..., tuple[NDArray[Any], int]]) -> NDArray[Any]:
    """The inverse (n, n) of a lower triangle, in its memory: of some hundred rows by halves and products, which take
    half the time of LAPACK's.
    """
    if len(lower) > _MOST_HALVED:
        return invert(lower, lower=1, overwrite_c=1)[0]
    if len(lower) <= _LEAST_HALVED:
        lower[:] = invert(lower, lower=1)[0]
        return lower
    half = len(lower) // 2
    first, last = _inverted(lower[:half, :half], invert), _inverted(lower[half:, half:], invert)
    lower[half:, :half] = -(last @ (lower[half:, :half] @ first))
    return lower


def tested_values(gram: NDArray[Any], data: Data, C: float, cut: Cut, solved: Solved | None) -> Floats | None:
    """Predictions (tested, q) of a cut's test rows by what it learns from; None where there is no solution.

    By what is solved of all rows where the cut leaves out less than half of them, and by a factorisation of its own otherwise.
    """
    (train, test), missing = cut, left_out(cut, len(gram))
    if not len(train):
        return np.zeros((len(test), data.targets.shape[1]))
    if 2 * len(missing) < len(gram):
        return None if solved is None else solved.held_out(missing)[np.searchsorted(missing, test)]
    part = Data(data.rows, data.targets[train], data.weight[train])
    own = Solved.of(gram[np.ix_(train, train)], part, C)
    if own is None:
        return None
    return np.asarray(part.mean() + gram[np.ix_(test, train)] @ own.coef())


def squared_error(predicted: Floats, data: Data, rows: Any = slice(None)) -> float:
    """Weighted mean over rows, plain over targets, of squared errors; infinite where one is not finite."""
    squares = np.square(predicted - data.targets[rows]).mean(axis=1)
    error = float(np.average(squares, weights=data.weight[rows]))
    return error if np.isfinite(error) else np.inf


def squared_errors(gram: NDArray[Any], data: Data, C: float) -> Floats:
    """Mean squared errors (splits,): leave-one-out as one of them."""
    solved = Solved.of(gram, data, C)
    if data.splits is None:
        return np.array([np.inf if solved is None else squared_error(solved.left_out(), data)])
    predicted = [tested_values(gram, data, C, cut, solved) for cut in data.splits]
    return np.array(
        [
            np.inf if values is None else squared_error(values, data, test)
            for values, (_, test) in zip(predicted, data.splits, strict=True)
        ]
    )


class Blocks:
    """Kernel values between rows and landmarks, a few rows at a time; stored when there are few."""

    def __init__(
        self,
        form: Form,
        table: str,
        data: Data,
        n_marks: int,
        sums_with_marks: Callable[[Rows], RowPairSums],
        pairs: PairsOfTable,
    ) -> None:
        """`sums_with_marks` makes pair sums of rows with the landmarks; `pairs` stores them for the next kernel of the
        table.
        """
        self.form, self.table, self.data, self.n_marks = form, table, data, n_marks
        self.sums_with_marks, self.pairs = sums_with_marks, pairs
        self.step = max(BLOCK // self.n_marks, 1)
        self.stores = len(data.targets) * self.n_marks <= _STORED_VALUES
        self.stored: dict[bytes, Floats] = {}

    def of(self, part: Ints, *, store: bool = False) -> Iterator[tuple[Ints, Floats]]:
        """(rows, values (rows, m)) of some rows; parts that are stored have no row in common."""
        for start in range(0, len(part), self.step):
            rows = part[start : start + self.step]
            yield rows, self._values(rows, store=store and self.stores)

    def _values(self, rows: Ints, *, store: bool) -> Floats:
        key = rows.tobytes() if self.stores else b""
        if key in self.stored:
            return self.stored[key]
        values = self.form.of_pairs(self._pairs(rows))
        if store:
            self.stored[key] = values
        return values

    def _pairs(self, rows: Ints) -> RowPairSums:
        """Pair sums of rows with the landmarks, which all kernels of one table share."""
        key = self.table, rows.tobytes()
        if key in self.pairs:
            return self.pairs[key]
        for other in list(self.pairs):  # threads are at one table all at once
            if other[0] != self.table:
                self.pairs.pop(other, None)
        pairs = self.sums_with_marks(self.data.rows.take(rows))
        if len(self.data.targets) * self.n_marks <= _STORED_PAIRS:
            self.pairs[key] = pairs
        return pairs

    def normal(self, part: Ints, *, store: bool = False) -> tuple[Floats, Floats]:
        """Sums over some rows of w k k^T (m, m), its lower half, and of w k (y, 1)^T (m, q + 1)."""
        square = np.zeros((self.n_marks, self.n_marks), order="F")
        right = np.zeros((self.n_marks, self.data.targets.shape[1] + 1))
        for rows, values in self.of(part, store=store):
            root = np.sqrt(self.data.weight[rows])[:, None]
            scaled = values * root
            square = blas.dsyrk(1.0, scaled.T, beta=1.0, c=square, lower=1, overwrite_c=1)
            right += scaled.T @ (np.column_stack([self.data.targets[rows], np.ones(len(rows))]) * root)
        return square, right

    def tested(self, cuts: Sequence[Cut], sums: Sums, penalty: Floats) -> Floats:
        """Exact predictions (tested rows, q) of the cuts' test rows, through what each cut learns from."""
        lacking = [left_out(cut, len(self.data.targets)) for cut in cuts]
        factor = None
        if any(self.few(missing) for missing in lacking):
            factor = cho_factor(sums.square + penalty, lower=True)
        values = [
            self._solved_without(missing, test, sums, penalty)
            if factor is None or not self.few(missing)
            else self._held_out(missing, factor, sums.right)[np.searchsorted(missing, test)]
            for (_, test), missing in zip(cuts, lacking, strict=True)
        ]
        return in_order(cuts, values)

    def few(self, rows: Ints) -> bool:
        """Whether a system of the rows is smaller than one of the landmarks."""
        return 2 * len(rows) < self.n_marks

    def _solved_without(self, missing: Ints, test: Ints, sums: Sums, penalty: Floats) -> Floats:
        """Predictions of the test rows by normal equations without the missing ones."""
        mean = self.data.mean(missing)
        square, right = sums.square, sums.right
        for part_square, part_right in sums.of(missing, self):
            square, right = square - part_square, right - part_right
        coef = solve_normal(square, right, penalty, mean)
        return mean + np.vstack([values @ coef for _, values in self.of(test)])

    def _held_out(self, missing: Ints, factor: Any, right: Floats) -> Floats:
        """Predictions of few rows without them: the residuals are (I - H_FF)^-1 (Y - H Y)_F."""
        mean, both = self.data.mean(missing), cho_solve(factor, right)
        values = np.vstack([block for _, block in self.of(missing)])
        root, fitted = np.sqrt(self.data.weight[missing])[:, None], values @ both
        behind = (self.data.targets[missing] - fitted[:, :-1]) - (1 - fitted[:, -1:]) * mean
        half = solve_triangular(factor[0], (values * root).T, lower=True, check_finite=False)
        residual = np.linalg.solve(np.eye(len(missing)) * (1 + 1e-12) - half.T @ half, behind * root) / root
        return np.asarray(self.data.targets[missing] - residual)

    def left_out(self, system: Floats, right: Floats) -> Floats:
        """Exact leave-one-out predictions (n, q): residuals over 1 - w k^T (A + R)^-1 k, lower half of A + R given."""
        factor = cho_factor(system, lower=True)
        both = cho_solve(factor, right)
        weight, predicted = self.data.weight[:, None], np.empty_like(self.data.targets)
        other_weight = np.maximum(weight.sum() - weight, ABSENT)
        mean = ((weight * self.data.targets).sum(axis=0) - weight * self.data.targets) / other_weight
        for rows, values in self.of(np.arange(len(predicted))):
            half = solve_triangular(factor[0], values.T, lower=True, check_finite=False)
            share = 1 - np.einsum("ij,ij->j", half, half)[:, None] * weight[rows]
            fitted = values @ both
            residual = (self.data.targets[rows] - fitted[:, :-1]) - (1 - fitted[:, -1:]) * mean[rows]
            predicted[rows] = self.data.targets[rows] - residual / share
        return predicted


class Sums(NamedTuple):
    """Sums of `Blocks.normal` over all rows, and those over the larger pieces into which the test parts of cuts divide
    the rows.
    """

    square: Floats
    right: Floats
    pieces: list[tuple[Ints, tuple[Floats, Floats]]]

    @classmethod
    def by(cls, blocks: Blocks, pieces: Sequence[Ints]) -> Sums:
        """Sums over pieces that together are all rows, with those of pieces that are not few."""
        square: Any = 0
        right: Any = 0
        large = []
        for piece in pieces:
            part = blocks.normal(piece, store=True)
            square, right = square + part[0], right + part[1]
            if not blocks.few(piece):
                large.append((piece, part))
        return cls(square, right, large)

    def of(self, missing: Ints, blocks: Blocks) -> Iterator[tuple[Floats, Floats]]:
        """Sums that add up to those over the missing rows: of the pieces that lie within them, and of the other ones."""
        others = np.zeros(len(blocks.data.targets), dtype=bool)
        others[missing] = True
        for piece, part in self.pieces:
            if others[piece].all():
                others[piece] = False
                yield part
        if others.any():
            yield blocks.normal(np.flatnonzero(others))


def pieces_of(cuts: Sequence[Cut] | None, n: int) -> list[Ints]:
    """The test parts of cuts of n rows, and the rows that are in none."""
    tests = [test for _, test in cuts or () if len(test)]
    untested = np.setdiff1d(np.arange(n), np.concatenate([np.zeros(0, np.intp), *tests]), assume_unique=True)
    return [*tests, untested] if len(untested) else tests


def solve_normal(square: Floats, right: Floats, penalty: Floats, mean: Floats) -> Floats:
    """Coefficients (m, q) of the targets less a mean; a ridge is added, and raised, where rounding leaves no
    factorisation.
    """
    side = right[:, :-1] - right[:, -1:] * mean
    ridge = 0.0
    while True:
        system = square + penalty
        system.flat[:: len(system) + 1] += ridge
        try:
            return np.asarray(cho_solve(cho_factor(system, lower=True, overwrite_a=True), side), dtype=np.float64)
        except LinAlgError:
            ridge = max(10 * ridge, RIDGE * float(np.trace(square)))
