"""`KernelSelection` against refits with its kernels written out, and on tables that ask for trouble."""

import pickle
import time

import numpy as np
import pytest
from reference.selection import form_gram, held_out, landmark_held_out, radial_gram
from scipy.linalg import lapack

from lacunar._cuts import cuts_of
from lacunar.karma import selection as module
from lacunar.karma.expansion import expand
from lacunar.karma.kernel_ridge import RIDGE, Data, Rows, _inverted
from lacunar.karma.selection import Grid, KernelSelection, Trial, _candidates, _of_completed, karma_entries
from lacunar.kernels import RadialForm, RowPairSums
from lacunar.observed import Observed
from lacunar.persistence import load_model, save_model


def table(n=90, d=5, q=1, seed=0, missing=0.25):
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n, 2))
    Z = codes @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    Z[:, -1] = rng.integers(3, size=n) - 1.0
    Y = np.column_stack([codes[:, 0] * codes[:, 1] + k * codes[:, 0] + 0.1 * rng.normal(size=n) for k in range(q)])
    Z[rng.random(Z.shape) < missing] = np.nan
    return Z, Y, np.array_split(rng.permutation(n), 5)


def complete(Z):
    """A completion that depends on the row only."""
    seen = ~np.isnan(Z)
    mean = np.where(seen, Z, 0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    return np.where(seen, Z, 0.7 * mean[:, None])


def written_gram(selection, k, Z, stored):
    """Kernel k of a selection between rows Z and stored rows, both with NaN."""
    form, kind = selection.forms_[k], selection.chosen_[k]["table"]
    if isinstance(form, RadialForm):
        filled = [complete(A) if kind == "completed" else np.nan_to_num(A) for A in (Z, stored)]
        masks = [(~np.isnan(A)).astype(float) for A in (Z, stored)]
        return radial_gram(filled[0], masks[0], filled[1], masks[1], form.length, form.mask, form.laplace)
    if kind != "plain":
        Z, stored = (expand(Observed.from_dense(A), selection.expansions_[kind]).to_dense() for A in (Z, stored))
    return form_gram(Z, stored, form)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("completion", [None, complete])
@pytest.mark.parametrize("q", [1, 3])
def test_out_of_fold_values_are_those_of_refits(q, completion, weighted):
    Z, Y, folds = table(q=q)
    weight = np.random.default_rng(1).integers(1, 4, len(Z)) / 2.0 if weighted else None
    selection = KernelSelection()
    found = selection.fit(Z, Y, cuts_of(folds, len(Z)), weight, complete=completion)
    grams = [written_gram(selection, k, Z, Z) for k in range(len(selection.forms_))]
    Cs = [each["C"] for each in selection.chosen_]
    expected = [held_out(K, Y, C, folds, weight) for K, C in zip(grams, Cs, strict=True)]
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-7)
    alone = [np.array([i]) for i in range(len(Z))]
    for K, C, each in zip(grams, Cs, selection.chosen_, strict=True):
        errors = np.square(held_out(K, Y, C, alone, weight) - Y).mean(axis=1)
        assert each["error"] == pytest.approx(np.average(errors, weights=weight), rel=1e-7)
    new = table(seed=5)[0]
    nowhere = [np.arange(len(Z), len(Z) + len(new))]
    both = np.concatenate([Z, new])
    every = np.concatenate([np.ones(len(Z)) if weight is None else weight, np.zeros(len(new))])
    grams = [written_gram(selection, k, both, both) for k in range(len(selection.forms_))]
    expected = [
        held_out(K, np.concatenate([Y, np.zeros((len(new), q))]), C, nowhere, every)[len(Z) :]
        for K, C in zip(grams, Cs, strict=True)
    ]
    np.testing.assert_allclose(selection.predict(new, completion), np.mean(expected, axis=0), atol=1e-7)


