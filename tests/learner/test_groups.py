"""Groups, time and splitters mean what they say for every member; what speaks against independent rows is warned of once, with the option's name."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn import datasets
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import lacunar
from lacunar import LacunarClassifier, LacunarRegressor
from lacunar._cuts import cuts_of, in_order, left_out
from lacunar._cuts import tested_rows as rows_tested
from lacunar.datasets import load_patients
from lacunar.karma.selection import KernelSelection
from lacunar.learner.dependence import grouping_column, neighbours_are_alike
from lacunar.learner.ensemble import LinearPool, _log_weights, effective_number, prior_weights
from lacunar.learner.folds import error_of_sum, even_folds, units_in
from lacunar.lowrank.ridge import fold_ridge
from lacunar.persistence import load_model, save_model
from lacunar.uncertainty.shift import log_softmax

LABEL_MEMBERS = ["logistic", "gaussian", "kernels", "boosting", "forest"]
NUMBER_MEMBERS = ["linear", "gaussian", "kernels", "boosting", "forest"]


def who_it_is(n_groups=60, size=10, seed=0):
    """Columns that say nothing but which group a row is of, labels of the group by chance: new groups are right in one half."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), size)
    X = rng.normal(size=(n_groups, 6))[groups] + 0.05 * rng.normal(size=(len(groups), 6))
    return X, rng.integers(0, 2, n_groups)[groups], groups


def fitted(kind, X, y, *, cv=5, members="auto", **told):
    with warnings.catch_warnings(action="ignore"):
        return kind(cv=cv, members=members, random_state=0).fit(X, y, **told)


@pytest.mark.parametrize("member", LABEL_MEMBERS)
@pytest.mark.parametrize("how", ["groups", "splits"])
def test_every_member_is_judged_by_new_groups(member, how):
    X, y, groups = who_it_is()
    cv = 5 if how == "groups" else list(GroupKFold(5).split(X, y, groups))
    told = {} if how == "splits" else {"groups": groups}
    model = fitted(LacunarClassifier, X, y, cv=cv, members=[member], **told)
    assert model.report_["score"][0] < 0.72
    own = model.out_of_fold_[np.arange(len(y)), y]
    assert -np.log(own).mean() > 0.6


@pytest.mark.parametrize("member", NUMBER_MEMBERS)
def test_every_member_of_numbers_is_judged_by_new_groups(member):
    X, _, groups = who_it_is()
    y = np.random.default_rng(1).normal(size=60)[groups]
    model = fitted(LacunarRegressor, X, y, members=[member], groups=groups)
    assert model.report_["score"][0] < 0.3


def test_intervals_are_those_of_new_groups():
    X, _, groups = who_it_is(200, 4)
    y = np.random.default_rng(1).normal(size=200)[groups]
    new, truth = who_it_is(200, 4, seed=5)[0], np.random.default_rng(2).normal(size=200)[groups]
    shares = []
    for told in ({}, {"groups": groups}):
        inside = fitted(LacunarRegressor, X, y, members=["kernels"], **told).predict_interval(new)
        shares.append(np.mean((truth >= inside[:, 0]) & (truth <= inside[:, 1])))
    assert shares[0] < 0.6
    assert shares[1] > 0.81  # .9 less three standard errors over 200 groups of training and 200 new ones


def test_copies_do_not_let_the_forest_see_a_row_before_it_is_asked():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), rng.integers(0, 2, 150)
    for member in ("forest", "kernels"):
        model = fitted(LacunarClassifier, np.tile(X, (4, 1)), np.tile(y, 4), members=[member])
        assert model.report_["score"][0] < 0.65, member


