"""mc-1 and mc-b against their slow twins, on cases whose answer is known, and on bad input."""

import pickle
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp
from reference import baselines as twin
from sklearn.base import is_classifier

from lacunar.observed import Observed
from lacunar.papers.karma import MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.papers.karma import continuation as steps
from lacunar.papers.karma.continuation import Factored, Moved, Stacked, continuation, make_threshold, values_of
from lacunar.persistence import load_model, save_model

INTERCEPTS = {"mc-1": "column", "mc-b": "bias"}
CLASSIFIERS = {name: partial(MatrixCompletionClassifier, word) for name, word in INTERCEPTS.items()}
REGRESSORS = {f"{name}, numbers": partial(MatrixCompletionRegressor, word) for name, word in INTERCEPTS.items()}


def of_kinds(kinds):
    return pytest.mark.parametrize("kind", list(kinds.values()), ids=list(kinds))


every = of_kinds(CLASSIFIERS | REGRESSORS)


def table(n=80, d=8, rank=3, missing=0.4, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n, rank))
    X = codes @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    X[rng.random(X.shape) < missing] = np.nan
    return X, codes[:, 0]


def problem(kind, known=50, **options):
    """A table, targets of which those after row `known` are NaN, and all targets."""
    X, target = table(**options)
    y = (target > 0).astype(float) if is_classifier(kind()) else target
    return X, np.where(np.arange(len(y)) < known, y, np.nan), y


def made(kind, **options):
    return kind(**{"lam": 1.0, "mu": 3e-3, "random_state": 0} | options)


@pytest.mark.parametrize(("m", "loss"), [(1, "logistic"), (3, "logistic"), (2, "squared")])
@pytest.mark.parametrize("ones", [True, False])
def test_every_step_is_that_of_the_paper(m, loss, ones):
    X, _ = table(n=60)
    rng, mus = np.random.default_rng(1), [3e-2, 1e-2, 2e-3]
    Y = (rng.random((60, m)) < 0.5).astype(float) if loss == "logistic" else rng.normal(size=(60, m))
    Y[40:] = np.nan
    stacked = Stacked(Observed.from_dense(X), Y, loss, ones, 0.5)
    threshold = make_threshold(stacked.shape, "full", None, rng)
    *_, last = continuation(stacked, iter(mus), threshold, 0.0, 25, momentum=False)
    slow = (twin.mc1 if ones else twin.mcb)(X, Y, 0.5, mus, 25, loss == "logistic")
    Z, b = (slow, 0.0) if ones else slow
    np.testing.assert_allclose(values_of(stacked, last), Z[:, 8 : 8 + m] + b, atol=1e-8)
    np.testing.assert_allclose((last.matrix.left @ last.matrix.right.T)[:, :8], Z[:, :8], atol=1e-8)


@every
@pytest.mark.parametrize(
    ("svd_solver", "lam", "mu"), [("full", 1.0, 1e-2), ("truncated", 0.1, 1e-3), ("full", 0.01, 1e-2)]
)
def test_the_tolerance_bounds_the_distance_to_the_solution(kind, svd_solver, lam, mu):
    """1e-7 for the scores of all rows at tol=1e-10; what is left of the bound at coarser tolerances."""
    X, y, _ = problem(kind, n=40, known=26)
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    Y = y[:, None] if is_classifier(kind()) else ((y - np.nanmean(y)) / np.nanstd(y))[:, None]
    ones = kind().intercept == "column"
    Z, b = twin.solution(X, Y, lam, mu, is_classifier(kind()), ones)
    stacked = Stacked(Observed.from_dense(X), Y, "logistic" if is_classifier(kind()) else "squared", ones, lam)
    mus = [0.1, 1e-2, mu][2 - int(np.log10(0.1 / mu)) :]
    threshold = make_threshold(stacked.shape, svd_solver, None, np.random.default_rng(0))
    for tol in (1e-4, 1e-7, 1e-10):
        *_, last = continuation(stacked, iter(mus), threshold, tol, 20_000)
        assert last.converged
        off = np.abs(values_of(stacked, last)[:, 0] - Z[:, 8] - b).max()
        assert off <= 1e3 * tol, (tol, off)


@every
def test_as_printed(kind):
    """Plain steps on the columns as they are, by full decompositions, ending on the change of a step."""
    X, y, _ = problem(kind)
    paper = made(kind, mu=1e-2, momentum=False, standardize=False).fit(X, y)
    plain = made(kind, mu=1e-2, standardize=False, tol=1e-9, max_iter=100_000).fit(X, y)
    np.testing.assert_array_equal(paper.scale_, 1.0)
    np.testing.assert_allclose(paper._values(X), plain._values(X), atol=0.05)


