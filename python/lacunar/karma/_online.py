"""`OnlineModel`: Algorithm 1 over the rows it stores, for kernels of any gamma."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.karma._losses import diverged
from lacunar.kernels import KernelForm
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
Budget = Literal["remove", "project"]

_ARRAYS = ("rows", "first", "second", "clock")
_TILE = 1024  # stored rows compared with a block at once: the tile stays in the cache
_DENSE, _SPARSE = (
    0.45,
    0.03,
)  # observed shares beyond which a path of the kernel is fastest, karma_kernel's rule of thumb


class OnlineModel:
    """Algorithm 1 of Hazan, Livni and Mansour over support rows: the same iterates as `PrimalModel` where both exist.

    Only rows with a slope are stored. v = scale * sum_i first_i phi(x_i); `second` holds what the mean of the iterates must
    not count twice, so that a step moves no older coefficient. A block of rows is compared with the stored rows at once and
    then followed row by row; sums run in order of arrival, so that every block size makes the same decisions to the bit.
    O(stored rows) kernel values a row.

    With `max_support`, the stored rows of least |coef| sqrt(k(x, x)) leave after every block: "remove" drops them, and no
    value f(x) moves by more than what `lost` grows by times sqrt(k(x, x)); "project" first spreads them over the rows
    that stay, by least squares in the feature space, which can only lose less. O(max_support^3) a block.
    """

    def __init__(
        self,
        form: KernelForm,
        n_features: int,
        n_outputs: int,
        *,
        loss: str,
        rho: float,
        eta: str = "theory",
        eta0: float = 0.1,
        power_t: float = 0.5,
        epsilon: float = 0.1,
        iterate: str = "weighted",
        dtype: Any = np.float32,
        max_support: int | None = None,
        budget: Budget = "remove",
        block: int = 1024,
    ) -> None:
        self.form, self.n_features, self.n_outputs, self.dtype = form, n_features, n_outputs, np.dtype(dtype)
        self.loss, self.rho, self.epsilon = loss, float(rho), float(epsilon)
        self.eta, self.eta0, self.power_t, self.iterate = eta, float(eta0), float(power_t), iterate
        self.max_support, self.budget, self.block = max_support, budget, block
        empty = (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, self.dtype))
        self.rows = Observed(*empty, (0, n_features))
        self.first = np.zeros((0, n_outputs))
        self.second = np.zeros((0, n_outputs))
        self.clock = np.array([0.0, 1.0, 0.0, 0.0])  # steps, scale, reach, lost: see step_clock.hpp
        self._tile = np.zeros(0, self.dtype)  # kernel values, kept: fresh memory costs more than what is written to it
        self.method = "auto"  # settled by the first rows, and then kept: paths of the kernel differ in the last bit

    @property
    def t(self) -> int:
        """Rows seen."""
        return int(self.clock[0])

    @property
    def lost(self) -> float:
        """Sum over dropped rows of |coef| sqrt(k(x, x)), each at the time it was dropped."""
        return float(self.clock[3])

    def partial_fit(
        self,
        rows: Observed,
        targets: _Floats,
        weight: _Floats | None = None,
        *,
        n_threads: int = 1,
        order: NDArray[np.int64] | None = None,
    ) -> _Floats:
        """One step for every row, in order; the values (n, outputs) of the rows before their own steps.

        Raises
        ------
        DivergedError
            The values left the finite numbers; nothing has changed. (An interrupt keeps the last full block.)
        """
        order = np.arange(rows.shape[0]) if order is None else order
        data, decisions = rows.astype(self.dtype), np.zeros((rows.shape[0], self.n_outputs))
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        self._settle_method(data)
        saved = [getattr(self, name) for name in _ARRAYS]
        for start in range(0, len(order), self.block):
            part = order[start : start + self.block]
            mass = None if weight is None else np.ascontiguousarray(weight[part], dtype=np.float64)
            values, bad = self._step_block(data[part], np.ascontiguousarray(targets[part]), mass, n_threads)
            if bad >= 0:
                for name, old in zip(_ARRAYS, saved, strict=True):
                    setattr(self, name, old)
                raise diverged(int(part[bad]), self.eta, self.eta0, self.rho)
            decisions[part] = values
        return decisions

    def _settle_method(self, rows: Observed) -> None:
        if self.method == "auto" and rows.nnz:
            share = rows.nnz / (rows.shape[0] * max(rows.shape[1], 1))
            self.method = "dense" if share > _DENSE else "inverted" if share < _SPARSE else "spmm"

    def _gram(self, X: Observed, Y: Observed, n_threads: int) -> NDArray[Any]:
        """Kernel values in the tile, until the next call; never by the symmetric path, whose lower half has other bits."""
        method: Any = self.method
        size = X.shape[0] * Y.shape[0]
        if len(self._tile) < size:
            self._tile = np.empty(size, self.dtype)
        out = self._tile[:size].reshape(X.shape[0], Y.shape[0])
        return self.form.gram(X, Y, dtype=self.dtype, n_jobs=n_threads, method=method, out=out)

    def _step_block(
        self, rows: Observed, targets: _Floats, weight: _Floats | None, n_threads: int
    ) -> tuple[_Floats, int]:
        """Steps of a block, committed whole; its values before every step, and the row that diverged or -1."""
        n, shape = rows.shape[0], targets.shape
        first, second, clock = self.first, self.second, self.clock.copy()
        sums = self._expand(rows, first, n_threads)
        gram = self._gram(rows, rows, n_threads)
        values, own, late = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        times, done = clock[:3].copy(), 0
        while done < n:
            done = self._run(gram, done, targets, weight, times, sums, values, own, late)
            if done < 0:
                return values, -1 - done
            if done < n:  # first <- scale first, second <- second - reach first
                scale, reach = times[1], times[2]
                with np.errstate(over="ignore", invalid="ignore"):  # the next row finds what is not finite
                    second, first = second - reach * first, scale * first
                    late, own = late - reach * own, scale * own
                    sums *= scale
                times[1:] = 1.0, 0.0
        finite = np.isfinite(own) & np.isfinite(late)  # the last row of a block has no next one to find what it did
        wild = np.flatnonzero(~finite.all(axis=1))
        if len(wild):
            return values, int(wild[0])
        kept = np.flatnonzero((own != 0).any(axis=1) | (late != 0).any(axis=1))
        table = Observed.vstack([self.rows, rows[kept]]) if len(kept) else self.rows
        first, second = np.vstack([first, own[kept]]), np.vstack([second, late[kept]])
        clock = np.append(times, clock[3])
        # At once, so that an interrupt keeps no half of a block.
        self.rows, self.first, self.second, self.clock = table, first, second, clock
        self._drop_beyond_budget(n_threads)
        return values, -1

    def _run(
        self,
        gram: NDArray[Any],
        start: int,
        target: _Floats,
        weight: _Floats | None,
        clock: _Floats,
        sums: _Floats,
        values: _Floats,
        coef: _Floats,
        late: _Floats,
    ) -> int:
        return _core.online_block(
            gram,
            start,
            target,
            weight,
            self.loss,
            self.epsilon,
            self.rho,
            "inverse" if self.eta == "invscaling" else self.eta,
            self.eta0,
            self.power_t,
            self.iterate == "weighted",
            clock,
            sums,
            values,
            coef,
            late,
        )

    def _expand(self, rows: Observed, coef: _Floats, n_threads: int) -> _Floats:
        """Sums (outputs, n) of coef_i k(x_i, .) over the stored rows, one after the other."""
        sums = np.zeros((self.n_outputs, rows.shape[0]))
        for start in range(0, len(coef), _TILE):
            part = np.ascontiguousarray(coef[start : start + _TILE])
            _core.add_support(self._gram(self.rows[start : start + _TILE], rows, n_threads), part, sums)
        return sums

    def _drop_beyond_budget(self, n_threads: int) -> None:
        if self.max_support is None or len(self.first) <= self.max_support:
            return
        size = np.abs(self.coef()).max(axis=1) * np.sqrt(self.form.diagonal(self.rows))
        kept = np.sort(np.argsort(-size, kind="stable")[: self.max_support])
        gone = np.setdiff1d(np.arange(len(size)), kept)
        first, second = self.first[kept], self.second[kept]
        if self.budget == "project":
            stay, leave = self.rows[kept], self.rows[gone]
            gram = self._gram(stay, stay, n_threads).astype(np.float64)
            across = self._gram(stay, leave, n_threads).astype(np.float64)
            ridge = 1e-6 * float(np.trace(gram)) / len(gram) * np.eye(len(gram))
            share = np.linalg.solve(gram + ridge, across)
            first, second = first + share @ self.first[gone], second + share @ self.second[gone]
        self.clock[3] += size[gone].sum()
        self.rows, self.first, self.second = self.rows[kept], first, second

    def coef(self, iterate: str | None = None) -> _Floats:
        """Coefficients (stored rows, outputs) of v_(T+1), of the mean of v_1 to v_T, or of that with weights t."""
        t, scale, reach, _ = self.clock
        iterate = iterate or self.iterate
        if iterate == "last" or t == 0:
            return np.asarray(scale * self.first)
        if iterate != self.iterate:
            raise ValueError(
                f"iterate must be 'last' or {self.iterate!r}, the one kept from the start; got {iterate!r}."
            )
        if iterate == "weighted":
            return np.asarray((reach * self.first - self.second) / (t * (t + 1) / 2))
        return np.asarray(((reach - scale) * self.first - self.second) / t)

    def decide(self, rows: Observed, *, iterate: str | None = None, n_threads: int = 1) -> _Floats:
        """Values (n, outputs) of rows."""
        data, coef = rows.astype(self.dtype), self.coef(iterate)
        parts = [
            self._expand(data[start : start + self.block], coef, n_threads)
            for start in range(0, data.shape[0], self.block)
        ]
        return np.ascontiguousarray(np.hstack(parts).T) if parts else np.zeros((0, self.n_outputs))

    def state(self) -> dict[str, Any]:
        """Everything, as arrays and plain values; `from_state` goes on bit for bit."""
        names = ("loss", "rho", "eta", "eta0", "power_t", "epsilon", "iterate", "max_support", "budget", "block")
        own = {name: getattr(self, name) for name in (*names, *_ARRAYS, "form", "n_features", "n_outputs", "method")}
        return {**own, "dtype": self.dtype.name}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> OnlineModel:
        """The model whose `state` this is."""
        own = (*_ARRAYS, "method")
        made = cls(**{name: value for name, value in state.items() if name not in own})
        sizes = {state["rows"].shape[0], len(state["first"]), len(state["second"])}
        if len(sizes) != 1 or np.shape(state["first"]) != np.shape(state["second"]) or np.shape(state["clock"]) != (4,):
            raise ValueError(f"the parts of an online model must be of one length; got {sorted(sizes)}. Fit it again.")
        for name in own:
            setattr(made, name, state[name])
        return made