def test_out_of_fold_values_of_the_forest_have_not_seen_the_test_part():
    """Rows of a test part all have one label that is nowhere else: who has not seen them does not predict it."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    y = np.repeat(np.arange(5), 20)
    splits = [(np.flatnonzero(y != k), np.flatnonzero(y == k)) for k in range(5)]
    for member in LABEL_MEMBERS:
        model = fitted(LacunarClassifier, X, y, cv=splits, members=[member])
        assert model.report_["score"][0] == 0.0, member


@pytest.mark.parametrize("kind", [LacunarClassifier, LacunarRegressor])
def test_time_splits_test_later_rows_by_earlier_ones(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + 0.3 * rng.normal(size=120)
    y = (y > 0).astype(int) if kind is LacunarClassifier else y
    model = fitted(kind, X, y, cv=TimeSeriesSplit(5))
    own = model.out_of_fold_.reshape(120, -1)
    assert np.isnan(own[:20]).all()
    assert np.isfinite(own[20:]).all()
    (model.predict_set if kind is LacunarClassifier else model.predict_interval)(X)


def test_models_of_a_time_series_learn_from_the_last_rows_too():
    """The signal begins in the last sixth, which no split trains on."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)
    X[500:] = 10 + 4.0 * y[500:, None]
    for member in ("boosting", "forest", "logistic"):
        model = fitted(LacunarClassifier, X, y, cv=TimeSeriesSplit(5), members=[member])
        grid = np.array([[10.0] * 3, [14.0] * 3])
        raw = model.ensemble_.members_[0].predict(model.views_.transform(grid), model.posterior_)
        assert raw[1, 1] - raw[1, 0] > raw[0, 1] - raw[0, 0], member


@pytest.mark.parametrize(
    "cv",
    [GroupKFold(4), StratifiedGroupKFold(3), LeaveOneGroupOut(), KFold(3), StratifiedKFold(3), TimeSeriesSplit(3), 4],
    ids=lambda cv: type(cv).__name__,
)
def test_splitters_of_scikit_learn_cut_the_rows_as_they_say(cv, monkeypatch):
    X, y, groups = who_it_is(12, 8)
    cuts, original = [], LacunarClassifier._cuts

    def spying(self, *args, **options):
        cuts.append(original(self, *args, **options)[0])
        return cuts[-1], False

    monkeypatch.setattr(LacunarClassifier, "_cuts", spying)
    told = {} if isinstance(cv, KFold | StratifiedKFold | TimeSeriesSplit) else {"groups": groups}
    fitted(LacunarClassifier, X, y, cv=cv, members=["logistic"], **told)
    if isinstance(cv, int):
        assert all(not set(groups[train]) & set(groups[test]) for train, test in cuts[0])
        np.testing.assert_array_equal(rows_tested(cuts[0]), np.arange(96))
        return
    for cut, expected in zip(cuts[0], cv.split(X, y, told.get("groups")), strict=True):
        for side, rows in zip(cut, expected, strict=True):
            np.testing.assert_array_equal(side, np.sort(rows))


def test_rows_without_a_label_leave_a_splitter_in_step():
    X, y, groups = who_it_is(12, 8)
    known = np.random.default_rng(0).random(96) < 0.7
    some = pd.Series(y, dtype=object).where(known, None)
    model = fitted(LacunarClassifier, X, some, cv=GroupKFold(4), members=["forest"], groups=groups)
    assert model.out_of_fold_.shape == (known.sum(), 2)
    assert np.isfinite(model.out_of_fold_).all()


