"""The sequential solvers of `SLRMRegressor`: Algorithm 1 as printed, and the stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._factor import PerColumnRls, SharedRls, Tracker
from lacunar._random import generator
from lacunar.observed import Observed
from lacunar.regression._solvers import fit_paper, read_stream, start_stream, stream_weights

_Floats = NDArray[np.float64]
_LARGEST_RANK = 64
_MOST_PASSES = 4  # of the stream over rows that are all there


class StreamedFits:
    """Methods on the parameters of `SLRMRegressor`."""

    n_features_in_: int
    n_components_: int
    solver: str
    lam1: Any
    alpha: Any
    l1_ratio: float
    ridge: Any
    state: str
    forget: Any
    orthonormalize: str
    delta: float
    rho: float
    constant_passes: int
    validation_fraction: float
    max_iter: int
    precision: str
    random_state: Any
    n_jobs: int | None
    tracker_: dict[str, Any]
    _adopt: Any
    _progress: Any

    def _penalties(self) -> tuple[float, float]:
        """lambda_2 and lambda_3 of (5)."""
        if self.alpha == "auto":
            return (1e-3, 0.0) if self.solver == "paper" else (0.0, 0.0)
        return 2 * float(self.alpha) * self.l1_ratio, float(self.alpha) * (1 - self.l1_ratio)

    def _fit_paper(self, rows: Observed, labels: _Floats, d: int) -> None:
        self._refuse_for_streams(labels)
        rng = generator(self.random_state)
        count = round(self.validation_fraction * rows.shape[0])
        lam2, lam3 = self._penalties()
        found, self.validation_errors_ = fit_paper(
            rows,
            labels[:, 0],
            d,
            lam1=float(self.lam1),
            lam2=lam2,
            lam3=lam3,
            rho=float(self.rho),
            delta=float(self.delta),
            orthonormalize=self.orthonormalize,
            ridge=0.0 if self.ridge == "auto" else float(self.ridge),
            max_passes=self.max_iter,
            constant_passes=self.constant_passes,
            patience=5,
            holdout=np.sort(rng.permutation(rows.shape[0])[:count]),
            precision=self.precision,
            rng=rng,
            progress=self._progress(),
        )
        self._adopt(found, rows, labels, 0.0, 0.0)

    def _refuse_for_streams(self, labels: _Floats) -> None:
        if labels.shape[1] != 1:
            raise ValueError(
                f"solver={self.solver!r} takes one target; y has {labels.shape[1]}. Use solver='em' or 'als', or one model "
                "a target."
            )
        if self.n_components_ > _LARGEST_RANK:
            raise ValueError(
                f"solver={self.solver!r} takes at most {_LARGEST_RANK} components; got {self.n_components_}. Use "
                "solver='em' or 'als'."
            )

    def _fit_stream(self, rows: Observed, labels: _Floats) -> None:
        self._refuse_for_streams(labels)
        rng = generator(self.random_state)
        tracker = self._start_stream(rows, rng)
        for number in range(min(self.max_iter, _MOST_PASSES)):
            order = None if number == 0 else rng.permutation(rows.shape[0])
            self._follow(tracker, rows, labels[:, 0], order)
        self._read_stream(tracker, rows, labels, refit=True)

    def _start_stream(self, rows: Observed, rng: np.random.Generator) -> PerColumnRls | SharedRls:
        return start_stream(
            rows,
            self.n_components_,
            state=self.state,
            lam1=float(self.lam1),
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
        return self._tracker_class.restored(self.tracker_)

    def _check_loaded(self) -> None:
        super()._check_loaded()  # type: ignore[misc]
        if "tracker_" in vars(self):
            self._tracker_class.check(self.tracker_, (self.n_features_in_, self.n_components_))