@every
def test_unseen_rows_agree_with_the_transduction(kind):
    """An unlabelled row of `fit`, given again, gets its own completion: the extension is the fixed point's own."""
    X, y, _ = problem(kind)
    model = made(kind, tol=1e-7, max_iter=5000).fit(X, y)
    values = model.decision_function(X) if is_classifier(model) else model.predict(X)
    again = made(kind, tol=1e-7, max_iter=5000).fit(np.vstack([X, X[50:60]]), np.append(y, np.full(10, np.nan)))
    if is_classifier(model):
        sure = np.abs(values[50:]) > 1e-3
        np.testing.assert_array_equal(model.predict(X[50:])[sure], model.transduction_[50:][sure])
        np.testing.assert_array_equal(again.predict(X[50:60]), again.transduction_[80:])
    else:
        np.testing.assert_allclose(values[50:], model.transduction_[50:], atol=1e-4)
        np.testing.assert_allclose(again.predict(X[50:60]), again.transduction_[80:], atol=1e-4)


@every
def test_low_rank_tables_are_learned(kind):
    X, y, full = problem(kind, known=150, n=300, noise=0.0, missing=0.3)
    model = kind(random_state=0, mu_min=1e-3, max_iter=2000).fit(X, y)
    unknown = model.transduction_[150:]
    if is_classifier(model):
        assert np.mean(unknown != full[150:]) < 0.12
    else:
        assert np.mean((unknown - full[150:]) ** 2) < 0.02
    assert model.rank_ <= 9


def test_a_matrix_of_rank_one_is_completed():
    """With little shrinkage the one completion of rank one is found, features and target."""
    rng = np.random.default_rng(0)
    rows, columns = rng.normal(size=60), rng.normal(size=10)
    X = np.where(rng.random((60, 10)) < 0.3, np.nan, np.outer(rows, columns))
    model = MatrixCompletionRegressor("bias", lam=1.0, mu=1e-5, standardize=False, random_state=0)
    model.fit(X, np.where(rng.random(60) < 0.3, np.nan, 3 * rows))
    np.testing.assert_allclose(model.transduction_, 3 * rows, atol=2e-2)
    np.testing.assert_allclose(model.impute(X), np.outer(rows, columns), atol=2e-2)


@every
def test_momentum_reaches_the_same_fixed_point(kind):
    X, y, _ = problem(kind)
    options = {"mu": 1e-2, "standardize": False, "max_iter": 20_000}
    fast = made(kind, tol=1e-7, **options).fit(X, y)
    plain = made(kind, momentum=False, tol=1e-9, **options).fit(X, y)
    np.testing.assert_allclose(fast._values(X), plain._values(X), atol=1e-3)
    assert fast.n_iter_ < plain.n_iter_


@pytest.mark.parametrize("shape", [(40, 15), (15, 40)])
@pytest.mark.parametrize("level", [0.5, 4.0, 1e9])
def test_the_truncated_threshold_is_the_exact_one(shape, level):
    rng = np.random.default_rng(0)
    X = np.where(rng.random(shape) < 0.5, np.nan, rng.normal(size=shape))
    rows = Observed.from_dense(X)
    base = Factored(rng.normal(size=(shape[0], 2)), rng.normal(size=(shape[1] + 2, 2)), np.ones(2), None)
    moved = Moved(base, rows, rows.values, rng.normal(size=(shape[0], 2)))
    want = twin.shrink(base.left @ base.right.T + np.hstack([np.nan_to_num(X), moved.block]), level)
    for how in ("full", "truncated"):
        found = make_threshold(moved.shape, how, None, rng)(moved, level, 1e-12)
        np.testing.assert_allclose(found.left @ found.right.T, want, atol=1e-6)


@every
def test_full_and_truncated_agree(kind, monkeypatch):
    X, y, _ = problem(kind)
    full = made(kind, mu=1e-2, tol=1e-7, max_iter=5000).fit(X, y)
    monkeypatch.setattr(steps, "_FULL_WORK", 0)
    truncated = made(kind, mu=1e-2, tol=1e-7, max_iter=5000).fit(X, y)
    assert full.rank_ == truncated.rank_
    np.testing.assert_allclose(truncated._values(X), full._values(X), atol=1e-4)


@cache
def of_the_array(kind):
    """A table of numbers of float32, targets, and the values of a model that was fitted to them."""
    X, y, _ = problem(kind)
    X = X.astype(np.float32).astype(np.float64)
    X[0, 0] = 0.0  # observed
    return X, y, made(kind).fit(X, y)._values(X)


@every
@pytest.mark.parametrize("container", [sp.csr_array, "observed", "float32"])
def test_format_and_dtype_do_not_matter(kind, container):
    X, y, expected = of_the_array(kind)
    if container == "float32":
        same, tolerance = X.astype(np.float32), 1e-4
    elif container == "observed":
        same, tolerance = Observed.from_dense(X), 0
    else:
        rows, columns = np.nonzero(~np.isnan(X))
        same, tolerance = container((X[rows, columns], (rows, columns)), shape=X.shape), 0
    other = made(kind).fit(same, y)
    np.testing.assert_allclose(other._values(same), expected, rtol=0, atol=tolerance)


@every
def test_persistence(kind, tmp_path):
    X, y, _ = problem(kind)
    model = made(kind).fit(X, y)
    save_model(model, tmp_path / "m.lacunar")
    back = load_model(tmp_path / "m.lacunar")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@of_kinds(CLASSIFIERS)