def test_groups_go_through_pipelines_and_cross_validation():
    _, _, groups = who_it_is(20, 6)
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LacunarClassifier(members=["logistic"], cv=GroupKFold(3)).set_fit_request(groups=True)
        line = make_pipeline(FunctionTransformer(), model)
        scores = cross_validate(line, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise")
    assert len(scores["test_score"]) == 3


def test_groups_that_are_wrong_are_refused():
    X, y, groups = who_it_is(6, 5)
    make = LacunarClassifier(members=["logistic"])
    with pytest.raises(ValueError, match="got 29 groups and 30 rows"):
        make.fit(X, y, groups=groups[1:])
    with pytest.raises(ValueError, match=r"groups\[3\] must be an id"):
        make.fit(X, y, groups=[None if k == 3 else k for k in range(30)])
    with pytest.raises(ValueError, match="at least two different groups"):
        make.fit(X, y, groups=["one"] * 30)
    with pytest.raises(ValueError, match=r"GroupKFold keeps together; got groups=None\. Pass groups="):
        LacunarClassifier(members=["logistic"], cv=GroupKFold(3)).fit(X, y)


@pytest.mark.parametrize("names", [str, int, lambda k: ("row", k)])
def test_any_names_of_groups_are_the_same_groups(names):
    X, y, groups = who_it_is(12, 5)
    one = fitted(LacunarClassifier, X, y, members=["logistic"], groups=groups)
    other = fitted(LacunarClassifier, X, y, members=["logistic"], groups=[names(int(k)) for k in groups])
    np.testing.assert_array_equal(one.out_of_fold_, other.out_of_fold_)


@pytest.mark.parametrize("labels", [None, np.arange(400) % 3])
def test_folds_of_groups_of_any_size_have_about_as_many_rows(labels):
    rng = np.random.default_rng(0)
    groups = units_in(rng.choice(60, 400, p=rng.dirichlet(np.ones(60))))
    folds = even_folds(labels, groups, 5, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.arange(400))
    assert max(map(len, folds)) - min(map(len, folds)) <= np.bincount(groups).max()
    assert all(not set(groups[fold]) & set(np.delete(groups, fold)) for fold in folds)


# -- exact values of rows left out ------------------------------------------------------------------------------------------

ODD_CUTS = {
    "time": list(TimeSeriesSplit(4).split(np.zeros(90))),
    "single rows": cuts_of([np.array([k]) for k in range(90)], 90),
    "gaps": [(np.arange(0, 30), np.arange(40, 60)), (np.arange(0, 50), np.arange(70, 90))],
    "a shuffled fold": cuts_of([np.random.default_rng(0).permutation(90)[:20]], 90),
}


@pytest.mark.parametrize("cuts", ODD_CUTS.values(), ids=ODD_CUTS)
@pytest.mark.parametrize("columns", [4, 40, 120])
def test_the_ridge_predicts_by_what_a_cut_learns_from(cuts, columns):
    rng = np.random.default_rng(0)
    F, Y = rng.normal(size=(90, columns)), rng.normal(size=(90, 2))
    values = fold_ridge(F, Y, cuts, None, [3.0]).oof
    scale, mean = F.std(axis=0), F.mean(axis=0)
    rows = np.column_stack([(F - mean) / scale, np.ones(90)])
    penalty = np.diag(np.r_[np.full(columns, 3.0), 1e-8])
    expected = [
        rows[test] @ np.linalg.solve(rows[train].T @ rows[train] + penalty, rows[train].T @ Y[train])
        for train, test in cuts
    ]
    np.testing.assert_allclose(values, in_order(cuts, expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cuts", ODD_CUTS.values(), ids=ODD_CUTS)
@pytest.mark.parametrize("full_rows", [3000, 50])
def test_kernels_predict_by_what_a_cut_learns_from(cuts, full_rows):
    """Values of a cut do not change with the targets that it leaves out, and are those of a fit to what it learns from."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 3))
    Y = Z[:, :1] * Z[:, 1:2] + 0.1 * rng.normal(size=(90, 1))
    data = {"screen_rows": 90, "search_rows": 90, "full_rows": full_rows, "landmarks": 40}
    selection = KernelSelection(**data)
    values = selection.fit(Z, Y, cuts)
    _, test = cuts[-1]
    wild = Y.copy()
    wild[left_out(cuts[-1], 90)] += 100.0
    chosen = [(one["table"], one["C"]) for one in selection.chosen_]
    again = KernelSelection(**data)
    found = again.fit(Z, wild, cuts)
    same = [(one["table"], one["C"]) for one in again.chosen_] == chosen
    own = np.searchsorted(rows_tested(cuts), np.sort(test))
    assert np.isfinite(values).all()
    assert not same or np.allclose(values[own], found[own], atol=1e-3)
    assert len(values) == len(rows_tested(cuts))


def test_kernels_of_dependent_rows_are_chosen_by_the_cuts():
    X, _, groups = who_it_is(40, 8)
    Y = np.random.default_rng(3).normal(size=(40, 1))[groups]
    cuts = cuts_of(even_folds(None, groups, 5, 0), len(X))
    errors = [KernelSelection().fit(X, Y, cuts, independent=way) for way in (True, False)]
    losses = [float(np.mean((values - Y) ** 2)) for values in errors]
    assert losses[1] < 0.9 * losses[0]


# -- warnings ------------------------------------------------------------------------------------------------------------


def said(kind, X, y, **told):
    with warnings.catch_warnings(record=True, action="always") as record:
        members = ["logistic" if kind is LacunarClassifier else "linear"]
        kind(members=members, cv=told.pop("cv", 5), random_state=0).fit(X, y, **told)
    return [text for warning in record if "are alike" in (text := str(warning.message))]


@pytest.mark.parametrize(
    ("order", "names"),
    [(np.arange(300), "P{}"), (np.random.default_rng(0).permutation(300), "{}")],
    ids=["text in order", "numbers shuffled"],
)
def test_a_column_of_ids_is_named_once(order, names):
    X, y, groups = who_it_is(30)
    table = pd.DataFrame(X[order]).add_prefix("c").assign(who=[names.format(k) for k in groups[order]])
    if names == "{}":
        table["who"] = table["who"].astype(int)
    (text,) = said(LacunarClassifier, table, y[order])
    assert "'who'" in text
    assert "pass groups= to fit" in text
    assert not said(LacunarClassifier, table, y[order], groups=table["who"])
    shuffled = table.assign(who=np.random.default_rng(1).permutation(table["who"]))
    assert not any("'who'" in text for text in said(LacunarClassifier, shuffled, y[order]))


def in_time(n=600, seed=0):
    rng = np.random.default_rng(seed)
    swing = np.zeros((n, 3))
    for k in range(1, n):
        swing[k] = 0.97 * swing[k - 1] + 0.25 * rng.normal(size=3)
    X = np.column_stack([rng.normal(size=(n, 2)), swing[:, :2]])
    return X, X[:, 0] + X[:, 2] + 2 * swing[:, 2] + 0.2 * rng.normal(size=n)


def test_rows_in_the_order_of_time_are_warned_of_once():
    X, y = in_time()
    (text,) = said(LacunarRegressor, X, y)
    assert "cv=TimeSeriesSplit(5)" in text
    order = np.random.default_rng(0).permutation(len(y))
    assert not said(LacunarRegressor, X[order], y[order])
    assert not said(LacunarRegressor, X, y, cv=TimeSeriesSplit(5))
    assert not said(LacunarRegressor, np.column_stack([X, y]), np.random.default_rng(0).permutation(y))


OPEN_TABLES = {
    "iris": datasets.load_iris, "breast cancer": datasets.load_breast_cancer, "digits": datasets.load_digits, "diabetes": datasets.load_diabetes,
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN_TABLES)
def test_independent_rows_are_not_warned_of(name):
    X, y = OPEN_TABLES[name](return_X_y=True)
    kind = LacunarRegressor if name == "diabetes" else LacunarClassifier
    X, y = X[:300], y[:300]
    assert not said(kind, X, y)
    order = np.argsort(y, kind="stable")
    assert not said(kind, X[order], y[order])


@pytest.mark.parametrize("n", [200, 260, 400])
def test_a_measurement_that_is_taken_twice_is_no_group(n):
    """Rounded values of one blood test repeat, go with the target and with its later value; a name of a group is in no order."""
    patients = load_patients(as_frame=True)
    assert not said(LacunarClassifier, patients.data[:n], patients.target[:n], cv=3)


@pytest.mark.parametrize("seed", range(5))
def test_wild_values_make_no_groups(seed):
    """Counts that go with the target are no names, whatever level the largest values of other columns fall in."""
    rng = np.random.default_rng(seed)
    rate = rng.normal(size=300)
    counts = rng.poisson(np.exp(2 + rate)).astype(float)
    Z = rng.standard_t(1.0, size=(300, 40))
    Z = np.where(rng.random(Z.shape) < 0.5, np.nan, Z)
    y = (rate + 0.5 * rng.normal(size=300))[:, None]
    assert grouping_column([("count", counts, np.ones(40, dtype=bool))], Z, y) is None
    Z[:, 0] = np.exp(3 * rng.normal(size=200))[counts.astype(int) % 200]
    names = np.array([f"P{count:g}" for count in counts], dtype=object)
    assert grouping_column([("who", names, np.ones(40, dtype=bool))], Z, y) == "who"


def test_numbers_of_people_are_groups_although_a_column_counts_them():
    rng = np.random.default_rng(0)
    person = rng.permutation(np.repeat(np.arange(60), 5)).astype(float)
    Z = np.column_stack([person / 60 + rng.normal(scale=0.1, size=300), rng.normal(size=(60, 4))[person.astype(int)]])
    y, others = rng.normal(size=60)[person.astype(int)], np.ones(5, dtype=bool)
    assert grouping_column([("person", person, others)], Z, y[:, None]) == "person"
    assert grouping_column([("person", person, others[:1])], Z[:, :1], y[:, None]) is None


def test_a_category_whose_level_no_other_column_tells_is_no_group():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 40, 800)
    Z, y = rng.normal(size=(800, 5)), rng.normal(size=40)[state] + rng.normal(size=800)
    others = np.ones(5, dtype=bool)
    assert grouping_column([("state", state.astype(float), others)], Z, y[:, None]) is None
    Z[:, 0] = rng.normal(size=40)[state]
    assert grouping_column([("state", state.astype(float), others)], Z, y[:, None]) == "state"
    assert grouping_column([("state", state.astype(float), others)], Z, rng.normal(size=(800, 1))) is None


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_of_random_or_sorted_rows_are_not_alike(seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(300, 1))
    assert not neighbours_are_alike(rng.normal(size=(300, 1)), None, y)
    order = np.argsort(y[:, 0])
    assert not neighbours_are_alike((y - 0.3 * rng.normal(size=(300, 1)))[order], None, y[order])
    labels = np.sort(rng.integers(0, 3, 300))
    one_hot = (labels[:, None] == np.arange(3)).astype(float)
    assert not neighbours_are_alike(one_hot - rng.dirichlet(np.ones(3), 300), labels, one_hot)


# -- elsewhere -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv", [GroupKFold(3), StratifiedGroupKFold(3, shuffle=True, random_state=1), LeaveOneGroupOut(), TimeSeriesSplit(3)],
    ids=lambda cv: type(cv).__name__,
)  # fmt: skip
def test_a_model_with_a_splitter_is_saved_and_loaded(cv, tmp_path):
    X, y, groups = who_it_is(12, 6)
    told = {} if isinstance(cv, TimeSeriesSplit) else {"groups": groups}
    model = fitted(LacunarClassifier, X, y, cv=cv, members=["logistic"], **told)
    save_model(model, tmp_path / "model.lacunar")
    loaded = load_model(tmp_path / "model.lacunar")
    assert repr(loaded.cv) == repr(cv)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_comparison_keeps_groups_in_one_fold_and_tells_the_learner():
    X, y, groups = who_it_is(30, 5)
    table = pd.DataFrame(X).add_prefix("c").assign(who=[f"P{k}" for k in groups], y=y)
    asked = {"learner": ["lacunar", "no columns"], "repeats": 1, "folds": 3, "metric": "log-loss", "time_limit": None}
    result = lacunar.compare(table, "y", groups="who", **asked)
    assert "who" not in result.problem.frame.columns
    for train, test in result.splits:
        assert not set(groups[train]) & set(groups[test])
    scores = dict(zip(result.table["learner"], result.table["log loss"], strict=True))
    assert scores["lacunar"] > 0.6
    assert scores["lacunar"] < scores["no columns"] + 0.1
    with pytest.raises(ValueError, match=r"'wo': no such column.*did you mean 'who'"):
        lacunar.compare(table, "y", groups="wo")
    with pytest.raises(ValueError, match="two kinds of folds"):
        lacunar.compare(table, "y", groups="who", time="c0")
    with pytest.raises(ValueError, match="is missing in row 2"):
        lacunar.compare(table.assign(who=[None if k == 2 else "a" for k in range(150)]), "y", groups="who")


def test_a_comparison_in_the_order_of_time_tests_later_rows():
    X, y = in_time(120)
    days = pd.date_range("2024-01-01", periods=120)
    order = np.random.default_rng(0).permutation(120)
    table = pd.DataFrame(X).add_prefix("c").assign(day=days, y=y).iloc[order]
    result = lacunar.compare(table, "y", time="day", learner=["random forest", "no columns"], time_limit=None)
    assert result.repeats == 1
    assert len(result.splits) == 5
    np.testing.assert_allclose(result.problem.y, y)
    for train, test in result.splits:
        assert train.max() < test.min()
    with pytest.raises(ValueError, match="must hold numbers or dates"):
        lacunar.compare(table.assign(day=["a", "b"] * 60), "y", time="day")


def test_the_pool_counts_groups_whose_rows_say_the_same():
    """A row that stands ten times in its group says no more than once; rows whose losses have nothing in common count as they are."""
    rng = np.random.default_rng(0)
    losses = rng.normal(size=(60, 3)) ** 2
    groups = np.repeat(np.arange(60), 10)
    assert effective_number(losses[groups], np.ones(600), groups) == pytest.approx(60)
    assert effective_number(losses[groups], np.ones(600), None) == 600
    alone = rng.normal(size=(600, 3)) ** 2
    assert effective_number(alone, np.ones(600), rng.permutation(groups)) > 400
    np.testing.assert_allclose(
        prior_weights(losses[groups], np.ones(600), groups), prior_weights(losses, np.ones(60)), rtol=1e-10
    )
    y, members = rng.normal(size=60), rng.normal(size=(3, 60, 1))
    members += 0.5 * y[:, None]
    once = LinearPool().fit([*members], y[:, None]).weights_
    repeated = [[*members[:, groups]], y[groups][:, None]]
    np.testing.assert_allclose(LinearPool().fit(*repeated, groups=groups).weights_, once, atol=1e-10)
    assert np.abs(LinearPool().fit(*repeated).weights_ - once).max() > 1e-3


def test_the_pool_of_labels_counts_groups_too():
    rng = np.random.default_rng(1)
    labels = rng.integers(2, size=80)
    scores = [rng.normal(size=80) + shift * (2 * labels - 1) for shift in (0.3, 0.6, 0.0)]
    values = [np.column_stack([-score, score]) for score in scores]
    groups = np.repeat(np.arange(80), 12)
    logs = np.array([log_softmax(of_member) for of_member in values])
    once = _log_weights(logs, labels, np.ones(80), None)
    of_groups = _log_weights(logs[:, groups], labels[groups], np.ones(960), groups)
    np.testing.assert_allclose(of_groups, once, atol=1e-4)
    assert np.abs(_log_weights(logs[:, groups], labels[groups], np.ones(960), None) - once).max() > 0.02


def test_columns_are_added_where_groups_are_sure_of_them():
    """Rows of a group that gain alike by a column are no more sure of it than the group is."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(24), 40)
    falls = rng.normal(size=(24, 2))[groups]
    assert error_of_sum(falls, None) == pytest.approx(falls.std() * np.sqrt(falls.size))
    assert error_of_sum(falls, groups) == pytest.approx(np.sqrt(40) * error_of_sum(falls, None))
    falls[::3] = np.nan
    assert np.isfinite(error_of_sum(falls, groups))