@pytest.mark.parametrize("kind", ["plain", "gaussian", "levels", "completed"])
@pytest.mark.parametrize("weighted", [False, True])
def test_landmarks_are_those_of_refits(kind, weighted, monkeypatch):
    from lacunar.karma import kernel_ridge
    from lacunar.karma import selection as module

    karma, radial = module.karma_entries, module.radial_entries
    monkeypatch.setattr(module, "karma_entries", lambda table: karma(table) if table == kind else [])
    monkeypatch.setattr(module, "radial_entries", lambda table: radial(table) if table == kind else [])
    monkeypatch.setattr(kernel_ridge, "BLOCK", 400)  # several blocks of rows
    Z, Y, folds = table(n=260)
    weight = np.random.default_rng(1).integers(0, 3, len(Z)) / 2.0 if weighted else np.ones(len(Z))
    selection = KernelSelection(screen_rows=60, search_rows=120, full_rows=150, landmarks=40)
    found = selection.fit(Z, Y, cuts_of(folds, len(Z)), weight, complete=complete)
    assert selection.rows_.shape[0] == 40
    stored = selection.rows_.to_dense()
    expected = []
    for k, each in enumerate(selection.chosen_):
        Kmm, Knm = written_gram(selection, k, stored, stored), written_gram(selection, k, Z, stored)
        expected.append(landmark_held_out(Kmm, Knm, Y, each["C"], folds, 40 * RIDGE, weight))
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-4)
    monkeypatch.setattr(kernel_ridge, "_STORED_VALUES", 0)
    np.testing.assert_array_equal(selection.fit(Z, Y, cuts_of(folds, len(Z)), weight, complete=complete), found)


def test_a_weight_of_zero_has_a_prediction_and_no_say():
    Z, Y, folds = table(n=120)
    weight = (np.arange(120) % 4 > 0).astype(float)
    kept = np.flatnonzero(weight)
    place = np.cumsum(weight).astype(int) - 1
    wild = np.where(weight[:, None] > 0, Y, 50.0)
    one, other = KernelSelection(), KernelSelection()
    found = one.fit(Z, wild, cuts_of(folds, len(Z)), weight)
    expected = other.fit(Z[kept], Y[kept], cuts_of([place[fold[weight[fold] > 0]] for fold in folds], len(kept)))
    assert [each["table"] for each in one.chosen_] == [each["table"] for each in other.chosen_]
    np.testing.assert_allclose(found[kept], expected, atol=1e-6)
    new = table(seed=5)[0]
    np.testing.assert_allclose(one.predict(new), other.predict(new), atol=1e-6)
    np.testing.assert_allclose(
        found[weight == 0],
        np.mean(
            [
                held_out(written_gram(one, k, Z, Z), wild, each["C"], folds, weight)[weight == 0]
                for k, each in enumerate(one.chosen_)
            ],
            axis=0,
        ),
        atol=1e-5,
    )


@pytest.mark.parametrize("full_rows", [3000, 200])
def test_the_bits_do_not_depend_on_the_threads(full_rows):
    Z, Y, folds = table(n=320)
    sizes = {"screen_rows": 80, "search_rows": 150, "full_rows": full_rows, "landmarks": 70}
    one, two = KernelSelection(**sizes), KernelSelection(**sizes, n_jobs=2)
    np.testing.assert_array_equal(
        one.fit(Z, Y, cuts_of(folds, len(Z)), complete=complete),
        two.fit(Z, Y, cuts_of(folds, len(Z)), complete=complete),
    )
    assert one.chosen_ == two.chosen_
    np.testing.assert_array_equal(one.predict(Z, complete), two.predict(Z, complete))


def hostile():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 4))
    holes = Z.copy()
    holes[:, 1] = np.nan
    holes[3] = np.nan
    yield "constant columns", np.zeros((30, 3))
    yield "one constant column among others", np.column_stack([Z, np.zeros(30)])
    yield "one column", Z[:, :1]
    yield "one column with missing values", holes[:, 2:3]
    yield "rows and columns that are all missing", holes
    yield "nothing observed", np.full((30, 4), np.nan)
    yield "duplicates", np.tile(Z[:2], (15, 1))
    yield "one row thirty times", np.tile(Z[:1], (30, 1))
    yield "more columns than rows", rng.normal(size=(12, 300))
    yield "at the clip", np.sign(Z) * 8
    for n in (1, 2, 3, 4, 5, 9):
        yield f"{n} rows", Z[:n]
        yield f"{n} rows, nothing observed", np.full((n, 2), np.nan)


