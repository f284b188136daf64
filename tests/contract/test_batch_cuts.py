"""A row's value does not depend on the rows that come with it: the same bits alone, in a batch and in the whole table."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier

from lacunar import (
    KarmaClassifier,
    KarmaClassifierCV,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressor,
    KarmaRegressorCV,
    Observed,
)
from lacunar.active import ActivePOPCA
from lacunar.karma import KarmaFeatures
from lacunar.kernels import KernelForm
from lacunar.learner import LacunarClassifier, LacunarRegressor
from lacunar.lowrank import (
    GROUSE,
    PETRELS,
    POPCA,
    LowRankImputer,
    SLRMOnlineRegressor,
    SLRMRegressor,
    SLRMRegressorCV,
)
from lacunar.papers.karma import (
    GeomClassifier,
    MatrixCompletionClassifier,
    MatrixCompletionRegressor,
    PrintedKarmaClassifier,
)
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM
from lacunar.papers.subspace import PrintedPOPCA

CUTS = (7, 64)
METHODS = ("predict", "decision_function", "predict_proba", "transform", "impute", "score_samples")
ROWS, COLUMNS = 150, 120


def mixed_table(rows=ROWS, columns=COLUMNS, seed=0):
    """Rows of low rank with noise, half of the entries observed in every other row and a fiftieth in the rest, and a label."""
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(rows, 3))
    X = codes @ rng.normal(size=(3, columns)) + 0.1 * rng.normal(size=(rows, columns))
    X[rng.random(X.shape) > np.where(np.arange(rows) % 2, 0.02, 0.5)[:, None]] = np.nan
    return X, codes[:, 0] + 0.1 * rng.normal(size=rows)


def labels_of(model, y, classes=2):
    if not is_classifier(model):
        return y
    return np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))


@cache
def fitted(name):
    model = MODELS[name]
    X, y = mixed_table()
    if name in LEARN_FROM_LONG_ROWS:
        X, y = X[::2], y[::2]
    classes = 3 if name.endswith("three classes") else 2
    with pytest.MonkeyPatch.context() as patch:
        if name.endswith("hashed"):
            patch.setattr("lacunar.karma.base.MEMORY", 2**16)
        return clone(model).fit(X, labels_of(model, y, classes))


def pieces(X, size):
    return [X[start : start + size] for start in range(0, X.shape[0], size)]


def joined(parts):
    if sp.issparse(parts[0]):
        return sp.vstack(parts).toarray()
    return np.concatenate(parts)


def assert_same(call, X):
    whole = call(X)
    whole = whole.toarray() if sp.issparse(whole) else whole
    for size in CUTS:
        np.testing.assert_array_equal(
            joined([call(part) for part in pieces(X, size)]), whole, err_msg=f"batches of {size}"
        )
    some = X[::5]  # of which every other one has half of its entries
    np.testing.assert_array_equal(joined([call(row) for row in pieces(some, 1)]), whole[::5], err_msg="rows alone")


MODELS = {
    **{
        f"classifier {name}": KarmaClassifier(random_state=0, **options)
        for name, options in {
            "gram": {"solver": "gram"},
            "gram, three classes": {"solver": "gram"},
            "gram, cosine": {"solver": "gram", "normalize": "cosine", "indicators": True},
            "gram, gamma 1": {"solver": "gram", "gamma": 1},
            "gram, hinge": {"solver": "gram", "loss": "hinge"},
            "gram, logistic": {"solver": "gram", "loss": "logistic"},
            "gram, logistic, three classes": {"solver": "gram", "loss": "logistic"},
            "gram, crammer-singer": {"solver": "gram", "loss": "crammer_singer"},
            "gram, as in the paper": {"solver": "gram", "normalize": None, "loss": "hinge"},
            "primal": {"solver": "primal"},
            "primal, float32": {"solver": "primal", "loss": "squared_hinge"},
            "primal, float64": {"solver": "primal", "loss": "squared_hinge", "tol": 1e-5},
            "primal, gamma 1": {"solver": "primal", "gamma": 1},
            "primal, gamma 3": {"solver": "primal", "gamma": 3, "loss": "hinge"},
            "primal, hashed": {"solver": "primal", "gamma": 3},
            "primal, three classes": {"solver": "primal", "loss": "logistic"},
            "primal, cosine": {"solver": "primal", "normalize": "cosine", "indicators": True},
        }.items()
    },
    **{
        f"online {name}": KarmaOnlineClassifier(random_state=0, **options)
        for name, options in {
            "primal": {"gamma": 3},
            "support": {"gamma": 2.5},
            "support, cosine": {"budget": 10**6, "normalize": "cosine"},
            "budget": {"budget": 30},
        }.items()
    },
    "printed": PrintedKarmaClassifier(rho=1.0),
    "regressor": KarmaRegressor(),
    "regressor, primal": KarmaRegressor(solver="primal", random_state=0),
    "regressor, online": KarmaOnlineRegressor(2.5, loss="absolute", random_state=0),
    "classifier CV": KarmaClassifierCV(gammas=(1, 2), Cs=(1.0, 10.0), cv=3, random_state=0),
    "classifier CV, auto": KarmaClassifierCV(kernels="karma"),
    "classifier CV, average": KarmaClassifierCV(gammas=(1, 2), Cs=(1.0, 10.0), cv=3, average=2, random_state=0),
    "regressor CV": KarmaRegressorCV(gammas=(1, 2), cv=3, random_state=0),
    "regressor CV, auto": KarmaRegressorCV(kernels="karma"),
    "features": KarmaFeatures(random_state=0),
    "features, gamma 1": KarmaFeatures(1, normalize="cosine", indicators=True),
    "features, landmarks": KarmaFeatures(3, n_components=40, random_state=0),
    "learner": LacunarClassifier(),
    "learner, numbers": LacunarRegressor(),
    "imputer": LowRankImputer(3, random_state=0),
    "imputer, rank 70": LowRankImputer(70, max_iter=2, random_state=0),
    "POPCA": POPCA(3, random_state=0),
    "POPCA, whitened": POPCA(3, whiten=True, random_state=0),
    "POPCA, least squares": PrintedPOPCA(2),
    "SLRM": SLRMRegressor(3, random_state=0),
    "SLRM, gated": PrintedSLRM(3, gamma=0.9, random_state=0),
    "SLRM, als": SLRMRegressor(3, solver="als", lam1=1.0, random_state=0),
    "SLRM, stochastic": SLRMOnlineRegressor(3, random_state=0),
    "SLRM CV": SLRMRegressorCV([1, 3], cv=3, random_state=0),
    "MPCR": MPCR(3, random_state=0),
    "SMPCR": SMPCR(3, random_state=0),
    "PETRELS": PETRELS(3, random_state=0),
    "PETRELS, shared": PETRELS(3, correlation="shared", random_state=0),
    "GROUSE": GROUSE(3, random_state=0),
    "geom": GeomClassifier(C=1e-3, min_scale=0.1),
    "geom, poly": GeomClassifier(C=1e-6, kernel="poly", degree=3),
    "mc-1": MatrixCompletionClassifier(lam=1.0, mu=1e-2, random_state=0),
    "mc-b, three classes": MatrixCompletionClassifier("bias", lam=1.0, mu=1e-2, random_state=0),
    "mc-1 regressor": MatrixCompletionRegressor(lam=1.0, mu=1e-2, random_state=0),
    "mc-b regressor": MatrixCompletionRegressor("bias", lam=1.0, mu=1e-2, random_state=0),
}
LEARN_FROM_LONG_ROWS = (
    "SLRM, gated",
    "SMPCR",
)  # codes of rows with fewer entries than the rank swamp their first weights
CASES = [
    (name, method, n_jobs)
    for name, model in MODELS.items()
    for method in METHODS
    if hasattr(model, method)
    for n_jobs in ((1, 2) if "n_jobs" in model.get_params() else (None,))
]
NEW_ROWS = 66  # more than the largest batch


@pytest.mark.parametrize(("name", "method", "n_jobs"), CASES)
def test_a_row_alone_and_in_a_table(name, method, n_jobs):
    model = fitted(name)
    if not hasattr(model, method):
        pytest.skip("not with these options")
    if n_jobs is not None:
        model.set_params(n_jobs=n_jobs)
    assert_same(getattr(model, method), mixed_table(NEW_ROWS, seed=1)[0])


@pytest.mark.parametrize("name", ["POPCA", "PETRELS", "SLRM", "MPCR"])
def test_codes_turned_back(name):
    model = fitted(name)
    assert_same(model.inverse_transform, np.random.default_rng(0).normal(size=(ROWS, 3)))


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("solver", ["em", "als"])
def test_predictions_with_deviations(solver, part):
    X, y = mixed_table()
    model = SLRMRegressor(3, solver=solver, random_state=0).fit(X, y)
    assert_same(lambda rows: model.predict(rows, return_std=True)[part], mixed_table(seed=1)[0])


def test_deviations_of_codes():
    assert_same(lambda rows: fitted("POPCA").transform(rows, return_std=True)[1], mixed_table(seed=1)[0])


def test_active_subspace():
    model = ActivePOPCA(6, 3, 2, random_state=0)
    X, _ = mixed_table(columns=6)
    filled = np.nan_to_num(X)
    for row in filled:
        for request in model.ask():
            model.tell(request, row[request.indices])
    found = model.result()
    assert_same(found.transform, X)
    assert_same(found.inverse_transform, np.random.default_rng(0).normal(size=(ROWS, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "options", [{"gamma": 2.0}, {"gamma": 3.0, "constant": 1.0, "indicators": 0.5, "cosine": True}]
)
def test_every_path_of_the_kernel_gives_the_same_bits(options, dtype):
    rows, others = (Observed.from_dense(mixed_table(seed=seed)[0]) for seed in (0, 1))
    form = KernelForm(**options)
    for right in (None, others):
        dense, *rest = (form.gram(rows, right, dtype=dtype, method=method) for method in ("dense", "spmm", "inverted"))
        for other in rest:
            np.testing.assert_array_equal(other, dense)


STREAMS = {
    "primal": (KarmaOnlineClassifier(), "decision_function"),
    "primal, float64": (PrintedKarmaClassifier(rho=1.0), "decision_function"),
    "primal, gamma 3": (KarmaOnlineRegressor(3), "predict"),
    "primal, wide": (KarmaOnlineRegressor(loss="absolute"), "predict"),
    "support": (KarmaOnlineClassifier(2.5), "decision_function"),
    "PETRELS": (PETRELS(3, random_state=0), "transform"),
    "PETRELS, shared": (PETRELS(3, correlation="shared", random_state=0), "transform"),
    "GROUSE": (GROUSE(3, random_state=0), "transform"),
    "SLRM": (SLRMOnlineRegressor(3, random_state=0), "predict"),
    "SLRM, sparse": (SLRMOnlineRegressor(3, alpha=0.1, l1_ratio=0.5, random_state=0), "predict"),
    "SLRM, per row": (SLRMOnlineRegressor(3, correlation="per-column", random_state=0), "predict"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_partial_fit_row_by_row_is_partial_fit_of_all(name):
    """After a first batch, which settles columns and kernel."""
    model, method = STREAMS[name]
    X, y = mixed_table(columns=1600 if name.endswith("wide") else COLUMNS)
    y = labels_of(model, y)
    known = {"classes": np.unique(y)} if is_classifier(model) else {}

    def learned(size):
        twin = clone(model).partial_fit(X[:20], y[:20], **known)
        for rows, labels in zip(pieces(X[20:], size), pieces(y[20:], size), strict=True):
            twin.partial_fit(rows, labels)
        return getattr(twin, method)(X)

    whole = learned(len(X))
    for size in (1, 7, 64):
        np.testing.assert_array_equal(learned(size), whole, err_msg=f"batches of {size}")
