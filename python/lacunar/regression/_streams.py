"""The sequential fits of `SLRMRegressor`: the stream, and Algorithm 1 as printed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._codes import LARGEST_CORE_RANK
from lacunar._random import generator
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.trackers import PerColumnRls, SharedRls, Tracker
from lacunar.observed import Observed
from lacunar.regression._paper import PENALTY, first_weights, fit_slrm, given_start
from lacunar.regression._solvers import read_stream, start_stream, stream_weights

_Floats = NDArray[np.float64]


class StreamedFits:
    """Methods on the parameters of `SLRMRegressor`."""

    n_features_in_: int
    n_components_: int
    solver: str
    alpha: Any
    l1_ratio: float
    ridge: Any
    state: str
    forget: Any
    delta: float
    rho: float
    constant_passes: int
    validate: str
    validation_fraction: float
    precision: str
    random_state: Any
    n_jobs: int | None
    tracker_: dict[str, Any]
    _adopt: Any
    _progress: Any
    _lam1: Any
    _passes: Any
    _gamma: Any
    _printed: bool
    _refuse_unprinted: Any

    def _penalties(self) -> tuple[float, float]:
        """lambda_2 and lambda_3 of (5)."""
        if self.alpha == "auto":
            return (PENALTY, PENALTY) if self._printed else (0.0, 0.0)
        return 2 * float(self.alpha) * self.l1_ratio, float(self.alpha) * (1 - self.l1_ratio)

    def _fit_paper(
        self, rows: Observed, labels: _Floats, held: tuple[Observed, _Floats] | None, U0: Any, w0: Any
    ) -> None:
        self._refuse_unprinted(solver=("em",), ridge=("auto", 0), state=("shared",), forget=("window", 1))
        self._refuse_for_streams(labels)
        rng, y = generator(self.random_state), labels[:, 0]
        lam2, lam3 = self._penalties()
        used = np.arange(rows.shape[0])
        if held is None:
            out = np.sort(rng.permutation(len(used))[: round(self.validation_fraction * len(used))])
            held, used = (rows[out], y[out]), np.setdiff1d(used, out)
        train, y = rows[used], y[used]
        U, w = given_start(U0, w0, rows.shape[1], self.n_components_)
        U = first_basis(train, self.n_components_, rng)[0] if U is None else U
        found, self.validation_errors_ = fit_slrm(
            train,
            y,
            held,
            U,
            first_weights(train, y, U, lam2) if w is None else w,
            lam1=self._lam1(),
            lam2=lam2,
            lam3=lam3,
            rho=float(self.rho),
            delta=float(self.delta),
            gamma=float(self._gamma()),
            passes=self._passes(),
            constant_passes=self.constant_passes,
            validate=self.validate,
            precision=self.precision,
            progress=self._progress(),
        )
        self._adopt(found, rows, labels, 0.0, 0.0)

    def _way(self) -> str:
        return "options='paper'" if self._printed else f"solver={self.solver!r}"

    def _refuse_for_streams(self, labels: _Floats) -> None:
        if labels.shape[1] != 1:
            raise ValueError(
                f"{self._way()} takes one target; y has {labels.shape[1]}. Use solver='em' or 'als', or one model a target."
            )
        if self.n_components_ > LARGEST_CORE_RANK:
            raise ValueError(
                f"n_components must be at most {LARGEST_CORE_RANK} for {self._way()}; got {self.n_components_}. Use fewer, or solver='em' "
                "or 'als'."
            )

    def _fit_stream(self, rows: Observed, labels: _Floats) -> None:
        self._refuse_for_streams(labels)
        rng = generator(self.random_state)
        tracker = self._start_stream(rows, rng)
        for number in range(self._passes()):
            order = None if number == 0 else rng.permutation(rows.shape[0])
            self._follow(tracker, rows, labels[:, 0], order)
        self._read_stream(tracker, rows, labels, refit=True)

    def _start_stream(self, rows: Observed, rng: np.random.Generator) -> PerColumnRls | SharedRls:
        return start_stream(
            rows,
            self.n_components_,
            state=self.state,
            lam1=self._lam1(),
            ridge=None if self.ridge == "auto" else float(self.ridge),
            forget=self.forget,
            delta=float(self.delta),
            precision=self.precision,
            rng=rng,
        )

    def _follow(self, tracker: PerColumnRls | SharedRls, rows: Observed, labels: _Floats, order: Any) -> None:
        predictions, _ = tracker.run(rows, np.ascontiguousarray(labels), order)
        known = ~np.isnan(labels)
        self.progressive_mse_ = float(np.mean((predictions - labels)[known] ** 2)) if known.any() else float("nan")
        lam2, lam3 = self._penalties()
        weights = stream_weights(tracker, lam2, lam3)
        if weights is not None:
            tracker.w[:] = weights  # what the next rows are predicted with, and coded when lam1 is finite

    def _read_stream(
        self, tracker: PerColumnRls | SharedRls, rows: Observed, labels: _Floats, *, refit: bool = False
    ) -> None:
        """The tracker's subspace and weights; `refit` regresses on the codes of the rows at hand, which old sums are not."""
        self.tracker_ = tracker.state()
        found = read_stream(tracker, *self._penalties())
        self._adopt(found._replace(weights=None) if refit else found, rows, labels, self.alpha, self.l1_ratio)

    @property
    def _tracker_class(self) -> type[Tracker]:
        return SharedRls if self.state == "shared" else PerColumnRls

    def _tracker(self) -> Any:
        return self._tracker_class.of(self.tracker_)

    def _check_loaded(self) -> None:
        super()._check_loaded()  # type: ignore[misc]
        if "tracker_" in vars(self):
            self._tracker_class.check(self.tracker_, (self.n_features_in_, self.n_components_))