@pytest.mark.parametrize(("name", "Z"), list(hostile()), ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize(
    ("completion", "full_rows"),
    [
        (None, 3000),
        (complete, 8),
        pytest.param(None, 8, marks=pytest.mark.slow),
        pytest.param(complete, 3000, marks=pytest.mark.slow),
    ],
)
def test_hostile_tables_give_numbers(name, Z, completion, full_rows):
    n = len(Z)
    rng = np.random.default_rng(1)
    folds = [fold for fold in np.array_split(rng.permutation(n), 5) if len(fold)]
    for Y in (rng.normal(size=(n, 2)), np.ones((n, 1))):
        selection = KernelSelection(full_rows=full_rows, landmarks=6)
        found = selection.fit(Z, Y, cuts_of(folds, len(Z)), complete=completion)
        assert found.shape == Y.shape
        assert np.isfinite(found).all(), name
        for new in (Z, 8 * np.ones_like(Z), np.full_like(Z, np.nan), Z[:0]):
            made = selection.predict(new, completion)
            assert made.shape == (len(new), Y.shape[1])
            assert np.isfinite(made).all(), name
        if (Y == 1).all() and n > 5:
            np.testing.assert_allclose(found, 1, atol=1e-9)


def test_a_kernel_that_cannot_be_factorised_lowers_its_C():
    """A Gram with an eigenvalue of -1e-3, as rounding may make it, allows C below 500."""
    _, Y, folds = table(n=40)
    gram = np.diag(np.where(np.arange(40) == 0, -1e-3, 1.0))
    data = Data(Rows(Observed.from_dense(np.zeros((40, 1))), None), Y, np.ones(40))
    trial = Trial(karma_entries("plain")[0], 1e5)
    fitted = KernelSelection()._fit_all(None, gram, trial, data=data, cuts=cuts_of(folds, 40))
    assert fitted.trial.C < 500
    assert np.isfinite(fitted.out_of_fold).all()


@pytest.mark.parametrize("full_rows", [3000, 100])
def test_leave_one_out_values_are_those_of_refits(full_rows):
    Z, Y, _ = table(n=110, q=2)
    data = Data(Rows(Observed.from_dense(Z), None), Y, np.random.default_rng(0).integers(1, 4, 110) / 2.0)
    selection = KernelSelection(full_rows=full_rows, landmarks=30)
    selection.fit_expansions(data.rows.observed, np.arange(110))
    found = selection.run(data, np.arange(110), Grid(karma_entries("plain")), None)
    alone, stored, expected = np.arange(110)[:, None], selection.rows_.to_dense(), []
    for k, each in enumerate(selection.chosen_):
        across = written_gram(selection, k, Z, stored)
        if full_rows > 110:
            expected.append(held_out(across, Y, each["C"], alone, data.weight))
        else:
            own = written_gram(selection, k, stored, stored)
            expected.append(landmark_held_out(own, across, Y, each["C"], alone, 30 * RIDGE, data.weight))
    np.testing.assert_allclose(found, np.mean(expected, axis=0), atol=1e-5)


@pytest.mark.parametrize("full_rows", [3000, 100])
def test_a_selection_is_saved_and_loaded(tmp_path, full_rows):
    Z, Y, folds = table(n=160)
    selection = KernelSelection(full_rows=full_rows, landmarks=50)
    selection.fit(Z, Y, cuts_of(folds, len(Z)), complete=complete)
    save_model(selection, tmp_path / "selection.lacunar")
    loaded = load_model(tmp_path / "selection.lacunar")
    np.testing.assert_array_equal(loaded.predict(Z, complete), selection.predict(Z, complete))
    loaded.chosen_[0]["table"] = "elsewhere"
    with pytest.raises(ValueError, match="chosen_ must name tables"):
        loaded._check_loaded()


def test_stored_rows_are_expanded_once_a_fit(monkeypatch):
    Z, shapes = np.random.default_rng(0).normal(size=(60, 2)), []
    selection, cuts = KernelSelection(), cuts_of(np.array_split(np.arange(60), 3), 60)
    for target in (np.sin(4 * Z[:, :1]), np.sin(4 * Z[:, 1:])):
        selection.fit(Z, target, cuts)
        fresh, size = selection.predict(Z[:7]), len(pickle.dumps(selection))
        with monkeypatch.context() as patched:
            patched.setattr(
                module, "expand", lambda rows, fitted: (shapes.append(rows.shape[0]), expand(rows, fitted))[1]
            )
            np.testing.assert_array_equal(selection.predict(Z[:7]), fresh)
            assert set(shapes) == {7}
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(selection)).predict(Z[:7]), fresh)
            assert 60 in shapes
        assert len(pickle.dumps(selection)) == size
        shapes.clear()


def test_a_deadline_in_the_past_leaves_one_kernel_of_everything():
    Z, Y, folds = table(n=200)
    selection = KernelSelection()
    found = selection.fit(Z, Y, cuts_of(folds, len(Z)), deadline=time.perf_counter() - 1)
    assert len(selection.chosen_) == 1
    assert np.isfinite(found).all()


