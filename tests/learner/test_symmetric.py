"""Boosting of symmetric trees: splits and values beside slow twins, and as the learner's boosting."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from tests.reference.learner import summed_trees, symmetric_tree

from lacunar import LacunarClassifier, LacunarRegressor, _core, load_model, save_model
from lacunar._symmetric import SymmetricBoosting
from lacunar._trees import Trees, levels_of
from lacunar.learner import trees

CATEGORICAL = np.array([False, False, True, False])


def table(n, seed=0):
    """Two columns of numbers, one of 12 levels and one of few numbers; entries missing."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(12, size=n), rng.integers(3, size=n)]).astype(float)
    score = np.where(X[:, 0] > 0, 1.0, -1.0) * np.sign(X[:, 1]) + (X[:, 2] % 3 == 0)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, score


def target(kind, score):
    return {"numbers": score, "two": (score > 0).astype(int), "three": np.digitize(score, [-0.5, 0.5])}[kind]


def grown(kind, n_trees=20):
    X, score = table(300)
    model = SymmetricBoosting(CATEGORICAL, of_labels=kind != "numbers").set_params(max_iter=n_trees)
    return X, model.fit(X, target(kind, score))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_splits_are_those_of_the_slow_twin(n_outputs):
    rng = np.random.default_rng(n_outputs)
    n_codes = np.array([5, 4, 7], dtype=np.int32)
    codes = np.array([rng.integers(n, size=60) for n in n_codes], dtype=np.uint8)
    categorical = np.array([0, 1, 0], dtype=np.uint8)
    pairs = np.round(np.stack([rng.normal(size=(60, n_outputs)), rng.random((60, n_outputs))], axis=2) * 2**20) / 2**20
    columns, of_columns, leaf = _core.symmetric_tree(codes, n_codes, categorical, pairs, 1.0, 4)
    splits, of_twin = symmetric_tree(codes, n_codes, categorical, pairs, 1.0, 4)
    assert list(zip(columns.tolist(), of_columns.tolist(), strict=True)) == splits
    assert np.array_equal(leaf, of_twin)


def test_codes_beyond_their_number_and_trees_without_levels_are_refused():
    codes, flags, pairs = np.full((1, 3), 2, dtype=np.uint8), np.zeros(1, dtype=np.uint8), np.ones((3, 1, 2))
    with pytest.raises(ValueError, match="below n_codes"):
        _core.symmetric_tree(codes, np.array([2], dtype=np.int32), flags, pairs, 1.0, 2)
    with pytest.raises(ValueError, match="1 to 16 levels"):
        _core.symmetric_tree(codes, np.array([3], dtype=np.int32), flags, pairs, 1.0, 0)


@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_symmetric_trees_as_arrays(kind):
    """Rows of training, and others with missing entries and a level that was not learned."""
    X, model = grown(kind)
    rows = np.vstack([X, table(100, 1)[0]])
    rows[300, 2] = 40
    as_arrays = Trees.of_boosting([model, model], CATEGORICAL, 15)
    raw = list(model.staged_predict(rows))[14]
    assert np.allclose(as_arrays.sums(rows), raw, rtol=0, atol=1e-6)
    assert np.allclose(as_arrays.sums(rows), summed_trees(as_arrays, rows), rtol=0, atol=1e-12)
    assert levels_of(model, CATEGORICAL)[0].tolist() == list(range(12))


def test_a_tree_may_leave_all_rows_together():
    """Where every split gains less than none: all codes go left, beyond the last number."""
    X, model = grown("two", n_trees=1)
    tree = model.trees_[0]._replace(
        columns=np.zeros(6, dtype=np.int32), left=[np.ones(len(model.edges_[0]) + 2, bool)] * 6
    )
    model.trees_ = [tree]
    as_arrays = Trees.of_boosting([model], CATEGORICAL)
    assert np.allclose(as_arrays.sums(X), model.start_ + tree.values[0], rtol=0, atol=1e-6)


def test_every_second_tree_orders_levels_by_their_steps():
    rng = np.random.default_rng(5)
    levels = np.repeat(np.arange(40.0), 10)
    effect = np.isin(levels, rng.permutation(40)[:20]).astype(float)
    model = SymmetricBoosting(np.ones(1, dtype=bool), of_labels=False).set_params(max_iter=2)
    single, tree = model.fit(levels[:, None], effect).trees_
    assert all(left.sum() == 1 for left in single.left)
    assert np.array_equal(tree.left[0][1:], effect[::10] == 1)


@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_a_step_lowers_the_loss_and_growing_in_stages_changes_nothing(kind):
    X, score = table(400)
    y = target(kind, score)
    data = (X[:300], y[:300], None, X[300:], y[300:], None)
    whole = SymmetricBoosting(CATEGORICAL, of_labels=kind != "numbers").set_params(max_iter=30, n_iter_no_change=31)
    whole.fit(*data)
    stages = SymmetricBoosting(CATEGORICAL, of_labels=kind != "numbers").set_params(n_iter_no_change=31)
    for n_trees in (7, 30):
        stages.set_params(max_iter=n_trees).fit(*data)
    assert whole.validation_score_ == stages.validation_score_
    assert whole.validation_score_[-1] > 0.8 * whole.validation_score_[0]


def test_weights_of_rows_are_copies_of_them():
    X, score = table(200)
    X, y = np.round(X), score > 0  # so few different numbers that bins are those between them
    weight = np.where(np.arange(200) % 3, 1, 2)
    copies = np.repeat(np.arange(200), weight)
    one, other = (SymmetricBoosting(CATEGORICAL, of_labels=True).set_params(max_iter=5) for _ in range(2))
    one.fit(X, y, weight.astype(float))
    other.fit(X[copies], y[copies])
    raw = [list(model.staged_predict(X))[-1] for model in (one, other)]
    assert np.allclose(*raw, rtol=0, atol=1e-6)


def test_an_exclusive_or_among_noise_is_found():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2600, 12))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)
    model = LacunarClassifier(members=["boosting"]).fit(X[:600], y[:600])
    assert log_loss(y[600:], model.predict_proba(X[600:])) < 0.3


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_saved_models_of_symmetric_trees_answer_alike(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "_shapes", lambda training: ["symmetric"])
    X, score = table(200)
    model = kind(members=["boosting"]).fit(X, score > 0 if kind is LacunarClassifier else score)
    save_model(model, tmp_path / "model.lacunar")
    again = load_model(tmp_path / "model.lacunar")
    answer = "predict_proba" if kind is LacunarClassifier else "predict"
    assert np.array_equal(getattr(again, answer)(X), getattr(model, answer)(X))


@pytest.mark.filterwarnings("error")
def test_a_class_of_nearly_no_weight_gives_finite_values():
    X, score = table(200)
    y = target("two", score)
    model = SymmetricBoosting(CATEGORICAL, of_labels=True).set_params(max_iter=3)
    model.fit(X, y, sample_weight=np.where(y == 1, 1.0, 1e-18))
    assert np.isfinite(list(model.staged_predict(X))).all()
