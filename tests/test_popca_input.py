"""POPCA on rows and options that are not as they should be: clear errors, documented answers, nothing lost."""

import numpy as np
import pytest

from lacunar.lowrank import POPCA


def table(n=200, d=6, p=0.6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    return np.where(rng.random((n, d)) < p, X, np.nan)


def state(model):
    return {name: np.copy(value) for name, value in vars(model).items() if isinstance(value, np.ndarray)}


def unchanged(model, before):
    after = state(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_rows_with_one_entry_inform_means_only():
    X = table()
    single = np.full((300, 6), np.nan)
    single[np.arange(300), np.arange(300) % 6] = 100.0 + np.arange(300) % 6
    plain, more = POPCA(2, refine=0).fit(X), POPCA(2, refine=0).fit(np.vstack([X, single]))
    assert more.diagnostics_["effective_rows"] == plain.diagnostics_["effective_rows"] < 201
    assert more.diagnostics_["median_joint_count"] == plain.diagnostics_["median_joint_count"]
    assert (more.mean_ > plain.mean_ + 10).all()
    np.testing.assert_array_equal(more.state_["N"] - plain.state_["N"], 50 * np.eye(6))
    with pytest.warns(UserWarning, match="no method recovers"):
        nothing = POPCA(1).fit(single)
    np.testing.assert_allclose(nothing.mean_, 100 + np.arange(6))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("refine", [0, 10])
def test_constant_columns_have_no_part(scale, refine):
    X = table()
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 7.0)
    model = POPCA(2, standardize=scale, refine=refine).fit(X)
    np.testing.assert_allclose(model.components_[:, 2], 0, atol=1e-3)
    assert model.mean_[2] == pytest.approx(7.0, abs=1e-6)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_constant_table_has_no_variance():
    model = POPCA(2).fit(np.where(np.isnan(table()), np.nan, 3.0))
    np.testing.assert_allclose(model.explained_variance_, 0, atol=1e-12)
    np.testing.assert_allclose(model.impute(table(5)[:1] * np.nan), 3.0)


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_unseen_columns_by_parameter():
    X = table()
    X[:, 3] = np.nan
    with pytest.raises(
        ValueError, match=r"column 3\. Every column must be observed\. Drop them, or pass unseen='drop'"
    ):
        POPCA(2).fit(X)
    with pytest.warns(UserWarning, match="left out"):
        dropped = POPCA(2, unseen="drop").fit(X)
    kept = np.delete(np.arange(6), 3)
    np.testing.assert_allclose(
        np.abs(dropped.components_[:, kept]), np.abs(POPCA(2).fit(X[:, kept]).components_), atol=1e-6
    )
    assert (dropped.components_[:, 3] == 0).all()
    assert dropped.n_seen_per_feature_[3] == 0
    filled = dropped.impute(X)
    assert np.isnan(filled[:, 3]).all()
    assert np.isfinite(filled[:, kept]).all()
    seen_now = np.full((1, 6), 2.5)
    np.testing.assert_array_equal(dropped.impute(seen_now), seen_now)
    with pytest.warns(UserWarning, match="so far"):
        stream = POPCA(2).partial_fit(X)
    assert (stream.components_[:, 3] == 0).all()
    again = table(seed=1)
    whole = POPCA(2, refine=0).fit(np.vstack([X, again]))
    np.testing.assert_allclose(stream.partial_fit(again).components_, whole.components_, atol=1e-10)


@pytest.mark.filterwarnings("ignore:eigenvalue 6")
def test_more_components_than_columns():
    for call in (POPCA(7).fit, POPCA(7).partial_fit):
        with pytest.raises(ValueError, match="at most the number of columns, 6; got 7"):
            call(table())
    assert POPCA(6).fit(table()).n_components_ == 6


def test_a_failed_batch_leaves_everything():
    X = table()
    fresh = POPCA(2)
    with pytest.raises(ValueError, match=r"shift must be 6 finite numbers, one a column; got shape \(5,\)"):
        fresh.partial_fit(X, shift=np.zeros(5))
    with pytest.raises(ValueError, match="finite"):
        fresh.partial_fit(X, shift=[np.inf, 0, 0, 0, 0, 0])
    assert not [name for name in vars(fresh) if name.endswith("_")]
    model = fresh.partial_fit(X)
    before = state(model)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :4])
    with pytest.raises(ValueError, match="robust"):
        model.set_params(robust="rows").partial_fit(X)
    unchanged(model, before)
    assert model.n_samples_seen_ == 200


@pytest.mark.parametrize(
    "other",
    [
        {"weights": "kappa"},
        {"weights": "known", "p": 0.6},
        {"standardize": True},
        {"center": False},
        {"robust": "rows"},
    ],
)
def test_unlike_models_do_not_merge(other):
    X = table()
    model, more = POPCA(2).fit(X), POPCA(2, **other).fit(X)
    before = state(model)
    with pytest.raises(ValueError, match=f"merge .*{next(iter(other))}"):
        model.merge(more)
    unchanged(model, before)


def test_merging_compares_p_and_names():
    import pandas as pd

    X = table()
    one, other = (POPCA(2, weights="known", p=p).fit(X) for p in (0.6, [0.61] * 6))
    with pytest.raises(ValueError, match="same p"):
        one.merge(other)
    assert one.merge(POPCA(2, weights="known", p=0.6).fit(X)).n_samples_seen_ == 400
    left, right = (POPCA(2).fit(pd.DataFrame(X, columns=list(names))) for names in ("abcdef", "abcdeg"))
    with pytest.raises(ValueError, match="other names"):
        left.merge(right)


def test_centering_may_be_turned_off_in_a_stream():
    X = table() + 5.0
    model = POPCA(2).partial_fit(X)
    plain = POPCA(2, center=False, refine=0).fit(np.vstack([X, X]))
    model.set_params(center=False).partial_fit(X)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-10)
    assert (model.mean_ == 0).all()


def test_long_rows_are_shortened_whatever_their_length():
    X = table()
    X[7, 2], one = 1e200, X.copy()
    one[7, 2] = 1e140
    far, near = (POPCA(2, robust="rows", refine=0).fit(each) for each in (X, one))
    np.testing.assert_allclose(np.abs(far.components_), np.abs(near.components_), rtol=1e-9)
    X[:, 2] = np.linspace(0.0, 1e-3, len(X))
    X[7, 2] = 1e308
    with pytest.raises(ValueError, match=r"robust='rows' .* got 1e\+308 in row 7, column 2\. Correct it"):
        POPCA(2, robust="rows").fit(X)
