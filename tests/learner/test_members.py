"""The members of the learner: their registry, and what is read inside of scikit-learn's trees."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from lacunar import LacunarClassifier, LacunarRegressor, _trees, load_model, save_model
from lacunar.karma.selection import KernelSelection
from lacunar.kernels import RadialForm
from lacunar.learner import trees
from lacunar.learner.members import members_of
from lacunar.learner.views import TableViews


def table(n=80):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(3, size=n)])
    y = X[:, 0] + (X[:, 2] == 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def boosting(kind):
    X, y = table()
    target = (y > 0).astype(int) if kind is HistGradientBoostingClassifier else y
    return kind(max_iter=2, categorical_features=[2]).fit(X, target)


@pytest.mark.parametrize("name", [*_trees.BOOSTING_INSIDE, _trees.PREPROCESSOR_INSIDE])
@pytest.mark.parametrize("kind", [HistGradientBoostingClassifier, HistGradientBoostingRegressor])
def test_boosting_has_what_is_read_inside(kind, name):
    assert hasattr(boosting(kind), name), f"scikit-learn {sklearn.__version__} has renamed {kind.__name__}.{name}"


def test_trees_have_what_is_read_inside():
    tree = boosting(HistGradientBoostingRegressor)._predictors[0][0]
    absent = [name for name in _trees.HISTOGRAM_TREE_INSIDE if not hasattr(tree, name)]
    absent += [name for name in _trees.HISTOGRAM_NODE_INSIDE if name not in tree.nodes.dtype.names]
    forest = ExtraTreesRegressor(2).fit(*table())
    absent += [name for name in _trees.FOREST_TREE_INSIDE if not hasattr(forest.estimators_[0].tree_, name)]
    assert not absent, f"scikit-learn {sklearn.__version__} has renamed {absent}"


@pytest.mark.parametrize("name", _trees.BOOSTING_INSIDE)
def test_a_renamed_attribute_is_named_with_the_version_when_boosting_is_left_out(name, monkeypatch):
    monkeypatch.setattr(
        _trees,
        "inside",
        lambda owner, wish, read=_trees.inside: read(owner, wish + "_renamed" if wish == name else wish),
    )
    expected = re.escape(f"scikit-learn {sklearn.__version__} has no HistGradientBoostingRegressor.{name}_renamed")
    with pytest.warns(UserWarning, match=f"'boosting' could not be fitted.*{expected}"):
        model = LacunarRegressor(members=["linear", "boosting"]).fit(*table())
    assert model.members_ == ["linear"]


def test_a_field_of_nodes_that_is_gone_is_named_with_the_version():
    with pytest.raises(RuntimeError, match=f"scikit-learn {sklearn.__version__} has no ndarray.is_leaf"):
        _trees.inside(np.zeros(3, dtype=[("leaf", bool)]), "is_leaf")


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_the_documented_members_are_those_of_the_registry(kind):
    named = members_of(labels=kind is LacunarClassifier)
    documented = re.search(r'members : "auto" or list of str, .*?\n *Of (.*?)\.\n', kind.__doc__)[1]
    assert re.findall(r'"(.*?)"', documented) == list(named)


@pytest.mark.parametrize(("kind", "wrong"), [(LacunarClassifier, "linear"), (LacunarRegressor, "logistic")])
def test_members_of_the_other_task_are_refused(kind, wrong):
    X, y = table()
    with pytest.raises(ValueError, match=f"Leave '{wrong}' out"):
        kind(members=[wrong, "forest"]).fit(X, (y > 0).astype(int))


def test_a_loaded_ensemble_of_the_other_task_is_refused():
    X, y = table()
    ensemble = LacunarRegressor(members=["linear"]).fit(X, y).ensembles_[0]
    ensemble.names_ = ["logistic"]
    with pytest.raises(ValueError, match="'logistic', which is of the other task"):
        ensemble._check_loaded()


@pytest.mark.parametrize("labels", [False, True])
def test_boosting_out_of_fold_is_that_of_models_with_one_number_of_iterations(labels, monkeypatch):
    """No fold chooses its iterations for itself: its values out of fold would be too good for the pool."""
    X, y = table(150)
    target = (y > 0).astype(int) if labels else y
    monkeypatch.setattr(trees, "_shapes", lambda training: [trees._SMALL_LEAVES])
    trainings = []
    fit = trees.BoostingMember.fit
    monkeypatch.setattr(
        trees.BoostingMember, "fit", lambda self, training: trainings.append((self, training)) or fit(self, training)
    )
    kind = LacunarClassifier if labels else LacunarRegressor
    kind(members=["boosting"]).fit(X, target)
    member, training = trainings[0]
    values, twin = fit(trees.BoostingMember(), training), np.full((150, 2 if labels else 1), np.nan)
    known = training.labels if labels else training.Y[:, 0]
    for train, test in training.cuts:
        model = trees._model(training, trees._shapes(training)[0])
        model.set_params(early_stopping=False, max_iter=member.n_iter_[0])
        with trees.one_openmp_thread():
            model.fit(training.view.T[train], known[train])
        twin[test] = (
            np.log(model.predict_proba(training.view.T[test]))
            if labels
            else model.predict(training.view.T[test])[:, None]
        )
    assert len(training.cuts) in (3, 5)
    assert member.n_iter_[0] > 1
    twin = np.maximum(twin, np.log(trees.LEAST)) if labels else twin
    assert np.allclose(values, twin, rtol=0, atol=1e-6)


@pytest.mark.parametrize("labels", [False, True])
def test_members_without_weight_are_not_asked_and_change_nothing(labels, monkeypatch):
    X, y = table()
    target = (y > 0).astype(int) if labels else y
    kind, name = (LacunarClassifier, "logistic") if labels else (LacunarRegressor, "linear")
    model = kind(members=[name, "forest"]).fit(X, target)
    ensemble = model.ensemble_ if labels else model.ensembles_[0]
    weights = ensemble.pool_.weights_ = np.array([0.8, 0.0]) if labels else np.array([[0.8, 0.0]])
    values = [member.predict(model.views_.transform(X), model.posterior_) for member in ensemble.members_]
    whole = ensemble.pool_.combine(values, len(X))
    monkeypatch.setattr(type(ensemble.members_[1]), "predict", lambda *args: pytest.fail("forest was asked"))
    assert np.array_equal(ensemble.predict(model.views_.transform(X), model.posterior_), whole)
    ensemble.pool_.weights_ = 0.0 * weights
    nothing = ensemble.predict(model.views_.transform(X), model.posterior_)
    assert np.allclose(nothing, -np.log(2) if labels else 0.0)


# -- what a report says of them -----------------------------------------------------------------------------------------


def completed(model):
    return dict(zip(model.report_["member"], model.report_["completed"], strict=True))


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_the_report_says_how_members_complete_rows(kind, tmp_path):
    X, y = table(120)
    model = kind(cv=2, random_state=0).fit(X, y > 0 if kind is LacunarClassifier else y)
    save_model(model, tmp_path / "model")
    assert load_model(tmp_path / "model").report_ == model.report_
    found = completed(model)
    assert found["boosting"] == found["forest"] == ""
    assert found["linear" if kind is LacunarRegressor else "logistic"] == "mean and flags"
    assert found["gaussian"] in ("low-rank model", "low-rank model and flags")
    assert model.report_["rows"] == [120] * 5


def test_the_report_counts_kernels_that_complete_rows():
    X, y = table(120)
    model = LacunarRegressor(members=["kernels"], cv=2, random_state=0).fit(X, y)
    selection = model.ensembles_[0].members_[0].selection_
    karma = object()
    selection.forms_ = [RadialForm(1.0), RadialForm(2.0, laplace=True), RadialForm(1.0, mask=0.0), karma]
    selection.chosen_ = [{"table": table} for table in ("completed", "completed", "plain", "plain")]
    assert completed(model) == {"kernels": "low-rank model and flags, 2 of 4 kernels; mean, 1 of 4 kernels"}


def test_a_complete_table_has_no_flags():
    X, y = table()
    model = LacunarRegressor(members=["linear"]).fit(np.nan_to_num(X), y)
    assert completed(model) == {"linear": "mean"}


@pytest.mark.parametrize("rows_of", [np.asarray, sp.csr_array])
def test_linear_members_read_skewed_columns_as_they_are_and_as_normal_scores(rows_of):
    X = np.exp(1.5 * np.random.default_rng(0).normal(size=(1200, 2)))
    for y in (np.log(X).sum(axis=1), X.sum(axis=1)):
        model = LacunarRegressor(members=["linear"]).fit(rows_of(X[:300]), y[:300])
        assert model.score(rows_of(X[300:]), y[300:]) > 0.99


def test_columns_without_long_tails_are_shown_once():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.uniform(size=400), rng.integers(0, 2, 400), np.full(400, 2.0)])
    X[::3, 3] = np.nan
    assert TableViews().fit_transform(X).Z.shape == (400, 4)


@pytest.mark.parametrize(("signal", "fewest", "most"), [(0.5, 25, 50), (50.0, 100, 300)])
def test_a_forest_grows_until_more_trees_gain_little(signal, fewest, most):
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = signal * X.sum(axis=1) + np.random.default_rng(1).normal(size=300)
    forest = LacunarRegressor(members=["forest"]).fit(X, y).ensembles_[0].members_[0]
    assert fewest <= len(forest.trees_.roots_) <= most


@pytest.mark.parametrize("rule", [True, False])
def test_few_rows_choose_symmetric_trees_for_rules_and_small_ones_for_sums(rule, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = ((X[:, 0] > 0) ^ (X[:, 1] > 0)) if rule else X @ [1, 1, -1, 1] + 0.5 * rng.normal(size=300) > 0
    chosen, store = [], trees.BoostingMember._store
    monkeypatch.setattr(
        trees.BoostingMember,
        "_store",
        lambda self, grown, training: chosen.extend(grown) or store(self, grown, training),
    )
    LacunarClassifier(members=["boosting"]).fit(X, y)
    assert [fold.shape for fold in chosen[0].folds] == ["symmetric" if rule else trees._SMALL_LEAVES] * 5


@pytest.mark.parametrize("grouped", [False, True])
def test_kernels_are_tested_on_parts_of_the_folds_of_independent_rows(grouped, monkeypatch):
    X, _ = table(90)
    seen, fit = [], KernelSelection.fit
    monkeypatch.setattr(
        KernelSelection,
        "fit",
        lambda self, Z, Y, cuts, *args, **kwargs: seen.append(cuts) or fit(self, Z, Y, cuts, *args, **kwargs),
    )
    groups = np.arange(90) // 3 if grouped else None
    LacunarClassifier(members=["kernels"], cv=3).fit(X, np.arange(90) % 2, groups=groups)
    tests = [test for _, test in seen[0]]
    assert len(tests) == (3 if grouped else 24)
    assert {len(test) for test in tests} == ({30} if grouped else {3, 4})
    assert all(len(np.union1d(*cut)) == 90 and not np.intersect1d(*cut).size for cut in seen[0])
    assert np.array_equal(np.sort(np.concatenate(tests)), np.arange(90))
    assert grouped or all(1 <= (test % 2).sum() <= 3 for test in tests)  # both classes in every part


def test_a_row_far_from_all_others_gets_no_value_far_from_the_targets():
    X, _ = table(200)
    y = (np.nan_to_num(X[:, 0]) > 0).astype(int)
    X = np.column_stack([X, np.zeros(200)])
    X[:2, -1] = 1e-3, 2e-3  # nearly constant: a new row may lie thousands of standard deviations off
    model = LacunarClassifier(members=["gaussian"]).fit(X, y)
    far = np.vstack([X, 1e3 * np.nan_to_num(X)])
    far[:, -1] = 1e3
    values = model.ensemble_.members_[0].predict(model.views_.transform(far), model.posterior_)
    assert np.abs(values).max() <= 2


@pytest.mark.parametrize(("n", "stored"), [(2000, 2000), (2001, 1000)])
def test_kernels_of_more_rows_go_through_landmarks_and_are_still_tested_on_parts(n, stored, monkeypatch):
    X, y = table(n)
    y += 0.1 * np.random.default_rng(1).normal(size=n)
    seen, fit = [], KernelSelection.fit
    monkeypatch.setattr(
        KernelSelection,
        "fit",
        lambda self, Z, Y, cuts, *rest, **options: seen.append(len(cuts)) or fit(self, Z, Y, cuts, *rest, **options),
    )
    model = LacunarRegressor(members=["kernels"], random_state=0).fit(X, y)
    assert seen == [24]
    assert model.ensembles_[0].members_[0].selection_.rows_.shape[0] == stored