def test_unknown_labels_in_every_spelling(kind):
    pandas = pytest.importorskip("pandas")
    X, y, _ = problem(kind)
    text = np.where(np.isnan(y), None, np.where(y == 1, "yes", "no"))
    want = made(kind, mu=1e-2).fit(X, y).transduction_ == 1
    for labels, yes in (
        (text, "yes"),
        (pandas.Series(text), "yes"),
        (pandas.Series(text, dtype="string"), "yes"),
        (pandas.Series(y, dtype="Int64"), 1),
    ):
        np.testing.assert_array_equal(made(kind, mu=1e-2).fit(X, labels).transduction_ == yes, want)


@of_kinds(CLASSIFIERS)
def test_more_than_two_classes(kind):
    rng = np.random.default_rng(0)
    full = rng.integers(0, 3, 200).astype(float)
    X = np.eye(3)[full.astype(int)] @ rng.normal(size=(3, 8)) + 0.2 * rng.normal(size=(200, 8))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = made(kind).fit(X, np.where(np.arange(200) < 150, full, np.nan))
    assert model.decision_function(X).shape == (200, 3)
    assert np.mean(model.transduction_[150:] != full[150:]) < 0.05


@of_kinds(REGRESSORS)
def test_several_targets_with_missing_values_of_their_own(kind):
    X, y, full = problem(kind)
    second = np.where(np.arange(len(y)) % 2 == 0, -full, np.nan)
    model = made(kind).fit(X, np.column_stack([y, second]))
    assert model.transduction_.shape == model.predict(X).shape == (80, 2)
    assert np.corrcoef(model.transduction_[:, 0], -model.transduction_[:, 1])[0, 1] > 0.9


@every
def test_zero_matrix_and_empty_rows_and_columns(kind):
    X, y, _ = problem(kind)
    X[:, 3], X[7], X[60] = np.nan, np.nan, np.nan
    zero = made(kind, mu=1e6).fit(X, y)
    assert zero.rank_ == 0
    assert len(np.unique(zero.predict(X))) == 1
    model = made(kind).fit(X, y)
    assert np.isfinite(model._values(X)).all()
    seen_now = X.copy()
    seen_now[:, 3] = 5.0  # never observed in fit: ignored
    np.testing.assert_array_equal(model.predict(seen_now), model.predict(X))


def test_a_limit_on_steps_warns():
    X, y, _ = problem(MatrixCompletionClassifier)
    with pytest.warns(UserWarning, match="max_iter=2"):
        made(MatrixCompletionClassifier, max_iter=2).fit(X, y)


@every
def test_bad_input_is_named(kind):
    X, y, _ = problem(kind)
    with pytest.raises(ValueError, match="NaN in every row"):
        made(kind).fit(X, np.full(len(y), np.nan))
    with pytest.raises(ValueError, match="infinity"):
        made(kind).fit(X, np.where(np.arange(len(y)) == 4, np.inf, y))
    with pytest.raises(ValueError, match="row 2, column 1"):
        made(kind).fit(np.where((np.indices(X.shape) == [[[2]], [[1]]]).all(axis=0), np.inf, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        made(kind).fit(X, y[:-1])
    with pytest.raises(ValueError, match="requires y"):
        made(kind).fit(X, None)
    with pytest.raises(ValueError, match="'lam' parameter"):
        made(kind, lam=0.0).fit(X, y)
    model = made(kind).fit(X, y)
    with pytest.raises(ValueError, match="7 features"):
        model.predict(X[:, 1:])


def test_a_target_that_is_known_nowhere_is_named():
    X, y, _ = problem(MatrixCompletionRegressor)
    with pytest.raises(ValueError, match="every row of target 1"):
        made(MatrixCompletionRegressor).fit(X, np.column_stack([y, np.full(len(y), np.nan)]))


def test_labels_of_two_kinds_are_refused():
    X, y, _ = problem(MatrixCompletionClassifier)
    mixed = np.array(["yes", 0, *[None] * (len(y) - 2)], dtype=object)
    with pytest.raises(TypeError, match="one kind"):
        made(MatrixCompletionClassifier).fit(X, mixed)


@pytest.mark.parametrize("density", [0.01, 0.3])
def test_values_at_observed_cells(density):
    rng = np.random.default_rng(0)
    rows = Observed.from_dense(np.where(rng.random((600, 30)) < density, 1.0, np.nan))
    matrix = Factored(rng.normal(size=(600, 3)), rng.normal(size=(32, 3)), np.ones(3), None)
    want = (matrix.left @ matrix.right.T)[:, :30][~np.isnan(rows.to_dense())]
    np.testing.assert_allclose(matrix.at(rows), want)


@of_kinds(CLASSIFIERS)
def test_few_labels_choose_nothing(kind):
    X, y, _ = problem(kind, known=3)
    model = kind(mu_min=1e-2, random_state=0).fit(X, y)
    assert (model.lam_, model.mu_) == (0.1, 1e-2)
