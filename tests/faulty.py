"""What the tests of faults share: every public learner in its variants, one small problem, the whole state of a model."""

import contextlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

import lacunar
from lacunar import (
    KarmaClassifier,
    KarmaClassifierCV,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressor,
    KarmaRegressorCV,
)
from lacunar.active import MBEG, ActivePOPCA
from lacunar.completion import OnlineMatrixClassifier
from lacunar.karma import KarmaFeatures
from lacunar.lowrank import (
    GROUSE,
    PETRELS,
    POPCA,
    GaussianRegressor,
    LowRankImputer,
    SLRMOnlineRegressor,
    SLRMRegressor,
    SLRMRegressorCV,
)
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM

LIBRARY = str(Path(lacunar.__file__).parent)
# Learners of tables, by name.
LEARNERS = {
    "karma": KarmaClassifier(),
    "karma-primal": KarmaClassifier(loss="hinge", solver="primal", random_state=0),
    "karma-passes": KarmaOnlineClassifier(max_iter=2, random_state=0),
    "karma-online": KarmaOnlineClassifier(2.5, random_state=0),
    "karma-cv": KarmaClassifierCV(),
    "karma-plain": KarmaClassifierCV(kernels="karma", random_state=0),
    "karma-regressor": KarmaRegressor(),
    # In float32 the solver stops elsewhere, and the distance to the optimum goes with the root of the gap.
    "karma-regressor-primal": KarmaRegressor(solver="primal", tol=1e-8, random_state=0),
    "karma-regressor-online": KarmaOnlineRegressor(2.5, loss="absolute", random_state=0),
    "karma-regressor-cv": KarmaRegressorCV(),
    "features": KarmaFeatures(),
    "features-nystroem": KarmaFeatures(3, n_components=8, random_state=0),
    "popca": POPCA(1, random_state=0),
    "popca-tables": POPCA(2, refine=0, random_state=0),
    "popca-free": POPCA(2, solver="matrix-free", random_state=0),
    "petrels": PETRELS(1, random_state=0),
    "petrels-shared": PETRELS(1, correlation="shared", random_state=0),
    "grouse": GROUSE(1, random_state=0),
    "slrm": SLRMRegressor(1, random_state=0),
    "gaussian": GaussianRegressor(max_iter=3),
    "slrm-als": SLRMRegressor(1, solver="als", lam1=1.0, random_state=0),
    "slrm-stream": SLRMOnlineRegressor(1, random_state=0),
    "slrm-paper": PrintedSLRM(1, gamma=0.99, random_state=0),
    "slrm-cv": SLRMRegressorCV([1, 2], cv=2, random_state=0),
    "mpcr": MPCR(1, random_state=0),
    "smpcr": SMPCR(1, random_state=0),
    "geom": GeomClassifier(),
    "mc1": MatrixCompletionClassifier(lam=1.0, mu=1e-2, random_state=0),
    "mcb": MatrixCompletionClassifier("bias", lam=1.0, mu=1e-2, random_state=0),
    "mc1-regressor": MatrixCompletionRegressor(lam=1.0, mu=1e-2, random_state=0),
    "mcb-regressor": MatrixCompletionRegressor("bias", lam=1.0, mu=1e-2, random_state=0),
    "imputer": LowRankImputer(random_state=0),
}
# Not learners of tables: pairs of ids, and rows that are asked for.
OTHERS = {
    "pairs": OnlineMatrixClassifier(),
    "active": ActivePOPCA(6, 2, n_observed=3, random_state=0),
    "mbeg": MBEG(6, 2, n_observed=4, refresh=8, random_state=0),
}
CLASSIFIERS = {name for name, model in LEARNERS.items() if hasattr(model, "classes_") or "Classifier" in repr(model)}
ANSWERS = ("decision_function", "predict", "transform")


def problem(seed=0, n=40, d=6):
    """Rows of rank two, a third of the entries missing, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.1 * rng.normal(size=(n, d))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def answer(model, X, names=ANSWERS):
    """What a fitted model says of rows, as one array."""
    made = next(getattr(model, name) for name in names if hasattr(model, name))(X)
    return np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=float)


@contextlib.contextmanager
def quiet():
    """Without warnings: constant columns and no convergence are not the subject here."""
    with warnings.catch_warnings(action="ignore"):
        yield


class Fault:
    """An exception at the n-th Python call inside the package."""

    def __init__(self, number, error=MemoryError):
        self.left, self.error, self.where = number, error, None

    def __enter__(self):
        self.old = sys.gettrace()
        sys.settrace(self.trace)
        return self

    def __exit__(self, *raised):
        sys.settrace(self.old)

    def trace(self, frame, event, argument):
        # NumPy swallows what is raised in a generator before its first step.
        if frame.f_code.co_filename.startswith(LIBRARY) and frame.f_code.co_name != "<genexpr>":
            self.left -= 1
            if self.left == 0:
                self.where = frame.f_code.co_qualname
                raise self.error


def calls_of(act):
    """How many Python calls inside the package `act` makes."""
    with Fault(10**9) as count:
        act()
    return 10**9 - count.left


def state(value):
    """A value as text that tells any two apart, arrays by their bytes, whatever the order of attributes."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    if isinstance(value, dict):
        return json.dumps({repr(key): state(each) for key, each in value.items()}, sort_keys=True)
    if isinstance(value, list | tuple | np.ndarray):
        return json.dumps([state(each) for each in value])
    if hasattr(value, "get_params") and hasattr(value, "__getstate__"):
        return type(value).__name__ + state(value.__getstate__())
    if hasattr(value, "__dict__") and not callable(value):
        return type(value).__name__ + state(vars(value))
    return repr(value)
