"""What the papers compare with."""

from functools import partial

import numpy as np

from bench.hot import case
from bench.hot.data import low_rank
from bench.hot.estimators import learned
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier, MatrixCompletionRegressor

KINDS = {
    "mc-1": partial(MatrixCompletionClassifier, lam=0.1, mu=1e-3, tol=1e-4),
    "mc-b": partial(MatrixCompletionClassifier, intercept="bias", lam=0.1, mu=1e-3, tol=1e-4),
    "geom": GeomClassifier,
    "geom, quadratic": partial(GeomClassifier, kernel="poly"),
}
REGRESSORS = {"mc-1": MatrixCompletionRegressor, "mc-b": partial(MatrixCompletionRegressor, "bias")}


@case("fit, mc-1", small={"kind": "mc-1", "n": 100}, large={"kind": "mc-1", "n": 1000, "d": 200}, counted=False)
@case("fit, mc-b", small={"kind": "mc-b", "n": 100}, large={"kind": "mc-b", "n": 1000, "d": 200}, counted=False)
@case("fit, geom", small={"kind": "geom", "n": 100}, large={"kind": "geom", "n": 1000, "d": 200}, counted=False)
@case(
    "fit, geom quadratic",
    small={"kind": "geom, quadratic", "n": 100},
    large={"kind": "geom, quadratic", "n": 300, "d": 60},
    counted=False,
)
def classifier(kind, n, d=40):
    rows, y, _, _ = low_rank(n, d, 3, d // 2, dtype=np.float64)
    return learned(KINDS[kind], rows, y, 0.75)


@case(
    "fit, mc-1 regression", small={"kind": "mc-1", "n": 100}, large={"kind": "mc-1", "n": 1000, "d": 200}, counted=False
)
@case(
    "fit, mc-b regression", small={"kind": "mc-b", "n": 100}, large={"kind": "mc-b", "n": 1000, "d": 200}, counted=False
)
def regressor(kind, n, d=40):
    rows, _, codes, _ = low_rank(n, d, 3, d // 2, dtype=np.float64)
    return learned(partial(REGRESSORS[kind], lam=0.1, mu=1e-3, tol=1e-4), rows, codes[:, 0], 0.7)
