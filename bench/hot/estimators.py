"""What users of KARMA fit, predict with, stack and keep, end to end."""

from functools import partial

import numpy as np

from bench.hot import case
from bench.hot.data import low_rank
from bench.hot.tables import scratch
from lacunar import KarmaClassifier, KarmaClassifierCV, KarmaOnlineClassifier, KarmaRegressor, KarmaRegressorCV
from lacunar.impute import MultipleImputer
from lacunar.karma import KarmaFeatures
from lacunar.kernels import karma_kernel
from lacunar.learner import LacunarRegressor
from lacunar.lowrank import LowRankImputer
from lacunar.persistence import load_model, save_model

fits = partial(case, counted=False)  # Python and BLAS take their share of each


def at_least(bar, score):
    assert score >= bar, f"{score} < {bar}"


def learned(model, rows, y, bar=0.8):
    """The fit to measure; it explains its own rows."""
    return lambda: model().fit(rows, y), lambda fitted: at_least(bar, fitted.score(rows, y))


@fits("fit, KarmaRegressorCV by LOO", small={"n": 120}, large={"n": 800})
def regressor_search(n):
    rows, _, codes, _ = low_rank(n, 60, 5, 20, dtype=np.float64)
    return learned(KarmaRegressorCV, rows, codes[:, 0])


@fits("fit, KarmaClassifierCV by LOO", small={"n": 120}, large={"n": 800})
@fits("fit, KarmaClassifierCV by folds", small={"n": 100, "cv": 3}, large={"n": 500, "cv": 3})
@fits("fit, KarmaClassifierCV auto", small={"n": 60, "kernels": "auto"}, large={"n": 400, "kernels": "auto"})
def classifier_search(n, **options):
    rows, y, _, _ = low_rank(n, 60, 5, 20)
    return learned(partial(KarmaClassifierCV, random_state=0, **options), rows, y)


@fits("fit, KarmaClassifier", small={"n": 200, "loss": "hinge"}, large={"n": 3000, "loss": "hinge"})
@fits("fit, KarmaClassifier squared", small={"n": 200, "loss": "squared"}, large={"n": 3000, "loss": "squared"})
@fits("fit, KarmaClassifier logistic", small={"n": 200, "loss": "logistic"}, large={"n": 3000, "loss": "logistic"})
@fits(
    "fit, KarmaClassifier squared hinge",
    small={"n": 200, "loss": "squared_hinge"},
    large={"n": 3000, "loss": "squared_hinge"},
)
def classifier(n, loss):
    rows, y, _, _ = low_rank(n, 60, 5, 20)
    return learned(partial(KarmaClassifier, loss=loss, solver="gram"), rows, y)


@fits("fit, KarmaClassifier of classes", small={"n": 200}, large={"n": 3000})
def classes(n):
    rows, _, codes, _ = low_rank(n, 60, 5, 20)
    names = np.array(["a", "b", "c", "d"])[np.argmax(codes[:, :4], axis=1)]
    return learned(partial(KarmaClassifier, C=10.0), rows, names)


LARGE = {"n": 100_000, "d": 200}


@fits("fit, KarmaClassifier primal", small={"n": 400, "d": 60}, large=LARGE)
def ascent(n, d):
    rows, y, _, _ = low_rank(n, d, 5, 30)
    return learned(partial(KarmaClassifier, loss="hinge", solver="primal", random_state=0), rows, y, 0.75)


@fits("fit, KarmaOnlineClassifier primal", small={"n": 400, "d": 60}, large=LARGE)
@fits(
    "fit, KarmaOnlineClassifier support",
    small={"n": 300, "d": 60, "budget": 10**6},
    large={"n": 5000, "d": 200, "budget": 10**6},
)
def one_pass(n, d, budget=None):
    rows, y, _, _ = low_rank(n, d, 5, 30)
    return learned(partial(KarmaOnlineClassifier, budget=budget, random_state=0), rows, y, 0.75)


@fits("fit, KarmaRegressor", small={"n": 200}, large={"n": 3000})
@fits("fit, KarmaRegressor absolute", small={"n": 400, "loss": "absolute"}, large={"n": 50_000, "loss": "absolute"})
def regressor(n, loss="squared"):
    rows, _, codes, _ = low_rank(n, 60, 5, 20, dtype=np.float64)
    return learned(partial(KarmaRegressor, loss=loss, random_state=0), rows, codes[:, 0], 0.6)


@fits("stream, KarmaOnlineClassifier partial_fit", small={"n": 600, "d": 60}, large={"n": 50_000, "d": 200})
def batches(n, d):
    """Batches of 200 rows decide as one call does."""
    rows, y, _, _ = low_rank(n, d, 5, 20)
    made = partial(KarmaOnlineClassifier, standardize=False)

    def run():
        model = made()
        for start in range(0, n, 200):
            part = slice(start, start + 200)
            model.partial_fit(rows[part], y[part], classes=[-1, 1])
        return model

    def check(model):
        at_least(0.7, model.score(rows, y))

    return run, check