def test_products_bumps_levels_and_lines_are_found():
    """Each target is learned well by some kernel of the selection, on 400 rows with a tenth missing."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 4))
    Z[:, 3] = rng.integers(4, size=400) - 1.5
    truth = Z.copy()
    Z[rng.random(Z.shape) < 0.02] = np.nan
    folds = np.array_split(np.arange(400), 5)
    for target in (truth[:, 0], truth[:, 0] * truth[:, 1], np.sin(2 * truth[:, 0]), (truth[:, 3] == 0.5) * 1.0):
        Y = ((target - target.mean()) / target.std())[:, None]
        assert np.mean((KernelSelection().fit(Z, Y, cuts_of(folds, len(Z))) - Y) ** 2) < 0.12


def test_kernels_far_behind_are_not_searched():
    entries = karma_entries("plain", (1, 2)) + karma_entries("levels", (1,)) + karma_entries("gaussian", (1,))
    far = {"plain": 1.0, "levels": 1.2, "gaussian": 1.3}
    trials = [Trial(entry, 1.0, np.array([far[entry.table] + 1e-3 * k])) for k, entry in enumerate(entries)]
    assert {trial.entry.table for trial in _candidates(trials, Grid(entries))} == {"plain", "levels"}
    protected = Grid(entries, protected=entries[-1:])
    assert entries[-1] in [trial.entry for trial in _candidates(trials, protected)]


def test_kernels_of_one_table_share_their_pair_sums_with_landmarks(monkeypatch):
    Z, summed, pairs = np.random.default_rng(0).normal(size=(300, 3)), [], KernelSelection._pairs

    def noted(selection, rows, table, others=None):
        if others is not None:
            summed.append((table, rows.observed.values.tobytes()))
        return pairs(selection, rows, table, others)

    monkeypatch.setattr(KernelSelection, "_pairs", noted)
    selection = KernelSelection(screen_rows=100, search_rows=100, full_rows=100, landmarks=40)
    selection.fit(
        Z, Z[:, :1] + np.random.default_rng(1).normal(size=(300, 1)), cuts_of(np.split(np.arange(300), 3), 300)
    )
    tables = [chosen["table"] for chosen in selection.chosen_]
    assert len(set(tables)) < len(tables)
    assert len(summed) == len(set(summed)) > 0


def test_pairs_of_completed_rows_count_the_columns_observed_in_both():
    Z, others = table(30)[0], table(20, seed=1)[0]
    Z[0] = np.nan
    rows, marks = (Rows(Observed.from_dense(part), np.nan_to_num(part, nan=0.5)) for part in (Z, others))
    pairs, plain = _of_completed(rows, marks, None), RowPairSums.between(rows.observed, marks.observed)
    for counted in ("counts", "sizes", "other_sizes"):
        np.testing.assert_array_equal(getattr(pairs, counted), getattr(plain, counted))
    np.testing.assert_allclose(pairs.sums, rows.completed @ marks.completed.T)


@pytest.mark.parametrize("n", [1, 64, 65, 130, 401])
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_triangles_inverted_by_halves(n, real):
    lower = np.tril(np.random.default_rng(n).normal(size=(n, n)) / n + np.eye(n)).astype(real)
    invert = lapack.get_lapack_funcs("trtri", (lower,))
    inverse = _inverted(lower.copy(order="F"), invert)
    assert inverse.dtype == real
    assert not np.triu(inverse, 1).any()
    assert np.allclose(inverse @ lower, np.eye(n), rtol=0, atol=1e-5 if real is np.float32 else 1e-12)


@pytest.mark.parametrize(("n", "first"), [(290, 290), (320, 160)])
def test_first_rung_tries_all_kernels_on_half_of_many_rows(n, first):
    Z, Y, _ = table(n)
    grid = Grid(karma_entries("plain", degree=4), protected=karma_entries("plain", gammas=[1], degree=1))
    data = Data(Rows(Observed.from_dense(Z), None), Y, np.ones(n))
    trials = KernelSelection().rungs(data, np.arange(n), grid)
    screened = [trial for trial in grid.trials if trial.rung == 1]
    assert {str(trial.entry) for trial in screened if trial.n_rows == first} == {str(entry) for entry in grid.entries}
    again = {str(trial.entry) for trial in screened if trial.n_rows == n}
    assert len(again) == (len(grid.entries) if first == n else 24)
    assert {str(trial.entry) for trial in trials} >= {str(entry) for entry in grid.protected}