@fits("stream, KarmaOnlineClassifier scored", small={"n": 600, "d": 60}, large={"n": 50_000, "d": 200})
def scored(n, d):
    rows, y, _, _ = low_rank(n, d, 5, 20)

    def check(score):
        assert score.n_rows == n
        assert score.mistakes == np.sum(np.where(score.values[:, 0] > 0, 1, -1) != y)
        assert np.mean(score.values[n // 2 :, 0] * y[n // 2 :] > 0) > 0.65

    return lambda: KarmaOnlineClassifier().score_stream(rows, y, classes=[-1, 1]), check


@fits("stream, KarmaOnlineClassifier one by one", small={"n": 100, "d": 60}, large={"n": 2000, "d": 200})
def one_by_one(n, d):
    """Dicts, as river's learners take them."""
    rows, y, _, _ = low_rank(2 * n, d, 5, 20)
    cells = [dict(zip(r.indices.tolist(), r.values.tolist(), strict=True)) for r in (rows[[i]] for i in range(2 * n))]

    def run():
        model = KarmaOnlineClassifier().partial_fit(rows[:n], y[:n], classes=[-1, 1])
        guessed = []
        for x, label in zip(cells[n:], y[n:], strict=True):
            guessed.append(model.predict_one(x))
            model.learn_one(x, label)
        return guessed

    return run, lambda guessed: at_least(0.6, np.mean(np.array(guessed) == y[n:]))


@fits("predict, KarmaClassifier", small={"n": 200, "solver": "gram"}, large={"n": 3000, "solver": "gram"})
@fits("predict, KarmaClassifier primal", small={"n": 200, "solver": "primal"}, large={"n": 50_000, "solver": "primal"})
def predicted(n, solver):
    rows, y, _, _ = low_rank(n, 60, 5, 20)
    model = KarmaClassifier(loss="hinge", solver=solver, random_state=0).fit(rows[:2000], y[:2000])
    return partial(model.predict, rows), lambda guess: at_least(0.75, np.mean(guess == y))


@fits("features, Nystroem", small={"n": 200, "d": 60}, large={"n": 20_000, "d": 200})
def nystroem(n, d):
    rows = low_rank(n, d, 5, 20)[0]
    model = KarmaFeatures(method="nystroem", n_components=100, random_state=0, standardize=False, constant=False)

    def check(found):
        gram = karma_kernel(rows[:100], normalize="trace").astype(np.float64)
        near = found[:100] @ found[:100].T
        assert np.corrcoef(near.ravel(), gram.ravel())[0, 1] > 0.8

    return lambda: model.fit_transform(rows), check


@fits("fit, LacunarRegressor", small={"n": 80, "d": 20, "cv": 2}, large={"n": 200, "d": 40})
def pooled(n, d, **options):
    rows, _, codes, _ = low_rank(n, d, 3, d // 2, dtype=np.float64)
    return learned(partial(LacunarRegressor, **options), rows, codes[:, 0])


@fits("fit, LowRankImputer", small={"n": 200, "d": 40}, large={"n": 1000, "d": 100})
def imputer(n, d):
    rows, _, codes, basis = low_rank(n, d, 3, d // 2, dtype=np.float64)

    def check(filled):
        whole = codes @ basis.T
        assert np.mean((filled - whole) ** 2) < 0.05 * np.mean(whole**2)

    return lambda: LowRankImputer(random_state=0).fit_transform(rows), check


@fits("fit and draws, MultipleImputer", small={"n": 200, "d": 5}, large={"n": 2000, "d": 20})
def draws(n, d):
    rows, _, codes, basis = low_rank(n, d, 3, d - 1, dtype=np.float64)
    table, whole = rows.to_dense(), codes @ basis.T

    def check(tables):
        error = np.mean([(filled - whole)[np.isnan(table)] ** 2 for filled in tables])
        assert error < 1.5 * np.var(whole), error

    return lambda: list(MultipleImputer(2, sweeps=5, random_state=0).fit(table).draws()), check


@fits("model saved and loaded", small={"n": 200}, large={"n": 3000})
def kept(n):
    rows, y, _, _ = low_rank(n, 60, 5, 20)
    model, path = KarmaClassifier(loss="hinge", solver="gram").fit(rows, y), scratch() / f"{n}.model"

    def run():
        save_model(model, path)
        return load_model(path)

    def check(back):
        np.testing.assert_array_equal(back.decision_function(rows), model.decision_function(rows))

    return run, check
